"""Positions, poses, transforms, actors, text, pictures, point clouds and scans as the well-known messages of Foxglove:
their schemas, by field names and numbers, and the columns that fill them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem, UnsupportedError
from logreel.io.arrays import F64, I64
from logreel.lenses import (
    ActorPose,
    ActorStates,
    Image,
    PackedCloud,
    PacketCloud,
    Picture,
    Places,
    PlainCloud,
    Points,
    Pose,
    Position,
    Text,
    Transform,
)
from logreel.lenses.base import grouped
from logreel.lenses.cloud import LaserScan, RangeScan, Sector
from logreel.lenses.position import UNKNOWN, Quality
from logreel.lenses.vehicle import VehiclePose
from logreel.schemas.protobuf.encoder import Many, Values, same, texts
from logreel.schemas.protobuf.types import KINDS, TIMES, Enum, ProtoField, ProtoMessage

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: ns; larger stamps are Unix time, smaller ones count from a start. This is in 1973.
SINCE_1970 = 10**8 * 10**9


def stamped(ch: Channel, time: I64, stamp: I64, shift: int) -> I64:
    """Return int64[n] ns for the field ``timestamp``: time of measurement if known, else time of logging.

    time   int64[n]  times of the messages, by the clock of the log
    stamp  int64[n]  stamps in the messages; 0 if they have none
    shift  ns to add to times of the clock of the log; stamps of another clock are not changed
    """
    ours = (stamp >= SINCE_1970) == (ch.log.epoch == "unix")
    return np.where(stamp == 0, time + shift, np.where(ours, stamp + shift, stamp))


#: Times (int64[n] ns, by the clock of the log) and columns of messages.
Rows = tuple[I64, Mapping[str, Any]]
#: Function that returns the Rows of a channel with start <= time < end (ns).
Fill = Callable[["Channel", int | None, int | None], Rows]


PACKAGE = "foxglove"

#: Names of enum values from 0 on; an enum is declared in the message before the dot.
_ENUMS = {
    "LocationFix.PositionCovarianceType": "UNKNOWN APPROXIMATED DIAGONAL_KNOWN KNOWN",
    "PackedElementField.NumericType": "UNKNOWN UINT8 INT8 UINT16 INT16 UINT32 INT32 FLOAT32 FLOAT64",
    "Log.Level": "UNKNOWN DEBUG INFO WARNING ERROR FATAL",
    "LinePrimitive.Type": "LINE_STRIP LINE_LOOP LINE_LIST",
    "SceneEntityDeletion.Type": "MATCHING_ID ALL",
}
_PRIMITIVE = "pose 1 Pose, size 2 Vector3"
#: Fields per message: name, number and type; ``*`` after the type: repeated, ``?``: optional.
MESSAGES = {
    "Color": "r 1 double, g 2 double, b 3 double, a 4 double",
    "KeyValuePair": "key 1 string, value 2 string",
    "Vector3": "x 1 double, y 2 double, z 3 double",
    "Point3": "x 1 double, y 2 double, z 3 double",
    "Quaternion": "x 1 double, y 2 double, z 3 double, w 4 double",
    "Pose": "position 1 Vector3, orientation 2 Quaternion",
    "LocationFix": (
        "timestamp 6 time, frame_id 7 string, latitude 1 double, longitude 2 double, altitude 3 double, "
        "position_covariance 4 double*, position_covariance_type 5 LocationFix.PositionCovarianceType, "
        "heading 10 double?, velocity 11 Vector3?"
    ),
    "PoseInFrame": "timestamp 1 time, frame_id 2 string, pose 3 Pose",
    "PosesInFrame": "timestamp 1 time, frame_id 2 string, poses 3 Pose*",
    "FrameTransform": (
        "timestamp 1 time, parent_frame_id 2 string, child_frame_id 3 string, translation 4 Vector3, "
        "rotation 5 Quaternion"
    ),
    "FrameTransforms": "transforms 1 FrameTransform*",
    "CompressedImage": "timestamp 1 time, frame_id 4 string, data 2 bytes, format 3 string",
    "RawImage": (
        "timestamp 1 time, frame_id 7 string, width 2 fixed32, height 3 fixed32, encoding 4 string, "
        "step 5 fixed32, data 6 bytes"
    ),
    "PackedElementField": "name 1 string, offset 2 fixed32, type 3 PackedElementField.NumericType",
    "PointCloud": (
        "timestamp 1 time, frame_id 2 string, pose 3 Pose, point_stride 4 fixed32, "
        "fields 5 PackedElementField*, data 6 bytes"
    ),
    "LaserScan": (
        "timestamp 1 time, frame_id 2 string, pose 3 Pose, start_angle 4 double, end_angle 5 double, "
        "ranges 6 double*, intensities 7 double*"
    ),
    "Log": (
        "timestamp 1 time, level 2 Log.Level, message 3 string, name 4 string, file 5 string, line 6 fixed32"
    ),
    "ArrowPrimitive": (
        "pose 1 Pose, shaft_length 2 double, shaft_diameter 3 double, head_length 4 double, "
        "head_diameter 5 double, color 6 Color"
    ),
    "CubePrimitive": f"{_PRIMITIVE}, color 3 Color",
    "SpherePrimitive": f"{_PRIMITIVE}, color 3 Color",
    "CylinderPrimitive": f"{_PRIMITIVE}, bottom_scale 3 double, top_scale 4 double, color 5 Color",
    "LinePrimitive": (
        "type 1 LinePrimitive.Type, pose 2 Pose, thickness 3 double, scale_invariant 4 bool, "
        "points 5 Point3*, color 6 Color, colors 7 Color*, indices 8 fixed32*"
    ),
    "TriangleListPrimitive": (
        "pose 1 Pose, points 2 Point3*, color 3 Color, colors 4 Color*, indices 5 fixed32*"
    ),
    "TextPrimitive": (
        "pose 1 Pose, billboard 2 bool, font_size 3 double, scale_invariant 4 bool, color 5 Color, text 6 string"
    ),
    "ModelPrimitive": (
        "pose 1 Pose, scale 2 Vector3, color 3 Color, override_color 4 bool, url 5 string, "
        "media_type 6 string, data 7 bytes"
    ),
    "SceneEntityDeletion": "timestamp 1 time, type 2 SceneEntityDeletion.Type, id 3 string",
    "SceneEntity": (
        "timestamp 1 time, frame_id 2 string, id 3 string, lifetime 4 duration, frame_locked 5 bool, "
        "metadata 6 KeyValuePair*, arrows 7 ArrowPrimitive*, cubes 8 CubePrimitive*, "
        "spheres 9 SpherePrimitive*, cylinders 10 CylinderPrimitive*, lines 11 LinePrimitive*, "
        "triangles 12 TriangleListPrimitive*, texts 13 TextPrimitive*, models 14 ModelPrimitive*"
    ),
    "SceneUpdate": "deletions 1 SceneEntityDeletion*, entities 2 SceneEntity*",
}


@cache
def wellknown(name: str) -> ProtoMessage:
    """Return the message type ``foxglove.<name>``; raises KeyError for an unknown one."""
    return ProtoMessage(f"{PACKAGE}.{name}", tuple(map(_field, MESSAGES[name].split(", "))))


def number_of(enum: str, value: str) -> int:
    """Return the number of an enum value."""
    return _ENUMS[enum].split().index(value)


def _field(text: str) -> ProtoField:
    name, number, type_name = text.split()
    return ProtoField(
        name,
        int(number),
        _field_type(type_name.rstrip("*?")),
        type_name.endswith("*"),
        type_name.endswith("?"),
    )


def _field_type(name: str) -> str | Enum | ProtoMessage:
    if name in KINDS or name in TIMES:
        return name
    if name in _ENUMS:
        return Enum(f"{PACKAGE}.{name}", tuple(_ENUMS[name].split()))
    return wellknown(name)


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


#: First bytes of encoded pictures, by format.
_BEGIN = {"jpeg": b"\xff\xd8", "png": b"\x89PNG"}
#: ``NumericType`` by NumPy type.
_TYPES = {
    "u1": "UINT8",
    "i1": "INT8",
    "u2": "UINT16",
    "i2": "INT16",
    "u4": "UINT32",
    "i4": "INT32",
    "f4": "FLOAT32",
    "f8": "FLOAT64",
}


def images(lens: Image, shift: int) -> Fill:
    """Return the function that fills ``CompressedImage`` with JPEG, PNG and WebP; others become a Problem."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        with_format = [(picture, _format(picture)) for picture in lens.pictures(ch, start, end)]
        kept = [(picture, name) for picture, name in with_format if name]
        if len(kept) < len(with_format):
            _note(
                ch,
                "picture",
                f"pictures that are neither JPEG, PNG nor WebP have no {ch.topic}/CompressedImage",
            )
        time, stamp = _times(ch, [picture for picture, _ in kept], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(kept)),
            "data": _joined([picture.data for picture, _ in kept]),
            "format": texts([name for _, name in kept]),
        }

    return fill


