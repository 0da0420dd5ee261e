"""Copy logs into a new ULog: wanted records as they are in the file, else messages."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from logreel.errors import LogError
from logreel.formats.ulog.clock import UTC_OFFSET
from logreel.formats.ulog.definitions import OWN
from logreel.formats.ulog.non_data_records import NonDataRecords, synthetic_offsets
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, payload_at
from logreel.formats.ulog.writer import MetadataCopier, UlogWriter, utc_record, with_defaults_flag, with_start
from logreel.index.merge import count_before, in_file_order, part_of
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, distinct, without
from logreel.log.log import Channel, Log
from logreel.write.format_writer import SourceClock
from logreel.write.log_copier import (
    Excerpt,
    LogCopier,
    joined_ranges,
    metadata_names,
    original_of,
    try_each,
    write_ranges,
)

#: File position of the three offsets of appended parts, in a file that has flags.
_OFFSETS = FILE_HEADER + HEAD + 16

#: Kinds of records that every part of a recording repeats.
_DEFINITIONS = ("F", "I", "M", "Q")


def copy_records(excerpt: Excerpt, out: Appender, clock: SourceClock | None) -> bool:
    """Copy the records of *excerpt*; return False, with nothing copied, where single records have to be looked at.

    That is the case for a part of a file that contains several logs, and for undeclared messages in one.

    clock  start and UTC offset for a part of a log
    """
    state: NonDataRecords = excerpt.log.format_state
    several = len(state.found.segments) > 1
    is_undeclared = any(p.code == "undeclared" for p in state.found.problems)
    if state.found.is_segment or (several and (is_undeclared or not excerpt.is_whole)):
        return False
    copier = _RecordCopier(state, excerpt, out, None if excerpt.is_whole else clock)
    if several:
        copier.run_whole()
    else:
        copier.run()
    return True


def copy_files(excerpts: Sequence[Excerpt], out: Appender, clock: SourceClock | None) -> bool:
    """Copy the records of parts of several files; return False, with nothing copied, if they cannot be one log.

    The first file gives everything that stands before the messages.
    """
    states: list[NonDataRecords] = [excerpt.log.format_state for excerpt in excerpts]
    if not _are_alike(states):
        return False
    copiers = [
        _RecordCopier(state, excerpt, out, clock if n == 0 else None)
        for n, (state, excerpt) in enumerate(zip(states, excerpts, strict=True))
    ]
    copiers[0].run()
    for copier in copiers[1:]:
        copier.run_on()
    return True


def _are_alike(states: Sequence[NonDataRecords]) -> bool:
    """Return whether files are sound, and equal up to their messages, with the same message id for each channel."""
    first_ids: dict[bytes, bytes] = {}
    first_head, first_known = b"", list[bytes]()
    for n, state in enumerate(states):
        file = state.found
        has_segments = len(file.segments) > 1 or file.is_segment
        if has_segments or file.appended or state.lacks_defaults_flag or any(p.lost for p in file.problems):
            return False
        places = [at for at, _ in state.subscriptions()]
        head = state.source.read(FILE_HEADER, (places[0] if places else state.source.size) - FILE_HEADER)
        ids = {payload[1:3]: payload for at in places if (payload := payload_at(state.source, at))}
        if len({*ids.values()}) < len(ids) or len(places) > len(ids):
            return False
        # Information that comes later is repeated in each part.
        known = [payload_at(state.source, at) for at in state.keyed.positions(*_DEFINITIONS)]
        if n == 0:
            first_head, first_ids, first_known = head, ids, known
        elif head != first_head or known != first_known or not ids.items() <= first_ids.items():
            return False
    return True


class _RecordCopier:
    """Writes intervals of the source in ascending order, and tracks the new offsets of appended parts."""

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
        #: Number of wanted messages of each channel before each block, and in all.
        self._kept = {n: count_before(excerpt.rows[n], ends[:, n]) for n in self._inside}

    def run(self) -> None:
        """Copy all wanted records."""
        own = self._state
        self._write_head()
        self._notes, self._next = self._wanted_notes(), 0
        self._copy_blocks()
        self._copy_notes(own.source.size)
        self._finish()

    def run_whole(self) -> None:
        """Copy everything that can be read, with the headers of all logs in the file."""
        state = self._state
        edges = [0]
        for offset, size in sorted((p.offset, p.size) for p in state.found.problems if p.lost and p.size):
            # What is lost may overlap.
            edges += [max(offset, edges[-1]), max(offset + size, edges[-1])]
        start, end = np.array(edges[::2], np.int64), np.array([*edges[1::2], state.source.size], np.int64)
        self._write(start[end > start], end[end > start])
        self._finish()

    def run_on(self) -> None:
        """Copy the wanted messages, and the other records among them, behind those of another file."""
        own = self._state
        known = [at for at, _ in own.subscriptions()] + own.keyed.positions(*_DEFINITIONS)
        wanted = without(self._wanted_notes(), np.array(known, np.int64))
        self._notes, self._next = without(wanted, own.initial_parameters), 0
        self._copy_blocks()
        self._copy_notes(own.source.size)

    def _copy_blocks(self) -> None:
        for first, last, is_complete in self._block_ranges():
            if is_complete:
                self._copy_whole(first, last)
            else:
                self._copy_some(first, last)

    def _write_head(self) -> None:
        """Copy file header and flags; for a part of a log with its start, and with a record of the UTC offset."""
        state, clock = self._state, self._clock
        head = state.source.read(0, state.found.begin)
        if clock is not None:
            head = with_start(head, clock.start)
        if state.lacks_defaults_flag:
            head = with_defaults_flag(head)
        self._out.write(head)
        known = any(e.kind == "I" and e.key.name == UTC_OFFSET for e in state.keyed.entries)
        if not known:
            self._out.write(utc_record(head, clock))
        self._out.commit()

    # ---------------------------------------------------------------------------------------------- messages

    def _block_ranges(self) -> Iterator[tuple[int, int, bool]]:
        """Yield ranges of blocks as (first, end, whole); *whole*: all messages in them are wanted."""
        blocks = self._excerpt.log.index.blocks
        counts = blocks.start[:, 1:] - blocks.start[:, :-1]
        kept = np.diff(sum(self._kept.values(), np.zeros(len(counts) + 1, np.int64)))
        # Undeclared messages are not in the index: with any of them, each record must be looked at.
        exact = all(p.code != "undeclared" for p in self._state.found.problems)
        share = np.where(kept == 0, 0, np.where(exact & (kept == counts.sum(axis=1)), 2, 1))
        cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(share)]
        for lo, hi in itertools.pairwise(cuts):
            if hi > lo and share[lo]:
                yield lo, hi, bool(share[lo] == 2)

    def _copy_whole(self, first: int, last: int) -> None:
        """Copy blocks of which all messages are wanted, without lost bytes and unwanted other records."""
        state, base = self._state, self._excerpt.log.index.blocks.base
        begin = int(base[first])
        end = int(base[last]) if last < len(base) else state.source.size
        self._copy_notes(begin)
        records = state.positions
        dropped = without(records[records.searchsorted(begin) : records.searchsorted(end)], self._notes)
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
        """Copy the wanted messages of blocks, and wanted records of other kinds between them."""
        rows = {
            n: part_of(self._excerpt.rows[n], int(kept[first]), int(kept[last]))
            for n, kept in self._kept.items()
            if kept[last] > kept[first]
        }
        for batch in in_file_order(self._excerpt.log.index, rows):
            if len(batch):
                start, end = batch.offset - DATA_HEAD, batch.offset + batch.size
                notes = self._next_notes(int(end[-1]))
                self._write(
                    *joined_ranges(np.append(start, notes), np.append(end, self._state.ends_of(notes)))
                )

    # ------------------------------------------------------------------------------------------------- notes

    def _next_notes(self, end: int) -> I64:
        """Return the positions of the next wanted records other than messages, up to *end*."""
        upto = int(self._notes.searchsorted(end))
        notes = self._notes[self._next : max(upto, self._next)]
        self._next = max(upto, self._next)
        return notes

    def _copy_notes(self, end: int) -> None:
        """Copy the wanted records other than messages up to *end*."""
        notes = self._next_notes(end)
        self._write(*joined_ranges(notes, self._state.ends_of(notes)))

    def _wanted_interval(self) -> tuple[int, int]:
        """Return the start and end of the blocks with wanted messages."""
        base = [*self._excerpt.log.index.blocks.base.tolist(), self._state.source.size]
        kept = np.flatnonzero(np.diff(sum(self._kept.values(), np.zeros(len(base), np.int64))))
        return (base[kept[0]], base[kept[-1] + 1]) if len(kept) else (0, 0)

    def _wanted_notes(self) -> I64:
        """Return int64[n]: positions of all wanted records other than messages, ascending."""
        state, excerpt = self._state, self._excerpt
        every, wanted = [np.zeros(0, np.int64)], [state.initial_parameters]
        for channel, positions in synthetic_offsets(state).items():
            every.append(positions)
            if channel in excerpt.rows:
                # A file of a recording counts only the messages that the files before it do not have.
                synthetic = excerpt.log.index.synthetic(channel)
                place = None if synthetic is None else synthetic.place
                wanted.append((positions if place is None else place)[excerpt.rows[channel]])
        if len(self._inside) < len(excerpt.log.index.rules) - len(every) + 1:
            every.append(
                np.array(
                    [at for at, n in state.subscriptions() if n is None or n not in excerpt.rows], np.int64
                )
            )
        if excerpt.start is not None or excerpt.end is not None:
            # There can be 100 000 marks, and they have no times: they belong to the blocks that contain them.
            marks = state.marks
            first, last = self._wanted_interval()
            every.append(marks[(marks < first) | (marks >= last)])
        others = without(state.positions, np.concatenate(every))
        return distinct(np.concatenate((others, *wanted))).astype(np.int64)

    # ---------------------------------------------------------------------------------------------- writing

    def _write(self, start: I64, end: I64) -> None:
        if not len(start):
            return
        while self._appended and self._appended[0] < int(end[-1]):
            before = np.clip(self._appended.pop(0) - start, 0, end - start).sum()
            self._moved.append(self._out.tell() + int(before))
        write_ranges(self._out.put, self._data, start, end)

    def _finish(self) -> None:
        """Write the new offsets of appended parts into the flags."""
        file = self._state.found
        offsets = (*self._moved, 0, 0, 0)[:3]
        # A cut file states offsets behind its end, which were not used.
        if file.begin == FILE_HEADER or offsets == struct.unpack(
            "<3Q", self._state.source.read(_OFFSETS, 24)
        ):
            return
        self._out.patch(_OFFSETS, struct.pack("<3Q", *offsets))


class UlogCopier(LogCopier):
    """Copies definitions, information, attachments, parameters and defaults byte by byte, and records as they are."""

    writer: UlogWriter

    def __init__(self, writer: UlogWriter) -> None:
        super().__init__(writer)
        self._metadata = MetadataCopier(writer.definitions)

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy definitions, information, attachments, parameters and defaults, as they are written there."""
        writer, metadata = self.writer, self._metadata
        metadata.masking = self.masking
        messages = metadata.add(log, self.replaced_types, self.replaced_metadata)
        writer.head += metadata.take()
        writer.has_defaults |= metadata.has_defaults
        writer.source_header, writer.has_initial_parameters = metadata.header, True
        return messages

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import metadata, attachments, and initial values of parameters; changes come as messages."""
        self.writer.has_initial_parameters = True
        return self._import_all(log, returns)

    def _import_all(self, log: Log, returns: bool) -> list[str]:
        writer = self.writer
        kept = _own_metadata(log) if returns else {}
        for line in kept.get("formats", ()):
            writer.define(str(line))
        # Reading reorders information; the stored types have the order of the file.
        order = {name: n for n, name in enumerate(kept.get("types", ()))}
        names = [name for name in metadata_names(log) if name != OWN]
        names.sort(key=lambda name: order.get(name, len(order)))
        messages = self.try_each(
            "metadata",
            names,
            lambda name: _import_metadata(writer, kept, name, log.metadata[name]),
            returns,
        )
        # For a ULog, reading gives each text of a list in the metadata as an attachment as well.
        lists = {name: len(value) for name, value in log.metadata.items() if isinstance(value, list | tuple)}
        texts = {
            name + number + suffix
            for name, n in lists.items()
            for number in ["", *(f"-{i}" for i in range(n))]
            for suffix in (".txt", ".xz", ".bin")
        }
        names = [name for name in log.attachments if not (returns and name in texts)]
        parts = kept.get("parts", {})
        messages += self.try_each(
            "attachment", names, lambda name: _import_attachment(writer, log, name, parts), returns
        )
        rows = [ch for ch in log.channels.values() if _holds_parameters(ch)]
        if rows:
            for message in log.messages([ch.topic for ch in rows], order="file"):
                row = message.decode()
                if row["kind"] != "change":
                    writer.parameter_row(row)
        else:
            messages += try_each(
                "parameter", log.parameters, lambda name: _import_parameter(writer, log, name), returns
            )
        return messages

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy records as they are in the file; False for a file that holds several logs."""
        self.writer.begun = copy_records(excerpt, self.writer.out, self.writer.source_clock)
        state = excerpt.log.format_state
        if self.writer.begun and state.lacks_defaults_flag and len(state.found.segments) == 1:
            self.writer.notes.append(
                "the flag bits announce the defaults of parameters now (compatible bit 0)"
            )
        return self.writer.begun

    def copy_files(self, excerpts: Sequence[Excerpt]) -> bool:
        """Copy records of sound files that have the same definitions, information, parameters and message ids."""
        self.writer.begun = copy_files(excerpts, self.writer.out, self.writer.source_clock)
        return self.writer.begun


