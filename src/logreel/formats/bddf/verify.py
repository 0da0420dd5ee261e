"""Verify what a file says of itself: its checksum, the hashes of its series, and the numbers in its index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from logreel.errors import Finding, Problem
from logreel.formats.bddf import records
from logreel.formats.bddf.index_reader import BadIndex, FooterIndex
from logreel.formats.bddf.reader import SERIES_RULES, Found
from logreel.formats.bddf.records import (
    DIGEST_AT,
    END_BYTES,
    MAGIC,
    FileDescriptor,
    SeriesDeclaration,
    read_descriptor,
    read_end_block,
    read_header,
)
from logreel.index.message_index import MessageIndex
from logreel.io.source import Chunks, Source
from logreel.schemas.protobuf.wire import BadWire, items, packed

#: Bytes hashed per call: large enough to make the calls cheap, small enough not to map the whole file at once.
STEP = 8 << 20
#: Bytes of a checksum; bytes that writers and the format's page state for the end block, which has 32 after its header.
DIGEST_BYTES, END_SIZES = 20, (20, 24, 32)


def verify(source: Source, content: Found) -> Iterator[Finding]:
    """Yield findings of wrong statements of a file. Reads the whole file."""
    yield from verify_checksum(source)
    yield from _file_descriptor(source, content)
    yield from _series(source, content)
    yield from _end(source)


def verify_checksum(source: Source) -> list[Finding]:
    """Return a finding ``checksum`` if it is wrong (error) or missing (note), else none. Reads the whole file."""
    ending = read_end_block(source, source.size - END_BYTES)
    if ending is None:
        return [Finding("checksum", "note", source.size, 0, "no checksum: the file has no end block")]
    at = source.size - DIGEST_AT
    try:
        descriptor_kind, content = read_descriptor(source, len(MAGIC), source.size)
        file = FileDescriptor.parse(content) if descriptor_kind == records.FILE else FileDescriptor()
    except BadWire:
        file = FileDescriptor()
    if file.checksum == records.CHECKSUM_NONE:
        if any(ending.digest) and ending.digest == digest(source, at):
            text = "the file states that it has no checksum, and has a right one"
            return [Finding("checksum", "warn", at, len(ending.digest), text)]
        return [Finding("checksum", "note", at, 0, "no checksum: the file was written without one")]
    computed = digest(source, at)
    if computed == ending.digest:
        return []
    text = f"the checksum is wrong: {computed.hex()}, and the file says {ending.digest.hex()}"
    return [Finding("checksum", "error", at, len(ending.digest), text)]


def compare_checksum(source: Source, problems: list[Problem]) -> None:
    """Add a problem if the checksum of the file is wrong and no other damage explains it. Reads the whole file."""
    if any(problem.lost for problem in problems):
        return
    for finding in verify_checksum(source):
        if finding.severity == "error":
            problems.append(Problem(finding.code, finding.offset or 0, finding.size, True, finding.text))


def digest(source: Source, end: int) -> bytes:
    """Return the SHA-1 of the bytes before *end*."""
    sha = hashlib.sha1(usedforsecurity=False)
    for lo in range(0, end, STEP):
        sha.update(source.view[lo : min(lo + STEP, end)])
    return sha.digest()


def _file_descriptor(source: Source, content: Found) -> Iterator[Finding]:
    """Yield ``version`` and ``checksum`` for statements of the first block that no file of this format makes."""
    file, at = content.file, len(MAGIC)
    if file == FileDescriptor():
        # Reported where the file was read.
        return
    if file.version[0] != 1:
        shown = ".".join(map(str, file.version))
        yield Finding("version", "warn", at, 0, f"the file states version {shown}, there is only 1.0.0")
    if file.checksum not in (records.CHECKSUM_NONE, records.CHECKSUM_SHA1):
        text = f"the file states a checksum of the unknown type {file.checksum}; it is compared as SHA-1"
        yield Finding("checksum", "warn", at, 0, text)
    if file.checksum_size != DIGEST_BYTES:
        text = f"the file states a checksum of {file.checksum_size} bytes, it has {DIGEST_BYTES}"
        yield Finding("checksum", "warn", at, 0, text)


def _series(source: Source, content: Found) -> Iterator[Finding]:
    """Yield ``hash`` for hashes that are not those of their identifiers, ``index`` for other wrong numbers."""
    try:
        index = FooterIndex(source)
    except BadIndex:
        index = None
    known = {declared.identifier.hash for declared in content.series}
    for number, series in enumerate(content.series):
        place = index.places[series.index] if index and series.index < len(index.places) else None
        if series.hash != series.identifier.hash:
            text = f"series {series.index} states the hash {series.hash:016x}, it is {series.identifier.hash:016x}"
            yield Finding("hash", "warn", place, 0, text)
        if isinstance(series.type, records.StructType):
            for member, stated in series.type.members.items():
                if stated not in known:
                    text = (
                        f"member {member!r} of series {series.index} has the hash {stated:016x} of no series"
                    )
                    yield Finding("hash", "warn", place, 0, text)
        if series.names:
            yield from _additional(source, content, number, series)
    if index is not None and not any(problem.code == "segment" for problem in content.problems):
        yield from _indexed_numbers(source, content, index)


def _additional(source: Source, content: Found, number: int, series: SeriesDeclaration) -> Iterator[Finding]:
    """Yield ``numbers`` for blocks with more or fewer additional indexes than their series has names."""
    wrong = [at for at in _blocks(source, content, number) if len(_numbers(source, at)) != len(series.names)]
    if wrong:
        text = f"{len(wrong)} blocks of series {series.index} do not have the {len(series.names)} additional indexes"
        yield Finding("numbers", "warn", wrong[0], 0, f"{text} that it declares", count=len(wrong))


def _indexed_numbers(source: Source, content: Found, index: FooterIndex) -> Iterator[Finding]:
    """Yield ``index`` for hashes and additional indexes in the index that are not those of series and blocks."""
    for series in content.series:
        if series.index >= len(index.file.offsets):
            continue
        place = index.file.offsets[series.index]
        if index.file.hashes[series.index] != series.hash:
            text = (
                f"the index states the hash {index.file.hashes[series.index]:016x} for series {series.index}"
            )
            yield Finding("index", "warn", index.ending.index, 0, f"{text}, which states {series.hash:016x}")
        wrong = 0
        if not series.names:
            continue
        try:
            for offset, numbers in index.additional(series.index):
                wrong += numbers != _numbers(source, offset)
        except (BadIndex, BadWire):
            # Reported where the index is read.
            continue
        if wrong:
            text = f"the index states other additional indexes for {wrong} blocks of series {series.index}"
            yield Finding("index", "warn", place, 0, text, count=wrong)


def _blocks(source: Source, content: Found, number: int) -> list[int]:
    everything = MessageIndex(Chunks(source), content.table, [SERIES_RULES] * len(content.series))
    starts: list[int] = everything.starts(number).tolist()
    return starts


def _numbers(source: Source, at: int) -> list[int]:
    """Return the additional indexes of the data block at *at*."""
    size = int.from_bytes(source.read(at + 8, 4), "little")
    numbers: list[int] = []
    try:
        for item in items(source.read(at + 12, size)):
            if item.number == 3:
                numbers += packed(item)
    except BadWire:
        return []
    return numbers


def _end(source: Source) -> Iterator[Finding]:
    """Yield ``end`` for an end block of a size that no writer states, ``index`` for an index that it leaves out."""
    ending = read_end_block(source, source.size - END_BYTES)
    head = read_header(source, source.size - END_BYTES, source.size)
    if ending is None or head is None:
        return
    if head.size not in END_SIZES:
        text = f"the end block states {head.size} bytes, it has {END_BYTES - 8}"
        yield Finding("end", "warn", ending.pos, 8, text)
    if not ending.index and (at := _file_index(source, ending.pos)):
        text = f"the end block states that there is no index, there is one at {at}"
        yield Finding("index", "warn", ending.pos + 8, 8, text)


def _file_index(source: Source, end: int) -> int:
    """Return the offset of the file index, if the blocks lead to one just before *end*; else 0."""
    pos = last = len(MAGIC)
    while pos < end:
        head = read_header(source, pos, end)
        if head is None or head.next > end:
            return 0
        last, pos = pos, head.next
    try:
        descriptor_kind, _ = read_descriptor(source, last, end)
    except BadWire:
        return 0
    return last if descriptor_kind == records.FILE_INDEX else 0
