"""Summary section of an MCAP file that is being written, and attachment records."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from logreel.formats.mcap import records
from logreel.formats.mcap.records import (
    MAGIC,
    Channel,
    ChunkIndex,
    map_bytes,
    numbers_bytes,
    record_bytes,
    record_head,
    string_bytes,
)
from logreel.io.arrays import I64
from logreel.log.schema import Schema

if TYPE_CHECKING:
    from logreel.formats.mcap.chunk_compressor import CompressedChunk


def attachment_record(name: str, data: bytes, media_type: str, time: int, created: int) -> bytes:
    """Return an attachment record; *time* (log time) and *created* are in ns."""
    content = struct.pack("<QQ", time, created) + string_bytes(name) + string_bytes(media_type)
    content += struct.pack("<Q", len(data)) + data
    return record_bytes(records.ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


class Summary:
    """Collects the records of the summary section.

    end     time of the latest message in ns
    counts  number of messages by channel id
    """

    #: Order of the groups of records.
    KINDS = (
        records.SCHEMA,
        records.CHANNEL,
        records.STATISTICS,
        records.CHUNK_INDEX,
        records.ATTACHMENT_INDEX,
        records.METADATA_INDEX,
    )

    def __init__(self) -> None:
        self.end = 0
        self._start: int | None = None
        self.counts: dict[int, int] = {}
        self._records: dict[int, list[bytes]] = {kind: [] for kind in self.KINDS}

    def add_schema(self, number: int, schema: Schema) -> bytes:
        """Add a schema, and return its record."""
        content = struct.pack("<H", number) + string_bytes(schema.name) + string_bytes(schema.encoding)
        return self.repeat(records.SCHEMA, content + string_bytes(schema.raw))

    def add_channel(self, one: Channel) -> bytes:
        """Add a channel, and return its record."""
        content = struct.pack("<HH", one.id, one.schema) + string_bytes(one.topic)
        return self.repeat(records.CHANNEL, content + string_bytes(one.encoding) + map_bytes(one.metadata))

    def repeat(self, kind: int, content: bytes) -> bytes:
        """Return a record, which is added to the summary, too."""
        self._records[kind].append(record_bytes(kind, content))
        return self._records[kind][-1]

    def add_chunk(self, pos: int, packed: CompressedChunk, compression: str) -> None:
        """Add a chunk that is written at *pos*."""
        self.add_times(*packed.times)
        self.add_counts(dict(zip(packed.ids.tolist(), packed.counts.tolist(), strict=True)))
        length = len(packed.head) + len(packed.stored)
        self.add_chunk_index(
            ChunkIndex(
                *packed.times,
                pos,
                length,
                numbers_bytes(packed.ids, packed.places + pos + length),
                len(packed.index),
                compression,
                len(packed.stored),
                packed.size,
            )
        )

    def add_chunk_index(self, one: ChunkIndex) -> None:
        """Add the record of a chunk; its messages are added by ``add_counts`` and ``add_times``."""
        content = struct.pack("<QQQQ", one.start, one.end, one.pos, one.length) + string_bytes(one.offsets)
        content += struct.pack("<Q", one.index_length) + string_bytes(one.compression)
        self.repeat(records.CHUNK_INDEX, content + struct.pack("<QQ", one.stored, one.size))

    def add_messages(self, ids: I64, time: I64) -> None:
        """Add messages that are written outside of chunks: int64[n] channel ids, times in ns."""
        if len(ids):
            self.add_times(int(time.min()), int(time.max()))
            numbers, counts = np.unique(ids, return_counts=True)
            self.add_counts(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

    def add_times(self, start: int, end: int) -> None:
        """Add the earliest and the latest time of messages, ns."""
        self._start = start if self._start is None else min(self._start, start)
        self.end = max(self.end, end)

    def add_counts(self, counts: Mapping[int, int]) -> None:
        """Add the numbers of messages by channel id."""
        for number, count in counts.items():
            self.counts[number] = self.counts.get(number, 0) + count

    def add_attachment(
        self, pos: int, length: int, times: tuple[int, int], size: int, name: str, media_type: str
    ) -> None:
        """Add an attachment record that was written at *pos*."""
        content = (
            struct.pack("<QQQQQ", pos, length, *times, size) + string_bytes(name) + string_bytes(media_type)
        )
        self.repeat(records.ATTACHMENT_INDEX, content)

    def add_metadata(self, pos: int, length: int, name: str) -> None:
        """Add a metadata record that was written at *pos*."""
        self.repeat(records.METADATA_INDEX, struct.pack("<QQ", pos, length) + string_bytes(name))

    def ending(self, start: int) -> bytes:
        """Return the summary section, which is written at *start*, with footer and magic."""
        self._records[records.STATISTICS] = [record_bytes(records.STATISTICS, self._statistics())]
        out, offsets = bytearray(), bytearray()
        for kind in self.KINDS:
            group = b"".join(self._records[kind])
            if group:
                offsets += record_bytes(
                    records.SUMMARY_OFFSET, struct.pack("<BQQ", kind, start + len(out), len(group))
                )
                out += group
        at = start + len(out)
        out += offsets + record_head(records.FOOTER, 20) + struct.pack("<QQ", start, at)
        out += struct.pack("<I", zlib.crc32(out)) + MAGIC
        return b"" + out

    def _statistics(self) -> bytes:
        kinds = (
            records.SCHEMA,
            records.CHANNEL,
            records.ATTACHMENT_INDEX,
            records.METADATA_INDEX,
            records.CHUNK_INDEX,
        )
        content = struct.pack("<QHIIII", sum(self.counts.values()), *(len(self._records[k]) for k in kinds))
        content += struct.pack("<QQ", self._start or 0, self.end)
        return content + string_bytes(numbers_bytes(list(self.counts), list(self.counts.values())))
