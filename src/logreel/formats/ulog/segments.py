"""One of several logs that a file holds, as a log of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from logreel.formats.ulog.reader import Walk
from logreel.formats.ulog.scan_builder import ScanBuilder
from logreel.index.block_table import Blocks
from logreel.io.source import Source
from logreel.log.scan import Scan, Segment


class SegmentWalk(Walk):
    """What the walk found of one segment; its records lie among those of the others."""


def scan(source: Source, walk: Walk) -> Scan:
    """The Scan of everything in the file, which knows the logs in it."""
    found = ScanBuilder(source, walk).scan()
    if len(walk.segments) < 2:
        return found
    return replace(
        found, segments=lambda: list(_segments(source, walk)), segment=lambda n: _scan(source, walk, n)
    )


def _segments(source: Source, walk: Walk) -> Iterator[Segment]:
    for number, offset in enumerate(walk.segments, 1):
        part = _scan(source, walk, number)
        counts = part.index.counts
        messages = sum(
            int(counts[n]) for n, info in enumerate(part.channels) if not info.topic.startswith("~")
        )
        yield Segment(number, offset, part.start, part.end, messages)


def _scan(source: Source, walk: Walk, number: int) -> Scan:
    return replace(ScanBuilder(source, only(source, walk, number)).scan(), saved=None)


def only(source: Source, walk: Walk, number: int) -> SegmentWalk:
    """What *walk* found of segment *number*, whose channels have plain names.

    A segment without definitions of its own is read by those before it: formats alone, since what else is said there
    is of another log.
    """
    begin, end = walk.segments[number - 1], [*walk.segments, source.size][number]
    own = walk.own_definitions[number - 1]
    parsed = [at for at in walk.parsed if begin <= at < end]
    if not own:
        since = max(
            at for at, fresh in zip(walk.segments[:number], walk.own_definitions, strict=False) if fresh
        )
        parsed = [
            at for at in walk.parsed if since <= at < begin and source.view[at + 2] == ord("F")
        ] + parsed
    # Topics come in the order in which segments subscribe to them.
    mine = [n for n, topic in enumerate(walk.topics) if topic.segment == number]
    first, last = (mine[0], mine[-1] + 1) if mine else (0, 0)
    blocks = walk.blocks
    table = Blocks(
        blocks.base, blocks.chunk, np.ascontiguousarray(blocks.start[:, first : last + 1]), blocks.entry
    )
    told = {one.name: getattr(walk, one.name) for one in fields(walk)}
    told |= {
        "topics": [replace(topic, segment=1) for topic in walk.topics[first:last]],
        "blocks": table,
        "parsed": parsed,
        "notes": walk.notes[(walk.notes >= begin) & (walk.notes < end)],
        "segments": [0],
        # The header of the log before says nothing of this one.
        "segment_us": [walk.segment_us[number - 1] if own else 0],
        "own_definitions": [own],
        "appended": [],
        "problems": [p for p in walk.problems if begin <= p.offset < end and p.code != "segment"],
    }
    return SegmentWalk(**told)
