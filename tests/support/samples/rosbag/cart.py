"""A small cart that drives towards a wall: transforms, clouds, a calibrated camera, a model, joints and states."""

from __future__ import annotations

import math
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import logreel
from logreel.outputs.media.pictures import png
from logreel.schemas.ros1msg import define
from support.builders.ros1_messages import header, xyz

SECOND = 10**9
START = 1_600_000_000 * SECOND
#: Metres from the origin to the wall, along x; seconds of the drive, and clouds a second.
WALL, SECONDS, RATE = 10.0, 4, 10
#: Focal length, and the middle of the picture, in pixels.
FOCAL, WIDTH, HEIGHT = 60.0, 64, 48
#: Turns x forward, y left, z up into the axes of a camera: x right, y down, z forward.
OPTICAL = {"x": -0.5, "y": 0.5, "z": -0.5, "w": 0.5}
STRAIGHT = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
_LINE = "=" * 80
#: vision_msgs of ROS 1, without covariances.
DETECTIONS = f"""std_msgs/Header header
vision_msgs/Detection2D[] detections
{_LINE}
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
{_LINE}
MSG: vision_msgs/Detection2D
std_msgs/Header header
vision_msgs/ObjectHypothesisWithPose[] results
vision_msgs/BoundingBox2D bbox
{_LINE}
MSG: vision_msgs/ObjectHypothesisWithPose
int64 id
float64 score
{_LINE}
MSG: vision_msgs/BoundingBox2D
geometry_msgs/Pose2D center
float64 size_x
float64 size_y
{_LINE}
MSG: geometry_msgs/Pose2D
float64 x
float64 y
float64 theta
"""
BOXES_3D = f"""std_msgs/Header header
vision_msgs/Detection3D[] detections
{_LINE}
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
{_LINE}
MSG: vision_msgs/Detection3D
std_msgs/Header header
vision_msgs/ObjectHypothesisWithPose[] results
vision_msgs/BoundingBox3D bbox
{_LINE}
MSG: vision_msgs/ObjectHypothesisWithPose
int64 id
float64 score
{_LINE}
MSG: vision_msgs/BoundingBox3D
geometry_msgs/Pose center
geometry_msgs/Vector3 size
{_LINE}
MSG: geometry_msgs/Pose
geometry_msgs/Point position
geometry_msgs/Quaternion orientation
{_LINE}
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
{_LINE}
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
{_LINE}
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
#: The cart: a body, a wheel that turns, a mast that slides, and a mesh on it.
MODEL = """<?xml version="1.0"?>
<robot name="cart">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="base_link">
    <visual><origin xyz="0 0 0.4"/><geometry><box size="1.2 0.8 0.4"/></geometry><material name="red"/></visual>
  </link>
  <joint name="wheel_joint" type="continuous">
    <parent link="base_link"/><child link="wheel"/><origin xyz="0.4 -0.5 0.2" rpy="-1.5707963 0 0"/><axis xyz="0 0 1"/>
  </joint>
  <link name="wheel">
    <visual><geometry><cylinder radius="0.2" length="0.1"/></geometry>
      <material name="dark"><color rgba="0.1 0.1 0.9 1"/></material></visual>
  </link>
  <joint name="mast_joint" type="prismatic">
    <parent link="base_link"/><child link="mast"/><origin xyz="0 0 0.6"/><axis xyz="0 0 1"/>
  </joint>
  <link name="mast">
    <visual><geometry><sphere radius="0.15"/></geometry></visual>
    <visual><origin xyz="0 0 0.5"/>
      <geometry><mesh filename="package://cart/meshes/head.stl" scale="2 2 2"/></geometry></visual>
  </link>
