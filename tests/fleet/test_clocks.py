"""Logs with broken clocks are flagged, and do not make hours that nobody recorded; what is unknown is null."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import logreel
from logreel.fleet import ingest, query, report
from support.builders.fleets import firmware_log
from support.harness.faults import Inline

S = 10**9
HOUR, DAY = 3600 * S, 86_400 * S
START = 1_700_000_000 * S


def write(path: Path, times: Iterable[int]) -> None:
    with logreel.create(path) as out:
        channel = out.add_channel("/x", logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n"))
        for n, at in enumerate(times):
            out.write(channel, at, {"data": n})


@pytest.mark.parametrize(
    ("times", "clock", "duration", "words"),
    [
        ([START, START + HOUR], "ok", HOUR, None),
        # A recorder that was paused for some days is no broken clock.
        ([START, START + DAY, START + 5 * DAY], "ok", 5 * DAY, None),
        ([], None, None, None),
        # Stamps of 0 before the clock came.
        ([0, 0, START, START + S, START + 9 * S], "implausible", 9 * S, "472222 h from the first to the last"),
        ([0, START], "implausible", 0, "the clock was set while the log was recorded"),
        # Twice: at boot from a file with the last known time, then from GPS.
        ([5, START - 90 * DAY, START, START + S, START + 3 * S], "implausible", 3 * S, "h of them without any"),
        # The clock was never set: the differences of its times are sound.
        ([600_000_000 * S, 600_000_060 * S], "implausible", 60 * S, ": the clock was not set"),
        ([5_000_000_000 * S, 5_000_000_002 * S], "implausible", 2 * S, "ends at 2128-"),
        # Nothing says which times are sound.
        ([START + n * 100 * DAY for n in range(20)], "implausible", None, "45600 h from the first to the last"),
        ([0, (1 << 63) - 2], "implausible", 0, "without any"),
    ],
)  # fmt: skip
def test_the_clock_of_a_log_is_judged_and_its_duration_is_sound(
    tmp_path: Path, times: list[int], clock: str | None, duration: int | None, words: str | None
) -> None:
    write(tmp_path / "a.mcap", times)
    ingest(tmp_path / "a.mcap", tmp_path / "fleet", engine=Inline())
    (row,) = query(
        "SELECT clock, clock_reason, duration_ns FROM logreel.logs", tmp_path / "fleet"
    ).to_pylist()
    assert (row["clock"], row["duration_ns"]) == (clock, duration)
    assert (row["clock_reason"] is None) == (words is None)
    assert words is None or words in row["clock_reason"]


def test_the_hours_of_a_fleet_are_those_of_sound_clocks(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.mcap", [START, START + HOUR])
    write(tmp_path / "logs" / "b.mcap", [0, START, START + HOUR])
    (tmp_path / "logs" / "c.ulg").write_bytes(firmware_log(1, later=False))
    ingest(tmp_path / "logs", tmp_path / "fleet", engine=Inline())
    text = (
        "SELECT sum(duration_ns) / 3.6e12 AS hours, count(*) FILTER (clock <> 'ok') AS bad FROM logreel.logs"
    )
    (row,) = query(text, tmp_path / "fleet").to_pylist()
    assert (row["hours"], row["bad"]) == (pytest.approx(2, abs=1e-4), 1)
    found = report(tmp_path / "fleet")
    assert sum(one.hours for one in found.hours) == pytest.approx(2, abs=1e-4)
    assert [Path(path).name for path in found.clocks] == ["b.mcap"]


def test_what_is_unknown_is_null(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.mcap", [START])
    (tmp_path / "logs" / "broken.bag").write_bytes(b"")
    ingest(tmp_path / "logs", tmp_path / "fleet", engine=Inline())
    text = "SELECT vehicle, firmware, error, format, digest FROM logreel.logs ORDER BY path"
    sound, broken = query(text, tmp_path / "fleet").to_pylist()
    assert (sound["vehicle"], sound["firmware"], sound["error"]) == (None, None, None)
    assert (broken["format"], broken["vehicle"], broken["error"]) == (None, None, "the file is empty")
