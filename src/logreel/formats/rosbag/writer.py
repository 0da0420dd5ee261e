"""Write bags: in chunks with an index and a summary (2.0), or every message as a record of its own (1.1, 1.2).

``BagCopier`` copies the connections of other bags, and how large their chunks are.
"""

from __future__ import annotations

import bz2
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk
from logreel.formats.rosbag.definitions import CONNECTION
from logreel.formats.rosbag.reader import FoundFile, add_connection
from logreel.formats.rosbag.records import (
    U32,
    U64,
    Record,
    fields_bytes,
    file_header_bytes,
    read_record,
    record_bytes,
    record_head,
)
from logreel.formats.rosbag.schema_maker import BagSchemaMaker, NewConnection, declare, has_same_checksum
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Buffer, Source
from logreel.log.joined_log import header_map, joined_metadata
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.write.format_writer import FormatWriter, Payloads, RecordWriter
from logreel.write.log_copier import LogCopier


@dataclass(frozen=True, slots=True)
class OldHeader:
    """The file header record: its bytes with its padding, and where the value of each field is in them.

    places  start and end of each value
    """

    data: bytes
    places: Mapping[bytes, tuple[int, int]]

    @classmethod
    def read(cls, source: Source, head: Record) -> OldHeader:
        """Return the header of a bag; *head* is its record."""
        data = source.read(head.pos, head.end - head.pos)
        places, at, end = {}, 4, head.data - head.pos - 4
        while at < end:
            (size,) = U32.unpack_from(data, at)
            name = data[at + 4 : at + 4 + size].partition(b"=")[0]
            places[name] = at + 5 + len(name), at + 4 + size
            at += 4 + size
        return cls(data, places)

    def with_values(self, values: Mapping[bytes, int]) -> bytes:
        """Return the bytes of the header with other numbers in fields that it has; sizes stay the same."""
        data = bytearray(self.data)
        for name, value in values.items():
            start, end = self.places[name]
            try:
                data[start:end] = value.to_bytes(end - start, "little")
            except OverflowError:
                text = (
                    f"its header has {end - start} bytes for {name.decode()}, which are too few for {value}"
                )
                raise LogError(text) from None
        return bytes(data)


@dataclass(frozen=True, slots=True)
class OldSummary:
    """Header and summary of a bag of version 2.0.

    connections  record of each connection by its number, in the order of the summary
    infos        chunk info records
    index_order  fields of index records in the order of the old ones: rosbags expects one order in all of a bag; empty
                 if there are none, or with other fields
    """

    header: OldHeader
    connections: Mapping[int, bytes]
    infos: list[bytes]
    index_order: tuple[str, ...]

    @classmethod
    def read(cls, source: Source, head: Record, header: OldHeader, chunks: Sequence[Chunk]) -> OldSummary:
        """Return the summary of a bag whose index was found to be valid; *head* is the record of its *header*."""
        connections: dict[int, bytes] = {}
        infos, known = [], FoundFile()
        at = head.u32(b"index_pos")
        while at < source.size:
            record = read_record(source, at, source.size)
            data = source.read(at, record.end - at)
            if record.op == records.OP_CHUNK_INFO:
                infos.append(data)
            elif record.op == records.OP_CONNECTION:
                # Of a connection that is described twice, the record counts that readers use.
                number = record.u32(b"conn")
                before = known.connections.get(number)
                add_connection(source, record, known)
                if known.connections[number] is not before:
                    connections[number] = data
            at = record.end
        return cls(header, connections, infos, _index_order(source, chunks))


