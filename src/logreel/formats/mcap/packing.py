"""Chunks being packed, by other threads where there are many: compressors release the interpreter's lock."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from logreel.errors import UsageError

COMPRESSIONS = ("zstd", "lz4", "none")
#: More threads than this only wait for the one that makes the chunks.
_MOST = 4


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed chunk: what is stored, and of what is in it the bytes and the checksum."""

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

    def pack(self, content: Sequence[memoryview]) -> Packed:
        """Pack a chunk that has these parts."""
        data = b"".join(content)
        return Packed(self._compress(data), len(data), zlib.crc32(data))

    def later(self, content: Sequence[memoryview]) -> Future[Packed]:
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
