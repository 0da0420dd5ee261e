"""When the vehicle was armed, in the air, in a mode, or in failsafe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logreel.formats.ulog.modes import bands
from logreel.lenses.facts import Band
from logreel.log.log import Log

#: A vehicle that touches the ground for less than this, ns, goes on flying.
TOUCH_NS = 10**9


@dataclass(frozen=True, slots=True)
class Phases:
    """Intervals of a flight by kind, each in the order of time."""

    armed: tuple[Band, ...]
    air: tuple[Band, ...]
    modes: tuple[Band, ...]
    failsafe: tuple[Band, ...]

    @classmethod
    def of(cls, log: Log) -> Phases:
        """Return the phases of *log*."""
        first = log.start or 0
        found = [replace(band, start=max(band.start, first)) for band in bands(log) if band.end > first]

        def kind(name: str) -> tuple[Band, ...]:
            return tuple(sorted((band for band in found if band.kind == name), key=lambda b: b.start))

        armed = kind("armed")
        return cls(armed, _flights(kind("air"), armed), kind("mode"), kind("failsafe"))

    @property
    def moving(self) -> tuple[Band, ...]:
        """Intervals over which a flight is measured: in the air, or else armed."""
        return self.air or self.armed


def _flights(air: Sequence[Band], armed: Sequence[Band]) -> tuple[Band, ...]:
    """Return the intervals in the air without touches of the ground, from the time on at which the vehicle is armed.

    Before its first message, the state of landing is not known, and a vehicle that is not armed does not take off.
    """
    found: list[Band] = []
    for band in air:
        start = next((one.start for one in armed if band.start < one.start < band.end), band.start)
        if found and band.start - found[-1].end <= TOUCH_NS:
            found[-1] = replace(found[-1], end=band.end)
        else:
            found.append(replace(band, start=start))
    return tuple(found)
