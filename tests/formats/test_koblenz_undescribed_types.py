"""Koblenz logs with undescribed types and versions, or other marks: the chain of sizes is the evidence."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logreel
from logreel.ops.inspect.check import check
from support.harness.examples import half
from support.oracles import koblenz as oracle
from support.samples.koblenz.builder import END, Builder

COUNTED = {17: "A", 21: "B", 0: "C"}
URG = "Hokuyo_URG-04LX"


def payloads(log: logreel.Log) -> list[tuple[str, int, bytes]]:
    return [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]


def unknown(counted: int = 17, count: int = 12) -> Builder:
    """Return a log with two undescribed types and payloads of several sizes."""
    out = Builder(counted)
    for i in range(count):
        out.add("MyDataM" if i % 3 else "ArmStateM", 250.0 * i, bytes([i % 256, 0x49, 0, 1]) * (i % 5))
    return out


@pytest.mark.parametrize("counted", COUNTED)
@pytest.mark.parametrize("count", [1, 2, 3, 12, 300])
def test_log_of_unregistered_types_only(counted: int, count: int) -> None:
    made = unknown(counted, count)
    for data in (made.bytes(), made.bytes(index=[]), made.bytes(tail=END + bytes(40)), made.bytes(room=80)):
        log = logreel.open(data)
        assert log.metadata["size_reading"] == COUNTED[counted]
        assert [p.code for p in log.problems if p.lost] == []
        assert [(time, data) for _, time, data in payloads(log)] == [
            (i * 250 * 10**6, bytes([i % 256, 0x49, 0, 1]) * (i % 5)) for i in range(count)
        ]


def test_versions_far_from_the_described_ones() -> None:
    older, newer = Builder(), Builder()
    for i in range(20):
        older.add("LaserRange2DDataM", i, b"older %d" % i, 100)
        # Version 200 of poses is shorter than the described one; that of OBD still begins with its fields.
        newer.add("RobotPoseM", i, b"%02d" % i, 200)
        newer.add("OBDDataM", i, struct.pack("<iifiifi", i, 0, 0, 0, 0, 0, 0) + b"more", 200)
    log = logreel.open(older.bytes())
    assert not log.problems
    assert [m.decode()["payload"] for m in log.messages()] == [b"older %d" % i for i in range(20)]
    log = logreel.open(newer.bytes())
    assert not log.problems
    assert [m.decode()["payload"] for m in log.messages("RobotPoseM@200")] == [b"%02d" % i for i in range(20)]
    assert log["OBDDataM@200"]["speed"].tolist() == list(range(20))


def test_parts_of_a_log_that_have_unregistered_types_only(tmp_path: Path) -> None:
    made = Builder()
    for i in range(30):
        made.obd(100.0 * i, i, 900, 1.0).add("MyDataM", 100.0 * i + 1, b"own %d" % i)
        made.add("LaserRange2DDataM", 100.0 * i + 2, b"older", 100)
    due = [b"own %d" % i for i in range(30)]
    logreel.slice(made.bytes(), tmp_path / "part.vel", topics=["0x00013732"])
    assert [data for *_, data in payloads(logreel.open(tmp_path / "part.vel"))] == due
    logreel.split(made.bytes(), tmp_path / "parts", by_topic=True)
    paths = sorted((tmp_path / "parts").iterdir())
    assert len(paths) == 3
    for path in paths:
        log = logreel.open(path)
        assert log.message_count == 30
        assert not log.problems


@pytest.mark.parametrize("counted", COUNTED)
def test_every_cut_of_unregistered_types_keeps_all_whole_messages(counted: int) -> None:
    data = unknown(counted, 8).bytes()
    ends = [row.end for row in oracle.walk(data).rows]
    whole = payloads(logreel.open(data))
    # Four bytes of a second header can be read as the end of the first message, where sizes count otherwise.
    open_to_choice = range(ends[0] + 4, ends[0] + 5) if counted == 21 else ()
    for cut in range(ends[0] - 30, len(data)):
        if cut not in open_to_choice:
            found = payloads(logreel.open(data[:cut]))
            assert found == whole[: sum(end <= cut for end in ends)], cut


def test_damage_between_unregistered_types_loses_only_hit_messages() -> None:
    data = unknown(count=40).bytes()
    rows = oracle.walk(data).rows
    whole = payloads(logreel.open(data))
    for hit in range(4, 38):
        at = rows[hit].at
        # A header overwritten.
        log = logreel.open(data[:at] + b"\xa5" * 21 + data[at + 21 :])
        assert payloads(log) == whole[:hit] + whole[hit + 1 :], hit
        assert [(p.code, p.offset, p.offset + p.size) for p in log.problems if p.lost] == [
            ("garbage", at, rows[hit].end)
        ]
        # A size that reaches into a message behind: the ones inside convict it.
        size = struct.pack("<I", rows[hit + 1].end + 10 - at - 4)
        log = logreel.open(data[:at] + size + data[at + 4 :])
        assert payloads(log) == whole[:hit] + whole[hit + 1 :], hit


@pytest.mark.parametrize("mark", [0x31, 0x01])
def test_other_valid_mark_is_detected(mark: int, tmp_path: Path) -> None:
    usual, other = Builder(), Builder()
    for i in range(8):
        for made, by in ((usual, 0x49), (other, mark)):
            body = struct.pack("<iifiifi", i, 0, 0.0, 0, 0, 0.0, 0)
            made.add("OBDDataM", 300.0 * i, body, mark=by).add("MyDataM", 300.0 * i + 1, b"x" * i, mark=by)
    data = other.bytes()
    log = logreel.open(data)
    assert payloads(log) == payloads(logreel.open(usual.bytes()))
    assert [(p.code, p.offset, p.lost) for p in log.problems] == [("mark", 12 + 8 * 3 + 4, False)]
    assert log.metadata["valid_mark"] == f"0x{mark:02X}"
    logreel.slice(log, tmp_path / "all.vel")
    assert (tmp_path / "all.vel").read_bytes() == data
    logreel.sort(log, tmp_path / "sorted.vel")
    assert (tmp_path / "sorted.vel").read_bytes() == data
    # One message that is marked otherwise is not valid.
    other.messages[5] = other.messages[5][:4] + b"\x49" + other.messages[5][5:]
    log = logreel.open(other.bytes())
    assert log.message_count == 15
    assert [p.code for p in log.problems] == ["mark", "invalid"]


def test_invalid_first_messages_do_not_set_mark() -> None:
    made = Builder()
    for i in range(12):
        made.add("OBDDataM", i, bytes(28), mark=0x31 if i < 4 else 0x49)
    log = logreel.open(made.bytes(index=[20]))
    assert len(log["OBDDataM"]) == 8
    assert "valid_mark" not in log.metadata


def test_empty_index_is_reported_and_recover_builds_it(tmp_path: Path) -> None:
    made = Builder()
    for i in range(50):
        made.obd(100.0 * i, i, 900, 1.0)
    for index in ([], made.seconds(12 + 16)[:2]):
        data = made.bytes(index=index)
        (finding,) = check(data).findings
        assert (finding.code, finding.severity) == ("index", "warn")
        logreel.recover(data, tmp_path / "a.vel", force=True)
        assert (tmp_path / "a.vel").read_bytes() == made.bytes()
        assert not check(tmp_path / "a.vel").findings
    assert not check(Builder().bytes(index=[])).findings


def test_invalid_marks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="valid_mark 2; there are 0x49, 0x31, 0x01"):
        logreel.create(tmp_path / "x.vel", valid_mark=2)


@settings(max_examples=half(60), deadline=None)
@given(
    kinds=st.lists(
        st.tuples(st.integers(1, (1 << 24) - 1), st.integers(0, (1 << 16) - 1)),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(-(10**15), 10**15), st.binary(max_size=60)), max_size=20
    ),
    reading=st.sampled_from("ABC"),
)
def test_written_messages_are_read_back(
    kinds: list[tuple[int, int]],
    rows: list[tuple[int, int, bytes]],
    reading: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.vel"
    due = []
    with logreel.create(path, size_reading=reading) as w:
        numbers = []
        for kind, version in kinds:
            name = f"0x{kind:08X}"
            topic = name if version == 100 else f"{name}@{version}"
            numbers.append(w.add_channel(topic, logreel.Schema(name, "koblenz")))
        for which, time, data in rows:
            kind, version = kinds[which % len(kinds)]
            w.write(numbers[which % len(kinds)], time, data)
            due.append((kind, version, data))
    log = logreel.open(path)
    assert not log.problems
    assert [
        (int(m.channel.metadata["type_id"], 16), m.channel.metadata["version"], bytes(m.data))
        for m in log.messages(order="file")
    ] == due
