"""Whole channels as tables, many at once: packed chunks are unpacked once for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from logreel.index.gather import Want, gather, gather_piece
from logreel.index.ranges import PayloadRange, batches, load
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.io.parallel import alone
from logreel.log.tables import PLAIN, decoded, fixed, table_of, word_of

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.table_channel import TableChannel

Work = Callable[[], list[tuple[str, "pa.Table"]]]
#: What a message costs, in bytes of a large one that could be read in its time.
MESSAGE = 500


def tables(channels: Sequence[TableChannel]) -> dict[str, pa.Table]:
    """Whole channels as tables by topic; those of fixed size are filled in one pass over the log."""
    together = [ch for ch in channels if ch.is_uniform and word_of(ch) is not None]
    wants = [Want(ch.number, ch.layout.leaves, word_of(ch)) for ch in together]
    got = gather(channels[0].log.index, wants) if wants else []
    found = {
        ch.topic: fixed(ch, None, one, one.time)
        for ch, one in zip(together, got, strict=True)
        if one.time is not None
    }
    others = [ch for ch in channels if ch.topic not in found]
    found.update(_swept(others))
    return {ch.topic: found[ch.topic] for ch in channels}


def _swept(channels: Sequence[TableChannel]) -> dict[str, pa.Table]:
    """Whole channels by topic; of packed logs stretch by stretch, so that each chunk is unpacked once for all.

    Threads share the work, which leaves Python alone most of the time.
    """
    import pyarrow as pa

    for ch in channels:
        if _is_packed(ch) or ch.log.index.rules[ch.number].synthetic is not None:
            # Gathered once, before several threads ask.
            ch.log.index.times(ch.number)
    work = _work(channels)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = pool.map(lambda part: part(), work)
        parts: dict[str, list[pa.Table]] = {}
        for topic, table in (one for some in done for one in some):
            parts.setdefault(topic, []).append(table)
    return {topic: pa.concat_tables(some) for topic, some in parts.items()}


def _work(channels: Sequence[TableChannel]) -> Sequence[Work]:
    """Pieces of work that give tables of channels: whole ones, or parts of all in the order of the file."""
    packed = [ch for ch in channels if _is_packed(ch)]
    costs = {ch.number: _cost(ch) for ch in channels if ch not in packed}
    # The longest first, so that none is left alone at the end.
    whole = sorted((ch for ch in channels if ch not in packed), key=lambda ch: costs[ch.number], reverse=True)
    most = sum(costs.values()) // 2
    each: list[Work] = [partial(_whole, ch) for ch in whole]
    each = [
        work if costs[ch.number] > most else partial(alone, work)
        for ch, work in zip(whole, each, strict=True)
    ]
    if not packed:
        return each
    index = packed[0].log.index
    counts = np.array([last - first for first, last in (index.table.run(ch.number) for ch in packed)])
    ends = np.concatenate([np.zeros((len(packed), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    stretches = batches(index, range(len(index.table.base)))
    return [*each, *(partial(_stretch, packed, numbers, ends) for numbers in stretches)]


def _is_packed(ch: TableChannel) -> bool:
    """Whether messages of a channel lie in chunks that must be unpacked."""
    index = ch.log.index
    return index.rules[ch.number].synthetic is None and bool((index.table.chunk != FILE).any())


def _cost(ch: TableChannel) -> int:
    """Bytes of a channel as far as they are known without looking at its messages, and what each of those costs."""
    index = ch.log.index
    known = not index.rules[ch.number].size.reads_messages
    return (index.bytes_of(ch.number) if known else 0) + MESSAGE * index.count(ch.number)


def _whole(ch: TableChannel) -> list[tuple[str, pa.Table]]:
    return [(ch.topic, table_of(ch, None, slice(0, len(ch))))]


def _stretch(channels: Sequence[TableChannel], numbers: list[int], ends: I64) -> list[tuple[str, pa.Table]]:
    """The part of every channel that lies in some blocks; *ends*: messages of each before each block."""
    index = channels[0].log.index
    loaded = load(index, numbers, threads=1)
    parts = []
    for ch, end in zip(channels, ends[:, [numbers[0], numbers[-1] + 1]].tolist(), strict=True):
        parts.append((ch.topic, _of_piece(ch, loaded.payload_range(index, ch.number), np.arange(*end))))
    return parts


def _of_piece(ch: TableChannel, piece: PayloadRange, numbers: I64) -> pa.Table:
    if not ch.is_uniform:
        return decoded(ch, None, piece, numbers, PLAIN)
    got = gather_piece(Want(ch.number, ch.layout.leaves), piece)
    return fixed(ch, None, got, ch.log.index.times(ch.number)[numbers])
