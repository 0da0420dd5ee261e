"""The block table: rows, split channels, and removal of messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logreel.index.block_table import Blocks
from logreel.index.channel_index import ChannelRules, ComputedValues, FieldAt
from logreel.index.gather import gather_times
from logreel.index.message_index import MessageIndex
from logreel.io.source import Chunks, Source

Rows = list[list[int]]


def random_table(seed: int) -> tuple[Blocks, Rows]:
    """Return a table of three channels in several blocks, and the message starts of each channel."""
    rng = np.random.default_rng(seed)
    base, start, entry, at = [], [], [], 1000
    rows: Rows = [[], [], []]
    for _ in range(int(rng.integers(1, 6))):
        base.append(at)
        line = [len(entry)]
        for channel in range(3):
            some = np.sort(
                rng.choice(500, int(rng.integers(0, 5)) * (channel != 1 or seed % 2), replace=False)
            )
            entry += some.tolist()
            rows[channel] += (at + some).tolist()
            line.append(len(entry))
        start.append(line)
        at += 500
    table = Blocks(
        np.array(base, np.int64),
        np.full(len(base), -1, np.int32),
        np.array(start, np.int64),
        np.array(entry, np.uint32),
    )
    return table, rows


def rows_of(table: Blocks) -> Rows:
    return [table.offsets(channel).tolist() for channel in range(table.start.shape[1] - 1)]


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_offsets_agree_with_the_entries(seed: int) -> None:
    table, rows = random_table(seed)
    assert rows_of(table) == rows
    assert table.live() == [i for i, some in enumerate(rows) if some]
    assert [table.first(i) for i in table.live()] == [rows[i][0] for i in table.live()]
    block, place = table.rows(0)
    assert (table.base[block] + table.entry[place]).tolist() == rows[0]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("channel", [0, 2])
def test_split_divides_one_channel_into_parts(seed: int, channel: int) -> None:
    table, rows = random_table(seed)
    part = np.random.default_rng(seed).integers(0, 3, len(rows[channel]))
    parts = [[at for at, p in zip(rows[channel], part.tolist(), strict=True) if p == k] for k in range(3)]
    assert rows_of(table.split(channel, part, 3)) == [*rows[:channel], *parts, *rows[channel + 1 :]]
    assert rows_of(table) == rows


@pytest.mark.parametrize("seed", range(20))
def test_without_removes_exactly_the_given_messages(seed: int) -> None:
    table, rows = random_table(seed)
    removed, kept = [], []
    rng = np.random.default_rng(seed)
    for channel, some in enumerate(rows):
        drop = rng.random(len(some)) < 0.4
        removed.append(table.rows(channel)[1][drop])
        kept.append([at for at, out in zip(some, drop.tolist(), strict=True) if not out])
    assert rows_of(table.without(np.concatenate(removed))) == kept


def test_gather_times_equals_times_of_single_channels() -> None:
    data, rng = np.zeros(4000, np.uint8), np.random.default_rng(5)
    offset = np.sort(rng.choice(np.arange(10, 3900), 300, replace=False)).astype(np.int64)
    offset = offset[np.diff(offset, prepend=0) >= 8]
    data[:] = rng.integers(0, 256, len(data))
    channel = rng.integers(0, 4, len(offset))
    kinds: list[Any] = [
        FieldAt(0, 8, 1),
        FieldAt(1, 4, 1000),
        FieldAt(2, 2, 5, 3),
        ComputedValues(lambda data, at: at * 7),
    ]

    def index() -> MessageIndex:
        rules = [ChannelRules(rule, 8) for rule in kinds]
        return MessageIndex(Chunks(Source(data.tobytes(), "log")), Blocks.of(offset, channel, 4), rules)

    alone, together = index(), index()
    gather_times([(together, c) for c in range(4)])
    assert [together.has_times(c) for c in range(4)] == [True, True, False, False]
    for c in range(4):
        assert together.times(c).tolist() == alone.times(c).tolist()
        assert not together.times(c).flags.writeable
