"""Lenses: the meaning of channels, recognised from their Layout in any format.

Outputs such as maps, pictures and exchange formats use lenses, never a log format. A lens names the fields that it
reads, and converts them to common units. Lenses of other packages are LensFinders that entry points of the group
``logreel.lenses`` name; they return lenses of this package, which every output knows, or their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from logreel.lenses.base import LensFinder, Scaled, members, nodes_of
from logreel.lenses.cloud import (
    LaserScan,
    Marker,
    Markers,
    OccupancyGrid,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Points,
    RangeScan,
    ScanPoints,
    find_cloud,
    find_grid,
    find_markers,
    find_packets,
    find_ranges,
    find_scan,
)
from logreel.lenses.image import (
    Camera,
    Detections,
    Image,
    Picture,
    find_camera,
    find_detections,
    find_encoded_image,
    find_image,
)
from logreel.lenses.motion import (
    ActorBox,
    ActorPose,
    ActorStates,
    Imu,
    Joint,
    Joints,
    LocalPose,
    Places,
    Pose,
    Transform,
    find_actor_box,
    find_actor_pose,
    find_imu,
    find_joints,
    find_local_pose,
    find_named_position,
    find_pose,
    find_transform,
)
from logreel.lenses.position import Fixes, KnownWhen, Position, find_position
from logreel.lenses.text import Diagnostics, Text, find_diagnostics, find_text
from logreel.log.scan import TextLine
from logreel.registry.registry import Registry

if TYPE_CHECKING:
    from logreel.layout.layout import Layout
    from logreel.log.log import Channel, Log

__all__ = [
    "ActorBox",
    "ActorPose",
    "ActorStates",
    "Camera",
    "Detections",
    "Diagnostics",
    "Fixes",
    "Image",
    "Imu",
    "Joint",
    "Joints",
    "KnownWhen",
    "LaserScan",
    "Lens",
    "LocalPose",
    "Marker",
    "Markers",
    "OccupancyGrid",
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
    "ScanPoints",
    "Text",
    "Transform",
    "lens_names",
    "lenses",
    "lenses_of",
    "text_lines",
]

Motion = Pose | LocalPose | Transform | Imu | Joints | ActorPose | ActorBox
Clouds = PackedCloud | PlainCloud | PacketCloud | LaserScan | RangeScan
Lens = Position | Text | Image | Clouds | Motion | OccupancyGrid | Markers | Diagnostics | Camera | Detections

#: What recognises the meaning of a channel; other packages add theirs.
LENSES: Registry[LensFinder] = Registry(
    "lens",
    "logreel.lenses",
    {
        finder.find.__name__: finder
        for finder in (
            LensFinder("position", find_position, by_fields=True),
            LensFinder("text", find_text, by_fields=True),
            LensFinder("diagnostics", find_diagnostics, by_fields=True),
            LensFinder("image", find_image, by_fields=True),
            LensFinder("camera", find_camera, by_fields=True),
            # Before poses, as a box or a marker has one.
            LensFinder("detections", find_detections, by_fields=True),
            LensFinder("markers", find_markers, by_fields=True),
            LensFinder("pose", find_pose, by_fields=True),
            LensFinder("transform", find_transform, by_fields=True),
            LensFinder("cloud", find_cloud, by_fields=True),
            LensFinder("cloud", find_packets, by_fields=True),
            LensFinder("scan", find_scan, by_fields=True),
            LensFinder("scan", find_ranges, by_fields=True),
            LensFinder("grid", find_grid, by_fields=True),
            LensFinder("imu", find_imu, by_fields=True),
            LensFinder("joints", find_joints, by_fields=True),
            LensFinder("actors", find_actor_pose, by_fields=True),
            LensFinder("actors", find_actor_box, by_fields=True),
            LensFinder("pose", find_local_pose, by_fields=True),
            LensFinder("image", find_encoded_image),
            LensFinder("pose", find_named_position),
        )
    },
    LensFinder,
)
_BY_FIELDS = tuple(finder for finder in LENSES.own().values() if finder.by_fields)
_BY_CHANNEL = tuple(finder for finder in LENSES.own().values() if not finder.by_fields)


def lenses(ch: Channel) -> list[Lens]:
    """Return the lenses that fit *ch*; empty if none does or the definition cannot be used."""
    return [lens for _, lens in _named_lenses(ch)]


def lens_names(ch: Channel) -> list[str]:
    """Return the names of the lenses that fit *ch*: ``position``, ``pose``, ``image``, ``cloud``, ``scan`` …"""
    return list(dict.fromkeys(name for name, _ in _named_lenses(ch)))


def _named_lenses(ch: Channel) -> Iterator[tuple[str, Lens]]:
    nodes = members(ch)
    if not nodes:
        return
    yield from _by_fields(ch.layout)
    for finder in _BY_CHANNEL:
        lens = finder.find(ch)
        if lens is not None:
            yield finder.name, lens
    for name, finder in list(LENSES.added().items()):
        try:
            lens = finder.find(nodes if finder.by_fields else ch)
        except Exception as error:
            LENSES.leave_out(name, f"looking at {ch.topic} it failed with {error!r}")
            continue
        if lens is not None:
            yield finder.name, lens


@lru_cache(maxsize=1024)
def _by_fields(layout: Layout) -> tuple[tuple[str, Lens], ...]:
    """Return the lenses of logreel that fit the fields of a Layout, with their names; verbs ask several times."""
    nodes = nodes_of(layout.record)
    fitting = ((finder.name, finder.find(nodes)) for finder in _BY_FIELDS)
    return tuple((name, lens) for name, lens in fitting if lens is not None)


_KNOWN: WeakKeyDictionary[Log, dict[str, list[Lens]]] = WeakKeyDictionary()


def lenses_of(log: Log) -> list[tuple[Channel, list[Lens]]]:
    """Return the channels of *log* that have messages and a lens, in file order, each with its lenses."""
    known = _KNOWN.setdefault(log, {})
    recognised = []
    for topic, ch in log.channels.items():
        if ch.reserved or not len(ch):
            continue
        if topic not in known:
            known[topic] = lenses(ch)
        if known[topic]:
            recognised.append((ch, known[topic]))
    return recognised


def text_lines(log: Log) -> Iterator[TextLine]:
    """Yield the lines of all text channels, sorted by time."""
    lines: list[TextLine] = []
    for ch in log.channels.values():
        for lens in lenses(ch):
            if isinstance(lens, Text | Diagnostics) and len(ch):
                lines += lens.lines(ch)
    return iter(sorted(lines, key=lambda line: line.time))
