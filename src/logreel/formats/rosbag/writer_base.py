"""Base class of the writers of all versions: channels, connections and record headers of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.formats.rosbag.channels import CONNECTION
from logreel.formats.rosbag.schema_maker import BagSchemaMaker
from logreel.formats.rosbag.write_channels import Declared, declare, has_same_checksum
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.log.schema import Schema
from logreel.write.payloads import Payloads
from logreel.write.record_writer import RecordWriter


class BagWriter(RecordWriter):
    """Writer of channels and messages, the base of the writers of all versions."""

    title = "a bag"
    earliest, latest, largest = 0, (10**9 << 32) - 1, (1 << 31) - 1
    side_column_names = (CONNECTION,)
    joins_publishers = True
    #: Whether checksums of bags of version 1.1 and before are replaced by those of later releases.
    renews_checksums = True

    def __init__(self, out: Appender) -> None:
        self.schemas: BagSchemaMaker = BagSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        #: int64[c, 2]: first line of each channel and number of its lines; a line is a record header of messages,
        #: one for each connection.
        self._lines = GrowingArray(np.int64, 2)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel.

        metadata  like that of channels of bags: ``topic``, ``md5sum`` (computed if not given), ``headers``, or else
                  ``callerids`` and ``latching``
        """
        self._declare(declare(topic, schema, metadata, None, self.renews_checksums))

    def copied_channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel of a bag; invalid topics, types and checksums are kept and noted."""
        self._declare(declare(topic, schema, metadata, self.notes, self.renews_checksums))

    def _declare(self, declared: Declared) -> None:
        self._add_lines(declared, self.add(declared), fresh=True)

    def add_old_channel(
        self, topic: str, schema: Schema, declared: Declared, lines: int, fresh: bool = True
    ) -> None:
        """Add a channel of the bag that is continued, whose record headers were added.

        fresh  declare it before its first new message, too: then the new part can be read without the old one
        """
        self._add_lines(declared, lines, fresh)
        self.old_channels[topic] = schema

    def _add_lines(self, declared: Declared, lines: int, fresh: bool) -> None:
        self.schemas.channels.append(declared)
        self._lines.append((len(self._fresh), lines))
        for _ in range(lines):
            self._fresh.append(fresh)

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether type and definition are the same, compared by their checksum, as in ROS."""
        if super().is_same_schema(old, new):
            return True
        return (new.name, new.encoding) == (old.name, old.encoding) and has_same_checksum(old, new)

    def continues(self, name: str, schema: Schema, metadata: Mapping[str, Any]) -> bool:
        """Return whether the type is the same, and, if *metadata* has its header, the publisher."""
        if not super().continues(name, schema, metadata):
            return False
        old = self.schemas.channels[list(self.old_channels).index(name)]
        return not metadata.get("headers") or declare(name, schema, metadata).headers[0] == old.headers[0]

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; the last side column is the connection in the channel, limited to the last one."""
        first, lines = self._lines.rows[channel].T
        turn = (
            np.zeros(len(channel), np.int64)
            if payloads.side_columns is None
            else payloads.side_columns[:, -1]
        )
        line = (first + np.clip(turn, 0, lines - 1)).astype(np.int32)
        super().messages(line, time, payloads)

    def use_chunk_sizes(self, sizes: Sequence[int]) -> None:
        """Use the chunk size of a source bag with chunks of *sizes* (bytes), unless a size was given; here: ignored."""

    def add(self, declared: Declared) -> int:
        """Add the record headers of a channel's messages; return their number: one, or one for each connection."""
        raise NotImplementedError
