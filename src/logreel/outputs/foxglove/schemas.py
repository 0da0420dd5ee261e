"""The well-known schemas of Foxglove, by field names and numbers, and what fills their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.io.arrays import I64
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
        name, int(number), _kind(type_name.rstrip("*?")), type_name.endswith("*"), type_name.endswith("?")
    )


def _kind(name: str) -> str | Enum | ProtoMessage:
    if name in KINDS or name in TIMES:
        return name
    if name in _ENUMS:
        return Enum(f"{PACKAGE}.{name}", tuple(_ENUMS[name].split()))
    return wellknown(name)
