"""Results of the CARLA reader in the form of the plain reader."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from logreel.formats.carla.reader import Found, Reader
from logreel.formats.carla.records import HEAD
from logreel.io.source import Source
from logreel.log.log import Log
from support.oracles import carla as oracle

Span = tuple[int, int]


def rows(log: Log, topic: str) -> list[dict[str, Any]]:
    """Return the rows of a channel as dicts, time in ns."""
    table = log.table(topic)
    table.validate(full=True)
    return table.set_column(0, "time", table["time"].cast(pa.int64())).to_pylist()


def assert_equal(log: Log, judge: oracle.Recording) -> None:
    """Check that every row of every channel equals that of the plain reader; NaN equals NaN."""
    due = {topic: records for topic, records in oracle.channels(judge).items() if records}
    if judge.wide and "packet_15" in due:
        # Physics that is kept as bytes still has its topic.
        due["physics"] = due.pop("packet_15")
    got = {topic: found for topic in log.channels if (found := rows(log, topic))}
    assert list(map(sorted, (got, due))) == [sorted(due)] * 2
    for topic, records in due.items():
        assert repr(got[topic]) == repr([dict(record) for record in records]), topic


def packets(found: Found) -> list[tuple[int, int, int]]:
    """Return offset, kind and end of every packet and FrameEnd, in file order."""
    blocks = found.blocks
    count = np.diff(blocks.start, axis=1)
    kinds = np.concatenate([np.repeat(np.arange(count.shape[1]), row) for row in count] or [[]])
    places = blocks.entry + np.repeat(blocks.base, count.sum(axis=1))
    got = [(at, 1, at + HEAD) for at in found.ends.tolist()]
    for at, kind, size in zip(places.tolist(), kinds.tolist(), found.sizes.tolist(), strict=True):
        got.append((at - HEAD, kind, at + size))
    return sorted(got)


def walked(data: bytes) -> Found:
    """Return everything that the reader finds."""
    return Reader(Source.open(data)).finish()


def assert_accounted(found: Found, data: bytes) -> None:
    """Check that header, packets and lost intervals cover the file without gaps."""
    spans = [(0, found.header.size)] if found.header.size else []
    spans += [(at, end) for at, _, end in packets(found)]
    spans += [(p.offset, p.offset + p.size) for p in found.problems if p.lost]
    spans = sorted({span for span in spans if span[0] < span[1]})
    ends = list(accumulate((end for _, end in spans), max))
    assert [start for start, _ in spans[1:]] == ends[:-1], "neither read nor reported, or both"
    assert ends[-1:] == [len(data)] if data else True
