"""Messages of one or several logs as they are to be written: payloads in bounded pieces, none of them decoded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.model.chunks import MADE, Buffer
from logreel.model.heads import joined
from logreel.model.index import I64, Selection, beside
from logreel.model.order import by_rows
from logreel.ops.parts import Part

#: Payload bytes written at once, about.
BYTES = 8 << 20
#: Messages of several buffers are gathered into one where fewer than these follow each other in one, on average.
STRETCH = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages in order; the payload of message i is data[start[i]:start[i] + size[i]].

    origin   int32[n]  which Part
    channel  int32[n]  number of the channel in that log
    time     int64[n]  ns, shifted
    offset   int64[n]  where the payload begins in its chunk of that log
    more     int64[n]  each, what the logs tell beside messages, by name
    """

    origin: NDArray[np.int32]
    channel: NDArray[np.int32]
    time: I64
    data: Buffer
    start: I64
    size: I64
    offset: I64
    more: Mapping[str, I64]


@dataclass(frozen=True, slots=True)
class Pick:
    """Messages of several parts: a Selection, and which part each is of."""

    origin: NDArray[np.int32]
    found: Selection

    def rows(self, which: slice | I64 | NDArray[np.bool_]) -> Pick:
        parts = (getattr(self.found, name)[which] for name, _ in Selection.KINDS)
        return Pick(self.origin[which], Selection(*parts))

    @classmethod
    def of(cls, number: int, found: Selection, shift: int) -> Pick:
        if shift:
            found = Selection(found.time + shift, found.channel, found.chunk, found.offset, found.size)
        return cls(np.full(len(found), number, np.int32), found)

    @classmethod
    def all(cls, picks: Sequence[Pick]) -> Pick:
        columns = (np.concatenate([getattr(p.found, name) for p in picks]) for name, _ in Selection.KINDS)
        return cls(np.concatenate([p.origin for p in picks]), Selection(*columns))


def in_file_order(part: Part) -> Iterator[Batch]:
    """The messages of *part* as they lie in the file."""
    for piece in by_rows(part.log.index, part.rows):
        yield from _batches([part], Pick.of(0, piece, part.shift))


def in_time_order(parts: Sequence[Part]) -> Iterator[Batch]:
    """The messages of all *parts* by time; those of one time by part, then as they lie in the file."""
    for pick in merged(parts):
        made = pick.found.chunk == MADE
        if made.any():
            # What the reader made of other records has the time of the message before it.
            pick = pick.rows(np.lexsort((made, pick.found.time)))
        elif len(parts) > 1:
            pick = pick.rows(np.argsort(pick.found.time, kind="stable"))
        yield from _batches(parts, pick)


def merged(parts: Sequence[Part], reverse: bool = False) -> Iterator[Pick]:
    """Picks of which each holds all messages up to some time that are not in one before; *reverse*: backwards.

    Those of one time are in the order of the parts, with others between them.
    """
    sign = -1 if reverse else 1
    numbers = reversed(range(len(parts))) if reverse else range(len(parts))
    streams = {n: _picks(n, parts[n], reverse) for n in numbers}
    heads = {n: pick for n, stream in streams.items() if (pick := next(stream, None)) is not None}
    while heads:
        # The pieces of a log do not overlap in time: what comes next in it is later than its head.
        until = min(sign * int(pick.found.time[-1]) for pick in heads.values())
        ready = []
        for n, pick in list(heads.items()):
            cut = int((sign * pick.found.time).searchsorted(until, side="right"))
            ready.append(pick.rows(slice(0, cut)))
            rest: Pick | None = pick.rows(slice(cut, None))
            if cut == len(pick.origin):
                rest = next(streams[n], None)
            if rest is None:
                del heads[n]
            else:
                heads[n] = rest
        yield Pick.all(ready)


def _picks(number: int, part: Part, reverse: bool) -> Iterator[Pick]:
    for found in part.log.index.pieces(part.rows, part.start, part.end, reverse=reverse):
        if len(found):
            yield Pick.of(number, found, part.shift)


def _batches(parts: Sequence[Part], pick: Pick) -> Iterator[Batch]:
    """The payloads of *pick*, in pieces of about BYTES; each lies in one buffer."""
    size = pick.found.size
    piece = (np.cumsum(size) - size) // BYTES
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(size)]
    for lo, hi in itertools.pairwise(cuts):
        if hi > lo:
            yield from _buffered(parts, pick.rows(slice(lo, hi)))


def _buffered(parts: Sequence[Part], pick: Pick) -> Iterator[Batch]:
    place = pick.origin.astype(np.int64) << 32 | pick.found.chunk.astype(np.uint32)
    turns = np.flatnonzero(np.diff(place)) + 1
    if len(turns) * STRETCH <= len(place):
        for lo, hi in zip([0, *turns.tolist()], [*turns.tolist(), len(place)], strict=True):
            yield _direct(parts, pick.rows(slice(lo, hi)))
    else:
        yield _gathered(parts, pick, place)


def _direct(parts: Sequence[Part], pick: Pick) -> Batch:
    part, found = parts[int(pick.origin[0])], pick.found
    data = part.log.index.chunks[int(found.chunk[0])]
    more = _beside(part, found, data)
    return Batch(pick.origin, found.channel, found.time, data, found.offset, found.size, found.offset, more)


def _beside(part: Part, found: Selection, data: Buffer) -> dict[str, I64]:
    """What the log of *part* tells beside these messages; all channels of a log tell the same, or nothing."""
    words = part.log.index.tracks[int(found.channel[0])].more if len(found) else {}
    more = {name: beside(data, found.offset, word) for name, word in words.items()}
    if part.shift and "publish_time" in more:
        more["publish_time"] += part.shift
    return more


def _gathered(parts: Sequence[Part], pick: Pick, place: I64) -> Batch:
    """The payloads of several buffers, each buffer's behind those of the one before."""
    start, at, out = np.empty(len(place), np.int64), 0, []
    more: dict[str, I64] = {}
    for one in np.unique(place).tolist():
        mine = np.flatnonzero(place == one)
        some = _direct(parts, pick.rows(mine))
        out.append(joined(some.data, some.start, some.size))
        start[mine] = at + np.cumsum(some.size) - some.size
        at += len(out[-1])
        for name, values in some.more.items():
            default = pick.found.time if name == "publish_time" else np.zeros_like(start)
            more.setdefault(name, default.copy())[mine] = values
    found = pick.found
    data = np.concatenate(out)
    return Batch(pick.origin, found.channel, found.time, data, start, found.size, found.offset, more)
