"""Build the Scan of a recording: channels, index and metadata."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import DamagedError, Finding, Problem, UnsupportedError
from logreel.formats.carla.columns import actors
from logreel.formats.carla.definitions import RAW, layout, physics
from logreel.formats.carla.payload_decoders import (
    FRAME,
    Frames,
    PacketDecoder,
    PacketFieldsDecoder,
    RosAxesDecoder,
    decoder_of,
    with_ros_units,
)
from logreel.formats.carla.reader import Found, Reader
from logreel.formats.carla.records import (
    EVENT_ADD,
    FRAME_START,
    HEAD,
    PHYSICS,
    POSITION,
    read_frame,
    read_header,
    vectors_are_wide,
)
from logreel.index.gather import places
from logreel.index.message_index import MessageIndex
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.program import extent, measuring
from logreel.log.log import Log
from logreel.log.scan import ENOUGH, ChannelInfo, PayloadDecoder, Scan, ScanPart, Schema, TextLine
from logreel.log.side_columns import with_members

#: Bytes of a wheel in PhysicsControl in releases up to 0.9.11.
OLD_WHEEL = 36
#: Types of actors.
_OTHER, _SENSOR = 0, 5
#: Packets searched for one with records, and bytes of a packet that are decoded.
_PROBES, _BYTES = 256, 4 << 20


@dataclass(frozen=True)
class ReleaseEvidence:
    """The content of a recording that differs between releases.

    topics    topic by packet kind, for all kinds in the recording
    channels  channel number in *index* by packet kind
    has_frame  True if a frame is complete: each has all kinds of packets that its release writes
    """

    source: Source
    index: MessageIndex
    topics: dict[int, str]
    channels: dict[int, int]
    version: int
    wide: bool
    has_frame: bool

    def _packets(self, packet_kind: int) -> Iterator[tuple[int, int]]:
        """Yield payload offset and size of the first packets of a kind that have records."""
        if packet_kind not in self.channels:
            return
        from logreel.index.gather import places

        channel = self.channels[packet_kind]
        first_rows = slice(0, min(_PROBES, int(self.index.counts[channel])))
        _, at, size = places(self.index, channel, first_rows)
        yield from ((a, n) for a, n in zip(at.tolist(), size.tolist(), strict=True) if n > 2)

    def _first(self, packet_kind: int, how: Layout) -> list[dict[str, Any]]:
        """Return the records of the first packet of a kind that has records and can be decoded."""
        from logreel.errors import DamagedError

        decode = decoder_of(how)
        for at, size in self._packets(packet_kind):
            try:
                records: list[dict[str, Any]] = decode(self.source.view[at : at + min(size, _BYTES)])[
                    "records"
                ]
            except DamagedError:
                continue
            return records
        return []

    @cached_property
    def actors(self) -> list[dict[str, Any]]:
        """Actors at the beginning of the recording."""
        return self._first(EVENT_ADD, layout("actors", self.wide))

    @cached_property
    def physics(self) -> Layout | None:
        """Layout of PhysicsControl whose wheels fill a packet exactly, or None."""
        for at, size in self._packets(PHYSICS) if not self.wide else ():
            for stiffness in (True, False):
                how = physics(stiffness)
                if extent(measuring(how), self.source.data, at, at + size) == at + size:
                    return how
        return None

    @property
    def unreadable_physics(self) -> int | None:
        """Payload offset of the first packet of PhysicsControl if there are some and no layout fits one of them."""
        if self.wide or self.physics is not None:
            return None
        return next((at for at, _ in self._packets(PHYSICS)), None)

    @property
    def has_old_wheels(self) -> bool:
        """Whether PhysicsControl has the wheels of releases up to 0.9.11."""
        return self.physics == physics(False)

    @cached_property
    def attribute_base(self) -> int:
        """Number of the attribute type Bool, 0 or 1; inferred from attributes whose type is known."""
        for actor in self.actors:
            for attribute in actor["attributes"]:
                base = {"role_name": 3, "color": 4}.get(attribute["name"])
                if base is not None and attribute["type"] in (base, base + 1):
                    return int(attribute["type"] - base)
        return int(self.version >= 2)

    @property
    def is_dreyevr(self) -> bool:
        """Whether the fork DReyeVR wrote the recording: it has packets that no release has."""
        return bool({"packet_18", "packet_21"} & set(self.topics.values()))

    def release(self) -> str:
        """Return the releases that write such a file, e.g. ``0.9.12 to 0.9.13``; empty without packets.

        Of a recording that was cut in its first frame, packets of later releases may be missing: ``0.9.6 or later``.
        """
        release = self._release()
        if self.has_frame or not release or release.startswith("after ") or self.wide:
            return release
        return f"{release.partition(' ')[0]} or later"

    def _release(self) -> str:
        """Return the releases that write these kinds of packets, and no others."""
        kinds, names = set(self.topics), set(self.topics.values())
        if not kinds:
            return ""
        if self.wide:
            return "0.10"
        if self.version >= 2:
            return "after 0.9.16" if "weather" in names else "0.9.16"
        if self.topics.get(21) == "doors" or 23 in kinds:
            return "after 0.9.15"
        if 21 in kinds and not self.is_dreyevr:
            return "0.9.15"
        if 20 in kinds:
            return "0.9.14"
        if 10 in kinds:
            return self._release_2020()
        return "0.9.6 to 0.9.9" if 8 in kinds else "0.9.4 to 0.9.5"

    def _release_2020(self) -> str:
        """Return which of the releases 0.9.10 to 0.9.13, which have the same kinds of packets."""
        kinds = {actor["type"] for actor in self.actors}
        if self.physics == physics(True) or _SENSOR in kinds:
            return "0.9.12 to 0.9.13"
        others = {actor["id"] for actor in self.actors if actor["type"] == _OTHER}
        moving = {position["id"] for position in self._first(POSITION, layout("position", self.wide))}
        if others and moving:
            return ("0.9.11" if self.has_old_wheels else "0.9.11 to 0.9.13") if others & moving else "0.9.10"
        return "0.9.10 to 0.9.11" if self.has_old_wheels else "0.9.10 to 0.9.13"


#: Tolerance in seconds between elapsed time plus duration and the next elapsed time: both are rounded float64.
SLACK = 1e-6
#: Versions of the recorder.
VERSIONS = (1, 2)


def verify(frames: Frames, version: int | None) -> Iterator[Finding]:
    """Yield ``version`` for an unknown one, ``frame_number`` and ``frame_time`` if frames do not follow each other.

    version  of the recorder, as the header states it; None if the header is damaged
    """
    if version is not None and version not in VERSIONS:
        text = (
            f"the header states version {version} of the recorder, known are {VERSIONS[0]} and {VERSIONS[1]}"
        )
        yield Finding("version", "warn", 0, 2, text)
    number, elapsed, duration = frames.number, frames.elapsed, frames.duration
    with np.errstate(all="ignore"):
        odd = number[1:] - number[:-1] != 1
        late = np.abs(elapsed[:-1] + duration[:-1] - elapsed[1:]) > SLACK
    yield from _finding(frames, odd, "frame_number", "do not have the number after that of the frame before")
    yield from _finding(frames, late, "frame_time", "do not begin when the frame before ends")


def _finding(frames: Frames, odd: NDArray[np.bool_], code: str, text: str) -> Iterator[Finding]:
    rows = np.flatnonzero(odd) + 1
    if len(rows):
        first, n = int(rows[0]), len(rows)
        message = f"{n} of {len(frames.number)} frames {text}; the first is frame {frames.number[first]}"
        offset, time = int(frames.start[first]) - HEAD, int(frames.time[first])
        yield Finding(code, "warn", offset, 0, message, None, time, n)


#: Yields time (ns), frame number and record for all records of a topic.
Events = Callable[[str], Iterator[tuple[int, int, dict[str, Any]]]]

#: Bytes of a packet without records.
_EMPTY = 2
#: Syslog severities.
_NOTICE, _WARNING = 5, 4
#: Id of a collision partner that is not an actor.
_NOBODY = 0xFFFFFFFF


def lines(events: Events) -> list[TextLine]:
    """Return text lines by time; actors in the first frame with actors are only counted."""
    names: dict[int, str] = {}
    lines: list[TextLine] = []
    first_actors = 0
    begin = None
    for time, frame, actor in events("actors"):
        begin = (frame, time) if begin is None else begin
        names[actor["id"]] = f"{actor['description']} ({actor['id']})"
        if frame == begin[0]:
            first_actors += 1
        else:
            lines.append(TextLine(time, _NOTICE, f"{names[actor['id']]} appears"))
    if begin is not None:
        lines.insert(0, TextLine(begin[1], _NOTICE, f"the recording begins with {first_actors} actors"))

    def name(actor: int) -> str:
        return names.get(actor, "something" if actor == _NOBODY else f"actor {actor}")

    for time, _, removal in events("actor_removals"):
        lines.append(TextLine(time, _NOTICE, f"{name(removal['id'])} is removed"))
    for time, _, parent_of in events("actor_parents"):
        lines.append(
            TextLine(time, _NOTICE, f"{name(parent_of['child'])} is attached to {name(parent_of['parent'])}")
        )
    before: set[tuple[int, int]] = set()
    now: set[tuple[int, int]] = set()
    last = -1
    for time, frame, hit in events("collisions"):
        if frame != last:
            before, now, last = (now if frame == last + 1 else set()), set(), frame
        pair = hit["actor1"], hit["actor2"]
        now.add(pair)
        if pair not in before:
            lines.append(TextLine(time, _WARNING, f"{name(pair[0])} hits {name(pair[1])}"))
    return sorted(lines, key=lambda line: line.time)


def text_of(log: Log) -> list[TextLine]:
    """Return the text lines of a log with packets that are not those of its source."""

    def events(topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        if topic in log.channels:
            channel = log[topic]
            for row in np.flatnonzero(channel.log.index.sizes(channel.number) > _EMPTY).tolist():
                message = channel[row]
                with suppress(DamagedError):
                    values = message.decode()
                    for record in values["records"]:
                        yield message.time, values["frame"], record

    return lines(events)


_CR, _LF = 0x0D, 0x0A
_PIECE = 1 << 20


def is_text_mode(source: Source) -> bool:
    """Return True if there is an 0A and every 0A follows an 0D, which is very unlikely in long binary data."""
    data, has_feeds = source.data, False
    for at in range(0, source.size, _PIECE):
        feeds = np.flatnonzero(data[at : at + _PIECE] == _LF) + at
        if len(feeds) and (feeds[0] == 0 or (data[feeds - 1] != _CR).any()):
            return False
        has_feeds |= bool(len(feeds))
    return has_feeds


class _BinaryReader(io.RawIOBase):
    """The bytes of a source without each 0D that precedes an 0A."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, about *size*; b"" at the end."""
        while self._at < self._source.size:
            raw = self._source.data[self._at : self._at + size + 1]
            keep = np.append((raw[:-1] != _CR) | (raw[1:] != _LF), True)[:size]
            self._at += len(keep)
            kept: bytes = raw[: len(keep)][keep].tobytes()
            if kept:
                return kept
        return b""


