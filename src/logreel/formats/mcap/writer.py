"""MCAP files being written: chunks with their message index, then a summary."""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import DefinitionError, UsageError
from logreel.formats.mcap import records
from logreel.formats.mcap.channels import NO_SCHEMA, OWN, dumped
from logreel.formats.mcap.chunk_compressor import ChunkCompressor, ChunkContent, CompressedChunk
from logreel.formats.mcap.clock import clock_record, on_utc
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.origins import Origins
from logreel.formats.mcap.records import (
    LOG_TIME,
    MAGIC,
    MESSAGE_HEAD,
    PUBLISH_TIME,
    SEQUENCE,
    pairs,
    record,
    string,
)
from logreel.formats.mcap.write_channels import Declared, declare
from logreel.formats.mcap.write_summary import Summary, attachment_record
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.layout.layout import Layout
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.format_writer import Payload
from logreel.write.payloads import Payloads
from logreel.write.record_headers import NANOSECONDS_TWICE
from logreel.write.record_writer import RecordWriter

CHUNK_BYTES = 1 << 20
#: Bytes of chunks that are packed meanwhile: as many as may come at once, so that nobody waits for others.
WAITING_BYTES = 32 << 20
#: Of a chunk before its last message, which can be as large again.
LARGEST = (1 << 30) - 1
_U64 = np.dtype("<u8")


