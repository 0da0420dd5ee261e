"""Message types that a log describes itself: logreel writes them behind the end mark, where any bytes are allowed.

The description of the format gives six types and allows others, but has no place for what their fields are.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from logreel.dataclass import replace
from logreel.errors import DefinitionError
from logreel.formats.koblenz.definitions import ID_BITS, MessageType, registered_types, type_id
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
        root = _node(json.loads(definition), 0)
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


def _node(value: Any, depth: int) -> Node:
    if depth > MAX_DEPTH // 2:
        raise ValueError("types are nested too deep")
    if isinstance(value, str):
        return Scalar(value) if value in SCALARS else _SIMPLE[value]
    if "array" in value:
        count = value["count"]
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 1 << 31:
            raise ValueError(f"an array of {count!r:.20} items")
        return FixedArray(_node(value["array"], depth + 1), count)
    if "list" in value:
        return Sequence(_node(value["list"], depth + 1))
    fields = [Field(str(name), _node(member, depth + 1), str(unit)) for name, member, unit in value["fields"]]
    if len({f.name for f in fields}) < len(fields):
        raise ValueError("two fields have one name")
    return Struct(tuple(fields))