</robot>
"""


def wall(t: float) -> np.ndarray:
    """Return float32[n, 5]: points of the wall at *t* seconds in the frame of the lidar, with intensity and ring."""
    y, z = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(0, 3, 13)))
    ahead = np.full(len(y), WALL - t)
    return np.stack([ahead, y, z - 1.0, 10 * (y + 3), np.round(z / 0.25)], axis=-1).astype(np.float32)


def transform(
    child: str, place: dict[str, float], turn: dict[str, float], parent: str, t: int
) -> dict[str, Any]:
    return {
        "header": {"seq": 0, "stamp": t, "frame_id": parent},
        "child_frame_id": child,
        "transform": {"translation": place, "rotation": turn},
    }


@cache
def cart() -> bytes:
    """Return the bag."""
    kinds = {
        "/tf": "tf2_msgs/TFMessage",
        "/tf_static": "tf2_msgs/TFMessage",
        "/points": "sensor_msgs/PointCloud2",
        "/camera/image/compressed": "sensor_msgs/CompressedImage",
        "/camera/camera_info": "sensor_msgs/CameraInfo",
        "/robot_description": "std_msgs/String",
        "/joint_states": "sensor_msgs/JointState",
        "/diagnostics": "diagnostic_msgs/DiagnosticArray",
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cart.bag"
        with logreel.create(path) as writer:
            schemas = {
                topic: logreel.Schema(kind, "ros1msg", define(kind).text) for topic, kind in kinds.items()
            }
            schemas["/detections"] = logreel.Schema("vision_msgs/Detection2DArray", "ros1msg", DETECTIONS)
            schemas["/objects"] = logreel.Schema("vision_msgs/Detection3DArray", "ros1msg", BOXES_3D)
            channels = {topic: writer.add_channel(topic, schema) for topic, schema in schemas.items()}
            for tick in range(SECONDS * RATE + 1):
                time = START + tick * SECOND // RATE
                for topic, value in messages(tick, time):
                    writer.write(channels[topic], time, value)
        return path.read_bytes()


def messages(tick: int, time: int) -> list[tuple[str, dict[str, Any]]]:
    """Return what is sent at one tick."""
    t = tick / RATE
    out: list[tuple[str, dict[str, Any]]] = []
    if tick == 0:
        static = [
            transform("lidar", xyz(0.0, 0.0, 1.0), STRAIGHT, "base_link", time),
            transform("camera", xyz(0.0, 0.0, 1.0), OPTICAL, "base_link", time),
        ]
        out += [("/tf_static", {"transforms": static}), ("/robot_description", {"data": MODEL})]
    out.append(("/tf", {"transforms": [transform("base_link", xyz(t, 0.0, 0.0), STRAIGHT, "map", time)]}))
    points = wall(t)
    fields = [
        {"name": name, "offset": 4 * i, "datatype": 7, "count": 1}
        for i, name in enumerate(("x", "y", "z", "intensity", "ring"))
    ]
    cloud = {
        "header": header("lidar", time),
        "height": 1,
        "width": len(points),
        "fields": fields,
        "is_bigendian": False,
        "point_step": 20,
        "row_step": 20 * len(points),
        "data": points.tobytes(),
        "is_dense": True,
    }
    out.append(("/points", cloud))
    joints = {
        "name": ["wheel_joint", "mast_joint"],
        "position": [math.pi * t / 4, 0.1 * t],
        "velocity": [],
        "effort": [],
    }
    out.append(("/joint_states", {"header": header("", time), **joints}))
    if tick % 2 == 0:
        grey = np.full((HEIGHT, WIDTH, 3), 60 + tick, np.uint8)
        out.append(
            (
                "/camera/image/compressed",
                {"header": header("camera", time), "format": "png", "data": png(grey)},
            )
        )
        box = {"center": {"x": 32.0, "y": 24.0, "theta": 0.0}, "size_x": 20.0, "size_y": 10.0}
        detection = {"header": header("camera", time), "results": [{"id": 7, "score": 0.85}], "bbox": box}
        out.append(("/detections", {"header": header("camera", time), "detections": [detection]}))
        solid = {
            "center": {"position": xyz(WALL - t, 1.0, 0.0), "orientation": STRAIGHT},
            "size": xyz(0.5, 1.0, 2.0),
        }
        seen = {"header": header("lidar", time), "results": [{"id": 3, "score": 0.5}], "bbox": solid}
        out.append(("/objects", {"header": header("lidar", time), "detections": [seen]}))
        k = [FOCAL, 0.0, WIDTH / 2, 0.0, FOCAL, HEIGHT / 2, 0.0, 0.0, 1.0]
        info = {
            "header": header("camera", time),
            "height": HEIGHT,
            "width": WIDTH,
            "distortion_model": "plumb_bob",
        }
        matrix = {"R": [1.0, 0, 0, 0, 1, 0, 0, 0, 1], "P": [*k[:3], 0.0, *k[3:6], 0.0, *k[6:], 0.0]}
        roi = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
        extra = {"binning_x": 0, "binning_y": 0, "roi": roi}
        out.append(
            ("/camera/camera_info", info | {"D": [-0.2, 0.03, 0.001, -0.002, 0.0], "K": k} | matrix | extra)
        )
    if tick % RATE == 5:
        level = 2 if 15 <= tick < 35 else 0
        states = [
            ("battery", 0, "12.1 V"),
            ("motor", level, "too hot" if level else "fine"),
            ("lidar", 1, "dirty"),
        ]
        status = [
            {
                "level": n,
                "name": name,
                "message": text,
                "hardware_id": "",
                "values": [{"key": "tick", "value": str(tick)}],
            }
            for name, n, text in states
        ]
        out.append(("/diagnostics", {"header": header("", time), "status": status}))
    return out


def head_stl() -> bytes:
    """Return a binary STL: a tetrahedron of half a metre."""
    corners = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]], "<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<3f", 0, 0, 0) + corners[list(face)].tobytes() + b"\0\0" for face in faces)
    return b"binary".ljust(80, b"\0") + struct.pack("<I", len(faces)) + body
