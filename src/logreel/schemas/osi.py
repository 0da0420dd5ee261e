"""Messages of ASAM's Open Simulation Interface (OSI): the part of GroundTruth that a log of traffic knows.

Names and numbers are those of OSI 3.8, so that its libraries decode what is written here. Messages are encoded from
nested values by these tables; the protobuf library decodes them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.schemas.protobuf.encoder import part, varint
from logreel.schemas.protobuf.types import Types, message_class
from logreel.schemas.protobuf.wire import FIXED64, VARINT

VERSION = (3, 8, 0)
PACKAGE, ENCODING = "osi3", "protobuf"
GROUND_TRUTH = f"{PACKAGE}.GroundTruth"
#: Fields of each message: name, number, kind; ``*`` after the kind: repeated.
MESSAGES = {
    "InterfaceVersion": "version_major 1 uint32, version_minor 2 uint32, version_patch 3 uint32",
    "Timestamp": "seconds 1 int64, nanos 2 uint32",
    "Identifier": "value 1 uint64",
    "ExternalReference": "reference 1 string, type 2 string, identifier 3 string*",
    "Vector3d": "x 1 double, y 2 double, z 3 double",
    "Dimension3d": "length 1 double, width 2 double, height 3 double",
    "Orientation3d": "roll 1 double, pitch 2 double, yaw 3 double",
    "BaseStationary": "dimension 1 Dimension3d, position 2 Vector3d, orientation 3 Orientation3d",
    "BaseMoving": (
        "dimension 1 Dimension3d, position 2 Vector3d, orientation 3 Orientation3d, velocity 4 Vector3d, "
        "acceleration 5 Vector3d, orientation_rate 6 Orientation3d"
    ),
    "MovingObject": (
        "id 1 Identifier, base 2 BaseMoving, type 3 MovingObject.Type, "
        "vehicle_classification 6 MovingObject.VehicleClassification, model_reference 7 string, "
        "source_reference 10 ExternalReference*"
    ),
    "MovingObject.VehicleClassification": (
        "type 1 MovingObject.VehicleClassification.Type, "
        "light_state 2 MovingObject.VehicleClassification.LightState, "
        "role 5 MovingObject.VehicleClassification.Role"
    ),
    "MovingObject.VehicleClassification.LightState": (
        "indicator_state 1 MovingObject.VehicleClassification.LightState.IndicatorState, "
        "front_fog_light 2 MovingObject.VehicleClassification.LightState.GenericLightState, "
        "head_light 4 MovingObject.VehicleClassification.LightState.GenericLightState, "
        "high_beam 5 MovingObject.VehicleClassification.LightState.GenericLightState, "
        "reversing_light 6 MovingObject.VehicleClassification.LightState.GenericLightState, "
        "brake_light_state 7 MovingObject.VehicleClassification.LightState.BrakeLightState, "
        "emergency_vehicle_illumination 9 MovingObject.VehicleClassification.LightState.GenericLightState, "
        "tail_light 11 MovingObject.VehicleClassification.LightState.GenericLightState"
    ),
    "StationaryObject": (
        "id 1 Identifier, base 2 BaseStationary, classification 3 StationaryObject.Classification, "
        "model_reference 4 string, source_reference 5 ExternalReference*"
    ),
    "StationaryObject.Classification": "type 1 StationaryObject.Classification.Type",
    "TrafficSignValue": "value 1 double, value_unit 2 TrafficSignValue.Unit, text 3 string",
    "TrafficSign": "id 1 Identifier, main_sign 2 TrafficSign.MainSign, source_reference 4 ExternalReference*",
    "TrafficSign.MainSign": (
        "base 1 BaseStationary, classification 2 TrafficSign.MainSign.Classification, model_reference 3 string"
    ),
    "TrafficSign.MainSign.Classification": (
        "variability 1 TrafficSign.Variability, type 2 TrafficSign.MainSign.Classification.Type, "
        "value 3 TrafficSignValue"
    ),
    "TrafficLight": (
        "id 1 Identifier, base 2 BaseStationary, classification 3 TrafficLight.Classification, "
        "model_reference 4 string, source_reference 5 ExternalReference*"
    ),
    "TrafficLight.Classification": (
        "color 1 TrafficLight.Classification.Color, icon 2 TrafficLight.Classification.Icon, "
        "mode 3 TrafficLight.Classification.Mode"
    ),
    "EnvironmentalConditions": (
        "precipitation 6 EnvironmentalConditions.Precipitation, fog 7 EnvironmentalConditions.Fog, "
        "clouds 10 EnvironmentalConditions.CloudLayer, sun 12 EnvironmentalConditions.Sun"
    ),
    "EnvironmentalConditions.CloudLayer": (
        "fractional_cloud_cover 1 EnvironmentalConditions.CloudLayer.FractionalCloudCover"
    ),
    "EnvironmentalConditions.Sun": "azimuth 1 double, elevation 2 double",
    "GroundTruth": (
        "version 1 InterfaceVersion, timestamp 2 Timestamp, host_vehicle_id 3 Identifier, "
        "stationary_object 4 StationaryObject*, moving_object 5 MovingObject*, traffic_sign 6 TrafficSign*, "
        "traffic_light 7 TrafficLight*, environmental_conditions 12 EnvironmentalConditions, "
        "map_reference 15 string"
    ),
}
#: Values of enumerations; a number before a name is that of the name, else they count on. Names get their prefix.
ENUMS = {
    "MovingObject.Type": "TYPE UNKNOWN OTHER VEHICLE PEDESTRIAN ANIMAL",
    "MovingObject.VehicleClassification.Type": (
        "TYPE UNKNOWN OTHER 4 CAR 6 DELIVERY_VAN HEAVY_TRUCK 10 MOTORBIKE BICYCLE BUS"
    ),
    "MovingObject.VehicleClassification.Role": "ROLE UNKNOWN OTHER CIVIL AMBULANCE FIRE POLICE",
    "MovingObject.VehicleClassification.LightState.IndicatorState": (
        "INDICATOR_STATE UNKNOWN OTHER OFF LEFT RIGHT WARNING"
    ),
    "MovingObject.VehicleClassification.LightState.GenericLightState": "GENERIC_LIGHT_STATE UNKNOWN OTHER OFF ON",
    "MovingObject.VehicleClassification.LightState.BrakeLightState": "BRAKE_LIGHT_STATE UNKNOWN OTHER OFF NORMAL",
    "StationaryObject.Classification.Type": "TYPE UNKNOWN OTHER",
    "TrafficSignValue.Unit": "UNIT UNKNOWN OTHER NO_UNIT KILOMETER_PER_HOUR MILE_PER_HOUR",
    "TrafficSign.Variability": "VARIABILITY UNKNOWN OTHER FIXED",
    "TrafficSign.MainSign.Classification.Type": "TYPE UNKNOWN OTHER 16 GIVE_WAY STOP 52 SPEED_LIMIT_BEGIN",
    "TrafficLight.Classification.Color": "COLOR UNKNOWN OTHER RED YELLOW GREEN",
    "TrafficLight.Classification.Icon": "ICON UNKNOWN OTHER NONE",
    "TrafficLight.Classification.Mode": "MODE UNKNOWN OTHER OFF CONSTANT",
    "EnvironmentalConditions.Precipitation": (
        "PRECIPITATION UNKNOWN OTHER NONE VERY_LIGHT LIGHT MODERATE HEAVY VERY_HEAVY EXTREME"
    ),
    "EnvironmentalConditions.Fog": "FOG UNKNOWN OTHER EXCELLENT_VISIBILITY",
    "EnvironmentalConditions.CloudLayer.FractionalCloudCover": (
        "FRACTIONAL_CLOUD_COVER UNKNOWN OTHER ZERO_OKTAS ONE_OKTAS TWO_OKTAS THREE_OKTAS FOUR_OKTAS FIVE_OKTAS "
        "SIX_OKTAS SEVEN_OKTAS EIGHT_OKTAS"
    ),
}


class MessageField(NamedTuple):
    """A field of a message; *type_name*: a scalar, or the name of a message or an enumeration."""

    number: int
    type_name: str
    repeated: bool


@cache
def fields(message: str) -> dict[str, MessageField]:
    """Return the fields of a message by name."""
    texts = (text.split() for text in MESSAGES[message].split(", "))
    return {
        name: MessageField(int(number), type_name.rstrip("*"), type_name.endswith("*"))
        for name, number, type_name in texts
    }


@cache
def values(enum: str) -> dict[str, int]:
    """Return the numbers of an enumeration by name, without their prefix."""
    number, by_name = 0, dict[str, int]()
    for word in ENUMS[enum].split()[1:]:
        if word.isdigit():
            number = int(word)
        else:
            by_name[word] = number
            number += 1
    return by_name


@cache
def descriptor_set() -> bytes:
    """Return a FileDescriptorSet of GroundTruth: one file with all messages of the tables."""
    from google.protobuf import descriptor_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    out = descriptor_pb2.FileDescriptorSet()
    file = out.file.add(name="osi_groundtruth.proto", package=PACKAGE, syntax="proto2")
    made: dict[str, Any] = {"": file}
    for path in MESSAGES:
        outer, _, name = path.rpartition(".")
        made[path] = (made[outer].nested_type if outer else file.message_type).add(name=name)
        for field_name, field in fields(path).items():
            entry = made[path].field.add(
                name=field_name, number=field.number, label=3 if field.repeated else 1
            )
            if field.type_name in MESSAGES or field.type_name in ENUMS:
                entry.type = kinds.TYPE_MESSAGE if field.type_name in MESSAGES else kinds.TYPE_ENUM
                entry.type_name = f".{PACKAGE}.{field.type_name}"
            else:
                entry.type = kinds.Type.Value(f"TYPE_{field.type_name.upper()}")
    for path, text in ENUMS.items():
        outer, _, name = path.rpartition(".")
        enum = made[outer].enum_type.add(name=name)
        for label, number in values(path).items():
            enum.value.add(name=f"{text.split()[0]}_{label}", number=number)
    return bytes(out.SerializeToString(deterministic=True))


@cache
def class_of(descriptors: bytes) -> Any:
    """Return the class by which the protobuf library decodes a GroundTruth, as a FileDescriptorSet describes it."""
    return message_class(Types(own=descriptors).find(GROUND_TRUTH))


class Slot(str):
    """Name of a value that differs between messages that are alike otherwise: a double, or a number below 128."""

    __slots__ = ()


def slots(message: str, name: str) -> dict[str, Slot]:
    """Return a slot for each field of a message: ``name.0``, ``name.1`` …"""
    return {field: Slot(f"{name}.{i}") for i, field in enumerate(fields(message))}


@dataclass(frozen=True, slots=True)
class Template:
    """An encoded message with room for the values of slots; *places*: offset by name, and whether it is a double."""

    data: bytes
    places: tuple[tuple[str, int, bool], ...]

    def fill(self, columns: Mapping[str, NDArray[Any]], count: int) -> NDArray[np.uint8]:
        """Return uint8[count, n]: messages with the values of *columns*, of which ``a.1`` is column 1 of ``a``."""
        rows = np.tile(np.frombuffer(self.data, np.uint8), (count, 1))
        for name, at, is_double in self.places:
            base, _, column = name.partition(".")
            taken = columns[base][:, int(column)] if column else columns[base]
            if is_double:
                numbers = np.ascontiguousarray(taken, "<f8")
                rows[:, at : at + 8] = numbers.view(np.uint8).reshape(count, 8)
            else:
                rows[:, at] = taken
        return rows


def template(message: str, content: Mapping[str, Any]) -> Template:
    """Encode a message from its fields by name: numbers, texts, names of enumerations, mappings, lists, and slots."""
    data, places = b"", list[tuple[str, int, bool]]()
    for name, value in content.items():
        field = fields(message)[name]
        for item in value if field.repeated else [value]:
            inner = _field(field, item)
            places += [(slot, at + len(data), is_double) for slot, at, is_double in inner.places]
            data += inner.data
    return Template(data, tuple(places))


def _field(field: MessageField, value: Any) -> Template:
    if field.type_name in MESSAGES:
        inner = template(field.type_name, value)
        data = part(field.number, inner.data)
        ahead = len(data) - len(inner.data)
        return Template(data, tuple((slot, at + ahead, is_double) for slot, at, is_double in inner.places))
    tag = varint(field.number << 3 | (FIXED64 if field.type_name == "double" else VARINT))
    if isinstance(value, Slot):
        is_double = field.type_name == "double"
        return Template(tag + bytes(8 if is_double else 1), ((str(value), len(tag), is_double),))
    if field.type_name in ENUMS:
        return Template(tag + varint(values(field.type_name)[value]), ())
    if field.type_name == "string":
        return Template(part(field.number, value), ())
    return Template(tag + (struct.pack("<d", value) if field.type_name == "double" else varint(value)), ())


def leaves(message: str, content: Mapping[str, Any], ahead: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of each field of *content* that is no message and not repeated; enumerations as numbers."""
    for name, value in content.items():
        field = fields(message)[name]
        if field.type_name in MESSAGES and not field.repeated:
            yield from leaves(field.type_name, value, f"{ahead}{name}.")
        elif not field.repeated:
            is_label = field.type_name in ENUMS and not isinstance(value, Slot)
            yield f"{ahead}{name}", values(field.type_name)[value] if is_label else value


