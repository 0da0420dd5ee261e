"""Records of a ULog other than data messages: definitions, keyed records, logged strings, dropouts, marks.

What follows from them is here, too: the channels ``~text``, ``~parameter`` and ``~dropout``, whose messages are made of
such records, and the text of a log for people, with PX4 events as sentences.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import NamedTuple, dataclass
from logreel.errors import DefinitionError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import NS_PER_US, UTC_OFFSET, Found, LatestTimes, Topic
from logreel.formats.ulog.definitions import (
    OWN,
    Definitions,
    RecordDetails,
    is_binary,
    parse_format,
    type_of,
    value_of,
)
from logreel.formats.ulog.records import DEFAULTS_FLAG, FILE_HEADER, FLAGS_AT, HEAD, KeyValue
from logreel.index.block_table import TIME_MAX
from logreel.index.channel_index import FieldAt, SyntheticMessages
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, distinct, without
from logreel.io.source import Buffer, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct
from logreel.log.scan import Attachment, Change, Parameter, TextLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from logreel.formats.ulog import events
    from logreel.formats.ulog.events import Row

XZ_MAGIC = b"\xfd7zXZ\x00"
#: Information that metadata begins with.
FIRST = (
    "sys_name",
    "ver_hw",
    "ver_sw_release",
    "ver_vendor_sw_release",
    "ver_sw_branch",
    "ver_sw",
    "time_ref_utc",
)
#: The kinds of default that a ``Q`` record states, by bit.
DEFAULT_KINDS = ("system", "setup")
_DOUBLE = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class KeyedRecord:
    """A record with a key: position, kind, key with value, and suffix of its segment."""

    offset: int
    kind: str
    key: KeyValue
    suffix: str

    @property
    def name(self) -> str:
        """Name of the key, with the suffix of its segment."""
        return self.key.name + self.suffix

    @property
    def value(self) -> Any:
        """The value as text, number, list or bytes; see ``KeyValue.value``."""
        return self.key.value()

    @property
    def default_kinds(self) -> list[str]:
        """The defaults that a ``Q`` record states; see ``default_kinds``."""
        return default_kinds(self.key.head)


def default_kinds(head: int) -> list[str]:
    """Return the defaults that the first byte of a ``Q`` record states: ``system``, ``setup`` or both."""
    return [name for bit, name in enumerate(DEFAULT_KINDS) if head >> bit & 1]


class KeyedRecords:
    """The ``I``, ``M``, ``P`` and ``Q`` records of one log, parsed lazily."""

    def __init__(self, source: Source, content: Found) -> None:
        self._source, self._found = source, content
        self._parsed = np.array(content.parsed, np.int64)
        self._kinds = source.data[self._parsed + 2]

    def positions(self, *letters: str) -> list[int]:
        """Return the positions of records of these kinds, which must be among ``records.PARSED``."""
        positions: list[int] = self._parsed[
            np.isin(self._kinds, [ord(letter) for letter in letters])
        ].tolist()
        return positions

    @cached_property
    def _phases(self) -> list[int]:
        """Position where the definitions of each segment end; of a segment without definitions: where it begins."""
        notes = self._found.notes
        texts = notes[np.isin(self._source.data[notes + 2], (ord("L"), ord("C")))]
        data = distinct(np.concatenate([np.array(self.positions("A"), np.int64), texts]))
        own = zip(self._found.segments, self._found.own_definitions, strict=True)
        ends = [*data.tolist(), self._source.size]
        return [int(ends[int(np.searchsorted(data, at))]) if fresh else at for at, fresh in own]

    @property
    def data_phase(self) -> int:
        """File position where the first definitions end."""
        return self._phases[0]

    def are_initial(self, offsets: I64) -> NDArray[np.bool_]:
        """Return bool[n]: whether records are among the definitions.

        A parameter there is an initial value, a later one a change.
        """
        segment = np.searchsorted(self._found.segments, offsets, side="right")
        return np.asarray(offsets < np.array(self._phases, np.int64)[segment - 1])

    @cached_property
    def entries(self) -> list[KeyedRecord]:
        """All records with a key, in file order."""
        entries = []
        for at in self.positions("I", "M", "P", "Q"):
            letter = chr(self._source.view[at + 2])
            key = records.parse_key(records.payload_at(self._source, at), letter in "MQ")
            entries.append(KeyedRecord(at, letter, key, self._found.suffix(at)))
        return entries

    @cached_property
    def multiples(self) -> dict[str, list[list[KeyedRecord]]]:
        """``M`` records by key: a list of entries, each a list of parts.

        A part that continues an entry begins one if there is none.
        """
        by_name: dict[str, list[list[KeyedRecord]]] = {}
        for e in self.entries:
            if e.kind == "M":
                entries = by_name.setdefault(e.name, [])
                if e.key.head == 0 or not entries:
                    entries.append([])
                entries[-1].append(e)
        return by_name

    @cached_property
    def _definitions(self) -> list[Definitions]:
        """The formats of each segment, including those without a subscription."""
        by_segment = [Definitions()]
        for fresh in self._found.own_definitions[1:]:
            by_segment.append(Definitions() if fresh else by_segment[-1])
        for at in self.positions("F"):
            text = parse_format(records.payload_at(self._source, at))
            by_segment[self._found.segment_of(at) - 1].add(text)
        return by_segment

    def _value(self, entry: KeyedRecord) -> Any:
        return value_of(entry.key, self._definitions[self._found.segment_of(entry.offset) - 1])

    def _texts(self, parts: list[KeyedRecord]) -> list[str]:
        """Decode the parts of one text; a character that was cut in two belongs to the later part."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return [decode(e.key.data, e is parts[-1]) for e in parts]

    def metadata(self) -> dict[str, Any]:
        """Return information by name.

        Multiple information is a list of entries, each a list of parts; binary entries are attachments instead.
        """
        details, values = RecordDetails(), dict[str, Any]()
        single = {e.name: e for e in self.entries if e.kind == "I" and e.key.name != UTC_OFFSET}
        for name, e in single.items():
            values[name] = self._value(e)
            self._add_details(details, "I", name, [e], [values[name]])
        for name, entries in self.multiples.items():
            if is_binary(entries[0][0].key):
                details.parts[name] = [[len(e.key.data) for e in parts] for parts in entries]
                continue
            is_text = all(type_of(e.key) == "char[]" for parts in entries for e in parts)
            values[name] = [self._texts(p) if is_text else [self._value(e) for e in p] for p in entries]
            every = [value for parts in values[name] for value in parts]
            self._add_details(details, "M", name, [e for parts in entries for e in parts], every)
        first = {name: values[name] for name in FIRST if name in values}
        own = details.metadata()
        return first | values | ({OWN: own} if own and OWN not in values else {})

    def _add_details(
        self, details: RecordDetails, letter: str, name: str, entries: list[KeyedRecord], values: list[Any]
    ) -> None:
        payloads = [records.payload_at(self._source, e.offset) for e in entries]
        keys = [e.key for e in entries]
        definitions = self._definitions[self._found.segment_of(entries[0].offset) - 1]
        details.add(letter, name, list(zip(keys, payloads, strict=True)), values, definitions)

    def attachments(self) -> list[Attachment]:
        """Return every entry of multiple information as an attachment."""
        return [
            _attachment(name if len(entries) == 1 else f"{name}-{i}", parts)
            for name, entries in self.multiples.items()
            for i, parts in enumerate(entries)
        ]

    def parameters(self, times_of: Callable[[list[int]], I64]) -> list[Parameter]:
        """Return all parameters; *times_of* gives int64[n] ns for file positions."""
        first = self.are_initial(np.array([e.offset for e in self.entries], np.int64)).tolist()
        initial: dict[str, Any] = {}
        changes: dict[str, list[KeyedRecord]] = {}
        defaults: dict[str, dict[str, Any]] = {}
        types: dict[str, str] = {}
        for e, is_first in zip(self.entries, first, strict=True):
            if e.kind in "PQ":
                types.setdefault(e.name, e.key.type)
            if e.kind == "Q":
                defaults.setdefault(e.name, {}).update(dict.fromkeys(e.default_kinds, e.value))
            elif e.kind == "P" and is_first:
                initial[e.name] = e.value
            elif e.kind == "P":
                changes.setdefault(e.name, []).append(e)
        moved = [e.offset for entries in changes.values() for e in entries]
        when = dict(zip(moved, times_of(moved).tolist(), strict=True))
        return [
            Parameter(
                name,
                type_name,
                initial.get(name),
                tuple(Change(when[e.offset], e.value) for e in changes.get(name, ())),
                defaults.get(name, {}),
            )
            for name, type_name in types.items()
        ]

    def parameter_messages(self, offsets: I64) -> Iterator[bytes]:
        """Yield the ``P`` and ``Q`` records at *offsets* as messages of the channel ``~parameter``.

        A log has more than a thousand of them, which were checked when it was read.
        """
        view, initial = self._source.view, self.are_initial(offsets).tolist()
        for at, is_first in zip(offsets.tolist(), initial, strict=True):
            payload = records.payload_at(self._source, at)
            state, key_at = ("initial" if is_first else "change"), 0
            if view[at + 2] == ord("Q"):
                state, key_at = "+".join(default_kinds(payload[0])) + " default", 1
            end = key_at + 1 + payload[key_at]
            of, _, name = payload[key_at + 1 : end].partition(b" ")
            value = records.PARAMETERS[of.decode()].unpack_from(payload, end)[0]
            kind = state.encode()
            sizes = len(name), len(kind), len(of)
            yield b"%c%b%c%b%c%b" % (sizes[0], name, sizes[1], kind, sizes[2], of) + _DOUBLE.pack(value)


