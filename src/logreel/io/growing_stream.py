"""A log that arrives through a pipe: its bytes so far, as those of a growing file."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from threading import Condition, Thread
from typing import IO, Any

from logreel.errors import LogError
from logreel.io.growing_file import Change
from logreel.io.source import Source

#: Most bytes that are taken from the stream at once.
PIECE = 1 << 20


def arrives_slowly(stream: Any) -> bool:
    """Return whether the bytes of a file object come from another process, and not from a regular file."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, AttributeError, ValueError):
        return False


class GrowingStream:
    """The bytes of a stream, which a thread copies to an unnamed temporary file as they come; see ``GrowingFile``.

    Memory does not grow with the stream; the temporary file does, because messages are read from it later.
    """

    #: Name of the complete file, of which there is none.
    target = None

    def __init__(self, stream: IO[bytes], name: str) -> None:
        if isinstance(stream, io.TextIOBase):
            raise TypeError(f"{name}: open the file in binary mode")
        self._name = name
        # Closed when the stream has ended and this object is closed.
        self._spool: IO[bytes] = tempfile.TemporaryFile(prefix="logreel-", buffering=0)  # noqa: SIM115
        self._news = Condition()
        self._there = self._taken = 0
        self._ended = self._closed = False
        self._error: OSError | None = None
        self._read = getattr(stream, "read1", stream.read)
        Thread(target=self._copy, name="logreel-stream", daemon=True).start()

    def _copy(self) -> None:
        try:
            while not self._closed:
                piece = self._read(PIECE)
                if piece is None:
                    raise BlockingIOError("the stream does not wait for data")
                if not piece:
                    break
                view = memoryview(piece)
                while len(view):
                    view = view[os.write(self._spool.fileno(), view) :]
                with self._news:
                    self._there += len(piece)
                    self._news.notify_all()
        except (OSError, ValueError) as error:
            self._error = error if isinstance(error, OSError) else None
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()
                if self._closed:
                    self._spool.close()

    @property
    def is_open(self) -> bool:
        """Return True: there are bytes to be waited for, or all have come."""
        return True

    @property
    def has_ended(self) -> bool:
        """Whether all bytes are there."""
        return self._ended

    def wait(self, seconds: float) -> None:
        """Wait until there are more bytes than ``source`` had, the stream has ended, or *seconds* are over."""
        with self._news:
            if not self._ended and self._there == self._taken:
                self._news.wait(seconds)

    def open(self) -> bool:
        """Return True: nothing is to be opened."""
        return True

    def look(self) -> Change:
        """Return GROWN if there are more bytes than ``source`` had, COMPLETE at the end, else SAME.

        Raises LogError if the stream could not be read, or its bytes could not be kept.
        """
        with self._news:
            if self._there > self._taken:
                return Change.GROWN
            if self._error is not None:
                why = self._error.strerror or str(self._error)
                raise LogError(f"cannot be read on: {why}", path=self._name)
            return Change.COMPLETE if self._ended else Change.SAME

    def source(self, name: str) -> Source:
        """Return the bytes that have come so far as a Source called *name*."""
        with self._news:
            self._taken = self._there
        return Source.of_stream(self._spool.fileno(), self._taken, name)

    def still_has(self, source: Source) -> bool:
        """Return True: no other program can change the temporary file."""
        return True

    def close(self) -> None:
        """Stop copying; bytes that were read stay valid."""
        with self._news:
            if not self._closed:
                self._closed = True
                if self._ended:
                    self._spool.close()

    def __del__(self) -> None:
        if hasattr(self, "_news"):
            self.close()
