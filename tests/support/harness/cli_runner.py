"""Fixtures that run the command line in this process, or in a separate one; see tests/conftest.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logreel.cli import main
from support.builders.sample_logs import damaged, hostile, incompatible, short_flight, tiny
from support.harness.forked import forked_python, run_forked

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
