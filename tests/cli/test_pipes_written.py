"""Verbs that write to standard output: pipes that are closed, terminals, and the choice of the format."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

import logreel
from support.builders.sample_logs import tiny
from support.formats import sample_log, written_formats
from support.harness.cli_runner import Run, Spawn, environment
from support.harness.forked import forked
from support.samples.mcap.builder import tiny as mcap


@pytest.fixture
def field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.ulg").write_bytes(tiny())
    (tmp_path / "two.mcap").write_bytes(mcap())
    (tmp_path / "lines").write_text('{"topic": "/a", "time_ns": 1, "data": {"x": 1.5}}\n')
    return tmp_path


WRITING = [
    ["slice", "one.ulg"],
    ["sort", "one.ulg"],
    ["merge", "one.ulg", "one.ulg"],
    ["recover", "one.ulg"],
    ["recover", "one.ulg", "--format", "mcap"],
    ["convert", "one.ulg", "--format", "bddf"],
    ["record", "--from", "lines", "--format", "rosbag"],
    ["record", "--from", "lines", "--format", "mcap"],
]


@pytest.mark.parametrize("args", WRITING, ids=" ".join)
def test_no_log_is_written_to_a_terminal(field: Path, args: list[str]) -> None:
    own, theirs = pty.openpty()
    with subprocess.Popen(
        forked(*args, "-o", "-"),
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        os.close(theirs)
        _, err = process.communicate(timeout=120)
        with pytest.raises(OSError, match="Input/output"):
            # Nothing was written before the terminal was closed.
            os.read(own, 100)
        os.close(own)
    assert process.returncode == 2
    assert b"no text for a terminal" in err


@pytest.mark.parametrize("name", written_formats())
def test_a_reader_that_closes_the_pipe_ends_the_verb_quietly(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{written_formats()[name].suffixes[0]}"
    path.write_bytes(sample_log(name))
    # More than a pipe holds, so that the verb is still writing when the reader ends.
    command = forked("merge", *[str(path)] * 12, "--align", "+1s", "-o", "-")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (0, b"")


def test_an_error_in_the_middle_is_reported_with_exit_code_1(field: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            forked("slice", "two.mcap", "-o", "-"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=120,
        )
    assert done.returncode == 1
    assert b"no space left" in done.stderr.lower()
    assert len(done.stderr.splitlines()) == 1


def test_a_log_is_not_appended_to_itself(field: Path) -> None:
    before = Path("one.ulg").read_bytes()
    for args in (["slice"], ["convert", "--format", "mcap"], ["merge", "one.ulg", "--format", "mcap"]):
        with open("one.ulg", "ab") as same:
            done = subprocess.run(
                forked(args[0], "one.ulg", *args[1:], "-o", "-"),
                stdout=same,
                stderr=subprocess.PIPE,
                env=environment(),
                timeout=120,
            )
        assert done.returncode == 2
        assert b"same file" in done.stderr
    assert Path("one.ulg").read_bytes() == before


def test_merge_writes_the_format_that_is_asked_for(spawn: Spawn, run: Run, field: Path) -> None:
    verb = ["merge", "one.ulg", "two.mcap", "--align", "start"]
    done = spawn("-m", "logreel", *verb, "--format", "mcap", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert run(*verb, "-o", "x.mcap").code == 0
    assert done.stdout == Path("x.mcap").read_bytes()
    assert run(*verb, "-o", "x.mcap", "--format", "mcap").code == 2
    assert run("merge", "one.ulg", "-o", "-", "--format", "doc").code == 2
    assert run("recover", "one.ulg", "-o", "-", "--format", "csv").code == 2
    assert run("merge", "one.ulg", "-o", "-", "--format", "rosbag").code == 2


def test_record_sends_a_flush_while_lines_still_arrive(field: Path) -> None:
    command = forked("record", "-o", "-", "--format", "mcap")
    with subprocess.Popen(
        [*command, "--ahead", "0", "--flush", "10ms"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(Path("lines").read_bytes())
        process.stdin.flush()
        seen = b""
        # Standard input stays open until the message is out.
        while b"/a" not in seen:
            seen += os.read(process.stdout.fileno(), 65536)
        process.stdin.close()
        seen += process.stdout.read()
        assert process.wait(120) == 0
    assert [m.decode() for m in logreel.open(seen).messages()] == [{"x": 1.5}]