def _attachment(name: str, parts: list[KeyedRecord]) -> Attachment:
    content = b"".join(p.key.data for p in parts)
    media_type, suffix = ("application/octet-stream", "bin")
    if parts[0].key.type == "char":
        media_type, suffix = "text/plain", "txt"
    elif content.startswith(XZ_MAGIC):
        media_type, suffix = "application/x-xz", "xz"
    return Attachment(f"{name}.{suffix}", media_type, len(content), lambda: content)


class LoggedString(NamedTuple):
    """A record ``L`` or ``C``.

    level  0…7 of syslog; for a byte other than a digit from 0 to 7: that byte less 48, modulo 256
    tag    0 for a record without one
    time   ns
    """

    level: int
    tag: int
    time: int
    text: bytes


class NonDataRecords:
    """All records of one log that are no data messages, by kind, with what was found while reading.

    texts     int64[n]: positions of logged strings (``L``, ``C``)
    dropouts  int64[n]: positions of dropouts (``O``)
    keyed     information, parameters and defaults (``I``, ``M``, ``P``, ``Q``)
    """

    def __init__(self, source: Source, content: Found) -> None:
        self.source, self.found = source, content
        kinds = source.data[content.notes + 2]
        self.texts: I64 = content.notes[(kinds == ord("L")) | (kinds == ord("C"))]
        self.dropouts: I64 = content.notes[kinds == ord("O")]
        self.keyed = KeyedRecords(source, content)

    # -------------------------------------------------------------------------------------------- positions

    @cached_property
    def positions(self) -> I64:
        """int64[n]: positions of all records, ascending."""
        return distinct(np.concatenate([self.found.parsed, self.found.notes]).astype(np.int64))

    def ends_of(self, positions: I64) -> I64:
        """Return the positions where the records at *positions* end."""
        data = self.source.data
        return (
            positions + HEAD + (data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8)
        )

    @cached_property
    def marks(self) -> I64:
        """int64[n]: positions of records without content of their own, which stand among messages: sync marks …"""
        return without(self.found.notes, np.concatenate([self.texts, self.dropouts]))

    @cached_property
    def initial_parameters(self) -> I64:
        """int64[n]: positions of all defaults, and of the parameters among the definitions."""
        parameters, defaults = (np.array(self.keyed.positions(letter), np.int64) for letter in "PQ")
        return np.concatenate([parameters[self.keyed.are_initial(parameters)], defaults])

    # ---------------------------------------------------------------------------------------------- content

    def formats(self) -> list[bytes]:
        """Return the payloads of all format records."""
        return [records.payload_at(self.source, at) for at in self.keyed.positions("F")]

    def subscriptions(self) -> list[tuple[int, int | None]]:
        """Return the position of each subscription and its channel number; None for an ignored subscription."""
        numbers = {(t.name, t.instance): i for i, t in enumerate(self.found.channels) if t.segment == 1}
        subscriptions = []
        for at in self.keyed.positions("A"):
            instance, _, name = records.parse_subscription(records.payload_at(self.source, at))
            subscriptions.append((at, numbers.get((name, instance))))
        return subscriptions

    def has_tag(self, at: int) -> bool:
        """Return whether the logged string at a position is of the kind that has a tag."""
        return int(self.source.view[at + 2]) == ord("C")

    def string_at(self, at: int) -> LoggedString:
        """Return the logged string at a position."""
        payload = records.payload_at(self.source, at)
        if self.has_tag(at):
            level, tag, stamp = struct.unpack_from("<BHQ", payload)
            text = payload[11:]
        else:
            level, stamp = struct.unpack_from("<BQ", payload)
            tag, text = 0, payload[9:]
        return LoggedString((level - 0x30) & 0xFF, tag, min(stamp * NS_PER_US, TIME_MAX), text)

    def dropouts_at(self, positions: I64) -> Iterator[bytes]:
        """Yield the two bytes of the duration of each dropout."""
        return (self.source.read(at + HEAD, 2) for at in positions.tolist())

    def dropout_ms(self, at: int) -> int:
        """Return the duration in ms of the dropout at a position."""
        return int.from_bytes(records.payload_at(self.source, at), "little")

    @property
    def lacks_defaults_flag(self) -> bool:
        """Whether the log has defaults of parameters that its flag bits do not announce."""
        flags = int(self.source.view[FLAGS_AT]) if self.found.begin > FILE_HEADER else 0
        return not flags & DEFAULTS_FLAG and bool(self.keyed.positions("Q"))