def _format(picture: Picture) -> str:
    for name, begin in _BEGIN.items():
        if bytes(picture.data[: len(begin)]) == begin:
            return name
    return "webp" if bytes(picture.data[8:12]) == b"WEBP" else ""


def raw_images(lens: Image, shift: int) -> Fill:
    """Return the function that fills ``RawImage`` with pixels, little-endian and without padding."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        pixels = []
        for picture in lens.pictures(ch, start, end):
            try:
                pixels.append((picture, _pixels(picture)))
            except UnsupportedError as error:
                _note(ch, "picture", f"a picture has no {ch.topic}/RawImage: {error.text}")
        time, stamp = _times(ch, [picture for picture, _ in pixels], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(pixels)),
            "width": np.array([picture.width for picture, _ in pixels], np.uint32),
            "height": np.array([picture.height for picture, _ in pixels], np.uint32),
            "encoding": texts([picture.encoding or "" for picture, _ in pixels]),
            "step": np.array([len(data) // picture.height for picture, data in pixels], np.uint32),
            "data": _joined([data for _, data in pixels]),
        }

    return fill


def _pixels(picture: Picture) -> NDArray[np.uint8]:
    pixels = picture.array()
    return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)


def clouds(lens: PackedCloud | PlainCloud, shift: int) -> Fill:
    """Return the function that fills ``PointCloud``, one per message."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        return _clouds(list(lens.clouds(ch, start, end)), ch, shift)

    return fill


