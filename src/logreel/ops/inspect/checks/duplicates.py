"""Check for repeated messages, and channels whose time does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding
from logreel.index.block_table import MISSING_SIZE
from logreel.index.ranges import places
from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.ops.inspect.checks.places import offset_of
from logreel.ops.inspect.digests import Digests, digests

#: Share of messages with the time of another one above which the time of a channel counts as frozen.
STILL = 0.5
#: Least number of messages for frozen time.
MESSAGES = 10


def duplicates(log: Log) -> Iterator[Finding]:
    """Yield ``frozen-time``, and ``duplicate`` for messages of a channel with equal time, size and bytes.

    Messages with different sequence numbers are no duplicates.
    """
    doubtful: dict[int, I64] = {}
    numbers: dict[int, I64] = {}
    for ch in log.match(None):
        rows = _rows_with_equal_times(ch.times)
        if len(ch) >= MESSAGES and len(rows) > STILL * len(ch):
            yield _frozen_finding(ch, rows)
        elif len(rows):
            sequence = log.index.side_column(ch.number, "sequence")
            counted = np.zeros(len(rows), np.int64) if sequence is None else sequence[rows]
            _, _, sizes = places(log.index, ch.number, rows)
            # Messages that an index names and that are not there have no bytes to compare.
            alike = _has_equal(ch.times[rows], sizes, counted) & (sizes != MISSING_SIZE)
            if alike.any():
                doubtful[ch.number], numbers[ch.number] = rows[alike], counted[alike]
    found = digests(log, doubtful) if doubtful else {}
    for ch in log.match(None):
        if (
            ch.number in found
            and (finding := _duplicate_finding(ch, found[ch.number], numbers[ch.number])) is not None
        ):
            yield finding


def _rows_with_equal_times(times: I64) -> I64:
    """Return the rows of messages whose time another message has too, ascending."""
    if (times[1:] > times[:-1]).all():
        return np.zeros(0, np.int64)
    return np.flatnonzero(_has_equal(times))


def _sort_rows(columns: tuple[NDArray[Any], ...]) -> tuple[I64, NDArray[np.bool_]]:
    """Return int64[n]: the rows sorted by value; bool[n - 1]: whether each sorted row equals the previous one."""
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    return order, same


def _has_equal(*columns: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether another row has the same values in all columns."""
    order, same = _sort_rows(columns)
    found = np.zeros(len(order), np.bool_)
    found[order[1:]] |= same
    found[order[:-1]] |= same
    return found


def _frozen_finding(ch: Channel, rows: I64) -> Finding:
    text = f"time stands still: {len(rows)} of {len(ch)} messages have the time of another one"
    first = int(rows[0])
    return Finding(
        "frozen-time", "note", offset_of(ch, first), 0, text, ch.topic, int(ch.times[first]), len(rows)
    )


def _duplicate_finding(ch: Channel, found: Digests, sequence: I64) -> Finding | None:
    order, same = _sort_rows((*found.keys(), found.time, sequence))
    again = order[1:][same]
    if not len(again):
        return None
    n, time = len(again), int(found.time[again.min()])
    text = f"{n} message{'s are' if n > 1 else ' is'} there again with the same time and the same bytes"
    size = int(found.size[again].sum())
    row = int(np.flatnonzero(ch.times == time)[1])
    return Finding("duplicate", "warn", offset_of(ch, row), size, text, ch.topic, time, n)
