"""What the 3D view shows at one moment: points, poses, paths, boxes, grids, markers and frames, in one fixed frame."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import F64
from logreel.lenses import (
    ActorPose,
    Detections,
    LaserScan,
    Lens,
    LocalPose,
    Marker,
    Markers,
    OccupancyGrid,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Points,
    Pose,
    RangeScan,
    Transform,
    lenses_of,
)
from logreel.lenses.cloud import SentMarkers
from logreel.lenses.image import DetectedBox
from logreel.lenses.motion import ActorStates
from logreel.lenses.rotation import rotated, turn_to
from logreel.lenses.vehicle import VehiclePose, vehicle_poses
from logreel.log.times import SECOND
from logreel.meaning.frames import NOWHERE, FramePlace, FramesAt, LogFrames, plain_name
from logreel.meaning.meshes import MeshFolder
from logreel.meaning.robots import (
    SOLIDS,
    RobotSource,
    drawn,
    joint_positions,
    robot_of,
    robot_sources,
)

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Points of all clouds of one answer; of larger clouds every n-th point is sent.
POINTS = 200_000
#: Poses of one path, and actors, at most.
PATH, ACTORS = 5000, 2000
#: Revolutions of a scanner that sends packets are searched in this time (ns) around the moment.
TURN = SECOND // 4
#: Edge in cells of a grid; of larger ones each cell sent is the most occupied of several.
CELLS = 1024
#: Markers, and places of their lines, points and triangles, of one answer.
MARKERS, PLACES = 5000, 200_000
#: Channels of one answer.
CHANNELS = 64
_CLOUDS = (PackedCloud, PlainCloud, PacketCloud)
_SCANS = (LaserScan, RangeScan)
#: What is said of a vehicle without a position.
UNKNOWN = "The log gives no valid horizontal position here: the vehicle is drawn at the origin."
#: Fields by which points are coloured, best first.
_VALUES = ("intensity", "intensities", "reflectivity", "i", "signal")
#: What points can be coloured by besides their fields: the colours of the message, and one colour for all.
COLOURS, PLAIN = "rgb", "none"
#: Clouds before the last one that stay in sight, and points of such clouds of one channel that are kept in memory.
PAST, PAST_POINTS = 128, 2_000_000
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
    """A channel that can be shown: *kind*: cloud, scan, pose, path, actors, body, grid, markers, detections, frames,
    robot.

    shown  whether it is shown unless the user chooses
    """

    topic: str
    kind: str
    count: int
    shown: bool


@dataclass(frozen=True, slots=True)
class CloudLook:
    """How point clouds and scans are shown.

    colour  name of the field that colours them, COLOURS, or PLAIN; empty, and where it is missing: clouds by the
            colours of the message, else by what was measured, else by height; scans in one colour
    decay   ns: clouds that are at most so much older than the last one stay where they were in the fixed frame
    points  number of points of all clouds together
    """

    colour: str = ""
    decay: int = 0
    points: int = POINTS


@dataclass(slots=True)
class SceneItem:
    """What one channel shows at one moment.

    time     ns of its message
    frame    frame of its numbers; empty if unknown
    note     sentence about what is assumed or left out; empty if there is nothing to say
    place    transform from *frame* to the fixed frame; None: not connected, so it cannot be shown
    total    number of points in the log, where fewer are sent
    arrays   float32 or uint8 arrays by name
    labels   a text for each box, or for each place of ``text_at``
    fields   by which its points can be coloured, and *colour*: by which they are
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
    fields: list[str] = field(default_factory=list)
    colour: str = ""


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
    for robot in robot_sources(log):
        count = 1 if robot.channel is None else len(robot.channel)
        sources.append(SceneSource(robot.topic, "robot", count, True))
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
    if isinstance(lens, OccupancyGrid):
        return "grid"
    if isinstance(lens, Markers):
        return "markers"
    if isinstance(lens, Detections):
        return "detections" if lens.is_solid else ""
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
    look: CloudLook | None = None,
    meshes: MeshFolder | None = None,
) -> Scene:
    """Return what *log* shows at the moment *at* (ns): of each channel the last message at or before it.

    Before the first message of all channels, that one is shown, with a note.

    fixed   frame in which everything is placed; None or unknown: one with a usual name, or the root of the most frames
    topics  channels to show; None: those that ``scene_sources`` proposes
    have    times of messages by topic whose arrays need not be sent again
    look    how point clouds are shown
    meshes  files of the meshes of robots
    """
    look, wanted_frame = look or CloudLook(), fixed
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
    # Clouds share the points that are sent; scans are small.
    share = look.points // max(1, sum(shown_as == "cloud" for _, _, shown_as in sources))
    look = CloudLook(look.colour, look.decay, share)
    for ch, lens, shown_as in sources:
        if shown_as == "body" and ch.topic not in bodies:
            continue
        try:
            if isinstance(lens, Detections):
                item = _detections(ch, lens, at, tree, fixed)
            elif isinstance(lens, Markers):
                item = _markers(ch, lens, at, tree, fixed)
            else:
                item = _item(ch, lens, shown_as, at, bodies.get(ch.topic), look)
        except LogError as error:
            item = SceneItem(ch.topic, shown_as, at, note=f"It cannot be read: {error.text}", place=None)
        if item is not None:
            if item.time > asked:
                item.note = f"{FIRST} {item.note}".rstrip()
            items.append(item)
    for robot in robot_sources(log):
        if robot.topic in chosen:
            items.append(_robot(log, robot, at, (tree, fixed), _body_place(items), meshes))
    _place_all(items, tree, fixed)
    lens_by_topic = {ch.topic: (ch, lens) for ch, lens, _ in sources}
    for item in items:
        # Clouds of the past are sent in the fixed frame, which must be the one that the page has them in.
        is_same = known.get(item.topic) == item.time and (not look.decay or fixed == wanted_frame)
        stays = look.decay > 0 and item.kind in ("cloud", "scan") and item.place is not None
        if is_same:
            item.arrays = {}
        elif stays:
            _add_past(item, *lens_by_topic[item.topic], look, fixed)
        if stays:
            item.place, item.frame = NOWHERE, fixed
    return Scene(fixed, tree, items)


