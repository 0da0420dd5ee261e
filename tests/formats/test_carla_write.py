"""Written CARLA recordings: the plain reader finds the packets that the recorder would write."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import logreel
from conftest import SHARED
from support.builders.contents import content
from support.harness.killed import killed
from support.harness.rewriting import rewrite
from support.oracles import carla as oracle
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.records import RELEASES

SAMPLES = sorted((SHARED / "data/carla").rglob("*.log"))
HEADER = {"version": 1, "map": "Town01", "date": 1_700_000_001}


def kind(name: str) -> logreel.Schema:
    return logreel.Schema(name, "carla")


def like(log: logreel.Log) -> dict[str, object]:
    """Return the options that write a recording like *log*."""
    metadata = log.metadata
    return {
        "version": metadata["format_version"],
        "map": metadata["map"],
        "date": metadata["date_unix"],
        "engine": metadata["engine"],
    }


def sound(data: bytes) -> oracle.Recording:
    """Return the recording as the plain reader reads it; it must be complete, with frames as recorded."""
    found = oracle.read(data)
    assert (found.stop, found.why, found.outside) == (len(data), "", [])
    assert all(frame.ended for frame in found.frames)
    assert [p.fault for frame in found.frames for p in frame.packets if p.fault] == []
    return found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples_written_packet_by_packet_keep_their_content(path: Path, tmp_path: Path) -> None:
    log = logreel.open(path)
    assert rewrite(log, tmp_path / "a.rec", **like(log)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_is_written_by_fields(release: str, tmp_path: Path) -> None:
    made = eventful(release)
    log, out = logreel.open(made.bytes()), tmp_path / "a.rec"
    wheels = 4 * RELEASES[release].wheel_floats
    with logreel.create(out, **like(log), wheel_bytes=wheels) as w:
        plain = {ch.topic: ch for ch in log.channels.values() if not ch.topic.startswith("packet_")}
        numbers = {t: w.add_channel(t, kind(t), {"packet": ch.metadata["packet"]}) for t, ch in plain.items()}
        for m in log.messages(list(plain), order="file"):
            w.write(numbers[m.channel.topic], m.time, m.decode())
    found, due = sound(out.read_bytes()), sound(made.bytes())
    assert (found.version, found.date, found.town, found.wide) == (due.version, due.date, due.town, due.wide)
    raw = {ch.metadata["packet"] for ch in log.channels.values() if ch.topic.startswith("packet_")}
    for frame, other in zip(found.frames, due.frames, strict=True):
        assert (frame.number, frame.duration, frame.elapsed) == (other.number, other.duration, other.elapsed)
        assert [(p.number, p.payload) for p in frame.packets] == [
            (p.number, p.payload) for p in other.packets if p.number not in raw
        ]
    if not raw:
        assert out.read_bytes() == made.bytes()


def test_frames_are_added_by_the_times_of_packets(tmp_path: Path) -> None:
    path, n = tmp_path / "a.rec", 500
    times = np.arange(n) * 50_000_001
    records = pa.table(
        {
            "time": np.repeat(times, 2),
            "id": np.tile([7, 8], n),
            "location": [{"x": float(i), "y": 0.0, "z": 1.0} for i in range(2 * n)],
            "rotation": [{"roll": 0.0, "pitch": 0.0, "yaw": float(i % 90)} for i in range(2 * n)],
        }
    )
    with logreel.create(path, **HEADER) as w:
        actors = w.add_channel("actors", kind("actors"))
        w.write(actors, 0, {"records": [{"id": i, "type": 1, "description": "vehicle.x"} for i in (7, 8)]})
        w.write_table(w.add_channel("position", kind("position")), records)
        w.write(w.add_channel("collisions", kind("collisions")), int(times[-1]), {"records": [{"actor1": 7}]})
    found = sound(path.read_bytes())
    assert (found.version, found.town, found.date) == (1, "Town01", 1_700_000_001)
    assert [frame.number for frame in found.frames] == list(range(1, n + 1))
    assert [round(frame.elapsed * 1e9) for frame in found.frames] == times.tolist()
    assert [frame.duration for frame in found.frames] == [
        *(b.elapsed - a.elapsed for a, b in zip(found.frames, found.frames[1:], strict=False)),
        -1.0,
    ]
    assert [len(frame.records("Position")) for frame in found.frames] == [2] * n
    assert [p.name for p in found.frames[0].packets] == ["EventAdd", "Position"]
    assert found.frames[-1].records("Collision")[0]["actor1"] == 7
    log = logreel.open(path)
    assert not log.problems
    assert log.actor(7).trajectory().num_rows == n
    assert log["position"].times.tolist() == times.tolist()


def test_single_and_batched_writes_give_the_same_file(tmp_path: Path) -> None:
    """Durations are written when the next frame begins, however packets are batched."""

    def write(name: str, flush: int) -> bytes:
        with logreel.create(tmp_path / name, flush_every=None, **HEADER) as w:
            walker, position = (w.add_channel(t, kind(t)) for t in ("walker", "position"))
            for i in range(60):
                w.write(walker, i // 3 * 10**8, {"records": [{"id": i}]})
                w.write(position, i // 3 * 10**8, {})
                if flush and i % flush == 0:
                    w.flush()
        return (tmp_path / name).read_bytes()

    whole = write("a.rec", 0)
    assert write("b.rec", 1) == write("c.rec", 4) == whole
    assert [len(frame.packets) for frame in sound(whole).frames] == [6] * 20


def test_given_frames_keep_number_and_duration(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    with logreel.create(path, **HEADER) as w:
        frames, walker = (w.add_channel(t, kind(t)) for t in ("frames", "walker"))
        w.write(frames, 0, {"frame": 5, "duration": 0.25})
        w.write(walker, 0, {"records": [{"id": 1, "speed": 2.0}]})
        w.write(walker, 10**9, {"frame": 99, "records": []})
        w.write(frames, 2 * 10**9, {"frame": 0, "duration": 1.0})
        w.write(walker, 2 * 10**9, {})
        w.write(frames, 3 * 10**9, {"frame": 20, "elapsed": 3.0})
    found = sound(path.read_bytes())
    assert [(f.number, f.duration, f.elapsed, len(f.packets)) for f in found.frames] == [
        (5, 0.25, 0.0, 1), (6, 1.0, 1.0, 1), (7, 1.0, 2.0, 1), (20, 0.0, 3.0, 0),
    ]  # fmt: skip


def test_header_can_be_set_until_the_first_packet(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.rec") as w:
        w.metadata("map", "Town05")
        w.metadata("format_version", 2)
        w.metadata("date_unix", 1_600_000_000)
        w.write(w.add_channel("walker", kind("walker")), 0, {})
        w.flush()
        with pytest.raises(logreel.UsageError, match="is written already"):
            w.metadata("map", "Town06")
        with pytest.raises(logreel.UnsupportedError, match="but format_version, date_unix, map, date"):
            w.metadata("weather", "rain")
    found = sound((tmp_path / "a.rec").read_bytes())
    assert (found.version, found.town, found.date) == (2, "Town05", 1_600_000_000)


def test_header_accepts_text_from_the_command_line(tmp_path: Path) -> None:
    for name, text in (("date_unix", "1600000000"), ("date", "2020-09-13T12:26:40+00:00")):
        with logreel.create(tmp_path / "a.rec", force=True) as w:
            w.metadata("format_version", "2")
            w.metadata(name, text)
            for wrong in ("yesterday", "", "2020-13-01"):
                with pytest.raises(logreel.UsageError):
                    w.metadata(name, wrong)
        found = sound((tmp_path / "a.rec").read_bytes())
        assert (found.version, found.date) == (2, 1_600_000_000)
    log = logreel.open(tmp_path / "a.rec")
    assert log.utc_offset == 1_600_000_000 * 10**9
    assert logreel.known_formats()["carla"].like(log.metadata) == {
        "version": 2,
        "map": "",
        "date": 1_600_000_000,
        "engine": "UE4",
    }


def test_invalid_packets_and_channels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    for wrong in ({"engine": "UE6"}, {"wheel_bytes": 40}, {"version": 70_000}, {"map": "x" * 40_000}):
        with pytest.raises(logreel.UsageError):
            logreel.create(path, **wrong)
    assert os.listdir(tmp_path) == []
    with logreel.create(path, flush_every=None) as w:
        for topic, metadata, why in (
            ("car", {}, "has no channel 'car'"),
            ("packet_12", {}, "kind 12 is 'velocity'"),
            ("packet_1", {}, "has no channel 'packet_1'"),
            ("position", {"packet": 7}, "kind 7 is 'traffic_lights'"),
            ("packet_140", {"packet": 141}, "kind 141 is 'packet_141'"),
            ("packet_256", {}, "has no channel"),
        ):
            with pytest.raises(logreel.UsageError, match=why):
                w.add_channel(topic, kind(topic), metadata)
        with pytest.raises(logreel.DefinitionError, match="encoding 'carla'"):
            w.add_channel("position", logreel.Schema("position", "ros1msg"))
        numbers = {
            t: w.add_channel(t, kind(t))
            for t in ("walker", "actors", "wheels", "platform_time", "packet_140")
        }
        with pytest.raises(logreel.UsageError, match="are those of another channel"):
            w.add_channel("doors", kind("doors"), {"packet": 21})
        for topic, payload in (
            ("walker", b"\1\0" + bytes(7)),
            ("walker", b""),
            ("actors", b"\1\0" + bytes(20)),
            ("wheels", b"\1\0" + bytes(20)),
            ("platform_time", bytes(9)),
        ):
            with pytest.raises(logreel.UsageError, match=f"{len(payload)} bytes at 5 ns .*: 1 left out"):
                write_and_flush(w, numbers[topic], payload)
            w.write(numbers["walker"], 5, b"\1\0" + bytes(8))
        w.write(numbers["packet_140"], 5, b"whatever")
        with pytest.raises(logreel.UsageError, match="no field 'speed'"):
            w.write(numbers["platform_time"], 5, {"speed": 1.0})
    (frame,) = sound(path.read_bytes()).frames
    assert len(frame.records("AnimWalker")) == 5
    assert frame.packets[-1].payload == b"whatever"


def write_and_flush(w: logreel.Writer, channel: int, payload: bytes) -> None:
    w.write(channel, 5, payload)
    w.flush()


# ------------------------------------------------------------------------------------------------------ crashes

CHANNELS = """
    position = w.add_channel("position", logreel.Schema("position", "carla"))
    actors = w.add_channel("actors", logreel.Schema("actors", "carla"))
