"""Positions and attitudes of a vehicle in a local frame without a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.lenses.base import F64, Nodes, Stamp, columns, find_stamp, is_float, members, nodes_of
from logreel.lenses.motion import Places
from logreel.log.channel_facts import units_of

if TYPE_CHECKING:
    from logreel.log.log import Channel

_HALF = np.sqrt(0.5)


@dataclass(frozen=True, slots=True)
class LocalPose:
    """Position, attitude, or both, of a vehicle in a local frame.

    position   paths of x, y and, if there is one, z in metres; () without position
    attitude   path of an array of four numbers w, x, y, z, or None
    heading    path of an angle about the vertical axis in rad, used without *attitude*, or None
    valid      path of a flag that is 0 where the position is not known, or None
    aerospace  True: x north, y east, z down, and a body with x forward, y right, z down; False: z up
    stamp      time of measurement
    """

    position: tuple[str, ...]
    attitude: str | None = None
    heading: str | None = None
    valid: str | None = None
    aerospace: bool = False
    stamp: Stamp | None = None

    @property
    def turns(self) -> bool:
        """Whether an attitude or a heading is known."""
        return bool(self.attitude or self.heading)

    def track(self, ch: Channel, start: int | None = None, end: int | None = None) -> Places:
        """Return the poses in the messages of *ch* with start <= time < end (ns), in right-handed axes with z up.

        Aerospace axes become x east, y north, z up, with a body that has x forward, y left, z up. Without position,
        poses are at the origin; without attitude, the rotation is none. x and y of an unknown position are NaN.
        """
        turn = [f"{self.attitude}[{i}]" for i in (1, 2, 3, 0)] if self.attitude else []
        more = [path for path in (self.heading, self.valid) if path]
        found = columns(ch, [*self.position, *turn, *more], start, end, self.stamp)
        place = np.zeros((len(found.time), 3))
        place[:, : len(self.position)] = found.stack(self.position)
        if self.valid:
            place[~np.asarray(found.values[self.valid], np.bool_), :2] = np.nan
        if self.attitude:
            rotation = found.stack(turn)
        elif self.heading:
            half = found.values[self.heading].astype(np.float64) / 2
            zero = np.zeros(len(half))
            rotation = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
        else:
            rotation = np.tile([0.0, 0.0, 0.0, 1.0], (len(place), 1))
        if self.aerospace:
            place = place[:, [1, 0, 2]] * (1, 1, -1) + 0.0
            # Without an attitude there is nothing to convert: the body keeps the axes of the local frame.
            rotation = from_aerospace(rotation) if self.turns else rotation
        return Places(found.time, place, rotation, None, None, found.row, found.stamp)


def from_aerospace(turn: F64) -> F64:
    """Return attitudes float64[n, 4] (x, y, z, w) from east-north-up to a body forward-left-up.

    turn  the same from north-east-down to a body forward-right-down
    """
    x, y, z, w = turn.T
    # Both exchanges of axes are half turns: (√½, √½, 0, 0) before, and (1, 0, 0, 0) after the attitude.
    return _HALF * np.stack([x + y, x - y, w - z, w + z], axis=-1)


#: Field names of an angle about the vertical axis.
_ANGLES = ("theta", "heading", "yaw", "th")
#: Flags of a flight controller that says where its position is known.
_VALID = "xy_valid"


def find_local_pose(nodes: Nodes) -> LocalPose | None:
    """Return the LocalPose that *nodes* describe, or None."""
    stamp, quad = find_stamp(nodes), "q" if _is_array(nodes.get("q"), 4) else None
    # Flight controllers stamp their messages with microseconds, and use aerospace axes.
    if nodes.get("timestamp") == Scalar("uint64"):
        if all(is_float(nodes.get(name)) for name in ("x", "y", "z", "vx", "vy", "vz")) and _VALID in nodes:
            heading = next((name for name in ("heading", "yaw") if is_float(nodes.get(name))), None)
            return LocalPose(("x", "y", "z"), quad, heading, _VALID, True, stamp)
        if quad and _is_array(nodes.get("position"), 3):
            return LocalPose(("position[0]", "position[1]", "position[2]"), quad, None, None, True, stamp)
        return LocalPose((), quad, aerospace=True, stamp=stamp) if quad else None
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