TimeRule = FieldAt | Callable[[MessageIndex], I64]


@dataclass(frozen=True, slots=True)
class LogTimes:
    """Times of one log.

    rules         the time rule of each channel that is not synthetic
    start, end    bounds of the main segment in ns; None for a log without data
    latest_times  the latest data time before any position
    """

    rules: list[TimeRule]
    start: int | None
    end: int | None
    latest_times: LatestTimes
    others: NonDataRecords

    def of_records(self, offsets: Sequence[int] | I64) -> I64:
        """Return int64[n] ns for records that carry no time.

        For definitions that is the start of the log, for other records the latest data time before them.
        """
        at, data_phase = np.asarray(offsets, np.int64), self.others.keyed.data_phase
        return np.where(at < data_phase, np.int64(self.start or 0), self.latest_times.before(at))


_TEXT = Struct((Field("level", Scalar("uint8")), Field("tag", Scalar("uint16")), Field("text", String(2))))
_PARAMETER = Struct(
    (
        Field("name", String(1)),
        Field("kind", String(1)),
        Field("type", String(1)),
        Field("value", Scalar("float64")),
    )
)
_DROPOUT = Struct((Field("duration", Scalar("uint16"), "ms"),))
#: Fields of the messages of each synthetic channel.
STRUCTS = {"~text": _TEXT, "~parameter": _PARAMETER, "~dropout": _DROPOUT}


