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
from logreel.lenses import ActorPose, LocalPose, Pose, Position, lenses_of
from logreel.lenses.facts import XY
from logreel.lenses.motion import BODY, body_of
from logreel.meaning.curves import series_curve
from logreel.meaning.tracks import Track, actor_tracks, is_of_robot, track_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.lenses.facts import Chart
    from logreel.log.log import Channel, Log

#: Points of a track at most; most tracks.
POINTS, TRACKS = 1200, 10
#: A track with less than this part of the points of the first one is left out.
SPARSE = 50
#: Size of the drawing in its own units; margins at the left and bottom for numbers.
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 720, 430, 46, 30, 14
#: Grid lines across the longer side, about.
LINES = 8


@dataclass(frozen=True, slots=True)
class DrawnTrack:
    """One track: times int64[n] ns, metres to the right (east) and up (north) float64[n].

    cuts   rows before which its line is cut
    near   bool[n]: the places that the drawing must show; others lie far behind a jump
    about  how far it goes, for people
    jumps  rows before which the line is cut because no vehicle can get there
    """

    name: str
    times: I64
    right: F64
    up: F64
    cuts: I64
    near: NDArray[np.bool_]
    about: str
    jumps: I64

    @classmethod
    def of(cls, name: str, track: Track, origin: tuple[float, float] | None = None) -> DrawnTrack:
        """Return *track* with at most POINTS points; *origin* in degrees for a geographic one."""
        right, up = track.in_plane(*origin) if origin else (track.place[:, 0], track.place[:, 1])
        rows, cuts = track.thinned(POINTS)
        jumped = np.flatnonzero(track.jumps) + 1
        jumps = np.intersect1d(cuts, np.searchsorted(rows, jumped))
        near = track.near[rows]
        return cls(name, track.time[rows], right[rows], up[rows], cuts, near, track.way.text(), jumps)

    @property
    def moves(self) -> bool:
        """Whether it has positions in different places."""
        return len(self.times) > 1 and bool(np.ptp(self.right) + np.ptp(self.up) > 0)


@dataclass(frozen=True, slots=True)
class DrawnTracks:
    """Tracks in one plane; *right* and *up* name its directions, *origin* says where zero is."""

    tracks: Sequence[DrawnTrack]
    right: str
    up: str
    origin: str

    @property
    def about(self) -> str:
        """How far the first track goes, as the summary says it."""
        return self.tracks[0].about


def find_tracks(log: Log, charts: Sequence[Chart], start: int | None, end: int | None) -> DrawnTracks | None:
    """Return the tracks of *log*: geographic positions, else a chart of two lengths, else poses; None without any."""
    return (
        _geographic(log, start, end)
        or _of_charts(log, charts, start, end)
        or _of_actors(log, start, end)
        or _local(log, start, end)
        or _of_poses(log, start, end)
    )


def _lines(
    log: Log, lens_type: type[Position | Pose], start: int | None, end: int | None
) -> Iterator[tuple[str, Track]]:
    """Yield the tracks of the robot that lenses of a type read, with more than one position; those of damage not."""
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            with suppress(LogError):
                if isinstance(lens, lens_type) and is_of_robot(lens):
                    track = track_of(ch, lens, start, end)
                    if track is not None and len(track) > 1:
                        yield ch.topic, track


def _geographic(log: Log, start: int | None, end: int | None) -> DrawnTracks | None:
    named = sorted(_lines(log, Position, start, end), key=lambda pair: -len(pair[1]))[:TRACKS]
    if not named:
        return None
    first = named[0][1]
    lat, lon = np.median(first.place[first.near, :2], axis=0).tolist()
    # A home position that was set a few times is no track.
    tracks = [
        DrawnTrack.of(name, track, (lat, lon)) for name, track in named if len(track) * SPARSE >= len(first)
    ]
    where = f"{abs(lat):.6f}° {'N' if lat >= 0 else 'S'}, {abs(lon):.6f}° {'E' if lon >= 0 else 'W'}"
    return DrawnTracks(tracks, "east", "north", where)


