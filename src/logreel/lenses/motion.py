"""Poses, transforms, inertial measurements and joint states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64, I64
from logreel.layout.nodes import FixedArray, Node, Sequence, String, Struct
from logreel.lenses.base import (
    Nodes,
    Stamp,
    axes,
    columns,
    find_stamp,
    flatten,
    is_float,
    is_floats,
    is_vector,
    nodes_of,
    times_of,
)

if TYPE_CHECKING:
    from logreel.log.log import Channel


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
    held      bool[k]        the pose does not lead to the next one, as the estimator was reset in between; None: never
    """

    time: I64
    position: F64
    rotation: F64
    frame: NDArray[Any] | None
    child: NDArray[Any] | None
    row: I64
    stamp: I64
    held: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Pose:
    """Pose in a reference frame: paths of the position vector and the quaternion.

    frame  path of the name of the reference frame
    child  path of the name of the frame that the pose belongs to
    many   a message contains any number of poses, such as a planned path
    stamp  time of measurement of the message; the poses of a list have none, since they may be planned

    Without *position*, the orientation is an array of four numbers, and the poses are at the origin. The metadata
    ``quaternion_order`` of a channel states their order; it is ``w x y z`` by default.
    """

    position: str | None
    orientation: str
    frame: str | None = None
    child: str | None = None
    many: bool = False
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
        found = columns(ch, paths, start, end, self.stamp)
        origin = np.zeros((len(found.time), 3))
        return Places(found.time, origin, found.stack(paths), None, None, found.row, found.stamp)


@dataclass(frozen=True, slots=True)
class Transform:
    """Transform between two frames: paths of the vector, the quaternion, and the names of both frames.

    many   a message contains any number of transforms
    stamp  time at which it is valid: of each transform, or else of the message
    """

    translation: str
    rotation: str
    frame: str | None = None
    child: str | None = None
    many: bool = False
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
    found = columns(ch, [*place, *turn, *(name for name in (frame, child) if name)], start, end, stamp)
    return Places(
        found.time,
        found.stack(place),
        found.stack(turn),
        found.values[frame] if frame else None,
        found.values[child] if child else None,
        found.row,
        found.stamp,
    )


#: Paths of poses and transforms in a message, shortest first.
_POSES = ("", "pose", "pose.pose", "pos", "poses", "poses.pose")
_TRANSFORMS = ("", "transform", "transforms", "transforms.transform")
#: Paths of the names of the reference frame and of the frame that is placed in it, most specific first.
_FRAMES = ("header.frame_id", "parent_frame_id", "frame_id")
_CHILDREN = ("child_frame_id",)


def find_pose(nodes: Nodes) -> Pose | None:
    """Return the Pose that *nodes* describe, or None."""
    for path, found, around, many in _candidates(nodes, _POSES):
        if is_vector(found.get("position")) and is_vector(found.get("orientation"), "xyzw"):
            at = path + "." if path else ""
            frames = _frame_paths(nodes, around, found, path, many)
            return Pose(at + "position", at + "orientation", *frames, many, find_stamp(nodes))
    turned = nodes.get("quaternion")
    if isinstance(turned, FixedArray) and turned.count == 4 and is_float(turned.item):
        return Pose(None, "quaternion", stamp=find_stamp(nodes))
    return None


def find_transform(nodes: Nodes) -> Transform | None:
    """Return the Transform that *nodes* describe, or None."""
    for path, found, around, many in _candidates(nodes, _TRANSFORMS):
        if is_vector(found.get("translation")) and is_vector(found.get("rotation"), "xyzw"):
            at = path + "." if path else ""
            frames, item = _frame_paths(nodes, around, found, path, many), path.rpartition(".")[0]
            # The stamp of each transform: in the transform itself, or next to it in an item of the list.
            stamp = find_stamp(found, path) if many else None
            stamp = stamp or (find_stamp(around, item) if many and item else None)
            return Transform(at + "translation", at + "rotation", *frames, many, stamp or find_stamp(nodes))
    return None


def _candidates(nodes: Nodes, paths: tuple[str, ...]) -> Iterator[tuple[str, Nodes, Nodes, bool]]:
    """Yield each of *paths* that exists: path, its members, members of its parent, and whether it is in a list."""
    for path in paths:
        node: Node | None = None
        here, around, many = nodes, nodes, False
        for name in path.split(".") if path else ():
            node = here.get(name)
            around, here = here, nodes_of(node)
            many |= isinstance(node, Sequence)
        if not path or isinstance(node, Struct | Sequence):
            yield path, here, around, many


def _frame_paths(
    nodes: Nodes, around: Nodes, inner: Nodes, path: str, many: bool
) -> tuple[str | None, str | None]:
    """Return the paths of the frame names: in the parent of the item if it is in a list, else in the message."""
    found: list[str | None] = []
    places = [(path, inner), (path.rpartition(".")[0], around)] if many else []
    places = [(f"{at}.", own) for at, own in places if at] + [("", nodes)]
    for names in (_FRAMES, _CHILDREN):
        known = (at + name for at, own in places for name in names if _is_string(own, name))
        found.append(next(known, None))
    return found[0], found[1]


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
        found = columns(ch, [*rate, *acceleration, *turn])
        return found.time, found.stack(rate), found.stack(acceleration), found.stack(turn)


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
        from logreel.log.tables import DENSE, table

        found = table(ch, [self.name, self.position, self.velocity, self.effort], None, None, DENSE)
        names, rows = flatten(found[self.name])
        begin = np.searchsorted(rows, np.arange(len(found) + 1))
        place = np.arange(len(rows)) - begin[rows]
        time = times_of(found)[rows]
        values = [
            _values_by_name(*flatten(found[f]), rows, place)
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
    there = at < len(owner)
    there[there] = owner[at[there]] == rows[there]
    out = np.full(len(rows), np.nan)
    out[there] = flat[at[there]]
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
