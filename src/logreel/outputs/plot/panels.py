"""What a plot shows: curves in panels with one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logreel.log.times import utc_text
from logreel.meaning.curves import Curve


@dataclass(frozen=True)
class Panel:
    """Curves with one value axis."""

    curves: tuple[Curve, ...]

    @property
    def names(self) -> list[str]:
        """Name of each curve, without the topic if it is that of all."""
        topics = {curve.topic for curve in self.curves}
        return [curve.field if len(topics) == 1 else curve.name for curve in self.curves]

    @property
    def title(self) -> str:
        """The topic if all curves share it, and the unit if all share it."""
        topics, units = ({getattr(c, name) for c in self.curves} for name in ("topic", "unit"))
        unit = f" [{units.pop()}]" if len(units) == 1 and units != {""} else ""
        return (topics.pop() if len(topics) == 1 else "") + unit


@dataclass(frozen=True, repr=False)
class Panels:
    """Curves of a log, in panels with one time axis.

    name    of the log
    panels  one for each name that was asked for
    origin  ns of the log's clock that the time axis counts from
    shift   ns from the log's clock to UTC for an axis of UTC times; None: seconds since *origin*
    begins  description of *origin*, such as ``2025-05-17T08:42:20.000Z``
    inputs  names of the files of the log, which no plot replaces
    """

    name: str
    panels: Sequence[Panel]
    origin: int
    shift: int | None
    begins: str
    inputs: Sequence[str] = ()

    @property
    def span(self) -> tuple[int, int]:
        """First and last time of all curves, ns of the log's clock."""
        ends = [(c.times[0], c.times[-1]) for panel in self.panels for c in panel.curves if len(c.times)]
        if not ends:
            return self.origin, self.origin
        return int(min(a for a, _ in ends)), int(max(b for _, b in ends))

    @property
    def axis(self) -> str:
        """Label of the time axis."""
        if self.shift is None:
            return f"seconds since {self.begins}"
        first = self.span[0] + self.shift
        return f"UTC, {utc_text(first, 0)[:10]}"
