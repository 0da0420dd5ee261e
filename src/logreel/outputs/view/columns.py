"""Columns of the viewer: fields, functions of fields and SQL expressions, the latest ones kept in memory."""

from __future__ import annotations

import json
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, get_native_id
from time import monotonic
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.lenses.facts import Series
from logreel.log.log import Log
from logreel.meaning.columns import FieldColumn, MemoryColumn, SampledColumn, SortedColumn
from logreel.meaning.curves import is_stepped, series_curve
from logreel.meaning.gaps import holds_samples
from logreel.meaning.pyramids import FoldedColumn, Pyramid, key_of, place_of
from logreel.outputs.http.routes import Cancelled, Parameters
from logreel.outputs.view.limits import (
    COLUMN_BYTES,
    FUNCTION_ROWS,
    LINGER,
    PATIENCE,
    ROWS_IN_MEMORY,
    SERIES,
    SQL_CHARACTERS,
    SQL_MEMORY,
    SQL_ROWS,
    SQL_SECONDS,
)
from logreel.outputs.view.parameters import ONE_SERIES

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

    def wait(self, until: float | None, request: Parameters) -> bool:
        """Return whether it is done at a moment of ``monotonic``; None: wait for the end. Raises Cancelled."""
        while not self.done.wait(LOOK):
            self._asked = monotonic()
            request.check()
            if until is not None and self._asked > until:
                return False
        return True


def _work_in_background() -> None:
    """Leave the processors to the threads that answer requests, where threads can have a priority of their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), 10)


class Builds:
    """The columns of one log that were or are built, by key; one is built at a time.

    tell  called with the kind of an event and what it says
    """

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._all: dict[str, Build] = {}
        self._pool = ThreadPoolExecutor(1, "logreel-view-build", _work_in_background)

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


#: Yields the log, locked for this thread.
OpenLog = Callable[[Parameters], AbstractContextManager[Log]]
#: Parameters of a request that name one series.
NAMES = tuple(parameter.name for parameter in ONE_SERIES)


@dataclass(frozen=True, slots=True)
class WantedSeries:
    """One series that a request asks for: a field, a function of it, or an SQL expression over the fields of a topic.

    where  as for ``lenses.charts.Series``
    """

    topic: str
    field: str = ""
    function: str = ""
    where: str = ""
    sql: str = ""

    @property
    def key(self) -> str:
        """Text that is different for different series."""
        return json.dumps([self.topic, self.field, self.function, self.where, self.sql])

    @property
    def name(self) -> str:
        """Name of its column in a table: the field, ``function(field)``, or the SQL expression."""
        function, _, number = self.function.partition(" ")
        inputs = f"{self.field}, {number}" if number else self.field
        name = self.sql or (f"{function}({inputs})" if function else self.field)
        return f"{name} where {self.where}" if self.where else name

    @property
    def shape(self) -> str:
        """Text that is different for series of one topic whose lines may differ; SQL expressions have the same."""
        return "" if self.sql else json.dumps([self.field, self.function])

    def is_stepped(self, log: Log) -> bool:
        """Return whether its values hold until the next one."""
        return not self.sql and is_stepped(log[self.topic], self.field, self.function)

    @property
    def is_field(self) -> bool:
        """Whether it is a field as it is stored."""
        return not (self.function or self.where or self.sql)


def wanted_series(request: Parameters) -> Iterator[WantedSeries]:
    """Yield the series that a request asks for; raises UsageError."""
    if "s" not in request:
        request.text("topic")
        yield _checked({name: value for name in NAMES if (value := request.get(name)) is not None})
        return
    for parsed in series_objects(request):
        if "topic" not in parsed:
            raise UsageError("a series s has no topic")
        yield checked_series(parsed)


def series_objects(request: Parameters) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of the repeated parameter ``s`` of a request; raises UsageError."""
    if len(request.all("s")) > SERIES:
        raise UsageError(f"one request asks for at most {SERIES} series")
    for text in request.all("s"):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            raise UsageError(f"s {text!r:.80} is no JSON object with topic and field")
        yield parsed


def checked_series(parsed: Mapping[str, Any]) -> WantedSeries:
    """Return the series that JSON data name; raises UsageError."""
    return _checked({name: str(parsed[name]) for name in NAMES if parsed.get(name) is not None})


def _checked(names: dict[str, str]) -> WantedSeries:
    series = WantedSeries(**names)
    if series.sql and (series.field or series.function or series.where):
        raise UsageError("an SQL expression stands in place of field and function")
    if len(series.sql) > SQL_CHARACTERS:
        raise UsageError(f"an SQL expression has at most {SQL_CHARACTERS} characters")
    return series


