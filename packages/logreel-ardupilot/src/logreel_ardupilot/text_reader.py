"""Read a text log (``.log``): lines with the name of a message and its values, defined by FMT lines before them.

Blocks of lines are unpacked to the payloads that the messages have in a DataFlash log, so all that is made for those
works for text logs. Lines have no checksums: one is a message if each value fits the type of its column.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import (
    Blocks,
    ChannelRules,
    ChunkCache,
    Chunks,
    MessageIndex,
    Problem,
    Saved,
    Scan,
    Source,
    StoredValues,
)
from logreel_ardupilot import meaning
from logreel_ardupilot.definitions import (
    CLOCK,
    FMT_RECORD,
    FORMAT,
    MULTIPLIER,
    TYPES,
    UNIT,
    UNITS,
    Definition,
)
from logreel_ardupilot.lines import LineCodec, fields_of, unescaped
from logreel_ardupilot.reader import LAST_TIME, Found, Kind, scan_of

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
#: Bytes of lines that are unpacked together.
BLOCK = 1 << 21
#: First bytes of a file in which the vehicle is named, for the names of modes.
_NAMED_IN = 1 << 20
_FIRST = re.compile(rb"(?:^|\n)FMT, ?\d{1,3}, ?\d{1,3}, ?\w{1,4}, ?\w{1,16}")
_FMT = b"FMT"
_NO_BYTES: U8 = np.zeros(0, np.uint8)


def sniff(head: bytes) -> bool:
    """Return whether the first bytes of a file have a definition as a line, and no NUL before it."""
    match = _FIRST.search(head)
    return match is not None and b"\0" not in head[: match.start()]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A kind of message that lines can have, and the codec of its lines."""

    kind: Kind
    codec: LineCodec


@dataclass(frozen=True, slots=True)
class _Unpacked:
    """Messages of a block in the order of its lines.

    data     uint8[b]  their payloads; *size*: b, also where the payloads are not kept
    offset   int64[n]  where each begins
    channel  int64[n]
    time     int64[n]  ns; -1: it is that of the record before the block
    """

    data: U8
    offset: I64
    channel: I64
    time: I64
    size: int = 0


