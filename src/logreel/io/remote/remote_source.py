"""RemoteSource: a Source whose bytes are fetched from a server before they are used."""

from __future__ import annotations

import copy
import hashlib
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from logreel.errors import FileChangedError
from logreel.io.arrays import I64
from logreel.io.notices import notice
from logreel.io.remote.object_store import NoRangesError, RemoteObject
from logreel.io.remote.sparse_copy import SparseCopy, check_download
from logreel.io.source import Source
from logreel.limits import Limits

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
        return memoryview(self._copy.data)  # type: ignore[arg-type]

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
