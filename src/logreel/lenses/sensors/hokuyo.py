"""Models of Hokuyo scanners: the angle of each range, and which ranges are error codes.

Source: the vendor's description of the protocol SCIP 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64


@dataclass(frozen=True, slots=True)
class Scanner:
    """One scanner model.

    slits   steps of a full revolution
    front   the step that points straight ahead
    least   ranges below this, in mm, are error codes
    first   the first step of a scan by the number of its ranges
    codes   meaning of each error code
    """

    slits: int
    front: int
    least: int
    first: Mapping[int, int]
    codes: Mapping[int, str] = field(default_factory=dict)

    def angles(self, count: int) -> F64:
        """Return angles, float64[count]: rad from straight ahead, counter-clockwise; centred if *count* is unusual."""
        first = self.first.get(count, self.front - count // 2)
        steps: F64 = np.arange(count, dtype=np.float64) + (first - self.front)
        return steps * (2 * np.pi / self.slits)

    def masked(self, ranges: NDArray[np.uint32]) -> F64:
        """Return ranges in metres, float64[n]; NaN for error codes."""
        out: F64 = ranges.astype(np.float64) / 1000
        out[ranges < self.least] = np.nan
        return out


_URG = {
    0: "nothing, or an object 22 m away",
    1: "weak",
    2: "weak",
    6: "other",
    7: "differs from its neighbours",
    8: "intensity",
    9: "repeated",
    16: "beyond the limit",
    18: "strong reflector",
    19: "not measurable",
}
_UTM = {1: "nothing in range", 2: "too near", 3: "measurement error", 4: "too near to measure", 5: "other"}

SCANNERS = {
    "Hokuyo_URG-04LX": Scanner(1024, 384, 20, {682: 44, 725: 0, 726: 0, 768: 0, 769: 0}, _URG),
    "Hokuyo_UTM-30LX": Scanner(1440, 540, 6, {1080: 0, 1081: 0}, _UTM),
}
