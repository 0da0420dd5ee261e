"""Times that a Writer takes: those that reading takes, without a type that could mean seconds or nanoseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import logreel
from logreel.errors import UsageError
from support.harness.times_without_unit import NO_DURATION, NO_TIME

S = 10**9
START = 1_735_689_600 * S
NUMBER = logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n")
PAYLOAD = bytes(4)


@pytest.mark.parametrize(
    "value",
    [
        1_700_000_000.5, np.float64(3), float("nan"), True, np.bool_(True), "1700000000", " 5.5 ", None, b"1",
        Decimal(3), [1], object(), pd.NaT, NO_TIME, NO_DURATION, datetime(2025, 1, 1).date(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("data", [PAYLOAD, {"data": 1}], ids=["payload", "fields"])
def test_float_seconds_and_other_ambiguous_times_are_refused_by_the_writer(
    tmp_path: Path, value: Any, data: Any
) -> None:
    with logreel.create(tmp_path / "x.mcap") as w:
        channel = w.add_channel("/x", NUMBER)
        with pytest.raises(
            UsageError, match=r"not accepted as a time: the time of a message is int ns, an aware"
        ):
            w.write(channel, value, data)
    assert logreel.open(tmp_path / "x.mcap").message_count == 0


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".bddf"])
def test_the_writer_takes_the_times_that_reading_takes(tmp_path: Path, suffix: str) -> None:
    given: list[Any] = [
        START, datetime(2025, 1, 1, 0, 0, 1, tzinfo=UTC), pd.Timestamp("2025-01-01T00:00:02Z"),
        np.datetime64("2025-01-01T00:00:03"), "2025-01-01T00:00:04Z", "+5s", "00:00:06", timedelta(seconds=7),
        np.timedelta64(8, "s"), pd.Timedelta("9s"), np.int64(START + 10 * S), f"{START + 11 * S}ns",
    ]  # fmt: skip
    with logreel.create(tmp_path / f"x{suffix}") as w:
        if suffix == ".bddf":
            channel = w.add_channel("/x", logreel.open(_bddf(tmp_path))["/x"].layout)
        else:
            channel = w.add_channel("/x", NUMBER)
        for value in given:
            w.write(channel, value, {"data": 1})
    log = logreel.open(tmp_path / f"x{suffix}")
    assert [m.time - START for m in log.messages()] == [i * S for i in range(len(given))]


def _bddf(folder: Path) -> Path:
    with logreel.create(folder / "source.mcap") as w:
        w.write(w.add_channel("/x", NUMBER), START, {"data": 1})
    return folder / "source.mcap"


def test_times_after_the_start_count_from_the_first_message_written(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "x.mcap") as w:
        channel = w.add_channel("/x", NUMBER)
        for early in ("+1s", timedelta(seconds=1)):
            with pytest.raises(UsageError, match="counts from the first message, and none has been written"):
                w.write(channel, early, PAYLOAD)
        w.write(channel, START, PAYLOAD)
        w.write(channel, START - S, PAYLOAD)
        w.write(channel, "+1s", PAYLOAD)
        with pytest.raises(UsageError, match="counts from the end of a log that is still written"):
            w.write(channel, "-1s", PAYLOAD)
    assert [m.time - START for m in logreel.open(tmp_path / "x.mcap").messages()] == [-S, 0, S]
    with logreel.create(tmp_path / "x.mcap", mode="a") as w:
        w.write(0, START + 60 * S, PAYLOAD)
        w.write(0, "+1s", PAYLOAD)
    assert [m.time - START for m in logreel.open(tmp_path / "x.mcap").messages()][-1] == 61 * S


def test_wall_clock_times_need_a_clock_that_knows_utc(tmp_path: Path) -> None:
    when = datetime(2025, 1, 1, tzinfo=UTC)
    schema = logreel.Schema("x", "ulog", "x:uint64_t timestamp;float a;")
    with logreel.create(tmp_path / "x.ulg") as w:
        channel = w.add_channel("x", schema)
        w.write(channel, 5 * S, {"a": 1})
        with pytest.raises(UsageError, match="wall-clock time, but the log does not tell"):
            w.write(channel, when, {"a": 1})
    with logreel.create(tmp_path / "y.ulg") as w:
        w.write(w.add_channel("x", schema), when, {"a": 1})
    assert logreel.open(tmp_path / "y.ulg").start == START


def test_text_and_parameters_take_the_same_times(tmp_path: Path) -> None:
    schema = logreel.Schema("x", "ulog", "x:uint64_t timestamp;float a;")
    with logreel.create(tmp_path / "x.ulg") as w:
        w.write(w.add_channel("x", schema), 5 * S, {"a": 1})
        w.parameter("P", 1)
        w.parameter("P", 2, "+1s")
        w.text(timedelta(seconds=2), "here")
        for call in (lambda: w.text(7.5, "x"), lambda: w.parameter("P", 3, 7.5)):  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="not accepted as a time"):
                call()
    log = logreel.open(tmp_path / "x.ulg")
    assert [line.time for line in log.text] == [7 * S]
    # Records of parameters have no times: these are between those of the messages around them.
    assert [change.value for change in log.parameters["P"].changes][-1] == 2


def test_arrays_of_times_are_integers_or_datetime64(tmp_path: Path) -> None:
    zero, size = np.zeros(2, np.int64), np.full(2, 4)
    payload, channels = np.zeros(4, np.uint8), np.zeros(2, np.int32)
    when = np.array(["2025-01-01", "2025-01-02"], "M8[D]")
    with logreel.create(tmp_path / "x.mcap") as w:
        w.add_channel("/x", NUMBER)
        w.write_many(channels, when, payload, zero, size)  # type: ignore[arg-type]
        w.write_many(channels, np.array([START, START], np.uint64), payload, zero, size)  # type: ignore[arg-type]
        for wrong in (
            np.array([1.7e9, 1.7e9]),
            np.array([True, True]),
            np.array(["2025-01-01", "NaT"], "M8[D]"),
        ):
            with pytest.raises(UsageError, match="not accepted as a time"):
                w.write_many(channels, wrong, payload, zero, size)  # type: ignore[arg-type]
    assert logreel.open(tmp_path / "x.mcap")["/x"].times.tolist() == [START, START + 86400 * S, START, START]
