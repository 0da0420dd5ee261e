"""Builder of valid and invalid MCAP files, and a tiny sample.

It shares no code with the reader, so that tests can compare the two.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

# Builder has a method `bytes`: its annotations need another name for the type.
Buffer = bytes

MAGIC = b"\x89MCAP0\r\n"
#: Time of the first message of samples, ns.
START = 1_750_000_000 * 10**9 + 123_456_789


def record(kind: int, content: bytes, length: int | None = None) -> bytes:
    """Return a record; *length* replaces the true length."""
    return struct.pack("<BQ", kind, len(content) if length is None else length) + content


def string(text: str | bytes) -> bytes:
    """Return text or bytes preceded by their size."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<I", len(raw)) + raw


def pairs(found: Mapping[str, str]) -> bytes:
    """Return a map of text to text."""
    return string(b"".join(string(name) + string(value) for name, value in found.items()))


def packed(compression: str, data: bytes) -> bytes:
    """Return the stored bytes of a chunk."""
    if compression == "lz4":
        import lz4.frame

        return bytes(lz4.frame.compress(data))
    if compression == "zstd":
        import zstandard

        return bytes(zstandard.ZstdCompressor().compress(data))
    return data


def message(channel: int, time: int, payload: bytes, sequence: int = 0, publish: int | None = None) -> bytes:
    """Return a message record."""
    moment = time if publish is None else publish
    return record(5, struct.pack("<HIQQ", channel, sequence, time, moment) + payload)


