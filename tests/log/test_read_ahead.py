"""Channels read one after another are gathered together, with the same columns as one by one."""

from __future__ import annotations

from functools import cache
from random import Random

import pyarrow as pa
import pytest

import logreel
from logreel.index.gather import gather
from logreel.log import read_ahead
from support.harness.examples import half
from support.samples.ulog.builder import flight

DATA = flight(2)


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables are equal; NaN equals NaN."""
    return one.schema.equals(other.schema, check_metadata=True) and (
        one.equals(other) or repr(one.to_pydict()) == repr(other.to_pydict())
    )


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The channels of every pass over the log."""
    found: list[list[int]] = []

    def watched(index, wants):
        found.append([want.channel for want in wants])
        return gather(index, wants)

    monkeypatch.setattr(read_ahead, "gather", watched)
    return found


def test_loop_over_channels_takes_few_passes(passes: list[list[int]]) -> None:
    log = logreel.open(DATA)
    found = {topic: ch.to_arrow() for topic, ch in log.channels.items()}
    read = [number for numbers in passes for number in numbers]
    assert len(passes) <= read_ahead.SEQUENTIAL + 2
    assert len(read) == len(set(read)) > 10
    for topic, table in found.items():
        assert same(table, logreel.open(DATA)[topic].to_arrow())


@cache
def single(topic: str, first_only: bool, start: str | None) -> pa.Table:
    """Return a table of a log of which nothing else was read."""
    ch = logreel.open(DATA)[topic]
    return ch.to_arrow(ch.fields[:1] if first_only else None, start)


@pytest.mark.parametrize("seed", range(half(20)))
def test_tables_in_any_order_equal_single_tables(seed: int) -> None:
    rng, log = Random(seed), logreel.open(DATA)
    names, at = list(log), 0
    for _ in range(60):
        # Mostly in a row, now and then somewhere else, sometimes only a field, a part, or without reading ahead.
        at = (at + 1) % len(names) if rng.random() < 0.8 else rng.randrange(len(names))
        ch, first_only = log[names[at]], rng.random() < 0.2
        start = "+500ms" if rng.random() < 0.1 else None
        table = ch.to_arrow(ch.fields[:1] if first_only else None, start)
        assert same(table, single(names[at], first_only, start))


def test_far_and_backward_reads_gather_one_channel(passes: list[list[int]]) -> None:
    log = logreel.open(DATA)
    for ch in reversed([ch for ch in log.channels.values() if ch.is_uniform and len(ch)]):
        ch.to_arrow()
    assert {len(numbers) for numbers in passes} == {1}


def test_limits_bound_what_is_gathered_ahead(
    passes: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD_BYTES", 50_000)
    monkeypatch.setattr(read_ahead, "AHEAD_CHANNELS", 3)
    log = logreel.open(DATA)
    channels = list(log.channels.values())
    for ch in channels:
        ch.to_arrow()
    assert max(map(len, passes)) in (2, 3, 4)
    for numbers in passes:
        assert sum(len(channels[n]) * (channels[n].layout.size or 0) for n in numbers[1:]) <= 50_000


def test_close_drops_what_was_gathered_ahead() -> None:
    log = logreel.open(DATA)
    for ch in list(log.channels.values())[:5]:
        ch.to_arrow()
    log.close()
    with pytest.raises(logreel.LogError, match="closed"):
        list(log.channels.values())[6].to_arrow()
