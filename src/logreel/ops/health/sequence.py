"""Messages that were lost between publisher and recorder, by their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.layout.nodes import Struct
from logreel.lenses.base import Nodes, columns, is_integer, members, nodes_of
from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.lenses.meaning import since_start
from logreel.log.log import Channel, Log

#: Paths of sequence numbers, most specific first.
PATHS = ("header.seq", "sequence", "seq", "sequence_number")
#: Least number of messages, and the share of steps by one that makes the field a sequence number.
MESSAGES, SHARE = 20, 0.5
#: Most numbers that can be missing in one step; more is a restart.
MOST = 10_000


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel whose sequence numbers skip some."""
    looked = False
    for ch in log.channels.values():
        if len(ch) < MESSAGES or ch.reserved or (path := _path(members(ch))) is None:
            continue
        try:
            found = columns(ch, [path])
        except LogError:
            continue
        numbers = found.values[path].astype(np.int64)
        steps = np.diff(numbers)
        # Numbers that are the same in all messages, or belong to several publishers, count nothing.
        if not len(steps) or float(np.mean(steps == 1)) < SHARE:
            continue
        looked = True
        yield from _lost(ch, path, found.time, steps)
    if not looked:
        yield NotAssessed("no channel has sequence numbers")


def _path(nodes: Nodes) -> str | None:
    for path in PATHS:
        *groups, last = path.split(".")
        inner = nodes
        for group in groups:
            inner = nodes_of(inner.get(group)) if isinstance(inner.get(group), Struct) else {}
        if is_integer(inner.get(last)):
            return path
    return None


def _lost(ch: Channel, path: str, times: I64, steps: I64) -> Iterator[Detection]:
    rows = np.flatnonzero((steps > 1) & (steps <= MOST))
    if len(rows):
        lost = int((steps[rows] - 1).sum())
        first, last = int(times[rows[0]]), int(times[rows[-1] + 1])
        share = lost / (lost + len(steps) + 1)
        yield Detection(
            f"{lost} messages of {ch.topic} are missing by {path}, {share:.1%}, the first at"
            f" {since_start(first, ch.log)}",
            "warn",
            min(first, last),
            max(first, last),
            (ch.topic,),
            {"lost": lost, "places": len(rows), "share": share},
            "one missing number",
            "sequence numbers of the messages",
        )


LOSS = Detector("message-loss", f"sequence numbers in messages: {', '.join(PATHS)}", detect)
