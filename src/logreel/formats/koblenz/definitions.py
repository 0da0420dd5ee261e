"""Message types: ids, Layouts, and notes on what the description of the format leaves open.

The description of the format gives six types and allows others, but has no place for what their fields are. Programs
register such types; and a log can describe its own, which logreel writes behind the end mark, where any bytes are
allowed.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, LogError
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    SCALARS,
    Bytes,
    Field,
    FixedArray,
    Node,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
)
from logreel.schemas import catalogue
from logreel.schemas.ros1msg import FieldLine, parse_message

#: Version of all described types except one, and the usual version of types without description.
USUAL_VERSION = 100
#: Language of definitions in the user's folder.
LANGUAGE = "koblenz"
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

    version     the version that *layout* describes
    instance    leading fields that distinguish several sensors of the type
    notes       what is assumed or unknown about the fields
    later       descriptions of later versions, ascending
    usual       first described version, if this is a later one; -1: this one
    definition  its fields as text, if the log describes them; see ``read_types``
    original    what the channel was in another format, as text; empty: it was not converted
    declared    whether the log states that it is a channel, even without messages
    """

    name: str
    layout: Layout
    version: int = USUAL_VERSION
    instance: tuple[str, ...] = ()
    notes: str = ""
    definition: str = ""
    original: str = ""
    declared: bool = False
    later: tuple[MessageType, ...] = ()
    usual: int = -1

    @cached_property
    def id(self) -> int:
        """Its id in message headers."""
        return type_id(self.name)

    @property
    def usual_version(self) -> int:
        """The first described version, which names of channels leave out."""
        return self.version if self.usual < 0 else self.usual

    def at(self, version: int) -> MessageType:
        """Return the type as described for messages of *version*: by that version, or the last one before."""
        fits = [later for later in self.later if later.version <= version]
        return replace(fits[-1], usual=self.usual_version) if fits else self

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
_registered: dict[int, MessageType] = {message_type.id: message_type for message_type in KNOWN}


def registered_types() -> dict[int, MessageType]:
    """Return all known types by id: the six described ones, those that ``register_type`` added, and the user's."""
    return {message_kind.id: message_kind for message_kind in stored_types()} | _registered


def stored_types() -> list[MessageType]:
    """Return the types in the user's folder, each with all its versions; files that cannot be used are left out."""
    by_name: dict[str, list[MessageType]] = {}
    for path in catalogue.files(LANGUAGE):
        try:
            message_kind = _of_file(path, path.stat().st_mtime_ns)
        except (OSError, LogError):
            continue
        by_name.setdefault(message_kind.name, []).append(message_kind)
    kinds: dict[int, MessageType] = {}
    for name in sorted(by_name):
        first, *later = sorted(by_name[name], key=lambda message_kind: message_kind.version)
        kinds.setdefault(first.id, replace(first, later=tuple(later)))
    return [*kinds.values()]


@lru_cache(maxsize=1024)
def _of_file(path: Path, changed: int) -> MessageType:
    if not path.stem.isdecimal() or len(path.stem) > 5:
        raise DefinitionError("is not named after a version", path=str(path))
    return message_type(path.parent.name, int(path.stem), catalogue.read(path)[1])


def message_type(name: str, version: int, text: str) -> MessageType:
    """Return the type with the fields in *text*: lines like ``float32 celsius  # [degC]``.

    Types are those of ROS definitions without time and duration, and arrays of them; bool has four bytes. Raises
    DefinitionError.
    """
    parsed = parse_message(text, name)
    units = {match[1]: match[2] for match in _UNIT.finditer(text)}
    if parsed.constants or not parsed.fields:
        raise DefinitionError(f"{name}: expected fields, and no constants")
    fields = tuple(Field(f.name, _node(f, name), units.get(f.name, "")) for f in parsed.fields)
    message_kind = MessageType(name, Layout(Struct(fields), name), version)
    if not 0 < message_kind.id < 1 << ID_BITS or not 0 <= version < 1 << 16:
        raise DefinitionError(f"{name!r:.80} in version {version} cannot be a message type")
    return message_kind


