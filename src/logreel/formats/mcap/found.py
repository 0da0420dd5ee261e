"""What reading an MCAP file finds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.mcap import records
from logreel.formats.mcap.records import Attached, Channel, Chunk, Record, Statistics, read_schema
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.log.schema import Schema


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages found by reading: channel ids, times in ns, where payloads begin, sizes."""

    key: I64
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]


@dataclass(slots=True)
class ChunkMessages:
    """The messages of a chunk, or of a stretch of the file.

    chunk    its number
    pos      where it begins in the file, to report problems at
    base     what entries count from in its bytes
    end      where these end
    indexes  int64[k, 3]  channel id, messages and place of each index record, where the messages were not read
    found    the messages, where they were
    """

    chunk: int
    pos: int
    base: int
    end: int
    indexes: I64 = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    found: Messages | None = None

    def counts(self) -> I64:
        """int64[k, 2]: channel ids and how many messages each has."""
        if self.found is None:
            return self.indexes[:, :2]
        return np.column_stack(np.unique(self.found.key, return_counts=True))


def all_found(parts: list[ChunkMessages]) -> Messages:
    """The messages of some parts that were read."""
    empty = np.zeros(0, np.int64)
    found = [part.found for part in parts if part.found is not None]
    key, time, entry, size = (
        np.concatenate([empty, *(getattr(one, name) for one in found)])
        for name in ("key", "time", "entry", "size")
    )
    return Messages(key, time, entry.astype(np.uint32), size.astype(np.uint32))


@dataclass(slots=True)
class FoundFile:
    """Everything in a file; parts and chunks in the order of the file.

    by_summary  True if the summary told where chunks are
    data_end    where the data section ends, and its checksum; None where the record is missing
    every       all chunks, to be verified
    metadata_places                       where metadata records begin
    indexed_attachments, indexed_metadata  where the summary says that they begin
    """

    profile: str = ""
    library: str = ""
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    parts: list[ChunkMessages] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    every: list[Chunk] = field(default_factory=list)
    attachments: list[Attached] = field(default_factory=list)
    metadata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    metadata_places: list[int] = field(default_factory=list)
    indexed_attachments: list[int] = field(default_factory=list)
    indexed_metadata: list[int] = field(default_factory=list)
    statistics: Statistics | None = None
    problems: list[Problem] = field(default_factory=list)
    by_summary: bool = False
    data_end: tuple[int, int] | None = None

    def note(self, code: str, pos: int, size: int, lost: bool, text: str) -> None:
        """Record a Problem."""
        self.problems.append(Problem(code, pos, size, lost, text))

    def take(self, source: Source, record: Record, where: int | None = None) -> None:
        """Take in a record that is no message and no chunk; raises BadRecord where its content does not fit.

        where  file position of the chunk that *source* is the content of
        """
        kind = record.kind
        if kind == records.HEADER:
            f = record.fields(source)
            if not self.library:
                self.profile, self.library = f.text(), f.text()
        elif kind == records.SCHEMA:
            number, schema = read_schema(record.fields(source))
            if self.schemas.setdefault(number, schema) != schema:
                self._twice(f"schema {number}", record, where)
        elif kind == records.CHANNEL:
            channel = Channel.read(record.fields(source))
            if self.channels.setdefault(channel.id, channel) != channel:
                self._twice(f"channel {channel.id}", record, where)
        elif kind == records.ATTACHMENT:
            self.attachments.append(Attached.read(source, record))
        elif kind == records.METADATA:
            f = record.fields(source)
            self.metadata.append((f.text(), f.map()))
            self.metadata_places.append(record.pos)
        elif kind == records.ATTACHMENT_INDEX:
            self.indexed_attachments.append(record.fields(source).number(8))
        elif kind == records.METADATA_INDEX:
            self.indexed_metadata.append(record.fields(source).number(8))
        elif kind == records.STATISTICS:
            self.statistics = Statistics.read(record.fields(source))
        elif kind == records.DATA_END:
            self.data_end = record.pos, record.fields(source).number(4)
        elif kind > records.DATA_END:
            whose = "an application's own" if kind >= records.PRIVATE else "an unknown"
            text = f"{whose} record of kind {kind} was passed over"
            at, size = (record.pos, records.HEAD + record.size) if where is None else (where, 0)
            self.note("unknown", at, size, kind < records.PRIVATE, text)

    def _twice(self, what: str, record: Record, where: int | None) -> None:
        self.note(
            "redefined", record.pos if where is None else where, 0, False, f"{what} is defined in two ways"
        )

    def add(self, part: ChunkMessages) -> None:
        """Add messages, of which there may be none."""
        if part.found is None or len(part.found.key):
            self.parts.append(part)
