"""Build the Scan of a Koblenz log from what reading found.

Times are ms since the recorder started; fixes of GPS give the UTC offset.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field, replace
from logreel.errors import Finding
from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED, Kind
from logreel.formats.koblenz.framing import (
    ENOUGH,
    Found,
    Variant,
    detect_variant,
    is_complete,
    seconds_between,
    wrong_entries,
)
from logreel.formats.koblenz.reader import Reader, disagreeing, read
from logreel.formats.koblenz.records import FILE_HEADER, VALID_MARK, SizeReading, read_utc_note
from logreel.index.block_table import TIME_MAX, Blocks
from logreel.index.channel_index import ChannelRules, FieldAt, Rule
from logreel.index.gather import PayloadRange, gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, distinct
from logreel.io.source import FILE, Buffer, Chunks, Source
from logreel.layout.layout import Layout
from logreel.log.scan import LATIN_1, ORIGINAL, ChannelInfo, Scan, ScanPart, Schema
from logreel.log.side_columns import LayoutDecoder

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded

NS_PER_MS = 1e6
#: The greatest time: an interval that contains it needs a greater end.
LATEST = TIME_MAX - 1
#: Offset of the time in the header from the start of the payload.
STAMP = -8
#: A stamp counts for the bounds of a log if another one is within this distance.
SUPPORT_NS = 600 * 10**9
#: Number of messages at each end of a channel that ``bounds`` looks at.
EDGE_MESSAGES = 2

_FIX = np.dtype(
    [
        ("hour", "<i4"),
        ("minute", "<i4"),
        ("second", "<i4"),
        ("warning", "<i4"),
        ("", "V24"),
        ("day", "<i4"),
        ("month", "<i4"),
        ("year", "<i4"),
        ("quality", "<i4"),
    ]
)


def to_ns(ms: NDArray[np.float64]) -> I64:
    """Return int64[n] ns; NaN becomes the time of the message before, too great times become the limit."""
    bad = np.isnan(ms)
    if bad.any():
        at = np.maximum.accumulate(np.where(bad, 0, np.arange(len(ms))))
        ms = ms[at]
        ms[np.isnan(ms)] = 0
    # Beyond the limit, but within the range of float64.
    ns = np.rint(np.clip(ms, -1e13, 1e13) * NS_PER_MS)
    # The greatest float64 below the limit is 1024 smaller.
    far = np.abs(ns) >= float(LATEST)
    out = np.where(far, 0, ns).astype(np.int64)
    out[far] = np.where(ns[far] > 0, LATEST, -LATEST)
    return out


def stamps(index: MessageIndex, offset: I64) -> I64:
    """Return int64[n] ns of messages whose payloads begin at *offset*."""
    return to_ns(_read(index, offset))


class StampTimes(Rule):
    """The times of messages: the stamps in their headers."""

    reads_messages = True

    def values(self, index: MessageIndex, channel: int, rows: I64 | None = None) -> I64:  # type: ignore[override]
        """Read the stamps of all messages, or of those at *rows*."""
        if rows is not None:
            ms = _read(index, index.locate(channel, rows)[1])
            # The time of a message without one is that of the message before.
            if not np.isnan(ms).any():
                return to_ns(ms)
        times = stamps(index, index.offsets(channel))
        return times if rows is None else times[rows]


def _read(index: MessageIndex, offset: I64) -> NDArray[np.float64]:
    return gather_bytes(index.chunks[FILE], offset, 8, STAMP).view(np.float64)[:, 0]


def bounds(index: MessageIndex) -> tuple[int | None, int | None]:
    """Return first and last time of a log from a few messages of each channel; a lone absurd stamp does not count."""
    b, seen = index.blocks, []
    for channel in range(len(index.rules)):
        ends = np.cumsum(b.start[:, channel + 1] - b.start[:, channel])
        n = int(ends[-1]) if len(ends) else 0
        for row in {*range(min(EDGE_MESSAGES, n)), *range(max(0, n - EDGE_MESSAGES), n)}:
            i = int(ends.searchsorted(row, side="right"))
            entry = int(b.start[i, channel + 1]) - (int(ends[i]) - row)
            seen.append(int(b.base[i]) + int(b.entry[entry]))
    times = np.sort(stamps(index, np.array(sorted(seen), np.int64)))
    if not len(times):
        return None, None
    # As Python integers: differences of extreme times do not fit 64 bits.
    known = times.tolist()
    near = [
        t
        for t, *others in zip(known, [None, *known[:-1]], [*known[1:], None], strict=True)
        if any(o is not None and abs(t - o) <= SUPPORT_NS for o in others)
    ]
    near = near or known
    return near[0], near[-1]


def utc_offset(index: MessageIndex, channel: int) -> int | None:
    """Return the UTC offset in ns from the fixes of *channel*: the lower median over all valid fixes with a date."""
    offset = index.offsets(channel)
    rows = gather_bytes(index.chunks[FILE], offset, _FIX.itemsize).view(_FIX)[:, 0]
    valid = (rows["warning"] == 0) & (rows["quality"] > 0)
    times = index.times(channel)
    offsets = [
        utc - int(times[i])
        for i in np.flatnonzero(valid).tolist()
        if (
            utc := _utc(
                *(int(rows[name][i]) for name in ("year", "month", "day", "hour", "minute", "second"))
            )
        )
    ]
    return median_low(offsets) if offsets else None


def _utc(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    """Return ns since 1970, or None for an invalid date."""
    if 0 <= year < 100:
        year += 2000 if year < 80 else 1900
    try:
        # A leap second counts as the first second of the next minute.
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return (int(moment.timestamp()) + (second == 60)) * 10**9 if moment.year >= 1980 else None


def verify(entries: int, seconds: int, is_complete: bool) -> list[Finding]:
    """Return a finding ``index`` if the time index is not complete.

    entries  number of entries that the index has
    seconds  number of seconds of the log
    """
    if is_complete:
        return []
    text = (
        f"the index has {entries} entries for a log of {seconds} seconds; recover makes a new one"
        if entries
        else "the index is empty; recover makes one"
    )
    return [Finding("index", "warn", 8, 4, text)]


#: Largest number of sensors of a type with separate channels; no robot has as many.
MAX_SENSORS = 1000


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor.

    name      what its topic adds to the name of the type
    metadata  values of the leading fields
    """

    name: str
    metadata: dict[str, Any]
    layout: Layout


