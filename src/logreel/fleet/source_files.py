"""The files that a fleet consists of: files, folders and patterns, and fingerprints of their content."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from logreel.errors import LogError, UnknownFormatError, UsageError
from logreel.io.remote.address import is_url
from logreel.io.source import Source
from logreel.log.part_checks import natural_key
from logreel.registry.index_cache import SUFFIX as INDEX_SUFFIX
from logreel.registry.registry import find_format, log_suffixes

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
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not given:
        raise UsageError("a fleet needs files, folders or patterns", hint="pass one at least")
    found: set[str] = set()
    for one in [os.fspath(item) for item in given]:
        if is_url(one):
            from logreel.io.remote import object_store as listing

            listing.check_shown(one)
            found.update(listing.objects_below(one) if listing.is_prefix(one) else [one])
        elif os.path.isdir(one):
            found.update(_files_below(one))
        elif glob.has_magic(one) and not os.path.lexists(one):
            matches = glob.glob(one, recursive=True)
            if not matches:
                raise UsageError(f"no file matches {one!r}")
            for match in matches:
                found.update(_files_below(match) if os.path.isdir(match) else [os.path.abspath(match)])
        else:
            found.add(os.path.abspath(one))
    return sorted(found, key=lambda path: (natural_key(path), path))


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
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