_NUMBERED = re.compile(r"(.*)-(\d+)(\.\w+)\Z")


def _holds_parameters(ch: Channel) -> bool:
    """Return whether the messages of *ch* are, or were before a conversion, those of the channel ``~parameter``."""
    was = original_of(ch)
    topic, schema = (ch.topic, ch.schema) if was is None else (was.topic, was.schema)
    fields = ["name", "kind", "type", "value"]
    try:
        return (topic.split("@")[0], schema.encoding) == ("~parameter", "ulog") and ch.fields == fields
    except LogError:
        return False


def _import_parameter(writer: UlogWriter, log: Log, name: str) -> None:
    value = log.parameters[name].value
    if value is not None:
        writer.parameter(name, value, None)


def _own_metadata(log: Log) -> dict[str, Any]:
    """Return the details that a converted ULog keeps in its metadata; values of wrong types are left out."""
    own = log.metadata.get(OWN)
    own = own if isinstance(own, Mapping) else {}
    kinds = {"types": Mapping, "parts": Mapping, "raw": Mapping, "formats": list}
    return {name: own[name] for name, allowed in kinds.items() if isinstance(own.get(name), allowed)}


def _import_metadata(writer: UlogWriter, kept: Mapping[str, Any], name: str, value: Any) -> None:
    rows = kept.get("raw", {}).get(name)
    fit = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and row[0] in ("I", "M") and isinstance(row[1], bytes)
        for row in rows
    )
    if fit:
        for letter, payload in rows:
            writer.keyed(letter, payload)
        return
    stated = kept.get("types", {}).get(name)
    writer.information(name, value, stated if isinstance(stated, str) else None)


def _import_attachment(writer: UlogWriter, log: Log, name: str, parts: Mapping[str, Any]) -> None:
    attachment, numbered, number = log.attachments[name], _NUMBERED.match(name), 0
    # Reading numbers several entries of one key.
    if numbered and f"{numbered[1]}-0{numbered[3]}" in log.attachments:
        name, number = numbered[1] + numbered[3], int(numbered[2])
    data, label = attachment.read(), name.rpartition(".")[0]
    entries = parts.get(label)
    sizes = entries[number] if isinstance(entries, list) and number < len(entries) else None
    if isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes) and sum(sizes) == len(data):
        ends = list(itertools.accumulate(sizes))
        writer.parts(label, [data[end - size : end] for end, size in zip(ends, sizes, strict=True)])
    else:
        writer.attachment(name, data, attachment.media_type)
