"""Tracks for the map: geographic positions, and positions in metres in a local frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, NotFoundError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, LocalPose, Pose, Position, Transform
from logreel.meaning.channels import lenses_of
from logreel.meaning.frames import Frames, plain_name
from logreel.meaning.tracks import GAP_NS
from logreel.meaning.tracks import Track as Line

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Points of one track at most; of longer ones, those that lie in the same cell of a grid are left out.
POINTS = 50_000
#: Cells of that grid along the longer side, halved until few enough points are left.
_CELLS = 1 << 15
#: Tracks of actors, and of frames, that are offered at most, and metres that they must cover.
MOVING, LEAST = 40, 1.0

Read = Callable[[], tuple[I64, F64]]


@dataclass(frozen=True, slots=True)
class TrackSource:
    """A track that a log can show.

    id      name of it in requests
    topic   channel that it is in
    kind    ``geo``: latitude, longitude (degrees) and altitude (m); ``local``: x, y, z (m)
    label   name for people
    count   number of messages of its channel
    frame   name of the reference frame of a local track; empty if unknown
    shown   whether it is shown unless the user chooses
    read    returns int64[k] ns and float64[k, 3], sorted by time, unknown positions left out
    """

    id: str
    topic: str
    kind: str
    label: str
    count: int
    frame: str
    read: Read
    shown: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """A track that has been read."""

    rows: tuple[I64, F64]

    def __call__(self) -> tuple[I64, F64]:
        return self.rows


@dataclass(frozen=True, slots=True)
class Track:
    """Points of a track, at most ``POINTS``; a row of NaN where the line is cut.

    time      float64[k]     ns
    place     float64[k, 3]  as TrackSource.kind says
    colour    float64[k]     the value of a field at each point, or None
    total     number of positions in the log
    about     how far it goes, as the summary says it
    near      least and greatest place of the part that a drawing shows at first; None: all of it
    """

    time: F64
    place: F64
    colour: F64 | None
    total: int
    about: str
    near: tuple[list[float], list[float]] | None


def track_sources(log: Log) -> list[TrackSource]:
    """Return the tracks that *log* can show, the most useful first; an unusable channel has none."""
    found: list[TrackSource] = []
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            try:
                found += _sources_of(ch, lens)
            except LogError:
                # What cannot be decoded is told by the log's problems.
                continue
    # Where a state is estimated from others, it is logged more often than what it is made of.
    found.sort(key=lambda one: (one.kind != "geo", -one.count))
    first = {one.kind: one for one in reversed(found)}
    return [replace(one, shown=_alike(log, one, first[one.kind])) for one in found]


def _alike(log: Log, one: TrackSource, first: TrackSource) -> bool:
    """Return whether a track is shown with the *first* of its kind: local ones of the same type of message are."""
    if one.kind == "geo":
        return one is first
    return log.channels[one.topic].schema.name == log.channels[first.topic].schema.name


def _sources_of(ch: Channel, lens: object) -> Iterator[TrackSource]:
    if isinstance(lens, Position):
        yield TrackSource(ch.topic, ch.topic, "geo", ch.topic, len(ch), "", lambda: _geographic(ch, lens))
    elif isinstance(lens, LocalPose) and lens.position:
        yield TrackSource(ch.topic, ch.topic, "local", ch.topic, len(ch), "", lambda: _local(ch, lens))
    elif isinstance(lens, Pose) and lens.position and not lens.many:
        frame = _first_frame(ch, lens)
        yield TrackSource(ch.topic, ch.topic, "local", ch.topic, len(ch), frame, lambda: _local(ch, lens))
    elif isinstance(lens, Transform):
        yield from _frame_sources(ch)
    elif isinstance(lens, ActorPose):
        yield from _actor_sources(ch, lens)


def _first_frame(ch: Channel, lens: Pose) -> str:
    first = ch.start
    if lens.frame is None or first is None:
        return ""
    names = lens.track(ch, first, first + 1).frame
    return plain_name(names[0]) if names is not None and len(names) else ""


def _geographic(ch: Channel, lens: Position) -> tuple[I64, F64]:
    line = Line.of_fixes(lens.fixes(ch))
    return line.time, line.place


def _local(ch: Channel, lens: LocalPose | Pose) -> tuple[I64, F64]:
    found = lens.track(ch)
    known = np.isfinite(found.position).all(axis=1)
    time, place = spread(found.time)[known], found.position[known]
    order = np.argsort(time, kind="stable")
    return time[order], place[order]


def spread(time: I64) -> I64:
    """Return times (ns) of records: those of one message, which are equal, are spread evenly up to the next message."""
    first = np.flatnonzero(np.r_[True, time[1:] != time[:-1]])
    if len(time) == 0 or len(first) == len(time):
        return time
    count = np.diff(np.append(first, len(time)))
    begin = time[first]
    step = np.diff(begin, append=begin[-1])
    # The last message is taken to last as long as the one before; gaps and jumps back are not bridged.
    step[-1] = step[-2] if len(step) > 1 else 0
    step = np.where((step > 0) & (step < GAP_NS), step, 0)
    inside = np.arange(len(time)) - np.repeat(first, count)
    moved: I64 = time + np.repeat(step, count) * inside // np.repeat(count, count)
    return moved


def _frame_sources(ch: Channel) -> Iterator[TrackSource]:
    """Yield the frames that move relative to their parents, by how far."""
    frames = Frames.of(ch.log)
    if frames.whole is None:
        return
    moving = []
    for edge in frames.whole:
        if ch.topic not in edge.topics:
            continue
        wide = _width(edge.position)
        if wide >= LEAST:
            moving.append((wide, edge))
    for _, edge in sorted(moving, key=lambda pair: -pair[0])[:MOVING]:
        name = f"{edge.parents[-1]} → {edge.child}"
        place = (edge.time, edge.position)
        yield TrackSource(
            f"{ch.topic} {name}",
            ch.topic,
            "local",
            name,
            len(edge.time),
            edge.parents[-1],
            _Known(place),
        )


def _actor_sources(ch: Channel, lens: ActorPose) -> Iterator[TrackSource]:
    """Yield the actors that move, vehicles first, by how far."""
    found = lens.states(ch)
    order = np.lexsort((found.time, found.id))
    number = found.id[order]
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    moving = []
    for first, last in pairwise(edges):
        if last > first:
            rows = order[first:last]
            wide = _width(found.position[rows])
            if wide >= LEAST:
                moving.append((found.kind[rows[0]] != "vehicle", -wide, rows))
    for _, _, rows in sorted(moving, key=lambda one: one[:2])[:MOVING]:
        actor = int(found.id[rows[0]])
        label = f"{found.model[rows[0]] or found.kind[rows[0]] or 'actor'} {actor}"
        place = (found.time[rows], found.position[rows])
        yield TrackSource(f"{ch.topic} {actor}", ch.topic, "local", label, len(rows), "", _Known(place))


def _width(place: F64) -> float:
    good = place[np.isfinite(place).all(axis=1)]
    return float(np.linalg.norm(good.max(0) - good.min(0))) if len(good) else 0.0


def read_track(
    log: Log, source: TrackSource, colour: tuple[str, str] | None = None, points: int = POINTS
) -> Track:
    """Return the points of *source*; *colour* is a topic and a field whose value at each point is added.

    Raises NotFoundError for an unknown topic or field.
    """
    line = Line(*source.read(), source.kind == "geo")
    keep = thinned(line.place, points)
    time, place = line.time[keep], line.place[keep]
    value = None if colour is None else values_at(log.channels[colour[0]], colour[1], time)
    cuts = np.unique(np.searchsorted(keep, line.cuts))
    at = time.astype(np.float64)
    if len(cuts):
        at, place = np.insert(at, cuts, np.nan), np.insert(place, cuts, np.nan, axis=0)
        value = None if value is None else np.insert(value, cuts, np.nan)
    near = line.place[line.near]
    ends = None if len(near) == len(line) else (near.min(0).tolist(), near.max(0).tolist())
    return Track(at, place, value, len(line), line.way.text(), ends)


def thinned(place: F64, points: int) -> I64:
    """Return the rows of *place* that draw the same line: all, or the first and last in each cell of a grid."""
    rows = np.arange(len(place), dtype=np.int64)
    cells = _CELLS
    flat = place[:, :2] if place.shape[1] > 1 else place
    while len(rows) > points and cells >= 1:
        low, high = flat.min(0), flat.max(0)
        side = max(float((high - low).max()), 1e-12) / cells
        cell = np.floor((flat - low) / side).astype(np.int64)
        changed = (np.diff(cell, axis=0) != 0).any(axis=1)
        kept = np.flatnonzero(np.r_[True, changed] | np.r_[changed, True])
        rows = kept.astype(np.int64)
        cells //= 2
    if len(rows) > points:
        rows = rows[np.linspace(0, len(rows) - 1, points).astype(np.int64)]
    return rows


def values_at(ch: Channel, field: str, time: I64) -> F64:
    """Return float64[k]: the last value of *field* at or before each *time*; NaN before the first one.

    Raises NotFoundError for an unknown field, and for one that is no number.
    """
    values = np.ma.filled(np.ma.asarray(ch[field]), 0) if len(ch) else np.zeros(0)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise NotFoundError("number", field, ch.fields, path=ch.log.name)
    when: NDArray[np.int64] = ch["time"] if len(values) else np.zeros(0, np.int64)
    order = np.argsort(when, kind="stable")
    at = np.searchsorted(when[order], time, side="right") - 1
    out = np.full(len(time), np.nan)
    out[at >= 0] = values[order][at[at >= 0]]
    return out
