"""Bags with transforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import logreel
from logreel.outputs.foxglove.messages import wellknown
from logreel.schemas.protobuf.types import descriptor_set
from logreel.schemas.ros1msg import define
from support.oracles.frames import Sent

SECOND, KIND = 10**9, "tf2_msgs/TFMessage"
#: Time of the first transform: in 2023.
START = 1_700_000_000 * SECOND
#: The frames of ``robot``: child, parent, whether the link is static, and transforms per second.
TREE = (
    ("odom", "map", False, 5),
    ("base_link", "odom", False, 20),
    ("lidar", "base_link", True, 0),
    ("arm", "base_link", False, 10),
    ("hand", "arm", False, 13),
    ("camera", "hand", True, 0),
)


def robot(seed: int = 1, seconds: int = 5, start: int = START) -> list[Sent]:
    """Return the transforms of a robot whose frames move at random, with quaternions of both signs."""
    random = np.random.default_rng(seed)
    found = []
    for child, parent, static, rate in TREE:
        count = 1 if static else seconds * rate
        for n in range(count):
            time = (
                start if static else start + n * SECOND // rate + int(random.integers(0, SECOND // rate // 2))
            )
            turn = random.normal(size=4)
            turn /= np.linalg.norm(turn)
            found.append(
                Sent(parent, child, time, tuple(random.normal(size=3).tolist()), tuple(turn.tolist()), static)
            )
    return sorted(found, key=lambda one: one.time)


#: The definition of TFMessage in ROS 2.
ROS2 = f"\n{'=' * 80}\n".join(
    (
        "geometry_msgs/TransformStamped[] transforms",
        "MSG: geometry_msgs/TransformStamped\nstd_msgs/Header header\nstring child_frame_id\nTransform transform",
        "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id",
        "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec",
        "MSG: geometry_msgs/Transform\nVector3 translation\nQuaternion rotation",
        "MSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z",
        "MSG: geometry_msgs/Quaternion\nfloat64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1",
    )
)


def ros2(path: Path, sent: Sequence[Sent]) -> Path:
    """Write the transforms into an MCAP, as a recorder of ROS 2 does."""
    with logreel.create(path) as writer:
        schema = logreel.Schema("tf2_msgs/msg/TFMessage", "ros2msg", ROS2)
        channels = [writer.add_channel(topic, schema) for topic in ("/tf", "/tf_static")]
        for one in sent:
            data = {
                "header": {"stamp": one.time, "frame_id": one.parent},
                "child_frame_id": one.child,
                "transform": {
                    "translation": dict(zip("xyz", one.position, strict=True)),
                    "rotation": dict(zip("xyzw", one.rotation, strict=True)),
                },
            }
            writer.write(channels[one.static], one.time + 1_000_000, {"transforms": [data]})
    return path


def foxglove(path: Path, sent: Sequence[Sent]) -> Path:
    """Write the transforms into an MCAP as ``foxglove.FrameTransforms``."""
    with logreel.create(path) as writer:
        schema = logreel.Schema.of(
            "foxglove.FrameTransforms", "protobuf", descriptor_set(wellknown("FrameTransforms"))
        )
        channels = [writer.add_channel(topic, schema) for topic in ("/tf", "/tf_static")]
        for one in sent:
            data = {
                "timestamp": one.time,
                "parent_frame_id": one.parent,
                "child_frame_id": one.child,
                "translation": dict(zip("xyz", one.position, strict=True)),
                "rotation": dict(zip("xyzw", one.rotation, strict=True)),
            }
            writer.write(channels[one.static], one.time + 1_000_000, {"transforms": [data]})
    return path


def bag(path: Path, sent: Sequence[Sent], stamped: bool = True) -> Path:
    """Write the transforms as ``/tf`` and ``/tf_static`` into a bag at *path*; logged 1 ms after their stamps."""
    text = define(KIND).text
    with logreel.create(path) as writer:
        channels = {
            static: writer.add_channel(
                "/tf_static" if static else "/tf", logreel.Schema(KIND, "ros1msg", text)
            )
            for static in (False, True)
        }
        for n, one in enumerate(sent):
            data = {
                "header": {"seq": n, "stamp": one.time if stamped else 0, "frame_id": one.parent},
                "child_frame_id": one.child,
                "transform": {
                    "translation": dict(zip("xyz", one.position, strict=True)),
                    "rotation": dict(zip("xyzw", one.rotation, strict=True)),
                },
            }
            writer.write(channels[one.static], one.time + 1_000_000, {"transforms": [data]})
    return path
