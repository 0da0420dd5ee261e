"""Pyramids that are built in a thread while pages already show samples."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from time import monotonic
from typing import Any

from logreel.errors import LogError
from logreel.meaning.columns import SortedColumn
from logreel.outputs.http.routes import Cancelled, Parameters
from logreel.outputs.view.limits import LINGER

#: Seconds between two events about progress, and between two looks of a request that waits.
TELL, LOOK = 0.25, 0.05
#: Builds a column; called with a function that takes the part that is done, and raises Cancelled.
Make = Callable[[Callable[[float], None]], SortedColumn]


class Build:
    """A column that is being built; given up if nobody asked for it for a while.

    done    set at the end
    column  the result; None before the end, and if it failed
    error   why it failed
    """

    def __init__(self, about: dict[str, str], tell: Callable[[str, Any], None]) -> None:
        self._about, self._tell = about, tell
        self.done = Event()
        self.column: SortedColumn | None = None
        self.error: Exception | None = None
        self._asked, self._told = monotonic(), 0.0
        self._closed = False

    def run(self, make: Make) -> None:
        """Build in this thread."""
        try:
            self.column = make(self._progress)
        except (LogError, Cancelled) as error:
            self.error = error
        except Exception as error:
            self.error = LogError(f"the overview of the field cannot be built: {error!r}")
        self.done.set()
        if self.column is not None:
            self._tell("ready", self._about)

    def _progress(self, part: float) -> None:
        now = monotonic()
        if self._closed or now - self._asked > LINGER:
            raise Cancelled
        if now - self._told > TELL:
            self._told = now
            self._tell("progress", {**self._about, "done": round(part, 3)})

    def close(self) -> None:
        """End the build before its next piece."""
        self._closed = True

    def wait(self, seconds: float | None, given: Parameters) -> bool:
        """Return whether it is done within some seconds; None: wait for the end. Raises Cancelled."""
        until = None if seconds is None else monotonic() + seconds
        while not self.done.wait(LOOK):
            self._asked = monotonic()
            given.check()
            if until is not None and self._asked > until:
                return False
        return True


class Builds:
    """The columns of one log that were or are built, by key; one is built at a time.

    tell  called with the kind of an event and what it says
    """

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._all: dict[str, Build] = {}
        self._pool = ThreadPoolExecutor(1, "logreel-view-build")

    def get(self, key: str, about: dict[str, str], make: Make) -> Build:
        """Return the build of a column, which is begun if there is none, it failed or lost its file."""
        with self._lock:
            build = self._all.get(key)
            # The file of a pyramid may be truncated while it is used.
            if build is None or build.error is not None or not getattr(build.column, "is_whole", True):
                build = self._all[key] = Build(about, self._tell)
                self._pool.submit(build.run, make)
            return build

    def clear(self) -> None:
        """Forget all columns, and end the builds."""
        with self._lock:
            for build in self._all.values():
                build.close()
            self._all.clear()

    def close(self) -> None:
        """End the builds for good."""
        self.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
