"""Types of messages, messages and rules, whatever the definition language.

Versions of types: fields, constants, Layout and text; messages as rules see them: records with fields, arrays of
records, and times; rules: how messages of one version become messages of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from logreel.errors import DefinitionError, LogError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import Column
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
        case Bytes() | Rest() | Counted(item=Scalar(type="char")):
            return FieldType("uint8", None, True)
        case Struct():
            return FieldType(name, _from_struct(name, encoding, node))
        case FixedArray(item=item) | Counted(item=item):
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


NS = 10**9


class RuleError(LogError):
    """A rule that cannot be applied to a message."""


class RosTime:
    """A time or duration in ns, with the attributes of that of ROS."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    @property
    def secs(self) -> int:
        """Whole seconds."""
        return self.ns // NS

    @property
    def nsecs(self) -> int:
        """Nanoseconds after the whole second."""
        return self.ns % NS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RosTime) and self.ns == other.ns

    def __lt__(self, other: RosTime) -> bool:
        return self.ns < other.ns

    def __le__(self, other: RosTime) -> bool:
        return self.ns <= other.ns

    def __hash__(self) -> int:
        return hash(self.ns)

    def __int__(self) -> int:
        return self.ns

    def __add__(self, other: RosTime) -> RosTime:
        return RosTime(self.ns + other.ns)

    def __sub__(self, other: RosTime) -> RosTime:
        return RosTime(self.ns - other.ns)


class StructValue:
    """A message or a part of one: its type, and the values of its fields as ``decode`` returns them.

    Texts are stored as bytes, so that those that are no UTF-8 are kept.
    """

    __slots__ = ("type", "values")

    def __init__(self, type: TypeVersion, values: dict[str, Any]) -> None:
        self.type, self.values = type, values

    def _field(self, name: str) -> FieldType:
        field_type = self.type.fields.get(name)
        if field_type is None:
            raise RuleError(f"{self.type.name} has no field {name!r}; there are {listed(self.type.fields)}")
        return field_type

    def get(self, name: str) -> Any:
        """Return a field or constant: a number, text, bytes, list, RosTime, StructValue, or Records."""
        if name not in self.type.fields and name in self.type.constant_values:
            return self.type.constant_values[name]
        field_type, value = self._field(name), self.values[name]
        if field_type.nested is not None:
            return (
                Records(field_type.nested, value)
                if field_type.array
                else StructValue(field_type.nested, value)
            )
        convert = as_text if field_type.base == "string" else _as_time if field_type.base in TIMES else None
        if convert is None:
            return value
        if not field_type.array:
            return convert(value)
        # In place, because rules change arrays of new messages; encoders accept both forms.
        value[:] = map(convert, value)
        return value

    def set(self, name: str, value: Any) -> None:
        """Set a field; raises RuleError for a value of another kind."""
        field_type = self._field(name)
        if field_type.array:
            self.values[name] = _stored_items(field_type, value, f"{self.type.name}.{name}")
        else:
            self.values[name] = _stored(field_type, value, f"{self.type.name}.{name}")


class Records:
    """An array of Records; changes go to the message."""

    __slots__ = ("items", "type")

    def __init__(self, type: TypeVersion, items: list[dict[str, Any]]) -> None:
        self.type, self.items = type, items

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[StructValue]:
        return (StructValue(self.type, item) for item in self.items)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Records(self.type, self.items[at])
        return StructValue(self.type, self.items[at])

    def __setitem__(self, at: int, value: Any) -> None:
        self.items[at] = _record_values(self.type, value, self.type.name)

    def append(self, value: Any) -> None:
        """Add one StructValue."""
        self.items.append(_record_values(self.type, value, self.type.name))

    def extend(self, values: Any) -> None:
        """Add several Records."""
        for item in values:
            self.append(item)


