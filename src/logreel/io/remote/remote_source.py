"""RemoteSource: a Source whose bytes are fetched from a server before they are used."""

from __future__ import annotations

import copy
import hashlib
import tempfile
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from logreel.errors import FileChangedError, LogError, notice
from logreel.io.arrays import I64
from logreel.io.platform import map_shared, write_at
from logreel.io.remote.object_store import NoRangesError, RemoteObject
from logreel.io.source import Source
from logreel.limits import Limits, beyond

#: Bytes that are fetched at least; pages of very large objects are larger, so that there are at most MOST_PAGES.
PAGE, MOST_PAGES = 16 << 10, 1 << 24
#: Fewer bytes between two wanted ranges are fetched as well: a request takes as long as they do.
GAP = 128 << 10
#: Bytes of the largest request, and requests at the same time; together the memory that fetching takes.
PIECE, AT_ONCE = 8 << 20, 8


def check_download(name: str, size: int, most: int) -> None:
    """Raise LogError if *size* bytes are more than *most*, the limit of what is downloaded."""
    if size > most:
        raise LogError(
            f"{size} bytes of it would be downloaded, more than {beyond('remote_bytes')}", path=name
        )


class SparseCopy:
    """The bytes of an object in an unnamed temporary file, mapped as one buffer.

    data   uint8[size], read only; zero where ``fetch`` was not called
    most   returns the most bytes that are fetched altogether
    """

    def __init__(
        self, size: int, name: str, read: Callable[[int, int], bytes], most: Callable[[], int]
    ) -> None:
        self.name, self._read, self._most = name, read, most
        self._file = tempfile.TemporaryFile(prefix="logreel-")  # noqa: SIM115 - lives as long as its mapping
        weakref.finalize(self, self._file.close)
        self._page = PAGE
        while size > self._page * MOST_PAGES:
            self._page *= 2
        self._has = np.zeros(-(-size // self._page), bool)
        self._size, self._lock = size, RLock()
        if size:
            try:
                self._file.truncate(size)
            except OSError as error:
                raise self._full(error) from None
        self._buffer = map_shared(self._file.fileno(), size) if size else b""
        self.data: NDArray[np.uint8] = np.frombuffer(self._buffer, np.uint8)

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are there."""
        return bool(self._has.all())

    @property
    def held(self) -> int:
        """Approximate number of bytes that are there."""
        return min(self._size, int(np.count_nonzero(self._has)) * self._page)

    def put(self, start: int, data: bytes) -> None:
        """Store bytes that were received otherwise; whole pages of them count as fetched."""
        self._write(start, data)
        stop = start + len(data)
        last = len(self._has) if stop == self._size else stop // self._page
        self._has[-(-start // self._page) : last] = True

    def complete(self) -> None:
        """Count all pages as fetched."""
        self._has[:] = True

    def fetch(self, start: int, stop: int) -> None:
        """Fetch the bytes *start* … *stop* as far as the object has them, unless they are there."""
        start, stop = max(start, 0), min(stop, self._size)
        if start < stop and not self._has[start // self._page : -(-stop // self._page)].all():
            self.fetch_ranges(np.array([start]), np.array([stop]))

    def fetch_ranges(self, start: I64, stop: I64) -> None:
        """Fetch many ranges, those that are close to each other by one request."""
        first = np.clip(start, 0, self._size) // self._page
        last = -(-np.clip(stop, 0, self._size) // self._page)
        wanted = np.zeros(len(self._has) + 1, np.int64)
        some = last > first
        np.add.at(wanted, first[some], 1)
        np.add.at(wanted, last[some], -1)
        with self._lock:
            missing = (np.cumsum(wanted[:-1]) > 0) & ~self._has
            pieces = list(self._pieces(missing))
            if not pieces:
                return
            total = self.held + sum(b - a for a, b in pieces)
            check_download(self.name, total, self._most())
            if len(pieces) == 1:
                self._get(pieces[0])
                return
            with ThreadPoolExecutor(min(AT_ONCE, len(pieces))) as pool:
                jobs = [pool.submit(self._get, one) for one in pieces]
                try:
                    for job in jobs:
                        job.result()
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise

    def _pieces(self, missing: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield the ranges to request, so that all *missing* pages are in one."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], missing.view(np.int8), [0]])))
        begin, end = edges[::2], edges[1::2]
        if not len(begin):
            return
        joins = np.flatnonzero((begin[1:] - end[:-1]) * self._page > GAP)
        for a, b in zip(begin[[0, *(joins + 1)]].tolist(), end[[*joins, -1]].tolist(), strict=True):
            for at in range(a * self._page, b * self._page, PIECE):
                yield at, min(at + PIECE, b * self._page, self._size)

    def _get(self, piece: tuple[int, int]) -> None:
        start, stop = piece
        self._write(start, self._read(start, stop))
        self._has[start // self._page : -(-stop // self._page)] = True

    def _write(self, start: int, data: bytes) -> None:
        try:
            write_at(self._file.fileno(), data, start, self._buffer)
        except OSError as error:
            raise self._full(error) from None

    def _full(self, error: OSError) -> LogError:
        return LogError(
            f"its bytes cannot be kept in a temporary file: {error.strerror}",
            path=self.name,
            hint="set TMPDIR to a folder with more space",
        )


#: Smaller logs are fetched when they are opened: their parts would take more requests.
SMALL_BYTES = 1 << 20


class RemoteSource(Source):
    """The bytes of a remote log; those that no range was asked of are fetched by the first use of ``data``.

    remote  the object on the server, which counts requests and bytes
    """

    def __init__(self, url: str, limits: Limits | None = None) -> None:
        self.remote = RemoteObject(url)
        super().__init__(b"", self.remote.name)
        # That of the empty buffer, in place of which the property is used.
        del self.__dict__["data"]
        self.address = url
        self.limits = limits or self.limits
        self._error: FileChangedError | None = None
        try:
            head = self.remote.head()
            self._new_copy()
            self._copy.put(0, head)
            if self.remote.size <= SMALL_BYTES:
                self._copy.fetch(0, self.remote.size)
        except NoRangesError:
            self._download()

    def _new_copy(self) -> None:
        remote = self.remote
        self._copy = SparseCopy(remote.size, self.name, remote.read, lambda: self.limits.remote_bytes)

    def _download(self) -> None:
        """Fetch everything from a server without ranges."""
        at = 0
        for piece in self.remote.whole():
            if not at:
                notice(
                    f"{self.name}: the server sends no ranges, so all {self.remote.size} bytes are downloaded"
                )
                check_download(self.name, self.remote.size, self.limits.remote_bytes)
                self._new_copy()
            self._copy.put(at, piece)
            at += len(piece)
        if not at:
            self._new_copy()
        self._copy.complete()

    @property
    def in_ranges(self) -> bool:  # type: ignore[override]
        """Whether not all bytes were fetched yet."""
        return not self._copy.is_complete

    @cached_property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """All bytes, uint8[size]; fetched before."""
        if not self._copy.is_complete:
            left = self.remote.size - self._copy.held
            notice(f"{self.name}: it has to be read as a whole, so {left} more bytes are downloaded")
            self.fetch(np.zeros(1, np.int64), np.full(1, self.size))
        return self._copy.data

    def span(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return an array in which the bytes *start* … *stop* are those of the log; others may be zero."""
        try:
            self._copy.fetch(start, stop)
        except FileChangedError as error:
            self._error = error
            raise
        return self._copy.data

    def fetch(self, start: I64, stop: I64) -> None:
        """Fetch many ranges at once; ``span`` returns their bytes."""
        try:
            self._copy.fetch_ranges(start, stop)
        except FileChangedError as error:
            self._error = error
            raise

    @cached_property
    def span_view(self) -> memoryview:
        """What ``span`` returns, as a memoryview."""
        return self._copy.data.data

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.remote.size

    def check(self) -> None:
        """Raise FileChangedError if the object was found replaced; bytes that were fetched before stay valid."""
        if self._error is not None:
            raise copy.copy(self._error)

    def check_pages(self) -> None:
        """Do what ``check`` does."""
        self.check()

    @cached_property
    def identity(self) -> str:
        """Return a key of this content: size, and a digest of address without secrets and version."""
        text = f"{self.remote.name}\n{self.remote.version}"
        return f"{self.size}-0-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"
