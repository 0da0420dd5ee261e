"""Raw ranges of laser scanners: angles follow from the model, small numbers are error codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.io.arrays import F64
from logreel.layout.nodes import Scalar, Sequence, String
from logreel.lenses.base import Nodes, rows
from logreel.lenses.cloud import Points, Sector
from logreel.lenses.sensors.hokuyo import SCANNERS

if TYPE_CHECKING:
    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan.

    time     ns
    angles   float64[n]  rad from straight ahead, counter-clockwise seen from above
    ranges   float64[n]  metres, NaN for error codes
    codes    uint32[n]   the error code, 0 for a valid range
    """

    time: int
    angles: F64
    ranges: F64
    codes: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class RangeScan:
    """Ranges in millimetres and error codes of a scanner; each message names the model."""

    model: str
    ranges: str

    def scans(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Scan]:
        """Yield the scans of *ch* with start <= time < end (ns), in file order.

        Scans of unknown models are left out. A scan with an unusual number of ranges is assumed to be centred straight
        ahead. Both are noted as Problems with code ``scan``.
        """
        for time, found in rows(ch, [self.model, self.ranges], start, end):
            model, ranges = found[self.model].as_py(), np.asarray(found[self.ranges].values, np.uint32)
            scanner = SCANNERS.get(model)
            if scanner is None:
                _note(ch, f"scanner {model[:60]!r} is not known: its angles are unknown")
                continue
            if len(ranges) not in scanner.first:
                _note(ch, f"a scan of {len(ranges)} ranges is taken to be centred straight ahead")
            masked = scanner.masked(ranges)
            codes = np.where(np.isnan(masked), ranges, 0).astype(np.uint32)
            yield Scan(time, scanner.angles(len(ranges)), masked, codes)

    def sectors(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Sector]:
        """Yield the scans of *ch* with start <= time < end (ns), in file order; ranges are NaN for error codes."""
        for scan in self.scans(ch, start, end):
            if len(scan.angles):
                first, last = float(scan.angles[0]), float(scan.angles[-1])
                step = (last - first) / max(1, len(scan.angles) - 1)
                yield Sector(scan.time, "", first, step, scan.ranges, np.zeros(0))

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the echoes of each scan as points with z = 0, with ``range`` and ``angle``."""
        for scan in self.scans(ch, start, end):
            seen = ~np.isnan(scan.ranges)
            far, angle = scan.ranges[seen], scan.angles[seen]
            fields = {"x": far * np.cos(angle), "y": far * np.sin(angle), "z": np.zeros(len(far))}
            fields |= {"range": far, "angle": angle}
            yield Points(scan.time, "", {name: v.astype(np.float32) for name, v in fields.items()})


def _note(ch: Channel, text: str) -> None:
    ch.log.note(Problem("scan", 0, 0, False, f"{ch.topic}: {text}"))


def find_ranges(nodes: Nodes) -> RangeScan | None:
    """Return the RangeScan that *nodes* describe, or None."""
    if isinstance(nodes.get("sensor_type"), String) and nodes.get("ranges") == Sequence(Scalar("uint32")):
        return RangeScan("sensor_type", "ranges")
    return None
