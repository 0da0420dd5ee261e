"""Merging translated messages between those of a log, by time and in batches of bounded size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.io.arrays import I64
from logreel.log.log import Channel
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import Batch, in_time_order
from logreel.outputs.foxglove.encoders import Encoder
from logreel.schemas.protobuf.fixed_encoder import FixedEncoder, FixedEncoders
from logreel.write.payloads import Payloads, chained

#: Approximate payload bytes that are translated through columns at once.
WINDOW = 16 << 20
#: Number of samples per window from which its end is computed.
_SAMPLES = 16
#: Assumed compression ratio of logs whose payload sizes are not known.
_PACKED = 4


@dataclass(slots=True)
class Interleaving:
    """The Translation for ``ops.rewrite.translate``: replaced and additional channels of a log.

    instead  Encoders that replace channels, by channel number
    added    Encoders of additional channels
    skipped  sentences about what could not be translated
    """

    instead: Mapping[int, Encoder]
    added: list[Encoder]
    skipped: list[str]

    def replaced(self, channel: Channel) -> Encoder | None:
        """Return the Encoder that replaces *channel*; None if it is not replaced."""
        return self.instead.get(channel.number)

    def batches(self, part: Part) -> Iterator[Batch]:
        """Yield all messages by time; at equal times, messages translated through columns are last."""
        straight = {n: one.straight for n, one in self.instead.items() if one.straight and n in part.rows}
        encoders = [(n, one) for n, one in self.instead.items() if n in part.rows and n not in straight]
        encoders += list(enumerate(self.added, len(part.log.channels)))
        encoders = [(n, one) for n, one in encoders if len(one.source)]
        passing = [n for n in part.rows if n not in self.instead or n in straight]
        written = _StraightWriter(straight)
        for start, end in itertools.pairwise(_window_edges(part, [one.source for _, one in encoders])):
            made = _merged([self._encoded(n, one, start, end, part.shift) for n, one in encoders])
            rows = {n: part.log.index.rows_between(n, start, end) for n in passing}
            done = 0
            for batch in in_time_order([replace(part, rows=rows, start=start, end=end)]):
                due = int(made.time.searchsorted(batch.time[-1]))
                yield _merged([written.replace_in(batch), made.rows(slice(done, due))])
                done = due
            if done < len(made.time):
                yield made.rows(slice(done, None))

    def _encoded(self, channel: int, encoder: Encoder, start: int, end: int | None, shift: int) -> Batch:
        """Return the messages of *encoder* in an interval, sorted by time, with *shift* added."""
        try:
            found = encoder.encode(start, end)
        except DefinitionError as error:
            text = f"channel {encoder.topic!r} was left out: {error.text}"
            if text not in self.skipped:
                self.skipped.append(text)
            return _NOTHING
        payloads = Payloads(found.data, found.start[:-1], np.diff(found.start))
        made = _batch(np.full(len(found), channel, np.int32), found.time + shift, payloads)
        return made.rows(found.time.argsort(kind="stable"))


class _StraightWriter:
    """Replaces the messages of some channels by messages that are written directly from their payloads."""

    def __init__(self, channels: Mapping[int, FixedEncoder]) -> None:
        self._straights = FixedEncoders(list(channels.values()))
        self._kinds = np.full(max(channels, default=-1) + 2, -1, np.int32)
        self._kinds[list(channels)] = np.arange(len(channels))

    def replace_in(self, batch: Batch) -> Batch:
        """Return *batch* with these messages replaced."""
        kind = self._kinds[np.minimum(batch.channels, len(self._kinds) - 1)].take(batch.queue)
        goes = kind >= 0
        if goes.all():
            return self._encoded(batch, kind)
        if not goes.any():
            return batch
        stay, go = np.flatnonzero(~goes), np.flatnonzero(goes)
        made = self._encoded(batch.rows(go), kind[go])
        return _in_order([batch.rows(stay), made], np.argsort(np.concatenate([stay, go])))

    def _encoded(self, batch: Batch, kind: NDArray[np.int32]) -> Batch:
        payloads = batch.payloads
        data, start = self._straights.encode(kind, payloads.buffers, payloads.which, payloads.start)
        return replace(batch, payloads=Payloads(data, start[:-1], np.diff(start)), more={})


def _window_edges(part: Part, sources: Sequence[Channel]) -> list[Any]:
    """Return times (ns) that split *part* into windows of about WINDOW bytes of *sources*; the last is its end."""
    index, samples, weights = part.log.index, [np.zeros(0, np.int64)], [np.zeros(0)]
    found = [index.times(n)[rows] for n, rows in part.rows.items()]
    first = min((int(times.min()) for times in found if len(times)), default=None)
    if first is None:
        return []
    every = max(1, sum(len(ch) for ch in part.channels))
    for ch in sources:
        size = ch.bytes / max(1, len(ch)) if index.sizes_are_cheap else _PACKED * part.log.size / every
        step = max(1, int(WINDOW / _SAMPLES / max(1.0, size)))
        some = index.times(ch.number)[index.rows_between(ch.number, first, part.end)][::step]
        samples.append(some)
        weights.append(np.full(len(some), size * step))
    time, weight = np.concatenate(samples), np.concatenate(weights)
    order = np.argsort(time, kind="stable")
    number = np.cumsum(weight[order]) // WINDOW
    cuts = time[order][1:][np.diff(number) > 0]
    return [*np.unique(np.append(cuts, first)).tolist(), part.end]


def _batch(
    channel: NDArray[np.int32], time: I64, payloads: Payloads, more: Mapping[str, I64] = MappingProxyType({})
) -> Batch:
    channels = np.arange(int(channel.max(initial=-1)) + 1, dtype=np.int32)
    return Batch(channel, np.zeros_like(channels), channels, time, payloads, np.zeros_like(time), more)


_NONE = np.zeros(0, np.int64)
_NOTHING = _batch(np.zeros(0, np.int32), _NONE, Payloads(np.zeros(0, np.uint8), _NONE, _NONE))


def _merged(batches: Sequence[Batch]) -> Batch:
    """Return the messages of several batches, each sorted by time, as one batch by time; ties in order of *batches*."""
    some = [batch for batch in batches if len(batch.time)]
    if len(some) < 2:
        return some[0] if some else _NOTHING
    return _in_order(some, np.argsort(np.concatenate([batch.time for batch in some]), kind="stable"))


def _in_order(some: Sequence[Batch], order: I64) -> Batch:
    """Return the messages of the concatenated batches in *order*, as one batch."""
    time = np.concatenate([batch.time for batch in some])
    channel = np.concatenate([batch.channel for batch in some])
    payloads = chained([batch.payloads for batch in some])
    return _batch(channel[order], time[order], payloads.rows(order), _side_columns(some, time, order))


def _side_columns(batches: Sequence[Batch], time: I64, order: I64) -> dict[str, I64]:
    """Return the side columns; translated messages get their time as ``publish_time``, and 0 in all other columns."""
    found = {}
    for name in {name for batch in batches for name in batch.more}:
        values = time.copy() if name == "publish_time" else np.zeros_like(time)
        at = 0
        for batch in batches:
            if name in batch.more:
                values[at : at + len(batch.time)] = batch.more[name]
            at += len(batch.time)
        found[name] = values[order]
    return found
