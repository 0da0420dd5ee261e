"""Descriptors of message types: from the user's files, imported modules, and known messages."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from logreel.errors import DefinitionError
from logreel.schemas.protobuf import known

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
        from google.protobuf import descriptor_pool, timestamp_pb2

        paths = list(paths)
        self._pools = [_pool(own, "the schema")] if own else []
        self._pools += [_pool(_bytes(path), str(path)) for path in _files(paths)]
        for path in paths:
            if _MODULE.fullmatch(str(path)) and not path.exists() and path.suffix not in SUFFIXES:
                _import_classes(str(path))
        self._pools.append(descriptor_pool.Default())
        ours = descriptor_pool.DescriptorPool()
        ours.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        ours.Add(known.file_descriptor())
        self._pools.append(ours)

    def find(self, name: str) -> Any:
        """Return the Descriptor of a message type, None if unknown."""
        for pool in self._pools:
            try:
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
    except DecodeError as error:
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


def _files(paths: Iterable[Path]) -> Iterable[Path]:
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