class McapWriter(RecordWriter):
    """Writes version 0.

    compression  of chunks: ``zstd``, ``lz4`` or ``none``
    level        of the compression, None: as the library has it
    chunk_bytes  a chunk is closed by the message with which it outgrows this, and when the file is flushed
    profile      what the header says of the conventions that the file follows; None: ``ros1`` where all is of ROS 1
    library      what the header says of who wrote it
    """

    title, encoding = "an MCAP", "ros1msg"
    earliest, latest, largest = 0, (1 << 63) - 1, LARGEST
    keeps = ("publish_time", "sequence")
    forward = True

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
        super().__init__(out)
        self._compressor = ChunkCompressor(compression, level)
        if not 0 < chunk_bytes <= LARGEST:
            raise UsageError(f"chunks of {chunk_bytes} bytes; an MCAP has chunks of 1 to {LARGEST}")
        self._limit, self._profile, self._library = chunk_bytes, profile, library
        self._channels: list[Declared] = []
        self._schemas: dict[Schema, int] = {}
        self._declared: set[int] = set()
        self._summary, self._crc, self._begun = Summary(), 0, False
        self._inherited: set[tuple[Any, ...]] = set()
        self._origins = Origins()
        self._waiting: deque[tuple[int, Future[CompressedChunk]]] = deque()
        self._waiting_bytes = 0
        self._begin_chunk()

    # --------------------------------------------------------------------------------------------- channels

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel.

        metadata  ``message_encoding`` where that does not follow from the schema; text by name; what is no text is
                  kept as JSON
        """
        self._tell_origins()
        if number >= (1 << 16) - 1:
            raise DefinitionError(f"channel {topic!r}: an MCAP has at most {(1 << 16) - 1} channels")
        declared = declare(topic, schema, metadata)
        if declared.schema not in self._schemas:
            self._schemas[declared.schema] = 0 if declared.schema == NO_SCHEMA else len(self._schemas) + 1
        self._channels.append(declared)
        self._headers.add(
            struct.pack("<BQHIQQ", records.MESSAGE, 0, number + 1, 0, 0, 0),
            size_at=1,
            size_width=8,
            size_add=MESSAGE_HEAD - records.HEAD,
            time_at=MESSAGE_HEAD - LOG_TIME,
            time_kind=NANOSECONDS_TWICE,
        )
        self._fresh = np.append(self._fresh, True)

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """A type of ROS 1, named after the topic."""
        from logreel.schemas import ros1msg

        name = ros1msg.type_name(topic)
        return Schema(name, self.encoding, ros1msg.definition_from_layout(layout, name))

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's definition, where that is a walk of bytes."""
        return self._channels[number].layout()

    def _tell_origins(self) -> None:
        """Tell what the logs inherited from were converted from, once all of them are known."""
        found, self._origins = self._origins.record(self.source_clock), Origins()
        if found is not None:
            self.metadata(OWN, found)

    def _definition(self, number: int) -> bytes:
        """Schema (if it was not written) and channel record."""
        one = self._channels[number]
        schema = self._schemas[one.schema]
        made = b""
        if schema and schema not in self._declared:
            self._declared.add(schema)
            content = struct.pack("<H", schema) + string(one.schema.name) + string(one.schema.encoding)
            made = self._summary.repeat(records.SCHEMA, content + string(one.schema.raw))
        content = struct.pack("<HH", number + 1, schema) + string(one.topic) + string(one.encoding)
        return made + self._summary.repeat(records.CHANNEL, content + pairs(one.metadata))

    def declare(self, number: int) -> None:
        """Put the definition of a channel into the chunk."""
        self._put(np.frombuffer(self._definition(number), np.uint8))

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages with their publish times and sequence numbers, which are the log times and 0 elsewhere."""
        if payloads.side_columns is not None and payloads.side_columns.shape[1] != len(self.keeps):
            raise UsageError(f"beside the messages of an MCAP lie two numbers: {' and '.join(self.keeps)}")
        super().messages(channel, time, payloads)

    def batch_limit(self) -> int:
        """Bytes that the chunk may still grow by."""
        return max(0, self._limit - self._bytes)

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Add records to the chunk, and close it if they fill it."""
        if side_columns is not None:
            for values, before, width in zip(side_columns.T, (PUBLISH_TIME, SEQUENCE), (8, 4), strict=True):
                raw = values.astype(_U64).view(np.uint8).reshape(-1, 8)[:, :width]
                made[(place + MESSAGE_HEAD - before)[:, None] + np.arange(width)] = raw
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
        """Begin another chunk; the one before is packed meanwhile, and written when it is its turn."""
        content = ChunkContent(self._parts, self._places, len(self._channels), self._bytes)
        self._begin_chunk()
        if not self._compressor.workers:
            self._write_chunk(self._compressor.pack(content))
            return
        self._waiting.append((content.size, self._compressor.later(content)))
        self._waiting_bytes += content.size
        while self._waiting and (self._waiting_bytes > WAITING_BYTES or self._waiting[0][1].done()):
            self._write_first()

    def _write_first(self) -> None:
        size, packed = self._waiting.popleft()
        self._waiting_bytes -= size
        self._write_chunk(packed.result())

    def _catch_up(self) -> None:
        """Write the chunks that are being packed, and whatever comes before them."""
        while self._waiting:
            self._write_first()
        self._begin()

    def _write_chunk(self, packed: CompressedChunk) -> None:
        self._begin()
        self._summary.chunk(self.out.tell(), packed, self._compressor.name)
        self._write(packed.head)
        self._crc = zlib.crc32(packed.stored, self._crc)
        self.out.give(packed.stored)
        self._write(packed.index)
        self.out.commit()

    # ------------------------------------------------------------------------------- records of other kinds

    def metadata(self, name: str, value: Any) -> None:
        """Append a metadata record: a map of text by name, or a list of such, one record each."""
        for one in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(one, Mapping):
                raise UsageError(f"metadata {name!r} of an MCAP is a map of text by name, not {one!r:.40}")
            text = {str(k): v if isinstance(v, str) else dumped(v) for k, v in one.items()}
            self._catch_up()
            pos = self.out.tell()
            self._write(record(records.METADATA, string(name) + pairs(text)))
            self.out.commit()
            self._summary.metadata(pos, self.out.tell() - pos, name)

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Append an attachment."""
        self._catch_up()
        self._attach(name, data, media_type, self._summary.end, 0)

    def _attach(self, name: str, data: bytes, media_type: str, time: int, created: int) -> None:
        self._catch_up()
        pos = self.out.tell()
        self._write(attachment_record(name, data, media_type, time, created))
        self.out.commit()
        self._summary.attachment(pos, self.out.tell() - pos, (time, created), len(data), name, media_type)

    def copy_metadata(self, log: Log) -> list[str]:
        """Take over metadata and attachments, those of several logs that are the same once.

        With the clock ``utc`` all times of a log on another clock are those that its messages get.
        """
        state: FoundFile = log.format_state
        shift = log.utc_offset or 0 if self.clock == "utc" else 0
        origin = next((found for name, found in state.metadata if name == OWN), None)
        if origin is not None and shift:
            origin = on_utc(origin, shift)
        told = self._origins.take(log.name, origin)
        for name, found in state.metadata:
            key: tuple[Any, ...] = ("metadata", name, tuple(found.items()))
            if name != OWN and key not in self._inherited:
                self.metadata(name, found)
                self._inherited.add(key)
        for one, a in zip(state.attachments, log.attachments.values(), strict=True):
            data = a.read()
            key = ("attachment", one.name, one.log_time, one.create_time, data)
            if key not in self._inherited:
                time = max(0, one.log_time + shift)
                self._attach(one.name, data, one.media_type, time, one.create_time)
                self._inherited.add(key)
        return told

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Take over all that a log of another format tells, so that it can be had back."""
        plain = [ch for ch in log.channels.values() if not ch.reserved]
        if self._profile is None and plain and all(ch.schema.encoding == "ros1msg" for ch in plain):
            self._profile = "ros1"
        # The bounds hold as long as no message was taken out.
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
        told = {"format": log.format, "version": log.version}
        told |= clock_record(log.epoch, log.utc_offset, utc, span)
        told["metadata"] = dumped(log.metadata)
        self.metadata(OWN, told | ({"parameters": dumped({"parameters": parameters})} if parameters else {}))
        for name, one in log.attachments.items():
            time = 0 if one.time is None else max(0, one.time + shift)
            self._attach(name, one.read(), one.media_type, time, one.created or 0)
        return []

    # ---------------------------------------------------------------------------------------------- the file

    def _write(self, piece: Payload) -> None:
        self._crc = zlib.crc32(piece, self._crc)
        self.out.write(piece)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            # Profiles are about one encoding of all messages.
            profile = "" if self.mixed else self._profile or ""
            self._write(MAGIC + record(records.HEADER, string(profile) + string(self._library)))

    def settle(self) -> None:
        """Close the chunk: what is in it can be read from here on."""
        if self._places:
            self._close_chunk()
        self._catch_up()
        self.out.commit()

    def finish(self) -> None:
        """Define the channels without messages, and write the summary."""
        self._tell_origins()
        self._catch_up()
        self._compressor.close()
        for number in np.flatnonzero(self._fresh).tolist():
            self._write(self._definition(number))
        self._write(record(records.DATA_END, struct.pack("<I", self._crc)))
        self.out.write(self._summary.ending(self.out.tell()))
        self.out.commit()
