"""What lies in a file besides data blocks, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logreel.errors import Problem
from logreel.formats.bddf import messages
from logreel.formats.bddf.index_builder import OTHER, IndexBuilder
from logreel.formats.bddf.messages import Series
from logreel.formats.bddf.records import DESCRIPTOR, END, MAGIC, Header, read_descriptor, read_header
from logreel.io.source import Source
from logreel.schemas.protobuf.wire import BadWire


class Unclear(ValueError):
    """The file is not what was thought."""


@dataclass(frozen=True, slots=True)
class Note:
    """A block that holds no data.

    kind    of the message in a descriptor, 0 for none; -1 in other blocks
    series  where it declares one
    """

    header: Header
    kind: int
    series: Series | None = None


def notes(source: Source, collector: IndexBuilder, lost: Sequence[Problem] = ()) -> Iterator[Note]:
    """The blocks of a file that hold no data, the end block last; *collector* gets the others.

    lost  stretches to step over. Raises Unclear at anything else that is no sound block.
    """
    ends = {p.offset: p.offset + p.size for p in lost}
    pos = len(MAGIC)
    while pos < source.size:
        why, pos = collector.walk(pos, source.size)
        if pos in ends:
            pos = ends.pop(pos)
            continue
        if pos == source.size:
            break
        head = read_header(source, pos, source.size) if why == OTHER else None
        if head is None or (head.next > source.size and head.kind != END):
            raise Unclear(f"no sound block at {pos}")
        yield note_of(source, head)
        if head.kind == END:
            break
        pos = head.next
    if ends:
        raise Unclear(f"no damage at {min(ends)}")


def note_of(source: Source, head: Header) -> Note:
    """What the block is that *head* begins; raises Unclear where a series is declared that cannot be read."""
    if head.kind != DESCRIPTOR:
        return Note(head, -1)
    start = source.read(head.body, 1)
    if start and start[0] >> 3 == messages.SERIES_INDEX:
        # It can be as large as all the rest, and nobody needs it.
        return Note(head, messages.SERIES_INDEX)
    try:
        kind, content = read_descriptor(source, head.pos, source.size)
        series = Series.parse(content) if kind == messages.SERIES else None
    except BadWire as error:
        raise Unclear(str(error)) from None
    return Note(head, kind, series)
