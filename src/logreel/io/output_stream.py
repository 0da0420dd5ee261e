"""Binary streams as outputs: standard output, pipes, and other file objects that cannot seek."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from typing import IO, Any

from logreel.errors import LogError, UsageError
from logreel.io.append_file import COPIED, Appender
from logreel.io.atomic_file import STDIN
from logreel.io.two_pass import PIECE, StreamOut, Take


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


class LiveStream(StreamOut):
    """An Appender that sends each flushed byte to a stream; for formats that never change bytes that were appended.

    A FormatWriter that uses ``again`` gets all bytes from a temporary file, which is written only then.
    """

    def __init__(self, stream: OutputStream) -> None:
        self._copy: IO[bytes] | None = None
        self._stream = stream
        super().__init__(stream.name, self._send_piece)

    def _send_piece(self, piece: bytes) -> None:
        if self._copy is not None:
            self._copy.write(piece)
        try:
            self._stream.write(piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise LogError(f"cannot be written any more: {error.strerror}", path=self.name) from error

    @property
    def again(self) -> Callable[[Take, int], None]:
        """Function that passes the bytes up to an offset once more; keeps a copy of all bytes from its first use on.

        A FormatWriter that needs it gets it before it writes.
        """
        if self._copy is None:
            if self.tell():
                raise LogError("cannot be read again: a part is sent already", path=self.name)
            # Closed by finish, leave and discard.
            self._copy = tempfile.TemporaryFile(prefix="logreel-")  # noqa: SIM115
        return self._read_copy

    def finish(self) -> None:
        """Send the remaining bytes."""
        super().finish()
        self._close()

    def leave(self) -> None:
        """Send the bytes written so far."""
        try:
            self._send()
        finally:
            self._close()

    def discard(self) -> None:
        """Stop sending."""
        super().leave()
        self._close()

    def _close(self) -> None:
        if self._copy is not None:
            self._copy.close()

    def _read_copy(self, take: Take, upto: int) -> None:
        self.flush()
        copy = self._copy
        if copy is None:
            return
        copy.seek(0)
        while upto and (piece := copy.read(min(upto, COPIED))):
            take(piece)
            upto -= len(piece)
        copy.seek(0, os.SEEK_END)


class SpooledStream(Appender):
    """An Appender in a temporary file, which goes to a stream when it is finished; for formats that go back."""

    def __init__(self, stream: OutputStream, suffix: str) -> None:
        self._stream = stream
        self._folder = tempfile.TemporaryDirectory(prefix="logreel-")
        self._path = os.path.join(self._folder.name, f"log{suffix}")
        super().__init__(self._path, keep=False)
        self.name = stream.name

    def finish(self) -> None:
        """Complete the file, send it, and remove it."""
        super().finish()
        with open(self._path, "rb") as file:
            shutil.copyfileobj(file, self._stream, PIECE)
        self._folder.cleanup()

    def leave(self) -> None:
        """Remove the file; nothing is sent."""
        super().leave()
        self._folder.cleanup()


def live_appender(stream: OutputStream, suffix: str, create: Callable[..., Any]) -> tuple[Appender, Any]:
    """Return an Appender for *stream* and the FormatWriter that *create* returns for it.

    suffix  usual suffix of the format
    """
    out: Appender = LiveStream(stream)
    format_writer = create(out)
    if not format_writer.appends_only:
        out = SpooledStream(stream, suffix)
        format_writer = create(out)
    return out, format_writer