def undo_text_mode(source: Source) -> Source:
    """Return the recording without the added bytes; a large one is stored in a temporary file."""
    binary = Source.open(cast(IO[bytes], _BinaryReader(source)))
    binary.name, binary.file = source.name, source.file
    return binary


LEFT = "x forward, y right, z up (left-handed)"
RIGHT = "x forward, y left, z up (right-handed)"


def scan(source: Source) -> Scan:
    """Return the Scan of a recording. Raises UnsupportedError for a file without the magic string."""
    if source.head[2:18] != b"\x0e\x00CARLA_RECORDER":
        raise UnsupportedError("not a CARLA recording: its mark is missing", path=source.name)
    content = Reader(source).finish()
    if _lost(content) and is_text_mode(source):
        binary = undo_text_mode(source)
        reread = Reader(binary).finish()
        if _lost(reread) < _lost(content):
            size = source.size - binary.size
            text = f"written in text mode: 0D before every 0A; undone, which left {size} bytes out"
            reread.problems.append(Problem("text_mode", 0, 0, False, text))
            return ScanBuilder(binary, reread).scan()
    return ScanBuilder(source, content).scan()


def _lost(content: Found) -> int:
    return sum(problem.size for problem in content.problems if problem.lost)


class CarlaGrowing:
    """The Growing of one recording."""

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._is_damaged = self._is_clear = False

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._is_damaged:
            return None
        if read_header(source) is None:
            raise UnsupportedError("the file ends inside its header", path=source.name)
        reader = self._reader
        if reader is None or not (self._is_clear or vectors_are_wide(source, reader.begin) == reader.wide):
            reader = self._reader = Reader(source)
        # After so many bytes it is clear whether vectors are float64.
        self._is_clear = source.size > ENOUGH
        if not reader.feed(source):
            return None
        if reader.has_losses:
            # It may be a file that was written in text mode, which is judged as a whole.
            self._is_damaged, self._reader = True, None
            return None
        return ScanBuilder(source, reader.found()).scan()


