"""Run the bench: every workload beside its yardsticks and other libraries, as one table and one JSON file.

    python bench/run.py [--quick | --long] [--only NAME …] [--json FILE] [--compare FILE]

Rounds go over all groups again and again until the time is up, so that each job is spread over the whole run; the first
round is always complete. ``--only`` takes names of groups, or patterns such as 'ladder-*'; ``--list`` prints them.
``--json`` replaces the groups that were run in a file that is there, and keeps the others with the facts of their run.
``--compare`` prints each ratio beside that of an earlier file, and ends with 1 if one is worse by more than its spread.
The exit code is 1, with a sentence for each, if a bound does not hold; bounds are for the sizes of a full run.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import bench_path  # noqa: F401 - before what it makes importable
import ladder
import logs
import reading
import scaling
import services
import writing
from measure import ROOT, Group, Run, Taken, about, compile_walk

#: Seconds that a run may take, its last round included, and the share of the usual sizes of logs.
LENGTHS = {Run.QUICK: (165.0, 0.1), Run.FULL: (690.0, 1.0), Run.LONG: (3600.0, 1.0)}


def all_groups(scale: float, run: Run) -> list[Group]:
    """Return the groups of a run."""
    return [
        group
        for module in (ladder, reading, writing, services, scaling)
        for group in module.groups(scale)
        if group.part_of <= run
    ]


def measure(groups: list[Group], seconds: float, run: Run) -> list[Taken]:
    """Return the figures of as many rounds as fit into the time; the first is always complete.

    Ctrl-C ends it with the groups that have had a round.
    """
    begin, taken = time.perf_counter(), [Taken(group) for group in groups]
    with tempfile.TemporaryDirectory(prefix="logreel-bench-") as name, suppress(KeyboardInterrupt):
        folder = Path(name)
        compileall.compile_dir(ROOT / "src", quiet=2)
        compile_walk(folder)
        logs.samples(folder)
        for number in range(1, 8):
            for one in taken:
                left = seconds - (time.perf_counter() - begin)
                if number > 1 and not 0 < one.next_round() < left:
                    continue
                print(
                    f"\r{seconds - left:5.0f} s, round {number}: {one.group.name:40}", end="", file=sys.stderr
                )
                one.round(folder, run)
    used = os.times()
    cpu = used.children_user + used.children_system
    print(f"\r{time.perf_counter() - begin:5.0f} s, {cpu:.0f} s of CPU{'':50}", file=sys.stderr)
    return [one for one in taken if one.rounds]


def table(found: dict[str, Any]) -> str:
    """Return the groups as text: times, their spread, and ratios to the yardstick, the first row of each group."""
    head = f"{'':44}{'ms':>10}   {'least … most':<20}{'CPU ms':>9}   {'x yardstick (least … most)':<26}"
    lines = [head]
    for name, group in found.items():
        of = "of CPU time" if group["measure"] == "cpu" else "of time"
        size = f", {group['bytes'] / 1e6:.1f} MB" if group["bytes"] else ""
        lines.append(f"\n{name}: {group['title']}{size}, {group['rounds']} rounds, ratios {of}")
        for job, row in group["jobs"].items():
            cells = "".join(f"{row[key][1] * 1e3:>10.1f}" if key in row else " " * 10 for key in ("wall",))
            low, _, high = (1e3 * value for value in row.get("wall", [0, 0, 0]))
            cells += f"   {f'{low:.1f} … {high:.1f}':<20}{row.get('cpu', [0, 0, 0])[1] * 1e3:>9.1f}   "
            if "ratio" in row:
                low, middle, high = row["ratio"]
                cells += f"{middle:8.2f} ({low:.2f} … {high:.2f})"
            lines.append(f"  {job:42}{cells}".rstrip())
            own = {
                key: value[1] for key, value in row.items() if key not in ("wall", "cpu", "ratio", "resident")
            }
            if "memory" in own:
                lines.append(f"      memory besides mapped files {own.pop('memory') / 1e6:.1f} MB")
            lines += [f"      {key}: {value:,.6g}" for key, value in own.items()]
        lines += [f"  {job}: left out, {why}" for job, why in group["left out"].items()]
        lines += [f"  {bound['says']}{'' if bound['holds'] else '  BROKEN'}" for bound in group["bounds"]]
    return "\n".join(lines)


def compare(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Print each ratio beside that of an earlier run; return sentences about those that are worse by their spread."""
    worse = []
    print(f"\n{'':60}{'before':>9}{'now':>9}  x yardstick")
    for name, group in found.items():
        old = before.get(name, {}).get("jobs", {})
        for job, row in group["jobs"].items():
            if "ratio" not in row or "ratio" not in old.get(job, {}):
                continue
            (low, middle, _), (_, was, most) = row["ratio"], old[job]["ratio"]
            mark = "worse" if low > most else "better" if row["ratio"][2] < old[job]["ratio"][0] else ""
            print(f"  {f'{name}: {job}':58}{was:>9.2f}{middle:>9.2f}  {mark}")
            if mark == "worse":
                worse.append(
                    f"{name}: {job} takes {middle:.2f} x its yardstick, at least {low:.2f}; it was {was:.2f}"
                )
    return worse


