"""Continuing of CARLA recordings: frames go on after the last one, everything else stays byte for byte."""

from __future__ import annotations

import itertools
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from conftest import SHARED
from logreel.ops.record import record
from support.oracles import carla as oracle
from support.samples.carla.builder import eventful
from support.samples.carla.records import RELEASES

SAMPLES = sorted((SHARED / "data/carla").rglob("*.log"))
STEP = 50_000_000


def kind(name: str) -> logreel.Schema:
    return logreel.Schema(name, "carla")


def sound(path: Path) -> oracle.Recording:
    """Return the recording as the plain reader reads it; it must be complete, with frames as recorded."""
    found = oracle.read(path.read_bytes())
    assert (found.stop, found.why, found.outside) == (path.stat().st_size, "", [])
    assert all(frame.ended for frame in found.frames)
    return found


def frames(path: Path) -> list[tuple[int, float, float]]:
    return [(frame.number, frame.duration, frame.elapsed) for frame in sound(path).frames]


def drive(path: Path, numbers: range, mode: str = "a", base: int = 0, **options: Any) -> None:
    """Write a frame of *numbers* each, which is 50 ms long, by the clock that began *base* ns before."""
    with logreel.create(path, mode=mode, **options) as w:
        actors, position = (w.add_channel(name, kind(name)) for name in ("actors", "position"))
        if numbers[0] == 0:
            w.write(actors, 0, {"records": [{"id": 7, "type": 1, "description": "vehicle.mini.cooper"}]})
        for n in numbers:
            here = {"id": 7, "location": {"x": 50.0 * n, "y": 0.0, "z": 30.0}}
            w.write(position, n * STEP - base, {"records": [here]})


OPTIONS = {"map": "Town05", "date": 1_700_000_000}


def test_continued_recording_has_the_bytes_of_one_written_at_once(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.rec", tmp_path / "whole.rec"
    drive(path, range(100), "w", **OPTIONS)
    drive(path, range(100, 200))
    drive(path, range(200, 201))
    drive(whole, range(201), "w", **OPTIONS)
    assert path.read_bytes() == whole.read_bytes()


def test_recording_by_a_clock_that_began_again_follows_the_last_frame(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.rec", tmp_path / "whole.rec"
    drive(path, range(100), "w", **OPTIONS)
    # A recorder that starts again counts times and frames from the beginning.
    drive(path, range(100, 200), base=100 * STEP)
    drive(path, range(200, 300), base=200 * STEP, shift=200 * STEP)
    drive(whole, range(300), "w", **OPTIONS)
    assert path.read_bytes() == whole.read_bytes()


def test_recording_says_that_times_were_increased(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(10), "w", **OPTIONS)
    data = {"records": [{"id": 7, "location": {"x": 1.0}}]}
    lines = [json.dumps({"topic": "position", "time_ns": n * STEP, "data": data}) for n in range(3)]
    done = record(lines, path, mode="a")
    assert "packets were written 0.5 s later than given: they follow the last frame" in done.notes
    assert logreel.open(path)["position"].times.tolist() == [n * STEP for n in range(13)]


def test_packets_at_the_time_of_the_last_frame_belong_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(3), "w", **OPTIONS)
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("walker", kind("walker")), 2 * STEP, {"records": [{"id": 9, "speed": 2.0}]})
    assert [[p.number for p in frame.packets] for frame in sound(path).frames] == [[2, 6], [6], [6, 9]]
    assert len(frames(path)) == 3


def test_numbers_durations_and_times_of_given_frames_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(10), "w", **OPTIONS)
    second = logreel.open(path)
    before = frames(path)
    with logreel.create(path, mode="a") as w:
        numbers = {
            ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in second.channels.values()
        }
        for message in second.messages(order="file"):
            w.write(numbers[message.channel.topic], message.time, bytes(message.data))
    after = frames(path)
    assert len(after) == 20
    assert [number for number, _, _ in after] == list(range(1, 21))
    assert [elapsed for _, _, elapsed in after] == pytest.approx([0.05 * n for n in range(20)])
    assert after[:9] == before[:9]
    # The duration of a frame is known when the next one begins.
    assert before[9][1] == -1
    for one, following in itertools.pairwise(after):
        assert one[2] + one[1] == following[2]
    assert after[-1][1] == -1
    log = logreel.open(path)
    assert (log.start, log.end) == (0, round(after[-1][2] * 1e9))


def test_actors_of_the_old_part_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(10), "w", **OPTIONS)
    drive(path, range(10, 30))
    log = logreel.open(path)
    assert log.actor(7).trajectory().num_rows == 30
    assert log.actor(7).description == "vehicle.mini.cooper"
    with logreel.create(path, mode="a") as w:
        collisions = w.add_channel("collisions", kind("collisions"))
        w.write(collisions, 30 * STEP, {"records": [{"actor1": 7, "actor2": 7}]})
    assert "vehicle.mini.cooper" in str(logreel.carla.collisions(logreel.open(path)))


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_is_continued_in_its_own_layout(release: str, tmp_path: Path) -> None:
    continue_with_itself(eventful(release).bytes(), tmp_path)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_sample_is_continued_with_itself(path: Path, tmp_path: Path) -> None:
    assert not logreel.open(path).problems
    continue_with_itself(path.read_bytes(), tmp_path)


