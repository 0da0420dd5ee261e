"""Measure learned contracts: false alarms on good runs, and which faults are found at the right time.

.venv/bin/python bench/contracts.py              prints the table of docs/howto/check.md
.venv/bin/python bench/contracts.py --runs 20    learns from more runs
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import logreel  # noqa: E402
from logreel.errors import Finding  # noqa: E402
from support.builders.good_runs import FAULTS, VEHICLES, content, faulty, start_of  # noqa: E402

#: Good runs of a vehicle, and how far from the fault its onset may be, ns.
GOOD, NEAR = 50, 10**9


def broken(data: bytes, contract: object) -> list[Finding]:
    """Return what breaks a contract, first onset first."""
    found = logreel.check(data, contract=contract).findings  # type: ignore[arg-type]
    return [f for f in found if f.code.startswith("contract-") and f.severity == "error"]


def fill_table(page: Path, table: list[str]) -> None:
    """Replace the only table of faults in a page of the documentation."""
    lines = page.read_text(encoding="utf-8").split("\n")
    (first,) = (i for i, line in enumerate(lines) if line.startswith("| fault |"))
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    lines[first:last] = table
    page.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5, help="good runs to learn from")
    parser.add_argument("--seeds", type=int, default=3, help="runs with each fault and size")
    parser.add_argument("--good-from", type=int, default=0, help="seed of the first good run")
    parser.add_argument("--seeds-from", type=int, default=1000, help="seed of the first run with a fault")
    parser.add_argument(
        "--good", type=int, default=GOOD, help="good runs of each vehicle, with those to learn from"
    )
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), help="only these faults")
    parser.add_argument("--fill", action="store_true", help="write the table into docs/howto/check.md")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    first = options.good_from
    cells: dict[str, list[str]] = {name: [] for name in FAULTS}
    began = time.monotonic()
    for vehicle, make in VEHICLES.items():
        learned = logreel.learn_contract(
            [content(make(seed)) for seed in range(first, first + options.runs)]
        ).contract
        # Also those into which the faults are put, so that an alarm of theirs is not taken for a fault that was found.
        others = [
            *range(first + options.runs, first + options.good),
            *range(options.seeds_from, options.seeds_from + options.seeds),
        ]
        alarms = 0
        for seed in others:
            wrong = broken(content(make(seed)), learned)
            alarms += bool(wrong)
            for finding in wrong if options.verbose else ():
                print(f"{vehicle} {seed}: {finding.topic} {finding.text}", file=sys.stderr)
        print(
            f"{vehicle}: learned from {options.runs}, {alarms} of {len(others)} good runs with an alarm",
            flush=True,
        )
        for name in options.faults:
            cells[name].append(_cell(vehicle, name, learned, options))
    table = [f"| fault | sizes | {' | '.join(VEHICLES)} |", f"|---|---|{'---|' * len(VEHICLES)}"]
    for name in options.faults:
        _, sizes, unit = FAULTS[name]
        shown = ", ".join("∞" if size == 1e9 else f"{size:g}" for size in sizes)
        table.append(f"| {name} | {shown} {unit} | {' | '.join(cells[name])} |")
    print("", *table, sep="\n")
    if options.fill:
        fill_table(ROOT / "docs/howto/check.md", table)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


def _cell(vehicle: str, name: str, learned: object, options: argparse.Namespace) -> str:
    """Return, for each size, how many runs are found at the right time, and of the others those at another time."""
    shown, most = [], 0
    for size in range(3):
        right = other = count = 0
        for seed in range(options.seeds_from, options.seeds_from + options.seeds):
            result = faulty(vehicle, seed, name, size)
            if result is None:
                continue
            run, at = result
            count += 1
            wrong = broken(content(run), learned)
            times = [f.time_ns - start_of(run) for f in wrong if f.time_ns is not None]
            is_right = bool(times) and abs(times[0] - at * 1e9) <= NEAR
            right += is_right
            other += bool(wrong) and not is_right
            if options.verbose:
                first = f"{wrong[0].topic} {wrong[0].text}" if wrong else "nothing"
                late = f"{times[0] / 1e9 - at:+.2f} s" if times else ""
                print(f"{vehicle} {name} {size} {seed}: {late} {first}", file=sys.stderr)
        # A fault that changes no message of any run is none.
        shown.append(f"{right}{f' (+{other})' if other else ''}" if count else "–")
        most = max(most, count)
    return f"{', '.join(shown)} of {most}" if most else "–"


if __name__ == "__main__":
    main()
