"""Detectors of faults: each planted into a sound log is found, the sound log has none, and real faults are found."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses.facts import Detection, Detector, NotAssessed, runs
from logreel.ops.health import health as health_module
from logreel.ops.health.detectors import difference
from logreel.ops.health.health import known_detectors
from logreel.schemas.ros1msg import define
from support.builders.contents import SAMPLES
from support.harness.cli_runner import Run

SECOND = 10**9
IMU, IMAGE, TF = "sensor_msgs/Imu", "sensor_msgs/CompressedImage", "tf2_msgs/TFMessage"
FIX = "sensor_msgs/NavSatFix"
#: Messages of the bag that faults are planted into: 30 s of an IMU at 50 Hz, a camera at 10 Hz, a transform at 20 Hz,
#: and positions at 5 Hz.
LENGTH = 30
Row = tuple[str, int, dict[str, Any]]


def sound(seed: int = 1) -> list[Row]:
    """Return the messages of a drive without any fault, in the order of time."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for n in range(LENGTH * 50):
        time = (100 * SECOND) + n * SECOND // 50
        values = random.normal(size=6).tolist()
        data = {
            "header": {"seq": n, "stamp": time - 5_000_000, "frame_id": "imu"},
            "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            "orientation_covariance": [0.0] * 9,
            "angular_velocity": dict(zip("xyz", values[:3], strict=True)),
            "angular_velocity_covariance": [0.0] * 9,
            "linear_acceleration": dict(zip("xyz", values[3:], strict=True)),
            "linear_acceleration_covariance": [0.0] * 9,
        }
        rows.append(("/imu", time, data))
    for n in range(LENGTH * 10):
        time = (100 * SECOND) + n * SECOND // 10
        picture = b"\xff\xd8" + random.bytes(200) + b"\xff\xd9"
        header = {"seq": n, "stamp": time - 20_000_000, "frame_id": "camera"}
        rows.append(("/camera", time, {"header": header, "format": "jpeg", "data": picture}))
    for n in range(LENGTH * 20):
        time = (100 * SECOND) + n * SECOND // 20
        transform = {
            "header": {"seq": n, "stamp": time, "frame_id": "map"},
            "child_frame_id": "base",
            "transform": {
                "translation": {"x": n * 0.1, "y": 0.0, "z": 0.0},
                "rotation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            },
        }
        rows.append(("/tf", time, {"transforms": [transform]}))
    for n in range(LENGTH * 5):
        time = (100 * SECOND) + n * SECOND // 5
        place = {"latitude": 47 + n * 1e-5 + random.normal() * 1e-7, "longitude": 8.0, "altitude": 400.0}
        more = {"status": {"status": 0}, "header": {"seq": n, "stamp": time - 9_000_000, "frame_id": "gps"}}
        rows.append(("/fix", time, {**place, **more}))
    return sorted(rows, key=lambda row: row[1])


def at(seconds: float) -> int:
    return 100 * SECOND + round(seconds * SECOND)


def between(time: int, first: float, last: float) -> bool:
    return at(first) <= time < at(last)


def silent(rows: list[Row]) -> Iterator[Row]:
    """The IMU ends after 20 s."""
    return (row for row in rows if row[0] != "/imu" or row[1] < at(20))


def gap(rows: list[Row]) -> Iterator[Row]:
    """The camera pauses for 3 s; its sequence numbers go on, as if nothing was sent."""
    skipped = 0
    for topic, time, data in rows:
        if topic == "/camera":
            if between(time, 10, 13):
                skipped += 1
                continue
            data = {**data, "header": {**data["header"], "seq": data["header"]["seq"] - skipped}}
        yield topic, time, data


def slow(rows: list[Row]) -> Iterator[Row]:
    """The IMU comes at a quarter of its rate for 10 s."""
    n = 0
    for topic, time, data in rows:
        if topic == "/imu":
            if between(time, 10, 20) and data["header"]["seq"] % 4:
                continue
            n += 1
            data = {**data, "header": {**data["header"], "seq": n}}
        yield topic, time, data


def stuck(rows: list[Row]) -> Iterator[Row]:
    """The IMU repeats one measurement from 10 to 15 s."""
    kept: dict[str, Any] = {}
    for topic, time, data in rows:
        if topic == "/imu" and between(time, 10, 15):
            kept = kept or data
            data = {**kept, "header": data["header"]}
        yield topic, time, data


def frozen(rows: list[Row]) -> Iterator[Row]:
    """The camera shows one picture from 5 to 9 s."""
    kept = b""
    for topic, time, data in rows:
        if topic == "/camera" and between(time, 5, 9):
            kept = kept or data["data"]
            data = {**data, "data": kept}
        yield topic, time, data


def clock_jump(rows: list[Row]) -> Iterator[Row]:
    """The clock of the IMU is set back by 2 s after 15 s."""
    for topic, time, data in rows:
        if topic == "/imu" and time >= at(15):
            data = {**data, "header": {**data["header"], "stamp": data["header"]["stamp"] - 2 * SECOND}}
        yield topic, time, data


def clock_drift(rows: list[Row]) -> Iterator[Row]:
    """The clock of the IMU runs slow by 5 parts per thousand."""
    for topic, time, data in rows:
        if topic == "/imu":
            stamp = data["header"]["stamp"] - (time - at(0)) // 200
            data = {**data, "header": {**data["header"], "stamp": stamp}}
        yield topic, time, data


def lost(rows: list[Row]) -> Iterator[Row]:
    """One message of the IMU in fifty is missing."""
    return (row for row in rows if row[0] != "/imu" or row[2]["header"]["seq"] % 50 != 7)


def broken_link(rows: list[Row]) -> Iterator[Row]:
    """The transform is missing for 4 s."""
    return (row for row in rows if row[0] != "/tf" or not between(row[1], 10, 14))


def astray(rows: list[Row]) -> Iterator[Row]:
    """The receiver is 10 degrees away from 10 s on."""
    for topic, time, data in rows:
        if topic == "/fix" and time >= at(10):
            data = {**data, "latitude": data["latitude"] + 10}
        yield topic, time, data


def two_trees(rows: list[Row]) -> Iterator[Row]:
    """Another publisher names frames that have no link to the map."""
    for topic, time, data in rows:
        if topic == "/tf":
            other = {**data["transforms"][0], "child_frame_id": "gripper"}
            other["header"] = {**other["header"], "frame_id": "arm"}
            data = {"transforms": [data["transforms"][0], other]}
        yield topic, time, data


FAULTS: list[tuple[Callable[[list[Row]], Iterator[Row]], str, float, float]] = [
    (silent, "silent-sensor", 20, 30),
    (gap, "gaps", 10, 13),
    (slow, "rate-drop", 10, 20),
    (stuck, "stuck-sensor", 10, 15),
    (frozen, "frozen-camera", 5, 9),
    (clock_jump, "clock", 15, 15),
    (clock_drift, "clock", 0, 30),
    (lost, "message-loss", 0.1, 29),
    (broken_link, "transforms", 10, 14),
    (two_trees, "transforms", 0, 30),
    (astray, "position-jumps", 10, 10),
]
#: Detections of other detectors that a fault causes as well.
ALSO = {"broken_link": {"gaps"}}


def written(path: Path, rows: list[Row]) -> Path:
    with logreel.create(path) as writer:
        channels = {
            topic: writer.add_channel(topic, logreel.Schema(kind, "ros1msg", define(kind).text))
            for topic, kind in (("/imu", IMU), ("/camera", IMAGE), ("/tf", TF), ("/fix", FIX))
        }
        for topic, time, data in rows:
            writer.write(channels[topic], time, data)
    return path


def test_a_sound_drive_has_no_finding(tmp_path: Path) -> None:
    found = logreel.health(written(tmp_path / "sound.bag", sound()))
    assert found.detections == ()
    assert found.not_assessed == ()
    assert len(found.clean) == len(known_detectors())


@pytest.mark.parametrize(
    ("plant", "detector", "first", "last"), FAULTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_fault_is_found_where_it_is(
    tmp_path: Path, plant: Callable[[list[Row]], Iterator[Row]], detector: str, first: float, last: float
) -> None:
    found = logreel.health(written(tmp_path / "fault.bag", list(plant(sound()))))
    serious = [one for one in found.detections if one.severity != "note"]
    assert {one.detector for one in serious} - ALSO.get(plant.__name__, set()) == {detector}
    one = next(one for one in serious if one.detector == detector)
    assert one.start == pytest.approx(at(first), abs=0.3 * SECOND)
    assert one.end == pytest.approx(at(last), abs=1.1 * SECOND)
    assert one.evidence
    assert one.threshold
    assert one.text


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_sound_samples_have_no_serious_finding(name: str) -> None:
    found = logreel.health(SAMPLES[name]())
    # The sample of ULog is the first three seconds of a flight.
    expected = ["brown-out"] if name == ".ulg" else []
    assert [one.detector for one in found.worse("warn")] == expected
    names = [name for name, _ in (*found.clean, *found.not_assessed)]
    with logreel.open(SAMPLES[name]()) as log:
        every = {detector.name for detector in known_detectors(log)}
    assert set(names) | {one.detector for one in found.detections} == every


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_cut_logs_are_assessed_as_far_as_they_go(name: str) -> None:
    data = SAMPLES[name]()
    for size in range(len(data) // 8, len(data), len(data) // 8):
        try:
            found = logreel.health(data[:size])
        except logreel.LogError:
            continue
        assert found.as_dict()["format"]


def test_offset_drift_jitter_and_jumps_of_a_clock_are_told_apart() -> None:
    random = np.random.default_rng(3)
    stamps = np.arange(1000) * SECOND // 20
    noise = (random.normal(size=1000) * 3e6).astype(np.int64)
    times = stamps + 40_000_000 + (stamps * 300e-6).astype(np.int64) + noise
    times[600:] += 2 * SECOND
    found = difference(times, stamps)
    assert found.drift == pytest.approx(300, rel=0.2)
    assert found.jitter == pytest.approx(3e6, rel=0.2)
    ((moment, size),) = found.jumps
    assert moment == times[600]
    assert size == pytest.approx(2 * SECOND, rel=0.02)


def test_runs_are_the_intervals_of_true_values() -> None:
    times = np.array([0, 1, 2, 3, 10, 11], np.int64)
    on = np.array([True, True, False, True, True, False])
    assert runs(times, on) == [(0, 1), (3, 10)]
    assert runs(times, on, gap=2) == [(0, 10)]
    assert runs(times, ~on & on) == []


def test_detectors_can_be_chosen_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.bag", list(silent(sound())))
    found = logreel.health(path, "clock")
    assert [name for name, _ in found.clean] == ["clock"]
    assert found.detections == ()
    with pytest.raises(logreel.UsageError, match="silent-sensor"):
        logreel.health(path, "silent")


def test_an_empty_log_is_not_assessed(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "empty.bag"):
        pass
    found = logreel.health(tmp_path / "empty.bag")
    assert {reason for _, reason in found.not_assessed} == {"the log is empty"}
    assert found.clean == ()


def test_detections_are_sorted_by_severity_and_chosen_by_it(tmp_path: Path) -> None:
    rows = [*silent(sound()), *(("/log", at(n / 10), {"data": "x"}) for n in range(100))]
    path = tmp_path / "a.bag"
    with logreel.create(path) as writer:
        kinds = {"/imu": IMU, "/camera": IMAGE, "/tf": TF, "/fix": FIX, "/log": "std_msgs/String"}
        channels = {
            topic: writer.add_channel(topic, logreel.Schema(kind, "ros1msg", define(kind).text))
            for topic, kind in kinds.items()
        }
        for topic, time, data in sorted(rows, key=lambda row: row[1]):
            writer.write(channels[topic], time, data)
    found = logreel.health(path)
    assert [one.severity for one in found.detections] == ["error", "note"]
    assert [one.topics for one in found.worse("error")] == [("/imu",)]
    assert found.worse("warn") == found.worse("error")
    assert len(found.worse("note")) == 2


@pytest.mark.parametrize("plant", [silent, stuck, clock_jump, two_trees], ids=lambda plant: plant.__name__)
def test_the_slice_line_of_a_detector_works_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, plant: Callable[[list[Row]], Iterator[Row]]
) -> None:
    path = written(tmp_path / "a log.bag", list(plant(sound())))
    monkeypatch.chdir(tmp_path)
    _pasted(run, path)


def _pasted(run: Run, path: Path) -> None:
    """Run each slice line that health prints, one a detector, and compare its output with the worst detection."""
    found = logreel.health(path)
    lines = [line.strip() for line in run("health", path).out.splitlines() if "logreel slice" in line]
    worst = {one.detector: one for one in reversed(found.detections)}
    shown = list(dict.fromkeys(one.detector for one in found.detections))
    assert len(lines) == len(shown) > 0
    start, end = found.start_ns or 0, found.end_ns or 0
    for line, one in zip(lines, [worst[name] for name in shown], strict=True):
        words = shlex.split(line)
        assert words[:2] == ["logreel", "slice"]
        done = run(*words[1:])
        assert done.code in (0, 3), done.err
        with logreel.open(words[-1]) as part:
            assert part.start is not None
            assert part.end is not None
            for topic in one.topics:
                # The cut begins before the detection and ends after it, as far as the channel has messages there.
                with logreel.open(path) as log:
                    times = log[topic].times
                inside = times[(times >= max(one.start, start)) & (times <= min(one.end, end))]
                assert np.isin(inside, part[topic].times if topic in part else []).all()


@pytest.mark.parametrize("name", ["ekf_failure", "battery_brownout"])
def test_the_slice_lines_of_real_logs_work_as_they_are(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _pasted(run, shared / f"data/ulog/{name}.ulg")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ekf_failure", {"estimator", "motor-loss", "vibration"}),
        ("battery_brownout", {"brown-out"}),
    ],
)
def test_real_logs_show_the_fault_that_they_are_named_after(
    shared: Path, name: str, expected: set[str]
) -> None:
    found = logreel.health(shared / f"data/ulog/{name}.ulg")
    assert expected <= {one.detector for one in found.worse("error")}


def late(rows: list[Row], delay: Callable[[int], int]) -> Iterator[Row]:
    """The stamps of the IMU are *delay* ns earlier than the times of logging, by number of the message."""
    for topic, time, data in rows:
        if topic == "/imu":
            stamp = time - delay(data["header"]["seq"])
            data = {**data, "header": {**data["header"], "stamp": stamp}}
        yield topic, time, data


@pytest.mark.parametrize(
    ("delay", "word"),
    [
        (lambda _: 5 * SECOND, "differ from the times of logging by 5.0 s"),
        (lambda n: n % 7 * 30_000_000, "jitter"),
    ],
    ids=["offset", "jitter"],
)
def test_offset_and_jitter_of_a_clock_are_notes(
    tmp_path: Path, delay: Callable[[int], int], word: str
) -> None:
    found = logreel.health(written(tmp_path / "a.bag", list(late(sound(), delay))), "clock")
    (one,) = found.detections
    assert one.severity == "note"
    assert word in one.text
    assert (one.start, one.end) == (at(0), at(LENGTH - 0.02))
    assert set(one.evidence) == {"offset_ns", "drift_ppm", "jitter_ns", "jumps"}


@pytest.mark.parametrize("every", [2, 3, 5])
def test_messages_that_are_logged_late_now_and_then_are_no_jump(tmp_path: Path, every: int) -> None:
    rows = list(late(sound(), lambda n: 200_000_000 if n % every == 0 or 500 < n < 506 else 1_000_000))
    found = logreel.health(written(tmp_path / "a.bag", rows), "clock")
    assert found.worse("warn") == []


def test_all_rate_drops_of_a_channel_are_one_detection(tmp_path: Path) -> None:
    def twice(rows: list[Row]) -> Iterator[Row]:
        for topic, time, data in rows:
            is_slow = between(time, 5, 10) or between(time, 18, 25)
            if topic != "/imu" or not is_slow or data["header"]["seq"] % 3 == 0:
                yield topic, time, data

    found = logreel.health(written(tmp_path / "a.bag", list(twice(sound()))), "rate-drop")
    (one,) = found.detections
    assert len(one.evidence["intervals_ns"]) == 2
    assert "(2 times, here most of all)" in one.text
    assert (one.start, one.end) == (
        pytest.approx(at(5), abs=0.3 * SECOND),
        pytest.approx(at(25), abs=1.1 * SECOND),
    )


def test_detectors_are_chosen_by_patterns_and_those_of_other_formats_are_not_assessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.bag", sound())
    names = [name for name, _ in logreel.health(path, "*-sensor").clean]
    assert names == ["silent-sensor", "stuck-sensor"]
    found = logreel.health(path, ["rc-loss", "gaps"])
    assert found.not_assessed == (("rc-loss", "it is for logs of the format ulog"),)
    # Packages may have detectors of the same name for their formats.
    both = ("ulog", "vehicle")
    monkeypatch.setattr(health_module, "detector_names", lambda: {"vibration": both})
    found = logreel.health(path, ["vibration"])
    assert found.not_assessed == (("vibration", "it is for logs of the format ulog or vehicle"),)
    monkeypatch.undo()
    with pytest.raises(logreel.UsageError, match="nearest: vibration"):
        logreel.health(path, ["vibrations"])


def test_a_failing_detector_costs_its_own_line_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    def broken(log: logreel.Log) -> Iterator[Detection | NotAssessed]:
        yield from ()
        raise ValueError("need at least one array to stack")

    paths = [written(tmp_path / f"{name}.bag", sound()) for name in "ab"]
    known = health_module.known_detectors
    spoiled = Detector("gaps", "breaks", broken)
    monkeypatch.setattr(
        health_module,
        "known_detectors",
        lambda log=None: [spoiled if one.name == "gaps" else one for one in known(log)],
    )
    found = logreel.health(paths[0])
    assert found.failed == (("gaps", "ValueError: need at least one array to stack"),)
    assert found.detections == ()
    assert len(found.clean) == len(known()) - 1
    done = run("health", *paths)
    assert done.code == 3
    assert done.out.count("gaps: failed and found nothing, ValueError") == 2
    assert done.out.count("ok    clock") == 2
    assert "the detector gaps failed" in done.err
    assert run("health", paths[0], "--json").json["failed"][0]["detector"] == "gaps"
    faulty = written(tmp_path / "c.bag", list(silent(sound())))
    assert run("health", faulty).code == 4


def test_findings_stand_together_with_their_bound_and_command_once(tmp_path: Path, run: Run) -> None:
    def both(rows: list[Row]) -> Iterator[Row]:
        return (row for row in rows if row[0] in ("/tf", "/fix") or not between(row[1], 5, 8))

    out = run("health", written(tmp_path / "a.bag", list(both(sound()))), "--detector", "gaps").out
    assert out.count(" has a gap of ") == 2
    assert out.count("  gaps\n") == out.count("bound ") == out.count("logreel slice") == 1


def test_several_logs_end_with_a_table(tmp_path: Path, run: Run) -> None:
    paths = [written(tmp_path / "a.bag", sound()), written(tmp_path / "b.bag", list(silent(sound())))]
    head, first, second = run("health", *paths).out.splitlines()[-3:]
    assert head.split() == ["log", "error", "findings"]
    assert first.split() == [str(paths[0]), "nothing", "found"]
    assert second.split() == [str(paths[1]), "1", "silent-sensor"]