def continue_with_itself(data: bytes, folder: Path) -> None:
    """Append all packets of a recording to it, with later times, and compare them with the old ones."""
    path = folder / "a.rec"
    path.write_bytes(data)
    log, before = logreel.open(data), sound(path)
    delta = (log.end or 0) + 10**9
    wheels = log.metadata.get("wheel_bytes", 48)
    with logreel.create(path, mode="a", wheel_bytes=wheels) as w:
        numbers = {ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in log.channels.values()}
        for message in log.messages(order="file"):
            w.write(numbers[message.channel.topic], message.time + delta, bytes(message.data))
    after, reread = sound(path), logreel.open(path)
    assert not reread.problems
    assert not reread.verify()
    assert reread.metadata == log.metadata
    assert reread.version == log.version
    assert reread.end == pytest.approx((log.end or 0) + delta, abs=1000)
    assert after.wide == before.wide
    last = before.frames[-1]
    # Only the duration of the last frame may differ from the old file.
    place = log["frames"].log.index.offsets(log["frames"].number)[-1] + 8
    new = path.read_bytes()
    assert new[:place] == data[:place]
    assert new[place + 8 : len(data)] == data[place + 8 :]
    n = len(before.frames)
    assert len(after.frames) == 2 * n
    assert after.frames[n - 1].duration == pytest.approx(
        delta / 1e9 + before.frames[0].elapsed - last.elapsed
    )
    for old, one in zip(before.frames, after.frames[n:], strict=True):
        assert one.number == old.number + last.number + 1 - before.frames[0].number
        assert one.elapsed == pytest.approx(old.elapsed + delta / 1e9)
        assert [(p.number, p.payload) for p in one.packets] == [(p.number, p.payload) for p in old.packets]


def test_recording_without_frames_is_continued(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.rec", tmp_path / "whole.rec"
    with logreel.create(path, **OPTIONS):
        pass
    drive(path, range(5))
    drive(whole, range(5), "w", **OPTIONS)
    assert path.read_bytes() == whole.read_bytes()


def test_packets_after_the_last_frame_end_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(3), "w", **OPTIONS)
    path.write_bytes(path.read_bytes() + struct.pack("<BIH", 9, 2, 0))
    old = path.read_bytes()
    drive(path, range(3, 6))
    log = logreel.open(path)
    assert not log.problems
    assert len(log["position"]) == 6
    assert np.all(np.diff(log["frames"]["elapsed"]) > 0)
    assert old[-7:] in path.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-5],
        lambda data: data[:-40],
        lambda data: data.replace(b"\n", b"\r\n") if b"\n" in data else data[:-1],
        lambda data: data[:62] + b"\xff" * 50 + data[112:],
    ],
    ids=["no end", "cut", "text mode", "garbage"],
)
def test_damaged_recordings_are_refused(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "a.rec"
    path.write_bytes(change(eventful("0.9.15").bytes()))
    data = path.read_bytes()
    assert logreel.open(path).problems
    with pytest.raises(logreel.LogError) as error:
        logreel.create(path, mode="a")
    assert re.search(r"logreel\.recover", str(error.value))
    assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["a.rec"]


def test_options_that_the_recording_contradicts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(3), "w", **OPTIONS)
    data = path.read_bytes()
    for options in (
        {"map": "Town01"},
        {"date": 1},
        {"version": 2},
        {"engine": "UE5"},
        {"wheel_bytes": 5},
        {"shift": 1 << 70},
    ):
        with pytest.raises(logreel.UsageError):
            logreel.create(path, mode="a", **options)
    with (
        logreel.create(path, mode="a", **OPTIONS) as w,
        pytest.raises(logreel.UsageError, match="written already"),
    ):
        w.metadata("map", "Town01")
    assert path.read_bytes() == data


def test_packets_of_another_layout_are_refused_in_a_continued_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(3), "w", **OPTIONS)
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("position", kind("position")), 3 * STEP, b"no packet")
        with pytest.raises(logreel.UsageError, match="are no packet of 'position'"):
            w.flush()
    assert len(logreel.open(path)["position"]) == 3


@pytest.mark.parametrize("time", [9 * 10**18 + 1, -9 * 10**18 - 1])
def test_times_that_do_not_fit_are_refused(tmp_path: Path, time: int) -> None:
    path = tmp_path / "a.rec"
    drive(path, range(3), "w", **OPTIONS)
    with logreel.create(path, mode="a") as w:
        position = w.add_channel("position", kind("position"))
        with pytest.raises(logreel.UsageError, match="left out"):
            w.write(position, time, b"\0\0")
        w.write(position, 0, b"\0\0")
    assert logreel.open(path)["position"].times.tolist() == [0, STEP, 2 * STEP, 3 * STEP]