def _of_charts(log: Log, charts: Sequence[Chart], start: int | None, end: int | None) -> DrawnTracks | None:
    for chart in charts:
        if chart.kind != XY or len(chart.series) != 2:
            continue
        with suppress(LogError):
            x, y = (series_curve(log, series, start, end) for series in chart.series)
            if (x.unit, y.unit) == ("m", "m") and len(x.times) == len(y.times) > 1:
                track = Track(x.times, np.stack([x.values, y.values], axis=-1), is_geographic=False)
                names = [series.name for series in chart.series]
                topic = chart.series[0].topic
                return DrawnTracks(
                    [DrawnTrack.of(topic, track)], names[0], names[1], f"the origin of {topic}"
                )
    return None


def _local(log: Log, start: int | None, end: int | None) -> DrawnTracks | None:
    vehicles = [
        (ch, lens)
        for ch, lenses in lenses_of(log)
        for lens in lenses
        if isinstance(lens, LocalPose) and len(lens.position) > 1
    ]
    # Wanted and true poses of the same vehicle are no better than its own estimate.
    for ch, lens in sorted(vehicles, key=lambda pair: (_is_other(*pair), -len(pair[0]))):
        track = track_of(ch, lens, start, end)
        if track is not None and (drawn := DrawnTrack.of(ch.topic, track)).moves:
            names = ("east", "north") if lens.aerospace else ("x", "y")
            return DrawnTracks([drawn], *names, f"the origin of {ch.topic}")
    return None


def _is_other(ch: Channel, lens: LocalPose) -> bool:
    return lens.aerospace and body_of(ch.topic) != BODY


def _of_poses(log: Log, start: int | None, end: int | None) -> DrawnTracks | None:
    named = max(_lines(log, Pose, start, end), key=lambda pair: len(pair[1]), default=None)
    return DrawnTracks([DrawnTrack.of(*named)], "x", "y", f"the frame of {named[0]}") if named else None


def _of_actors(log: Log, start: int | None, end: int | None) -> DrawnTracks | None:
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            if not isinstance(lens, ActorPose):
                continue
            states = lens.states(ch, start, end)
            tracks = []
            for rows, track in actor_tracks(states):
                actor = int(states.id[rows[0]])
                about = log.actors.get(actor)
                hero = about is not None and about.attributes.get("role_name") == "hero"
                name = f"{actor} {about.description}{' (hero)' * hero}" if about else str(actor)
                tracks.append((not hero, -len(track), name, track))
            if tracks:
                chosen = sorted(tracks, key=lambda item: item[:2])[:TRACKS]
                drawn = [DrawnTrack.of(name, track) for *_, name, track in chosen]
                return DrawnTracks(drawn, "x", "y", "the origin of the map")
    return None


@dataclass(frozen=True, slots=True)
class Drawing:
    """How metres become units of the drawing."""

    scale: float
    left: float
    bottom: float
    width: float
    height: float

    @classmethod
    def around(cls, tracks: Sequence[DrawnTrack]) -> Drawing:
        """Return the drawing that holds all tracks, with equal scales of both axes."""
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


def svg(tracks: DrawnTracks, frame: Drawing) -> str:
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
        out += _marks(x, y, track.jumps)
        out.append(f'<circle class="start t{number % 7}" cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="4"/>')
        out.append(
            f'<rect class="end t{number % 7}" x="{x[-1] - 4:.1f}" y="{y[-1] - 4:.1f}" width="8" height="8"/>'
        )
    out.append('<circle id="here" r="6" cx="-99" cy="-99"/></svg>')
    return "".join(out)


def _marks(x: F64, y: F64, jumps: I64) -> Iterator[str]:
    """Yield a cross at each end of a jump that is inside of the drawing."""
    ends = np.unique(np.concatenate([jumps - 1, jumps])).tolist() if len(jumps) else []
    crosses = [
        f"M{x[n] - 4:.1f} {y[n] - 4:.1f}l8 8m0-8l-8 8"
        for n in ends
        if LEFT <= x[n] <= WIDTH and 0 <= y[n] <= HEIGHT - BOTTOM
    ]
    if crosses:
        yield f'<path class="jump" d="{"".join(crosses)}"/>'


def _grid(frame: Drawing, tracks: DrawnTracks) -> Iterator[str]:
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
