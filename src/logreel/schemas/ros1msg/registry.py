"""Registry of definitions: those given for one log, those in the user's folder, and those that logreel ships.

``CATALOGUE`` is what ``logreel.definitions`` uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from logreel.errors import DefinitionError
from logreel.log.scan import Schema
from logreel.schemas.catalogue import Entry, NewEntry
from logreel.schemas.ros1msg import known
from logreel.schemas.ros1msg.definition import (
    MAX_NAME,
    MAX_TEXT,
    Definition,
    DefinitionText,
    MessageDefinition,
    is_type,
    link,
    parse_message,
    short_name,
    spellings,
    split_text,
)

if TYPE_CHECKING:
    from pathlib import Path

#: Suffixes of descriptors and calibrations, which are for other formats.
_OTHERS = {".binpb", ".desc", ".pb", ".protoset", ".xml"}


class Bundle(Mapping[str, MessageDefinition]):
    """Definitions by name that look up types in each other before others; each is parsed when it is first needed."""

    def __init__(self, sections: Iterable[DefinitionText]) -> None:
        self._texts: dict[str, str] = {}
        for name, text in sections:
            # Of a repeated definition the first one is used.
            self._texts.setdefault(name, text)
        self._parsed: dict[str, MessageDefinition] = {}

    def __getitem__(self, name: str) -> MessageDefinition:
        if name not in self._parsed:
            self._parsed[name] = parse_message(self._texts[name], name)
        return self._parsed[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    # Compared by identity: comparing contents would parse all of them.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class DefinitionRegistry:
    """Definitions by type and checksum; the latest additions come first, known definitions last.

    known  False: without the definitions that logreel ships and those in the user's folder
    """

    def __init__(self, *, known: bool = True) -> None:
        self._bundles: list[Bundle] = []
        self._with_known = known
        self._linked: dict[tuple[str, Bundle], Definition] = {}

    @classmethod
    def of(cls, paths: Iterable[Path]) -> DefinitionRegistry:
        """Return a registry with the definitions at *paths*, before the known ones.

        Descriptors and calibrations of other formats, and folders that contain only such files, are skipped. Raises the
        errors of ``add_path``.
        """
        paths = [path for path in paths if not _is_of_others(path)]
        if not paths:
            return standard()
        registry = cls()
        for path in paths:
            registry.add_path(path)
        return registry

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.message(name) is not None

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        """Return the names of all types, sorted."""
        added = {name for bundle in self._bundles for name in bundle}
        return sorted(added | known.names() if self._with_known else added)

    def message(self, name: str) -> MessageDefinition | None:
        """Return the latest message of type *name*, None if unknown; raise DefinitionError if it is invalid."""
        for n in spellings(name):
            for bundle in self._bundles:
                if n in bundle:
                    return bundle[n]
            if self._with_known and (message := known.message(n)) is not None:
                return message
        return None

    def versions(self, name: str) -> Iterator[Definition]:
        """Yield all versions of the type, the latest first; raise DefinitionError for an unusable one that was added.

        Unusable files in the user's folder are left out.
        """
        for n in spellings(name):
            for bundle in self._bundles:
                if n not in bundle:
                    continue
                if (n, bundle) not in self._linked:
                    self._linked[n, bundle] = link(n, bundle, self.message)
                yield self._linked[n, bundle]
            for entry in known.versions(n) if self._with_known else ():
                try:
                    yield entry.definition
                except DefinitionError:
                    if entry.path is None:
                        raise

    def find(self, name: str, md5: str = "*") -> Definition | None:
        """Return the latest version of the type with this checksum (current or of bags 1.1), or None.

        md5  ``*`` or empty: any

        Former names of a type are found, too (``roslib/Log``, ``tf/tfMessage``, ``rostools/Header``); the Definition
        has the name in the registry. A known definition with this checksum of a type with another name has the same
        fields, and is returned under *name*. Raises DefinitionError for an unusable definition.
        """
        definition = next((d for d in self.versions(name) if not md5 or d.matches(md5)), None)
        if definition is None and self._with_known:
            for entry in known.with_md5(md5):
                with contextlib.suppress(DefinitionError):
                    return known.renamed(entry.definition, short_name(name))
        return definition

    def add(self, text: str, name: str) -> None:
        """Add the concatenated *text* of type *name*, which takes precedence with all types defined in it."""
        self._insert(Bundle(split_text(text, name)))

    def add_path(self, path: str | Path) -> list[str]:
        """Add ``.msg`` files and return the names of their types.

        path  a file, or a folder that is searched recursively: ``pkg/msg/Type.msg`` or ``pkg/Type.msg``

        Files are parsed when their types are first needed. Raises OSError, and DefinitionError for a folder without
        ``.msg`` files, an invalid name or a file that is too large.
        """
        from pathlib import Path

        path = Path(path).absolute()
        files = sorted(path.rglob("*.msg")) if path.is_dir() else [path]
        sections = [section for file in files for section in _read(file)]
        if not sections:
            raise DefinitionError("there is no .msg file in this folder", path=str(path))
        self._insert(Bundle(sections))
        return list(dict.fromkeys(s.name for s in sections))

    def _insert(self, bundle: Bundle) -> None:
        self._bundles.insert(0, bundle)
        # Definitions that were linked before may use types of the new bundle.
        self._linked.clear()


def _is_of_others(path: Path) -> bool:
    """Return whether *path* is a file, or a folder of files, with definitions of other formats only."""
    if not path.is_dir():
        return path.suffix in _OTHERS
    return any(file.suffix in _OTHERS for file in path.rglob("*")) and not any(path.rglob("*.msg"))


def _read(file: Path) -> list[DefinitionText]:
    folder = file.parent.parent if file.parent.name == "msg" else file.parent
    name = f"{folder.name}/{file.stem}"
    if not is_type(name):
        raise DefinitionError(f"{name!r} cannot be the name of a type", path=str(file))
    if file.stat().st_size > MAX_TEXT:
        raise DefinitionError("a definition of more than 4 MiB", path=str(file))
    return split_text(file.read_text(encoding="utf-8", errors="replace"), name)


@lru_cache(maxsize=1)
def standard() -> DefinitionRegistry:
    """Return the shared registry of known definitions; add definitions to a new ``DefinitionRegistry()`` instead."""
    return DefinitionRegistry()


#: Checksum of a message without fields.
MD5_EMPTY = "d41d8cd98f00b204e9800998ecf8427e"


def parse(text: str, name: str, registry: DefinitionRegistry | None = None) -> Definition:
    """Return the Definition of type *name* from its concatenated text; raise DefinitionError.

    registry  used for types that the text does not define; None: the standard messages

    Unused sections are ignored, even invalid ones.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    if len(name) > MAX_NAME:
        raise DefinitionError(f"{name[:80]}…: a type name of {len(name)} characters")
    find = (standard() if registry is None else registry).message
    return link(short_name(name), Bundle(split_text(text, name)), find, closed=True)


