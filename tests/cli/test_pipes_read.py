"""Logs that come through a pipe: messages are printed while the pipe is open."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES
from support.formats import builtin_formats
from support.harness.cli_runner import Spawn, environment
from support.harness.forked import forked

SUFFIXES = sorted(SAMPLES)


def piped(*args: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    # Without buffers: lines that are read ahead of ``communicate`` would be lost to it.
    return subprocess.Popen(forked(*args), 0, stdin=pipe, stdout=pipe, stderr=pipe, env=environment())


def first_lines(process: subprocess.Popen[bytes], data: bytes) -> tuple[bytes, int]:
    """Write *data* piece by piece until a line is printed; return the line, and how much was written."""
    assert process.stdin is not None
    assert process.stdout is not None
    lines: list[bytes] = []
    reader = threading.Thread(target=lambda: lines.append(process.stdout.readline()))  # type: ignore[union-attr]
    reader.start()
    at, piece = 0, max(64, len(data) // 40)
    # The last piece is kept back: the log is never complete before the first line.
    while not lines and at < len(data) - piece:
        process.stdin.write(data[at : at + piece])
        process.stdin.flush()
        at += piece
        reader.join(0.3)
    reader.join(60)
    if not lines:
        # Leaving ``with Popen`` would wait for it.
        process.kill()
    return lines[0], at


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_cat_prints_the_first_message_while_the_pipe_is_open(suffix: str) -> None:
    data = SAMPLES[suffix]()
    log = logreel.open(data)
    due = [(m.channel.topic, m.time) for m in log.messages(order="file")]
    with piped("cat", "-", "--format", "ndjson") as process:
        line, at = first_lines(process, data)
        assert json.loads(line)["topic"] == due[0][0]
        out, err = process.communicate(data[at:], timeout=120)
    found = [json.loads(text) for text in (line + out).splitlines()]
    assert [(one["topic"], one["time_ns"]) for one in found] == due
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize("suffix", [".ulg", ".bag"])
def test_text_lines_are_shown_while_the_pipe_is_open(suffix: str, spawn: Spawn, tmp_path: Path) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = spawn("-m", "logreel", "text", tmp_path / f"x{suffix}").stdout.splitlines()
    if not due:
        pytest.skip("the sample has no text lines")
    with piped("text", "-") as process:
        line, at = first_lines(process, data)
        out, _ = process.communicate(data[at:], timeout=120)
    assert sorted((line + out).splitlines()) == sorted(due)


def test_info_shows_a_pipe_again_and_again_with_f() -> None:
    data = SAMPLES[".mcap"]()
    with piped("info", "-", "-f", "--json") as process:
        line, at = first_lines(process, data)
        begun = json.loads(line)
        out, err = process.communicate(data[at:], timeout=120)
    whole = json.loads(out.splitlines()[-1])
    assert 0 <= begun["messages"] < whole["messages"] == len(logreel.open(data).index)
    assert (process.returncode, err) == (0, b"")


def test_count_ends_cat_while_the_pipe_is_open() -> None:
    data = SAMPLES[".mcap"]()
    with piped("cat", "-", "-n", "2") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(data[: len(data) // 2])
        process.stdin.flush()
        # The verb ends although the pipe is still open.
        assert len(process.stdout.read().splitlines()) == 2
        assert process.wait(60) == 0
        process.stdin.close()


@pytest.mark.parametrize(
    ("args", "cut", "code", "word"),
    [
        (["cat", "-"], 0, 5, b"empty"),
        (["cat", "-"], 3, 5, b"not a log"),
        (["text", "-"], 0, 5, b"empty"),
        (["cat", "-", "-t", "/nothing"], None, 2, b"/nothing"),
        (["cat", "-"], -100, 3, b"could not be read"),
        (["cat", "-", "-S", "+1000000s"], None, 2, b"nothing between"),
    ],
)
def test_what_is_wrong_with_a_pipe_is_said_as_for_a_file(
    args: list[str], cut: int | None, code: int, word: bytes, spawn: Spawn
) -> None:
    data = SAMPLES[".mcap"]()[:cut]
    done = spawn("-m", "logreel", *args, input=data)
    assert done.returncode == code, done.stderr
    assert word in done.stderr
    assert b"Traceback" not in done.stderr


def test_options_that_need_the_whole_log_read_it_first(spawn: Spawn, tmp_path: Path) -> None:
    data = SAMPLES[".ulg"]()
    (tmp_path / "x.ulg").write_bytes(data)
    for options in (["-S", "-1s"], ["--json", "-n", "3"], ["-t", "vehicle_attitude", "--format", "csv"]):
        piped_one = spawn("-m", "logreel", "cat", "-", *options, input=data)
        from_file = spawn("-m", "logreel", "cat", tmp_path / "x.ulg", *options)
        assert piped_one.returncode == from_file.returncode == 0, options
        path = json.dumps(str(tmp_path / "x.ulg")).encode()
        assert piped_one.stdout == from_file.stdout.replace(path, b'"<stdin>"'), options


def test_a_regular_file_as_standard_input_is_read_by_time(spawn: Spawn, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    with logreel.create(path) as w:
        c = w.add_channel("/a", logreel.Schema("", "", ""))
        for time in (3, 1, 2):
            w.write(c, time, b"x")
    with open(path, "rb") as file:
        done = spawn("-m", "logreel", "cat", "-", "--format", "ndjson", stdin=file)
    assert done.returncode in (0, 3)
    times = [json.loads(line)["time_ns"] for line in done.stdout.splitlines()]
    assert times == sorted(times)


# -- convert

LINES = ["-o", "-", "--format", "ndjson"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_convert_writes_lines_while_the_pipe_is_open(suffix: str, spawn: Spawn, tmp_path: Path) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = spawn("-m", "logreel", "convert", tmp_path / f"x{suffix}", *LINES)
    with piped("convert", "-", *LINES) as process:
        line, at = first_lines(process, data)
        assert at < len(data)
        out, err = process.communicate(data[at:], timeout=120)
    assert sorted((line + out).splitlines()) == sorted(due.stdout.splitlines())
    assert len((line + out).splitlines()) > 100
    assert (process.returncode, err) == (due.returncode, due.stderr) == (0, err)


@pytest.mark.parametrize(
    "options",
    [
        ["-t", "/imu*"],
        ["-t", "/gps/fix.latitude", "-t", "/gps/fix:longitude"],
        ["-x", "/imu*"],
        ["-t", "/nothing"],
        ["-t", "/gps/fix.nothing"],
        ["-x", "*"],
        ["-S", "-1s"],
        ["-n", "5"],
        ["--utc"],
        ["--layout", "long"],
        ["--raw"],
    ],
    ids=" ".join,
)
def test_convert_means_the_same_by_its_options_for_a_pipe_and_a_file(
    options: list[str], spawn: Spawn, tmp_path: Path
) -> None:
    data = SAMPLES[".bag"]()
    (tmp_path / "x.bag").write_bytes(data)
    due = spawn("-m", "logreel", "convert", tmp_path / "x.bag", *LINES, *options)
    done = spawn("-m", "logreel", "convert", "-", *LINES, *options, input=data)
    assert sorted(done.stdout.splitlines()) == sorted(due.stdout.splitlines())
    assert done.returncode == due.returncode
    assert done.stderr.replace(b"<stdin>", bytes(tmp_path / "x.bag")) == due.stderr


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_convert_reports_the_damage_of_a_pipe_as_that_of_a_file(
    suffix: str, spawn: Spawn, tmp_path: Path
) -> None:
    data = bytearray(SAMPLES[suffix]())
    middle = len(data) * 2 // 3
    data[middle : middle + 300] = bytes(300)
    (tmp_path / f"x{suffix}").write_bytes(data[:-100])
    due = spawn("-m", "logreel", "convert", tmp_path / f"x{suffix}", *LINES)
    done = spawn("-m", "logreel", "convert", "-", *LINES, input=bytes(data[:-100]))
    assert due.returncode == done.returncode == 3
    assert sorted(done.stdout.splitlines()) == sorted(due.stdout.splitlines())


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".ulg"])
def test_convert_writes_lines_to_a_file_while_the_pipe_is_open(
    suffix: str, spawn: Spawn, tmp_path: Path
) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = spawn("-m", "logreel", "convert", tmp_path / f"x{suffix}", *LINES)
    out = tmp_path / "x.ndjson"
    active = tmp_path / "x.ndjson.active"
    with piped("convert", "-", str(out)) as process:
        assert process.stdin is not None
        process.stdin.write(data[: len(data) * 3 // 4])
        process.stdin.flush()
        end = time.monotonic() + 100
        while not (active.exists() and active.stat().st_size):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert not out.exists()
        _, err = process.communicate(data[len(data) * 3 // 4 :], timeout=120)
    assert process.returncode == 0, err
    assert err.decode().endswith(f" to {out}\n")
    assert sorted(out.read_bytes().splitlines()) == sorted(due.stdout.splitlines())
    assert not active.exists()


def test_convert_of_a_pipe_never_replaces_a_file_without_force(spawn: Spawn, tmp_path: Path) -> None:
    data, out = SAMPLES[".bag"](), tmp_path / "x.ndjson"
    out.write_text("mine")
    done = spawn("-m", "logreel", "convert", "-", out, input=data)
    assert (done.returncode, out.read_text()) == (1, "mine")
    assert b"--force" in done.stderr
    # Names that no channel has had are an error of an interrupted conversion: nothing is replaced.
    done = spawn("-m", "logreel", "convert", "-", out, "--force", "-t", "/nothing", input=data)
    assert (done.returncode, out.read_text()) == (2, "mine")
    assert not list(tmp_path.glob("*.active"))
    assert spawn("-m", "logreel", "convert", "-", "-o", out, "--force", input=data).returncode == 0
    assert len(out.read_text().splitlines()) > 100


# -- in Python


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_stream_is_followed_while_it_comes(suffix: str) -> None:
    data = SAMPLES[suffix]()
    due = [(m.channel.topic, m.time, bytes(m.data)) for m in logreel.open(data).messages(order="file")]
    reading, writing = os.pipe()
    held = threading.Event()

    def feed() -> None:
        with os.fdopen(writing, "wb") as out:
            out.write(data[: len(data) * 3 // 4])
            out.flush()
            held.wait(60)
            out.write(data[len(data) * 3 // 4 :])

    thread = threading.Thread(target=feed)
    thread.start()
    found: list[Any] = []
    with os.fdopen(reading, "rb") as stream, logreel.open_growing(stream) as log:  # type: ignore[union-attr]
        assert log is not None
        for message in log.follow():
            found.append((message.channel.topic, message.time, bytes(message.data)))
            # The last quarter is sent only after the first message was received.
            held.set()
        assert log.is_complete
        assert not [problem for problem in log.problems if problem.lost]
    thread.join(60)
    assert found == due


def test_a_stream_that_fails_is_reported() -> None:
    class Failing:
        name = "broken"

        def read(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(logreel.LogError, match=r"broken.*(cannot be read on|empty)"):
        logreel.open_growing(Failing())  # type: ignore[arg-type]
    with open(__file__, encoding="utf-8") as text, pytest.raises(TypeError, match="binary"):
        logreel.open_growing(text)  # type: ignore[arg-type]


def test_growing_streams_of_every_format_have_a_reader_that_goes_on() -> None:
    # Pages of a database change after they were written: it is read anew when it has grown.
    assert [name for name, fmt in builtin_formats().items() if fmt.follow is None] == ["rosbag2"]