@dataclass(slots=True)
class Builder:
    """Builder of an MCAP file, without any checks.

    compression  of chunks: ``zstd``, ``lz4`` or empty; None: messages lie in the file outside of chunks
    chunk_bytes  a chunk is closed when it has grown beyond this
    index        index records behind chunks, and what the summary says of them
    summary      a summary: schemas, channels, statistics, chunks, attachments, metadata
    finished     False: the file ends behind its last message
    sums         checksums; False: zeros in their place
    """

    compression: str | None = "zstd"
    chunk_bytes: int = 1 << 16
    index: bool = True
    summary: bool = True
    finished: bool = True
    sums: bool = True
    profile: str = ""
    library: str = "logreel sample"
    _out: bytearray = field(default_factory=bytearray)
    _chunk: bytearray = field(default_factory=bytearray)
    _entries: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _repeated: dict[int, list[Buffer]] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _times: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._out += MAGIC + record(1, string(self.profile) + string(self.library))

    def schema(self, number: int, name: str, encoding: str, data: Buffer) -> Builder:
        """Add a schema."""
        return self._define(3, struct.pack("<H", number) + string(name) + string(encoding) + string(data))

    def channel(
        self, number: int, schema: int, topic: str, encoding: str, metadata: Mapping[str, str] | None = None
    ) -> Builder:
        """Add a channel."""
        content = (
            struct.pack("<HH", number, schema) + string(topic) + string(encoding) + pairs(metadata or {})
        )
        return self._define(4, content)

    def _define(self, kind: int, content: Buffer) -> Builder:
        one = record(kind, content)
        self._repeated.setdefault(kind, []).append(one)
        self._put(one)
        return self

    def _put(self, one: Buffer) -> None:
        if self.compression is None:
            self._out += one
        else:
            self._chunk += one

    def message(
        self, channel: int, time: int, payload: Buffer, sequence: int = 0, publish: int | None = None
    ) -> Builder:
        """Add a message."""
        self._entries.setdefault(channel, []).append((time, len(self._chunk)))
        self._put(message(channel, time, payload, sequence, publish))
        self._counts[channel] = self._counts.get(channel, 0) + 1
        self._times.append(time)
        if len(self._chunk) > self.chunk_bytes:
            self.flush()
        return self

    def flush(self) -> Builder:
        """Close the chunk."""
        if not self._chunk:
            return self
        data, compression = b"" + self._chunk, self.compression or ""
        times = [time for entries in self._entries.values() for time, _ in entries] or [0]
        stored, start = packed(compression, data), len(self._out)
        head = struct.pack("<QQQI", min(times), max(times), len(data), self._sum(data)) + string(compression)
        self._out += record(6, head + struct.pack("<Q", len(stored)) + stored)
        length, offsets = len(self._out) - start, b""
        for channel, entries in self._entries.items() if self.index else ():
            offsets += struct.pack("<HQ", channel, len(self._out))
            rows = b"".join(struct.pack("<QQ", *entry) for entry in entries)
            self._out += record(7, struct.pack("<H", channel) + string(rows))
        info = struct.pack("<QQQQ", min(times), max(times), start, length) + string(offsets)
        info += struct.pack("<Q", len(self._out) - start - length) + string(compression)
        self._repeated.setdefault(8, []).append(record(8, info + struct.pack("<QQ", len(stored), len(data))))
        self._chunk, self._entries = bytearray(), {}
        return self

    def attachment(self, name: str, media_type: str, data: Buffer, time: int = START) -> Builder:
        """Add an attachment."""
        self.flush()
        start = len(self._out)
        content = struct.pack("<QQ", time, time) + string(name) + string(media_type)
        content += struct.pack("<Q", len(data)) + data
        self._out += record(9, content + struct.pack("<I", self._sum(content)))
        info = struct.pack("<QQQQQ", start, len(self._out) - start, time, time, len(data))
        self._repeated.setdefault(10, []).append(record(10, info + string(name) + string(media_type)))
        return self

    def metadata(self, name: str, metadata: Mapping[str, str]) -> Builder:
        """Add a metadata record."""
        self.flush()
        start = len(self._out)
        self._out += record(12, string(name) + pairs(metadata))
        info = struct.pack("<QQ", start, len(self._out) - start) + string(name)
        self._repeated.setdefault(13, []).append(record(13, info))
        return self

    def raw(self, data: Buffer) -> Builder:
        """Add any bytes."""
        self.flush()
        self._out += data
        return self

    def _sum(self, data: Buffer | bytearray) -> int:
        return zlib.crc32(data) if self.sums else 0

    def bytes(self) -> Buffer:
        """Return the bytes of the file."""
        self.flush()
        if not self.finished:
            return b"" + self._out
        self._out += record(15, struct.pack("<I", self._sum(self._out)))
        start = len(self._out) if self.summary else 0
        groups = b""
        for kind in (3, 4, 11, 8, 10, 13) if self.summary else ():
            at = len(self._out)
            self._out += self._statistics() if kind == 11 else b"".join(self._repeated.get(kind, []))
            if len(self._out) > at:
                groups += record(14, struct.pack("<BQQ", kind, at, len(self._out) - at))
        offsets = len(self._out) if groups else 0
        self._out += groups
        foot = struct.pack("<BQQQ", 2, 20, start, offsets)
        crc = self._sum(self._out[start:] + foot) if start else 0
        self._out += foot + struct.pack("<I", crc) + MAGIC
        return b"" + self._out

    def _statistics(self) -> Buffer:
        many = [len(self._repeated.get(kind, [])) for kind in (3, 4, 10, 13, 8)]
        times = self._times or [0]
        content = struct.pack("<QHIIII", sum(self._counts.values()), *many)
        content += struct.pack("<QQ", min(times), max(times))
        counts = b"".join(struct.pack("<HQ", *pair) for pair in self._counts.items())
        return record(11, content + string(counts))


def tiny(builder: Builder | None = None) -> bytes:
    """Return a file with six messages of two channels in two chunks, metadata and an attachment."""
    out = builder or Builder(chunk_bytes=120)
    out.schema(1, "word", "jsonschema", b'{"type":"object","properties":{"word":{"type":"string"}}}')
    out.channel(1, 1, "/words", "json", {"from": "a sample"}).channel(2, 0, "/raw", "")
    for k, word in enumerate(("one", "", "three")):
        # The second pair comes late, so times are not in the order of the file.
        time = START + (0, 30, 20)[k] * 10**6
        out.message(1, time, b'{"word":"%s"}' % word.encode(), k + 1, time - 1000)
        out.message(2, time + 5, bytes(range(k * 3)), k + 1)
    out.metadata("build", {"version": "1", "by": "hand"})
    return out.attachment("notes.txt", "text/plain", b"remember the milk").bytes()
