"""Binary streams as outputs: standard output, pipes, and other file objects that cannot seek."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterable
from typing import IO, Any

from logreel.errors import UsageError
from logreel.io.atomic_file import STDIN


class OutputStream(io.RawIOBase):
    """A binary stream that is written in order, without seeking; it is flushed after each piece and never closed.

    stream  binary file object
    name    name in messages; its suffix chooses the format: ``<stdout>.mcap``
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self.name, self._size = stream, name, 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def write(self, data: Any) -> int:
        """Write all bytes of *data*; raises BrokenPipeError if the reader of a pipe has closed it."""
        view = memoryview(data).cast("B")
        left = view
        while len(left):
            # A raw file may accept a part only, or nothing.
            count = self._stream.write(left)
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "the reader is not ready", self.name)
            left = left[count:]
        flush = getattr(self._stream, "flush", None)
        if flush is not None:
            flush()
        self._size += len(view)
        return len(view)

    def keep_sources(self, sources: Iterable[str]) -> None:
        """Raise UsageError if the stream is one of the regular files that are read, as in ``>> x.bag``."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found = os.fstat(self._stream.fileno())
            for source in sources:
                with contextlib.suppress(OSError, ValueError):
                    read = os.stat(0 if source == STDIN else source)
                    if os.path.isfile(source) and os.path.samestat(found, read):
                        raise UsageError("input and output are the same file", path=source)


#: A path, or a binary file object that is written in order.
Destination = str | os.PathLike[str] | IO[bytes] | OutputStream


def name_and_stream(dst: Destination, suffix: str = "") -> tuple[str, OutputStream | None]:
    """Return the name of an output, whose suffix chooses the format, and its stream; None for a path.

    suffix  added to the name of a file object
    """
    if isinstance(dst, OutputStream):
        return dst.name, dst
    if isinstance(dst, (str, os.PathLike)):
        return os.fspath(dst), None
    if not hasattr(dst, "write") or isinstance(dst, io.TextIOBase):
        raise TypeError(f"expected a path or a binary file object, got {type(dst).__name__}")
    given = getattr(dst, "name", None)
    name = f"<{given.strip('<>') if isinstance(given, str) else 'stream'}>{suffix}"
    return name, OutputStream(dst, name)
