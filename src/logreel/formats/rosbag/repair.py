"""Chunks whose index is wrong: what it claims is compared with the messages that are there."""

from __future__ import annotations

from collections import defaultdict

from logreel.errors import Problem
from logreel.formats.rosbag.found import Claims
from logreel.formats.rosbag.reader import Stretch, pass_over, read_stretch
from logreel.index.block_table import MISSING_SIZE
from logreel.io.chunks import FILE, Buffer
from logreel.io.source import Source


def repair(claims: Claims, data: Buffer, base: int, end: int, pos: int) -> Problem:
    """Fill in the places of a chunk's messages by reading the chunk; gives what to report.

    data, base, end  the bytes that hold the chunk, and where it lies in them
    pos              where the chunk begins in the file

    A claim is met by a message of its connection and time that met no other one. The others are MISSING_SIZE.
    """
    there: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    found, _ = read_stretch(Stretch(Source(data, ""), FILE, base, end), pass_over, [])
    total = 0
    for part in found:
        total += len(part.key)
        starts = (part.entry.astype("i8") + (part.base - base)).tolist()
        rows = zip(part.key.tolist(), part.time.tolist(), starts, part.size.tolist(), strict=True)
        for key, time, start, size in rows:
            there[key, time].append((start, size))
    for waiting in there.values():
        waiting.reverse()
    met = 0
    for i, claim in enumerate(zip(claims.conn.tolist(), claims.time.tolist(), strict=True)):
        place = there[claim].pop() if there.get(claim) else None
        met += place is not None
        claims.entry[i], claims.size[i] = place or (0, MISSING_SIZE)
    missing, more = len(claims.conn) - met, total - met
    text = "the index of a chunk does not fit its messages: they were read instead"
    text += f"; {missing} that it names are not there" if missing else ""
    text += f"; {more} that it does not name are left out" if more else ""
    return Problem("index", pos, 0, bool(missing or more), text)
