"""The catalogue of known message types, as ``logreel.definitions`` uses it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from logreel.errors import DefinitionError, LogError
from logreel.formats.koblenz.definitions import (
    KNOWN,
    LANGUAGE,
    USUAL_VERSION,
    MessageType,
    message_type,
    registered_types,
    text_of,
    type_id,
)
from logreel.log.scan import Schema
from logreel.schemas import catalogue
from logreel.schemas.catalogue import Entry, NewEntry

_DESCRIPTION = "public description of the format (facts)"
#: Name of a file: a class, and its version unless that is the usual one.
_FILE = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?:@(\d{1,5}))?", re.ASCII)
MAX_TEXT = 1 << 20


class KoblenzCatalogue:
    """Known message types; versions are the numbers in message headers."""

    language, suffix = LANGUAGE, ".koblenz"

    def names(self) -> Collection[str]:
        """Return the names of all types."""
        return {message_type.name for message_type in registered_types().values()}

    def versions(self, name: str) -> list[Entry]:
        """Return the described versions of a class."""
        message_type = registered_types().get(type_id(name))
        return (
            [_entry(version) for version in (message_type, *message_type.later)]
            if message_type is not None and message_type.name == name
            else []
        )

    def with_version(self, version: str) -> list[Entry]:
        """Return nothing: versions are no checksums."""
        return []

    def read(self, path: Path) -> Iterator[NewEntry | DefinitionError]:
        """Yield the types in ``Class.koblenz`` or ``Class@101.koblenz``, or in all such files in a folder."""
        files = sorted(path.rglob(f"*{self.suffix}")) if path.is_dir() else [path]
        taken = registered_types()
        for file in files:
            try:
                message_type = _read(file)
                other = taken.get(message_type.id)
                if other is not None and other.name != message_type.name:
                    text = f"{message_type.name} has the id of {other.name} (0x{message_type.id:08X})"
                    raise DefinitionError(text, path=str(file))
                taken.setdefault(message_type.id, message_type)
                yield NewEntry(message_type.name, str(message_type.version), text_of(message_type.layout))
            except DefinitionError as error:
                yield error

    def of_schema(self, schema: Schema, stated: str) -> None:
        """Return None: logs do not say what the fields of their types are."""


def _read(file: Path) -> MessageType:
    match = _FILE.fullmatch(file.name.removesuffix(KoblenzCatalogue.suffix))
    if match is None:
        raise DefinitionError("is not named after a class, like ThermoM.koblenz", path=str(file))
    with file.open("rb") as data:
        raw = data.read(MAX_TEXT + 1)
    if len(raw) > MAX_TEXT:
        raise DefinitionError("a definition of more than 1 MiB", path=str(file))
    return message_type(match[1], int(match[2] or USUAL_VERSION), raw.decode("utf-8", "replace"))


def _entry(message_type: MessageType) -> Entry:
    path, source = None, "logreel.formats.koblenz.register_type"
    if message_type in KNOWN:
        source = _DESCRIPTION
    else:
        for file in catalogue.files(LANGUAGE, message_type.name):
            if file.stem == str(message_type.version):
                try:
                    path, source = file, catalogue.read(file)[0].get("source", "")
                except (OSError, LogError):
                    continue
    return Entry(
        LANGUAGE,
        message_type.name,
        str(message_type.version),
        source,
        path,
        lambda: text_of(message_type.layout),
    )


CATALOGUE = KoblenzCatalogue()