def _index_order(source: Source, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Return the names of the fields of the first index record, in their order; see OldSummary."""
    for chunk in chunks[:1]:
        at = chunk.data + chunk.stored
        if at < source.size:
            record = read_record(source, at, source.size)
            names = tuple(name.decode("latin-1") for name in record.fields)
            if record.op == records.OP_INDEX and sorted(names) == ["conn", "count", "op", "ver"]:
                return names
    return ()


MAGIC = b"#ROSBAG V2.0\n"
CHUNK_BYTES = 768 << 10
#: Largest chunk_bytes: the last message can double the size of a chunk, and sizes have 32 bits.
LARGEST = (1 << 31) - 1
#: Greatest number of a connection.
LAST_CONNECTION = (1 << 32) - 1
V2_ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])
#: Most bytes of records in a batch.
BATCH_BYTES = 1 << 20
_MAGIC_1_1, _MAGIC_1_2 = b"#ROSRECORD V1.1\n", b"#ROSRECORD V1.2\n"
V1_ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("pos", "<u8")])
#: Bytes from the value of nsec to that of sec: 4 of nanoseconds, 8 of the field op, 8 before the value.
SEC_AFTER_NSEC = 20
#: Topics that readers of version 1.1 accept.
_TOPIC = re.compile(r"[!-~]([ -~]{0,254}[!-~])?")


def _lz4(data: bytes) -> bytes:
    # ROS refuses frames with other flags.
    import lz4.frame

    packer = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX1MB, block_linked=False, content_checksum=True
    )
    packed: bytes = packer.begin() + packer.compress(data) + packer.flush()
    return packed


_PACK: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "lz4": _lz4}


@dataclass(frozen=True, slots=True)
class _Info:
    """A chunk that was written: offset, first and last time in ns, uint32[k, 2] connections and numbers of messages."""

    pos: int
    start: int
    end: int
    counts: NDArray[np.uint32]


class BagWriter(RecordWriter):
    """Writer of channels and messages, the base of the writers of all versions."""

    title = "a bag"
    earliest, latest, largest = 0, (10**9 << 32) - 1, (1 << 31) - 1
    side_column_names = (CONNECTION,)
    joins_publishers = True
    #: Whether checksums of bags of version 1.1 and before are replaced by those of later releases.
    renews_checksums = True

    def __init__(self, out: Appender) -> None:
        self.schemas: BagSchemaMaker = BagSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        #: int64[c, 2]: first line of each channel and number of its lines; a line is a record header of messages,
        #: one for each connection.
        self._lines = GrowingArray(np.int64, 2)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel.

        metadata  like that of channels of bags: ``topic``, ``md5sum`` (computed if not given), ``headers``, or else
                  ``callerids`` and ``latching``
        """
        self._declare(declare(topic, schema, metadata, None, self.renews_checksums))

    def copied_channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel of a bag; invalid topics, types and checksums are kept and noted."""
        self._declare(declare(topic, schema, metadata, self.notes, self.renews_checksums))

    def _declare(self, declared: NewConnection) -> None:
        self._add_lines(declared, self.add(declared), fresh=True)

    def add_old_channel(
        self, topic: str, schema: Schema, declared: NewConnection, lines: int, fresh: bool = True
    ) -> None:
        """Add a channel of the bag that is continued, whose record headers were added.

        fresh  declare it before its first new message, too: then the new part can be read without the old one
        """
        self._add_lines(declared, lines, fresh)
        self.old_channels[topic] = schema

    def _add_lines(self, declared: NewConnection, lines: int, fresh: bool) -> None:
        self.schemas.channels.append(declared)
        self._lines.append((len(self._fresh), lines))
        for _ in range(lines):
            self._fresh.append(fresh)

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether type and definition are the same, compared by their checksum, as in ROS."""
        if super().is_same_schema(old, new):
            return True
        return (new.name, new.encoding) == (old.name, old.encoding) and has_same_checksum(old, new)

    def continues(self, name: str, schema: Schema, metadata: Mapping[str, Any]) -> bool:
        """Return whether the type is the same, and, if *metadata* has its header, the publisher."""
        if not super().continues(name, schema, metadata):
            return False
        old = self.schemas.channels[list(self.old_channels).index(name)]
        return not metadata.get("headers") or declare(name, schema, metadata).headers[0] == old.headers[0]

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; the last side column is the connection in the channel, limited to the last one."""
        first, lines = self._lines.rows[channel].T
        turn = (
            np.zeros(len(channel), np.int64)
            if payloads.side_columns is None
            else payloads.side_columns[:, -1]
        )
        line = (first + np.clip(turn, 0, lines - 1)).astype(np.int32)
        super().messages(line, time, payloads)

    def use_chunk_sizes(self, sizes: Sequence[int]) -> None:
        """Use the chunk size of a source bag with chunks of *sizes* (bytes), unless a size was given; here: ignored."""

    def add(self, declared: NewConnection) -> int:
        """Add the record headers of a channel's messages; return their number: one, or one for each connection."""
        raise NotImplementedError


class BagV20Writer(BagWriter):
    """Writes version 2.0.

    old  what the bag that is continued has besides chunks, which are in *out* already; None for a new bag
    """

    def __init__(
        self, out: Appender, compression: str, chunk_bytes: int | None, old: OldSummary | None = None
    ) -> None:
        super().__init__(out)
        known = ("none", *_PACK)
        if compression not in known:
            raise UsageError(f"compression {compression!r}; a bag has {', '.join(known)}")
        if chunk_bytes is not None and not 0 < chunk_bytes <= LARGEST:
            raise UsageError(f"chunks of {chunk_bytes} bytes; a bag has chunks of 1 to {LARGEST}")
        self._compression, self._limit = compression, chunk_bytes or CHUNK_BYTES
        self._has_default_limit = chunk_bytes is None
        self._old = old
        #: Number and connection record of each line; see ``BagWriter``.
        self._lines_known: list[tuple[int, bytes]] = []
        #: Connection records of the summary, in its order.
        self._connections: list[bytes] = list(old.connections.values()) if old else []
        self._index_order = old.index_order if old else ()
        self._next = max(old.connections, default=-1) + 1 if old else 0
        self._infos: list[_Info] = []
        self._begin_chunk()
        if old is None:
            self.out.write(MAGIC + self._header(0, 0))
            self.out.commit()
        else:
            # Until the new summary is written, readers must not look for one.
            self.out.patch(len(MAGIC), self._header(0, 0))

    def add(self, declared: NewConnection) -> int:
        """Add a channel with one or more connections."""
        for header in declared.headers:
            if self._next > LAST_CONNECTION:
                raise UsageError("the bag has used all numbers for connections")
            inner = {
                **header,
                "type": declared.type,
                "md5sum": declared.md5,
                "message_definition": declared.text,
            }
            data = fields_bytes({name: value.encode() for name, value in inner.items()})
            named = {"conn": U32.pack(self._next), "topic": declared.topic.encode()}
            self._connections.append(record_bytes(records.OP_CONNECTION, named, data))
            self._add_line(self._next, self._connections[-1])
            self._next += 1
        return len(declared.headers)

    def continue_channel(
        self, topic: str, schema: Schema, declared: NewConnection, numbers: Sequence[int]
    ) -> None:
        """Add a channel of the old bag with its connections, whose *numbers* stay the same."""
        connections = {} if self._old is None else self._old.connections
        for number in numbers:
            self._add_line(number, connections[number])
        self.add_old_channel(topic, schema, declared, len(numbers))

    def _add_line(self, number: int, record: bytes) -> None:
        self._lines_known.append((number, record))
        head = record_head(records.OP_MESSAGE, {"conn": U32.pack(number), "time": bytes(8)}, 0)
        self._headers.add(head, size_at=len(head) - 4, time_at=len(head) - 12)

    def use_chunk_sizes(self, sizes: Sequence[int]) -> None:
        """Use the chunk size of the first source bag that has chunks, unless a size was given."""
        limit = typical_limit(sizes)
        if self._has_default_limit and limit:
            self._limit, self._has_default_limit = limit, False

    def declare(self, number: int) -> None:
        """Add a connection record to the chunk."""
        self._put(np.frombuffer(self._lines_known[number][1], np.uint8))

    def batch_limit(self) -> int:
        """Return the bytes that may still be added to the chunk."""
        return self._limit - self._bytes

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Add records to the chunk, and close it if it is full."""
        self._entries.append((channel, time, place + self._bytes))
        self._put(made)
        if self._bytes > self._limit:
            self._close_chunk()

    def _put(self, part: NDArray[np.uint8]) -> None:
        self._content.append(part.data)
        self._bytes += part.nbytes

    def _begin_chunk(self) -> None:
        self._content: list[memoryview] = []
        self._bytes = 0
        self._entries: list[tuple[NDArray[np.int32], I64, I64]] = []

    def commit(self) -> None:
        """Close the chunk, so that its messages can be read."""
        if self._entries:
            self._close_chunk()

    def _close_chunk(self) -> None:
        pos = self.out.tell()
        pack = _PACK.get(self._compression)
        content = self._content if pack is None else [memoryview(pack(b"".join(self._content)))]
        head = {"compression": self._compression.encode(), "size": U32.pack(self._bytes)}
        self.out.write(record_head(records.OP_CHUNK, head, sum(map(len, content))))
        for part in content:
            self.out.write(part)
        number, time, place = _ordered(*(np.concatenate(parts) for parts in zip(*self._entries, strict=True)))
        entries = np.empty(len(time), V2_ENTRY)
        entries["sec"], entries["nsec"] = np.divmod(time, 10**9)
        entries["offset"] = place
        first = np.append(0, np.flatnonzero(np.diff(number)) + 1)
        numbers = np.array([self._lines_known[line][0] for line in number[first].tolist()], np.int64)
        count = np.diff(np.append(first, len(number)))
        for connection, lo, n in zip(numbers.tolist(), first.tolist(), count.tolist(), strict=True):
            named = {"ver": U32.pack(1), "conn": U32.pack(connection), "count": U32.pack(n)}
            data = entries[lo : lo + n].tobytes()
            self.out.write(record_bytes(records.OP_INDEX, named, data, self._index_order))
        self.out.commit()
        counts = np.stack((numbers, count), axis=1).astype("<u4")
        self._infos.append(_Info(pos, int(time.min()), int(time.max()), counts))
        self._begin_chunk()

    def finish(self) -> None:
        """Write the summary, and complete the file header."""
        at = self.out.tell()
        for record in (*self._connections, *(self._old.infos if self._old else ())):
            self.out.write(record)
        for info in self._infos:
            named = {
                "ver": U32.pack(1),
                "chunk_pos": U64.pack(info.pos),
                "start_time": _time(info.start),
                "end_time": _time(info.end),
                "count": U32.pack(len(info.counts)),
            }
            self.out.write(record_bytes(records.OP_CHUNK_INFO, named, info.counts.tobytes()))
        self.out.commit()
        self.out.patch(len(MAGIC), self._header(at, len(self._connections)))

    def _header(self, index_pos: int, connections: int) -> bytes:
        chunks = len(self._infos) + (len(self._old.infos) if self._old else 0) if index_pos else 0
        if self._old is not None:
            return self._old.header.with_values(
                {b"index_pos": index_pos, b"conn_count": connections, b"chunk_count": chunks}
            )
        named = {
            "index_pos": U64.pack(index_pos),
            "conn_count": U32.pack(connections),
            "chunk_count": U32.pack(chunks),
        }
        return file_header_bytes(named)


def _ordered(number: NDArray[np.int32], time: I64, place: I64) -> tuple[NDArray[np.int32], I64, I64]:
    """Return the messages of a chunk ordered by connection, in a connection by time."""
    rising = bool((time[1:] >= time[:-1]).all())
    if rising and bool((number == number[0]).all()):
        return number, time, place
    # Usually times ascend, so that sorting by connection is enough.
    order = np.argsort(number, kind="stable") if rising else np.lexsort((time, number))
    return number[order], time[order], place[order]


def typical_limit(sizes: Sequence[int]) -> int:
    """Return the limit that closes chunks at the same messages as in a bag with chunks of *sizes*; 0: unknown."""
    complete = sizes[:-1]
    # Chunks that were closed by a flush are smaller.
    median = statistics.median(complete) if complete else 0
    typical = [size for size in complete if 2 * size > median]
    return min(max(0, min(typical, default=0) - 1), LARGEST)


def _time(ns: int) -> bytes:
    return U32.pack(ns // 10**9) + U32.pack(ns % 10**9)


@dataclass(frozen=True, slots=True)
class OldIndex:
    """Header and index of a bag of version 1.2 that is continued.

    definitions  offset of the first definition record of each topic
    records      index record of each topic
    entries      the entries in it
    """

    header: OldHeader
    definitions: Mapping[str, int]
    records: Mapping[str, bytes]
    entries: Mapping[str, NDArray[np.void]]


class _BagV1Writer(BagWriter):
    def continue_channel(self, topic: str, schema: Schema, declared: NewConnection, fresh: bool) -> None:
        """Add a channel of the old bag; *fresh*: write its definition again before its first new message."""
        self.add_old_channel(topic, schema, declared, self.add(declared), fresh)

    def batch_limit(self) -> int:
        """Return the most bytes of a batch."""
        return BATCH_BYTES

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Append records to the file."""
        self.out.write(made.data)
        self.out.commit()


class BagV11Writer(_BagV1Writer):
    """Writes version 1.1; *continues*: the old bag is in *out* already."""

    renews_checksums = False
    # Larger seconds are read as negative ones, which the first recorders wrote.
    latest = (0xF0000000 + 1) * 10**9 - 1

    def __init__(self, out: Appender, continues: bool = False) -> None:
        super().__init__(out)
        if not continues:
            self.out.write(_MAGIC_1_1)
            self.out.commit()

    def add(self, declared: NewConnection) -> int:
        """Add a channel, without its definition and its connections, which version 1.1 does not have."""
        if not _TOPIC.fullmatch(declared.topic):
            text = "cannot be the topic of a bag of version 1.1: up to 256 characters of ASCII"
            raise UsageError(f"{declared.topic!r:.80} {text}")
        head = f"{declared.topic}\n{declared.md5}\n{declared.type}\n".encode() + bytes(12)
        self._headers.add(head, size_at=len(head) - 4, time_at=len(head) - 12)
        return 1


class BagV12Writer(_BagV1Writer):
    """Writes version 1.2.

    indexed    with a file header and an index, which is kept in memory until the end
    continues  the old bag is in *out* already, without its index
    old        its header and index; None if it has none
    """

    def __init__(
        self, out: Appender, indexed: bool, continues: bool = False, old: OldIndex | None = None
    ) -> None:
        super().__init__(out)
        self._indexed, self._old = indexed, old
        self._definition: dict[int, int] = {}
        self._entries: list[tuple[NDArray[np.int32], NDArray[np.void]]] = []
        self._nsec_at = GrowingArray(np.int64)
        if old is not None:
            # Until the new index is written, readers must not look for one.
            self.out.patch(len(_MAGIC_1_2), self._header(0))
        elif not continues:
            self.out.write(_MAGIC_1_2 + (self._header(0) if indexed else b""))
            self.out.commit()

    def continue_channel(self, topic: str, schema: Schema, declared: NewConnection, fresh: bool) -> None:
        """Add a channel of the old bag; *fresh*: write its definition again before its first new message."""
        if self._old is not None and not fresh:
            self._definition[len(self.schemas.channels)] = self._old.definitions[declared.topic]
        super().continue_channel(topic, schema, declared, fresh)

    def add(self, declared: NewConnection) -> int:
        """Add a channel; its messages have the caller and latching of the first connection if that is latched."""
        header = declared.headers[0]
        more = {name: header[name] for name in ("callerid", "latching") if header.get("latching") == "1"}
        named = {name: value.encode() for name, value in more.items()} | {"md5": declared.md5.encode()}
        nsec_at = 4 + len(fields_bytes(named)) + len(b"....nsec=")
        named |= {"nsec": bytes(4), "sec": bytes(4), **_names(declared)}
        head = record_head(records.OP_MESSAGE, named, 0)
        self._headers.add(head, size_at=len(head) - 4)
        self._nsec_at.append(nsec_at)
        return 1

    def declare(self, number: int) -> None:
        """Write the definition of a channel."""
        declared = self.schemas.channels[number]
        self._definition[number] = self.out.tell()
        named = {"md5": declared.md5.encode(), "def": declared.text.encode(), **_names(declared)}
        self.out.write(record_bytes(records.OP_DEFINITION, named))
        self.out.commit()

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Fill in the times and append records to the file."""
        entries = np.empty(len(time), V1_ENTRY)
        entries["sec"], entries["nsec"] = np.divmod(time, 10**9)
        entries["pos"] = place + self.out.tell()
        nsec_at = place + self._nsec_at.rows[channel]
        for name, at in (("nsec", nsec_at), ("sec", nsec_at + SEC_AFTER_NSEC)):
            made[at[:, None] + np.arange(4)] = entries[name].copy().view(np.uint8).reshape(-1, 4)
        if self._indexed:
            self._entries.append((channel, entries))
        super().write_records(channel, time, place, made, side_columns)

    def finish(self) -> None:
        """Write the index, and its offset into the file header."""
        if not self._indexed:
            return
        at = self.out.tell()
        # The empty array keeps concatenate from failing for a bag without messages.
        channel = np.concatenate([np.zeros(0, np.int32), *(part for part, _ in self._entries)])
        entries = np.concatenate([np.zeros(0, V1_ENTRY), *(part for _, part in self._entries)])
        old = self._old.records if self._old is not None else {}
        for topic in sorted({self.schemas.channels[number].topic for number in self._definition} | set(old)):
            numbers = [n for n in self._definition if self.schemas.channels[n].topic == topic]
            of_topic = entries[np.isin(channel, numbers)]
            if topic in old and not len(of_topic):
                self.out.write(old[topic])
                continue
            if self._old is not None and topic in old:
                of_topic = np.concatenate([self._old.entries[topic], of_topic])
            # ROS uses the index only if the first entry is the offset of the definition.
            of_topic["pos"][0] = self._definition[numbers[0]]
            named = {
                "count": U32.pack(len(of_topic)),
                "ver": U32.pack(0),
                **_names(self.schemas.channels[numbers[0]]),
            }
            self.out.write(record_bytes(records.OP_INDEX, named, of_topic.tobytes()))
        self.out.commit()
        self.out.patch(len(_MAGIC_1_2), self._header(at))

    def _header(self, index_pos: int) -> bytes:
        if self._old is not None:
            return self._old.header.with_values({b"index_pos": index_pos})
        return file_header_bytes({"index_pos": U64.pack(index_pos)})


def _names(declared: NewConnection) -> dict[str, bytes]:
    return {"topic": declared.topic.encode(), "type": declared.type.encode()}


def create(
    out: Appender,
    *,
    version: str = "2.0",
    compression: str = "none",
    chunk_bytes: int | None = None,
    indexed: bool = True,
) -> FormatWriter:
    """Return the writer of a bag.

    version      ``2.0``, or ``1.2`` or ``1.1`` for old tools
    compression  version 2.0: of its chunks, ``none``, ``bz2`` or ``lz4``, as ROS reads them
    chunk_bytes  version 2.0: a chunk is closed by the message with which it becomes larger, and when the file is
                 flushed; None: as in the log that is copied, else 768 KiB
    indexed      version 1.2: True: with a file header and an index
    """
    if version == "2.0":
        return BagV20Writer(out, compression, chunk_bytes)
    if compression != "none":
        raise UsageError(f"compression {compression!r}: a bag of version {version} has none")
    if version == "1.2":
        return BagV12Writer(out, indexed)
    if version == "1.1":
        return BagV11Writer(out)
    raise UsageError(f"version {version!r}; bags are written as 2.0, 1.2 or 1.1")


class BagCopier(LogCopier):
    """Copies the connections of channels, and how large chunks are."""

    writer: BagWriter

    def copy_metadata(self, log: Log) -> list[str]:
        """Make chunks as large as those of the first bag that has any."""
        self.writer.use_chunk_sizes(log.format_state or ())
        return []

    def merged_metadata(self, metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return metadata with all connections of the channels, each once."""
        return joined_metadata(metadata)

    def side_column_map(self, metadata: Mapping[str, Any], merged: Mapping[str, Any]) -> I64 | None:
        """Return the index in the merged connections of each connection of a channel."""
        return header_map(metadata, merged)

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the topic without the number of its definition, which changes where definitions are left out."""
        return str(metadata.get("topic", topic))
