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

SRC = Path(__file__).resolve().parents[3] / "src"


class Done(NamedTuple):
    """What a command line did."""

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
    """Runs the verbs in this process, which is fast."""

    def call(*args: str | Path) -> Done:
        code = main([str(arg) for arg in args])
        sys.stdout.flush()
        return Done(code, *capfd.readouterr())

    return call


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "LOGREEL_CACHE": "off"}


@pytest.fixture
def spawn() -> Spawn:
    """Runs Python with arguments in a process of its own."""

    def call(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, *map(str, args)]
        return subprocess.run(command, capture_output=True, env=environment(), timeout=120, **options)

    return call


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of logs: flight, tiny, damaged, hostile; and of files that are none."""
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
