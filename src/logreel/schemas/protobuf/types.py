"""Descriptors of message types: from descriptions, the user's files, imported modules, and known messages.

Known messages are common in logs of robots; they serve logs opened without descriptors. docs/formats/bddf.md lists
their fields. A field of an unknown message type is ``bytes``.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from _thread import allocate_lock
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from logreel.errors import DefinitionError

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


#: Fields of each message: name, number, kind; ``*`` after the kind: repeated.
MESSAGES = {
    "bosdyn.api.OperatorComment": "message 1 string, timestamp 2 time",
    "bosdyn.api.TextMessage": (
        "message 1 string, timestamp 2 time, source 3 string, level 4 Level, tag 5 string, filename 6 string, "
        "line_number 7 int32"
    ),
    "bosdyn.api.Event": (
        "type 1 string, description 2 string, source 3 string, id 4 string, start_time 5 time, end_time 6 time, "
        "level 7 int32, parameters 8 bytes*, log_preserve_hint 9 int32"
    ),
    "bosdyn.api.SignalTick": (
        "sequence_id 1 int64, timestamp 2 time, source 3 string, schema_id 4 uint64, encoding 5 int32, data 6 bytes"
    ),
    "bosdyn.api.SignalSchema": "vars 1 Variable*, schema_name 2 string",
    "bosdyn.api.Variable": "name 1 string, type 2 int32, is_time 3 bool",
}
LEVELS = ("UNKNOWN", "DEBUG", "INFO", "WARN", "ERROR")


def known_messages() -> Any:
    """Return a FileDescriptorProto of all known messages."""
    from google.protobuf import descriptor_pb2

    field = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "string": field.TYPE_STRING,
        "bytes": field.TYPE_BYTES,
        "int32": field.TYPE_INT32,
        "int64": field.TYPE_INT64,
        "uint64": field.TYPE_UINT64,
        "bool": field.TYPE_BOOL,
    }
    out = descriptor_pb2.FileDescriptorProto(
        name="logreel/known.proto", package="bosdyn.api", syntax="proto3"
    )
    out.dependency.append("google/protobuf/timestamp.proto")
    level = out.enum_type.add(name="Level")
    for number, name in enumerate(LEVELS):
        level.value.add(name=name, number=number)
    for full_name, text in MESSAGES.items():
        message = out.message_type.add(name=full_name.rpartition(".")[2])
        for one in text.split(", "):
            name, at, kind = one.split()
            label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            made = message.field.add(name=name, number=int(at), label=label)
            if kind in kinds:
                made.type = kinds[kind]
            else:
                made.type = field.TYPE_ENUM if kind == "Level" else field.TYPE_MESSAGE
                made.type_name = ".google.protobuf.Timestamp" if kind == "time" else f".bosdyn.api.{kind}"
    return out


@cache
def _known_pool() -> Any:
    """Return the DescriptorPool of all known messages: each channel asks for it."""
    from google.protobuf import descriptor_pool, timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(known_messages())
    return pool


#: Held while the protobuf library makes descriptors and classes: where it has no compiled modules, it takes no care of
#: threads.
_making = allocate_lock()


def message_class(descriptor: Any) -> Any:
    """Return the class of the messages of a type, from its Descriptor."""
    from google.protobuf import message_factory

    with _making:
        return message_factory.GetMessageClass(descriptor)


SUFFIXES = (".binpb", ".desc", ".pb", ".protoset")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Types:
    """Message types by full name: from the user's descriptors, then imported message classes, then known messages.

    paths  files with a FileDescriptorSet, folders of such files, or names of modules with message classes, which are
           imported; other files are ignored
    own    a FileDescriptorSet with precedence over all others; empty: none

    Raises DefinitionError for a file that is no FileDescriptorSet, and a module that cannot be imported.
    """

    def __init__(self, paths: Iterable[Path] = (), own: bytes = b"") -> None:
        from google.protobuf import descriptor_pool

        paths = list(paths)
        self._pools = [_pool(own, "the schema")] if own else []
        self._pools += [_pool(_bytes(path), str(path)) for path in _descriptor_files(paths)]
        for path in paths:
            if _MODULE.fullmatch(str(path)) and not path.exists() and path.suffix not in SUFFIXES:
                _import_classes(str(path))
        self._pools.append(descriptor_pool.Default())
        self._pools.append(_known_pool())

    def find(self, name: str) -> Any:
        """Return the Descriptor of a message type, None if unknown."""
        for pool in self._pools:
            try:
                with _making:
                    return pool.FindMessageTypeByName(name)
            except KeyError:
                continue
        return None

    def set_of(self, name: str) -> bytes:
        """Return a FileDescriptorSet of a message type and all types that it uses, empty if unknown."""
        from google.protobuf import descriptor_pb2

        descriptor, files = self.find(name), dict[str, bytes]()
        if descriptor is not None:
            _collect(descriptor.file, files)
        out = descriptor_pb2.FileDescriptorSet()
        for raw in files.values():
            out.file.add().MergeFromString(raw)
        return bytes(out.SerializeToString(deterministic=True))


def _collect(file: Any, files: dict[str, bytes]) -> None:
    """Add a file after its dependencies."""
    for dependency in file.dependencies:
        if dependency.name not in files:
            _collect(dependency, files)
    files[file.name] = file.serialized_pb


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"{path}: no set of descriptors: {error}") from None


def _pool(raw: bytes, name: str) -> Any:
    """Return the DescriptorPool of a FileDescriptorSet; *name*: for errors."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(raw).file
    except (DecodeError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{name}: no set of descriptors: {error}") from None
    pool = descriptor_pool.DescriptorPool()
    by_name = {file.name: file for file in files}
    done: set[str] = set()

    def add(file_name: str) -> None:
        if file_name in done:
            return
        done.add(file_name)
        if file_name not in by_name:
            # Sets often leave out the files of the protobuf library.
            pool.AddSerializedFile(descriptor_pool.Default().FindFileByName(file_name).serialized_pb)
            return
        for dependency in by_name[file_name].dependency:
            add(dependency)
        pool.Add(by_name[file_name])

    _import_well_known()
    try:
        for file_name in by_name:
            add(file_name)
    except (TypeError, KeyError, RecursionError) as error:
        raise DefinitionError(f"{name}: its descriptors do not fit together: {error}") from None
    return pool


def _descriptor_files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        elif path.suffix in SUFFIXES:
            yield path


def _import_classes(name: str) -> None:
    """Import a module with message classes, or all ``*_pb2`` of a package, which registers their descriptors."""
    try:
        module = importlib.import_module(name)
        for submodule in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if submodule.name.endswith("_pb2"):
                importlib.import_module(f"{name}.{submodule.name}")
    except Exception as error:
        raise DefinitionError(f"{name}: neither a file nor a module that can be imported: {error}") from error


def _import_well_known() -> None:
    """Register the files of the protobuf library, for sets that leave them out."""
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"):
        importlib.import_module(f"google.protobuf.{name}_pb2")
