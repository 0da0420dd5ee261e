"""What the 3D view shows at one moment: points, poses, paths, boxes and frames, placed in one fixed frame."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import F64
from logreel.lenses import (
    ActorPose,
    LaserScan,
    Lens,
    LocalPose,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Points,
    Pose,
    RangeScan,
    Transform,
    lenses_of,
)
from logreel.lenses.motion import ActorStates
from logreel.lenses.vehicle import VehiclePose, vehicle_poses
from logreel.log.times import SECOND
from logreel.meaning.frames import NOWHERE, FramePlace, FramesAt, LogFrames, plain_name

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Points of all clouds of one answer; of larger clouds every n-th point is sent.
POINTS = 200_000
#: Poses of one path, and actors, at most.
PATH, ACTORS = 5000, 2000
#: Revolutions of a scanner that sends packets are searched in this time (ns) around the moment.
TURN = SECOND // 4
#: Channels of one answer.
CHANNELS = 64
_CLOUDS = (PackedCloud, PlainCloud, PacketCloud)
_SCANS = (LaserScan, RangeScan)
#: What is said of a vehicle without a position.
UNKNOWN = "The log gives no valid horizontal position here: the vehicle is drawn at the origin."
#: Fields by which points are coloured, best first.
_VALUES = ("intensity", "intensities", "reflectivity", "i", "signal")
#: Usual length, width and height in metres of actors whose box the log does not have: by words of their model, else by
#: their type. Older recordings of CARLA have no boxes.
USUAL_SIZES = {
    "vehicle": (4.6, 2.0, 1.6),
    "walker": (0.5, 0.5, 1.8),
    "bus": (10.3, 3.9, 4.3),
    "truck": (8.5, 2.9, 3.5),
    "van": (5.9, 2.0, 2.6),
    "bicycle": (1.6, 0.6, 1.6),
    "motorcycle": (2.2, 0.9, 1.6),
}
_WORDS = {
    "bus": ("fusorosa", "bus"),
    "truck": ("truck", "ambulance", "carlacola"),
    "van": ("sprinter", ".t2", "_t2"),
    "bicycle": ("diamondback", "bh.crossbike", "gazelle", "bicycle"),
    "motorcycle": ("harley", "kawasaki", "yamaha", "vespa", "motorcycle"),
}
#: What is said of such actors, and where there is none that could be drawn.
USUAL = "The log has no sizes of {count}: they have the usual ones of their type."
NO_ACTORS = "No vehicle and no walker is there at this moment."
#: What is said of a message after the moment.
FIRST = "Nothing was recorded before this moment: the first message is shown."


@dataclass(frozen=True, slots=True)
class SceneSource:
    """A channel that can be shown: *kind* is cloud, scan, pose, path, actors, body or frames.

    shown  whether it is shown unless the user chooses
    """

    topic: str
    kind: str
    count: int
    shown: bool


@dataclass(slots=True)
class SceneItem:
    """What one channel shows at one moment.

    time     ns of its message
    frame    frame of its numbers; empty if unknown
    note     sentence about what is assumed or left out; empty if there is nothing to say
    place    transform from *frame* to the fixed frame; None: not connected, so it cannot be shown
    total    number of points in the log, where fewer are sent
    arrays   float32 or uint8 arrays by name
    labels   a text for each box
    """

    topic: str
    kind: str
    time: int
    frame: str = ""
    note: str = ""
    place: FramePlace | None = NOWHERE
    total: int = 0
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is shown at one moment, with the tree of frames; *fixed* is the frame in which it is placed."""

    fixed: str
    tree: FramesAt
    items: list[SceneItem]


def scene_sources(log: Log) -> list[SceneSource]:
    """Return the channels of *log* that can be shown in three dimensions, in file order."""
    sources, bodies = [], bodies_of(log)
    # Flight controllers log the same vehicle several times: one of them is enough to begin with.
    usual = next((pose.child for pose in bodies.values() if pose), None)
    for ch, lens, shown_as in _spatial(log):
        if shown_as == "body" and ch.topic not in bodies:
            continue
        pose = bodies.get(ch.topic)
        shown = shown_as != "body" or pose is None or pose.child == usual
        shown = shown and not (
            shown_as == "pose" and isinstance(lens, Pose) and lens.position is None and bool(bodies)
        )
        sources.append(SceneSource(ch.topic, shown_as, len(ch), shown))
    return sources


def _spatial(log: Log) -> Iterator[tuple[Channel, Lens, str]]:
    for ch, own in lenses_of(log):
        for lens in own:
            shown_as = _kind(lens)
            if shown_as:
                yield ch, lens, shown_as
                break


def _kind(lens: Lens) -> str:
    if isinstance(lens, _CLOUDS):
        return "cloud"
    if isinstance(lens, _SCANS):
        return "scan"
    if isinstance(lens, Pose):
        return "path" if lens.repeated else "pose"
    if isinstance(lens, LocalPose):
        return "body"
    if isinstance(lens, ActorPose):
        return "actors"
    return "frames" if isinstance(lens, Transform) else ""


