"""When the vehicle was armed, in the air, in a mode, or in failsafe."""

from __future__ import annotations

from dataclasses import dataclass, replace

from logreel.formats.ulog.modes import bands
from logreel.lenses.charts import Band
from logreel.log.log import Log


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

        return cls(kind("armed"), kind("air"), kind("mode"), kind("failsafe"))

    @property
    def moving(self) -> tuple[Band, ...]:
        """Intervals over which a flight is measured: in the air, or else armed."""
        return self.air or self.armed
