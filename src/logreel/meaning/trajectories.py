"""Trajectories: the poses of one body over time, from what a log knows best of it, for programs that compare them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, UsageError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, LocalPose, Pose, Position, Transform, lenses_of
from logreel.lenses.motion import BODY
from logreel.lenses.rotation import IDENTITY, unit
from logreel.lenses.vehicle import VehiclePose, vehicle_poses
from logreel.meaning.frames import NEAR, LogFrames, plain_name
from logreel.meaning.tracks import actor_tracks, is_of_robot, valid_fixes, width
from logreel.meaning.transforms import transforms

if TYPE_CHECKING:
    from logreel.lenses import Places
    from logreel.log.log import Channel, Log

#: Norms that differ less from 1 are those of unit quaternions of single precision, which stay as they are.
UNIT = 1e-6
#: Semi-major axis in m, and flattening, of the ellipsoid WGS 84.
WGS84_M, WGS84_FLATTENING = 6_378_137.0, 1 / 298.257_223_563
#: Actors that are offered at most.
ACTORS = 40
#: Axes that messages state themselves, of a flight controller's poses after conversion, and of satellite positions.
OWN = "as in the log"
CONVERTED = (
    "x east, y north, z up, body x forward, y left, z up; from NED and FRD: "
    "(x, y, z) = (y, x, -z), q = (sqrt(1/2), sqrt(1/2), 0, 0) * q * (1, 0, 0, 0) as x y z w"
)
EAST_NORTH_UP = "x east, y north, z up, at the origin"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Poses of one body in one frame.

    time      int64[k]  ns, strictly increasing
    position  float64[k, 3]  metres
    rotation  float64[k, 4]  unit quaternions x, y, z, w; the identity without attitude
    about     what it is of, for people: ``'/odom' (poses of base_link in odom)``
    topics    channels that it comes from
    axes      directions of the axes, and how they were converted
    origin    latitude and longitude in degrees, and altitude in m, of the origin; None: that of the log's own frame
    notes     a sentence for each thing that a reader must know
    """

    time: I64
    position: F64
    rotation: F64
    about: str
    topics: tuple[str, ...]
    axes: str = OWN
    origin: tuple[float, float, float] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)


#: Reads a trajectory between two times in ns; None: no bound.
ReadTrajectory = Callable[[int | None, int | None], Trajectory]


@dataclass(frozen=True, slots=True)
class TrajectorySource:
    """A trajectory that a log has.

    label  how to choose it, for people: ``'/odom'``, ``--frames map:base_link``
    what   what it is: ``poses``, ``satellite positions`` …
    rank   place of *what* in the order of sources, 0 first
    count  number of messages
    load   returns it between two times
    """

    label: str
    what: str
    rank: int
    count: int
    load: ReadTrajectory

    @property
    def name(self) -> str:
        """Label and kind: ``'/odom' (poses)``."""
        return f"{self.label} ({self.what})"


def trajectory_sources(log: Log, topics: Collection[str] | None = None) -> list[TrajectorySource]:
    """Return the trajectories that *log* has, the best first; an unusable channel has none.

    topics  only those that come from at least one of these channels; None: all

    The pose of the vehicle that a flight controller estimates comes first; then poses and odometry, poses in a plane,
    transforms between the usual frames, satellite positions, wanted and other poses of a vehicle, and actors. Of
    several of a kind the one with the most messages is first, as what is estimated is logged more often than what it is
    made of; of actors the one that moves farthest.
    """
    sources = [*_of_vehicles(log, topics)]
    for ch, lenses in lenses_of(log):
        if (topics is not None and ch.topic not in topics) or not len(ch):
            continue
        for lens in lenses:
            try:
                sources += _of_lens(ch, lens)
            except LogError:
                # What cannot be decoded is told by the log's problems.
                continue
    moving = [ch for ch, lenses in lenses_of(log) if any(isinstance(lens, Transform) for lens in lenses)]
    if any(topics is None or ch.topic in topics for ch in moving):
        sources += _of_frames(log, sum(len(ch) for ch in moving))
    return sorted(sources, key=lambda source: (source.rank, -source.count))


def _of_vehicles(log: Log, topics: Collection[str] | None) -> Iterator[TrajectorySource]:
    for pose in vehicle_poses(log):
        if pose.position is None or not (topics is None or set(topics) & set(pose.topics)):
            continue
        is_own = pose.child == BODY
        label = " + ".join(map(repr, pose.topics))
        what = "pose of the vehicle" if is_own else f"pose of {pose.child}"
        yield TrajectorySource(
            label, what, 0 if is_own else 5, len(pose.base[0]), partial(_read_vehicle, pose, label)
        )


