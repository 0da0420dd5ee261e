"""A log's messages with what they mean between them, by time and a piece at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.model.channel import Channel
from logreel.model.index import I64
from logreel.model.payloads import Payloads, chained
from logreel.ops.parts import Part
from logreel.ops.streams import Batch, in_time_order
from logreel.outputs.foxglove.encoders import Encoded, Encoder

#: Payload bytes of a log translated at once, about.
WINDOW = 16 << 20
#: So many samples of each window tell where it ends.
_SAMPLES = 16
#: How much larger a packed log is taken to be when it is unpacked.
_PACKED = 4


@dataclass(slots=True)
class Mixture:
    """What ``ops.translate`` writes: channels of other schemas in place of, and besides, those of a log.

    instead  by the number of a channel, what makes the messages in place of its own
    added    what makes further channels
    told     sentences about what could not be translated
    """

    instead: Mapping[int, Encoder]
    added: list[Encoder]
    told: list[str]

    def replaced(self, channel: Channel) -> Encoder | None:
        """What makes the messages in place of those of a channel; None where these stay."""
        return self.instead.get(channel.number)

    def batches(self, part: Part) -> Iterator[Batch]:
        """All messages by time."""
        encoders = [(n, one) for n, one in self.instead.items() if n in part.rows]
        encoders += list(enumerate(self.added, len(part.log.channels)))
        kept = {n: rows for n, rows in part.rows.items() if n not in self.instead}
        for start, end in itertools.pairwise(_edges(part)):
            rows = {n: part.log.index.rows_between(n, start, end) for n in kept}
            copied = list(in_time_order([replace(part, rows=rows, start=start, end=end)]))
            made = [(n, self._encoded(one, start, end)) for n, one in encoders]
            made = [(n, some) for n, some in made if len(some)]
            if made:
                yield _merged(copied, made)
            else:
                yield from copied

    def _encoded(self, encoder: Encoder, start: int, end: int | None) -> Encoded:
        try:
            return encoder.encode(start, end)
        except DefinitionError as error:
            text = f"channel {encoder.topic!r} was left out: {error.text}"
            if text not in self.told:
                self.told.append(text)
            none = np.zeros(0, np.int64)
            return Encoded(none, np.zeros(0, np.uint8), np.zeros(1, np.int64))


def _edges(part: Part) -> list[Any]:
    """Times between which lie about WINDOW bytes of payload, from that of the first message to the end of *part*."""
    index, samples, weights = part.log.index, list[I64](), list[NDArray[np.float64]]()
    every = max(1, sum(len(ch) for ch in part.channels))
    for ch in part.channels:
        times = index.times(ch.number)[part.rows[ch.number]]
        if not len(times):
            continue
        size = ch.bytes / len(ch) if index.sizes_are_cheap else _PACKED * part.log.size / every
        step = max(1, int(WINDOW / _SAMPLES / max(1.0, size)))
        some = times[::step]
        samples += [some, times.min(keepdims=True)]
        weights += [np.full(len(some), size * step), np.zeros(1)]
    if not samples:
        return []
    time, weight = np.concatenate(samples), np.concatenate(weights)
    order = np.argsort(time, kind="stable")
    number = np.cumsum(weight[order]) // WINDOW
    cuts = time[order][1:][np.diff(number) > 0]
    return [*np.unique(np.append(cuts, time.min())).tolist(), part.end]


def _merged(copied: list[Batch], made: list[tuple[int, Encoded]]) -> Batch:
    """Messages of both kinds by time; of those of one time the copied ones come first."""
    payloads = [b.payloads for b in copied]
    payloads += [Payloads(some.data, some.start[:-1], np.diff(some.start)) for _, some in made]
    channel = np.concatenate(
        [b.channel for b in copied] + [np.full(len(some), n, np.int32) for n, some in made]
    )
    time = np.concatenate([b.time for b in copied] + [some.time for _, some in made])
    order = np.argsort(time, kind="stable")
    channels = np.arange(int(channel.max(initial=-1)) + 1, dtype=np.int32)
    return Batch(
        channel[order],
        np.zeros_like(channels),
        channels,
        time[order],
        chained(payloads).rows(order),
        np.zeros_like(time),
        _beside(copied, time, order),
    )


def _beside(copied: list[Batch], time: I64, order: I64) -> dict[str, I64]:
    """What lies beside the copied messages; the others are published at their time, and have no number."""
    found = {}
    for name in {name for b in copied for name in b.more}:
        values = time.copy() if name == "publish_time" else np.zeros_like(time)
        at = 0
        for b in copied:
            if name in b.more:
                values[at : at + len(b.time)] = b.more[name]
            at += len(b.time)
        found[name] = values[order]
    return found
