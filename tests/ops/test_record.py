"""Lines of JSON written as logs: values are read back, and values that do not fit are reported, never changed."""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Scalar, Sequence, String, Struct
from logreel.ops.infer import json_converter, layout_of, observe_all
from logreel.ops.json_values import to_json_values
from logreel.ops.record import Recorded, record
from logreel.ops.record import lines as pipe_lines
from support.builders.contents import SAMPLES, sample
from support.formats import builtin_formats, small_log
from support.samples.carla.drive import drive
from support.samples.ulog.builder import flight

SECOND = 10**9


def lines(log: logreel.Log | Path, most: int | None = None) -> list[str]:
    """A log as ``cat --format ndjson`` shows it, or its first messages."""
    log = log if isinstance(log, logreel.Log) else logreel.open(log)
    return [
        json.dumps({"topic": m.channel.topic, "time_ns": m.time, "data": to_json_values(m.decode())})
        for m in itertools.islice(log.messages(), most)
    ]


def line(topic: str, n: int, **data: Any) -> str:
    return json.dumps({"topic": topic, "time_ns": n * SECOND, "data": data})


#: Samples with the same channels, and fewer messages.
SHORTER = {".ulg": lambda: flight(2.0), ".rec": lambda: drive(1.0).bytes()}


@pytest.fixture(params=SAMPLES)
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[".bag", ".bddf", ".mcap", ".ulg"])
def typed(request: pytest.FixtureRequest) -> str:
    """Formats whose channels may have any fields."""
    return str(request.param)


def test_lines_of_cat_are_recorded(suffix: str, tmp_path: Path) -> None:
    if suffix == ".mcap":
        pytest.skip("fields are not encoded as JSON or protobuf, of which the sample has channels")
    source, out = tmp_path / f"sample{suffix}", tmp_path / f"out{suffix}"
    source.write_bytes(SHORTER.get(suffix, SAMPLES[suffix])())
    due = lines(source)
    for like in (None, source):
        done = record(due, out, like=like, force=True)
        assert (done.lines, done.broken, done.messages) == (len(due), 0, len(due))
        assert lines(out) == due
        assert not logreel.open(out).problems
    log, before = logreel.open(out), logreel.open(source)
    assert {ch for ch in log if ch[0] != "~"} == {ch for ch in before if ch[0] != "~"}
    assert {ch: log[ch].schema for ch in log} == {ch: before[ch].schema for ch in log}


def test_a_log_of_any_format_is_recorded_as_any_other(suffix: str, tmp_path: Path) -> None:
    for fmt in builtin_formats().values():
        due = lines(logreel.open(small_log(fmt.name)), 25)
        done = record(due, tmp_path / f"{fmt.name}{suffix}", ahead=25)
        found = logreel.open(done.path)
        assert found.message_count == done.messages == done.lines - done.broken
        assert not found.problems
        assert (done.broken == 0) == (not done.skipped)


def test_types_are_inferred() -> None:
    first = {
        "a": 1,
        "b": 1,
        "c": "NaN",
        "d": "x",
        "e": [1, 2.5],
        "f": {"g": True},
        "h": None,
        "i": [],
        "j": 1 << 63,
    }
    later = {"a": -5, "b": 0.5, "c": 2.0, "d": "NaN", "e": [], "f": {"k": "é" * 20}, "i": []}
    found = observe_all([first, later, {"a": "odd one out"}])
    number, wide = Scalar("int64"), Scalar("float64")

    def due(text: Node, listed: Node, empty: Node) -> Struct:
        inner = Struct((Field("g", Scalar("bool")), Field("k", text)))
        kinds = [number, wide, wide, text, listed, inner, empty, Scalar("uint64")]
        return Struct(tuple(map(Field, "abcdefij", kinds)))

    assert layout_of(found, False).root == due(String(), Sequence(wide), Sequence(wide))
    fixed = layout_of(found, True).root
    assert isinstance(fixed, Struct)
    assert fixed.fields[4].node == FixedArray(wide, 2)
    inner = fixed.fields[5].node
    assert isinstance(inner, Struct)
    assert inner.fields[1].node == FixedArray(Scalar("char"), 64)


