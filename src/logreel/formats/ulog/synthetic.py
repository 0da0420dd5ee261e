"""Synthetic channels ``~text``, ``~parameter`` and ``~dropout``: other records of a ULog as messages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.formats.ulog.records import HEAD
from logreel.index.rules import SyntheticMessages
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct

_TEXT = Struct((Field("level", Scalar("uint8")), Field("tag", Scalar("uint16")), Field("text", String(2))))
_PARAMETER = Struct(
    (
        Field("name", String(1)),
        Field("kind", String(1)),
        Field("type", String(1)),
        Field("value", Scalar("float64")),
    )
)
_DROPOUT = Struct((Field("duration", Scalar("uint16"), "ms"),))
#: Fields of the messages of each synthetic channel.
STRUCTS = {"~text": _TEXT, "~parameter": _PARAMETER, "~dropout": _DROPOUT}


class SyntheticChannel(NamedTuple):
    """One synthetic channel of one segment.

    topic    with ``@2`` … for later segments
    offsets  int64[n]: positions of the records that its messages are made from
    """

    topic: str
    root: Struct
    offsets: I64

    @property
    def kind(self) -> str:
        """The topic without its segment."""
        return self.topic.split("@")[0]


def synthetic_layout(topic: str) -> Layout | None:
    """Return the Layout of a synthetic channel, also of a later segment (``~text@2``); None for other topics."""
    root = STRUCTS.get(topic.split("@")[0])
    return None if root is None else Layout(root, topic)


def synthetic_channels(others: NonDataRecords) -> list[SyntheticChannel]:
    """Return the synthetic channels that have messages, by kind, then segment."""
    found = []
    parameters = np.array(others.keyed.positions("P", "Q"), np.int64)
    offsets_of = {"~text": others.texts, "~parameter": parameters, "~dropout": others.dropouts}
    for topic, offsets in offsets_of.items():
        segment = np.searchsorted(others.found.segments, offsets, side="right")
        # np.unique would import numpy.ma, which takes longer than the rest of opening a small log.
        for n in sorted(set(segment.tolist())):
            name = topic + (f"@{n}" if n > 1 else "")
            found.append(SyntheticChannel(name, STRUCTS[topic], offsets[segment == n]))
    return found


def synthetic_offsets(others: NonDataRecords) -> dict[int, I64]:
    """Return the positions of the records of each synthetic channel, by channel number."""
    first = len(others.found.channels)
    return {n: channel.offsets for n, channel in enumerate(synthetic_channels(others), first)}


def synthetic_messages(
    others: NonDataRecords, channels: Sequence[SyntheticChannel], times_of: Callable[[I64], I64]
) -> tuple[Buffer, dict[int, SyntheticMessages]]:
    """Build the SYNTHETIC chunk, and the messages of each synthetic channel by channel number.

    times_of  gives int64[n] ns for positions of records that carry no time
    """
    data, found = bytearray(), {}
    keyed_at = {e.offset: e for e in others.keyed.entries}
    for number, channel in enumerate(channels, len(others.found.channels)):
        offsets = channel.offsets
        where, times = np.empty(len(offsets) + 1, np.int64), np.empty(len(offsets), np.int64)
        for i, at in enumerate(offsets.tolist()):
            where[i] = len(data)
            if channel.kind == "~text":
                level, tag, times[i], text = others.string_at(at)
                data += struct.pack("<BHH", level, tag, len(text)) + text
            elif channel.kind == "~parameter":
                data += others.keyed.parameter_bytes(keyed_at[at])
            else:
                data += others.source.read(at + HEAD, 2)
        where[-1] = len(data)
        if channel.kind != "~text":
            times = times_of(offsets)
        found[number] = SyntheticMessages(where[:-1], np.diff(where), times, offsets)
    return np.frombuffer(data, np.uint8), found
