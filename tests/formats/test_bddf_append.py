"""Continuing of BDDF files: old blocks stay byte for byte, index and checksum are those of the whole file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from conftest import SHARED
from logreel.cli.exits import sentence
from support.builders.contents import patrol
from support.oracles import bddf as oracle
from support.samples.bddf.builder import T0, Builder, block, walk

FILES = sorted((SHARED / "data/bddf").glob("*.bddf"))
#: Samples that are damaged, or were not completed.
REFUSED = {"06_killed_no_index", "07_cut_in_payload", "08_cut_in_trailer", "09_bad_checksum"}
LATER = 1000 * 10**9
LINE = logreel.Schema("line", "text/plain")
Block = tuple[int, int, bytes, list[int]]


def blocks(data: bytes) -> list[Block]:
    """Return all data blocks of a file that must be valid to the last byte, read by the plain reader."""
    return [(row.series, row.ns, row.payload, row.numbers) for row in oracle.closed(data).rows]


def data_end(data: bytes) -> int:
    return max((row.end for row in oracle.closed(data).rows), default=0)


def give(w: logreel.Writer, numbers: range) -> None:
    say = w.add_channel("say", LINE, {"additional_indexes": ["pid"]})
    speed = w.add_channel("speed", logreel.Schema("float32", "bddf"))
    for n in numbers:
        w.write(say, T0 + n, {"text": f"line {n}", "pid": n})
        w.write(speed, T0 + n, {"records": [{"value": n}, {"value": -n}]})


@pytest.mark.parametrize("checksum", ["sha1", "none"])
def test_continued_file_has_the_bytes_of_one_written_at_once(tmp_path: Path, checksum: str) -> None:
    path, whole = tmp_path / "a.bddf", tmp_path / "whole.bddf"
    with logreel.create(path, checksum=checksum) as w:
        w.metadata("bosdyn:robot-serial-number", "spot-0001")
        give(w, range(100))
    for numbers in (range(100, 300), range(300, 301)):
        with logreel.create(path, mode="a") as w:
            give(w, numbers)
    with logreel.create(whole, checksum=checksum) as w:
        w.metadata("bosdyn:robot-serial-number", "spot-0001")
        give(w, range(301))
    assert path.read_bytes() == whole.read_bytes()
    assert len(blocks(path.read_bytes())) == 602


@pytest.mark.parametrize(
    "make", [patrol, walk, lambda: patrol()[:4] + patrol()[4:]], ids=["patrol", "walk", "again"]
)
def test_new_series_follow_the_old_ones(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "a.bddf"
    path.write_bytes(make())
    data, log = path.read_bytes(), logreel.open(path)
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("more", LINE), T0 + LATER, {"text": "more"})
        w.write(
            w.add_channel("even more", logreel.Schema("float64", "bddf")),
            T0 + LATER,
            {"records": [{"value": 1.5}]},
        )
    after = logreel.open(path)
    assert not after.problems
    assert not after.verify()
    assert after.metadata["indexed"]
    assert list(after.channels) == [*log.channels, "more", "even more"]
    assert path.read_bytes()[: data_end(data)] == data[: data_end(data)]
    n = len(log.channels)
    assert blocks(path.read_bytes()) == [
        *blocks(data),
        (n, T0 + LATER, b"more", []),
        (n + 1, T0 + LATER, np.float64(1.5).tobytes(), []),
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sample_is_continued_or_refused_unchanged(path: Path, tmp_path: Path) -> None:
    mine = tmp_path / path.name
    mine.write_bytes(path.read_bytes())
    log = logreel.open(path)
    rules = log.index.rules
    some = [m for m in log.messages(order="file") if rules[m.channel.number].synthetic is None]
    if path.stem in REFUSED:
        with pytest.raises(logreel.LogError, match=r"logreel\.recover"):
            logreel.create(mine, mode="a")
        assert mine.read_bytes() == path.read_bytes()
        assert [one.name for one in tmp_path.iterdir()] == [mine.name]
        return
    with logreel.create(mine, mode="a") as w:
        for message in some:
            ch = message.channel
            w.write(w.add_channel(ch.topic, ch.schema, ch.metadata), message.time, message.data)
        w.write(w.add_channel("more", LINE), T0, {"text": "more"})
    after = logreel.open(mine)
    assert not after.problems
    assert [one.text for one in after.verify()] == [one.text for one in log.verify()]
    found = [
        (m.channel.topic, m.time, bytes(m.data))
        for m in after.messages(order="file")
        if after.index.rules[m.channel.number].synthetic is None
    ]
    old = [(m.channel.topic, m.time, bytes(m.data)) for m in some]
    assert found == [*old, *old, ("more", T0, b"more")]
    if path.stem != "10_offset_zero":
        n = data_end(path.read_bytes())
        assert mine.read_bytes()[:n] == path.read_bytes()[:n]
        assert len(blocks(mine.read_bytes())) == 2 * len(some) + 1
    for topic, ch in log.channels.items():
        assert after[topic].metadata == ch.metadata
        assert after[topic].schema == ch.schema


def test_file_without_index_but_with_an_end_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    data = Builder()
    data.data(data.messages("say", "text/plain", "line"), T0, b"old")
    path.write_bytes(data.bytes(index=False))
    assert not logreel.open(path).metadata["indexed"]
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("say", LINE), T0 + 1, {"text": "new"})
    assert [row[2] for row in blocks(path.read_bytes())] == [b"old", b"new"]
    assert logreel.open(path).metadata["indexed"]


def test_large_file_is_continued_without_reading_its_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel.formats.bddf import index_reader

    monkeypatch.setattr(index_reader, "EAGER_BYTES", 0)
    path = tmp_path / "a.bddf"
    path.write_bytes(patrol())
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("more", LINE), T0, {"text": "more"})
    assert len(blocks(path.read_bytes())) == len(blocks(patrol())) + 1


def test_struct_gets_the_appended_values_of_its_members(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"

    def give_pose(w: logreel.Writer, n: int) -> None:
        numbers = [w.add_channel(topic, logreel.Schema("float64", "bddf")) for topic in ("x", "y")]
        if n == 0:
            w.add_channel("pose", logreel.Schema("struct", "bddf"), {"members": {"x": "x", "y": "y"}})
        for k, number in enumerate(numbers):
            w.write(number, T0 + n, {"records": [{"value": n + k}]})

    for n, mode in enumerate("wa"):
        with logreel.create(path, mode=mode) as w:
            give_pose(w, n)
    table = logreel.open(path)["pose"].to_arrow()
    assert (table["x"].to_pylist(), table["y"].to_pylist()) == ([0, 1], [1, 2])


def test_new_struct_has_old_members(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        w.write(w.add_channel("x", logreel.Schema("float64", "bddf")), T0, {"records": [{"value": 1}]})
    with logreel.create(path, mode="a") as w:
        w.add_channel("pose", logreel.Schema("struct", "bddf"), {"members": {"a": "x"}})
    log = logreel.open(path)
    assert not log.problems
    assert log["pose"].to_arrow()["a"].to_pylist() == [1]


def test_ticks_of_a_known_signal_schema_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    path.write_bytes(walk())
    log = logreel.open(path)
    topic = next(ch.topic for ch in log.channels.values() if ch.schema.name.endswith("SignalTick"))
    ticks = [bytes(m.data) for m in log.messages(topic)][:10]
    with logreel.create(path, mode="a") as w:
        for n, data in enumerate(ticks):
            w.write(w.add_channel(topic, log[topic].schema), T0 + LATER + n, data)
    table, old = logreel.open(path)[topic].to_arrow(), log[topic].to_arrow()
    assert table.slice(0, len(old)).equals(old)
    new = table.slice(len(old))
    # The additional index ``sequence`` is not part of payloads.
    for name in table.column_names[2:]:
        assert new[name].to_pylist() == old[name].to_pylist()[:10]


def test_series_of_the_file_with_another_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        give(w, range(1))
    with logreel.create(path, mode="a") as w:
        assert w.add_channel("say", logreel.Schema("line", "text/plain")) == 0
        assert w.add_channel("speed", logreel.Schema("float32", "bddf", "metres per second")) == 1
        for topic, schema in (
            ("say", logreel.Schema("line", "text/html")),
            ("say", logreel.Schema("", "text/plain")),
            ("speed", logreel.Schema("float64", "bddf")),
        ):
            with pytest.raises(logreel.UsageError, match="add a channel with another topic"):
                w.add_channel(topic, schema)


def test_annotations_and_other_options_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    path.write_bytes(patrol())
    with pytest.raises(logreel.UsageError, match="the file has 'sha1'"):
        logreel.create(path, mode="a", checksum="none")
    with (
        logreel.create(path, mode="a") as w,
        pytest.raises(logreel.UsageError, match="before the first message"),
    ):
        w.metadata("acme:note", "x")
    assert path.read_bytes() == patrol()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda data: data[:-24] + bytes(20) + data[-4:], "checksum is wrong"),
        (lambda data: data + b"\0" * 100, "after the end of the log"),
        (lambda data: data + data, "another log begins here"),
        (lambda data: data[:-40], "no end block"),
    ],
    ids=["checksum", "zeros", "two logs", "killed"],
)
def test_incomplete_and_changed_files_are_refused(tmp_path: Path, change: Any, text: str) -> None:
    path = tmp_path / "a.bddf"
    path.write_bytes(change(patrol()))
    data = path.read_bytes()
    with pytest.raises(logreel.LogError, match=text) as error:
        logreel.create(path, mode="a")
    assert re.search(r"logreel\.recover", str(error.value))
    assert "'logreel recover'" in sentence(error.value)
    assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["a.bddf"]


def test_blocks_of_unknown_kinds_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    out = Builder()
    say = out.messages("say", "text/plain", "line")
    out.data(say, T0, b"old")
    odd = block(9, b"reserved for later")
    out.out += odd
    out.data(say, T0 + 1, b"old 2")
    path.write_bytes(out.bytes(index=False))
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("say", LINE), T0 + 2, {"text": "new"})
    assert odd in path.read_bytes()
    assert [bytes(m.data) for m in logreel.open(path)["say"]] == [b"old", b"old 2", b"new"]
