"""Order of the files of one log, and the Problems between them: duplicates, overlaps, missing files, other clocks."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from logreel.errors import Problem
from logreel.io.chunks import Buffer
from logreel.log.log import Log
from logreel.log.times import duration_text, utc_shift

#: Codes of the Problems between the files of one log.
BETWEEN_FILES = ("duplicate-part", "missing-part", "part-order", "part-gap", "part-overlap", "part-clock")
#: A longer silence between two numbered files of a recording is noted, ns. Recorders that split lose less.
SILENCE = 10**9
#: Consecutive files of a recorder overlap by less, ns: its threads stamp messages before they queue them.
SLIGHT = 10**9
#: Clocks of one recording drift less against UTC, ns.
DRIFT = 60 * 10**9
#: Bytes of files that are compared at once.
STEP = 1 << 18
#: Most missing numbers that are named one by one.
NAMED = 5

_NUMBER = re.compile(r"(\d+)")


def natural_key(name: str) -> tuple[object, ...]:
    """Return a sort key by which ``part_2`` comes before ``part_10``."""
    pieces = _NUMBER.split(name)
    return tuple((int(text), text) if i % 2 else text.casefold() for i, text in enumerate(pieces))


def shape_of(name: str) -> str:
    """Return a file name with ``#`` in place of each number; equal for the files that one recorder splits."""
    return _NUMBER.sub("#", os.path.basename(name))


def numbers(names: Sequence[str]) -> list[int] | None:
    """Return the number of each file of a recording; None if the names do not have one that distinguishes them.

    That is the last number in names that are else alike, except in numbers before it, such as a date.
    """
    bases = [os.path.splitext(os.path.basename(name))[0] for name in names]
    if len({shape_of(base) for base in bases}) != 1 or not _NUMBER.search(bases[0]):
        return None
    found = [int(_NUMBER.findall(base)[-1]) for base in bases]
    return found if len(set(found)) == len(found) else None


def is_sequence(numbered: Sequence[int]) -> bool:
    """Return whether numbers count files, with few missing; numbers such as dates and robots' names do not."""
    return max(numbered) - min(numbered) < 2 * len(numbered) + NAMED


def duplicates(logs: Sequence[Log]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of logs with the same bytes as an earlier one, and of that one."""
    sizes = Counter(log.size for log in logs)
    first: dict[tuple[int, bytes], list[int]] = {}
    for n, log in enumerate(logs):
        if sizes[log.size] == 1:
            continue
        same = first.setdefault((log.size, log._source.head), [])
        for other in same:
            if _is_same(log._source.data, logs[other]._source.data):
                yield n, other
                break
        else:
            same.append(n)


def _is_same(one: Buffer, two: Buffer) -> bool:
    """Return whether two buffers of equal size have the same bytes; files that differ mostly do at their end."""
    cuts = range(0, len(one), STEP)
    return all(np.array_equal(one[at : at + STEP], two[at : at + STEP]) for at in reversed(cuts))


def overlaps(logs: Sequence[Log], shifts: Sequence[int]) -> bool:
    """Return whether any log begins before an earlier one ends."""
    return any(begins < ends for begins, ends in _edges(logs, shifts))


def _edges(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start of each log that has messages, and the latest end of those before it."""
    last: int | None = None
    for log, by in zip(logs, shifts, strict=True):
        if log.start is None or log.end is None:
            continue
        if last is not None:
            yield log.start + by, last
        last = log.end + by if last is None else max(last, log.end + by)


def problems_between(logs: Sequence[Log], shifts: Sequence[int]) -> list[Problem]:
    """Return the Problems of logs, in their order, as the parts of one log."""
    return list(_missing(logs, shifts)) + list(_overlapping(logs, shifts)) + list(_other_clocks(logs, shifts))


def _problem(code: str, text: str) -> Problem:
    return Problem(code, 0, 0, False, text)


def _missing(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    numbered = numbers([log.name for log in logs])
    if numbered is None or not is_sequence(numbered):
        return
    gone = sorted(set(range(min(numbered), max(numbered))) - set(numbered))
    if gone:
        named = ", ".join(map(str, gone[:NAMED])) + (
            f" and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
        )
        many = (
            f"files with the numbers {named} are" if len(gone) > 1 else f"a file with the number {named} is"
        )
        yield _problem("missing-part", f"{many} missing between {logs[0].name} and {logs[-1].name}")
    for (a, log, by), (b, other, more) in pairwise(zip(numbered, logs, shifts, strict=True)):
        later = (other.start or 0) + more - (log.start or 0) - by
        if b < a and not _is_slight(later, log, other):
            yield _problem(
                "part-order", f"{other.name} begins after {log.name}, although its number is lower"
            )
    for (a, log, by), (b, other, more) in pairwise(zip(numbered, logs, shifts, strict=True)):
        if log.end is None or other.start is None or b != a + 1:
            continue
        silence = other.start + more - log.end - by
        if silence > SILENCE:
            yield _problem(
                "part-gap", f"no message for {duration_text(silence)} between {log.name} and {other.name}"
            )


def _is_slight(overlap: int, log: Log, other: Log) -> bool:
    """Return whether *overlap*, in ns, is at most SLIGHT and half of the longer log, as between a recorder's files."""
    return overlap <= min(SLIGHT, max(log.duration or 0, other.duration or 0) // 2)


def _overlapping(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    """Yield Problems for neighbours that overlap in time and have channels of the same topic."""
    for n, (other, more) in enumerate(zip(logs, shifts, strict=True)):
        for log, by in zip(logs[:n], shifts[:n], strict=True):
            if log.end is None or other.start is None or other.end is None:
                continue
            late = log.end + by - other.start - more
            if late <= 0 or _is_slight(late, log, other):
                continue
            topics = [
                topic
                for topic, ch in other.channels.items()
                if not ch.reserved and topic in log and len(ch) and len(log[topic])
            ]
            if topics:
                common = min(late, other.end - other.start)
                others = f" and {len(topics) - 1} more channels" if len(topics) > 1 else ""
                yield _problem(
                    "part-overlap",
                    f"{log.name} and {other.name} overlap by {duration_text(common)}, both with {topics[0]!r}{others}",
                )


def _other_clocks(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    """Yield Problems for neighbours whose clocks, once shifted, differ in UTC: they are of different starts."""
    for (log, by), (other, more) in pairwise(zip(logs, shifts, strict=True)):
        one, two = utc_shift(log), utc_shift(other)
        if log.epoch == "unix" or one is None or two is None or abs(one - by - two + more) <= DRIFT:
            continue
        apart = duration_text(abs(one - by - two + more))
        yield _problem(
            "part-clock",
            f"the clocks of {log.name} and {other.name} differ by {apart}: these are different recordings, "
            "whose times agree only with align='utc'",
        )
