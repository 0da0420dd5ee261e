"""Build the Scan of a recording: channels, index and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import numpy as np

from logreel.errors import DamagedError, Finding, Problem, UnsupportedError
from logreel.formats.carla.actors import actors
from logreel.formats.carla.clock import FRAME, Frames
from logreel.formats.carla.definitions import RAW, layout
from logreel.formats.carla.found import Found
from logreel.formats.carla.payload_decoders import PacketDecoder, PacketFieldsDecoder
from logreel.formats.carla.reader import Reader
from logreel.formats.carla.records import FRAME_START, HEAD, read_frame, read_header, vectors_are_wide
from logreel.formats.carla.release import OLD_WHEEL, ReleaseEvidence
from logreel.formats.carla.ros_axes import RosAxesDecoder, with_ros_units
from logreel.formats.carla.text import lines
from logreel.formats.carla.text_mode import is_text_mode, undo_text_mode
from logreel.formats.carla.verify import verify
from logreel.index.ranges import places
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.log.growing import ENOUGH
from logreel.log.log import Log
from logreel.log.scan import ChannelInfo, PayloadDecoder, Scan
from logreel.log.schema import Schema
from logreel.log.side_columns import with_members

LEFT = "x forward, y right, z up (left-handed)"
RIGHT = "x forward, y left, z up (right-handed)"


def scan(source: Source) -> Scan:
    """Return the Scan of a recording. Raises UnsupportedError for a file without the magic string."""
    if source.head[2:18] != b"\x0e\x00CARLA_RECORDER":
        raise UnsupportedError("not a CARLA recording: its mark is missing", path=source.name)
    found = Reader(source).finish()
    if _lost(found) and is_text_mode(source):
        binary = undo_text_mode(source)
        reread = Reader(binary).finish()
        if _lost(reread) < _lost(found):
            size = source.size - binary.size
            text = f"written in text mode: 0D before every 0A; undone, which left {size} bytes out"
            reread.problems.append(Problem("text_mode", 0, 0, False, text))
            return ScanBuilder(binary, reread).scan()
    return ScanBuilder(source, found).scan()


def _lost(found: Found) -> int:
    return sum(problem.size for problem in found.problems if problem.lost)


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
            for time, frame, record in log.format_state._events(topic):
                yield time + shift - shifts[0], frame, record

    first, *others = logs
    return [first.derive(text=lambda: lines(events)), *(log.derive(text=list) for log in others)]


class ScanBuilder:
    """Builds channels, index and metadata from what was found in a recording.

    following  further files of the same log, with the ns between their clocks and that of this file
    is_first   False for one of these
    """

    def __init__(self, source: Source, found: Found) -> None:
        self.source, self.found = source, found
        #: Frames, with their numbers and times.
        self.frames = Frames(source, found)
        self.following: list[tuple[ScanBuilder, int]] = []
        self.is_first = True
        #: Index of all channels.
        self.index = self.frames.index
        self._kinds = self.frames.kinds
        self._channels = {kind: number for number, kind in enumerate(self._kinds)}

    def _verify(self) -> Iterator[Finding]:
        is_read = not any(one.code == "header" for one in self.found.problems)
        yield from verify(self.frames, self.found.header.version if is_read else None)
        if (at := self._evidence.unreadable_physics) is not None:
            text = "no packet of physics holds the records that it counts, with wheels of any release"
            yield Finding("payload", "warn", at - HEAD, 0, text, "physics")

    def scan(self) -> Scan:
        """Return the Scan."""
        found = self.found
        self._add_missing_ends()
        # Whoever follows a recording does not ask for it whenever it has grown.
        start, end = (None, None) if found.is_growing else self.frames.span()
        return Scan(
            version=lambda: self._evidence.release(),
            epoch="start",
            start=start,
            end=end,
            bounds=self.frames.span if found.is_growing else None,
            channels=self._infos(),
            index=self.index,
            problems=found.problems,
            metadata=self._metadata,
            text=lambda: lines(self._events),
            utc_offset=self._utc_offset,
            ros_axes=partial(self._infos, ros=True),
            actors=actors,
            verify=self._verify,
            format_state=self,
        )

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
        found = self.found
        return ReleaseEvidence(
            self.source, self.index, found.topics, self._channels, found.header.version, found.wide,
            len(found.ends) > 0,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------- channels

    def _infos(self, ros: bool = False) -> list[ChannelInfo]:
        """Return the channels; *ros*: in metres and right-handed axes."""
        return [self._info(kind, ros) for kind in self._kinds]

    def _info(self, kind: int, ros: bool) -> ChannelInfo:
        topic = self.found.topics[kind]
        metadata: dict[str, Any] = {"packet": kind, "axes": RIGHT if ros else LEFT}
        if topic == "trigger_volumes":
            metadata["frame"] = "world"
        if kind == FRAME_START:
            return ChannelInfo(topic, Schema(topic, "carla"), lambda: layout(topic, False), metadata)
        return ChannelInfo(
            topic,
            Schema(topic, "carla"),
            lambda: with_members(
                with_ros_units(self._layout(topic)) if ros else self._layout(topic), [FRAME]
            ),
            metadata,
            partial(
                self._decoder, self._channels[kind], topic, RosAxesDecoder if ros else PacketFieldsDecoder
            ),
        )

    def _layout(self, topic: str) -> Layout:
        if topic == "physics":
            return self._evidence.physics or RAW
        return layout(topic, self.found.wide)

    def _decoder(self, channel: int, topic: str, body: type[PacketFieldsDecoder]) -> PayloadDecoder:
        return PacketDecoder(self.frames, channel, body(self._layout(topic)))

    def _events(self, topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield time (ns), frame number and record for all records of a topic; most packets have no records."""
        for kind in self._kinds:
            if self.found.topics[kind] == topic:
                yield from self._records(kind, topic)

    def _records(self, kind: int, topic: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        channel, decode = self._channels[kind], self._layout(topic).decoder()
        rows = np.flatnonzero(self.index.sizes(channel) > 2)
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
