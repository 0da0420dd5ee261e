"""How new files get their names: whole or not at all, and never in place of another unless told so."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from logreel.errors import LogError, UsageError

#: The name of a log that comes from standard input.
STDIN = "<stdin>"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def target_of(path: str | os.PathLike[str], follow: bool = False) -> Path:
    """The true place of *path*, after making sure that its folder is there.

    follow  True: where a link of that name leads; else the link itself, which a new file takes the place of
    """
    head, tail = os.path.split(os.fspath(path))
    named = not follow and tail not in ("", os.curdir, os.pardir)
    target = Path(os.path.join(os.path.realpath(head), tail) if named else os.path.realpath(path))
    if not target.parent.is_dir():
        raise LogError("cannot be written: there is no such folder as its parent", path=os.fspath(path))
    return target


def keep_sources(path: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> None:
    """Raise UsageError where *path* is one of the files that are read: by device and inode, so through links, too.

    sources  names as ``Log.name`` has them; those that are no paths, such as ``<bytes>``, cannot be meant
    """
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(path)
        for source in sources:
            # What stands in for a name may be the file that the shell opened.
            with contextlib.suppress(OSError, ValueError):
                if os.path.samestat(found, os.stat(0 if source == STDIN else source)):
                    raise UsageError("input and output are the same file", path=os.fspath(path))


def exists(path: str | os.PathLike[str]) -> LogError:
    """The error for a name that is taken."""
    return LogError(
        "exists already",
        path=os.fspath(path),
        hint="pass force=True to replace it",
        cli="pass --force to replace it",
    )


def sync_folder(folder: Path) -> None:
    """Have the names in *folder* on disk."""
    # Not every system lets a folder be opened; the rename itself has happened by then.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def name_it(temporary: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Give the file its name unless something has taken it meanwhile, which a link alone notices."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise exists(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise exists(path) from None
        os.rename(temporary, target)
    else:
        temporary.unlink()
