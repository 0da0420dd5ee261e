"""The TOML file of a learned contract: each line with what was learned, kept where a person changed it.

A line reads ``key = value  # learned value; from what``. Where the two values differ, a person has changed the first.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist, median
from typing import Any

from logreel.dataclass import dataclass, field
from logreel.io.append_file import Appender
from logreel.log.scan import Brief
from logreel.ops.inspect.contract import Contract, read_contract
from logreel.ops.toml_lines import KEY, key_text, path_of

#: Place of a line in the file: names of its tables, and its key.
Path = tuple[str, ...]


#: Standard deviations between runs that a bound lies beyond the farthest one, times the headroom.
DEVIATIONS = 4.5


def headroom(runs: float) -> float:
    """Return the factor of the headroom of bounds that are learned from a number of runs: 2.2 of five, 1.1 of sixty."""
    return 1 + 6 / runs


def apart(figures: Sequence[float]) -> float:
    """Return how far the figure of another run may be, without headroom, by the range of these."""
    n = len(figures)
    if n < 2:
        return 0.0
    # The expected range of n normal numbers, in standard deviations (Blom).
    expected = 2 * NormalDist().inv_cdf((n - 0.375) / (n + 0.25))
    return DEVIATIONS * (max(figures) - min(figures)) / expected


def seen_in(values: Sequence[float], what: str) -> str:
    """Return the comment of a bound: least, median and greatest of the figures of the runs."""
    shown = ", ".join(f"{value:.5g}" for value in (min(values), median(values), max(values)))
    return f"{what} of {len(values)} runs: {shown}"


def above(values: Sequence[float], share: float, least: float = 0.0) -> tuple[float, float]:
    """Return a bound above figures that are never negative, and its distance from the greatest one."""
    factor = headroom(len(values))
    margin = factor * (share * max(values) + apart(values)) + least
    return max(values) + margin, margin


def is_complete(runs: Iterable[Iterable[Any]]) -> bool:
    """Return whether what runs show is all there is: nothing was seen in one of them alone.

    The share of what occurs once estimates what was not seen yet (Good and Turing).
    """
    counts = Counter(value for values in runs for value in set(values))
    return 1 not in counts.values()


@dataclass(frozen=True, slots=True)
class LearnedLine:
    """A value as TOML text, and what it was learned from; *is_off*: it stands in the file as a comment."""

    literal: str
    why: str
    is_off: bool = False


@dataclass
class ContractDraft:
    """Lines by path, notes by table, and what could not be learned."""

    lines: dict[Path, LearnedLine] = field(default_factory=dict)
    notes: dict[Path, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, path: Path, value: Any, why: str) -> None:
        self.lines[path] = LearnedLine(value if isinstance(value, Digits) else literal(value), why)


class Digits(str):
    """Text of a number with the digits that matter."""

    __slots__ = ()


def literal(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, str):
        sound = value.encode("utf-8", "replace").decode()
        return json.dumps(sound, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value).removeprefix("+")
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key_text(k)} = {literal(v)}' for k, v in value.items())} }}"
    return str(value)


def outward(value: float, margin: float, up: bool) -> Digits:
    """Return a number, rounded away from what was measured by less than a tenth of *margin*."""
    if not margin > 0:
        return Digits(f"{value:.12g}")
    digits = min(max(1 - math.floor(math.log10(margin)), -300), 300)
    if abs(value) * 10.0**digits >= 1e15:
        return Digits(f"{value + (margin if up else -margin) / 10:.15g}")
    scaled = (math.ceil if up else math.floor)(value * 10.0**digits) / 10.0**digits
    text = f"{scaled + 0.0:.{max(digits, 0)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return Digits("0" if text in ("-0", "") else text)


_HEAD = """\
#: A contract that was learned from good runs, for logreel check --contract.
#: Behind each value stands what was learned, and from what: the least, the median and the greatest figure of the runs.
#: A value that differs from what was learned is yours: learning again with --update keeps it, as it keeps lines of your
#: own, and lines that you put behind a #.
"""
#: Order of the tables.
_TABLES = ("learned", "health", "text", "parameters", "topics")


@dataclass(frozen=True, slots=True)
class OldLine:
    """A line of a contract before it is learned again: its value, what had been learned, and the comments above it."""

    literal: str
    value: Any
    learned: Any = None
    was_learned: bool = False
    is_off: bool = False
    above: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether a person wrote or changed it."""
        return self.is_off or not self.was_learned or self.value != self.learned