"""
WRITE = """
    w.write(actors, i * 10**7, {"records": [{"id": i, "description": "x" * (i % 50)}]})
    w.write(position, i * 10**7, {"records": [{"id": i}] * (i % 3)})
"""


@pytest.mark.parametrize("acknowledged", [1, 30])
def test_killed_recorder_keeps_flushed_packets(tmp_path: Path, acknowledged: int) -> None:
    path, due = killed(tmp_path / "a.rec", "", CHANNELS, WRITE, acknowledged)
    log = logreel.open(path)
    for topic in ("actors", "position", "frames"):
        found = log[topic].times.tolist()
        assert found == [i * 10**7 for i in range(len(found))]
        assert len(found) >= due
    logreel.recover(path)
    assert content(tmp_path / "a.rec") == content(path)
    assert not logreel.open(tmp_path / "a.rec").problems
    sound((tmp_path / "a.rec").read_bytes())


def test_truncated_or_zeroed_recording_keeps_flushed_packets(tmp_path: Path) -> None:
    w, sizes = logreel.create(tmp_path / "a.rec", flush_every=None, **HEADER), []
    position, actors = (w.add_channel(t, kind(t)) for t in ("position", "actors"))
    for i in range(9):
        w.write(actors, i * 10**7, {"records": [{"id": i, "description": "x" * i}]})
        w.write(position, i * 10**7, {"records": [{"id": i}] * (i % 3)})
        w.flush()
        sizes.append((tmp_path / "a.rec.active").stat().st_size)
    w.leave()
    data = (tmp_path / "a.rec.active").read_bytes()
    for cut in range(sizes[0], len(data) + 1, 7):
        due = sum(size <= cut for size in sizes)
        for tail in (b"", bytes(5000)):
            log = logreel.open(data[:cut] + tail)
            for topic in ("actors", "position", "frames"):
                assert log[topic].times.tolist()[:due] == [i * 10**7 for i in range(due)], (cut, len(tail))


def test_full_disk_leaves_a_readable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.write, [1 << 40]

    def write(handle: int, data: memoryview) -> int:
        done = min(len(data), max(left[0], 0))
        left[0] -= len(data)
        if not done:
            raise OSError(errno.ENOSPC, "full")
        return real(handle, data[:done])

    monkeypatch.setattr(os, "write", write)
    w = logreel.create(tmp_path / "a.rec", flush_every=None)
    walker = w.add_channel("walker", kind("walker"))
    for i in range(10):
        w.write(walker, i * 10**7, {"records": [{"id": i}]})
    w.flush()
    left[0] = 60
    for i in range(10, 20):
        w.write(walker, i * 10**7, {"records": [{"id": i}]})
    with pytest.raises(logreel.LogError, match="No space left"):
        w.close()
    assert os.listdir(tmp_path) == ["a.rec.active"]
    log = logreel.open(tmp_path / "a.rec.active")
    assert [p.code for p in log.problems if p.lost] == []
    assert log["walker"]["id"].tolist() == list(range(10))


def test_recording_without_frames_is_valid(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.rec", **HEADER) as w:
        w.add_channel("walker", kind("walker"))
    assert (tmp_path / "a.rec").read_bytes() == Builder(town="Town01", date=1_700_000_001).bytes()
    assert struct.unpack_from("<H", (tmp_path / "a.rec").read_bytes())[0] == 1
