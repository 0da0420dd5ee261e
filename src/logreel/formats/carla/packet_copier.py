"""Parts of a recording copied packet by packet as they lie in the file; a copy of everything is the same file.

Frames are kept whatever packets are wanted of them. Where a stretch is wanted whole it is copied in one go.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from logreel.formats.carla.lasting_records import in_force, size_of
from logreel.formats.carla.records import END, FRAME_START, HEAD
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.index.order import in_file_order
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.write.copy_ranges import put, runs
from logreel.write.log_copier import Excerpt

#: Bytes of what a FrameStart holds.
_FRAME_BYTES = 24
#: Records that a packet may have.
_MOST = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class _Edit:
    """Bytes to be written at a place of the source in the stead of *size* ones there.

    inside  only if what is there is copied
    """

    place: int
    size: int
    inside: bool
    data: bytes


class PacketCopier:
    """Writes stretches of the source in ascending order; *inserted* are the kinds of packets that were not there."""

    def __init__(self, excerpt: Excerpt, out: Appender) -> None:
        self._excerpt, self._out = excerpt, out
        self._state: ScanBuilder = excerpt.log.format_state
        self._source, self._index = self._state.source, self._state.index
        self._kinds = [int(ch.metadata["packet"]) for ch in excerpt.log.channels.values()]
        self._start = np.zeros(0, np.int64)
        self._rows = dict(excerpt.rows)
        if FRAME_START in self._kinds:
            number = self._kinds.index(FRAME_START)
            self._start = self._index.offsets(number) - HEAD
            self._rows.setdefault(number, self._index.rows_between(number, excerpt.start, excerpt.end))
            self._kept = np.zeros(len(self._start), bool)
            self._kept[self._rows[number]] = True
        self._ends, missing = self._frame_ends()
        self.inserted: list[int] = []
        carried = self._carried()
        instead = {edit.place for edit in carried if edit.inside}
        heads = [edit for edit in self._right_heads() if edit.place not in instead]
        self._edits = deque(sorted([*missing, *heads, *carried], key=lambda edit: (edit.place, edit.size)))

    def run(self) -> None:
        """Copy all that is wanted."""
        whole = self._whole()
        if whole is None:
            self._copy_some()
        else:
            self._copy_whole(*whole)
        for edit in self._edits:
            if not edit.inside:
                self._out.write(edit.data)
        self._out.commit()

    # ------------------------------------------------------------------------------------------------ frames

    def _frame_ends(self) -> tuple[I64, list[_Edit]]:
        """Where the ends of the frames wanted lie, and those to be added where they are missing."""
        ends = np.asarray(self._state.found.ends, np.int64)
        if not len(self._start):
            return ends, []
        frame = self._start.searchsorted(ends, side="right") - 1
        ended = np.zeros(len(self._start), bool)
        ended[frame[frame >= 0]] = True
        stop = np.append(self._start[1:], self._source.size)
        missing = [_Edit(place, 0, False, END[:HEAD]) for place in stop[self._kept & ~ended].tolist()]
        return ends[self._kept[np.maximum(frame, 0)]], missing

    def _right_heads(self) -> list[_Edit]:
        """RecordHeaders in place of those that state a wrong kind or size."""
        resized = self._state.found.resized
        found = []
        for number, kind in enumerate(self._kinds) if resized else ():
            for place in np.intersect1d(self._index.offsets(number), list(resized)).tolist():
                head = bytes((kind,)) + resized[place].to_bytes(4, "little")
                found.append(_Edit(place - HEAD, HEAD, True, head))
        return found

    def _carried(self) -> list[_Edit]:
        """Packets of the first frame with what was in force before it."""
        first = int(np.argmax(self._kept)) if len(self._start) and self._kept.any() else 0
        if not self._excerpt.in_force or not first:
            return []
        lo, hi = self._start[first], np.append(self._start, self._source.size)[first + 1]
        found = []
        for number, records in in_force(self._excerpt, self._kinds, int(lo)).items():
            kind, offset = self._kinds[number], self._index.offsets(number)[self._rows[number]]
            own = offset[(offset >= lo) & (offset < hi)][:1].tolist()
            count = int.from_bytes(self._source.read(own[0], 2), "little") if own else 0
            if own and len(records) + count <= _MOST:
                size = size_of(self._state, own[0])
                body = self._source.read(own[0] + 2, size - 2)
                packet = _packet(kind, len(records) + count, [*records, body])
                found.append(_Edit(own[0] - HEAD, HEAD + size, True, packet))
                continue
            for some in range(0, len(records), _MOST):
                part = records[some : some + _MOST]
                self.inserted.append(kind)
                found.append(_Edit(int(lo) + HEAD + _FRAME_BYTES, 0, False, _packet(kind, len(part), part)))
        return found

    # ---------------------------------------------------------------------------------------------- packets

    def _whole(self) -> tuple[int, int] | None:
        """From where to where every packet is wanted, if that is all that is wanted."""
        kept = np.flatnonzero(self._kept) if len(self._start) else self._start
        if not len(kept) or kept[-1] - kept[0] + 1 != len(kept) or len(self._rows) < len(self._kinds):
            return None
        # What lies before the first frame counts as part of it.
        begin = int(self._start[kept[0]]) if kept[0] else self._state.found.header.size
        end = int(np.append(self._start, self._source.size)[kept[-1] + 1])
        for number, rows in self._rows.items():
            lo, hi = self._index.offsets(number).searchsorted([begin, end]).tolist()
            if (
                not isinstance(rows, slice)
                or rows.stop - rows.start != hi - lo
                or (hi > lo and rows.start != lo)
            ):
                return None
        return begin, end

    def _copy_whole(self, begin: int, end: int) -> None:
        lost = sorted((p.offset, p.offset + p.size) for p in self._state.found.problems if p.lost)
        holes = np.clip(np.array(lost, np.int64).reshape(-1, 2), begin, end)
        start, stop = np.append(begin, holes[:, 1]), np.append(holes[:, 0], end)
        self._write(start[stop > start], stop[stop > start])

    def _copy_some(self) -> None:
        done = 0
        for piece in in_file_order(self._index, self._rows):
            start, end = piece.offset - HEAD, piece.offset + piece.size
            upto = int(self._ends.searchsorted(end[-1]))
            ends = self._ends[done:upto]
            done = max(done, upto)
            self._write(*runs(np.append(start, ends), np.append(end, ends + HEAD)))
        ends = self._ends[done:]
        self._write(*runs(ends, ends + HEAD))

    def _write(self, start: I64, end: I64) -> None:
        """Append stretches, with the edits that are due at them."""
        start = start.copy()
        while len(start) and self._edits and self._edits[0].place < end[-1]:
            edit = self._edits.popleft()
            before = int(end.searchsorted(edit.place, side="right"))
            # Of the stretch that the place is in, what is before it goes first.
            inside = bool(start[before] <= edit.place)
            cut = start[before] < edit.place
            put(
                self._out,
                self._source.data,
                start[: before + cut],
                np.minimum(end[: before + cut], edit.place),
            )
            start, end = start[before:], end[before:]
            start[0] = max(start[0], edit.place)
            if inside or not edit.inside:
                self._out.write(edit.data)
                start[0] += edit.size
        if len(start):
            put(self._out, self._source.data, start, end)


def _packet(kind: int, count: int, parts: list[bytes]) -> bytes:
    payload = count.to_bytes(2, "little") + b"".join(parts)
    return bytes((kind,)) + len(payload).to_bytes(4, "little") + payload
