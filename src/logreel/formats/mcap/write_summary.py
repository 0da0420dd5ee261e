"""Records as bytes, and the summary of an MCAP file in the making."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping

from logreel.formats.mcap import records
from logreel.formats.mcap.records import MAGIC


def begun(kind: int, size: int) -> bytes:
    """Kind and length of a record."""
    return struct.pack("<BQ", kind, size)


def record(kind: int, content: bytes) -> bytes:
    """A whole record."""
    return begun(kind, len(content)) + content


def string(text: str | bytes) -> bytes:
    """Text or bytes behind their number."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return struct.pack("<I", len(raw)) + raw


def pairs(found: Mapping[str, str]) -> bytes:
    """A map of text by text."""
    return string(b"".join(string(name) + string(value) for name, value in found.items()))


def attachment_record(name: str, data: bytes, media_type: str, time: int, created: int) -> bytes:
    """A whole attachment."""
    content = struct.pack("<QQ", time, created) + string(name) + string(media_type)
    content += struct.pack("<Q", len(data)) + data
    return record(records.ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


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
        self._records[kind].append(record(kind, content))
        return self._records[kind][-1]

    def count(self, channel: int, messages: int) -> None:
        """Count messages of a channel."""
        self._counts[channel] = self._counts.get(channel, 0) + messages

    def chunk(
        self,
        times: tuple[int, int],
        pos: int,
        length: int,
        offsets: Iterable[tuple[int, int]],
        end: int,
        compression: str,
        sizes: tuple[int, int],
    ) -> None:
        """A chunk that was written; its message index ends at *end*."""
        self._start = times[0] if self._start is None else min(self._start, times[0])
        self.end = max(self.end, times[1])
        content = struct.pack("<QQQQ", *times, pos, length)
        content += string(b"".join(struct.pack("<HQ", *pair) for pair in offsets))
        content += struct.pack("<Q", end - pos - length) + string(compression) + struct.pack("<QQ", *sizes)
        self.repeat(records.CHUNK_INDEX, content)

    def attachment(
        self, pos: int, length: int, times: tuple[int, int], size: int, name: str, media_type: str
    ) -> None:
        """An attachment that was written."""
        content = struct.pack("<QQQQQ", pos, length, *times, size) + string(name) + string(media_type)
        self.repeat(records.ATTACHMENT_INDEX, content)

    def metadata(self, pos: int, length: int, name: str) -> None:
        """A metadata record that was written."""
        self.repeat(records.METADATA_INDEX, struct.pack("<QQ", pos, length) + string(name))

    def ending(self, start: int) -> bytes:
        """The summary, which begins at *start*, and the end of the file."""
        self._records[records.STATISTICS] = [record(records.STATISTICS, self._statistics())]
        out, offsets = bytearray(), bytearray()
        for kind in self.KINDS:
            group = b"".join(self._records[kind])
            if group:
                offsets += record(
                    records.SUMMARY_OFFSET, struct.pack("<BQQ", kind, start + len(out), len(group))
                )
                out += group
        at = start + len(out)
        out += offsets + begun(records.FOOTER, 20) + struct.pack("<QQ", start, at)
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
        return content + string(b"".join(struct.pack("<HQ", *pair) for pair in self._counts.items()))