class SyntheticChannel(NamedTuple):
    """One synthetic channel of one segment.

    topic    with ``@2`` … for later segments
    offsets  int64[n]: positions of the records that its messages are made from
    """

    topic: str
    root: Struct
    offsets: I64

    @property
    def kind(self) -> str:
        """The topic without its segment."""
        return self.topic.split("@")[0]


def synthetic_layout(topic: str) -> Layout | None:
    """Return the Layout of a synthetic channel, also of a later segment (``~text@2``); None for other topics."""
    root = STRUCTS.get(topic.split("@")[0])
    return None if root is None else Layout(root, topic)


def synthetic_channels(others: NonDataRecords) -> list[SyntheticChannel]:
    """Return the synthetic channels that have messages, by kind, then segment."""
    channels = []
    parameters = np.array(others.keyed.positions("P", "Q"), np.int64)
    offsets_of = {"~text": others.texts, "~parameter": parameters, "~dropout": others.dropouts}
    for topic, offsets in offsets_of.items():
        segment = np.searchsorted(others.found.segments, offsets, side="right")
        # np.unique would import numpy.ma, which takes longer than the rest of opening a small log.
        for n in sorted(set(segment.tolist())):
            name = topic + (f"@{n}" if n > 1 else "")
            channels.append(SyntheticChannel(name, STRUCTS[topic], offsets[segment == n]))
    return channels


def synthetic_offsets(others: NonDataRecords) -> dict[int, I64]:
    """Return the positions of the records of each synthetic channel, by channel number."""
    first = len(others.found.channels)
    return {n: channel.offsets for n, channel in enumerate(synthetic_channels(others), first)}


