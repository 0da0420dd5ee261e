"""Whether every message is as long as its definition says, without decoding it where that can be told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, Finding, Severity
from logreel.index.ranges import Piece, batches, load, pieces
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.program import Program
from logreel.log.log import Channel, Log
from logreel.log.padding import is_padded, skipping, too_long
from logreel.ops.inspect.checks.places import offset_of
from logreel.ops.query.record_batches import rows_per_piece

#: Severity and sentence for messages that do not fit, by what they are.
KINDS: dict[str, tuple[Severity, str]] = {
    "payload": ("error", "do not fit their definition, and cannot be decoded"),
    "leftover": ("warn", "are longer than their definition"),
}


@dataclass
class _Tally:
    """Messages of one channel that do not fit: how many, and the row of the first, by code."""

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
            told = f"{n} of {len(self.ch)} messages {text}; the first is number {row}"
            place, time = offset_of(self.ch, row), int(self.ch.times[row])
            yield Finding(code, severity, place, 0, told, self.ch.topic, time, n)


def payloads(log: Log) -> Iterator[Finding]:
    """``payload`` for messages that end too early for their definition, ``leftover`` for those that go on behind it."""
    walked: dict[Channel, Program] = {}
    tallies = {ch: _Tally(ch) for ch in log.match(None) if len(ch)}
    for ch, tally in tallies.items():
        try:
            layout, reading = ch.layout, ch.reading
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
    for ch, piece in _pieces(log, walked):
        _walk(tallies[ch], walked[ch], piece)
    for tally in tallies.values():
        yield from tally.findings()


def _pieces(log: Log, channels: dict[Channel, Program]) -> Iterator[tuple[Channel, Piece]]:
    """All messages of *channels*, stretch by stretch of the file: each packed chunk is unpacked once for all."""
    made = [ch for ch in channels if log.index.tracks[ch.number].made is not None]
    for ch in made:
        yield from ((ch, piece) for piece in pieces(log.index, ch.number, slice(0, len(ch))))
    if len(made) == len(channels):
        return
    for numbers in batches(log.index, range(len(log.index.table.base))):
        loaded = load(log.index, numbers)
        yield from ((ch, loaded.piece(log.index, ch.number)) for ch in channels if ch not in made)


def _walk(tally: _Tally, program: Program, piece: Piece) -> None:
    status: NDArray[np.uint8] = np.zeros(len(piece.offset), np.uint8)
    counts = np.zeros(len(program.columns), np.int64)
    kernel.count(piece.data, piece.offset, piece.offset + piece.size, program.ops, counts, status)
    tally.add("payload", tally.seen + np.flatnonzero(status & 1))
    left = np.flatnonzero(status == kernel.LEFTOVER)
    if len(left) and is_padded(tally.ch.metadata):
        left = too_long(program, piece, left)
    tally.add("leftover", tally.seen + left)
    tally.seen += len(status)


def _read(ch: Channel, tally: _Tally) -> None:
    """Messages that are no walk of a Layout have to be decoded."""
    step = rows_per_piece(ch)
    for lo in range(0, len(ch), step):
        for piece in pieces(ch.log.index, ch.number, slice(lo, lo + step)):
            rows = np.arange(tally.seen, tally.seen + len(piece.offset), dtype=np.int64)
            got = ch.reading.columns(ch.log.index, ch.layout, piece, rows) if ch.reading else None
            if got is not None:
                tally.add("payload", rows[[row for row, _ in got.bad]])
                tally.add("leftover", rows[got.leftover])
            tally.seen += len(rows)