class TextReader:
    """Reads one text log from the front; ``found`` and ``index`` are what it says."""

    def __init__(self, source: Source) -> None:
        self._source, self.found = source, Found()
        self._modes = meaning.mode_numbers(source.read(0, _NAMED_IN))
        #: Where blocks begin, the names of messages there, and by the position of a definition what it defines.
        self._begin: list[int] = []
        self._names: list[dict[bytes, _Entry]] = [{}]
        self._defined: dict[int, _Entry | None] = {}
        self._entries: dict[tuple[int, Definition], _Entry] = {}
        self._time: int | None = None
        self._channels = 0
        #: Payloads of the first blocks, so that small logs are unpacked once.
        self._kept: list[U8] = []
        self._room = source.limits.cache_bytes
        blocks = [self._first_pass(start, stop) for start, stop in self._split()]
        self._begin.append(source.size)
        self._sizes = [block.size for block in blocks]
        self.index = self._index(blocks)

    def _split(self) -> Iterator[tuple[int, int]]:
        """Yield begin and end of blocks of complete lines; what follows the last one is a cut line."""
        data, size, start = self._source.data, self._source.size, 0
        while start < size:
            stop = start
            while stop < size:
                piece = data[stop : min(max(stop, start + BLOCK) + BLOCK, size)]
                ends = np.flatnonzero(piece[max(0, start + BLOCK - stop) :] == 10)
                if len(ends):
                    stop += max(0, start + BLOCK - stop) + int(ends[0]) + 1
                    break
                stop += len(piece)
            else:
                ends = np.flatnonzero(data[start:size] == 10)
                stop = start + int(ends[-1]) + 1 if len(ends) else start
                if stop < size:
                    text = f"the last {size - stop} bytes are a line without an end"
                    self.found.problems.append(Problem("truncated", stop, size - stop, True, text))
                if stop > start:
                    yield start, stop
                break
            yield start, stop
            start = stop
        self.found.problems.sort(key=lambda problem: problem.offset)

    # ---------------------------------------------------------------------------------------------- lines

    def _first_pass(self, start: int, stop: int) -> _Unpacked:
        self._begin.append(start)
        names, unpacked = self._unpack(start, stop, self._names[-1], True)
        self._names.append(names)
        if len(self._kept) == len(self._begin) - 1 and len(unpacked.data) <= self._room:
            self._kept.append(unpacked.data)
            self._room -= len(unpacked.data)
        return replace(unpacked, size=len(unpacked.data), data=_NO_BYTES)

    def _chunk(self, number: int) -> U8:
        if number < len(self._kept):
            return self._kept[number]
        begin, end = self._begin[number : number + 2]
        data = self._unpack(begin, end, self._names[number], False)[1].data
        # The file may have changed.
        size = self._sizes[number]
        return data if len(data) == size else np.resize(np.append(data, np.uint8(0)), size)

    def _unpack(
        self, start: int, stop: int, names: dict[bytes, _Entry], is_first: bool
    ) -> tuple[dict[bytes, _Entry], _Unpacked]:
        """Return the names of messages behind a block, and its messages; *is_first*: also take what it defines."""
        lines = bytes(self._source.data[start:stop]).split(b"\n")[:-1]
        place = start + np.cumsum([0, *(len(line) + 1 for line in lines)])
        known_names, numbers = names, dict[int, list[int]]()
        entries: dict[int, _Entry] = {}
        good = np.zeros(len(lines), np.bool_)
        clock = np.full(len(lines), -1, np.int64)
        for number, line in enumerate(lines):
            name = line[: line.find(b",")]
            if name == _FMT:
                pos = int(place[number])
                if is_first:
                    self._defined[pos] = self._define(pos, line)
                defined = self._defined.get(pos)
                if defined is not None and known_names.get(defined.codec.name) is not defined:
                    # One copy for each block, however many definitions it has.
                    known_names = dict(names) if known_names is names else known_names
                    known_names[defined.codec.name] = defined
                good[number] = True
            elif (known := known_names.get(name)) is None:
                good[number] = not line.strip()
            elif known.kind.channel is None:
                good[number] = not is_first or self._read_defining(known, line, clock[number:])
            else:
                entries[id(known)] = known
                numbers.setdefault(id(known), []).append(number)
        size, channel = np.zeros(len(lines), np.int64), np.full(len(lines), -1, np.int64)
        parts = []
        for key, entry in entries.items():
            rows = np.array(numbers[key])
            payloads, fits = entry.codec.payloads([lines[row] for row in numbers[key]])
            rows, payloads = rows[fits], payloads[fits]
            size[rows], channel[rows], good[rows] = payloads.shape[1], entry.kind.channel or 0, True
            parts.append((rows, payloads))
            if (time := entry.kind.definition.time) is not None:
                clock[rows] = _times(payloads, *time)
        if is_first:
            self._note_bad(place, good)
        offset, kept = np.cumsum(size) - size, np.flatnonzero(channel >= 0)
        data = np.zeros(int(size.sum()), np.uint8)
        for rows, payloads in parts:
            data[offset[rows][:, None] + np.arange(payloads.shape[1])] = payloads
        # The time of each line is its own, or that of the last one before that has one.
        last = np.maximum.accumulate(np.where(clock >= 0, np.arange(len(lines)), -1)) if len(lines) else kept
        times = np.where(last >= 0, clock[last], -1)[kept]
        if is_first and len(lines):
            times, self._time = self._filled(times), int(clock[last[-1]]) if last[-1] >= 0 else self._time
        return known_names, _Unpacked(data, offset[kept], channel[kept], times)

    def _filled(self, times: I64) -> I64:
        """Return the times with that before the block where it has none; -1 stays before the first one."""
        return times if self._time is None else np.where(times < 0, self._time, times)

    def _note_bad(self, place: I64, good: NDArray[np.bool_]) -> None:
        edges = np.flatnonzero(np.diff(np.concatenate([[True], good, [True]])))
        for first, behind in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            begin, end, problems = int(place[first]), int(place[behind]), self.found.problems
            is_head = begin < next(iter(self._defined), self._source.size)
            if (
                problems
                and problems[-1].code == "garbage"
                and problems[-1].offset + problems[-1].size == begin
            ):
                begin = problems.pop().offset
            what = "before the first definition" if is_head else "of lines that are no messages"
            problems.append(
                Problem("garbage", begin, end - begin, not is_head, f"{end - begin} bytes {what}")
            )

    # ------------------------------------------------------------------------------------------ definitions

    def _define(self, pos: int, line: bytes) -> _Entry | None:
        """Return what an FMT line defines; None for the definition of definitions, and for damaged ones."""
        try:
            # Old logs define FMT without its last column.
            fields = [*map(unescaped, fields_of(line + b"," * (line.count(b",") == 4), 5))]
            kind, name, letters, columns = int(fields[0]), fields[2].strip(), fields[3].strip(), fields[4]
            size = 3 + sum(TYPES[letter][1] for letter in letters.decode("ascii"))
            number, definition = Definition.read(FMT_RECORD.pack(kind, size, name, letters, columns.strip()))
        except (ValueError, KeyError, struct.error):
            number, definition = 0, None
        if definition is not None and definition.name == FORMAT.name:
            return None
        if definition is None or definition.columns is None:
            text = "a damaged definition: its messages cannot be read"
            self.found.problems.append(Problem("definition", pos, len(line) + 1, False, text))
            return None
        if (known := self._entries.get((number, definition))) is not None:
            return known
        stops = definition in (UNITS, UNIT, MULTIPLIER, CLOCK)
        made = Kind(number, definition, None if stops else self._channels, pos)
        self._channels += not stops
        self.found.kinds.append(made)
        self.found.kind_of[number] = made
        self._entries[number, definition] = _Entry(made, LineCodec(definition, self._modes))
        return self._entries[number, definition]

    def _read_defining(self, entry: _Entry, line: bytes, clock: I64) -> bool:
        """Take what a line defines, and the time of a clock into clock[0]; return whether it is sound."""
        payloads, fits = entry.codec.payloads([line])
        if not fits[0]:
            return False
        self.found.take(entry.kind, payloads[0].tobytes(), entry.kind.since)
        if entry.kind.definition == CLOCK:
            clock[0] = self.found.clocks.pop()[1]
        return True

    # -------------------------------------------------------------------------------------------- the index

    def _index(self, blocks: list[_Unpacked]) -> MessageIndex:
        channels = self._channels
        counts = np.array([np.bincount(block.channel, minlength=channels) for block in blocks], np.int64)
        counts = counts.reshape(len(blocks), channels)
        orders = [np.argsort(block.channel, kind="stable") for block in blocks]
        start = np.zeros((len(blocks), channels + 1), np.int64)
        start[:, 1:] = np.cumsum(counts, axis=1)
        start += (np.cumsum(counts.sum(axis=1)) - counts.sum(axis=1))[:, None]
        nothing = np.zeros(0, np.int64)
        entry, time = (
            np.concatenate([nothing, *(column[order] for column, order in zip(columns, orders, strict=True))])
            for columns in ([block.offset for block in blocks], [block.time for block in blocks])
        )
        # Messages before the first time have that one.
        first = next((int(block.time[block.time >= 0][0]) for block in blocks if (block.time >= 0).any()), 0)
        time[time < 0] = first
        base, number = np.zeros(len(blocks), np.int64), np.arange(len(blocks), dtype=np.int32)
        kept = np.flatnonzero(counts.sum(axis=0)).tolist()
        table = Blocks(base, number, start, entry.astype(np.uint32)).reshaped(kept, 0)
        self.found.renumber(kept)
        sizes = self._sizes
        chunks = Chunks(
            self._source,
            ChunkCache(self._chunk, sizes, len(self._kept) < len(sizes), self._source.limits),
            sizes.__getitem__,
            self._begin.__getitem__,
        )
        times = StoredValues(time)
        rules = [ChannelRules(times, kind.definition.size) for kind in self.found.channels]
        return MessageIndex(chunks, table, rules)


def _times(payloads: U8, at: int, width: int, unit: int) -> I64:
    """Return int64[n]: the times in payloads, ns."""
    raw = np.zeros((len(payloads), 8), np.uint8)
    raw[:, :width] = payloads[:, at : at + width]
    numbers = np.minimum(raw.view("<u8")[:, 0], np.uint64(LAST_TIME // unit))
    times: I64 = numbers.astype(np.int64) * unit
    return times


def scan(source: Source, saved: Saved | None) -> Scan | None:
    """Return the Scan of a text log."""
    if saved is not None:
        return None
    reader = TextReader(source)
    return scan_of(reader.found, reader.index)
