"""Results of detectors: what went wrong with the robot, when, by which measure, and what could not be assessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Severity
from logreel.log.brief import Brief

if TYPE_CHECKING:
    from logreel.io.arrays import I64
    from logreel.log.log import Log


@dataclass(frozen=True, slots=True, repr=False)
class Detection(Brief):
    """Something that went wrong in an interval.

    text       one sentence for people
    severity   ``error``, ``warn`` or ``note``
    start, end  ns of the log's clock, start <= end
    topics     channels that show it
    evidence   the measured values, by name
    threshold  the bound that they exceed, for people
    source     where the bound comes from
    detector   name of the detector; set by ``logreel.health``
    """

    text: str
    severity: Severity
    start: int
    end: int
    topics: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    threshold: str = ""
    source: str = ""
    detector: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the detection as JSON data."""
        return {
            "detector": self.detector,
            "severity": self.severity,
            "text": self.text,
            "start_ns": self.start,
            "end_ns": self.end,
            "topics": list(self.topics),
            "evidence": dict(self.evidence),
            "threshold": self.threshold,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class NotAssessed:
    """The answer of a detector to a log that lacks the data for it.

    reason  what is missing, for people
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of fault.

    name      short, lower case, with hyphens
    looks_at  what it looks at and by which bound, for people
    detect    yields Detections, or a NotAssessed if the log lacks the data
    """

    name: str
    looks_at: str
    detect: Callable[[Log], Iterable[Detection | NotAssessed]]


def runs(times: I64, on: NDArray[np.bool_], gap: int = -1) -> list[tuple[int, int]]:
    """Return start and end in ns of each run of True values; the end is the time of its last value.

    times  int64[n] ns, in order
    on     bool[n]
    gap    runs that are no farther apart than this are one, ns; negative: only neighbours
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    spans = [(int(times[a]), int(times[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start - found[-1][1] <= gap:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
