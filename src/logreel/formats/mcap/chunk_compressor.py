"""Compression of chunks and building of their message index, in threads: compressors release the interpreter's lock."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.mcap import records
from logreel.formats.mcap.records import ENTRY, INDEX, record_head, string_bytes
from logreel.io.arrays import I64
from logreel.kernels import mcap
from logreel.write.payloads import Payload

COMPRESSIONS = ("zstd", "lz4", "none")
#: Most threads: the one that fills the chunks does not keep more of them busy.
_MAX_THREADS = 4
#: Parts of the messages of zstd and LZ4 where memory ends.
_NO_MEMORY = ("not enough memory", "ERROR_allocation_failed")

Bytes1 = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ChunkContent:
    """The uncompressed content of a chunk.

    parts     its bytes, in order
    places    offsets of its message records, in order
    highest   highest id of the channels of the file
    size      number of bytes
    """

    parts: Sequence[Bytes1]
    places: Sequence[I64]
    highest: int
    size: int


@dataclass(frozen=True, slots=True)
class CompressedChunk:
    """A compressed chunk with its message index, ready to be written.

    head    chunk record up to the stored bytes
    stored  stored bytes
    index   message index records
    times   ns of the earliest and the latest message
    size    bytes of its uncompressed content
    ids     int64[k]  channels with messages
    counts  int64[k]  numbers of their messages
    places  int64[k]  offset of each channel's record in *index*
    """

    head: bytes
    stored: Payload
    index: memoryview
    times: tuple[int, int]
    size: int
    ids: I64
    counts: I64
    places: I64


class ChunkCompressor:
    """Compresses chunks.

    compression  ``zstd``, ``lz4`` or ``none``; raises UsageError for others
    level        of the compression; None: the library's default
    name         name of the compression in chunk records
    """

    def __init__(self, compression: str, level: int | None) -> None:
        if compression not in COMPRESSIONS:
            raise UsageError(f"compression {compression!r}; an MCAP has {', '.join(COMPRESSIONS)}")
        self.name = "" if compression == "none" else compression
        self._compression, self._level = compression, level
        self._own = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self.workers = 0 if compression == "none" else min(_MAX_THREADS, os.cpu_count() or 1)

    def compress(self, content: ChunkContent) -> CompressedChunk:
        """Compress a chunk and build its message index."""
        # Few Python operations: each one waits for the interpreter's lock, which the thread that fills chunks has.
        data, place = _joined(content.parts), _joined(content.places)
        counts = np.zeros(content.highest + 1, np.int64)
        times = mcap.count_messages(data, place, counts)
        ids, begin = np.flatnonzero(counts), np.empty_like(counts)
        stored = self._compress(data.data)
        head = struct.pack("<QQQI", *times, len(data), zlib.crc32(data.data)) + string_bytes(self.name)
        head = record_head(records.CHUNK, len(head) + 8 + len(stored)) + head + struct.pack("<Q", len(stored))
        index = np.empty(INDEX * len(ids) + ENTRY * len(place), np.uint8)
        mcap.write_index(data, place, counts, begin, index)
        return CompressedChunk(head, stored, index.data, times, len(data), ids, counts[ids], begin[ids])

    def submit(self, content: ChunkContent) -> Future[CompressedChunk]:
        """Compress a chunk in another thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, "logreel-pack")
        return self._pool.submit(self.compress, content)

    def close(self) -> None:
        """Wait for the threads and end them."""
        if self._pool is not None:
            self._pool.shutdown()

    def _compress(self, data: Payload) -> Payload:
        # Compressors are not thread-safe.
        if not hasattr(self._own, "compress"):
            self._own.compress = _compressor(self._compression, self._level)
        try:
            packed: Payload = self._own.compress(data)
        except Exception as error:
            # The errors of zstd and LZ4 have classes of their own also where memory ends.
            if any(text in str(error) for text in _NO_MEMORY):
                raise MemoryError from error
            raise
        return packed


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _compressor(compression: str, level: int | None) -> Callable[[Payload], Any]:
    if compression == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=3 if level is None else level).compress
    if compression == "lz4":
        import lz4.frame

        return lambda data: lz4.frame.compress(data, compression_level=level or 0)
    return lambda data: data
