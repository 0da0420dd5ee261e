"""``logreel record``: a log from a pipe, exit codes, and interruption."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.cli.console import StatusText
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.record import Feed, Progress, sources
from support.builders.contents import SAMPLES, sample
from support.harness.cli_runner import Run, Spawn, environment

#: Seconds after which something that must happen has not happened.
PATIENCE = 60.0
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


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
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


class Child:
    """A running ``logreel record``."""

    def __init__(self, *args: str | Path, folder: Path) -> None:
        command = [sys.executable, "-m", "logreel", "record", *map(str, args)]
        pipes: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        self._child = subprocess.Popen(command, text=True, cwd=folder, env=environment(), **pipes)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.kill()
        self._child.wait()

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        out, err = self._child.communicate(timeout=PATIENCE)
        return self._child.returncode, out, err


def wait_until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def flushed(path: Path) -> int:
    """Return the number of messages in a file that is being written."""
    if size_of(path) < 4200:
        return 0
    with logreel.open(path) as log:
        return log.message_count


def send_datagrams(port: int, file: Path, size: int) -> int:
    """Send numbered datagrams until the file has this size; return their number."""
    count = 0

    def is_there() -> bool:
        nonlocal count
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"%08d" % count, ("127.0.0.1", port))
        count += 1
        return size_of(file) >= size

    wait_until(is_there)
    return count


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_completes_a_live_recording(number: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    with Child(
        "a.bag", "--from", f"udp://127.0.0.1:{port}?topic=/a", "--flush", "20ms", folder=tmp_path
    ) as child:
        send_datagrams(port, tmp_path / "a.bag.active", 4500)
        child.send(number)
        code, _, said = child.end()
    assert code == 0, said
    assert "messages of 1 channel to a.bag" in said
    assert os.listdir(tmp_path) == ["a.bag"]
    found = [int(bytes(m.decode()["data"])) for m in logreel.open(tmp_path / "a.bag")["/a"]]
    assert found == list(range(found[0], found[-1] + 1))


def test_a_second_signal_ends_at_once_and_leaves_the_flushed_messages(tmp_path: Path) -> None:
    # The reader of the pipe never comes to an end, and the first signal waits for it: a plug-in that hangs does this.
    (tmp_path / "hanging.py").write_text(HANGING)
    command = [sys.executable, "hanging.py"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=tmp_path, env=environment(), **pipes) as child:
        try:
            wait_until(lambda: flushed(tmp_path / "a.bag.active") == 100)
            child.send_signal(signal.SIGINT)
            assert child.stdout is not None
            assert child.stdout.readline() == "stopping\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(PATIENCE) == -signal.SIGINT
        finally:
            child.kill()
    assert (tmp_path / "a.bag.active").exists()
    assert not (tmp_path / "a.bag").exists()
    assert flushed(tmp_path / "a.bag.active") == 100


HANGING = """
import threading, time
from logreel.cli.console import stop_requested
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.record import record, session

session.END_WITHIN = 600.0

class Source:
    name = "hanging"

    def run(self, feed):
        channel = feed.channel("/a", Layout(Struct((Field("n", Scalar("int64")),))))
        for n in range(100):
            feed.put(channel, None, {"n": n})
        feed.wait()
        print("stopping", flush=True)
        time.sleep(1000)

with stop_requested() as stop:
    record(Source(), "a.bag", stop=stop, flush_every=0.05)