@pytest.mark.parametrize(
    ("node", "value", "found"),
    [
        (Scalar("float32"), "Infinity", math.inf),
        (Scalar("float64"), 1 << 53, float(1 << 53)),
        (Scalar("float64"), (1 << 53) + 1, None),
        (Scalar("float64"), "1.5", None),
        (Scalar("int8"), 1.0, None),
        (Scalar("int8"), True, None),
        (Scalar("bool"), 1, None),
        (String(), "é", "é"),
        (String(), "\ud800", None),
        (String(), 5, None),
        (Bytes(), "AAE=", b"\0\1"),
        (Bytes(), "no base64!", None),
        (FixedArray(Scalar("char"), 2), "é", "é"),
        (FixedArray(Scalar("char"), 2), "abc", None),
        (FixedArray(Scalar("char"), 2), "\0", None),
        (Sequence(Scalar("bool")), [True], [True]),
        (Sequence(Scalar("bool")), "x", None),
        (FixedArray(Scalar("int8"), 2), [1], None),
        (Struct((Field("a", Scalar("int8")),)), {"a": 1}, {"a": 1}),
        (Struct((Field("a", Scalar("int8")),)), {"b": 1}, None),
        (Struct((Field("a", Scalar("int8")),)), [], None),
    ],
)
def test_values_are_read_back_or_refused(node: Node, value: Any, found: Any) -> None:
    restore = json_converter(Layout(Struct((Field("x", node),))))
    if found is None:
        with pytest.raises(logreel.UsageError, match=r"^x"):
            restore({"x": value})
    else:
        assert restore({"x": value, "y": None} if isinstance(value, str) else {"x": value}) == {"x": found}


def test_messages_that_do_not_fit_are_reported(typed: str, tmp_path: Path) -> None:
    good = [line("/a", n, x=n, s="text") for n in range(3)]
    bad = [
        "{",
        "[]",
        '{"topic": 5, "time_ns": 1, "data": {}}',
        '{"topic": "/a", "time_ns": 1.5, "data": {}}',
        '{"topic": "/a", "time_ns": 1, "data": []}',
        "[" * 100_000,
        line("/a", 4, x="one"),
        line("/a", 4, x=1, z=1),
        line("/a", 4, x=1 << 63),
    ]
    if typed != ".bddf":
        # JSON has names of any kind, and times before 1970.
        bad += [line("/a", -4, x=1), *(line("/bad", n, **{"no field!": 1}) for n in (4, 5))]
    text = "\n".join([good[0], "", *bad, *good[1:]])
    source = tmp_path / "lines"
    source.write_text(text)
    with source.open("rb") as file:
        done = record(file, tmp_path / f"a{typed}", ahead=1)
    assert (done.lines, done.broken, done.messages) == (3 + len(bad), len(bad), 3)
    assert [one.split(":")[0] for one in done.skipped] == [f"line {n}" for n in range(3, 3 + len(bad))]
    assert typed == ".bddf" or "'no field!' cannot be a field" in done.skipped[-1]
    assert [m.decode()["x"] for m in logreel.open(done.path).messages()] == [0, 1, 2]
    with pytest.raises(logreel.LogError, match=r"^line 3: this is no JSON"):
        record(text.splitlines(), tmp_path / f"b{typed}", strict=True)
    assert not (tmp_path / f"b{typed}").exists()
    saved = logreel.recover(tmp_path / f"b{typed}.active")
    assert saved.messages in (0, 1)


def test_many_broken_lines_are_counted(tmp_path: Path) -> None:
    done = record(["x"] * 1000, tmp_path / "a.bag")
    assert (done.broken, len(done.skipped)) == (1000, 100)
    assert logreel.open(done.path).message_count == 0


def test_schemas_can_be_given(tmp_path: Path) -> None:
    folder = tmp_path / "my_msgs" / "msg"
    folder.mkdir(parents=True)
    (folder / "Wind.msg").write_text("float32 speed\nuint8[] raw\ngeometry_msgs/Point at\n")
    (tmp_path / "wind").write_text("wind:uint64_t timestamp;float speed;char[4] who;")
    said = [line("/wind", 1, speed="NaN", raw="AAE=", at={"x": 1.0})]
    done = record(said, tmp_path / "a.bag", schemas={"/wind": folder / "Wind.msg"})
    ch = logreel.open(done.path)["/wind"]
    assert ch.schema.name == "my_msgs/Wind"
    (row,) = (m.decode() for m in ch.log.messages())
    assert math.isnan(row["speed"])
    assert (row["raw"], row["at"]) == (b"\0\1", {"x": 1.0, "y": 0.0, "z": 0.0})
    done = record(
        [line("wind[1]", 1, speed=2.5, who="me")], tmp_path / "a.ulg", schemas={"wind[1]": tmp_path / "wind"}
    )
    assert lines(Path(done.path)) == [line("wind[1]", 1, timestamp=10**6, speed=2.5, who="me")]
    (tmp_path / "wind").write_text("no definition")
    for suffix in ("bag", "ulg"):
        with pytest.raises(logreel.LogError):
            record([], tmp_path / f"b.{suffix}", schemas={"wind": tmp_path / "wind"})


