"""Bags with a wrong index: a Problem is reported, and no wrong data is shown."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import logreel
from support.builders.bag_rows import plain_rows, read_all
from support.builders.bag_variants import SYNTHETIC, many
from support.harness.limits import limited
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import (
    CHATTER,
    COUNT,
    START,
    Builder,
    lz4_frame,
)

MANY = 2**32 - 1


def _honest() -> Builder:
    out = Builder(chunk_bytes=9000)
    for topic, at, data in many(120, topics=(CHATTER, COUNT)):
        if topic not in [t for _, t in out.connections]:
            out.connection(topic)
        out.message([t for _, t in out.connections].index(topic), at, data)
    return out


def _swap(entries: list[tuple[int, int, int]]) -> None:
    (a, t, x), (b, u, y) = entries[2], entries[3]
    entries[2:4] = [(a, t, y), (b, u, x)]


LIES: dict[str, Callable[[list[tuple[int, int, int]]], Any]] = {
    "beyond the chunk": lambda e: e.__setitem__(3, (e[3][0], e[3][1], 1 << 31)),
    "just beyond the chunk": lambda e: e.__setitem__(3, (e[3][0], e[3][1], 9500)),
    "between records": lambda e: e.__setitem__(3, (e[3][0], e[3][1], e[3][2] + 5)),
    "places exchanged": _swap,
    "another connection": lambda e: e.__setitem__(3, (1 - e[3][0], e[3][1], e[3][2])),
    "another time": lambda e: e.__setitem__(3, (e[3][0], e[3][1] + 1, e[3][2])),
    "twice": lambda e: e.append(e[3]),
    "100000 times": lambda e: e.extend([e[3]] * 100_000),
    "too many": lambda e: e.extend((e[3][0], e[3][1], k) for k in range(5000)),
}


def _packed(compression: str) -> Builder:
    out = _honest()
    for chunk in out.chunks:
        chunk.compression = compression
        chunk.pack = lz4_frame if compression == "lz4" else bytes
    return out


@cache
def _true_rows(compression: str) -> list[Any]:
    return plain_rows(bag_oracle.read(_packed(compression).bytes()))


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("lie", LIES)
def test_wrong_index_is_reported_and_not_used(lie: str, compression: str) -> None:
    out, want = _packed(compression), _true_rows(compression)
    LIES[lie](out.chunks[0].entries)
    data = out.bytes()

    def job() -> None:
        log, rows = read_all(data)
        assert any(p.code == "index" for p in log.problems)
        # What is read is in the bag; what an index hides may be missing.
        left = list(want)
        for row in rows:
            left.remove(row)
        assert len(left) <= (2 if lie in ("another connection", "another time") else 0)
        for ch in log.channels.values():
            assert len(ch.to_arrow()) <= len(ch)

    limited(job)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", ["time", "file"])
def test_index_without_any_true_entry_shows_no_message(order: str, reverse: bool) -> None:
    out = _honest()
    for chunk in out.chunks:
        chunk.entries = [(conn, at + 1, place) for conn, at, place in chunk.entries]
    log = logreel.open(out.bytes())
    assert list(log.messages(order=order, reverse=reverse)) == []
    assert {(p.code, p.lost) for p in log.problems} == {("index", True)}


def test_index_entry_may_point_at_the_connection_before_its_message() -> None:
    out = _honest()
    first = out.chunks[0]
    conn, at, _ = first.entries[0]
    first.entries[0] = conn, at, 0
    log, rows = read_all(out.bytes())
    assert rows == plain_rows(bag_oracle.read(out.bytes()))
    assert not log.problems


def test_chunk_missing_in_the_summary_is_read() -> None:
    data = SYNTHETIC["2.0 none"]()
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    # Its index records go with it: the summary alone names chunks.
    hidden = out.chunks[1]
    before = out.bytes()
    out.chunks[2].before = before[hidden.pos : out.chunks[2].pos]
    del out.chunks[1]
    log, rows = read_all(out.bytes())
    assert rows == want
    assert [p.code for p in log.problems] == ["index"]
    assert not logreel.open(data).problems


@pytest.mark.parametrize("name", ["conn_count", "chunk_count", "index_pos"])
@pytest.mark.parametrize("value", [0, 1, 13, 5000, MANY])
def test_wrong_numbers_in_the_bag_header(name: str, value: int) -> None:
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    out.stated[name] = value
    log, rows = read_all(out.bytes())
    assert rows == want
    assert any(p.code == "index" for p in log.problems)


@pytest.mark.parametrize("count", [0, 1, 7, 1 << 20, MANY])
def test_wrong_counts_in_index_records_of_a_bag_without_summary(count: int) -> None:
    out = _honest()
    out.finished = False
    data = bytearray(out.bytes())
    want = plain_rows(bag_oracle.read(_honest().bytes()))
    at = data.index(b"count=") + 6
    data[at : at + 4] = struct.pack("<I", count)
    log, rows = read_all(bytes(data))
    assert rows == want
    assert log.problems


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
@pytest.mark.parametrize("stored", [10, 1500, 60_000])
def test_wrong_sizes_of_a_chunk_hide_no_other_chunk(compression: str, stored: int) -> None:
    out = _honest()
    out.finished = False
    for chunk in out.chunks:
        chunk.compression = compression
        chunk.pack = {"none": bytes, "bz2": bz2.compress, "lz4": lz4_frame}[compression]
    want = plain_rows(bag_oracle.read(out.bytes()))
    here = len(out.chunks[1].entries)
    out.chunks[1].stored = stored
    log, rows = read_all(out.bytes())
    assert len([row for row in want if row not in rows]) <= (here if compression != "none" else 0)
    if len(rows) < len(want):
        assert any(p.lost for p in log.problems)


@pytest.mark.parametrize("size", [0, 100, 100_000, MANY])
def test_a_plain_chunk_that_states_another_size_is_read_by_what_is_there(size: int) -> None:
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    out.chunks[-1].size = size
    # An entry that only the wrong size allows for.
    out.chunks[-1].entries.append((0, START, len(out.chunks[-1].content) + 5000))
    log, rows = read_all(out.bytes())
    assert rows == want
    assert any(p.code == "index" for p in log.problems)
