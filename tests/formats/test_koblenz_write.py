"""Written Koblenz logs have the bytes of the description, checked with the plain reader."""

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
from logreel.formats.koblenz import framing as time_index
from support.builders.contents import content
from support.harness.killed import killed
from support.harness.rewriting import rewrite
from support.oracles import koblenz as oracle
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.drive import drive

SAMPLES = sorted((SHARED / "data/koblenz").glob("*.log"))
#: Whose index is wrong or empty, or that were damaged.
UNSOUND = {"k03_truncated", "k04_wrong_index", "k05_index_empty", "k08_unknown_type_version_mark"}
MS = 10**6


def kind(name: str) -> logreel.Schema:
    return logreel.Schema(name, "koblenz")


def seconds_of(data: bytes) -> list[int]:
    """Return the time index that a file must have, from its messages."""
    rows = oracle.walk(data).rows
    last = max((row.ms for row in rows), default=0.0)
    found: list[int] = []
    while rows and len(found) <= (last - rows[0].ms) // 1000:
        found.append(next(row.at for row in rows if row.ms >= rows[0].ms + 1000 * len(found)))
    return found


def entries(data: bytes) -> list[int]:
    count = struct.unpack_from("<I", data, 8)[0]
    return list(struct.unpack_from(f"<{count}q", data, 12))


def rows(data: bytes) -> list[tuple[int, int, float, bytes]]:
    """Return type, version, time and payload of each message, read by the plain reader."""
    found = oracle.walk(data)
    assert not found.lost
    return [(r.type, r.version, r.ms, data[r.at + 21 : r.end]) for r in found.rows]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_rewritten_samples_equal_source(path: Path, tmp_path: Path) -> None:
    data, log = path.read_bytes(), logreel.open(path)
    due = oracle.walk(data)
    messages = [(r.type, r.version, r.ms, data[r.at + 21 : r.end]) for r in due.rows]
    for name, verb in (("slice", logreel.slice), ("recover", logreel.recover), ("sort", logreel.sort)):
        out = tmp_path / f"{name}.vel"
        done = verb(path, out)
        made = out.read_bytes()
        assert done.messages == len(due.rows) == log.message_count
        assert content(out) == content(path)
        found = logreel.open(out)
        assert not found.problems
        assert found.metadata["size_reading"] == log.metadata["size_reading"] == oracle.walk(made).reading
        if name == "sort":
            assert sorted(rows(made)) == sorted(messages)
        else:
            assert rows(made) == messages
            assert (made == data) == (path.stem not in UNSOUND)
        if made != data:
            assert entries(made) == seconds_of(made)
    recovered = logreel.recover(path, tmp_path / "again.vel")
    assert [(one.offset, one.offset + one.size) for one in recovered.lost] == due.lost
    again = rewrite(log, tmp_path / "one.vel", size_reading=log.metadata["size_reading"])
    assert rows(again.read_bytes()) == messages
    assert entries(again.read_bytes()) == seconds_of(again.read_bytes())


def test_every_type_is_written_from_fields(tmp_path: Path) -> None:
    path, source = tmp_path / "a.vel", logreel.open(drive(0.3))
    with logreel.create(path) as w:
        numbers = {ch.topic: w.add_channel(ch.topic, kind(ch.schema.name)) for ch in source.channels.values()}
        for m in source.messages(order="file"):
            w.write(numbers[m.channel.topic], m.time, m.decode())
    written, due = rows(path.read_bytes()), rows(drive(0.3))
    assert [(a, b, round(ms * MS), data) for a, b, ms, data in written] == [
        (a, b, round(ms * MS), data) for a, b, ms, data in due
    ]
    assert entries(path.read_bytes()) == entries(drive(0.3))


