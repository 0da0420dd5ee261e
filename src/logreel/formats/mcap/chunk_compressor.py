"""Chunks being packed, by other threads where there are many: compressors release the interpreter's lock."""

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
#: More threads than this only wait for the one that makes the chunks.
_MOST = 4

Bytes1 = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ChunkContent:
    """What a chunk consists of.

    parts     its bytes
    places    where its messages begin, in the order of the chunk
    channels  as many as there are, ids from 1 on
    size      bytes of it
    """

    parts: Sequence[Bytes1]
    places: Sequence[I64]
    channels: int
    size: int


@dataclass(frozen=True, slots=True)
class CompressedChunk:
    """A chunk as it is written.

    head    its record up to the stored bytes
    stored  these
    index   the records of its message index
    times   ns of the earliest and the latest message
    size    bytes of its content
    ids     int64[k]  of the channels that have messages
    counts  int64[k]  of these messages
    places  int64[k]  where the record of each channel begins in the index
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
    """Packs chunks with *compression* (``zstd``, ``lz4`` or ``none``) of *level*; None: as the library has it.

    name  of the compression in a chunk

    Raises UsageError for another compression.
    """

    def __init__(self, compression: str, level: int | None) -> None:
        if compression not in COMPRESSIONS:
            raise UsageError(f"compression {compression!r}; an MCAP has {', '.join(COMPRESSIONS)}")
        self.name = "" if compression == "none" else compression
        self._compression, self._level = compression, level
        self._own = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self.workers = 0 if compression == "none" else min(_MOST, os.cpu_count() or 1)

    def pack(self, content: ChunkContent) -> CompressedChunk:
        """Pack a chunk."""
        # Whatever takes the interpreter's lock here waits for the thread that makes the chunks.
        data, place = _joined(content.parts), _joined(content.places)
        counts = np.zeros(content.channels + 1, np.int64)
        times = mcap.count_messages(data, place, counts)
        ids, begin = np.flatnonzero(counts), np.empty_like(counts)
        stored = self._compress(data.data)
        head = struct.pack("<QQQI", *times, len(data), zlib.crc32(data.data)) + string_bytes(self.name)
        head = record_head(records.CHUNK, len(head) + 8 + len(stored)) + head + struct.pack("<Q", len(stored))
        index = np.empty(INDEX * len(ids) + ENTRY * len(place), np.uint8)
        mcap.write_index(data, place, counts, begin, index)
        return CompressedChunk(head, stored, index.data, times, len(data), ids, counts[ids], begin[ids])

    def later(self, content: ChunkContent) -> Future[CompressedChunk]:
        """The same in another thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, "logreel-pack")
        return self._pool.submit(self.pack, content)

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _compress(self, data: Payload) -> Payload:
        # A compressor serves one thread at a time.
        if not hasattr(self._own, "compress"):
            self._own.compress = _compressor(self._compression, self._level)
        packed: Payload = self._own.compress(data)
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
