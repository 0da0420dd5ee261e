"""Blocks that hold no data: descriptors, the end block, and blocks of unknown kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logreel.errors import Problem
from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import Series
from logreel.formats.bddf.index_builder import OTHER, IndexBuilder
from logreel.formats.bddf.records import DESCRIPTOR, END, MAGIC, Header, read_descriptor, read_header
from logreel.io.source import Source
from logreel.schemas.protobuf.wire import BadWire


class UnexpectedBlock(ValueError):
    """The blocks of a file are not those that were found when it was opened."""


@dataclass(frozen=True, slots=True)
class NonDataBlock:
    """A block that holds no data.

    kind    field number of the message in a descriptor block, 0: an empty one; -1: not a descriptor block
    series  the series that the block declares, or None
    """

    header: Header
    kind: int
    series: Series | None = None


def non_data_blocks(
    source: Source, builder: IndexBuilder, lost: Sequence[Problem] = ()
) -> Iterator[NonDataBlock]:
    """Yield the blocks of a file that hold no data, the end block last; *builder* gets the data blocks.

    lost  damaged intervals to skip. Raises UnexpectedBlock for other bytes that are not a valid block.
    """
    ends = {p.offset: p.offset + p.size for p in lost}
    pos = len(MAGIC)
    while pos < source.size:
        why, pos = builder.walk(pos, source.size)
        if pos in ends:
            pos = ends.pop(pos)
            continue
        if pos == source.size:
            break
        head = read_header(source, pos, source.size) if why == OTHER else None
        if head is None or (head.next > source.size and head.kind != END):
            raise UnexpectedBlock(f"no sound block at {pos}")
        yield parse_non_data_block(source, head)
        if head.kind == END:
            break
        pos = head.next
    if ends:
        raise UnexpectedBlock(f"no damage at {min(ends)}")


def parse_non_data_block(source: Source, head: Header) -> NonDataBlock:
    """Return the block with header *head*; raises UnexpectedBlock if it is an unreadable descriptor."""
    if head.kind != DESCRIPTOR:
        return NonDataBlock(head, -1)
    start = source.read(head.body, 1)
    if start and start[0] >> 3 == descriptors.SERIES_INDEX:
        # The index of a series can be as large as all other blocks, and its content is not needed.
        return NonDataBlock(head, descriptors.SERIES_INDEX)
    try:
        kind, content = read_descriptor(source, head.pos, source.size)
        series = Series.parse(content) if kind == descriptors.SERIES else None
    except BadWire as error:
        raise UnexpectedBlock(str(error)) from None
    return NonDataBlock(head, kind, series)
