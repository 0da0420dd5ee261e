"""Copy the blocks of an excerpt unchanged; the index is written for the new file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import CHECKSUM_NONE, CHECKSUM_SHA1, FileDescriptor
from logreel.formats.bddf.index_builder import IndexBuilder
from logreel.formats.bddf.non_data_blocks import NonDataBlock, UnexpectedBlock, non_data_blocks
from logreel.formats.bddf.records import END, MAGIC
from logreel.formats.bddf.scan_builder import ScanBuilder
from logreel.index.message_index import MessageIndex
from logreel.index.order import in_file_order
from logreel.index.rules import ChannelRules
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.write.copy_ranges import Write, joined_ranges, write_ranges
from logreel.write.log_copier import Excerpt

#: Problems with bytes that are not blocks, and problems that make it impossible to copy blocks in file order.
_DAMAGE, _NOT_SEQUENTIAL = ("truncated", "zeros", "garbage"), ("undeclared", "segment", "header")


@dataclass(frozen=True, slots=True)
class Plan:
    """The blocks of a file that are copied besides the data blocks, and the intervals that are left out.

    file     content of the first descriptor block
    kept     int64[n, 2]  start and end of the blocks without data that are copied, ascending
    dropped  int64[n, 2]  start and end of blocks and damage that are left out, ascending
    """

    source: Source
    file: FileDescriptor
    kept: I64
    dropped: I64


def plan(excerpt: Excerpt) -> Plan | None:
    """Return how to copy *excerpt*, or None if its messages must be written one by one.

    That is the case if channels are left out, since the others then get new series numbers, and in files whose blocks
    are not one sequence of blocks of declared series.
    """
    state: ScanBuilder = excerpt.log.format_state
    if state.found.ranged is not None:
        # Of a remote file, only the messages are fetched.
        return None
    problems, series = state.found.problems, state.found.series
    if len(excerpt.rows) < len(series) or any(one.index != n for n, one in enumerate(series)):
        return None
    # Loads all series: in a large file, problems of the index may not have been noticed yet.
    _ = excerpt.log.index.counts
    if any(p.code in _NOT_SEQUENTIAL or (p.code == "index" and p.lost) for p in problems):
        return None
    damage = [p for p in problems if p.code in _DAMAGE and p.lost]
    builder = IndexBuilder(state.source.data)
    found = []
    try:
        for block in non_data_blocks(state.source, builder, damage):
            if block.series is not None:
                builder.skip(block.series.index)
            found.append(block)
        return _plan(state, found, [(p.offset, p.offset + p.size) for p in damage], excerpt)
    except UnexpectedBlock:
        return None


def _plan(
    state: ScanBuilder, found: list[NonDataBlock], damage: list[tuple[int, int]], excerpt: Excerpt
) -> Plan:
    """Return the plan for the blocks *found*, which hold no data. Raises UnexpectedBlock if they cannot be copied."""
    file = state.found.file
    first = [block.header.pos for block in found if block.kind == descriptors.FILE]
    has_checksum = file.checksum in (CHECKSUM_NONE, CHECKSUM_SHA1) and file.checksum_size == 20
    if first != [len(MAGIC)] or not has_checksum:
        raise UnexpectedBlock("no file descriptor that a new file could have")
    declared = [block.series.index for block in found if block.series]
    if declared != [series.index for series in state.found.series]:
        raise UnexpectedBlock("series are declared in another order")
    # Blocks of unknown kind have no time, so that they can only be copied with everything.
    keep_unknown = excerpt.start is excerpt.end is None
    kept, dropped = [], list(damage)
    for block in found:
        if block.header.kind == END:
            dropped.append((block.header.pos, state.source.size))
        elif block.kind in (descriptors.FILE, descriptors.SERIES) or (block.kind == -1 and keep_unknown):
            kept.append((block.header.pos, block.header.next))
        else:
            dropped.append((block.header.pos, block.header.next))
    return Plan(state.source, file, _intervals(kept), _intervals(sorted(dropped)))


def _intervals(found: list[tuple[int, int]]) -> I64:
    return np.array(found, np.int64).reshape(-1, 2)


def copy(excerpt: Excerpt, plan: Plan, write: Write) -> None:
    """Pass the bytes from the file descriptor up to the index to *write*."""
    whole = all(
        isinstance(rows, slice) and rows.stop - rows.start == excerpt.log.index.count(number)
        for number, rows in excerpt.rows.items()
    )
    for start, end in _all_intervals(plan) if whole else _wanted_intervals(excerpt, plan):
        write_ranges(write, plan.source.data, start, end)


def _all_intervals(plan: Plan) -> Iterator[tuple[I64, I64]]:
    start, end = np.append(len(MAGIC), plan.dropped[:, 1]), np.append(plan.dropped[:, 0], plan.source.size)
    yield start[end > start], end[end > start]


def _wanted_intervals(excerpt: Excerpt, plan: Plan) -> Iterator[tuple[I64, I64]]:
    """Yield starts and ends of the wanted data blocks, and of the blocks without data between them."""
    state: ScanBuilder = excerpt.log.format_state
    count = len(state.found.series)
    # In this index the offset of a message is that of its block, and all times are 0.
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
        yield joined_ranges(np.append(start, kept[:due, 0]), np.append(payload + size, kept[:due, 1]))
        kept = kept[due:]
    yield joined_ranges(kept[:, 0], kept[:, 1])


def _no_times(index: MessageIndex, number: int) -> I64:
    return np.zeros(index.count(number), np.int64)
