"""Times as people write and read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from logreel.errors import UsageError
from logreel.ops import times

S = 10**9


@dataclass
class Clock:
    """As much of a Log as times need."""

    epoch: str = "boot"
    start: int | None = 100 * S
    end: int | None = 160 * S
    utc_offset: int | None = 1_700_000_000 * S
    name: str = "x.ulg"


BOOT: Any = Clock()
UNIX: Any = Clock("unix", 1_700_000_000 * S, 1_700_000_060 * S, 0)
LOST: Any = Clock(utc_offset=None)
EMPTY: Any = Clock(start=None, end=None)


@pytest.mark.parametrize(
    ("text", "log", "ns"),
    [
        ("123ns", BOOT, 123),
        ("0ns", BOOT, 0),
        ("+12.5s", BOOT, 112_500_000_000),
        ("+0.000000001", BOOT, 100 * S + 1),
        ("+250ms", BOOT, 100 * S + 250_000_000),
        ("+1min", BOOT, 160 * S),
        ("-30s", BOOT, 130 * S),
        ("-30", BOOT, 130 * S),
        ("00:01:30", BOOT, 190 * S),
        ("1:30.25", BOOT, 190 * S + 250_000_000),
        ("-0:10", BOOT, 150 * S),
        ("112.5", BOOT, 112_500_000_000),
        ("1700000001.5", BOOT, 1_500_000_000),
        ("1700000001.123456789", UNIX, 1_700_000_001_123_456_789),
        ("5", UNIX, 5 * S),
        ("2023-11-14T22:13:21Z", BOOT, 1 * S),
        ("2023-11-14T22:13:21.123456789Z", UNIX, 1_700_000_001_123_456_789),
        ("2023-11-15 00:13:21+02:00", UNIX, 1_700_000_001 * S),
        ("2023-11-14t16:43:21-05:30", UNIX, 1_700_000_001 * S),
        ("1960-01-01T00:00:00.5Z", UNIX, -315_619_199_500_000_000),
    ],
)
def test_a_time_is_read(text: str, log: Any, ns: int) -> None:
    assert times.parse_time(text, log) == ns


@pytest.mark.parametrize(
    ("text", "log", "why"),
    [
        ("soon", BOOT, "cannot read the time 'soon'"),
        ("", BOOT, "cannot read"),
        ("nan", BOOT, "cannot read"),
        ("1e400", BOOT, "cannot read"),
        ("99999999999999999999", UNIX, "64 bits"),
        ("2023-11-14T22:13:21", UNIX, "add Z"),
        ("2023-13-14T22:13:21Z", UNIX, "no time"),
        ("2023-11-14T22:13:21+99:00", UNIX, "no time"),
        ("00:99:00", BOOT, "59"),
        ("00:00:60", BOOT, "59"),
        ("2023-11-14T22:13:21Z", LOST, "does not tell how its clock relates"),
        ("+1s", EMPTY, "start of a log without messages"),
        ("-1s", EMPTY, "end of a log without messages"),
    ],
)
def test_what_is_no_time_says_why(text: str, log: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        times.parse_time(text, log)


def test_an_interval_is_half_open_and_in_order() -> None:
    assert times.interval(BOOT, None, None) == (None, None)
    assert times.interval(BOOT, 0, "-1s") == (0, 159 * S)
    assert times.interval(BOOT, "+1s", "+1s") == (101 * S, 101 * S)
    with pytest.raises(UsageError, match="before the start"):
        times.interval(BOOT, "+2s", "+1s")


def test_wall_clock_needs_an_offset() -> None:
    assert times.shift_of(LOST, False) is None
    assert times.shift_of(BOOT, True) == 1_700_000_000 * S
    assert times.shift_of(UNIX, True) == 0
    with pytest.raises(UsageError, match="--utc"):
        times.shift_of(LOST, True)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"), (0, "0 ns"), (1500, "1.5 µs"), (350_000_000, "350 ms"), (6_500_000_000, "6.5 s"),
        (125 * S, "2 min 05 s"), (3599 * S + S // 2, "1 h 00 min"), (11_220 * S, "3 h 07 min"),
        (3 * 86400 * S, "3 d 00 h"), (-S, "-1.0 s"),
    ],
)  # fmt: skip
def test_durations_for_people(ns: int | None, text: str) -> None:
    assert times.duration_text(ns) == text


def test_times_for_people() -> None:
    assert times.seconds_text(112_500_176_000) == "112.500176"
    assert times.seconds_text(-1_500_000_000) == "-1.500000"
    assert times.utc_text(1_700_000_001_123_456_789) == "2023-11-14T22:13:21.123456789Z"
    assert times.utc_text(-1, 0) == "1969-12-31T23:59:59Z"
    assert times.utc_text(2 * ((1 << 63) - 1)).startswith("2554")
    assert times.time_text(S, S) == "1970-01-01T00:00:02.000000Z"
