"""The files of a fleet: files, folders and patterns, fingerprints of their content, and opening the log of a task."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from logreel.errors import LogError, UnknownFormatError, UsageError
from logreel.io.source import Source, is_url
from logreel.log.part_checks import natural_key
from logreel.registry.open import open_one_of_several
from logreel.registry.registry import INDEX_SUFFIX, find_format, log_suffixes

if TYPE_CHECKING:
    from logreel.log.log import Log


#: Name of the folder with the catalogue of a dataset; a folder that contains one is no source.
CATALOGUE = "_catalog"
#: Bytes that are read at once for a digest.
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells whether a file has changed: size, modification time in ns, and a digest of its first and last 64 KiB.

    digest  empty if the file cannot be read; of a remote log that of its entity tag
    """

    size: int
    mtime_ns: int
    digest: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fingerprint as JSON data."""
        return asdict(self)


def source_paths(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return absolute paths of all files that *sources* mean, without repeats, in natural order.

    sources  a file, folder, pattern or address, or several. Of a folder: all regular files in and below it that are
             not hidden, no index files of logreel, nothing in a dataset; whether a file is a log is found out when it
             is opened. An address that ends with a slash, such as ``s3://bucket/logs/``: all objects below it

    A file that does not exist stays in the list, so that it becomes a row with an error. Raises UsageError for a
    pattern without matches and for no sources at all.
    """
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not names:
        raise UsageError("a fleet needs files, folders or patterns", hint="pass one at least")
    paths: set[str] = set()
    for name in [os.fspath(item) for item in names]:
        if is_url(name):
            from logreel.io.remote import object_store

            object_store.check_shown(name)
            paths.update(object_store.objects_below(name) if object_store.is_prefix(name) else [name])
        elif os.path.isdir(name):
            paths.update(_files_below(name))
        elif glob.has_magic(name) and not os.path.lexists(name):
            matches = glob.glob(name, recursive=True)
            if not matches:
                raise UsageError(f"no file matches {name!r}")
            for match in matches:
                paths.update(_files_below(match) if os.path.isdir(match) else [os.path.abspath(match)])
        else:
            paths.add(os.path.abspath(name))
    return sorted(paths, key=lambda path: (natural_key(path), path))


def _files_below(root: str) -> Iterator[str]:
    """Yield the absolute paths of the regular files in and below a folder."""
    for folder, folders, files in os.walk(os.path.abspath(root)):
        if CATALOGUE in folders:
            folders[:] = []
            continue
        folders[:] = sorted(name for name in folders if name[:1] != ".")
        for name in files:
            path = os.path.join(folder, name)
            # A file that cannot be read, or a link to none, is a row with an error; a pipe would block.
            regular = os.path.isfile(path) or not os.path.exists(path)
            if name[:1] != "." and not name.endswith(INDEX_SUFFIX) and regular:
                yield path


def fingerprint(path: str) -> Fingerprint:
    """Return the fingerprint of a file; raises OSError for a fault, LogError if it is no regular file.

    The digest of a file that nobody may read is empty.
    """
    if is_url(path):
        from logreel.io.remote.object_store import mark_of

        return Fingerprint(*mark_of(path))
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise LogError("is not a regular file", path=path)
    try:
        digest = Source.open(path).identity.rpartition("-")[2]
    except PermissionError:
        digest = ""
    return Fingerprint(about.st_size, about.st_mtime_ns, digest)


def is_other_file(path: str) -> bool:
    """Return whether a file is no log: it is not named as logs are, and no format knows its content.

    A file that cannot be read may be a log.
    """
    if path.lower().endswith(log_suffixes()):
        return False
    try:
        find_format(Source.open(path))
    except UnknownFormatError:
        return True
    except (LogError, OSError):
        return False
    return False


def log_key(path: str) -> tuple[str, Fingerprint | None]:
    """Return the key by which a dataset knows the log at *path*, and the fingerprint of the file that has it.

    The key is the digest of all bytes: the same log has one key wherever it lies. A remote log, which is not read as a
    whole for it, has that of its address and entity tag; a file that cannot be read that of its path, and None.

    Raises LogError if the file changes meanwhile, OSError for a fault of the disk.
    """
    try:
        mark = fingerprint(path)
    except (LogError, FileNotFoundError, PermissionError):
        return path_key(path), None
    if is_url(path):
        return f"remote-{_text_digest(f'{path} {mark.digest}')}", mark
    if not mark.digest:
        return path_key(path), mark
    key = content_digest(path)
    if fingerprint(path) != mark:
        raise LogError("the file changes while it is read", path=path)
    return key, mark


def path_key(path: str) -> str:
    """Return the key of a file that cannot be read."""
    return f"path-{_text_digest(path)}"


def is_path_key(key: str) -> bool:
    """Return whether a key is one of a file that cannot be read."""
    return key.startswith("path-")


def is_content_key(key: str) -> bool:
    """Return whether a key is a digest of all bytes of a log."""
    return "-" not in key


def _text_digest(text: str) -> str:
    return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()


def content_digest(path: str) -> str:
    """Return the BLAKE2b digest (16 bytes, hexadecimal) of all bytes of a file.

    Of a remote log, which is not downloaded for it: ``remote-`` and the digest of its entity tag.
    """
    if is_url(path):
        return f"remote-{fingerprint(path).digest}"
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(_PIECE):
            digest.update(block)
    return digest.hexdigest()


def bytes_digest(content: bytes | memoryview) -> str:
    """Return what ``content_digest`` returns for a file with this content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def error_text(error: BaseException) -> str:
    """Return what an error says, without the path, for a row of the catalogue."""
    if isinstance(error, LogError):
        return error.text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return f"{type(error).__name__}: {error}"


class LogPart(Protocol):
    """Some topics of a log in a window of time; the attributes are those of ``Task``."""

    @property
    def path(self) -> str:
        """Absolute path of the log."""

    @property
    def log(self) -> str:
        """Key of the log in a dataset; empty: it is known by its path."""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Fingerprint of the file as it has to be; None: not known."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of channels."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Paths of fields; None: all."""

    @property
    def definitions(self) -> tuple[str, ...]:
        """Absolute paths of message definitions, for logs without them."""

    @property
    def types(self) -> tuple[str, ...]:
        """Types of topics, each ``TOPIC=TYPE``, for logs without them."""

    @property
    def start(self) -> int | None:
        """First time, ns of the log's clock; None: no bound."""

    @property
    def end(self) -> int | None:
        """First time that is not wanted any more."""

    @property
    def error(self) -> str:
        """Why the log cannot be read; empty if it can."""


def open_part(path: str, definitions: Sequence[str], types: Sequence[str]) -> Log:
    """Open a log of a fleet; types of topics that only other logs have are no error. Raises as ``open_log``."""
    pairs = (pair.rpartition("=") for pair in types)
    return open_one_of_several(
        path, definitions=[*definitions, {topic: schema_type for topic, _, schema_type in pairs}]
    )
