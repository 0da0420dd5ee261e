"""Chunks being packed, by other threads where there are many: compressors release the interpreter's lock."""

from __future__ import annotations

import itertools
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.model.blocks import I64

COMPRESSIONS = ("zstd", "lz4", "none")
#: More threads than this only wait for the one that makes the chunks.
_MOST = 4
_ENTRY = np.dtype([("time", "<u8"), ("place", "<u8")])


@dataclass(frozen=True, slots=True)
class Content:
    """What a chunk consists of.

    parts    its bytes
    channel  int32[n]  of each message
    time     int64[n]  ns
    place    int64[n]  where each begins in the chunk
    """

    parts: Sequence[memoryview]
    channel: NDArray[np.int32]
    time: I64
    place: I64

    @property
    def size(self) -> int:
        """Bytes of it."""
        return sum(part.nbytes for part in self.parts)

    def by_channel(self) -> Iterator[tuple[int, int, bytes]]:
        """Of each channel its number, how many messages it has, and pairs of their times and places as bytes."""
        # Numbers of 16 bits are sorted by counting.
        order = np.argsort(self.channel.astype(np.uint16), kind="stable")
        entries = np.empty(len(order), _ENTRY)
        entries["time"], entries["place"] = self.time[order], self.place[order]
        counts = np.bincount(self.channel)
        numbers = np.flatnonzero(counts)
        edges = np.concatenate([[0], np.cumsum(counts[numbers])]).tolist()
        for number, (lo, hi) in zip(numbers.tolist(), itertools.pairwise(edges), strict=True):
            yield number, hi - lo, entries[lo:hi].tobytes()


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed chunk: its bytes, and of what is in it the size and the checksum."""

    stored: bytes
    size: int
    crc: int


class Packer:
    """Packs chunks with *compression* (``zstd``, ``lz4`` or ``none``) of *level*; None: as the library has it.

    Raises UsageError for another compression.
    """

    def __init__(self, compression: str, level: int | None) -> None:
        if compression not in COMPRESSIONS:
            raise UsageError(f"compression {compression!r}; an MCAP has {', '.join(COMPRESSIONS)}")
        self._compression, self._level = compression, level
        self._own = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self.workers = 0 if compression == "none" else min(_MOST, os.cpu_count() or 1)

    def pack(self, content: Content) -> Packed:
        """Pack a chunk."""
        # Whatever takes the interpreter's lock here waits for the thread that makes the chunks.
        data = b"".join(content.parts)
        return Packed(self._compress(data), len(data), zlib.crc32(data))

    def later(self, content: Content) -> Future[Packed]:
        """The same in another thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, "logreel-pack")
        return self._pool.submit(self.pack, content)

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _compress(self, data: bytes) -> bytes:
        # A compressor serves one thread at a time.
        if not hasattr(self._own, "compress"):
            self._own.compress = _compressor(self._compression, self._level)
        packed: bytes = self._own.compress(data)
        return packed


def _compressor(compression: str, level: int | None) -> Callable[[bytes], Any]:
    if compression == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=3 if level is None else level).compress
    if compression == "lz4":
        import lz4.frame

        return lambda data: lz4.frame.compress(data, compression_level=level or 0)
    return lambda data: data
