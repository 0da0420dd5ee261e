"""The content of chunks: as it is, bz2, LZ4 or (in 2010) zlib; bounded, and as much as can be had of a cut one."""

from __future__ import annotations

import bz2
import mmap
import os
import tempfile
import weakref
import zlib
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import IO

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.rosbag.encryption import Cipher
from logreel.formats.rosbag.lz4_frames import unpack_lz4
from logreel.model.source import Source

Buffer = NDArray[np.uint8]

#: Unpacked chunks kept in memory, whatever the size of the log.
CACHE_BYTES = 64 << 20
#: Unpacked chunks kept in a temporary file.
SPOOL_BYTES = 16 << 30
#: No chunk unpacks to more: writers close them at 768 KiB or so, the largest option in use is far below.
MAX_CHUNK = 1 << 28
COMPRESSIONS = ("none", "bz2", "lz4", "zlib")
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a chunk lies in the file, how it is packed, and how many bytes it says it unpacks to.

    cipher  what decrypts its stored bytes, None if they are in the clear
    """

    pos: int
    data: int
    stored: int
    compression: str
    size: int
    cipher: Cipher | None = None

    @property
    def is_plain(self) -> bool:
        """True if its records lie in the file as they are."""
        return self.compression == "none" and self.cipher is None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What a chunk holds.

    data   its bytes; of a damaged chunk those that could be had
    wrong  what is wrong with it, empty if nothing is
    used   stored bytes that belong to it
    """

    data: Buffer
    wrong: str
    used: int


def unpack(source: Source, chunk: Chunk) -> Unpacked:
    """The unpacked bytes of *chunk*.

    Of a damaged or cut chunk this gives what unpacks: for LZ4 all blocks before the damage, for bz2 likewise.
    Never holds more than the chunk states or MAX_CHUNK, whatever the packed bytes would make.
    """
    packed = source.data[chunk.data : chunk.data + chunk.stored]
    if chunk.is_plain:
        return Unpacked(packed, "", len(packed))
    if chunk.cipher is not None:
        clear, wrong = chunk.cipher.decrypt(packed)
        found = unpack(Source(clear, ""), Chunk(chunk.pos, 0, len(clear), chunk.compression, chunk.size))
        if chunk.compression == "none" and len(clear) != chunk.size:
            wrong = wrong or f"it decrypts to {len(clear)} bytes where {chunk.size} are stated"
        return Unpacked(found.data, wrong or found.wrong, len(packed))
    limit = min(chunk.size, MAX_CHUNK) if chunk.size else MAX_CHUNK
    # One byte more shows that there is more, and lets the checksum at the end be read.
    data, wrong, left = {"bz2": _bz2, "lz4": unpack_lz4, "zlib": _zlib}[chunk.compression](packed, limit + 1)
    if not wrong and chunk.size and len(data) != chunk.size:
        many = "more" if len(data) > limit else len(data)
        wrong = f"it unpacks to {many} bytes where {chunk.size} are stated"
    elif len(data) > limit:
        wrong = f"it unpacks to more than {limit} bytes"
    return Unpacked(data[:limit], wrong, len(packed) - left)


