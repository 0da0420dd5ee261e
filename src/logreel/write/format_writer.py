"""What a format implements to be written: ``FormatWriter``, ``RecordWriter``, ``SchemaMaker``.

``Payloads`` are the bytes of the messages that they get.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field, replace
from logreel.errors import DefinitionError, UnsupportedError, UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Buffer
from logreel.kernels import records as kernel
from logreel.layout.layout import Layout
from logreel.log.log import Channel, Log
from logreel.log.scan import Schema
from logreel.registry.format import free_name

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column
    from logreel.schemas.ros1to2 import Conversion

#: What distinguishes the names of channels of one topic.
_INSTANCE = re.compile(r"\[\d+\]")


def topic_without_number(topic: str, metadata: Mapping[str, Any]) -> str:
    """Return the topic of a channel, without the instance number of the second, third … channel of the topic."""
    stated = str(metadata.get("topic", topic))
    # One pattern for all topics: a pattern of each topic takes longer to compile than to add the channel.
    return stated if topic.startswith(stated) and _INSTANCE.fullmatch(topic, len(stated)) else topic


@dataclass(frozen=True, slots=True)
class PayloadSplitter:
    """Payloads from encoded rows, for a channel whose Layout describes more than its payloads.

    optional      fields that a table may leave out; they are zero then
    split         Payloads from messages encoded by the Layout: data, and int64[n + 1] where each begins
    side_columns  names of the numbers that ``split`` returns per message but the Layout repeats per record; a message
                  given as a dict has them at its top level
    """

    optional: Collection[str]
    split: Callable[[NDArray[np.uint8], I64], Payloads]
    side_columns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the definitions of a format can express; messages of other formats are fitted to it.

    name           pattern of valid names of fields
    times          whether there are types for times and durations, in ns
    nested_arrays  whether the items of arrays can be arrays
    fixed_size     whether all messages of a channel have one size
    largest        largest message in bytes
    time_name      field with the time of the message, which the format adds; empty: none
    """

    name: re.Pattern[str] = re.compile(r".+", re.DOTALL)
    times: bool = True
    nested_arrays: bool = True
    fixed_size: bool = False
    largest: int = (1 << 31) - 1
    time_name: str = ""


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Lines of text: time int64[n] ns, level int64[n] of the format, text and source as settled columns of text."""

    time: I64
    level: I64
    text: Column
    source: Column


@dataclass(frozen=True, slots=True)
class TextChannel:
    """The channel in which a format holds lines of text.

    levels      level of the format for each syslog level from 0 to 7
    unknown     level of the format for a line without level
    columns     function that returns the fields of messages, by name
    has_source  whether lines name their source; else it is in brackets before the text
    """

    topic: str
    schema: Schema
    levels: tuple[int, ...]
    unknown: int
    columns: Callable[[TextColumns], dict[str, Column]]
    has_source: bool = True

    def level_of(self, level: I64) -> tuple[I64, I64]:
        """Return levels of the format for syslog levels int64[n], -1 for unknown ones, and how these are read again."""
        table = np.array([*self.levels, self.unknown], np.int64)
        known = np.where((level >= 0) & (level < len(self.levels)), level, len(self.levels))
        stored = table[known]
        # The least severe of the levels that share a number, as the lens of text reads them.
        again = {number: n for n, number in enumerate(self.levels)}
        read = np.array([again.get(int(number), -1) for number in table], np.int64)
        for n in NORMAL:
            read[[i for i, number in enumerate(table.tolist()) if number == self.levels[n]]] = n
        return stored, read[known]


#: Syslog levels that readers give for levels with several: debug, information, warning, error.
NORMAL = (7, 6, 4, 3)


class SchemaMaker:
    """Schemas of new channels, and how their messages are encoded from dicts and tables.

    title  name of the format, for error texts
    """

    #: ``Schema.encoding`` of definitions that users may give as text; empty: they cannot.
    encoding = ""
    #: Whether all messages of a channel have one size, so that strings and arrays cannot vary.
    fixed_size = False
    #: What ``schema_from_layout`` can express; None: messages of other formats are not fitted to it.
    abilities: Abilities | None = None

    #: Nanoseconds per unit of the field with the time of the message, in definitions that ``schema_from_layout`` makes.
    time_unit = 1
    #: Whether channels have metadata; else those of transcoded channels become metadata of the log.
    keeps_metadata = True

    def __init__(self, title: str) -> None:
        self.title = title

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a Schema in the language of the format for messages with the fields of *layout*.

        name  name of the type, in formats that do not name types by topics; empty: after the topic

        Messages are then encoded by ``self.layout(number)``: same field names and values, but maybe other bytes than
        those of *layout*. Raises DefinitionError for what the format cannot hold.
        """
        raise DefinitionError(f"{self.title} has no definitions of its own for messages of channel {topic!r}")

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a Schema as ``schema_from_layout`` does, for many messages that are encoded from columns."""
        return (
            self.schema_from_layout(topic, layout, name) if name else self.schema_from_layout(topic, layout)
        )

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the Schema that *text*, read from *file*, defines for *topic*."""
        if not self.encoding:
            raise UnsupportedError(f"{self.title} takes no definitions as text")
        return Schema(PurePath(file).stem, self.encoding, text)

    def counterpart(self, channel: Channel) -> tuple[Conversion | None, dict[str, Any]]:
        """Return how messages of a channel of another format become messages of this one by written rules.

        None: there are no rules, so that they are fitted. Also returns metadata of the new channel. Raises
        DefinitionError if the definition of the channel is missing.
        """
        return None, {}

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether a channel can be written with *schema*, taken from a log of any format."""
        return bool(self.encoding) and schema.encoding == self.encoding

    def layout(self, number: int) -> Layout:
        """Return the Layout that encodes dicts and tables of a channel; raises DefinitionError if it has none."""
        raise DefinitionError(f"{self.title} writes messages as bytes only")

    def splitter(self, number: int) -> PayloadSplitter | None:
        """Return how to get payloads from encoded rows of a channel; None if these are the payloads."""
        return None

    def encode(
        self, number: int, columns: Mapping[str, Column], rows: int, records: I64 | None = None
    ) -> Payloads:
        """Return the payloads of messages of a channel: one settled column per field of ``self.layout(number)``.

        rows     length of the columns
        records  int64[n]: number of rows of each message, where messages hold many records

        Raises UsageError for a column that is missing or has values that do not fit.
        """
        from logreel.layout.encode import encode_columns

        splitter = self.splitter(number)
        data, start = encode_columns(self.layout(number), columns, rows, records)
        return Payloads(data, start[:-1], np.diff(start)) if splitter is None else splitter.split(data, start)

    def text_channel(self) -> TextChannel | None:
        """Return the channel for lines of text, or None if they are messages as all others."""
        return None

    def topic_for(self, topic: str) -> str:
        """Return the topic that a channel of a log of another format gets; the FormatWriter may still change it."""
        return topic

    def time_field(self, number: int) -> tuple[str, int] | None:
        """Return the field of a channel that holds the time of the message, and its ns per unit; None if none does."""
        return None

    def time_dependent_fields(self, number: int) -> Collection[str]:
        """Return further fields of a channel that the FormatWriter sets by the times of the messages."""
        return ()

    def set_times(self, number: int, data: Buffer, start: I64, time: I64) -> None:
        """Set the fields of complete payloads of a channel, at *start* in *data*, that state their times, ns.

        Only those of ``time_dependent_fields`` that each follow from one message.
        """

    def computed_fields(self, number: int) -> Collection[str]:
        """Return the fields that readers compute and payloads do not hold; they are ignored in given messages."""
        return ()


#: Header of no bytes.
_NO_HEADER = np.array([(0, 0, -1, 0, 0, -1, 0)], kernel.HEADER)
#: The payload of a message given by a user.
Payload = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payloads of messages: that of message i is data[start[i]:start[i] + size[i]].

    side_columns  int64[n, k]  numbers that the format stores outside payloads, or None
    others        further buffers
    which         int32[n]  buffer of each payload: 0 is *data*, 1 … are *others*; None: *data* for all
    """

    data: Buffer
    start: I64
    size: I64
    side_columns: I64 | None = None
    others: Sequence[Buffer] = ()
    which: NDArray[np.int32] | None = None

    @property
    def are_inside(self) -> bool:
        """Whether each payload is inside its buffer, and all buffers are uint8[b]."""
        lengths = {len(self.start), len(self.size), len(self.start if self.which is None else self.which)}
        if len(lengths) > 1 or any(
            buffer.ndim != 1 or buffer.dtype != np.uint8 for buffer in (self.data, *self.others)
        ):
            return False
        rooms = np.array([len(buffer) for buffer in (self.data, *self.others)], np.int64)
        start, size = (np.ascontiguousarray(column, np.int64) for column in (self.start, self.size))
        return kernel.payloads_inside(rooms, self._which, start, size)

    @property
    def _which(self) -> NDArray[np.int32]:
        """``which`` for the kernel, int32[n]; empty for None."""
        return np.zeros(0, np.int32) if self.which is None else np.ascontiguousarray(self.which, np.int32)

    def rows(self, which: slice | I64) -> Payloads:
        """Return the payloads at these rows."""
        return replace(
            self,
            start=self.start[which],
            size=self.size[which],
            side_columns=None if self.side_columns is None else self.side_columns[which],
            which=None if self.which is None else self.which[which],
        )

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers, contiguous, in the order that ``which`` counts them."""
        return [np.ascontiguousarray(buffer) for buffer in (self.data, *self.others)]

    def in_one(self) -> Payloads:
        """Return the payloads in one buffer."""
        if self.which is None:
            return self
        data = self.joined()
        return Payloads(data, np.cumsum(self.size) - self.size, self.size, self.side_columns)

    def joined(self) -> Buffer:
        """Return uint8[sum of size]: the payloads one after another."""
        out = np.empty(int(self.size.sum()), np.uint8)
        self.put_at(out, np.cumsum(self.size) - self.size)
        return out

    def put_at(self, out: Buffer, place: I64) -> None:
        """Copy payload i to place[i] of *out*."""
        n = len(self.start)
        self.compose(
            np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(0, np.uint8), _NO_HEADER, place, out
        )

    def compose(
        self,
        channel: NDArray[np.int32],
        time: I64,
        heads: Buffer,
        headers: NDArray[np.void],
        place: I64,
        out: Buffer,
    ) -> None:
        """Write record i, a head and the payload, to place[i] of *out*; see kernels/records.py."""
        kernel.write_records(
            self.buffers,
            self._which,
            np.ascontiguousarray(channel, np.int32),
            np.ascontiguousarray(time, np.int64),
            np.ascontiguousarray(self.start, np.int64),
            np.ascontiguousarray(self.size, np.int64),
            heads,
            headers,
            np.ascontiguousarray(place, np.int64),
            out,
        )


def joined(data: Buffer, start: I64, size: I64) -> Buffer:
    """Return uint8[sum of size]: the ranges data[start[i]:start[i] + size[i]], one after another."""
    return Payloads(data, start, size).joined()


def chained(parts: Sequence[Payloads]) -> Payloads:
    """Return the payloads of all *parts*, one part after another, without copying and without side columns."""
    buffers, which = list[Buffer](), list[NDArray[np.int32]]()
    for payloads in parts:
        inside = np.zeros(len(payloads.start), np.int32) if payloads.which is None else payloads.which
        which.append(inside + np.int32(len(buffers)))
        buffers += [payloads.data, *payloads.others]
    start, size = (
        np.concatenate([getattr(payloads, name) for payloads in parts]) for name in ("start", "size")
    )
    return Payloads(buffers[0], start, size, others=buffers[1:], which=np.concatenate(which))


def tallied(channel: NDArray[np.int32], channels: int) -> I64:
    """Return int64[channels]: the number of messages of each channel; raises IndexError for other channels."""
    counts = np.zeros(channels, np.int64)
    kernel.count_channels(np.ascontiguousarray(channel, np.int32), counts)
    return counts


def serialize_rows(
    layout: Layout, payload: Callable[[dict[str, Any]], bytes], data: NDArray[np.uint8], first: I64, size: I64
) -> Payloads:
    """Return a payload for each message of *size* bytes at *first* in *data*, which is encoded by *layout*.

    payload  returns the payload of a message, from a dict of its fields
    """
    decode, view = layout.decoder(), memoryview(data.data)
    ends = (first + size).tolist()
    encoded = [payload(decode(view[at:end])) for at, end in zip(first.tolist(), ends, strict=True)]
    sizes = np.array([len(message) for message in encoded], np.int64)
    return Payloads(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(sizes) - sizes, sizes)


class SomeRefusedError(UsageError):
    """Some messages of a call of ``FormatWriter.messages`` cannot be written; all others were.

    rows   int64[k]: their positions in the call
    total  number of messages in the call
    """

    def __init__(self, text: str, rows: I64, total: int) -> None:
        super().__init__(text)
        self.rows, self.total = rows, total


@dataclass(frozen=True)
class SourceClock:
    """The clock of the logs that a new log is written from.

    utc_offset  ns to add to a time to get UTC since 1970; None if the sources do not say
    epoch       meaning of time 0: ``unix``, ``boot`` or ``start``
    is_whole    the new log holds all messages of a single source, so also those that say the UTC time
    first       returns the first time written, ns; None if nothing is; called at most once
    """

    utc_offset: int | None
    epoch: str
    is_whole: bool
    first: Callable[[], int | None]

    @cached_property
    def start(self) -> int | None:
        """First time written, ns, or None; messages copied as context are ignored."""
        return self.first()


class FormatWriter:
    """Writer of one format: appends whole records to *out* and commits them; returned by ``Format.create``.

    A minimal writer implements ``channel`` and ``messages``. What the format cannot hold raises UnsupportedError.

    schemas         schemas and encoding of its channels
    notes           sentences about content that was written differently than given
    extra_messages  messages that the writer added by itself, or (below 0) left out since they are already there; by
                    ``LogCopier.count_key``
    source_clock    clock of the source logs; None if there are none
    old_channels    schemas by topic of the channels of the log that is continued, in the order of their numbers;
                    empty in a new log
    mixes_encodings  True: messages will come in other encodings than those of the source logs
    """

    #: Name of the format in error texts.
    title = "this format"
    #: What 0 means in times that are written: ``unix``, or ``start`` for clocks that begin with the log.
    epoch = "unix"
    #: Limits that every channel accepts: times in ns, bytes of a payload. Messages within these are collected and
    #: written in batches, others one by one; with ``largest`` -1 all are written one by one.
    earliest, latest, largest = -(1 << 63), (1 << 63) - 1, -1
    #: Names of the columns of ``Payloads.side_columns``, as in ``ChannelRules.side_columns`` of readers.
    side_column_names: tuple[str, ...] = ()
    #: Whether all channels must be added before the first message.
    defines_first = False
    #: Whether appended bytes are never changed later, so that they can be sent on at once.
    appends_only = False
    #: Whether channels of one topic and definition that differ in ``headers`` of their metadata, which those of each
    #: publisher do, are one channel for readers.
    joins_publishers = False

    def __init__(self, out: Appender, schemas: SchemaMaker | None = None) -> None:
        self.out = out
        self.schemas = schemas or SchemaMaker(self.title)
        self.notes: list[str] = []
        self.extra_messages = Counter[str]()
        self.source_clock: SourceClock | None = None
        self.mixes_encodings = False
        self.old_channels: dict[str, Schema] = {}

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Return the name of *topic* in this format, changed where necessary to differ from the names *taken*."""
        return free_name(topic, taken)

    def continue_channels(self, log: Log) -> None:
        """Add the channels of *log*, the log that is continued, with their numbers in it; reserved ones are left out.

        For ``Format.append``. Channels of the file that is written need no second declaration: formats whose
        ``channel`` writes one override this.
        """
        for number, ch in enumerate(log.match(None)):
            self.copied_channel(number, ch.topic, ch.schema, ch.metadata)
            self.old_channels[ch.topic] = ch.schema

    def continues(self, name: str, schema: Schema, metadata: Mapping[str, Any]) -> bool:
        """Return whether messages of a channel can be written to that called *name* of the log that is continued."""
        return self.is_same_schema(self.old_channels[name], schema)

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether messages of *new* can be written to a channel of the continued log, which has *old*.

        A *new* without a definition stands for that of the log.
        """
        if (new.name, new.encoding) != (old.name, old.encoding):
            return False
        return not new.raw or new.raw.split() == old.raw.split()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel; numbers ascend from 0. Raises DefinitionError for a schema that cannot be written."""
        raise NotImplementedError

    def copied_channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel of a log of the same format; formats may keep an invalid definition that can be written.

        It is noted in ``notes``. So damage to a definition costs no messages.
        """
        self.channel(number, topic, schema, metadata)

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading the log gives it, where the format stores coarser times."""
        return time

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message at *time* ns."""
        zero, raw = np.zeros(1, np.int64), np.frombuffer(data, np.uint8)
        self.messages(np.array([channel], np.int32), zero + time, Payloads(raw, zero, zero + len(raw)))

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages: channel int32[n], time int64[n] ns, n payloads, with side columns if the format has any.

        Raises SomeRefusedError if all messages but some were written, and any other UsageError if none was.
        """
        raise NotImplementedError

    def metadata(self, name: str, value: Any) -> None:
        """Write metadata of the log."""
        raise UnsupportedError(f"{self.title} has no place for metadata")

    def parameter(self, name: str, value: float | int | str, time: int | None) -> None:
        """Write a parameter set at *time* ns, or at the start for None."""
        raise UnsupportedError(f"{self.title} has no place for parameters")

    def text(self, time: int, level: int, text: str) -> None:
        """Append a line of text; *level* is a syslog number."""
        raise UnsupportedError(f"{self.title} has no place for text")

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Write an attachment."""
        raise UnsupportedError(f"{self.title} has no place for attachments")

    def commit(self) -> None:
        """Commit everything given so far, so that it can be read even if the file ends here."""

    def finish(self) -> None:
        """Write what completes the file."""


#: How times are written, see kernels/records.py; positive numbers are ns per unit of a float64.
SECONDS_AND_NANOSECONDS, NANOSECONDS_TWICE = 0, -2
#: As uint64 microseconds in the payload, at an offset from the start of the header, if the payload is long enough.
MICROSECONDS_INSIDE = kernel.MICROSECONDS_INSIDE
NOWHERE = -1


@dataclass(slots=True)
class RecordHeaders:
    """Headers of the records of each channel, added in the order of channel numbers; ``compose`` writes records."""

    _bytes: bytearray = field(default_factory=bytearray)
    _rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    _known: NDArray[np.void] = field(default_factory=partial[NDArray[np.void]](np.zeros, 0, kernel.HEADER))

    def add(
        self,
        head: bytes,
        size_at: int = NOWHERE,
        size_width: int = 4,
        size_add: int = 0,
        time_at: int = NOWHERE,
        time_kind: int = SECONDS_AND_NANOSECONDS,
    ) -> None:
        """Add the header of the next channel, with the offsets of the payload size (plus *size_add*) and the time."""
        self._rows.append((len(self._bytes), len(head), size_at, size_width, size_add, time_at, time_kind))
        self._bytes += head

    @property
    def _table(self) -> NDArray[np.void]:
        """Table of the kernel; rebuilt when headers were added."""
        if len(self._known) != len(self._rows):
            self._known = np.array(self._rows, kernel.HEADER)
        return self._known

    def places(self, channel: NDArray[np.int32], size: I64) -> I64:
        """Return int64[n + 1]: the start of each record when they are written one after another, and the end."""
        place = np.empty(len(channel) + 1, np.int64)
        channel, size = np.ascontiguousarray(channel, np.int32), np.ascontiguousarray(size, np.int64)
        kernel.record_offsets(channel, size, self._table, place)
        return place

    def compose(
        self,
        channel: NDArray[np.int32],
        time: I64,
        payloads: Payloads,
        place: I64,
        out: Buffer | None = None,
    ) -> Buffer:
        """Return the records of messages one after another, in *out* or new memory; *place*: as from ``places``."""
        out = np.empty(int(place[-1]), np.uint8) if out is None else out
        table = self._table
        if len(channel) < len(table):
            # The kernel checks all headers that it gets: those of other channels are left out.
            numbers, turns = np.unique(channel, return_inverse=True)
            table, channel = table[numbers], turns.astype(np.int32)
        payloads.compose(channel, time, np.frombuffer(self._bytes, np.uint8), table, place, out)
        return out


class RecordWriter(FormatWriter):
    """Writes batches of records; each channel is declared before its first message.

    A format may have several headers per channel: each of them is a channel here.
    """

    def __init__(self, out: Appender, schemas: SchemaMaker | None = None) -> None:
        super().__init__(out, schemas)
        self._headers = RecordHeaders()
        #: Whether each channel is yet to be declared.
        self._fresh = GrowingArray(np.bool_)

    def declare(self, number: int) -> None:
        """Write what comes before the first message of a channel."""

    def batch_limit(self) -> int:
        """Return the bytes after which a batch ends, with the message that exceeds them."""
        raise NotImplementedError

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Write records; *place*, int64[n], is the start of each in *made*, *side_columns* as in Payloads."""
        raise NotImplementedError

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message."""
        if not self.earliest <= time <= self.latest:
            self._refuse(time)
        super().message(channel, time, data)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages, batch by batch; none of them if one cannot be written."""
        if not len(channel):
            return
        for moment in (int(time.min()), int(time.max())):
            if not self.earliest <= moment <= self.latest:
                self._refuse(moment)
        largest = int(payloads.size.max())
        if largest > self.largest:
            raise UsageError(f"a message of {largest} bytes; {self.title} holds at most {self.largest}")
        self._append(channel, time, payloads)

    def _refuse(self, time: int) -> None:
        raise UsageError(f"time {time} ns; {self.title} holds {self.earliest} to {self.latest}")

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        place = self._headers.places(channel, payloads.size)
        # First messages of the channels that are yet to be declared, from last to first.
        unknown = np.flatnonzero(self._fresh.rows.take(channel))
        due = unknown[np.unique(channel[unknown], return_index=True)[1]] if len(unknown) else unknown
        first = np.sort(due)[::-1].tolist()
        lo = 0
        while lo < len(channel):
            hi = int(np.searchsorted(place, place[lo] + self.batch_limit(), side="right"))
            hi = min(max(hi, lo + 1), len(channel))
            if first and first[-1] == lo:
                first.pop()
                self._fresh.rows[channel[lo]] = False
                self.declare(int(channel[lo]))
                continue
            hi = min(hi, first[-1]) if first else hi
            at, places, part = slice(lo, hi), place[lo : hi + 1] - place[lo], payloads.rows(slice(lo, hi))
            made = self._headers.compose(channel[at], time[at], part, places)
            self.write_records(channel[at], time[at], places[:-1], made, part.side_columns)
            lo = hi