def share(logs: Sequence[Log], shifts: Sequence[int]) -> list[Log]:
    """Return files of one log, with the text of all in the first one: an actor may be named in an earlier file."""

    def events(topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        for log, shift in zip(logs, shifts, strict=True):
            for time, frame, record in log.format_state.events(topic):
                yield time + shift - shifts[0], frame, record

    first, *others = logs
    return [first.derive(text=lambda: lines(events)), *(log.derive(text=list) for log in others)]


@lru_cache(64)
def _with_frame(layout: Layout, ros: bool) -> Layout:
    """Return the Layout of a channel; *ros*: with units in metres."""
    return with_members(with_ros_units(layout) if ros else layout, [FRAME])


class ScanBuilder:
    """Builds channels, index and metadata from what was found in a recording.

    following  further files of the same log, with the ns between their clocks and that of this file
    is_first   False for one of these
    """

    def __init__(self, source: Source, content: Found) -> None:
        self.source, self.found = source, content
        #: Frames, with their numbers and times.
        self.frames = Frames(source, content)
        self.following: list[tuple[ScanBuilder, int]] = []
        self.is_first = True
        #: Index of all channels.
        self.index = self.frames.index
        self._kinds = self.frames.kinds
        self._channels = {packet_kind: number for number, packet_kind in enumerate(self._kinds)}

    def _verify(self) -> Iterator[Finding]:
        is_read = not any(problem.code == "header" for problem in self.found.problems)
        yield from verify(self.frames, self.found.header.version if is_read else None)
        if (at := self._evidence.unreadable_physics) is not None:
            text = "no packet of physics holds the records that it counts, with wheels of any release"
            yield Finding("payload", "warn", at - HEAD, 0, text, "physics")

    def scan(self) -> Scan:
        """Return the Scan."""
        content = self.found
        self._add_missing_ends()
        # Whoever follows a recording does not ask for it whenever it has grown.
        start, end = (None, None) if content.is_growing else self.frames.span()
        return Scan(
            version=lambda: self._evidence.release(),
            epoch="start",
            start=start,
            end=end,
            bounds=self.frames.span if content.is_growing else None,
            channels=self._infos(),
            index=self.index,
            problems=content.problems,
            metadata=self._metadata,
            text=lambda: lines(self.events),
            text_of=text_of,
            utc_offset=self._utc_offset,
            ros_axes=partial(self._infos, ros=True),
            actors=actors,
            verify=self._verify,
            format_state=self,
            part=self._part,
        )

    def _part(self, selected: ScanPart) -> Scan:
        """Return the Scan of a part, with the frames of its interval, and only kinds of packets that it has."""
        from logreel.index.part import PartIndex

        content = self.found
        rows = {number: selected.index.rows[number] for number in selected.shown}
        kept = np.zeros(len(self.frames.start), np.bool_)
        if FRAME_START in self._channels:
            number = self._channels[FRAME_START]
            rows.setdefault(number, self.index.rows_between(number, selected.start, selected.end))
            kept[rows[number]] = True
        entries = PartIndex(self.index, rows).entries
        blocks, ends = content.blocks.only(entries), np.asarray(content.ends, np.int64)
        if len(kept):
            frame = self.frames.start.searchsorted(ends, side="right") - 1
            ends = ends[kept[np.maximum(frame, 0)]]
        part = replace(
            content,
            topics={
                packet_kind: topic
                for packet_kind, topic in content.topics.items()
                if blocks.count(packet_kind)
            },
            blocks=blocks,
            ends=ends,
            sizes=content.sizes[entries],
            problems=list(content.problems),
        )
        return ScanBuilder(self.source, part).scan()

    def _add_missing_ends(self) -> None:
        """Record frames without an end as problems: the writer was stopped, or bytes are missing."""
        start = self.frames.start
        if not len(start):
            return
        begun = np.searchsorted(start, self.found.ends, side="right") - 1
        open_ = np.flatnonzero(np.bincount(np.maximum(begun, 0), minlength=len(start)) == 0)

        def number(row: int) -> int:
            return read_frame(self.source, int(start[row]))[0]

        if len(open_) and open_[-1] == len(start) - 1:
            if not any(p.code in ("truncated", "zeros") for p in self.found.problems):
                text = f"frame {number(-1)} has no end: the recording was cut off"
                self.found.problems.append(Problem("truncated", self.source.size, 0, False, text))
            open_ = open_[:-1]
        if len(open_):
            first = int(open_[0])
            text = f"frames without an end: {len(open_)}; the first is frame {number(first)}"
            self.found.problems.append(Problem("frame_end", int(start[first]) - HEAD, 0, False, text))

    @cached_property
    def _evidence(self) -> ReleaseEvidence:
        content = self.found
        return ReleaseEvidence(
            self.source, self.index, content.topics, self._channels, content.header.version, content.wide,
            len(content.ends) > 0,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------- channels

    def _infos(self, ros: bool = False) -> list[ChannelInfo]:
        """Return the channels; *ros*: in metres and right-handed axes."""
        return [self._info(packet_kind, ros) for packet_kind in self._kinds]

    def _info(self, packet_kind: int, ros: bool) -> ChannelInfo:
        topic = self.found.topics[packet_kind]
        metadata: dict[str, Any] = {"packet": packet_kind, "axes": RIGHT if ros else LEFT}
        if topic == "trigger_volumes":
            metadata["frame"] = "world"
        if packet_kind == FRAME_START:
            return ChannelInfo(topic, Schema(topic, "carla"), lambda: layout(topic, False), metadata)
        return ChannelInfo(
            topic,
            Schema(topic, "carla"),
            lambda: _with_frame(self._layout(topic), ros),
            metadata,
            partial(
                self._decoder,
                self._channels[packet_kind],
                topic,
                RosAxesDecoder if ros else PacketFieldsDecoder,
            ),
        )

    def _layout(self, topic: str) -> Layout:
        if topic == "physics":
            return self._evidence.physics or RAW
        return layout(topic, self.found.wide)

    def _decoder(self, channel: int, topic: str, body: type[PacketFieldsDecoder]) -> PayloadDecoder:
        return PacketDecoder(self.frames, channel, body(self._layout(topic)))

    def events(self, topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield time (ns), frame number and record for all records of a topic; most packets have no records."""
        for packet_kind in self._kinds:
            if self.found.topics[packet_kind] == topic:
                yield from self._records(packet_kind, topic)

    def _records(self, packet_kind: int, topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        channel, decode = self._channels[packet_kind], decoder_of(self._layout(topic))
        rows = np.flatnonzero(self.index.sizes(channel) > _EMPTY)
        _, at, size = places(self.index, channel, rows)
        times = self.index.times(channel)[rows].tolist()
        (frames,) = self.frames.numbers(channel, rows)
        for time, frame, a, n in zip(times, frames.tolist(), at.tolist(), size.tolist(), strict=True):
            with suppress(DamagedError):
                for record in decode(self.source.view[a : a + n])["records"]:
                    yield time, frame, record

    # ---------------------------------------------------------------------------------------------- metadata

    def _utc_offset(self) -> int | None:
        date = self.found.header.date
        return date * 10**9 if 0 < date < 1 << 33 else None

    def _metadata(self) -> Mapping[str, Any]:
        header, evidence = self.found.header, self._evidence
        metadata: dict[str, Any] = {"format_version": header.version, "map": header.map}
        if self._utc_offset() is not None:
            metadata["date"] = datetime.fromtimestamp(header.date, UTC).isoformat()
            metadata["date_unix"] = header.date
        metadata["engine"] = "UE5" if self.found.wide else "UE4"
        metadata["release"] = evidence.release()
        metadata["attribute_base"] = evidence.attribute_base
        if evidence.has_old_wheels:
            metadata["wheel_bytes"] = OLD_WHEEL
        if evidence.is_dreyevr:
            metadata["fork"] = "DReyeVR"
        return metadata