def _bz2(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """At most *limit* bytes, what is wrong, and how many packed bytes were left over."""
    decompressor = bz2.BZ2Decompressor()
    out, wrong = bytearray(), ""
    try:
        for at in range(0, len(packed), _STEP):
            feed = packed[at : at + _STEP].tobytes()
            while len(out) < limit and not decompressor.eof:
                out += decompressor.decompress(feed, min(_STEP, limit - len(out)))
                feed = b""
                if decompressor.needs_input:
                    break
            if decompressor.eof:
                left = len(decompressor.unused_data) + max(0, len(packed) - at - _STEP)
                return np.frombuffer(out, np.uint8), "", left
        wrong = "its bz2 stream is cut" if len(out) < limit else ""
    except (OSError, EOFError, ValueError) as error:
        wrong = f"its bz2 stream is damaged: {error}"
    return np.frombuffer(out, np.uint8), wrong, 0


def _zlib(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """As the development versions wrote for some days."""
    decompressor = zlib.decompressobj()
    try:
        data = decompressor.decompress(packed.tobytes(), limit)
    except zlib.error as error:
        return packed[:0], f"its zlib stream is damaged: {error}", 0
    wrong = "" if decompressor.eof or len(data) == limit else "its zlib stream is cut"
    return np.frombuffer(data, np.uint8), wrong, len(decompressor.unused_data)


def problem_of(chunk: Chunk, unpacked: Unpacked) -> Problem | None:
    """What to report of a chunk; None if it is sound."""
    if not unpacked.wrong:
        return None
    text = f"a {chunk.compression} chunk: {unpacked.wrong}"
    return Problem("chunk", chunk.pos, chunk.stored, True, text)


class ChunkCache:
    """Unpacked chunks by number, each unpacked once however often it is asked for; safe to use from several threads.

    Small logs are kept in memory. The chunks of larger ones, where unpacking is slow, go to a temporary file, whose
    pages the system drops and brings back as it needs memory; else the latest used ones are kept. What is wrong with a
    chunk is added to *problems* when it is first unpacked.
    """

    def __init__(self, source: Source, chunks: list[Chunk], problems: list[Problem]) -> None:
        self._source, self._chunks, self._problems = source, chunks, problems
        self._kept: OrderedDict[int, Buffer] = OrderedDict()
        self._locks = [Lock() for _ in range(64)]
        self._lock = Lock()
        sizes = [min(c.size, MAX_CHUNK) for c in chunks]
        self._place = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._spool: IO[bytes] | None = None
        # LZ4 unpacks about as fast as a temporary file is read; what somebody encrypted is not for the disk.
        slow = any(c.compression in ("bz2", "zlib") for c in chunks) and not any(c.cipher for c in chunks)
        if slow and CACHE_BYTES < self._place[-1] <= SPOOL_BYTES:
            with suppress(OSError):
                self._spool = tempfile.TemporaryFile(prefix="logreel-")  # noqa: SIM115 - lives as long as the log
                weakref.finalize(self, self._spool.close)

    def __call__(self, number: int) -> Buffer:
        """The unpacked bytes of a chunk; of a damaged one what there is."""
        with self._locks[number % len(self._locks)]:
            with self._lock:
                if number in self._kept:
                    self._kept.move_to_end(number)
                    return self._kept[number]
            unpacked = unpack(self._source, self._chunks[number])
            data, problem = unpacked.data, problem_of(self._chunks[number], unpacked)
            if problem and problem not in self._problems:
                self._problems.append(problem)
            if self._spool is not None and len(data):
                data = self._spooled(number, data)
            self._keep(number, data)
            return data

    def _spooled(self, number: int, data: Buffer) -> Buffer:
        """The same bytes as pages of the temporary file; *data* itself where they cannot be written."""
        if self._spool is None or len(data) > self._place[number + 1] - self._place[number]:
            return data
        try:
            handle, at = self._spool.fileno(), int(self._place[number])
            view, done = memoryview(data), 0  # type: ignore[arg-type]
            while done < len(view):
                done += os.pwrite(handle, view[done:], at + done)
            # A mapping begins at a page.
            page = at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            pages = mmap.mmap(handle, at - page + len(view), access=mmap.ACCESS_READ, offset=page)
        except OSError:
            self._spool = None
            return data
        return np.frombuffer(pages, np.uint8, len(data), at - page)

    def _keep(self, number: int, data: Buffer) -> None:
        with self._lock:
            self._kept[number] = data
            if self._spool is None:
                # Mapped ones cost no memory of ours; they stay.
                while sum(map(len, self._kept.values())) > CACHE_BYTES and len(self._kept) > 1:
                    self._kept.popitem(last=False)
