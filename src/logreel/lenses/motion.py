"""Poses, transforms, inertial measurements and joint states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import FixedArray, Node, Scalar, Sequence, String, Struct
from logreel.lenses.base import (
    Columns,
    Nodes,
    Stamp,
    axes,
    columns,
    columns_by_path,
    find_stamp,
    is_float,
    is_floats,
    is_integer,
    is_number,
    is_vector,
    members,
    nodes_of,
)
from logreel.lenses.rotation import rotated
from logreel.log.scan import units_of

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


@dataclass(frozen=True, slots=True)
class Places:
    """Positions and rotations in the order of the log, one row per pose or transform.

    time      int64[k]       ns
    position  float64[k, 3]  metres
    rotation  float64[k, 4]  quaternion x, y, z, w
    frame     object[k]      name of the reference frame, or None
    child     object[k]      name of the frame that the pose belongs to, or None
    row       int64[k]       the row of the channel's table; items of one message share it
    stamp     int64[k]       ns of measurement, according to the message; 0 if unknown
    kept      bool[k]        the pose does not lead to the next one, as the estimator was reset in between; None: never
    """

    time: I64
    position: F64
    rotation: F64
    frame: NDArray[Any] | None
    child: NDArray[Any] | None
    row: I64
    stamp: I64
    kept: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Pose:
    """Pose in a reference frame: paths of the position vector and the quaternion.

    frame  path of the name of the reference frame
    child  path of the name of the frame that the pose belongs to
    repeated  a message contains any number of poses, such as a planned path
    stamp  time of measurement of the message; the poses of a list have none, since they may be planned

    Without *position*, the orientation is an array of four numbers, and the poses are at the origin. The metadata
    ``quaternion_order`` of a channel states their order; it is ``w x y z`` by default.
    """

    position: str | None
    orientation: str
    frame: str | None = None
    child: str | None = None
    repeated: bool = False
    stamp: Stamp | None = None

    def track(self, ch: Channel, start: int | None = None, end: int | None = None) -> Places:
        """Return the poses in the messages of *ch* with start <= time < end (ns)."""
        if self.position is None:
            return self._turns(ch, start, end)
        paths = self.position, self.orientation, self.frame, self.child
        return _track(ch, *paths, self.stamp, start, end)

    def _turns(self, ch: Channel, start: int | None, end: int | None) -> Places:
        """Return the orientations of *ch* at the origin."""
        order = str(ch.metadata.get("quaternion_order", "w x y z")).split()
        at = ["xyzw".find(name) for name in order]
        if sorted(at) != [0, 1, 2, 3]:
            at = [3, 0, 1, 2]
        paths = [f"{self.orientation}[{at.index(n)}]" for n in range(4)]
        turns = columns(ch, paths, start, end, self.stamp)
        origin = np.zeros((len(turns.time), 3))
        return Places(turns.time, origin, turns.stack(paths), None, None, turns.row, turns.stamp)


@dataclass(frozen=True, slots=True)
class Transform:
    """Transform between two frames: paths of the vector, the quaternion, and the names of both frames.

    repeated  a message contains any number of transforms
    stamp  time at which it is valid: of each transform, or else of the message
    """

    translation: str
    rotation: str
    frame: str | None = None
    child: str | None = None
    repeated: bool = False
    stamp: Stamp | None = None

    def track(self, ch: Channel, start: int | None = None, end: int | None = None) -> Places:
        """Return the transforms in the messages of *ch* with start <= time < end (ns)."""
        paths = self.translation, self.rotation, self.frame, self.child
        return _track(ch, *paths, self.stamp, start, end)


def _track(
    ch: Channel,
    vector: str,
    quaternion: str,
    frame: str | None,
    child: str | None,
    stamp: Stamp | None,
    start: int | None,
    end: int | None,
) -> Places:
    place, turn = axes(vector), axes(quaternion, "xyzw")
    poses = columns(ch, [*place, *turn, *(name for name in (frame, child) if name)], start, end, stamp)
    return Places(
        poses.time,
        poses.stack(place),
        poses.stack(turn),
        poses.values[frame] if frame else None,
        poses.values[child] if child else None,
        poses.row,
        poses.stamp,
    )


#: Paths of poses and transforms in a message, shortest first.
_POSES = ("", "pose", "pose.pose", "pos", "poses", "poses.pose")
_TRANSFORMS = ("", "transform", "transforms", "transforms.transform")
#: Paths of the names of the reference frame and of the frame that is placed in it, most specific first.
_FRAMES = ("header.frame_id", "parent_frame_id", "frame_id")
_CHILDREN = ("child_frame_id",)


def find_pose(nodes: Nodes) -> Pose | None:
    """Return the Pose that *nodes* describe, or None."""
    for path, inner, around, repeated in _candidates(nodes, _POSES):
        if is_vector(inner.get("position")) and is_vector(inner.get("orientation"), "xyzw"):
            at = path + "." if path else ""
            frames = _frame_paths(nodes, around, inner, path, repeated)
            return Pose(at + "position", at + "orientation", *frames, repeated, find_stamp(nodes))
    turned = nodes.get("quaternion")
    if isinstance(turned, FixedArray) and turned.count == 4 and is_float(turned.item):
        return Pose(None, "quaternion", stamp=find_stamp(nodes))
    return None


def find_transform(nodes: Nodes) -> Transform | None:
    """Return the Transform that *nodes* describe, or None."""
    for path, inner, around, repeated in _candidates(nodes, _TRANSFORMS):
        if is_vector(inner.get("translation")) and is_vector(inner.get("rotation"), "xyzw"):
            at = path + "." if path else ""
            frames, item = _frame_paths(nodes, around, inner, path, repeated), path.rpartition(".")[0]
            # The stamp of each transform: in the transform itself, or next to it in an item of the list.
            stamp = find_stamp(inner, path) if repeated else None
            stamp = stamp or (find_stamp(around, item) if repeated and item else None)
            return Transform(
                at + "translation", at + "rotation", *frames, repeated, stamp or find_stamp(nodes)
            )
    return None


def _candidates(nodes: Nodes, paths: tuple[str, ...]) -> Iterator[tuple[str, Nodes, Nodes, bool]]:
    """Yield each of *paths* that exists: path, its members, members of its parent, and whether it is in a list."""
    for path in paths:
        node: Node | None = None
        here, around, repeated = nodes, nodes, False
        for name in path.split(".") if path else ():
            node = here.get(name)
            around, here = here, nodes_of(node)
            repeated |= isinstance(node, Sequence)
        if not path or isinstance(node, Struct | Sequence):
            yield path, here, around, repeated


def _frame_paths(
    nodes: Nodes, around: Nodes, inner: Nodes, path: str, repeated: bool
) -> tuple[str | None, str | None]:
    """Return the paths of the frame names: in the parent of the item if it is in a list, else in the message."""
    paths: list[str | None] = []
    places = [(path, inner), (path.rpartition(".")[0], around)] if repeated else []
    places = [(f"{at}.", own) for at, own in places if at] + [("", nodes)]
    for names in (_FRAMES, _CHILDREN):
        known = (at + name for at, own in places for name in names if _is_string(own, name))
        paths.append(next(known, None))
    return paths[0], paths[1]


def _is_string(nodes: Nodes, path: str) -> bool:
    *groups, name = path.split(".")
    for group in groups:
        nodes = nodes_of(nodes.get(group))
    return isinstance(nodes.get(name), String)


@dataclass(frozen=True, slots=True)
class Imu:
    """Measurements of an inertial unit: rad/s and m/s²; *orientation* is the path of a quaternion, if any."""

    rate: str
    acceleration: str
    orientation: str | None = None

    def motion(self, ch: Channel) -> tuple[I64, F64, F64, F64]:
        """Return int64[n] ns, float64[n, 3] rad/s, float64[n, 3] m/s², and quaternions float64[n, 4] ([n, 0]: none)."""
        rate, acceleration = axes(self.rate), axes(self.acceleration)
        turn = axes(self.orientation, "xyzw") if self.orientation else ()
        measured = columns(ch, [*rate, *acceleration, *turn])
        return measured.time, measured.stack(rate), measured.stack(acceleration), measured.stack(turn)


def find_imu(nodes: Nodes) -> Imu | None:
    """Return the Imu that *nodes* describe, or None."""
    if not (is_vector(nodes.get("angular_velocity")) and is_vector(nodes.get("linear_acceleration"))):
        return None
    turned = "orientation" if is_vector(nodes.get("orientation"), "xyzw") else None
    return Imu("angular_velocity", "linear_acceleration", turned)


@dataclass(frozen=True, slots=True)
class Joint:
    """States of one joint: time int64[k] ns; float64[k] rad or m, rad/s or m/s, Nm or N; NaN if not stated."""

    time: I64
    position: F64
    velocity: F64
    effort: F64


@dataclass(frozen=True, slots=True)
class Joints:
    """Joint states of a robot: paths of the lists of names and values; lists of values may be empty."""

    name: str
    position: str
    velocity: str
    effort: str

    def series(self, ch: Channel) -> dict[str, Joint]:
        """Return the states of each joint by name, in the order of first occurrence."""
        from logreel.log.columns import column_rows

        paths = list(dict.fromkeys([self.name, self.position, self.velocity, self.effort]))
        messages = column_rows(ch, paths)
        column = columns_by_path(paths, messages)
        names, rows = column[self.name].flat()
        begin = np.searchsorted(rows, np.arange(len(messages) + 1))
        place = np.arange(len(rows)) - begin[rows]
        time = messages.time[rows]
        values = [
            _values_by_name(*column[f].flat(), rows, place)
            for f in (self.position, self.velocity, self.effort)
        ]
        known, code = np.unique(names.astype(str), return_inverse=True)
        order = np.argsort(code, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(code, minlength=len(known)))[:-1])
        joints = sorted(zip(known.tolist(), parts, strict=False), key=lambda pair: int(pair[1][0]))
        return {name: Joint(time[at], *(v[at] for v in values)) for name, at in joints if len(at)}


def _values_by_name(flat: NDArray[Any], owner: I64, rows: I64, place: I64) -> F64:
    """Return the value at the same row and list position as each name; NaN if the list is too short."""
    at = np.searchsorted(owner, rows) + place
    present = at < len(owner)
    present[present] = owner[at[present]] == rows[present]
    out = np.full(len(rows), np.nan)
    out[present] = flat[at[present]]
    return out


def find_joints(nodes: Nodes) -> Joints | None:
    """Return the Joints that *nodes* describe, or None."""
    name = nodes.get("name")
    values = ("position", "velocity", "effort")
    if (
        isinstance(name, Sequence)
        and isinstance(name.item, String)
        and all(is_floats(nodes.get(v)) for v in values)
    ):
        return Joints("name", *values)
    return None


_HALF = np.sqrt(0.5)
#: Names of the frames of a vehicle, as REP 105 has them: the local frame, one that is not aligned with north, the body.
MAP, ODOM, BODY = "map", "odom", "base_link"
#: Words of topics that do not say which of several poses of a vehicle it is.
_USUAL = re.compile(r"(^|_)(vehicle|local|position|attitude|pose)(?=_|$)")
_INSTANCE = re.compile(r"\[(\d+)\]$")


@dataclass(frozen=True, slots=True)
class LocalPose:
    """Position, attitude, or both, of a vehicle in a local frame.

    position   paths of x, y and, if there is one, z in metres; () without position
    attitude   path of an array of four numbers w, x, y, z, or None
    heading    path of an angle about the vertical axis in rad, used without *attitude*, or None
    valid      path of a flag that is 0 where the position is not known, or None
    aerospace  True: x north, y east, z down (NED), and a body with x forward, y right, z down (FRD); False: z up
    stamp      time of measurement
    turned     path of a flag that is 0 where the attitude is not known, or None
    resets     paths of counters that change when an estimator is reset, so that the pose jumps without a motion
    unaligned  path and value of a number that says that x of the local frame is not north (FRD), or None
    """

    position: tuple[str, ...]
    attitude: str | None = None
    heading: str | None = None
    valid: str | None = None
    aerospace: bool = False
    stamp: Stamp | None = None
    turned: str | None = None
    resets: tuple[str, ...] = ()
    unaligned: tuple[str, int] | None = None

    @property
    def turns(self) -> bool:
        """Whether an attitude or a heading is known."""
        return bool(self.attitude or self.heading)

    @property
    def axes(self) -> str:
        """The axes of the log: of the local frame and of the body."""
        return "NED, FRD" if self.aerospace else "ENU, FLU"

    def track(self, ch: Channel, start: int | None = None, end: int | None = None) -> Places:
        """Return the poses in the messages of *ch* with start <= time < end (ns), in right-handed axes with z up.

        Aerospace axes become x east, y north, z up (ENU), with a body that has x forward, y left, z up (FLU); a local
        frame that is not aligned with north becomes x forward, y left, z up. Without position, poses are at the origin;
        without attitude, the rotation is none. x and y of an unknown position, and an unknown attitude, are NaN.
        """
        turn = [f"{self.attitude}[{i}]" for i in (1, 2, 3, 0)] if self.attitude else []
        more = [path for path in (self.heading, self.valid, self.turned) if path]
        more += [*self.resets, *(self.unaligned or ())[:1]]
        poses = columns(ch, [*self.position, *turn, *more], start, end, self.stamp)
        place = np.zeros((len(poses.time), 3))
        place[:, : len(self.position)] = poses.stack(self.position)
        if self.valid:
            place[~np.asarray(poses.values[self.valid], np.bool_), :2] = np.nan
        if self.attitude:
            rotation = poses.stack(turn)
            # A quaternion of zeros is no rotation.
            rotation[~rotation.any(axis=1)] = np.nan
            if self.turned:
                rotation[~np.asarray(poses.values[self.turned], np.bool_)] = np.nan
        elif self.heading:
            half = poses.values[self.heading].astype(np.float64) / 2
            zero = np.zeros(len(half))
            rotation = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
        else:
            rotation = np.tile([0.0, 0.0, 0.0, 1.0], (len(place), 1))
        frame = child = None
        if self.aerospace:
            other = self._unaligned(poses)
            north = place[:, [1, 0, 2]] * (1, 1, -1) + 0.0
            # Without an attitude there is nothing to convert: the body keeps the axes of the local frame.
            turned = from_aerospace(rotation) if self.turns else rotation
            ahead = rotation * (1, -1, -1, 1) if self.turns else rotation
            place = np.where(other[:, None], place * (1, -1, -1) + 0.0, north)
            rotation = np.where(other[:, None], ahead, turned)
            frame = np.where(other, ODOM, MAP).astype(object)
            child = np.full(len(place), body_of(ch.topic), object)
        return Places(poses.time, place, rotation, frame, child, poses.row, poses.stamp, self._held(poses))

    def _unaligned(self, poses: Columns) -> NDArray[np.bool_]:
        if self.unaligned is None:
            return np.zeros(len(poses.time), np.bool_)
        path, value = self.unaligned
        return np.asarray(poses.values[path] == value, np.bool_)

    def _held(self, poses: Columns) -> NDArray[np.bool_] | None:
        if not self.resets:
            return None
        kept = np.zeros(len(poses.time), np.bool_)
        for path in self.resets:
            counter = poses.values[path]
            before, after = counter[:-1], counter[1:]
            # An origin that is not known is NaN, which is not equal to itself.
            kept[:-1] |= (before != after) & ((before == before) | (after == after))
        return kept


def body_of(topic: str) -> str:
    """Return the name of the frame of a vehicle's body for the pose in *topic*.

    ``base_link`` for the vehicle itself, ``base_link_setpoint``, ``base_link_groundtruth``, ``base_link_estimator_1`` …
    for other poses of it.
    """
    last = topic.rpartition("/")[2]
    instance = _INSTANCE.search(last)
    words = _USUAL.sub("", _INSTANCE.sub("", last)).strip("_")
    # Whether topics are named by what they are (position_setpoint) or what they are for (trajectory_setpoint).
    parts = [BODY, words, instance[1] if instance and instance[1] != "0" else ""]
    return "_".join(part for part in parts if part)


def from_aerospace(turn: F64) -> F64:
    """Return attitudes float64[n, 4] (x, y, z, w) from east-north-up to a body forward-left-up.

    turn  the same from north-east-down to a body forward-right-down
    """
    x, y, z, w = turn.T
    # Both exchanges of axes are half turns: (√½, √½, 0, 0) before, and (1, 0, 0, 0) after the attitude.
    turned: F64 = _HALF * np.stack([x + y, x - y, w - z, w + z], axis=-1)
    return turned


#: Field names of an angle about the vertical axis.
_ANGLES = ("theta", "heading", "yaw", "th")
#: Flags of a flight controller that says where its position is known.
_VALID = "xy_valid"
#: Fields of a flight controller's attitude: measured or estimated, and wanted; with the flag of the latter.
_QUATERNIONS, _TURNED = ("q", "q_d"), "q_d_valid"
#: Counters of the resets of an estimator, and the place of the origin.
_RESETS = (
    "xy_reset_counter", "z_reset_counter", "heading_reset_counter", "quat_reset_counter", "reset_counter", "ref_lat",
    "ref_lon",
)  # fmt: skip
#: Fields that say of which kind the local frame is, with the value for one that is not aligned with north.
_UNALIGNED = (("pose_frame", 2), ("local_frame", 1))


def find_local_pose(nodes: Nodes) -> LocalPose | None:
    """Return the LocalPose that *nodes* describe, or None."""
    # Flight controllers stamp their messages with microseconds, and use aerospace axes.
    if nodes.get("timestamp") == Scalar("uint64"):
        return _of_flight_controller(nodes)
    for path in ("", "pose", "pos"):
        inner = (
            nodes_of(nodes.get(path)) if isinstance(nodes.get(path), Struct) else nodes if not path else {}
        )
        angle = next((name for name in _ANGLES if is_float(inner.get(name))), None)
        if angle and is_float(inner.get("x")) and is_float(inner.get("y")) and "w" not in inner:
            at = path + "." if path else ""
            high = ("z",) if is_float(inner.get("z")) else ()
            path_of_place = tuple(at + name for name in ("x", "y", *high))
            return LocalPose(path_of_place, None, at + angle, stamp=find_stamp(nodes))
    return None


def _of_flight_controller(nodes: Nodes) -> LocalPose | None:
    """Return the LocalPose in a message of a flight controller: an estimate, a wanted pose, or the true one."""
    quad = next((name for name in _QUATERNIONS if _is_array(nodes.get(name), 4)), None)
    heading = next((name for name in ("heading", "yaw") if is_float(nodes.get(name))), None)
    place: tuple[str, ...] = ()
    moves = all(is_float(nodes.get(name)) for name in ("vx", "vy", "vz"))
    if all(is_float(nodes.get(name)) for name in "xyz") and moves:
        place = ("x", "y", "z")
    elif _is_array(nodes.get("position"), 3):
        place = ("position[0]", "position[1]", "position[2]")
    if not quad and not (place and (heading or _VALID in nodes)):
        return None
    unaligned = next(((name, value) for name, value in _UNALIGNED if is_integer(nodes.get(name))), None)
    return LocalPose(
        place,
        quad,
        None if quad else heading,
        _VALID if place and _VALID in nodes else None,
        True,
        find_stamp(nodes),
        _TURNED if quad == "q_d" and _TURNED in nodes else None,
        tuple(name for name in _RESETS if is_number(nodes.get(name))),
        unaligned,
    )


def find_named_position(ch: Channel) -> LocalPose | None:
    """Return the LocalPose of a channel named ``position`` whose messages are three numbers in metres, or None."""
    if ch.topic.rpartition("/")[2] != "position":
        return None
    values = {name: node for name, node in members(ch).items() if name != "sample"}
    if len(values) != 1:
        return None
    ((name, node),) = values.items()
    units = set(units_of(ch.layout))
    return (
        LocalPose(tuple(f"{name}[{i}]" for i in range(3))) if _is_array(node, 3) and units <= {"m"} else None
    )


def _is_array(node: Node | None, count: int) -> bool:
    return isinstance(node, FixedArray) and node.count == count and is_float(node.item)


TURN = ("roll", "pitch", "yaw")


@dataclass(frozen=True, slots=True)
class ActorStates:
    """States of actors in the order of the log, one row per actor and time.

    time      int64[k]       ns
    id        int64[k]       actor id
    position  float64[k, 3]  metres, right-handed: x forward, y left, z up
    rotation  float64[k, 4]  quaternion x, y, z, w
    kind      object[k]      type, e.g. ``vehicle``; empty if unknown
    model     object[k]      model name, e.g. ``vehicle.audi.tt``; empty if unknown
    centre    float64[k, 3]  metres from its position to the centre of its box, in its own axes; NaN if unknown
    size      float64[k, 3]  metres: length, width and height of the box; NaN if unknown
    """

    time: I64
    id: I64
    position: F64
    rotation: F64
    kind: NDArray[Any]
    model: NDArray[Any]
    centre: F64
    size: F64

    @property
    def boxed(self) -> NDArray[np.bool_]:
        """bool[k]: where the box is known; what has none is a sensor or a part of the scenery."""
        return np.asarray(np.isfinite(np.hstack([self.size, self.centre])).all(axis=1))

    @property
    def middle(self) -> F64:
        """float64[k, 3]: the centres of the boxes in metres; positions of actors without a box."""
        return np.asarray(self.position + rotated(self.rotation, np.nan_to_num(self.centre)))

    def track(self, actor: int) -> tuple[I64, F64, F64]:
        """Return times int64[n] ns, positions float64[n, 3] m and quaternions float64[n, 4] of one actor."""
        rows = self.id == actor
        return self.time[rows], self.position[rows], self.rotation[rows]


@dataclass(frozen=True, slots=True)
class ActorPose:
    """Poses of actors: paths of the actor id, of the position, and of roll, pitch and yaw in degrees."""

    id: str = "id"
    location: str = "location"
    rotation: str = "rotation"

    def states(self, ch: Channel, start: int | None = None, end: int | None = None) -> ActorStates:
        """Return states of all actors of *ch* with start <= time < end (ns); boxes come from other channels."""
        place, turn = axes(self.location), tuple(f"{self.rotation}.{name}" for name in TURN)
        poses = columns(_in_metres(ch), [self.id, *place, *turn], start, end)
        number = np.asarray(poses.values[self.id], np.int64)
        known, row = np.unique(number, return_inverse=True)
        centre, size = _boxes_of(ch.log, known)
        actors = [ch.log.actors.get(actor) for actor in known.tolist()]
        actor_type = np.array([actor.type if actor else "" for actor in actors], object)
        model = np.array([actor.description if actor else "" for actor in actors], object)
        return ActorStates(
            poses.time,
            number,
            poses.stack(place),
            quaternion(poses.stack(turn)),
            actor_type[row],
            model[row],
            centre[row],
            size[row],
        )


@dataclass(frozen=True, slots=True)
class ActorBox:
    """Sizes of actors: paths of the actor id, and of the centre and half the size of its bounding box."""

    id: str = "id"
    origin: str = "origin"
    extent: str = "extent"

    def boxes(self, ch: Channel) -> tuple[I64, F64, F64]:
        """Return actor ids int64[n], box centres float64[n, 3] m and full box sizes float64[n, 3] m."""
        place, half = axes(self.origin), axes(self.extent)
        halves = columns(_in_metres(ch), [self.id, *place, *half])
        return np.asarray(halves.values[self.id], np.int64), halves.stack(place), 2 * halves.stack(half)


def _in_metres(ch: Channel) -> Channel:
    return ch.log.ros_axes()[ch.topic] if ch.log.has_other_axes else ch


#: Boxes by log, since every channel of poses needs them.
_BOXES: WeakKeyDictionary[Log, tuple[I64, F64, F64]] = WeakKeyDictionary()


def _boxes_of(log: Log, known: I64) -> tuple[F64, F64]:
    """Return centre and size, float64[k, 3] each, of the boxes of the actors *known*; NaN if the log has none."""
    if log not in _BOXES:
        _BOXES[log] = _all_boxes(log)
    number, middle, lengths = _BOXES[log]
    centre, size = np.full((len(known), 3), np.nan), np.full((len(known), 3), np.nan)
    has_box = np.isin(known, number)
    at = np.searchsorted(number, known[has_box])
    centre[has_box], size[has_box] = middle[at], lengths[at]
    return centre, size


def _all_boxes(log: Log) -> tuple[I64, F64, F64]:
    """Return ids of all actors with a box (ascending), and its centre and size; the last box in the log counts."""
    by_actor: dict[int, tuple[F64, F64]] = {}
    for ch in log.channels.values():
        lens = find_actor_box(members(ch)) if ch.metadata.get("frame") != "world" else None
        if lens is not None:
            number, middle, lengths = lens.boxes(ch)
            valid = np.isfinite(middle).all(1) & np.isfinite(lengths).all(1)
            by_actor |= zip(
                number[valid].tolist(), zip(middle[valid], lengths[valid], strict=True), strict=True
            )
    numbers = sorted(by_actor)
    boxes = np.array([by_actor[n] for n in numbers], np.float64).reshape(-1, 2, 3)
    return np.array(numbers, np.int64), boxes[:, 0], boxes[:, 1]


def quaternion(turn: F64) -> F64:
    """Return quaternions float64[n, 4] (x, y, z, w) of roll, pitch, yaw float64[n, 3] in degrees.

    Right-handed; rotation about z (yaw) first.
    """
    half = np.radians(turn) / 2
    (sr, sp, sy), (cr, cp, cy) = np.sin(half).T, np.cos(half).T
    parts = (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )
    return np.stack(parts, axis=-1)


def find_actor_pose(nodes: Nodes) -> ActorPose | None:
    """Return the ActorPose that *nodes* describe, or None."""
    turn = nodes.get("rotation")
    angles = isinstance(turn, Struct) and [f.name for f in turn.visible()] == list(TURN)
    # Records that only announce an actor have further fields, and give no trajectory.
    few = set(nodes) <= {"frame", "id", "location", "rotation"}
    if few and angles and is_integer(nodes.get("id")) and is_vector(nodes.get("location")):
        return ActorPose()
    return None


def find_actor_box(nodes: Nodes) -> ActorBox | None:
    """Return the ActorBox that *nodes* describe, or None."""
    if is_integer(nodes.get("id")) and is_vector(nodes.get("origin")) and is_vector(nodes.get("extent")):
        return ActorBox()
    return None
