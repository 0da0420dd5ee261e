"""Transforms between frames that stop, or that do not form one tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.facts import Detection, Detector, NotAssessed, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.frames import Link, links_of, roots_of

#: A link is broken if it is missing for this number of periods, and this time.
PERIODS, LEAST_NS, MESSAGES = 10, SECOND, 20


def broken_links(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each link with a break, and one if frames have no link to the others."""
    links, _ = links_of(log, poses=False, stamps=False)
    if not links:
        yield NotAssessed("the log has no transforms")
        return
    for link in sorted(links, key=lambda link: link.child):
        if not link.static:
            yield from _breaks(log, link)
    roots = roots_of(links)
    if len(roots) > 1:
        yield Detection(
            f"frames form {len(roots)} trees without a link between them: those of {', '.join(roots[:8])}",
            "warn",
            log.start or 0,
            log.end or 0,
            (),
            {"roots": roots},
            "one tree",
            "REP 105",
        )


def _breaks(log: Log, link: Link) -> Iterator[Detection]:
    if len(link) < MESSAGES:
        return
    steps = np.diff(link.time)
    bound = max(PERIODS * float(np.median(steps)), LEAST_NS)
    for row in np.flatnonzero(steps > bound).tolist():
        start, end = int(link.time[row]), int(link.time[row + 1])
        parent = link.parents[int(link.parent[row])]
        yield Detection(
            f"the transform from {parent} to {link.child} is missing for {duration_text(end - start)}"
            f" from {since_start(start, log)} on",
            "warn",
            start,
            end,
            (),
            {"missing_ns": end - start, "period_ns": float(np.median(steps))},
            f"{PERIODS} periods and {duration_text(LEAST_NS)}",
            "logreel",
        )


LINKS = Detector(
    "transforms",
    f"links between frames that are missing for {PERIODS} periods and {duration_text(LEAST_NS)}, and separate trees",
    broken_links,
)
