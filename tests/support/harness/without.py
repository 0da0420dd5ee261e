"""Run verbs in a process in which libraries cannot be imported: ``python -m support.harness.without``."""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from support.harness.cli_runner import environment

TESTS = Path(__file__).resolve().parents[2]


class _Without(MetaPathFinder):
    """Finds no module of some libraries, as if they were not installed."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self._libraries = set(libraries)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self._libraries:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def block(*libraries: str) -> None:
    """Make imports of *libraries* fail from now on; they must not be imported yet."""
    sys.meta_path.insert(0, _Without(libraries))


def outcomes(
    commands: Mapping[str, Sequence[str]], libraries: Sequence[str], folder: Path
) -> dict[str, tuple[int, str, str]]:
    """Return exit code, stdout and stderr of commands by name; all run in *folder*, and in one process for all calls.

    Without *libraries* to block it is this process, which has imported most of what they need.
    """
    if not libraries:
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOGREEL_CACHE", "off")
            return {name: _run(arguments) for name, arguments in commands.items()}
    process = _process(os.getpid(), tuple(libraries))
    process.stdin.write(json.dumps([os.fspath(folder), commands]) + "\n")
    process.stdin.flush()
    if not select.select([process.stdout], [], [], 600)[0]:
        process.kill()
    answer = process.stdout.readline()
    assert answer, f"the process without {libraries} has ended: {process.wait(60)}"
    return {name: tuple(value) for name, value in json.loads(answer).items()}


@functools.cache
def _process(pid: int, libraries: tuple[str, ...]) -> subprocess.Popen[str]:
    """Return a process without *libraries* that answers lines, until process *pid* ends."""
    paths = os.pathsep.join([environment()["PYTHONPATH"], str(TESTS)])
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, *libraries],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "PYTHONPATH": paths},
    )

    def end() -> None:
        if os.getpid() == pid:
            process.communicate(timeout=60)

    atexit.register(end)
    return process


def _run(arguments: Sequence[str]) -> tuple[int, str, str]:
    from logreel.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
        out.flush()
    return code, out.buffer.getvalue().decode("utf-8", "replace"), err.getvalue()  # type: ignore[attr-defined]


if __name__ == "__main__":
    block(*sys.argv[1:])
    # Commands read nothing, and what they write past sys.stdout is no answer.
    calls, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for line in calls:
        place, todo = json.loads(line)
        os.chdir(place)
        json.dump({name: _run(arguments) for name, arguments in todo.items()}, answers)
        answers.write("\n")
        answers.flush()