def _of_lens(ch: Channel, lens: object) -> Iterator[TrajectorySource]:
    """Yield the trajectories that *lens* reads of *ch* alone."""
    label, count = repr(ch.topic), len(ch)
    if isinstance(lens, Pose) and lens.position is not None and not lens.repeated:
        yield TrajectorySource(label, "poses", 1, count, partial(_read_poses, ch, lens))
    elif isinstance(lens, LocalPose) and lens.position and not lens.aerospace:
        yield TrajectorySource(label, "poses in a plane", 2, count, partial(_read_poses, ch, lens))
    elif isinstance(lens, Position) and is_of_robot(lens):
        yield TrajectorySource(label, "satellite positions", 4, count, partial(_read_fixes, ch, lens))
    elif isinstance(lens, ActorPose):
        states = lens.states(ch)
        moving = [(width(track.place), rows) for rows, track in actor_tracks(states)]
        for _, rows in sorted(moving, key=lambda item: -item[0])[:ACTORS]:
            # The name of its frame among transforms: it can be chosen by that.
            name = f"{states.kind[rows[0]] or 'actor'}_{int(states.id[rows[0]])}"
            yield TrajectorySource(
                f"--frames world:{name}", "actor", 6, 0, partial(read_frames, ch.log, "world", name)
            )


