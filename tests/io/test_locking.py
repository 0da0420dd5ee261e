"""Locks of recordings: a second recorder of a name is refused, and links are not followed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import logreel
from logreel.errors import LogError
from logreel.io.append_file import Appender
from support.harness.cli_runner import SRC, Run

RECORDER = """
    import sys
    import logreel
    w = logreel.create(sys.argv[1], force=True, flush_every=None)
    c = w.add_channel("/a", logreel.Schema("x", "jsonschema", "{}"))
    for n in range(100):
        w.write(c, n, b'{"n": %d}' % n)
    w.flush()
    print("recording", flush=True)
    sys.stdin.readline()
    w.close()
"""


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that records to ``x.mcap`` until it reads a line from stdin."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RECORDER), str(tmp_path / "x.mcap")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert process.stdout
    assert process.stdout.readline() == "recording\n"
    yield process
    process.kill()
    process.communicate()


def test_second_recorder_is_refused_and_the_first_loses_nothing(
    recording: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = tmp_path / "x.mcap"
    for force in (True, False):
        with pytest.raises(LogError, match="written by another recorder"):
            logreel.create(path, force=force)
    assert len(logreel.open(tmp_path / "x.mcap.active")["/a"]) == 100
    recording.communicate("\n")
    assert recording.returncode == 0
    log = logreel.open(path)
    assert [m.decode()["n"] for m in log.messages()] == list(range(100))
    assert not log.problems
    assert os.listdir(tmp_path) == ["x.mcap"]


def test_cli_refuses_a_locked_recording_with_an_error(
    recording: subprocess.Popen[str], tmp_path: Path, run: Run
) -> None:
    (tmp_path / "in.ndjson").write_text('{"topic": "/b", "time_ns": 1, "data": {"x": 1}}\n')
    done = run("record", "--from", str(tmp_path / "in.ndjson"), str(tmp_path / "x.mcap"), "--force")
    assert done.code == 1
    assert "x.mcap.active: is being written by another recorder" in done.err


def test_killed_recorder_holds_no_lock_and_its_file_can_be_recovered(
    recording: subprocess.Popen[str], tmp_path: Path
) -> None:
    path, active = tmp_path / "x.mcap", tmp_path / "x.mcap.active"
    recording.kill()
    recording.communicate()
    with pytest.raises(LogError, match="not finished, which 'logreel recover' can save"):
        logreel.create(path)
    assert len(logreel.open(active)["/a"]) == 100
    logreel.recover(active)
    assert len(logreel.open(path)["/a"]) == 100
    with logreel.create(path, force=True) as w:
        w.add_channel("/b", logreel.Schema("x", "jsonschema", "{}"))
    assert list(logreel.open(path).channels) == ["/b"]
    assert os.listdir(tmp_path) == ["x.mcap"]


@pytest.mark.parametrize("leftover", [False, True])
def test_only_one_of_many_threads_records(tmp_path: Path, leftover: bool) -> None:
    path, count = tmp_path / "a.bin", 16
    if leftover:
        (tmp_path / "a.bin.active").write_bytes(b"of a crash")
    ready = Barrier(count)

    def one(n: int) -> Appender | str:
        ready.wait()
        try:
            out = Appender(path, force=True)
        except LogError as error:
            return error.text
        out.put(b"%02d" % n)
        return out

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(one, range(count)))
    winners = [(n, out) for n, out in enumerate(found) if isinstance(out, Appender)]
    assert len(winners) == 1
    assert all("another recorder" in text for text in found if isinstance(text, str))
    n, out = winners[0]
    out.finish()
    assert path.read_bytes() == b"%02d" % n
    assert os.listdir(tmp_path) == ["a.bin"]


def test_names_are_free_when_a_recorder_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    Appender(path).leave()
    Appender(path, force=True).discard()
    Appender(path).finish()
    Appender(path, force=True).finish()
    forgotten = Appender(path, force=True)
    del forgotten
    Appender(path, force=True).finish()
    assert os.listdir(tmp_path) == ["a.bin"]


def test_refused_recorder_leaves_the_file_of_the_first(tmp_path: Path) -> None:
    first = Appender(tmp_path / "a.bin")
    first.put(b"first")
    first.flush()
    for force in (False, True):
        with pytest.raises(LogError, match="another recorder"):
            Appender(tmp_path / "a.bin", force)
    first.splice(0, 0, b"the ")
    with pytest.raises(LogError, match="another recorder"):
        Appender(tmp_path / "a.bin", force=True)
    first.finish()
    assert (tmp_path / "a.bin").read_bytes() == b"the first"


def test_recording_replaced_meanwhile_does_not_get_the_name(tmp_path: Path) -> None:
    path, active = tmp_path / "a.bin", tmp_path / "a.bin.active"
    out = Appender(path)
    out.put(b"ours")
    active.unlink()
    active.write_bytes(b"somebody else's")
    with pytest.raises(LogError, match="another program moved or replaced"):
        out.finish()
    out.discard()
    assert not path.exists()
    assert active.read_bytes() == b"somebody else's"


def test_link_at_the_unfinished_name_is_not_followed(tmp_path: Path) -> None:
    path, active, precious = tmp_path / "a.bin", tmp_path / "a.bin.active", tmp_path / "precious"
    precious.write_bytes(b"precious")
    for leads in ("precious", "nowhere"):
        active.symlink_to(leads)
        with pytest.raises(LogError, match="symbolic link"):
            Appender(path)
        with Appender(path, force=True) as out:
            out.put(b"new")
        assert path.read_bytes() == b"new"
        path.unlink()
    assert precious.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["precious"]


def test_hard_link_of_a_leftover_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.bin.active").write_bytes(b"of a crash")
    os.link(tmp_path / "a.bin.active", tmp_path / "kept")
    with Appender(tmp_path / "a.bin", force=True) as out:
        out.put(b"new")
    assert (tmp_path / "kept").read_bytes() == b"of a crash"


@pytest.mark.parametrize("keep", [True, False])
def test_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path, keep: bool) -> None:
    (tmp_path / "real").write_bytes(b"precious")
    for leads in ("real", "nowhere"):
        link = tmp_path / f"to {leads}"
        link.symlink_to(leads)
        with pytest.raises(LogError, match="exists already"):
            Appender(link, keep=keep)
        with Appender(link, force=True, keep=keep) as out:
            out.put(b"new")
        assert not link.is_symlink()
        assert link.read_bytes() == b"new"
    assert (tmp_path / "real").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "way").symlink_to("deep/er")
    with Appender(tmp_path / "way" / ".." / "a.bin") as out:
        out.put(b"new")
    assert (tmp_path / "deep" / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("force", [True, False])
def test_non_files_are_never_replaced(tmp_path: Path, force: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(LogError, match="not a regular file"):
            Appender(tmp_path / name, force)
    os.mkfifo(tmp_path / "a.bin.active")
    with pytest.raises(LogError):
        Appender(tmp_path / "a.bin", force)
    assert sorted(os.listdir(tmp_path)) == ["a.bin.active", "link", "pipe"]
