"""Charts and bands: which plots a log deserves, and which intervals lie behind them; no format is named here."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Kinds of charts: curves over time; one curve over another; power of each frequency over time.
LINE, XY, SPECTROGRAM = "line", "xy", "spectrogram"
#: Panels at the side of the plots: positions on a map, pictures of cameras, things in space.
MAP, PICTURE, SCENE = "map", "picture", "scene"


@dataclass(frozen=True, slots=True)
class Series:
    """One curve of a chart.

    topic, field  what it shows; the field may be empty for a function of the times of messages
    function      name of a function of ``logreel.meaning.curves`` that is applied to the field; empty: none
    label         name for people; empty: the field
    unit          empty: that of the field
    where         ``PATH=VALUE``: only records, or list items, whose field at PATH has this value; empty: all
    """

    topic: str
    field: str
    function: str = ""
    label: str = ""
    unit: str = ""
    where: str = ""

    @property
    def name(self) -> str:
        """Label of the curve."""
        return self.label or self.field or self.topic


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves that belong into one plot.

    kind   ``line``, ``xy`` (the first series is x, the others y), ``spectrogram``
    group  heading that charts of one subject share
    y      least and greatest value of the axis; None: by the values
    first  whether it belongs on the first screen
    """

    title: str
    series: tuple[Series, ...]
    kind: str = LINE
    group: str = ""
    y: tuple[float, float] | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """An interval of the log with a name, such as a flight mode.

    start, end  ns of the log's clock
    kind        bands of one kind never overlap: ``mode``, ``armed``, ``failsafe``, …
    source      where the name comes from, for people
    """

    start: int
    end: int
    label: str
    kind: str
    source: str = field(default="", compare=False)
