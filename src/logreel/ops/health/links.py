"""Transforms between frames that stop, or that do not form one tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.io.arrays import I64
from logreel.lenses import Transform, lenses
from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.lenses.meaning import since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: A link is broken if it is missing for this number of periods, and this time; static links come less often.
PERIODS, LEAST_NS, MESSAGES = 10, SECOND, 20


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each link with a break, and one if frames have no link to the others."""
    links: dict[tuple[str, str], list[I64]] = {}
    for ch in log.channels.values():
        if not len(ch) or ch.reserved:
            continue
        for lens in lenses(ch):
            if isinstance(lens, Transform) and lens.frame and lens.child:
                places = lens.track(ch)
                if places.frame is None or places.child is None:
                    continue
                parents, children = places.frame.astype(str), places.child.astype(str)
                pairs = np.char.add(np.char.add(parents, "\n"), children)
                for pair in np.unique(pairs).tolist():
                    parent, _, child = pair.partition("\n")
                    times = places.time[pairs == pair]
                    links.setdefault((parent.lstrip("/"), child.lstrip("/")), []).append(times)
    if not links:
        yield NotAssessed("the log has no transforms")
        return
    for (parent, child), several in sorted(links.items()):
        yield from _breaks(log, parent, child, np.sort(np.concatenate(several)))
    children_of = {child for _, child in links}
    roots = sorted({parent for parent, _ in links} - children_of)
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


def _breaks(log: Log, parent: str, child: str, times: I64) -> Iterator[Detection]:
    if len(times) < MESSAGES:
        return
    steps = np.diff(times)
    bound = max(PERIODS * float(np.median(steps)), LEAST_NS)
    for row in np.flatnonzero(steps > bound).tolist():
        start, end = int(times[row]), int(times[row + 1])
        yield Detection(
            f"the transform from {parent} to {child} is missing for {duration_text(end - start)}"
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
    detect,
)
