"""Segments: the logs in a file that holds several, each as a separate log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from logreel.formats.ulog.found import Found
from logreel.index.block_table import Blocks
from logreel.io.source import Source
from logreel.log.scan import Scan, Segment


def segment_list(found: Found, segment: Callable[[int], Scan]) -> list[Segment]:
    """Return a description of each segment; *segment* gives the Scan of one by its number."""
    described = []
    for number, offset in enumerate(found.segments, 1):
        part = segment(number)
        counts = part.index.counts
        messages = sum(
            int(counts[n]) for n, info in enumerate(part.channels) if not info.topic.startswith("~")
        )
        described.append(Segment(number, offset, part.start, part.end, messages))
    return described


def segment_found(source: Source, found: Found, number: int) -> Found:
    """Return what was found in segment *number*; its channels have names without ``@``.

    A segment without definitions of its own keeps the formats of the latest segment before it that has some, but no
    other records of that segment: they belong to another log.
    """
    begin, end = found.segments[number - 1], [*found.segments, source.size][number]
    own = found.own_definitions[number - 1]
    parsed = [at for at in found.parsed if begin <= at < end]
    if not own:
        since = max(
            at for at, has_own in zip(found.segments[:number], found.own_definitions, strict=False) if has_own
        )
        formats = [at for at in found.parsed if since <= at < begin and source.view[at + 2] == ord("F")]
        parsed = formats + parsed
    # Topics are ordered by segment.
    mine = [n for n, topic in enumerate(found.topics) if topic.segment == number]
    first, last = (mine[0], mine[-1] + 1) if mine else (0, 0)
    blocks = found.blocks
    return replace(
        found,
        topics=[replace(topic, segment=1) for topic in found.topics[first:last]],
        blocks=Blocks(
            blocks.base, blocks.chunk, np.ascontiguousarray(blocks.start[:, first : last + 1]), blocks.entry
        ),
        parsed=parsed,
        notes=found.notes[(found.notes >= begin) & (found.notes < end)],
        segments=[0],
        # The header of the log before says nothing about this one.
        segment_us=[found.segment_us[number - 1] if own else 0],
        own_definitions=[own],
        appended=[],
        problems=[p for p in found.problems if begin <= p.offset < end and p.code != "segment"],
        is_segment=True,
    )
