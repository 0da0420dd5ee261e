"""Continuation of a BDDF file: its blocks stay as they are, new ones follow, index and checksum are those of all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any, NoReturn

from logreel.errors import LogError, UsageError
from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import CHECKSUM_NONE, CHECKSUM_SHA1
from logreel.formats.bddf.index_builder import IndexBuilder
from logreel.formats.bddf.index_reader import BadIndex, FooterIndex
from logreel.formats.bddf.records import DIGEST_AT, END, read_header
from logreel.formats.bddf.scan_builder import ScanBuilder
from logreel.formats.bddf.verify import STEP
from logreel.formats.bddf.writer import (
    CHECKSUMS,
    BddfWriter,
    NonDataBlock,
    UnexpectedBlock,
    non_data_blocks,
    parse_non_data_block,
)
from logreel.io.append_file import Appender
from logreel.io.source import Source
from logreel.log.log import Log

#: Problems that do not concern the blocks of the file.
_HARMLESS = ("definition", "payload", "unknown")
#: Kinds of the blocks after the last data block: the index of each series, and of the file (0: of one without series).
_INDEX_KINDS = (0, descriptors.SERIES_INDEX, descriptors.FILE_INDEX)


def append(
    out: Appender,
    log: Log,
    *,
    checksum: str | None = None,
    definitions: Iterable[str | os.PathLike[str]] = (),
    reserved: bool = False,
) -> BddfWriter:
    """Return the writer that continues *log*.

    checksum  must be that of the file; None: this
    definitions, reserved  as for a new file

    The checksum of the file covers all of its bytes, so the old ones are read once. Raises LogError if it is wrong, or
    if the file has no complete sequence of blocks and index: then only its recovery finds what it contains.
    """
    state: ScanBuilder = log.format_state
    file = state.found.file
    # Loads all series: in a large file, problems of the index may not have been noticed yet.
    _ = log.index.counts
    wrong = next((p for p in state.found.problems if p.code not in _HARMLESS), None)
    if wrong is not None:
        _refuse(log, wrong.text)
    if file.checksum not in (CHECKSUM_NONE, CHECKSUM_SHA1) or file.checksum_size != 20:
        _refuse(log, f"its checksum is of kind {file.checksum} with {file.checksum_size} bytes")
    own = next(name for name, number in CHECKSUMS.items() if number == file.checksum)
    if checksum not in (None, own):
        raise UsageError(f"checksum {checksum!r}; the file has {own!r}", path=log.name)
    try:
        end = _data_end(state)
    except (BadIndex, UnexpectedBlock) as error:
        _refuse(log, f"its blocks cannot be continued: {error}")
    sha = hashlib.sha1(usedforsecurity=False)
    if own == "sha1":
        sha = _verified_sha(log, state.source, end)
    out.keep_old(end)
    writer = BddfWriter(out, checksum=own, definitions=definitions, reserved=reserved)
    writer.continue_file(file, sha)
    for ch, series in zip(log.channels.values(), state.found.series, strict=True):
        is_struct = log.index.rules[ch.number].synthetic is not None
        writer.continue_series(ch.topic, ch.schema, series, ch.metadata, is_struct)
    writer.schemas.signals += state.signals
    return writer


def _refuse(log: Log, why: str) -> NoReturn:
    raise LogError(
        why,
        path=log.name,
        hint="make a complete file of it by logreel.recover, and append to that",
    )


def _data_end(state: ScanBuilder) -> int:
    """Return the offset at which the index begins; nothing but the rest of it and the end block follows."""
    source = state.source
    start = pos = _index_start(state)
    while pos < source.size:
        head = read_header(source, pos, source.size)
        if head is None or head.next > source.size:
            break
        if head.kind == END and head.next == source.size:
            return start
        if not _is_index(parse_non_data_block(source, head)):
            raise UnexpectedBlock(f"the block at {pos} follows the index")
        pos = head.next
    raise UnexpectedBlock("the index is cut")


def _index_start(state: ScanBuilder) -> int:
    """Return the offset of the first block of the index, or of the end block."""
    if state.found.indexed:
        index = FooterIndex(state.source)
        return min(index.file.offsets, default=index.ending.index)
    builder = IndexBuilder(state.source.data)
    for block in non_data_blocks(state.source, builder):
        if block.series is not None:
            builder.skip(block.series.index)
        if _is_index(block):
            return block.header.pos
    raise UnexpectedBlock("there is no end block")


def _is_index(block: NonDataBlock) -> bool:
    return block.header.kind == END or block.kind in _INDEX_KINDS


def _verified_sha(log: Log, source: Source, end: int) -> Any:
    """Return the SHA-1 of the bytes before *end*, to be continued; raise LogError if the file's own one is wrong."""
    sha = _continued(hashlib.sha1(usedforsecurity=False), source, 0, end)
    at = source.size - DIGEST_AT
    digest, due = _continued(sha.copy(), source, end, at).digest(), source.read(at, 20)
    if digest != due:
        _refuse(log, f"its checksum is wrong: {digest.hex()}, and the file says {due.hex()}")
    return sha


def _continued(sha: Any, source: Source, start: int, end: int) -> Any:
    for lo in range(start, end, STEP):
        sha.update(source.view[lo : min(lo + STEP, end)])
    return sha