def as_text(data: bytes) -> str:
    """Decode UTF-8, or Latin-1 if that is invalid: the description names no encoding."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def sensors(message_kind: Kind, data: Buffer, offset: I64) -> tuple[list[Sensor], I64]:
    """Return the sensors in order of their first message, and int64[n]: the sensor number of each message.

    offset  int64[n]: positions of the payloads
    """
    keys, part = _leading_bytes(message_kind, data, offset)
    make = _pictures if "source_id" in _instance(message_kind) else _lasers
    made = make(message_kind, keys[:MAX_SENSORS])
    if len(keys) > MAX_SENSORS:
        made.append(Sensor("others", {}, RAW))
        part = np.minimum(part, MAX_SENSORS)
    return made, part


def pose_guesses(payload: bytes) -> dict[str, str]:
    """Guess the order of the quaternion and the unit of the acceleration from the first pose of a log."""
    numbers = struct.unpack("<7f", payload)
    force = math.hypot(*numbers[4:])
    unit = next(
        (name for name, unit_force in (("m/s2", 9.81), ("g", 1.0)) if abs(force / unit_force - 1) < 0.2),
        "unknown",
    )
    return {
        "quaternion_order": "w x y z" if abs(numbers[0]) >= abs(numbers[3]) else "x y z w",
        "acceleration_unit": unit,
    }


def _instance(message_kind: Kind) -> tuple[str, ...]:
    return message_kind.known.instance if message_kind.known is not None else ()


def _leading_bytes(message_kind: Kind, data: Buffer, offset: I64) -> tuple[list[bytes], I64]:
    """Return the distinct leading bytes in order of appearance, and int64[n]: which of them each message has."""
    groups = _number_pairs(offset) if "source_id" in _instance(message_kind) else _text_pairs(data, offset)
    first: dict[bytes, int] = {}
    part = np.zeros(len(offset), np.int64)
    codes: dict[bytes, int] = {}
    for width, rows in groups:
        heads = gather_bytes(data, offset[rows], width).view(f"V{width}")[:, 0]
        distinct, at, code = np.unique(heads, return_index=True, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        for i, (head, row) in enumerate(zip(distinct.tolist(), rows[at].tolist(), strict=True)):
            numbers[i] = codes.setdefault(head, len(codes))
            first[head] = row
        part[rows] = numbers[code.reshape(-1)]
    order = sorted(first, key=lambda head: first[head])
    rank = np.empty(len(order), np.int64)
    rank[[codes[head] for head in order]] = np.arange(len(order))
    return order, rank[part]


def _number_pairs(offset: I64) -> list[tuple[int, I64]]:
    """Return one group with all rows: two leading numbers have 8 bytes."""
    return [(8, np.arange(len(offset), dtype=np.int64))]


def _text_pairs(data: Buffer, offset: I64) -> list[tuple[int, I64]]:
    """Return rows grouped by the size of two leading texts in bytes; reading has checked their lengths."""
    first_size = gather_bytes(data, offset, 4).view("<u4")[:, 0].astype(np.int64)
    two = gather_bytes(data, offset + 4 + first_size, 4).view("<u4")[:, 0].astype(np.int64)
    width = 8 + first_size + two
    return [(int(w), np.flatnonzero(width == w)) for w in distinct(width)]


def _pictures(message_kind: Kind, keys: list[bytes]) -> list[Sensor]:
    cameras = []
    for key in keys:
        camera = int.from_bytes(key[:4], "little", signed=True)
        compressed = any(key[4:])
        name = f"{camera}" if compressed else f"{camera}@uncompressed"
        layout = message_kind.layout if compressed else UNCOMPRESSED
        cameras.append(Sensor(name, {"source_id": camera}, layout))
    return cameras


def _lasers(message_kind: Kind, keys: list[bytes]) -> list[Sensor]:
    scanners = []
    for key in keys:
        size = int.from_bytes(key[:4], "little")
        names = {"sensor_type": key[4 : 4 + size], "sensor_name": key[8 + size :]}
        metadata: dict[str, Any] = {field: as_text(data) for field, data in names.items()}
        latin_1 = [field for field, data in names.items() if metadata[field].encode() != data]
        metadata |= {LATIN_1: latin_1} if latin_1 else {}
        scanners.append(Sensor(metadata["sensor_name"], metadata, message_kind.layout))
    return scanners


class NamesDecoder(LayoutDecoder):
    """Decodes messages of a sensor whose names are not UTF-8: *names* by field, as in its topic and metadata."""

    def __init__(self, layout: Layout, names: Mapping[str, str]) -> None:
        super().__init__(layout)
        self.layout, self._names = None, names

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.layout.numpy_columns import PlainValues

        got = super().decode_batch(index, layout, piece, rows)
        arrays = [
            PlainValues(f.node, [self._names[f.name]] * len(column)) if f.name in self._names else column
            for f, column in zip(layout.record.visible(), got.arrays, strict=True)
        ]
        return replace(got, arrays=arrays)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        values = super().decode_message(index, data, row)
        return values | {name: text for name, text in self._names.items() if name in values}


@dataclass(frozen=True, slots=True)
class FormatState:
    """What a writer needs to copy messages of an open log as they are.

    index           of all messages
    has_utc_note    whether the UTC offset is written behind the end mark
    has_full_index  whether the time index has an entry for each second
    index_room      number of entries that fit before the first message; None if its position fits no number
    end             position after the last message
    """

    source: Source
    index: MessageIndex
    size_reading: SizeReading
    mark: int
    has_utc_note: bool
    has_full_index: bool
    index_room: int | None
    end: int


@dataclass(frozen=True, slots=True)
class _Channel:
    kind: Kind
    topic: str
    layout: Layout
    metadata: dict[str, Any] = field(default_factory=dict)


def scan(source: Source) -> Scan:
    """Return the Scan of a file. Raises UnsupportedError for a version from the future."""
    variant = detect_variant(source)
    return build(source, variant, read(source, variant))


class KoblenzGrowing:
    """The Growing of one Koblenz log."""

    def __init__(self) -> None:
        self._variant: Variant | None = None
        self._reader: Reader | None = None
        self._checked = 0
        self._is_damaged = False

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._is_damaged:
            return None
        if self._variant is None or self._reader is None:
            self._variant = detect_variant(source)
            self._reader = Reader(source, self._variant)
        reader = self._reader
        is_decided = reader.feed(source)
        content = reader.found()
        if int(content.blocks.counts.sum()) < ENOUGH:
            # How the file is to be read follows from its first messages.
            self._reader = None
            return None
        if not is_decided:
            return None
        if next(disagreeing(content, self._checked), None) is not None:
            # A size that is damaged although a message seems to follow: judged with several passes over the file.
            self._is_damaged, self._reader = True, None
            return None
        self._checked = reader.pos
        return build(source, self._variant, content)


def build(source: Source, variant: Variant, content: Found) -> Scan:
    """Return the Scan of what was found in a file."""
    blocks, channels = _channels(source, content)
    rules = [ChannelRules(StampTimes(), _size_rule(channel, content)) for channel in channels]
    index = MessageIndex(Chunks(source), blocks, rules)
    start, end = bounds(index)
    seconds = 0 if end is None else seconds_between(_first_time(content, index), end)
    has_full_index = is_complete(variant.entries, seconds)
    utc_note = read_utc_note(source, content.end)

    def part(selected: ScanPart) -> Scan:
        first, last = bounds(selected.index)
        shown = {n for n in selected.shown if selected.index.count(n) or _is_declared(channels[n].kind)}
        return replace(made, index=selected.index, start=first, end=last, shown=shown)

    made = Scan(
        part=part,
        version=variant.version,
        epoch="start",
        start=start,
        end=end,
        channels=[_channel_info(channel) for channel in channels],
        index=index,
        problems=content.problems + wrong_entries(source, variant),
        metadata=partial(_metadata, variant, content),
        utc_offset=partial(_utc_offset, index, channels, utc_note),
        verify=partial(verify, len(variant.entries), seconds, has_full_index),
        format_state=FormatState(
            source,
            index,
            variant.size_reading,
            variant.mark,
            utc_note is not None,
            has_full_index,
            _index_room(variant),
            source.size if content.end is None else content.end,
        ),
    )
    return made


def _index_room(variant: Variant) -> int | None:
    room, rest = divmod(variant.first - FILE_HEADER, 8)
    return None if rest else room


def _channels(source: Source, content: Found) -> tuple[Blocks, list[_Channel]]:
    """Return the block table by channel, and the channels: kinds that have messages, split by sensor.

    After these come types that the log states to be channels, although they have no messages.
    """
    live = content.blocks.live()
    blocks, channels, taken = content.blocks.reshaped(live, 0), list[_Channel](), set[str]()
    for number in live:
        message_kind = content.kinds[number]
        if not (message_kind.is_described and message_kind.known and message_kind.known.instance):
            metadata = {}
            if message_kind.is_described and message_kind.name == "RobotPoseM":
                metadata = pose_guesses(source.read(content.blocks.first(number), 28))
            channels.append(_Channel(message_kind, message_kind.name, message_kind.layout, metadata))
            continue
        each, sensor_of = sensors(message_kind, source.data, content.blocks.offsets(number))
        blocks = blocks.split(len(channels), sensor_of, len(each))
        for sensor in each:
            topic = _distinct(f"{message_kind.name}/{sensor.name}", taken)
            channels.append(_Channel(message_kind, topic, sensor.layout, sensor.metadata))
    seen = {content.kinds[number].type for number in live}
    empty = [
        message_kind
        for message_kind in content.kinds
        if _is_declared(message_kind) and message_kind.type not in seen
    ]
    blocks = blocks.reshaped(list(range(len(channels))), len(empty))
    return blocks, channels + [
        _Channel(message_kind, message_kind.name, message_kind.layout) for message_kind in empty
    ]


def _is_declared(message_kind: Kind) -> bool:
    """Return whether the log states a type to be a channel, even without messages."""
    return bool(message_kind.is_described and message_kind.known and message_kind.known.declared)


def _distinct(topic: str, taken: set[str]) -> str:
    """Return *topic*, followed by a number in brackets if it is in *taken*, and add it there."""
    number, name = 0, topic
    while name in taken:
        number += 1
        name = f"{topic}[{number}]"
    taken.add(name)
    return name


def _size_rule(channel: _Channel, content: Found) -> int | FieldAt:
    """Return the payload size of a channel whose messages all have the same, else the field that gives it."""
    message_kind = channel.kind
    exact = channel.layout.size if not message_kind.longer and channel.layout is message_kind.layout else None
    return content.size_field if exact is None else exact


def _first_time(content: Found, index: MessageIndex) -> int:
    """Return ns of the first message of the file, from which the seconds of its time index count."""
    first = min(content.blocks.first(number) for number in content.blocks.live())
    return int(stamps(index, np.array([first], np.int64))[0])


def _utc_offset(index: MessageIndex, channels: Sequence[_Channel], note: int | None) -> int | None:
    """Return the UTC offset in ns: that of the note behind the end mark, else that of the GPS fixes, else None."""
    if note is not None:
        return note
    gps = next((i for i, channel in enumerate(channels) if channel.topic == "GPSDataM"), None)
    return None if gps is None else utc_offset(index, gps)


def _metadata(variant: Variant, content: Found) -> Mapping[str, Any]:
    metadata: dict[str, Any] = {
        "index_entries": len(variant.entries),
        "size_reading": variant.size_reading.name,
    }
    if content.end is not None:
        metadata["end_mark"] = content.end
    if variant.mark != VALID_MARK:
        metadata["valid_mark"] = f"0x{variant.mark:02X}"
    return metadata


def _channel_info(channel: _Channel) -> ChannelInfo:
    message_kind = channel.kind
    notes = {"notes": message_kind.known.notes} if message_kind.known and message_kind.known.notes else {}
    metadata = {
        **channel.metadata,
        "type_id": f"0x{message_kind.type:08X}",
        "version": message_kind.version,
        **notes,
    }
    definition = ""
    if message_kind.known is not None and message_kind.is_described:
        definition = message_kind.known.definition
        if message_kind.known.original:
            metadata[ORIGINAL] = message_kind.known.original
    name = message_kind.known.name if message_kind.known else f"0x{message_kind.type:08X}"
    schema = Schema(name, "koblenz", definition)
    if LATIN_1 not in metadata:
        return ChannelInfo(channel.topic, schema, lambda: channel.layout, metadata)
    names = {field: metadata[field] for field in metadata[LATIN_1]}
    return ChannelInfo(
        channel.topic, schema, lambda: channel.layout, metadata, lambda: NamesDecoder(channel.layout, names)
    )
