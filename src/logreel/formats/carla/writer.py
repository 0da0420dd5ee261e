"""CARLA recordings being written: packets, in the frames of their times."""

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
from logreel.formats.carla.write_frames import FRAME, Framed, Last, framed
from logreel.formats.carla.write_kinds import Dialect
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.log.schema import Schema
from logreel.write.format_writer import FormatWriter
from logreel.write.payloads import Payloads
from logreel.write.record_headers import RecordHeaders

FRAME_END = END[:HEAD]
#: A frame with the end of the one before: where its content begins in that, and where there its duration.
_FRAME_HEAD = FRAME_END + START + bytes(FRAME.itemsize)
_CONTENT_AT, _DURATION_AT = HEAD + HEAD, 8


class CarlaWriter(FormatWriter):
    """Writes what a release records.

    version      of the header: 1 up to 0.9.15 and on the UE5 line, 2 from 0.9.16 on
    map, date    what the header tells; *date* in seconds since 1970, None: now
    engine       ``UE4``, or ``UE5`` with vectors of float64
    wheel_bytes  of a wheel in ``physics``: 48, or 36 up to 0.9.11
    """

    title = "a CARLA recording"
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
        self._last: Last | None = None
        #: Recordings whose packets are written.
        self.sources = SourceRecordings()
        #: Whether packets come from a recording, maybe by way of another format: they were checked when it was read.
        self.are_checked = False
        self._renumbered = 0

    # ------------------------------------------------------------------------------------------- what is told

    def metadata(self, name: str, value: Any) -> None:
        """Say ``format_version``, ``map``, and ``date_unix`` or ``date`` in ISO 8601, before the first packet."""
        if name == "date":
            name, value = "date_unix", seconds_of(value)
        if name not in self.header_fields:
            raise UnsupportedError(
                f"{self.title} has no place for metadata but {', '.join(self.header_fields)}, date"
            )
        if self._begun:
            raise UsageError(f"{name!r} is in the header of {self.title}, which is written already")
        told = self.header_fields | {name: value}
        self.header, self.header_fields = pack_header(*told.values()), told

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel: the packets of one kind, see ``Dialect.kind_of``."""
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
        """Append packets; where payloads are not what their kinds are, a UsageError comes after the others."""
        one = payloads.in_one()
        bad = (one.size > self.largest) | (time < self.earliest) | (time > self.latest)
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not self.are_checked else ():
            mine = np.flatnonzero((channel == number) & ~bad)
            bad[mine] = self.schemas.misfits(number, one.data, one.start[mine], one.size[mine])
        good = np.flatnonzero(~bad) if bad.any() else slice(None)
        self._append(channel[good], time[good], one.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            what = f"{int(one.size[row])} bytes at {int(time[row])} ns are no packet"
            raise UsageError(
                f"{what} of {self.schemas.topics[int(channel[row])]!r}: {int(bad.sum())} left out"
            )

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self.begin()
        is_frame = self._is_frame[channel]
        given = payloads.data[payloads.start[is_frame][:, None] + np.arange(FRAME.itemsize)].view(FRAME)[:, 0]
        found = framed(is_frame, time, given, self._last, len(self.sources.logs) > 1)
        # Frames come with the packets in them, and some are there already.
        self.extra_messages[f"packets of kind {FRAME_START}"] += int(found.frames.sum() - is_frame.sum())
        self._renumbered += found.changed
        # The first row of the table of heads is that of frames.
        packet = ~found.frames
        head = np.where(packet, channel[found.row] + 1, 0).astype(np.int32)
        some = payloads.rows(found.row)
        start, size = (np.where(packet, column, 0) for column in (some.start, some.size))
        place = self._headers.places(head, size)
        some = Payloads(payloads.data, start, size)
        made = self._headers.compose(head, np.zeros(len(head), np.int64), some, place)
        content = place[:-1][found.frames] + _CONTENT_AT
        made[content[:, None] + np.arange(FRAME.itemsize)] = found.content.view(np.uint8).reshape(
            -1, FRAME.itemsize
        )
        # There is no frame before the first one that would end.
        skipped = 0 if self._last is not None else HEAD
        self._follow(found, content + self.out.tell() - skipped)
        self.out.put(made[skipped:].data)

    def _follow(self, found: Framed, place: I64) -> None:
        """Fill in the duration of the last frame when another one begins, as the simulator does."""
        if not len(found.content):
            return
        if self._last is not None and self._last.inferred:
            duration = float(found.content["elapsed"][0]) - self._last.elapsed
            self.out.patch(self._last.place + _DURATION_AT, struct.pack("<d", duration))
        self._last = found.last and replace(found.last, place=int(place[-1]))

    # ------------------------------------------------------------------------------------------ the file

    def end_copy(self) -> None:
        """Take the file as complete: all frames were copied with their ends."""
        self._complete = True

    def commit(self) -> None:
        """Write the header even if no packet has come; a frame that is not ended is read all the same."""
        self.begin()

    def begin(self) -> None:
        """Write the header, once."""
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
