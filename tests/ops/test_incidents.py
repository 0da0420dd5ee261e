"""What went wrong in a log, worst first, from one place: detectors, checks, texts, problems, the summary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import logreel
from logreel.log.log import Log
from logreel.meaning.curves import FUNCTIONS
from logreel.ops.inspect.incidents import Incidents, incidents, looked_at
from support.builders.crash import ARMED, FAILSAFE, FALL, LOW, SAID, START, TOLD, crash
from support.samples.carla.drive import drive
from support.samples.ulog.builder import flight

NS = 10**9


def found(path: Path, content: bytes) -> Iterator[tuple[Log, Incidents]]:
    path.write_bytes(content)
    with logreel.open(path) as log:
        yield log, incidents(log)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Log, Incidents]]:
    yield from found(tmp_path_factory.mktemp("crash") / "crash.ulg", crash())


def test_faults_come_worst_first_with_their_intervals_and_curves(crashed: tuple[Log, Incidents]) -> None:
    log, result = crashed
    told = [(one.text, one.severity, one.origin) for one in result.faults]
    assert told == [
        (SAID, "error", "text"),
        ("battery_status: 3.10 V a cell", "error", "health"),
        ("failsafe", "error", "health"),
        (TOLD, "warn", "text"),
    ]
    spans = [[(begin - log.start) / NS for begin in one.spans[0]] for one in result.faults]
    expected = [[FALL, FALL], [LOW, FALL - 0.1], [FAILSAFE, FALL], [FALL + 0.05, FALL + 0.05]]
    assert spans == [pytest.approx(pair, abs=0.11) for pair in expected]
    series = [{(s.topic, s.field) for s in one.series} for one in result.faults]
    attitude = {("vehicle_attitude", "q")}
    assert series == [
        attitude,
        {("battery_status", "voltage_v")},
        {("vehicle_status", "failsafe")},
        attitude,
    ]
    assert "3.3 V a cell" in result.faults[1].source
    assert next(one.as_dict()["spans_ns"] for one in result) == [[FALL * NS + START * 1000] * 2]


def test_the_module_that_px4_writes_before_a_text_is_no_part_of_it() -> None:
    with logreel.open(flight(40.0)) as log:
        assert any(line.text.startswith("[gps] RTCM") for line in log.text)
        assert [one.text for one in incidents(log).faults if "RTCM" in one.text] == [
            "RTCM: CRC failed, 2 of 97"
        ]


def test_a_text_about_an_accelerometer_is_shown_by_its_curves() -> None:
    with logreel.open(flight(40.0)) as log:
        (clipping,) = [one for one in incidents(log).faults if one.text.startswith("Accel #1 clipping")]
    assert {(series.topic, series.function) for series in clipping.series} == {("sensor_combined", "")}
    assert all("acceler" in series.field for series in clipping.series)


def test_events_are_told_by_time_and_are_no_faults(crashed: tuple[Log, Incidents]) -> None:
    log, result = crashed
    told = [(one.text, (one.spans[0][0] - log.start) / NS, one.severity) for one in result.events]
    assert told[0] == ("Armed begins", ARMED, None)
    assert ("Mode Return", FAILSAFE, None) in told
    assert [at for _, at, _ in told] == sorted(at for _, at, _ in told)


def test_what_a_text_and_the_summary_say_of_one_moment_is_one_fault(tmp_path: Path) -> None:
    for _, result in found(tmp_path / "drive.log", drive().bytes()):
        collisions = result.summary["events"]["collisions"]
        assert collisions.times
        assert not [one for one in result.faults if one.text.startswith("collisions:")]
        # Both say the same: the first actor hits the second, and the second the first.
        (hit,) = [one for one in result.faults if " hits " in one.text]
        assert any(" hits " in more for more in hit.more)


def test_damage_has_the_time_around_it_and_the_time_between_messages(tmp_path: Path) -> None:
    content = crash(sound=True)
    for log, result in found(tmp_path / "cut.ulg", content[: len(content) * 2 // 3 - 5]):
        worst = result.faults[0]
        assert (worst.origin, worst.severity) == ("problems", "error")
        assert worst.spans
        assert log.start is not None
        assert log.end is not None
        assert log.start < worst.spans[0][0] <= log.end
        assert {s.function for s in worst.series} == {"interval"}
        assert {s.unit for s in worst.series} == {FUNCTIONS["interval"].unit("")}


def test_a_sound_log_says_what_was_looked_at(tmp_path: Path) -> None:
    for _, result in found(tmp_path / "sound.ulg", crash(sound=True)):
        assert not result.faults
        assert looked_at(result).startswith(f"No fault was found by {len(result.health.clean)} detectors")
        assert "power" in looked_at(result)


def test_large_channels_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "crash.ulg"
    path.write_bytes(crash())
    with logreel.open(path) as log:
        result = incidents(log, max_messages=300)
    assert {fact.key for fact in result.summary["left_out"]} == {"battery_status", "vehicle_attitude"}
    assert "failsafe" in [one.text for one in result.faults]
    assert not [one for one in result.faults if one.text.startswith("battery_status")]
