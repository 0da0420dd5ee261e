"""``logreel play`` into pipes, without a terminal, and with keys on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from logreel.cli import console
from logreel.cli.console import PlayerStatus
from logreel.io.platform import readable
from logreel.outputs.sinks.stdout import Null
from support.harness.cli_runner import Run, Spawn, environment
from support.harness.replaying import MS, Numbered, bag, numbers

#: Seconds after which a test gives up.
PATIENCE = 60
#: Runs logreel with standard input as the controlling terminal.
OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "logreel", *sys.argv[1:]])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A bag of a hundred messages in ten seconds."""
    found = tmp_path / "a.bag"
    bag(found, [Numbered(f"/{'ab'[n % 2]}", 100 * MS * n, n) for n in range(100)]).close()
    return found


class Screen:
    """A program on a separate terminal: its output, and keys sent to it."""

    def __init__(self, *args: str | Path, stdout: int | None = None) -> None:
        main, side = pty.openpty()
        self.main, self.text, self.mode = main, "", termios.tcgetattr(side)
        command = [sys.executable, "-c", OWN_TERMINAL, *map(str, args)]
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side if stdout is None else stdout,
            stderr=side,
            env={**environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        self.side = side

    def until(self, text: str) -> None:
        """Read until *text* is shown."""
        end = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} is not in {self.text[-2000:]!r}"
            self._read(0.1)

    def _read(self, seconds: float) -> None:
        if readable(self.main, seconds):
            self.text += os.read(self.main, 65536).decode()

    def press(self, text: str) -> None:
        """Press keys, and forget earlier output."""
        self.text = ""
        os.write(self.main, text.encode())

    def end(self) -> int:
        """The exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read(0.05)
        while readable(self.main, 0.05):
            self._read(0)
        return self.process.returncode

    @property
    def quiet(self) -> bool:
        """Whether the terminal neither echoes nor waits for whole lines."""
        return not termios.tcgetattr(self.side)[3] & (termios.ECHO | termios.ICANON)

    @property
    def restored(self) -> bool:
        return termios.tcgetattr(self.side) == self.mode


@contextlib.contextmanager
def screen(*args: str | Path, stdout: int | None = None) -> Iterator[Screen]:
    found = Screen(*args, stdout=stdout)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()
        os.close(found.main)
        os.close(found.side)


def test_play_prints_the_lines_of_cat_into_a_pipe(run: Run, path: Path) -> None:
    played = run("play", path, "-r", "0")
    shown = run("cat", path, "--format", "ndjson")
    assert played.code == shown.code == 0
    assert played.out == shown.out
    assert played.err == "logreel: played 100 messages\n"
    timed = run("play", path, "-r", "1000", "-t", "/a", "-S", "+1s", "--duration", "2s")
    assert [json.loads(text)["data"]["data"] for text in timed.out.splitlines()] == list(range(10, 30, 2))
    assert "more than 1 ms late (worst " in timed.err


def test_options_reach_the_player(run: Run, path: Path, tmp_path: Path) -> None:
    backwards = run("play", path, "-r", "-1e6", "-x", "/b", "-E", "+1s")
    assert [json.loads(text)["data"]["data"] for text in backwards.out.splitlines()] == [8, 6, 4, 2, 0]
    ticks = run("play", path, "-r", "0", "--clock", "1", "--skip-silence", "1s")
    assert sum(json.loads(text)["topic"] == "/clock" for text in ticks.out.splitlines()) == 10
    both = run("play", path, path, "-r", "0", "--align", "+50ms", "-E", "+200ms")
    assert [json.loads(text)["data"]["data"] for text in both.out.splitlines()] == [0, 0, 1, 1]
    assert run("play", path, "-r", "0", "--to", "null").out == ""


def test_wrong_options_give_exit_code_2(run: Run, path: Path) -> None:
    unknown = run("play", path, "--to", "radio")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no sink 'radio'; there are: stdout, null, frames, foxglove, rerun, ros" in unknown.err
    for args in (
        ["--to", "null", "--set", "port=1"],
        ["--to", "null", "--set", "port"],
        ["--frames", "png"],
        ["--rate", "nan"],
        ["-t", "/nothing"],
        ["--align", "so"],
        ["--clock", "0"],
    ):
        assert run("play", path, path, *args).code == 2, args
    assert run("play", path.parent / "none.bag").code == 1


def test_messages_that_cannot_be_decoded_are_reported(run: Run, logs: Path) -> None:
    played, shown = (run(*args, logs / "hostile.ulg") for args in (("play", "-r", "0"), ("cat",)))
    assert played.code == shown.code
    assert shown.err.splitlines()[-1] == played.err.splitlines()[-1]


def test_a_closed_pipe_ends_the_replay_with_exit_code_0(path: Path) -> None:
    command = [sys.executable, "-m", "logreel", "play", str(path), "--loop", "-r", "100"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["data"] == {"data": 0}
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    told = process.stderr.read().decode()
    process.stderr.close()
    assert told.startswith("logreel: played ")
    assert "Traceback" not in told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_replay_without_a_terminal(path: Path, number: int, code: int) -> None:
    command = [sys.executable, "-m", "logreel", "play", str(path), "--loop"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert b"Traceback" not in told
    assert b"logreel: played " in told


def test_keys_control_the_replay_on_a_terminal(path: Path) -> None:
    with screen("play", path, "--pause") as it:
        it.until("⏸ 0.0 / 9.9 s")
        assert it.quiet
        it.press("..s")
        it.until("⏸ 0.2 / 9.9 s")
        it.press(",")
        it.until("⏸ 0.2 / 9.9 s")
        it.press(",")
        it.until("⏸ 0.1 / 9.9 s")
        it.press("\x1b[C")
        it.until("⏸ 5.1 / 9.9 s")
        it.press("\x1bOD[")
        it.until("⏸ 0.0 / 9.9 s")
        it.press("++\x1b[A-")
        it.until("×5")
        it.press("?")
        it.until("space pause")
        it.press(" ")
        it.until("▶ ")
        it.until("/a ")
        assert it.end() == 0
        assert "played 1" in it.text
        assert it.restored


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("\x03", 130)])
def test_the_terminal_is_restored_at_the_end(path: Path, key: str, code: int) -> None:
    with screen("play", path, "--pause") as it:
        it.until("⏸ ")
        assert it.quiet
        it.press(key)
        assert it.end() == code
        assert "Traceback" not in it.text
        assert ("interrupted" in it.text) == (code == 130)
        assert it.restored


def test_terminal_mode_is_set_again_after_continue(path: Path) -> None:
    with screen("play", path, "--pause") as it:
        it.until("⏸ ")
        it.process.send_signal(signal.SIGSTOP)
        termios.tcsetattr(it.side, termios.TCSANOW, it.mode)
        it.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + PATIENCE
        while not it.quiet and time.monotonic() < end:
            time.sleep(0.01)
        assert it.quiet
        it.press("q")
        assert it.end() == 0
        assert it.restored


def test_keys_work_while_stdout_is_a_pipe(path: Path) -> None:
    reader, writer = os.pipe()
    with screen("play", path, "--pause", stdout=writer) as it, os.fdopen(reader, "rb") as lines:
        os.close(writer)
        it.until("⏸ ")
        it.press("s")
        assert json.loads(lines.readline())["data"] == {"data": 0}
        it.press("q")
        assert it.end() == 0
        assert lines.read() == b""


def test_lines_on_a_terminal_are_not_mixed_with_the_status(path: Path) -> None:
    with screen("play", path, "-r", "0", "--to", "stdout") as it:
        assert it.end() == 0
        assert "\x1b" not in it.text
        assert len(it.text.splitlines()) == 101
    with screen("play", path, "--frames", "raw") as it:
        assert it.end() == 2
        assert "not for a terminal" in it.text


def test_status_line_fits_the_width(path: Path) -> None:
    import logreel

    player = logreel.play(path, rate=0, paused=True)
    status = PlayerStatus(player)
    line = status.line(200)
    assert line.startswith("⏸ 0.0 / 9.9 s ────────────────────")
    assert "full speed" in line
    assert len(status.line(30)) == 29
    player.resume()
    assert numbers(player) == list(range(100))
    line = status.line(200)
    assert line.startswith("▶ 9.9 / 9.9 s ━━━━━━━━━━━━━━━━━━━━ full speed  all ")
    assert "  /a " in line


def test_help_lists_every_key() -> None:
    assert list(console.split_keys("a\x1b[A\x1bOA\x1b[1;2Cq\x1b[3~x")) == [
        *("a", "\x1b[A", "\x1b[A", "\x1b[1;2C", "q", "\x1b[3~", "x"),
    ]
    for name in ("space", "s", ".", ",", "[", "]", "+", "-", "q"):
        assert name in console.HELP.split()


def test_play_works_without_a_terminal(path: Path, spawn: Spawn) -> None:
    done = spawn("-m", "logreel", "play", path, "-r", "100", start_new_session=True)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 100
    assert done.stderr.startswith(b"logreel: played 100 messages")


def test_options_about_clients_reach_the_server(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, object]] = []

    def noted(name: str, **options: object) -> Null:
        given.append({"name": name, **options})
        return Null()

    monkeypatch.setattr("logreel.outputs.sinks.sink", noted)
    monkeypatch.setenv("LOGREEL_TOKEN", "a-token-of-the-environment")
    more = ["--allow-host", "a", "--allow-host", "b", "--allow-origin", "https://x", "--read-only"]
    play = ["play", logs / "tiny.ulg", "-r", "0", "--to"]
    assert run(*play, "foxglove", *more).code == 0
    assert run(*play, "foxglove", "--token", "a-token-of-the-command-line").code == 0
    assert run(*play, "null").code == 0
    assert given == [
        {
            "name": "foxglove",
            "read_only": True,
            "token": "a-token-of-the-environment",
            "allow_host": "a,b",
            "allow_origin": "https://x",
        },
        {"name": "foxglove", "token": "a-token-of-the-command-line"},
        {"name": "null"},
    ]


def test_options_about_clients_are_refused_for_other_sinks(run: Run, logs: Path) -> None:
    done = run("play", logs / "tiny.ulg", "--to", "null", "--read-only")
    assert done.code == 2
    assert "read_only" in done.err
