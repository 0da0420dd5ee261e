"""Builder of valid and invalid bags of version 2.0, and samples: a drive, and tiny bags of all versions.

It shares no code with the reader, so that tests can compare the two.
"""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

from support.samples.rosbag import old as old
from support.samples.rosbag.old import PADDED, Message, Topic, header, record, stamp

# Builder has a method `bytes`: its annotations need another name for the type.
Buffer = bytes

MAGIC = b"#ROSBAG V2.0\n"
#: Recorders close a chunk when it has grown beyond this.
CHUNK_BYTES = 768 << 10
Pack = Callable[[bytes], bytes]


def lz4_frame(
    data: bytes,
    block_size: int = 6,
    linked: bool = False,
    checksum: bool = True,
    block_checksums: bool = False,
    content_size: bool = False,
) -> bytes:
    """Return *data* as one LZ4 frame; by default with the flags that ROS writes and accepts.

    block_size  4 (64 KiB), 5 (256 KiB), 6 (1 MiB) or 7 (4 MiB)
    """
    import lz4.frame

    packer = lz4.frame.LZ4FrameCompressor(
        block_size=block_size,
        block_linked=linked,
        content_checksum=checksum,
        block_checksum=block_checksums,
        auto_flush=True,
    )
    head: bytes = packer.begin(source_size=len(data) if content_size else 0)
    return b"".join((head, packer.compress(data), packer.flush()))


PACK: dict[str, Pack] = {"none": lambda data: data, "bz2": bz2.compress, "lz4": lz4_frame}


@dataclass(slots=True)
class Chunk:
    """A chunk to be written; its attributes can be changed to make it invalid.

    entries   index: connection, stamp, place in *content*
    size      stated instead of the true size of *content*
    stored    stated instead of the true number of bytes that follow
    before    bytes between what comes before and the chunk
    index     False: its index records are left out
    finished  False: the recorder died before it could state the sizes or write the index
    pos       where it begins in the file; known after ``bytes``
    """

    compression: str
    pack: Pack
    content: bytearray = field(default_factory=bytearray)
    entries: list[tuple[int, int, int]] = field(default_factory=list)
    size: int | None = None
    stored: int | None = None
    before: bytes = b""
    index: bool = True
    finished: bool = True
    pos: int = 0

    def counts(self) -> dict[int, int]:
        """Index entries: messages by connection."""
        found: dict[int, int] = {}
        for conn, _, _ in self.entries:
            found[conn] = found.get(conn, 0) + 1
        return found


@dataclass(slots=True)
class Builder:
    """Builder of a bag of version 2.0, without any checks.

    compression   of new chunks: none, bz2 or lz4
    pack          packs their bytes, None: as usual for *compression*
    chunk_bytes   a chunk is closed when it has grown beyond this
    padded        bytes of header and data of the bag header together; 4088 makes the whole record 4096
    entry_bytes   what each index entry is said to take; recorders of 2010 stated 20 or 24
    sort          index entries by time, as ROS does; else as written
    finished      False: the recorder died, the bag header was never completed and there is no summary
    before_index  bytes between the last chunk and the summary
    extra         further fields of the bag header
    stated        instead of the true index_pos, conn_count, chunk_count, where it has one of these
    """

    compression: str = "none"
    pack: Pack | None = None
    chunk_bytes: int = CHUNK_BYTES
    padded: int = PADDED
    entry_bytes: int = 12
    sort: bool = True
    finished: bool = True
    before_index: bytes = b""
    extra: tuple[tuple[str, bytes], ...] = ()
    stated: dict[str, int] = field(default_factory=dict)
    connections: list[tuple[int, Topic]] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    _open: bool = False
    _written: set[int] = field(default_factory=set)

    def connection(self, topic: Topic, conn: int | None = None) -> int:
        """Add a connection and return its number; its record is written before its first message."""
        number = len(self.connections) if conn is None else conn
        self.connections.append((number, topic))
        return number

    def chunk(self, **options: object) -> Chunk:
        """Close the open chunk, and begin one with these attributes."""
        self._open = True
        self.chunks.append(Chunk(self.compression, self.pack or PACK[self.compression]))
        for name, value in options.items():
            setattr(self.chunks[-1], name, value)
        return self.chunks[-1]

    def message(self, conn: int, time_ns: int, payload: bytes, connect: bool | None = None) -> Builder:
        """Add a message; *connect*: with its connection record; None: only before the first one of a connection."""
        chunk = self.chunks[-1] if self._open else self.chunk()
        if connect if connect is not None else conn not in self._written:
            self._written.add(conn)
            chunk.content += connection_record(conn, self._topic_of(conn))
        chunk.entries.append((conn, time_ns, len(chunk.content)))
        fields = [("conn", struct.pack("<I", conn)), ("op", b"\x02"), ("time", stamp(time_ns))]
        chunk.content += record(fields, payload)
        self._open = len(chunk.content) <= self.chunk_bytes
        return self

    def _topic_of(self, conn: int) -> Topic:
        if conn < len(self.connections) and self.connections[conn][0] == conn:
            return self.connections[conn][1]
        return dict(self.connections)[conn]

    def bag_header(self, index_pos: int = 0, conn_count: int = 0, chunk_count: int = 0) -> bytes:
        """Return the bag header record."""
        fields = [
            ("chunk_count", struct.pack("<I", self.stated.get("chunk_count", chunk_count))),
            ("conn_count", struct.pack("<I", self.stated.get("conn_count", conn_count))),
            ("index_pos", struct.pack("<Q", self.stated.get("index_pos", index_pos))),
            ("op", b"\x03"),
            *self.extra,
        ]
        return record(fields, b" " * max(0, self.padded - len(header(fields))))

    def bytes(self) -> Buffer:
        """Return the bytes of the file."""
        out = bytearray(MAGIC + self.bag_header())
        for chunk in self.chunks:
            out += chunk.before
            chunk.pos = len(out)
            out += self._chunk(chunk)
        if self.finished:
            out += self.before_index
            head = self.bag_header(len(out), len(self.connections), len(self.chunks))
            out[len(MAGIC) : len(MAGIC) + len(head)] = head
            for conn, topic in self.connections:
                out += connection_record(conn, topic)
            for chunk in self.chunks:
                out += chunk_info(chunk)
        return b"" + out

    def _chunk(self, chunk: Chunk) -> Buffer:
        packed = chunk.pack(b"" + chunk.content)
        size = len(chunk.content) if chunk.finished else 0
        fields = [
            ("compression", chunk.compression.encode()),
            ("op", b"\x05"),
            ("size", struct.pack("<I", size if chunk.size is None else chunk.size)),
        ]
        stored = chunk.stored if chunk.stored is not None or chunk.finished else 0
        out = record(fields, packed, data_len=stored)
        if not (chunk.finished and chunk.index):
            return out
        for conn in sorted(chunk.counts()):
            entries = [(time, place) for c, time, place in chunk.entries if c == conn]
            if self.sort:
                entries.sort(key=lambda entry: entry[0])
            data = b"".join(stamp(time) + struct.pack("<I", place) for time, place in entries)
            number, count = struct.pack("<I", conn), struct.pack("<I", len(entries))
            fields = [("conn", number), ("count", count), ("op", b"\x04"), ("ver", b"\x01\0\0\0")]
            out += record(fields, data, data_len=self.entry_bytes * len(entries))
        return out


