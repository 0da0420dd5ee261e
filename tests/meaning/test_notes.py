"""Notes on logs: the file beside a log, the verb, reports, and the metadata of an MCAP."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.meaning.notes import BYTES, COUNT, METADATA, notes_path
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

SECOND = 10**9


@pytest.fixture(scope="session")
def small() -> bytes:
    """Return a flight."""
    return flight(4)


@pytest.fixture
def path(tmp_path: Path, small: bytes) -> Path:
    """Return the path of a flight."""
    path = tmp_path / "flight.ulg"
    path.write_bytes(small)
    return path


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.notes.json")


def test_notes_are_kept_beside_the_log(path: Path) -> None:
    before = path.read_bytes()
    notes = logreel.notes(path)
    assert len(notes) == 0
    assert not beside(path).exists()
    late = notes.add("2s", "  Motor 3\nslows down ", end="3s", text="It <whistles>.\nOften.", author="Kim")
    early = notes.add("1s", "", text="a bookmark", colour="red")
    assert not beside(path).exists()
    assert notes.save() == os.path.realpath(beside(path))
    with logreel.open(path) as log:
        start = log.start
    read = logreel.notes(path)
    assert list(read) == [early, late]
    assert (late.begin, late.end) == (start + 2 * SECOND, start + 3 * SECOND)
    assert (late.title, late.text) == ("Motor 3 slows down", "It <whistles>.\nOften.")
    assert path.read_bytes() == before
    assert read.problem == ""
    assert sorted(p.name for p in path.parent.iterdir()) == ["flight.ulg", "flight.ulg.notes.json"]


def test_a_note_is_replaced_and_removed_by_its_id(path: Path) -> None:
    notes = logreel.notes(path)
    note = notes.add("1s", "one")
    changed = notes.put(logreel.Note(note.begin + 5, title="two", id=note.id))
    assert [one.title for one in notes] == ["two"]
    assert changed.id == note.id
    assert notes.remove(note.id) == changed
    assert len(notes) == 0
    with pytest.raises(logreel.NotFoundError, match="note"):
        notes.remove(note.id)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        b"{}",
        b'{"logreel": "layout", "version": 1, "notes": []}',
        b'{"logreel": "notes", "version": 2, "notes": []}',
        b'{"logreel": "notes", "version": 1, "notes": {}}',
        b'{"logreel": "notes", "version": 1, "notes": [3]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 1.5, "title": "x"}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": true, "title": "x"}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 99999999999999999999, "title": "x"}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "end_ns": 1, "title": "x"}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "title": " "}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "title": 7}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "title": "x", "colour": "url(x)"}]}',
        b'{"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "title": "' + b"x" * 300 + b'"}]}',
        json.dumps({"logreel": "notes", "version": 1, "notes": [{"begin_ns": 2, "title": "x"}] * (COUNT + 1)}).encode(),
        b" " * (BYTES + 1),
    ],
)  # fmt: skip
def test_a_file_with_anything_else_is_an_error_and_stays(path: Path, content: bytes) -> None:
    beside(path).write_bytes(content)
    with pytest.raises(logreel.LogError, match=r"flight\.ulg\.notes\.json"):
        logreel.notes(path)
    assert beside(path).read_bytes() == content


def test_what_shows_or_converts_a_log_goes_on_without_notes_that_cannot_be_read(path: Path) -> None:
    beside(path).write_text("[]")
    assert "cannot be shown" in logreel.report(path).html
    done = logreel.convert(path, path.with_suffix(".mcap"), topics=["battery_status"])
    assert any("notes on the log are left out" in note for note in done.notes)


def test_notes_without_ids_have_the_same_ones_each_time(path: Path) -> None:
    content = {
        "logreel": "notes",
        "version": 1,
        "notes": [{"begin_ns": 2, "title": "x"}, {"begin_ns": 3, "title": "x"}],
    }
    beside(path).write_text(json.dumps(content))
    ids = [note.id for note in logreel.notes(path)]
    assert len(set(ids)) == 2
    assert ids == [note.id for note in logreel.notes(path)]


def test_notes_on_another_log_are_told(path: Path) -> None:
    logreel.notes(path).save()
    content = json.loads(beside(path).read_text())
    assert content["log"]["size"] == path.stat().st_size
    content["log"] |= {"start_ns": 7, "name": "other.ulg"}
    beside(path).write_text(json.dumps(content))
    assert "'other.ulg'" in logreel.notes(path).problem


def test_a_log_without_a_place_says_why(path: Path) -> None:
    notes = logreel.notes(io.BytesIO(path.read_bytes()))
    notes.add("1s", "x")
    with pytest.raises(logreel.UsageError, match="kept beside a file"):
        notes.save()
    assert json.loads(notes.to_json())["notes"][0]["title"] == "x"


def test_a_file_that_cannot_be_written_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = logreel.notes(path)
    notes.add("1s", "x")

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(logreel.LogError, match="Read-only file system"):
        notes.save()
    assert [p.name for p in path.parent.iterdir()] == ["flight.ulg"]


def test_the_verb_lists_adds_and_removes(path: Path, run: Run) -> None:
    done = run(
        "notes", path, "--add", "Shakes", "--at", "1s", "--until", "2s", "--text", "much", "--author", "Kim"
    )
    assert (done.code, done.out) == (
        0,
        "",
    )
    assert done.err == f"logreel: wrote {os.path.realpath(beside(path))}\n"
    answer = json.loads(run("notes", path, "--json").out)
    assert answer["file"] == os.path.realpath(beside(path))
    (note,) = answer["notes"]
    assert note["end_ns"] - note["begin_ns"] == SECOND
    assert note["author"] == "Kim"
    assert "for 1.0 s  Shakes  (Kim)\n    much\n" in run("notes", path).out
    assert run("notes", path, "--remove", note["id"]).code == 0
    assert run("notes", path).out == ""


@pytest.mark.parametrize(
    "words", [["--at", "1s"], ["--add", "x"], ["--add", "x", "--at", "?"], ["--remove", "0"]]
)
def test_the_verb_refuses_what_it_cannot_do(path: Path, run: Run, words: list[str]) -> None:
    done = run("notes", path, *words)
    assert done.code in (1, 2)
    assert done.err.startswith("logreel: ")
    assert not beside(path).exists()


def test_a_report_shows_the_notes_on_its_part(path: Path) -> None:
    notes = logreel.notes(path)
    notes.add("1s", "<b>early</b>", colour="red")
    notes.add("3s", "late", text="first\nsecond")
    notes.save()
    whole = logreel.report(path).html
    assert '<section id="notes">' in whole
    assert "<b>&lt;b&gt;early&lt;/b&gt;</b>" in whole
    assert "<p>first<br>second</p>" in whole
    part = logreel.report(path, start="2s").html
    assert "early" not in part
    assert "<b>late</b>" in part
    assert '"kind": "note"' in part


@pytest.mark.parametrize("raw", [False, True])
def test_an_mcap_carries_notes_by_its_own_clock(path: Path, tmp_path: Path, raw: bool) -> None:
    notes = logreel.notes(path)
    notes.add("1s", "first", end="2s")
    notes.add("3.5s", "last")
    notes.save()
    out, again, part = tmp_path / "a.mcap", tmp_path / "b.mcap", tmp_path / "c.mcap"
    logreel.convert(path, out, raw=raw)
    after = [note.begin - notes.start for note in notes]

    def read(log: Path) -> list[tuple[int, str]]:
        found = logreel.notes(log)
        return [(note.begin - found.start, note.title) for note in found]

    assert read(out) == [(after[0], "first"), (after[1], "last")]
    logreel.convert(out, again, topics=["battery_status"])
    assert len(logreel.notes(again)) == 2
    logreel.convert(path, part, end="3s", raw=raw)
    assert [note.title for note in logreel.notes(part)] == ["first"]
    # A file beside the MCAP replaces what it carries, also in what is made of it.
    own = logreel.notes(out)
    own.remove(own[0].id)
    own.save()
    assert [note.title for note in logreel.notes(out)] == ["last"]
    logreel.convert(out, again, force=True)
    assert [note.title for note in logreel.notes(again)] == ["last"]
    assert isinstance(logreel.open(again).metadata[METADATA], dict)


def test_metadata_that_are_no_notes_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with logreel.create(path) as w:
        w.metadata(METADATA, {"notes": '[{"begin_ns": 1, "title": "x"}, 7, {"begin_ns": "1"}]'})
        w.metadata(METADATA, {"notes": "[" * 5000})
    assert [note.title for note in logreel.notes(path)] == ["x"]
    assert notes_path(path).name == "a.mcap.notes.json"
