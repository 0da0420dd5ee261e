"""Rewritten BDDF files: blocks are copied; series keep their names, types and additional indexes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from damage.mutations import mutate
from logreel.formats.bddf import copier, index_reader
from support.builders.contents import content, other_content, patrol
from support.harness.examples import half
from support.harness.rewriting import rewrite
from support.oracles import bddf as oracle
from support.samples.bddf.builder import T0, Builder, block, data_block, walk

FILES = sorted((SHARED / "data/bddf").glob("*.bddf"))
#: Samples that are damaged or have no index.
OTHERS = {"06_killed_no_index", "07_cut_in_payload", "08_cut_in_trailer", "09_bad_checksum", "10_offset_zero"}
#: Code, offset and size of the damage in these samples.
LOST = {
    "07_cut_in_payload": ("truncated", 1633, 91),
    "08_cut_in_trailer": ("truncated", 9019, 25),
    "09_bad_checksum": ("checksum", 9035, 20),
}

Row = tuple[int, int, bytes, list[int]]


def rows(data: bytes) -> list[Row]:
    return [(row.series, row.ns, row.payload, row.numbers) for row in oracle.closed(data).rows]


def by_spec(data: bytes) -> dict[str, tuple[Any, list[tuple[int, bytes, list[int]]]]]:
    """Return the declaration and the blocks of each series, by type and spec."""
    found = oracle.closed(data)
    table: dict[str, Any] = {}
    for number, one in enumerate(found.series):
        mine = [(row.ns, row.payload, row.numbers) for row in found.rows if row.series == number]
        key = repr((one.series_type, sorted(one.spec.items()), one.kind))
        table[key] = (one.hash, one.annotations, one.names, one.description), mine
    return table


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_copied_samples_keep_their_content(path: Path, tmp_path: Path) -> None:
    data, out, by_time = path.read_bytes(), tmp_path / "out.bddf", tmp_path / "sorted.bddf"
    want = json.loads((path.parent / f"expected/{path.stem}.json").read_text(encoding="utf-8"))
    done = logreel.recover(path, out)
    lost = [(one.code, one.offset, one.size) for one in done.lost]
    assert lost == ([LOST[path.stem]] if path.stem in LOST else [])
    assert (out.read_bytes() == data) == (path.stem not in OTHERS)
    logreel.sort(path, by_time)
    for copied in (out, by_time):
        found = oracle.closed(copied.read_bytes())
        assert found.annotations == want["file"]["annotations"]
        assert found.checksum == want["file"]["checksum_type"]
        for number, (one, due) in enumerate(zip(found.series, want["series"], strict=True)):
            name = due["identifier"]
            assert (one.series_type, one.spec, one.hash) == (
                name["series_type"],
                name["spec"],
                due["identifier_hash"],
            )
            assert (one.annotations, one.names, one.description) == tuple(
                due[key] for key in ("annotations", "additional_index_names", "description")
            )
            blocks = [(b["timestamp_ns"], b["sha1"], b["additional_indexes"]) for b in due["blocks"]]
            mine = [
                (row.ns, hashlib.sha1(row.payload).hexdigest(), row.numbers)
                for row in found.rows
                if row.series == number
            ]
            assert mine == (sorted(blocks, key=lambda b: b[0]) if copied == by_time else blocks)
        assert content(copied) == content(path)
        assert other_content(copied) == other_content(path)
        assert [(c.topic, dict(c.metadata)) for c in logreel.open(copied).channels.values()] == [
            (c.topic, dict(c.metadata)) for c in logreel.open(path).channels.values()
        ]
        assert not logreel.open(copied).problems
    again = logreel.recover(out, tmp_path / "again.bddf")
    assert not again.lost
    assert (tmp_path / "again.bddf").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_samples_written_message_by_message_keep_their_content(path: Path, tmp_path: Path) -> None:
    log = logreel.open(path)
    options = {"checksum": "none"} if log.metadata["checksum"] == "none" else {}
    copied = rewrite(log, tmp_path / "copy.bddf", **options)
    assert content(copied) == content(log)
    for ch in logreel.open(copied).channels.values():
        assert ch.metadata == log[ch.topic].metadata
        assert ch.schema == log[ch.topic].schema
    oracle.closed(copied.read_bytes())


def test_copy_of_bundled_log_has_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = walk(3), tmp_path / "out.bddf"
    for size in (index_reader.EAGER_BYTES, 0):
        monkeypatch.setattr(index_reader, "EAGER_BYTES", size)
        logreel.slice(data, out, force=True)
        assert out.read_bytes() == data
        logreel.recover(data, out, force=True)
        assert out.read_bytes() == data
    # Blocks written message by message in file order are the same.
    monkeypatch.setattr(copier, "plan_blocks", lambda excerpt: None)
    logreel.slice(data, out, force=True)
    assert rows(out.read_bytes()) == rows(data)
    assert by_spec(out.read_bytes()) == by_spec(data)


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("large", [True, False])
def test_slice_holds_exactly_the_messages_of_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool, large: bool
) -> None:
    if large:
        monkeypatch.setattr(index_reader, "EAGER_BYTES", 0)
    if not copied:
        monkeypatch.setattr(copier, "plan_blocks", lambda excerpt: None)
    out = Builder()
    say = out.messages("say", "text/plain", "line", names=["n"])
    late, times = -1, [5, 1, 4, 4, 0, 9, 3, 7, 2, 8]
    for i, time in enumerate(times):
        out.data(say, time, bytes([i]) * i, [i])
        if i == 4:
            late = out.messages("late", "image/jpeg", "")
        if i > 4:
            out.data(late, time, b"late")
    path = tmp_path / "out.bddf"
    for lo in range(-1, 11):
        for hi in range(lo, 12, 3):
            if not (lo <= 9 and hi > 0) and not lo == hi == 0:
                with pytest.raises(logreel.UsageError, match="nothing between"):
                    logreel.slice(out.bytes(), path, start=lo, end=hi, force=True)
                continue
            logreel.slice(out.bytes(), path, start=lo, end=hi, force=True)
            found = rows(path.read_bytes())
            assert found == [row for row in rows(out.bytes()) if lo <= row[1] < hi]
    logreel.slice(out.bytes(), path, count=7, force=True)
    assert rows(path.read_bytes()) == rows(out.bytes())[:7]


def test_rewriting_keeps_additional_indexes(tmp_path: Path) -> None:
    data, out = patrol(), tmp_path / "out.bddf"
    whole = by_spec(data)
    jobs: dict[str, Any] = {
        "sort": lambda: logreel.sort(data, out, force=True),
        "merge": lambda: logreel.merge([data, data], out, align="+7s", force=True),
        "topic": lambda: logreel.slice(data, out, topics=["say"], force=True),
        "renamed": lambda: logreel.merge([data], out, rename={"say": "told"}, force=True),
    }
    say = [row[2] for row in next(v for k, v in whole.items() if "'say'" in k)[1]]
    for name, job in jobs.items():
        job()
        found = by_spec(out.read_bytes())
        key = next(k for k in found if ("'told'" if name == "renamed" else "'say'") in k)
        assert [row[2] for row in found[key][1]] == say * (2 if name == "merge" else 1), name
        if name == "sort":
            assert found == whole


def test_series_numbers_begin_at_zero_in_a_slice(tmp_path: Path) -> None:
    data, out = patrol(), tmp_path / "out.bddf"
    logreel.slice(data, out, topics=["blob"])
    (one,) = oracle.closed(out.read_bytes()).series
    assert one.spec == {"bosdyn:channel": "blob"}
    assert {row[0] for row in rows(out.read_bytes())} == {0}
    assert content(out)["blob"] == content(logreel.open(data))["blob"]


def mixed(*kinds: str, notes: dict[str, str] | None = None) -> bytes:
    """Return a file of series with the same name, one block each."""
    out = Builder(notes)
    for i, kind in enumerate(kinds):
        series = (
            out.pods({"bosdyn:channel": "mixed"}, kind)
            if kind in ("int8", "int16")
            else out.messages("mixed", kind, "line")
        )
        out.data(series, T0 + i, kind.encode())
    return out.bytes()


def test_merge_joins_series_with_same_identifier_and_type(tmp_path: Path) -> None:
    out = tmp_path / "out.bddf"
    first, second = (
        mixed("text/plain", "int8", notes={"a": "1"}),
        mixed("int8", "text/html", notes={"a": "2"}),
    )
    done = logreel.merge([first, second, first], out)
    found = logreel.open(out)
    assert [(name, ch.schema.encoding, len(ch)) for name, ch in found.channels.items()] == [
        ("mixed", "text/plain", 2),
        ("mixed[1]", "bddf", 3),
        ("mixed[2]", "text/html", 1),
    ]
    assert [one.spec for one in oracle.closed(out.read_bytes()).series] == [{"bosdyn:channel": "mixed"}] * 3
    assert len(done.skipped) == 1
    assert "annotation 'a'" in done.skipped[0]
    assert found.metadata["a"] == "1"
    # A single series needs no suffix.
    done = logreel.slice(first, out, topics=["mixed[[]1]"], force=True)
    assert done.notes == ("'mixed[1]' of <bytes> became 'mixed'",)
    assert [one.spec for one in oracle.closed(out.read_bytes()).series] == [{"bosdyn:channel": "mixed"}]


def test_merge_keeps_different_specs_with_same_topic_apart(tmp_path: Path) -> None:
    made = []
    for keys in (("a", "b"), ("c", "d")):
        one = Builder()
        one.values(one.pods({keys[0]: "x", keys[1]: "y"}, "int8"), T0, "int8", [1])
        made.append(one.bytes())
    logreel.merge(made, tmp_path / "out.bddf")
    found = oracle.closed((tmp_path / "out.bddf").read_bytes())
    assert [one.spec for one in found.series] == [{"a": "x", "b": "y"}, {"c": "x", "d": "y"}]
    assert list(logreel.open(tmp_path / "out.bddf")) == ["x/y", "x/y[1]"]


def test_rewritten_structs_are_joined_from_their_new_members(tmp_path: Path) -> None:
    data, out = walk(3), tmp_path / "out.bddf"
    log = logreel.open(data)
    logreel.merge([data, data], out, prefixes=["", "b/"])
    both = logreel.open(out)
    for name in ("body", "b/body"):
        assert both[name].to_arrow().equals(log["body"].to_arrow())
    assert not both.problems
    logreel.slice(data, out, count=9, force=True)
    assert rows(out.read_bytes()) == rows(data)[:9]
    done = logreel.slice(data, out, topics=["body"], exclude=["patrol/body/*"], force=True)
    assert done.messages == 0
    assert done.notes == ("'body' is made of other channels: 0 of 3 messages come of those that were copied",)
    parts = logreel.split(data, tmp_path / "parts", by_topic=True)
    logreel.merge([part.path for part in parts], out, force=True)
    assert content(out) == content(log)
    assert by_spec(out.read_bytes()) == by_spec(data)


def test_keep_latched_includes_metadata_series(tmp_path: Path) -> None:
    data, out = walk(3), tmp_path / "out.bddf"
    tick = "bosdyn.api.SignalTick"
    logreel.slice(data, out, start=T0 + 10**9, keep_latched=True)
    assert len(logreel.open(out)["bosdyn.api.SignalSchema"]) == 1
    due = logreel.open(data)[tick]["motor"][10:]
    assert logreel.open(out)[tick]["motor"].tolist() == due.tolist()


def damaged() -> tuple[bytes, list[oracle.Row], list[tuple[int, int]]]:
    """Return a file with zeros and noise, the undamaged blocks, and the damaged intervals."""
    data = bytearray(patrol())
    every = oracle.walk(bytes(data)).rows
    holes = [(every[20].at, every[22].end), (every[90].at, every[90].end)]
    data[holes[0][0] : holes[0][1]] = bytes(holes[0][1] - holes[0][0])
    data[holes[1][0] : holes[1][1]] = b"\xff" * (holes[1][1] - holes[1][0])
    left = [row for row in every if not any(a <= row.at < b for a, b in holes)]
    return bytes(data), left, [(a, b - a) for a, b in holes]


@pytest.mark.parametrize("copied", [True, False])
def test_recover_drops_and_reports_damage(
    tmp_path: Path, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, left, holes = damaged()
    if not copied:
        monkeypatch.setattr(copier, "plan_blocks", lambda excerpt: None)
    done = logreel.recover(data, tmp_path / "out.bddf")
    assert [(one.offset, one.size) for one in done.lost] == holes
    assert [one.code for one in done.lost] == ["zeros", "garbage"]
    assert all(one.start_ns is not None and one.end_ns is not None for one in done.lost)
    due = [(row.series, row.ns, row.payload, row.numbers) for row in left]
    assert rows((tmp_path / "out.bddf").read_bytes()) == due


def test_unknown_blocks_are_kept_only_in_full_copies(tmp_path: Path) -> None:
    made, out = Builder(), tmp_path / "out.bddf"
    series = made.messages("a", "text/plain", "t")
    made.data(series, T0, b"1")
    made.out += block(7, b"what is this")
    for i in range(1, 4):
        made.data(series, T0 + i, b"2")
    logreel.slice(made.bytes(), out)
    assert out.read_bytes() == made.bytes()
    logreel.slice(made.bytes(), out, start=T0 + 1, force=True)
    assert [row[1] for row in rows(out.read_bytes())] == [T0 + 1, T0 + 2, T0 + 3]


def test_concatenated_files_are_rewritten_message_by_message(tmp_path: Path) -> None:
    out = tmp_path / "out.bddf"
    logreel.recover(patrol() + mixed("text/plain", "int8"), out)
    assert list(logreel.open(out)) == ["say", "patrol/speed", "blob", "mixed", "mixed[1]"]
    oracle.closed(out.read_bytes())
    lost = Builder()
    kept = lost.messages("a", "text/plain", "t")
    data = bytearray(lost.killed())
    for i in range(8):
        data += data_block(kept, T0 + i, b"kept") + data_block(5, T0 + i, b"not declared")
    done = logreel.recover(bytes(data), out, force=True)
    assert done.messages == 8
    assert [one.code for one in done.lost] == ["undeclared"]
    assert [row[2] for row in rows(out.read_bytes())] == [b"kept"] * 8


@pytest.mark.parametrize("lane", range(2))
def test_every_readable_damaged_file_can_be_recovered(tmp_path: Path, lane: int) -> None:
    whole, out = Builder({"note": "small"}), tmp_path / "out.bddf"
    say = whole.messages("say", "text/plain", "line", names=["n"])
    speed = whole.pods({"varname": "speed"}, "float32")
    whole.struct({"schema": "joined"}, {"speed": speed})
    for i in range(9):
        whole.data(say, T0 + i, b"line", [i]).values(speed, T0 + i, "float32", [i])
    for seed in range(lane, half(120), 2):
        data = mutate(whole.bytes(), seed)
        try:
            log = logreel.open(data)
        except logreel.LogError:
            continue
        done = logreel.recover(log, out, force=True)
        again = logreel.open(out)
        assert again.metadata["indexed"] or any(p.code == "unknown" for p in log.problems), seed
        assert not any(p.lost for p in again.problems), seed
        assert not any(found.severity == "error" for found in again.verify()), seed
        assert payloads(again) == payloads(log), seed
        assert done.messages == again.message_count, seed


def payloads(log: logreel.Log) -> list[tuple[int, bytes]]:
    """Return the messages of all channels except synthetic ones, which may change when damage is dropped."""
    inside = [ch.topic for ch in log.channels.values() if log.index.rules[ch.number].synthetic is None]
    return sorted((m.time, bytes(m.data)) for m in log.messages(inside)) if inside else []


def test_recover_leaves_out_what_other_readers_refuse(tmp_path: Path) -> None:
    """The vendor's readers accept version 1.0.0 and blocks of known kinds only; a slice of everything keeps both."""
    out = Builder()
    say = out.messages("say", "text/plain", "line")
    for i in range(4):
        out.data(say, T0 + i, b"line %d" % i)
        if i == 1:
            out.out += block(9, b"of the future")
    # Version 1.0.1.
    data = out.killed().replace(b"\x0a\x02\x08\x01", b"\x0a\x04\x08\x01\x18\x01", 1)
    size = data.index(b"\x0a\x04\x08\x01") - 4
    data = data[:4] + bytes([data[4] + 2]) + data[5:]
    data = data[: size + 3] + bytes([data[size + 3] + 2]) + data[size + 4 :]
    log = logreel.open(data)
    assert log.version == "1.0.1"
    assert any(one.code == "unknown" for one in log.problems)
    done = logreel.recover(log, tmp_path / "a.bddf")
    again = logreel.open(tmp_path / "a.bddf")
    assert again.version == "1.0.0"
    assert not again.problems
    assert again.message_count == 4
    assert any("unknown kinds" in note for note in done.notes)
    assert any("version 1.0.1" in note for note in done.notes)