_UNIT = re.compile(r"^\s*\S+\s+(\w+)\s*#[^\n\[]*\[([^\]\n]*)\]", re.MULTILINE)
_NODES: dict[str, Node] = {**{name: Scalar(name) for name in SCALARS if name != "bool"}, "bool": Scalar("uint32"),
                           "string": String()}  # fmt: skip


def _node(f: FieldLine, name: str) -> Node:
    item = _NODES.get(f.type)
    if item is None:
        raise DefinitionError(f"{name}: {f.name} is of type {f.type}; there are: {', '.join(_NODES)}")
    if not f.array:
        return item
    if f.count is not None:
        return FixedArray(item, f.count)
    return Bytes() if f.type == "uint8" else Sequence(item)


def text_of(layout: Layout) -> str:
    """Return the fields of *layout* as text, in lines like those that ``message_type`` takes, with structs indented."""
    return "".join(f"{line}\n" for line in _lines(layout.root, ""))


def _lines(node: Node, indent: str) -> Iterator[str]:
    if not isinstance(node, Struct):
        yield f"{indent}{_spelled(node)}"
        yield from _inner(node, indent)
        return
    for f in node.fields:
        yield f"{indent}{_spelled(f.node)} {f.name}" + (f"  # [{f.unit}]" if f.unit else "")
        yield from _inner(f.node, indent)


def _inner(node: Node, indent: str) -> Iterator[str]:
    while isinstance(node, FixedArray | Sequence):
        node = node.item
    if isinstance(node, Struct):
        yield from _lines(node, f"{indent}  ")


def _spelled(node: Node) -> str:
    match node:
        case FixedArray(item=item, count=count):
            return f"{_spelled(item)}[{count}]"
        case Sequence(item=item):
            return f"{_spelled(item)}[]"
        case Scalar(type=spelling):
            return spelling
        case String():
            return "string"
        case Struct():
            return "struct"
        case _:
            return "uint8[]"


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


@dataclass(slots=True)
class Kind:
    """A message type in one version.

    known   the type, or None
    longer  whether some messages are longer than their Layout
    raw     whether messages of an undescribed version do not begin with the known fields
    """

    type: int
    version: int
    known: MessageType | None
    longer: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if self.known is not None:
            self.known = self.known.at(self.version)

    @property
    def layout(self) -> Layout:
        """The Layout of the payloads."""
        if self.known is None or self.raw or self.version < self.known.version:
            return RAW
        return self.known.layout if self.is_described else self.known.newer

    @property
    def is_described(self) -> bool:
        """Whether this version is described."""
        return self.known is not None and self.version == self.known.version

    @property
    def name(self) -> str:
        """Name of the type, or its id in hex; followed by ``@`` and the version unless that is the usual one."""
        name = self.known.name if self.known else f"0x{self.type:08X}"
        usual = self.known.usual_version if self.known else USUAL_VERSION
        return name if self.version == usual else f"{name}@{self.version}"

    def layout_at(self, source: Source, payload: int, stop: int) -> Layout:
        """Return the Layout of the payload from *payload* to *stop*."""
        # Only pictures whose second number is not 0 (compressed) are described.
        if self.is_described and self.known and "compressed" in self.known.instance:
            return self.layout if any(source.read(payload + 4, min(4, stop - payload))) else UNCOMPRESSED
        return self.layout


_BEGIN, _END = b"logreel types=", b"\nlogreel types end\n"
_LENGTH = struct.Struct("<I")
#: Limits of a description: bytes, and number of types.
MAX_BYTES, MAX_TYPES = 16 << 20, 1000
_WORD = re.compile(r"[A-Za-z0-9]+")
_SIMPLE: dict[str, Node] = {"time": Time(), "duration": Time(True), "string": String(), "bytes": Bytes()}


def pack_types(types: Iterable[MessageType], declared: Collection[int]) -> bytes:
    """Return the description of *types*, which begins after the end mark or the UTC offset there; empty for none.

    declared  ids of types that are channels, even without messages
    """
    rows = [
        {
            "name": message_type.name,
            "version": message_type.version,
            "fields": json.loads(message_type.definition),
            "original": message_type.original,
            **({"channel": True} if message_type.id in declared else {}),
        }
        for message_type in types
    ]
    if not rows:
        return b""
    text = _BEGIN + json.dumps(rows, separators=(",", ":")).encode()
    return text + _LENGTH.pack(len(text)) + _END


