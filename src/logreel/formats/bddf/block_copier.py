"""Parts of a file copied block by block as they lie there; the index is made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from logreel.formats.bddf import messages
from logreel.formats.bddf.found import Note, Unclear, notes
from logreel.formats.bddf.index_builder import IndexBuilder
from logreel.formats.bddf.messages import CHECKSUM_NONE, CHECKSUM_SHA1, FileDescriptor
from logreel.formats.bddf.records import END, MAGIC
from logreel.formats.bddf.scan_builder import ScanBuilder
from logreel.index.message_index import MessageIndex
from logreel.index.order import in_file_order
from logreel.index.rules import ChannelRules
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.write.log_copier import Excerpt
from logreel.write.payloads import joined

Put = Callable[[NDArray[np.uint8]], None]
#: Stretches are gathered into one piece below this mean length, else written one by one.
SHORT = 4096
#: Bytes handed over at once.
STEP = 4 << 20
#: Problems that name bytes which are no blocks, and those that say that blocks cannot be told by their order.
_HOLES, _ODD = ("truncated", "zeros", "garbage"), ("undeclared", "segment", "header")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to copy of a file: the blocks that hold no data, and where blocks or damage lie that are left out.

    file  its first descriptor
    kept, dropped  int64[n, 2]: start and end of each, ascending
    """

    source: Source
    file: FileDescriptor
    kept: I64
    dropped: I64


def plan(excerpt: Excerpt) -> Plan | None:
    """How to copy *excerpt*; None where it must be written block by block.

    That is where channels are left out, since all others then get new numbers, and in files whose blocks do not follow
    each other in one sequence of declared series.
    """
    state: ScanBuilder = excerpt.log.format_state
    problems, series = state.found.problems, state.found.series
    if len(excerpt.rows) < len(series) or any(one.index != n for n, one in enumerate(series)):
        return None
    # Of a large file parts of the index may not have been compared with it so far.
    _ = excerpt.log.index.counts
    if any(p.code in _ODD or (p.code == "index" and p.lost) for p in problems):
        return None
    holes = [p for p in problems if p.code in _HOLES and p.lost]
    collector = IndexBuilder(state.source.data)
    found = []
    try:
        for note in notes(state.source, collector, holes):
            if note.series is not None:
                collector.pass_over(note.series.index)
            found.append(note)
        return _planned(state, found, [(p.offset, p.offset + p.size) for p in holes], excerpt)
    except Unclear:
        return None


def _planned(state: ScanBuilder, found: list[Note], holes: list[tuple[int, int]], excerpt: Excerpt) -> Plan:
    file = state.found.file
    first = [note.header.pos for note in found if note.kind == messages.FILE]
    sums = file.checksum in (CHECKSUM_NONE, CHECKSUM_SHA1) and file.checksum_size == 20
    if first != [len(MAGIC)] or not sums:
        raise Unclear("no file descriptor that a new file could have")
    if [note.series.index for note in found if note.series] != [one.index for one in state.found.series]:
        raise Unclear("series are declared in another order")
    # What nobody knows has no time.
    others = excerpt.start is excerpt.end is None
    kept, dropped = [], list(holes)
    for note in found:
        if note.header.kind == END:
            dropped.append((note.header.pos, state.source.size))
        elif note.kind in (messages.FILE, messages.SERIES) or (note.kind == -1 and others):
            kept.append((note.header.pos, note.header.next))
        else:
            dropped.append((note.header.pos, note.header.next))
    return Plan(state.source, file, _spans(kept), _spans(sorted(dropped)))


def _spans(found: list[tuple[int, int]]) -> I64:
    return np.array(found, np.int64).reshape(-1, 2)


def copy(excerpt: Excerpt, plan: Plan, put: Put) -> None:
    """Give *put* the bytes from the file descriptor on up to where the index begins."""
    whole = all(
        isinstance(rows, slice) and rows.stop - rows.start == excerpt.log.index.count(number)
        for number, rows in excerpt.rows.items()
    )
    for start, end in _everything(plan) if whole else _wanted(excerpt, plan):
        _write(plan.source, start, end, put)


def _everything(plan: Plan) -> Iterator[tuple[I64, I64]]:
    start, end = np.append(len(MAGIC), plan.dropped[:, 1]), np.append(plan.dropped[:, 0], plan.source.size)
    yield start[end > start], end[end > start]


def _wanted(excerpt: Excerpt, plan: Plan) -> Iterator[tuple[I64, I64]]:
    """The blocks of chosen messages, and the others where they stand among them."""
    state: ScanBuilder = excerpt.log.format_state
    count = len(state.found.series)
    # In this index messages are where their blocks begin, and have no time.
    rules = [ChannelRules(partial(_no_times, number=number), 0) for number in range(count)]
    index = MessageIndex(excerpt.log.index.chunks, state.found.table, rules)
    real = excerpt.log.index.rules
    rows = {number: some for number, some in excerpt.rows.items() if real[number].synthetic is None}
    kept = plan.kept
    for piece in in_file_order(index, rows):
        start = piece.offset
        payload, size = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
        bddf.payload_ranges(plan.source.data, start, payload, size)
        due = int(kept[:, 0].searchsorted(start[-1])) if len(start) else 0
        yield _runs(np.append(start, kept[:due, 0]), np.append(payload + size, kept[:due, 1]))
        kept = kept[due:]
    yield _runs(kept[:, 0], kept[:, 1])


def _no_times(index: MessageIndex, number: int) -> I64:
    return np.zeros(index.count(number), np.int64)


def _runs(start: I64, end: I64) -> tuple[I64, I64]:
    """Blocks as stretches, ascending: those that touch are one."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    cut = np.flatnonzero(start[1:] != end[:-1])
    return start[np.concatenate([[0], cut + 1])], end[np.concatenate([cut, [len(end) - 1]])]


def _write(source: Source, start: I64, end: I64, put: Put) -> None:
    if not len(start):
        return
    if int((end - start).sum()) < SHORT * len(start):
        put(joined(source.data, start, end - start))
        return
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        for at in range(a, b, STEP):
            put(source.data[at : min(at + STEP, b)])
