"""Files that only people who may be trusted can have written: index caches and pyramids, which are believed."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

_GROUP, _OTHERS = 0o020, 0o002


def open_trusted(place: Path, like: os.stat_result | None = None) -> BufferedReader | None:
    """Open a regular file that nobody but its owner can have written; None if others can, or it cannot be opened.

    like  file whose owner is trusted as well, besides the user and root

    Its folder must not be writable by others either, or be one as ``/tmp``, where nobody can replace files of others.
    On systems without such owners every file is trusted.
    """
    try:
        # A pipe of that name would block.
        handle = os.open(place, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(handle)
        trusted = stat.S_ISREG(found.st_mode) and (
            not hasattr(os, "geteuid")
            or (_is_safe(found, like) and _is_safe_folder(os.stat(place.parent), like))
        )
        if trusted:
            return open(place, "rb", opener=lambda *_: handle)
    except OSError:
        pass
    os.close(handle)
    return None


def is_trusted_folder(folder: Path, like: os.stat_result | None = None) -> bool:
    """Return whether files in *folder* can be trusted, see ``open_trusted``; raises OSError if there is none."""
    return not hasattr(os, "geteuid") or _is_safe_folder(os.stat(folder), like)


def _is_safe(found: os.stat_result, like: os.stat_result | None) -> bool:
    owners = {0, os.geteuid()} | ({like.st_uid} if like is not None else set())
    return found.st_uid in owners and not _can_others_write(found)


def _is_safe_folder(found: os.stat_result, like: os.stat_result | None) -> bool:
    is_sticky = bool(found.st_mode & stat.S_ISVTX) and found.st_uid == 0
    return is_sticky or _is_safe(found, like)


def _can_others_write(found: os.stat_result) -> bool:
    # Many systems give each user a group of the same number, in which nobody else is.
    own_group = found.st_gid == found.st_uid
    return bool(found.st_mode & _OTHERS) or (bool(found.st_mode & _GROUP) and not own_group)
