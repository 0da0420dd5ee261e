"""Write CARLA recordings: packets, in frames by their times."""

from __future__ import annotations

import struct
import time as clock
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError, UsageError
from logreel.formats.carla.copy_metadata import SourceRecordings, pack_header, seconds_of
from logreel.formats.carla.records import END, FRAME_START, HEAD, START
from logreel.formats.carla.schema_maker import CarlaSchemaMaker
from logreel.formats.carla.write_frames import FRAME, FramedPackets, LastFrame, assign_frames
from logreel.formats.carla.write_kinds import Dialect
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.log.schema import Schema
from logreel.write.format_writer import FormatWriter, SomeRefusedError
from logreel.write.payloads import Payloads
from logreel.write.record_headers import RecordHeaders

FRAME_END = END[:HEAD]
#: FrameEnd of the frame before and an empty FrameStart; offsets of the payload in it, and of the duration in that.
_FRAME_HEAD = FRAME_END + START + bytes(FRAME.itemsize)
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
        kind = self.schemas.dialect.kind_of(topic, schema, metadata, self.are_checked)
        if kind in self.kinds.values():
            text = f"{topic!r}: packets of kind {kind} are those of another channel; releases number some in other ways"
            raise UsageError(text)
        self.kinds[topic] = kind
        self.schemas.add_channel(topic, kind == FRAME_START)
        self._is_frame = np.append(self._is_frame, kind == FRAME_START)
        self._headers.add(struct.pack("<BI", kind, 0), size_at=1)

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append packets; invalid payloads are skipped and raise UsageError after the others were written."""
        one, shift = payloads.in_one(), self._shift_of(time)
        bad = (time < self.earliest - min(shift, 0)) | (time > self.latest - max(shift, 0))
        bad |= one.size > self.largest
        # Times that would wrap are those of bad rows.
        time = time + shift
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not self.are_checked else ():
            mine = np.flatnonzero((channel == number) & ~bad)
            bad[mine] = self.schemas.misfits(number, one.data, one.start[mine], one.size[mine])
        good = np.flatnonzero(~bad) if bad.any() else slice(None)
        self._append(channel[good], time[good], one.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            what = f"{int(one.size[row])} bytes at {int(time[row])} ns are no packet"
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
        given = payloads.data[payloads.start[is_frame][:, None] + np.arange(FRAME.itemsize)].view(FRAME)[:, 0]
        found = assign_frames(is_frame, time, given, self._last, self._is_joined, self._continues)
        # Frames are added for packets without one, and repeated frames are skipped.
        self.extra_messages[f"packets of kind {FRAME_START}"] += int(found.frames.sum() - is_frame.sum())
        self._renumbered += found.changed
        # Header 0 is that of frames, header n + 1 that of channel n.
        packet = ~found.frames
        head = np.where(packet, channel[found.row] + 1, 0).astype(np.int32)
        some = payloads.rows(found.row)
        start, size = (np.where(packet, column, 0) for column in (some.start, some.size))
        place = self._headers.places(head, size)
        some = Payloads(payloads.data, start, size)
        records = self._headers.compose(head, np.zeros(len(head), np.int64), some, place)
        content = place[:-1][found.frames] + _CONTENT_AT
        records[content[:, None] + np.arange(FRAME.itemsize)] = found.content.view(np.uint8).reshape(
            -1, FRAME.itemsize
        )
        # The first frame follows no other, so no FrameEnd precedes it.
        skipped = 0 if self._last is not None else HEAD
        self._set_last(found, content + self.out.tell() - skipped)
        self.out.put(records[skipped:].data)

    @property
    def _is_joined(self) -> bool:
        """Whether the frames are from several recordings."""
        return self._continues or len(self.sources.logs) > 1

    def _set_last(self, found: FramedPackets, place: I64) -> None:
        """Remember the last frame; write the duration of the one before into the file, as the simulator does."""
        if not len(found.content):
            return
        if self._last is not None and self._last.inferred:
            duration = float(found.content["elapsed"][0]) - self._last.elapsed
            self.out.patch(self._last.place + _DURATION_AT, struct.pack("<d", duration))
        self._last = found.last and replace(found.last, place=int(place[-1]))

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
            self.out.write(FRAME_END)
            self.out.commit()
        self.notes += self.sources.collisions()
        if self._renumbered:
            self.notes.append(f"{self._renumbered} frames got other numbers, which ascend now")
