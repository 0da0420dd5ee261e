"""Decompression of chunks (none, zstd, LZ4), with a bounded size and the valid prefix of damaged data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from logreel.errors import Problem
from logreel.formats.mcap.records import BadRecord, Chunk
from logreel.io.chunks import Buffer, ChunkCache
from logreel.io.lz4_frames import unpack_lz4
from logreel.io.source import Source

COMPRESSIONS = ("", "zstd", "lz4")
#: Most bytes that a chunk is decompressed to: MAX_CHUNK, or RATIO times its stored bytes if that is more.
MAX_CHUNK = 1 << 28
RATIO = 64
#: Largest chunk: offsets in it have 32 bits.
LARGEST = (1 << 31) - 1
_STEP = 1 << 20


def size_limit(chunk: Chunk) -> int:
    """Return the most bytes that *chunk* is decompressed to."""
    return min(chunk.size, LARGEST, max(MAX_CHUNK, RATIO * chunk.stored))


def unpack(source: Source, chunk: Chunk) -> tuple[Buffer, str]:
    """Return the decompressed bytes of *chunk* (of a damaged one the valid prefix), and a description of the damage.

    The description is empty if there is no damage.
    """
    packed = source.data[chunk.data : chunk.data + chunk.stored]
    if chunk.is_plain:
        wrong = (
            "" if len(packed) == chunk.size else f"it has {len(packed)} bytes where {chunk.size} are stated"
        )
        return packed, wrong
    limit = size_limit(chunk)
    # One byte above the limit shows that there is more.
    if chunk.compression == "lz4":
        data, wrong, _ = unpack_lz4(packed, limit + 1)
    else:
        data, wrong = _zstd(packed, chunk.size, limit + 1)
    if not wrong and len(data) != chunk.size:
        many = "more" if len(data) > limit else len(data)
        wrong = f"it unpacks to {many} bytes where {chunk.size} are stated"
    return data[:limit], wrong


def _zstd(packed: Buffer, size: int, limit: int) -> tuple[Buffer, str]:
    """Decompress at most *limit* bytes; return them and a description of the damage."""
    import zstandard

    whole = zstandard.ZstdDecompressor()
    try:
        if size < limit and zstandard.frame_content_size(packed.data) == size:
            return np.frombuffer(whole.decompress(packed.data), np.uint8), ""
    except zstandard.ZstdError:
        # Decompressing in steps finds the valid prefix.
        pass
    out, wrong = bytearray(), ""
    reader = whole.stream_reader(packed.data, read_across_frames=True)
    try:
        while len(out) < limit and (piece := reader.read(min(_STEP, limit - len(out)))):
            out += piece
    except (zstandard.ZstdError, MemoryError) as error:
        wrong = f"its zstd frame is damaged: {error}"
    if len(out) < size and not wrong:
        wrong = "its zstd frame is cut"
    return np.frombuffer(bytes(out), np.uint8), wrong


def problem_of(chunk: Chunk, wrong: str) -> Problem:
    """Return the problem of a damaged chunk."""
    return Problem("chunk", chunk.pos, chunk.stored, True, f"a {chunk.compression or 'plain'} chunk: {wrong}")


def cache(source: Source, chunks: list[Chunk], problems: list[Problem]) -> ChunkCache:
    """Return the cache of decompressed chunks; damage is added to *problems* when a chunk is decompressed."""

    def read(number: int) -> Buffer:
        data, wrong = unpack(source, chunks[number])
        wrong = wrong or _header_difference(source, chunks[number])
        problem = problem_of(chunks[number], wrong) if wrong else None
        if problem and problem not in problems:
            problems.append(problem)
        return data

    return ChunkCache(read, [size_limit(one) for one in chunks], False)


def _header_difference(source: Source, chunk: Chunk) -> str:
    """Return how the record of a chunk differs from its chunk index; empty if it does not, or was read itself."""
    if chunk.crc >= 0:
        return ""
    try:
        there = Chunk.read(source, chunk.pos, source.size)
    except BadRecord as error:
        return str(error)
    same = (there.compression, there.data, there.stored, there.size)
    return "" if same == (chunk.compression, chunk.data, chunk.stored, chunk.size) else "the index differs"


def compressions(chunks: Iterable[Chunk]) -> list[str]:
    """Return the names of the chunks' compressions, sorted."""
    return sorted({one.compression or "none" for one in chunks})
