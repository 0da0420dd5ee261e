"""Continue an existing MCAP: its data section is kept, its summary is written again with what was added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS
from logreel.formats.mcap.reader import FoundFile
from logreel.formats.mcap.records import (
    HEAD,
    MAGIC,
    NUMBERS,
    AttachmentRecord,
    BadRecord,
    Chunk,
    ChunkIndex,
    Record,
    record_at,
)
from logreel.formats.mcap.writer import McapWriter, SummarySection
from logreel.io.append_file import Appender
from logreel.io.source import Source
from logreel.kernels import mcap
from logreel.log.log import Log

#: Messages outside of chunks that are passed over at once.
_BATCH = 1 << 14
#: Kinds of records other than messages.
_OTHERS = (1 << 64) - 1 - (1 << records.MESSAGE)
#: Kinds of records that only the summary has.
_OF_SUMMARY = (
    records.CHUNK_INDEX,
    records.ATTACHMENT_INDEX,
    records.STATISTICS,
    records.METADATA_INDEX,
    records.SUMMARY_OFFSET,
)
#: Kinds of records that the summary repeats or describes.
_REPEATED = (*_OF_SUMMARY, records.SCHEMA, records.CHANNEL)


def append(out: Appender, log: Log, **options: Any) -> McapWriter:
    """Return the writer that continues *log*; ids of channels and schemas go on after the highest ones.

    Raises UsageError for a profile or library, which are in the header; LogError for a file whose index is wrong, or
    that has other content after its data section than a summary.
    """
    file: FoundFile = log.format_state
    if options.pop("profile", file.profile) != file.profile or "library" in options:
        text = "profile and library stand in the header of the log, which is kept"
        raise UsageError(text, path=log.name)
    writer = McapWriter(out, profile=file.profile, **options)
    wrong = next((p.text for p in log.problems if p.code == "index"), "")
    summary, end, loose = SummarySection(), 0, False
    source = file.source
    try:
        end, loose = _data_section(source, summary)
        wrong = wrong or _after_data_section(source, end)
    except BadRecord as error:
        wrong = wrong or str(error)
    if wrong:
        raise LogError(
            f"cannot be continued: {wrong}",
            path=log.name,
            hint="write it again by logreel.recover, and append to that",
        )
    counts = dict(zip(sorted(file.channels), log.index.counts.tolist(), strict=True))
    summary.add_counts({number: count for number, count in counts.items() if count})
    for part in file.parts:
        if part.messages is not None:
            summary.add_times(int(part.messages.time.min()), int(part.messages.time.max()))
        elif part.indexes[:, 1].any():
            summary.add_times(file.chunks[part.chunk].start, file.chunks[part.chunk].end)
    for number in sorted(file.schemas):
        summary.add_schema(number, file.schemas[number])
    for number in sorted(file.channels):
        summary.add_channel(file.channels[number])
    crc = file.data_end[1] if file.data_end is not None else 0
    out.keep_old(end)
    writer.go_on(log, summary, crc or None, loose)
    return writer


def _data_section(source: Source, summary: SummarySection) -> tuple[int, bool]:
    """Add chunks, attachments and metadata to *summary*; return the end of the data section.

    Also returns whether there are messages outside of chunks. Raises BadRecord for what is no record.
    """
    pos, end, loose = len(MAGIC), source.size, False
    chunk: ChunkIndex | None = None
    offsets = list[tuple[int, int]]()
    while pos < end:
        record = record_at(source, pos, end)
        if record.kind == records.MESSAGE_INDEX and chunk is not None:
            offsets.append((int.from_bytes(source.read(pos + HEAD, 2), "little"), pos))
            pos = record.end
            continue
        if chunk is not None:
            summary.add_chunk_index(_with_index(chunk, offsets, pos))
            chunk, offsets = None, []
        if record.kind in (records.DATA_END, records.FOOTER, *_OF_SUMMARY):
            return pos, loose
        if record.kind == records.MESSAGE:
            loose, pos = True, _after_messages(source, pos, end)
            continue
        if record.kind == records.CHUNK:
            chunk = _chunk_index(source, record)
        elif record.kind == records.ATTACHMENT:
            attached = AttachmentRecord.read(source, record)
            times = attached.log_time, attached.create_time
            summary.add_attachment(
                pos, record.end - pos, times, attached.size, attached.name, attached.media_type
            )
        elif record.kind == records.METADATA:
            summary.add_metadata(pos, record.end - pos, record.fields(source).text())
        pos = record.end
    if chunk is not None:
        summary.add_chunk_index(_with_index(chunk, offsets, pos))
    return pos, loose


def _after_messages(source: Source, pos: int, end: int) -> int:
    """Return the offset after the messages that begin at *pos*."""
    key, time, data, size, note = (np.empty(_BATCH, np.int64) for _ in range(5))
    why = mcap.FULL
    while why == mcap.FULL:
        why, pos, _, _ = mcap.walk(source.data, pos, end, key, time, data, size, note, _OTHERS)
    return pos


def _chunk_index(source: Source, record: Record) -> ChunkIndex:
    chunk = Chunk.read(source, record.pos, record.end)
    if chunk.compression not in COMPRESSIONS:
        raise BadRecord(f"a chunk of unknown compression {chunk.compression[:20]!r}")
    length = record.end - record.pos
    return ChunkIndex(
        chunk.start, chunk.end, chunk.pos, length, b"", 0, chunk.compression, chunk.stored, chunk.size
    )


def _with_index(chunk: ChunkIndex, offsets: list[tuple[int, int]], end: int) -> ChunkIndex:
    """Return the index of a chunk whose message index records have these channel ids and offsets, and end at *end*."""
    places = np.array(offsets, NUMBERS).tobytes()
    length = end - chunk.pos - chunk.length
    return ChunkIndex(
        chunk.start,
        chunk.end,
        chunk.pos,
        chunk.length,
        places,
        length,
        chunk.compression,
        chunk.stored,
        chunk.size,
    )


def _after_data_section(source: Source, pos: int) -> str:
    """Return what is wrong with the records from *pos* on, the end of the data section; empty if they are a summary."""
    for record in _records_to_footer(source, pos):
        if record.kind == records.FOOTER:
            rest = source.read(record.end, len(MAGIC) + 1)
            return "" if MAGIC.startswith(rest) else f"something follows its end at {record.end}"
        if record.kind not in (*_REPEATED, records.DATA_END):
            return f"after its messages there is a record of kind {record.kind} at {record.pos}"
    return ""


def _records_to_footer(source: Source, pos: int) -> Iterator[Record]:
    while pos < source.size:
        record = record_at(source, pos, source.size)
        yield record
        pos = record.end
