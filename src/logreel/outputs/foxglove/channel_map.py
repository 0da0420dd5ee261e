"""Mapping of channels to well-known schemas, and to protobuf if other tools cannot read their schema."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import DefinitionError
from logreel.layout.nodes import Field, Rest, Struct
from logreel.lenses import (
    ActorPose,
    Image,
    LaserScan,
    Lens,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Pose,
    Position,
    RangeScan,
    Text,
    Transform,
    lenses,
)
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.scan import MADE_OF, ORIGINAL
from logreel.log.tables import Shape, as_numpy, table
from logreel.ops.rewrite.read_rows import has_replaced_text, replaced_texts
from logreel.ops.rewrite.rewrite import TRANSCODED
from logreel.outputs.foxglove import motion, sensors
from logreel.outputs.foxglove.encoders import Encoder, Fill, Rows
from logreel.outputs.foxglove.interleave import Interleaving
from logreel.outputs.foxglove.wellknown import PACKAGE, wellknown
from logreel.registry.registry import formats
from logreel.schemas.languages import language_named
from logreel.schemas.protobuf.fixed_encoder import fixed_encoder
from logreel.schemas.protobuf.from_layout import descriptor_from_layout, type_name, values
from logreel.write.original import Original

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: ROS types that Foxglove displays itself, by full name. Source: the supported messages of its Map panel in its
#: documentation, and for the 3D, Image and Log panels from the source of Foxglove Studio, now that of Lichtblick. Those
#: also show velodyne_msgs/VelodyneScan, but not with the calibration of a scanner.
NATIVE = {
    *("sensor_msgs/CompressedImage", "sensor_msgs/Image", "sensor_msgs/LaserScan"),
    *("sensor_msgs/NavSatFix", "sensor_msgs/PointCloud2", "nav_msgs/Path"),
    *("geometry_msgs/PoseArray", "geometry_msgs/PoseStamped", "geometry_msgs/PoseWithCovarianceStamped"),
    *("geometry_msgs/TransformStamped", "tf/tfMessage", "tf2_msgs/TFMessage"),
    *("rosgraph_msgs/Log", "rcl_interfaces/Log"),
}
#: Keys of metadata about the message encoding.
_OF_MESSAGES = {"message_encoding"}
_ROS = {"ros1msg", "ros2msg", "ros2idl"}
_WHOLE = Shape(explode=False, gaps=False)
#: Layout of messages without a definition.
_BYTES = Struct((Field("data", Rest()),))


def encoders_for(ch: Channel, shift: int = 0) -> Iterator[Encoder]:
    """Yield an Encoder to a well-known schema for each lens of *ch*; none if *ch* has such a schema already.

    The new topic is the topic of *ch* and the schema name: ``/gps/LocationFix``.

    shift  ns to add to times of the log in message fields
    """
    name = ch.schema.name.replace("::", "/").replace(".", "/")
    if name.startswith(f"{PACKAGE}/") or ch.schema.name.startswith(f"{PACKAGE}_msgs/"):
        return
    if ch.schema.encoding in _ROS and name.replace("/msg/", "/") in NATIVE:
        return
    for lens in lenses(ch):
        found = message_for_lens(lens, shift)
        if found is not None:
            schema, fill = found
            yield _encoder(ch, schema, fill)
    for pose in vehicle_poses(ch.log):
        if pose.place[0].topic == ch.topic:
            yield _encoder(ch, "PoseInFrame", motion.pose(pose, shift))
        if pose.base[0].topic == ch.topic:
            yield _encoder(ch, "FrameTransform", motion.transform(pose, shift))


def _encoder(ch: Channel, schema: str, fill: Fill) -> Encoder:
    return Encoder(ch, f"{ch.topic}/{schema}", wellknown(schema), fill, {MADE_OF: ch.topic})


def message_for_lens(lens: Lens, shift: int = 0) -> tuple[str, Fill] | None:
    """Return the well-known schema for *lens* and the function that fills its columns; None if there is none."""
    match lens:
        case Position():
            return "LocationFix", motion.location(lens, shift)
        case Pose(many=many):
            return "PosesInFrame" if many else "PoseInFrame", motion.pose(lens, shift)
        case Transform(many=many):
            return "FrameTransforms" if many else "FrameTransform", motion.transform(lens, shift)
        case Text():
            return "Log", motion.log_lines(lens, shift)
        case ActorPose():
            return "SceneUpdate", motion.scene(lens, shift)
        case Image(encoding=str()):
            return "RawImage", sensors.raw_images(lens, shift)
        case Image():
            return "CompressedImage", sensors.images(lens, shift)
        case PackedCloud() | PlainCloud():
            return "PointCloud", sensors.clouds(lens, shift)
        case PacketCloud():
            return "PointCloud", sensors.Revolutions(lens, shift)
        case LaserScan() | RangeScan():
            return "LaserScan", sensors.scans(lens, shift)
    return None


def is_common(ch: Channel) -> bool:
    """Return whether tools that do not know the format of the log can read *ch* by its schema.

    In a log for exchange, messages of unknown encoding or without definition also count as common: they cannot be
    translated, and unchanged they can be converted back.
    """
    if not ch.schema.encoding or language_named(ch.schema.encoding) is not None:
        return True
    fmt = formats().get(ch.log.format)
    return (
        fmt is not None and fmt.exchange and (ch.schema.encoding not in formats() or ch.layout.root == _BYTES)
    )


def transcoded(ch: Channel, restamped: bool = False, skipped: list[str] | None = None) -> Encoder:
    """Return an Encoder of *ch* to protobuf, with the same topic and the fields of its Layout.

    restamped  whether messages have other times than those in their fields, as in ``Original``
    skipped    list for a sentence about text that is not UTF-8, which protobuf does not have

    Raises DefinitionError if the definition cannot be used.
    """
    message = descriptor_from_layout(ch.layout, type_name(ch.schema.encoding, ch.schema.name or ch.topic))

    said = list[str]()

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        found = table(ch, None, start, end, _WHOLE)
        texts = (one for column in found.columns[1:] for one in column.chunks)
        if skipped is not None and not said and any(map(has_replaced_text, texts)):
            said.append(ch.topic)
            skipped.extend(replaced_texts(ch))
        time = np.concatenate([np.zeros(0, np.int64), *map(as_numpy, found.column(0).chunks)])
        return time, values(ch.layout, message, found.columns[1:])

    metadata = {name: value for name, value in ch.metadata.items() if name not in _OF_MESSAGES}
    metadata[TRANSCODED] = ch.schema.encoding
    if not isinstance(ch.metadata.get(ORIGINAL), str):
        metadata[ORIGINAL] = Original(ch.log.format, ch.topic, ch.schema, ch.metadata, restamped).text()
    return Encoder(
        ch, ch.topic, message, fill, metadata, fixed_encoder(ch.layout, message) if ch.is_uniform else None
    )


def interleave(
    log: Log, channels: Iterable[Channel], shift: int = 0, restamped: Collection[int] = ()
) -> Interleaving:
    """Return the Interleaving that translates *channels* of *log* for other tools.

    shift      ns to add to times of the log
    restamped  numbers of channels with other times than those in the fields of their messages
    """
    instead, added, skipped = dict[int, Encoder](), list[Encoder](), list[str]()
    there = {(ch.metadata.get(MADE_OF), ch.schema.name) for ch in log.channels.values()}
    for ch in channels:
        if not {MADE_OF, TRANSCODED} & ch.metadata.keys():
            added += [one for one in encoders_for(ch, shift) if (ch.topic, one.message.name) not in there]
        if not is_common(ch):
            try:
                instead[ch.number] = transcoded(ch, ch.number in restamped, skipped)
            except DefinitionError as error:
                skipped.append(
                    f"messages of channel {ch.topic!r} stay in an encoding of the format: {error.text}"
                )
    return Interleaving(instead, added, skipped)
