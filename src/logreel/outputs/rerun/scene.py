"""Sending to a Rerun recording: entity paths, timelines, and batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64
from logreel.log.times import shift_of
from logreel.outputs.job import Job

if TYPE_CHECKING:
    from logreel.log.log import Channel

Make = Callable[[list[Any]], Iterable[Any]]
#: Maximum rows and bytes of a batch, which a viewer loads as one chunk.
ROWS, BYTES = 65536, 4 << 20
#: Maximum seconds to write a batch.
_PATIENCE = 300
#: Names of the timelines; not ``log_time`` or ``log_tick``, which Rerun uses for its own recording time.
TIME, COUNT = "time", "count"


class Scene:
    """The entities of a log in a recording.

    job     the conversion job
    framed  True: coordinate frames have names; False: entities are placed by their paths
    clock   whether times are UTC, and ns to add to times of the log; None: the clock of the log
    """

    def __init__(
        self, recording: Any, job: Job, prefix: str, framed: bool, clock: tuple[bool, int] | None = None
    ) -> None:
        self._recording, self.job, self.framed = recording, job, framed
        self._prefix = prefix.rstrip("/")
        shift = shift_of(job.log, job.utc)
        self._wall, self._shift = clock or (job.log.epoch == "unix" or shift is not None, shift or 0)

    def path(self, ch: Channel, *parts: str) -> str:
        """Return the path of the entity of *ch*, or of one below it."""
        import rerun

        names = [name for name in (*ch.topic.split("/"), *parts) if name]
        return f"{self._prefix}{rerun.new_entity_path(names)}"

    def send(self, path: str, times: I64, first: int, columns: Iterable[Any]) -> None:
        """Send rows of one entity.

        times  int64[n]  ns of the log's clock
        first  number of the first row
        """
        import rerun

        columns = list(columns)
        if not len(times) or not columns:
            return
        # The smallest int64 means "no time" in Rerun.
        low, high = TIME_MIN + 1 - min(self._shift, 0), TIME_MAX - max(self._shift, 0)
        shifted = np.clip(times, low, high) + self._shift
        if self._wall:
            time = rerun.TimeColumn(TIME, timestamp=shifted.view("datetime64[ns]"))
        else:
            time = rerun.TimeColumn(TIME, duration=shifted.view("timedelta64[ns]"))
        count = rerun.TimeColumn(COUNT, sequence=np.arange(first, first + len(times), dtype=np.int64))
        self._recording.send_columns(path, [time, count], columns, strict=True)

    def fix(self, path: str, archetype: Any) -> None:
        """Send static content, which is valid at any time."""
        self._recording.log(path, archetype, static=True, strict=True)

    def flush(self) -> None:
        """Wait until all sent data is written; raises LogError if that fails, e.g. on a full disk."""
        try:
            self._recording.flush(timeout_sec=_PATIENCE)
        except RuntimeError as error:
            raise LogError(f"Rerun cannot write the recording: {error}") from error


class Rows:
    """Collects rows of one entity and sends them in batches."""

    def __init__(self, scene: Scene, path: str) -> None:
        self._scene, self._path = scene, path
        self._make: Make | None = None
        self._times: list[int] = []
        self._things: list[Any] = []
        self._size = self._sent = 0

    def add(self, make: Make, time: int, thing: Any, size: int) -> None:
        """Add a row of *size* bytes; *make* converts a list of rows to Rerun columns."""
        if make is not self._make:
            self.send()
            self._make = make
        self._times.append(time)
        self._things.append(thing)
        self._size += size
        if self._size > BYTES or len(self._times) >= ROWS:
            self.send()

    def send(self) -> int:
        """Send the collected rows; return the number of rows so far."""
        if self._make is not None and self._times:
            times = np.array(self._times, np.int64)
            self._scene.send(self._path, times, self._sent, self._make(self._things))
            self._scene.flush()
        self._sent += len(self._times)
        self._times, self._things, self._size = [], [], 0
        return self._sent


def windows(job: Job, ch: Channel) -> Iterator[tuple[int | None, int | None]]:
    """Yield half-open intervals (ns) that cover *ch* in *job*, each with at most about ROWS messages."""
    times = np.sort(ch.times)
    first, last = (
        len(times) * i if bound is None else int(times.searchsorted(bound))
        for i, bound in enumerate((job.start, job.end))
    )
    cuts = np.unique(times[first:last][::ROWS])[1:].tolist()
    if first < last:
        yield from pairwise([job.start, *cuts, job.end])
