"""Records as bytes, and the summary of an MCAP file in the making."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from logreel.formats.mcap import records
from logreel.formats.mcap.records import MAGIC, numbers_bytes, record_bytes, record_head, string_bytes

if TYPE_CHECKING:
    from logreel.formats.mcap.chunk_compressor import CompressedChunk


def attachment_record(name: str, data: bytes, media_type: str, time: int, created: int) -> bytes:
    """A whole attachment."""
    content = struct.pack("<QQ", time, created) + string_bytes(name) + string_bytes(media_type)
    content += struct.pack("<Q", len(data)) + data
    return record_bytes(records.ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


class Summary:
    """Collects what the summary repeats and indexes.

    end  ns of the latest message
    """

    #: The order of the groups.
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
        """A definition as a record, which the summary has, too."""
        self._records[kind].append(record_bytes(kind, content))
        return self._records[kind][-1]

    def chunk(self, pos: int, packed: CompressedChunk, compression: str) -> None:
        """A chunk that stands at *pos*."""
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

    def attachment(
        self, pos: int, length: int, times: tuple[int, int], size: int, name: str, media_type: str
    ) -> None:
        """An attachment that was written."""
        content = (
            struct.pack("<QQQQQ", pos, length, *times, size) + string_bytes(name) + string_bytes(media_type)
        )
        self.repeat(records.ATTACHMENT_INDEX, content)

    def metadata(self, pos: int, length: int, name: str) -> None:
        """A metadata record that was written."""
        self.repeat(records.METADATA_INDEX, struct.pack("<QQ", pos, length) + string_bytes(name))

    def ending(self, start: int) -> bytes:
        """The summary, which begins at *start*, and the end of the file."""
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
