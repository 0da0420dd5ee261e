"""Which channels of other schemas a channel gives: what lenses read, and its fields where others cannot read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from logreel.log.scan import MADE_OF
from logreel.log.tables import Shape, table
from logreel.ops.rewrite.rewrite import TRANSCODED
from logreel.outputs.foxglove import motion, sensors
from logreel.outputs.foxglove.encoders import Encoder, Fill, Rows
from logreel.outputs.foxglove.interleave import Interleaving
from logreel.outputs.foxglove.wellknown import PACKAGE, wellknown
from logreel.registry.registry import formats
from logreel.schemas.protobuf.fixed_encoder import fixed_encoder
from logreel.schemas.protobuf.from_layout import descriptor_from_layout, type_name, values

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: What tells how to read messages wherever they go; all other languages of definitions are those of one format.
COMMON = {"ros1msg", "ros2msg", "ros2idl", "omgidl", "protobuf", "jsonschema", "flatbuffer", ""}
#: Types of ROS that Foxglove shows by itself, by their whole names. From the supported messages of its Map panel in its
#: documentation, and for the 3D, Image and Log panels from the source of Foxglove Studio, now that of Lichtblick. Those
#: also show velodyne_msgs/VelodyneScan, but not with the calibration of a scanner.
NATIVE = {
    *("sensor_msgs/CompressedImage", "sensor_msgs/Image", "sensor_msgs/LaserScan"),
    *("sensor_msgs/NavSatFix", "sensor_msgs/PointCloud2", "nav_msgs/Path"),
    *("geometry_msgs/PoseArray", "geometry_msgs/PoseStamped", "geometry_msgs/PoseWithCovarianceStamped"),
    *("geometry_msgs/TransformStamped", "tf/tfMessage", "tf2_msgs/TFMessage"),
    *("rosgraph_msgs/Log", "rcl_interfaces/Log"),
}
#: What metadata tell of the encoding of messages.
_OF_MESSAGES = {"message_encoding"}
_ROS = {"ros1msg", "ros2msg", "ros2idl"}
_WHOLE = Shape(explode=False, gaps=False)
#: What messages are that nothing describes.
_BYTES = Struct((Field("data", Rest()),))


def encoders_for(ch: Channel, shift: int = 0) -> Iterator[Encoder]:
    """What makes a channel of a well-known schema for all that *ch* means; nothing where it has such a schema.

    The new topic is that of *ch* and the name of the schema: ``/gps/LocationFix``.

    shift  ns to add to times of the log inside of messages
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
            yield Encoder(ch, f"{ch.topic}/{schema}", wellknown(schema), fill, {MADE_OF: ch.topic})


def message_for_lens(lens: Lens, shift: int = 0) -> tuple[str, Fill] | None:
    """The schema for what *lens* reads, and what fills it; None where there is no schema for that."""
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
            return "PointCloud", sensors.Turns(lens, shift)
        case LaserScan() | RangeScan():
            return "LaserScan", sensors.scans(lens, shift)
    return None


def is_common(ch: Channel) -> bool:
    """Whether tools that do not know the format of the log can read the messages of *ch* by its schema.

    In a log for exchange, messages of an encoding that logreel does not know either, or that nothing describes, are
    nothing to translate: as they are, they can at least be converted back.
    """
    if ch.schema.encoding in COMMON:
        return True
    fmt = formats().get(ch.log.format)
    return (
        fmt is not None and fmt.exchange and (ch.schema.encoding not in formats() or ch.layout.root == _BYTES)
    )


def transcoded(ch: Channel) -> Encoder:
    """What makes of *ch* a channel of the same topic with a schema that says what its Layout does.

    Raises DefinitionError where the definition cannot be used.
    """
    message = descriptor_from_layout(ch.layout, type_name(ch.schema.encoding, ch.schema.name or ch.topic))

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        found = table(ch, None, start, end, _WHOLE)
        time = np.asarray(found.column(0).combine_chunks().cast("int64"), np.int64)
        return time, values(ch.layout, message, found.columns[1:])

    told = {name: value for name, value in ch.metadata.items() if name not in _OF_MESSAGES}
    told[TRANSCODED] = ch.schema.encoding
    return Encoder(
        ch, ch.topic, message, fill, told, fixed_encoder(ch.layout, message) if ch.is_uniform else None
    )


def interleave(log: Log, channels: Iterable[Channel], shift: int = 0) -> Interleaving:
    """What makes of *channels* of *log* those that other tools understand, and keeps those that they do.

    shift  ns that are added to times of the log
    """
    instead, added, told = dict[int, Encoder](), list[Encoder](), list[str]()
    there = {(ch.metadata.get(MADE_OF), ch.schema.name) for ch in log.channels.values()}
    for ch in channels:
        if not {MADE_OF, TRANSCODED} & ch.metadata.keys():
            added += [one for one in encoders_for(ch, shift) if (ch.topic, one.message.name) not in there]
        if not is_common(ch):
            try:
                instead[ch.number] = transcoded(ch)
            except DefinitionError as error:
                told.append(
                    f"messages of channel {ch.topic!r} stay in an encoding of the format: {error.text}"
                )
    return Interleaving(instead, added, told)