def define(
    name: str, text: str = "", md5: str = "*", registry: DefinitionRegistry | None = None
) -> Definition:
    """Return the Definition of a channel: from its *text*, or from *registry* if the text is empty.

    md5  version of the type; ``*`` or empty: any

    A *text* is used whatever its checksum: compare with ``Definition.matches``. Raises DefinitionError for an invalid
    text, and if there is no text and no version with this checksum is known.
    """
    if text.strip():
        return parse(text, name, registry)
    if md5 == MD5_EMPTY:
        return parse("", name, registry)
    known = standard() if registry is None else registry
    definition = known.find(name, md5)
    if definition is not None:
        return definition
    versions = f", only others than that of md5 {md5[:80]}" if known.find(name) else ""
    raise DefinitionError(f"the log carries no definition of {name[:80]}, and none is known{versions}")


def as_read(name: str, text: str, md5: str, registry: DefinitionRegistry) -> tuple[str, str]:
    """Return the concatenated text by which messages of type *name* are read, and its checksum if that is unknown.

    text, md5  as in the log; returned unchanged if the text is complete or cannot be used
    """
    try:
        definition = define(name, text, md5, registry)
    except DefinitionError:
        return text, md5
    return definition.text if definition.borrowed or not text.strip() else text, md5 if md5 not in (
        "",
        "*",
    ) else definition.md5


def full_text(name: str, registry: DefinitionRegistry | None = None, md5: str = "*") -> str:
    """Return the concatenated text of the type *name*, as publishers send it; raise DefinitionError if unknown."""
    return define(name, "", md5, registry).text


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
