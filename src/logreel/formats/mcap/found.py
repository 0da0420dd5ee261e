"""The content found in an MCAP file: records, messages by chunk, problems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.mcap import records
from logreel.formats.mcap.records import (
    AttachmentRecord,
    ChannelRecord,
    Chunk,
    Record,
    Statistics,
    read_schema,
)
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.log.scan import Schema

#: Key of channel metadata whose value is JSON of all values that are not text, and name of the metadata record that
#: describes the log which the file was converted from.
OWN = "logreel"


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages found by reading, in file order: channel ids, times in ns, offsets of payloads, sizes in bytes."""

    key: I64
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]


@dataclass(slots=True)
class ChunkMessages:
    """The messages of a chunk, or of an interval of the file that is treated as one.

    chunk    its number
    pos      file offset where it begins, for the offsets of problems
    base     offset in the chunk's bytes that entries are relative to
    end      offset where the chunk's bytes end
    indexes  int64[k, 3]  channel id, number of messages, file offset of each index record, if *found* is None
    found    the messages, if they were read
    """

    chunk: int
    pos: int
    base: int
    end: int
    indexes: I64 = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    found: Messages | None = None

    def counts(self) -> I64:
        """Return int64[k, 2]: channel ids and their numbers of messages."""
        if self.found is None:
            return self.indexes[:, :2]
        return np.column_stack(np.unique(self.found.key, return_counts=True))


def read_messages(parts: list[ChunkMessages]) -> Messages:
    """Return the messages of those *parts* that were read, one after another."""
    empty = np.zeros(0, np.int64)
    messages = [part.found for part in parts if part.found is not None]
    key, time, entry, size = (
        np.concatenate([empty, *(getattr(chunk_messages, name) for chunk_messages in messages)])
        for name in ("key", "time", "entry", "size")
    )
    return Messages(key, time, entry.astype(np.uint32), size.astype(np.uint32))


@dataclass(slots=True)
class FoundFile:
    """The content of a file; parts and chunks are in file order.

    source      the file, once it was read
    by_summary  True if the chunks were found by the summary
    chunks      chunks and intervals with messages, which *parts* refer to by number
    every       all chunk records, for verification
    data_end    file offset of the data end record and the checksum in it; None if there is no such record
    metadata_places                        file offsets of the metadata records
    indexed_attachments, indexed_metadata  file offsets according to the summary
    late        offset and name of each definition that a file read from the front has behind the end of its data only
    """

    profile: str = ""
    library: str = ""
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, ChannelRecord] = field(default_factory=dict)
    parts: list[ChunkMessages] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    every: list[Chunk] = field(default_factory=list)
    attachments: list[AttachmentRecord] = field(default_factory=list)
    metadata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    metadata_places: list[int] = field(default_factory=list)
    indexed_attachments: list[int] = field(default_factory=list)
    indexed_metadata: list[int] = field(default_factory=list)
    late: list[tuple[int, str]] = field(default_factory=list)
    statistics: Statistics | None = None
    problems: list[Problem] = field(default_factory=list)
    by_summary: bool = False
    data_end: tuple[int, int] | None = None
    source: Source = field(default_factory=lambda: Source(b"", ""))

    @property
    def origin(self) -> dict[str, str] | None:
        """The record of the log that the file was converted from: the last one, since appending adds another."""
        return next((record for name, record in reversed(self.metadata) if name == OWN), None)

    def note(self, code: str, pos: int, size: int, lost: bool, text: str) -> None:
        """Add a Problem."""
        self.problems.append(Problem(code, pos, size, lost, text))

    def add_record(self, source: Source, record: Record, where: int | None = None) -> None:
        """Add a record that is no message and no chunk; raise BadRecord if its content does not fit.

        where  file offset of the chunk, if *source* is its decompressed content
        """
        opcode = record.kind
        if opcode == records.HEADER:
            f = record.fields(source)
            if not self.library:
                self.profile, self.library = f.text(), f.text()
        elif opcode == records.SCHEMA:
            number, schema = read_schema(record.fields(source))
            if not number:
                # Channels with this number have no schema (specification, "Schema").
                self.note(
                    "definition",
                    record.pos if where is None else where,
                    0,
                    False,
                    "a schema has the number 0: ignored",
                )
                return
            self._note_late(number in self.schemas, f"schema {number}", record, where)
            if self.schemas.setdefault(number, schema) != schema:
                self._note_redefined(f"schema {number}", record, where)
        elif opcode == records.CHANNEL:
            channel = ChannelRecord.read(record.fields(source))
            self._note_late(channel.id in self.channels, f"channel {channel.id}", record, where)
            if self.channels.setdefault(channel.id, channel) != channel:
                self._note_redefined(f"channel {channel.id}", record, where)
        elif opcode == records.ATTACHMENT:
            self.attachments.append(AttachmentRecord.read(source, record))
        elif opcode == records.METADATA:
            f = record.fields(source)
            self.metadata.append((f.text(), f.map()))
            self.metadata_places.append(record.pos)
        elif opcode == records.ATTACHMENT_INDEX:
            self.indexed_attachments.append(record.fields(source).number(8))
        elif opcode == records.METADATA_INDEX:
            self.indexed_metadata.append(record.fields(source).number(8))
        elif opcode == records.STATISTICS:
            self.statistics = Statistics.read(record.fields(source))
        elif opcode == records.DATA_END:
            self.data_end = record.pos, record.fields(source).number(4)
        elif opcode > records.DATA_END:
            whose = "an application's own" if opcode >= records.PRIVATE else "an unknown"
            text = f"{whose} record of kind {opcode} was passed over"
            at, size = (record.pos, records.HEAD + record.size) if where is None else (where, 0)
            self.note("unknown", at, size, opcode < records.PRIVATE, text)

    def _note_late(self, is_known: bool, what: str, record: Record, where: int | None) -> None:
        if self.data_end is not None and where is None and not is_known:
            self.late.append((record.pos, what))

    def _note_redefined(self, what: str, record: Record, where: int | None) -> None:
        self.note(
            "redefined", record.pos if where is None else where, 0, False, f"{what} is defined in two ways"
        )

    def add_messages(self, part: ChunkMessages) -> None:
        """Add *part* unless it was read and has no messages."""
        if part.found is None or len(part.found.key):
            self.parts.append(part)