def bodies_of(log: Log) -> dict[str, VehiclePose | None]:
    """Return the channels that show a vehicle, the vehicle itself first, each with its pose if that needs more.

    Channels of attitudes that belong to a position are not shown themselves.
    """
    bodies: dict[str, VehiclePose | None] = {pose.place[0].topic: pose for pose in vehicle_poses(log)}
    for ch, lens, _ in _spatial(log):
        if isinstance(lens, LocalPose) and not lens.aerospace:
            bodies[ch.topic] = None
    return bodies


def scene_at(
    log: Log,
    at: int,
    fixed: str | None = None,
    topics: Collection[str] | None = None,
    have: Mapping[str, int] | None = None,
    points: int = POINTS,
) -> Scene:
    """Return what *log* shows at the moment *at* (ns): of each channel the last message at or before it.

    Before the first message of all channels, that one is shown, with a note.

    fixed   frame in which everything is placed; None or unknown: one with a usual name, or the root of the most frames
    topics  channels to show; None: those that ``scene_sources`` proposes
    have    times of messages by topic whose arrays need not be sent again
    points  number of points of all clouds together
    """
    chosen = (
        set(topics) if topics is not None else {source.topic for source in scene_sources(log) if source.shown}
    )
    known, items, bodies = dict(have or {}), [], bodies_of(log)
    sources = [source for source in _spatial(log) if source[0].topic in chosen and source[2] != "frames"][
        :CHANNELS
    ]
    asked = at
    at = max(at, min((int(ch.times.min()) for ch, _, _ in sources if len(ch)), default=at))
    tree = LogFrames.of(log).at(at)
    fixed = fixed if fixed in tree.names else tree.fixed()
    clouds = sum(shown_as == "cloud" for _, _, shown_as in sources)
    for ch, lens, shown_as in sources:
        if shown_as == "body" and ch.topic not in bodies:
            continue
        try:
            item = _item(ch, lens, shown_as, at, bodies.get(ch.topic), points // max(1, clouds))
        except LogError as error:
            item = SceneItem(ch.topic, shown_as, at, note=f"It cannot be read: {error.text}", place=None)
        if item is not None:
            if item.time > asked:
                item.note = f"{FIRST} {item.note}".rstrip()
            items.append(item)
    _place_all(items, tree, fixed)
    for item in items:
        if known.get(item.topic) == item.time:
            item.arrays = {}
    return Scene(fixed, tree, items)


def last_time(ch: Channel, at: int) -> int | None:
    """Return the time of the last message of *ch* at or before *at* (ns); None if there is none."""
    rows = ch.log.index.rows_between(ch.number, None, at + 1)
    times = ch.times[rows]
    return int(times.max()) if len(times) else None


def _item(
    ch: Channel, lens: Any, shown_as: str, at: int, pose: VehiclePose | None, points: int
) -> SceneItem | None:
    time = last_time(ch, at)
    if time is None:
        return None
    if shown_as in ("cloud", "scan"):
        return _points(ch, lens, shown_as, time, points)
    if shown_as == "actors":
        return _actors(ch, lens, time)
    if shown_as == "body":
        return _body(ch, lens, time, pose, at)
    places = lens.track(ch, time, time + 1)
    if not len(places.time):
        return None
    rows = np.flatnonzero(places.row == places.row[-1])
    frame = plain_name(places.frame[rows[0]]) if places.frame is not None else ""
    item = SceneItem(ch.topic, shown_as, time, frame, total=len(rows))
    rows = rows[:: -(-len(rows) // PATH) or 1] if shown_as == "path" else rows[-1:]
    item.arrays["position"] = _finite(places.position[rows])
    item.arrays["rotation"] = _finite(places.rotation[rows])
    return item


def _finite(values: F64) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.nan_to_num(values.astype(np.float32), posinf=0.0, neginf=0.0)


def _points(ch: Channel, lens: Any, shown_as: str, time: int, limit: int) -> SceneItem | None:
    points_then: Points | None = None
    start, end = (time - TURN, time + TURN) if isinstance(lens, PacketCloud) else (time, time + 1)
    more = {"calibration": _calibration(ch, lens)} if isinstance(lens, PacketCloud) else {}
    for cloud in lens.clouds(ch, start, end, **more):
        if points_then is None or cloud.time <= time:
            points_then = cloud
    if points_then is None:
        return None
    rows, place = points_then.seen
    total = len(rows)
    step = -(-total // max(1, limit)) or 1
    rows = rows[::step]
    item = SceneItem(ch.topic, shown_as, time, plain_name(points_then.frame), total=total)
    item.arrays["position"] = place[::step]
    if len(rows) < total:
        item.note = f"{len(rows)} of {total} points are shown."
    if points_then.lost:
        item.note += f" The message lacks {points_then.lost} of its points."
    _colour(item, points_then, rows)
    return item


def _colour(item: SceneItem, cloud: Points, rows: NDArray[Any]) -> None:
    """Add the colours of points, or else a measured value, if the message has them."""
    fields, colours = cloud.fields, cloud.colours
    if colours is not None:
        item.arrays["rgb"] = colours[rows]
        return
    name = next((name for name in _VALUES if name in fields and fields[name].ndim == 1), None)
    if name is not None:
        item.arrays["value"] = _finite(np.asarray(fields[name][rows], np.float64))


#: Calibrations by channel, as finding one reads thousands of packets.
_CALIBRATIONS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _calibration(ch: Channel, lens: PacketCloud) -> Any:
    if ch not in _CALIBRATIONS:
        _CALIBRATIONS[ch] = lens.calibration(ch)
    return _CALIBRATIONS[ch]


def _actors(ch: Channel, lens: ActorPose, time: int) -> SceneItem:
    states = lens.states(ch, time, time + 1)
    usual = [None if boxed else usual_size(states, row) for row, boxed in enumerate(states.boxed.tolist())]
    drawn = states.boxed | np.array([size is not None for size in usual], np.bool_)
    known = np.flatnonzero(drawn & np.isfinite(states.position).all(1))
    item = SceneItem(ch.topic, "actors", time, total=len(known))
    rows = known[:ACTORS]
    centre, size = states.centre[rows], states.size[rows]
    for at, row in enumerate(rows.tolist()):
        if (assumed := usual[row]) is not None:
            # In CARLA, the place of a vehicle is on the ground, that of a walker in its middle.
            centre[at] = (0, 0, assumed[2] / 2 if states.kind[row] == "vehicle" else 0)
            size[at] = assumed
    item.arrays["position"] = _finite(states.position[rows])
    item.arrays["rotation"] = _finite(states.rotation[rows])
    item.arrays["centre"] = _finite(centre)
    item.arrays["size"] = _finite(size)
    assumed_count = sum(usual[row] is not None for row in rows.tolist())
    if assumed_count:
        count = "the actors" if assumed_count == len(rows) else f"{assumed_count} of {len(rows)} actors"
        item.note = USUAL.format(count=count)
    elif not len(rows):
        item.note = NO_ACTORS
    item.labels = [
        f"{states.kind[row] or 'actor'}\n{states.id[row]} {states.model[row]}".rstrip()
        for row in rows.tolist()
    ]
    return item


def usual_size(states: ActorStates, row: int) -> tuple[float, float, float] | None:
    """Return the usual size in metres of an actor; None for what is no vehicle or walker, such as a sensor."""
    if states.kind[row] not in ("vehicle", "walker"):
        return None
    model = str(states.model[row]).lower()
    if states.kind[row] == "vehicle":
        for name, words in _WORDS.items():
            if any(word in model for word in words):
                return USUAL_SIZES[name]
    return USUAL_SIZES[states.kind[row]]


def _body(ch: Channel, lens: LocalPose, time: int, pose: VehiclePose | None, at: int) -> SceneItem | None:
    """Return a vehicle: its pose at the moment *at* if position and attitude are known, else the last message."""
    item = SceneItem(ch.topic, "body", time)
    curve = pose.at(at) if pose is not None else None
    if curve is not None:
        place, turn = (column.T for column in curve.at(np.array([at]), True, None, np.ones(1, np.bool_)))
        # Its place changes with the moment, not with the message.
        item.time = max(time, min(at, int(curve.time[-1])))
        if pose is not None and not pose.has_position() and pose.position is not None:
            item.note = UNKNOWN
    else:
        places = lens.track(ch, time, time + 1)
        if not len(places.time):
            return None
        place, turn = places.position[-1:], places.rotation[-1:]
        if not np.isfinite(place).all():
            item.note = UNKNOWN
        if pose is not None and pose.attitude[0] is not ch:
            other, own = pose.attitude
            when = last_time(other, at)
            if when is not None:
                item.time = max(time, when)
                turn = own.track(other, when, when + 1).rotation[-1:]
    item.arrays["position"], item.arrays["rotation"] = _finite(place), _finite(turn)
    return item


def _place_all(items: list[SceneItem], tree: FramesAt, fixed: str) -> None:
    """Find the place of each item in the fixed frame, and say what is assumed where the log does not tell it."""
    body = next((other for other in items if other.kind in ("body", "pose") and not other.frame), None)
    for item in items:
        if item.place is None:
            continue
        if item.frame:
            item.place = tree.place(item.frame, fixed) if tree.links else NOWHERE
            if item.place is None:
                robot = tree.robot(fixed)
                item.place = tree.place(robot, fixed) if robot and item.kind in ("cloud", "scan") else None
                item.note += (
                    f" The log has no transform from {item.frame!r}: it is drawn at {robot!r}."
                    if item.place is not None
                    else f" The log has no transform from {item.frame!r} to {fixed!r}."
                )
        elif item.kind in ("cloud", "scan") and body is not None and "position" in body.arrays:
            turn = body.arrays["rotation"][0].astype(np.float64)
            size = float(np.linalg.norm(turn))
            at = body.arrays["position"][0].astype(np.float64)
            item.place = FramePlace(at, turn / size if size else NOWHERE.rotation)
            item.note += f" The log does not say where the sensor is: it is drawn at {body.topic!r}."
        item.note = item.note.strip()
