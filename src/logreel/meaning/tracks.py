"""Tracks of positions: which a log has, where they jump, where their lines are cut, and how long they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, NotFoundError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, LocalPose, Pose, Position, Transform, lenses_of
from logreel.log.times import SECOND
from logreel.meaning.frames import LogFrames, plain_name
from logreel.meaning.gaps import gap_limit, median_of, steps_of

if TYPE_CHECKING:
    from logreel.lenses import ActorStates, Fixes
    from logreel.log.log import Channel, Log

#: A step is a jump if it is longer than this, in m, faster than this, in m/s,
JUMP_M, JUMP_SPEED = 100.0, 340.0
#: and faster than this number of usual steps, which are fast in tracks of rockets and satellites.
JUMP_FACTOR = 10
#: A line is cut at gaps that are longer than this, in ns; records of one message are not spread over longer ones.
CUT_NS = 10 * SECOND
#: Mean radius of the Earth, and length of a degree of latitude, m.
EARTH = 6_371_008.8
DEGREE_M = EARTH * np.pi / 180
#: A robot stays where it is if all its positions are within this of the middle one, in m, by satellites or otherwise,
STILL_FIX, STILL_POSE = 10.0, 0.5
#: and the way between means of this number of positions is at most this share of the way between positions.
BLOCK, SHARE = 10, 0.5
#: Positions behind a jump are near if they are within this number of extents of the longest part; its least extent, m.
NEAR, LEAST_EXTENT = 10, 50.0
#: Jumps of a track that are marked in a drawing, the longest ones.
MARKED = 50
#: Points of a drawn track at most; of longer ones, those that lie in the same cell of a grid are left out.
POINTS = 50_000
#: Cells of that grid along the longer side, halved until few enough points are left.
_CELLS = 1 << 15
#: Tracks of actors, and of frames, that are offered at most, and metres that they must cover.
MOVING, LEAST = 40, 1.0


@dataclass(frozen=True, slots=True)
class PositionJump:
    """A step that no vehicle can make: from *start* to *end* (ns), *metres* long."""

    start: int
    end: int
    metres: float


@dataclass(frozen=True, slots=True)
class Way:
    """How far a track goes, in m.

    count   number of positions
    length  sum of the steps, without jumps; errors of positions of a robot that stands still add up, too
    extent  greatest distance from the middle position
    still   whether the robot stays where it is
    jumps   steps that do not count into *length*, longest first
    """

    count: int
    length: float
    extent: float
    still: bool
    jumps: tuple[PositionJump, ...]

    @property
    def distance(self) -> float:
        """Length of the way of the robot: 0 if it stays where it is."""
        return 0.0 if self.still else self.length

    def text(self) -> str:
        """Return the way for people: ``1.11 km in 101 positions``."""
        count = f"{self.count} position{'s' * (self.count != 1)}"
        if self.still:
            return f"stays within {length_text(self.extent)}, in {count}"
        way = f"{length_text(self.length)} in {count}"
        if not self.jumps:
            return way
        farthest = length_text(self.jumps[0].metres)
        if len(self.jumps) == 1:
            return f"{way}, without a jump of {farthest}"
        return f"{way}, without {len(self.jumps)} jumps of up to {farthest}"


class Track:
    """The known positions of one channel, robot or frame, in the order of time.

    time           int64[k]  ns
    place          float64[k, 3]  latitude and longitude in degrees and altitude in m; or x, y, z in m
    is_geographic  which of both
    """

    def __init__(self, time: I64, place: F64, is_geographic: bool) -> None:
        known = np.isfinite(place[:, : 2 if is_geographic else None]).all(axis=1)
        time, place = time[known], place[known]
        order = np.argsort(time, kind="stable")
        self.time, self.place, self.is_geographic = time[order], place[order], is_geographic
        self.steps = self._steps()
        self.jumps = jumps(self.time, self.steps)

    @classmethod
    def of_fixes(cls, fixes: Fixes) -> Track:
        """Return the track of the valid ones of *fixes*."""
        good = fixes.take(fixes.valid)
        return cls(good.time, np.stack([good.latitude, good.longitude, good.altitude], axis=-1), True)

    def __len__(self) -> int:
        return len(self.time)

    def _steps(self) -> F64:
        if self.is_geographic:
            return distances(self.place[:, 0], self.place[:, 1])
        return np.asarray(np.sqrt((np.diff(self.place, axis=0) ** 2).sum(axis=1)))

    @property
    def cuts(self) -> I64:
        """int64[c]: rows before which a line is cut: at jumps, long gaps, and where it crosses 180° of longitude."""
        periods = steps_of(self.time)
        apart = self.jumps | (periods > gap_limit(periods, CUT_NS))
        if self.is_geographic:
            apart |= np.abs(np.diff(self.place[:, 1])) > 180
        return np.flatnonzero(apart) + 1

    @property
    def near(self) -> NDArray[np.bool_]:
        """bool[k]: the positions that a drawing shows: without those that a jump puts far away from most others."""
        if not self.jumps.any():
            return np.ones(len(self), np.bool_)
        part = np.concatenate([[0], np.cumsum(self.jumps)])
        main = part == np.bincount(part).argmax()
        away = self._away(np.median(self.place[main], axis=0))
        is_near: NDArray[np.bool_] = away <= NEAR * max(float(away[main].max()), LEAST_EXTENT)
        return is_near

    def _away(self, middle: F64) -> F64:
        """Return float64[k]: distances from a place in m."""
        if not self.is_geographic:
            return np.asarray(np.sqrt(((self.place - middle) ** 2).sum(axis=1)))
        return _great_circle(
            self.place[:, 0], self.place[:, 1], np.full(len(self), middle[0]), np.full(len(self), middle[1])
        )

    def between(self, start: int | None, end: int | None) -> Track:
        """Return the part with start <= time < end (ns)."""
        first, last = (
            None if time is None else int(np.searchsorted(self.time, time)) for time in (start, end)
        )
        if first is None and last is None:
            return self
        return Track(self.time[first:last], self.place[first:last], self.is_geographic)

    def in_plane(self, latitude: float, longitude: float) -> tuple[F64, F64]:
        """Return float64[k] metres to the east and to the north of a position in degrees; for geographic tracks."""
        # Across the antimeridian, differences of longitudes stay small.
        east = ((self.place[:, 1] - longitude + 180) % 360 - 180) * DEGREE_M * np.cos(np.radians(latitude))
        return east, (self.place[:, 0] - latitude) * DEGREE_M

    def marked_jumps(self, most: int) -> list[tuple[PositionJump, list[float], list[float]]]:
        """Return the longest jumps by time, at most this number, each with the places before and after it."""
        rows = np.flatnonzero(self.jumps)
        rows = np.sort(rows[np.argsort(-self.steps[rows], kind="stable")[:most]])
        return [
            (
                PositionJump(int(self.time[n]), int(self.time[n + 1]), float(self.steps[n])),
                self.place[n].tolist(),
                self.place[n + 1].tolist(),
            )
            for n in rows.tolist()
        ]

    def thinned(self, points: int) -> tuple[I64, I64]:
        """Return the rows that draw the same line, about *points* at most, and those of them before which it is cut."""
        rows = thinned(self.place, points, self.near)
        return rows, np.unique(np.searchsorted(rows, self.cuts))

    @property
    def way(self) -> Way:
        """How far the track goes."""
        if not len(self):
            return Way(0, 0.0, 0.0, True, ())
        length = float(self.steps[~self.jumps].sum())
        away = float(self._away(np.median(self.place, axis=0)).max())
        means = _means(self.place)
        coarse = (
            distances(means[:, 0], means[:, 1])
            if self.is_geographic
            else np.sqrt((np.diff(means, axis=0) ** 2).sum(axis=1))
        )
        bound = STILL_FIX if self.is_geographic else STILL_POSE
        still = away < bound and float(coarse.sum()) < SHARE * length
        rows = np.flatnonzero(self.jumps)
        rows = rows[np.argsort(-self.steps[rows], kind="stable")]
        told = (
            PositionJump(int(self.time[n]), int(self.time[n + 1]), float(self.steps[n]))
            for n in rows.tolist()
        )
        return Way(len(self), length, away, still, tuple(told))


def jumps(time: I64, steps: F64) -> NDArray[np.bool_]:
    """Return bool[k - 1]: the steps that no vehicle can make.

    time   int64[k]        ns, in order
    steps  float64[k - 1]  m between positions that follow each other
    """
    periods = steps_of(time)
    # Positions that are logged together have not been measured together.
    seconds = np.maximum(periods, max(median_of(periods), 1)) / SECOND
    speed = steps / seconds
    usual = float(np.median(speed)) if len(speed) else 0.0
    is_jump: NDArray[np.bool_] = (steps > JUMP_M) & (speed > max(JUMP_SPEED, JUMP_FACTOR * usual))
    return is_jump


def _means(values: F64) -> F64:
    """Return the means of BLOCK rows each, or the rows themselves if there are few."""
    full = len(values) // BLOCK * BLOCK
    if full < 2 * BLOCK:
        return values
    return np.asarray(values[:full].reshape(-1, BLOCK, *values.shape[1:]).mean(axis=1))


def distances(latitude: F64, longitude: F64) -> F64:
    """Return float64[n - 1]: great-circle distances in m between positions in degrees that follow each other."""
    return _great_circle(latitude[1:], longitude[1:], latitude[:-1], longitude[:-1])


def _great_circle(latitude: F64, longitude: F64, to_latitude: F64, to_longitude: F64) -> F64:
    """Return float64[n]: great-circle distances in m between pairs of positions in degrees."""
    lat, lon, lat2, lon2 = map(np.radians, (latitude, longitude, to_latitude, to_longitude))
    half = np.sin((lat - lat2) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon - lon2) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1))))


def length_text(metres: float) -> str:
    """Return a length as text: ``35.2 m``, ``1.23 km``, ``1118 km``."""
    if metres < 1000:
        return f"{metres:.1f} m"
    return f"{metres / 1000:.2f} km" if metres < 100_000 else f"{metres / 1000:.0f} km"


def valid_fixes(fixes: Fixes) -> tuple[Fixes, dict[str, int]]:
    """Return the valid ones of *fixes*, sorted by time, and the number of the others by reason."""
    good, left_out = np.ones(len(fixes), np.bool_), dict[str, int]()
    for reason, rows in fixes.faults().items():
        left_out[reason] = int(np.count_nonzero(rows & good))
        good &= ~rows
    valid = fixes.take(good)
    return valid.take(np.argsort(valid.time, kind="stable")), left_out


def segments(fixes: Fixes) -> Iterator[Fixes]:
    """Yield the parts of valid *fixes*, sorted by time: cut where all lines of tracks are."""
    for first, last in pairwise([0, *Track.of_fixes(fixes).cuts.tolist(), len(fixes)]):
        yield fixes.take(slice(first, last))


def is_of_robot(lens: object) -> bool:
    """Return whether *lens* reads positions of the robot: not those of its pictures, and of other vehicles."""
    return not isinstance(lens, Position) or (lens.number is None and not lens.of_others)


def track_of(ch: Channel, lens: object, start: int | None = None, end: int | None = None) -> Track | None:
    """Return the track that *lens* reads of *ch*, start <= time < end (ns); None if it reads no single line.

    Raises LogError if the channel cannot be decoded.
    """
    return _read(ch, lens, start, end) if _is_line(lens) else None


def _is_line(lens: object) -> TypeGuard[Position | Pose | LocalPose]:
    if isinstance(lens, Pose):
        return lens.position is not None and not lens.repeated
    return isinstance(lens, Position) or (isinstance(lens, LocalPose) and bool(lens.position))


def _read(ch: Channel, lens: Position | Pose | LocalPose, start: int | None, end: int | None) -> Track:
    if isinstance(lens, Position):
        return Track.of_fixes(lens.fixes(ch, start, end))
    places = lens.track(ch, start, end)
    return Track(spread(places.time), places.position, is_geographic=False)


def actor_tracks(states: ActorStates) -> Iterator[tuple[I64, Track]]:
    """Yield the rows and the track of each actor that moves."""
    order = np.lexsort((states.time, states.id))
    edges = np.flatnonzero(np.diff(states.id[order])) + 1
    for rows in np.split(order, edges) if len(order) else []:
        if width(states.position[rows]) >= LEAST:
            yield rows, Track(states.time[rows], states.position[rows], is_geographic=False)


def width(place: F64) -> float:
    """Return the diagonal in metres of the box around positions, float64[k, 3]; 0 if none is known."""
    known = place[np.isfinite(place).all(axis=1)]
    return float(np.linalg.norm(known.max(0) - known.min(0))) if len(known) else 0.0


#: Reads a track between two times in ns; None: no bound.
ReadTrack = Callable[[int | None, int | None], Track]


@dataclass(frozen=True, slots=True)
class TrackSource:
    """A track that a log can show.

    id      name of it in requests
    topic   channel that it is in
    kind    ``geo``: latitude, longitude (degrees) and altitude (m); ``local``: x, y, z (m)
    label   name for people
    count   number of messages of its channel
    frame   name of the reference frame of a local track; empty if unknown
    load    returns the track between two times
    shown   whether it is shown unless the user chooses
    """

    id: str
    topic: str
    kind: str
    label: str
    count: int
    frame: str
    load: ReadTrack
    shown: bool = False

    def read(self, start: int | None = None, end: int | None = None) -> Track:
        """Return the track with start <= time < end (ns)."""
        return self.load(start, end)


@dataclass(frozen=True, slots=True)
class TrackPoints:
    """Points of a track that draw its line; a row of NaN where the line is cut.

    time      float64[k]     ns
    place     float64[k, 3]  as TrackSource.kind says
    colour    float64[k]     the value of a field at each point, or None
    total     number of positions in the log
    about     how far it goes, as the summary says it
    near      least and greatest place of the part that a drawing shows at first; None: all of it
    jumps     the longest steps that no vehicle can make, each with the places before and after it
    """

    time: F64
    place: F64
    colour: F64 | None
    total: int
    about: str
    near: tuple[list[float], list[float]] | None
    jumps: Sequence[tuple[PositionJump, list[float], list[float]]] = ()


def track_sources(log: Log) -> list[TrackSource]:
    """Return the tracks that *log* can show, the most useful first; an unusable channel has none."""
    sources: list[TrackSource] = []
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            try:
                sources += _sources_of(ch, lens)
            except LogError:
                # What cannot be decoded is told by the log's problems.
                continue
    # Where a state is estimated from others, it is logged more often than what it is made of.
    sources.sort(key=lambda source: (source.kind != "geo", -source.count))
    first = {source.kind: source for source in reversed(sources)}
    return [replace(source, shown=_alike(log, source, first[source.kind])) for source in sources]


def _alike(log: Log, source: TrackSource, first: TrackSource) -> bool:
    """Return whether a track is shown with the *first* of its kind: local ones of the same type of message are."""
    if source.kind == "geo":
        return source is first
    return log.channels[source.topic].schema.name == log.channels[first.topic].schema.name


def _sources_of(ch: Channel, lens: object) -> Iterator[TrackSource]:
    if isinstance(lens, Transform):
        yield from _frame_sources(ch)
    elif isinstance(lens, ActorPose):
        yield from _actor_sources(ch, lens)
    elif _is_line(lens):
        coordinates = "geo" if isinstance(lens, Position) else "local"
        frame = _first_frame(ch, lens) if isinstance(lens, Pose) else ""
        yield TrackSource(ch.topic, ch.topic, coordinates, ch.topic, len(ch), frame, partial(_read, ch, lens))


def _first_frame(ch: Channel, lens: Pose) -> str:
    first = ch.start
    if lens.frame is None or first is None:
        return ""
    names = lens.track(ch, first, first + 1).frame
    return plain_name(names[0]) if names is not None and len(names) else ""


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
    step = np.where((step > 0) & (step < CUT_NS), step, 0)
    inside = np.arange(len(time)) - np.repeat(first, count)
    moved: I64 = time + np.repeat(step, count) * inside // np.repeat(count, count)
    return moved


def _frame_sources(ch: Channel) -> Iterator[TrackSource]:
    """Yield the frames that move relative to their parents, by how far."""
    links = LogFrames.of(ch.log).links or []
    moving = [(width(link.position), link) for link in links if ch.topic in link.topics]
    moving = [pair for pair in moving if pair[0] >= LEAST]
    for _, link in sorted(moving, key=lambda pair: -pair[0])[:MOVING]:
        parent = link.parents[-1]
        name = f"{parent} → {link.child}"
        track = Track(link.time, link.position, is_geographic=False)
        yield TrackSource(f"{ch.topic} {name}", ch.topic, "local", name, len(link), parent, track.between)


def _actor_sources(ch: Channel, lens: ActorPose) -> Iterator[TrackSource]:
    """Yield the actors that move, vehicles first, by how far."""
    states = lens.states(ch)
    moving = [
        ((states.kind[rows[0]] != "vehicle", -width(track.place)), rows, track)
        for rows, track in actor_tracks(states)
    ]
    for _, rows, track in sorted(moving, key=lambda item: item[0])[:MOVING]:
        row = rows[0]
        actor = int(states.id[row])
        label = f"{states.model[row] or states.kind[row] or 'actor'} {actor}"
        yield TrackSource(f"{ch.topic} {actor}", ch.topic, "local", label, len(rows), "", track.between)


def read_track(
    log: Log, source: TrackSource, colour: tuple[str, str] | None = None, points: int = POINTS
) -> TrackPoints:
    """Return the points of *source*; *colour* is a topic and a field whose value at each point is added.

    Raises NotFoundError for an unknown topic or field.
    """
    track = source.read()
    rows, cuts = track.thinned(points)
    time, place = track.time[rows], track.place[rows]
    value = None if colour is None else values_at(log.channels[colour[0]], colour[1], time)
    at = time.astype(np.float64)
    if len(cuts):
        at, place = np.insert(at, cuts, np.nan), np.insert(place, cuts, np.nan, axis=0)
        value = None if value is None else np.insert(value, cuts, np.nan)
    near = track.place[track.near]
    ends = None if len(near) == len(track) else (near.min(0).tolist(), near.max(0).tolist())
    return TrackPoints(at, place, value, len(track), track.way.text(), ends, track.marked_jumps(MARKED))


def thinned(place: F64, points: int, near: NDArray[np.bool_] | None = None) -> I64:
    """Return the rows of *place* that draw the same line: all, or the first and last in each cell of a grid.

    near  bool[k]: rows that the grid is made for, so that a place far away does not make it coarse; None: all
    """
    rows = np.arange(len(place), dtype=np.int64)
    cells = _CELLS
    flat = place[:, :2] if place.shape[1] > 1 else place
    inner = flat if near is None or not near.any() else flat[near]
    while len(rows) > points and cells >= 1:
        low, high = inner.min(0), inner.max(0)
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
