"""What reading a whole MCAP file tells: checksums, and counts and places against what is there."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.errors import Finding, Severity
from logreel.formats.mcap.chunks import unpack
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.full_read import FullRead
from logreel.formats.mcap.full_read import read as read_whole
from logreel.formats.mcap.index_check import differing
from logreel.formats.mcap.records import HEAD, BadRecord, Chunk
from logreel.io.arrays import I64
from logreel.io.source import Source

if TYPE_CHECKING:
    from logreel.formats.mcap.index_builder import IndexBuilder


def verify(source: Source, file: FoundFile, collected: IndexBuilder) -> Iterator[Finding]:
    """Findings of a whole file, in no order."""
    yield from collected.verify()
    there = read_whole(source, file, collected)
    yield from _unnamed(there, collected)
    yield from _indexed(file, there.file)
    for chunk in there.file.every:
        yield from _chunk(source, chunk)
    yield from _data_section(source, file)
    for one in there.file.attachments:
        begin = one.pos + HEAD
        crc = zlib.crc32(source.view[begin : one.data + one.size])
        if one.crc and crc != one.crc:
            yield _wrong(
                "crc", "error", one.pos, one.size, f"the checksum of attachment {one.name!r} is wrong"
            )
    yield from _statistics(file, there.file)


def _wrong(code: str, severity: Severity, pos: int | None, size: int, text: str) -> Finding:
    return Finding(code, severity, pos, size, text)


def _chunk(source: Source, known: Chunk) -> Iterator[Finding]:
    try:
        chunk = Chunk.read(source, known.pos, source.size)
    except BadRecord:
        # Reading its messages has told.
        return
    data, wrong = unpack(source, chunk)
    if chunk.crc and not wrong and zlib.crc32(data.data) != chunk.crc:
        text = "the checksum of a chunk is wrong: bytes of its messages are not what was written"
        yield _wrong("crc", "error", chunk.pos, chunk.stored, text)


def _data_section(source: Source, file: FoundFile) -> Iterator[Finding]:
    if file.data_end is None:
        return
    pos, crc = file.data_end
    if crc and zlib.crc32(source.view[:pos]) != crc:
        text = "the checksum of the data section is wrong: some byte of it is not what was written"
        yield _wrong("crc", "error", 0, pos, text)


def _unnamed(there: FullRead, collected: IndexBuilder) -> Iterator[Finding]:
    """Messages that are in the file and that no index leads to, but for those that chunks told of."""
    more = there.extra - collected.unnamed
    if more > 0:
        text = f"the index does not lead to {more} messages that are in the file; recovering delivers them"
        yield _wrong("index", "error", there.at, 0, text)


def _indexed(file: FoundFile, whole: FoundFile) -> Iterator[Finding]:
    """Attachments and metadata against their indexes, where there are any."""
    for what, places, told in (
        ("attachments", {one.pos for one in whole.attachments}, file.indexed_attachments),
        ("metadata records", set(whole.metadata_places), file.indexed_metadata),
    ):
        if not told:
            continue
        if missing := places - set(told):
            text = f"the index leaves out {len(missing)} {what}, which were read all the same"
            yield _wrong("index", "warn", min(missing), 0, text)
        if gone := set(told) - places:
            yield _wrong("index", "warn", 0, 0, f"the index names {len(gone)} {what} that are not there")


def _statistics(file: FoundFile, whole: FoundFile) -> Iterator[Finding]:
    told = file.statistics
    if told is None:
        return
    counts: dict[int, int] = defaultdict(int)
    for part in whole.parts:
        for number, count in part.counts().tolist():
            counts[number] += count
    for text in differing(told, counts):
        yield _wrong("statistics", "warn", None, 0, text)
    # Genuine writers count definitions in several ways: what they repeat, what has messages, or everything.
    counted: tuple[tuple[Severity, str, int, int], ...] = (
        ("note", "schemas", told.schemas, len(whole.schemas)),
        ("note", "channels", told.channels, len(whole.channels)),
        ("warn", "attachments", told.attachments, len(whole.attachments)),
        ("warn", "metadata records", told.metadata, len(whole.metadata)),
        ("warn", "chunks", told.chunks, len(whole.every)),
    )
    for severity, what, stated, found in counted:
        if stated != found:
            text = f"the statistics count {stated} {what}, there are {found}"
            yield _wrong("statistics", severity, None, 0, text)
    times = [edge for part in whole.parts if part.found is not None for edge in _edges(part.found.time)]
    if times and (min(times), max(times)) != (told.start, told.end):
        text = f"the statistics have messages from {told.start} to {told.end} ns"
        text += f", there are some from {min(times)} to {max(times)}"
        yield _wrong("statistics", "warn", None, 0, text)


def _edges(time: I64) -> tuple[int, int]:
    return int(time.min()), int(time.max())
