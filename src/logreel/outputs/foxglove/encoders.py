"""Messages of a channel as messages of another schema: payloads and times of any interval, whatever they go to."""

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

#: Encoding of the schemas and of the messages.
ENCODING = "protobuf"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Messages: that at time[i] is data[start[i]:start[i + 1]].

    time   int64[n]      ns
    data   uint8[b]
    start  int64[n + 1]
    """

    time: I64
    data: NDArray[np.uint8]
    start: I64

    def __len__(self) -> int:
        return len(self.time)


#: Times from here on count from 1970, smaller ones from some start: 1973 in ns since 1970.
SINCE_1970 = 10**8 * 10**9


def stamped(ch: Channel, time: I64, stamp: I64, shift: int) -> I64:
    """int64[n] ns for fields ``timestamp``: when the data were taken, else when they were logged.

    time   of the messages, by the clock of the log
    stamp  what they tell; 0 where they do not
    shift  ns to add to times of the clock of the log; a stamp of another clock stays as it is
    """
    ours = (stamp >= SINCE_1970) == (ch.log.epoch == "unix")
    return np.where(stamp == 0, time + shift, np.where(ours, stamp + shift, stamp))


#: Times of messages (int64[n] ns, by the clock of the log) and their columns.
Rows = tuple[I64, Mapping[str, Any]]
#: Gives Rows of a channel with start <= time < end (ns).
Fill = Callable[["Channel", int | None, int | None], Rows]


@dataclass(frozen=True, slots=True)
class Encoder:
    """What makes a channel of another schema of the messages of *source*.

    topic     of the channel that is made
    message   the type of its messages
    fill      gives its columns
    metadata  what the channel tells about itself
    straight  what writes the same messages without columns, where each is made of one of *source* of fixed size
    """

    source: Channel
    topic: str
    message: Message
    fill: Fill
    metadata: Mapping[str, Any]
    straight: FixedEncoder | None = None

    @property
    def schema(self) -> Schema:
        """Name, encoding and definition: a FileDescriptorSet."""
        return Schema.of(self.message.name, ENCODING, descriptor_set(self.message))

    def encode(self, start: int | None = None, end: int | None = None) -> Encoded:
        """The messages made of those with start <= time < end (ns), in the order of the source."""
        time, values = self.fill(self.source, start, end)
        data, place = encode(self.message, values, len(time))
        return Encoded(np.ascontiguousarray(time, np.int64), data, place)
