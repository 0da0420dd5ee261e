"""Copy logs into a new BDDF file: the blocks of an excerpt unchanged where that is possible, else messages."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from logreel.formats.bddf import records
from logreel.formats.bddf.reader import IndexBuilder
from logreel.formats.bddf.records import CHECKSUM_NONE, CHECKSUM_SHA1, END, MAGIC, FileDescriptor, StructType
from logreel.formats.bddf.scan_builder import ScanBuilder, topic_of
from logreel.formats.bddf.schema_maker import identity, series_key
from logreel.formats.bddf.writer import BddfWriter, NonDataBlock, UnexpectedBlock, non_data_blocks
from logreel.index.channel_index import ChannelRules
from logreel.index.merge import in_file_order
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Source
from logreel.kernels import bddf
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.write.log_copier import Excerpt, LogCopier, Write, joined_ranges, write_ranges

#: Problems with bytes that are not blocks, and problems that make it impossible to copy blocks in file order.
_DAMAGE, _NOT_SEQUENTIAL = ("truncated", "zeros", "garbage"), ("undeclared", "segment", "header")


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The blocks of a file that are copied besides the data blocks, and the intervals that are left out.

    file     content of the first descriptor block
    kept     int64[n, 2]  start and end of the blocks without data that are copied, ascending
    dropped  int64[n, 2]  start and end of blocks and damage that are left out, ascending
    """

    source: Source
    file: FileDescriptor
    kept: I64
    dropped: I64


def plan_blocks(excerpt: Excerpt) -> BlockPlan | None:
    """Return how to copy *excerpt*, or None if its messages must be written one by one.

    That is the case if channels are left out, since the others then get new series numbers, and in files whose blocks
    are not one sequence of blocks of declared series.
    """
    state: ScanBuilder = excerpt.log.format_state
    if state.found.ranged is not None:
        # Of a remote file, only the messages are fetched.
        return None
    problems, series = state.found.problems, state.found.series
    if len(excerpt.rows) < len(series) or any(declared.index != n for n, declared in enumerate(series)):
        return None
    # Loads all series: in a large file, problems of the index may not have been noticed yet.
    _ = excerpt.log.index.counts
    if any(p.code in _NOT_SEQUENTIAL or (p.code == "index" and p.lost) for p in problems):
        return None
    damage = [p for p in problems if p.code in _DAMAGE and p.lost]
    builder = IndexBuilder(state.source.data)
    blocks = []
    try:
        for block in non_data_blocks(state.source, builder, damage):
            if block.series is not None:
                builder.skip(block.series.index)
            blocks.append(block)
        return _plan(state, blocks, [(p.offset, p.offset + p.size) for p in damage], excerpt)
    except UnexpectedBlock:
        return None


def _plan(
    state: ScanBuilder, blocks: list[NonDataBlock], damage: list[tuple[int, int]], excerpt: Excerpt
) -> BlockPlan:
    """Return the plan for the blocks *blocks*, which hold no data. Raises UnexpectedBlock if they cannot be copied."""
    file = state.found.file
    first = [block.header.pos for block in blocks if block.kind == records.FILE]
    has_checksum = file.checksum in (CHECKSUM_NONE, CHECKSUM_SHA1) and file.checksum_size == 20
    if first != [len(MAGIC)] or not has_checksum:
        raise UnexpectedBlock("no file descriptor that a new file could have")
    declared = [block.series.index for block in blocks if block.series]
    if declared != [series.index for series in state.found.series]:
        raise UnexpectedBlock("series are declared in another order")
    # Blocks of unknown kind have no time, so that they can only be copied with everything.
    keep_unknown = excerpt.start is excerpt.end is None
    kept, dropped = [], list(damage)
    for block in blocks:
        if block.header.kind == END:
            dropped.append((block.header.pos, state.source.size))
        elif block.kind in (records.FILE, records.SERIES) or (block.kind == -1 and keep_unknown):
            kept.append((block.header.pos, block.header.next))
        else:
            dropped.append((block.header.pos, block.header.next))
    return BlockPlan(state.source, file, _intervals(kept), _intervals(sorted(dropped)))


def _intervals(pairs: list[tuple[int, int]]) -> I64:
    return np.array(pairs, np.int64).reshape(-1, 2)


def copy_blocks(excerpt: Excerpt, plan: BlockPlan, write: Write) -> None:
    """Pass the bytes from the file descriptor up to the index to *write*."""
    is_everything = all(
        isinstance(rows, slice) and rows.stop - rows.start == excerpt.log.index.count(number)
        for number, rows in excerpt.rows.items()
    )
    for start, end in _all_intervals(plan) if is_everything else _wanted_intervals(excerpt, plan):
        write_ranges(write, plan.source.data, start, end)


def _all_intervals(plan: BlockPlan) -> Iterator[tuple[I64, I64]]:
    start, end = np.append(len(MAGIC), plan.dropped[:, 1]), np.append(plan.dropped[:, 0], plan.source.size)
    yield start[end > start], end[end > start]


