"""Builders of bags of versions 0 to 1.2 (2008 to early 2010), byte by byte.

Nothing here knows the reader. Versions 0 to 1.1 have no fields to speak of, so functions make them; 1.2 has
records like 2.0 but no chunks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from support.samples.rosbag.types import definition, md5

#: Message data of the index record of the file header, and what it is filled with.
PADDED = 4096


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a recorder.

    md5, text  None: those of the type
    more       further fields: of every message record in 1.2, of the connection record in 2.0
    """

    name: str
    type: str
    md5: str | None = None
    text: str | None = None
    more: tuple[tuple[str, bytes], ...] = ()

    @property
    def sum(self) -> bytes:
        """Checksum in the file."""
        return (md5(self.type) if self.md5 is None else self.md5).encode()

    @property
    def definition(self) -> bytes:
        """Definition in the file."""
        return (definition(self.type) if self.text is None else self.text).encode()


Message = tuple[Topic, int, bytes]


def stamp(time_ns: int) -> bytes:
    """Return a time as u32 seconds and nanoseconds; negative ones like the first recorders."""
    return struct.pack("<iI" if time_ns < 0 else "<II", *divmod(time_ns, 10**9))


def old_message(time_ns: int, payload: bytes, size: int | None = None) -> bytes:
    """Return the binary part of a message of versions 0 to 1.1; *size* replaces its true length."""
    return stamp(time_ns) + struct.pack("<I", len(payload) if size is None else size) + payload


def _lines(topic: Topic, order: str) -> bytes:
    """Return the lines that declare a topic: ``type md5`` (recorders), ``md5 type`` (expected by readers), ``bare``."""
    two = {
        "type md5": (topic.type.encode(), topic.sum),
        "md5 type": (topic.sum, topic.type.encode()),
        "bare": (),
    }
    return b"".join(line + b"\n" for line in (topic.name.encode(), *two[order]))


def version_0(messages: Iterable[Message], order: str = "type md5") -> bytes:
    """Return a bag of version 0, which has one topic."""
    messages = list(messages)
    return _lines(messages[0][0], order) + b"".join(old_message(t, p) for _, t, p in messages)


def version_1_0(
    messages: Iterable[Message],
    line: bytes = b"#ROSLOG V1.0\n",
    order: str = "type md5",
    late: Iterable[Topic] = (),
) -> bytes:
    """Return a bag of version 1.0; topics of *late* are declared between the messages, before their first one."""
    messages, waiting = list(messages), list(late)
    topics = list(dict.fromkeys(topic for topic, _, _ in messages))
    out = line + b"%04d\n" % len(topics)
    out += b"".join(_lines(topic, order) for topic in topics if topic not in waiting)
    for topic, time_ns, payload in messages:
        if topic in waiting:
            waiting.remove(topic)
            out += _lines(topic, order)
        out += topic.name.encode() + b"\n" + old_message(time_ns, payload)
    return out


def version_1_1(messages: Iterable[Message], line: bytes = b"#ROSRECORD V1.1\n") -> bytes:
    """Return a bag of version 1.1: every message with its topic, checksum and type."""
    return line + b"".join(_lines(topic, "md5 type") + old_message(t, p) for topic, t, p in messages)


def header(fields: Iterable[tuple[str, bytes]]) -> bytes:
    """Return header fields ``name=value``, each preceded by its length."""
    parts = [name.encode() + b"=" + value for name, value in fields]
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def record(
    fields: Iterable[tuple[str, bytes]],
    data: bytes = b"",
    header_len: int | None = None,
    data_len: int | None = None,
) -> bytes:
    """Return a record of versions 1.2 and 2.0; *header_len* and *data_len* replace the true lengths."""
    head = header(fields)
    return b"".join(
        (
            struct.pack("<I", len(head) if header_len is None else header_len),
            head,
            struct.pack("<I", len(data) if data_len is None else data_len),
            data,
        )
    )


class Builder12:
    """Builder of a bag of version 1.2; every method appends one record and returns the builder.

    indexed   with a file header, and an index at the end
    finished  False: the recorder died, so that the header does not know of an index and there is none
    padded    bytes of header and data of the file header together
    """

    def __init__(self, indexed: bool = True, finished: bool = True, padded: int = PADDED) -> None:
        self._indexed, self._finished, self._padded = indexed, finished, padded
        self._out = bytearray(b"#ROSRECORD V1.2\n")
        #: Index entries by topic name: stamp and offset, in the order written; change them for an invalid index.
        self.entries: dict[str, list[tuple[int, int]]] = {}
        self._types: dict[str, str] = {}
        self._open: dict[str, int] = {}
        if indexed:
            self._out += self._file_header(0)

    def __len__(self) -> int:
        """File offset of the next record."""
        return len(self._out)

    def _file_header(self, index_pos: int) -> bytes:
        fields = [("index_pos", struct.pack("<Q", index_pos)), ("op", b"\x03")]
        return record(fields, b" " * (self._padded - len(header(fields))))

    def junk(self, content: bytes) -> Builder12:
        """Append *content* unchanged."""
        self._out += content
        return self

    def definition(self, topic: Topic) -> Builder12:
        """Append the definition of a topic."""
        self._open[topic.name] = len(self._out)
        fields = [("def", topic.definition), ("md5", topic.sum), ("op", b"\x01")]
        self._out += record([*fields, ("topic", topic.name.encode()), ("type", topic.type.encode())])
        return self

    def message(self, topic: Topic, time_ns: int, payload: bytes) -> Builder12:
        """Append a message; the first index entry of a topic is that of its definition."""
        place = self._open.pop(topic.name, len(self._out))
        self.entries.setdefault(topic.name, []).append((time_ns, place))
        self._types[topic.name] = topic.type
        sec, nsec = (struct.pack("<I", part) for part in divmod(time_ns, 10**9))
        fields = [("md5", topic.sum), ("nsec", nsec), ("op", b"\x02"), ("sec", sec)]
        fields += [("topic", topic.name.encode()), ("type", topic.type.encode()), *topic.more]
        self._out += record(fields, payload)
        return self

    def bytes(self) -> bytes:
        """Return the bytes of the finished file."""
        if not (self._indexed and self._finished):
            return b"" + self._out
        out = self._out.copy()
        head = self._file_header(len(out))
        out[16 : 16 + len(head)] = head
        for topic, entries in sorted(self.entries.items()):
            data = b"".join(stamp(t) + struct.pack("<Q", place) for t, place in entries)
            fields = [("count", struct.pack("<I", len(entries))), ("op", b"\x04"), ("topic", topic.encode())]
            out += record([*fields, ("type", self._types[topic].encode()), ("ver", bytes(4))], data)
        return b"" + out


def version_1_2(
    messages: Iterable[Message],
    indexed: bool = True,
    per: str = "topic",
    finished: bool = True,
    padded: int = PADDED,
) -> bytes:
    """Return a bag of version 1.2 with one definition *per* ``topic`` (recorder) or ``type`` (early rewriting tool)."""
    out, known = Builder12(indexed, finished, padded), set()
    for topic, time_ns, payload in messages:
        key = topic.name if per == "topic" else topic.type
        if key not in known:
            known.add(key)
            out.definition(topic)
        out.message(topic, time_ns, payload)
    return out.bytes()