def test_types_can_come_from_a_log_of_another_format(tmp_path: Path) -> None:
    bag = sample(tmp_path, ".bag")
    due = [one for one in lines(bag) if '"/gps' in one]
    assert due
    done = record(due, tmp_path / "a.ulg", like=bag)
    told = {m.channel.topic for m in logreel.open(done.path).messages()}
    assert done.messages + done.broken == len(due)
    assert all("fixed size" in one for one in done.skipped) or told


def test_message_times_that_differ_from_the_line_are_noted(tmp_path: Path) -> None:
    said = [line("a", 1, timestamp=10**6, x=1), line("a", 2, timestamp=5, x=1)]
    done = record(said, tmp_path / "a.ulg")
    assert done.notes == ("the field 'timestamp' of 'a' was set to the time of the message",)
    assert [m.decode()["timestamp"] for m in logreel.open(done.path).messages()] == [10**6, 2 * 10**6]


def test_a_silent_pipe_is_flushed(typed: str, tmp_path: Path) -> None:
    out, (read, write) = tmp_path / f"a{typed}", os.pipe()
    done: list[Recorded] = []
    asked = threading.Event()

    def work() -> None:
        with os.fdopen(read, "rb") as pipe:
            done.append(record(pipe, out, flush_every=0.05, ahead=1, stop=asked.is_set))

    thread = threading.Thread(target=work)
    thread.start()
    os.write(write, (line("/a", 1, x=1) + "\n" + line("/a", 2, x=2)[:9]).encode())
    end = time.monotonic() + 30
    active = Path(f"{out}.active")
    while time.monotonic() < end:
        if active.exists() and active.stat().st_size > 16 and logreel.open(active).message_count:
            break
        time.sleep(0.02)
    assert lines(active)
    asked.set()
    thread.join(30)
    os.close(write)
    assert done[0].stopped
    assert done[0].messages == 1
    assert os.listdir(tmp_path) == [out.name]


def test_read_lines_truncates_long_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pipe_lines, "PIECE", 3)
    monkeypatch.setattr(pipe_lines, "LONGEST", 5)
    (tmp_path / "a").write_bytes(b"1\n\n333\n1234567890\n4444\nend")
    with (tmp_path / "a").open("rb") as file:
        found: Iterator[object] = pipe_lines.read_lines(file, 1)
        assert list(found) == [b"1", b"", b"333", b"12345", b"4444", b"end"]


def test_options_as_objects_and_as_keywords_record_the_same(tmp_path: Path) -> None:
    import dataclasses
    import inspect

    from logreel.ops.record.record import Recording, RecordingOptions

    assert [*RecordingOptions.__annotations__] == [member.name for member in dataclasses.fields(Recording)]
    assert inspect.signature(record).parameters["mode"].default == "w"
    lines = [b'{"topic": "/a", "time_ns": %d, "data": {"x": %d}}\n' % (n, n) for n in range(5)]
    lines += [b'{"topic": "/b", "time_ns": 9, "data": {"x": 1}}\n']
    first = record(lines, tmp_path / "a.bag", topics="/a", limit=3, version="2.0")
    chosen, manner = logreel.Selection("/a"), Recording(limit=3)
    second = record(lines, tmp_path / "b.bag", selection=chosen, recording=manner, version="2.0")
    assert first.messages == second.messages == 3
    assert (tmp_path / "a.bag").read_bytes() == (tmp_path / "b.bag").read_bytes()
    with pytest.raises(UsageError, match="leave out topics"):
        record(lines, tmp_path / "c.bag", selection=chosen, topics="/a")
    with pytest.raises(UsageError, match="leave out limit"):
        record(lines, tmp_path / "c.bag", recording=manner, limit=3)
    with pytest.raises(UsageError, match="record takes no start"):
        record(lines, tmp_path / "c.bag", selection=logreel.Selection(start=3))
    with pytest.raises(UsageError, match="no option"):
        record(lines, tmp_path / "c.bag", limits=3)
    assert not (tmp_path / "c.bag").exists()
