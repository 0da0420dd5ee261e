"""Measure comparisons of two runs: false alarms on pairs of good runs, and which faults are found at the right time.

.venv/bin/python bench/comparisons.py             prints the table of docs/howto/ci.md
.venv/bin/python bench/comparisons.py --pairs 60  compares more pairs
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import logreel  # noqa: E402
from contracts import fill_table  # noqa: E402
from support.builders.good_runs import FAULTS, VEHICLES, content, faulty, start_of  # noqa: E402

#: How far from the fault its onset may be, ns.
NEAR = 10**9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=40, help="pairs of good runs of each vehicle")
    parser.add_argument("--seeds", type=int, default=3, help="runs with each fault")
    parser.add_argument("--pairs-from", type=int, default=0, help="seed of the first pair")
    parser.add_argument("--seeds-from", type=int, default=1000, help="seed of the first run with a fault")
    parser.add_argument("--size", type=int, default=2, help="size of the faults: 0, 1 or 2")
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), help="only these faults")
    parser.add_argument("--vehicles", nargs="*", default=list(VEHICLES), help="only these vehicles")
    parser.add_argument("--fill", action="store_true", help="write the table into docs/howto/ci.md")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    cells: dict[str, list[str]] = {name: [] for name in options.faults}
    for vehicle in options.vehicles:
        make, alarms, kinds = VEHICLES[vehicle], 0, Counter[str]()
        for pair in range(options.pairs):
            seed = options.pairs_from + 2 * pair
            found = logreel.compare(content(make(seed)), content(make(seed + 1)))
            alarms += not found.same
            kinds.update({one.what for one in found.deviations})
            for one in found.deviations if options.verbose else ():
                print(f"{vehicle} {pair}: {one.topic} {one.field} {one.state}: {one.text}", file=sys.stderr)
        told = f"; {dict(kinds)}" if kinds else ""
        print(f"{vehicle}: {alarms} of {options.pairs} pairs of good runs with an alarm{told}", flush=True)
        for name in options.faults:
            cells[name].append(_cell(vehicle, name, options))
    table = [f"| fault | {' | '.join(options.vehicles)} |", f"|---|{'---|' * len(options.vehicles)}"]
    for name in options.faults:
        _, sizes, unit = FAULTS[name]
        shown = "∞" if sizes[options.size] == 1e9 else f"{sizes[options.size]:g}"
        table.append(f"| {name}, {shown} {unit} | {' | '.join(cells[name])} |")
    print("", *table, sep="\n")
    if options.fill:
        fill_table(ROOT / "docs/howto/ci.md", table)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


def _cell(vehicle: str, name: str, options: argparse.Namespace) -> str:
    """Return how many runs are found at the right time, and of the others those at another time."""
    right = other = count = 0
    good = content(VEHICLES[vehicle](options.pairs_from))
    for seed in range(options.seeds_from, options.seeds_from + options.seeds):
        result = faulty(vehicle, seed, name, options.size)
        if result is None:
            continue
        run, at = result
        count += 1
        found = logreel.compare(good, content(run))
        onsets = [
            (one.onset_ns - start_of(run)) / 1e9 for one in found.deviations if one.onset_ns is not None
        ]
        is_right = bool(onsets) and abs(onsets[0] - at) <= NEAR / 1e9
        right += is_right
        other += not found.same and not is_right
        if options.verbose:
            first = found.deviations[0] if found.deviations else None
            told = "nothing" if first is None else f"{first.topic} {first.field} {first.text}"
            late = f"{onsets[0] - at:+.2f} s" if onsets else ""
            print(f"{vehicle} {name} {seed}: {late} {told}", file=sys.stderr)
    return f"{right}{f' (+{other})' if other else ''} of {count}" if count else "–"


if __name__ == "__main__":
    main()
