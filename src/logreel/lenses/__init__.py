"""Lenses: the meaning of channels, recognised from their Layout in any format.

Outputs such as maps, pictures and exchange formats use lenses, never a log format. A lens names the fields that it
reads, and converts them to common units.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.lenses.actors import ActorBox, ActorPose, ActorStates, find_actor_box, find_actor_pose
from logreel.lenses.base import Scaled, members
from logreel.lenses.cloud import (
    LaserScan,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Points,
    RangeScan,
    Scan,
    find_cloud,
    find_packets,
    find_ranges,
    find_scan,
)
from logreel.lenses.image import Image, Picture, find_encoded_image, find_image
from logreel.lenses.motion import (
    Imu,
    Joint,
    Joints,
    LocalPose,
    Places,
    Pose,
    Transform,
    find_imu,
    find_joints,
    find_local_pose,
    find_named_position,
    find_pose,
    find_transform,
)
from logreel.lenses.position import Fixes, Known, Position, find_position
from logreel.lenses.text import Text, find_text
from logreel.log.scan import TextLine

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

__all__ = [
    "ActorBox",
    "ActorPose",
    "ActorStates",
    "Fixes",
    "Image",
    "Imu",
    "Joint",
    "Joints",
    "Known",
    "LaserScan",
    "Lens",
    "LocalPose",
    "PackedCloud",
    "PacketCloud",
    "Picture",
    "Places",
    "PlainCloud",
    "Points",
    "Pose",
    "Position",
    "RangeScan",
    "Scaled",
    "Scan",
    "Text",
    "Transform",
    "lens_names",
    "lenses",
    "text_lines",
]

Motion = Pose | LocalPose | Transform | Imu | Joints | ActorPose | ActorBox
Clouds = PackedCloud | PlainCloud | PacketCloud | LaserScan | RangeScan
Lens = Position | Text | Image | Clouds | Motion

_FINDERS = (
    find_position,
    find_text,
    find_image,
    find_pose,
    find_transform,
    find_cloud,
    find_packets,
    find_scan,
    find_ranges,
    find_imu,
    find_joints,
    find_actor_pose,
    find_actor_box,
    find_local_pose,
)
#: Names of lenses in conditions, ``lens=position``.
_NAMES: dict[type[Lens], str] = {
    Position: "position",
    Text: "text",
    Image: "image",
    Pose: "pose",
    LocalPose: "pose",
    Transform: "transform",
    PackedCloud: "cloud",
    PlainCloud: "cloud",
    PacketCloud: "cloud",
    LaserScan: "scan",
    RangeScan: "scan",
    Imu: "imu",
    Joints: "joints",
    ActorPose: "actors",
    ActorBox: "actors",
}

#: Finders that need more than the fields.
_BY_CHANNEL = (find_encoded_image, find_named_position)


def lenses(ch: Channel) -> list[Lens]:
    """Return the lenses that fit *ch*; empty if none does or the definition cannot be used."""
    nodes = members(ch)
    if not nodes:
        return []
    found = [lens for find in _FINDERS if (lens := find(nodes)) is not None]
    return [*found, *(lens for find in _BY_CHANNEL if (lens := find(ch)) is not None)]


def lens_names(ch: Channel) -> list[str]:
    """Return the names of the lenses that fit *ch*: ``position``, ``pose``, ``image``, ``cloud``, ``scan`` …"""
    return list(dict.fromkeys(_NAMES[type(lens)] for lens in lenses(ch)))


def text_lines(log: Log) -> Iterator[TextLine]:
    """Yield the lines of all text channels, sorted by time."""
    lines: list[TextLine] = []
    for ch in log.channels.values():
        for lens in lenses(ch):
            if isinstance(lens, Text) and len(ch):
                lines += lens.lines(ch)
    return iter(sorted(lines, key=lambda line: line.time))