def connection_record(conn: int, topic: Topic) -> bytes:
    """Return a connection record; a field ``topic`` of *topic.more* replaces the topic in the connection header."""
    inner = {"topic": topic.name.encode(), "type": topic.type.encode(), "md5sum": topic.sum}
    inner |= {"message_definition": topic.definition, **dict(topic.more)}
    fields = [("conn", struct.pack("<I", conn)), ("op", b"\x07"), ("topic", topic.name.encode())]
    return record(fields, header(inner.items()))


def chunk_info(chunk: Chunk) -> bytes:
    """Return the chunk info record of a chunk."""
    counts, times = chunk.counts(), [time for _, time, _ in chunk.entries] or [0]
    fields = [
        ("chunk_pos", struct.pack("<Q", chunk.pos)),
        ("count", struct.pack("<I", len(counts))),
        ("end_time", stamp(max(times))),
        ("op", b"\x06"),
        ("start_time", stamp(min(times))),
        ("ver", b"\x01\0\0\0"),
    ]
    return record(fields, b"".join(struct.pack("<II", *pair) for pair in sorted(counts.items())))


def version_2_0(messages: Iterable[Message], builder: Builder | None = None) -> bytes:
    """Return a bag of version 2.0 with one connection for each topic; *builder*: structure and compression."""
    out, numbers = builder or Builder(), dict[Topic, int]()
    for topic, time_ns, payload in messages:
        if topic not in numbers:
            numbers[topic] = out.connection(topic)
        out.message(numbers[topic], time_ns, payload)
    return out.bytes()


def string(text: str) -> bytes:
    """Return a string as in messages."""
    return struct.pack("<I", len(text.encode())) + text.encode()


#: Time of the first message of most samples, ns.
START = 1_700_000_000 * 10**9 + 123_456_789
CHATTER, COUNT = Topic("/chatter", "std_msgs/String"), Topic("/count", "std_msgs/Int32")


def few(start: int = START, topics: tuple[Topic, ...] = (CHATTER, COUNT)) -> list[Message]:
    """Return six messages of two topics, or those of one topic; one is empty text, one has an earlier time."""
    words = ("one", "", "three")
    found: list[Message] = []
    for k, word in enumerate(words):
        # The second pair comes late, so stamps are not in the order of the file.
        time_ns = start + (0, 30, 20)[k] * 10**6
        found += [(CHATTER, time_ns, string(word)), (COUNT, time_ns + 5, struct.pack("<i", 7 - k))]
    return [message for message in found if message[0] in topics]


def tiny(version: str = "2.0") -> bytes:
    """Return a valid bag of *version* of at most 2.5 kB, small enough to be cut at every byte."""
    match version:
        case "0":
            return old.version_0(few(0, (CHATTER,)))
        case "1.0":
            return old.version_1_0(few(4_490_867_000), late=(COUNT,))
        case "1.1":
            return old.version_1_1(few())
        case "1.2":
            return old.version_1_2(few(), indexed=False)
        case "2.0":
            # Two chunks. The bag header is short of its usual padding, which no reader should rely on.
            return version_2_0(few(), Builder(chunk_bytes=400, padded=80))
    raise ValueError(f"there is no bag of version {version!r}")


@cache
def drive(seconds: float = 12.0, compression: str = "none", chunk_bytes: int = 256 << 10) -> bytes:
    """Return a valid bag of a small robot that drives a figure of eight in a room: 1.5 MB for 12 s.

    Ten topics, from an IMU at 100 Hz to a camera and a map that comes once; the same arguments give the same bytes.
    """
    from support.samples.rosbag.drive import messages

    return version_2_0(messages(seconds), Builder(compression, chunk_bytes=chunk_bytes))
