"""Write MCAP files: chunks with their message index, then a summary with attachments and metadata, also those
copied.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import DefinitionError, UsageError
from logreel.formats.mcap import records
from logreel.formats.mcap.definitions import (
    NO_SCHEMA,
    Clock,
    clock_record,
    from_json,
    shifted_to_utc,
    source_facts,
    span_entry,
    to_json,
)
from logreel.formats.mcap.reader import OWN, FoundFile
from logreel.formats.mcap.records import (
    ENTRY,
    INDEX,
    LOG_TIME,
    MAGIC,
    MESSAGE_HEAD,
    PUBLISH_TIME,
    SEQUENCE,
    ChannelRecord,
    ChunkIndex,
    map_bytes,
    numbers_bytes,
    record_bytes,
    record_head,
    string_bytes,
)
from logreel.formats.mcap.schema_maker import McapChannel, McapSchemaMaker, declare
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.platform import pool
from logreel.io.source import Buffer
from logreel.kernels import mcap
from logreel.log.log import Log
from logreel.log.scan import MADE_OF, Schema
from logreel.write.format_writer import NANOSECONDS_TWICE, Payload, Payloads, RecordWriter, SourceClock
from logreel.write.log_copier import LogCopier

COMPRESSIONS = ("zstd", "lz4", "none")
#: Most threads: the one that fills the chunks does not keep more of them busy.
_MAX_THREADS = 4
#: Bytes of a chunk that is compressed at once: handing it to a thread takes longer.
_AT_ONCE = 1 << 14
#: Parts of the messages of zstd and LZ4 where memory ends.
_NO_MEMORY = ("not enough memory", "ERROR_allocation_failed")

Bytes1 = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ChunkContent:
    """The uncompressed content of a chunk.

    parts     its bytes, in order
    places    offsets of its message records, in order
    highest   highest id of the channels of the file
    size      number of bytes
    """

    parts: Sequence[Bytes1]
    places: Sequence[I64]
    highest: int
    size: int


@dataclass(frozen=True, slots=True)
class CompressedChunk:
    """A compressed chunk with its message index, ready to be written.

    head    chunk record up to the stored bytes
    stored  stored bytes
    index   message index records
    times   ns of the earliest and the latest message
    size    bytes of its uncompressed content
    ids     int64[k]  channels with messages
    counts  int64[k]  numbers of their messages
    places  int64[k]  offset of each channel's record in *index*
    """

    head: bytes
    stored: Payload
    index: memoryview
    times: tuple[int, int]
    size: int
    ids: I64
    counts: I64
    places: I64


class ChunkCompressor:
    """Compresses chunks.

    compression  ``zstd``, ``lz4`` or ``none``; raises UsageError for others
    level        of the compression; None: the library's default
    name         name of the compression in chunk records
    """

    def __init__(self, compression: str, level: int | None) -> None:
        if compression not in COMPRESSIONS:
            raise UsageError(f"compression {compression!r}; an MCAP has {', '.join(COMPRESSIONS)}")
        self.name = "" if compression == "none" else compression
        self._compression, self._level = compression, level
        self._own = threading.local()
        self._pool: Executor | None = None
        self.workers = 0 if compression == "none" else min(_MAX_THREADS, os.cpu_count() or 1)

    def compress(self, content: ChunkContent) -> CompressedChunk:
        """Compress a chunk and build its message index."""
        # Few Python operations: each one waits for the interpreter's lock, which the thread that fills chunks has.
        data, place = _joined(content.parts), _joined(content.places)
        counts = np.zeros(content.highest + 1, np.int64)
        times = mcap.count_messages(data, place, counts)
        ids, begin = np.flatnonzero(counts), np.empty_like(counts)
        stored = self._compress(data.data)
        head = struct.pack("<QQQI", *times, len(data), zlib.crc32(data.data)) + string_bytes(self.name)
        head = record_head(records.CHUNK, len(head) + 8 + len(stored)) + head + struct.pack("<Q", len(stored))
        index = np.empty(INDEX * len(ids) + ENTRY * len(place), np.uint8)
        mcap.write_index(data, place, counts, begin, index)
        return CompressedChunk(head, stored, index.data, times, len(data), ids, counts[ids], begin[ids])

    def submit(self, content: ChunkContent) -> Future[CompressedChunk]:
        """Compress a chunk in another thread."""
        if self._pool is None:
            self._pool = pool(self.workers, "logreel-pack")
        return self._pool.submit(self.compress, content)

    def close(self) -> None:
        """Wait for the threads and end them."""
        if self._pool is not None:
            self._pool.shutdown()

    def _compress(self, data: Payload) -> Payload:
        # Compressors are not thread-safe.
        if not hasattr(self._own, "compress"):
            self._own.compress = _compressor(self._compression, self._level)
        try:
            packed: Payload = self._own.compress(data)
        except Exception as error:
            # The errors of zstd and LZ4 have classes of their own also where memory ends.
            if any(text in str(error) for text in _NO_MEMORY):
                raise MemoryError from error
            raise
        return packed


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _compressor(compression: str, level: int | None) -> Callable[[Payload], Any]:
    if compression == "zstd":
        from logreel.io import zstd

        return zstd.compressor(3 if level is None else level)
    if compression == "lz4":
        import lz4.frame

        return lambda data: lz4.frame.compress(data, compression_level=level or 0)
    return lambda data: data


def attachment_record(name: str, data: bytes, media_type: str, time: int, created: int) -> bytes:
    """Return an attachment record; *time* (log time) and *created* are in ns."""
    content = struct.pack("<QQ", time, created) + string_bytes(name) + string_bytes(media_type)
    content += struct.pack("<Q", len(data)) + data
    return record_bytes(records.ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


class SummarySection:
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
        self._records: dict[int, list[bytes]] = {opcode: [] for opcode in self.KINDS}

    def add_schema(self, number: int, schema: Schema) -> bytes:
        """Add a schema, and return its record."""
        content = struct.pack("<H", number) + string_bytes(schema.name) + string_bytes(schema.encoding)
        return self.repeat(records.SCHEMA, content + string_bytes(schema.raw))

    def add_channel(self, channel: ChannelRecord) -> bytes:
        """Add a channel, and return its record."""
        content = struct.pack("<HH", channel.id, channel.schema) + string_bytes(channel.topic)
        return self.repeat(
            records.CHANNEL, content + string_bytes(channel.encoding) + map_bytes(channel.metadata)
        )

    def repeat(self, opcode: int, content: bytes) -> bytes:
        """Return a record, which is added to the summary, too."""
        self._records[opcode].append(record_bytes(opcode, content))
        return self._records[opcode][-1]

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

    def add_chunk_index(self, chunk: ChunkIndex) -> None:
        """Add the record of a chunk; its messages are added by ``add_counts`` and ``add_times``."""
        content = struct.pack("<QQQQ", chunk.start, chunk.end, chunk.pos, chunk.length) + string_bytes(
            chunk.offsets
        )
        content += struct.pack("<Q", chunk.index_length) + string_bytes(chunk.compression)
        self.repeat(records.CHUNK_INDEX, content + struct.pack("<QQ", chunk.stored, chunk.size))

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
        for opcode in self.KINDS:
            group = b"".join(self._records[opcode])
            if group:
                offsets += record_bytes(
                    records.SUMMARY_OFFSET, struct.pack("<BQQ", opcode, start + len(out), len(group))
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


class Origins:
    """Collects the ``logreel`` metadata records of logs; values of earlier logs take precedence."""

    def __init__(self) -> None:
        self._logs = 0
        self._records: list[dict[str, str]] = []
        self._metadata: dict[str, Any] = {}
        self._parameters: dict[str, Any] = {}

    def add(self, name: str, record: Mapping[str, str] | None) -> list[str]:
        """Add the record (or None) of the log called *name*; return a sentence for each conflicting value."""
        self._logs += 1
        if record is None:
            return []
        self._records.append(dict(record))
        parameters = from_json(record.get("parameters", "")).get("parameters", [])
        by_name = {
            str(parameter.get("name")): parameter
            for parameter in parameters
            if isinstance(parameter, Mapping)
        }
        return [
            *_merge("metadata", self._metadata, from_json(record.get("metadata", "")), name),
            *_merge("parameter", self._parameters, by_name, name),
        ]

    def record(self, clock: SourceClock | None) -> dict[str, str] | None:
        """Return one record for all logs; None if no log has a record."""
        if not self._records:
            return None
        first = self._records[0]
        if len(self._records) == self._logs and all(origin == first for origin in self._records):
            return first
        merged = dict(first)
        if len({origin.get("format") for origin in self._records}) > 1 or len(self._records) < self._logs:
            # The merged log cannot be converted back to one format.
            merged = {k: v for k, v in merged.items() if k not in ("format", "version")}
        if clock is not None:
            merged = {k: v for k, v in merged.items() if k not in ("utc_offset", "span")}
            merged |= {"epoch": clock.epoch, "clock": "log"}
            merged |= {} if clock.utc_offset is None else {"utc_offset": str(clock.utc_offset)}
        merged["metadata"] = to_json(self._metadata)
        if self._parameters:
            merged["parameters"] = to_json({"parameters": list(self._parameters.values())})
        return merged


def _merge(what: str, known: dict[str, Any], more: Mapping[str, Any], name: str) -> Iterator[str]:
    """Add *more* to *known*; yield a sentence for each entry that *known* has with another value."""
    for key, value in more.items():
        if known.setdefault(key, value) != value:
            yield f"{what} {key!r} has another value in {name}: the first one is kept"


CHUNK_BYTES = 1 << 20
#: Uncompressed bytes of chunks that may wait for compression in other threads.
WAITING_BYTES = 32 << 20
#: Largest chunk_bytes, and largest message: the last message of a chunk can double its size.
LARGEST = (1 << 30) - 1
_U64 = np.dtype("<u8")
#: Profiles of converted logs, by the languages of all definitions.
_PROFILES = {"ros1": {"ros1msg"}, "ros2": {"ros2msg", "ros2idl"}}


class McapWriter(RecordWriter):
    """Writes version 0.

    compression  of chunks: ``zstd``, ``lz4`` or ``none``
    level        of the compression; None: the default of its library
    chunk_bytes  a chunk is closed by the message with which it becomes larger, and when the file is flushed
    profile      in the header; None: ``ros1`` or ``ros2`` for a converted log of only such messages, else empty
    library      name of the writing program in the header
    """

    title = "an MCAP"
    earliest, latest, largest = 0, (1 << 63) - 1, LARGEST
    side_column_names = ("publish_time", "sequence")
    appends_only = True

    def __init__(
        self,
        out: Appender,
        *,
        compression: str = "zstd",
        level: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        profile: str | None = None,
        library: str = f"logreel {__version__}",
    ) -> None:
        self.schemas: McapSchemaMaker = McapSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        self._compressor = ChunkCompressor(compression, level)
        if not 0 < chunk_bytes <= LARGEST:
            raise UsageError(f"chunks of {chunk_bytes} bytes; an MCAP has chunks of 1 to {LARGEST}")
        self._limit, self.profile, self._library = chunk_bytes, profile, library
        #: Numbers of schemas in the file, 0: none; and the highest one.
        self._numbers: dict[Schema, int] = {}
        self._highest_schema = 0
        self._declared: set[int] = set()
        #: Ids of the channels in the file, by their numbers; and the highest one.
        self._ids: list[int] = []
        self._highest_id = 0
        self._summary, self._crc, self._begun = SummarySection(), 0, False
        #: Whether messages are written outside of chunks, and whether the checksum of the data section is unknown.
        self._loose = self._lacks_crc = False
        #: Description of the log from which the continued one was converted, with start and end of all messages.
        self._old_origin: dict[str, str] | None = None
        self._span: tuple[int, int] | None = None
        #: Records of the logs that the source logs were converted from; written before the first channel.
        self._origins = Origins()
        self._waiting: deque[tuple[int, Future[CompressedChunk]]] = deque()
        self._waiting_bytes = 0
        self._begin_chunk()

    # --------------------------------------------------------------------------------------------- channels

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel.

        metadata  ``message_encoding`` if it does not follow from the schema; text by name; other values are stored as
                  JSON
        """
        self._write_origins()
        channel_id = self._highest_id + 1
        if channel_id >= 1 << 16:
            raise DefinitionError(f"channel {topic!r}: an MCAP has at most {(1 << 16) - 1} channels")
        declared = declare(topic, schema, metadata)
        if declared.schema == NO_SCHEMA:
            self._numbers[NO_SCHEMA] = 0
        elif declared.schema not in self._numbers:
            self._highest_schema += 1
            if self._highest_schema >= 1 << 16:
                raise DefinitionError(f"channel {topic!r}: an MCAP has at most {(1 << 16) - 1} schemas")
            self._numbers[declared.schema] = self._highest_schema
        self._add_channel(channel_id, declared, True)

    def _add_channel(self, channel_id: int, declared: McapChannel, is_new: bool) -> None:
        """Add a channel; *is_new*: its record is not in the file."""
        self._ids.append(channel_id)
        self._highest_id = max(self._highest_id, channel_id)
        self.schemas.channels.append(declared)
        self._headers.add(
            struct.pack("<BQHIQQ", records.MESSAGE, 0, channel_id, 0, 0, 0),
            size_at=1,
            size_width=8,
            size_add=MESSAGE_HEAD - records.HEAD,
            time_at=MESSAGE_HEAD - LOG_TIME,
            time_kind=NANOSECONDS_TWICE,
        )
        self._fresh.append(is_new)

    def go_on(self, log: Log, summary: SummarySection, crc: int | None, loose: bool) -> None:
        """Continue *log*, whose header and data section are in the file.

        summary  of these
        crc      CRC-32 of the bytes in the file; None if it is unknown
        loose    write messages outside of chunks, as those of the log are: with a single chunk, readers that use the
                 index would only find the messages in it
        """
        file: FoundFile = log.format_state
        self._summary, self._begun, self._loose = summary, True, loose
        self._crc, self._lacks_crc = crc or 0, crc is None
        for number, schema in file.schemas.items():
            self._numbers.setdefault(schema, number)
            self._declared.add(number)
        self._highest_schema = max(file.schemas, default=0)
        if Clock.read(file.origin or {}).span is not None and log.start is not None and log.end is not None:
            self._old_origin, self._span = file.origin, (log.start, log.end)
        for channel_id, ch in zip(sorted(file.channels), log.channels.values(), strict=True):
            self._add_channel(channel_id, declare(ch.topic, ch.schema, ch.metadata), False)
            self.old_channels[ch.topic] = ch.schema

    def add_origin(self, name: str, record: Mapping[str, str] | None) -> list[str]:
        """Add the record (or None) of the log that source log *name* was converted from; return what conflicts.

        One record for all source logs is written before the first channel, or at the end if there is none.
        """
        return self._origins.add(name, record)

    def _write_origins(self) -> None:
        """Write the record of the logs that the source logs were converted from, once all of them are known."""
        merged, self._origins = self._origins.record(self.source_clock), Origins()
        if merged is not None:
            self.metadata(OWN, merged)

    def _definition(self, number: int) -> bytes:
        """Return the channel record, after the schema record if that was not written yet."""
        channel = self.schemas.channels[number]
        schema = self._numbers[channel.schema]
        made = b""
        if schema and schema not in self._declared:
            self._declared.add(schema)
            made = self._summary.add_schema(schema, channel.schema)
        return made + self._summary.add_channel(
            ChannelRecord(self._ids[number], schema, channel.topic, channel.encoding, channel.metadata)
        )

    def declare(self, number: int) -> None:
        """Add schema and channel record of a channel to the chunk."""
        if self._loose:
            self._write(self._definition(number))
        else:
            self._put(np.frombuffer(self._definition(number), np.uint8))

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; without side columns their publish times are the log times, their sequence numbers 0."""
        if payloads.side_columns is not None and payloads.side_columns.shape[1] != len(
            self.side_column_names
        ):
            raise UsageError(
                f"an MCAP stores two numbers with each message: {' and '.join(self.side_column_names)}"
            )
        super().messages(channel, time, payloads)

    def batch_limit(self) -> int:
        """Return the bytes that may still be added to the chunk."""
        return max(0, self._limit - self._bytes)

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Add records to the chunk, and close it if it is full."""
        if side_columns is not None:
            for values, before, width in zip(side_columns.T, (PUBLISH_TIME, SEQUENCE), (8, 4), strict=True):
                raw = values.astype(_U64).view(np.uint8).reshape(-1, 8)[:, :width]
                made[(place + MESSAGE_HEAD - before)[:, None] + np.arange(width)] = raw
        if self._loose:
            self._write(made.data)
            self.out.commit()
            self._summary.add_messages(np.array(self._ids, np.int64)[channel], time)
            self._extend_span(int(time.min()), int(time.max()))
            return
        self._places.append(place + self._bytes)
        self._put(made)
        if self._bytes > self._limit:
            self._close_chunk()

    def _put(self, part: NDArray[np.uint8]) -> None:
        self._parts.append(part)
        self._bytes += part.nbytes

    def _begin_chunk(self) -> None:
        self._parts: list[NDArray[np.uint8]] = []
        self._bytes = 0
        self._places: list[I64] = []

    def _close_chunk(self) -> None:
        """Begin another chunk; the previous one is compressed in a thread, and chunks are written in order."""
        content = ChunkContent(self._parts, self._places, self._highest_id, self._bytes)
        self._begin_chunk()
        if not self._compressor.workers or (content.size <= _AT_ONCE and not self._waiting):
            self._write_chunk(self._compressor.compress(content))
            return
        self._waiting.append((content.size, self._compressor.submit(content)))
        self._waiting_bytes += content.size
        while self._waiting and (self._waiting_bytes > WAITING_BYTES or self._waiting[0][1].done()):
            self._write_first()

    def _write_first(self) -> None:
        size, packed = self._waiting.popleft()
        self._waiting_bytes -= size
        self._write_chunk(packed.result())

    def _catch_up(self) -> None:
        """Write all chunks that are being compressed, before them the header."""
        while self._waiting:
            self._write_first()
        self._begin()

    def _write_chunk(self, packed: CompressedChunk) -> None:
        self._begin()
        self._summary.add_chunk(self.out.tell(), packed, self._compressor.name)
        self._extend_span(*packed.times)
        self._write(packed.head)
        self._crc = zlib.crc32(packed.stored, self._crc)
        self.out.give(packed.stored)
        self._write(packed.index)
        self.out.commit()

    def _extend_span(self, start: int, end: int) -> None:
        if self._span is not None:
            self._span = min(self._span[0], start), max(self._span[1], end)

    def _write_old_origin(self) -> None:
        """Describe the log from which the continued one was converted again, with the number of messages by now.

        Readers take start and end from it as long as the file has that number of messages.
        """
        if self._old_origin is not None and self._span is not None:
            made = {
                n
                for n, channel in zip(self._ids, self.schemas.channels, strict=True)
                if MADE_OF in channel.metadata
            }
            count = sum(count for n, count in self._summary.counts.items() if n not in made)
            origin = self._old_origin | source_facts(self._old_origin)
            self.metadata(OWN, origin | span_entry((*self._span, count)))

    # ------------------------------------------------------------------------------- records of other kinds

    def metadata(self, name: str, value: Any) -> None:
        """Append a metadata record: a map of text by name, or a list of such, one record each."""
        for entries in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(entries, Mapping):
                raise UsageError(
                    f"metadata {name!r} of an MCAP is a map of text by name, not {entries!r:.40}"
                )
            text = {str(k): v if isinstance(v, str) else to_json(v) for k, v in entries.items()}
            self._catch_up()
            pos = self.out.tell()
            self._write(record_bytes(records.METADATA, string_bytes(name) + map_bytes(text)))
            self.out.commit()
            self._summary.add_metadata(pos, self.out.tell() - pos, name)

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Append an attachment."""
        self._catch_up()
        self.attach(name, data, media_type, self._summary.end, 0)

    def attach(self, name: str, data: bytes, media_type: str, time: int, created: int) -> None:
        """Append an attachment; log time and creation time in ns."""
        self._catch_up()
        pos = self.out.tell()
        self._write(attachment_record(name, data, media_type, time, created))
        self.out.commit()
        self._summary.add_attachment(pos, self.out.tell() - pos, (time, created), len(data), name, media_type)

    # ---------------------------------------------------------------------------------------------- the file

    def _write(self, data: Payload) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self.out.write(data)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            # A profile describes files with one message encoding.
            profile = "" if self.mixes_encodings else self.profile or ""
            self._write(
                MAGIC + record_bytes(records.HEADER, string_bytes(profile) + string_bytes(self._library))
            )

    def commit(self) -> None:
        """Close the chunk, so that its messages can be read."""
        if self._places:
            self._close_chunk()
        self._catch_up()
        self.out.commit()

    def finish(self) -> None:
        """Define the channels without messages, and write the summary."""
        self._write_origins()
        self._catch_up()
        self._write_old_origin()
        self._compressor.close()
        for number in np.flatnonzero(self._fresh.rows).tolist():
            self._write(self._definition(number))
        crc = 0 if self._lacks_crc else self._crc
        self._write(record_bytes(records.DATA_END, struct.pack("<I", crc)))
        self.out.write(self._summary.ending(self.out.tell()))
        self.out.commit()


class McapCopier(LogCopier):
    """Copies metadata and attachments; of logs of other formats also parameters and clock."""

    writer: McapWriter

    def __init__(self, writer: McapWriter) -> None:
        super().__init__(writer)
        #: Metadata and attachments that were copied.
        self._copied: set[tuple[Any, ...]] = set()

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy metadata and attachments; what is the same in several logs is copied once.

        With the clock ``utc``, times of a log on another clock are shifted as those of its messages.
        """
        state: FoundFile = log.format_state
        shift = log.utc_offset or 0 if self.clock == "utc" else 0
        origin = state.origin
        if origin is not None and shift:
            origin = shifted_to_utc(origin, shift)
        masking = self.masking
        if masking is not None and origin is not None:
            origin = {name: str(masking.value(name, value)) for name, value in origin.items()}
        notes = self.writer.add_origin(log.name, origin)
        for name, entries in state.metadata:
            key: tuple[Any, ...] = ("metadata", name, tuple(entries.items()))
            if name != OWN and key not in self._copied and name not in self.replaced_metadata:
                if masking is not None:
                    name, entries = masking.name("metadata", name), masking.value(name, entries)
                self.writer.metadata(name, entries)
                self._copied.add(key)
        for attached, a in zip(state.attachments, log.attachments.values(), strict=True):
            data = a.read()
            key = ("attachment", attached.name, attached.log_time, attached.create_time, data)
            if key not in self._copied:
                time, created, name = max(0, attached.log_time + shift), attached.create_time, attached.name
                if masking is not None:
                    time, created = masking.time(time), masking.time(created)
                    data, name = masking.content(name, data), masking.name("attachment", name)
                self.writer.attach(name, data, attached.media_type, time, created)
                self._copied.add(key)
        return notes

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import all metadata, parameters and attachments of a log, so that it can be converted back."""
        writer = self.writer
        plain = [ch for ch in log.channels.values() if not ch.reserved]
        if writer.profile is None and plain:
            languages = {ch.schema.encoding for ch in plain}
            writer.profile = next((name for name, known in _PROFILES.items() if languages <= known), None)
        # Readers use start and end as long as the file has this number of messages.
        utc = self.clock == "utc" and log.utc_offset is not None
        shift = log.utc_offset or 0 if utc else 0
        start, end = (None if time is None else time + shift for time in (log.start, log.end))
        span = start, end, int(log.index.counts.sum())
        parameters = [
            {
                "name": p.name,
                "type": p.type,
                "value": p.value,
                "changes": [[c.time + shift, c.value] for c in p.changes],
                "defaults": dict(p.defaults),
            }
            for p in log.parameters.values()
        ]
        record = {"format": log.format, "version": log.version}
        record |= clock_record(log.epoch, log.utc_offset, utc, span)
        record["metadata"] = to_json(log.metadata)
        record |= {"parameters": to_json({"parameters": parameters})} if parameters else {}
        notes = writer.add_origin(log.name, record)
        for name, attachment in log.attachments.items():
            time = 0 if attachment.time is None else max(0, attachment.time + shift)
            data, created = attachment.read(), attachment.created or 0
            key = ("attachment", name, time, created, data)
            if key not in self._copied:
                writer.attach(name, data, attachment.media_type, time, created)
                self._copied.add(key)
        return notes