def last_time(ch: Channel, at: int) -> int | None:
    """Return the time of the last message of *ch* at or before *at* (ns); None if there is none."""
    rows = ch.log.index.rows_between(ch.number, None, at + 1)
    times = ch.times[rows]
    return int(times.max()) if len(times) else None


def _item(
    ch: Channel, lens: Any, shown_as: str, at: int, pose: VehiclePose | None, look: CloudLook
) -> SceneItem | None:
    time = last_time(ch, at)
    if time is None:
        return None
    if shown_as in ("cloud", "scan"):
        return _points(ch, lens, shown_as, time, look)
    if shown_as == "actors":
        return _actors(ch, lens, time)
    if shown_as == "grid":
        return _grid(ch, lens, time)
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


def points_at(ch: Channel, lens: Any, time: int) -> Points | None:
    """Return the points of the message of *ch* at *time* (ns), or of the revolution at that time; None without any."""
    points_then: Points | None = None
    start, end = (time - TURN, time + TURN) if isinstance(lens, PacketCloud) else (time, time + 1)
    more = {"calibration": _calibration(ch, lens)} if isinstance(lens, PacketCloud) else {}
    for cloud in lens.clouds(ch, start, end, **more):
        if points_then is None or cloud.time <= time:
            points_then = cloud
    return points_then