#: Name and keys of what a trace says about itself, and about its channel.
TRACE, CHANNEL = "net.asam.osi.trace", "net.asam.osi.trace.channel"
#: Type of references to actors of the simulator, and the numbers of the centre of a box in it.
ACTOR = "org.carla.actor"
BOX = "box_centre"


def reference(actor: int, facts: Mapping[str, str], centre: Sequence[float] | None) -> dict[str, Any]:
    """Return the reference to an actor: its number, what else is known, and the centre of its box in its own axes."""
    listed = [f"{name}={value}" for name, value in {"id": str(actor), **facts}.items() if value]
    if centre is not None:
        listed.append(f"{BOX}={','.join(repr(float(value)) for value in centre)}")
    return {"type": ACTOR, "identifier": listed}


_BOX_TEXT = re.compile(rf"{BOX}=(-?[0-9.e+-]{{1,40}}),(-?[0-9.e+-]{{1,40}}),(-?[0-9.e+-]{{1,40}})")


def text(value: str | bytes) -> str:
    """Return a decoded text: the protobuf library gives bytes for one that is no UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def facts_of(references: Sequence[Any]) -> tuple[dict[str, str], tuple[float, ...] | None]:
    """Return what references to an actor tell, see ``reference``; nothing for those of others."""
    facts, centre = dict[str, str](), None
    for listed in references:
        if listed.type != ACTOR:
            continue
        for told in map(text, listed.identifier):
            name, _, value = told.partition("=")
            if (numbers := _BOX_TEXT.fullmatch(told)) is None:
                facts[name] = value
                continue
            try:
                centre = tuple(map(float, numbers.groups()))
            except ValueError:
                continue
    return facts, centre
