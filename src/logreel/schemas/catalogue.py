"""What catalogues of known definitions have in common, whatever the language of the definitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from logreel.errors import DefinitionError
from logreel.log.schema import Schema


@dataclass(frozen=True)
class Entry:
    """One version of a type in a catalogue.

    language  language of the definition, as ``Schema.encoding``
    version   checksum (ROS 1) or version number
    source    repository, version and licence, or the file that the user added
    path      file in the user's folder; None: part of logreel
    """

    language: str
    name: str
    version: str
    source: str
    path: Path | None
    _text: Callable[[], str] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The definition as text; raises DefinitionError if it cannot be used."""
        return self._text()

    def as_dict(self, text: bool = False) -> dict[str, Any]:
        """Return the values as plain data; *text*: also the definition."""
        path = None if self.path is None else str(self.path)
        values = {
            "language": self.language,
            "name": self.name,
            "version": self.version,
            "source": self.source,
        }
        return {**values, "path": path, **({"text": self.text} if text else {})}


class NewEntry(NamedTuple):
    """A definition that can be added: type name, version, and text that needs no other definitions."""

    name: str
    version: str
    text: str


class Catalogue(Protocol):
    """The known definitions of one language.

    suffix  of files with one definition
    """

    language: str
    suffix: str

    def names(self) -> Collection[str]:
        """Return the names of all types."""

    def versions(self, name: str) -> Sequence[Entry]:
        """Return the versions of a type, also under former names, the current one first."""

    def with_version(self, version: str) -> Sequence[Entry]:
        """Return all entries with this checksum; empty if versions of the language are no checksums."""

    def read(self, path: Path) -> Iterable[NewEntry | DefinitionError]:
        """Yield what the file or folder at *path* defines, and an error for each definition that is unusable."""

    def of_schema(self, schema: Schema, stated: str) -> NewEntry | None:
        """Return the definition in a log's schema, or None if there is none to add; *stated*: checksum in the log.

        Raises DefinitionError if it cannot be used or has another checksum.
        """
