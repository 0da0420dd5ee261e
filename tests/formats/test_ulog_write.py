"""Written ULogs: content other than messages, and identical copies."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from support.builders.contents import content, other_content
from support.samples.ulog.builder import Builder, flight, tiny

PX4 = logreel.Schema("a", "ulog", "a:uint64_t timestamp;float x;uint8_t[4] _padding0;")


def _copied(path: Path, data: bytes, **options: object) -> bytes:
    out = path / "out.ulg"
    logreel.slice(data, out, force=True, **options)  # type: ignore[arg-type]
    return out.read_bytes()


def _rich(appended: bool = True) -> Builder:
    """Build a log with every kind of record in unusual places, and messages with and without their padding."""
    made = Builder(5_000_000).flags(compat=1).format(PX4.text).info("char[3] who", "PX4")
    made.info_multiple("char[2] parts", "ab").info_multiple("char[2] parts", "cd", True).parameter(
        "float P", 1.5
    )
    made.default_parameter("float P", 1.0, 1).default_parameter("int32_t N", 3, 2).subscribe("a", 3)
    for step in range(40):
        time = 5_000_000 + step * 10_000
        made.data(3, struct.pack("<Qf", time, step) + (bytes(4) if step % 2 else b""))
        if step % 10 == 3:
            made.text(4, time, f"line {step}").tagged(6, 17, time, "täg").sync().dropout(20)
            made.parameter("float P", float(step)).info("uint32_t late", step).raw("Z", b"whatever")
        if step == 20:
            made.subscribe("a", 4, 2).default_parameter("float P", 2.0, 2)
        if step in (25, 32) and appended:
            made.append_part()
        if step > 20:
            made.data(4, struct.pack("<Qf", time, -step))
    return made.unsubscribe(3)


def test_copy_of_whole_log_is_identical(tmp_path: Path) -> None:
    for data in (flight(3.0), tiny(), _rich().bytes(), Builder(7).bytes(), Builder(7).flags().bytes()):
        assert _copied(tmp_path, data) == data
        logreel.recover(data, tmp_path / "sound.ulg", force=True)
        assert (tmp_path / "sound.ulg").read_bytes() == data


def test_copy_of_whole_real_log_is_identical(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "data" / "ulog").glob("*.ulg")):
        data = path.read_bytes()
        if not logreel.open(data).problems:
            assert _copied(tmp_path, data) == data, path.name


def test_sorted_log_has_all_content(tmp_path: Path) -> None:
    data, out = _rich().bytes(), tmp_path / "out.ulg"
    done = logreel.sort(data, out)
    assert (done.notes, done.skipped) == (
        (),
        (
            *("information 'late' has another value in <bytes>: the first one is kept",) * 3,
            "4 records of unknown kinds ('Z') were left out of <bytes>",
        ),
    )
    source, found = logreel.open(data), logreel.open(out)
    assert content(found)["a"] == content(source)["a"]
    assert content(found)["a[2]"] == content(source)["a[2]"]
    assert found.parameters == source.parameters
    assert found.text == source.text
    assert found["~dropout"].times.tolist() == source["~dropout"].times.tolist()
    assert {k: a.read() for k, a in found.attachments.items()} == {
        k: a.read() for k, a in source.attachments.items()
    }


def test_appended_offsets_of_slice_are_updated(tmp_path: Path) -> None:
    data = _rich().bytes()
    start = 5_000_000_000 + 200_000_000
    cut = _copied(tmp_path, data, start=start, topics=["a", "~text"])
    offsets = struct.unpack_from("<3Q", cut, 16 + 3 + 16)
    assert 0 < offsets[0] < offsets[1] < len(cut)
    assert offsets[2] == 0
    found = logreel.open(cut)
    assert found["a"].times.tolist() == [t for t in logreel.open(data)["a"].times.tolist() if t >= start]
    # The record at each offset is the one that was there.
    old = struct.unpack_from("<3Q", data, 16 + 3 + 16)
    for before, now in zip(old[:2], offsets, strict=False):
        assert data[before : before + 3 + 2] != b""
        assert cut[now + 2] in b"DLCPOSIQZ"
    assert not found.problems or {p.code for p in found.problems} == {"unknown"}


def test_metadata_parameters_text_and_attachments_are_written(tmp_path: Path) -> None:
    source, out = logreel.open(_rich().bytes()), tmp_path / "a.ulg"
    with logreel.create(out) as w:
        number = w.add_channel("a", PX4)
        reserved = {name: w.add_channel(name, source[name].schema) for name in source if name[0] == "~"}
        w.metadata("who", "PX4")
        w.metadata("list", [b"ab", b"c"])
        w.parameter("P", 1.5)
        w.attachment("photo.bin", bytes(range(256)) * 500)
        w.write(
            reserved["~parameter"], 0, {"name": "P", "kind": "system default", "type": "float", "value": 1.0}
        )
        w.write(number, 10**9, {"x": 1.0})
        w.text(10**9, "hello", 3)
        w.write(reserved["~text"], 10**9, {"level": 5, "tag": 9, "text": "tagged"})
        w.write(reserved["~dropout"], 10**9, {"duration": 33})
        w.parameter("P", 2.5, 10**9)
    log = logreel.open(out)
    assert not log.problems
    p = log.parameters["P"]
    assert (p.value, p.defaults, [c.value for c in p.changes]) == (1.5, {"system": 1.0}, [2.5])
    assert [(t.level, t.text, t.source) for t in log.text] == [(3, "hello", ""), (5, "tagged", "tag 9")]
    assert log["~dropout"]["duration"].tolist() == [33]
    assert log.attachments["photo.bin"].read() == bytes(range(256)) * 500
    assert log.metadata["who"] == "PX4"


def test_channels_can_be_added_after_first_flush(tmp_path: Path) -> None:
    """As with a pipe that is silent before its first line."""
    with logreel.create(tmp_path / "a.ulg") as w:
        w.flush()
        w.write(w.add_channel("a", PX4), 10**9, {"x": 1.0})
    assert len(logreel.open(tmp_path / "a.ulg")["a"]) == 1
    with logreel.create(tmp_path / "b.ulg") as w:
        w.flush()
    assert logreel.open(tmp_path / "b.ulg").format == "ulog"


def test_given_time_is_written_as_timestamp(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.ulg") as w:
        number = w.add_channel("a", PX4)
        w.write(number, 7_000_000, struct.pack("<Qf", 1, 2.0))
        w.write(number, 8_000_000, b"torn")
    log = logreel.open(tmp_path / "a.ulg")
    assert log["a"].times[0] == 7_000_000


def test_invalid_names_are_refused(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.ulg") as w:
        for topic in ("a b", "ä", "a[256]", "float"):
            with pytest.raises(logreel.UsageError, match="names have letters"):
                w.add_channel(topic, PX4)
        with pytest.raises(logreel.DefinitionError, match="has no channel"):
            w.add_channel("~sound", PX4)
        other = w.add_channel("b/c", PX4)
        with pytest.raises(logreel.UsageError, match="at most 65533"):
            w.write(other, 0, bytes(70_000))
        with pytest.raises(logreel.UsageError, match="is no name"):
            w.attachment("a b", b"")
    assert logreel.open(tmp_path / "a.ulg")["b/c"].schema.text.startswith("b/c:uint64_t timestamp;")


def test_comparison_helper_detects_differences(tmp_path: Path) -> None:
    """The helper sees a difference where there is one."""
    assert other_content(logreel.open(_rich().bytes())) != other_content(
        logreel.open(_rich(False).info("char[1] z", "z").bytes())
    )
