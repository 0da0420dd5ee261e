"""Chunks, the buffers that contain messages: the file itself, synthetic records, and decompressed chunks."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.source import Source
from logreel.limits import Limits

#: Chunk number of the file itself.
FILE = -1
#: Chunk number of records that the reader builds from other content (text lines, parameters).
SYNTHETIC = -2

Buffer = NDArray[np.uint8]
#: Bytes of a remote log that are fetched together when chunks are read one after another.
AHEAD_BYTES = 8 << 20


class Chunks:
    """Buffers by chunk number: FILE, SYNTHETIC, or 0 … for chunks that the format unpacks.

    unpack  returns the bytes of a chunk number ≥ 0; only for formats with compressed chunks
    sizes   approximate unpacked bytes of each chunk
    places  offsets of the packed chunks in the file
    ends    offsets of their ends, for a remote log with all messages in chunks, of which only the
            chunks that are used are fetched; None: messages may lie in the file itself
    by_block  True: the log has no chunks; *places* and *ends* are those of the blocks of the block table
    """

    _ends: Callable[[int], int] | None = None
    by_block = False

    def __init__(
        self,
        source: Source,
        unpack: Callable[[int], Buffer] | None = None,
        sizes: Callable[[int], int] = lambda chunk: 1 << 20,
        places: Callable[[int], int] = lambda chunk: 0,
        ends: Callable[[int], int] | None = None,
        by_block: bool = False,
    ) -> None:
        self.by_block = by_block
        self._source, self._unpack, self._sizes, self._places = source, unpack, sizes, places
        self._ends = ends if source.in_ranges else None
        self.synthetic: Buffer = np.zeros(0, np.uint8)

    def __getitem__(self, chunk: int) -> Buffer:
        if chunk == FILE:
            # Of a log with all messages in chunks, no byte of it is used; of others, those that were fetched.
            return self._source.data if self._ends is None else self._source.span(0, 0)
        if chunk == SYNTHETIC:
            return self.synthetic
        if self._unpack is None:
            raise IndexError(f"this log has no chunk {chunk}")
        return self._unpack(chunk)

    @property
    def in_ranges(self) -> bool:
        """Whether only the chunks that are used are fetched."""
        return self._ends is not None

    def fetch(self, chunks: Sequence[int], most: int = 1 << 62) -> int:
        """Fetch chunks of a remote log together, the first ones up to *most* bytes; return their number.

        Of a log without chunks, *chunks* are numbers of blocks. Nothing but remote logs needs it.
        """
        if self._ends is None:
            return len(chunks)
        starts, ends, count = list[int](), list[int](), 0
        for one in chunks:
            count += 1
            if one < 0:
                continue
            starts.append(self._places(one))
            ends.append(self._ends(one))
            most -= ends[-1] - starts[-1]
            if most <= 0:
                break
        self._source.fetch(np.array(starts, np.int64), np.array(ends, np.int64))
        return count

    def locate(self, chunk: int) -> tuple[int, int]:
        """Return the number of the file that a chunk is in, and the number of the chunk there."""
        return 0, chunk

    def check(self) -> None:
        """Raise FileChangedError if bytes of the file that were used until now may not be those that it had."""
        self._source.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, else nothing; for what is called often."""
        self._source.check_pages()

    def size_of(self, chunk: int) -> int:
        """Return the bytes of a chunk, without unpacking it if its size is known."""
        return self._sizes(chunk) if chunk >= 0 else len(self[chunk])

    def place_of(self, chunk: int) -> int:
        """Return the offset in the file of the stored bytes of a chunk."""
        return self._places(chunk) if chunk >= 0 else 0

    def view(self, chunk: int) -> memoryview:
        """Return the buffer of a chunk as a memoryview."""
        if chunk == FILE and self._ends is None:
            return self._source.view
        return memoryview(self[chunk])  # type: ignore[arg-type]


