"""Where it moved: tracks in metres, drawn as SVG with a metric grid; no map is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, LocalPose, Pose, Position, lenses
from logreel.lenses.charts import XY
from logreel.lenses.local import BODY, body_of
from logreel.meaning.curves import extrema, series_curve
from logreel.meaning.tracks import Track as Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.lenses.charts import Chart
    from logreel.log.log import Channel, Log

#: Metres of a degree of latitude.
DEGREE = 111_320.0
#: Points of a track, about; most tracks.
POINTS, TRACKS = 1200, 10
#: A track with less than this part of the points of the first one is left out.
SPARSE = 50
#: Size of the drawing in its own units; margins at the left and bottom for numbers.
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 720, 430, 46, 30, 14
#: Grid lines across the longer side, about.
LINES = 8


@dataclass(frozen=True, slots=True)
class Track:
    """One track: times int64[n] ns, metres to the right (east) and up (north) float64[n].

    cuts   rows before which its line is cut
    near   bool[n]: the places that the drawing must show; others lie far behind a jump
    about  how far it goes, for people
    """

    name: str
    times: I64
    right: F64
    up: F64
    cuts: I64
    near: NDArray[np.bool_]
    about: str


@dataclass(frozen=True, slots=True)
class Tracks:
    """Tracks in one plane; *right* and *up* name its directions, *origin* says where zero is."""

    tracks: Sequence[Track]
    right: str
    up: str
    origin: str

    @property
    def about(self) -> str:
        """How far the first track goes, as the summary says it."""
        return self.tracks[0].about


def find_tracks(log: Log, charts: Sequence[Chart], start: int | None, end: int | None) -> Tracks | None:
    """Return the tracks of *log*: geographic positions, else a chart of two lengths, else poses; None without any."""
    return (
        _geographic(log, start, end)
        or _of_charts(log, charts, start, end)
        or _of_actors(log, start, end)
        or _local(log, start, end)
        or _of_poses(log, start, end)
    )


def _channels(log: Log) -> Iterator[tuple[Channel, object]]:
    for ch in log.channels.values():
        if len(ch) and not ch.reserved:
            with suppress(LogError):
                for lens in lenses(ch):
                    yield ch, lens


def _geographic(log: Log, start: int | None, end: int | None) -> Tracks | None:
    found = []
    for ch, lens in _channels(log):
        if isinstance(lens, Position) and lens.number is None and not lens.of_others:
            line = Line.of_fixes(lens.fixes(ch, start, end))
            if len(line) > 1:
                found.append((ch.topic, line))
    if not found:
        return None
    found = sorted(found, key=lambda pair: -len(pair[1]))[:TRACKS]
    first = found[0][1]
    # A home position that was set a few times is no track.
    found = [pair for pair in found if len(pair[1]) * SPARSE >= len(first)]
    lat, lon = np.median(first.place[first.near, :2], axis=0).tolist()
    tracks = []
    for name, line in found:
        # Across the antimeridian, differences of longitudes stay small.
        east = ((line.place[:, 1] - lon + 180) % 360 - 180) * DEGREE * np.cos(np.radians(lat))
        tracks.append(_reduced(name, line, east, (line.place[:, 0] - lat) * DEGREE))
    where = f"{abs(lat):.6f}° {'N' if lat >= 0 else 'S'}, {abs(lon):.6f}° {'E' if lon >= 0 else 'W'}"
    return Tracks(tracks, "east", "north", where)


def _of_charts(log: Log, charts: Sequence[Chart], start: int | None, end: int | None) -> Tracks | None:
    for chart in charts:
        if chart.kind != XY or len(chart.series) != 2:
            continue
        with suppress(LogError):
            x, y = (series_curve(log, series, start, end) for series in chart.series)
            if (x.unit, y.unit) == ("m", "m") and len(x.times) == len(y.times) > 1:
                track = _in_metres(chart.series[0].topic, x.times, np.stack([x.values, y.values], axis=-1))
                names = [series.name for series in chart.series]
                return Tracks([track], names[0], names[1], f"the origin of {chart.series[0].topic}")
    return None


def _local(log: Log, start: int | None, end: int | None) -> Tracks | None:
    found = [
        (ch, lens) for ch, lens in _channels(log) if isinstance(lens, LocalPose) and len(lens.position) > 1
    ]
    # Wanted and true poses of the same vehicle are no better than its own estimate.
    for ch, lens in sorted(found, key=lambda pair: (_is_other(*pair), -len(pair[0]))):
        places = lens.track(ch, start, end)
        track = _in_metres(ch.topic, places.time, places.position)
        if len(track.times) > 1 and np.ptp(track.right) + np.ptp(track.up) > 0:
            names = ("east", "north") if lens.aerospace else ("x", "y")
            return Tracks([track], *names, f"the origin of {ch.topic}")
    return None


def _is_other(ch: Channel, lens: LocalPose) -> bool:
    return lens.aerospace and body_of(ch.topic) != BODY


def _of_poses(log: Log, start: int | None, end: int | None) -> Tracks | None:
    best: Track | None = None
    for ch, lens in _channels(log):
        if not isinstance(lens, Pose) or lens.many or lens.position is None:
            continue
        places = lens.track(ch, start, end)
        track = _in_metres(ch.topic, places.time, places.position)
        if len(track.times) > 1 and (best is None or len(track.times) > len(best.times)):
            best = track
    return Tracks([best], "x", "y", f"the frame of {best.name}") if best else None


def _of_actors(log: Log, start: int | None, end: int | None) -> Tracks | None:
    for ch, lens in _channels(log):
        if not isinstance(lens, ActorPose):
            continue
        states = lens.states(ch, start, end)
        tracks = []
        for actor in np.unique(states.id).tolist():
            times, place, _ = states.track(actor)
            about = log.actors.get(actor)
            hero = about is not None and about.attributes.get("role_name") == "hero"
            name = f"{actor} {about.description}{' (hero)' * hero}" if about else str(actor)
            track = _in_metres(name, times, place)
            if len(track.times) > 1 and np.ptp(track.right) + np.ptp(track.up) > 0.1:
                tracks.append((not hero, -len(times), track))
        if tracks:
            chosen = [track for *_, track in sorted(tracks, key=lambda one: one[:2])[:TRACKS]]
            return Tracks(chosen, "x", "y", "the origin of the map")
    return None


def _in_metres(name: str, times: I64, place: F64) -> Track:
    line = Line(times, place, is_geographic=False)
    return _reduced(name, line, line.place[:, 0], line.place[:, 1])


def _reduced(name: str, line: Line, right: F64, up: F64) -> Track:
    times, cuts, near = line.time, line.cuts, line.near
    about = line.way.text()
    if len(times) > POINTS:
        ends = [extrema(times, right, POINTS // 8), extrema(times, up, POINTS // 8)]
        rows = np.union1d(np.concatenate(ends), np.concatenate([cuts, cuts - 1])[: 2 * POINTS]).astype(
            np.int64
        )
        cuts = np.unique(np.searchsorted(rows, cuts))
        times, right, up, near = times[rows], right[rows], up[rows], near[rows]
    return Track(name, times, right, up, cuts, near, about)


@dataclass(frozen=True, slots=True)
class Frame:
    """How metres become units of the drawing."""

    scale: float
    left: float
    bottom: float
    width: float
    height: float

    @classmethod
    def around(cls, tracks: Sequence[Track]) -> Frame:
        """Return the frame that holds all tracks, with equal scales of both axes."""
        right = np.concatenate([track.right[track.near] for track in tracks])
        up = np.concatenate([track.up[track.near] for track in tracks])
        wide, high = max(float(np.ptp(right)), 1e-3), max(float(np.ptp(up)), 1e-3)
        scale = min((WIDTH - LEFT - 2 * MARGIN) / wide, (HEIGHT - BOTTOM - 2 * MARGIN) / high)
        scale = min(scale, 1000.0)
        width, height = (WIDTH - LEFT) / scale, (HEIGHT - BOTTOM) / scale
        left = (float(right.min()) + float(right.max()) - width) / 2
        bottom = (float(up.min()) + float(up.max()) - height) / 2
        return cls(scale, left, bottom, width, height)

    def x(self, right: F64) -> F64:
        """Return horizontal places in the drawing."""
        return LEFT + (right - self.left) * self.scale

    def y(self, up: F64) -> F64:
        """Return vertical places in the drawing."""
        return HEIGHT - BOTTOM - (up - self.bottom) * self.scale


def grid_step(length: float) -> float:
    """Return the distance of grid lines for *length* metres: 1, 2 or 5 times a power of ten."""
    rough = length / LINES
    power = 10.0 ** np.floor(np.log10(rough))
    return float(next(power * n for n in (1, 2, 5, 10) if power * n >= rough))


def svg(tracks: Tracks, frame: Frame) -> str:
    """Return the drawing of *tracks*; colours come from the classes ``t0`` … of the page."""
    out = [
        f'<svg class="track" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Track of {escape(tracks.tracks[0].name, True)}, {escape(tracks.about, True)}">'
    ]
    out += _grid(frame, tracks)
    for number, track in reversed(list(enumerate(tracks.tracks))):
        x, y = frame.x(track.right), frame.y(track.up)
        for first, last in pairwise([0, *track.cuts.tolist(), len(x)]):
            pairs = zip(x[first:last].tolist(), y[first:last].tolist(), strict=True)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
            out.append(f'<polyline class="t{number % 7}" points="{points}"/>')
        out.append(f'<circle class="start t{number % 7}" cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="4"/>')
        out.append(
            f'<rect class="end t{number % 7}" x="{x[-1] - 4:.1f}" y="{y[-1] - 4:.1f}" width="8" height="8"/>'
        )
    out.append('<circle id="here" r="6" cx="-99" cy="-99"/></svg>')
    return "".join(out)


def _grid(frame: Frame, tracks: Tracks) -> Iterator[str]:
    step = grid_step(frame.width)
    digits = max(0, -int(np.floor(np.log10(step))))
    low, high = HEIGHT - BOTTOM, WIDTH
    for at in np.arange(np.ceil(frame.left / step), (frame.left + frame.width) / step) * step:
        x = float(frame.x(at))
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{low}"/>'
        yield f'<text x="{x:.1f}" y="{low + 14}" text-anchor="middle">{at + 0:.{digits}f}</text>'
    for at in np.arange(np.ceil(frame.bottom / step), (frame.bottom + frame.height) / step) * step:
        y = float(frame.y(at))
        yield f'<line class="grid" x1="{LEFT}" x2="{high}" y1="{y:.1f}" y2="{y:.1f}"/>'
        if 8 < y < low - 4:
            yield f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{at + 0:.{digits}f}</text>'
    yield f'<text x="{high - 4}" y="{low + 27}" text-anchor="end">{escape(tracks.right)} [m]</text>'
    yield f'<text x="4" y="11">{escape(tracks.up)} [m]</text>'
