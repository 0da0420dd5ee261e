"""Versions of message types: fields, constants, Layout and text, whatever the definition language."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from logreel.dataclass import dataclass, field, replace
from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time
from logreel.schemas import ros1msg

#: Encoding of definitions whose nested types have names and versions of their own.
NAMED = "ros1msg"
#: Most items of the fixed arrays of a new message.
MAX_ITEMS = 1 << 24

WHOLE_NUMBERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)) | {
    "char",
    "byte",
}
REAL_NUMBERS = frozenset({"float32", "float64"})
TIMES = frozenset({"time", "duration"})
#: Builtin types whose arrays are bytes.
OCTETS = frozenset({"uint8", "char"})
#: Identity of a version of a type: name and key.
Identity = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class FieldType:
    """The type of a field.

    base    builtin type such as ``float64`` or ``string``, or the name of *nested*
    nested  the version of a message type; None for a builtin type
    array   whether it is an array of such values
    count   number of items of an array of fixed size, else None
    """

    base: str
    nested: TypeVersion | None = None
    array: bool = False
    count: int | None = None

    @property
    def spelled(self) -> str:
        """Type with its brackets."""
        if not self.array:
            return self.base
        return f"{self.base}[]" if self.count is None else f"{self.base}[{self.count}]"

    @property
    def is_bytes(self) -> bool:
        """Whether values are ``bytes``."""
        return self.array and self.base in OCTETS

    def default(self) -> Any:
        """Return the value of a field that is not set: zero, or empty."""
        if not self.array:
            return self._item()
        if self.count is None:
            return b"" if self.is_bytes else []
        if self.count > MAX_ITEMS:
            raise DefinitionError(f"{self.spelled}: an array of more than {MAX_ITEMS} items")
        return bytes(self.count) if self.is_bytes else [self._item() for _ in range(self.count)]

    def _item(self) -> Any:
        if self.nested is not None:
            return self.nested.default()
        if self.base in REAL_NUMBERS:
            return 0.0
        return "" if self.base == "string" else (self.base != "bool" and 0)


@dataclass(frozen=True, eq=False)
class TypeVersion:
    """One version of a message type.

    name       name of the type, such as ``sensor_msgs/Imu`` or ``vehicle_gps_position``
    encoding   definition language
    key        what tells versions of one name apart: the checksum of the language, or a digest of the fields
    fields     types of the fields by name, in the order of the bytes
    constants  name, text and type of each constant
    constant_values  value of each constant, by name
    text       the concatenated definition; empty if there is no text
    version    number of the version where the log states one, else empty
    variant    what tells versions with the same fields apart, such as other units; empty: the usual one
    """

    name: str
    encoding: str
    key: str
    fields: Mapping[str, FieldType]
    make_layout: Callable[[], Layout]
    constants: frozenset[tuple[str, str, str]] = frozenset()
    text: str = ""
    version: str = ""
    variant: str = ""
    constant_values: Mapping[str, bool | int | float | str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.label}>"

    @property
    def label(self) -> str:
        """Name and version for people."""
        return f"{self.name} ({f'version {self.version}' if self.version else self.key})"

    @property
    def identity(self) -> Identity:
        """The current name of the type, and the key."""
        name = current_name(self.name) if self.encoding == NAMED else self.name
        return name, f"{self.key} {self.variant}" if self.variant else self.key

    @cached_property
    def layout(self) -> Layout:
        """Layout of the messages; raises DefinitionError if it is too large."""
        return self.make_layout()

    @cached_property
    def types(self) -> Mapping[str, TypeVersion]:
        """This type and all that it uses, by name."""
        by_name: dict[str, TypeVersion] = {}
        todo = [self]
        while todo:
            version = todo.pop()
            if version.name in by_name:
                continue
            by_name[version.name] = version
            todo += [f.nested for f in version.fields.values() if f.nested is not None]
        return by_name

    def default(self) -> dict[str, Any]:
        """Return the values of a message that is not filled in."""
        return {name: field_type.default() for name, field_type in self.fields.items()}

    def with_version(self, version: str) -> TypeVersion:
        """Return the same fields as another version; its key then tells both apart."""
        if version == self.version:
            return self
        return replace(self, version=version, key=f"{self.key.partition(' ')[0]} {version}")

    def as_plain(self, name: str, encoding: str) -> TypeVersion:
        """Return the same fields in a language whose nested types have no versions of their own."""
        return from_layout(name, encoding, self.layout)

    def used(self, name: str) -> TypeVersion | None:
        """Return the type called *name* that this one uses, or itself; its package may be left out; or None."""
        package = self.name.rpartition("/")[0]
        names = (name, f"std_msgs/{name}", f"roslib/{name}", f"{package}/{name}")
        return next((self.types[spelling] for spelling in names if spelling in self.types), None)


def current_name(name: str) -> str:
    """Return the current name of a type of ROS 1 of which rules use former names, too."""
    return _HEADERS[0] if name in _HEADERS else name


_HEADERS = ros1msg.spellings("std_msgs/Header")


def from_definition(definition: ros1msg.Definition) -> TypeVersion:
    """Return the version of a type of ROS 1; its key is the MD5 of its definition."""
    return _FromDefinition(definition).version(definition.name)


class _FromDefinition:
    """Conversion of a Definition with all types that it uses, each once."""

    def __init__(self, definition: ros1msg.Definition) -> None:
        self._whole = definition
        self._done: dict[str, TypeVersion] = {}

    def version(self, name: str) -> TypeVersion:
        if name in self._done:
            return self._done[name]
        part = self._whole if name == self._whole.name else self._whole.part(name)
        message, uses = part.root, part.uses[name]
        fields = {}
        for f in message.fields:
            nested = self.version(uses[f.type]) if f.type in uses else None
            fields[f.name] = FieldType(uses.get(f.type, f.type), nested, f.array, f.count)
        constants = frozenset((c.name, c.text, c.type) for c in message.constants)
        made = TypeVersion(
            name,
            NAMED,
            part.md5,
            fields,
            lambda: ros1msg.layout(part),
            constants,
            part.text,
            constant_values={c.name: c.value for c in message.constants if c.value is not None},
        )
        self._done[name] = made
        return made


def from_layout(name: str, encoding: str, layout: Layout, text: str = "", version: str = "") -> TypeVersion:
    """Return the version of a type that is only known by its Layout; its key is a digest of the fields.

    Raises DefinitionError for a message of many records.
    """
    if not isinstance(layout.root, Struct):
        raise DefinitionError(f"{name}: messages of many records cannot be migrated")
    return _from_struct(name, encoding, layout.root, text, version)


def _from_struct(name: str, encoding: str, root: Struct, text: str = "", version: str = "") -> TypeVersion:
    fields = {f.name: _field_type(f.node, f"{name}.{f.name}", encoding) for f in root.visible()}
    digest = hashlib.md5("\n".join(_lines(fields)).encode(), usedforsecurity=False).hexdigest()
    return TypeVersion(name, encoding, digest, fields, lambda: Layout(root, name), frozenset(), text, version)


def _lines(fields: Mapping[str, FieldType]) -> Iterator[str]:
    for name, field_type in fields.items():
        base = field_type.base if field_type.nested is None else field_type.nested.key
        yield f"{base}{field_type.spelled.removeprefix(field_type.base)} {name}"


def _field_type(node: Node, name: str, encoding: str) -> FieldType:
    match node:
        case Scalar(type=base):
            return FieldType("int8" if base == "char" else base)
        case Time(signed=signed):
            return FieldType("duration" if signed else "time")
        case String() | Rest(text=True) | FixedArray(item=Scalar(type="char")):
            return FieldType("string")
        case Bytes() | Rest() | Sequence(item=Scalar(type="char")):
            return FieldType("uint8", None, True)
        case Struct():
            return FieldType(name, _from_struct(name, encoding, node))
        case FixedArray(item=item) | Sequence(item=item):
            inner = _field_type(item, name, encoding)
            if inner.array:
                return FieldType(f"{inner.spelled}[]")
            count = node.count if isinstance(node, FixedArray) else None
            return FieldType(inner.base, inner.nested, True, count)
        case _:
            raise DefinitionError(f"{name}: a field of {type(node).__name__} cannot be migrated")


def from_text(text: str, name: str, find: ros1msg.DefinitionRegistry | None = None) -> TypeVersion:
    """Return the version of a type of ROS 1 from its concatenated text; raises DefinitionError."""
    return from_definition(ros1msg.parse(text, name, find))


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return names as a list for a sentence."""
    known = list(names)
    return ", ".join(known[:most]) + " …" * (len(known) > most)
