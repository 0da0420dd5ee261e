"""What catalogues of known definitions have in common, whatever the language of the definitions."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError, LogError
from logreel.log.scan import Schema

if TYPE_CHECKING:
    from pathlib import Path


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


#: Largest file that is read; definitions have some ten thousand characters.
MAX_BYTES = 8 << 20
#: Most files of one folder that are looked at.
MAX_FILES = 100_000
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_MARK = "#: "


def data_folder() -> Path | None:
    """Return the user's data folder: ``$LOGREEL_DATA``, else below ``$XDG_DATA_HOME``; None if set to ``off``."""
    from pathlib import Path

    chosen = os.environ.get("LOGREEL_DATA")
    if chosen is not None:
        return None if chosen.lower() in ("", "off", "0") else Path(chosen)
    try:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    except RuntimeError:
        return None
    return Path(base) / "logreel"


def files(language: str, name: str | None = None) -> Iterator[Path]:
    """Yield the files of *language*, of all types or of type *name*; the file added last comes first.

    A folder that does not exist or cannot be read has no files.
    """
    folder = data_folder()
    if folder is None:
        return
    root = folder / "definitions" / language
    found: list[tuple[int, str, Path]] = []
    with contextlib.suppress(OSError):
        for path in _walk(root / name if name is not None else root):
            found.append((-path.stat().st_mtime_ns, str(path), path))
            if len(found) == MAX_FILES:
                break
    yield from (path for _, _, path in sorted(found))


def _walk(folder: Path) -> Iterator[Path]:
    from pathlib import Path

    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        elif entry.is_file() and entry.name.endswith(".txt"):
            yield Path(entry.path)


def read(path: Path) -> tuple[dict[str, str], str]:
    """Return the notes at the start of the file at *path*, by name, and the text after them.

    Raises OSError, and LogError for a file that is too large.
    """
    if path.stat().st_size > MAX_BYTES:
        raise LogError("a definition of more than 8 MiB", path=str(path))
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    notes: dict[str, str] = {}
    while text.startswith(_MARK):
        line, _, text = text.partition("\n")
        key, _, value = line.removeprefix(_MARK).partition(" ")
        notes[key] = value
    return notes, text


def add(language: str, name: str, version: str, text: str, notes: dict[str, str]) -> Path | None:
    """Write one definition as a new file that appears complete, and return its path; None if there is one already.

    name     type name, whose parts between slashes become folders
    version  its checksum or version, the name of the file
    notes    lines before *text*, by name

    Raises LogError if there is no data folder or the file cannot be written, and for a name that is no file name.
    """
    import tempfile

    from logreel.io.atomic_file import sync_folder

    folder = data_folder()
    if folder is None:
        raise LogError("there is no folder for definitions: LOGREEL_DATA is off")
    parts = [*name.split("/"), version]
    if not all(_WORD.fullmatch(part) and len(part) <= 200 for part in parts):
        raise LogError(f"{name!r:.80} in version {version!r:.40} cannot be the name of a file")
    path = folder.joinpath("definitions", language, *parts[:-1], f"{version}.txt")
    head = "".join(f"{_MARK}{key} {' '.join(value.split())}\n" for key, value in notes.items())
    data = (head + text).encode("utf-8", "surrogateescape")
    if len(data) > MAX_BYTES:
        raise LogError(f"{name}: a definition of more than 8 MiB")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                return None
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        sync_folder(path.parent)
    except OSError as error:
        raise LogError(f"cannot be written: {error.strerror}", path=str(path)) from None
    return path