def test_tables_and_payloads_can_be_mixed(tmp_path: Path) -> None:
    path, n = tmp_path / "a.vel", 3000
    times = 5 * MS + np.arange(n) * 3 * MS
    names = [f.name for f in logreel.open(drive())["OBDDataM"].layout.record.visible()]
    columns = {name: np.arange(n, dtype=np.float64) for name in names}
    with logreel.create(path) as w:
        car = w.add_channel("OBDDataM", kind("OBDDataM"))
        w.write_table(car, pa.table({"time": times, **columns}))
    made = path.read_bytes()
    log = logreel.open(path)
    assert not log.problems
    assert log["OBDDataM"].times.tolist() == times.tolist()
    assert log["OBDDataM"]["speed"].tolist() == list(range(n))
    assert entries(made) == seconds_of(made)
    assert len(entries(made)) == 9


def test_index_names_first_message_of_each_second(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "a.vel"
    for case in range(20):
        steps = rng.integers(-400, 900, 60) * (rng.random(60) < 0.9) + 7000 * (rng.random(60) < 0.05)
        times = (np.cumsum(steps) * MS + rng.integers(0, 10**9)).tolist()
        with logreel.create(path, force=True) as w:
            car = w.add_channel("OBDDataM", kind("OBDDataM"))
            for i, time in enumerate(times):
                w.write(car, time, {"speed": i})
                if i % 25 == case:
                    w.flush()
        made = path.read_bytes()
        assert entries(made) == seconds_of(made)
        assert [p for p in logreel.open(path).problems if p.code == "index"] == []


def test_absurd_stamp_makes_no_huge_index(tmp_path: Path) -> None:
    path = tmp_path / "a.vel"
    with logreel.create(path) as w:
        car = w.add_channel("OBDDataM", kind("OBDDataM"))
        for time in (0, 10**18, 10**9):
            w.write(car, time, {})
    assert len(entries(path.read_bytes())) == time_index.MAX_ENTRIES
    assert logreel.open(path)["OBDDataM"].times.tolist() == [0, 10**18, 10**9]


def test_other_size_readings_are_written(tmp_path: Path) -> None:
    for reading in "ABC":
        path = tmp_path / f"{reading}.vel"
        rewrite(logreel.open(drive()), path, size_reading=reading)
        assert oracle.walk(path.read_bytes()).reading == reading
        assert content(path) == content(logreel.open(drive()))
        assert logreel.open(path).metadata["size_reading"] == reading
        logreel.sort(path, tmp_path / "sorted.vel", force=True)
        assert (tmp_path / "sorted.vel").read_bytes() == path.read_bytes()
    with pytest.raises(logreel.UsageError, match="size_reading 'D'; there are A, B, C"):
        logreel.create(tmp_path / "x.vel", size_reading="D")


def test_undescribed_types_are_written_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.vel"
    with logreel.create(path) as w:
        own = w.add_channel("0x00013732", kind("MyDataM"))
        other = w.add_channel("0x00013733@7", kind("0x00013733"))
        later = w.add_channel("OBDDataM@102", kind("OBDDataM"))
        car = w.add_channel("OBDDataM", kind("OBDDataM"))
        for i in range(4):
            w.write(car, i * MS, {"speed": i})
            w.write(own, i * MS, {"payload": b"own"})
            w.write(other, i * MS, b"")
            w.write(later, i * MS, {"rpm": i, "rest": b"more"})
    made = rows(path.read_bytes())
    assert [row[:2] for row in made[:4]] == [(81987, 100), (0x13732, 100), (0x13733, 7), (81987, 102)]
    log = logreel.open(path)
    assert not log.problems
    assert {ch.topic: len(ch) for ch in log.channels.values()} == dict.fromkeys(
        ("0x00013732", "0x00013733@7", "OBDDataM@102", "OBDDataM"), 4
    )
    assert next(log.messages("OBDDataM@102")).decode()["rest"] == b"more"


def test_two_sensors_with_same_name(tmp_path: Path) -> None:
    """The reader numbers the second one; without the first, its name has no number."""
    made = Builder()
    for i in range(40):
        model = "Hokuyo_URG-04LX" if i < 20 else "Hokuyo_UTM-30LX"
        made.laser(100.0 * i, model, "front", range(682 if i < 20 else 1081))
    log = logreel.open(made.bytes())
    assert list(log) == ["LaserRange2DDataM/front", "LaserRange2DDataM/front[1]"]
    done = logreel.slice(log, tmp_path / "a.vel", start="+2.5s")
    assert done.messages == 15
    assert {ch.topic: len(ch) for ch in logreel.open(tmp_path / "a.vel").channels.values()} == {
        "LaserRange2DDataM/front": 15
    }


def test_longer_messages_are_copied(tmp_path: Path) -> None:
    made = Builder()
    for i in range(6):
        made.obd(100.0 * i, i, 900, 1.0)
        if i in (3, 4):
            made.add("OBDDataM", 100.0 * i + 50, bytes(28) + b"later")
    log = logreel.open(made.bytes())
    assert [p.code for p in log.problems] == ["longer"]
    for verb in (logreel.slice, logreel.sort, logreel.recover):
        verb(log, tmp_path / "a.vel", force=True)
        assert (tmp_path / "a.vel").read_bytes() == made.bytes()


def write_and_flush(w: logreel.Writer, channel: int, payload: bytes) -> None:
    w.write(channel, 10, payload)
    w.flush()


def test_invalid_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.vel"
    with logreel.create(path, flush_every=None) as w:
        for topic, name, why in (
            ("/car", "OBDDataM", "this one is 'OBDDataM'"),
            ("OBDDataM/car", "OBDDataM", "this one is 'OBDDataM'"),
            ("MyDataM", "MyDataM", "this one is '0x00013732'"),
            ("ImageM", "ImageM", "this one is 'ImageM/' and a sensor"),
        ):
            with pytest.raises(logreel.UsageError, match=why):
                w.add_channel(topic, kind(name))
        for topic, schema in (
            ("OBDDataM", logreel.Schema("OBDDataM", "ros1msg", "")),
            ("", kind("")),
            ("x", kind("0x7F000000")),
            ("OBDDataM@70000", kind("OBDDataM")),
        ):
            with pytest.raises(logreel.DefinitionError):
                w.add_channel(topic, schema)
        for call in (lambda: w.metadata("a", 1), lambda: w.parameter("a", 1), lambda: w.text(0, "a")):
            with pytest.raises(logreel.UnsupportedError):
                call()
        car, picture = w.add_channel("OBDDataM", kind("OBDDataM")), w.add_channel("ImageM/0", kind("ImageM"))
        w.write(car, 0, {"speed": 1})
        # Messages that do not fit are reported when the batch is written; no others are lost.
        for channel, payload in (
            (car, bytes(27)),
            (car, bytes(29)),
            (picture, b"no"),
            (picture, b"....\x01" + bytes(14)),
        ):
            with pytest.raises(logreel.UsageError, match=f"of {len(payload)} bytes is no .*: 1 left out"):
                write_and_flush(w, channel, payload)
            w.write(car, 5, {"speed": 2})
        w.write(picture, 6, bytes(8) + b"whatever this is")
    log = logreel.open(path)
    assert not log.problems
    assert log["OBDDataM"]["speed"].tolist() == [1, 2, 2, 2, 2]
    assert len(log["ImageM/0@uncompressed"]) == 1
    with logreel.create(path, force=True) as w:
        for i in range(1, 257):
            w.add_channel(f"0x{i:08X}", kind(f"0x{i:08X}"))
        with pytest.raises(logreel.UsageError, match="more than 256"):
            w.add_channel("0x00000101", kind("0x00000101"))
    with pytest.raises(logreel.UsageError, match="several formats"):
        logreel.create(tmp_path / "a.log")
    with logreel.create(tmp_path / "a.log", format="koblenz"):
        pass
    assert (tmp_path / "a.log").read_bytes() == b"\xa4VEL\x01\0\x01\0\0\0\0\0"


def test_damaged_logs_are_recovered(tmp_path: Path) -> None:
    made, out = Builder(), tmp_path / "a.vel"
    for i in range(40):
        made.obd(70.0 * i, i, 900, 1.0)
        if i % 5 == 0:
            made.laser(70.0 * i + 10, "Hokuyo_URG-04LX", "front", range(9)).gps(70.0 * i + 20)
    whole = made.bytes()
    cases = [
        whole[:at] + fill + whole[at + len(fill) :]
        for at in range(60, len(whole) - 60, 397)
        for fill in (bytes(50), b"\xa5" * 50)
    ]
    for data in (*cases, *(whole[:end] for end in range(70, len(whole), 211))):
        due, log = oracle.walk(data), logreel.open(data)
        done = logreel.recover(log, out, force=True)
        assert [(one.offset, one.offset + one.size) for one in done.lost] == due.lost
        assert content(out) == content(log)
        assert rows(out.read_bytes()) == [
            (r.type, r.version, r.ms, data[r.at + 21 : r.end]) for r in due.rows
        ]
        assert entries(out.read_bytes()) == seconds_of(out.read_bytes())
        assert not logreel.open(out).problems


# ------------------------------------------------------------------------------------------------------ crashes

CHANNELS = """
    car = w.add_channel("OBDDataM", logreel.Schema("OBDDataM", "koblenz"))
    picture = w.add_channel("ImageM/3", logreel.Schema("ImageM", "koblenz"))
"""
WRITE = """
    w.write(car, i * 10**6, {"speed": i})
    w.write(picture, i * 10**6, {"source_id": 3, "compressed": 1, "data": bytes(i % 50)})
"""


@pytest.mark.parametrize("acknowledged", [1, 30])
def test_killed_recorder_keeps_flushed_messages(tmp_path: Path, acknowledged: int) -> None:
    path, due = killed(tmp_path / "a.vel", "", CHANNELS, WRITE, acknowledged)
    log = logreel.open(path)
    for topic in ("OBDDataM", "ImageM/3"):
        found = log[topic].times.tolist()
        assert found == [i * MS for i in range(len(found))]
        assert len(found) >= due
    done = logreel.recover(path)
    assert content(tmp_path / "a.vel") == content(path)
    assert not done.lost or done.lost[0].code == "truncated"
    assert not logreel.open(tmp_path / "a.vel").problems


def _recording(path: Path, count: int = 9) -> list[int]:
    """Return an unfinished recording, and its size after each flush."""
    w, sizes = logreel.create(path, flush_every=None), []
    car, picture = w.add_channel("OBDDataM", kind("OBDDataM")), w.add_channel("ImageM/3", kind("ImageM"))
    for i in range(count):
        w.write(car, i * MS, {"speed": i})
        w.write(picture, i * MS, {"source_id": 3, "compressed": 1, "data": bytes(i % 50)})
        w.flush()
        sizes.append(Path(f"{path}.active").stat().st_size)
    w.leave()
    return sizes


def test_cut_or_zero_filled_recording_keeps_flushed_messages(tmp_path: Path) -> None:
    sizes = _recording(tmp_path / "a.vel")
    data = (tmp_path / "a.vel.active").read_bytes()
    for cut in range(sizes[0], len(data) + 1, 3):
        due = sum(size <= cut for size in sizes)
        for tail in (b"", bytes(5000)):
            log = logreel.open(data[:cut] + tail)
            assert log["OBDDataM"].times.tolist()[:due] == [i * MS for i in range(due)]
            assert log["ImageM/3"].times.tolist()[:due] == [i * MS for i in range(due)]


def test_full_disk_leaves_sound_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    for room in (0, 50, 700):
        left = [1 << 40]

        def write(handle: int, data: memoryview, left: list[int] = left) -> int:
            done = min(len(data), max(left[0], 0))
            left[0] -= len(data)
            if not done:
                raise OSError(errno.ENOSPC, "full")
            return real(handle, data[:done])

        monkeypatch.setattr(os, "write", write)
        w = logreel.create(tmp_path / "a.vel", flush_every=None, force=True)
        car = w.add_channel("OBDDataM", kind("OBDDataM"))
        for i in range(10):
            w.write(car, i * MS, {"speed": i})
        w.flush()
        left[0] = room
        for i in range(10, 20):
            w.write(car, i * MS, {"speed": i})
        with pytest.raises(logreel.LogError, match="No space left"):
            w.close()
        assert os.listdir(tmp_path) == ["a.vel.active"]
        log = logreel.open(tmp_path / "a.vel.active")
        assert not log.problems
        assert log["OBDDataM"]["speed"].tolist() == list(range(20 if room == 700 else 10))
