"""Messages as rules see them: records with fields, arrays of records, and times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logreel.errors import LogError
from logreel.ops.migrate.types import TIMES, FieldType, TypeVersion, listed

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
