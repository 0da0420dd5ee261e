"""Continued ULogs: appended data as the specification has it, as read by logreel, a plain reader and pyulog."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyulog import ULog

import logreel
from conftest import SHARED
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from support.oracles import pyulog_values
from support.oracles import ulog as oracle
from support.samples.ulog.builder import Builder, flight

REAL = sorted((SHARED / "data/ulog").glob("*.ulg"))
WIND = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;float speed;")


def flags_of(data: bytes) -> tuple[int, tuple[int, ...]]:
    """Return the first byte of the incompatible flags, and the appended offsets."""
    assert data[18:19] == b"B"
    return data[19 + 8], struct.unpack_from("<3Q", data, 19 + 16)


def small(path: Path, count: int = 5) -> Path:
    """Write a log with *count* messages of one topic, and a topic without messages."""
    with logreel.create(path) as w:
        wind = w.add_channel("wind", WIND)
        w.add_channel("wind[1]", WIND)
        w.metadata("sys_name", "PX4")
        w.parameter("GAIN", 1.5)
        for i in range(count):
            w.write(wind, 10**9 + i * 10**6, {"speed": i})
        w.text(2 * 10**9, "landed")
    return path


def peer_values(data: bytes, name: str) -> list[tuple[int, float]]:
    """Return time in µs and speed of all messages of a topic, as pyulog reads them."""
    log = ULog(io.BytesIO(data), disable_str_exceptions=False)
    assert not log.file_corruption
    return [
        row
        for one in log.data_list
        if one.name == name
        for row in zip(one.data["timestamp"].tolist(), one.data["speed"].tolist(), strict=True)
    ]


def test_flags_say_where_data_was_appended(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    old = path.read_bytes()
    assert flags_of(old) == (0, (0, 0, 0))
    offsets = []
    for n in range(3):
        offsets.append(path.stat().st_size)
        with logreel.create(path, mode="a") as w:
            w.write(w.add_channel("wind", WIND), (3 + n) * 10**9, {"speed": 10.0 * n})
        assert flags_of(path.read_bytes()) == (1, (*offsets, 0, 0, 0)[:3])
    data = path.read_bytes()
    # Only the flags of the old bytes differ.
    assert data[: 19 + 8] + old[19 + 8 : 19 + 40] + data[19 + 40 : len(old)] == old
    log = logreel.open(path)
    assert log.problems == ()
    assert log["wind"]["speed"].tolist() == [0, 1, 2, 3, 4, 0, 10, 20]
    due = [
        *((10**6 + i * 1000, float(i)) for i in range(5)),
        *(((3 + n) * 10**6, 10.0 * n) for n in range(3)),
    ]
    assert peer_values(data, "wind") == due


def test_message_ids_go_on(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    size = path.stat().st_size
    with logreel.create(path, mode="a") as w:
        third = w.add_channel("wind[2]", WIND)
        w.write(w.add_channel("wind[1]", WIND), 3 * 10**9, {"speed": 1})
        w.write(third, 3 * 10**9, {"speed": 2})
    read = oracle.read(path.read_bytes())
    subscriptions = [r for r in records(path.read_bytes(), size) if r[0] == "A"]
    assert subscriptions == [("A", b"\1\1\0wind"), ("A", b"\2\2\0wind")]
    assert read is not None
    log = logreel.open(path)
    assert [len(log[name]) for name in ("wind", "wind[1]", "wind[2]")] == [5, 1, 1]


def records(data: bytes, at: int) -> list[tuple[str, bytes]]:
    """Return kind and payload of the records from *at* on."""
    found = []
    while at < len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        found.append((chr(data[at + 2]), data[at + 3 : at + 3 + size]))
        at += 3 + size
    assert at == len(data)
    return found


def test_fourth_time_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    for n in range(3):
        with logreel.create(path, mode="a") as w:
            w.write(w.add_channel("wind", WIND), (3 + n) * 10**9, {"speed": 10.0 * n})
    with pytest.raises(logreel.LogError, match=r"three times, .* write it in one part by logreel\.sort"):
        logreel.create(path, mode="a")
    logreel.sort(path, tmp_path / "b.ulg")
    assert flags_of((tmp_path / "b.ulg").read_bytes()) == (0, (0, 0, 0))
    with logreel.create(tmp_path / "b.ulg", mode="a") as w:
        w.write(w.add_channel("wind", WIND), 9 * 10**9, {"speed": 9})
    assert logreel.open(tmp_path / "b.ulg")["wind"]["speed"].tolist() == [0, 1, 2, 3, 4, 0, 10, 20, 9]


def test_records_of_other_kinds_are_appended(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("wind", WIND), 3 * 10**9, {"speed": 1})
        w.text(3 * 10**9, "again", level=3)
        w.parameter("GAIN", 2.5, 3 * 10**9)
        w.metadata("note", "more")
        w.attachment("crash.bin", b"\1\2\3")
    log = logreel.open(path)
    assert log.problems == ()
    assert [(line.time, line.text) for line in log.text] == [(2 * 10**9, "landed"), (3 * 10**9, "again")]
    gain = log.parameters["GAIN"]
    assert (gain.value, [(c.time, c.value) for c in gain.changes]) == (1.5, [(3 * 10**9, 2.5)])
    assert (log.metadata["sys_name"], log.metadata["note"]) == ("PX4", "more")
    assert log.attachments["crash.bin"].read() == b"\1\2\3"
    peer = ULog(io.BytesIO(path.read_bytes()), disable_str_exceptions=False)
    assert [m.message for m in peer.logged_messages] == ["landed", "again"]
    assert peer.msg_info_dict == {"sys_name": "PX4", "note": "more"}
    assert [p[1:] for p in peer.changed_parameters] == [("GAIN", 2.5)]


def test_recovery_of_a_cut_log_states_no_offset_behind_its_end(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg", 50)
    size = path.stat().st_size
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("wind", WIND), 3 * 10**9, {"speed": 1})
    path.write_bytes(path.read_bytes()[: size - 300])
    logreel.recover(path, tmp_path / "b.ulg")
    log = logreel.open(tmp_path / "b.ulg")
    assert (log.problems, len(log["wind"])) == ((), len(logreel.open(path)["wind"]))
    assert flags_of((tmp_path / "b.ulg").read_bytes())[1] == (0, 0, 0)


def test_reserved_channels_are_continued(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    text = logreel.open(path)["~text"]
    with logreel.create(path, mode="a") as w:
        number = w.add_channel("~text", text.schema)
        w.write(number, 3 * 10**9, bytes(next(iter(text)).data))
    assert [line.text for line in logreel.open(path).text] == ["landed", "landed"]


def test_format_that_the_log_does_not_define_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg")
    data = path.read_bytes()
    layout = Layout(Struct((Field("x", Scalar("float64")),)))
    w = logreel.create(path, mode="a")
    with pytest.raises(
        logreel.DefinitionError, match=r"not defined in the log: .* join both by logreel\.merge"
    ):
        w.add_channel("other", layout)
    w.close()
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("wind:uint64_t timestamp;float speed;", True),
        ("wind:uint64_t timestamp;float speed", True),
        ("", True),
        ("breeze:uint64_t timestamp;float speed;", True),
        ("wind:uint64_t timestamp;double speed;", False),
        ("wind:uint64_t timestamp;", False),
        ("no format", False),
    ],
)
def test_fields_decide_whether_a_definition_is_the_same(text: str, fits: bool, tmp_path: Path) -> None:
    w = logreel.create(small(tmp_path / "a.ulg"), mode="a")
    schema = logreel.Schema(text.partition(":")[0] or "wind", "ulog", text)
    if fits:
        assert w.add_channel("wind", schema) == 0
    else:
        with pytest.raises(logreel.UsageError, match="channel 'wind' of the log has"):
            w.add_channel("wind", schema)
    w.close()


def test_start_time_cannot_change(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="stands in the header"):
        logreel.create(small(tmp_path / "a.ulg"), mode="a", started=0)


def test_log_that_ends_inside_a_record_is_continued(tmp_path: Path) -> None:
    path = small(tmp_path / "a.ulg", 50)
    with path.open("ab") as file:
        file.write(struct.pack("<HB", 14, ord("D")) + b"\0\0\1\2\3")
    before = logreel.open(path)
    assert [p.code for p in before.problems] == ["truncated"]
    with logreel.create(path, mode="a") as w:
        wind = w.add_channel("wind", WIND)
        for i in range(50):
            w.write(wind, 3 * 10**9 + i, {"speed": 100 + i})
    log = logreel.open(path)
    assert [p.code for p in log.problems] == ["truncated"]
    assert log["wind"]["speed"].tolist() == [*range(50), *range(100, 150)]
    assert [v for _, v in peer_values(path.read_bytes(), "wind")] == [*range(50), *range(100, 150)]


def test_log_without_flags_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    out = Builder(start_us=1_000_000).format("wind:uint64_t timestamp;float speed;").subscribe("wind", 0)
    path.write_bytes(out.data(0, struct.pack("<Qf", 1_000_000, 1.0)).bytes())
    assert path.read_bytes()[18:19] == b"F"
    size = path.stat().st_size
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("wind", WIND), 2 * 10**9, {"speed": 2})
    assert flags_of(path.read_bytes()) == (1, (size + 43, 0, 0))
    assert peer_values(path.read_bytes(), "wind") == [(1_000_000, 1.0), (2_000_000, 2.0)]
    assert logreel.open(path).problems == ()


def test_file_of_several_logs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(2.0) + flight(2.0))
    assert len(logreel.open(path).segments) == 2
    with pytest.raises(logreel.LogError, match="contains 2 logs"):
        logreel.create(path, mode="a")


def topics_of(peer: ULog) -> dict[tuple[str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in peer.data_list:
        found.setdefault((one.name, one.multi_id), []).append(one.data)
    return found


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_real_flights_are_continued(path: Path, tmp_path: Path) -> None:
    old = logreel.open(path)
    if any(problem.lost for problem in old.problems):
        pytest.skip("a damaged log")
    copy = tmp_path / "a.ulg"
    copy.write_bytes(path.read_bytes())
    if old.format_state.found.appended and len(old.format_state.found.appended) == 3:
        with pytest.raises(logreel.LogError, match="three times"):
            logreel.create(copy, mode="a")
        logreel.sort(path, copy, force=True)
        old = logreel.open(copy.read_bytes())
    before = copy.read_bytes()
    written, step = {}, 10**6
    with logreel.create(copy, mode="a") as w:
        for ch in old.match(None):
            if not len(ch):
                continue
            last = bytes(ch[-1].data)
            written[ch.topic] = [(old.end or 0) + step * n for n in range(1, 4)]
            for time in written[ch.topic]:
                w.write(w.add_channel(ch.topic, ch.schema), time, last)
    log = logreel.open(copy)
    assert log.problems == old.problems
    assert log.epoch == old.epoch
    if old.utc_offset is None:
        assert log.utc_offset is None
    else:
        # The offset is the median of the GNSS messages, of which there are three more.
        assert abs(log.utc_offset - old.utc_offset) < 20_000_000
    # The two logs of one moment are too short for a start that is certain.
    assert log.start == old.start or not old.duration
    assert log.end == (old.end or 0) + 3 * step
    assert {n: p.value for n, p in log.parameters.items()} == {n: p.value for n, p in old.parameters.items()}
    assert list(log.text)[: len(old.text)] == list(old.text)
    after = copy.read_bytes()
    # Only the record of flags, which is the first one, changes.
    is_kept = after[18:19] == before[18:19] == b"B" and after[59 : len(before)] == before[59:]
    for ch in old.match(None):
        new, n = log[ch.topic], len(ch)
        assert len(new) == n + len(written.get(ch.topic, ()))
        assert np.array_equal(new.times[:n], ch.times)
        assert [t // 1000 for t in new.times[n:].tolist()] == [t // 1000 for t in written.get(ch.topic, ())]
        places, known = (
            [index.offsets(number)[:n], index.sizes(number)[:n]]
            for index, number in ((log.index, new.number), (old.index, ch.number))
        )
        # Messages at the same places of the same bytes are the same.
        if not is_kept or old.index.synthetic(ch.number) is not None or not np.array_equal(places, known):
            assert all(bytes(a.data) == bytes(b.data) for a, b in zip(new[:n], ch, strict=True))
    # pyulog has the appended messages of a topic as a second data set of the same name.
    theirs = pyulog_values.flight(path) if before == path.read_bytes() else pyulog_values.load(before)
    mine = pyulog_values.load(after)
    assert mine.file_corruption == theirs.file_corruption
    due, found = topics_of(theirs), topics_of(mine)
    assert due.keys() == found.keys()
    for key, sets in due.items():
        for a, b in zip(sets, found[key], strict=False):
            assert all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)
        assert len(found[key]) == len(sets) + 1
        assert len(found[key][-1]["timestamp"]) == 3
