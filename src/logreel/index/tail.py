"""The messages at the end of a growing log: those after a place in the file, at the cost of these only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import MISSING_SIZE, Blocks, SelectedMessages
from logreel.index.channel_index import ChannelIndex, Pick
from logreel.io.arrays import I64, distinct
from logreel.io.source import FILE, SYNTHETIC


class MessagePlace(NamedTuple):
    """Where a message begins, comparable in file order.

    file    file position of the message, or of the chunk that contains it
    chunk   number of the chunk, or FILE
    offset  position in the chunk; of messages in the file itself 0
    """

    file: int
    chunk: int
    offset: int


#: Before all messages.
BEGIN = MessagePlace(-1, FILE, 0)


def _block_places(index: ChannelIndex) -> I64:
    """Return int64[b]: the file position where each block begins, or that of its chunk."""
    table = index.table
    if (table.chunk == FILE).all():
        return table.base
    numbers, which = np.unique(table.chunk, return_inverse=True)
    places = np.array([index.chunks.place_of(int(n)) for n in numbers], np.int64)
    return np.where(table.chunk == FILE, table.base, places[which])


def rows_after(index: ChannelIndex, place: MessagePlace, channels: Iterable[int]) -> dict[int, I64]:
    """Return int64[n] rows of the messages after *place*, of those of *channels* that are in the file and have any."""
    table, blocks = index.table, _block_places(index)
    # All messages of earlier blocks begin before the block that contains the place.
    ascends = bool((blocks[1:] >= blocks[:-1]).all())
    first_block = max(0, int(blocks.searchsorted(place.file, side="left")) - 1) if ascends else 0
    index.resolve(np.arange(first_block, len(blocks), dtype=np.int64))
    rows_by_channel = {}
    wanted = [channel for channel in channels if not index.rules[channel].is_synthetic]
    if isinstance(table, Blocks) and (table.chunk == FILE).all():
        new = _channels_after(table, place, first_block)
        wanted = [channel for channel in wanted if channel in new]
    for channel in wanted:
        first, last = table.run(channel)
        counts = last - first
        count = int(counts.sum())
        before = int(counts[:first_block].sum())
        if count == before:
            continue
        rows = np.arange(before, count, dtype=np.int64)
        chunk, start, _ = index.locate(channel, rows)
        rows = rows[_is_after(index, place, chunk, start)]
        if len(rows):
            rows_by_channel[channel] = rows
    return rows_by_channel


def _channels_after(table: Blocks, place: MessagePlace, first_block: int) -> set[int]:
    """Return the channels that have messages after *place* in the file itself, looking at blocks from *first_block*."""
    channels = set[int]()
    for block in range(first_block, len(table.base)):
        runs = table.start[block]
        begin, end = int(runs[0]), int(runs[-1])
        entry = table.entry[begin:end].astype(np.int64) + int(table.base[block])
        new = np.flatnonzero(entry > place.file) + begin
        channels.update((runs.searchsorted(new, side="right") - 1).tolist())
    return channels


def _is_after(
    index: ChannelIndex, place: MessagePlace, chunk: NDArray[np.int32], start: I64
) -> NDArray[np.bool_]:
    file, offset = _places(index, chunk, start)
    after = chunk > place.chunk
    after |= (chunk == place.chunk) & (offset > place.offset)
    is_after: NDArray[np.bool_] = (file > place.file) | ((file == place.file) & after)
    return is_after


def _places(index: ChannelIndex, chunk: NDArray[np.int32], start: I64) -> tuple[I64, I64]:
    """Return ``MessagePlace.file`` and ``MessagePlace.offset`` of messages."""
    file, offset = start.copy(), np.where(chunk == FILE, 0, start)
    for number in distinct(chunk[chunk != FILE]).tolist():
        file[chunk == number] = index.chunks.place_of(number)
    return file, offset


def last_place(index: ChannelIndex) -> MessagePlace:
    """Return the place of the last message in the file; BEGIN if it has none."""
    table = index.table
    last_position = BEGIN
    if isinstance(table, Blocks) and (table.chunk == FILE).all():
        # Blocks are in file order.
        filled = np.flatnonzero(table.start[:, -1] > table.start[:, 0])
        for block in filled[-1:].tolist():
            entry = table.entry[int(table.start[block, 0]) : int(table.start[block, -1])]
            last_position = MessagePlace(int(table.base[block]) + int(entry.max()), FILE, 0)
        return last_position
    blocks = _block_places(index)
    for channel in range(len(index.rules)):
        if index.rules[channel].is_synthetic:
            continue
        first, last = table.run(channel)
        there = np.flatnonzero(last > first)
        if not len(there):
            continue
        top = blocks[there].max()
        # Compare only messages that can be the last one.
        if top < last_position.file and int(table.chunk[there[-1]]) != FILE:
            continue
        rows = np.array([int((last - first).sum()) - 1], np.int64)
        index.resolve(there[-1:])
        chunk, start, _ = index.locate(channel, rows)
        file, offset = _places(index, chunk, start)
        last_position = max(last_position, MessagePlace(int(file[0]), int(chunk[0]), int(offset[0])))
    return last_position


def select_rows(index: ChannelIndex, rows: Mapping[int, I64]) -> SelectedMessages:
    """Return the messages at *rows* of each channel in file order, at the cost of these only.

    Synthetic messages of an unknown place come first.
    """
    parts = [_columns(index, number, which) for number, which in rows.items()]
    time, channel, chunk, offset, size, file, inner = (
        np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(*parts, strict=True)
    )
    order = np.lexsort((inner, chunk, file))
    order = order[size[order] != MISSING_SIZE]
    numbers = channel[order].astype(np.int32), chunk[order].astype(np.int32)
    return SelectedMessages(time[order], *numbers, offset[order], size[order])


def _columns(index: ChannelIndex, number: int, rows: I64) -> tuple[I64, ...]:
    """Return time, channel, chunk, payload start, size, and both numbers of the Place of messages of a channel."""
    channel = np.full(len(rows), number, np.int64)
    synthetic = index.synthetic(number)
    if synthetic is not None:
        offset = synthetic.offset[rows]
        file = np.full(len(rows), -1, np.int64) if synthetic.place is None else synthetic.place[rows]
        chunk = np.full(len(rows), SYNTHETIC, np.int64)
        return synthetic.time[rows], channel, chunk, offset, synthetic.size[rows], file, offset
    chunks, start, entry = index.locate(number, rows)
    rules = index.rules[number]
    offset, size = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for one in distinct(chunks).tolist():
        in_chunk = np.flatnonzero(chunks == one)
        offset[in_chunk], size[in_chunk] = rules.measure(
            index.chunks[one], start[in_chunk], _pick(entry[in_chunk])
        )
    time, places = index.times_at(number, rows), _places(index, chunks, start)
    return time, channel, chunks.astype(np.int64), offset, size, *places


def _pick(entries: I64) -> Pick:
    return lambda values: values[entries].astype(np.int64)
