"""Write ULogs: definitions first, also those of other ULogs, then records as they come.

A ULog is continued by appended data, as the specification has it, up to three times. Source: the page "ULog File
Format" of the PX4 guide, section "Flag Bits Message".
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import NS_PER_US, UNIX_US, UTC_OFFSET
from logreel.formats.ulog.definitions import (
    MAX_SIZE,
    Definitions,
    FieldText,
    pack_key,
    pack_key_value,
    pack_number,
    pack_record,
    pack_value,
    parse_format,
)
from logreel.formats.ulog.non_data_records import DEFAULT_KINDS, STRUCTS, KeyedRecord, NonDataRecords
from logreel.formats.ulog.records import (
    BASIC,
    DATA_HEAD,
    DEFAULTS_FLAG,
    FILE_HEADER,
    FLAGS,
    FLAGS_AT,
    HEAD,
    MAGIC,
    SYNC,
    BadRecord,
    parse_key,
)
from logreel.formats.ulog.schema_maker import UNFIT, UlogSchemaMaker, base_name, free_name
from logreel.index.block_table import TIME_MAX
from logreel.index.channel_index import FieldAt
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.write.format_writer import (
    MICROSECONDS_INSIDE,
    NOWHERE,
    FormatWriter,
    Payload,
    Payloads,
    RecordHeaders,
    SourceClock,
    tallied,
)
from logreel.write.log_copier import Masking


class MetadataCopier:
    """Collects records from one log after another; those of earlier logs have precedence.

    header        file header and flags of the first log, without the flag and offsets of appended parts
    has_defaults  whether the records collected so far contain defaults of parameters
    masking       changes of information and parameters; None: they stay
    """

    def __init__(self, definitions: Definitions) -> None:
        self.header, self.has_defaults = b"", False
        self.masking: Masking | None = None
        self._definitions = definitions
        self._known: dict[tuple[str, str, int], bytes] = {}
        self._multiples: dict[str, list[bytes]] = {}
        self._out = bytearray()

    def take(self) -> bytes:
        """Return the records collected since the last call."""
        out, self._out = bytes(self._out), bytearray()
        return out

    def add(self, log: Log, without: Collection[str] = (), replaced: Collection[str] = ()) -> list[str]:
        """Collect the records of *log* that are new; return messages about records that differ and were left out.

        without   names of formats to leave out, unless others contain them
        replaced  names of information to leave out
        """
        state: NonDataRecords = log.format_state
        if not self.header:
            self.header = _header(state)
        formats = [(payload, parse_format(payload)) for payload in state.formats()]
        inner = {f.type for _, text in formats if text.name not in without for f in text.fields}
        for payload, text in formats:
            if text.name in without and text.name not in inner:
                continue
            if text.name not in self._definitions:
                self._definitions.add(text)
                self._out += pack_record("F", payload)
        initial = set(state.initial_parameters.tolist())
        messages = [
            text
            for entry in state.keyed.entries
            if (entry.kind != "I" or entry.key.name not in replaced)
            and (entry.kind != "P" or entry.offset in initial)
            for text in self._add_entry(state, entry)
        ]
        return [*messages, *self._add_multiples(state, replaced), *_unknown_record_messages(state)]

    def _add_entry(self, state: NonDataRecords, entry: KeyedRecord) -> Iterator[str]:
        """Collect information, a parameter or a default if its name is new; else yield a message if it differs."""
        if entry.key.name == UTC_OFFSET or entry.kind == "M":
            return
        payload = _masked(self.masking, entry, records.payload_at(state.source, entry.offset))
        known = self._known.setdefault((entry.kind, entry.key.name, entry.key.head), payload)
        if known is payload:
            self.has_defaults |= entry.kind == "Q"
            self._out += pack_record(entry.kind, payload)
        elif known != payload:
            what = {"I": "information", "P": "parameter", "Q": "default"}[entry.kind]
            yield f"{what} {entry.key.name!r} has another value in {state.source.name}: the first one is kept"

    def _add_multiples(self, state: NonDataRecords, replaced: Collection[str]) -> list[str]:
        """Collect multiple information, all entries of one name together; return messages about those that differ."""
        messages = []
        for name, entries in state.keyed.multiples.items():
            if name in replaced:
                continue
            payloads = [
                payload
                for parts in entries
                for payload in _masked_parts(
                    self.masking, parts, [records.payload_at(state.source, e.offset) for e in parts]
                )
            ]
            if name not in self._multiples:
                self._multiples[name] = payloads
                self._out += b"".join(pack_record("M", payload) for payload in payloads)
            elif self._multiples[name] != payloads:
                messages.append(f"information {name!r} differs in {state.source.name}: the first one is kept")
        return messages


def _masked(masking: Masking | None, entry: KeyedRecord, payload: bytes) -> bytes:
    """Return the payload of a record with a key, with its value as *masking* wants it; the type stays."""
    if masking is None:
        return payload
    key, head = entry.key, payload[: int(entry.kind in "MQ")]
    if key.type == "char":
        text = bytes(masking.value(key.name, key.data))
        if text == key.data:
            return payload
        return head + pack_key(f"char[{len(text)}] {key.name}", key.name) + text
    if key.count is not None or key.type not in BASIC:
        return payload
    dtype = np.dtype(SCALARS[BASIC[key.type]][0])
    if len(key.data) != dtype.itemsize:
        return payload
    old = np.frombuffer(key.data, dtype)[0].item()
    new = masking.value(key.name, old)
    if new == old or isinstance(old, bool):
        return payload
    return payload[: len(payload) - dtype.itemsize] + np.array(new).astype(dtype).tobytes()


def _masked_parts(masking: Masking | None, parts: list[KeyedRecord], payloads: list[bytes]) -> list[bytes]:
    """Return the payloads of the parts of one entry; a text is masked as a whole, and cut where it was."""
    keys = [entry.key for entry in parts]
    if masking is None or any(key.type != "char" for key in keys):
        return payloads
    text = b"".join(key.data for key in keys)
    new = bytes(masking.value(keys[0].name, text))
    if new == text:
        return payloads
    made, at = list[bytes](), 0
    for number, key in enumerate(keys):
        end = at + len(key.data) if number + 1 < len(keys) else len(new)
        part = new[at:end]
        if part or not made:
            made.append(payloads[number][:1] + pack_key(f"char[{len(part)}] {key.name}", key.name) + part)
        at = end
    return made


def with_start(header: bytes, start: int | None) -> bytes:
    """Return *header* with another start in ns; unchanged if only one of the two is wall-clock time."""
    if start is None or start < 0:
        return header
    before, after = int.from_bytes(header[8:16], "little"), start // NS_PER_US
    if (before >= UNIX_US) != (after >= UNIX_US):
        return header
    return header[:8] + struct.pack("<Q", after) + header[FILE_HEADER:]


def utc_record(header: bytes, clock: SourceClock | None) -> bytes:
    """Return the information record of the UTC offset; empty if it is unknown or *header* has wall-clock time."""
    offset = None if clock is None else clock.utc_offset
    if offset is None or int.from_bytes(header[8:16], "little") >= UNIX_US:
        return b""
    return pack_record(
        "I", pack_key(f"int64_t {UTC_OFFSET}", UTC_OFFSET), pack_number(UTC_OFFSET, "q", offset)
    )


def _unknown_record_messages(state: NonDataRecords) -> Iterator[str]:
    """Yield a message if there are records of unknown kinds, which only a copy of the whole file keeps."""
    kinds = state.source.data[state.found.notes + 2]
    count = {
        letter: n for letter, n in enumerate(np.bincount(kinds).tolist()) if n and records.is_unknown(letter)
    }
    if count:
        names, total = ", ".join(records.name_of(letter) for letter in count), sum(count.values())
        yield f"{total} record{'s' * (total > 1)} of unknown kinds ({names}) were left out of {state.source.name}"


def _header(state: NonDataRecords) -> bytes:
    """Return file header and flags of a log, without the flag and offsets of appended parts."""
    head, file = state.source.read(0, FILE_HEADER), state.found
    if file.begin == FILE_HEADER:
        return head
    payload = bytearray(state.source.read(FILE_HEADER + HEAD, file.begin - FILE_HEADER - HEAD))
    payload[8] &= ~1
    payload[16:FLAGS] = struct.pack("<3Q", 0, 0, 0)
    return head + pack_record("B", bytes(payload))


def with_defaults_flag(head: bytes) -> bytes:
    """Return file header and flags with the bit for default parameters set; flags are added if missing."""
    if len(head) <= FLAGS_AT:
        head += pack_record("B", bytes(FLAGS))
    return head[:FLAGS_AT] + bytes((head[FLAGS_AT] | DEFAULTS_FLAG,)) + head[FLAGS_AT + 1 :]


def renamed(schema: Schema, name: str, known: Definitions) -> list[str]:
    """Return format texts that define *name* as *schema* does; nested types in conflict with *known* get new names.

    Raises DefinitionError if the text of *schema* is invalid.
    """
    try:
        lines = [parse_format(line.encode()) for line in schema.text.splitlines()]
    except BadRecord as error:
        raise DefinitionError(str(error)) from None
    names = {}
    for text in lines[1:]:
        new, n = text.name, 2
        while known.differs(new, text):
            new, n = f"{text.name}-{n}", n + 1
        names[text.name] = new
    if lines:
        names[lines[0].name] = name
    if all(old == new for old, new in names.items()):
        return schema.text.splitlines()
    return [
        f"{names[text.name]}:" + "".join(_field(f, names.get(f.type, f.type)) for f in text.fields)
        for text in lines
    ]


def _field(field: FieldText, type_name: str) -> str:
    times = "" if field.times is None else f"[{field.times}]"
    return f"{type_name}{times} {field.name};"


#: Bytes of an attachment in one record.
PART = 60_000
MAX_ID = 65535
#: The field ``kind`` of an initial value in a message of ``~parameter``, with its length.
_INITIAL = b"\x07initial"


class UlogWriter(FormatWriter):
    """Writes version 1.

    started  ns of the file header; None: the time of the first message
    """

    title = "ULog"
    defines_first = True
    earliest, latest, largest = 0, TIME_MAX, MAX_SIZE - 2

    def __init__(self, out: Appender, *, started: int | None = None) -> None:
        self.schemas: UlogSchemaMaker = UlogSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        self.definitions = Definitions()
        #: Records to be written before the first message.
        self.head = bytearray()
        #: File header and flags of the first log copied.
        self.source_header = b""
        #: Whether the header was written, and whether initial values of parameters were copied: messages of
        #: ``~parameter`` repeat them.
        self.begun = self.has_initial_parameters = False
        #: Whether a default parameter was written, which the flags must announce; and the first byte of the flags.
        self.has_defaults, self._flags = False, 0
        self._started = started
        self._headed = self._fresh = False
        self._headers = RecordHeaders()
        #: Name of the format and instance of each channel, or the synthetic topic and 0.
        self._channels: list[tuple[str, int]] = []
        self._stamped: dict[FieldAt, list[int]] = {}
        self._synthetic: dict[int, Callable[[int, bytes], bytes]] = {}
        self._subscribed: set[int] = set()
        #: Message ids of the channels (-1 for synthetic ones), and those of the log that is continued, by topic.
        self._ids: list[int] = []
        self._old_ids: dict[tuple[str, int], int] = {}
        self._continues, self._highest_id = False, -1

    # ------------------------------------------------------------------------------------------ definitions

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Return a name with letters, digits, ``_ - /`` only; instances of a topic share its definition."""
        return free_name(topic, taken)

    def go_on(self, definitions: Definitions, ids: Mapping[tuple[str, int], int], flags: int) -> None:
        """Continue a log whose header, definitions and messages are in the file.

        definitions  all of its formats, which are no longer extended
        ids          message id of each name and instance that it subscribes; the subscriptions are repeated before the
                     next message, since pyulog forgets them at each appended part
        flags        first byte of its compatible flags
        """
        self.definitions, self._old_ids, self._continues = definitions, dict(ids), True
        self._highest_id = max(ids.values(), default=-1)
        self.begun, self._flags, self.has_defaults = True, flags, bool(flags & DEFAULTS_FLAG)

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether both define the same fields, whatever the name of *new*, which becomes that of the topic."""
        if new.encoding != old.encoding or not new.text:
            return super().is_same_schema(old, new)
        try:
            own, other = (_fields(schema, old.name) for schema in (old, new))
        except DefinitionError:
            return False
        return own == other

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel: its topic is the name of its format; further instances end in ``[1]``, ``[2]`` …

        A topic with another name than its definition gets a definition of that name. Synthetic channels (``~text``,
        ``~parameter``, ``~dropout``) can be written with the Layouts that reading gives.
        """
        if schema.encoding != "ulog":
            raise DefinitionError(f"channel {topic!r} of a ULog needs a schema of encoding 'ulog'")
        if topic.startswith("~"):
            self._add_synthetic(number, topic)
            return
        if self.begun and not self._continues:
            raise UsageError("a ULog defines all channels before the first message")
        base, multi = base_name(topic)
        if multi > 255 or UNFIT.search(base) or base in BASIC:
            text = "names have letters, digits, _ - and /, and at most 256 instances"
            raise UsageError(f"channel {topic!r} of a ULog: {text}")
        for line in renamed(schema, base, self.definitions):
            self._define(line)
        time_at, layout, stamp = NOWHERE, None, None
        if schema.text:
            extent = self.definitions.extent(base)
            layout = self.definitions.layout(base)
            if extent.stamp is not None:
                at, width, unit = extent.stamp.offset, extent.stamp.width, extent.stamp.unit
                stamp = FieldAt(at, width, unit * NS_PER_US)
                if (width, unit) == (8, 1):
                    time_at = DATA_HEAD + at
                else:
                    self._stamped.setdefault(stamp, []).append(number)
        self.schemas.add_channel(base, layout, stamp)
        self._channels.append((base, multi))
        self._ids.append(self._old_ids.get((base, multi), self._highest_id + 1))
        self._highest_id = max(self._highest_id, self._ids[-1])
        if self._ids[-1] > MAX_ID:
            raise DefinitionError(f"channel {topic!r}: a ULog has message ids up to {MAX_ID}")
        head = struct.pack("<HBH", 0, ord("D"), self._ids[-1])
        self._headers.add(head, 0, 2, 2, time_at, MICROSECONDS_INSIDE)

    def _add_synthetic(self, number: int, topic: str) -> None:
        name = topic.split("@")[0]
        write = {
            "~text": self._text_record,
            "~parameter": self._parameter_or_nothing,
            "~dropout": self._dropout_record,
        }
        if name not in write:
            raise DefinitionError(f"a ULog has no channel {topic!r}; there are {', '.join(write)}")
        self._synthetic[number] = write[name]
        # Their messages become other records, which may not fit: each is tried by itself.
        self.largest = -1
        self.schemas.add_channel(name, Layout(STRUCTS[name], name), None)
        self._channels.append((name, 0))
        self._ids.append(-1)
        self._headers.add(b"")

    def _define(self, line: str) -> None:
        try:
            text = parse_format(line.encode())
        except BadRecord as error:
            raise DefinitionError(str(error)) from None
        known = text.name in self.definitions
        if not known and self._continues:
            raise DefinitionError(
                f"format {text.name} is not defined in the log: in a ULog, all formats precede the first message",
                hint="write a new log, and join both by logreel.merge",
            )
        if not self.definitions.add(text):
            raise DefinitionError(f"format {text.name} is defined in two ways")
        if not known:
            self.head += pack_record("F", line.encode())

    # --------------------------------------------------------------------------------------------- messages

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns, rounded to microseconds."""
        half = NS_PER_US // 2
        rounded: I64 = np.minimum(time, TIME_MAX - NS_PER_US) + half
        stored: I64 = rounded - rounded % NS_PER_US
        return stored

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append data records; their field ``timestamp`` is set to the given times."""
        if not len(channel):
            return
        if int(time.min()) < 0:
            raise UsageError(f"time {int(time.min())} ns; a ULog has none before 0")
        largest = int(payloads.size.max())
        if largest > MAX_SIZE - 2:
            raise UsageError(f"a message of {largest} bytes; a ULog holds at most {MAX_SIZE - 2}")
        self._begin(int(time[0]))
        for number in np.flatnonzero(tallied(channel, len(self._channels))).tolist():
            if number not in self._subscribed and number not in self._synthetic:
                self._subscribe(number)
        others = dict[int, bytes]()
        if self._synthetic:
            rows = np.flatnonzero(self._mask(self._synthetic).take(channel))
            joined = payloads.rows(rows).in_one()
            edges = joined.start.tolist(), (joined.start + joined.size).tolist()
            for row, lo, hi in zip(rows.tolist(), *edges, strict=True):
                others[row] = self._synthetic[int(channel[row])](int(time[row]), joined.data[lo:hi].tobytes())
                self._announce_default(others[row])
        self._append_messages(channel, time, payloads, others)
        self._fresh = True

    def _append_messages(
        self, channel: NDArray[np.int32], time: I64, payloads: Payloads, others: Mapping[int, bytes]
    ) -> None:
        """Append messages as data records, except those at the rows in *others*, which are complete records."""
        room = payloads.size
        if others:
            rows, room, size = np.array(list(others), np.int64), room.copy(), room.copy()
            room[rows], size[rows] = [len(written) for written in others.values()], 0
            payloads = replace(payloads, size=size)
        place = self._headers.places(channel, room)
        memory = self.out.lend(int(place[-1]))
        out = np.asarray(memory)
        self._headers.compose(channel, time, payloads, place, out)
        for word, members in self._stamped.items():
            has_word = self._mask(members).take(channel)
            has_word &= payloads.size >= word.offset + word.width
            _set_stamps(out, (place[:-1] + DATA_HEAD)[has_word], time[has_word], word)
        for row, written in others.items():
            out[place[row] : place[row + 1]] = np.frombuffer(written, np.uint8)
        self.out.give(memory)

    def _mask(self, numbers: Iterable[int]) -> NDArray[np.bool_]:
        """Return bool[channels]: True for the given channel numbers."""
        mask = np.zeros(len(self._channels), bool)
        mask[list(numbers)] = True
        return mask

    def _subscribe(self, number: int) -> None:
        self._subscribed.add(number)
        name, multi = self._channels[number]
        self._put("A", struct.pack("<BH", multi, self._ids[number]) + name.encode())

    # ------------------------------------------------------------------------------- records of other kinds

    def metadata(self, name: str, value: Any) -> None:
        """Append an information record: text, a whole number, a float or bytes.

        A list becomes multiple information with an entry for each item; an item that is a list becomes an entry of
        several parts. A version such as ``v1.16.0`` is written as the number from which reading gives it.
        """
        self.information(name, value, None)

    def information(self, name: str, value: Any, stated_type: str | None) -> None:
        """Append information of a given type; None: of the first type that holds *value*. See ``metadata``."""
        if not isinstance(value, list | tuple) or (stated_type is not None and not _is_in_parts(value)):
            self._put("I", *pack_value(name, value, stated_type))
            return
        in_parts = _is_in_parts(value)
        for entry in value:
            for n, part in enumerate(entry if in_parts else [entry]):
                self._put("M", bytes((n > 0,)), *pack_value(name, part, stated_type))

    def keyed(self, letter: str, payload: bytes) -> None:
        """Append an information record with the payload of another log. Raises UsageError for an invalid one."""
        try:
            parse_key(payload, letter == "M")
        except BadRecord as error:
            raise UsageError(str(error)) from None
        self._put(letter, payload)

    def define(self, line: str) -> None:
        """Append a format, unless one of that name is defined."""
        if not self.begun:
            with contextlib.suppress(DefinitionError):
                self._define(line)

    def parameter(self, name: str, value: float | int | str, time: int | None) -> None:
        """Append a parameter, int32 or float; a later value is a change at the time of the message before it."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"parameter {name!r}: a ULog holds whole numbers and floats, not {value!r:.40}")
        if time is not None:
            self._begin(time)
        self._append(_parameter("P", name, value))

    def text(self, time: int, level: int, text: str) -> None:
        """Append a logged string."""
        if not 0 <= level <= 7:
            raise UsageError(f"level {level} is no syslog level from 0 to 7")
        self._begin(time)
        self._put("L", struct.pack("<BQ", 0x30 + level, time // NS_PER_US), text.encode())

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Append binary information; its key is *name* without the suffix, which reading adds."""
        starts = range(0, max(1, len(data)), PART)
        self.parts(name.rpartition(".")[0] or name, [data[at : at + PART] for at in starts])

    def parts(self, key: str, parts: Iterable[bytes]) -> None:
        """Append binary information as one entry of several parts."""
        for n, part in enumerate(parts):
            self._put("M", bytes((n > 0,)), *pack_key_value(key, part))

    def _text_record(self, time: int, payload: bytes) -> bytes:
        level, tag, _ = struct.unpack_from("<BHH", payload)
        moment, digit = struct.pack("<Q", time // NS_PER_US), (0x30 + level) & 0xFF
        if tag:
            return pack_record("C", struct.pack("<BH", digit, tag), moment, payload[5:])
        return pack_record("L", bytes((digit,)), moment, payload[5:])

    def _parameter_or_nothing(self, time: int, payload: bytes) -> bytes:
        # Most are initial values, which were copied already: no need to decode them.
        copied = self.has_initial_parameters
        if copied and payload and payload[1 + payload[0] :].startswith(_INITIAL):
            return b""
        row = _parameter_row()(memoryview(payload))
        return b"" if copied and row["kind"] != "change" else _parameter_record(row)

    def parameter_row(self, row: Mapping[str, Any]) -> None:
        """Append the parameter that a decoded message of the channel ``~parameter`` describes."""
        self._append(_parameter_record(row))

    def _dropout_record(self, time: int, payload: bytes) -> bytes:
        return pack_record("O", payload[:2])

    # ------------------------------------------------------------------------------------------ the file

    def commit(self) -> None:
        """Write the definitions even without any message, and a sync mark after new messages."""
        if self._channels or self.head or self.begun:
            self._begin(0)
        elif not self._headed:
            # Channels can still be added: the final header is written over this one.
            self.out.write(self._file_head(0))
            self.out.commit()
            self._headed = True
        if self._fresh:
            self._put("S", SYNC)
            self._fresh = False

    def finish(self) -> None:
        """Write the subscriptions of channels without messages."""
        self._begin(0)
        for number, known in enumerate(self._channels):
            if number not in self._subscribed | self._synthetic.keys() and known not in self._old_ids:
                self._subscribe(number)

    def _begin(self, time: int) -> None:
        if not self.begun:
            head = self._file_head(time)
            self._flags = head[FLAGS_AT] if len(head) > FLAGS_AT else 0
            if self._headed:
                self.out.patch(0, head)
            else:
                self.out.write(head)
            self.out.write(utc_record(head, self.source_clock))
            self.out.write(self.head)
            self.out.commit()
            self.begun = True

    def _file_head(self, time: int) -> bytes:
        """Return file header and flags of a log whose first message has *time* ns."""
        source_start = None if self.source_clock is None else self.source_clock.start
        start = self._started if self._started is not None else time if source_start is None else source_start
        head = MAGIC + struct.pack("<BQ", 1, max(0, start) // NS_PER_US) + pack_record("B", bytes(FLAGS))
        if self.source_header and self._started is None:
            head = with_start(self.source_header, source_start)
        return with_defaults_flag(head) if self.has_defaults else head

    def _put(self, letter: str, *parts: Payload) -> None:
        self._append(pack_record(letter, *parts))

    def _announce_default(self, written: bytes) -> None:
        """Set the flag for default parameters if *written* is the first default."""
        if written[2:HEAD] == b"Q" and not self.has_defaults:
            self.has_defaults = True
            if self.begun:
                self._flags |= DEFAULTS_FLAG
                self.out.patch(FLAGS_AT, bytes((self._flags,)))

    def _append(self, written: bytes) -> None:
        self._announce_default(written)
        if self.begun:
            self.out.write(written)
            self.out.commit()
        else:
            self.head += written


def _fields(schema: Schema, name: str) -> dict[str, tuple[FieldText, ...]]:
    """Return the fields of each format that *schema* defines, whose first one is called *name*."""
    lines = [parse_format(line.encode()) for line in renamed(schema, name, Definitions())]
    return {line.name: line.fields for line in lines}


def _is_in_parts(value: Any) -> bool:
    """Return whether a list consists of entries that are lists of parts."""
    return bool(value) and all(isinstance(entry, list | tuple) for entry in value)


def _parameter(letter: str, name: str, value: float | int, head: bytes = b"") -> bytes:
    type_name, code = ("int32_t", "i") if isinstance(value, int) else ("float", "f")
    return pack_record(letter, head, pack_key(f"{type_name} {name}", name), pack_number(name, code, value))


@cache
def _parameter_row() -> Callable[[memoryview], Any]:
    return Layout(STRUCTS["~parameter"], "~parameter").decoder()


def _parameter_record(row: Mapping[str, Any]) -> bytes:
    """Return the record for a decoded message of the channel ``~parameter``."""
    value = int(row["value"]) if row["type"] == "int32_t" else float(row["value"])
    kinds = row["kind"].removesuffix(" default").split("+")
    bits = sum(1 << bit for bit, default in enumerate(DEFAULT_KINDS) if default in kinds)
    return _parameter("Q" if bits else "P", row["name"], value, bytes((bits,)) if bits else b"")


def _set_stamps(out: NDArray[np.uint8], payload: I64, time: I64, word: FieldAt) -> None:
    """Write *time* into the payloads at *payload* that have another timestamp."""
    stamps = FieldAt(word.offset, word.width).read(out, payload)
    due = time // word.mul
    if word.width < 8:
        due &= (1 << 8 * word.width) - 1
    # Absurd stamps are read as the greatest time; they are not changed.
    rows = np.flatnonzero((stamps != due) & (time < TIME_MAX - word.mul))
    if len(rows):
        raw = due[rows].astype("<i8").view(np.uint8).reshape(-1, 8)[:, : word.width]
        out[(payload[rows] + word.offset)[:, None] + np.arange(word.width)] = raw


#: Positions of the incompatible flags and of the offsets of appended parts in the payload of the flags.
_INCOMPATIBLE, _OFFSETS = 8, 16
_DATA_APPENDED = 1


def append(out: Appender, log: Log, **options: Any) -> UlogWriter:
    """Return the writer that continues *log*, which may end inside a record; flags are added if it has none.

    Raises UsageError for the start time, which is in the header; LogError for a file of several logs, and for one that
    was appended to three times.
    """
    if "started" in options:
        raise UsageError("the start time stands in the header of the log, which is kept", path=log.name)
    writer = UlogWriter(out, **options)
    state: NonDataRecords = log.format_state
    if len(state.found.segments) > 1:
        raise LogError(
            f"contains {len(state.found.segments)} logs, one after another",
            path=log.name,
            hint="write one by logreel.slice(path, new, segment=1), and append to that",
        )
    has_flags = state.found.begin > FILE_HEADER
    payload = state.source.read(FLAGS_AT, FLAGS) if has_flags else bytes(FLAGS)
    offsets = list(records.parse_flags(payload)[2])
    free = [i for i, offset in enumerate(offsets) if not offset]
    if not free or any(offsets[free[0] :]) or any(p.code == "offset" for p in log.problems):
        raise LogError(
            "has been appended to three times, as often as a ULog can be"
            if not free
            else "has appended offsets that do not fit the file",
            path=log.name,
            hint="write it in one part by logreel.sort, and append to that",
        )
    out.keep_old(log.size)
    if not has_flags:
        out.splice(FILE_HEADER, 0, pack_record("B", payload))
    flags = bytearray(payload)
    flags[_INCOMPATIBLE] |= _DATA_APPENDED
    struct.pack_into("<Q", flags, _OFFSETS + 8 * free[0], out.tell())
    out.patch(FLAGS_AT, bytes(flags))
    writer.go_on(_definitions(state), _message_ids(state), flags[0])
    writer.continue_channels(log)
    return writer


def _definitions(state: NonDataRecords) -> Definitions:
    definitions = Definitions()
    for payload in state.formats():
        definitions.add(parse_format(payload))
    return definitions


def _message_ids(state: NonDataRecords) -> dict[tuple[str, int], int]:
    """Return the message id of each subscribed name and instance; a second topic of an id is ignored, as in reading."""
    topics = dict[int, tuple[str, int]]()
    for at in state.keyed.positions("A"):
        instance, number, name = records.parse_subscription(records.payload_at(state.source, at))
        topics.setdefault(number, (name, instance))
    ids = dict[tuple[str, int], int]()
    for number, topic in topics.items():
        ids.setdefault(topic, number)
    return ids
