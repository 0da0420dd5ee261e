"""Positions, poses, transforms, actors and text as columns of well-known messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, ActorStates, Places, Pose, Position, Text, Transform
from logreel.lenses.base import grouped
from logreel.lenses.position import UNKNOWN, Quality
from logreel.lenses.vehicle import VehiclePose
from logreel.outputs.foxglove.schemas import Fill, Rows, number_of, stamped
from logreel.schemas.protobuf.encoder import Many, Values, same, texts

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Default frame of poses.
WORLD = "world"
#: Foxglove log levels by syslog level; 0: unknown.
_LEVELS = {None: 0, 7: 1, 6: 2, 5: 2, 4: 3, 3: 4, 2: 5, 1: 5, 0: 5}
#: Red, green, blue by kind of actor; others are grey.
_COLOURS = {"vehicle": (0.2, 0.5, 1.0), "walker": (1.0, 0.6, 0.1), "traffic_light": (0.9, 0.9, 0.2)}
_GREY, _ALPHA = (0.6, 0.6, 0.6), 0.6
#: Metres: length and diameter of shaft and head of the arrow, for actors without a box.
_ARROW = {"shaft_length": 0.7, "shaft_diameter": 0.1, "head_length": 0.3, "head_diameter": 0.3}


def location(lens: Position, shift: int) -> Fill:
    """Return the function that fills ``LocationFix`` with valid positions, in degrees and metres."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        fixes = lens.fixes(ch, start, end, quality=True)
        valid = fixes.take(fixes.valid)
        values = {
            "timestamp": stamped(ch, valid.time, valid.stamp, shift),
            "latitude": valid.latitude,
            "longitude": valid.longitude,
            "altitude": valid.altitude,
        }
        return valid.time, {**values, **({} if valid.quality is None else _quality(valid.quality))}

    return fill


def _quality(quality: Quality) -> Values:
    """Return the columns of ``LocationFix`` with accuracy, velocity and heading, where they are known."""
    known = np.asarray(quality.kind != UNKNOWN, np.bool_)
    moving = np.asarray(np.isfinite(quality.velocity[:, :2]).all(axis=1), np.bool_)
    # Zeros are not written, and an unknown heading must not be: north is a negative zero.
    heading = np.where(quality.heading == 0, -0.0, np.nan_to_num(quality.heading))
    return {
        "position_covariance": Many(_counted(known) * 9, quality.covariance[known].reshape(-1)),
        "position_covariance_type": quality.kind.astype(np.int32),
        "heading": heading,
        "velocity": Many(_counted(moving), vector(np.nan_to_num(quality.velocity[moving]))),
    }


def pose(lens: Pose | VehiclePose, shift: int) -> Fill:
    """Return the function that fills ``PoseInFrame``, or ``PosesInFrame`` for messages with many poses."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        places = _track(lens, ch, start, end)
        poses = {"position": vector(places.position), "orientation": quaternion(places.rotation)}
        stamp = stamped(ch, places.time, places.stamp, shift)
        if not (isinstance(lens, Pose) and lens.repeated):
            frame = _frames(places.frame, len(places.time), WORLD)
            return places.time, {"timestamp": stamp, "frame_id": frame, "pose": poses}
        first, offsets = grouped(places.row)
        frame = _frames(None if places.frame is None else places.frame[first], len(first), WORLD)
        columns = {"timestamp": stamp[first], "frame_id": frame, "poses": Many(offsets, poses)}
        return places.time[first], columns

    return fill


def transform(lens: Transform | VehiclePose, shift: int) -> Fill:
    """Return the function that fills ``FrameTransform``, or ``FrameTransforms`` for messages with many."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        places = _track(lens, ch, start, end)
        transforms = _transforms(places, ch, shift)
        if not (isinstance(lens, Transform) and lens.repeated):
            return places.time, transforms
        first, offsets = grouped(places.row)
        return places.time[first], {"transforms": Many(offsets, transforms)}

    return fill


