"""The index of a large BDDF file: read series by series, and used only if the blocks agree with it."""

from __future__ import annotations

import numpy as np
import pytest

import logreel
from damage.mutations import mutate
from logreel.formats.bddf import index_reader
from logreel.formats.bddf.index_reader import VerifiedIndex
from support.oracles import bddf as oracle
from support.samples.bddf.builder import T0, Builder, data_block, walk


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Treat every file as a large one; return the numbers of the series whose index was read."""
    monkeypatch.setattr(index_reader, "EAGER_BYTES", 0)
    asked: list[int] = []
    load = VerifiedIndex.load

    def noted(self: VerifiedIndex, number: int) -> np.ndarray:
        asked.append(number)
        return load(self, number)

    monkeypatch.setattr(VerifiedIndex, "load", noted)
    return asked


def three(again: int = 5) -> Builder:
    out = Builder()
    series = [out.messages(name, "text/plain", "line") for name in ("a", "b", "c")]
    for i in range(again):
        for one in series:
            out.data(one, T0 + i, f"{one} {i}".encode())
    return out


def test_large_file_is_opened_without_reading_series_indexes(large: list[int]) -> None:
    log = logreel.open(three().bytes())
    assert (list(log), large) == (["a", "b", "c"], [])
    assert log["b"].to_arrow()["text"].to_pylist() == [f"1 {i}" for i in range(5)]
    assert [m.data for m in log.messages("b")] == [f"1 {i}".encode() for i in range(5)]
    assert (len(log["b"]), log["b"].start, log["b"].end, large) == (5, T0, T0 + 4, [1])
    assert (log.start, log.end, log.message_count) == (T0, T0 + 4, 15)
    assert sorted(large) == [0, 1, 2]
    assert not log.problems
    assert log.metadata["indexed"]


def test_lazy_and_eager_index_give_the_same_content(large: list[int]) -> None:
    data = walk(3)
    parts, scanned = logreel.open(data), logreel.open(data[:-40])
    for topic in scanned:
        assert parts[topic].to_arrow().equals(scanned[topic].to_arrow()), topic
    for order in ("time", "file"):
        a, b = (
            [(m.time, m.channel.topic, m.offset) for m in log.messages(order=order)]
            for log in (parts, scanned)
        )
        assert a == b
    assert parts.text == scanned.text
    assert (parts.start, parts.end) == (scanned.start, scanned.end)


def test_wrong_series_index_falls_back_to_reading_the_file(large: list[int]) -> None:
    data = bytearray(three().bytes())
    rows = oracle.walk(bytes(data)).rows
    hit = [row for row in rows if row.series == 1][2]
    data[hit.at + 12 : hit.at + 14] = b"\xff\xff"
    log = logreel.open(bytes(data))
    assert not log.problems
    assert len(log["a"]) == 5
    assert not log.problems
    assert [bytes(m.data) for m in log.messages("b")] == [b"1 0", b"1 1", b"1 3", b"1 4"]
    assert [(p.code, p.offset, p.lost) for p in log.problems] == [
        ("garbage", hit.at, True),
        ("index", len(data) - 32, False),
    ]
    assert len(log["c"]) == 5
    assert (log.start, log.end) == (T0, T0 + 4)
    with pytest.raises(logreel.DamagedError):
        logreel.open(bytes(data), strict=True)


def test_blocks_missing_from_the_index_are_reported(large: list[int]) -> None:
    out = three()
    out.out += data_block(0, T0 + 9, b"the index does not know me")
    data = out.bytes()
    log = logreel.open(data)
    assert len(log["a"]) == 5
    assert not log.problems
    assert len(log.index.counts) == 3
    (problem,) = log.problems
    assert (problem.code, problem.lost) == ("index", True)
    assert [f.code for f in logreel.check(data).findings] == ["index"]


def test_damaged_large_files_give_only_valid_blocks(large: list[int]) -> None:
    base = three(8).bytes()
    for seed in range(300):
        data = mutate(base, seed)
        try:
            log = logreel.open(data)
        except logreel.LogError:
            continue
        for ch in log.channels.values():
            index = log.index
            columns = (index.starts(ch.number), index.offsets(ch.number), index.times(ch.number))
            for at, offset, time in zip(*(c.tolist() for c in columns), strict=True):
                row = oracle.data_block(data, at, strict=False)
                assert (row.end - len(row.payload), row.ns) == (offset, time), seed
            ch.to_arrow().validate(full=True)
        for problem in log.problems:
            assert 0 <= problem.offset <= problem.offset + problem.size <= len(data), (seed, problem)