class Revolutions:
    """Fills ``PointCloud``, one per revolution of a scanner; revolutions continue across consecutive intervals."""

    def __init__(self, lens: PacketCloud, shift: int) -> None:
        self._lens, self._shift = lens, shift
        self._stream: Iterator[Points] = iter(())
        self._due: int | None = None

    def __call__(self, ch: Channel, start: int | None, end: int | None) -> Rows:
        if start is None or start != self._due:
            self._stream = self._lens.clouds(ch, start)
        clouds, self._due = list[Points](), end
        for cloud in self._stream:
            if end is not None and cloud.time >= end:
                self._stream = itertools.chain([cloud], self._stream)
                break
            clouds.append(cloud)
        return _clouds(clouds, ch, self._shift)


def scans(lens: LaserScan | RangeScan, shift: int) -> Fill:
    """Return the function that fills ``LaserScan``, one per scan."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        sectors: list[Sector] = list(lens.sectors(ch, start, end))
        time, stamp = _times(ch, sectors, shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([sector.frame or ch.topic for sector in sectors]),
            "pose": _origin(len(sectors)),
            "start_angle": np.array([sector.first for sector in sectors]),
            "end_angle": np.array(
                [sector.first + sector.step * max(0, len(sector.ranges) - 1) for sector in sectors]
            ),
            "ranges": _joined([sector.ranges for sector in sectors]),
            "intensities": _joined([sector.intensities for sector in sectors]),
        }

    return fill


def _times(ch: Channel, items: Sequence[Picture | Points | Sector], shift: int) -> tuple[I64, I64]:
    """Return int64[n] ns each: times by the clock of the log, and values of ``timestamp``."""
    time = np.array([item.time for item in items], np.int64)
    return time, stamped(ch, time, np.array([item.stamp for item in items], np.int64), shift)


def _clouds(clouds: Sequence[Points], ch: Channel, shift: int) -> Rows:
    packed = [_packed(cloud) for cloud in clouds]
    time, stamp = _times(ch, clouds, shift)
    fields = [field for _, dtype in packed for field in _fields(dtype)]
    return time, {
        "timestamp": stamp,
        "frame_id": texts([cloud.frame or ch.topic for cloud in clouds]),
        "pose": _origin(len(clouds)),
        "point_stride": np.array([dtype.itemsize for _, dtype in packed], np.uint32),
        "fields": Many(
            _edges(len(dtype.names or ()) for _, dtype in packed),
            {
                "name": texts([name for name, _, _ in fields]),
                "offset": np.array([offset for _, offset, _ in fields], np.uint32),
                "type": np.array([number for _, _, number in fields], np.int32),
            },
        ),
        "data": _joined([data for data, _ in packed]),
    }


def _packed(points: Points) -> tuple[NDArray[np.uint8], np.dtype[Any]]:
    """Return the packed points and the dtype of one; 64-bit integers become float64."""
    columns = dict(_columns(points))
    dtype = np.dtype([(name, f"<{_number_type(values)}") for name, values in columns.items()])
    out = np.empty(max(map(len, columns.values()), default=0), dtype)
    for name, values in columns.items():
        out[name] = values
    return out.view(np.uint8) if dtype.itemsize else np.zeros(0, np.uint8), dtype


def _columns(points: Points) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, values in points.fields.items():
        if values.ndim == 1:
            yield name, values
        else:
            yield from ((f"{name}[{i}]", values[:, i]) for i in range(values.shape[1]))


def _number_type(values: NDArray[Any]) -> str:
    type_code = values.dtype.str[1:]
    return type_code if type_code in _TYPES else "f8"


def _fields(dtype: np.dtype[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and ``NumericType`` number of each field."""
    for name in dtype.names or ():
        inner, place = dtype.fields[name][:2]  # type: ignore[index]
        yield name, place, number_of("PackedElementField.NumericType", _TYPES[inner.str[1:]])


def _origin(n: int) -> Values:
    """Return the columns of the identity pose."""
    return {"position": {}, "orientation": {"w": np.ones(n)}}


def _joined(parts: Sequence[Any]) -> Many:
    """Return one array, or bytes, per row as a repeated column."""
    items = [np.frombuffer(part, np.uint8) if isinstance(part, memoryview) else part for part in parts]
    return Many(_edges(map(len, items)), np.concatenate(items) if items else np.zeros(0, np.uint8))


def _edges(counts: Iterable[int]) -> I64:
    sizes = np.fromiter(counts, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _note(ch: Channel, code: str, text: str) -> None:
    ch.log.note(Problem(code, 0, 0, False, text))
