"""Layouts of message types, and functions that convert messages to plain values and, with ``fill``, back."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    MAX_LEAVES,
    Bytes,
    Field,
    Node,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
)

Convert = Callable[[Any], Any]

#: Scalar types by FieldDescriptor type number.
_SCALARS = {
    1: "float64",
    2: "float32",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "uint64",
    7: "uint32",
    8: "bool",
    13: "uint32",
    15: "int32",
    16: "int64",
    17: "int32",
    18: "int64",
}
GROUP, _STRING, _BYTES, MESSAGE, _ENUM = 10, 9, 12, 11, 14
_LIMIT = 1 << 63


class ProtoLayout:
    """Layout of a message type, and ``values``, which converts a message to a dict in the order of the fields.

    Raises DefinitionError for a type with more parts than a Layout can have, and for one that is a single value.
    """

    def __init__(self, descriptor: Any) -> None:
        self._parts = 0
        self._converts = list[tuple[str, Convert]]()
        # A message without fields says that something happened.
        node, convert = self._message(descriptor, ()) if descriptor.fields else (Struct(()), lambda _: {})
        if not isinstance(node, Struct):
            raise DefinitionError(f"{descriptor.full_name} is a value, not a message of its own")
        self.layout = Layout(node, descriptor.full_name)
        self.values: Callable[[Any], dict[str, Any]] = convert

    def values_of(self, names: Container[str]) -> Callable[[Any], dict[str, Any]]:
        """Return what ``values`` does, for the fields *names* of the message only."""
        converts = [(name, convert) for name, convert in self._converts if name in names]
        return lambda message: {name: convert(message) for name, convert in converts}

    def _message(self, descriptor: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        name = descriptor.full_name
        if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            return Time(signed=name.endswith("Duration")), _nanoseconds
        # Recursive types and types without fields cannot be columns: they are shown as bytes.
        if name in above or len(above) > MAX_DEPTH // 2 or not descriptor.fields:
            return Bytes(), _serialized
        fields, converts = [], []
        for one in descriptor.fields:
            self._parts += 1
            if self._parts > MAX_LEAVES // 4:
                raise DefinitionError(f"{name} has too many fields")
            node, convert = self._field(one, (*above, name))
            fields.append(Field(one.name, node))
            converts.append((one.name, convert))
        # The outermost message is finished last.
        self._converts = converts
        return Struct(tuple(fields)), lambda message: {n: convert(message) for n, convert in converts}

    def _field(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        name = field.name
        if is_map(field):
            return self._map(field, above)
        node, convert = self._value(field, above)
        if is_repeated(field):
            return Sequence(node), lambda message: [convert(v) for v in getattr(message, name)]
        if field.has_presence:
            return node, lambda m: convert(getattr(m, name)) if m.HasField(name) else None
        return node, lambda message: convert(getattr(message, name))

    def _map(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        key_node, key = self._value(field.message_type.fields_by_name["key"], above)
        value_node, value = self._value(field.message_type.fields_by_name["value"], above)
        name = field.name
        node = Sequence(Struct((Field("key", key_node), Field("value", value_node))))
        return node, lambda m: [{"key": key(k), "value": value(v)} for k, v in getattr(m, name).items()]

    def _value(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        kind = field.type
        if kind in (MESSAGE, GROUP):
            return self._message(field.message_type, above)
        if kind == _ENUM:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return String(), lambda value: names.get(value, str(value))
        if kind == _STRING:
            return String(), str
        if kind == _BYTES:
            return Bytes(), bytes
        return Scalar(_SCALARS[kind]), lambda value: value


def is_repeated(field: Any) -> bool:
    """Return whether a field is repeated."""
    # Newer releases of the library replace label by is_repeated.
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == 3 if repeated is None else repeated)


def is_map(field: Any) -> bool:
    """Return whether a field is a map."""
    return bool(field.type == MESSAGE and field.message_type.GetOptions().map_entry)


def _nanoseconds(message: Any) -> int:
    return int(min(max(message.seconds * 10**9 + message.nanos, -_LIMIT), _LIMIT - 1))


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializePartialToString())


def fill(message: Any, values: Mapping[str, Any]) -> None:
    """Set the fields of *message*; zeros, empty values and missing ones are not set.

    Raises ValueError for a value that does not fit its field.
    """
    for field in message.DESCRIPTOR.fields:
        value: Any = values.get(field.name)
        if _empty(value):
            continue
        if is_map(field):
            _fill_map(getattr(message, field.name), field.message_type.fields_by_name["value"], value)
        elif field.type in (MESSAGE, GROUP):
            inner = getattr(message, field.name)
            if not is_repeated(field):
                _fill_message(inner, value)
            else:
                for one in value:
                    _fill_message(inner.add(), one)
        elif is_repeated(field):
            getattr(message, field.name).extend([_plain(field, one) for one in value])
        else:
            setattr(message, field.name, _plain(field, value))


def _empty(value: Any) -> bool:
    return not (any(not _empty(one) for one in value.values()) if isinstance(value, Mapping) else value)


def _fill_map(target: Any, field: Any, items: list[Mapping[str, Any]]) -> None:
    for item in items:
        if field.type == MESSAGE:
            _fill_message(target[item["key"]], item["value"])
        else:
            target[item["key"]] = _plain(field, item["value"])


def _fill_message(message: Any, value: Any) -> None:
    if isinstance(value, bytes):
        message.MergeFromString(value)
    elif isinstance(value, int):
        message.seconds, message.nanos = divmod(value, 10**9)
        if message.seconds < 0 < message.nanos and message.DESCRIPTOR.name == "Duration":
            # In a Duration, both numbers have the same sign.
            message.seconds, message.nanos = message.seconds + 1, message.nanos - 10**9
    else:
        fill(message, value)


def _plain(field: Any, value: Any) -> Any:
    if field.type != _ENUM:
        return value
    known = field.enum_type.values_by_name.get(value)
    if known is None and not value.lstrip("-").isdecimal():
        raise ValueError(
            f"{field.name}: {value!r:.60} is none of {', '.join(field.enum_type.values_by_name)}"
        )
    return int(value) if known is None else known.number