def dump(content: dict[str, Any]) -> str:
    """Return JSON with a line for each list and measure."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return (
        re.sub(
            r"[\[{]\s+([^\[\]{}]*?)\s+([\]}])",
            lambda m: m[0][0] + re.sub(r"\s*\n\s*", " ", m[1]) + m[2],
            text,
        )
        + "\n"
    )


def save(path: Path, content: dict[str, Any]) -> None:
    """Write the groups of this run into a file, beside those of earlier runs that it has."""
    groups = {}
    if path.exists():
        old = json.loads(path.read_text())
        groups = {
            name: {**group, "about": group.get("about", old["about"])}
            for name, group in old["groups"].items()
        }
    content = {"about": content["about"], "groups": groups | content["groups"]}
    path.write_text(dump(content))


def main() -> int:
    """Run, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", action="store_true", help="small logs, the main workloads: at most three minutes"
    )
    length.add_argument(
        "--long",
        action="store_true",
        help="also what takes an hour: further logs, large fleets, counts up to 100 000",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="groups by name, or by patterns such as 'ladder-*'"
    )
    parser.add_argument("--list", action="store_true", help="print the names of all groups")
    parser.add_argument("--scale", type=float, help="share of the usual sizes of logs")
    parser.add_argument("--seconds", type=float, help="time for all rounds; the first is always complete")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures into this file")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with the figures of this file")
    parser.add_argument(
        "--note", default="", help="what is special about this run; stands beside its figures"
    )
    args = parser.parse_args()
    run = Run.QUICK if args.quick else Run.LONG if args.long else Run.FULL
    seconds, scale = LENGTHS[run]
    scale = args.scale or scale
    groups = all_groups(scale, Run.LONG if args.only or args.list else run)
    if args.only:
        groups = [group for group in groups if any(fnmatch(group.name, name) for name in args.only)]
    if args.list or not groups:
        print("\n".join(f"{group.name:24}{group.title}" for group in groups) or "no group has such a name")
        return int(not args.list)
    content = {"about": about(args.note)}
    taken = measure(groups, args.seconds or seconds, run)
    content["groups"] = {one.group.name: one.as_dict(judged=scale >= 1) for one in taken}
    facts = content["about"]
    print(f"{facts['machine']}, {facts['system']}, commit {facts['commit']}, load {facts['load']}")
    print(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    print(table(content["groups"]))
    sentences = [f"{one.group.name}: {job}: {why}" for one in taken for job, why in one.failures.items()]
    if args.compare:
        sentences += compare(content["groups"], json.loads(args.compare.read_text())["groups"])
    if args.json:
        save(args.json, content)
    for group in content["groups"].values():
        sentences += [
            f"a bound does not hold: {bound['says']}" for bound in group["bounds"] if not bound["holds"]
        ]
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return int(bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
