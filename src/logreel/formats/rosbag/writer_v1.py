"""Writing of bags of versions 1.1 and 1.2: every message names its topic, and nothing is compressed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.old_bag import OldHeader
from logreel.formats.rosbag.records import (
    U32,
    U64,
    fields_bytes,
    file_header_bytes,
    record_bytes,
    record_head,
)
from logreel.formats.rosbag.write_channels import Declared
from logreel.formats.rosbag.writer_base import BagWriter
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.chunks import Buffer
from logreel.log.schema import Schema

#: Most bytes of records in a batch.
BATCH_BYTES = 1 << 20
_MAGIC_1_1, _MAGIC_1_2 = b"#ROSRECORD V1.1\n", b"#ROSRECORD V1.2\n"
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("pos", "<u8")])
#: Bytes from the value of nsec to that of sec: 4 of nanoseconds, 8 of the field op, 8 before the value.
SEC_AFTER_NSEC = 20
#: Topics that readers of version 1.1 accept.
_TOPIC = re.compile(r"[!-~]([ -~]{0,254}[!-~])?")


@dataclass(frozen=True, slots=True)
class OldIndex:
    """Header and index of a bag of version 1.2 that is continued.

    definitions  offset of the first definition record of each topic
    records      index record of each topic
    entries      the entries in it
    """

    header: OldHeader
    definitions: Mapping[str, int]
    records: Mapping[str, bytes]
    entries: Mapping[str, NDArray[np.void]]


class _BagV1Writer(BagWriter):
    def continue_channel(self, topic: str, schema: Schema, declared: Declared, fresh: bool) -> None:
        """Add a channel of the old bag; *fresh*: write its definition again before its first new message."""
        self.add_old_channel(topic, schema, declared, self.add(declared), fresh)

    def batch_limit(self) -> int:
        """Return the most bytes of a batch."""
        return BATCH_BYTES

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Append records to the file."""
        self.out.write(made.data)
        self.out.commit()


class BagV11Writer(_BagV1Writer):
    """Writes version 1.1; *continues*: the old bag is in *out* already."""

    renews_checksums = False
    # Larger seconds are read as negative ones, which the first recorders wrote.
    latest = (0xF0000000 + 1) * 10**9 - 1

    def __init__(self, out: Appender, continues: bool = False) -> None:
        super().__init__(out)
        if not continues:
            self.out.write(_MAGIC_1_1)
            self.out.commit()

    def add(self, declared: Declared) -> int:
        """Add a channel, without its definition and its connections, which version 1.1 does not have."""
        if not _TOPIC.fullmatch(declared.topic):
            text = "cannot be the topic of a bag of version 1.1: up to 256 characters of ASCII"
            raise UsageError(f"{declared.topic!r:.80} {text}")
        head = f"{declared.topic}\n{declared.md5}\n{declared.type}\n".encode() + bytes(12)
        self._headers.add(head, size_at=len(head) - 4, time_at=len(head) - 12)
        return 1


class BagV12Writer(_BagV1Writer):
    """Writes version 1.2.

    indexed    with a file header and an index, which is kept in memory until the end
    continues  the old bag is in *out* already, without its index
    old        its header and index; None if it has none
    """

    def __init__(
        self, out: Appender, indexed: bool, continues: bool = False, old: OldIndex | None = None
    ) -> None:
        super().__init__(out)
        self._indexed, self._old = indexed, old
        self._definition: dict[int, int] = {}
        self._entries: list[tuple[NDArray[np.int32], NDArray[np.void]]] = []
        self._nsec_at = GrowingArray(np.int64)
        if old is not None:
            # Until the new index is written, readers must not look for one.
            self.out.patch(len(_MAGIC_1_2), self._header(0))
        elif not continues:
            self.out.write(_MAGIC_1_2 + (self._header(0) if indexed else b""))
            self.out.commit()

    def continue_channel(self, topic: str, schema: Schema, declared: Declared, fresh: bool) -> None:
        """Add a channel of the old bag; *fresh*: write its definition again before its first new message."""
        if self._old is not None and not fresh:
            self._definition[len(self.schemas.channels)] = self._old.definitions[declared.topic]
        super().continue_channel(topic, schema, declared, fresh)

    def add(self, declared: Declared) -> int:
        """Add a channel; its messages have the caller and latching of the first connection if that is latched."""
        header = declared.headers[0]
        more = {name: header[name] for name in ("callerid", "latching") if header.get("latching") == "1"}
        named = {name: value.encode() for name, value in more.items()} | {"md5": declared.md5.encode()}
        nsec_at = 4 + len(fields_bytes(named)) + len(b"....nsec=")
        named |= {"nsec": bytes(4), "sec": bytes(4), **_names(declared)}
        head = record_head(records.OP_MESSAGE, named, 0)
        self._headers.add(head, size_at=len(head) - 4)
        self._nsec_at.append(nsec_at)
        return 1

    def declare(self, number: int) -> None:
        """Write the definition of a channel."""
        declared = self.schemas.channels[number]
        self._definition[number] = self.out.tell()
        named = {"md5": declared.md5.encode(), "def": declared.text.encode(), **_names(declared)}
        self.out.write(record_bytes(records.OP_DEFINITION, named))
        self.out.commit()

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Fill in the times and append records to the file."""
        entries = np.empty(len(time), ENTRY)
        entries["sec"], entries["nsec"] = np.divmod(time, 10**9)
        entries["pos"] = place + self.out.tell()
        nsec_at = place + self._nsec_at.rows[channel]
        for name, at in (("nsec", nsec_at), ("sec", nsec_at + SEC_AFTER_NSEC)):
            made[at[:, None] + np.arange(4)] = entries[name].copy().view(np.uint8).reshape(-1, 4)
        if self._indexed:
            self._entries.append((channel, entries))
        super().write_records(channel, time, place, made, side_columns)

    def finish(self) -> None:
        """Write the index, and its offset into the file header."""
        if not self._indexed:
            return
        at = self.out.tell()
        # The empty array keeps concatenate from failing for a bag without messages.
        channel = np.concatenate([np.zeros(0, np.int32), *(part for part, _ in self._entries)])
        entries = np.concatenate([np.zeros(0, ENTRY), *(part for _, part in self._entries)])
        old = self._old.records if self._old is not None else {}
        for topic in sorted({self.schemas.channels[number].topic for number in self._definition} | set(old)):
            numbers = [n for n in self._definition if self.schemas.channels[n].topic == topic]
            mine = entries[np.isin(channel, numbers)]
            if topic in old and not len(mine):
                self.out.write(old[topic])
                continue
            if self._old is not None and topic in old:
                mine = np.concatenate([self._old.entries[topic], mine])
            # ROS uses the index only if the first entry is the offset of the definition.
            mine["pos"][0] = self._definition[numbers[0]]
            named = {
                "count": U32.pack(len(mine)),
                "ver": U32.pack(0),
                **_names(self.schemas.channels[numbers[0]]),
            }
            self.out.write(record_bytes(records.OP_INDEX, named, mine.tobytes()))
        self.out.commit()
        self.out.patch(len(_MAGIC_1_2), self._header(at))

    def _header(self, index_pos: int) -> bytes:
        if self._old is not None:
            return self._old.header.with_values({b"index_pos": index_pos})
        return file_header_bytes({"index_pos": U64.pack(index_pos)})


def _names(declared: Declared) -> dict[str, bytes]:
    return {"topic": declared.topic.encode(), "type": declared.type.encode()}