class ChunkCache:
    """Thread-safe cache of unpacked chunks by number.

    unpack  returns the bytes of a chunk; of a damaged one the valid prefix
    sizes   greatest size of each chunk in bytes
    slow    True if unpacking takes longer than reading a file
    limits  bytes of unpacked chunks that are kept in memory, and in a temporary file

    Small logs stay in memory. Of larger ones, slowly unpacked chunks go to a mapped temporary file, whose pages the
    system can evict and read again; otherwise the most recently used chunks are kept.
    """

    def __init__(
        self, unpack: Callable[[int], Buffer], sizes: Sequence[int], slow: bool, limits: Limits
    ) -> None:
        self._unpack, self._most = unpack, limits.cache_bytes
        self._held = 0
        self._kept: OrderedDict[int, Buffer] = OrderedDict()
        self._locks = [Lock() for _ in range(64)]
        self._lock = Lock()
        self._place = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._spool: IO[bytes] | None = None
        if slow and limits.cache_bytes < self._place[-1] <= limits.spool_bytes:
            with suppress(OSError):
                import tempfile

                self._spool = tempfile.TemporaryFile(prefix="logreel-")  # noqa: SIM115 - lives as long as the log
                weakref.finalize(self, self._spool.close)

    def __call__(self, number: int) -> Buffer:
        """Return the unpacked bytes of a chunk; of a damaged one the valid prefix."""
        with self._locks[number % len(self._locks)]:
            with self._lock:
                if number in self._kept:
                    self._kept.move_to_end(number)
                    return self._kept[number]
            data = self._unpack(number)
            if self._spool is not None and len(data):
                data = self._spooled(number, data)
            self._store(number, data)
            return data

    def _spooled(self, number: int, data: Buffer) -> Buffer:
        """Return the bytes mapped from the temporary file; *data* itself if they cannot be written."""
        if self._spool is None or len(data) > self._place[number + 1] - self._place[number]:
            return data
        try:
            handle, at = self._spool.fileno(), int(self._place[number])
            view, done = memoryview(data), 0  # type: ignore[arg-type]
            while done < len(view):
                done += os.pwrite(handle, view[done:], at + done)
            # Mappings begin at page borders.
            page = at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            pages = mmap.mmap(handle, at - page + len(view), access=mmap.ACCESS_READ, offset=page)
        except OSError:
            self._spool = None
            return data
        return np.frombuffer(pages, np.uint8, len(data), at - page)

    def _store(self, number: int, data: Buffer) -> None:
        with self._lock:
            self._kept[number] = data
            self._held += len(data)
            if self._spool is None:
                # Mapped chunks do not occupy memory of the process, so they stay.
                while self._held > self._most and len(self._kept) > 1:
                    self._held -= len(self._kept.popitem(last=False)[1])


class JoinedChunks(Chunks):
    """Buffers of several files: -1, -3, -5 … are the files themselves, -2, -4, -6 … their synthetic chunks.

    Chunk c of part p of n, where it is unpacked, is c * n + p.
    """

    def __init__(self, parts: Sequence[Chunks]) -> None:
        self._parts = list(parts)

    def number(self, part: int, chunk: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[n]: the numbers here of chunks of *part*."""
        found: NDArray[Any] = np.where(chunk < 0, chunk - 2 * part, chunk * len(self._parts) + part)
        return found.astype(np.int32)

    def locate(self, chunk: int) -> tuple[int, int]:
        """Return the part of a chunk, and its number there."""
        if chunk < 0:
            return (-chunk - 1) // 2, FILE if chunk % 2 else SYNTHETIC
        return chunk % len(self._parts), chunk // len(self._parts)

    def __getitem__(self, chunk: int) -> Buffer:
        part, number = self.locate(chunk)
        return self._parts[part][number]

    def check(self) -> None:
        """Raise FileChangedError if one of the files was found changed, see ``Chunks.check``."""
        for part in self._parts:
            part.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, see ``Chunks.check_pages``."""
        for part in self._parts:
            part.check_pages()

    def size_of(self, chunk: int) -> int:
        """Return the bytes of a chunk, see ``Chunks.size_of``."""
        part, number = self.locate(chunk)
        return self._parts[part].size_of(number)

    def place_of(self, chunk: int) -> int:
        """Return the offset in its file of the stored bytes of a chunk."""
        part, number = self.locate(chunk)
        return self._parts[part].place_of(number)

    def view(self, chunk: int) -> memoryview:
        """Return the buffer of a chunk as a memoryview."""
        part, number = self.locate(chunk)
        return self._parts[part].view(number)
