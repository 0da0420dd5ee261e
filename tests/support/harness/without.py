"""Run verbs in a process in which libraries cannot be imported: ``python -m support.harness.without``."""

from __future__ import annotations

import contextlib
import io
import json
import os
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
    """Return exit code, stdout and stderr of commands by name; all run in one process, in *folder*.

    Without *libraries* to block it is this process, which has imported most of what they need.
    """
    if not libraries:
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOGREEL_CACHE", "off")
            return {name: _run(arguments) for name, arguments in commands.items()}
    done = subprocess.run(
        [sys.executable, "-m", __name__, *libraries],
        input=json.dumps(commands).encode(),
        capture_output=True,
        cwd=folder,
        env={**environment(), "PYTHONPATH": os.pathsep.join([environment()["PYTHONPATH"], str(TESTS)])},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    return {name: tuple(value) for name, value in json.loads(done.stdout).items()}


def _run(arguments: Sequence[str]) -> tuple[int, str, str]:
    from logreel.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
        out.flush()
    return code, out.buffer.getvalue().decode("utf-8", "replace"), err.getvalue()  # type: ignore[attr-defined]


if __name__ == "__main__":
    block(*sys.argv[1:])
    results = {name: _run(arguments) for name, arguments in json.load(sys.stdin).items()}
    json.dump(results, sys.stdout)