def _wanted_intervals(excerpt: Excerpt, plan: BlockPlan) -> Iterator[tuple[I64, I64]]:
    """Yield starts and ends of the wanted data blocks, and of the blocks without data between them."""
    state: ScanBuilder = excerpt.log.format_state
    count = len(state.found.series)
    # In this index the offset of a message is that of its block, and all times are 0.
    rules = [ChannelRules(partial(_no_times, number=number), 0) for number in range(count)]
    index = MessageIndex(excerpt.log.index.chunks, state.found.table, rules)
    real = excerpt.log.index.rules
    rows = {number: wanted for number, wanted in excerpt.rows.items() if real[number].synthetic is None}
    kept = plan.kept
    for batch in in_file_order(index, rows):
        start = batch.offset
        payload, size = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
        bddf.payload_ranges(plan.source.data, start, payload, size)
        due = int(kept[:, 0].searchsorted(start[-1])) if len(start) else 0
        yield joined_ranges(np.append(start, kept[:due, 0]), np.append(payload + size, kept[:due, 1]))
        kept = kept[due:]
    yield joined_ranges(kept[:, 0], kept[:, 1])


def _no_times(index: MessageIndex, number: int) -> I64:
    return np.zeros(index.count(number), np.int64)


#: Version of the format that is written.
VERSION = (1, 0, 0)


class BddfCopier(LogCopier):
    """Copies annotations, names of series, additional indexes, and unchanged blocks."""

    writer: BddfWriter

    def __init__(self, writer: BddfWriter) -> None:
        super().__init__(writer)
        #: Offsets of payloads and of their blocks, by id of the log (kept, so that its id is not reused) and channel.
        self._starts: dict[tuple[int, int], tuple[Log, I64, I64]] = {}

    def merge_key(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
        """Return a key that is equal for series with the same identifier, type, additional indexes, annotations."""
        return series_key(topic, schema, metadata)

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the topic without the number of its series, which changes where other series are left out."""
        return re.sub(r"\[\d+\]\Z", "", topic)

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import metadata as annotations; keys from another format get its name as their organization."""
        if returns:
            self.writer.reserved = True
        return super().import_foreign(log, returns)

    def import_metadata(self, log: Log, name: str, returns: bool) -> None:
        """Write an entry as an annotation."""
        self.writer.annotate(name, log.metadata[name], "" if returns else log.format)

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy the annotations of the file, and the names of its series."""
        writer, state = self.writer, log.format_state
        writer.reserved = True
        losses = []
        annotations = dict(writer.file.annotations)
        for name, value in state.found.file.annotations.items():
            if name in self.replaced_metadata:
                continue
            if self.masking is not None:
                name, value = self.masking.name("metadata", name), self.masking.value(name, value)
            if annotations.setdefault(name, value) != value:
                losses.append(f"annotation {name!r} has another value in {log.name}: the first one is kept")
        writer.file = replace(writer.file, annotations=annotations)
        for ch, series in zip(log.channels.values(), state.found.series, strict=True):
            writer.base_names.setdefault(ch.topic, topic_of(series))
            if isinstance(series.type, StructType) and log.index.rules[ch.number].synthetic is None:
                writer.structs_with_blocks.add(identity(series))
        signals = writer.schemas.signals
        signals += [signal for signal in state.signals if signal not in signals]
        return losses

    def side_columns(self, log: Log, channel: int, offset: I64) -> I64 | None:
        """Return the additional indexes of data blocks: int64[n, k]."""
        state: ScanBuilder = log.format_state
        names = state.found.series[channel].names
        if not names or log.index.rules[channel].synthetic is not None:
            return None
        if (id(log), channel) not in self._starts:
            self._starts[id(log), channel] = log, log.index.offsets(channel), log.index.starts(channel)
        _, payload, start = self._starts[id(log), channel]
        out = np.zeros((len(offset), len(names)), np.int64)
        if len(offset):
            bddf.gather_numbers(log.index.chunks[FILE], start[payload.searchsorted(offset)], out)
        return out

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy blocks unchanged; return False if that is impossible, see ``plan_blocks``."""
        plan = plan_blocks(excerpt)
        if plan is None or (self.repairs and self._note_refused(excerpt.log, plan)):
            return False
        self.writer.begin_copy(plan.file)
        copy_blocks(excerpt, plan, self.writer.write)
        return True

    def _note_refused(self, log: Log, plan: BlockPlan) -> bool:
        """Return whether *plan* copies what the readers of the robot's vendor refuse, and note what is left out."""
        unknown = [problem for problem in log.problems if problem.code == "unknown"]
        if unknown:
            size = sum(problem.size for problem in unknown)
            text = f"{len(unknown)} blocks of unknown kinds with {size} bytes were left out: other readers refuse them"
            self.writer.notes.append(text)
        # That the version changed is noted when the new file is read back.
        return bool(unknown) or plan.file.version != VERSION
