"""Comparison of all readers and writers with their peers: ``make oracles``.

Each module ``*_pairs.py`` of this folder has ``compare(shared)``, which yields a Row for each file and pair, and may
have ``EXPLAINED``: reasons of differences, by shell patterns of ``file | ours | peer``. Differences without a reason
give exit code 1.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
# For imports of rows.py and tests/support.
sys.path[:0] = [one for one in map(str, (HERE, HERE.parent)) if one not in sys.path]

from rows import Row  # noqa: E402

SHARED = HERE.parents[2] / "shared"


class Judged(NamedTuple):
    """A Row and the reason of its difference; empty if no reason is known or nothing differs."""

    row: Row
    why: str

    @property
    def differs(self) -> bool:
        """True if something is not equal."""
        return self.row.equal != self.row.compared

    @property
    def fails(self) -> bool:
        """True if the difference has no reason."""
        return self.differs and not self.why


def pairs() -> list[str]:
    """Return the names of the modules that compare."""
    return sorted(path.stem for path in HERE.glob("*_pairs.py"))


def judged(name: str, shared: Path) -> Iterator[Judged]:
    """Yield the rows of a module; an exception of the module becomes a row that differs."""
    try:
        module = importlib.import_module(name)
        explained: Mapping[str, str] = getattr(module, "EXPLAINED", {})
        for row in module.compare(shared):
            where = f"{row.file} | {row.ours} | {row.peer}"
            why = next((text for pattern, text in explained.items() if fnmatchcase(where, pattern)), "")
            yield Judged(row, why if row.equal != row.compared else "")
    except Exception as error:
        yield Judged(Row(name, "", "", "", 1, 0, f"{type(error).__name__}: {error}"), "")


def table(found: Iterable[Judged]) -> Iterator[str]:
    """Yield the lines of a table with a row for each pair, and the sums."""
    groups: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for one in found:
        groups[one.row.format, one.row.ours, one.row.peer].append(one)
    lines = [("format", "ours", "peer", "files", "compared", "equal", "different", "explained")]
    sums = [0] * 5
    for key, some in sorted(groups.items()):
        compared, equal = (sum(getattr(one.row, what) for one in some) for what in ("compared", "equal"))
        known = sum(one.row.compared - one.row.equal for one in some if one.why)
        numbers = [len({one.row.file for one in some}), compared, equal, compared - equal, known]
        sums = [a + b for a, b in zip(sums, numbers, strict=True)]
        lines.append((*key, *(f"{n:,}".replace(",", " ") for n in numbers)))  # type: ignore[arg-type]
    lines.append(("total", "", "", *(f"{n:,}".replace(",", " ") for n in sums)))  # type: ignore[arg-type]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        cells = (
            text.ljust(width) if k < 3 else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def main(arguments: list[str] | None = None) -> int:
    """Compare, print the results, and return the exit code."""
    parser = argparse.ArgumentParser(description="logreel beside its peers, over all samples")
    parser.add_argument("pairs", nargs="*", help=f"some of {', '.join(pairs())}; usually all")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder with data/")
    chosen = parser.parse_args(arguments)
    if not (chosen.shared / "data").is_dir():
        print(f"no samples: {chosen.shared / 'data'} is not there")
        return 0
    found = list[Judged]()
    for name in chosen.pairs or pairs():
        began = time.monotonic()
        mine = list(judged(name, chosen.shared))
        found += mine
        print(f"{name}: {len(mine)} comparisons in {time.monotonic() - began:.1f} s", flush=True)
    print("", *table(found), "", sep="\n")
    for one in found:
        if one.differs:
            row = one.row
            many = row.compared - row.equal
            print(
                f"{'explained' if one.why else 'DIFFERENT'}: {row.file}: {row.ours} | {row.peer}: {many} of ",
                end="",
            )
            print(f"{row.compared}: {one.why or row.note}")
    failed = sum(one.fails for one in found)
    print(f"{failed} comparisons differ and nobody knows why" if failed else "no difference without a reason")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
