"""Files that only people who may be trusted can have written: index caches and pyramids, which are believed."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import run_many
from logreel.io.platform import FLAGS, HAS_OWNERS, NO_WAIT, user

_GROUP, _OTHERS = 0o020, 0o002


def open_trusted(place: Path, like: os.stat_result | None = None) -> BufferedReader | None:
    """Open a regular file that nobody but its owner can have written; None if others can, or it cannot be opened.

    like  file whose owner is trusted as well, besides the user and root

    Its folder must not be writable by others either, or be one as ``/tmp``, where nobody can replace files of others.
    On systems without such owners every file is trusted.
    """
    try:
        # A pipe of that name would block.
        handle = os.open(place, os.O_RDONLY | FLAGS | NO_WAIT)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(handle)
        trusted = stat.S_ISREG(found.st_mode) and (
            not HAS_OWNERS or (_is_safe(found, like) and _is_safe_folder(os.stat(place.parent), like))
        )
        if trusted:
            return open(place, "rb", opener=lambda *_: handle)
    except OSError:
        pass
    os.close(handle)
    return None


def is_trusted_folder(folder: Path, like: os.stat_result | None = None) -> bool:
    """Return whether files in *folder* can be trusted, see ``open_trusted``; raises OSError if there is none."""
    return not HAS_OWNERS or _is_safe_folder(os.stat(folder), like)


def _is_safe(found: os.stat_result, like: os.stat_result | None) -> bool:
    owners = {0, user()} | ({like.st_uid} if like is not None else set())
    return found.st_uid in owners and not _can_others_write(found)


def _is_safe_folder(found: os.stat_result, like: os.stat_result | None) -> bool:
    is_sticky = bool(found.st_mode & stat.S_ISVTX) and found.st_uid == 0
    return is_sticky or _is_safe(found, like)


def _can_others_write(found: os.stat_result) -> bool:
    # Many systems give each user a group of the same number, in which nobody else is.
    own_group = found.st_gid == found.st_uid
    return bool(found.st_mode & _OTHERS) or (bool(found.st_mode & _GROUP) and not own_group)


#: Bytes of a piece; twice as many, and so on, where there would be more than MOST pieces.
PIECE_BYTES, MOST = 1 << 18, 1 << 14
#: Bytes of a page, whose 64-bit words are added.
PAGE = 1 << 12
#: Fewest pieces that are worth another thread.
PER_THREAD = 16


def piece_bytes(size: int) -> int:
    """Return the bytes of a piece of a file of *size* bytes."""
    step = PIECE_BYTES
    while size > step * MOST:
        step *= 2
    return step


def digest_of(content: NDArray[np.uint8]) -> int:
    """Return the CRC-32 of the sums of the pages of *content*, and of the bytes behind the last whole page."""
    end = len(content) // PAGE * PAGE
    sums = np.add.reduce(content[:end].view(np.uint64).reshape(-1, PAGE // 8), axis=1)
    return zlib.crc32(content[end:].data, zlib.crc32(sums.data))


def digests_of(data: NDArray[np.uint8]) -> list[int]:
    """Return the digest of each piece of a file."""
    size = piece_bytes(len(data))
    places = range(0, len(data), size)
    return run_many([partial(digest_of, data[at : at + size]) for at in places], PER_THREAD)


class PieceDigests:
    """The pieces of a file that were compared with their digests so far; thread-safe.

    data  uint8[size], the file
    due   digest of each piece, as it was when the index was made
    """

    def __init__(self, data: NDArray[np.uint8], due: Sequence[int]) -> None:
        self._data, self._due, self._piece = data, due, piece_bytes(len(data))
        self._is_compared = np.zeros(len(due), np.bool_)
        self._lock = Lock()

    def changed(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Compare the pieces that have bytes of the intervals; return offset and size of those that differ.

        Each piece is compared once, and returned once.
        """
        edges = np.zeros(len(self._due) + 1, np.int64)
        inside = stop > start
        np.add.at(edges, start[inside] // self._piece, 1)
        np.add.at(edges, np.minimum((stop[inside] - 1) // self._piece + 1, len(self._due)), -1)
        with self._lock:
            todo = np.flatnonzero((np.cumsum(edges[:-1]) > 0) & ~self._is_compared).tolist()
            self._is_compared[todo] = True
        contents = [self._data[n * self._piece : (n + 1) * self._piece] for n in todo]
        digests = run_many([partial(digest_of, content) for content in contents], PER_THREAD)
        return [
            (n * self._piece, len(content))
            for n, content, digest in zip(todo, contents, digests, strict=True)
            if digest != self._due[n]
        ]
