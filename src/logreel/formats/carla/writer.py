"""Write CARLA recordings, new ones and continued ones: packets, in frames by their times.

Kinds of packets follow from topics, and payloads are checked to be such packets. In a recording that is continued,
numbers, durations and times go on after its last frame.
"""

from __future__ import annotations

import re
import struct
import time as clock
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, UnsupportedError, UsageError
from logreel.formats.carla import definitions
from logreel.formats.carla.payload_decoders import Frames
from logreel.formats.carla.records import (
    END,
    FRAME_END,
    FRAME_START,
    HEAD,
    INSERTED,
    LAST_KIND,
    PHYSICS,
    RELEASED,
    SHIFTING,
    START,
    TOPICS,
)
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.index.channel_index import FieldAt
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.program import compile_layout
from logreel.log.log import Channel, Log
from logreel.log.scan import Schema
from logreel.write.format_writer import FormatWriter, Payloads, RecordHeaders, SchemaMaker, SomeRefusedError

KINDS = 256
_COUNT = 2
_KINDS_BY_TOPIC = {topic: kind for kind, topic in TOPICS.items()} | {"frame_counter": 18}
_RAW = re.compile(r"packet_(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Variant of the packet layouts that a release writes.

    wide       True: vectors of float64, as on the UE5 line
    stiffness  True: wheels of 48 bytes, as from 0.9.12 on, else 36
    """

    wide: bool = False
    stiffness: bool = True

    def layout(self, topic: str) -> Layout:
        """Return the Layout of the packets of a topic; RAW for unknown topics."""
        if topic == TOPICS[PHYSICS] and not self.wide:
            return definitions.physics(self.stiffness)
        return definitions.layout(topic, self.wide)

    def kind_of(self, topic: str, schema: Schema, metadata: Mapping[str, Any], foreign: bool) -> int:
        """Return the kind of the packets of a channel: ``packet`` in *metadata*, else the usual one of the topic.

        foreign  True: the packets are from another recording, which may be that of a fork

        Raises DefinitionError for another encoding, UsageError for a topic that no recording has.
        """
        if schema.encoding != "carla":
            raise DefinitionError(
                "a CARLA recording holds only packets of CARLA, of encoding 'carla': those of a recording, or of a log "
                f"that was converted from one; messages of encoding {schema.encoding!r} do not become packets"
            )
        raw = _RAW.fullmatch(topic)
        usual = int(raw[1]) if raw else self._usual(topic)
        packet = int(metadata.get("packet", usual))
        if not 0 <= packet < KINDS or packet == FRAME_END:
            raise UsageError(
                f"a CARLA recording has no channel {topic!r}: it names channels by their packets"
            )
        fits = packet == usual and (foreign or packet > LAST_KIND) if raw else _is_possible(packet, topic)
        if not fits:
            due = repr(TOPICS.get(packet, f"packet_{packet}"))
            text = f"a CARLA recording names channels by their packets; kind {packet} is {due}"
            raise UsageError(f"{topic!r}: {text}")
        return packet

    def _usual(self, topic: str) -> int:
        moved = INSERTED if self.wide else RELEASED
        return (_KINDS_BY_TOPIC | {name: packet for packet, name in moved.items()}).get(topic, -1)

    def misfits(self, topic: str, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
        """Return bool[n]: True for payloads that are not packets of a topic."""
        layout = self.layout(topic)
        bad = size < layout.measure.least
        if layout.measure.size is not None:
            return np.asarray(size != layout.measure.size)
        width = definitions.width(topic, self.wide)
        if width:
            rest = np.flatnonzero(~bad)
            bad[rest] = size[rest] != _COUNT + width * FieldAt(0, _COUNT).read(data, start[rest])
        elif layout is not definitions.RAW:
            bad = _misfits_layout(layout, data, start, size)
            if topic == TOPICS[PHYSICS]:
                bad &= _misfits_layout(definitions.physics(not self.stiffness), data, start, size)
        return bad


def _misfits_layout(layout: Layout, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """Return bool[n]: True for payloads that a Layout does not fill exactly."""
    program, status = compile_layout(layout), np.zeros(len(start), np.uint8)
    counts = np.zeros(len(program.columns), np.int64)
    kernel.count(data, start, start + size, program.ops, counts, status)
    return np.asarray(status != kernel.OK)


def _is_possible(packet: int, topic: str) -> bool:
    """Return True if packets of a kind can have a topic."""
    if packet in TOPICS:
        return topic == TOPICS[packet]
    return packet in SHIFTING and topic in (*RELEASED.values(), "frame_counter")


class CarlaSchemaMaker(SchemaMaker):
    """Makes schemas, which are kinds of packets.

    dialect  layouts of the release that is written
    topics   topic by channel number
    """

    encoding = "carla"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.dialect = Dialect(False, True)
        self.topics: list[str] = []
        self._are_frames: list[bool] = []

    def add_channel(self, topic: str, is_frame: bool) -> None:
        """Add the next channel; *is_frame*: its messages are the starts of frames."""
        self.topics.append(topic)
        self._are_frames.append(is_frame)

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the schema of *topic*; it does not depend on the fields."""
        schema = Schema(topic, self.encoding)
        try:
            self.dialect.kind_of(topic, schema, {}, False)
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """Return the Layout of the packets of a channel."""
        return self.dialect.layout(self.topics[number])

    def computed_fields(self, number: int) -> Collection[str]:
        """Return ``frame``: readers add the frame number to packets other than FrameStart."""
        return () if self._are_frames[number] else ("frame",)

    def time_dependent_fields(self, number: int) -> Collection[str]:
        """Return the fields of frames."""
        return ("frame", "duration", "elapsed") if self._are_frames[number] else ()

    def set_times(self, number: int, data: Buffer, start: I64, time: I64) -> None:
        """Correct the elapsed seconds of frames."""
        if self._are_frames[number]:
            places = start[:, None] + np.arange(FRAME.itemsize)
            content = data[places].view(FRAME)[:, 0]
            _set_elapsed(content, time)
            data[places] = content.view(np.uint8).reshape(-1, FRAME.itemsize)

    def misfits(self, number: int, data: Buffer, start: I64, size: I64) -> NDArray[np.bool_]:
        """Return bool[n]: True for payloads that are not packets of a channel."""
        return self.dialect.misfits(self.topics[number], data, start, size)


_MAGIC = b"CARLA_RECORDER"
_LONGEST, _DATE_AT = 32767, 18
#: Bytes of a packet without records.
_EMPTY = 2
#: Ids listed in a note.
_LISTED = 5


def seconds_of(date: object) -> int:
    """Return a date in ISO 8601 as seconds since 1970, UTC by default; raises UsageError for other text."""
    try:
        moment = datetime.fromisoformat(str(date))
    except ValueError:
        raise UsageError(f"date {date!r:.60}: expected ISO 8601 such as 2023-11-14T22:13:20Z") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def pack_header(version: int | str, date: int | str, town: str) -> bytes:
    """Return the header of a recording; raises UsageError for values that do not fit into it."""
    name = str(town).encode()
    if len(name) > _LONGEST:
        raise UsageError(f"a map name of {len(name)} bytes; a CARLA recording holds at most {_LONGEST}")
    try:
        fixed = struct.pack("<HH14sq", int(version), len(_MAGIC), _MAGIC, int(date))
    except (struct.error, ValueError, OverflowError) as error:
        raise UsageError(f"version {version}, date {date}: {error}") from None
    return fixed + struct.pack("<H", len(name)) + name


def header_of(log: Log) -> bytes:
    """Return the header bytes of a recording; a damaged header is rebuilt as far as possible."""
    state: ScanBuilder = log.format_state
    if all(problem.code != "header" for problem in log.problems):
        return state.source.read(0, state.found.header.size)
    # Version 2 introduced the other numbering of attribute types.
    version = 1 + int(log.metadata["attribute_base"])
    date = int.from_bytes(state.source.read(_DATE_AT, 8), "little", signed=True)
    return pack_header(version, date, "")


@dataclass(slots=True)
class SourceRecordings:
    """Recordings whose packets are written into one recording."""

    logs: list[Log] = field(default_factory=list)

    def add(self, log: Log) -> list[str]:
        """Add a recording; return sentences about metadata that is left out.

        Raises UsageError if its vectors have another width than those of the first recording.
        """
        state: ScanBuilder = log.format_state
        self.logs.append(log)
        first: ScanBuilder = self.logs[0].format_state
        if state.found.wide != first.found.wide:
            raise UsageError(
                "has vectors of another width than the first recording: they cannot be one", path=log.name
            )
        losses = []
        for what, own, due in (
            ("map", state.found.header.map, first.found.header.map),
            ("version", state.found.header.version, first.found.header.version),
        ):
            if own != due:
                losses.append(
                    f"{what} {own!r} of {log.name}: a recording has one, that of the first, {due!r}"
                )
        return losses

    def collisions(self) -> list[str]:
        """Return a sentence if actors of several recordings have the same id, since packets only state the id."""
        seen, twice = np.zeros(0, np.uint32), np.zeros(0, np.uint32)
        with_actors = [log for log in self.logs if "actors" in log and _has_records(log["actors"])]
        for log in with_actors if len(with_actors) > 1 else ():
            ids = np.unique(np.ma.compressed(log["actors"]["id"])).astype(np.uint32)
            twice = np.union1d(twice, np.intersect1d(seen, ids))
            seen = np.union1d(seen, ids)
        if not len(twice):
            return []
        listed = ", ".join(map(str, twice[:_LISTED].tolist())) + ", …" * (len(twice) > _LISTED)
        return [
            f"{len(twice)} actors are in several recordings by the same id ({listed}): nothing distinguishes them now"
        ]


def _has_records(channel: Channel) -> bool:
    return bool((channel.log.index.sizes(channel.number) > _EMPTY).any())


#: Payload of a FrameStart.
FRAME = np.dtype([("number", "<u8"), ("duration", "<f8"), ("elapsed", "<f8")])
#: Duration of a frame that is not followed by another one yet.
OPEN = -1.0


@dataclass(frozen=True, slots=True)
class LastFrame:
    """The frame written last.

    number    its number in the file
    given     its number as given
    time      ns
    elapsed   the same in seconds
    inferred  True: its duration follows from the next frame
    place     offset of its payload in the file
    """

    number: int
    given: int
    time: int
    elapsed: float
    inferred: bool
    place: int = 0


@dataclass(frozen=True, slots=True)
class FramedPackets:
    """Packets and frames in the order in which they are written.

    row      int64[m]  number of the message; -1 for a frame that was added
    frames   bool[m]   True for frames
    content  FRAME[f]  payloads of the frames
    last     the last frame; without frames the one before them
    changed  number of frames that got another number
    """

    row: I64
    frames: NDArray[np.bool_]
    content: NDArray[np.void]
    last: LastFrame | None
    changed: int


def assign_frames(
    is_frame: NDArray[np.bool_],
    time: I64,
    frame_content: NDArray[np.void],
    last: LastFrame | None,
    several: bool,
    continues: bool = False,
) -> FramedPackets:
    """Add the missing frames: a packet with another time than the message before it begins a frame.

    is_frame  bool[n]   True for messages that are FrameStarts
    time      int64[n]  ns
    frame_content     FRAME[k]  payloads of the FrameStarts
    last      the frame before these messages
    several   True: the messages are from several recordings. Of frames with the same number and time only the first
              is kept, and numbers that do not ascend are changed
    continues  True: frames at other times than they state, by the clock of another recording, also get new durations
    """
    before = np.concatenate([time[:1] if last is None else [last.time], time[:-1]])
    begins = ~is_frame & (time != before)
    begins[0] |= last is None and not is_frame[0]
    row = np.insert(np.arange(len(time)), np.flatnonzero(begins), -1)
    frames = np.insert(is_frame, np.flatnonzero(begins), True)
    at = np.flatnonzero(frames)
    inferred = row[at] < 0
    # A frame that was added has the time of the packet after it.
    moment = time[row[at + inferred]]
    content = np.zeros(len(at), FRAME)
    content[~inferred] = frame_content
    number = _fill_numbers(content["number"].astype(np.int64), last)
    if several:
        kept = ~_is_repeated(number, moment, last) | inferred
        is_first = np.ones(len(row), bool)
        is_first[at[~kept]] = False
        row, frames = row[is_first], frames[is_first]
        content, inferred, moment, number = content[kept], inferred[kept], moment[kept], number[kept]
    content["number"] = _ascending_numbers(number, last) if several else number
    moved = _set_elapsed(content, moment)
    if continues:
        inferred = inferred | moved
    _set_durations(content, inferred)
    if len(content):
        final = content[-1]
        last_time, last_number = int(moment[-1]), int(number[-1])
        last = LastFrame(
            int(final["number"]), last_number, last_time, float(final["elapsed"]), bool(inferred[-1])
        )
    return FramedPackets(row, frames, content, last, int((content["number"] != number).sum()))


def _fill_numbers(number: I64, last: LastFrame | None) -> I64:
    """Return the numbers given; 0 is replaced by the number after that of the frame before."""
    place = np.arange(len(number))
    numbered = np.maximum.accumulate(np.where(number != 0, place, -1))
    before = last.number if last is not None else 0
    return np.where(numbered >= 0, number[numbered] + place - numbered, before + 1 + place)


def _is_repeated(number: I64, time: I64, last: LastFrame | None) -> NDArray[np.bool_]:
    """Return bool[n]: True for frames with the number and time of the frame before."""
    again = np.zeros(len(number), bool)
    again[1:] = (number[1:] == number[:-1]) & (time[1:] == time[:-1])
    if last is not None and len(number):
        again[0] = number[0] == last.given and time[0] == last.time
    return again


def _ascending_numbers(number: I64, last: LastFrame | None) -> I64:
    """Return the numbers in strictly ascending order: a number that is too small becomes the next one."""
    place = np.arange(len(number))
    least = last.number + 1 if last is not None else 0
    numbers: I64 = place + np.maximum.accumulate(np.maximum(number - place, least))
    return numbers


def _set_elapsed(content: NDArray[np.void], time: I64) -> NDArray[np.bool_]:
    """Correct the elapsed seconds of frames whose time differs from them; return bool[n], True for these."""
    with np.errstate(all="ignore"):
        off = np.rint(content["elapsed"] * 1e9) != time
    content["elapsed"][off] = time[off] / 1e9
    return np.asarray(off)


def _set_durations(content: NDArray[np.void], inferred: NDArray[np.bool_]) -> None:
    """Set the durations of *inferred* frames to the time until the next frame."""
    lasts = np.full(len(content), OPEN)
    lasts[:-1] = np.diff(content["elapsed"])
    content["duration"][inferred] = lasts[inferred]


END_PACKET = END[:HEAD]
#: FrameEnd of the frame before and an empty FrameStart; offsets of the payload in it, and of the duration in that.
_FRAME_HEAD = END_PACKET + START + bytes(FRAME.itemsize)
_CONTENT_AT, _DURATION_AT = HEAD + HEAD, 8


class CarlaWriter(FormatWriter):
    """Writes recordings of any release.

    version      header version: 1 up to 0.9.15 and on the UE5 line, 2 from 0.9.16 on
    map, date    of the header; *date* in seconds since 1970, None: now
    engine       ``UE4``, or ``UE5`` with vectors of float64
    wheel_bytes  bytes of a wheel in ``physics``: 48, or 36 up to 0.9.11
    """

    title = "a CARLA recording"
    epoch = "start"
    earliest, latest, largest = -9 * 10**18, 9 * 10**18, (1 << 31) - 1

    def __init__(
        self,
        out: Appender,
        *,
        version: int = 1,
        map: str = "",
        date: int | None = None,
        engine: str = "UE4",
        wheel_bytes: int = 48,
    ) -> None:
        self.schemas: CarlaSchemaMaker = CarlaSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        if engine not in ("UE4", "UE5"):
            raise UsageError(f"engine {engine!r}; there are UE4, UE5")
        if wheel_bytes not in (36, 48):
            raise UsageError(f"wheels of {wheel_bytes} bytes; there are 36, 48")
        self.schemas.dialect = Dialect(engine == "UE5", wheel_bytes == 48)
        date = int(clock.time()) if date is None else date
        self.header_fields: dict[str, Any] = {"format_version": version, "date_unix": date, "map": map}
        self.header = pack_header(version, date, map)
        self._begun = self._complete = False
        #: Kinds of packets by topic.
        self.kinds: dict[str, int] = {}
        self._is_frame = np.zeros(0, bool)
        self._headers = RecordHeaders()
        self._headers.add(_FRAME_HEAD)
        self._last: LastFrame | None = None
        #: Recordings whose packets are written.
        self.sources = SourceRecordings()
        #: Whether packets are from a recording, maybe converted in between: then they were checked when it was read.
        self.are_checked = False
        self._renumbered = 0
        #: Whether an old recording precedes; its frames determine the numbers of the new ones.
        self._continues = False
        #: Ns added to times; None: determined by the first message. Ns from the last old frame to the next one.
        self._shift: int | None = 0
        self._frame_time = 0

    def go_on(self, last: LastFrame | None, frame_time: int, shift: int | None) -> None:
        """Go on after the frames of a recording that are in *out* already, without the end of the last one.

        last        its last frame; None if it has no frames
        frame_time  ns from this frame to the next one, where times do not say
        shift       ns added to all times; None: see ``append``
        """
        self._begun = self._continues = True
        self._last, self._frame_time, self._shift = last, frame_time, shift

    # ------------------------------------------------------------------------------------ header and channels

    def metadata(self, name: str, value: Any) -> None:
        """Set ``format_version``, ``map``, ``date_unix`` or ``date`` (ISO 8601) in the header; before packets only."""
        if name == "date":
            name, value = "date_unix", seconds_of(value)
        if name not in self.header_fields:
            raise UnsupportedError(
                f"{self.title} has no place for metadata but {', '.join(self.header_fields)}, date"
            )
        if self._begun:
            raise UsageError(f"{name!r} is in the header of {self.title}, which is written already")
        fields = self.header_fields | {name: value}
        self.header, self.header_fields = pack_header(*fields.values()), fields

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel with the packets of one kind, see ``Dialect.kind_of``."""
        packet = self.schemas.dialect.kind_of(topic, schema, metadata, self.are_checked)
        if packet in self.kinds.values():
            text = (
                f"{topic!r}: packets of kind {packet} are those of another channel;"
                " releases number some in other ways"
            )
            raise UsageError(text)
        self.kinds[topic] = packet
        self.schemas.add_channel(topic, packet == FRAME_START)
        self._is_frame = np.append(self._is_frame, packet == FRAME_START)
        self._headers.add(struct.pack("<BI", packet, 0), size_at=1)

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append packets; invalid payloads are skipped and raise UsageError after the others were written."""
        joined, shift = payloads.in_one(), self._shift_of(time)
        bad = (time < self.earliest - min(shift, 0)) | (time > self.latest - max(shift, 0))
        bad |= joined.size > self.largest
        # Times that would wrap are those of bad rows.
        time = time + shift
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not self.are_checked else ():
            rows = np.flatnonzero((channel == number) & ~bad)
            bad[rows] = self.schemas.misfits(number, joined.data, joined.start[rows], joined.size[rows])
        good = np.flatnonzero(~bad) if bad.any() else slice(None)
        self._append(channel[good], time[good], joined.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            what = f"{int(joined.size[row])} bytes at {int(time[row])} ns are no packet"
            text = f"{what} of {self.schemas.topics[int(channel[row])]!r}: {int(bad.sum())} left out"
            raise SomeRefusedError(text, np.flatnonzero(bad), len(bad))

    def _shift_of(self, time: I64) -> int:
        """Return the ns that are added to the times of messages; see ``append``."""
        if self._shift is None:
            valid = time[(time >= self.earliest) & (time <= self.latest)]
            if not len(valid):
                return 0
            first, last = int(valid[0]), self._last
            self._shift = 0
            if last is not None and first < last.time:
                self._shift = min(last.time + self._frame_time - first, self.latest)
                text = f"packets were written {self._shift / 1e9:g} s later than given: they follow the last frame"
                self.notes.append(text)
        return self._shift

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self.begin()
        is_frame = self._is_frame[channel]
        frame_content = payloads.data[payloads.start[is_frame][:, None] + np.arange(FRAME.itemsize)].view(
            FRAME
        )[:, 0]
        framed = assign_frames(is_frame, time, frame_content, self._last, self._is_joined, self._continues)
        # Frames are added for packets without one, and repeated frames are skipped.
        self.extra_messages[f"packets of kind {FRAME_START}"] += int(framed.frames.sum() - is_frame.sum())
        self._renumbered += framed.changed
        # Header 0 is that of frames, header n + 1 that of channel n.
        packet = ~framed.frames
        head = np.where(packet, channel[framed.row] + 1, 0).astype(np.int32)
        ordered = payloads.rows(framed.row)
        start, size = (np.where(packet, column, 0) for column in (ordered.start, ordered.size))
        place = self._headers.places(head, size)
        ordered = Payloads(payloads.data, start, size)
        records = self._headers.compose(head, np.zeros(len(head), np.int64), ordered, place)
        content = place[:-1][framed.frames] + _CONTENT_AT
        records[content[:, None] + np.arange(FRAME.itemsize)] = framed.content.view(np.uint8).reshape(
            -1, FRAME.itemsize
        )
        # The first frame follows no other, so no FrameEnd precedes it.
        skipped = 0 if self._last is not None else HEAD
        self._set_last(framed, content + self.out.tell() - skipped)
        self.out.put(records[skipped:].data)

    @property
    def _is_joined(self) -> bool:
        """Whether the frames are from several recordings."""
        return self._continues or len(self.sources.logs) > 1

    def _set_last(self, framed: FramedPackets, place: I64) -> None:
        """Remember the last frame; write the duration of the one before into the file, as the simulator does."""
        if not len(framed.content):
            return
        if self._last is not None and self._last.inferred:
            duration = float(framed.content["elapsed"][0]) - self._last.elapsed
            self.out.patch(self._last.place + _DURATION_AT, struct.pack("<d", duration))
        self._last = framed.last and replace(framed.last, place=int(place[-1]))

    # ------------------------------------------------------------------------------------------ the file

    def end_copy(self) -> None:
        """Mark the file as complete: all frames were copied with their ends."""
        self._complete = True

    def commit(self) -> None:
        """Write the header even if no packet was given; a frame without an end can be read, too."""
        self.begin()

    def begin(self) -> None:
        """Write the header, unless it is written already."""
        if not self._begun:
            self._begun = True
            self.out.write(self.header)
            self.out.commit()

    def finish(self) -> None:
        """End the last frame."""
        if not self._complete and self._last is not None:
            self.out.write(END_PACKET)
            self.out.commit()
        self.notes += self.sources.collisions()
        if self._renumbered:
            self.notes.append(f"{self._renumbered} frames got other numbers, which ascend now")


#: Ns between frames where the recording does not say.
USUAL = 50_000_000


def append(
    out: Appender,
    log: Log,
    *,
    version: int | None = None,
    map: str | None = None,
    date: int | None = None,
    engine: str | None = None,
    wheel_bytes: int = 48,
    shift: int | None = None,
) -> CarlaWriter:
    """Return the writer that continues *log*; it ends the last frame only when a new one begins.

    version, map, date, engine  must be those of the recording; None: these
    wheel_bytes                 as for a new recording
    shift                       ns added to all times; None: 0, but if the first message is before the last frame, so
                                many that it follows this frame

    Raises LogError for a recording with damage of any kind: only its recovery finds what it contains.
    """
    state: ScanBuilder = log.format_state
    if log.problems:
        raise LogError(
            log.problems[0].text,
            path=log.name,
            hint="make a complete recording of it by logreel.recover, and append to that",
        )
    header, metadata = state.found.header, log.metadata
    own = {
        "version": header.version,
        "map": header.map,
        "date": metadata.get("date_unix", 0),
        "engine": metadata["engine"],
    }
    for (name, due), stated in zip(own.items(), (version, map, date, engine), strict=True):
        if stated not in (None, due):
            raise UsageError(f"{name} {stated!r}; the recording has {due!r}", path=log.name)
    if shift is not None and not CarlaWriter.earliest <= shift <= CarlaWriter.latest:
        raise UsageError(
            f"shift {shift} ns; times of a recording are {CarlaWriter.earliest} to {CarlaWriter.latest}"
        )
    writer = CarlaWriter(out, **own, wheel_bytes=wheel_bytes)
    # The end of the last frame is written again, after packets that still belong to it.
    has_end = len(state.found.ends) and int(state.found.ends[-1]) == state.source.size - HEAD
    out.keep_old(state.source.size - HEAD * bool(has_end))
    writer.go_on(_last_frame(state.frames), _frame_time(state.frames), shift)
    writer.are_checked = True
    writer.continue_channels(log)
    writer.are_checked = False
    return writer


def _last_frame(frames: Frames) -> LastFrame | None:
    """Return the last frame of a recording, None if it has no frames."""
    if not len(frames.time):
        return None
    number, time = int(frames.number[-1]), int(frames.time[-1])
    # Its duration is written when the next frame begins, as the simulator does.
    return LastFrame(number, number, time, float(frames.elapsed[-1]), True, int(frames.start[-1]))


def _frame_time(frames: Frames) -> int:
    """Return the ns from the last frame to the next one: its duration, else that of the frame before, else 50 ms."""
    usual = [seconds for seconds in frames.duration[-2:].tolist() if seconds > 0]
    return round(usual[-1] * 1e9) if usual else USUAL
