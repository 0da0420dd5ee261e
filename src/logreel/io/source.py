"""Source: the bytes of a log as one read-only buffer, from a path, bytes, file object or stream."""

from __future__ import annotations

import io
import itertools
import mmap
import os
import stat
import sys
import weakref
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import lazy_pattern
from logreel.errors import FileChangedError, LogError, Problem
from logreel.io.platform import CAN_MAP, FLAGS, map_file, write_at
from logreel.kernels import block_table, mapguard
from logreel.limits import Limits, default_limits

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from logreel.io.trusted_file import PieceDigests


#: Bytes at both ends of a file that are compared if its modification time changed.
_ENDS = 4096
_serials = itertools.count()
_alive: weakref.WeakSet[MapGuard] = weakref.WeakSet()
_HINT = "open it again when nothing writes it"
_INVALID = "; what was read is not valid"


#: Whether threads may slice one memoryview: without a global lock, CPython miscounts slices (python/cpython#155606).
SHARES_VIEWS: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


class MapGuard:
    """What to ask of a mapped file after its bytes were used.

    data   uint8[n], the bytes mapped; they are watched as long as any array uses them
    owner  the mapping
    name   name of the file, for errors
    path   the file, if its modification time is compared as well, else None
    watch  False: leave the signal alone
    """

    def __init__(
        self, data: NDArray[np.uint8], owner: mmap.mmap, name: str, path: str | None, watch: bool
    ) -> None:
        self.name, self._data, self._owner = name, data, owner
        self._path = path
        self._size = len(owner)
        self._number = mapguard.watch(data) if watch and mapguard.install() else -1
        # Of the first page, which begins before the first byte if that is not at the start of a page.
        self._first = data.ctypes.data % mmap.PAGESIZE if self._number >= 0 else 0
        if self._number >= 0:
            weakref.finalize(data, mapguard.forget, self._number).atexit = False
        self._stamp = self._stat()
        self._key = self._new_key()
        self._losses = mapguard.losses()
        self._head, self._tail = self._ends(data) if path is not None else (b"", b"")
        self._error: FileChangedError | None = None
        self.serial = next_serial()
        _alive.add(self)

    def _stat(self) -> os.stat_result | None:
        """Return what the system says of the file of that name."""
        try:
            return None if self._path is None else os.stat(self._path)
        except OSError:
            return None

    def _new_key(self) -> tuple[bytes, int, int, int, int] | None:
        """Return what the file has if it is unchanged; None where only its size is compared."""
        found = self._stamp
        if self._path is None or found is None:
            return None
        return os.fsencode(self._path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    @staticmethod
    def _ends(data: NDArray[np.uint8]) -> tuple[bytes, bytes]:
        return data[:_ENDS].tobytes(), data[-_ENDS:].tobytes()

    def error(self) -> FileChangedError | None:
        """Return the error if the bytes that were used until now may not be those of the file as it was opened."""
        if self._error is None and not self._is_untouched():
            self._error = self._find_error()
        return self._error

    @property
    def may_have_lost_pages(self) -> bool:
        """Whether pages of any file were replaced since the last ``check``."""
        return mapguard.losses() != self._losses

    def _is_untouched(self) -> bool:
        """Return whether no page was replaced anywhere, and the file is the same as before; costs one system call."""
        if self.may_have_lost_pages:
            return False
        return self._owner.size() == self._size if self._key is None else mapguard.is_same(*self._key)

    def _find_error(self) -> FileChangedError | None:
        losses = mapguard.losses()
        lost = mapguard.lost(self._number) if self._number >= 0 else -1
        named, before = self._stat(), self._stamp
        # Another file of that name is none of the mapped one.
        is_same = named is not None and before is not None and os.path.samestat(named, before)
        size = named.st_size if named is not None and is_same else self._owner.size()
        if size < self._size:
            text = f"the file was truncated from {self._size} to {size} bytes while it was open{_INVALID}"
            return FileChangedError(text, path=self.name, offset=size, hint=_HINT)
        if lost >= 0:
            text = f"the file was truncated, or could not be read, while it was open{_INVALID}"
            at = max(0, lost - self._first)
            return FileChangedError(text, path=self.name, offset=at, hint=_HINT)
        if is_same and named is not None and self._was_overwritten(named):
            text = f"the file was overwritten while it was open{_INVALID}"
            return FileChangedError(text, path=self.name, hint=_HINT)
        self._losses = losses
        return None

    def _was_overwritten(self, now: os.stat_result) -> bool:
        """Return whether bytes at the ends changed; only files whose modification time changed are compared."""
        if self._stamp is None or now.st_mtime_ns == self._stamp.st_mtime_ns:
            return False
        head, tail = self._ends(self._data)
        # Recorders write the number of messages into the head of a file when they complete it.
        if tail != self._tail or (head != self._head and now.st_size == self._size):
            return True
        self._stamp = now
        self._key = self._new_key()
        return False

    def check(self) -> None:
        """Raise FileChangedError if the bytes that were used until now may not be those of the opened file."""
        # Written out, because it is done for each message that is read by its number.
        is_sound = self._error is None and mapguard.losses() == self._losses
        if is_sound and self._key is not None and mapguard.is_same(*self._key):
            return
        if (found := self.error()) is not None:
            from copy import copy

            error = copy(found)
            error.path = self.name
            raise error

    def release(self) -> None:
        """Stop reporting the file: another mapping of it replaces this one."""
        _alive.discard(self)


def next_serial() -> int:
    """Return a number that is greater than those of all guards so far."""
    return next(_serials)


def changed_files(since: int = 0) -> list[FileChangedError]:
    """Return an error for each file that is mapped now and was found changed.

    since  what ``next_serial`` returned; files mapped before are left out
    """
    guards = [guard for guard in list(_alive) if guard.serial >= since]
    return [error for guard in guards if (error := guard.error()) is not None]


def mapping_of(buffer: object) -> mmap.mmap | None:
    """Return the mapping of a file that *buffer* is a part of: an mmap, a memoryview, or an array; None: of none."""
    for _ in range(16):
        if isinstance(buffer, mmap.mmap):
            return buffer
        buffer = getattr(buffer, "obj" if isinstance(buffer, memoryview) else "base", None)
    return None


Readable = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
#: Definitions that users provide for logs without them: files or folders, and types by topic.
Definition = str | os.PathLike[str] | Mapping[str, str]
Definitions = Definition | Iterable[Definition]

#: Bytes of a stream kept in memory before it goes to a temporary file.
SPOOL_BYTES = 16 << 20
HEAD_BYTES = 4096
#: Beginning of a file that is packed as a whole.
ZSTD = b"\x28\xb5\x2f\xfd"
#: Smaller files are not mapped ahead.
AHEAD_BYTES = 32 << 20


class Source:
    """The bytes of one log as a read-only buffer, with a name to display.

    name   the path as given, or ``<bytes>``, ``<stdin>`` …
    file   absolute path of a regular file, or None for other sources, which have no sidecar
    data   uint8[size], read only; mapped where the source is a file
    inode  device and inode of the mapped file, or None
    copies  names of files with the same bytes, which are not read because this one is
    definitions  files or folders with message definitions from the user, for logs without definitions
    types        types by topic from the user, for channels without a type in the log
    guard        False: the signal SIGBUS is left alone
    is_restored  whether a sidecar, or the summary of a remote log, was read instead of the log
    damage       Problems of a packed file that the content does not show
    digests      digests of the bytes for which an index was made, if one was read instead of the log; else None
    limits       bounds of what the log may use; those of the environment unless they are replaced
    in_ranges    whether bytes are still to be fetched from a server: ``span`` and ``read`` fetch only what they return
    grows        whether another process may write the file
    beside       files after whose changes a growing one is read again, whatever its size
    address      what opens the log again in another process: its path or its URL; None for other sources

    Bytes of a mapped file are valid only if ``check`` raises nothing after they were used.
    """

    in_ranges = False

    def __init__(
        self,
        buffer: Any,
        name: str,
        path: str | Path | None = None,
        *,
        guard: bool = True,
        grows: bool = False,
    ) -> None:
        self.name = name
        self.address = self.file = None if path is None else os.fspath(path)
        self.inode: tuple[int, int] | None = None
        self.copies: list[str] = []
        self.grows = grows
        self.beside: list[str] = []
        self.definitions: tuple[Path, ...] = ()
        self.types: Mapping[str, str] = {}
        data = np.frombuffer(buffer, np.uint8) if len(buffer) else np.zeros(0, np.uint8)
        data.flags.writeable = False
        self.data: NDArray[np.uint8] = data
        self.guard, self.is_restored = guard, False
        self.digests: PieceDigests | None = None
        self.damage: Sequence[Problem] = ()
        self.limits = default_limits()
        self._side: MapGuard | None = None
        owner = mapping_of(buffer) if data.size else None
        path = None if grows else self.file
        self._map = None if owner is None else MapGuard(data, owner, name, path, guard)

    @cached_property
    def path(self) -> Path | None:
        """The same as ``file``, as a Path."""
        # Small logs are read without it; importing it takes a tenth of the time of opening one.
        from pathlib import Path

        return None if self.file is None else Path(self.file)

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
        fd = os.open(text, os.O_RDONLY | FLAGS)
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise LogError("is a directory, not a log", path=text, hint="open the files in it one by one")
            # Virtual files, as below /proc, have size 0.
            if not stat.S_ISREG(found.st_mode) or not found.st_size:
                with os.fdopen(os.dup(fd), "rb") as stream:
                    return cls._stream(stream, text)
            return cls.of_file(fd, text, _absolute(text), guard)
        finally:
            os.close(fd)

    @classmethod
    def of_file(cls, fd: int, name: str, path: str | Path, guard: bool = True, grows: bool = False) -> Source:
        """Return the bytes that an open regular file has now; the file may be closed afterwards.

        guard  as for ``open``
        grows  another process may write it, so a later modification time means nothing
        """
        found = os.fstat(fd)
        # An empty file cannot be mapped.
        data = map_file(fd)[0] if found.st_size else b""
        source = cls(data, name, path, guard=guard, grows=grows)
        source.inode = found.st_dev, found.st_ino
        return source

    @classmethod
    def of_stream(cls, fd: int, size: int, name: str) -> Source:
        """Return the first *size* bytes of an open file that holds what came through a stream called *name*."""
        return cls(map_file(fd, size)[0], name) if size else cls(b"", name)

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
            return cls(map_file(spool.fileno())[0], name)

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
        self.definitions, self.types = (), {}
        if definitions == ():
            return
        several: Iterable[Definition] = [definitions] if alone else definitions  # type: ignore[assignment,list-item]
        from pathlib import Path

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

    @property
    def view(self) -> memoryview:
        """The bytes as a memoryview, from which Python reads single numbers faster than from an array."""
        return self._view if SHARES_VIEWS else self._new_view()

    def _new_view(self) -> memoryview:
        return self.data.data

    _view = cached_property(_new_view)

    def map_ahead(self) -> None:
        """Touch the pages of most of a large file in a background thread, while it is read from the start.

        Mapping the pages of a cached file takes about as long as walking its records.
        """
        if self.file is not None and self.size >= AHEAD_BYTES and (os.cpu_count() or 1) > 1:
            from threading import Thread

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
        from hashlib import blake2b

        digest = blake2b(self.data[:span].tobytes(), digest_size=12)
        digest.update(self.data[max(0, self.size - span) :].tobytes())
        try:
            stamp = self.path.stat().st_mtime_ns if self.path else 0
        except OSError as error:
            raise LogError(f"the file went away: {error.strerror}", path=self.name) from error
        return f"{self.size}-{stamp}-{digest.hexdigest()}"


def _absolute(name: str) -> str:
    """Return ``str(Path(name).absolute())``, without importing it for a plain name."""
    if os.name == "posix" and not ("//" in name or "./" in name or name.endswith(("/", "."))):
        return os.path.join(os.getcwd(), name)
    from pathlib import Path

    return str(Path(name).absolute())


#: Beginning of an address.
ADDRESS = lazy_pattern(r"(?i:([a-z][a-z0-9+.-]*)://)")


def is_url(text: object) -> bool:
    """Return whether *text* begins with a scheme and ``://``."""
    return isinstance(text, str) and "://" in text and ADDRESS.match(text) is not None


def slices(view: memoryview, starts: Iterable[int], ends: Iterable[int]) -> list[memoryview]:
    """Return the parts from *starts* to *ends* of *view*, that of an array; they may go to other threads."""
    if SHARES_VIEWS:
        return [view[start:end] for start, end in zip(starts, ends, strict=True)]
    data: Any = view.obj
    return [memoryview(data[start:end]) for start, end in zip(starts, ends, strict=True)]


#: Chunk number of the file itself.
FILE = -1
#: Chunk number of records that the reader builds from other content (text lines, parameters).
SYNTHETIC = -2

Buffer = np.ndarray[tuple[Any, ...], np.dtype[np.uint8]]
#: Bytes of a remote log that are fetched together when chunks are read one after another.
FETCH_BYTES = 8 << 20


class Chunks:
    """Buffers by chunk number: FILE, SYNTHETIC, or 0 … for chunks that the format unpacks.

    unpack  returns the bytes of a chunk number ≥ 0; only for formats with compressed chunks
    sizes   approximate unpacked bytes of each chunk
    places  offsets of the packed chunks in the file
    ends    offsets of their ends, for a remote log with all messages in chunks, of which only the
            chunks that are used are fetched; None: messages may lie in the file itself
    by_block  True: the log has no chunks; *places* and *ends* are those of the blocks of the block table
    """

    _ends: Callable[[int], int] | None = None
    by_block = False

    def __init__(
        self,
        source: Source,
        unpack: Callable[[int], Buffer] | None = None,
        sizes: Callable[[int], int] = lambda chunk: 1 << 20,
        places: Callable[[int], int] = lambda chunk: 0,
        ends: Callable[[int], int] | None = None,
        by_block: bool = False,
    ) -> None:
        self.by_block = by_block
        self._source, self._unpack, self._sizes, self._places = source, unpack, sizes, places
        self._ends = ends if source.in_ranges else None
        self.synthetic: Buffer = np.zeros(0, np.uint8)

    def __getitem__(self, chunk: int) -> Buffer:
        if chunk == FILE:
            # Of a log with all messages in chunks, no byte of it is used; of others, those that were fetched.
            return self._source.data if self._ends is None else self._source.span(0, 0)
        if chunk == SYNTHETIC:
            return self.synthetic
        if self._unpack is None:
            raise IndexError(f"this log has no chunk {chunk}")
        return self._unpack(chunk)

    @property
    def in_ranges(self) -> bool:
        """Whether only the chunks that are used are fetched."""
        return self._ends is not None

    def fetch(self, chunks: Sequence[int], most: int = 1 << 62) -> int:
        """Fetch chunks of a remote log together, the first ones up to *most* bytes; return their number.

        Of a log without chunks, *chunks* are numbers of blocks. Nothing but remote logs needs it.
        """
        if self._ends is None:
            return len(chunks)
        starts, ends, count = list[int](), list[int](), 0
        for one in chunks:
            count += 1
            if one < 0:
                continue
            starts.append(self._places(one))
            ends.append(self._ends(one))
            most -= ends[-1] - starts[-1]
            if most <= 0:
                break
        self._source.fetch(np.array(starts, np.int64), np.array(ends, np.int64))
        return count

    def locate(self, chunk: int) -> tuple[int, int]:
        """Return the number of the file that a chunk is in, and the number of the chunk there."""
        return 0, chunk

    def check(self) -> None:
        """Raise FileChangedError if bytes of the file that were used until now may not be those that it had."""
        self._source.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, else nothing; for what is called often."""
        self._source.check_pages()

    def size_of(self, chunk: int) -> int:
        """Return the bytes of a chunk, without unpacking it if its size is known."""
        return self._sizes(chunk) if chunk >= 0 else len(self[chunk])

    def place_of(self, chunk: int) -> int:
        """Return the offset in the file of the stored bytes of a chunk."""
        return self._places(chunk) if chunk >= 0 else 0

    def view(self, chunk: int) -> memoryview:
        """Return the buffer of a chunk as a memoryview."""
        if chunk == FILE and self._ends is None:
            return self._source.view
        return self[chunk].data


class ChunkCache:
    """Thread-safe cache of unpacked chunks by number.

    unpack  returns the bytes of a chunk; of a damaged one the valid prefix
    sizes   greatest size of each chunk in bytes
    slow    True if unpacking takes longer than reading a file
    limits  bytes of unpacked chunks that are kept in memory, and in a temporary file
    secret  True if no unpacked byte may be written to a file

    The most recently used chunks are kept. Of logs that are larger than that, a chunk that is unpacked a second time
    goes to a temporary file, slowly unpacked ones the first time. It is mapped from there, as long as it is kept.
    """

    def __init__(
        self,
        unpack: Callable[[int], Buffer],
        sizes: Sequence[int],
        slow: bool,
        limits: Limits,
        secret: bool = False,
    ) -> None:
        self._unpack, self._most, self._slow = unpack, limits.cache_bytes, slow
        self._held = 0
        self._kept: OrderedDict[int, Buffer] = OrderedDict()
        # One for each chunk of a small log.
        self._locks = [allocate_lock() for _ in range(max(1, min(64, len(sizes))))]
        self._lock = allocate_lock()
        self._place = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._spools = not secret and CAN_MAP and self._most < self._place[-1] <= limits.spool_bytes
        self._spool: IO[bytes] | None = None
        self._unpacked = set[int]()
        #: Bytes of the chunks that are in the temporary file.
        self._written: dict[int, int] = {}

    def __call__(self, number: int) -> Buffer:
        """Return the unpacked bytes of a chunk; of a damaged one the valid prefix."""
        with self._locks[number % len(self._locks)]:
            with self._lock:
                if number in self._kept:
                    self._kept.move_to_end(number)
                    return self._kept[number]
            data = self._mapped(number)
            if data is None:
                data = self._unpack(number)
                if self._spools and len(data) and (self._slow or number in self._unpacked):
                    data = self._spooled(number, data)
                self._unpacked.add(number)
            self._store(number, data)
            return data

    def _mapped(self, number: int) -> Buffer | None:
        """Return the bytes of a chunk in the temporary file; None if it is not there."""
        size = self._written.get(number)
        if size is None or self._spool is None:
            return None
        with suppress(OSError):
            pages, begin = map_file(self._spool.fileno(), size, int(self._place[number]))
            return np.frombuffer(pages, np.uint8, size, begin)
        return None

    def _spooled(self, number: int, data: Buffer) -> Buffer:
        """Return the bytes mapped from the temporary file; *data* itself if they cannot be written."""
        if len(data) > self._place[number + 1] - self._place[number]:
            return data
        try:
            write_at(self._spool_file().fileno(), data.data, int(self._place[number]))
        except OSError:
            self._spools = False
            return data
        self._written[number] = len(data)
        mapped = self._mapped(number)
        return data if mapped is None else mapped

    def _spool_file(self) -> IO[bytes]:
        """Return the temporary file; raises OSError if it would take more than half of the space that is left."""
        with self._lock:
            if self._spool is None:
                import shutil
                import tempfile

                if shutil.disk_usage(tempfile.gettempdir()).free < 2 * self._place[-1]:
                    raise OSError
                self._spool = tempfile.TemporaryFile(prefix="logreel-")  # noqa: SIM115 - lives as long as the log
                weakref.finalize(self, self._spool.close)
            return self._spool

    def _store(self, number: int, data: Buffer) -> None:
        with self._lock:
            self._kept[number] = data
            self._held += len(data)
            while self._held > self._most and len(self._kept) > 1:
                self._held -= len(self._kept.popitem(last=False)[1])


class JoinedChunks(Chunks):
    """Buffers of several files: -1, -3, -5 … are the files themselves, -2, -4, -6 … their synthetic chunks.

    Chunk c of part p of n, where it is unpacked, is c * n + p.
    """

    def __init__(self, parts: Sequence[Chunks]) -> None:
        self._parts = list(parts)

    def number(self, part: int, chunk: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[n]: the numbers here of chunks of *part*."""
        found: NDArray[Any] = np.where(chunk < 0, chunk - 2 * part, chunk * len(self._parts) + part)
        return found.astype(np.int32)

    def locate(self, chunk: int) -> tuple[int, int]:
        """Return the part of a chunk, and its number there."""
        if chunk < 0:
            return (-chunk - 1) // 2, FILE if chunk % 2 else SYNTHETIC
        return chunk % len(self._parts), chunk // len(self._parts)

    def __getitem__(self, chunk: int) -> Buffer:
        part, number = self.locate(chunk)
        return self._parts[part][number]

    def check(self) -> None:
        """Raise FileChangedError if one of the files was found changed, see ``Chunks.check``."""
        for part in self._parts:
            part.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, see ``Chunks.check_pages``."""
        for part in self._parts:
            part.check_pages()

    def size_of(self, chunk: int) -> int:
        """Return the bytes of a chunk, see ``Chunks.size_of``."""
        part, number = self.locate(chunk)
        return self._parts[part].size_of(number)

    def place_of(self, chunk: int) -> int:
        """Return the offset in its file of the stored bytes of a chunk."""
        part, number = self.locate(chunk)
        return self._parts[part].place_of(number)

    def view(self, chunk: int) -> memoryview:
        """Return the buffer of a chunk as a memoryview."""
        part, number = self.locate(chunk)
        return self._parts[part].view(number)
