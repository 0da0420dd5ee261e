"""Base class of the writers of all versions: channels, connections and record headers of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.formats.rosbag.channels import CONNECTION
from logreel.formats.rosbag.write_channels import Declared, declare, given_in, written_for
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.payloads import Payloads
from logreel.write.record_writer import RecordWriter


class BagWriter(RecordWriter):
    """What writers of all versions have in common."""

    title, encoding = "a bag", "ros1msg"
    earliest, latest, largest = 0, (10**9 << 32) - 1, (1 << 31) - 1
    keeps = (CONNECTION,)

    def __init__(self, out: Appender) -> None:
        super().__init__(out)
        self._channels: list[Declared] = []
        #: Of each channel: the first of its lines, which have a head each, and how many it has.
        self._lines = np.zeros((0, 2), np.int64)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel.

        metadata  as channels of bags have it: ``topic``, ``md5sum`` (worked out where it is not given), ``headers``
                  or else ``callerids`` and ``latching``
        """
        declared = declare(topic, schema, metadata, self.notes if self.tolerant else None)
        lines = self.add(declared)
        self._channels.append(declared)
        self._lines = np.append(self._lines, [[len(self._fresh), lines]], axis=0)
        self._fresh = np.append(self._fresh, np.ones(lines, bool))

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """A type of package ``logreel``, named after the topic."""
        return written_for(topic, layout)

    def schema_from(self, topic: str, text: str, file: str) -> Schema:
        """The type that a ``.msg`` file defines: ``pkg/Type`` where it lies in ``pkg/msg`` or ``pkg``."""
        return given_in(topic, text, file)

    def joined(self, metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """All connections of the channels, each once."""
        if len(metadata) == 1:
            return metadata[0]
        headers = [header for one in metadata for header in one.get("headers", ())]
        return {**metadata[0], "headers": [h for i, h in enumerate(headers) if h not in headers[:i]]}

    def kept_as(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """The topic without the number of its definition: that is another one where definitions are left out."""
        return str(metadata.get("topic", topic))

    def renumbered(self, metadata: Mapping[str, Any], joined: Mapping[str, Any]) -> I64 | None:
        """Where each connection of a channel is among all of the joined one."""
        own, every = list(metadata.get("headers", ())), list(joined.get("headers", ()))
        return None if own == every[: len(own)] else np.array([every.index(one) for one in own], np.int64)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages with the numbers of the connections that they came by; too large ones mean the last."""
        first, lines = self._lines[channel].T
        turn = (
            np.zeros(len(channel), np.int64)
            if payloads.side_columns is None
            else payloads.side_columns[:, -1]
        )
        line = (first + np.clip(turn, 0, lines - 1)).astype(np.int32)
        super().messages(line, time, payloads)

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's definition."""
        found = self._channels[number].layout
        if found is None:
            raise DefinitionError("the channel has no definition: its messages are bytes")
        return found

    def add(self, declared: Declared) -> int:
        """Make the heads of a channel's messages, and say how many there are: by connection, or one."""
        raise NotImplementedError
