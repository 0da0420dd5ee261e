"""Write DataFlash logs: each kind of message with its definition before it, and records as they come."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import (
    Appender,
    DefinitionError,
    FormatWriter,
    Layout,
    Log,
    LogCopier,
    Payloads,
    RecordHeaders,
    Schema,
    SchemaMaker,
    UsageError,
)
from logreel_ardupilot.definitions import (
    CLOCK,
    FMT,
    FORMAT,
    HEAD,
    KINDS,
    MARK,
    MULTIPLIER,
    NONE,
    UNIT,
    UNITS,
    Definition,
    definition_of,
)
from logreel_ardupilot.reader import _CLOCK, _MULTIPLIER, _UNIT, _UNITS, Content

I64 = NDArray[np.int64]
#: Formats with the same messages: as records and as lines.
FORMATS = ("dataflash", "dataflash-text")
#: Kinds of the defining records of new logs, as ArduPilot numbers some of them; other kinds begin at 0.
KIND_OF = {FORMAT: FMT, UNITS: 200, UNIT: 201, MULTIPLIER: 202, CLOCK: 203}


def _record(kind: int, payload: bytes) -> bytes:
    return MARK + bytes([kind]) + payload


class DataFlashSchemas(SchemaMaker):
    """Definitions of channels, which only logs of this format have."""

    encoding = "dataflash"
    fixed_size = True

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.definitions: list[Definition] = []

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the definition of a message called *topic*, which begins with its time."""
        return definition_of(topic, layout).schema

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel."""
        return self.definitions[number].layout

    def time_field(self, number: int) -> tuple[str, int] | None:
        """Return the column with the time."""
        definition = self.definitions[number]
        time = definition.time
        if time is None:
            return None
        name = next(c.name for c in definition.columns or () if definition.place(c.name) == (time[0], c))
        return name, time[2]


class DataFlashWriter(FormatWriter):
    """Writes the messages in the order in which they are given.

    kinds  numbers of kinds that messages should get, by name
    """

    title = "a DataFlash log"
    epoch = "boot"
    earliest, latest, largest = 0, (1 << 63) - 1, 255 - HEAD
    appends_only = True

    def __init__(self, out: Appender) -> None:
        self.schemas: DataFlashSchemas = DataFlashSchemas(self.title)
        super().__init__(out, self.schemas)
        self.kinds: dict[str, int] = {}
        self._taken: dict[int, Definition] = {}
        self._kind_of = dict(KIND_OF)
        self._headers = RecordHeaders()
        self._units: dict[str, str] = {}
        self._factors: dict[str, float] = {}
        #: Time of the last record, ns, as reading gives it; None: unknown.
        self._time: int | None = None
        self._has_gps = False

    def begin(self) -> None:
        """Write the definitions of the records that define others."""
        for definition, kind in KIND_OF.items():
            self._take(kind, definition)
        self.out.commit()

    def go_on(self, content: Content) -> None:
        """Continue a log, with the definitions that it has."""
        found = content.found
        for kind in found.kinds:
            self._taken[kind.number] = kind.definition
            if kind.definition in KIND_OF:
                self._kind_of[kind.definition] = kind.number
        self._taken[FMT] = FORMAT
        for definition in KIND_OF:
            if self._taken.get(self._kind_of[definition]) != definition:
                self._kind_of[definition] = self._free(definition.name)
                self._take(self._kind_of[definition], definition)
        self._units, self._factors = dict(found.unit), dict(found.factor)
        self.kinds = {kind.definition.name: kind.number for kind in reversed(found.kinds)}

    # ------------------------------------------------------------------------------------------- definitions

    def _free(self, name: str) -> int:
        wanted = self.kinds.get(name)
        if wanted is not None and wanted not in self._taken:
            return wanted
        # Those that the log uses stay free for its channels as long as there are others.
        free = [kind for kind in range(KINDS) if kind not in self._taken]
        kind = next((kind for kind in free if kind not in self.kinds.values()), next(iter(free), None))
        if kind is None:
            raise DefinitionError(f"{name!r}: {self.title} has at most {KINDS} kinds of messages")
        return kind

    def _take(self, kind: int, definition: Definition) -> None:
        self._taken[kind] = definition
        self.write_record(FMT, definition.payload(kind))

    def write_record(self, kind: int, payload: bytes) -> None:
        """Write the record of a message that is none of a channel."""
        self.out.write(_record(kind, payload))

    def write_records(self, channel: NDArray[np.int32], place: I64, records: NDArray[np.uint8]) -> None:
        """Write records of messages: record i is of channel[i], and begins at place[i] of *records*."""
        self.out.write(records.tobytes())

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel: its definition, with units."""
        definition = self._definition(topic, schema)
        kind = self._free(definition.name)
        self._take(kind, Definition(definition.name, definition.size, definition.columns))
        columns = definition.columns or ()
        for c in columns:
            if c.unit_id != NONE and self._units.get(c.unit_id) != c.unit:
                self._units[c.unit_id] = c.unit
                payload = _UNIT.pack(self._stamp, _signed(c.unit_id), c.unit.encode("latin-1"))
                self.write_record(self._kind_of[UNIT], payload)
            if c.multiplier_id != NONE and self._factors.get(c.multiplier_id) != c.multiplier:
                self._factors[c.multiplier_id] = c.multiplier
                payload = _MULTIPLIER.pack(self._stamp, _signed(c.multiplier_id), c.multiplier)
                self.write_record(self._kind_of[MULTIPLIER], payload)
        letters = ("".join(c.unit_id for c in columns), "".join(c.multiplier_id for c in columns))
        if set("".join(letters)) - {NONE}:
            units, factors = (text.encode("latin-1") for text in letters)
            self.write_record(self._kind_of[UNITS], _UNITS.pack(self._stamp, kind, units, factors))
        self.out.commit()
        self._add(kind, definition)

    @property
    def _stamp(self) -> int:
        """The time of defining records, µs: pymavlink takes that of FMTU for the number of a kind if there is one."""
        return max((self._time or 0) // 1000, KINDS)

    def _definition(self, topic: str, schema: Schema) -> Definition:
        if schema.encoding != "dataflash":
            raise DefinitionError(
                f"channel {topic!r} of a DataFlash log needs a schema of encoding 'dataflash'"
            )
        definition = Definition.of_schema(schema)
        if topic.partition("#")[0] != definition.name:
            raise UsageError(
                f"{topic!r}: a DataFlash log names channels by their messages, {definition.name!r}"
            )
        return definition

    def _add(self, kind: int, definition: Definition) -> None:
        self.schemas.definitions.append(definition)
        self._headers.add(_record(kind, b""))
        self._has_gps = self._has_gps or definition.name in ("GPS", "GPS2")

    def continue_channels(self, log: Log) -> None:
        """Add the channels of the log that is continued, which are defined in it."""
        content: Content = log.format_state
        for kind, ch in zip(content.found.channels, log.match(None), strict=True):
            self._add(kind.number, content.definitions[kind.channel or 0])
            self.old_channels[ch.topic] = ch.schema

    # ---------------------------------------------------------------------------------------------- messages

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading gives it: logs have µs."""
        stored: I64 = time // 1000 * 1000
        return stored

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; the time in each becomes the one that is given."""
        if not len(channel):
            return
        definitions = self.schemas.definitions
        sizes = np.array([definition.size for definition in definitions], np.int64)
        if (payloads.size != sizes[channel]).any():
            row = int(np.argmax(payloads.size != sizes[channel]))
            due = definitions[channel[row]]
            raise UsageError(f"a message of {int(payloads.size[row])} bytes: {due.name} has {due.size}")
        if (time < 0).any():
            raise UsageError("a time before the start of the clock, which a DataFlash log cannot hold")
        timed = np.array([definition.time is not None for definition in definitions])[channel]
        for begin, end in _runs(timed):
            part, rows = slice(begin, end), payloads.rows(slice(begin, end))
            if timed[begin]:
                self._append(channel[part], time[part], rows)
            else:
                self._append_untimed(channel[part], time[part], rows)
        self.out.commit()

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages with a time of their own."""
        place = self._headers.places(channel, payloads.size)
        made = self._headers.compose(channel, time, payloads, place)
        for number in np.unique(channel).tolist():
            at, width, unit = self.schemas.definitions[number].time or (0, 0, 1)
            rows = np.flatnonzero(channel == number)
            raw = (time[rows] // unit).astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
            where = (place[rows] + HEAD + at)[:, None] + np.arange(width)
            # Times beyond int64 are read as its maximum: the bytes stay.
            kept = np.minimum(_unsigned(made[where]), ((1 << 63) - 1) // unit) == time[rows] // unit
            made[where[~kept]] = raw[~kept]
        self.write_records(channel, place, made)
        self._time = int(time[-1] // 1000 * 1000)

    def _append_untimed(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages that have the time of the record before; one with the time comes first where it differs."""
        for row in range(len(channel)):
            due = int(time[row] // 1000 * 1000)
            if due != self._time:
                self._write_clock(due, 0)
            one = slice(row, row + 1)
            place = self._headers.places(channel[one], payloads.size[one])
            made = self._headers.compose(channel[one], time[one], payloads.rows(one), place)
            self.write_records(channel[one], place, made)

    def _write_clock(self, time: int, utc: int) -> None:
        self._time = time
        self.write_record(self._kind_of[CLOCK], _CLOCK.pack(time // 1000, utc))

    # ---------------------------------------------------------------------------------------------- the file

    def finish(self) -> None:
        """Write the UTC time, where the messages may not say it."""
        clock = self.source_clock
        if clock is None or clock.utc_offset is None or (clock.is_whole and self._has_gps):
            return
        self._write_clock(self._time or 0, clock.utc_offset)
        self.out.commit()


def _unsigned(raw: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return uint64[n]: little-endian numbers, a row of bytes each."""
    wide = np.zeros((len(raw), 8), np.uint8)
    wide[:, : raw.shape[1]] = raw
    return wide.view("<u8")[:, 0]


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return begin and end of each run of equal flags."""
    cuts = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    return list(itertools.pairwise(cuts))


def _signed(letter: str) -> int:
    return (ord(letter) + 128) % 256 - 128


W = TypeVar("W", bound=DataFlashWriter)


def begun(writer: W) -> W:
    """Return *writer* after it has begun a new log."""
    writer.begin()
    return writer


def continued(writer: W, log: Log) -> W:
    """Return *writer* after it has taken over the channels and the state of *log*, whose bytes stay."""
    writer.out.keep_old(log.size)
    writer.continue_channels(log)
    writer.go_on(log.format_state)
    return writer


def create(out: Appender) -> DataFlashWriter:
    """Return the writer of a new log."""
    return begun(DataFlashWriter(out))


def append(out: Appender, log: Log) -> DataFlashWriter:
    """Return the writer that continues *log*."""
    return continued(DataFlashWriter(out), log)


class DataFlashCopier(LogCopier):
    """Copies logs: channels keep their numbers of kinds where these are free."""

    writer: DataFlashWriter

    def copy_metadata(self, log: Log) -> list[str]:
        """Take the numbers of the kinds of the log; all else follows from messages."""
        content: Content = log.format_state
        for kind in reversed(content.found.channels):
            self.writer.kinds[kind.definition.name] = kind.number
        return []

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Copy what a log holds besides messages: of one with the same messages nothing, as all follows from them."""
        return self.copy_metadata(log) if log.format in FORMATS else super().import_foreign(log, returns)

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the name of the message: those of several with one name follow from their order."""
        return topic.partition("#")[0]
