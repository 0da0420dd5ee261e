"""Write Koblenz logs: messages as they come; the index, which is in front of them, at the end."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.koblenz.definitions import USUAL_VERSION, Kind, registered_types, type_id
from logreel.formats.koblenz.framing import MAX_UNKNOWN
from logreel.formats.koblenz.own_types import described_type, pack_types
from logreel.formats.koblenz.records import (
    HEAD,
    HEADER,
    MAGIC,
    MARKS,
    MAX_SIZE,
    SIZE_READINGS,
    VALID_MARK,
    pack_end_mark,
    pack_head,
    pack_utc_note,
)
from logreel.formats.koblenz.schema_maker import KoblenzSchemaMaker, kind_of, layout_of, misfits
from logreel.formats.koblenz.variant import MAJOR, MINOR, TimeIndexBuilder
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.log.scan import LATIN_1, ORIGINAL, Schema
from logreel.write.format_writer import FormatWriter, Payloads, RecordHeaders, SomeRefusedError
from logreel.write.log_copier import write_ranges

_MS = 10**6
#: Offset of the time in a message header.
_TIME_AT = 13
#: Position of the number of index entries, which the entries follow.
_INDEX_AT = 8


class KoblenzWriter(FormatWriter):
    """Writes version 1.1.

    size_reading  what the size of a message counts: ``A`` as described, ``B`` or ``C`` for readers that expect these
    valid_mark    mark of messages: 0x49, or 0x31 or 0x01 for readers that expect these
    """

    title = "a Koblenz log"
    epoch = "start"
    largest = MAX_SIZE - HEAD

    def __init__(self, out: Appender, *, size_reading: str = "A", valid_mark: int = VALID_MARK) -> None:
        self.schemas: KoblenzSchemaMaker = KoblenzSchemaMaker(self.title)
        super().__init__(out, self.schemas)
        readings = {reading.name: reading for reading in SIZE_READINGS}
        if size_reading not in readings:
            raise UsageError(f"size_reading {size_reading!r}; there are {', '.join(readings)}")
        if valid_mark not in MARKS:
            known = ", ".join(f"0x{mark:02X}" for mark in MARKS)
            raise UsageError(f"valid_mark {valid_mark!r}; there are {known}")
        self.size_reading, self.mark = readings[size_reading], valid_mark
        self._kinds: list[Kind] = []
        #: Ids of types whose channels are copied without being added here.
        self.declared: set[int] = set()
        self._headers = RecordHeaders()
        self.version = struct.pack("<HH", MAJOR, MINOR)
        self._begun = self._complete = False
        #: Number of index entries that room is left for.
        self.index_room = 0
        #: Whether messages come from a log of this format: their payloads were checked when it was read.
        self.are_checked = False
        #: Whether the UTC time of the source follows from its fixes.
        self.fixes_give_utc = False
        #: UTC offset in ns that the log states which is continued, or None.
        self._utc_note: int | None = None
        self.time_index = TimeIndexBuilder()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel; see ``write_kinds.kind_of``."""
        known = registered_types()
        if schema.text and type_id(schema.name) not in known:
            version, original = int(metadata.get("version", USUAL_VERSION)), str(metadata.get(ORIGINAL, ""))
            described = described_type(schema.name, schema.text, version, original)
            self.schemas.own[described.id] = described
        message_kind = kind_of(topic, schema, metadata, self.schemas.own)
        unknown = {(k.type, k.version) for k in (*self._kinds, message_kind) if k.known is None}
        if len(unknown) > MAX_UNKNOWN:
            raise UsageError(f"more than {MAX_UNKNOWN} types that nothing describes")
        self._kinds.append(message_kind)
        self.schemas.layouts.append(layout_of(message_kind, topic))
        self.schemas.latin_1.append(frozenset(map(str, metadata.get(LATIN_1, ()))))
        head = pack_head(0, self.mark, message_kind.type, message_kind.version, 0.0)
        self._headers.add(head, size_at=0, size_add=self.size_reading.base, time_at=_TIME_AT, time_kind=_MS)

    # --------------------------------------------------------------------------------------------- messages

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading gives it: logs have milliseconds as float64."""
        return np.rint(time / _MS * _MS).astype(np.int64)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; where payloads are not what their types are, a UsageError comes after the others."""
        joined = payloads.in_one()
        bad = self._misfits(channel, joined)
        good = slice(None) if not bad.any() else np.flatnonzero(~bad)
        self._append(channel[good], time[good], joined.rows(good))
        if bad.any():
            row = int(np.argmax(bad))
            name = self._kinds[int(channel[row])].name
            text = f"a message of {int(joined.size[row])} bytes is no {name}: {int(bad.sum())} left out"
            raise SomeRefusedError(text, np.flatnonzero(bad), len(bad))

    def _misfits(self, channel: NDArray[np.int32], payloads: Payloads) -> NDArray[np.bool_]:
        bad: NDArray[np.bool_] = payloads.size > self.largest
        # Payloads of rewritten logs were checked when they were read.
        for number in np.flatnonzero(np.bincount(channel)).tolist() if not self.are_checked else ():
            rows = np.flatnonzero((channel == number) & ~bad)
            start, size = payloads.start[rows], payloads.size[rows]
            bad[rows] = misfits(self._kinds[number], payloads.data, start, size)
        return bad

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        if not len(channel):
            return
        self.begin()
        place = self._headers.places(channel, payloads.size)
        made = self._headers.compose(channel, time, payloads, place)
        self.time_index.add(time, place[:-1] + self.out.tell())
        self.out.put(made.data)

    # ------------------------------------------------------------------------------------------ the file

    def write_whole(self, data: Buffer) -> None:
        """Write a complete file."""
        write_ranges(self.out.put, data, np.zeros(1, np.int64), np.array([len(data)]))
        self._begun = self._complete = True

    def go_on(self, index_room: int, utc_note: int | None) -> None:
        """Continue a log whose header and messages are in the file.

        index_room  number of index entries before its first message
        utc_note    UTC offset in ns that was written behind its end mark, or None
        """
        self._begun, self.index_room, self._utc_note = True, index_room, utc_note

    def commit(self) -> None:
        """Write the header even if no message has come."""
        self.begin()

    def begin(self) -> None:
        """Write the header and room for the index, once."""
        if not self._begun:
            self._begun = True
            self.out.write(HEADER.pack(MAGIC, self.version, self.index_room) + bytes(8 * self.index_room))
            self.out.commit()

    def finish(self) -> None:
        """Write the index: into the room that was left for it, else all messages move."""
        if self._complete:
            return
        note, clock = self._utc_note, self.source_clock
        # UTC follows from the median of all fixes, so a whole copy has the same offset.
        if clock is not None and not (clock.is_whole and self.fixes_give_utc):
            note = clock.utc_offset
        types = pack_types(self.schemas.own.values(), self.declared | {k.type for k in self._kinds})
        if note is not None or types:
            self.begin()
            self.out.write((pack_end_mark() if note is None else pack_utc_note(note)) + types)
            self.out.commit()
        places = self.time_index.offsets
        more = len(places) - self.index_room
        index = struct.pack("<I", len(places)) + (places + 8 * more).astype("<i8").tobytes()
        if more:
            self.out.splice(_INDEX_AT, 4 + 8 * self.index_room, index)
        else:
            self.out.patch(_INDEX_AT, index)
