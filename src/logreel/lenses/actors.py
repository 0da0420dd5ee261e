"""Poses and bounding boxes of the actors of a simulation, by actor id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Struct
from logreel.lenses.base import Nodes, axes, columns, is_integer, is_vector, members
from logreel.lenses.rotation import rotated

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

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
