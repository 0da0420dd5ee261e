"""Parts of a ULog copied record by record as they lie in the file; a copy of everything is the same file.

Where all messages of a stretch are wanted it is copied in one go, without looking at single messages.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.clock import UTC_OFFSET
from logreel.formats.ulog.copy_metadata import begun_at, utc_record, with_defaults_flag
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD
from logreel.formats.ulog.synthetic import synthetic_offsets
from logreel.index.order import count_before, in_file_order, part_of
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.write.copy_ranges import put, runs
from logreel.write.format_writer import SourceClock
from logreel.write.log_copier import Excerpt


def copy_records(excerpt: Excerpt, out: Appender, clock: SourceClock | None) -> bool:
    """Copy the records that *excerpt* wants; False for a file that holds several logs.

    clock  what a part of a log tells of its start and of UTC
    """
    state: NonDataRecords = excerpt.log.format_state
    if len(state.found.segments) > 1 or state.found.is_segment:
        return False
    copier = _RecordCopier(state, excerpt, out, None if excerpt.is_whole else clock)
    copier.run()
    return True


class _RecordCopier:
    """Writes stretches of the source in ascending order, and knows where appended parts get to."""

    def __init__(
        self, state: NonDataRecords, excerpt: Excerpt, out: Appender, clock: SourceClock | None
    ) -> None:
        self._state, self._excerpt, self._out, self._clock = state, excerpt, out, clock
        self._data = state.source.data
        self._appended = list(state.found.appended)
        self._moved: list[int] = []
        self._notes, self._next = np.zeros(0, np.int64), 0
        index = excerpt.log.index
        counts = index.blocks.start[:, 1:] - index.blocks.start[:, :-1]
        ends = np.concatenate([np.zeros((1, counts.shape[1]), np.int64), np.cumsum(counts, axis=0)])
        self._inside = [n for n in excerpt.rows if index.rules[n].synthetic is None]
        #: Wanted messages of each channel before each block, and in all.
        self._kept = {n: count_before(excerpt.rows[n], ends[:, n]) for n in self._inside}

    def run(self) -> None:
        """Copy everything."""
        own = self._state
        self._write_head()
        self._notes, self._next = self._wanted_notes(), 0
        for first, last, whole in self._stretches():
            if whole:
                self._copy_whole(first, last)
            else:
                self._copy_some(first, last)
        self._catch_up(own.source.size)
        self._finish()

    def _write_head(self) -> None:
        """Copy the file header and the flags; those of a part tell its start, and what else may be gone of UTC."""
        state, clock = self._state, self._clock
        head = state.source.read(0, state.found.begin)
        if clock is not None:
            head = begun_at(head, clock.start)
        if state.lacks_defaults_flag:
            head = with_defaults_flag(head)
        self._out.write(head)
        known = any(e.kind == "I" and e.key.name == UTC_OFFSET for e in state.keyed.entries)
        if not known:
            self._out.write(utc_record(head, clock))
        self._out.commit()

    # ---------------------------------------------------------------------------------------------- messages

    def _stretches(self) -> Iterator[tuple[int, int, bool]]:
        """Neighbouring blocks of which all messages are wanted (True), or some: first block and the one behind."""
        blocks = self._excerpt.log.index.blocks
        counts = blocks.start[:, 1:] - blocks.start[:, :-1]
        kept = np.diff(sum(self._kept.values(), np.zeros(len(counts) + 1, np.int64)))
        # Messages that nothing declares are not in the index: where there are any, each record is looked at.
        exact = all(p.code != "undeclared" for p in self._state.found.problems)
        kind = np.where(kept == 0, 0, np.where(exact & (kept == counts.sum(axis=1)), 2, 1))
        cuts = [0, *(np.flatnonzero(np.diff(kind)) + 1).tolist(), len(kind)]
        for lo, hi in itertools.pairwise(cuts):
            if hi > lo and kind[lo]:
                yield lo, hi, bool(kind[lo] == 2)

    def _copy_whole(self, first: int, last: int) -> None:
        """Copy blocks of which all messages are wanted, but for lost bytes and records that are not."""
        state, base = self._state, self._excerpt.log.index.blocks.base
        begin = int(base[first])
        end = int(base[last]) if last < len(base) else state.source.size
        self._catch_up(begin)
        records = state.positions
        dropped = np.setdiff1d(records[records.searchsorted(begin) : records.searchsorted(end)], self._notes)
        lost = [(p.offset, p.offset + p.size) for p in state.found.problems if p.lost]
        holes = np.array(
            [*zip(dropped.tolist(), state.ends_of(dropped).tolist(), strict=True), *lost], np.int64
        )
        holes = np.clip(holes.reshape(-1, 2), begin, end)
        holes = holes[np.argsort(holes[:, 0], kind="stable")]
        start, stop = np.append(begin, holes[:, 1]), np.append(holes[:, 0], end)
        self._write(start[stop > start], stop[stop > start])
        self._next = int(self._notes.searchsorted(end))

    def _copy_some(self, first: int, last: int) -> None:
        """Copy the wanted messages of blocks, and records of other kinds where they stand among them."""
        rows = {
            n: part_of(self._excerpt.rows[n], int(kept[first]), int(kept[last]))
            for n, kept in self._kept.items()
            if kept[last] > kept[first]
        }
        for piece in in_file_order(self._excerpt.log.index, rows):
            if len(piece):
                start, end = piece.offset - DATA_HEAD, piece.offset + piece.size
                notes = self._due(int(end[-1]))
                self._write(*runs(np.append(start, notes), np.append(end, self._state.ends_of(notes))))

    # ------------------------------------------------------------------------------------------------- notes

    def _due(self, end: int) -> I64:
        """The next records to copy that are no messages, up to *end*."""
        upto = int(self._notes.searchsorted(end))
        found = self._notes[self._next : max(upto, self._next)]
        self._next = max(upto, self._next)
        return found

    def _catch_up(self, end: int) -> None:
        """Copy the records up to *end* that are no messages."""
        notes = self._due(end)
        self._write(*runs(notes, self._state.ends_of(notes)))

    def _reach(self) -> tuple[int, int]:
        """From where to where blocks with wanted messages lie."""
        base = [*self._excerpt.log.index.blocks.base.tolist(), self._state.source.size]
        kept = np.flatnonzero(np.diff(sum(self._kept.values(), np.zeros(len(base), np.int64))))
        return (base[kept[0]], base[kept[-1] + 1]) if len(kept) else (0, 0)

    def _wanted_notes(self) -> I64:
        """Positions of the records to copy that are no messages, ascending."""
        state, excerpt = self._state, self._excerpt
        every, wanted = [np.zeros(0, np.int64)], [state.initial_parameters]
        for channel, positions in synthetic_offsets(state).items():
            every.append(positions)
            if channel in excerpt.rows:
                wanted.append(positions[excerpt.rows[channel]])
        if len(self._inside) < len(excerpt.log.index.rules) - len(every) + 1:
            every.append(
                np.array(
                    [at for at, n in state.subscriptions() if n is None or n not in excerpt.rows], np.int64
                )
            )
        if excerpt.start is not None or excerpt.end is not None:
            # Marks stand by the hundred thousand, and have no times: they go with the blocks that they stand in.
            marks = state.marks
            first, last = self._reach()
            every.append(marks[(marks < first) | (marks >= last)])
        others = np.setdiff1d(state.positions, np.concatenate(every))
        return np.union1d(others, np.concatenate(wanted)).astype(np.int64)

    # ---------------------------------------------------------------------------------------------- writing

    def _write(self, start: I64, end: I64) -> None:
        if not len(start):
            return
        while self._appended and self._appended[0] < int(end[-1]):
            before = np.clip(self._appended.pop(0) - start, 0, end - start).sum()
            self._moved.append(self._out.tell() + int(before))
        put(self._out, self._data, start, end)

    def _finish(self) -> None:
        """Say in the flags where appended parts begin now."""
        found = self._state.found
        if found.begin == FILE_HEADER or self._moved == found.appended:
            return
        offsets = (*self._moved, 0, 0, 0)[:3]
        self._out.patch(FILE_HEADER + HEAD + 16, struct.pack("<3Q", *offsets))
