"""``logreel record``: a log from a pipe, exit codes, and interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import logreel
from support.builders.contents import SAMPLES, sample
from support.harness.cli_runner import Run, Spawn, environment

LINES = "".join(f'{{"topic": "/a", "time_ns": {n}000000000, "data": {{"x": {n}.5}}}}\n' for n in range(1, 4))


@pytest.mark.parametrize("suffix", [suffix for suffix in SAMPLES if suffix != ".mcap"])
def test_lines_of_cat_are_recorded(suffix: str, tmp_path: Path, spawn: Spawn) -> None:
    source, out = sample(tmp_path, suffix), tmp_path / f"out{suffix}"
    shown = spawn("-m", "logreel", "cat", source, "--format", "ndjson").stdout
    done = spawn("-m", "logreel", "record", out, "--like", source, "--from", "-", "--json", input=shown)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lines"] == shown.count(b"\n")
    again = spawn("-m", "logreel", "cat", out, "--format", "ndjson").stdout
    assert again == shown


def test_record_options_set_schema_and_compression(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines").write_text(LINES)
    Path("X.msg").write_text("float32 x\n")
    options = ["--compression", "lz4", "--flush", "100ms", "--sync", "--ahead", "0", "--schema", "/a=X.msg"]
    done = run("record", "a.bag", "--from", "lines", *options)
    assert done.code == 0, done.err
    assert "wrote 3 messages of 1 channel to a.bag" in done.err
    log = logreel.open("a.bag")
    assert log["/a"]["x"].tolist() == [1.5, 2.5, 3.5]
    assert log["/a"]["x"].dtype == "float32"
    assert log.metadata["compression"] == ["lz4"]
    assert run("record", "a.bag", "--from", "lines").code == 1
    assert run("record", "b.log", "--from", "lines", "--format", "ulog").code == 0
    assert logreel.open("b.log").format == "ulog"
    Path("lines").write_text(LINES + "oops\n")
    done = run("record", "a.bag", "--from", "lines", "--force")
    assert done.code == 3
    assert "line 4: this is no JSON" in done.err
    assert "1 of 4 lines were left out" in done.err
    assert run("record", "c.bag", "--from", "lines", "--strict").code == 1
    for wrong in (["--schema", "/a"], ["--flush", "soon"], ["--compression", "rar"], ["--ahead", "-1"]):
        assert run("record", "d.bag", "--from", "lines", *wrong).code == 2
    assert run("record", "d.txt", "--from", "lines").code == 2
    assert run("record", "d.bag", "--from", "no such file").code == 1
    assert not [name for name in os.listdir() if name.startswith("d.")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_recording_is_a_complete_log(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "a.bag"
    command = [sys.executable, "-m", "logreel", "record", str(out), "--flush", "50ms"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment()}
    with subprocess.Popen(command, text=True, **pipes) as child:
        assert child.stdin is not None
        child.stdin.write(LINES + LINES[:20])
        child.stdin.flush()
        active, end = tmp_path / "a.bag.active", time.monotonic() + 60
        while time.monotonic() < end and not (active.exists() and active.stat().st_size > 4200):
            time.sleep(0.02)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted; the log is complete up to there" in said
    assert os.listdir(tmp_path) == ["a.bag"]
    assert logreel.open(out)["/a"]["x"].tolist() == [1.5, 2.5, 3.5]


def test_a_pipe_that_starts_late_loses_no_messages(tmp_path: Path) -> None:
    reader, writer = os.pipe()

    def send() -> None:
        with os.fdopen(writer, "wb") as pipe:
            time.sleep(0.8)
            for n in range(3):
                pipe.write(b'{"topic": "wind_%d", "time_ns": %d, "data": {"x": 1.5}}\n' % (n, 1_000_000 * n))

    thread = threading.Thread(target=send)
    thread.start()
    with os.fdopen(reader, "rb") as pipe:
        done = logreel.record(pipe, tmp_path / "a.ulg", flush_every=0.1)
    thread.join()
    assert (done.messages, done.skipped) == (3, ())
