"""What reading a whole MCAP file tells: checksums, and counts and places against what is there."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.errors import Finding, Severity
from logreel.formats.mcap.chunks import unpack
from logreel.formats.mcap.found import File
from logreel.formats.mcap.records import HEAD, BadRecord, Chunk
from logreel.model.source import Source

if TYPE_CHECKING:
    from logreel.formats.mcap.collect import Collected


def verify(source: Source, file: File, collected: Collected) -> Iterator[Finding]:
    """Findings of a whole file, in no order."""
    yield from collected.verify()
    for chunk in file.every:
        yield from _chunk(source, chunk)
    yield from _data_section(source, file)
    for one in file.attachments:
        begin = one.pos + HEAD
        there = zlib.crc32(source.view[begin : one.data + one.size])
        if one.crc and there != one.crc:
            yield _wrong(
                "crc", "error", one.pos, one.size, f"the checksum of attachment {one.name!r} is wrong"
            )
    yield from _statistics(file, collected)


def _wrong(code: str, severity: Severity, pos: int, size: int, text: str) -> Finding:
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


def _data_section(source: Source, file: File) -> Iterator[Finding]:
    if file.data_end is None:
        return
    pos, crc = file.data_end
    if crc and zlib.crc32(source.view[:pos]) != crc:
        text = "the checksum of the data section is wrong: some byte of it is not what was written"
        yield _wrong("crc", "error", 0, pos, text)


def _statistics(file: File, collected: Collected) -> Iterator[Finding]:
    told = file.statistics
    if told is None:
        return
    there = sum(int(part.counts()[:, 1].sum()) for part in file.parts)
    if there != told.messages:
        text = f"the statistics count {told.messages} messages, there are {there}"
        yield _wrong("statistics", "warn", 0, 0, text)
    start, end = collected.bounds()
    if start is not None and (start, end) != (told.start, told.end):
        text = f"the statistics have messages from {told.start} to {told.end} ns, there are some from {start} to {end}"
        yield _wrong("statistics", "warn", 0, 0, text)