def _points(ch: Channel, lens: Any, shown_as: str, time: int, look: CloudLook) -> SceneItem | None:
    points_then = points_at(ch, lens, time)
    if points_then is None:
        return None
    rows, place = points_then.seen
    total = len(rows)
    step = -(-total // max(1, look.points)) or 1
    rows = rows[::step]
    item = SceneItem(ch.topic, shown_as, time, plain_name(points_then.frame), total=total)
    item.arrays["position"] = place[::step]
    if len(rows) < total:
        item.note = f"{len(rows)} of {total} points are shown."
    if points_then.lost:
        item.note += f" The message lacks {points_then.lost} of its points."
    item.fields = colour_fields(points_then)
    item.colour = _colour(item, points_then, rows, look.colour)
    return item


def colour_fields(cloud: Points) -> list[str]:
    """Return the names of what the points of *cloud* can be coloured by: COLOURS, then fields with one number each."""
    numbers = [
        name
        for name, values in cloud.fields.items()
        if values.ndim == 1 and values.dtype.kind in "iufb" and name not in ("rgb", "rgba")
    ]
    return [*([COLOURS] if cloud.colours is not None else []), *numbers]


def field_values(cloud: Points, name: str) -> NDArray[np.float32]:
    """Return float32[k]: the values of a field; large whole numbers, such as times, from the least one."""
    values = cloud.fields[name]
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values):
        values = values - values.min()
    return _finite(np.asarray(values, np.float64))


def _colour(item: SceneItem, cloud: Points, rows: NDArray[Any], wanted: str) -> str:
    """Add the colours of points, or else a measured value, if the message has them; return what colours them."""
    # The few points of a scan are seen best in one colour.
    if wanted == PLAIN or (item.kind == "scan" and wanted not in item.fields):
        return PLAIN
    colours = cloud.colours if wanted not in item.fields or wanted == COLOURS else None
    if colours is not None:
        item.arrays["rgb"] = colours[rows]
        return COLOURS
    name = wanted if wanted in item.fields else next((name for name in _VALUES if name in item.fields), "z")
    if name in item.fields:
        item.arrays["value"] = field_values(cloud, name)[rows]
    return name


#: Clouds of the past by channel: what was asked, then the arrays of each in the fixed frame.
_PAST: WeakKeyDictionary[Channel, tuple[Any, dict[int, dict[str, NDArray[Any]]]]] = WeakKeyDictionary()


