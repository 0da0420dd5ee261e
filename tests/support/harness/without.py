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
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from support.harness.cli_runner import environment

TESTS = Path(__file__).resolve().parents[2]
#: Libraries that none of HEAVY imports: the process without them is a fork of one that has imported all of HEAVY.
LIGHT = {"zstandard", "lz4", "google", "rich", "rich_click"}
HEAVY = ("pyarrow.compute", "pyarrow.parquet", "pyarrow.csv", "pandas", "duckdb", "rerun", "logreel.cli")


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
    """Return exit code, stdout and stderr of commands by name; all run in *folder*, and in one process.

    Without *libraries* to block it is this process, which has imported most of what they need, and without those of
    LIGHT a fork; without others it is the same process for all calls.
    """
    if not libraries:
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOGREEL_CACHE", "off")
            return {name: _run(arguments) for name, arguments in commands.items()}
    light = libraries if LIGHT.issuperset(libraries) else ()
    process = _process(os.getpid(), () if light else tuple(libraries))
    process.stdin.write(json.dumps([os.fspath(folder), commands, light]) + "\n")
    process.stdin.flush()
    if not select.select([process.stdout], [], [], 600)[0]:
        process.kill()
    answer = process.stdout.readline()
    assert answer, f"the process without {libraries} has ended: {process.wait(60)}"
    return {name: tuple(value) for name, value in json.loads(answer).items()}


@functools.cache
def _process(pid: int, libraries: tuple[str, ...]) -> subprocess.Popen[str]:
    """Return a process without *libraries*, or with all of HEAVY, that answers lines until process *pid* ends."""
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


def _import_heavy() -> None:
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            import_module(name)
    loaded = LIGHT.intersection(sys.modules)
    assert not loaded, loaded


def _fork() -> int:
    with warnings.catch_warnings():
        # The only other thread is one of the allocator of pyarrow, which starts it in forks again.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


if __name__ == "__main__":
    if sys.argv[1:]:
        block(*sys.argv[1:])
    else:
        _import_heavy()
    # Commands read nothing, and what they write past sys.stdout is no answer.
    calls, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for line in calls:
        place, todo, light = json.loads(line)
        if light and (child := _fork()):
            assert os.waitpid(child, 0)[1] == 0, light
            continue
        block(*light)
        os.chdir(place)
        json.dump({name: _run(arguments) for name, arguments in todo.items()}, answers)
        answers.write("\n")
        answers.flush()
        if light:
            os._exit(0)
