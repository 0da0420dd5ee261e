"""Messages from plain values, the inverse of ``layouts.Shape.values``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logreel.schemas.protobuf.layouts import GROUP, MESSAGE, is_map, is_repeated

_ENUM = 14


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