def read_types(source: Source) -> dict[int, MessageType]:
    """Return the types that a log describes at its end, by id; empty if there are none, or they are invalid."""
    foot = _LENGTH.size + len(_END)
    tail = source.read(max(0, source.size - foot), min(foot, source.size))
    if len(tail) < foot or not tail.endswith(_END):
        return {}
    (size,) = _LENGTH.unpack_from(tail)
    if not len(_BEGIN) <= size <= min(MAX_BYTES, source.size - foot):
        return {}
    text = source.read(source.size - foot - size, size)
    try:
        rows = json.loads(text[len(_BEGIN) :]) if text.startswith(_BEGIN) else []
        described = [_type(row) for row in rows[:MAX_TYPES]]
    except (ValueError, TypeError, KeyError, RecursionError, DefinitionError):
        return {}
    taken = registered_types()
    return {message_type.id: message_type for message_type in described if message_type.id not in taken}


def _type(row: Mapping[str, Any]) -> MessageType:
    name, version, original = row["name"], row["version"], row.get("original", "")
    if not isinstance(name, str) or not isinstance(version, int) or not isinstance(original, str):
        raise ValueError("a type has a name, a version and fields")
    message_type = described_type(name, json.dumps(row["fields"], separators=(",", ":")), version, original)
    return replace(message_type, declared=row.get("channel") is True)


def described_type(name: str, definition: str, version: int, original: str = "") -> MessageType:
    """Return the type with the fields that *definition* describes; raises DefinitionError for an invalid one."""
    message_type = MessageType(name, layout_of(definition), version, definition=definition, original=original)
    if not name or not 0 < message_type.id < 1 << ID_BITS or not 0 <= version < 1 << 16:
        raise DefinitionError(f"{name!r:.60} cannot be the name of a message type")
    return message_type


def class_name(topic: str, taken: Collection[int]) -> str:
    """Return a class name for *topic*, ``ImuDataM`` for ``/imu/data``, whose id is not among those *taken*."""
    words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(topic)) or "Message"
    # Ids are sums of letters, so names must not be long.
    words = words[:200]
    unique, n = f"{words}M", 1
    while type_id(unique) in taken:
        n += 1
        unique = f"{words}{n}M"
    return unique


def definition_of(layout: Layout) -> str:
    """Return the fields of *layout* as text."""
    return json.dumps(_written(layout.root), separators=(",", ":"))


def layout_of(definition: str) -> Layout:
    """Return the Layout that ``definition_of`` described; raises DefinitionError for an invalid text."""
    try:
        root = _parsed_node(json.loads(definition), 0)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DefinitionError(f"the description of its fields cannot be used: {error}") from None
    if not isinstance(root, Struct):
        raise DefinitionError("a message type has fields")
    return Layout(root, "")


def _written(node: Node) -> Any:
    match node:
        case Scalar(type=written_type):
            return written_type
        case Time(signed=signed):
            return "duration" if signed else "time"
        case String() | Rest(text=True):
            return "string"
        case Bytes() | Rest():
            return "bytes"
        case FixedArray(item=item, count=count):
            return {"array": _written(item), "count": count}
        case Sequence(item=item):
            return {"list": _written(item)}
        case Struct():
            return {"fields": [[f.name, _written(f.node), f.unit] for f in node.visible()]}
        case _:
            raise DefinitionError(f"a Koblenz log has nothing for {type(node).__name__}")


def _parsed_node(value: Any, depth: int) -> Node:
    if depth > MAX_DEPTH // 2:
        raise ValueError("types are nested too deep")
    if isinstance(value, str):
        return Scalar(value) if value in SCALARS else _SIMPLE[value]
    if "array" in value:
        count = value["count"]
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 1 << 31:
            raise ValueError(f"an array of {count!r:.20} items")
        return FixedArray(_parsed_node(value["array"], depth + 1), count)
    if "list" in value:
        return Sequence(_parsed_node(value["list"], depth + 1))
    fields = [
        Field(str(name), _parsed_node(member, depth + 1), str(unit)) for name, member, unit in value["fields"]
    ]
    if len({f.name for f in fields}) < len(fields):
        raise ValueError("two fields have one name")
    return Struct(tuple(fields))
