"""Source: the bytes of a log as one read-only buffer, from a path, bytes, file object or stream."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.map_guard import MapGuard, mapping_of
from logreel.kernels import block_table
from logreel.limits import default_limits

if TYPE_CHECKING:
    from logreel.io.trusted_file import PieceDigests

Readable = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
#: Definitions that users provide for logs without them: files or folders, and types by topic.
Definition = str | os.PathLike[str] | Mapping[str, str]
Definitions = Definition | Iterable[Definition]

#: Bytes of a stream kept in memory before it goes to a temporary file.
SPOOL_BYTES = 16 << 20
HEAD_BYTES = 4096
#: Smaller files are not mapped ahead.
AHEAD_BYTES = 32 << 20


class Source:
    """The bytes of one log as a read-only buffer, with a name to display.

    name   the path as given, or ``<bytes>``, ``<stdin>`` …
    path   absolute Path of a regular file, or None for other sources, which have no sidecar
    data   uint8[size], read only; mapped where the source is a file
    inode  device and inode of the mapped file, or None
    copies  names of files with the same bytes, which are not read because this one is
    definitions  files or folders with message definitions from the user, for logs without definitions
    types        types by topic from the user, for channels without a type in the log
    guard        False: the signal SIGBUS is left alone
    is_restored  whether a sidecar, or the summary of a remote log, was read instead of the log
    digests      digests of the bytes for which an index was made, if one was read instead of the log; else None
    limits       bounds of what the log may use; those of the environment unless they are replaced
    in_ranges    whether bytes are still to be fetched from a server: ``span`` and ``read`` fetch only what they return
    address      what opens the log again in another process: its path or its URL; None for other sources

    Bytes of a mapped file are valid only if ``check`` raises nothing after they were used.
    """

    in_ranges = False

    def __init__(
        self,
        buffer: Any,
        name: str,
        path: Path | None = None,
        *,
        guard: bool = True,
        grows: bool = False,
    ) -> None:
        self.name, self.path = name, path
        self.address = None if path is None else str(path)
        self.inode: tuple[int, int] | None = None
        self.copies: list[str] = []
        self.definitions: tuple[Path, ...] = ()
        self.types: Mapping[str, str] = {}
        data = np.frombuffer(buffer, np.uint8) if len(buffer) else np.zeros(0, np.uint8)
        data.flags.writeable = False
        self.data: NDArray[np.uint8] = data
        self.guard, self.is_restored = guard, False
        self.digests: PieceDigests | None = None
        self.limits = default_limits()
        self._side: MapGuard | None = None
        owner = mapping_of(buffer) if data.size else None
        self._map = None if owner is None else MapGuard(data, owner, name, None if grows else path, guard)

    @classmethod
    def open(cls, what: Readable | Source, guard: bool = True) -> Source:
        """Return a Source of *what*: a path, ``-`` for standard input, bytes, or a binary file object.

        guard  False: leave the signal SIGBUS alone; a mapped file that shrinks then ends the process

        Streams that cannot be mapped are copied to a temporary file. Raises LogError for a directory, OSError for a
        missing or unreadable file.
        """
        if isinstance(what, Source):
            return what
        if isinstance(what, (bytes, bytearray, memoryview)):
            plain = isinstance(what, bytes) or (isinstance(what, memoryview) and what.c_contiguous)
            return cls(what if plain else bytes(what), "<bytes>", guard=guard)
        if isinstance(what, (str, os.PathLike)):
            text = os.fspath(what)
            if text == "-":
                return cls._stream(sys.stdin.buffer, "<stdin>")
            return cls._file(text, guard)
        if hasattr(what, "read"):
            return cls._stream(what, str(getattr(what, "name", "<stream>")))
        raise TypeError(f"expected a path, bytes or a binary file object, got {type(what).__name__}")

    @classmethod
    def _file(cls, text: str, guard: bool) -> Source:
        fd = os.open(text, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise LogError("is a directory, not a log", path=text, hint="open the files in it one by one")
            # Virtual files, as below /proc, have size 0.
            if not stat.S_ISREG(found.st_mode) or not found.st_size:
                with os.fdopen(os.dup(fd), "rb") as stream:
                    return cls._stream(stream, text)
            return cls.of_file(fd, text, Path(text).absolute(), guard)
        finally:
            os.close(fd)

    @classmethod
    def of_file(cls, fd: int, name: str, path: Path, guard: bool = True, grows: bool = False) -> Source:
        """Return the bytes that an open regular file has now; the file may be closed afterwards.

        guard  as for ``open``
        grows  another process may write it, so a later modification time means nothing
        """
        found = os.fstat(fd)
        # An empty file cannot be mapped.
        data = mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if found.st_size else b""
        source = cls(data, name, path, guard=guard, grows=grows)
        source.inode = found.st_dev, found.st_ino
        return source

    @classmethod
    def of_stream(cls, fd: int, size: int, name: str) -> Source:
        """Return the first *size* bytes of an open file that holds what came through a stream called *name*."""
        return cls(mmap.mmap(fd, size, access=mmap.ACCESS_READ), name) if size else cls(b"", name)

    @classmethod
    def _stream(cls, stream: IO[bytes], name: str) -> Source:
        if isinstance(stream, io.TextIOBase):
            raise TypeError(f"{name}: open the file in binary mode")
        head = bytearray()
        while len(head) <= SPOOL_BYTES:
            piece = stream.read(1 << 20)
            if not piece:
                return cls(bytes(head), name)
            head += piece
        # The mapping keeps the unnamed file alive after it is closed.
        import tempfile

        with tempfile.TemporaryFile(prefix="logreel-") as spool:
            spool.write(head)
            while piece := stream.read(1 << 20):
                spool.write(piece)
            spool.flush()
            return cls(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ), name)

    def check(self) -> None:
        """Raise FileChangedError if bytes that were used until now may not be those of the file as it was opened."""
        if self._map is not None:
            # The service renames sources, so that errors do not show paths.
            self._map.name = self.name
            self._map.check()
        if self._side is not None:
            self._side.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, else nothing; costs no system call."""
        if self._map is not None and self._map.may_have_lost_pages:
            self.check()
        elif self._side is not None and self._side.may_have_lost_pages:
            self._side.check()

    def depends_on(self, side: MapGuard) -> None:
        """Check *side*, the mapping of an index cache, wherever the file itself is checked."""
        self._side = side

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check at the end of the block, also after an error, which may come from a change of the file."""
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def release(self) -> None:
        """Stop reporting changes of the file, because a newer Source of it replaces this one."""
        if self._map is not None:
            self._map.release()

    def define(self, definitions: Definitions) -> None:
        """Add definitions from the user: paths, and mappings of topics to types."""
        alone = isinstance(definitions, str | os.PathLike | Mapping)
        several: Iterable[Definition] = [definitions] if alone else definitions  # type: ignore[assignment,list-item]
        paths, types = list[Path](), dict[str, str]()
        for one in several:
            if isinstance(one, Mapping):
                types |= one
            else:
                paths.append(Path(one))
        self.definitions, self.types = tuple(paths), types

    def span(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return an array like ``data`` in which the bytes *start* … *stop* are valid.

        For readers that need a part of the log: of a remote one, only these bytes are fetched, the others may be zero.
        """
        return self.data

    @property
    def span_view(self) -> memoryview:
        """The array that ``span`` returned as a memoryview; the bytes that were asked for there are valid."""
        return self.view

    def fetch(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> None:
        """Fetch many intervals of a remote log at once, for later calls of ``span``; nothing else needs it."""

    @property
    def size(self) -> int:
        """Size in bytes."""
        return int(self.data.size)

    @cached_property
    def view(self) -> memoryview:
        """The bytes as a memoryview, from which Python reads single numbers faster than from an array."""
        return memoryview(self.data)  # type: ignore[arg-type]

    def map_ahead(self) -> None:
        """Touch the pages of most of a large file in a background thread, while it is read from the start.

        Mapping the pages of a cached file takes about as long as walking its records.
        """
        if self.path is not None and self.size >= AHEAD_BYTES and (os.cpu_count() or 1) > 1:
            Thread(
                target=block_table.touch_pages, args=(self.data, self.size // 4, self.size), daemon=True
            ).start()

    @cached_property
    def head(self) -> bytes:
        """The first 4 KiB, read once for all formats that sniff."""
        return self.read(0, HEAD_BYTES)

    def read(self, offset: int, size: int) -> bytes:
        """Return a copy of *size* bytes at *offset*; fewer at the end."""
        return self.span(offset, offset + size)[offset : offset + size].tobytes()

    @cached_property
    def identity(self) -> str:
        """Return a key of this content: size, modification time in ns, and a digest of the first and last 64 KiB."""
        span = 1 << 16
        digest = hashlib.blake2b(self.data[:span].tobytes(), digest_size=12)
        digest.update(self.data[max(0, self.size - span) :].tobytes())
        try:
            stamp = self.path.stat().st_mtime_ns if self.path else 0
        except OSError as error:
            raise LogError(f"the file went away: {error.strerror}", path=self.name) from error
        return f"{self.size}-{stamp}-{digest.hexdigest()}"