def old_lines(text: str) -> tuple[dict[Path, OldLine], dict[Path, tuple[str, ...]]]:
    """Return the lines of a contract by path, and the comments of people above its tables."""
    lines: dict[Path, OldLine] = {}
    tables: dict[Path, tuple[str, ...]] = {}
    table: Path = ()
    above: list[str] = []
    statement = ""
    for row in text.splitlines():
        bare = row.strip()
        if not statement and (not bare or bare.startswith("#")):
            off = bare.lstrip("#").strip()
            if bare.startswith("#:") or not bare:
                continue
            if _MARK in off and KEY.match(off) and (read := _statement(off)) is not None:
                lines |= {(*table, *path): line for path, line in _flat(read, off, True, ())}
            else:
                above.append(bare)
            continue
        if not statement and bare.startswith("["):
            table = path_of(bare)
            tables[table] = tuple(above)
            above = []
            continue
        statement = f"{statement}\n{row}" if statement else bare
        read = _statement(statement)
        if read is not None:
            lines |= {(*table, *path): line for path, line in _flat(read, statement, False, tuple(above))}
            statement, above = "", []
    return lines, tables


#: In front of what was learned, in the comment of a line.
_MARK = "# learned "


def _statement(text: str) -> tuple[Path, Any] | None:
    """Return path and value of ``key = value``; None if it is not complete."""
    match = KEY.match(text)
    try:
        value: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    if match is None:
        return None
    path = path_of(f"{match[1]}=0")
    for name in path:
        value = value[name]
    return path, value


def _flat(
    read: tuple[Path, Any], text: str, is_off: bool, above: tuple[str, ...]
) -> Iterator[tuple[Path, OldLine]]:
    """Yield a line for a value, or for each one in an inline table."""
    path, value = read
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(((*path, name), inner), "", is_off, above)
            above = ()
        return
    before, mark, comment = text.rpartition(_MARK)
    learned, was_learned = None, False
    if mark:
        for end in re.finditer(r";|$", comment):
            read_again = _statement(f"x = {comment[: end.start()]}")
            if read_again is not None:
                learned, was_learned = read_again[1], True
                break
    own = before if mark else text
    match = KEY.match(own) if own else None
    shown = own[match.end() :].strip() if match is not None else literal(value)
    yield path, OldLine(shown, value, learned, was_learned, is_off, above)


def _merged(
    draft: ContractDraft, old: Mapping[Path, OldLine]
) -> dict[Path, tuple[LearnedLine, tuple[str, ...]]]:
    """Return the lines of a draft, with what people wrote into the old contract, and the comments above each line."""
    merged: dict[Path, tuple[LearnedLine, tuple[str, ...]]] = {}
    for path, line in draft.lines.items():
        why, before = f"learned {line.literal}; {line.why}", old.get(path)
        if before is not None and before.is_kept:
            merged[path] = LearnedLine(before.literal, why, before.is_off), before.above
        else:
            merged[path] = LearnedLine(line.literal, why), () if before is None else before.above
    for path, before in old.items():
        if path not in merged and before.is_kept:
            merged[path] = LearnedLine(before.literal, "", before.is_off), before.above
    return merged


def written(draft: ContractDraft, old_text: str) -> str:
    old, above_tables = old_lines(old_text)
    lines = _merged(draft, old)
    tables: dict[Path, list[Path]] = {}
    for path in lines:
        tables.setdefault(path[:-1], []).append(path)
    for table in draft.notes:
        tables.setdefault(table, [])

    def place(table: Path) -> tuple[int, str]:
        first = table[0] if table else ""
        rank = _TABLES.index(first) if first in _TABLES else -1
        return rank, table[1] if first == "topics" and len(table) > 1 else ""

    out = [_HEAD]
    for table in sorted(tables, key=place):
        if table:
            note = f"  # {draft.notes[table]}" if table in draft.notes else ""
            out += [*(f"{row}\n" for row in above_tables.get(table, ()))]
            out.append(f"[{'.'.join(map(key_text, table))}]{note}\n")
        for path in tables[table]:
            line, above = lines[path]
            out += [f"{row}\n" for row in above]
            why = f"  # {line.why}" if line.why else ""
            out.append(f"{'# ' if line.is_off else ''}{key_text(path[-1])} = {line.literal}{why}\n")
        out.append("\n")
    out += [f"#: not learned: {' '.join(reason.split())}\n" for reason in draft.left_out]
    return "".join(out)


@dataclass(frozen=True, slots=True, repr=False)
class LearnedContract(Brief):
    """A contract that was learned.

    runs   names of the logs
    toml   text of the file
    left_out  what was not learned, and why
    kept   lines that differ from what was learned, since a person changed them: names with dots
    """

    runs: tuple[str, ...]
    toml: str
    left_out: tuple[str, ...]
    kept: tuple[str, ...] = ()

    @property
    def contract(self) -> Contract:
        """The rules."""
        return read_contract(tomllib.loads(self.toml))

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the file; *force*: replace an existing one."""
        with Appender(path, force, keep=False) as out:
            out.write(self.toml.encode())
            out.commit()
