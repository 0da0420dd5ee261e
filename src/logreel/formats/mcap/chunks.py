"""Decompression of chunks (none, zstd, LZ4), with a bounded size and the valid prefix of damaged data; checksums."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from logreel.errors import Problem
from logreel.formats.mcap.records import BadRecord, Chunk
from logreel.io.arrays import run_many
from logreel.io.lz4_frames import unpack_lz4
from logreel.io.source import Buffer, ChunkCache, Source
from logreel.log.scan import Noted

COMPRESSIONS = ("", "zstd", "lz4")
#: Largest chunk: offsets in it have 32 bits.
LARGEST = (1 << 31) - 1
_STEP = 1 << 20
#: Fewest chunks whose checksums are worth another thread.
PER_THREAD = 4
#: Part of the message of zstd where memory ends, which is no damage.
_NO_MEMORY = "not enough memory"


def size_limit(source: Source, chunk: Chunk) -> int:
    """Return the most bytes that *chunk* is decompressed to."""
    return min(source.limits.unpacked(chunk.size, chunk.stored), LARGEST)


def unpack(source: Source, chunk: Chunk) -> tuple[Buffer, str]:
    """Return the decompressed bytes of *chunk* (of a damaged one the valid prefix), and a description of the damage.

    The description is empty if there is no damage.
    """
    end = chunk.data + chunk.stored
    # From the head of its record, which is compared afterwards.
    packed = source.span(chunk.pos, end)[chunk.data : end]
    if chunk.is_plain:
        wrong = (
            "" if len(packed) == chunk.size else f"it has {len(packed)} bytes where {chunk.size} are stated"
        )
        return packed, wrong
    limit = size_limit(source, chunk)
    # One byte above the limit shows that there is more.
    if chunk.compression == "lz4":
        data, wrong, _ = unpack_lz4(packed, limit + 1)
    else:
        data, wrong = _zstd(packed, chunk.size, limit + 1)
    if not wrong and (len(data) != chunk.size or len(data) > limit):
        wrong = f"it unpacks to {len(data)} bytes where {chunk.size} are stated"
        if len(data) > limit:
            more = f"it unpacks to more bytes than the {chunk.size} that are stated"
            wrong = more if limit == chunk.size else _exceeded(source, chunk)
    return data[:limit], wrong


def _exceeded(source: Source, chunk: Chunk) -> str:
    """Return which limit *chunk* exceeds."""
    if source.limits.unpacked(chunk.size, chunk.stored) > LARGEST:
        return f"it unpacks to more than {LARGEST} bytes: offsets in a chunk have 32 bits, more is not read"
    return source.limits.exceeded(chunk.stored)


def _zstd(packed: Buffer, size: int, limit: int) -> tuple[Buffer, str]:
    """Decompress at most *limit* bytes; return them and a description of the damage."""
    from logreel.io import zstd

    try:
        if size < limit and zstd.stated_size(packed.data) == size:
            return np.frombuffer(zstd.unpack(packed.data), np.uint8), ""
    except zstd.ZstdError as error:
        # Decompressing in steps finds the valid prefix.
        _check_memory(error)
    # Pages that are not written take no memory.
    out, have, wrong = np.empty(limit, np.uint8), 0, ""
    reader = zstd.reader(packed.data)
    try:
        while have < limit and (n := reader.readinto(out[have : have + _STEP].data)):
            have += n
    except zstd.ZstdError as error:
        _check_memory(error)
        wrong = f"its zstd frame is damaged: {error}"
    if have < min(size, limit) and not wrong:
        wrong = "its zstd frame is cut"
    return out[:have], wrong


def _check_memory(error: Exception) -> None:
    """Raise MemoryError if that is what zstd means."""
    if _NO_MEMORY in str(error).lower():
        raise MemoryError(str(error)) from error


def problem_of(chunk: Chunk, wrong: str) -> Problem:
    """Return the problem of a damaged chunk."""
    return Problem("chunk", chunk.pos, chunk.stored, True, f"a {chunk.compression or 'plain'} chunk: {wrong}")


def crc_problem(chunk: Chunk, data: Buffer) -> Problem | None:
    """Return the problem of a chunk whose checksum is not that of *data*, its decompressed bytes; None if it is."""
    if chunk.crc <= 0 or zlib.crc32(data.data) == chunk.crc:
        return None
    text = "the checksum of a chunk is wrong: bytes of its messages are not what was written"
    return Problem("crc", chunk.pos, chunk.stored, True, text)


def compare_plain(source: Source, chunks: Sequence[Chunk], problems: list[Problem]) -> None:
    """Add a problem for each of the uncompressed *chunks* with a wrong checksum, unless it is known.

    Checksums of compressed chunks are compared when they are decompressed.
    """

    def compared(chunk: Chunk) -> Problem | None:
        recorded, _ = _as_recorded(source, chunk)
        return crc_problem(recorded, unpack(source, recorded)[0])

    plain = [chunk for chunk in chunks if chunk.is_plain and chunk.crc]
    wrong = run_many([partial(compared, chunk) for chunk in plain], PER_THREAD)
    noted = Noted()
    for problem in sorted(filter(None, wrong), key=lambda problem: problem.offset):
        noted.add(problems, problem)


def data_section_problem(source: Source, data_end: tuple[int, int] | None) -> Problem | None:
    """Return the problem of a data section whose checksum is wrong; None if it is right, or there is none.

    data_end  as in ``FoundFile``
    """
    pos, crc = data_end or (0, 0)
    if not crc or zlib.crc32(source.view[:pos]) == crc:
        return None
    text = "the checksum of the data section is wrong: some byte of it is not what was written"
    return Problem("crc", 0, pos, True, text)


def cache(source: Source, chunks: list[Chunk], problems: list[Problem]) -> ChunkCache:
    """Return the cache of decompressed chunks; damage is added to *problems* when a chunk is decompressed."""

    def read(number: int) -> Buffer:
        chunk, differs = _as_recorded(source, chunks[number])
        data, wrong = unpack(source, chunk)
        wrong = wrong or differs
        problem = problem_of(chunks[number], wrong) if wrong else crc_problem(chunk, data)
        if problem is not None:
            noted.add(problems, problem)
        return data

    noted = Noted()
    return ChunkCache(read, [size_limit(source, file_chunk) for file_chunk in chunks], False, source.limits)


def _as_recorded(source: Source, chunk: Chunk) -> tuple[Chunk, str]:
    """Return a chunk as its own record describes it, and how its chunk index differs; empty if it does not."""
    if chunk.crc >= 0:
        return chunk, ""
    try:
        recorded = Chunk.read(source, chunk.pos, source.size)
    except BadRecord as error:
        return chunk, str(error)
    if recorded.compression not in COMPRESSIONS:
        return chunk, "the index differs"
    same = (recorded.compression, recorded.data, recorded.stored, recorded.size)
    if same == (chunk.compression, chunk.data, chunk.stored, chunk.size):
        return recorded, ""
    return recorded, "the index differs"


def compressions(chunks: Iterable[Chunk]) -> list[str]:
    """Return the names of the chunks' compressions, sorted."""
    return sorted({chunk.compression or "none" for chunk in chunks})