def synthetic_messages(
    others: NonDataRecords,
    channels: Sequence[SyntheticChannel],
    log_times: LogTimes,
    compare: Callable[[I64], None] | None,
) -> tuple[Buffer, dict[int, SyntheticMessages]]:
    """Build the SYNTHETIC chunk, and the messages of each synthetic channel by channel number.

    compare  compares the records at positions with their digests first; None: there are none
    """
    if compare is not None:
        compare(others.positions)
    payloads, messages, begin = list[bytes](), {}, 0
    for number, channel in enumerate(channels, len(others.found.channels)):
        offsets = channel.offsets
        if channel.kind == "~text":
            strings = [others.string_at(at) for at in offsets.tolist()]
            own = [struct.pack("<BHH", level, tag, len(text)) + text for level, tag, _, text in strings]
            times = np.array([string.time for string in strings], np.int64)
        else:
            is_parameters = channel.kind == "~parameter"
            own = list(
                others.keyed.parameter_messages(offsets) if is_parameters else others.dropouts_at(offsets)
            )
            times = log_times.of_records(offsets)
        size = np.array(list(map(len, own)), np.int64)
        messages[number] = SyntheticMessages(begin + np.cumsum(size) - size, size, times, offsets)
        payloads, begin = payloads + own, begin + int(size.sum())
    return np.frombuffer(b"".join(payloads), np.uint8), messages


#: Levels of syslog.
LEVELS = 8
_EVENT_TYPES = {"id": "uint32", "arguments": "uint8", "log_levels": "uint8"}
_EVENT_FIELDS = set(_EVENT_TYPES)


def text_lines(others: NonDataRecords, index: MessageIndex) -> list[TextLine]:
    """Return all lines of text in order of time; a string that was also sent as an event appears once."""
    from logreel.formats.ulog import events

    strings, tags = [], {}
    for at in others.texts.tolist():
        level, tag, time, text = others.string_at(at)
        strings.append(events.Line(time, level if level < LEVELS else None, text.decode("utf-8", "replace")))
        if others.has_tag(at):
            tags[len(strings) - 1] = tag
    rows = [
        row
        for number, topic in enumerate(others.found.channels)
        if topic.name == "event"
        for row in _event_rows(others.source, index, number, topic)
    ]
    merged = events.lines(strings, rows, _event_definitions(others)) if rows else strings
    # By identity: two strings may be equal, and only one of them have a tag.
    source = {id(strings[i]): f"tag {tag}" for i, tag in tags.items()}
    logged = set(map(id, strings))
    lines = [
        TextLine(
            line.time,
            line.level,
            line.text,
            source.get(id(line), line.group),
            "text" if id(line) in logged else "check" if line.group else "event",
            line.repeated,
        )
        for line in merged
    ]
    return sorted(lines, key=lambda line: line.time)


def _event_definitions(others: NonDataRecords) -> events.Definitions | None:
    """Return the first usable event definitions of the log, or None."""
    from logreel.formats.ulog import events

    most = others.source.limits.event_json_bytes
    for parts in others.keyed.multiples.get("metadata_events", []):
        try:
            return events.load(b"".join(p.key.data for p in parts), most)
        except DefinitionError:
            continue
    return None


def _event_rows(source: Source, index: MessageIndex, number: int, topic: Topic) -> Iterator[Row]:
    """Yield the messages of a topic ``event``; none if its format lacks a field that events need."""
    if topic.raw:
        return
    from logreel.formats.ulog.events import Row
    from logreel.index.gather import gather_bytes

    layout = topic.definitions.layout(topic.name)
    if not {f.name for f in layout.record.visible()} >= _EVENT_FIELDS:
        return
    offset, size, time = index.offsets(number), index.sizes(number), index.times(number)
    if layout.size is not None and (size >= layout.size).all():
        leaves = {name: layout.find(name) for name in _EVENT_FIELDS}
        if {name: leaf.type for name, leaf in leaves.items()} == _EVENT_TYPES:
            ids, arguments, levels = (
                gather_bytes(source.data, offset, leaf.width, leaf.runs[0])
                for leaf in (leaves[name] for name in _EVENT_TYPES)
            )
            columns = time, ids.view("<u4")[:, 0], arguments, levels[:, 0]
            rows = zip(*(column.tolist() for column in columns), strict=True)
            yield from (
                Row(at, number, bytes(argument_bytes), level) for at, number, argument_bytes, level in rows
            )
            return
    decode = layout.project(sorted(_EVENT_FIELDS)).decoder()
    for at, length, when in zip(offset.tolist(), size.tolist(), time.tolist(), strict=True):
        row = decode(memoryview(source.read(at, length)))
        yield Row(when, row["id"], bytes(row["arguments"]), row["log_levels"])
