"""Descriptions of message types, and their descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logreel.dataclass import dataclass

#: FieldDescriptor type numbers of scalar kinds.
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
#: Kinds that are messages of the protobuf library.
TIMES = {"time": "timestamp", "duration": "duration"}
_MESSAGE, _ENUM = 11, 14


@dataclass(frozen=True, slots=True)
class Enum:
    """An enumeration; its values are numbered from 0."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field; *kind*: a key of KINDS or TIMES, an Enum or a ProtoMessage; *optional*: readers see if it is set."""

    name: str
    number: int
    kind: str | Enum | ProtoMessage
    repeated: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message type; *name*: full name. Types whose names begin with it and a dot are nested types."""

    name: str
    fields: tuple[ProtoField, ...]

    def holds(self, kind: Enum | ProtoMessage) -> bool:
        """Return whether a type is nested in this one."""
        return kind.name.startswith(self.name + ".")


def descriptor_set(message: ProtoMessage) -> bytes:
    """Return a FileDescriptorSet of *message* and all types that it uses, a file for each; used types come first."""
    from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2

    out = descriptor_pb2.FileDescriptorSet()
    kinds = {f.kind for one in _types(message) for f in one.fields if f.kind in TIMES}
    for kind, module in (("time", timestamp_pb2), ("duration", duration_pb2)):
        if kind in kinds:
            out.file.add().MergeFromString(module.DESCRIPTOR.serialized_pb)
    for one in _files(message):
        out.file.append(_file(one))
    return bytes(out.SerializeToString(deterministic=True))


def _types(message: ProtoMessage) -> Iterator[ProtoMessage]:
    """Yield the message types that *message* uses, then *message*; some several times."""
    for f in message.fields:
        if isinstance(f.kind, ProtoMessage):
            yield from _types(f.kind)
    yield message


def _files(message: ProtoMessage) -> list[ProtoMessage]:
    """Return the types that are not nested in others; used types come first."""
    every = {one.name: one for one in _types(message)}
    return [one for one in every.values() if not any(other.holds(one) for other in every.values())]


def _path(name: str) -> str:
    return f"{name.replace('.', '/')}.proto"


def _file(message: ProtoMessage) -> Any:
    """Return the FileDescriptorProto of a type."""
    from google.protobuf import descriptor_pb2

    package, _, name = message.name.rpartition(".")
    out = descriptor_pb2.FileDescriptorProto(name=_path(message.name), package=package, syntax="proto3")
    needed = dict.fromkeys(_needed(message, message))
    out.dependency.extend(needed)
    _fill(out.message_type.add(name=name), message)
    return out


def _needed(message: ProtoMessage, top: ProtoMessage) -> Iterator[str]:
    """Yield the files that *message*, nested in *top*, depends on."""
    for f in message.fields:
        if isinstance(f.kind, ProtoMessage):
            if top.holds(f.kind):
                yield from _needed(f.kind, top)
            else:
                yield _path(f.kind.name)
        elif f.kind in TIMES:
            yield f"google/protobuf/{TIMES[str(f.kind)]}.proto"


def _fill(out: Any, message: ProtoMessage) -> None:
    declared = set[str]()
    for f in message.fields:
        made = out.field.add(name=f.name, number=f.number, label=3 if f.repeated else 1)
        if f.optional:
            # Descriptors express it as a group of one field.
            made.proto3_optional, made.oneof_index = True, len(out.oneof_decl)
            out.oneof_decl.add(name=f"_{f.name}")
        if isinstance(f.kind, ProtoMessage | Enum):
            made.type = _MESSAGE if isinstance(f.kind, ProtoMessage) else _ENUM
            made.type_name = f".{f.kind.name}"
            if message.holds(f.kind) and f.kind.name not in declared:
                declared.add(f.kind.name)
                _declare(out, f.kind)
        elif f.kind in TIMES:
            made.type, made.type_name = _MESSAGE, f".google.protobuf.{TIMES[f.kind].capitalize()}"
        else:
            made.type = KINDS[f.kind]


def _declare(out: Any, kind: Enum | ProtoMessage) -> None:
    """Add a nested type."""
    name = kind.name.rpartition(".")[2]
    if isinstance(kind, ProtoMessage):
        _fill(out.nested_type.add(name=name), kind)
        return
    made = out.enum_type.add(name=name)
    for number, value in enumerate(kind.values):
        made.value.add(name=value, number=number)
