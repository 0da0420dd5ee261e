"""Plain MCAP reader from the specification: records in order, without index and recovery."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import lz4.frame
import zstandard

MAGIC = b"\x89MCAP0\r\n"


@dataclass
class Message:
    """A message; *place*: file offset of its record, None in a compressed chunk."""

    channel: int
    sequence: int
    time: int
    publish: int
    payload: bytes
    place: int | None


@dataclass
class File:
    """Content of a file up to the first invalid record; *whole*: all records are valid."""

    messages: list[Message] = field(default_factory=list)
    topics: dict[int, str] = field(default_factory=dict)
    schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    schema_of: dict[int, int] = field(default_factory=dict)
    metadata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    attachments: list[tuple[str, str, bytes]] = field(default_factory=list)
    whole: bool = False

    def rows(self) -> list[tuple[str, int, int, int, bytes]]:
        """Return topic, time, publish time, sequence and payload of messages of known channels; times up to int64."""
        most = (1 << 63) - 1
        return [
            (self.topics[m.channel], min(m.time, most), min(m.publish, most), m.sequence, m.payload)
            for m in self.messages
            if m.channel in self.topics
        ]


class Cut(Exception):
    """The bytes are truncated or invalid."""


def read(data: bytes) -> File:
    """Read a file up to the first invalid record."""
    file = File()
    try:
        if data[:8] != MAGIC:
            raise Cut
        end = _records(data, 8, len(data), file, 0)
        file.whole = end is not None and data[end : end + 8] == MAGIC and end + 8 == len(data)
    except (Cut, UnicodeDecodeError, RuntimeError, zstandard.ZstdError):
        pass
    return file


def _take(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise Cut
    return data[at : at + size]


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    (size,) = struct.unpack("<I", _take(data, at, 4))
    return _take(data, at + 4, size), at + 4 + size


def _map(raw: bytes) -> dict[str, str]:
    found, at = {}, 0
    while at < len(raw):
        name, at = _string(raw, at)
        value, at = _string(raw, at)
        found[name.decode()] = value.decode()
    return found


def _records(data: bytes, pos: int, end: int, file: File, base: int | None) -> int | None:
    """Read records; return the offset after the footer, None without a footer."""
    while pos < end:
        if pos + 9 > end:
            raise Cut
        kind, size = struct.unpack_from("<BQ", data, pos)
        if kind == 0:
            raise Cut
        if kind == 6 and base is not None:
            # Of a plain chunk, the records that are there count even where it is cut.
            _chunk(data[pos + 9 : min(end, pos + 9 + size)], file, pos + 9)
        content = _take(data[:end], pos + 9, size)
        if kind == 2:
            return pos + 9 + size
        if kind == 3:
            name, at = _string(content, 2)
            encoding, at = _string(content, at)
            text, _ = _string(content, at)
            number = int.from_bytes(content[:2], "little")
            file.schemas.setdefault(number, (name.decode(), encoding.decode(), text))
        elif kind == 4:
            topic, _ = _string(content, 4)
            number, schema = struct.unpack_from("<HH", content)
            file.topics.setdefault(number, topic.decode())
            file.schema_of.setdefault(number, schema)
        elif kind == 5:
            if size < 22:
                raise Cut
            channel, sequence, time, publish = struct.unpack_from("<HIQQ", content)
            place = None if base is None else base + pos
            file.messages.append(Message(channel, sequence, time, publish, content[22:], place))
        elif kind == 9:
            name, at = _string(content, 16)
            media, at = _string(content, at)
            (length,) = struct.unpack("<Q", _take(content, at, 8))
            file.attachments.append((name.decode(), media.decode(), _take(content, at + 8, length)))
        elif kind == 12:
            name, at = _string(content, 0)
            raw, _ = _string(content, at)
            file.metadata.append((name.decode(), _map(raw)))
        pos += 9 + size
    return None


def _chunk(content: bytes, file: File, pos: int) -> None:
    size, _ = struct.unpack_from("<QI", _take(content, 16, 12))
    compression, at = _string(content, 28)
    (stored,) = struct.unpack("<Q", _take(content, at, 8))
    packed = content[at + 8 : at + 8 + stored]
    if not compression:
        _records(packed, 0, len(packed), file, pos + at + 8)
        if len(packed) < stored:
            raise Cut
        return
    if len(packed) < stored:
        raise Cut
    unpack = zstandard.ZstdDecompressor().decompress if compression == b"zstd" else lz4.frame.decompress
    data = unpack(packed)
    if len(data) != size:
        raise Cut
    _records(data, 0, len(data), file, None)
