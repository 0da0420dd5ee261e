"""What a recording means, as facts that formats state and that summaries, reports and viewers show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import Severity
from logreel.io.arrays import I64
from logreel.layout.nodes import Scalar
from logreel.lenses.base import Columns, columns, members
from logreel.log.scan import Brief

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


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
    equal  of ``xy``: whether both axes have the same scale
    """

    title: str
    series: tuple[Series, ...]
    kind: str = LINE
    group: str = ""
    y: tuple[float, float] | None = None
    first: bool = False
    equal: bool = False


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


#: Syslog levels of facts that deserve attention.
ERROR, WARNING = 3, 4


@dataclass(frozen=True, slots=True, repr=False)
class Fact(Brief):
    """One thing that is known about a recording.

    key    name for programs, unique within its section
    label  name for people
    value  number, text, bool, list or dict of these, as JSON can store it; times in ns of the log's clock
    text   the value for people, with its unit
    unit   unit of a number, or empty
    level  syslog level (``ERROR``, ``WARNING``) of a fact that deserves attention, else None
    note   where the value comes from, or what it leaves out
    times  when what it says began, in ns of the log's clock; empty: it is about the whole recording
    """

    key: str
    label: str
    value: Any
    text: str
    unit: str = ""
    level: int | None = None
    note: str = ""
    times: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fact as JSON data."""
        return {
            "key": self.key,
            "label": self.label,
            "value": self.value,
            "unit": self.unit,
            "text": self.text,
            "level": self.level,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Section(Brief):
    """Facts about one subject.

    key    name for programs, unique within a summary
    title  name for people
    """

    key: str
    title: str
    facts: tuple[Fact, ...] = ()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __getitem__(self, key: str) -> Fact:
        for fact in self.facts:
            if fact.key == key:
                return fact
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(fact.key == key for fact in self.facts)

    def as_dict(self) -> dict[str, Any]:
        """Return the section as JSON data."""
        return {
            "key": self.key,
            "title": self.title,
            "facts": [fact.as_dict() for fact in self.facts],
        }


class Topics:
    """Fields of a log's topics, as far as the log has them; each is read once."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._read: dict[tuple[str, tuple[str, ...]], Columns] = {}
        self._together: dict[str, Columns] = {}
        self._members: dict[str, list[str]] = {}

    def first(self, topics: str | Iterable[str], *fields: str) -> Columns | None:
        """Return *fields* of the first of *topics* that has messages and all of these fields, else None."""
        for name in [topics] if isinstance(topics, str) else topics:
            if self.has(name, *fields):
                return self.columns(self.log[name], *fields)
        return None

    def columns(self, ch: Channel, *fields: str) -> Columns:
        """Return *fields* of a channel in the order of time, which is that of the log if the clock never jumps."""
        key, together = (ch.topic, fields), self._together.get(ch.topic)
        if together is not None and together.values.keys() >= {*fields}:
            values = {name: together.values[name] for name in fields}
            return Columns(together.time, values, together.row, together.stamp)
        if key not in self._read:
            read = columns(ch, fields)
            if np.any(read.time[1:] < read.time[:-1]):
                rows = np.argsort(read.time, kind="stable")
                values = {name: value[rows] for name, value in read.values.items()}
                read = Columns(read.time[rows], values, read.row[rows], read.stamp[rows])
            self._read[key] = read
        return self._read[key]

    def read_together(self, topic: str, fields: Iterable[str]) -> None:
        """Read those of *fields* that *topic* has, single values, at once: later calls for some of them get these."""
        nodes = members(self.log[topic]) if self.has(topic) else {}
        names = [name for name in fields if isinstance(nodes.get(name), Scalar)]
        if len(names) > 1:
            self._together[topic] = self.columns(self.log[topic], *names)

    def rises(
        self, topic: str, fields: Iterable[str], within: Sequence[Band] | None = None
    ) -> dict[str, int]:
        """Return when flags were first true, in ns by field, for those that ever were.

        within  only count when a flag turns true in one of these intervals, not that it was true before
        """
        names = [name for name in fields if name in self.fields(topic)]
        if not names or not self.has(topic):
            return {}
        flags, first = self.columns(self.log[topic], *names), {}
        allowed = None if within is None else inside(flags.time, within)
        for name in names:
            on = np.asarray(flags.values[name]) != 0
            if allowed is not None:
                on = np.append(False, on[1:] & ~on[:-1]) & allowed
            if on.any():
                first[name] = int(flags.time[np.argmax(on)])
        return first

    def has(self, topic: str, *fields: str) -> bool:
        """Return whether *topic* has messages, and all of *fields*."""
        return (
            topic in self.log.channels and bool(len(self.log[topic])) and self._fields(topic) >= set(fields)
        )

    def fields(self, topic: str) -> list[str]:
        """Return the names of the fields of *topic*, without those inside other fields; none if there is no topic."""
        if topic not in self._members:
            self._members[topic] = list(members(self.log[topic])) if topic in self.log.channels else []
        return self._members[topic]

    def _fields(self, topic: str) -> set[str]:
        return set(self.fields(topic))

    def instances(self, topic: str, *fields: str) -> list[str]:
        """Return *topic* and its further instances, ``topic[1]`` …, that have messages and all of *fields*."""
        names = [topic, *(name for name in self.log.channels if name.startswith(f"{topic}["))]
        return [name for name in names if self.has(name, *fields)]


def inside(times: I64, bands: Iterable[Band]) -> NDArray[np.bool_]:
    """Return bool[n]: whether each time lies in one of *bands*."""
    is_inside = np.zeros(len(times), bool)
    if len(times) and bool(np.all(times[1:] >= times[:-1])):
        for band in bands:
            first, last = np.searchsorted(times, [band.start, band.end]).tolist()
            is_inside[first:last] = True
        return is_inside
    for band in bands:
        is_inside |= (times >= band.start) & (times < band.end)
    return is_inside


def total(bands: Iterable[Band]) -> int:
    """Return the sum of the lengths of *bands*, in ns."""
    return sum(band.end - band.start for band in bands)


def since_start(time: int, log: Log) -> str:
    """Return a time as ``+12.3 s`` after the start of the log."""
    tenths = round((time - (log.start or 0)) / 10**8)
    return f"{'-' if tenths < 0 else '+'}{abs(tenths) / 10:.1f} s"


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
    fields     paths of the fields of *topics* that show it; empty: the times of the messages, or no single field
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
    fields: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the detection as JSON data."""
        return {
            "detector": self.detector,
            "severity": self.severity,
            "text": self.text,
            "start_ns": self.start,
            "end_ns": self.end,
            "topics": list(self.topics),
            "fields": list(self.fields),
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
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
