"""Comparison of the messages of two logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.index.ranges import Rows
from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.log.times import seconds_text
from logreel.ops.inspect.digests import Digests, digests


@dataclass(frozen=True, slots=True)
class First:
    """First difference by time.

    what  ``changed``, ``only_a`` or ``only_b``
    a, b  number of the message in its channel in each log, in file order; None if it is missing there
    """

    what: str
    time_ns: int
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of one channel of two logs: messages paired by time, those of equal time in their order.

    by       ``payload``: pairs are equal if their bytes are; ``time``: all pairs are equal, since the logs encode this
             channel differently
    equal    equal pairs
    changed  pairs whose bytes differ
    only_a, only_b  messages without a counterpart
    """

    by: str
    equal: int
    changed: int
    only_a: int
    only_b: int
    first: First | None

    @property
    def same(self) -> bool:
        """Whether all messages have an equal counterpart."""
        return self.first is None

    def first_text(self) -> str:
        """Return where the first difference is; empty if there is none."""
        if self.first is None:
            return ""
        places = ("A", self.first.a), ("B", self.first.b)
        rows = [f"{log}[{row}]" for log, row in places if row is not None]
        return f"{', '.join(rows)} at {seconds_text(self.first.time_ns)} s"


def compare(one: Log, two: Log, rows: Mapping[str, tuple[Rows, Rows]]) -> dict[str, Compared]:
    """Compare the messages of topics that both logs have; return the results by topic. Each log is read once.

    rows  messages of log *one* and of log *two*, by topic
    """
    found_one = digests(one, {one[name].number: some for name, (some, _) in rows.items()})
    found_two = digests(two, {two[name].number: some for name, (_, some) in rows.items()})
    found = {}
    for name, both in rows.items():
        a, b = one[name], two[name]
        by_payload = a.schema.encoding == b.schema.encoding
        found[name] = _paired(found_one[a.number], found_two[b.number], both, by_payload)
    return found


def _paired(a: Digests, b: Digests, rows: tuple[Rows, Rows], by_payload: bool) -> Compared:
    time = np.concatenate([a.time, b.time])
    turn = np.concatenate([_occurrences(a.time), _occurrences(b.time)])
    side = np.repeat(np.array([0, 1], np.int8), [len(a.time), len(b.time)])
    order = np.lexsort((side, turn, time))
    time, turn = time[order], turn[order]
    # A pair is at i and i + 1, the message of the first log first.
    pair = (time[1:] == time[:-1]) & (turn[1:] == turn[:-1])
    alike = pair.copy()
    if by_payload:
        for column in (np.concatenate(both)[order] for both in zip(a.keys(), b.keys(), strict=True)):
            alike &= column[1:] == column[:-1]
    pairs, equal = int(pair.sum()), int(alike.sum())
    odd = np.ones(len(order), np.bool_)
    odd[1:] &= ~alike
    odd[:-1] &= ~alike
    return Compared(
        "payload" if by_payload else "time",
        equal,
        pairs - equal,
        len(a.time) - pairs,
        len(b.time) - pairs,
        _first_difference(int(np.argmax(odd)), order, time, pair, len(a.time), rows) if odd.any() else None,
    )


def _occurrences(time: I64) -> I64:
    """Return int64[n]: the number of earlier messages with the same time, for each message."""
    order = np.argsort(time, kind="stable")
    ordered = time[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(order)])
    turn = np.arange(len(order), dtype=np.int64)
    turn -= np.repeat(first, np.diff(np.append(first, len(order))))
    found = np.empty(len(order), np.int64)
    found[order] = turn
    return found


def _first_difference(
    at: int, order: I64, time: I64, pair: NDArray[np.bool_], split: int, rows: tuple[Rows, Rows]
) -> First:
    row = int(order[at])
    if at < len(pair) and pair[at]:
        other = int(order[at + 1]) - split
        return First("changed", int(time[at]), _row_number(rows[0], row), _row_number(rows[1], other))
    if row < split:
        return First("only_a", int(time[at]), _row_number(rows[0], row), None)
    return First("only_b", int(time[at]), None, _row_number(rows[1], row - split))


def _row_number(rows: Rows, at: int) -> int:
    """Return the number in its channel of message *at* of *rows*."""
    return int(rows.start) + at if isinstance(rows, slice) else int(rows[at])
