"""Messages of one or several logs as they are to be written: payloads in bounded pieces, none of them decoded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.model.chunks import Buffer
from logreel.model.heads import put_at
from logreel.model.index import I64, Aligned, beside
from logreel.model.merge import Merged, Queue, merged
from logreel.ops.parts import Part

#: Payload bytes written at once, about.
BYTES = 8 << 20
#: Messages of several buffers are gathered into one where fewer bytes than these follow each other in one, on average.
STRETCH = 1 << 18


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
class _Pick:
    """Messages in order: int32[n] each, the part that each is of and its channel there, and where they lie."""

    origin: NDArray[np.int32]
    channel: NDArray[np.int32]
    found: Merged

    def rows(self, which: slice | I64) -> _Pick:
        return _Pick(self.origin[which], self.channel[which], self.found.rows(which))


def in_file_order(part: Part) -> Iterator[Batch]:
    """The messages of *part* as they lie in the file; what the reader made of other records comes first."""
    return _ordered([part], False)


def in_time_order(parts: Sequence[Part]) -> Iterator[Batch]:
    """The messages of all *parts* by time; those of one time by part, then as they lie in the file.

    What the reader made of other records has the time of the message before it, and comes behind it.
    """
    return _ordered(parts, True)


def _ordered(parts: Sequence[Part], by_time: bool) -> Iterator[Batch]:
    queues, origin = list[Queue](), list[int]()
    for p, part in enumerate(parts):
        for number in sorted(part.rows):
            made = part.log.index.tracks[number].made is not None
            rank = (p + made * len(parts)) if by_time else -made
            queues.append(Queue(part.log.index, number, part.rows[number], part.shift, rank))
            origin.append(p)
    origins = np.array(origin, np.int32)
    channels = np.array([queue.channel for queue in queues], np.int32)
    for piece in merged(queues, by_time):
        yield from _batches(parts, _Pick(origins[piece.queue], channels[piece.queue], piece))


def _batches(parts: Sequence[Part], pick: _Pick) -> Iterator[Batch]:
    """The payloads of *pick*, in pieces of about BYTES; each lies in one buffer."""
    size = pick.found.size
    piece = (np.cumsum(size) - size) // BYTES
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(size)]
    for lo, hi in itertools.pairwise(cuts):
        if hi > lo:
            yield from _buffered(parts, pick.rows(slice(lo, hi)))


def _buffered(parts: Sequence[Part], pick: _Pick) -> Iterator[Batch]:
    place = pick.origin.astype(np.int64) << 32 | pick.found.chunk.astype(np.uint32)
    turns = np.flatnonzero(np.diff(place)) + 1
    if len(turns) * STRETCH <= int(pick.found.size.sum()):
        for lo, hi in itertools.pairwise([0, *turns.tolist(), len(place)]):
            yield _direct(parts, pick.rows(slice(lo, hi)))
    else:
        yield _gathered(parts, pick, place)


def _direct(parts: Sequence[Part], pick: _Pick) -> Batch:
    part, found = parts[int(pick.origin[0])], pick.found
    data = part.log.index.chunks[int(found.chunk[0])]
    more = _beside(part, pick, data)
    return Batch(pick.origin, pick.channel, found.time, data, found.offset, found.size, found.offset, more)


def _beside(part: Part, pick: _Pick, data: Buffer) -> dict[str, I64]:
    """What the log of *part* tells beside these messages; all channels of a log tell the same, or nothing."""
    more = dict[str, I64]()
    for name, rule in part.log.index.tracks[int(pick.channel[0])].more.items():
        if isinstance(rule, Aligned):
            more[name] = rule.values[pick.found.at].astype(np.int64)
        else:
            more[name] = beside(data, pick.found.offset, rule)
    if part.shift and "publish_time" in more:
        more["publish_time"] += part.shift
    return more


def _gathered(parts: Sequence[Part], pick: _Pick, place: I64) -> Batch:
    """The payloads of several buffers in one, in order; one buffer after the other is read."""
    found = pick.found
    ends = np.cumsum(found.size)
    start, data = ends - found.size, np.empty(int(ends[-1]), np.uint8)
    more: dict[str, I64] = {}
    heads = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1])
    for one in np.unique(place[heads]).tolist():
        here = place == one
        mine = np.flatnonzero(here)
        part = parts[int(pick.origin[mine[0]])]
        if 2 * len(mine) > len(place) and not part.log.index.tracks[int(pick.channel[mine[0]])].more:
            # To copy nothing for the others costs less than to pick those that are here.
            buffer = part.log.index.chunks[int(found.chunk[mine[0]])]
            put_at(data, start, buffer, np.where(here, found.offset, 0), np.where(here, found.size, 0))
            continue
        some = _direct(parts, pick.rows(mine))
        put_at(data, start[mine], some.data, some.start, some.size)
        for name, values in some.more.items():
            default = found.time if name == "publish_time" else np.zeros_like(start)
            more.setdefault(name, default.copy())[mine] = values
    return Batch(pick.origin, pick.channel, found.time, data, start, found.size, found.offset, more)
