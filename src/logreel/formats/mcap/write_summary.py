"""Summary section of an MCAP file that is being written, and attachment records."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from logreel.formats.mcap import records
from logreel.formats.mcap.records import MAGIC, numbers_bytes, record_bytes, record_head, string_bytes

if TYPE_CHECKING:
    from logreel.formats.mcap.chunk_compressor import CompressedChunk


def attachment_record(name: str, data: bytes, media_type: str, time: int, created: int) -> bytes:
    """Return an attachment record; *time* (log time) and *created* are in ns."""
    content = struct.pack("<QQ", time, created) + string_bytes(name) + string_bytes(media_type)
    content += struct.pack("<Q", len(data)) + data
    return record_bytes(records.ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


class Summary:
    """Collects the records of the summary section.

    end  time of the latest message in ns
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
        self._counts: dict[int, int] = {}
        self._records: dict[int, list[bytes]] = {kind: [] for kind in self.KINDS}

    def repeat(self, kind: int, content: bytes) -> bytes:
        """Return a record, which is added to the summary, too."""
        self._records[kind].append(record_bytes(kind, content))
        return self._records[kind][-1]

    def add_chunk(self, pos: int, packed: CompressedChunk, compression: str) -> None:
        """Add a chunk that is written at *pos*."""
        start, end = packed.times
        self._start = start if self._start is None else min(self._start, start)
        self.end = max(self.end, end)
        for number, count in zip(packed.ids.tolist(), packed.counts.tolist(), strict=True):
            self._counts[number] = self._counts.get(number, 0) + count
        length = len(packed.head) + len(packed.stored)
        content = struct.pack("<QQQQ", start, end, pos, length)
        content += string_bytes(numbers_bytes(packed.ids, packed.places + pos + length))
        content += struct.pack("<Q", len(packed.index)) + string_bytes(compression)
        content += struct.pack("<QQ", len(packed.stored), packed.size)
        self.repeat(records.CHUNK_INDEX, content)

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
        content = struct.pack("<QHIIII", sum(self._counts.values()), *(len(self._records[k]) for k in kinds))
        content += struct.pack("<QQ", self._start or 0, self.end)
        return content + string_bytes(numbers_bytes(list(self._counts), list(self._counts.values())))
