"""``logreel add``: attachments and metadata of an existing log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run, Spawn
from support.samples.ulog.builder import flight

STRING = logreel.Schema("std_msgs/String", "ros1msg")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an MCAP."""
    path = tmp_path / "a.mcap"
    with logreel.create(path) as w:
        w.write(w.add_channel("/words", STRING), 10**18, {"data": "x"})
    return path


def test_files_are_attached(run: Run, path: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"1")
    (tmp_path / "two.png").write_bytes(b"2")
    done = run("add", "attachment", path, tmp_path / "one.txt", tmp_path / "two.png")
    assert (done.code, done.out) == (0, "")
    assert f"added 2 attachments to {path}" in done.err
    done = run(
        "add", "attachment", path, tmp_path / "one.txt", "--name", "three", "--media-type", "a/b", "--json"
    )
    assert json.loads(done.out) == {
        "path": str(path), "size": path.stat().st_size, "attachments": ["three"], "metadata": []
    }  # fmt: skip
    log = logreel.open(path)
    assert log.problems == ()
    found = {name: (one.media_type, one.read()) for name, one in log.attachments.items()}
    assert found == {
        "one.txt": ("text/plain", b"1"),
        "two.png": ("image/png", b"2"),
        "three": ("a/b", b"1"),
    }
    assert len(log["/words"]) == 1


def test_standard_input_is_attached(run: Run, spawn: Spawn, path: Path) -> None:
    words = ("-m", "logreel", "add", "attachment", path, "-", "--name", "notes.txt")
    assert spawn(*words, input=b"hello").returncode == 0
    assert logreel.open(path).attachments["notes.txt"].read() == b"hello"
    done = run("add", "attachment", path, "-")
    assert (done.code, "add --name" in done.err) == (2, True)


def test_metadata_are_added(run: Run, path: Path, tmp_path: Path) -> None:
    done = run("add", "metadata", path, "operator=Kim", "run=7")
    assert done.code == 0
    metadata = logreel.open(path).metadata
    # An MCAP holds maps of text.
    assert (metadata["operator"], metadata["run"]) == ({"operator": "Kim"}, {"run": "7"})
    ulog = tmp_path / "a.ulg"
    ulog.write_bytes(flight(2.0))
    old = logreel.open(ulog)
    done = run("add", "metadata", ulog, "operator=Kim", "run=7", 'code="7"', "--json")
    assert json.loads(done.out)["metadata"] == ["operator", "run", "code"]
    log = logreel.open(ulog)
    assert (log.metadata["operator"], log.metadata["run"], log.metadata["code"]) == ("Kim", 7, "7")
    assert log.message_count == old.message_count


@pytest.mark.parametrize("words", [["attachment"], ["metadata"]])
def test_formats_without_a_place_refuse(words: list[str], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.vel"
    with logreel.create(path) as w:
        w.write(w.add_channel("0x000082DD", logreel.Schema("0x000082DD", "koblenz")), 10**9, b"x")
    data = path.read_bytes()
    (tmp_path / "name=x").write_bytes(b"1")
    done = run("add", *words, path, tmp_path / "name=x")
    assert (done.code, "a Koblenz log has no place for" in done.err) == (1, True)
    assert path.read_bytes() == data
    assert not list(tmp_path.glob("*.active"))


def test_wrong_usage_is_refused(run: Run, path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    (tmp_path / "sub").mkdir()
    for name in ("one.txt", "sub/one.txt"):
        (tmp_path / name).write_bytes(b"1")
    one, other = tmp_path / "one.txt", tmp_path / "sub/one.txt"
    for words, text in (
        (["attachment", path, one, other], "two files are called 'one.txt'"),
        (["attachment", path, one, other, "--name", "x"], "single attachment"),
        (["metadata", path, "x"], "write NAME=VALUE"),
        (["metadata", path, "x=1", "--name", "y"], "are for attachments"),
        (["something", path, "x=1"], "something"),
        (["metadata", path], "PATH"),
    ):
        done = run("add", *words)
        assert (done.code, text in done.err) == (2, True), done.err
    for words in (["metadata", tmp_path / "missing.mcap", "x=1"], ["attachment", path, tmp_path / "missing"]):
        done = run("add", *words)
        assert done.code == 1
        assert "no such" in done.err
    assert path.read_bytes() == data
    assert not (tmp_path / "missing.mcap").exists()


def test_a_file_that_is_no_log_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"text")
    assert run("add", "metadata", tmp_path / "a.txt", "x=1").code == 5
