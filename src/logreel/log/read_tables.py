"""Read many whole channels as tables in one pass; packed chunks are unpacked once for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from logreel.index.gather import PayloadRange, Want, batches, gather, gather_range, load
from logreel.io.arrays import I64, alone
from logreel.io.platform import pool
from logreel.io.source import FILE
from logreel.log.tables import TableReader

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.read_ahead import TableChannel

Work = Callable[[], list[tuple[str, "pa.Table"]]]
#: Fixed cost of a message, as the number of payload bytes that take the same time.
MESSAGE = 500
#: Logs of less cost are read in the calling thread: others cost them more than they take away.
SMALL = 16 << 20


def tables(channels: Sequence[TableChannel]) -> dict[str, pa.Table]:
    """Return whole channels as tables by topic; those of fixed size are filled in one pass over the log."""
    readers = [TableReader(ch) for ch in channels]
    together = [reader for reader in readers if reader.is_gathered]
    got = gather(channels[0].log.index, [reader.want() for reader in together]) if together else []
    tables_by_topic = {
        reader.ch.topic: reader.from_columns(columns, reader.moved(columns.time))
        for reader, columns in zip(together, got, strict=True)
        if columns.time is not None
    }
    rest = [reader for reader in readers if reader.ch.topic not in tables_by_topic]
    tables_by_topic.update(_tables_of_members([reader for reader in rest if reader.ch.members]))
    tables_by_topic.update(_read_in_parallel([reader for reader in rest if not reader.ch.members]))
    if channels:
        channels[0].log.index.chunks.check()
    return {ch.topic: tables_by_topic[ch.topic] for ch in channels}


def _tables_of_members(readers: Sequence[TableReader]) -> dict[str, pa.Table]:
    """Return channels that are joined from several files and not gathered; each file is read in one pass."""
    logs: dict[int, list[TableChannel]] = {}
    for member in (one for reader in readers for one in reader.ch.members):
        if len(member):
            logs.setdefault(id(member.log), []).append(member)
    member_tables = {
        (key, topic): table for key, some in logs.items() for topic, table in tables(some).items()
    }
    return {
        one.ch.topic: one.join(
            [member_tables.get((id(member.log), member.topic)) for member in one.ch.members]
        )
        for one in readers
    }


def _read_in_parallel(readers: Sequence[TableReader]) -> dict[str, pa.Table]:
    """Return whole channels by topic, read by several threads.

    Of logs with packed chunks each thread takes consecutive blocks of all channels, so that a chunk is unpacked once.
    """
    for one in readers:
        index, channel = one.ch.log.index, one.ch.number
        if _is_packed(one) or index.rules[channel].synthetic is not None:
            # Read once, before several threads need them.
            index.times(channel)
    costs = {reader.ch.number: _cost(reader) for reader in readers}
    work = _work(readers, costs)
    if len(work) < 2 or sum(costs.values()) < SMALL:
        return _by_topic(part() for part in work)
    with pool(os.cpu_count() or 1) as threads:
        return _by_topic(threads.map(lambda part: part(), work))


def _by_topic(done: Iterable[list[tuple[str, pa.Table]]]) -> dict[str, pa.Table]:
    """Return the tables that functions gave, those of one channel as one."""
    import pyarrow as pa

    parts: dict[str, list[pa.Table]] = {}
    for topic, table in (one for some in done for one in some):
        parts.setdefault(topic, []).append(table)
    return {topic: some[0] if len(some) == 1 else pa.concat_tables(some) for topic, some in parts.items()}


def _work(readers: Sequence[TableReader], cost_of: Mapping[int, int]) -> Sequence[Work]:
    """Return functions that each give tables of channels: whole ones, or parts of all in the order of the file."""
    packed = [reader for reader in readers if _is_packed(reader)]
    costs = {number: cost_of[number] for number in (r.ch.number for r in readers if r not in packed)}
    # The longest first, so that no thread ends long after the others.
    unpacked = sorted(
        (reader for reader in readers if reader not in packed),
        key=lambda reader: costs[reader.ch.number],
        reverse=True,
    )
    most = sum(costs.values()) // 2
    each: list[Work] = [partial(_whole_channel, reader) for reader in unpacked]
    each = [
        work if costs[reader.ch.number] > most else partial(alone, work)
        for reader, work in zip(unpacked, each, strict=True)
    ]
    if not packed:
        return each
    index = packed[0].ch.log.index
    counts = np.array(
        [last - first for first, last in (index.table.run(reader.ch.number) for reader in packed)]
    )
    ends = np.concatenate([np.zeros((len(packed), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    return [
        *each,
        *(
            partial(_blocks, packed, numbers, ends)
            for numbers in batches(index, range(len(index.table.base)))
        ),
    ]


def _is_packed(reader: TableReader) -> bool:
    """Return whether messages of a channel are in chunks that must be unpacked."""
    index = reader.ch.log.index
    return index.rules[reader.ch.number].synthetic is None and bool((index.table.chunk != FILE).any())


def _cost(reader: TableReader) -> int:
    """Return the payload bytes of a channel, where known without reading messages, and MESSAGE for each message."""
    index, channel = reader.ch.log.index, reader.ch.number
    known = not index.rules[channel].size.reads_messages
    return (index.bytes_of(channel) if known else 0) + MESSAGE * index.count(channel)


def _whole_channel(reader: TableReader) -> list[tuple[str, pa.Table]]:
    return [(reader.ch.topic, reader.read(slice(0, len(reader.ch))))]


def _blocks(readers: Sequence[TableReader], numbers: list[int], ends: I64) -> list[tuple[str, pa.Table]]:
    """Return the part of each channel that is in the blocks *numbers*; *ends*: its messages before each block."""
    index = readers[0].ch.log.index
    loaded = load(index, numbers, threads=1)
    parts = []
    for reader, end in zip(readers, ends[:, [numbers[0], numbers[-1] + 1]].tolist(), strict=True):
        piece = loaded.payload_range(index, reader.ch.number)
        parts.append((reader.ch.topic, _of_range(reader, piece, np.arange(*end))))
    return parts


def _of_range(reader: TableReader, piece: PayloadRange, numbers: I64) -> pa.Table:
    ch = reader.ch
    if not ch.is_uniform:
        return reader.from_range(piece, numbers)
    got = gather_range(Want(ch.number, reader.projection.part.leaves), piece)
    return reader.from_columns(got, ch.log.index.times(ch.number)[numbers])
