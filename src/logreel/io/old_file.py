"""The existing file that an Appender continues: its first bytes are copied, and it is replaced only if unchanged."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from logreel.errors import LogError

try:
    import fcntl
except ImportError:  # pragma: no cover - systems without it cannot share blocks between files
    fcntl = None  # type: ignore[assignment]

#: Request of Linux to share all blocks of one file with another (FICLONE).
_CLONE = 0x40049409
#: Bytes copied at once.
_COPIED = 8 << 20


class OldFile:
    """An existing regular file, open for reading until it is closed or replaced.

    path  its final name; links are not followed
    name  its name in error texts

    Raises LogError for a missing file, a link, or what is no regular file.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        if path.is_symlink():
            text = f"is a symbolic link, which appending would replace: append to {os.path.realpath(path)!r}"
            raise LogError(text, path=name)
        try:
            self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | os.O_NOFOLLOW)
        except OSError as error:
            raise LogError(f"cannot be read: {error.strerror}", path=name) from None
        found = os.fstat(self._handle)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise LogError("is not a regular file", path=name)
        self._identity = _identity(found)

    def check(self) -> None:
        """Raise LogError if the path names another file by now, or the file has another size or modification time."""
        try:
            same = _identity(os.lstat(self._path)) == self._identity
        except OSError:
            same = False
        if not same:
            text = "was changed, replaced or removed by another program while it was appended to, and is left as it is"
            unfinished = f"{self._path.name}.active"
            raise LogError(
                text,
                path=self._name,
                hint=f"{unfinished} has the old and the new messages; logreel.recover completes it",
            )

    def copy_to(self, handle: int, size: int) -> None:
        """Make the first *size* bytes the content of the open, empty file *handle*; its position is then the end.

        Blocks are shared where the file system can do that, so that copying takes neither time nor space. The new file
        gets the permissions of the old one. Raises OSError if the bytes cannot be copied.
        """
        copy_permissions(self._handle, handle)
        if not size:
            return
        done = size if self._cloned(handle, size) else self._copied_in_kernel(handle, size)
        while done < size:
            part = os.pread(self._handle, min(_COPIED, size - done), done)
            if not part:
                raise OSError("the old file was cut by another program")
            done += _written_at(handle, part, done)
        os.lseek(handle, size, os.SEEK_SET)

    def _cloned(self, handle: int, size: int) -> bool:
        """Share all blocks with *handle*, and cut it after *size* bytes; return False if that is impossible."""
        if fcntl is None:
            return False
        try:
            fcntl.ioctl(handle, _CLONE, self._handle)
        except OSError:
            return False
        if os.fstat(handle).st_size < size:
            raise OSError("the old file was cut by another program")
        os.ftruncate(handle, size)
        return True

    def _copied_in_kernel(self, handle: int, size: int) -> int:
        """Copy without passing the bytes through this process; return how many were copied."""
        done = 0
        copy = getattr(os, "copy_file_range", None)
        # File systems without it raise one of many errors: the bytes are then copied by reading and writing.
        with contextlib.suppress(OSError):
            while copy is not None and done < size:
                more = copy(self._handle, handle, size - done, done, done)
                if not more:
                    break
                done += more
        return done

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self.close()


def copy_permissions(old: int, new: int) -> None:
    """Give the open file *new* the permissions of *old*, and its owner if this process may do that."""
    found = os.fstat(old)
    os.fchmod(new, stat.S_IMODE(found.st_mode))
    with contextlib.suppress(OSError):
        os.fchown(new, found.st_uid, found.st_gid)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _written_at(handle: int, part: bytes, place: int) -> int:
    done = 0
    while done < len(part):
        done += os.pwrite(handle, part[done:], place + done)
    return done
