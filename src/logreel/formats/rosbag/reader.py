"""Messages found by reading all records of a stretch of bytes, stepping over damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.found import MAX_SPAN, Found
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import rosbag

END, CUT, BAD, FOREIGN, FULL = range(5)
OnRecord = Callable[[Record, Source], None]
#: Topic, checksum and type together, or the topic alone.
ALL_NAMES, TOPIC = 7, 1
#: Messages of one call of the compiled walk.
PIECE = 1 << 15


@dataclass(slots=True)
class Stretch:
    """Where messages are looked for: some bytes of *source*, which is the file or an unpacked chunk.

    chunk    number of the chunk, FILE for the file
    foreign  ops that end the stretch, as a bit set
    where    file position to report problems at, if the stretch is not in the file itself
    named    what tells the connection of a message without a number, see kernels/rosbag.py
    """

    source: Source
    chunk: int
    pos: int
    end: int
    foreign: int = 0
    where: int | None = None
    named: int = ALL_NAMES


def read_stretch(
    stretch: Stretch,
    on_record: OnRecord,
    problems: list[Problem],
) -> tuple[list[Found], int]:
    """All messages of a stretch, and where it ended. Other records go to *on_record*, which may raise BadRecord."""
    source, pos, end = stretch.source, stretch.pos, stretch.end
    buffers = _Buffers(min(PIECE, (end - pos) // 8 + 2))
    found: list[Found] = []
    while pos < end:
        why, stop, n, m = buffers.walk(stretch, pos)
        bad, error = _take_notes(source, buffers.note[:m, 0].tolist(), end, on_record)
        if error is not None:
            # Its size is not to be trusted either: what follows is read again.
            n = int(np.searchsorted(buffers.data[:n], bad))
        if n:
            found += buffers.parts(stretch, pos, n)
        if error is not None:
            pos = step_over(source, bad, end, problems, False, stretch.where, str(error))
            continue
        pos = stop
        if why == FOREIGN:
            break
        if why in (CUT, BAD):
            pos = step_over(source, pos, end, problems, why == CUT, stretch.where)
    return found, pos


def pass_over(record: Record, source: Source) -> None:
    """Take no note of a record: connections are known already."""


def _take_notes(
    source: Source, places: list[int], end: int, on_record: OnRecord
) -> tuple[int, BadRecord | None]:
    """Hand on records other than messages; gives the place of the first that cannot be used, and why."""
    for at in places:
        try:
            record = read_record(source, at, end)
            refuse_nested(source, record)
            on_record(record, source)
        except BadRecord as error:
            return at, error
    return end, None


def refuse_nested(source: Source, record: Record) -> None:
    """Raise BadRecord if there are records in the data of *record*: then its size or kind is damaged."""
    if records.find_record(source, record.data - 1, record.end) < record.end:
        raise BadRecord("it holds other records")


def after_padding(source: Source, head: Record, problems: list[Problem]) -> int:
    """Where the records after a file header begin: it is followed by blanks, unless its size is damaged."""
    padding = source.data[head.data : head.end]
    if head.end <= source.size and ((padding == 0x20) | (padding == 0)).all():
        return head.end
    why = "the file header does not end where it says"
    return step_over(source, head.pos, source.size, problems, head.end > source.size, why=why)


def step_over(
    source: Source,
    pos: int,
    end: int,
    problems: list[Problem],
    cut: bool,
    where: int | None = None,
    why: str = "",
) -> int:
    """Report the bytes at *pos* that are no record; gives where the next one begins, *end* if none does."""
    if pos >= end:
        return end
    found = records.find_record(source, pos, end)
    size = found - pos
    at = pos if where is None else where
    inside = "" if where is None else " of an unpacked chunk"
    reason = f" ({why})" if why else ""
    # Bytes of an unpacked chunk are none of the file.
    here = size if where is None else 0
    if not source.data[pos:found].any():
        # Real bags have zeros between the last chunk and the index.
        problems.append(
            Problem("zeros", at, here, found == source.size, f"{size} bytes of zeros between records{inside}")
        )
    elif found == end and cut:
        problems.append(
            Problem("truncated", at, here, True, f"the last {size} bytes{inside} are a cut record{reason}")
        )
    else:
        problems.append(
            Problem("garbage", at, here, True, f"{size} bytes{inside} that are no record{reason}")
        )
    return found


class _Buffers:
    def __init__(self, n: int) -> None:
        self.key, self.time = np.empty(n, np.uint64), np.empty(n, np.int64)
        self.data, self.size = np.empty(n, np.int64), np.empty(n, np.int64)
        self.note = np.empty((n, 2), np.int64)

    def walk(self, s: Stretch, pos: int) -> tuple[int, int, int, int]:
        arrays = (self.key, self.time, self.data, self.size, self.note)
        return rosbag.walk(s.source.data, pos, s.end, *arrays, s.foreign, s.named)

    def parts(self, stretch: Stretch, pos: int, n: int) -> list[Found]:
        """The first *n* messages as one Found, or several where they lie too far apart for one."""
        key, time, data, size = (
            a[:n].copy() for a in (self.key.view(np.int64), self.time, self.data, self.size)
        )
        found, lo = [], 0
        while lo < n:
            base = pos if lo == 0 else int(data[lo])
            hi = int(np.searchsorted(data, base + MAX_SPAN))
            if hi == lo:
                base, hi = int(data[lo]), lo + 1
            at = slice(lo, hi)
            found.append(_found(stretch, base, key[at], time[at], data[at], size[at]))
            lo = hi
        return found


def _found(stretch: Stretch, base: int, key: I64, time: I64, data: I64, size: I64) -> Found:
    entry = (data - base).astype(np.uint32)
    pos = base if stretch.where is None else stretch.where
    return Found(stretch.chunk, pos, base, stretch.end, key, time, entry, size.astype(np.uint32))
