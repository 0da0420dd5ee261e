"""Verification of a whole MCAP file: checksums, and counts and offsets of index and statistics."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.errors import Finding, Severity
from logreel.formats.mcap.chunks import crc_problem, data_section_problem, unpack
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.full_read import FullRead, read_all
from logreel.formats.mcap.index_check import differing
from logreel.formats.mcap.records import HEAD, BadRecord, Chunk
from logreel.formats.mcap.statements import compare, plausible_counts
from logreel.io.arrays import I64
from logreel.io.source import Source

if TYPE_CHECKING:
    from logreel.formats.mcap.index_builder import IndexBuilder


def verify(source: Source, file: FoundFile, builder: IndexBuilder) -> Iterator[Finding]:
    """Yield the Findings of a whole file, in no particular order."""
    yield from builder.verify()
    there = read_all(source, file, builder)
    known = {(one.code, one.offset) for one in file.problems}
    yield from (Finding.of(one) for one in there.file.problems if (one.code, one.offset) not in known)
    yield from compare(source, there.file)
    yield from _verify_index(there, builder)
    yield from _verify_other_indexes(file, there.file)
    for chunk in there.file.every:
        yield from _verify_chunk(source, chunk)
    yield from _verify_data_section(source, file)
    for one in there.file.attachments:
        begin = one.pos + HEAD
        crc = zlib.crc32(source.view[begin : one.data + one.size])
        if one.crc and crc != one.crc:
            text = f"the checksum of attachment {one.name!r} is wrong"
            yield Finding("crc", "error", one.pos, one.size, text)
    yield from _verify_statistics(source, file, there.file)


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


def _verify_index(there: FullRead, builder: IndexBuilder) -> Iterator[Finding]:
    """Yield a Finding for messages that no index leads to, without those that were reported for their chunks."""
    more = there.extra - builder.unnamed
    if more > 0:
        text = f"the index does not lead to {more} messages that are in the file; recovering delivers them"
        yield Finding("index", "error", there.at, 0, text)


def _verify_other_indexes(file: FoundFile, whole: FoundFile) -> Iterator[Finding]:
    """Compare attachments and metadata records with their indexes, if the file has any."""
    for what, places, named in (
        ("attachments", {one.pos for one in whole.attachments}, file.indexed_attachments),
        ("metadata records", set(whole.metadata_places), file.indexed_metadata),
    ):
        if not named:
            continue
        if missing := places - set(named):
            text = f"the index leaves out {len(missing)} {what}, which were read all the same"
            yield Finding("index", "warn", min(missing), 0, text)
        if absent := set(named) - places:
            text = f"the index names {len(absent)} {what} that are not there"
            yield Finding("index", "warn", 0, 0, text)


def _verify_statistics(source: Source, file: FoundFile, whole: FoundFile) -> Iterator[Finding]:
    """Compare the statistics with the content of the file."""
    stats = file.statistics
    if stats is None:
        return
    counts: dict[int, int] = defaultdict(int)
    for part in whole.parts:
        for number, count in part.counts().tolist():
            counts[number] += count
    used = {number for number, n in counts.items() if n}
    schemas, channels, place = plausible_counts(source, whole, used)
    for text in differing(stats, counts):
        yield Finding("statistics", "warn", place, 0, text)
    counted: tuple[tuple[Severity, str, int, int], ...] = (
        ("note" if stats.schemas in schemas else "warn", "schemas", stats.schemas, len(whole.schemas)),
        ("note" if stats.channels in channels else "warn", "channels", stats.channels, len(whole.channels)),
        ("warn", "attachments", stats.attachments, len(whole.attachments)),
        ("warn", "metadata records", stats.metadata, len(whole.metadata)),
        ("warn", "chunks", stats.chunks, len(whole.every)),
    )
    for severity, what, stated, found in counted:
        if stated != found:
            text = f"the statistics count {stated} {what}, there are {found}"
            yield Finding("statistics", severity, place, 0, text)
    times = [edge for part in whole.parts if part.found is not None for edge in _edges(part.found.time)]
    if times and (min(times), max(times)) != (stats.start, stats.end):
        text = f"the statistics have messages from {stats.start} to {stats.end} ns"
        text += f", there are some from {min(times)} to {max(times)}"
        yield Finding("statistics", "warn", place, 0, text)


def _edges(time: I64) -> tuple[int, int]:
    return int(time.min()), int(time.max())
