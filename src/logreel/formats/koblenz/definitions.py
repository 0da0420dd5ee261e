"""Message types: ids, Layouts, and notes on what the description of the format leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Rest, Scalar, Sequence, String, Struct

#: Version of all described types except one, and the usual version of types without description.
USUAL_VERSION = 100
#: Number of versions of a known type, from the described one on, that are accepted without further evidence.
VERSIONS = 11
#: Largest number of bits of an id: sums of letters are small.
ID_BITS = 24
#: Bytes of a Velodyne packet.
PACKET = 1206

_I32, _U32, _F32, _F64 = Scalar("int32"), Scalar("uint32"), Scalar("float32"), Scalar("float64")


def type_id(name: str) -> int:
    """Return the id of the class *name*, as it is in message headers.

    It is the sum of all bytes, each multiplied by 119 plus its index; this rule was derived from six known pairs of
    name and id. Collisions are easy to find.
    """
    return sum(byte * (119 + i) for i, byte in enumerate(name.encode())) & 0xFFFFFFFF


@dataclass(frozen=True)
class MessageType:
    """One message type.

    version   the version that *layout* describes
    instance  leading fields that distinguish several sensors of the type
    notes     what is assumed or unknown about the fields
    definition  its fields as text, if the log describes them; see ``own_types``
    original  what the channel was in another format, as text; empty: it was not converted
    """

    name: str
    layout: Layout
    version: int = USUAL_VERSION
    instance: tuple[str, ...] = ()
    notes: str = ""
    definition: str = ""
    original: str = ""

    @cached_property
    def id(self) -> int:
        """Its id in message headers."""
        return type_id(self.name)

    @cached_property
    def newer(self) -> Layout:
        """The Layout of later versions: the known fields, and the bytes after them."""
        if not isinstance(self.layout.root, Struct):
            return RAW
        known = self.layout.root.fields
        taken = {f.name for f in known}
        name = next(n for n in ("rest", "rest_", "rest__", "rest___") if n not in taken)
        return Layout(Struct((*known, Field(name, Rest()))), self.name)


RAW = Layout(Struct((Field("payload", Rest()),)), "raw")

_RETURN = Struct((Field("distance", Scalar("uint16"), "2 mm"), Field("intensity", Scalar("uint8"))))
_BLOCK = Struct(
    (
        Field("flag", Scalar("uint16")),
        Field("azimuth", Scalar("uint16"), "0.01 deg"),
        Field("returns", FixedArray(_RETURN, 32)),
    )
)
_PACKET = Struct(
    (
        Field("blocks", FixedArray(_BLOCK, 12)),
        Field("clock", _U32, "us"),
        Field("status_type", Scalar("uint8")),
        Field("status_value", Scalar("uint8")),
    )
)


def _struct(name: str, *fields: Field) -> Layout:
    return Layout(Struct(fields), name)


_OBD = MessageType(
    "OBDDataM",
    _struct(
        "OBDDataM",
        Field("speed", _I32, "km/h"),
        Field("rpm", _I32, "1/min"),
        Field("unused1", _F32),
        Field("unused2", _I32),
        Field("unused3", _I32),
        Field("throttle", _F32),
        Field("unused4", _I32),
    ),
    notes="The unit of throttle is open; the car's own number for it is percent, 0 to 100.",
)
_GPS = MessageType(
    "GPSDataM",
    _struct(
        "GPSDataM",
        Field("hour", _I32),
        Field("minute", _I32),
        Field("second", _I32),
        Field("warning", _I32),
        Field("latitude", _F64),
        Field("longitude", _F64),
        Field("speed", _F32, "km/h"),
        Field("course", _F32, "deg"),
        Field("day", _I32),
        Field("month", _I32),
        Field("year", _I32),
        Field("quality", _I32),
        Field("satellites", _I32),
        Field("hdop", _F32),
        Field("height", _F32, "m"),
        Field("geoid_height", _F32, "m"),
        Field("vdop", _F32),
        Field("pdop", _F32),
    ),
    notes="The unit of latitude and longitude is open: signed degrees, unless they are beyond 90 and 180; then NMEA's "
    "degrees and minutes, ddmm.mmmm. Years may have two digits: below 80 they are of this century. Warning 1 or "
    "quality 0: not valid. Quality 1 GPS, 2 differential, 6 estimated. Time is UTC, height is above mean sea level, "
    "geoid_height is of the geoid above the ellipsoid, course is from true north.",
)
_IMAGE = MessageType(
    "ImageM",
    _struct(
        "ImageM",
        Field("source_id", _I32),
        Field("compressed", _U32),
        Field("width", _I32),
        Field("height", _I32),
        Field("data", Bytes()),
    ),
    instance=("source_id", "compressed"),
    notes="Compressed is a truth value of four bytes and always 1: data is a JPEG.",
)
#: Pictures with the field ``compressed`` 0, whose layout is not described.
UNCOMPRESSED = _struct(
    "ImageM", Field("source_id", _I32), Field("compressed", _U32), Field("payload", Rest())
)
_POSE = MessageType(
    "RobotPoseM",
    _struct(
        "RobotPoseM",
        Field("quaternion", FixedArray(_F32, 4)),
        Field("acceleration", FixedArray(_F32, 3)),
    ),
    notes="The order of the quaternion is open: the component near 1 at the start is w, see quaternion_order. The "
    "unit of acceleration is open: a norm near 9.8 is m/s2, near 1 is g, see acceleration_unit. There is no position, "
    "whatever the name says.",
)
_VELODYNE = MessageType(
    "VelodyneRawDataM",
    Layout(Sequence(_PACKET), "VelodyneRawDataM"),
    notes="Packets of a HDL-64E or HDL-32E as received. clock is in microseconds since the full hour of UTC, except in "
    "packets of a HDL-64E S1, which have a spin counter of two bytes and four of status there. A distance of 0 is no "
    "return. Flag 0xEEFF is the upper bank of lasers or all of them, 0xDDFF the lower bank.",
)
_LASER = MessageType(
    "LaserRange2DDataM",
    _struct(
        "LaserRange2DDataM",
        Field("sensor_type", String()),
        Field("sensor_name", String()),
        Field("ranges", Sequence(_U32), "mm"),
    ),
    version=101,
    instance=("sensor_type", "sensor_name"),
    notes="Ranges as the scanner gave them, error codes among them; the first step of the scan follows from their "
    "number. Version 100 is not described.",
)

KNOWN = (_OBD, _GPS, _IMAGE, _POSE, _VELODYNE, _LASER)
_registered: dict[int, MessageType] = {kind.id: kind for kind in KNOWN}


def registered_types() -> dict[int, MessageType]:
    """Return all known types by id: the six described ones, and those that ``register_type`` added."""
    return dict(_registered)


def register_type(name: str, layout: Layout, version: int = USUAL_VERSION) -> int:
    """Register a message type for logs that are opened later; return its id.

    name     class name, from which the id follows
    layout   of the payload in *version*; payloads of later versions may be longer

    Registering the same type again changes nothing. Raises DefinitionError if another type has the id: ids are sums
    of letters and collide easily.
    """
    new = MessageType(name, layout, version)
    if not name or new.id >> ID_BITS:
        raise DefinitionError(f"{name!r} cannot be the name of a message type")
    known = _registered.setdefault(new.id, new)
    if known != new:
        what = "is registered already" if known.name == name else f"has the id of {known.name}"
        raise DefinitionError(f"message type {name!r} {what} (0x{new.id:08X})")
    return new.id
