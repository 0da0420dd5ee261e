"""Decompression of chunks (none, bz2, LZ4, in 2010 zlib), with a bounded size and the valid prefix of damaged data."""

from __future__ import annotations

import bz2
import zlib

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import Problem
from logreel.formats.rosbag.encryption import Cipher
from logreel.io.lz4_frames import unpack_lz4
from logreel.io.source import Buffer, ChunkCache, Source
from logreel.log.scan import Noted

COMPRESSIONS = ("none", "bz2", "lz4", "zlib")
_STEP = 1 << 20
#: Part of the message of zlib where memory ends, which is no damage.
_NO_MEMORY = "Error -4 "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: file offsets of its record and data, stored bytes, compression, decompressed bytes as stated.

    cipher  decrypts the stored bytes; None if they are not encrypted
    """

    pos: int
    data: int
    stored: int
    compression: str
    size: int
    cipher: Cipher | None = None

    @property
    def is_plain(self) -> bool:
        """True if its records are neither compressed nor encrypted."""
        return self.compression == "none" and self.cipher is None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The decompressed content of a chunk.

    data   its bytes; the valid prefix for a damaged chunk
    wrong  description of the damage, empty if there is no damage
    used   number of stored bytes that belong to the chunk
    """

    data: Buffer
    wrong: str
    used: int


def size_limit(source: Source, chunk: Chunk) -> int:
    """Return the most bytes that *chunk* is decompressed to; 0 stated bytes are unknown ones."""
    return source.limits.unpacked(chunk.size or source.limits.chunk_bytes, chunk.stored)


def unpack(source: Source, chunk: Chunk) -> Unpacked:
    """Return the decompressed content of *chunk*, never more bytes than it states, nor than the limits allow.

    For a damaged or cut chunk this is the valid prefix: in LZ4 and bz2 all blocks before the damage.
    """
    end = chunk.data + chunk.stored
    packed = source.span(chunk.data, end)[chunk.data : end]
    if chunk.is_plain:
        return Unpacked(packed, "", len(packed))
    if chunk.cipher is not None:
        clear, wrong = chunk.cipher.decrypt(packed)
        inside = Source(clear, "")
        inside.limits = source.limits
        unpacked = unpack(inside, Chunk(chunk.pos, 0, len(clear), chunk.compression, chunk.size))
        if chunk.compression == "none" and len(clear) != chunk.size:
            wrong = wrong or f"it decrypts to {len(clear)} bytes where {chunk.size} are stated"
        return Unpacked(unpacked.data, wrong or unpacked.wrong, len(packed))
    limit = size_limit(source, chunk)
    # One byte above the limit shows that there is more, and lets the checksum at the end be read.
    data, wrong, left = {"bz2": _bz2, "lz4": unpack_lz4, "zlib": _zlib}[chunk.compression](packed, limit + 1)
    if not wrong and chunk.size and len(data) != chunk.size:
        wrong = f"it unpacks to {len(data)} bytes where {chunk.size} are stated"
        if len(data) > limit == chunk.size:
            wrong = f"it unpacks to more bytes than the {chunk.size} that are stated"
    if len(data) > limit != chunk.size:
        wrong = source.limits.exceeded(chunk.stored)
    return Unpacked(data[:limit], wrong, len(packed) - left)


def _bz2(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """Decompress at most *limit* bytes; return them, a description of the damage, and the number of unused bytes."""
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
    """Decompress a zlib chunk, which development versions of April 2010 wrote; return the same as ``_bz2``."""
    decompressor = zlib.decompressobj()
    # Pages that are not written take no memory.
    out, have, wrong = np.empty(limit, np.uint8), 0, ""
    try:
        for at in range(0, len(packed), _STEP):
            feed = packed[at : at + _STEP].tobytes()
            while feed and have < limit and not decompressor.eof:
                data = decompressor.decompress(feed, min(_STEP, limit - have))
                out[have : have + len(data)] = np.frombuffer(data, np.uint8)
                have, feed = have + len(data), decompressor.unconsumed_tail
            if decompressor.eof:
                left = len(decompressor.unused_data) + max(0, len(packed) - at - _STEP)
                return out[:have], "", left
        wrong = "its zlib stream is cut" if have < limit else ""
    except zlib.error as error:
        if _NO_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        wrong = f"its zlib stream is damaged: {error}"
    return out[:have], wrong, 0


def problem_of(chunk: Chunk, unpacked: Unpacked) -> Problem | None:
    """Return the problem of a damaged chunk; None if there is no damage."""
    if not unpacked.wrong:
        return None
    text = f"a {chunk.compression} chunk: {unpacked.wrong}"
    return Problem("chunk", chunk.pos, chunk.stored, True, text)


def cache(source: Source, chunks: list[Chunk], problems: list[Problem]) -> ChunkCache:
    """Return the cache of decompressed chunks; damage is added to *problems* when a chunk is decompressed."""

    def read(number: int) -> Buffer:
        unpacked = unpack(source, chunks[number])
        problem = problem_of(chunks[number], unpacked)
        if problem is not None:
            noted.add(problems, problem)
        return unpacked.data

    noted = Noted()

    # LZ4 is decompressed about as fast as a temporary file is read; decrypted bytes must not be written to a file.
    slow = any(c.compression in ("bz2", "zlib") for c in chunks) and not any(c.cipher for c in chunks)
    return ChunkCache(read, [size_limit(source, c) for c in chunks], slow, source.limits)
