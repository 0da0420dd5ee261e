"""Times given by users, and times as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from logreel.cli.exits import sentence
from logreel.errors import UsageError
from logreel.log import times
from support.harness.times_without_unit import NO_DURATION, NO_TIME, without_unit

S = 10**9


@dataclass
class Clock:
    """The properties of a Log that times need."""

    epoch: str = "boot"
    start: int | None = 100 * S
    end: int | None = 160 * S
    utc_offset: int | None = 1_700_000_000 * S
    name: str = "x.ulg"
    #: ns of a message far from all others, outside of the bounds.
    outlier: int | None = None

    def holds_between(self, start: int | None, end: int | None) -> bool:
        if self.outlier is None:
            return False
        return (start is None or start <= self.outlier) and (end is None or self.outlier < end)


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
        ("12.5", BOOT, 112_500_000_000),
        ("12.5s", BOOT, 112_500_000_000),
        ("250ms", UNIX, 1_700_000_000_250_000_000),
        ("99999999", LOST, 100_000_099 * S),
        ("log:112.5", BOOT, 112_500_000_000),
        ("LOG: 00:01:52.5", LOST, 112_500_000_000),
        ("log:-1", EMPTY, -1 * S),
        ("log:1700000001", BOOT, 1_700_000_001 * S),
        ("log:7ns", UNIX, 7),
        ("1700000001500ms", BOOT, 1_500_000_000),
        ("1700000001.5", BOOT, 1_500_000_000),
        ("1700000001.123456789", UNIX, 1_700_000_001_123_456_789),
        ("5", UNIX, 1_700_000_005 * S),
        ("2023-11-14T22:13:21Z", BOOT, 1 * S),
        ("2023-11-14T22:13:21.123456789Z", UNIX, 1_700_000_001_123_456_789),
        ("2023-11-15 00:13:21+02:00", UNIX, 1_700_000_001 * S),
        ("2023-11-14t16:43:21-05:30", UNIX, 1_700_000_001 * S),
        ("1960-01-01T00:00:00.5Z", UNIX, -315_619_199_500_000_000),
    ],
)
def test_time_texts_are_parsed(text: str, log: Any, ns: int) -> None:
    assert times.parse_time(text, log) == ns


@pytest.mark.parametrize(
    ("text", "log", "why"),
    [
        ("soon", BOOT, "cannot read the time 'soon'"),
        ("log:", BOOT, "cannot read the time 'log:'"),
        ("log:2023-11-14T22:13:21Z", BOOT, "cannot read the time"),
        ("100000000", LOST, "does not tell how its clock relates"),
        ("5", EMPTY, "start of a log without messages"),
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
def test_invalid_time_texts_are_refused_with_reason(text: str, log: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        times.parse_time(text, log)


def test_interval_bounds_are_parsed_and_must_be_in_order() -> None:
    assert times.interval(BOOT, None, None) == (None, None)
    assert times.interval(BOOT, 0, "-1s") == (0, 159 * S)
    assert times.interval(BOOT, 160 * S, None) == (160 * S, None)
    assert times.interval(BOOT, "+0s", "+0s") == (100 * S, 100 * S)
    assert times.interval(BOOT, "+1s", "+1s") == (101 * S, 101 * S)
    with pytest.raises(UsageError, match="before the start"):
        times.interval(BOOT, "+2s", "+1s")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (None, "+0s"),
        (None, 100 * S),
        (161 * S, None),
        ("log:5", "log:15"),
        ("+61s", "+70s"),
        (1, 2),
        ("-70s", "-60s"),
    ],
)
def test_interval_outside_of_the_log_is_refused(start: Any, end: Any) -> None:
    with pytest.raises(
        UsageError, match=r"nothing between .* and .*; the log covers log:100 to log:160 \(60 s\)"
    ):
        times.interval(BOOT, start, end)


def test_refused_interval_has_hints_for_python_and_command_line() -> None:
    with pytest.raises(UsageError) as caught:
        times.interval(BOOT, "log:5", "log:15")
    assert str(caught.value) == (
        "x.ulg: nothing between log:5 (95 s before the start) and log:15 (85 s before the start); "
        'the log covers log:100 to log:160 (60 s); after the start: start="+5s"'
    )
    assert sentence(caught.value).endswith("; after the start: -S +5s")
    with pytest.raises(
        UsageError, match=r"between the start and 1970-01-01T00:00:05.000000Z .*; .* covers 2023"
    ):
        times.interval(UNIX, None, "log:5")


@pytest.mark.parametrize(("duration", "hint"), [(6 * S, "+5s"), (S, "+100ms"), (S // 20, None), (0, None)])
def test_hint_of_a_refused_interval_lies_within_the_log(duration: int, hint: str | None) -> None:
    short: Any = Clock(end=100 * S + duration)
    with pytest.raises(UsageError) as caught:
        times.interval(short, "log:5", "log:15")
    assert ("after the start" in str(caught.value)) == (hint is not None)
    assert hint is None or sentence(caught.value).endswith(f"; after the start: -S {hint}")


def test_interval_can_select_an_outlier_outside_of_the_bounds() -> None:
    far: Any = Clock(outlier=9_000 * S)
    assert times.interval(far, 8_000 * S, None) == (8_000 * S, None)
    with pytest.raises(UsageError, match="nothing between"):
        times.interval(far, 8_000 * S, 9_000 * S)


def test_empty_log_accepts_any_interval() -> None:
    assert times.interval(EMPTY, 1, 2) == (1, 2)


def test_interval_must_overlap_one_of_several_logs() -> None:
    assert times.intervals([BOOT, UNIX], 0, 150 * S) == [(0, 150 * S), (0, 150 * S)]
    with pytest.raises(UsageError, match="nothing between"):
        times.intervals([BOOT, UNIX], 0, 50 * S)


@pytest.mark.parametrize(
    ("value", "log", "ns"),
    [
        (np.int32(7), BOOT, 7),
        (np.uint64(7), BOOT, 7),
        (timedelta(seconds=12.5), BOOT, 112_500_000_000),
        (timedelta(0), BOOT, 100 * S),
        (timedelta(seconds=-1), BOOT, 159 * S),
        (np.timedelta64(1500, "ms"), BOOT, 101_500_000_000),
        (np.timedelta64(-1, "m"), BOOT, 100 * S),
        (pd.Timedelta(nanoseconds=3), BOOT, 100 * S + 3),
        (pd.Timedelta(nanoseconds=-3), BOOT, 160 * S - 3),
        (datetime(2023, 11, 14, 22, 13, 21, 5, UTC), UNIX, 1_700_000_001_000_005_000),
        (datetime(2023, 11, 15, 0, 13, 21, tzinfo=timezone(timedelta(hours=2))), BOOT, S),
        (pd.Timestamp(1_700_000_001_123_456_789, tz="Europe/Berlin"), UNIX, 1_700_000_001_123_456_789),
        (pd.Timestamp("2023-11-14T22:13:21Z").as_unit("s"), UNIX, 1_700_000_001 * S),
        (np.datetime64("2023-11-14T22:13:21.123456789"), UNIX, 1_700_000_001_123_456_789),
        (np.datetime64("2023-11-14"), UNIX, 1_699_920_000 * S),
        (np.datetime64("2023-11"), UNIX, 1_698_796_800 * S),
    ],
)
def test_times_of_numpy_pandas_and_datetime_are_converted(value: Any, log: Any, ns: int) -> None:
    assert times.time_ns(value, log) == ns


@pytest.mark.parametrize(
    "value",
    [
        10.0, np.float64(10), float("nan"), True, np.bool_(True), Decimal(10), Fraction(10), None, b"+5s", [5], (5,),
        np.array(5), date(2023, 11, 14), time(10, 0), object(), pd.NaT, NO_TIME, NO_DURATION,
        without_unit(np.timedelta64, 5), np.timedelta64(5, "M"), pd.Period("2023-11"), pa.scalar(5),
    ],
)  # fmt: skip
def test_other_types_are_refused_and_accepted_types_named(value: Any) -> None:
    with pytest.raises(UsageError, match=r"not accepted as a time: a time is int ns .* datetime"):
        times.time_ns(value, BOOT)


@pytest.mark.parametrize(
    ("value", "log", "why"),
    [
        (datetime(2023, 11, 14), BOOT, "has no zone"),
        (pd.Timestamp("2023-11-14"), BOOT, "has no zone"),
        (datetime(2023, 11, 14, tzinfo=UTC), LOST, "does not tell how its clock relates"),
        (np.datetime64("2023-11-14"), LOST, "does not tell how its clock relates"),
        (np.datetime64(9_999_999, "Y"), UNIX, "64 bits"),
        (1 << 63, BOOT, "64 bits"),
        (np.uint64((1 << 64) - 1), BOOT, "64 bits"),
        (timedelta(days=999_999_999), BOOT, "64 bits"),
        (timedelta(1), EMPTY, "start of a log without messages"),
        (timedelta(-1), EMPTY, "end of a log without messages"),
    ],
)
def test_times_impossible_for_the_log_are_refused_with_reason(value: Any, log: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        times.time_ns(value, log)


def test_durations_are_converted() -> None:
    lengths: list[Any] = [
        "2.5s",
        2_500_000_000,
        np.int64(2_500_000_000),
        timedelta(seconds=2.5),
        np.timedelta64(2500, "ms"),
    ]
    assert {times.duration_ns(value) for value in lengths} == {2_500_000_000}
    wrong: list[Any] = [
        2.5,
        True,
        None,
        NO_DURATION,
        datetime(2023, 11, 14, tzinfo=UTC),
    ]
    for value in wrong:
        with pytest.raises(UsageError, match="a length of time is"):
            times.duration_ns(value)


def test_utc_needs_a_known_offset() -> None:
    assert times.shift_of(LOST, False) is None
    assert times.shift_of(BOOT, True) == 1_700_000_000 * S
    assert times.shift_of(UNIX, True) == 0
    with pytest.raises(UsageError, match="leave out utc=True") as caught:
        times.shift_of(LOST, True)
    assert "leave out --utc" in sentence(caught.value)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"), (0, "0 ns"), (1500, "1.5 µs"), (350_000_000, "350 ms"), (6_500_000_000, "6.5 s"),
        (125 * S, "2 min 05 s"), (3599 * S + S // 2, "1 h 00 min"), (11_220 * S, "3 h 07 min"),
        (3 * 86400 * S, "3 d 00 h"), (-S, "-1.0 s"),
    ],
)  # fmt: skip
def test_durations_as_text(ns: int | None, text: str) -> None:
    assert times.duration_text(ns) == text


def test_times_as_text() -> None:
    assert times.seconds_text(112_500_176_000) == "112.500176"
    assert times.seconds_text(-1_500_000_000) == "-1.500000"
    assert times.utc_text(1_700_000_001_123_456_789) == "2023-11-14T22:13:21.123456789Z"
    assert times.utc_text(-1, 0) == "1969-12-31T23:59:59Z"
    assert times.utc_text(2 * ((1 << 63) - 1)).startswith("2554")
    assert times.time_text(S, S) == "1970-01-01T00:00:02.000000Z"


@pytest.mark.parametrize("log", [BOOT, UNIX, LOST], ids=["boot", "unix", "no UTC"])
def test_a_bare_number_is_seconds_after_the_start_whatever_the_clock(log: Any) -> None:
    assert times.interval(log, "10", "20.5") == (log.start + 10 * S, log.start + 20 * S + S // 2)


def test_the_interval_taken_is_told_once_it_is_known() -> None:
    told: list[str] = []

    def tell(log: Any, first: int | None, last: int | None) -> None:
        told.append(times.interval_text(log, first, last))

    times.listeners.append(tell)
    try:
        times.interval(BOOT, "10", "+20.5s")
        times.interval(LOST, "log:110.5", None)
        times.interval(UNIX, timedelta(seconds=1), None)
        # Functions of the library pass ns to each other.
        times.interval(BOOT, 110 * S, None)
        times.interval(BOOT, None, None)
    finally:
        times.listeners.remove(tell)
    assert told == [
        "+10 s to +20.5 s, 2023-11-14T22:15:10Z to 2023-11-14T22:15:20.5Z",
        "+10.5 s to the end, log:110.5 to the end",
        "+1 s to the end, 2023-11-14T22:13:21Z to the end",
    ]
