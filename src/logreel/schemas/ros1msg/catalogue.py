"""The catalogue of known ROS 1 definitions, as ``logreel.definitions`` uses it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from logreel.errors import DefinitionError
from logreel.log.scan import Schema
from logreel.schemas.catalogue import Entry, NewEntry
from logreel.schemas.ros1msg import known
from logreel.schemas.ros1msg.definition import Definition
from logreel.schemas.ros1msg.grammar import is_type
from logreel.schemas.ros1msg.registry import DefinitionRegistry, parse


class Ros1Catalogue:
    """Known types of ROS 1; versions are checksums."""

    language, suffix = known.LANGUAGE, ".msg"

    def names(self) -> Collection[str]:
        """Return the names of all types."""
        return known.names()

    def versions(self, name: str) -> list[Entry]:
        """Return the versions of a type, also under former names, the current one first."""
        return [_entry(entry) for entry in known.find(name)]

    def with_version(self, version: str) -> list[Entry]:
        """Return all entries with this checksum."""
        return [_entry(entry) for entry in known.with_md5(version.lower())]

    def read(self, path: Path) -> Iterator[NewEntry | DefinitionError]:
        """Yield the types in a ``.msg`` file, or in all such files in a folder of packages."""
        registry = DefinitionRegistry()
        for name in registry.add_path(path):
            try:
                yield _new(next(iter(registry.versions(name))))
            except DefinitionError as error:
                yield error

    def of_schema(self, schema: Schema, stated: str) -> NewEntry:
        """Return the definition in a log's schema; raises DefinitionError if it cannot be used."""
        definition = parse(schema.text, schema.name)
        if not definition.matches(stated or "*"):
            text = f"{schema.name}: the definition has md5 {definition.md5}, the log states {stated:.80}"
            raise DefinitionError(text)
        return _new(definition)


def _entry(entry: known.Known) -> Entry:
    return Entry(known.LANGUAGE, entry.name, entry.md5, entry.source, entry.path, lambda: entry.text)


def _new(definition: Definition) -> NewEntry:
    if not is_type(definition.name) or definition.name.count("/") != 1:
        raise DefinitionError(f"{definition.name!r:.80} is no type of ROS 1, which look like 'package/Name'")
    return NewEntry(definition.name, definition.md5, definition.text)


CATALOGUE = Ros1Catalogue()
