"""Telemetry logs (``.tlog``): the time, big-endian µs since 1970, before each frame of MAVLink, versions 1 and 2.

A message is a whole frame, so what a payload does not have (sequence, signature) survives every rewriting. A frame of
a known message is believed by its checksum, one of another message if a frame follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import (
    Appender,
    Change,
    ChannelInfo,
    DefinitionError,
    Field,
    FormatWriter,
    Layout,
    Log,
    MessageIndex,
    Parameter,
    Payloads,
    PayloadSplitter,
    Problem,
    Rest,
    Saved,
    Scan,
    Schema,
    SchemaMaker,
    Source,
    Struct,
    TextLine,
    UsageError,
)
from logreel_ardupilot.mavlink import (
    CHECKSUM,
    HEADS,
    I64,
    SIGNATURE,
    SIGNED,
    V1,
    V2,
    FrameDecoder,
    are_sound,
    definitions,
    frames_of,
)

#: Bytes of the time before a frame; bytes of the longest frame.
STAMP, LONGEST = 8, 10 + 255 + CHECKSUM + SIGNATURE
#: Bytes of a frame of version 1 besides its payload.
HEADS_V1 = HEADS[V1] + CHECKSUM
_RAW = Layout(Struct((Field("frame", Rest()),)), "frame")
_TOPIC = re.compile(r"(\d{1,3})/(\d{1,3})/(\w+)")
_UNKNOWN = re.compile(r"MESSAGE_(\d{1,8})")
_LAST = (1 << 63) - 1


def frame_size(head: bytes) -> int | None:
    """Return the bytes of the frame that begins with *head*, 3 bytes or more; None if none does."""
    if len(head) < 3 or head[0] not in HEADS:
        return None
    signed = SIGNATURE if head[0] == V2 and head[2] & SIGNED else 0
    return HEADS[head[0]] + head[1] + CHECKSUM + signed


def _number(frame: bytes) -> int:
    return frame[5] if frame[0] == V1 else int.from_bytes(frame[7:10], "little")


def _is_frame(source: Source, pos: int) -> bool:
    """Return whether the checksum of the frame at *pos* agrees; of unknown messages nothing does."""
    size = frame_size(source.read(pos, 3))
    if size is None or pos + size > source.size:
        return False
    frame = source.read(pos, size)
    number, end = _number(frame), HEADS[frame[0]] + frame[1]
    if number not in definitions():
        return False
    numbers = (np.array([n], np.int64) for n in (pos, end, number))
    return bool(are_sound(source.data, *numbers)[0])


def sniff(source: Source) -> bool:
    """Return whether the first frame is sound, at a time from 1970 to 2112."""
    head = bytes(source.head[: STAMP + LONGEST])
    if len(head) < STAMP + HEADS[V1] or head[0] != 0 or head[1] > 0x0F:
        return False
    size = frame_size(head[STAMP:])
    return size is not None and len(head) >= STAMP + size and _is_frame(source, STAMP)


def _frames(source: Source, problems: list[Problem]) -> list[int]:
    """Return where the frames begin, ascending; bytes that are none are recorded as problems."""
    data, end, pos = source.data, source.size, 0
    view, starts = data.data, list[int]()
    while pos < end:
        at = _chain(view, pos + STAMP, end, starts)
        pos = at - STAMP
        size = frame_size(bytes(view[at : at + 3]))
        after = end + 1 if size is None else at + size
        follows = after == end or (after + STAMP < end and view[after + STAMP] in HEADS)
        if follows or (after < end and _is_frame(source, at)):
            starts.append(at)
            pos = after
        elif pos < end:
            pos = _skip(source, pos, problems)
    return starts


def _chain(view: memoryview, at: int, end: int, starts: list[int]) -> int:
    """Append the frames from *at* on that others follow; return the first one of which more must be known."""
    least, last = HEADS[V2] + CHECKSUM, end - STAMP - LONGEST
    while at < last:
        mark = view[at]
        if mark == V2:
            after = at + least + view[at + 1] + (SIGNATURE if view[at + 2] & SIGNED else 0)
        elif mark == V1:
            after = at + HEADS_V1 + view[at + 1]
        else:
            break
        following = view[after + STAMP]
        if following != V1 and following != V2:
            break
        starts.append(at)
        at = after + STAMP
    return at


def _skip(source: Source, pos: int, problems: list[Problem], limit: int | None = None) -> int:
    """Record the bytes from *pos* to the next sound frame, or to *limit*, as a problem; return its place."""
    end = source.size if limit is None else limit
    stop = next(
        (found for found in _candidates(source, pos + 1, end) if _is_frame(source, found + STAMP)), end
    )
    size = frame_size(source.read(pos + STAMP, 3))
    cut = stop == source.size and (
        pos + STAMP + 3 > source.size or (size is not None and pos + STAMP + size > stop)
    )
    text = (
        f"the last {stop - pos} bytes are a cut frame"
        if cut
        else f"{stop - pos} bytes that are no sound frame"
    )
    problems.append(Problem("truncated" if cut else "garbage", pos, stop - pos, True, text))
    return stop


def _candidates(source: Source, pos: int, end: int) -> Iterator[int]:
    """Yield places where a time before a frame may begin."""
    step = 1 << 16
    for begin in range(pos + STAMP, end, step):
        piece = source.data[begin : min(begin + step, end)]
        for at in np.flatnonzero((piece == V1) | (piece == V2)).tolist():
            yield begin + at - STAMP


def scan(source: Source, saved: Saved | None) -> Scan | None:
    """Return the Scan of a telemetry log."""
    if saved is not None:
        return None
    problems: list[Problem] = []
    start = np.array(_frames(source, problems), np.int64)
    data = source.data
    while True:
        sound = are_sound(data, start, _head(data, start) + data[start + 1], _numbers(data, start))
        if sound.all():
            break
        # Inside of a frame with a wrong size others may be hidden.
        found = [start[sound]]
        for row in np.flatnonzero(~sound).tolist():
            pos = int(start[row]) - STAMP
            limit = pos + STAMP + int(_sizes(data, start[row : row + 1])[0])
            while pos < limit:
                pos = _skip(source, pos, problems, limit)
                if pos < limit:
                    inner = pos + STAMP
                    size = int(_sizes(data, np.array([inner]))[0])
                    if inner + size > limit:
                        problems.append(
                            Problem("garbage", pos, limit - pos, True, "a frame that another one cuts")
                        )
                        break
                    found.append(np.array([inner], np.int64))
                    pos = inner + size
        start = np.sort(np.concatenate(found))
    return _scan_of(source, start, sorted(problems, key=lambda problem: problem.offset))


def _head(data: NDArray[np.uint8], start: I64) -> I64:
    heads: I64 = np.where(data[start] == V1, HEADS[V1], HEADS[V2]).astype(np.int64)
    return heads


def _sizes(data: NDArray[np.uint8], start: I64) -> I64:
    signed = (data[start] == V2) & (data[start + 2] & SIGNED != 0)
    sizes: I64 = _head(data, start) + data[start + 1] + CHECKSUM + SIGNATURE * signed
    return sizes


def _numbers(data: NDArray[np.uint8], start: I64) -> I64:
    wide = [data[np.minimum(start + at, max(len(data) - 1, 0))].astype(np.int64) for at in (7, 8, 9)]
    return np.where(data[start] == V1, data[start + 5], wide[0] | wide[1] << 8 | wide[2] << 16).astype(
        np.int64
    )


def _scan_of(source: Source, start: I64, problems: list[Problem]) -> Scan:
    data = source.data
    second = data[start] == V2
    system = np.where(second, data[start + 5], data[start + 3]).astype(np.int64)
    component = np.where(second, data[start + 6], data[start + 4]).astype(np.int64)
    key = system << 32 | component << 24 | _numbers(data, start)
    keys, channel = np.unique(key, return_inverse=True)
    stamps = np.ascontiguousarray(data[(start - STAMP)[:, None] + np.arange(STAMP)]).view(">u8").reshape(-1)
    time = np.minimum(stamps, np.uint64(_LAST // 1000)).astype(np.int64) * 1000
    index = MessageIndex.of(
        source, channel.astype(np.int64), start, _sizes(data, start), time, channels=len(keys)
    )
    channels = [_channel(number) for number in keys.tolist()]
    first, last = (int(time.min()), int(time.max())) if len(time) else (None, None)
    metadata = {"versions": [n for n, used in ((1, ~second), (2, second)) if used.any()]}
    return Scan(
        " and ".join(map(str, metadata["versions"])) or "none",
        "unix",
        first,
        last,
        channels,
        index,
        problems,
        metadata=lambda: metadata,
        text=lambda: _text(source, start, key, time),
        parameters=lambda: _parameters(source, start, key, time),
    )


def _parameters(source: Source, start: I64, key: I64, time: I64) -> list[Parameter]:
    """Return the parameters of PARAM_VALUE, message 22, of the sender with the most: first values, then changes."""
    rows = np.flatnonzero(key & 0xFFFFFF == 22)
    senders, counts = np.unique(key[rows], return_counts=True)
    if not len(senders):
        return []
    values: dict[str, list[tuple[int, float]]] = {}
    decoder = FrameDecoder(definitions()[22].layout)
    for row in rows[key[rows] == senders[np.argmax(counts)]].tolist():
        at = int(start[row])
        frame = source.read(at, frame_size(source.read(at, 3)) or 0)
        fields = decoder.payload(memoryview(frame))
        known = values.setdefault(str(fields["param_id"]), [])
        # Ground stations ask for all of them again and again.
        if not known or known[-1][1] != fields["param_value"]:
            known.append((int(time[row]), float(str(fields["param_value"]))))
    return [
        Parameter(name, "float", every[0][1], tuple(Change(at, value) for at, value in every[1:]))
        for name, every in values.items()
    ]


def _text(source: Source, start: I64, key: I64, time: I64) -> list[TextLine]:
    """Return the lines of STATUSTEXT, message 253."""
    lines = []
    for row in np.flatnonzero(key & 0xFFFFFF == 253).tolist():
        at, size = int(start[row]), int(source.data[start[row] + 1])
        payload = source.read(at + HEADS[int(source.data[at])], size)
        text = payload[1:51].split(b"\0", 1)[0].decode("utf-8", "replace")
        level = payload[0] if payload and payload[0] < 8 else None
        lines.append(TextLine(int(time[row]), level, text, f"{key[row] >> 32}/{key[row] >> 24 & 0xFF}"))
    return lines


def _channel(key: int) -> ChannelInfo:
    number = key & 0xFFFFFF
    definition = definitions().get(number)
    name = f"MESSAGE_{number}" if definition is None else definition.name
    topic = f"{key >> 32}/{key >> 24 & 0xFF}/{name}"
    if definition is None:
        return ChannelInfo(topic, Schema(name, "mavlink"), lambda: _RAW)
    layout = definition.layout
    decoder = FrameDecoder(layout)
    return ChannelInfo(topic, Schema(name, "mavlink", definition.text), lambda: layout, {}, lambda: decoder)


class TlogSchemas(SchemaMaker):
    """Messages are whole frames: those that are given by their fields become frames of version 2."""

    encoding = "mavlink"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.keys: list[int] = []
        self._sequence: dict[int, int] = {}

    def layout(self, number: int) -> Layout:
        """Return the Layout of the payload; raises DefinitionError for an unknown message."""
        definition = definitions().get(self.keys[number] & 0xFFFFFF)
        if definition is None:
            raise DefinitionError(f"message {self.keys[number] & 0xFFFFFF} of MAVLink has no known fields")
        return definition.layout

    def splitter(self, number: int) -> PayloadSplitter:
        """Return how frames are made of payloads."""
        return PayloadSplitter((), lambda data, start: self._frames(number, data))

    def _frames(self, number: int, data: NDArray[np.uint8]) -> Payloads:
        key, size = self.keys[number], self.layout(number).size or 1
        sender = key >> 24
        sequence = self._sequence.get(sender, 0)
        made, sizes = frames_of(data.reshape(-1, size), key & 0xFFFFFF, key >> 32, key >> 24 & 0xFF, sequence)
        self._sequence[sender] = sequence + len(sizes)
        return Payloads(made, np.cumsum(sizes) - sizes, sizes)


class TlogWriter(FormatWriter):
    """Writes frames as they are, each behind its time."""

    title = "a telemetry log"
    earliest, latest, largest = 0, _LAST, LONGEST
    appends_only = True

    def __init__(self, out: Appender) -> None:
        self.schemas: TlogSchemas = TlogSchemas(self.title)
        super().__init__(out, self.schemas)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel, named ``system/component/MESSAGE``."""
        found = _TOPIC.fullmatch(topic)
        if schema.encoding != "mavlink" or found is None:
            raise DefinitionError(f"{topic!r}: channels of a telemetry log are 'system/component/MESSAGE'")
        system, component, name = int(found[1]), int(found[2]), found[3]
        unknown = _UNKNOWN.fullmatch(name)
        by_name = {one.name: one.id for one in definitions().values()}
        message = int(unknown[1]) if unknown else by_name.get(name, -1)
        if not (0 <= message < 1 << 24 and system < 256 and component < 256):
            raise DefinitionError(f"{topic!r}: there is no such message of MAVLink")
        self.schemas.keys.append(system << 32 | component << 24 | message)

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading gives it: logs have µs."""
        stored: I64 = time // 1000 * 1000
        return stored

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append frames; raises UsageError for bytes that are no frame of their channel."""
        if not len(channel):
            return
        if (time < 0).any():
            raise UsageError("a time before 1970, which a telemetry log cannot hold")
        sizes = payloads.size + STAMP
        place = np.cumsum(sizes) - sizes
        made = np.zeros(int(sizes.sum()), np.uint8)
        payloads.put_at(made, place + STAMP)
        start = place + STAMP
        wrong = (payloads.size < HEADS[V1] + CHECKSUM) | ~np.isin(
            made[np.minimum(start, len(made) - 1)], (V1, V2)
        )
        good = np.flatnonzero(~wrong)
        wrong[good] = _sizes(made, start[good]) != payloads.size[good]
        good = np.flatnonzero(~wrong)
        number = _numbers(made, start[good])
        second = made[start[good]] == V2
        system = np.where(second, made[start[good] + 5], made[start[good] + 3]).astype(np.int64)
        component = np.where(second, made[start[good] + 6], made[start[good] + 4]).astype(np.int64)
        wrong[good] = (system << 32 | component << 24 | number) != np.array(self.schemas.keys, np.int64)[
            channel[good]
        ]
        if wrong.any():
            raise UsageError(f"message {int(np.argmax(wrong))} is no frame of MAVLink of its channel")
        stamps = (time // 1000).astype(">u8").view(np.uint8).reshape(-1, STAMP)
        made[place[:, None] + np.arange(STAMP)] = stamps
        self.out.put(made.tobytes())


def append(out: Appender, log: Log) -> TlogWriter:
    """Return the writer that continues *log*."""
    out.keep_old(log.size)
    writer = TlogWriter(out)
    writer.continue_channels(log)
    return writer
