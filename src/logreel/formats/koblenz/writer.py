"""Write Koblenz logs, new ones, copies and continued ones: messages as they come, and last the index at the front.

A channel of another log becomes a message type, named by its topic.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.formats.koblenz.definitions import (
    RAW,
    UNCOMPRESSED,
    USUAL_VERSION,
    Kind,
    MessageType,
    class_name,
    definition_of,
    described_type,
    pack_types,
    read_types,
    registered_types,
    type_id,
)
from logreel.formats.koblenz.framing import MAJOR, MAX_UNKNOWN, MINOR, TimeIndexBuilder, seconds_between
from logreel.formats.koblenz.records import (
    HEAD,
    HEADER,
    MAGIC,
    MARKS,
    MAX_ID,
    MAX_SIZE,
    MAX_VERSION,
    SIZE_READINGS,
    VALID_MARK,
    pack_end_mark,
    pack_head,
    pack_utc_note,
    read_utc_note,
)
from logreel.formats.koblenz.scan_builder import FormatState
from logreel.index.channel_index import FieldAt
from logreel.index.merge import in_file_order
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct
from logreel.layout.numpy_columns import Column, from_values
from logreel.layout.program import compile_layout
from logreel.log.log import Log
from logreel.log.scan import LATIN_1, ORIGINAL, Schema
from logreel.write.format_writer import (
    Abilities,
    FormatWriter,
    Payloads,
    RecordHeaders,
    SchemaMaker,
    SomeRefusedError,
    TextChannel,
    TextColumns,
)
from logreel.write.log_copier import Excerpt, LogCopier, joined_ranges, write_ranges

_VERSION = re.compile(r"[^/]*@(\d{1,5})(/.*)?", re.DOTALL)
_ID = re.compile(r"0x([0-9A-Fa-f]{1,8})")
#: The field ``compressed`` of a picture.
_COMPRESSED = FieldAt(4, 4)


def kind_of(
    topic: str,
    schema: Schema,
    metadata: Mapping[str, Any],
    own: Mapping[int, MessageType] = MappingProxyType({}),
) -> Kind:
    """Return type and version of a channel.

    Both come from *metadata* (``type_id``, ``version``); else the type is the class that *schema* names, and the
    version that of the topic or of the description. Raises DefinitionError for an invalid type, UsageError for a topic
    that reading would not give: topics follow from types.

    own  types that the log describes, by id
    """
    if schema.encoding != "koblenz":
        raise DefinitionError(f"channel {topic!r} of a Koblenz log needs a schema of encoding 'koblenz'")
    number = _ID.fullmatch(str(metadata.get("type_id", schema.name)))
    kind_id = int(number[1], 16) if number else type_id(schema.name)
    if not 0 < kind_id < MAX_ID:
        raise DefinitionError(f"channel {topic!r}: {schema.name!r:.60} cannot be the name of a message type")
    known = registered_types().get(kind_id) or own.get(kind_id)
    stated = _VERSION.fullmatch(topic)
    usual = known.version if known else USUAL_VERSION
    version = int(metadata.get("version", stated[1] if stated else usual))
    if not 0 <= version < MAX_VERSION:
        raise DefinitionError(f"channel {topic!r}: there is no version {version}")
    message_kind = Kind(kind_id, version, known)
    several = message_kind.is_described and known is not None and known.instance
    if not (topic.startswith(f"{message_kind.name}/") if several else topic == message_kind.name):
        due = f"'{message_kind.name}/' and a sensor" if several else repr(message_kind.name)
        raise UsageError(f"{topic!r}: a Koblenz log names channels by their types; this one is {due}")
    return message_kind


def layout_of(message_kind: Kind, topic: str) -> Layout:
    """Return the Layout that encodes fields of a channel."""
    return UNCOMPRESSED if topic.endswith("@uncompressed") else message_kind.layout


def misfits(message_kind: Kind, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether the content of each payload ends elsewhere than the payload."""
    layout = message_kind.layout
    bad = size < layout.measure.least
    if layout is RAW:
        return bad
    described = ~bad
    if message_kind.is_described and message_kind.known and "compressed" in message_kind.known.instance:
        described[described] = _COMPRESSED.read(data, start[described]) != 0
    starts, ends = start[described], (start + size)[described]
    program = compile_layout(layout)
    status = np.zeros(len(starts), np.uint8)
    kernel.count(data, starts, ends, program.ops, np.zeros(len(program.columns), np.int64), status)
    bad[described] = status != kernel.OK
    return bad


