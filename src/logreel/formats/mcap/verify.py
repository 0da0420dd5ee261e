"""Verification of a whole MCAP file: checksums, and counts and offsets of index and statistics."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import Finding, Severity
from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import crc_problem, data_section_problem, unpack
from logreel.formats.mcap.index_builder import FullRead, differing, read_all
from logreel.formats.mcap.reader import FoundFile
from logreel.formats.mcap.records import (
    HEAD,
    MAGIC,
    NUMBERS,
    TAIL,
    AttachmentRecord,
    BadRecord,
    Chunk,
    ChunkIndex,
    Record,
    record_at,
)
from logreel.io.arrays import I64
from logreel.io.source import Source

if TYPE_CHECKING:
    from logreel.formats.mcap.index_builder import IndexBuilder


def compare(source: Source, all_records: FoundFile) -> Iterator[Finding]:
    """Yield a Finding for each statement of chunks, indexes and footer that *all_records*, a full read, contradicts."""
    yield from _chunk_records(all_records)
    summary = Summary(source, all_records)
    yield from _definitions(all_records, summary)
    yield from summary.findings()


def _finding(offset: int, text: str) -> Finding:
    return Finding("index", "warn", offset, 0, text)


def _chunk_records(all_records: FoundFile) -> Iterator[Finding]:
    spans = _spans(all_records)
    for chunk in all_records.every:
        if chunk.is_plain and chunk.size != chunk.stored:
            text = f"a chunk that is not compressed states {chunk.size} bytes, it has {chunk.stored}"
            yield Finding("chunk", "warn", chunk.pos, chunk.stored, text)
        first, last = spans.get(chunk.pos, (chunk.start, chunk.end))
        if (first, last) != (chunk.start, chunk.end):
            text = f"a chunk says that its messages are from {chunk.start} to {chunk.end} ns"
            yield Finding(
                "index", "warn", chunk.pos, chunk.stored, f"{text}, they are from {first} to {last}"
            )


def _definitions(all_records: FoundFile, summary: Summary) -> Iterator[Finding]:
    """Yield ``definition`` for what messages need and only one of data and summary defines.

    rosbag2 defines channels without messages in the summary only, and a summary need not repeat any.
    """
    used = {number for part in all_records.parts for number, n in part.counts().tolist() if n}
    needed = {f"channel {number}" for number in used}
    needed |= {
        f"schema {all_records.channels[number].schema}" for number in used if number in all_records.channels
    }
    for pos, what in all_records.late:
        if what in needed:
            yield Finding("definition", "warn", pos, 0, f"only the summary defines {what}, the data does not")
    for opcode, what in ((records.CHANNEL, "channel"), (records.SCHEMA, "schema")):
        repeated = summary.numbers(opcode)
        missing = sorted(
            name for name in needed - {"schema 0"} if name.startswith(what) and name not in repeated
        )
        if repeated and missing:
            place = next(iter(repeated.values()))
            yield Finding(
                "definition", "warn", place, 0, f"the summary does not define {missing[0]}, but others"
            )


def _spans(all_records: FoundFile) -> dict[int, tuple[int, int]]:
    """Return first and last time in ns of the messages of each chunk that has some, by its file offset."""
    spans = dict[int, tuple[int, int]]()
    plain = sorted(
        (chunk_record for chunk_record in all_records.every if chunk_record.is_plain),
        key=lambda chunk: chunk.data,
    )
    start = np.array([chunk_record.data for chunk_record in plain], np.int64)
    stop = start + np.array([chunk_record.stored for chunk_record in plain], np.int64)

    def add(pos: int, low: int, high: int) -> None:
        before = spans.get(pos, (low, high))
        spans[pos] = min(before[0], low), max(before[1], high)

    for part in all_records.parts:
        if part.messages is None:
            continue
        chunk, time = all_records.chunks[part.chunk], part.messages.time
        if not chunk.is_plain:
            add(chunk.pos, int(time.min()), int(time.max()))
        elif len(plain):
            # The byte before the payload: an empty one at the end of a chunk lies behind it.
            place = part.messages.entry.astype(np.int64) + chunk.data - 1
            inside = start.searchsorted(place, side="right") - 1
            inside[place >= stop[inside]] = -1
            for k in np.unique(inside[inside >= 0]).tolist():
                inside_times = time[inside == k]
                add(plain[k].pos, int(inside_times.min()), int(inside_times.max()))
    return spans


class Summary:
    """The summary, compared with the records that it is about.

    records  its records; empty if the footer does not lead to them
    """

    def __init__(self, source: Source, all_records: FoundFile) -> None:
        self._source, self._whole, self._tail = source, all_records, source.size - TAIL
        raw = source.read(self._tail, TAIL) if self._tail >= len(MAGIC) else b""
        self._is_there = len(raw) == TAIL and raw[0] == records.FOOTER and raw[-8:] == MAGIC and raw[1] == 20
        self._start, self._offsets_at = (
            (int.from_bytes(raw[9:17], "little"), int.from_bytes(raw[17:25], "little"))
            if self._is_there
            else (0, 0)
        )
        self.records: list[Record] = []
        if self._is_there and len(MAGIC) <= self._start <= self._tail:
            try:
                self.records = list(records.records(source, self._start, self._tail))
            except BadRecord:
                # Reported where the summary is read.
                self._is_there = False

    def numbers(self, opcode: int) -> dict[str, int]:
        """Return the offset of each schema or channel record, by name: ``schema 1``."""
        name = "schema" if opcode == records.SCHEMA else "channel"
        of_opcode = [record for record in self.records if record.kind == opcode and record.size >= 2]
        return {
            f"{name} {int.from_bytes(self._source.read(record.pos + HEAD, 2), 'little')}": record.pos
            for record in of_opcode
        }

    def findings(self) -> Iterator[Finding]:
        """Yield a Finding for each wrong statement."""
        if not self._is_there:
            return
        yield from self._footer()
        chunks = set[int]()
        for record in self.records:
            try:
                if record.kind == records.CHUNK_INDEX:
                    index = ChunkIndex.read(record.fields(self._source))
                    chunks.add(index.pos)
                    text = self._chunk(index)
                elif record.kind == records.ATTACHMENT_INDEX:
                    text = self._attachment(record)
                elif record.kind == records.METADATA_INDEX:
                    text = self._metadata(record)
                elif record.kind == records.SUMMARY_OFFSET:
                    text = self._group(record)
                else:
                    continue
            except BadRecord as error:
                text = f"the index is wrong: {error}"
            if text:
                yield _finding(record.pos, text)
        left = [chunk.pos for chunk in self._whole.every if chunk.pos not in chunks]
        if chunks and left:
            yield _finding(left[0], f"the index leaves out {len(left)} of {len(self._whole.every)} chunks")

    def _footer(self) -> Iterator[Finding]:
        end = self._whole.data_end
        if end is None:
            if self._start:
                yield Finding("data-end", "warn", self._start, 0, "there is no record of the end of the data")
            return
        try:
            after = record_at(self._source, end[0], self._tail).end
        except BadRecord:
            return
        if self._start not in (0, after) or (not self._start and after < self._tail):
            said = f"the summary at {self._start}" if self._start else "that there is no summary"
            yield _finding(self._tail, f"the footer states {said}, the data ends at {after}")
        group = next((record.pos for record in self.records if record.kind == records.SUMMARY_OFFSET), 0)
        if self._start and self._offsets_at != group:
            text = f"the footer states the summary offsets at {self._offsets_at}, they begin at {group}"
            yield _finding(self._tail, text)

    def _chunk(self, index: ChunkIndex) -> str:
        """Return how a chunk index differs from the chunk and its message indexes; empty if it does not."""
        chunk = Chunk.read(self._source, index.pos, self._source.size)
        after = record_at(self._source, index.pos, self._source.size).end
        if (index.length, index.stored, index.size) != (after - index.pos, chunk.stored, chunk.size):
            return f"the index states other sizes for the chunk at {index.pos} than it has"
        if (index.start, index.end, index.compression) != (chunk.start, chunk.end, chunk.compression):
            return f"the index states other times or another compression for the chunk at {index.pos}"
        for number, at in np.frombuffer(index.offsets, NUMBERS).tolist():
            record = record_at(self._source, at, self._source.size)
            if record.kind != records.MESSAGE_INDEX or record.fields(self._source).number(2) != number:
                return f"the index of channel {number} in the chunk at {index.pos} is not at {at}"
            if not after <= at < after + index.index_length:
                return f"the index of channel {number} in the chunk at {index.pos} is outside of its indexes"
        end = self._after_indexes(after)
        if index.offsets and end - after != index.index_length:
            return f"the index states {index.index_length} bytes of indexes for the chunk at {index.pos}"
        return ""

    def _after_indexes(self, pos: int) -> int:
        """Return the offset after the message index records at *pos*."""
        while (record := record_at(self._source, pos, self._source.size)).kind == records.MESSAGE_INDEX:
            pos = record.end
        return pos

    def _attachment(self, record: Record) -> str:
        f = record.fields(self._source)
        pos, length = f.words(2)
        stored = record_at(self._source, pos, self._tail)
        if stored.kind != records.ATTACHMENT or stored.end - pos != length:
            return f"the index names an attachment of {length} bytes at {pos}, where none is"
        attached = AttachmentRecord.read(self._source, stored)
        said = f.time(), f.time(), f.number(8), f.text(), f.text()
        if said != (
            attached.log_time,
            attached.create_time,
            attached.size,
            attached.name,
            attached.media_type,
        ):
            return f"the index states other times, size, name or type for attachment {attached.name!r}"
        return ""

    def _metadata(self, record: Record) -> str:
        f = record.fields(self._source)
        pos, length = f.words(2)
        stored = record_at(self._source, pos, self._tail)
        if stored.kind != records.METADATA or stored.end - pos != length:
            return f"the index names metadata of {length} bytes at {pos}, where there is none"
        name, written = f.text(), stored.fields(self._source).text()
        return "" if name == written else f"the index calls the metadata {written!r} {name!r}"

    def _group(self, record: Record) -> str:
        """Return what is wrong with a summary offset: it states kind, offset and bytes of a group of records."""
        f = record.fields(self._source)
        opcode, start, length = f.number(1), *f.words(2)
        alike = [entry for entry in self.records if entry.kind == opcode]
        # Some writers state a group for each kind, also for those without records.
        if not alike and not length:
            return ""
        if alike and (start, start + length) == (alike[0].pos, alike[-1].end):
            return ""
        return f"the summary offsets state {length} bytes of records of kind {opcode} at {start}"


def plausible_counts(
    source: Source, all_records: FoundFile, used: set[int]
) -> tuple[set[int], set[int], int | None]:
    """Return the numbers of schemas and of channels that a writer may count, and the offset of the statistics.

    used  channels with messages

    Writers count all definitions, those of the summary, or those that messages need.
    """
    summary = Summary(source, all_records)
    repeated = {
        opcode: sum(record.kind == opcode for record in summary.records)
        for opcode in (records.SCHEMA, records.CHANNEL)
    }
    needed = {all_records.channels[number].schema for number in used if number in all_records.channels} - {0}
    named = {channel.schema for channel in all_records.channels.values()} - {0}
    schemas = {len(all_records.schemas), repeated[records.SCHEMA], len(needed), len(named)}
    place = next((record.pos for record in summary.records if record.kind == records.STATISTICS), None)
    return schemas, {len(all_records.channels), repeated[records.CHANNEL], len(used)}, place


def verify(source: Source, file: FoundFile, builder: IndexBuilder) -> Iterator[Finding]:
    """Yield the Findings of a whole file, in no particular order."""
    yield from builder.verify()
    full = read_all(source, file, builder)
    known = {(problem.code, problem.offset) for problem in file.problems}
    yield from (
        Finding.of(problem) for problem in full.file.problems if (problem.code, problem.offset) not in known
    )
    yield from compare(source, full.file)
    yield from _verify_index(full, builder)
    yield from _verify_other_indexes(file, full.file)
    for chunk in full.file.every:
        yield from _verify_chunk(source, chunk)
    yield from _verify_data_section(source, file)
    for attachment in full.file.attachments:
        begin = attachment.pos + HEAD
        crc = zlib.crc32(source.view[begin : attachment.data + attachment.size])
        if attachment.crc and crc != attachment.crc:
            text = f"the checksum of attachment {attachment.name!r} is wrong"
            yield Finding("crc", "error", attachment.pos, attachment.size, text)
    yield from _verify_statistics(source, file, full.file)


def _verify_chunk(source: Source, known: Chunk) -> Iterator[Finding]:
    """Compare the checksum of a chunk with its content."""
    try:
        chunk = Chunk.read(source, known.pos, source.size)
    except BadRecord:
        # Reported when its messages were read.
        return
    data, wrong = unpack(source, chunk)
    problem = None if wrong else crc_problem(chunk, data)
    if problem is not None:
        yield Finding.of(problem)


def _verify_data_section(source: Source, file: FoundFile) -> Iterator[Finding]:
    """Compare the checksum of the data section with its bytes."""
    if (problem := data_section_problem(source, file.data_end)) is not None:
        yield Finding.of(problem)


def _verify_index(full: FullRead, builder: IndexBuilder) -> Iterator[Finding]:
    """Yield a Finding for messages that no index leads to, without those that were reported for their chunks."""
    more = full.extra - builder.unnamed
    if more > 0:
        text = f"the index does not lead to {more} messages that are in the file; recovering delivers them"
        yield Finding("index", "error", full.at, 0, text)


def _verify_other_indexes(file: FoundFile, all_records: FoundFile) -> Iterator[Finding]:
    """Compare attachments and metadata records with their indexes, if the file has any."""
    for what, places, named in (
        ("attachments", {attachment.pos for attachment in all_records.attachments}, file.indexed_attachments),
        ("metadata records", set(all_records.metadata_places), file.indexed_metadata),
    ):
        if not named:
            continue
        if missing := places - set(named):
            text = f"the index leaves out {len(missing)} {what}, which were read all the same"
            yield Finding("index", "warn", min(missing), 0, text)
        if absent := set(named) - places:
            text = f"the index names {len(absent)} {what} that are not there"
            yield Finding("index", "warn", 0, 0, text)


def _verify_statistics(source: Source, file: FoundFile, all_records: FoundFile) -> Iterator[Finding]:
    """Compare the statistics with the content of the file."""
    stats = file.statistics
    if stats is None:
        return
    counts: dict[int, int] = defaultdict(int)
    for part in all_records.parts:
        for number, count in part.counts().tolist():
            counts[number] += count
    used = {number for number, n in counts.items() if n}
    schemas, channels, place = plausible_counts(source, all_records, used)
    for text in differing(stats, counts):
        yield Finding("statistics", "warn", place, 0, text)
    counted: tuple[tuple[Severity, str, int, int], ...] = (
        ("note" if stats.schemas in schemas else "warn", "schemas", stats.schemas, len(all_records.schemas)),
        (
            "note" if stats.channels in channels else "warn",
            "channels",
            stats.channels,
            len(all_records.channels),
        ),
        ("warn", "attachments", stats.attachments, len(all_records.attachments)),
        ("warn", "metadata records", stats.metadata, len(all_records.metadata)),
        ("warn", "chunks", stats.chunks, len(all_records.every)),
    )
    for severity, what, stated, counted_messages in counted:
        if stated != counted_messages:
            text = f"the statistics count {stated} {what}, there are {counted_messages}"
            yield Finding("statistics", severity, place, 0, text)
    times = [
        edge for part in all_records.parts if part.messages is not None for edge in _edges(part.messages.time)
    ]
    if times and (min(times), max(times)) != (stats.start, stats.end):
        text = f"the statistics have messages from {stats.start} to {stats.end} ns"
        text += f", there are some from {min(times)} to {max(times)}"
        yield Finding("statistics", "warn", place, 0, text)


def _edges(time: I64) -> tuple[int, int]:
    return int(time.min()), int(time.max())
