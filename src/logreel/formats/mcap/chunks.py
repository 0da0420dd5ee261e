"""The content of chunks: as it is, zstd or LZ4; bounded, and as much as can be had of a cut one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from logreel.errors import Problem
from logreel.formats.mcap.records import BadRecord, Chunk
from logreel.io.chunks import Buffer, ChunkCache
from logreel.io.lz4_frames import unpack_lz4
from logreel.io.source import Source

COMPRESSIONS = ("", "zstd", "lz4")
#: No chunk unpacks to more, unless its stored bytes are so many that a ratio of SHRINK makes more of them.
MAX_CHUNK = 1 << 28
SHRINK = 64
#: Places in a chunk have 32 bits.
MOST = (1 << 31) - 1
_STEP = 1 << 20


def most(chunk: Chunk) -> int:
    """The most bytes that *chunk* may unpack to."""
    return min(chunk.size, MOST, max(MAX_CHUNK, SHRINK * chunk.stored))


def unpack(source: Source, chunk: Chunk) -> tuple[Buffer, str]:
    """The bytes of *chunk* and what is wrong with them, empty if nothing is; of a damaged one what can be had."""
    packed = source.data[chunk.data : chunk.data + chunk.stored]
    if chunk.is_plain:
        wrong = (
            "" if len(packed) == chunk.size else f"it has {len(packed)} bytes where {chunk.size} are stated"
        )
        return packed, wrong
    limit = most(chunk)
    # One byte more shows that there is more.
    if chunk.compression == "lz4":
        data, wrong, _ = unpack_lz4(packed, limit + 1)
    else:
        data, wrong = _zstd(packed, chunk.size, limit + 1)
    if not wrong and len(data) != chunk.size:
        many = "more" if len(data) > limit else len(data)
        wrong = f"it unpacks to {many} bytes where {chunk.size} are stated"
    return data[:limit], wrong


def _zstd(packed: Buffer, size: int, limit: int) -> tuple[Buffer, str]:
    """At most *limit* bytes, and what is wrong."""
    import zstandard

    whole = zstandard.ZstdDecompressor()
    try:
        if size < limit and zstandard.frame_content_size(packed.data) == size:
            return np.frombuffer(whole.decompress(packed.data), np.uint8), ""
    except zstandard.ZstdError:
        # Bit by bit shows how far it goes.
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
    """What to report of a chunk."""
    return Problem("chunk", chunk.pos, chunk.stored, True, f"a {chunk.compression or 'plain'} chunk: {wrong}")


def cache(source: Source, chunks: list[Chunk], problems: list[Problem]) -> ChunkCache:
    """The chunks unpacked when asked for; what is wrong with one is added to *problems* then."""

    def read(number: int) -> Buffer:
        data, wrong = unpack(source, chunks[number])
        wrong = wrong or _wrong_head(source, chunks[number])
        problem = problem_of(chunks[number], wrong) if wrong else None
        if problem and problem not in problems:
            problems.append(problem)
        return data

    return ChunkCache(read, [most(one) for one in chunks], False)


def _wrong_head(source: Source, chunk: Chunk) -> str:
    """How the record of a chunk differs from what an index told of it."""
    if chunk.crc >= 0:
        return ""
    try:
        there = Chunk.read(source, chunk.pos, source.size)
    except BadRecord as error:
        return str(error)
    same = (there.compression, there.data, there.stored, there.size)
    return (
        ""
        if same == (chunk.compression, chunk.data, chunk.stored, chunk.size)
        else "the index tells otherwise"
    )


def compressions(chunks: Iterable[Chunk]) -> list[str]:
    """What chunks are packed with, by name."""
    return sorted({one.compression or "none" for one in chunks})