"""


def test_sources_of_all_kinds_are_recorded_together(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "lines").write_text(LINES)
    sources = ["--from", "lines", "--from", f"udp://127.0.0.1:{port}?topic=/a"]
    with Child("out.mcap", *sources, "--flush", "20ms", "--json", folder=tmp_path) as child:
        send_datagrams(port, tmp_path / "out.mcap.active", 1000)
        child.send(signal.SIGINT)
        code, out, said = child.end()
    assert code == 0, said
    result = json.loads(out)
    assert result["sources"] == ["lines", f"udp://127.0.0.1:{port}?topic=/a"]
    assert (result["lines"], result["lost"], result["parts"]) == (3, 0, ["out.mcap"])
    log = logreel.open(tmp_path / "out.mcap")
    assert {ch.topic for ch in log.values()} == {"/a", "/a[1]"}
    assert sum(map(len, log.values())) == result["messages"]


def test_lines_are_split_and_limited(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(
        f'{{"topic": "/{topic}", "time_ns": {n}00000000, "data": {{"x": {n}}}}}\n'
        for n in range(1, 51)
        for topic in "abc"
    )
    Path("lines").write_text(text)
    done = run("record", "d.bag", "--from", "lines", "--split-duration", "1s", "-x", "/b")
    assert done.code == 0, done.err
    assert sorted(os.listdir()) == ["d_0.bag", "d_1.bag", "d_2.bag", "d_3.bag", "d_4.bag", "lines"]
    assert "wrote 100 messages of 2 channels to 5 files, d_0.bag to d_4.bag" in done.err
    assert [len(logreel.open(f"d_{n}.bag")["/a"]) for n in range(5)] == [10] * 5
    done = run("record", "d.bag", "--from", "lines", "--split-duration", "1s")
    assert (done.code, done.err) == (1, "logreel: d_0.bag: exists already; pass --force to replace it\n")
    done = run("record", "e.bag", "--from", "lines", "-e", "/[ab]", "--limit", "7", "-t", "/x*")
    assert done.code == 0, done.err
    assert "'/x*' fitted no topic" in done.err
    assert {ch.topic: len(ch) for ch in logreel.open("e.bag").values()} == {"/a": 7, "/b": 7}
    done = run("record", "f.bag", "--from", "lines", "--split-size", "6kB", "--max-splits", "2")
    assert done.code == 0, done.err
    assert len([name for name in os.listdir() if name.startswith("f_")]) == 2


def test_wrong_options_are_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines").write_text(LINES)
    for wrong in (
        ["--max-splits", "2"],
        ["--repeat-latched"],
        ["--split-size", "big"],
        ["--split-duration", "soon"],
        ["--split-size", "0"],
        ["--limit", "0"],
        ["--buffer-size", "0"],
        ["--node", "/rviz"],
        ["-e", "["],
        ["--from", "lines"],
        ["--from", "udp://127.0.0.1"],
        ["--duration", "x"],
    ):
        done = run("record", "d.bag", "--from", "lines", *wrong)
        assert done.code == 2, (wrong, done.err)
    assert run("record", "-o", "-", "--format", "mcap", "--from", "lines", "--split-size", "1MB").code == 2
    assert os.listdir() == ["lines"]


def test_losses_are_told_and_change_the_exit_code(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    layout = Layout(Struct((Field("n", Scalar("int64")),)))

    class Flood:
        name = "flood"

        def __init__(self, address: str) -> None: ...

        def run(self, feed: Feed) -> None:
            channel = feed.channel("/fast", layout)
            assert channel is not None
            feed.put(channel, None, {"n": 1})
            feed.lose(channel, 41)

    point = metadata.EntryPoint("flood", "a_package:Flood", sources.GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: Flood)
    monkeypatch.setattr(
        metadata, "entry_points", lambda **which: metadata.EntryPoints([point]).select(**which)
    )
    sources.SOURCES.forget()
    try:
        done = run("record", "a.mcap", "--from", "flood:x")
    finally:
        sources.SOURCES.forget()
    assert done.code == 3
    assert "41 messages of /fast were lost (flood)" in done.err
    assert [m.decode()["messages"] for m in logreel.open("a.mcap")["~dropout"]] == [41]


def test_a_terminal_shows_the_state_of_a_recording(tmp_path: Path) -> None:
    port = free_port()
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "logreel",
        "record",
        "a.bag",
        "--from",
        f"udp://127.0.0.1:{port}?topic=/a",
    ]
    shown = b""
    with subprocess.Popen(
        [*command, "--flush", "20ms"], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stderr=slave
    ) as child:
        os.close(slave)
        send_datagrams(port, tmp_path / "a.bag.active", 4500)
        while b"messages" not in shown:
            shown += os.read(master, 4096)
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            while piece := os.read(master, 4096):
                shown += piece
        assert child.wait(PATIENCE) == 0
    os.close(master)
    assert re.search(rb"\r\x1b\[Krecording [\d.]+ s  \d+ messages", shown)
    assert b"Hz" in shown
    assert b"a.bag" in shown


def test_the_state_of_a_recording_fits_into_a_line() -> None:
    text = StatusText()
    text.line(Progress(1.0, 1000, 10_000, 0, 0.0, "x/a.bag"), 100)
    line = text.line(Progress(2.0, 6000, 2_000_000, 3, 0.5, "x/a.bag"), 100)
    assert line == "recording 2.0 s  6000 messages  3000 Hz  2.0 MB  a.bag  buffer 50%  LOST 3"
    assert len(text.line(Progress(2.0, 6000, 2_000_000, 3, 0.5, "x/a.bag"), 20)) == 19
