"""Install folders into this Python, and tell how far that is: python tools/set_up.py '.[test]' packages/NAME

pip is silent for minutes while it compiles, and noisy about every index that lacks a package. Its output is kept, and
shown whole where it fails; where it does not, only warnings of other kinds are. ``set_up.py --venv FOLDER`` makes a
virtual environment in the same way.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
#: Those in Python, and what they share.
KERNELS = len(list((ROOT / "src/logreel/kernels").glob("[a-z]*.py"))) + 1
#: Seconds between two looks, on a terminal and elsewhere.
EVERY, EVERY_LOGGED = 0.5, 4.0
#: A package that one of several indexes does not have is no news.
_EXPECTED = re.compile(r"WARNING: Location '[^']*' is ignored: it is neither a file nor a directory")
_COMPILED = re.compile(r"\s*building 'logreel\.kernels\.(\w+)' extension")
_FETCHED = re.compile(r"\s*(?:Collecting|Processing|Downloading|Using cached) (\S+)")


class Progress:
    """What a program is doing, as the output of pip tells."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.compiled = 0

    def take(self, line: str) -> None:
        """Learn from one line of pip's output."""
        if match := _FETCHED.match(line):
            name = match[1].rpartition("/")[2]
            self.phase = f"fetching {re.split('[<>=!~;[-]', name)[0] or 'packages'}"
        elif "build dependencies" in line:
            self.phase = "fetching the compiler's packages"
        elif "Building editable" in line:
            self.phase = "translating kernels to C"
        elif _COMPILED.match(line):
            self.compiled += 1
            self.phase = f"compiling kernel {self.compiled} of {KERNELS}"
        elif line.startswith("Installing collected"):
            self.phase = "installing"


def main(words: list[str]) -> int:
    """Make a virtual environment, or run pip on the folders named, and give the exit code."""
    since = time.monotonic()
    if words[:1] == ["--venv"]:
        code, lines = watch([sys.executable, "-m", "venv", words[1]], Progress(f"making {words[1]}"))
        print("".join(lines), end="", file=sys.stderr)
        return code
    print("Setting up in .venv: fetching packages and compiling kernels, a minute or two …", flush=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-v",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]
    code, lines = watch(
        [*command, *(word for target in words or ["."] for word in ("-e", target))],
        Progress("fetching packages"),
    )
    if code:
        print("".join(line for line in lines if not _EXPECTED.search(line)), end="", file=sys.stderr)
        print(f"Setting up failed: pip ended with {code}; what it said is above.", file=sys.stderr)
    else:
        warnings = [
            line for line in lines if line.lstrip().startswith("WARNING") and not _EXPECTED.search(line)
        ]
        print("".join(dict.fromkeys(warnings)), end="", file=sys.stderr)
        print(f"Set up after {time.monotonic() - since:.0f} s.", flush=True)
    return code


def environment() -> dict[str, str]:
    """Return the environment for pip, which also those pips see that it starts for the compiler's packages.

    Compiling every module of every package to bytecode takes half of installing, and few are ever imported; Python
    does it at the first import, unless it may not write.
    """
    return {**os.environ} if os.environ.get("PYTHONDONTWRITEBYTECODE") else {**os.environ, "PIP_COMPILE": "0"}


def watch(command: list[str], progress: Progress) -> tuple[int, list[str]]:
    """Run a program, tell every few seconds what it does, and give its exit code and output."""
    since = time.monotonic()
    program = subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    lines: list[str] = []
    assert program.stdout is not None
    reader = Thread(target=_read, args=(program.stdout, lines, progress), daemon=True)
    reader.start()
    terminal = sys.stdout.isatty()
    while reader.is_alive():
        reader.join(EVERY if terminal else EVERY_LOGGED)
        line = f"  {time.monotonic() - since:4.0f} s  {progress.phase}"
        if terminal:
            print(f"\r\x1b[K{line[:78]}", end="", flush=True)
        elif reader.is_alive():
            print(line, flush=True)
    if terminal:
        print("\r\x1b[K", end="")
    return program.wait(), lines


def _read(stream: IO[str], lines: list[str], progress: Progress) -> None:
    for line in stream:
        lines.append(line)
        progress.take(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
