"""Check style, types and tests of one room in less than a minute: python tools/check_room.py ops/rewrite

A room is a folder or module of src/logreel, or docs, bench, tools, a folder of packages/ or of tests/. Its tests are
those in the folder of tests/ with its name, and those in the folder of its floor that import it, use a public name that
it defines, or have its name in theirs. The rules of the source (tests/test_architecture.py) are always among them.

ruff, mypy and pytest run at the same time; mypy takes up its cache, so the first run is longer. Tests that do not fit
into LOGREEL_CHECK_SECONDS are skipped, the slowest ones first by what earlier runs took: ``make test`` runs all.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "logreel", ROOT / "tests"
#: Tests that belong to rooms outside of src/logreel, besides the folder of their name.
OTHERS = {
    "docs": ["tests/test_docs.py", "tests/test_reference.py"],
    "bench": ["tests/test_bench.py"],
    "tools": ["tests/test_check_room.py"],
}
#: Of pytest.
OPTIONS = ["-q", "-n", "auto", "--dist", "worksteal", "-p", "check_room"]
ALWAYS = TESTS / "test_architecture.py"
#: Seconds from the start to the last test; those that tests have at least, however long they took to be found on a busy
#: machine; what a test takes of which nothing is known; share of the time that is planned for.
SECONDS, LEAST, UNKNOWN, PLANNED = 45.0, 20.0, 0.15, 0.8
LEFT = "left to `make test`: it does not fit into the minute of `make check`"
KEY = "logreel/seconds"


def tests_of(room: str) -> list[Path]:
    """Return the tests of a room as files and folders; raises SystemExit if there is no such room."""
    if room in OTHERS:
        return [ROOT / path for path in OTHERS[room]]
    if room.startswith("tests/") and (ROOT / room).exists():
        return [ROOT / room]
    if room.startswith("packages/") and (ROOT / room / "tests").is_dir():
        return [ROOT / room / "tests"]
    if not (SOURCE / room).is_dir() and not (SOURCE / f"{room}.py").is_file():
        rooms = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_")
        others = ", ".join([*OTHERS, "packages/NAME", "tests/FOLDER"])
        sys.exit(f"there is no room {room!r}: a folder of src/logreel ({', '.join(rooms)}), {others}")
    floor, *rest = room.split("/")
    folder = TESTS / room
    chosen = [folder] if folder.is_dir() else []
    if rest or not chosen:
        uses = uses_of(room)
        named = re.compile(rf"(?:^|_){re.escape(Path(room).name)}(?:_|$)")
        near = TESTS / floor
        for path in sorted((near if near.is_dir() else TESTS).rglob("test_*.py")):
            is_inside = folder in path.parents
            if not is_inside and (named.search(path.stem) or uses.search(path.read_text(encoding="utf-8"))):
                chosen.append(path)
    # A verb that no test names is tested among the others of its floor.
    return chosen or [TESTS / floor]


def uses_of(room: str) -> re.Pattern[str]:
    """Return what matches the text of a test that imports a module of a room, or uses a public name that it defines."""
    module = "logreel." + room.replace("/", ".")
    public = [
        alias.asname or alias.name
        for face in ("__init__.pyi", "__init__.py")
        if (SOURCE / face).exists()
        for node in ast.walk(ast.parse((SOURCE / face).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{module}.")
        for alias in node.names
    ]
    names = "".join(rf"|\blogreel\.{name}\(" for name in dict.fromkeys(public))
    return re.compile(rf"\b{re.escape(module)}\b{names}")


def commands(room: str, tests: list[Path]) -> dict[str, list[str]]:
    """Return what is run, by name."""
    python = [sys.executable, "-m"]
    source = next((p for p in (SOURCE / room, SOURCE / f"{room}.py", ROOT / room) if p.exists()), TESTS)
    code = [str(path) for path in (source, *tests) if path.suffix == ".py" or any(path.rglob("*.py"))]
    chosen = [*map(str, tests), str(ALWAYS)]
    checks = {
        "style": [*python, "ruff", "check", "--quiet", *code],
        "format": [*python, "ruff", "format", "--quiet", "--check", *code],
        "types": [*python, "mypy", "--no-error-summary", *code],
        "tests": [*python, "pytest", *OPTIONS, *chosen],
    }
    # The configuration leaves kernels out, and says nothing of scripts.
    if room.startswith("kernels") or room in OTHERS:
        del checks["types"]
    return checks


def main(room: str) -> int:
    """Run all checks of a room at the same time, print what fails, and return the exit code."""
    start = time.monotonic()
    room = room.strip("/").removeprefix("src/logreel/").removesuffix(".py")
    tests = tests_of(room)
    seconds = float(os.environ.get("LOGREEL_CHECK_SECONDS", SECONDS))
    path = os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "LOGREEL_CHECK_UNTIL": str(time.time() + seconds)}
    running = {
        name: subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for name, command in commands(room, tests).items()
    }
    failed = []
    for name, process in running.items():
        output = process.communicate()[0]
        if process.returncode:
            failed.append(name)
        if process.returncode or name == "tests":
            print(output, end="", flush=True)
    told = f"failed: {', '.join(failed)}" if failed else "passed"
    print(f"{room}: {', '.join(running)} in {time.monotonic() - start:.0f} s: {told}")
    return bool(failed)


# What follows is the plug-in of pytest that ``commands`` names.


class Seconds:
    """Skips the tests for which there is no time, and keeps what the others took for the next run."""

    def __init__(self, config: pytest.Config, until: float) -> None:
        self.config, self.until = config, until
        self.known: dict[str, float] = config.cache.get(KEY, {}) if config.cache else {}
        self.taken: dict[str, float] = defaultdict(float)
        self.left: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.until = max(self.until, time.time() + LEAST)
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        room = (self.until - time.time()) * workers * PLANNED
        for item in sorted(items, key=lambda item: self.known.get(item.nodeid, UNKNOWN)):
            room -= self.known.get(item.nodeid, UNKNOWN)
            if room < 0:
                self.left.add(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.nodeid in self.left or time.time() + self.known.get(item.nodeid, 0) > self.until:
            pytest.skip(LEFT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "skipped":
            self.taken[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        # A test that was skipped has only the report of its end.
        taken = {name: round(seconds, 3) for name, seconds in self.taken.items() if seconds > 0.001}
        if self.config.cache and not os.environ.get("PYTEST_XDIST_WORKER"):
            self.config.cache.set(KEY, self.known | taken)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plug-in if ``main`` started pytest."""
    until = os.environ.get("LOGREEL_CHECK_UNTIL")
    if until:
        config.pluginmanager.register(Seconds(config, float(until)), "logreel-seconds")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
