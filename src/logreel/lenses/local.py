"""Positions and attitudes of a vehicle in a local frame without a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.lenses.base import (
    Columns,
    Nodes,
    Stamp,
    columns,
    find_stamp,
    is_float,
    is_integer,
    is_number,
    members,
    nodes_of,
)
from logreel.lenses.motion import Places
from logreel.log.channel_facts import units_of

if TYPE_CHECKING:
    from logreel.log.log import Channel

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
        found = columns(ch, [*self.position, *turn, *more], start, end, self.stamp)
        place = np.zeros((len(found.time), 3))
        place[:, : len(self.position)] = found.stack(self.position)
        if self.valid:
            place[~np.asarray(found.values[self.valid], np.bool_), :2] = np.nan
        if self.attitude:
            rotation = found.stack(turn)
            # A quaternion of zeros is no rotation.
            rotation[~rotation.any(axis=1)] = np.nan
            if self.turned:
                rotation[~np.asarray(found.values[self.turned], np.bool_)] = np.nan
        elif self.heading:
            half = found.values[self.heading].astype(np.float64) / 2
            zero = np.zeros(len(half))
            rotation = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
        else:
            rotation = np.tile([0.0, 0.0, 0.0, 1.0], (len(place), 1))
        frame = child = None
        if self.aerospace:
            other = self._unaligned(found)
            north = place[:, [1, 0, 2]] * (1, 1, -1) + 0.0
            # Without an attitude there is nothing to convert: the body keeps the axes of the local frame.
            turned = from_aerospace(rotation) if self.turns else rotation
            ahead = rotation * (1, -1, -1, 1) if self.turns else rotation
            place = np.where(other[:, None], place * (1, -1, -1) + 0.0, north)
            rotation = np.where(other[:, None], ahead, turned)
            frame = np.where(other, ODOM, MAP).astype(object)
            child = np.full(len(place), body_of(ch.topic), object)
        return Places(found.time, place, rotation, frame, child, found.row, found.stamp, self._held(found))

    def _unaligned(self, found: Columns) -> NDArray[np.bool_]:
        if self.unaligned is None:
            return np.zeros(len(found.time), np.bool_)
        path, value = self.unaligned
        return np.asarray(found.values[path] == value, np.bool_)

    def _held(self, found: Columns) -> NDArray[np.bool_] | None:
        if not self.resets:
            return None
        held = np.zeros(len(found.time), np.bool_)
        for path in self.resets:
            counter = found.values[path]
            before, after = counter[:-1], counter[1:]
            # An origin that is not known is NaN, which is not equal to itself.
            held[:-1] |= (before != after) & ((before == before) | (after == after))
        return held


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
    found: F64 = _HALF * np.stack([x + y, x - y, w - z, w + z], axis=-1)
    return found


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
    stamp = find_stamp(nodes)
    # Flight controllers stamp their messages with microseconds, and use aerospace axes.
    if nodes.get("timestamp") == Scalar("uint64"):
        return _of_flight_controller(nodes, stamp)
    for path in ("", "pose", "pos"):
        inner = (
            nodes_of(nodes.get(path)) if isinstance(nodes.get(path), Struct) else nodes if not path else {}
        )
        angle = next((name for name in _ANGLES if is_float(inner.get(name))), None)
        if angle and is_float(inner.get("x")) and is_float(inner.get("y")) and "w" not in inner:
            at = path + "." if path else ""
            high = ("z",) if is_float(inner.get("z")) else ()
            return LocalPose(tuple(at + name for name in ("x", "y", *high)), None, at + angle, stamp=stamp)
    return None


def _of_flight_controller(nodes: Nodes, stamp: Stamp | None) -> LocalPose | None:
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
    kind = next(((name, value) for name, value in _UNALIGNED if is_integer(nodes.get(name))), None)
    return LocalPose(
        place,
        quad,
        None if quad else heading,
        _VALID if place and _VALID in nodes else None,
        True,
        stamp,
        _TURNED if quad == "q_d" and _TURNED in nodes else None,
        tuple(name for name in _RESETS if is_number(nodes.get(name))),
        kind,
    )


def find_named_position(ch: Channel) -> LocalPose | None:
    """Return the LocalPose of a channel named ``position`` whose messages are three numbers in metres, or None."""
    values = {name: node for name, node in members(ch).items() if name != "sample"}
    if ch.topic.rpartition("/")[2] != "position" or len(values) != 1:
        return None
    ((name, node),) = values.items()
    units = set(units_of(ch.layout))
    return (
        LocalPose(tuple(f"{name}[{i}]" for i in range(3))) if _is_array(node, 3) and units <= {"m"} else None
    )


def _is_array(node: Node | None, count: int) -> bool:
    return isinstance(node, FixedArray) and node.count == count and is_float(node.item)
