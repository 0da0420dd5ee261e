"""Known definitions: those that logreel ships, with history and source, and those in the user's folder.

Shipped definitions are in ``standard/PACKAGE.msgs``, each with the checksum of its version:

    #: source repository, version (licence)
    MSG: pkg/Type 0123456789abcdef0123456789abcdef
    #: uses pkg/Other fedcba9876543210fedcba9876543210
    float64 x

The first definition of a type is the current one. ``uses`` names types of which this version uses an earlier one,
``source`` a source that differs from that of the file. A file is read when a type of its package is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError, LogError
from logreel.schemas import catalogue
from logreel.schemas.ros1msg.definition import (
    Definition,
    DefinitionText,
    MessageDefinition,
    is_type,
    join_text,
    link,
    package_of,
    parse_message,
    respelled,
    short_name,
    spellings,
    split_text,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

#: Folder of the language below the user's definitions.
LANGUAGE = "ros1msg"
_MD5 = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HEAD = re.compile(r"^MSG: (\S+) ([0-9a-f]{32})\n", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Known:
    """One version of a type, in the catalogue.

    md5     checksum as in bags since 1.2
    source  where the definition is from: repository, version and licence, or a file of the user
    path    file in the user's folder; None: shipped
    """

    name: str
    md5: str
    source: str
    path: Path | None = None
    _text: str = field(default="", repr=False)
    _uses: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def message(self) -> MessageDefinition:
        """The message without the types that it uses; raises DefinitionError if it is invalid."""
        return parse_message(split_text(self._text, self.name)[0].text, self.name)

    @cached_property
    def definition(self) -> Definition:
        """The message with all types that it uses.

        Raises DefinitionError if it cannot be used or has another checksum than its file states.
        """
        if self.path is not None:
            definition = link(self.name, _parsed(split_text(self._text, self.name)), message, closed=True)
        else:
            sections = {self.name: self.message}
            for name, md5 in self._uses.items():
                sections[name] = next(version for version in versions(name) if version.md5 == md5).message
            definition = link(self.name, sections, message)
        if definition.md5 != self.md5:
            where = str(self.path) if self.path is not None else None
            raise DefinitionError(
                f"{self.name}: stored with md5 {self.md5}, but has {definition.md5}", path=where
            )
        return definition

    @property
    def text(self) -> str:
        """Concatenated text of the type and all types that it uses; raises DefinitionError like ``definition``."""
        return self.definition.text

    def as_dict(self) -> dict[str, str | None]:
        """Return name, checksum, source and path."""
        path = None if self.path is None else str(self.path)
        return {"name": self.name, "md5": self.md5, "source": self.source, "path": path}


def names() -> set[str]:
    """Return the names of all known types."""
    return {name for package in _packages() for name in _shipped(package)} | {
        entry.name for entry in of_user()
    }


def versions(name: str) -> list[Known]:
    """Return the known versions of exactly this type: the current one, those of the user, earlier ones."""
    shipped = _shipped(package_of(name)).get(name, ())
    added = of_user(name) if is_type(name) else ()
    own = [entry for entry in added if all(entry.md5 != other.md5 for other in shipped)]
    return [*shipped[:1], *own, *shipped[1:]]


def find(name: str, md5: str | None = None) -> list[Known]:
    """Return the known versions of the type, also under former names; *md5*: only that of this checksum."""
    entries = [entry for spelling in spellings(name) for entry in versions(spelling)]
    return [entry for entry in entries if md5 is None or entry.md5 == md5]


def latest(name: str) -> Known | None:
    """Return the current version of the type, or None if it is unknown."""
    return next(iter(find(name)), None)


def message(name: str) -> MessageDefinition | None:
    """Return the current message of exactly this type, or None; raise DefinitionError if it is invalid."""
    entry = next(iter(versions(name)), None)
    return entry.message if entry is not None else None


def with_md5(md5: str) -> list[Known]:
    """Return all known definitions with this checksum, whatever their type is called."""
    if not _MD5.fullmatch(md5):
        return []
    shipped = [
        entry
        for package in _packages()
        if md5 in _file(package)
        for several in _shipped(package).values()
        for entry in several
        if entry.md5 == md5
    ]
    own = (entry for entry in of_user() if entry.md5 == md5)
    return shipped + [entry for entry in own if all(entry.name != other.name for other in shipped)]


def renamed(definition: Definition, name: str) -> Definition:
    """Return *definition* as the definition of type *name*, whose fields are the same; raise DefinitionError."""
    if definition.name == name:
        return definition
    same = {message_name: message_name for message_name in definition.messages}
    text = respelled(definition.root, definition.uses[definition.name], same, package_of(name))
    rest = [
        DefinitionText(message_name, m.text)
        for message_name, m in definition.messages.items()
        if message_name != definition.name
    ]
    sections = _parsed(split_text(join_text([DefinitionText(name, text), *rest]), name))
    return link(name, sections, message, closed=True)


def of_user(name: str | None = None) -> Iterator[Known]:
    """Yield the definitions in the user's folder, of all types or of type *name*; the one added last comes first.

    Files that cannot be read, or are not named like a type and a checksum, are ignored.
    """
    for path in catalogue.files(LANGUAGE, None if name is None else short_name(name)):
        type_name, md5 = f"{path.parent.parent.name}/{path.parent.name}", path.stem
        if is_type(type_name) and _MD5.fullmatch(md5):
            try:
                yield _of_file(path, path.stat().st_mtime_ns, type_name, md5)
            except (OSError, LogError):
                continue


@lru_cache(maxsize=256)
def _of_file(path: Path, changed: int, name: str, md5: str) -> Known:
    notes, text = catalogue.read(path)
    return Known(name, md5, notes.get("source", ""), path, text)


def _parsed(sections: list[DefinitionText]) -> dict[str, MessageDefinition]:
    messages: dict[str, MessageDefinition] = {}
    for name, text in sections:
        if name not in messages:
            messages[name] = parse_message(text, name)
    return messages


def _standard() -> Traversable:
    """Return the folder of the shipped definitions; few logs need one of them, and this imports much."""
    from importlib import resources

    return resources.files("logreel.schemas.ros1msg").joinpath("standard")


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    return tuple(sorted(file.name.removesuffix(".msgs") for file in _standard().iterdir()))


@lru_cache(maxsize=512)
def _file(package: str) -> str:
    return _standard().joinpath(f"{package}.msgs").read_text(encoding="utf-8")


@lru_cache(maxsize=512)
def _shipped(package: str) -> Mapping[str, tuple[Known, ...]]:
    """Return the shipped definitions of *package* by type, each with its current version first."""
    if package not in _packages():
        return {}
    entries: dict[str, tuple[Known, ...]] = {}
    head, *parts = _HEAD.split(_file(package))
    common = _notes(head)[0].get("source", "")
    for name, md5, block in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        notes, uses, body = *_notes(block), _NOTE.sub("", block).strip("\n")
        # The empty line between two messages is part of neither.
        entry = Known(name, md5, notes.get("source", common), None, f"{body}\n" if body else "", uses)
        entries[name] = (*entries.get(name, ()), entry)
    return entries


_NOTE = re.compile(r"^#: (\w+) (.*)\n", re.MULTILINE)


def _notes(block: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the notes of a block by name, and the checksums of the types that it uses by type."""
    notes, uses = {}, {}
    for key, value in _NOTE.findall(block):
        if key == "uses":
            name, _, md5 = value.partition(" ")
            uses[name] = md5
        else:
            notes[key] = value
    return notes, uses
