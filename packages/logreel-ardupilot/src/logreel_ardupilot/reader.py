"""Read a DataFlash log: follow its records with compiled code, which stops at definitions and at what is damaged.

A record has neither a size nor a checksum: its size follows from its kind, which an earlier FMT record defines.
Evidence for a record is its mark and that another one follows.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import (
    BlockBuilder,
    Blocks,
    ChannelInfo,
    ChannelRules,
    Chunks,
    FieldAt,
    MarkedRecords,
    MessageIndex,
    Parameter,
    Problem,
    Saved,
    Scan,
    Source,
    TextLine,
)
from logreel_ardupilot import meaning
from logreel_ardupilot.definitions import (
    CLOCK,
    FMT,
    FMT_RECORD,
    FORMAT,
    HEAD,
    MARK,
    MULTIPLIER,
    UNIT,
    UNITS,
    Definition,
    dtype_of,
    text_of,
)

I64 = NDArray[np.int64]
#: Records in a row that are enough evidence to continue reading after damage.
CHAIN = 3
#: Times farther than this from the median are those of damaged messages, ns.
ABSURD = 30 * 86400 * 10**9
LAST_TIME = (1 << 63) - 1
#: UNIT and MULT: the letter, and the number or the text.
_UNIT, _MULTIPLIER, _UNITS = struct.Struct("<Qb64s"), struct.Struct("<Qbd"), struct.Struct("<QB16s16s")
_CLOCK = struct.Struct("<Qq")


@dataclass(slots=True)
class Kind:
    """A kind of message as one FMT record defines it.

    channel  its number; None if it is no channel
    since    position of the definition
    """

    number: int
    definition: Definition
    channel: int | None
    since: int = 0
    units: tuple[str, str] = ("", "")


@dataclass(slots=True)
class Found:
    """The content of a log.

    kinds       all kinds that were defined, in the order of their definitions
    kind_of     the last one of each number
    clocks      positions of the records by which logreel states times, and the times, ns
    utc_offset  ns, as logreel stored it; None if it did not
    """

    kinds: list[Kind] = field(default_factory=list)
    kind_of: dict[int, Kind] = field(default_factory=dict)
    unit: dict[str, str] = field(default_factory=dict)
    factor: dict[str, float] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    clocks: list[tuple[int, int]] = field(default_factory=list)
    utc_offset: int | None = None

    @property
    def channels(self) -> list[Kind]:
        """The kinds that are channels, by their numbers."""
        return [kind for kind in self.kinds if kind.channel is not None]

    def renumber(self, kept: list[int]) -> None:
        """Give the channels *kept*, ascending, the numbers from 0 on; others are no channels any more."""
        numbers = {old: new for new, old in enumerate(kept)}
        for kind in self.channels:
            kind.channel = numbers.get(kind.channel or 0)

    def schema_of(self, kind: Kind) -> Definition:
        """Return the definition with units."""
        return kind.definition.with_units(*kind.units, self.unit, self.factor)

    def take(self, kind: Kind, payload: bytes, pos: int) -> None:
        """Take what a message at *pos* that is no message of a channel says of others."""
        if kind.definition == UNITS:
            _, number, units, multipliers = _UNITS.unpack(payload)
            of = self.kind_of.get(number)
            if of is not None:
                of.units = text_of(units), text_of(multipliers)
        elif kind.definition == UNIT:
            _, letter, label = _UNIT.unpack(payload)
            self.unit[chr(letter & 0xFF)] = text_of(label)
        elif kind.definition == MULTIPLIER:
            _, letter, factor = _MULTIPLIER.unpack(payload)
            self.factor[chr(letter & 0xFF)] = factor if math.isfinite(factor) else 0.0
        else:
            time, utc = _CLOCK.unpack(payload)
            self.clocks.append((pos, min(time * 1000, LAST_TIME)))
            self.utc_offset = utc or self.utc_offset


class Reader:
    """Reads one log from the front."""

    def __init__(self, source: Source) -> None:
        self._source, self._data, self._end = source, source.data, source.size
        self.found = Found()
        self._records = MarkedRecords(source.data, MARK)
        self._records.declare(FMT, FMT_RECORD.size, None)
        #: Number of channels so far, and the position of the last record that the walk did not collect.
        self._channels, self._seen = 0, -1
        #: The last definition of each kind, as it is in the file: some loggers repeat them.
        self._defined: dict[int, bytes] = {}

    @property
    def _blocks(self) -> BlockBuilder:
        return self._records.blocks

    def read(self) -> Found:
        """Read the file, and return everything that was found; ``blocks`` has the messages."""
        pos = 0
        while pos < self._end:
            pos = self._records.walk(pos)
            if pos < self._end:
                pos = self._decide(pos)
        return self.found

    def index(self) -> MessageIndex:
        """Return where the messages are; kinds without messages are no channels any more."""
        table, _ = self._blocks.finish(self._channels)
        kept = np.flatnonzero(table.counts).tolist()
        table = table.reshaped(kept, 0)
        self.found.renumber(kept)
        before, rules = _TimesBefore(self._data, self.found, table), []
        for kind in self.found.channels:
            time = kind.definition.time
            rule = partial(before.of, kind.channel or 0) if time is None else FieldAt(*time)
            rules.append(ChannelRules(rule, kind.definition.size))
        return MessageIndex(Chunks(self._source), table, rules)

    # ----------------------------------------------------------------------------------------------- records

    def _decide(self, pos: int) -> int:
        """Return where to continue; the walk stopped at *pos*."""
        head = self._source.read(pos, HEAD)
        kind = self.found.kind_of.get(head[2]) if len(head) == HEAD else None
        if head[:2] != MARK or len(head) < HEAD:
            return self._damaged(pos)
        if head[2] == FMT:
            payload = self._source.read(pos + HEAD, FMT_RECORD.size)
            if len(payload) < FMT_RECORD.size:
                return self._damaged(pos)
            self._define(pos, payload)
            return pos + HEAD + FMT_RECORD.size
        if kind is None:
            return self._damaged(pos)
        payload = self._source.read(pos + HEAD, kind.definition.size)
        if len(payload) < kind.definition.size:
            return self._damaged(pos)
        self.found.take(kind, payload, pos)
        self._seen = pos
        return pos + HEAD + kind.definition.size

    def _define(self, pos: int, payload: bytes) -> None:
        if self._defined.get(payload[0]) == payload:
            return
        self._defined[payload[0]] = payload
        number, definition = Definition.read(payload)
        known = self.found.kind_of.get(number)
        if known is not None and known.definition == definition:
            return
        if number == FMT:
            if definition != FORMAT:
                self._problem(
                    "definition", pos, HEAD + FMT_RECORD.size, False, "definitions are defined otherwise"
                )
            return
        if definition is None:
            text = f"a definition of messages of kind {number} without any bytes"
            self._problem("definition", pos, HEAD + FMT_RECORD.size, True, text)
            return
        if definition.columns is None:
            text = f"the definition of {definition.name!r} is damaged: its messages are shown as bytes"
            self._problem("definition", pos, HEAD + FMT_RECORD.size, False, text)
        stops = definition in (UNITS, UNIT, MULTIPLIER, CLOCK)
        kind = Kind(number, definition, None if stops else self._channels, pos)
        self.found.kinds.append(kind)
        self.found.kind_of[number] = kind
        self._records.declare(number, definition.size, kind.channel)
        self._channels += not stops

    # ------------------------------------------------------------------------------------------------ damage

    def _problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        self.found.problems.append(Problem(code, offset, size, lost, text))

    def _damaged(self, pos: int) -> int:
        """Record the bytes from *pos* to the next records as a problem; return where these begin."""
        head = self._source.read(pos, HEAD)
        last = self._blocks.last
        after = self._records.find(pos + 1, CHAIN)
        if last > self._seen and head[:2] != MARK[: len(head)]:
            # Bytes may be missing from the record before: then others begin inside of it.
            inside = self._records.find(last + 1, CHAIN)
            if 0 <= inside < pos:
                self._blocks.drop_last()
                self._blocks.last = self._seen
                pos, after = last, inside
        stop = self._end if after < 0 else after
        size, code = stop - pos, "garbage"
        if not self._data[pos:stop].any():
            code, text = "zeros", f"{size} bytes of zeros where records should be"
        elif after < 0 and (len(head) < HEAD or (head[:2] == MARK and self._is_cut(pos, head[2]))):
            code, text = "truncated", f"the last {size} bytes are a cut record"
        elif head[:2] == MARK and head[2] not in self.found.kind_of:
            text = f"{size} bytes from a record of kind {head[2]} on, which nothing defines"
        else:
            text = f"{size} bytes that are no sound record"
        self._problem(code, pos, size, True, text)
        return stop

    def _is_cut(self, pos: int, number: int) -> bool:
        kind = self.found.kind_of.get(number)
        size = FMT_RECORD.size if kind is None else kind.definition.size
        return (kind is not None or number == FMT) and pos + HEAD + size > self._end


class _TimesBefore:
    """Times of messages that have none: each has that of the last record before it, else that of the first one."""

    def __init__(self, data: NDArray[np.uint8], found: Found, table: Blocks) -> None:
        self._data, self._found, self._table = data, found, table

    def of(self, channel: int, index: Any) -> I64:
        """Return int64[n]: the times of the messages of *channel*, ns."""
        return self._times[channel]

    @cached_property
    def _times(self) -> dict[int, I64]:
        """Times by channel of all channels whose messages have none."""
        table, kinds = self._table, self._found.channels
        untimed = [n for n, kind in enumerate(kinds) if kind.definition.time is None]
        timed = [n for n in range(len(kinds)) if n not in untimed]
        first = min((table.first(n) for n in timed if table.counts[n]), default=0)
        return {n: self._at(table.latest_before(n, timed), table.offsets(n), first) for n in untimed}

    def _at(self, place: I64, message: I64, first: int) -> I64:
        """Return int64[n]: the times of the records at *place*, or of clocks between these and the messages, ns."""
        place = np.where(place > 0, place, first)
        times = np.zeros(len(place), np.int64)
        number = self._data[place - 1] if first else np.zeros(len(place), np.uint8)
        present = np.bincount(number, minlength=256)
        # Of several definitions of one number, the last one before a record is that of the record.
        for kind in self._found.channels:
            if (time := kind.definition.time) is not None and present[kind.number]:
                rows = np.flatnonzero(number == kind.number)
                rows = rows[place[rows] > kind.since]
                times[rows] = FieldAt(*time).read(self._data, place[rows])
        clocks = np.array(self._found.clocks, np.int64).reshape(-1, 2)
        row = np.searchsorted(clocks[:, 0], message)
        stated = np.flatnonzero(row > 0)
        stated = stated[(clocks[row[stated] - 1, 0] > place[stated]) | (place[stated] > message[stated])]
        times[stated] = clocks[row[stated] - 1, 1]
        return times


@dataclass(frozen=True)
class Content:
    """A log that was read, for what it says besides its messages.

    definitions  by channel
    """

    found: Found
    index: MessageIndex
    definitions: list[Definition]

    def rows(self, name: str) -> list[NDArray[np.void]]:
        """Return the messages called *name* as structured arrays, one for each of their definitions."""
        parts = []
        for channel, definition in enumerate(self.definitions):
            if definition.name == name and definition.columns is not None and self.index.count(channel):
                parts += [
                    records_of(np.asarray(self.index.chunks[chunk]), offset, definition)
                    for chunk, offset in self.index.payloads_by_chunk(channel)
                ]
        return parts

    def parameters(self) -> list[Parameter]:
        """Return the parameters, from PARM."""
        return meaning.parameters(self.rows("PARM"))

    def text(self) -> list[TextLine]:
        """Return the lines of text: MSG, and the names of events and errors."""
        return meaning.text(self.rows)

    def utc_offset(self) -> int | None:
        """Return the ns from the clock of the log to UTC, by GPS or as logreel stored it; None if unknown."""
        by_gps = meaning.utc_offset([*self.rows("GPS"), *self.rows("GPS2")])
        return self.found.utc_offset if by_gps is None else by_gps

    def bounds(self) -> tuple[int | None, int | None]:
        """Return the first and the last time, ns, without those of damaged messages."""
        live = [self.index.times(n) for n in range(len(self.definitions)) if self.index.count(n)]
        if not live:
            return None, None
        middle = int(np.median(np.concatenate([times[[0, len(times) // 2, -1]] for times in live])))
        lo, hi = max(middle - ABSURD, -LAST_TIME), min(middle, LAST_TIME - ABSURD) + ABSURD
        kept = [times[(times >= lo) & (times <= hi)] for times in live]
        kept = [times for times in kept if len(times)]
        if not kept:
            kept = live
        return min(int(times.min()) for times in kept), max(int(times.max()) for times in kept)

    def metadata(self) -> dict[str, Any]:
        """Return what firmware wrote the log, and how many kinds it defines."""
        return {**meaning.firmware([line.text for line in self.text()]), "definitions": len(self.found.kinds)}


def records_of(data: NDArray[np.uint8], offset: I64, definition: Definition) -> NDArray[np.void]:
    """Return the messages at *offset* as a structured array."""
    rows = data[offset[:, None] + np.arange(definition.size)]
    return np.ascontiguousarray(rows).reshape(-1).view(dtype_of(definition))


def scan(source: Source, saved: Saved | None) -> Scan | None:
    """Return the Scan of a DataFlash log."""
    if saved is not None:
        return None
    reader = Reader(source)
    found = reader.read()
    return scan_of(found, reader.index())


def scan_of(found: Found, index: MessageIndex) -> Scan:
    """Return the Scan of what was found, with the index of its channels."""
    definitions = [found.schema_of(kind) for kind in found.channels]
    content = Content(found, index, definitions)
    names, channels = dict[str, int](), list[ChannelInfo]()
    for definition in definitions:
        again = names[definition.name] = names.get(definition.name, 0) + 1
        topic = definition.name if again == 1 else f"{definition.name}#{again}"
        channels.append(ChannelInfo(topic, definition.schema, _layout_of(definition)))
    return Scan(
        "with units" if found.unit else "without units",
        "boot",
        None,
        None,
        channels,
        index,
        found.problems,
        metadata=content.metadata,
        parameters=content.parameters,
        text=content.text,
        utc_offset=content.utc_offset,
        bounds=content.bounds,
        format_state=content,
    )


def _layout_of(definition: Definition) -> Callable[[], Any]:
    return lambda: definition.layout