def _track(lens: Pose | Transform | VehiclePose, ch: Channel, start: int | None, end: int | None) -> Places:
    """Return the poses at the messages of *ch*; those of a vehicle may need another channel, too."""
    return lens.track(start, end, ch) if isinstance(lens, VehiclePose) else lens.track(ch, start, end)


def _transforms(places: Places, ch: Channel, shift: int) -> Values:
    n = len(places.time)
    return {
        "timestamp": stamped(ch, places.time, places.stamp, shift),
        "parent_frame_id": _frames(places.frame, n, WORLD),
        "child_frame_id": _frames(places.child, n, ch.topic),
        "translation": vector(places.position),
        "rotation": quaternion(places.rotation),
    }


def log_lines(lens: Text, shift: int) -> Fill:
    """Return the function that fills ``Log`` with text lines, level and source."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        lines, stamps = lens.stamped(ch, start, end)
        time = np.array([line.time for line in lines], np.int64)
        return time, {
            "timestamp": stamped(ch, time, stamps, shift),
            "level": np.array([_LEVELS.get(line.level, 0) for line in lines], np.int32),
            "message": texts([line.text for line in lines]),
            "name": texts([line.source for line in lines]),
        }

    return fill


def scene(lens: ActorPose, shift: int) -> Fill:
    """Return the function that fills ``SceneUpdate`` with boxes of all actors, in metres, right-handed axes."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        states = lens.states(ch, start, end)
        first, offsets = grouped(states.time)
        time, each = states.time[first], np.arange(len(first) + 1, dtype=np.int64)
        every = np.full(len(first), number_of("SceneEntityDeletion.Type", "ALL"), np.int32)
        deletion = {"timestamp": time + shift, "type": every}
        return time, {"deletions": Many(each, deletion), "entities": Many(offsets, _entities(states, shift))}

    return fill


def _entities(states: ActorStates, shift: int) -> Values:
    n = len(states.time)
    boxed = states.boxed
    pairs = np.arange(n + 1, dtype=np.int64) * 2
    values = [text for pair in zip(states.kind, states.model, strict=True) for text in pair]
    return {
        "timestamp": states.time + shift,
        "frame_id": same(WORLD, n),
        "id": texts(list(map(str, states.id.tolist()))),
        "metadata": Many(pairs, {"key": texts(["class", "model"] * n), "value": texts(values)}),
        "cubes": Many(_counted(boxed), _boxes(states, boxed)),
        "arrows": Many(_counted(~boxed), _arrows(states, ~boxed)),
    }


def _boxes(states: ActorStates, which: NDArray[np.bool_]) -> Values:
    turn = states.rotation[which]
    return {
        "pose": {"position": vector(states.middle[which]), "orientation": quaternion(turn)},
        "size": vector(states.size[which]),
        "color": _colours(states.kind[which]),
    }


def _arrows(states: ActorStates, which: NDArray[np.bool_]) -> Values:
    n = int(which.sum())
    place, turn = states.position[which], states.rotation[which]
    return {
        "pose": {"position": vector(place), "orientation": quaternion(turn)},
        **{name: np.full(n, value) for name, value in _ARROW.items()},
        "color": _colours(states.kind[which]),
    }


def _colours(kinds: NDArray[Any]) -> Values:
    colours = np.array([_COLOURS.get(actor_type, _GREY) for actor_type in kinds], np.float64).reshape(-1, 3)
    return dict(zip("rgb", colours.T, strict=True)) | {"a": np.full(len(colours), _ALPHA)}


def vector(values: F64) -> Values:
    """Return float64[n, 3] as the columns of a ``Vector3``."""
    return dict(zip("xyz", values.T, strict=True))


def quaternion(values: F64) -> Values:
    """Return float64[n, 4] as the columns of a ``Quaternion``."""
    return dict(zip("xyzw", values.T, strict=True))


def _counted(which: NDArray[np.bool_]) -> I64:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(which, dtype=np.int64)])


def _frames(names: NDArray[Any] | None, n: int, usual: str) -> Many:
    return same(usual, n) if names is None else texts([str(name or usual) for name in names])
