"""Comparison of a chunk's index with the messages in the chunk.

An index can agree with itself and with the summary and still leave out messages; only the chunk shows that. On opening,
the first and the last chunk are read, because a recorder that leaves out messages does so in every chunk; the others
are compared when their messages are first needed.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.rosbag.chunks import Chunk, unpack
from logreel.formats.rosbag.found import ChunkMessages, IndexClaims
from logreel.formats.rosbag.reader import Region, ignore_record, read_region
from logreel.formats.rosbag.records import BadRecord
from logreel.index.block_table import MISSING_SIZE
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, Buffer
from logreel.io.source import Source

#: Least bytes of a message record without its data: two lengths and the fields conn, op and time.
SMALLEST = 46
#: Chunks larger than this (no recorder writes them by default) and bz2 chunks (slow) are not read on opening.
PROBED_BYTES = 4 << 20


def check_outer_chunks(source: Source, chunks: list[Chunk], named: I64) -> None:
    """Read the first and the last chunk; raise BadRecord if they have more messages than their index names.

    named  int64[k]  messages of each chunk in the index
    """
    for k in np.flatnonzero(named == 0).tolist():
        if chunks[k].stored:
            raise BadRecord(f"it names no message of the chunk at {chunks[k].pos}")
    for k in {0, len(chunks) - 1} if chunks else ():
        chunk = chunks[k]
        if max(chunk.size, chunk.stored) > PROBED_BYTES or chunk.compression == "bz2":
            continue
        data = unpack(source, chunk).data
        more = _count(data, 0, len(data)) - int(named[k])
        if more > 0:
            raise BadRecord(f"it leaves out {more} messages of the chunk at {chunk.pos}")


def omission_problem(size: NDArray[np.uint32], data: Buffer, base: int, end: int, pos: int) -> Problem | None:
    """Return the problem of a chunk whose index leaves out messages, None if it names all of them.

    size             uint32[n]  bytes of each message that the index names, all of which were found
    data, base, end  the bytes that contain the chunk, and the interval of the chunk in them
    pos              file offset of the chunk
    """
    room = end - base - SMALLEST * len(size) - int(size.sum(dtype=np.int64))
    # The chunk is read only if there is room for another message.
    more = _count(data, base, end) - len(size) if not 0 <= room < SMALLEST else 0
    if more <= 0:
        return None
    text = f"the index of a chunk leaves out {more} messages that are in it: they are not shown"
    return Problem("index", pos, 0, True, text)


def repair(claims: IndexClaims, data: Buffer, base: int, end: int, pos: int) -> Problem:
    """Fill in the places of a chunk's messages by reading the chunk, whose index is wrong; return the problem.

    data, base, end  the bytes that contain the chunk, and the interval of the chunk in them
    pos              file offset of the chunk

    A claim is matched with a message of its connection and time; each message matches one claim at most. Claims
    without a message get MISSING_SIZE.
    """
    unmatched: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    total = 0
    for part in _read(data, base, end):
        total += len(part.key)
        starts = (part.entry.astype("i8") + (part.base - base)).tolist()
        rows = zip(part.key.tolist(), part.time.tolist(), starts, part.size.tolist(), strict=True)
        for key, time, start, size in rows:
            unmatched[key, time].append((start, size))
    for places in unmatched.values():
        places.reverse()
    matched = 0
    for i, claim in enumerate(zip(claims.conn.tolist(), claims.time.tolist(), strict=True)):
        place = unmatched[claim].pop() if unmatched.get(claim) else None
        matched += place is not None
        claims.entry[i], claims.size[i] = place or (0, MISSING_SIZE)
    missing, more = len(claims.conn) - matched, total - matched
    text = "the index of a chunk does not fit its messages: they were read instead"
    text += f"; {missing} that it names are not there" if missing else ""
    text += f"; {more} that it does not name are left out" if more else ""
    return Problem("index", pos, 0, bool(missing or more), text)


def read_messages(data: Buffer) -> ChunkMessages:
    """Return all messages in the bytes of a chunk."""
    parts = _read(data, 0, len(data))
    none = np.zeros(0, np.int64)
    key, time, entry, size = (
        np.concatenate([none, *(getattr(part, name) for part in parts)])
        for name in ("key", "time", "entry", "size")
    )
    entry += np.repeat(np.array([part.base for part in parts], np.int64), [len(part.key) for part in parts])
    return ChunkMessages(FILE, 0, 0, len(data), key, time, entry.astype(np.uint32), size.astype(np.uint32))


def _count(data: Buffer, base: int, end: int) -> int:
    return sum(len(part.key) for part in _read(data, base, end))


def _read(data: Buffer, base: int, end: int) -> list[ChunkMessages]:
    return read_region(Region(Source(data, ""), FILE, base, end), ignore_record, [])[0]