_TEXT = Layout(
    Struct((Field("level", Scalar("int32")), Field("source", String()), Field("text", String()))), "TextM"
)


def _text_columns(lines: TextColumns) -> dict[str, Column]:
    level = Column("int32", len(lines.time), lines.level.astype(np.int32))
    return {"level": level, "source": lines.source, "text": lines.text}


def _latin_1(column: Column) -> Column:
    """Return text as strings of its bytes in Latin-1; in UTF-8 what has none."""
    return from_values(String(), [_bytes_of(text) for text in column.to_pylist()])


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


class KoblenzSchemaMaker(SchemaMaker):
    """Message types; *layouts* are those of the channels, one field ``payload`` for types without description."""

    encoding = "koblenz"
    abilities = Abilities()

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.layouts: list[Layout] = []
        #: Names of the fields of each channel whose texts are Latin-1.
        self.latin_1: list[frozenset[str]] = []
        #: Types that the log describes, by id.
        self.own: dict[int, MessageType] = {}

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type that *topic* begins with, whatever the fields are."""
        schema = Schema(topic.partition("/")[0].partition("@")[0], self.encoding)
        try:
            kind_of(topic, schema, {})
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a type of its own named after *topic*, with a description of its fields."""
        return Schema(topic, self.encoding, definition_of(layout))

    def text_channel(self) -> TextChannel:
        """Return a type of its own for lines of text, with syslog levels; -1: unknown."""
        schema = Schema("TextM", self.encoding, definition_of(_TEXT))
        return TextChannel("TextM", schema, tuple(range(8)), -1, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return the class name of a type for *topic*: topics are types."""
        return class_name(topic, registered_types().keys() | self.own.keys())

    def encode(
        self, number: int, columns: Mapping[str, Column], rows: int, records: I64 | None = None
    ) -> Payloads:
        """Return the payloads of messages; texts are Latin-1 where they were in the log that is written again."""
        latin_1 = {name: _latin_1(columns[name]) for name in self.latin_1[number] & columns.keys()}
        return super().encode(number, {**columns, **latin_1}, rows, records)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's type."""
        return self.layouts[number]


_MS = 10**6
#: Offset of the time in a message header.
_TIME_AT = 13
#: Position of the number of index entries, which the entries follow.
_INDEX_AT = 8


class KoblenzWriter(FormatWriter):
    """Writes version 1.1.

    size_reading  what the size of a message counts: ``A`` as described, ``B`` or ``C`` for readers that expect these
    valid_mark    mark of messages: 0x49, or 0x31 or 0x01 for readers that expect these
    """

    title = "a Koblenz log"
    epoch = "start"
    largest = MAX_SIZE - HEAD

    def __init__(self, out: Appender, *, size_reading: str = "A", valid_mark: int = VALID_MARK) -> None:
        self.schemas: KoblenzSchemaMaker = KoblenzSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        readings = {reading.name: reading for reading in SIZE_READINGS}
        if size_reading not in readings:
            raise UsageError(f"size_reading {size_reading!r}; there are {', '.join(readings)}")
        if valid_mark not in MARKS:
            known = ", ".join(f"0x{mark:02X}" for mark in MARKS)
            raise UsageError(f"valid_mark {valid_mark!r}; there are {known}")
        self.size_reading, self.mark = readings[size_reading], valid_mark
        self._kinds: list[Kind] = []
        #: Ids of types whose channels are copied without being added here.
        self.declared: set[int] = set()
        self._headers = RecordHeaders()
        self.version = struct.pack("<HH", MAJOR, MINOR)
        self._begun = self._complete = False
        #: Number of index entries that room is left for.
        self.index_room = 0
        #: Whether messages come from a log of this format: their payloads were checked when it was read.
        self.are_checked = False
        #: Whether the UTC time of the source follows from its fixes.
        self.fixes_give_utc = False
        #: UTC offset in ns that the log states which is continued, or None.
        self._utc_note: int | None = None
        self.time_index = TimeIndexBuilder()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel; see ``write_kinds.kind_of``."""
        known = registered_types()
        if schema.text and type_id(schema.name) not in known:
            version, original = int(metadata.get("version", USUAL_VERSION)), str(metadata.get(ORIGINAL, ""))
            described = described_type(schema.name, schema.text, version, original)
            self.schemas.own[described.id] = described
        message_kind = kind_of(topic, schema, metadata, self.schemas.own)
        unknown = {(k.type, k.version) for k in (*self._kinds, message_kind) if k.known is None}
        if len(unknown) > MAX_UNKNOWN:
            raise UsageError(f"more than {MAX_UNKNOWN} types that nothing describes")
        self._kinds.append(message_kind)
        self.schemas.layouts.append(layout_of(message_kind, topic))
        self.schemas.latin_1.append(frozenset(map(str, metadata.get(LATIN_1, ()))))
        head = pack_head(0, self.mark, message_kind.type, message_kind.version, 0.0)
        self._headers.add(head, size_at=0, size_add=self.size_reading.base, time_at=_TIME_AT, time_kind=_MS)

    # --------------------------------------------------------------------------------------------- messages

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading gives it: logs have milliseconds as float64."""
        return np.rint(time / _MS * _MS).astype(np.int64)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; where payloads are not what their types are, a UsageError comes after the others."""
        joined = payloads.in_one()
        bad = self._misfits(channel, joined)
        good = slice(None) if not bad.any() else np.flatnonzero(~bad)
        self._append(channel[good], time[good], joined.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            name = self._kinds[int(channel[row])].name
            text = f"a message of {int(joined.size[row])} bytes is no {name}: {int(bad.sum())} left out"
            raise SomeRefusedError(text, np.flatnonzero(bad), len(bad))

    def _misfits(self, channel: NDArray[np.int32], payloads: Payloads) -> NDArray[np.bool_]:
        bad: NDArray[np.bool_] = payloads.size > self.largest
        # Payloads of rewritten logs were checked when they were read.
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not self.are_checked else ():
            rows = np.flatnonzero((channel == number) & ~bad)
            start, size = payloads.start[rows], payloads.size[rows]
            bad[rows] = misfits(self._kinds[number], payloads.data, start, size)
        return bad

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self.begin()
        place = self._headers.places(channel, payloads.size)
        made = self._headers.compose(channel, time, payloads, place)
        self.time_index.add(time, place[:-1] + self.out.tell())
        self.out.put(made.data)

    # ------------------------------------------------------------------------------------------ the file

    def write_whole(self, data: Buffer) -> None:
        """Write a complete file."""
        write_ranges(self.out.put, data, np.zeros(1, np.int64), np.array([len(data)]))
        self._begun = self._complete = True

    def go_on(self, index_room: int, utc_note: int | None) -> None:
        """Continue a log whose header and messages are in the file.

        index_room  number of index entries before its first message
        utc_note    UTC offset in ns that was written behind its end mark, or None
        """
        self._begun, self.index_room, self._utc_note = True, index_room, utc_note

    def commit(self) -> None:
        """Write the header even if no message has come."""
        self.begin()

    def begin(self) -> None:
        """Write the header and room for the index, once."""
        if not self._begun:
            self._begun = True
            self.out.write(HEADER.pack(MAGIC, self.version, self.index_room) + bytes(8 * self.index_room))
            self.out.commit()

    def finish(self) -> None:
        """Write the index: into the room that was left for it, else all messages move."""
        if self._complete:
            return
        note, clock = self._utc_note, self.source_clock
        # UTC follows from the median of all fixes, so a whole copy has the same offset.
        if clock is not None and not (clock.is_whole and self.fixes_give_utc):
            note = clock.utc_offset
        types = pack_types(self.schemas.own.values(), self.declared | {k.type for k in self._kinds})
        if note is not None or types:
            self.begin()
            self.out.write((pack_end_mark() if note is None else pack_utc_note(note)) + types)
            self.out.commit()
        places = self.time_index.offsets
        more = len(places) - self.index_room
        index = struct.pack("<I", len(places)) + (places + 8 * more).astype("<i8").tobytes()
        if more:
            self.out.splice(_INDEX_AT, 4 + 8 * self.index_room, index)
        else:
            self.out.patch(_INDEX_AT, index)


def append(out: Appender, log: Log, **options: Any) -> KoblenzWriter:
    """Return the writer that continues *log*; an end mark, and what follows it, are left out.

    Raises UsageError for options that differ from those of the log, LogError where its messages cannot be continued.
    """
    state: FormatState = log.format_state
    writer = KoblenzWriter(out, **options)
    if writer.size_reading is not state.size_reading or writer.mark != state.mark:
        text = f"the log has size_reading {state.size_reading.name!r} and valid_mark 0x{state.mark:02X}"
        raise UsageError(f"{text}, which all of its messages share", path=log.name)
    wrong = next((p for p in log.problems if p.code in ("header", "after end")), None)
    if wrong is not None or state.index_room is None:
        text = "messages begin inside the index" if wrong is None else wrong.text
        raise LogError(
            f"cannot be continued: {text}",
            path=log.name,
            hint="write it again by logreel.recover, and append to that",
        )
    end = None if state.end == state.source.size else state.end
    note = read_utc_note(state.source, end) if state.has_utc_note else None
    writer.schemas.own |= read_types(state.source)
    out.keep_old(state.end)
    writer.go_on(state.index_room, note)
    rows = {ch.number: slice(0, len(ch)) for ch in log.channels.values()}
    for batch in in_file_order(state.index, rows):
        writer.time_index.add(batch.time, batch.offset - HEAD)
    writer.continue_channels(log)
    return writer


class KoblenzCopier(LogCopier):
    """Copies messages as they are, and leaves room for their index."""

    writer: KoblenzWriter

    def __init__(self, writer: KoblenzWriter) -> None:
        super().__init__(writer)
        #: First and last time of the source logs, ns.
        self._interval: tuple[int, int] | None = None

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return type and version: sensors of one type may get other names where one of them is missing."""
        if "type_id" in metadata:
            return f"{metadata['type_id']}@{metadata['version']}"
        message_kind = kind_of(
            topic,
            Schema(topic.partition("/")[0].partition("@")[0], "koblenz"),
            metadata,
            self.writer.schemas.own,
        )
        return f"0x{message_kind.type:08X}@{message_kind.version}"

    def copy_metadata(self, log: Log) -> list[str]:
        """Leave room for the index of the time that the source logs cover."""
        writer = self.writer
        writer.fixes_give_utc = not log.format_state.has_utc_note
        writer.schemas.own |= read_types(log.format_state.source)
        if log.start is not None and log.end is not None:
            first, last = self._interval or (log.start, log.end)
            self._interval = min(first, log.start), max(last, log.end)
            writer.index_room, writer.are_checked = seconds_between(*self._interval), True
        return []

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy messages as they are in the file; a sound log of which all is wanted is copied to the byte."""
        writer = self.writer
        state: FormatState = excerpt.log.format_state
        if state.size_reading is not writer.size_reading or state.mark != writer.mark:
            return False
        wrong = any(p.lost or p.code in ("index", "header") for p in excerpt.log.problems)
        if excerpt.is_whole and state.has_full_index and not wrong:
            writer.write_whole(state.source.data)
            return True
        writer.schemas.own |= read_types(state.source)
        copied = [ch for ch in excerpt.log.channels.values() if ch.number in excerpt.rows]
        writer.declared |= {int(ch.metadata["type_id"], 16) for ch in copied}
        writer.version, writer.fixes_give_utc = state.source.read(4, 4), not state.has_utc_note
        times = [state.index.times(number)[rows] for number, rows in excerpt.rows.items()]
        times = [channel_times for channel_times in times if len(channel_times)]
        if times:
            first = next(iter(in_file_order(state.index, excerpt.rows))).time[0]
            writer.index_room = seconds_between(
                int(first), max(int(channel_times.max()) for channel_times in times)
            )
        writer.begin()
        for batch in in_file_order(state.index, excerpt.rows):
            start, end = batch.offset - HEAD, batch.offset + batch.size
            writer.time_index.add(batch.time, writer.out.tell() + np.cumsum(end - start) - (end - start))
            write_ranges(writer.out.put, state.source.data, *joined_ranges(start, end))
        return True
