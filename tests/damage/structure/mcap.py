"""Structure of MCAP files."""

from __future__ import annotations

from collections.abc import Callable

from damage.structure.model import Structure, u32, u64

_KINDS = (
    "header",
    "footer",
    "schema",
    "channel",
    "message",
    "chunk",
    "message-index",
    "chunk-index",
    "attachment",
    "attachment-index",
    "statistics",
    "metadata",
    "metadata-index",
    "summary-offset",
    "data-end",
)


def mcap(data: bytes) -> Structure:
    """Return the structure of a sound file; that of chunks only if they are not compressed."""
    out = Structure(len(data))
    _walk(data, 8, len(data) - 8, out, "")
    out.add("end magic", len(data) - 8, 8, "raw")
    return out


class _Cursor:
    """Names the fields of one record, one after another."""

    def __init__(self, data: bytes, at: int, kind: str, out: Structure) -> None:
        self.data, self.at, self.kind, self.out = data, at, kind, out

    def numbers(self, width: int, *names: str) -> None:
        for name in names:
            self.out.add(f"{self.kind} {name}", self.at, width)
            self.at += width

    def text(self, *names: str) -> None:
        for name in names:
            size = u32(self.data, self.at)
            self.out.add(f"{self.kind} {name} length", self.at, 4)
            if size:
                self.out.add(f"{self.kind} {name}", self.at + 4, size, "raw")
            self.at += 4 + size

    def table(self, name: str, key: int, value: int, keys: str, values: str) -> None:
        size = u32(self.data, self.at)
        self.out.add(f"{self.kind} {name} length", self.at, 4)
        end = self.at + 4 + size
        self.at += 4
        while self.at < end:
            self.numbers(key, keys)
            self.numbers(value, values)


def _walk(data: bytes, at: int, stop: int, out: Structure, where: str) -> None:
    while at < stop:
        begin, kind, size = at, data[at], u64(data, at + 1)
        name = where + (_KINDS[kind - 1] if 0 < kind <= len(_KINDS) else "private")
        out.add(f"{name} opcode", at, 1)
        out.add(f"{name} length", at + 1, 8)
        at += 9
        _FIELDS.get(kind, lambda cursor: None)(_Cursor(data, at, name, out))
        at += size
        out.records.append((begin, at, name))


def _schema(c: _Cursor) -> None:
    c.numbers(2, "id")
    c.text("name", "encoding", "data")


def _channel(c: _Cursor) -> None:
    c.numbers(2, "id", "schema")
    c.text("topic", "encoding", "metadata")


def _message(c: _Cursor) -> None:
    c.numbers(2, "channel")
    c.numbers(4, "sequence")
    c.numbers(8, "log time", "publish time")


def _chunk(c: _Cursor) -> None:
    c.numbers(8, "start", "end", "uncompressed size")
    c.numbers(4, "crc")
    plain = not u32(c.data, c.at)
    c.text("compression")
    c.numbers(8, "records length")
    if plain:
        _walk(c.data, c.at, c.at + u64(c.data, c.at - 8), c.out, "inner ")


def _message_index(c: _Cursor) -> None:
    c.numbers(2, "channel")
    c.table("entries", 8, 8, "entry time", "entry offset")


def _chunk_index(c: _Cursor) -> None:
    c.numbers(8, "start", "end", "chunk offset", "chunk length")
    c.table("index offsets", 2, 8, "index channel", "index offset")
    c.numbers(8, "index length")
    c.text("compression")
    c.numbers(8, "compressed size", "uncompressed size")


def _attachment(c: _Cursor) -> None:
    c.numbers(8, "log time", "create time")
    c.text("name", "media type")
    c.numbers(8, "data length")
    c.at += u64(c.data, c.at - 8)
    c.numbers(4, "crc")


def _attachment_index(c: _Cursor) -> None:
    c.numbers(8, "offset", "length", "log time", "create time", "data size")
    c.text("name", "media type")


def _statistics(c: _Cursor) -> None:
    c.numbers(8, "messages")
    c.numbers(2, "schemas")
    c.numbers(4, "channels", "attachments", "metadata", "chunks")
    c.numbers(8, "start", "end")
    c.table("channel counts", 2, 8, "count channel", "count")


def _metadata(c: _Cursor) -> None:
    c.text("name", "map")


def _metadata_index(c: _Cursor) -> None:
    c.numbers(8, "offset", "length")
    c.text("name")


def _summary_offset(c: _Cursor) -> None:
    c.numbers(1, "group")
    c.numbers(8, "start", "length")


def _footer(c: _Cursor) -> None:
    c.numbers(8, "summary start", "summary offset start")
    c.numbers(4, "crc")


_FIELDS: dict[int, Callable[[_Cursor], None]] = {
    1: lambda c: c.text("profile", "library"),
    2: _footer,
    3: _schema,
    4: _channel,
    5: _message,
    6: _chunk,
    7: _message_index,
    8: _chunk_index,
    9: _attachment,
    10: _attachment_index,
    11: _statistics,
    12: _metadata,
    13: _metadata_index,
    14: _summary_offset,
    15: lambda c: c.numbers(4, "crc"),
}
