"""Checks of the bytes of messages: payloads that do not fit their definition, and messages that are there twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, Finding, Severity
from logreel.index.block_table import MISSING_SIZE
from logreel.index.ranges import PayloadRange, batches, load, payload_ranges, places
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.program import Program
from logreel.log.log import Channel, Log
from logreel.log.padding import is_padded, skipping, too_long
from logreel.ops.inspect.digests import Digests, digests
from logreel.ops.inspect.time_checks import offset_of
from logreel.ops.query.record_batches import rows_per_batch

#: Severity and text of findings, by code.
KINDS: dict[str, tuple[Severity, str]] = {
    "payload": ("error", "do not fit their definition, and cannot be decoded"),
    "leftover": ("warn", "are longer than their definition"),
}


@dataclass
class _Tally:
    """Messages of one channel that do not fit: count and first row, by code."""

    ch: Channel
    seen: int = 0
    count: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, rows: I64) -> None:
        if len(rows):
            self.first.setdefault(code, int(rows[0]))
            self.count[code] = self.count.get(code, 0) + len(rows)

    def findings(self) -> Iterator[Finding]:
        for code, n in self.count.items():
            severity, text = KINDS[code]
            row = self.first[code]
            sentence = f"{n} of {len(self.ch)} messages {text}; the first is number {row}"
            place, time = offset_of(self.ch, row), int(self.ch.times[row])
            yield Finding(code, severity, place, 0, sentence, self.ch.topic, time, n)


def payloads(log: Log) -> Iterator[Finding]:
    """Yield ``payload`` for messages shorter than their definition requires, ``leftover`` for longer ones."""
    walked: dict[Channel, Program] = {}
    tallies = {ch: _Tally(ch) for ch in log.match(None) if len(ch)}
    for ch, tally in tallies.items():
        try:
            layout, reading = ch.layout, ch.decoder
        except DefinitionError:
            continue
        if reading is not None:
            _read(ch, tally)
        elif layout.size is not None and not is_padded(ch.metadata):
            sizes = log.index.sizes(ch.number)
            tally.add("payload", np.flatnonzero(sizes < layout.size))
            tally.add("leftover", np.flatnonzero(sizes > layout.size))
        else:
            walked[ch] = skipping(layout)
    for ch, payload_range in _pieces(log, walked):
        _walk(tallies[ch], walked[ch], payload_range)
    for tally in tallies.values():
        yield from tally.findings()


def _pieces(log: Log, channels: dict[Channel, Program]) -> Iterator[tuple[Channel, PayloadRange]]:
    """Yield all messages of *channels* in ranges; each compressed chunk is decompressed once."""
    synthetic = [ch for ch in channels if log.index.rules[ch.number].synthetic is not None]
    for ch in synthetic:
        yield from (
            (ch, payload_range) for payload_range in payload_ranges(log.index, ch.number, slice(0, len(ch)))
        )
    if len(synthetic) == len(channels):
        return
    for numbers in batches(log.index, range(len(log.index.table.base))):
        loaded = load(log.index, numbers)
        yield from (
            (ch, loaded.payload_range(log.index, ch.number)) for ch in channels if ch not in synthetic
        )


def _walk(tally: _Tally, program: Program, payloads: PayloadRange) -> None:
    status: NDArray[np.uint8] = np.zeros(len(payloads.offset), np.uint8)
    counts = np.zeros(len(program.columns), np.int64)
    kernel.count(payloads.data, payloads.offset, payloads.offset + payloads.size, program.ops, counts, status)
    tally.add("payload", tally.seen + np.flatnonzero(status & 1))
    left = np.flatnonzero(status == kernel.LEFTOVER)
    if len(left) and is_padded(tally.ch.metadata):
        left = too_long(program, payloads, left)
    tally.add("leftover", tally.seen + left)
    tally.seen += len(status)


def _read(ch: Channel, tally: _Tally) -> None:
    """Decode the messages of a channel with a PayloadDecoder, and count those that do not fit."""
    step = rows_per_batch(ch)
    for lo in range(0, len(ch), step):
        for payloads in payload_ranges(ch.log.index, ch.number, slice(lo, lo + step)):
            rows = np.arange(tally.seen, tally.seen + len(payloads.offset), dtype=np.int64)
            got = ch.decoder.decode_batch(ch.log.index, ch.layout, payloads, rows) if ch.decoder else None
            if got is not None:
                tally.add("payload", rows[[row for row, _ in got.bad]])
                tally.add("leftover", rows[got.leftover])
            tally.seen += len(rows)


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
    digested = digests(log, doubtful) if doubtful else {}
    for ch in log.match(None):
        if (
            ch.number in digested
            and (finding := _duplicate_finding(ch, digested[ch.number], numbers[ch.number])) is not None
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
    repeated = np.zeros(len(order), np.bool_)
    repeated[order[1:]] |= same
    repeated[order[:-1]] |= same
    return repeated


def _frozen_finding(ch: Channel, rows: I64) -> Finding:
    text = f"time stands still: {len(rows)} of {len(ch)} messages have the time of another one"
    first = int(rows[0])
    return Finding(
        "frozen-time", "note", offset_of(ch, first), 0, text, ch.topic, int(ch.times[first]), len(rows)
    )


def _duplicate_finding(ch: Channel, digested: Digests, sequence: I64) -> Finding | None:
    order, same = _sort_rows((*digested.keys(), digested.time, sequence))
    again = order[1:][same]
    if not len(again):
        return None
    n, time = len(again), int(digested.time[again.min()])
    text = f"{n} message{'s are' if n > 1 else ' is'} there again with the same time and the same bytes"
    size = int(digested.size[again].sum())
    row = int(np.flatnonzero(ch.times == time)[1])
    return Finding("duplicate", "warn", offset_of(ch, row), size, text, ch.topic, time, n)