class SurrogateText(str):
    """Text with bytes that are no UTF-8, as surrogates; it is encoded to the same bytes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "surrogateescape") -> bytes:
        """Return the bytes that the text was decoded from."""
        return super().encode(encoding, errors)


def as_text(value: str | bytes) -> str:
    """Return stored text as str; bytes that are no UTF-8 become surrogates."""
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return SurrogateText(bytes(value).decode("utf-8", "surrogateescape"))


def _as_time(value: int | RosTime) -> RosTime:
    return RosTime(int(value))


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _stored(field_type: FieldType, value: Any, name: str) -> Any:
    """Return *value* as it is stored in a field of *field_type* that is no array, or as an item of one."""
    if field_type.nested is not None:
        return _record_values(field_type.nested, value, name)
    if field_type.base == "string":
        if not isinstance(value, str | bytes):
            raise RuleError(f"{name} is a text, but {_shown(value)} is assigned")
        return _as_bytes(value)
    if field_type.base in TIMES:
        if not isinstance(value, RosTime):
            raise RuleError(f"{name} is a {field_type.base}, but {_shown(value)} is assigned")
        return value.ns
    if not isinstance(value, int | float):
        raise RuleError(f"{name} is a number, but {_shown(value)} is assigned")
    return value


def _stored_items(field_type: FieldType, value: Any, name: str) -> Any:
    if field_type.is_bytes:
        if isinstance(value, str):
            # Rules written for Python 2 give arrays of bytes as texts of the same characters.
            return value.encode("latin-1", "replace")
        if isinstance(value, bytes | bytearray | list | tuple):
            try:
                return bytes(value)
            except (ValueError, TypeError) as error:
                raise RuleError(f"{name} is {field_type.spelled}: {error}") from None
    elif field_type.base == "int8" and isinstance(value, bytes | bytearray):
        return [item - 256 if item > 127 else item for item in value]
    if isinstance(value, Records):
        value = list(value)
    if not isinstance(value, list | tuple | bytes | bytearray):
        raise RuleError(f"{name} is an array, but {_shown(value)} is assigned")
    return [_stored(field_type, item, name) for item in value]


def _record_values(version: TypeVersion, value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, StructValue):
        raise RuleError(f"{name} is a {version.name}, but {_shown(value)} is assigned")
    if value.type.identity != version.identity:
        if value.type.fields.keys() != version.fields.keys():
            raise RuleError(
                f"{name} is a {version.name}, but a {value.type.name} with other fields is assigned"
            )
        # Types with equal fields are assigned field by field, so that their types are checked, too.
        made = StructValue(version, {})
        for field in version.fields:
            made.set(field, value.get(field))
        return made.values
    return value.values


def _shown(value: Any) -> str:
    if isinstance(value, StructValue):
        return f"a {value.type.name}"
    if isinstance(value, RosTime):
        return "a time"
    return f"{value!r:.40}"


#: Values of the fields of a message by name; see ``values.Record``.
Values = dict[str, Any]
Update = Callable[[Values], Values]
#: Columns of messages by field, and the update of so many messages.
Columns = dict[str, Column]
ColumnUpdate = Callable[[Columns, int], Columns]


class Nested(Protocol):
    """Migration of messages that are part of others."""

    def convert(self, old: TypeVersion, new: TypeVersion) -> Update:
        """Return a function from values of *old* to values of *new*; raises RuleError if there is no way."""


class NotColumnsError(Exception):
    """Raised for what cannot be done by columns, but only message by message."""


class NestedColumns(Protocol):
    """Migration of columns of messages that are part of others."""

    def convert_columns(self, old: TypeVersion, new: TypeVersion) -> ColumnUpdate | None:
        """Return the update of columns, None if nothing changes; raises NotColumnsError if there is none."""


@dataclass(frozen=True, eq=False)
class BoundRule:
    """A rule for one version of a type.

    parts   pairs of types of parts of the message that the rule migrates by other rules
    make    returns the function from old to new values, which uses Nested for parts
    exact   True: the rule names *old* itself; False: it applies to any version with its fields
    layout  Layout of the old messages, if the log does not describe them; else None
    topic   new topic of the channel; empty: that of the log, or after the new name of the type
    make_columns  returns the update of columns of many messages; raises NotColumnsError if there is none
    """

    location: str
    old: TypeVersion
    new: TypeVersion
    make: Callable[[Nested], Update]
    parts: Sequence[tuple[TypeVersion, TypeVersion]] = ()
    exact: bool = True
    layout: Layout | None = None
    topic: str = ""
    make_columns: Callable[[NestedColumns], ColumnUpdate] | None = None


@dataclass(frozen=True, eq=False)
class UpdateRule:
    """A rule as a file states it.

    location  file and name or line, for people
    old_name  type that it applies to
    new_name  type of the result
    order     place among the rules of one type, ascending
    fixed     the rule for the version that it names; None: it applies to several versions
    bind      returns the rule for a version of the type, None if it does not apply to this version
    """

    location: str
    old_name: str
    new_name: str
    order: int
    bind: Callable[[TypeVersion], BoundRule | None]
    fixed: BoundRule | None = None

    @property
    def renames(self) -> bool:
        """Whether the type gets another name."""
        return self.old_name != self.new_name


#: Returns whether messages called so may become messages of the second name.
MayBecome = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Implicit:
    """An update of all fields by name.

    reasons  sentences why it is impossible; empty if it is possible as far as this type goes
    nested   fields whose messages have to be migrated, with their old and new types
    """

    old: TypeVersion
    new: TypeVersion
    reasons: tuple[str, ...]
    nested: tuple[tuple[str, FieldType, FieldType], ...]

    def update(self, converts: dict[str, Update]) -> Update:
        """Return the function; *converts*: that of each field in *nested*, by name."""
        names = list(self.new.fields)
        arrays = {name for name, field_type, _ in self.nested if field_type.array}

        def apply(values: Values) -> Values:
            made = {name: values[name] for name in names}
            for name, convert in converts.items():
                made[name] = (
                    [convert(value) for value in made[name]] if name in arrays else convert(made[name])
                )
            return made

        return apply


def implicit(old: TypeVersion, new: TypeVersion, may_become: MayBecome) -> Implicit:
    """Return the update of *old* to *new* by names of fields, as ``rosbag fix`` generates it."""
    reasons, nested = [], []
    changed = sorted({name for name, _, _ in old.constants - new.constants})
    if changed:
        reasons.append(f"constants changed: {listed(changed)}")
    for name, field_type in new.fields.items():
        before = old.fields.get(name)
        if before is None:
            reasons.append(f"{name} is new")
        elif (before.array, before.count) != (field_type.array, field_type.count):
            reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
        elif before.nested is not None and field_type.nested is not None:
            if not may_become(current_name(before.nested.name), current_name(field_type.nested.name)):
                reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
            elif before.nested.identity != field_type.nested.identity:
                nested.append((name, before, field_type))
        elif before.base != field_type.base:
            reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
    gone = [name for name in old.fields if name not in new.fields]
    if gone:
        reasons.append(f"without a place in the new definition: {listed(gone)}")
    return Implicit(old, new, tuple(reasons), tuple(nested))
