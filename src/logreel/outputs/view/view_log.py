"""One log of the viewer: opened in a thread, used by one thread at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError
from logreel.io.source import Source
from logreel.log.log import Log
from logreel.log.source_files import FOR_BOTH, refusal
from logreel.meaning.columns import MemoryColumn, SortedColumn
from logreel.meaning.pyramids import PyramidColumn
from logreel.outputs.http.routes import Parameters
from logreel.outputs.view.columns import ViewColumns

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Seconds between two looks at whether the client still waits for a log that is being opened.
_LOOK = 0.2
#: Seconds between two looks at a file that grows.
POLL = 0.25
Tell = Callable[[dict[str, Any]], None]


class ViewLog:
    """A log, which is opened in a thread as soon as this object is created.

    id     its number in the viewer, as text
    source  a path, anything else that ``logreel.open`` takes, or an open Log
    name   file name
    size   bytes of the file; None if unknown
    ready  set when the log is open or cannot be opened
    grows  whether it is watched for growth
    error  why it cannot be opened; None if it can
    leaves  whether other machines can see it
    prepare  called with this object once the log is open, in the thread that opened it
    lock   held by the thread that reads from the log

    tell  called with events: ``opened``, ``failed``
    """

    def __init__(
        self,
        id: str,
        source: Openable | Log,
        tell: Tell,
        definitions: Definitions = (),
        grows: bool = False,
        decrypt: bool = False,
        leaves: bool = False,
        prepare: Callable[[ViewLog], None] | None = None,
    ) -> None:
        self._leaves, self._prepare = leaves, prepare
        self.grows = grows
        self.id, self.source = id, source
        self._options: dict[str, Any] = {"definitions": definitions, "decrypt": decrypt}
        self.name, self.size = _name_and_size(source)
        self.ready, self.lock = Event(), Lock()
        self.error: str | None = None
        self._tell = tell
        self._closed = Event()
        self._log: Log | None = None
        #: Columns of fields that were drawn last.
        self.columns = ViewColumns(
            self.open, self._identity, lambda event, what: tell({"log": id, event: what})
        )
        #: Results that are computed once, by name.
        self.cache: dict[str, Any] = {}
        self._cache_lock = Lock()
        self._computing = Lock()
        self._reopen: Callable[[], Log] | None = None
        self._path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        if isinstance(source, Log):
            # Not the object itself, which its owner goes on using in another thread.
            with suppress(LogError):
                function, arguments = source.__reduce__()
                self._reopen = partial(function, *arguments)
                self._path = arguments[0] if isinstance(arguments[0], str) else None
        if isinstance(source, Log) and self._reopen is None:
            self._adopt(source)
        else:
            Thread(target=self._open, name="logreel-view-open", daemon=True).start()

    def _open(self) -> None:
        from logreel.registry.open import open_log

        try:
            if self._reopen is not None:
                log = self._reopen()
            elif self.grows and isinstance(self.source, (str, os.PathLike)):
                from logreel.registry.open_growing import open_growing

                begun = open_growing(self.source, poll=POLL, stop=self._closed, **self._options)
                if begun is None:
                    return
                log = begun
            else:
                log = open_log(self.source, **self._options)  # type: ignore[arg-type]
        except LogError as error:
            self._fail(error.text)
        except OSError as error:
            self._fail(error.strerror or "cannot be read")
        except Exception as error:
            self._fail(f"cannot be opened: {error!r}")
        else:
            self._adopt(log)
            if self._log is not None and self._prepare is not None:
                self._prepare(self)
            if self.grows and self._log is not None:
                self._follow(log)

    def _follow(self, log: Log) -> None:
        """Tell about new messages until the viewer is closed or the file cannot be read any more."""
        while not self._closed.wait(POLL) and not log.is_complete:
            try:
                with self.lock:
                    before = log.replacements
                    new = log.refresh()
                    if log.replacements != before or not self._has_start:
                        self._set_start(log)
                    about = {
                        "messages": log.message_count,
                        "duration": log.duration or 0,
                        "start": str(self.start),
                        "problems": len(log.problems),
                        "lost": sum(problem.lost for problem in log.problems),
                    }
            except (LogError, OSError) as error:
                self._tell({"log": self.id, "failed": getattr(error, "text", None) or str(error)})
                return
            if new or log.replacements != before:
                self.forget()
                self._tell({"log": self.id, "grown": about})

    def _set_start(self, log: Log) -> None:
        #: Time of the log's clock that is 0 in all answers, ns.
        self.start = log.start or 0
        self._has_start = log.start is not None

    def _fail(self, why: str) -> None:
        self.error = why
        self.ready.set()
        self._tell({"log": self.id, "failed": why})

    def _adopt(self, log: Log) -> None:
        if self._leaves and (refused := refusal(log, FOR_BOTH)) is not None:
            log.close()
            self._fail(refused.text)
            return
        self._log = log
        self._set_start(log)
        self.ready.set()
        self._tell({"log": self.id, "opened": True})

    @contextmanager
    def open(self, request: Parameters | None = None) -> Iterator[Log]:
        """Yield the log, locked for this thread; waits until it is open.

        request  of the request: raises Cancelled when its client goes while it waits

        Raises LogError if the log cannot be opened.
        """
        while not self.ready.wait(_LOOK):
            if request is not None:
                request.check()
        if self._log is None:
            raise LogError(self.error or "was closed", path=self.name)
        while not self.lock.acquire(timeout=_LOOK):
            if request is not None:
                request.check()
        try:
            if request is not None:
                request.check()
            yield self._log
        finally:
            self.lock.release()

    def once_aside(self, name: str, compute: Callable[[Log], Any], request: Parameters) -> Any:
        """Return a result as ``once`` does, computed from the log opened a second time.

        A long look at all of a log does not keep the plots waiting so. A log that grows, or that cannot be opened
        again, is locked as for ``once``.
        """
        while not self._computing.acquire(timeout=_LOOK):
            request.check()
        try:
            if name not in self.cache:
                with self._again(request) as log:
                    result = compute(log)
                if self.grows:
                    return result
                self.cache[name] = result
            return self.cache[name]
        finally:
            self._computing.release()

    @contextmanager
    def _again(self, request: Parameters) -> Iterator[Log]:
        if self.grows or (self._reopen is None and self._path is None):
            with self.open(request) as log:
                yield log
            return
        while not self.ready.wait(_LOOK):
            request.check()
        if self._log is None:
            raise LogError(self.error or "was closed", path=self.name)
        from logreel.registry.open import open_log

        again = self._reopen() if self._reopen is not None else open_log(self._path or "", **self._options)
        try:
            yield again
        finally:
            again.close()

    def _identity(self) -> str | None:
        """Return a text that is different for each content of the file; None if nothing of it may be kept.

        That is so if it is no single file, if it grows, and if it is encrypted: what is kept would not be.
        """
        log = self._log
        if (
            self.grows
            or self._path is None
            or not os.path.isfile(self._path)
            or log is None
            or log.encryption
        ):
            return None
        return Source.open(self._path).identity

    def check(self) -> None:
        """Raise an error if the log must not be read any more; called while a slice of it is sent."""
        if self._log is None or self._log.closed:
            raise LogError("the log is closed", path=self.name)

    def once(self, name: str, compute: Callable[[Log], Any], request: Parameters | None = None) -> Any:
        """Return a result that is computed from the log at the first call, and again after it has grown."""
        with self._cache_lock:
            if name in self.cache:
                return self.cache[name]
        with self.open(request) as log:
            # Another thread may have computed it while this one waited.
            if name not in self.cache:
                self.cache[name] = compute(log)
            return self.cache[name]

    def forget(self) -> None:
        """Forget results that were computed from the log, because it has grown."""
        with self._cache_lock:
            self.cache.clear()
        self.columns.clear()

    @contextmanager
    def reading(self, column: SortedColumn, request: Parameters) -> Iterator[None]:
        """Lock the log in the block if rows of *column* are read from it."""
        if isinstance(column, MemoryColumn) or (isinstance(column, PyramidColumn) and column.is_stored):
            yield
            return
        with self.open(request):
            yield

    def clock(self, time: int | None) -> int | None:
        """Return a time of an answer as time of the log's clock, ns, limited to 64 bits; the log must be open."""
        return None if time is None else max(-(1 << 63), min((1 << 63) - 1, time + self.start))

    def close(self) -> None:
        """Close the log, unless it was given open."""
        self._closed.set()
        self.columns.close()
        if self._log is not None and self._log is not self.source:
            self._log.close()


def _name_and_size(source: Any) -> tuple[str, int | None]:
    """Return the name of a log for people, without folders, and its size in bytes if it is a file."""
    if isinstance(source, Log):
        return os.path.basename(source.name) or source.name, source.size
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return os.path.basename(os.path.normpath(path)), os.path.getsize(path) if os.path.isfile(
            path
        ) else None
    return str(getattr(source, "name", "log")), None