def _add_past(item: SceneItem, ch: Channel, lens: Any, look: CloudLook, fixed: str) -> None:
    """Add the clouds before that of *item*, where they were in the fixed frame, in which all of them are then."""
    times = np.unique(ch.times[ch.log.index.rows_between(ch.number, item.time - look.decay, item.time)])
    if isinstance(lens, PacketCloud):
        # A message is a part of a revolution, which takes a tenth of a second.
        times = times[np.unique((item.time - times) * 10 // SECOND, return_index=True)[1][::-1]]
    left_out = max(0, len(times) - PAST)
    times = times[left_out:]
    # Powers of two, so that the clouds that are kept can be used again for the next moments.
    few = CloudLook(item.colour, 0, look.points >> len(times).bit_length())
    asked = (few, fixed)
    before = _PAST.get(ch)
    kept = before[1] if before is not None and before[0] == asked else {}
    _PAST[ch] = (asked, kept)
    parts = [_fixed_arrays(_thinned(item, few.points))]
    for time in times.tolist()[::-1]:
        if time not in kept:
            cloud = _points(ch, lens, item.kind, time, few)
            kept[time] = {} if cloud is None else _fixed_arrays(_placed_then(cloud, ch.log, fixed))
        if kept[time].keys() == parts[0].keys():
            parts.append(kept[time])
    room = PAST_POINTS
    for time in sorted(kept, reverse=True):
        room -= len(kept[time].get("position", ()))
        if room < 0 or len(kept) > 4 * PAST:
            del kept[time]
    item.arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if left_out:
        item.note = f"{left_out} older clouds are left out. {item.note}".rstrip()


def _thinned(item: SceneItem, points: int) -> SceneItem:
    step = -(-len(item.arrays["position"]) // max(1, points)) or 1
    arrays = {name: values[::step] for name, values in item.arrays.items()}
    return SceneItem(item.topic, item.kind, item.time, item.frame, place=item.place, arrays=arrays)


def _placed_then(cloud: SceneItem, log: Log, fixed: str) -> SceneItem:
    """Return *cloud* with its place at its own time, by the transforms or by the vehicle of that time."""
    items, tree = [cloud], LogFrames.of(log).at(cloud.time)
    if not cloud.frame:
        bodies = bodies_of(log)
        bodied = ((ch, lens, role) for ch, lens, role in _spatial(log) if role in ("body", "pose"))
        body = (
            _item(ch, lens, role, cloud.time, bodies.get(ch.topic), CloudLook()) for ch, lens, role in bodied
        )
        items += [pose for pose in body if pose is not None and not pose.frame][:1]
    _place_all(items, tree, fixed)
    return cloud


def _fixed_arrays(item: SceneItem) -> dict[str, NDArray[Any]]:
    """Return the arrays of a cloud with its points in the fixed frame; {} if it has no place there."""
    if item.place is None:
        return {}
    place = item.place.position + rotated(item.place.rotation, item.arrays["position"].astype(np.float64))
    return item.arrays | {"position": _finite(place)}


#: Decoded markers by channel and row: the cursor asks for those of the last hundreds of messages again and again.
_SENT: WeakKeyDictionary[Channel, dict[int, SentMarkers]] = WeakKeyDictionary()
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


def _grid(ch: Channel, lens: OccupancyGrid, time: int) -> SceneItem | None:
    grids = list(lens.grids(ch, time, time + 1))
    if not grids:
        return None
    grid = grids[-1]
    cells, height, width = grid.cells, *grid.cells.shape
    item = SceneItem(ch.topic, "grid", time, plain_name(grid.frame), total=cells.size)
    if not cells.size:
        item.note = "The grid has no cells."
        return item
    step = -(-max(height, width) // CELLS)
    if step > 1:
        # Missing cells are unknown, and so the least.
        padded = np.full((-(-height // step) * step, -(-width // step) * step), -1, np.int8)
        padded[:height, :width] = cells
        cells = padded.reshape(len(padded) // step, step, -1, step).max(axis=(1, 3))
        item.note = f"{step} x {step} cells of the grid are shown as one, the most occupied of them."
    item.arrays["position"] = _finite(grid.position[None])
    item.arrays["rotation"] = _finite(grid.rotation[None])
    item.arrays["size"] = _finite(np.array(cells.shape[::-1]) * (grid.resolution * step))
    item.arrays["cells"] = np.ascontiguousarray(cells).view(np.uint8)
    return item


class _Shapes:
    """Markers as arrays, placed in the fixed frame."""

    def __init__(self, tree: FramesAt, fixed: str) -> None:
        self._tree, self._fixed = tree, fixed
        self._solids: list[tuple[int, F64, F64]] = []
        self._places: dict[str, list[tuple[F64, F64]]] = {"segment": [], "triangle": [], "point": []}
        self.labels: list[str] = []
        self._label_places: list[F64] = []
        #: Names of frames that are not connected with the fixed one, and numbers of markers that are not drawn as sent.
        self.apart: set[str] = set()
        self.meshes = self.invisible = self.unknown = 0

    def add(self, marker: Marker) -> None:
        """Add a marker."""
        is_placed = bool(marker.frame and self._tree.links)
        place = self._tree.place(plain_name(marker.frame), self._fixed) if is_placed else NOWHERE
        if place is None:
            self.apart.add(plain_name(marker.frame))
            return
        size = float(np.linalg.norm(marker.rotation))
        own = FramePlace(marker.position, marker.rotation / size if size else NOWHERE.rotation)
        if marker.colour[3] <= 0 and not len(marker.colours):
            self.invisible += 1
        else:
            self._draw(marker, place.after(own))

    def _draw(self, marker: Marker, place: FramePlace) -> None:
        points = place.position + rotated(place.rotation, marker.points)
        each = len(marker.colours) == len(points)
        colours = marker.colours if each else np.tile(marker.colour, (len(points), 1))
        match marker.shape:
            case "cube" | "sphere" | "cylinder":
                self._solid(marker.shape, place, marker.scale, marker.colour)
            case "mesh":
                self.meshes += 1
                self._solid("cube", place, marker.scale, marker.colour)
            case "arrow":
                self._arrow(marker, place, points)
            case "cube list" | "sphere list":
                for point, colour in zip(points, colours, strict=True):
                    self._solid(marker.shape[:-5], FramePlace(point, place.rotation), marker.scale, colour)
            case "line strip":
                pairs = np.repeat(np.arange(len(points)), 2)[1:-1]
                self._places["segment"].append((points[pairs], colours[pairs]))
            case "line list":
                even = len(points) // 2 * 2
                self._places["segment"].append((points[:even], colours[:even]))
            case "triangle list":
                whole_triangles = len(points) // 3 * 3
                self._places["triangle"].append((points[:whole_triangles], colours[:whole_triangles]))
            case "points":
                self._places["point"].append((points, colours))
            case "text":
                self.labels.append(marker.text)
                self._label_places.append(place.position)
            case _:
                self.unknown += 1

    def _solid(self, shape: str, place: FramePlace, scale: F64, colour: F64) -> None:
        self._solids.append(
            (SOLIDS.index(shape), np.concatenate([place.position, place.rotation, scale]), colour)
        )

    def _arrow(self, marker: Marker, place: FramePlace, points: F64) -> None:
        """Add an arrow along x of its pose, or between its two points; the scale is length, width and height."""
        scale = marker.scale
        if len(points) >= 2:
            along = points[1] - points[0]
            length = float(np.linalg.norm(along))
            # With points, the scale is the diameters of shaft and head.
            place, scale = FramePlace(points[0], turn_to(along)), np.array([length, scale[1], scale[1]])
        self._solid("arrow", place, scale, marker.colour)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a SceneItem: float32 of places, uint8 of shapes and colours."""
        arrays: dict[str, NDArray[Any]] = {}
        solids = self._solids[:MARKERS]
        if solids:
            arrays["shape"] = np.array([shape for shape, _, _ in solids], np.uint8)
            arrays["solid"] = _finite(np.array([numbers for _, numbers, _ in solids]))
            arrays["solid_colour"] = _bytes_of(np.array([colour for _, _, colour in solids]))
        for name, parts in self._places.items():
            if parts:
                most = PLACES // 6 * 6
                arrays[name] = _finite(np.concatenate([places for places, _ in parts])[:most])
                arrays[f"{name}_colour"] = _bytes_of(np.concatenate([colours for _, colours in parts])[:most])
        if self.labels:
            arrays["text_at"] = _finite(np.array(self._label_places[:MARKERS]))
        places = [arrays[name] for name in ("segment", "triangle", "point", "text_at") if name in arrays]
        places += [arrays["solid"][:, :3]] if solids else []
        if places:
            arrays["position"] = np.concatenate(places)
        return arrays

    def notes(self) -> str:
        """Return sentences about what is not drawn as it was sent."""
        said = [f"The log has no transform from {name!r} to {self._fixed!r}." for name in sorted(self.apart)]
        if self.meshes:
            said.append(f"{self.meshes} meshes are drawn as boxes: a log names their files only.")
        if self.invisible:
            said.append(f"{self.invisible} markers are transparent.")
        if self.unknown:
            said.append(f"{self.unknown} markers have a type that is not known.")
        places = sum(len(places) for parts in self._places.values() for places, _ in parts)
        if len(self._solids) > MARKERS or len(self.labels) > MARKERS or places > PLACES:
            said.append("There are more markers than are drawn.")
        return " ".join(said)


def _bytes_of(colours: F64) -> NDArray[np.uint8]:
    """Return uint8[n, 4] of colours from 0 to 1."""
    return np.round(np.clip(np.nan_to_num(colours), 0, 1) * 255).astype(np.uint8)


def _markers(ch: Channel, lens: Markers, at: int, tree: FramesAt, fixed: str) -> SceneItem | None:
    time = last_time(ch, at)
    if time is None:
        return None
    standing, left_out = lens.standing(ch, at, _SENT.setdefault(ch, {}))
    shapes = _Shapes(tree, fixed)
    for marker in standing:
        shapes.add(marker)
    item = SceneItem(ch.topic, "markers", time, total=len(standing), arrays=shapes.arrays())
    item.labels, item.note = shapes.labels[:MARKERS], shapes.notes()
    if left_out:
        item.note = f"{left_out} messages before are left out. {item.note}".rstrip()
    if not standing:
        item.note = f"No marker stands at this moment. {item.note}".rstrip()
    return item


#: Colours of the classes of detections, told apart by all eyes, and the opacity of their boxes.
SHADES = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0))
_CLEAR = 0.35


def shade_of(label: str) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255, of a class of detections: always the same for the same one."""
    return SHADES[crc32(label.encode()) % len(SHADES)]


def box_text(box: DetectedBox) -> str:
    """Return what stands beside a detection: its class and how sure it is."""
    score = "" if np.isnan(box.score) else f"{box.score:.2f}"
    return f"{box.label} {score}".strip()


def _detections(ch: Channel, lens: Detections, at: int, tree: FramesAt, fixed: str) -> SceneItem | None:
    time = last_time(ch, at)
    if time is None:
        return None
    boxes = lens.at(ch, int(np.flatnonzero(ch.times == time)[-1]))
    shapes, none = _Shapes(tree, fixed), np.zeros((0, 3))
    for box in boxes:
        colour = np.array([*shade_of(box.label), 255 * _CLEAR]) / 255
        place = (
            box.frame,
            box.position,
            box.rotation,
            box.size,
            colour,
            none,
            np.zeros((0, 4)),
            box_text(box),
        )
        shapes.add(Marker(time, box.label, "cube", *place))
        shapes.add(Marker(time, box.label, "text", *place))
    item = SceneItem(ch.topic, "detections", time, total=len(boxes), arrays=shapes.arrays())
    item.labels, item.note = shapes.labels, shapes.notes()
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


def _body_place(items: list[SceneItem]) -> FramePlace | None:
    """Return the place of the first vehicle without a frame; None without one."""
    body = next((other for other in items if other.kind in ("body", "pose") and not other.frame), None)
    if body is None or "position" not in body.arrays:
        return None
    turn = body.arrays["rotation"][0].astype(np.float64)
    size = float(np.linalg.norm(turn))
    at = body.arrays["position"][0].astype(np.float64)
    return FramePlace(at, turn / size if size else NOWHERE.rotation)


def _robot(
    log: Log,
    source: RobotSource,
    at: int,
    frames: tuple[FramesAt, str],
    body: FramePlace | None,
    meshes: MeshFolder | None,
) -> SceneItem:
    item = SceneItem(source.topic, "robot", at, frames[1])
    try:
        robot = robot_of(log, source, at)
    except LogError as error:
        item.note, item.place = f"It cannot be read: {error.text}.", None
        return item
    places, unknown = robot.places(*frames, joint_positions(log, at), None)
    if not places:
        places, unknown = robot.places(*frames, joint_positions(log, at), body or NOWHERE)
        where = "the vehicle" if body is not None else "the origin"
        item.note = f"The log has no transform of its links: it is drawn at {where}."
    shown = drawn(robot, places, meshes)
    item.arrays, item.total = shown.arrays, len(robot.shapes)
    if unknown:
        names = ", ".join(sorted(unknown)[:3]) + (" …" if len(unknown) > 3 else "")
        item.note += f" The log has no position of {len(unknown)} joints ({names}): they are drawn at 0."
    if shown.missing:
        name = shown.missing[0].rpartition("/")[2][:60] + (" …" if len(shown.missing) > 1 else "")
        why = "name their folder with --meshes" if meshes is None else "they are not in the folder of meshes"
        item.note += f" Meshes ({name}) are not drawn: {why}."
    item.note = item.note.strip()
    return item


def _place_all(items: list[SceneItem], tree: FramesAt, fixed: str) -> None:
    """Find the place of each item in the fixed frame, and say what is assumed where the log does not tell it."""
    body = next((other for other in items if other.kind in ("body", "pose") and not other.frame), None)
    body_place = _body_place(items)
    for item in items:
        if item.place is None or item.kind == "robot":
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
        elif item.kind in ("cloud", "scan") and body is not None and body_place is not None:
            item.place = body_place
            item.note += f" The log does not say where the sensor is: it is drawn at {body.topic!r}."
        item.note = item.note.strip()
