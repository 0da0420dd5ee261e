"""Encoders: translate the messages of a channel in any interval to another schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.schema import Schema
from logreel.schemas.protobuf.columns import encode
from logreel.schemas.protobuf.describe import Message, descriptor_set
from logreel.schemas.protobuf.fixed_encoder import FixedEncoder

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Encoding of schemas and messages.
ENCODING = "protobuf"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Translated messages; the payload at time[i] is data[start[i]:start[i + 1]].

    time   int64[n]      ns
    data   uint8[b]
    start  int64[n + 1]
    """

    time: I64
    data: NDArray[np.uint8]
    start: I64

    def __len__(self) -> int:
        return len(self.time)


#: ns; larger stamps are Unix time, smaller ones count from a start. This is in 1973.
SINCE_1970 = 10**8 * 10**9


def stamped(ch: Channel, time: I64, stamp: I64, shift: int) -> I64:
    """Return int64[n] ns for the field ``timestamp``: time of measurement if known, else time of logging.

    time   int64[n]  times of the messages, by the clock of the log
    stamp  int64[n]  stamps in the messages; 0 if they have none
    shift  ns to add to times of the clock of the log; stamps of another clock are not changed
    """
    ours = (stamp >= SINCE_1970) == (ch.log.epoch == "unix")
    return np.where(stamp == 0, time + shift, np.where(ours, stamp + shift, stamp))


#: Times (int64[n] ns, by the clock of the log) and columns of messages.
Rows = tuple[I64, Mapping[str, Any]]
#: Function that returns the Rows of a channel with start <= time < end (ns).
Fill = Callable[["Channel", int | None, int | None], Rows]


@dataclass(frozen=True, slots=True)
class Encoder:
    """Translates the messages of *source* to a channel with another schema.

    topic     topic of the new channel
    message   message type of the new channel
    fill      function that returns times and columns
    metadata  metadata of the new channel
    straight  writer of the same messages directly from payloads of fixed size; None: only through columns
    """

    source: Channel
    topic: str
    message: Message
    fill: Fill
    metadata: Mapping[str, Any]
    straight: FixedEncoder | None = None

    @property
    def schema(self) -> Schema:
        """The schema of the new channel, with a FileDescriptorSet as definition."""
        return Schema.of(self.message.name, ENCODING, descriptor_set(self.message))

    def encode(self, start: int | None = None, end: int | None = None) -> Encoded:
        """Return the translated messages with start <= time < end (ns), in the order of the source."""
        time, values = self.fill(self.source, start, end)
        data, place = encode(self.message, values, len(time))
        return Encoded(np.ascontiguousarray(time, np.int64), data, place)
