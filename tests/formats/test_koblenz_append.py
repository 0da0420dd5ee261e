"""Continued Koblenz logs, checked with the plain reader: messages, their index, marks and sizes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from conftest import SHARED
from logreel.formats.koblenz.records import pack_utc_note
from support.oracles import koblenz as oracle
from support.samples.koblenz.drive import drive

SAMPLES = sorted((SHARED / "data/koblenz").glob("*.log"))
CAR = logreel.Schema("OBDDataM", "koblenz")
MS = 10**6


def rows(data: bytes) -> list[tuple[int, int, float, bytes]]:
    """Return type, version, time and payload of each message, read by the plain reader."""
    found = oracle.walk(data)
    assert not found.lost
    return [(r.type, r.version, r.ms, data[r.at + 21 : r.end]) for r in found.rows]


def entries(data: bytes) -> list[int]:
    count = struct.unpack_from("<I", data, 8)[0]
    return list(struct.unpack_from(f"<{count}q", data, 12))


def seconds_of(data: bytes) -> list[int]:
    """Return the time index that a file must have, from its messages."""
    every = oracle.walk(data).rows
    last = max(row.ms for row in every)
    found: list[int] = []
    while len(found) <= (last - every[0].ms) // 1000:
        found.append(next(row.at for row in every if row.ms >= every[0].ms + 1000 * len(found)))
    return found


def small(path: Path, seconds: int = 3) -> Path:
    with logreel.create(path) as w:
        car = w.add_channel("OBDDataM", CAR)
        for i in range(10 * seconds):
            w.write(car, i * 100 * MS, {"speed": i})
    return path


def continued(path: Path, first_ms: int, count: int = 20) -> list[tuple[int, int, float, bytes]]:
    """Append *count* messages half a second apart, and return what the plain reader must find of them."""
    due = []
    with logreel.create(path, mode="a") as w:
        car = w.add_channel("OBDDataM", CAR)
        for i in range(count):
            payload = struct.pack("<ii20x", i, 1000 + i)
            w.write(car, (first_ms + 500 * i) * MS, payload)
            due.append((81987, 100, float(first_ms + 500 * i), payload))
    return due


def test_index_covers_old_and_new_messages(tmp_path: Path) -> None:
    path = small(tmp_path / "a.vel")
    old = rows(path.read_bytes())
    due = continued(path, 10_000)
    data = path.read_bytes()
    assert rows(data) == old + due
    assert entries(data) == seconds_of(data)
    log = logreel.open(path)
    assert (log.problems, log.verify()) == ((), ())
    assert (log.start, log.end) == (0, 19_500 * MS)


@pytest.mark.parametrize(
    "tail",
    [b"\xff" * 4, b"\xff" * 4 + b"any bytes" * 100, b"\xff" * 4 + bytes(4096)],
    ids=["mark", "text", "zeros"],
)
def test_end_mark_and_what_follows_are_left_out(tail: bytes, tmp_path: Path) -> None:
    path = small(tmp_path / "a.vel")
    old = rows(path.read_bytes())
    path.write_bytes(path.read_bytes() + tail)
    assert "end_mark" in logreel.open(path).metadata
    due = continued(path, 10_000)
    assert rows(path.read_bytes()) == old + due
    assert "end_mark" not in logreel.open(path).metadata


def test_utc_offset_is_kept(tmp_path: Path) -> None:
    path = small(tmp_path / "a.vel")
    path.write_bytes(path.read_bytes() + pack_utc_note(123_456_789))
    for n in range(2):
        continued(path, 10_000 * (n + 1))
        assert logreel.open(path).utc_offset == 123_456_789


def test_messages_after_the_end_mark_are_not_dropped(tmp_path: Path) -> None:
    path = small(tmp_path / "a.vel")
    data = path.read_bytes()
    path.write_bytes(data + b"\xff" * 4 + data[12 + 8 * len(entries(data)) :])
    before = path.read_bytes()
    with pytest.raises(logreel.LogError, match="cannot be continued: messages lie behind the end mark"):
        logreel.create(path, mode="a")
    assert path.read_bytes() == before


@pytest.mark.parametrize("room", [0, 2, 40])
def test_room_that_was_left_for_the_index_is_used(room: int, tmp_path: Path) -> None:
    path = small(tmp_path / "a.vel")
    data = path.read_bytes()
    first = 12 + 8 * len(entries(data))
    # A recorder that crashed: no entries, with or without room for them.
    path.write_bytes(data[:8] + struct.pack("<I", 0) + bytes(8 * room) + data[first:])
    due = continued(path, 10_000)
    new = path.read_bytes()
    assert rows(new) == rows(data) + due
    assert entries(new) == seconds_of(new)
    assert logreel.open(path).problems == ()


@pytest.mark.parametrize(
    "options", [{"size_reading": "B"}, {"valid_mark": 0x31}, {"size_reading": "C", "valid_mark": 1}]
)
def test_variant_is_that_of_the_log(options: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "a.vel"
    path.write_bytes(drive())
    log = logreel.open(path)
    other = tmp_path / "b.vel"
    with logreel.create(other, **options) as w:
        for m in log.messages(order="file"):
            ch = m.channel
            if ch.topic not in w.format_writer.notes:
                w.format_writer.notes.append(ch.topic)
                w.add_channel(ch.topic, ch.schema, ch.metadata)
            w.write(w.format_writer.notes.index(ch.topic), m.time, bytes(m.data))
    old = logreel.open(other)
    facts = {name: old.metadata.get(name) for name in ("size_reading", "valid_mark")}
    with logreel.create(other, mode="a") as w:
        w.write(w.add_channel("OBDDataM", CAR), (old.end or 0) + 10**9, {"speed": 1})
    new = logreel.open(other)
    assert {name: new.metadata.get(name) for name in facts} == facts
    assert not any(problem.lost for problem in new.problems)
    assert new.message_count == old.message_count + 1
    with pytest.raises(logreel.UsageError, match="the log has size_reading"):
        logreel.create(other, mode="a", size_reading="A", valid_mark=0x49)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples_are_continued(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a.log"
    copy.write_bytes(path.read_bytes())
    old = logreel.open(copy)
    if any(problem.lost or problem.code == "after end" for problem in old.problems):
        with pytest.raises(logreel.LogError):
            logreel.create(copy, mode="a")
        assert copy.read_bytes() == path.read_bytes()
        return
    messages = [(m.channel.topic, m.time, bytes(m.data)) for m in old.messages(order="file")]
    start = (old.end or 0) + 10**9
    with logreel.create(copy, mode="a") as w:
        car = w.add_channel("OBDDataM", CAR)
        w.write(car, start, {"speed": 1})
    new = logreel.open(copy)
    assert not any(problem.lost for problem in new.problems)
    found = [(m.channel.topic, m.time, bytes(m.data)) for m in new.messages(order="file")]
    assert found[:-1] == messages
    assert found[-1][:2] == ("OBDDataM", start)
    assert (new.start, new.end, new.utc_offset) == (old.start if messages else start, start, old.utc_offset)
    assert new.verify() == ()
