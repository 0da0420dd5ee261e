"""Run all targets, or some, one after another: ``python run.py SECONDS [TARGET…]``; used by ``make fuzz-coverage``.

New inputs are kept in build/fuzz/corpus/TARGET, findings in build/fuzz/found/TARGET. Prints a line per target: number
of executions, coverage, findings. Ends with 1 if there are any.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from seeds import write
from targets import TARGETS

FOLDER = Path(__file__).parent
BUILD = FOLDER.parent / "build" / "fuzz"
#: Seconds after which an input counts as one that hangs, and most MiB of memory.
TIMEOUT, MEMORY = 25, 2048


def run(name: str, seconds: int) -> tuple[str, bool]:
    """Return a line about the run of a target, and whether it found something."""
    corpus, found, seeds = (BUILD / kind / name for kind in ("corpus", "found", "seeds"))
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    write(seeds, name)
    limits = [f"-max_total_time={seconds}", f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY}"]
    command = [
        sys.executable,
        f"fuzz_{name}.py",
        *limits,
        "-print_final_stats=1",
        f"-artifact_prefix={found}/",
    ]
    done = subprocess.run(
        [*command, corpus, seeds],
        cwd=FOLDER,
        env={**os.environ, "LOGREEL_CACHE": "off", "LOGREEL_DATA": "off"},
        capture_output=True,
        text=True,
        errors="replace",
    )
    count = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    text = f"{name:22} {count[1] if count else '?':>9} executions, coverage {covered[-1] if covered else '?'}"
    if done.returncode:
        text += f", found: {[path.name for path in found.iterdir()]}\n{done.stderr[-3000:]}"
    return text, done.returncode != 0


def main() -> None:
    """Run the targets."""
    seconds, names = int(sys.argv[1]), sys.argv[2:] or list(TARGETS)
    failed = False
    for name in names:
        text, is_found = run(name, seconds)
        print(text, flush=True)  # noqa: T201
        failed |= is_found
    sys.exit(failed)


if __name__ == "__main__":
    main()