class ViewColumns:
    """The columns of one log: the small ones that were used last in memory, large ones by pyramids.

    open_log  yields the log
    identity  returns the text by which pyramids in the cache folder are found; None: they are not kept
    tell      called with the kind of an event and what it says
    """

    def __init__(
        self, open_log: OpenLog, identity: Callable[[], str | None], tell: Callable[[str, Any], None]
    ) -> None:
        self._open, self._identity = open_log, identity
        self._builds = Builds(tell)
        self._lock = Lock()
        self._kept: OrderedDict[str, MemoryColumn] = OrderedDict()

    def clear(self) -> None:
        """Forget all columns, because the log has grown."""
        with self._lock:
            self._kept.clear()
        self._builds.clear()

    def close(self) -> None:
        """End what is being built."""
        self._builds.close()

    def get(self, wanted: WantedSeries, request: Parameters, until: float | None = None) -> SortedColumn:
        """Return a column; raises errors of unknown names, UsageError for what is no number, Cancelled.

        until  moment of ``monotonic`` up to which it waits for a pyramid; None: PATIENCE from now on
        """
        until = monotonic() + PATIENCE if until is None else until
        latest = self._latest(wanted.key)
        column = self._read(wanted, request) if latest is None else latest
        if isinstance(column, MemoryColumn):
            return column
        build = self._build(wanted, column)
        # Rows of a field that is not direct cannot be read one by one.
        if not build.wait(until if column.is_direct else None, request):
            return SampledColumn(column)
        if build.column is None:
            raise build.error or Cancelled()
        return build.column

    def prepare(self, wanted: WantedSeries) -> None:
        """Read a column that will be asked for soon, or begin to build it; raises the errors of ``get``."""
        column = self._read(wanted, Parameters((), {}))
        if isinstance(column, FieldColumn):
            self._build(wanted, column)

    def _latest(self, key: str) -> MemoryColumn | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: str, column: MemoryColumn) -> None:
        with self._lock:
            self._kept[key] = column
            total = 0
            for old in reversed(list(self._kept)):
                total += 18 * len(self._kept[old])
                # The newest column stays even if it alone is too large.
                if total > COLUMN_BYTES and old != key:
                    del self._kept[old]

    def _read(self, wanted: WantedSeries, request: Parameters) -> MemoryColumn | FieldColumn:
        """Return a column in memory, and keep it; the field if its rows are too many for that."""
        with self._open(request) as opened:
            # Another thread may have read it while this one waited.
            if (latest := self._latest(wanted.key)) is not None:
                return latest
            ch = opened[wanted.topic]
            if wanted.sql:
                from logreel.ops.query.where import expression_column

                column = expression_column(ch, wanted.sql, SQL_ROWS, SQL_SECONDS, SQL_MEMORY, request.check)
            elif not wanted.is_field:
                column = _function_column(opened, wanted)
            else:
                field = FieldColumn(ch, wanted.field)
                if field.rows_estimate() > ROWS_IN_MEMORY:
                    return field
                column = MemoryColumn(*field.whole(request.check), field.unit)
        column = FoldedColumn(column.times, column.values, column.unit)
        self._keep(wanted.key, column)
        return column

    def _build(self, wanted: WantedSeries, field: FieldColumn) -> Build:
        return self._builds.get(
            wanted.key,
            {"topic": wanted.topic, "field": wanted.field},
            lambda progress: self._pyramid(field, progress),
        )

    def _pyramid(self, field: FieldColumn, progress: Callable[[float], None]) -> SortedColumn:
        identity, place = self._identity(), None
        # Earlier versions gave all samples of a message its time.
        spread = ["spread"] if holds_samples(field.channel) else []
        key = key_of(identity or "", field.channel.topic, field.field, *spread)
        if identity is not None and (place := place_of(key)) is not None:
            pyramid = Pyramid.load(field, key, place)
            if pyramid is not None:
                return pyramid.column(field)
        guard = partial(self._open, Parameters((), {}))
        return Pyramid.build(field, key, progress, guard, place).column(field)


def _function_column(log: Log, wanted: WantedSeries) -> MemoryColumn:
    ch = log[wanted.topic]
    if len(ch) > FUNCTION_ROWS:
        raise UsageError(
            f"{ch.topic!r} has {len(ch)} messages: functions are for channels of up to {FUNCTION_ROWS}"
        )
    series = Series(wanted.topic, wanted.field, wanted.function, where=wanted.where)
    curve = series_curve(log, series)
    return MemoryColumn(curve.times, curve.values, curve.unit)