def _of_frames(log: Log, count: int) -> Iterator[TrajectorySource]:
    """Yield the usual frame of the robot in the usual fixed frame, if the log has both."""
    if log.start is None or log.end is None:
        return
    frames = LogFrames.of(log).at((log.start + log.end) // 2)
    fixed = frames.fixed()
    if fixed and (robot := frames.robot(fixed)):
        read = partial(read_frames, log, fixed, robot)
        yield TrajectorySource(f"--frames {fixed}:{robot}", "transforms", 3, count, read)


def read_frames(
    log: Log, fixed: str, body: str, start: int | None = None, end: int | None = None
) -> Trajectory:
    """Return the poses of the frame *body* in the frame *fixed*, with start <= time < end (ns).

    The times are those of the moving link between them that has the most transforms; the others are interpolated.
    Poses of vehicles and actors count as transforms if the log has no others of these names. Raises NotFoundError for
    an unknown frame, LogError for frames without a connection and for those that no moving link connects.
    """
    frames = transforms(log, poses=False)
    if not {plain_name(fixed), plain_name(body)} <= {*frames.frames}:
        frames = transforms(log, poses=True)
    chain = frames.chain(fixed, body)
    links = frames.links
    pairs = [pair for a, b in pairwise(chain) for pair in ((a, b), (b, a))]
    moving = [
        links[child]
        for child, parent in pairs
        if child in links and parent in links[child].parents and not links[child].static
    ]
    if not moving:
        raise LogError(f"the frame {body!r} never moves in {fixed!r}", path=log.name)
    link = max(moving, key=len)
    time = link.time if start is None else link.time[link.time >= start]
    time = time if end is None else time[time < end]
    poses = frames.lookup(fixed, body, time, missing="nan")
    known, notes = poses.valid, [*frames.notes]
    if unknown := int(np.count_nonzero(~known)):
        notes.append(f"{unknown} of {len(time)} transforms left out: the other links are not known then")
    topics = tuple(dict.fromkeys(topic for link in moving for topic in link.topics))
    about = f"{poses.source} in {poses.target} (transforms: {' → '.join(chain)})"
    made = Trajectory(time[known], poses.translation[known], poses.rotation[known], about, topics)
    return _known(replace(made, notes=tuple(notes)), time[known])


def _read_vehicle(pose: VehiclePose, label: str, start: int | None, end: int | None) -> Trajectory:
    made = _of_places(pose.track(start, end), label, pose.topics)
    if not pose.has_position():
        raise LogError("the horizontal position of the vehicle is never known", path=pose.base[0].log.name)
    return replace(made, axes=CONVERTED)


def _read_poses(ch: Channel, lens: Pose | LocalPose, start: int | None, end: int | None) -> Trajectory:
    return _of_places(lens.track(ch, start, end), repr(ch.topic), (ch.topic,))


def _of_places(places: Places, label: str, topics: tuple[str, ...]) -> Trajectory:
    frames, bodies = _names(places.frame), _names(places.child)
    about = f"{' or '.join(bodies[:3]) or 'a body'} in {' or '.join(frames[:3]) or 'an unnamed frame'}"
    made = Trajectory(places.time, places.position, places.rotation, f"{label} ({about})", topics)
    notes = [
        f"the poses are of {len(names)} {what}: {', '.join(names[:5])}{' …' * (len(names) > 5)}"
        for names, what in ((frames, "frames"), (bodies, "bodies"))
        if len(names) > 1
    ]
    if places.kept is not None and (count := int(np.count_nonzero(places.kept[:-1]))):
        notes.append(
            f"the estimator was reset {count} time{'s' * (count != 1)}, where the trajectory may jump"
        )
    return _known(replace(made, notes=tuple(notes)), places.stamp)


def _names(names: NDArray[Any] | None) -> Sequence[str]:
    """Return the different names of frames, in their order."""
    return [] if names is None else [name for name in dict.fromkeys(map(plain_name, names.tolist())) if name]


def _read_fixes(ch: Channel, lens: Position, start: int | None, end: int | None) -> Trajectory:
    fixes, left_out = valid_fixes(lens.fixes(ch, start, end))
    notes = [
        f"{count} position{'s' * (count != 1)} left out: {reason}"
        for reason, count in left_out.items()
        if count
    ]
    high = np.isfinite(fixes.altitude)
    if not high.any():
        notes.append("the positions have no altitude: z is about 0")
    elif not high.all():
        notes.append(f"{np.count_nonzero(~high)} positions left out: no altitude")
        fixes = fixes.take(high)
    if not len(fixes):
        raise LogError(f"no position of {ch.topic!r} is valid", path=ch.log.name)
    altitude = np.nan_to_num(fixes.altitude)
    origin = (float(fixes.latitude[0]), float(fixes.longitude[0]), float(altitude[0]))
    place = east_north_up(np.stack([fixes.latitude, fixes.longitude, altitude], axis=-1), origin)
    notes.append("positions of satellites have no attitude: all rotations are the identity")
    about = f"{ch.topic!r} (satellite positions)"
    turn = np.tile(IDENTITY, (len(fixes), 1))
    made = Trajectory(fixes.time, place, turn, about, (ch.topic,), EAST_NORTH_UP, origin, tuple(notes))
    return _known(made, fixes.stamp)


def east_north_up(place: F64, origin: tuple[float, float, float]) -> F64:
    """Return float64[k, 3]: metres east, north and up of *origin*, in the plane that touches WGS 84 there.

    place  float64[k, 3]  latitude and longitude in degrees, and altitude in m, as is *origin*
    """
    zero = np.array([origin])
    lat, lon = np.radians(origin[0]), np.radians(origin[1])
    (sin, cos), (slon, clon) = (np.sin(lat), np.cos(lat)), (np.sin(lon), np.cos(lon))
    axes = np.array([[-slon, clon, 0.0], [-sin * clon, -sin * slon, cos], [cos * clon, cos * slon, sin]])
    local: F64 = (_earth_fixed(place) - _earth_fixed(zero)) @ axes.T
    return local


def _earth_fixed(place: F64) -> F64:
    """Return float64[k, 3]: metres from the middle of the Earth."""
    lat, lon, high = np.radians(place[:, 0]), np.radians(place[:, 1]), place[:, 2]
    squared = WGS84_FLATTENING * (2 - WGS84_FLATTENING)
    normal = WGS84_M / np.sqrt(1 - squared * np.sin(lat) ** 2)
    flat = (normal + high) * np.cos(lat)
    return np.stack(
        [flat * np.cos(lon), flat * np.sin(lon), (normal * (1 - squared) + high) * np.sin(lat)], axis=-1
    )


def _known(made: Trajectory, stamp: I64) -> Trajectory:
    """Return *made* at its stamps, sorted, without unknown poses and with one pose for each time; tell what changed.

    stamp  int64[k] ns of measurement, 0 where it is not stated: used if most are near the times of logging
    """
    notes, time = [*made.notes], made.time
    stated = stamp != 0
    away = np.abs(stamp[stated].astype(np.float64) - time[stated].astype(np.float64))
    if not len(away) or 2 * np.count_nonzero(away < NEAR) > len(away):
        time = np.where(stated, stamp, time)
    else:
        notes.append("the stamps of the poses are of another clock than the log: times of logging are used")
    turn, good = unit(made.rotation)
    norm = np.linalg.norm(made.rotation, axis=-1)
    with np.errstate(invalid="ignore"):
        turn = np.where((np.abs(norm - 1) <= UNIT)[:, None], made.rotation, turn)
    good &= np.isfinite(made.position).all(axis=1)
    if unknown := int(np.count_nonzero(~good)):
        notes.append(f"{unknown} pose{'s' * (unknown != 1)} left out: not known, or the rotation is none")
    rows = np.flatnonzero(good)
    rows = rows[np.argsort(time[rows], kind="stable")]
    first = np.append(True, np.diff(time[rows]) > 0) if len(rows) else np.zeros(0, np.bool_)
    if again := int(np.count_nonzero(~first)):
        notes.append(f"{again} pose{'s' * (again != 1)} left out: of the same time as another one")
    rows = rows[first]
    return replace(
        made, time=time[rows], position=made.position[rows], rotation=turn[rows], notes=tuple(notes)
    )


def frames_named(text: str) -> tuple[str, str]:
    """Return both names of ``map:base_link``; raises UsageError for other text."""
    fixed, _, body = text.partition(":")
    if not fixed or not body:
        raise UsageError(f"{text!r} names no two frames: write FIXED:BODY, such as map:base_link")
    return fixed, body
