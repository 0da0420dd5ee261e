"""Fixtures that run the command line in this process, or in a separate one; see tests/conftest.py."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logreel.cli import main
from support.builders.sample_logs import damaged, hostile, incompatible, short_flight, tiny
from support.harness.forked import forked_python, run_forked, standard_stream

SRC = Path(__file__).resolve().parents[3] / "src"


class Done(NamedTuple):
    """Result of a command: exit code and output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]
Spawn = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in this process, which is fast."""

    def call(*args: str | Path) -> Done:
        code = main([str(arg) for arg in args])
        sys.stdout.flush()
        return Done(code, *capfd.readouterr())

    return call


def run_here(words: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, with further variables, for what it writes to both streams, in order."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in variables.items():
            patch.setenv(name, value)
        output = stack.enter_context(tempfile.TemporaryFile())
        nothing = stack.enter_context(open(os.devnull, "rb"))
        for number, name, file in ((0, "stdin", nothing), (1, "stdout", output), (2, "stderr", output)):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
            stream = standard_stream(
                number, f"<{name}>", "backslashreplace" if number == 2 else "surrogateescape"
            )
            stack.callback(stream.flush)
            patch.setattr(sys, name, stream)
        code = main(words)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        output.seek(0)
        return subprocess.CompletedProcess([*words], code, output.read())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "LOGREEL_CACHE": "off"}


@pytest.fixture
def spawn() -> Spawn:
    """Return a function that runs Python in a separate process, for 120 s at most; longer in ``make soak``.

    ``-m logreel`` is a fork of a process that has imported all, see ``forked``; scripts and ``-c`` are with *imported*.
    """
    seconds = 1200 if "LOGREEL_SOAK" in os.environ else 120

    def call(*args: str | Path, imported: bool = False, **options: Any) -> subprocess.CompletedProcess[bytes]:
        is_forked = imported or args[:2] == ("-m", "logreel")
        is_forked = is_forked and options.keys() <= {"input", "stdin", "check", "cwd"}
        command = forked_python(*args) if is_forked else [sys.executable, *map(str, args)]
        if is_forked and options.keys() <= {"cwd"}:
            return run_forked(command, environment(), seconds, **options)
        return subprocess.run(command, capture_output=True, env=environment(), timeout=seconds, **options)

    return call


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder with logs (flight, tiny, damaged, hostile) and with other files."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, data in (
        ("flight.ulg", short_flight()),
        ("tiny.ulg", tiny()),
        ("damaged.ulg", damaged()),
        ("hostile.ulg", hostile()),
        ("incompatible.ulg", incompatible()),
        ("empty.ulg", b""),
        ("photo.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(64)),
    ):
        (folder / name).write_bytes(data)
    return folder
