"""Copy logs into a new CARLA recording: the packets of an excerpt unchanged, with the records that still apply."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from logreel.formats.carla.definitions import RAW, layout, physics, width
from logreel.formats.carla.records import END, EVENT_ADD, FRAME_START, HEAD, PHYSICS
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.formats.carla.writer import CarlaWriter, header_of
from logreel.index.merge import in_file_order
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.program import extent, measuring
from logreel.log.log import Log
from logreel.write.log_copier import Excerpt, LogCopier, joined_ranges, write_ranges

#: Payload bytes of a FrameStart.
_FRAME_BYTES = 24
#: Greatest number of records in a packet.
_MOST_RECORDS = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class _Edit:
    """Bytes that replace *size* bytes at an offset of the source.

    inside  True: write them only if the bytes there are copied
    """

    at: int
    size: int
    inside: bool
    data: bytes


class PacketCopier:
    """Copies the packets of an excerpt in file order.

    inserted  kinds of the packets that were added
    """

    def __init__(self, excerpt: Excerpt, out: Appender) -> None:
        self._excerpt, self._out = excerpt, out
        self._state: ScanBuilder = excerpt.log.format_state
        self._source, self._index = self._state.source, self._state.index
        self._kinds = [int(ch.metadata["packet"]) for ch in excerpt.log.channels.values()]
        #: Offset of each frame, and whether it is copied.
        self._start, self._kept = np.zeros(0, np.int64), np.zeros(0, bool)
        self._rows = dict(excerpt.rows)
        if FRAME_START in self._kinds:
            number = self._kinds.index(FRAME_START)
            self._start = self._index.offsets(number) - HEAD
            self._rows.setdefault(number, self._index.rows_between(number, excerpt.start, excerpt.end))
            self._kept = np.zeros(len(self._start), bool)
            self._kept[self._rows[number]] = True
        self._ends, missing = self._frame_ends()
        in_force, self.inserted = self._packets_in_force()
        replaced = {edit.at for edit in in_force if edit.inside}
        headers = [edit for edit in self._corrected_headers() if edit.at not in replaced]
        self._edits = deque(sorted([*missing, *headers, *in_force], key=lambda edit: (edit.at, edit.size)))

    def run(self) -> None:
        """Copy everything that is wanted."""
        interval = self._whole_interval()
        if interval is None:
            self._copy_packets()
        else:
            self._copy_interval(*interval)
        for edit in self._edits:
            if not edit.inside:
                self._out.write(edit.data)
        self._out.commit()

    # ------------------------------------------------------------------------------------------------ frames

    def _frame_ends(self) -> tuple[I64, list[_Edit]]:
        """Return the offsets of the FrameEnds of wanted frames, and the FrameEnds to add where they are missing."""
        ends = np.asarray(self._state.found.ends, np.int64)
        if not len(self._start):
            return ends, []
        frame = self._start.searchsorted(ends, side="right") - 1
        ended = np.zeros(len(self._start), bool)
        ended[frame[frame >= 0]] = True
        stop = np.append(self._start[1:], self._source.size)
        missing = [_Edit(at, 0, False, END[:HEAD]) for at in stop[self._kept & ~ended].tolist()]
        return ends[self._kept[np.maximum(frame, 0)]], missing

    def _corrected_headers(self) -> list[_Edit]:
        """Return packet headers that replace those with a wrong kind or size."""
        resized = self._state.found.resized
        edits = []
        for number, packet in enumerate(self._kinds) if resized else ():
            for at in np.intersect1d(self._index.offsets(number), list(resized)).tolist():
                head = bytes((packet,)) + resized[at].to_bytes(4, "little")
                edits.append(_Edit(at - HEAD, HEAD, True, head))
        return edits

    def _packets_in_force(self) -> tuple[list[_Edit], list[int]]:
        """Return the packets with the records in force before the first frame, and the kinds of those that are added.

        They replace packets of the same kind in the first frame, or are inserted at its beginning.
        """
        first = int(np.argmax(self._kept)) if len(self._start) and self._kept.any() else 0
        if not self._excerpt.in_force or not first:
            return [], []
        lo, hi = self._start[first], np.append(self._start, self._source.size)[first + 1]
        edits, inserted = list[_Edit](), list[int]()
        for number, records in records_in_force(self._excerpt, self._kinds, int(lo)).items():
            packet_kind, offset = self._kinds[number], self._index.offsets(number)[self._rows[number]]
            own = offset[(offset >= lo) & (offset < hi)][:1].tolist()
            count = int.from_bytes(self._source.read(own[0], 2), "little") if own else 0
            if own and len(records) + count <= _MOST_RECORDS:
                size = payload_size(self._state, own[0])
                body = self._source.read(own[0] + 2, size - 2)
                packet = _packet(packet_kind, len(records) + count, [*records, body])
                edits.append(_Edit(own[0] - HEAD, HEAD + size, True, packet))
                continue
            for start in range(0, len(records), _MOST_RECORDS):
                part = records[start : start + _MOST_RECORDS]
                inserted.append(packet_kind)
                edits.append(
                    _Edit(int(lo) + HEAD + _FRAME_BYTES, 0, False, _packet(packet_kind, len(part), part))
                )
        return edits, inserted

    # ---------------------------------------------------------------------------------------------- packets

    def _whole_interval(self) -> tuple[int, int] | None:
        """Return start and end of the wanted bytes if every packet between them is wanted, else None."""
        kept = np.flatnonzero(self._kept) if len(self._start) else self._start
        if not len(kept) or kept[-1] - kept[0] + 1 != len(kept) or len(self._rows) < len(self._kinds):
            return None
        # Packets before the first frame count as part of it.
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

    def _copy_interval(self, begin: int, end: int) -> None:
        lost = sorted((p.offset, p.offset + p.size) for p in self._state.found.problems if p.lost)
        holes = np.clip(np.array(lost, np.int64).reshape(-1, 2), begin, end)
        start, stop = np.append(begin, holes[:, 1]), np.append(holes[:, 0], end)
        self._write(start[stop > start], stop[stop > start])

    def _copy_packets(self) -> None:
        done = 0
        for batch in in_file_order(self._index, self._rows):
            start, end = batch.offset - HEAD, batch.offset + batch.size
            upto = int(self._ends.searchsorted(end[-1]))
            ends = self._ends[done:upto]
            done = max(done, upto)
            self._write(*joined_ranges(np.append(start, ends), np.append(end, ends + HEAD)))
        ends = self._ends[done:]
        self._write(*joined_ranges(ends, ends + HEAD))

    def _write(self, start: I64, end: I64) -> None:
        """Write intervals of the source, with the edits at their offsets."""
        start = start.copy()
        while len(start) and self._edits and self._edits[0].at < end[-1]:
            edit = self._edits.popleft()
            before = int(end.searchsorted(edit.at, side="right"))
            # The part before the edit is written first.
            inside = bool(start[before] <= edit.at)
            cut = start[before] < edit.at
            write_ranges(
                self._out.put,
                self._source.data,
                start[: before + cut],
                np.minimum(end[: before + cut], edit.at),
            )
            start, end = start[before:], end[before:]
            start[0] = max(start[0], edit.at)
            if inside or not edit.inside:
                self._out.write(edit.data)
                start[0] += edit.size
        if len(start):
            write_ranges(self._out.put, self._source.data, start, end)


def _packet(packet: int, count: int, parts: list[bytes]) -> bytes:
    payload = count.to_bytes(2, "little") + b"".join(parts)
    return bytes((packet,)) + len(payload).to_bytes(4, "little") + payload


class CarlaCopier(LogCopier):
    """Copies the header of the first recording, and unchanged frames."""

    writer: CarlaWriter

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the kind of packet: topics of some kinds depend on the other packets of a recording."""
        return f"packets of kind {self.writer.kinds.get(topic, metadata['packet'])}"

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy the header of the first recording."""
        writer = self.writer
        losses = writer.sources.add(log)
        writer.are_checked = True
        if len(writer.sources.logs) == 1:
            writer.header = header_of(log)
            fields = writer.header_fields
            writer.header_fields = {name: log.metadata.get(name, value) for name, value in fields.items()}
            date = writer.header_fields["date_unix"]
            if self.masking is not None and (new := self.masking.value("date_unix", date)) != date:
                writer.metadata("date_unix", new)
            schemas = writer.schemas
            schemas.dialect = replace(schemas.dialect, wide=log.format_state.found.wide)
        return losses

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import the header; packets of a recording that was converted to another format are not checked again."""
        self.writer.are_checked = returns
        return super().import_foreign(log, returns)

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy frames unchanged."""
        writer = self.writer
        writer.header = header_of(excerpt.log)
        writer.begin()
        copier = PacketCopier(excerpt, writer.out)
        copier.run()
        for packet in copier.inserted:
            writer.extra_messages[f"packets of kind {packet}"] += 1
        writer.end_copy()
        return True


_REMOVAL, _WEATHER = 3, 24
#: Kinds of packets whose records stay valid until they are replaced; True: the key of a record is the id of an actor.
_LASTING = {EVENT_ADD: True, 4: True, 11: False, 13: True, PHYSICS: True, 16: True, 17: True, _WEATHER: False}


def records_in_force(excerpt: Excerpt, kinds: list[int], before: int) -> dict[int, list[bytes]]:
    """Return the records that are valid at offset *before*, by wanted channel; *kinds*: packet kind by channel."""
    state: ScanBuilder = excerpt.log.format_state
    latest: dict[int, dict[bytes, bytes]] = {}
    packets = sorted(
        (int(at), number)
        for number, packet in enumerate(kinds)
        if packet in _LASTING or packet == _REMOVAL
        for at in _with_records(state, number, before)
    )
    removed: set[bytes] = set()
    for at, number in packets:
        packet = kinds[number]
        last = latest.setdefault(number, {})
        for record in _records(state, packet, at):
            key = b"" if packet == _WEATHER else record[:4]
            if packet == _REMOVAL:
                removed.add(key)
            elif packet == EVENT_ADD:
                removed.discard(key)
            # A repeated record moves to the end.
            last.pop(key, None)
            last[key] = record
    wanted = {}
    for number, last in latest.items():
        packet = kinds[number]
        if packet in _LASTING and number in excerpt.rows:
            records = [r for key, r in last.items() if not (_LASTING[packet] and key in removed)]
            if records:
                wanted[number] = records
    return wanted


def payload_size(state: ScanBuilder, at: int) -> int:
    """Return the true bytes of the payload at offset *at*."""
    return state.found.resized.get(at, int.from_bytes(state.source.read(at - 4, 4), "little"))


def _with_records(state: ScanBuilder, number: int, before: int) -> list[int]:
    """Return the payload offsets of the packets of a channel that have records and are before offset *before*."""
    offset, size = state.index.offsets(number), state.index.sizes(number)
    offsets: list[int] = offset[(offset < before) & (size > 2)].tolist()
    return offsets


def _records(state: ScanBuilder, packet: int, at: int) -> Iterator[bytes]:
    """Yield the records of the packet with its payload at offset *at*."""
    source, size = state.source, payload_size(state, at)
    fixed, stop = width(state.found.topics[packet], state.found.wide), at + size
    if fixed:
        data = source.read(at + 2, size - 2)
        yield from (data[i : i + fixed] for i in range(0, len(data), fixed))
        return
    how = _layout(state, packet, at, stop)
    if how is RAW:
        return
    measured, at = measuring(Layout(how.record, "record")), at + 2
    while at < stop:
        end = extent(measured, source.data, at, stop)
        if end < 0:
            return
        yield source.read(at, end - at)
        at = end


def _layout(state: ScanBuilder, packet: int, at: int, stop: int) -> Layout:
    """Return the Layout of a packet; RAW if it is not known."""
    if packet != PHYSICS:
        return layout(state.found.topics[packet], state.found.wide)
    fitting = (
        how
        for how in map(physics, (True, False))
        if extent(measuring(how), state.source.data, at, stop) == stop
    )
    return RAW if state.found.wide else next(fitting, RAW)
