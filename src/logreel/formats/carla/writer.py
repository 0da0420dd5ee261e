"""CARLA recordings being written: packets, in the frames of their times."""

from __future__ import annotations

import struct
import time as clock
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UnsupportedError, UsageError
from logreel.formats.carla.copier import Copier
from logreel.formats.carla.copy_metadata import MetadataCopier, header_of, pack_header, seconds_of
from logreel.formats.carla.records import END, FRAME_START, HEAD, START
from logreel.formats.carla.write_frames import FRAME, Framed, Last, framed
from logreel.formats.carla.write_kinds import Dialect
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.format_writer import Excerpt, FormatWriter
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
    encoding = "carla"
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
        super().__init__(out)
        if engine not in ("UE4", "UE5"):
            raise UsageError(f"engine {engine!r}; there are UE4, UE5")
        if wheel_bytes not in (36, 48):
            raise UsageError(f"wheels of {wheel_bytes} bytes; there are 36, 48")
        self._dialect = Dialect(engine == "UE5", wheel_bytes == 48)
        date = int(clock.time()) if date is None else date
        self._told: dict[str, Any] = {"format_version": version, "date_unix": date, "map": map}
        self._header = pack_header(version, date, map)
        self._begun = self._complete = False
        self._topics: list[str] = []
        self._kinds: dict[str, int] = {}
        self._is_frame = np.zeros(0, bool)
        self._headers = RecordHeaders()
        self._headers.add(_FRAME_HEAD)
        self._last: Last | None = None
        self._metadata_copier = MetadataCopier()
        self._returns = False
        self._changed = 0

    # ------------------------------------------------------------------------------------------- what is told

    def metadata(self, name: str, value: Any) -> None:
        """Say ``format_version``, ``map``, and ``date_unix`` or ``date`` in ISO 8601, before the first packet."""
        if name == "date":
            name, value = "date_unix", seconds_of(value)
        if name not in self._told:
            raise UnsupportedError(
                f"{self.title} has no place for metadata but {', '.join(self._told)}, date"
            )
        if self._begun:
            raise UsageError(f"{name!r} is in the header of {self.title}, which is written already")
        told = self._told | {name: value}
        self._header, self._told = pack_header(*told.values()), told

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel: the packets of one kind, see ``Dialect.kind_of``."""
        kind = self._dialect.kind_of(
            topic, schema, metadata, self._returns or bool(self._metadata_copier.logs)
        )
        if kind in self._kinds.values():
            text = f"{topic!r}: packets of kind {kind} are those of another channel; releases number some in other ways"
            raise UsageError(text)
        self._kinds[topic] = kind
        self._topics.append(topic)
        self._is_frame = np.append(self._is_frame, kind == FRAME_START)
        self._headers.add(struct.pack("<BI", kind, 0), size_at=1)

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """Topics have types of their own, whatever the fields are."""
        schema = Schema(topic, self.encoding)
        try:
            self._dialect.kind_of(topic, schema, {}, False)
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """How the packets of the channel's kind are laid out."""
        return self._dialect.layout(self._topics[number])

    def derived(self, number: int) -> Collection[str]:
        """Reading tells the number of the frame."""
        return () if self._is_frame[number] else ("frame",)

    def kept_as(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """The kind of packet: names of kinds that moved follow from others of them."""
        return f"packets of kind {self._kinds.get(topic, metadata['packet'])}"

    def copy_metadata(self, log: Log) -> list[str]:
        """Take over the header of the first recording."""
        told = self._metadata_copier.take(log)
        if len(self._metadata_copier.logs) == 1:
            self._header = header_of(log)
            self._told = {name: log.metadata.get(name, value) for name, value in self._told.items()}
            self._dialect = replace(self._dialect, wide=log.format_state.found.wide)
        return told

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Take over the header; packets of a recording that was converted are taken as they are."""
        self._returns = returns
        return super().import_foreign(log, returns)

    def copy(self, excerpt: Excerpt) -> bool:
        """Copy frames as they lie in the file."""
        self._header = header_of(excerpt.log)
        self._begin()
        copier = Copier(excerpt, self.out)
        copier.run()
        for kind in copier.inserted:
            self.added[f"packets of kind {kind}"] += 1
        self._complete = True
        return True

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append packets; where payloads are not what their kinds are, a UsageError comes after the others."""
        one = payloads.in_one()
        bad = (one.size > self.largest) | (time < self.earliest) | (time > self.latest)
        # Those of recordings that are rewritten, or come back, were judged when they were read.
        judged = self._returns or self._metadata_copier.logs
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not judged else ():
            mine = np.flatnonzero((channel == number) & ~bad)
            bad[mine] = self._dialect.misfits(self._topics[number], one.data, one.start[mine], one.size[mine])
        good = np.flatnonzero(~bad) if bad.any() else slice(None)
        self._append(channel[good], time[good], one.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            what = f"{int(one.size[row])} bytes at {int(time[row])} ns are no packet"
            raise UsageError(f"{what} of {self._topics[int(channel[row])]!r}: {int(bad.sum())} left out")

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self._begin()
        is_frame = self._is_frame[channel]
        given = payloads.data[payloads.start[is_frame][:, None] + np.arange(FRAME.itemsize)].view(FRAME)[:, 0]
        found = framed(is_frame, time, given, self._last, len(self._metadata_copier.logs) > 1)
        # Frames come with the packets in them, and some are there already.
        self.added[f"packets of kind {FRAME_START}"] += int(found.frames.sum() - is_frame.sum())
        self._changed += found.changed
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

    def settle(self) -> None:
        """Write the header even if no packet has come; a frame that is not ended is read all the same."""
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.out.write(self._header)
            self.out.commit()

    def finish(self) -> None:
        """End the last frame."""
        if not self._complete and self._last is not None:
            self.out.write(FRAME_END)
            self.out.commit()
        self.notes += self._metadata_copier.collisions()
        if self._changed:
            self.notes.append(f"{self._changed} frames got other numbers, which ascend now")
