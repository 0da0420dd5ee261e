"""The catalogue of known message definitions: find them, list them, add to them.

Logs without definitions are read with the known ones: bags that state only checksums, for example. logreel ships
definitions with their history; ``add`` puts further ones into the user's folder.
"""

from __future__ import annotations

import builtins
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logreel.errors import DefinitionError, LogError, NotFoundError, UsageError
from logreel.log.log import Log
from logreel.log.source_files import decrypted_notes
from logreel.registry.open import open_log
from logreel.registry.registry import formats
from logreel.schemas.catalogue import Catalogue, Entry, NewEntry
from logreel.schemas.catalogue import add as store

__all__ = ["Added", "add", "find", "list"]

_SOURCE = str | os.PathLike[str] | Log
#: Fewest characters of a checksum that is not given in full.
_SHORT_MD5 = 6


@dataclass(frozen=True)
class Added:
    """What ``add`` did.

    added     new entries
    known     entries that the catalogue had already
    problems  a sentence for each definition that could not be added
    """

    added: tuple[Entry, ...]
    known: tuple[Entry, ...]
    problems: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return {
            "added": [entry.as_dict() for entry in self.added],
            "known": [entry.as_dict() for entry in self.known],
            "problems": builtins.list(self.problems),
        }


def list(pattern: str | None = None) -> builtins.list[Entry]:  # noqa: A001 - as the verb
    """Return the known definitions, sorted by name, of each type the current version first.

    pattern  a name with ``*`` and ``?``, e.g. ``robot_msgs/*``; None: all
    """
    return [
        entry
        for catalogue in _catalogues()
        for name in sorted(catalogue.names())
        if pattern is None or fnmatch.fnmatchcase(name, pattern)
        for entry in catalogue.versions(name)
        if entry.name == name
    ]


def find(wanted: str) -> builtins.list[Entry]:
    """Return the known definitions of a type, the current version first, or those with a checksum.

    wanted  ``package/Type``, ``Type``, a former name, or at least six digits of an md5 checksum

    Raises NotFoundError (a KeyError) that names similar types.
    """
    catalogues = builtins.list(_catalogues())
    entries = [entry for catalogue in catalogues for entry in catalogue.versions(wanted)]
    if not entries and re.fullmatch(f"[0-9a-fA-F]{{{_SHORT_MD5},32}}", wanted):
        entries = [entry for catalogue in catalogues for entry in _with_checksum(catalogue, wanted.lower())]
    names = sorted({name for catalogue in catalogues for name in catalogue.names()})
    if not entries and "/" not in wanted:
        same = (name for name in names if name.rpartition("/")[2].lower() == wanted.lower())
        entries = [entry for name in same for catalogue in catalogues for entry in catalogue.versions(name)]
    if not entries:
        raise NotFoundError("definition", wanted, names)
    return builtins.list(dict.fromkeys(entries))


def _with_checksum(catalogue: Catalogue, start: str) -> Iterator[Entry]:
    if len(start) == 32:
        yield from catalogue.with_version(start)
        return
    for name in sorted(catalogue.names()):
        yield from (
            version
            for version in catalogue.versions(name)
            if version.name == name and version.version.startswith(start)
        )


def add(*sources: _SOURCE, decrypt: bool = False) -> Added:
    """Add definitions to the user's folder, where every later log that needs them finds them.

    sources  ``.msg`` files, folders of packages, files of other languages (``logreel formats`` lists the formats), and
             logs: their own definitions are added
    decrypt  True: also add those of encrypted logs, which are stored without encryption

    Definitions that are unusable, or contradict what the log says of them, are left out and reported in ``problems``.
    Raises OSError, UsageError for a file that is neither, and LogError if nothing can be stored.
    """
    if not sources:
        raise UsageError("name files, folders or logs with definitions")
    added: dict[tuple[str, str, str], Entry] = {}
    known: dict[tuple[str, str, str], Entry] = {}
    problems: dict[str, None] = {}
    for source in sources:
        name = source.name if isinstance(source, Log) else os.fspath(source)
        for catalogue, new in _new_entries(source, decrypt):
            if isinstance(new, DefinitionError):
                problems[str(new) if new.path else f"{name}: {new.text}"] = None
                continue
            key = catalogue.language, new.name, new.version
            entry = _known(catalogue, new)
            if entry is not None and key not in added:
                if not _is_same(catalogue, entry, new):
                    problems[f"{name}: {new.name} in version {new.version} is known with other fields"] = None
                    continue
                known[key] = entry
            elif entry is None:
                store(*key, new.text, {"source": str(name)})
                stored = _known(catalogue, new)
                if stored is None:
                    raise LogError(f"{new.name}: stored, but cannot be read back", path=str(name))
                added[key] = stored
    return Added(tuple(added.values()), tuple(known.values()), tuple(problems))


def _known(catalogue: Catalogue, new: NewEntry) -> Entry | None:
    versions = catalogue.versions(new.name)
    return next((entry for entry in versions if (entry.name, entry.version) == (new.name, new.version)), None)


def _is_same(catalogue: Catalogue, entry: Entry, new: NewEntry) -> bool:
    """Return whether two definitions of one version agree: always, where the version is a checksum."""
    return bool(catalogue.with_version(entry.version)) or entry.text.split() == new.text.split()


def _new_entries(source: _SOURCE, decrypt: bool) -> Iterator[tuple[Catalogue, NewEntry | DefinitionError]]:
    catalogues = builtins.list(_catalogues())
    if isinstance(source, Log):
        yield from _of_log(catalogues, source)
        return
    path = Path(source)
    if path.is_dir():
        fitting = [c for c in catalogues if any(path.rglob(f"*{c.suffix}"))]
        if not fitting:
            kinds = " or ".join(c.suffix for c in catalogues)
            raise UsageError(f"there is no {kinds} file in this folder", path=str(path))
    else:
        fitting = [c for c in catalogues if path.suffix == c.suffix]
        if not fitting:
            with open_log(path, decrypt=decrypt) as log:
                yield from _of_log(catalogues, log)
            return
    for catalogue in fitting:
        yield from ((catalogue, new) for new in catalogue.read(path))


def _of_log(
    catalogues: Iterable[Catalogue], log: Log
) -> Iterator[tuple[Catalogue, NewEntry | DefinitionError]]:
    decrypted_notes(log)
    by_language = {catalogue.language: catalogue for catalogue in catalogues}
    for channel in log.channels.values():
        catalogue = by_language.get(channel.schema.encoding)
        if catalogue is None or not channel.schema.text.strip():
            continue
        try:
            new = catalogue.of_schema(channel.schema, str(channel.metadata.get("md5sum", "")))
            if new is not None:
                yield catalogue, new
        except DefinitionError as error:
            yield catalogue, error


def _catalogues() -> Iterator[Catalogue]:
    """Yield the catalogues of definition languages, then those of formats."""
    from logreel.schemas.ros1msg.registry import CATALOGUE

    yield CATALOGUE
    for form in formats().values():
        if form.catalogue is not None:
            yield form.catalogue()
