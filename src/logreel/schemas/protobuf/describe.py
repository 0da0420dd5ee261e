"""Message types described by us, and the descriptors that other tools want of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Numbers of the library for kinds of fields that are no message and no enumeration.
KINDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
}
#: Kinds that are messages of the library's own.
TIMES = {"time": "timestamp", "duration": "duration"}
_MESSAGE, _ENUM = 11, 14


@dataclass(frozen=True, slots=True)
class Enum:
    """Names of numbers, which count from 0."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its kind is a key of KINDS or TIMES, an Enum or a Message."""

    name: str
    number: int
    kind: str | Enum | Message
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A message type by its full name; types whose names begin with that and a dot are declared inside of it."""

    name: str
    fields: tuple[Field, ...]

    def holds(self, kind: Enum | Message) -> bool:
        """Whether a type is declared inside of this one."""
        return kind.name.startswith(self.name + ".")


def descriptor_set(message: Message) -> bytes:
    """A FileDescriptorSet of *message* and all that it uses, what is used first; a file for each type."""
    from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2

    out = descriptor_pb2.FileDescriptorSet()
    kinds = {f.kind for one in _types(message) for f in one.fields if f.kind in TIMES}
    for kind, module in (("time", timestamp_pb2), ("duration", duration_pb2)):
        if kind in kinds:
            out.file.add().MergeFromString(module.DESCRIPTOR.serialized_pb)
    for one in _files(message):
        out.file.append(_file(one))
    return bytes(out.SerializeToString(deterministic=True))


def _types(message: Message) -> Iterator[Message]:
    """*message* and the message types below it, what is used first; some of them several times."""
    for f in message.fields:
        if isinstance(f.kind, Message):
            yield from _types(f.kind)
    yield message


def _files(message: Message) -> list[Message]:
    """The types that have a file of their own, what is used first."""
    every = {one.name: one for one in _types(message)}
    return [one for one in every.values() if not any(other.holds(one) for other in every.values())]


def _path(name: str) -> str:
    return f"{name.replace('.', '/')}.proto"


def _file(message: Message) -> Any:
    """The FileDescriptorProto of one type."""
    from google.protobuf import descriptor_pb2

    package, _, name = message.name.rpartition(".")
    out = descriptor_pb2.FileDescriptorProto(name=_path(message.name), package=package, syntax="proto3")
    needed = dict.fromkeys(_needed(message, message))
    out.dependency.extend(needed)
    _fill(out.message_type.add(name=name), message)
    return out


def _needed(message: Message, top: Message) -> Iterator[str]:
    """The files that what is declared inside of *top* needs."""
    for f in message.fields:
        if isinstance(f.kind, Message):
            if top.holds(f.kind):
                yield from _needed(f.kind, top)
            else:
                yield _path(f.kind.name)
        elif f.kind in TIMES:
            yield f"google/protobuf/{TIMES[str(f.kind)]}.proto"


def _fill(out: Any, message: Message) -> None:
    for f in message.fields:
        made = out.field.add(name=f.name, number=f.number, label=3 if f.repeated else 1)
        if isinstance(f.kind, Message | Enum):
            made.type = _MESSAGE if isinstance(f.kind, Message) else _ENUM
            made.type_name = f".{f.kind.name}"
            if message.holds(f.kind):
                _declare(out, f.kind)
        elif f.kind in TIMES:
            made.type, made.type_name = _MESSAGE, f".google.protobuf.{TIMES[f.kind].capitalize()}"
        else:
            made.type = KINDS[f.kind]


def _declare(out: Any, kind: Enum | Message) -> None:
    """Put a type inside of another."""
    name = kind.name.rpartition(".")[2]
    if isinstance(kind, Message):
        _fill(out.nested_type.add(name=name), kind)
        return
    made = out.enum_type.add(name=name)
    for number, value in enumerate(kind.values):
        made.value.add(name=value, number=number)
