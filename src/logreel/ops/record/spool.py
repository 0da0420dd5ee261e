"""Lines that wait until their types are inferred, in a file, so that they survive the end of the process."""

from __future__ import annotations

import contextlib
import os
import stat
from time import monotonic

from logreel.errors import LogError
from logreel.io.append_file import ACTIVE

#: Suffix of the file, after the name of the log.
LINES = ".lines"


def spool_path(path: str | os.PathLike[str]) -> str:
    """Return the path of the lines that wait for the log at *path*."""
    return os.fspath(path) + LINES


def waiting_lines(path: str) -> str | None:
    """Return the path of lines that a recording has left for the unfinished log at *path*; None if there are none."""
    lines = spool_path(path.removesuffix(ACTIVE))
    return lines if os.path.isfile(lines) else None


def is_kept(source: object) -> bool:
    """Return whether lines come from a file on disk, which survives without us."""
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


class Spool:
    """A file with the waiting lines of one log; created with the first line, each line is passed to the system at once.

    path   of the log
    force  replace a file that a recording has left
    sync   None: do not wait for the disk; else wait for it after so many seconds

    Raises LogError if a recording has left such a file and *force* is not given, or the lines cannot be written.
    """

    def __init__(self, path: str, force: bool, sync: float | None) -> None:
        self.path = spool_path(path)
        self._force, self._sync, self._synced = force, sync, 0.0
        self._file: int | None = None
        #: Whether lines were added after the disk had all.
        self._is_behind = False
        if os.path.lexists(self.path) and not force:
            raise LogError(
                "holds lines of a recording that was killed",
                path=self.path,
                hint="record(open(path, 'rb'), …) makes a log of them; then remove the file, or pass force=True",
                cli=f"make a log of them with record --from {self.path}, then remove the file; --force loses them",
            )

    def add(self, line: bytes | str) -> None:
        """Append one line."""
        data = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n") + b"\n"
        try:
            if self._file is None:
                if self._force:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self.path)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
                self._file = os.open(self.path, flags, 0o666)
                self._synced = monotonic()
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise LogError(f"cannot be written: {error.strerror or error}", path=self.path) from error
        self._is_behind = True
        self.sync()

    def sync(self) -> None:
        """Wait until the disk has the lines, if it is time to."""
        due = self._sync is not None and self._is_behind and monotonic() - self._synced >= self._sync
        if due and self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise LogError(f"cannot be written: {error.strerror or error}", path=self.path) from error
            self._synced, self._is_behind = monotonic(), False

    def remove(self) -> None:
        """Remove the file, since the log itself has the lines."""
        if self._file is not None:
            self.leave()
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def leave(self) -> bool:
        """Keep the file; return whether there is one."""
        held, self._file = self._file, None
        if held is not None:
            os.close(held)
        return held is not None
