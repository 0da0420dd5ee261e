"""The rest of an older log after a log, beginning exactly at a record: only times show it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from support.samples.ulog.builder import Builder, flight

NAMES = ("a", "b", "c", "d")


def log(*spans: range) -> bytes:
    """Return a log with four topics, and a message of each at every time of each span, in us."""
    out = Builder(spans[0].start)
    for name in NAMES:
        out.format(f"{name}:uint64_t timestamp;uint32_t n;")
    for number, name in enumerate(NAMES):
        out.subscribe(name, number)
    for span in spans:
        for time in span:
            for number in range(len(NAMES)):
                out.data(number, struct.pack("<QI", time, 7))
    return out.bytes()


@pytest.mark.parametrize("count", [50, 5000])
def test_older_tail_at_record_boundary_is_segment(count: int) -> None:
    new = range(100_000_000, 100_000_000 + 10_000 * count, 10_000)
    old = range(20_000_000, 20_000_000 + 10_000 * count, 10_000)
    found = logreel.open(log(new, old))
    for name in NAMES:
        assert (found[name].times // 1000).tolist() == list(new)
        assert (found[f"{name}@2"].times // 1000).tolist() == list(old)
    (problem,) = found.problems
    assert problem.code == "segment"
    assert problem.offset == len(log(new))
    assert found.end == new[-1] * 1000


def test_three_logs_are_three_segments() -> None:
    spans = [range(t, t + 3_000_000, 10_000) for t in (90_000_000, 50_000_000, 10_000_000)]
    found = logreel.open(log(*spans))
    assert [len(found[name]) for name in ("a", "a@2", "a@3")] == [300, 300, 300]


def test_usual_jitter_is_no_time_jump() -> None:
    first, second = range(10_000_000, 12_000_000, 10_000), range(11_000_000, 14_000_000, 10_000)
    assert [p.code for p in logreel.open(log(first, second)).problems] == []


def test_single_absurd_stamp_is_no_time_jump() -> None:
    one = log(range(10_000_000, 11_000_000, 10_000))
    at = one.rindex(struct.pack("<QI", 10_500_000, 7))
    data = one[:at] + struct.pack("<QI", 10**15, 7) + one[at + 12 :]
    assert logreel.open(data).problems == ()


def test_sound_flights_have_no_time_jump(shared: Path) -> None:
    assert logreel.open(flight(20)).problems == ()
    for path in sorted((shared / "data" / "ulog").glob("*.ulg")):
        assert not [p for p in logreel.open(path).problems if p.code == "segment"], path.name
