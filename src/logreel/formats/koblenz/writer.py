"""Koblenz logs being written: messages as they come, and the index, which stands before them, at the end."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.framing import MAX_UNKNOWN
from logreel.formats.koblenz.kinds import Kind
from logreel.formats.koblenz.records import (
    HEAD,
    HEADER,
    MAGIC,
    MARKS,
    MAX_SIZE,
    SIZE_READINGS,
    VALID_MARK,
    pack_head,
    pack_utc_note,
)
from logreel.formats.koblenz.scan_builder import FormatState
from logreel.formats.koblenz.time_index import TimeIndexBuilder, seconds_between
from logreel.formats.koblenz.variant import MAJOR, MINOR
from logreel.formats.koblenz.write_kinds import kind_of, layout_of, misfits
from logreel.index.order import by_rows
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.copy_ranges import put, runs
from logreel.write.format_writer import Excerpt, FormatWriter
from logreel.write.payloads import Payloads
from logreel.write.record_headers import RecordHeaders

_MS = 10**6
#: Where a message has its time.
_TIME_AT = 13
#: Where the number of entries stands, and the entries behind it.
_INDEX_AT = 8


class KoblenzWriter(FormatWriter):
    """Writes version 1.1.

    size_reading  what the size of a message counts: ``A`` as described, ``B`` or ``C`` for readers that take it so
    valid_mark    what messages are marked by: 0x49, or 0x31 or 0x01 for readers that take the description so
    """

    title = "a Koblenz log"
    encoding = "koblenz"
    largest = MAX_SIZE - HEAD

    def __init__(self, out: Appender, *, size_reading: str = "A", valid_mark: int = VALID_MARK) -> None:
        super().__init__(out)
        found = {one.name: one for one in SIZE_READINGS}
        if size_reading not in found:
            raise UsageError(f"size_reading {size_reading!r}; there are {', '.join(found)}")
        if valid_mark not in MARKS:
            known = ", ".join(f"0x{mark:02X}" for mark in MARKS)
            raise UsageError(f"valid_mark {valid_mark!r}; there are {known}")
        self._size_reading, self._mark = found[size_reading], valid_mark
        self._kinds: list[Kind] = []
        self._layouts: list[Layout] = []
        self._headers = RecordHeaders()
        self._version = struct.pack("<HH", MAJOR, MINOR)
        self._begun = self._complete = False
        #: Entries of the index that there is room for, and first and last time of the logs inherited from.
        self._room = 0
        self._span: tuple[int, int] | None = None
        #: Whether the fixes of the log that is copied or inherited from tell UTC.
        self._fixes_tell = False
        self._seconds = TimeIndexBuilder()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel; see ``write_kinds.kind_of``."""
        kind = kind_of(topic, schema, metadata)
        unknown = {(k.type, k.version) for k in (*self._kinds, kind) if k.known is None}
        if len(unknown) > MAX_UNKNOWN:
            raise UsageError(f"more than {MAX_UNKNOWN} types that nothing describes")
        self._kinds.append(kind)
        self._layouts.append(layout_of(kind, topic))
        head = pack_head(0, self._mark, kind.type, kind.version, 0.0)
        self._headers.add(head, size_at=0, size_add=self._size_reading.base, time_at=_TIME_AT, time_kind=_MS)

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """Topics begin with their types, whatever the fields are."""
        schema = Schema(topic.partition("/")[0].partition("@")[0], self.encoding)
        try:
            kind_of(topic, schema, {})
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's type; of types that nothing describes, one field ``payload``."""
        return self._layouts[number]

    def kept_as(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Type and version: sensors of one type may get other names where one of them is not there."""
        return f"{metadata['type_id']}@{metadata['version']}"

    # --------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; where payloads are not what their types are, a UsageError comes after the others."""
        one = payloads.in_one()
        bad = self._misfits(channel, one)
        good = slice(None) if not bad.any() else np.flatnonzero(~bad)
        self._append(channel[good], time[good], one.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            name = self._kinds[int(channel[row])].name
            raise UsageError(
                f"a message of {int(one.size[row])} bytes is no {name}: {int(bad.sum())} left out"
            )

    def _misfits(self, channel: NDArray[np.int32], payloads: Payloads) -> NDArray[np.bool_]:
        bad: NDArray[np.bool_] = payloads.size > self.largest
        # Those of logs that are rewritten were judged when they were read.
        for number in np.flatnonzero(np.bincount(channel)).tolist() if self._span is None else ():
            mine = np.flatnonzero((channel == number) & ~bad)
            start, size = payloads.start[mine], payloads.size[mine]
            bad[mine] = misfits(self._kinds[number], payloads.data, start, size)
        return bad

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self._begin()
        place = self._headers.places(channel, payloads.size)
        made = self._headers.compose(channel, time, payloads, place)
        self._seconds.add(time, place[:-1] + self.out.tell())
        self.out.put(made.data)

    # ------------------------------------------------------------------------------------------ the file

    def copy_metadata(self, log: Log) -> list[str]:
        """Take over how long logs are: room for the index can be left at once."""
        self._fixes_tell = not log.format_state.has_utc_note
        if log.start is not None and log.end is not None:
            first, last = self._span or (log.start, log.end)
            self._span = min(first, log.start), max(last, log.end)
            self._room = seconds_between(*self._span)
        return []

    def copy(self, excerpt: Excerpt) -> bool:
        """Copy messages as they lie in the file; a sound log of which all is wanted is copied to the byte."""
        state: FormatState = excerpt.log.format_state
        if state.size_reading is not self._size_reading or state.mark != self._mark:
            return False
        data = state.source.data
        wrong = any(p.lost or p.code in ("index", "header") for p in excerpt.log.problems)
        if excerpt.is_whole and state.has_full_index and not wrong:
            put(self.out, data, np.zeros(1, np.int64), np.array([len(data)]))
            self._begun = self._complete = True
            return True
        self._version, self._fixes_tell = state.source.read(4, 4), not state.has_utc_note
        times = [state.index.times(number)[rows] for number, rows in excerpt.rows.items()]
        times = [some for some in times if len(some)]
        if times:
            first = next(iter(by_rows(state.index, excerpt.rows))).time[0]
            self._room = seconds_between(int(first), max(int(some.max()) for some in times))
        self._begin()
        for piece in by_rows(state.index, excerpt.rows):
            start, end = piece.offset - HEAD, piece.offset + piece.size
            self._seconds.add(piece.time, self.out.tell() + np.cumsum(end - start) - (end - start))
            put(self.out, data, *runs(start, end))
        return True

    def settle(self) -> None:
        """Write the header even if no message has come."""
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.out.write(HEADER.pack(MAGIC, self._version, self._room) + bytes(8 * self._room))
            self.out.commit()

    def finish(self) -> None:
        """Write the index: into the room that was left for it, else all messages move."""
        if self._complete:
            return
        clock = self.source_clock
        # Fixes tell UTC by the median of all of them, so those of a whole log tell the same.
        if clock is not None and clock.utc_offset is not None and not (clock.is_whole and self._fixes_tell):
            self._begin()
            self.out.write(pack_utc_note(clock.utc_offset))
            self.out.commit()
        places = self._seconds.offsets
        more = len(places) - self._room
        index = struct.pack("<I", len(places)) + (places + 8 * more).astype("<i8").tobytes()
        if more:
            self.out.splice(_INDEX_AT, 4 + 8 * self._room, index)
        else:
            self.out.patch(_INDEX_AT, index)
