"""Who was where: poses and boxes of many actors, each under its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.layout.nodes import Struct
from logreel.lenses.base import F64, Nodes, axes, columns, is_integer, is_vector, members

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

TURN = ("roll", "pitch", "yaw")


@dataclass(frozen=True, slots=True)
class ActorStates:
    """Actors in the order of the log, one row per actor and moment.

    time      int64[k]       ns
    id        int64[k]       the actor
    position  float64[k, 3]  metres, right-handed: x forward, y left, z up
    rotation  float64[k, 4]  quaternion x, y, z, w
    kind      object[k]      what it is, e.g. ``vehicle``; empty where the log does not tell
    model     object[k]      what its model is called, e.g. ``vehicle.audi.tt``; empty where the log does not tell
    centre    float64[k, 3]  metres from its position to the middle of its box, in its own axes; NaN where not told
    size      float64[k, 3]  metres: length, width and height of the box; NaN where not told
    """

    time: I64
    id: I64
    position: F64
    rotation: F64
    kind: NDArray[Any]
    model: NDArray[Any]
    centre: F64
    size: F64

    def track(self, actor: int) -> tuple[I64, F64, F64]:
        """Of one actor int64[n] ns, float64[n, 3] metres, float64[n, 4] quaternion."""
        mine = self.id == actor
        return self.time[mine], self.position[mine], self.rotation[mine]


@dataclass(frozen=True, slots=True)
class ActorPose:
    """Where many actors were: paths of their number, of a place, and of angles in degrees."""

    id: str = "id"
    location: str = "location"
    rotation: str = "rotation"

    def states(self, ch: Channel, start: int | None = None, end: int | None = None) -> ActorStates:
        """The states of all actors of *ch* with start <= time < end (ns), with what other channels tell about them."""
        place, turn = axes(self.location), tuple(f"{self.rotation}.{name}" for name in TURN)
        found = columns(_metric(ch), [self.id, *place, *turn], start, end)
        number = np.asarray(found.values[self.id], np.int64)
        known, row = np.unique(number, return_inverse=True)
        centre, size = _boxes(ch.log, known)
        actors = [ch.log.actors.get(actor) for actor in known.tolist()]
        kind = np.array([actor.type if actor else "" for actor in actors], object)
        model = np.array([actor.description if actor else "" for actor in actors], object)
        return ActorStates(
            found.time,
            number,
            found.stack(place),
            quaternion(found.stack(turn)),
            kind[row],
            model[row],
            centre[row],
            size[row],
        )


@dataclass(frozen=True, slots=True)
class ActorBox:
    """How large actors are: paths of their number, of the middle of a box around each, and of half its size."""

    id: str = "id"
    origin: str = "origin"
    extent: str = "extent"

    def boxes(self, ch: Channel) -> tuple[I64, F64, F64]:
        """int64[n] numbers, float64[n, 3] metres to the middle, float64[n, 3] metres of the whole size."""
        place, half = axes(self.origin), axes(self.extent)
        found = columns(_metric(ch), [self.id, *place, *half])
        return np.asarray(found.values[self.id], np.int64), found.stack(place), 2 * found.stack(half)


def _metric(ch: Channel) -> Channel:
    return ch.log.ros_axes()[ch.topic] if ch.log.has_other_axes else ch


#: What logs tell about boxes, which is asked for again and again.
_BOXES: WeakKeyDictionary[Log, tuple[I64, F64, F64]] = WeakKeyDictionary()


def _boxes(log: Log, known: I64) -> tuple[F64, F64]:
    """Middle and size of the box of each of *known*, NaN where the log tells none."""
    if log not in _BOXES:
        _BOXES[log] = _told(log)
    number, middle, whole = _BOXES[log]
    centre, size = np.full((len(known), 3), np.nan), np.full((len(known), 3), np.nan)
    told = np.isin(known, number)
    at = np.searchsorted(number, known[told])
    centre[told], size[told] = middle[at], whole[at]
    return centre, size


def _told(log: Log) -> tuple[I64, F64, F64]:
    """The numbers of all actors that have a box (ascending), its middle and its size; the last one told counts."""
    found: dict[int, tuple[F64, F64]] = {}
    for ch in log.channels.values():
        lens = find_actor_box(members(ch)) if ch.metadata.get("frame") != "world" else None
        if lens is not None:
            number, middle, whole = lens.boxes(ch)
            told = np.isfinite(middle).all(1) & np.isfinite(whole).all(1)
            found |= zip(number[told].tolist(), zip(middle[told], whole[told], strict=True), strict=True)
    numbers = sorted(found)
    boxes = np.array([found[n] for n in numbers], np.float64).reshape(-1, 2, 3)
    return np.array(numbers, np.int64), boxes[:, 0], boxes[:, 1]


def quaternion(turn: F64) -> F64:
    """float64[n, 4] x, y, z, w of float64[n, 3] roll, pitch, yaw in degrees, right-handed, turned about z first."""
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
    """The ActorPose that *nodes* describe, if they do."""
    turn = nodes.get("rotation")
    angles = isinstance(turn, Struct) and [f.name for f in turn.visible()] == list(TURN)
    # An actor that is only announced has further fields, and stays where it is announced.
    few = set(nodes) <= {"frame", "id", "location", "rotation"}
    if few and angles and is_integer(nodes.get("id")) and is_vector(nodes.get("location")):
        return ActorPose()
    return None


def find_actor_box(nodes: Nodes) -> ActorBox | None:
    """The ActorBox that *nodes* describe, if they do."""
    if is_integer(nodes.get("id")) and is_vector(nodes.get("origin")) and is_vector(nodes.get("extent")):
        return ActorBox()
    return None
