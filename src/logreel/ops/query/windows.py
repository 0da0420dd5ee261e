"""Windows of a log around the moments at which conditions begin to hold: found in logs, and named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.log.times import clock_text, utc_text
from logreel.ops.json_values import to_json_values
from logreel.ops.query.message_condition import CHANGED
from logreel.ops.selection import Around

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.ops.query.where import Applied, Span

#: Most values of a field that ``changed`` is asked about.
MOST_CHANGES = 100_000
#: Most characters of the name of a condition.
LABEL = 60
_COMPARED = {
    "<=": "at most", ">=": "at least", "<>": "is not", "!=": "is not", "==": "is", "<": "below", ">": "above",
    "=": "is",
}  # fmt: skip
_SIGNS = re.compile(r"<=|>=|<>|!=|==|<|>|=")
#: A name with its topic: names with dots between them, quoted or not, and no numbers.
_NAMED = re.compile(r'(?:[A-Za-z_~]\w*|"(?:[^"]|"")+")(?:\.(?:[A-Za-z_]\w*|"(?:[^"]|"")+"))+')
_PARTS = re.compile(r'"(?:[^"]|"")+"|[^.]+')


def label_of(condition: str) -> str:
    """Return the name of a condition in names of files: ``voltage_v-below-14``.

    Topics are left out, signs become words, everything but letters, digits, ``.`` and ``_`` becomes ``-``, and what is
    over 60 characters is cut.
    """
    text = _NAMED.sub(lambda match: ".".join(_PARTS.findall(match[0])[1:]), condition)
    text = _SIGNS.sub(lambda match: f" {_COMPARED[match[0]]} ", text)
    text = re.sub(r"(?<![\w.])-(?=[\d.])", "minus ", text)
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text)[:LABEL].strip("-._") or "condition"


@dataclass(frozen=True, slots=True)
class Onset:
    """A moment at which a condition begins to hold.

    values  of the fields in the condition, by their names in it; of ``changed``, the new value as text
    """

    time: int
    condition: str
    values: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON data."""
        return {"time_ns": self.time, "condition": self.condition, "values": to_json_values({**self.values})}


@dataclass(slots=True)
class OnsetWindow:
    """A part of a log: start <= time < end, ns, around one or several *onsets*; *number* from 1."""

    number: int
    start: int
    end: int
    onsets: list[Onset] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Name of the condition that begins to hold first, for names of files."""
        return label_of(self.onsets[0].condition)

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON data."""
        onsets = [onset.as_dict() for onset in self.onsets]
        return {"number": self.number, "start_ns": self.start, "end_ns": self.end, "label": self.label} | {
            "onsets": onsets
        }

    def text(self, shift: int | None) -> str:
        """Return a sentence about the window; *shift*: ns to UTC, None if it is not known."""

        def shown(ns: int) -> str:
            return clock_text(ns) if shift is None else utc_text(ns + shift, 3)

        first, more = self.onsets[0], len(self.onsets) - 1
        values = ", ".join(f"{name} = {_short(value)}" for name, value in first.values.items())
        others = f", and {more} more" if more else ""
        seconds = (self.end - self.start) / 1e9
        return (
            f"window {self.number}: {seconds:.3f} s from {shown(self.start)}, around {first.condition} at "
            f"{shown(first.time)} ({values}){others}"
        )


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


def windows_of(log: Log, around: Around | str, span: Span = (None, None)) -> list[OnsetWindow]:
    """Return the windows of a log as ``windows_in``; raises also LogError if there is none."""
    windows = windows_in(log, around, span)
    if not windows:
        conditions = " or ".join(map(repr, Around.of(around).texts))
        raise LogError(f"{conditions} never begins to hold, so there is no window to write", path=log.name)
    return windows


def check_conditions(around: Around) -> None:
    """Raise UsageError for a condition that cannot be read, whatever the log."""
    from logreel.ops.query.where import WhereCondition

    for text in around.texts:
        if CHANGED.fullmatch(text) is None:
            WhereCondition.parse(text)


def windows_in(log: Log, around: Around | str, span: Span = (None, None)) -> list[OnsetWindow]:
    """Return the windows of a log around the onsets with start <= time < end of *span*, clipped to it and to the log.

    Raises UsageError and NotFoundError as ``where.true_intervals``.
    """
    around = Around.of(around)
    before, after, debounce = around.lengths
    onsets = [
        (n, onset) for n, text in enumerate(around.texts) for onset in _onsets(log, text, span[1], debounce)
    ]
    first = max(t for t in (span[0], log.start, -(1 << 63)) if t is not None)
    last = min(t for t in (span[1], None if log.end is None else log.end + 1, 1 << 63) if t is not None)
    inside = [(onset.time, n, onset) for n, onset in onsets if first <= onset.time < last]
    inside.sort(key=lambda entry: entry[:2])
    windows = merged([onset for _, _, onset in inside], before, after)
    for window in windows:
        window.start, window.end = max(window.start, first), min(window.end, last)
    return windows


def merged(onsets: Iterable[Onset], before: int, after: int) -> list[OnsetWindow]:
    """Return the windows around ascending onsets; those that touch or overlap are one."""
    windows = list[OnsetWindow]()
    for onset in onsets:
        start, end = onset.time - before, onset.time + after + 1
        if windows and start <= windows[-1].end:
            windows[-1].end = end
            windows[-1].onsets.append(onset)
        else:
            windows.append(OnsetWindow(len(windows) + 1, start, end, [onset]))
    return windows


def rising(met: NDArray[np.bool_], times: I64, debounce: int) -> I64:
    """Return int64[k]: the messages with which a condition begins to hold, of those that meet it, in order of time."""
    before = np.concatenate([[False], met[:-1]])
    rises, falls = np.flatnonzero(met & ~before), np.flatnonzero(~met & before)
    counts = np.ones(len(rises), np.bool_)
    # Before each but the first, there is the message with which it ceased to hold.
    counts[1:] = times[rises[1:]] - times[falls[: len(rises) - 1]] >= debounce if len(rises) else True
    return rises[counts]


def _onsets(log: Log, text: str, end: int | None, debounce: int) -> list[Onset]:
    """Return the onsets of one condition before *end*."""
    if (change := CHANGED.fullmatch(text)) is not None:
        return _changes(log, text, change["field"].strip().replace('"', ""), end, debounce)
    # Recordings have windows, too, and ask no database.
    from logreel.ops.query.where import Tester, WhereCondition, numbers_of, on_one_channel

    channels = [ch for ch in log.channels.values() if len(ch)]
    if not channels:
        return []
    applied = on_one_channel(log, WhereCondition.parse(text), channels)
    rows = numbers_of(log.index.rows_between(applied.ch.number, None, end))
    with Tester() as tester:
        met = tester.test(applied, rows)
    times = applied.ch.times[rows]
    order = np.argsort(times, kind="stable")
    begins = order[rising(met[order], times[order], debounce)]
    values = _values(applied, rows[begins])
    return [Onset(time, text, row) for time, row in zip(times[begins].tolist(), values, strict=True)]


def _values(applied: Applied, rows: I64) -> Sequence[Mapping[str, Any]]:
    """Return the values of the fields in a condition, in the messages at *rows*."""
    from logreel.log.columns import RowOptions, own_paths
    from logreel.log.tables import TableReader
    from logreel.ops.query.where import TIME, TIME_NS

    named = {".".join(name): path for name, path in applied.columns.items() if path not in (TIME, TIME_NS)}
    if not named or not len(rows):
        return [{} for _ in rows]
    paths = list(dict.fromkeys(named.values()))
    reader = TableReader(applied.ch, own_paths(applied.ch, paths), RowOptions(explode=False, clock=True))
    order = np.argsort(rows)
    columns: list[list[Any]] = [[] for _ in paths]
    for batch in reader.batches(rows[order], 1 << 14):
        for values, column in zip(columns, batch.columns[1:], strict=True):
            values += column.to_pylist()
    by_row = [dict[str, Any]()] * len(rows)
    for place, row in zip(order.tolist(), zip(*columns, strict=True), strict=True):
        by_path = dict(zip(paths, row, strict=True))
        by_row[place] = {name: by_path[path] for name, path in named.items()}
    return by_row


def _changes(log: Log, text: str, wanted: str, end: int | None, debounce: int) -> list[Onset]:
    from logreel.ops.query.where import value_changes

    changes = value_changes(log, wanted, (None, end), MOST_CHANGES)
    onsets, since = list[Onset](), None
    for time, value in changes[1:]:
        if time is not None:
            if since is None or time - since >= debounce:
                onsets.append(Onset(time, text, {wanted: value}))
            since = time
    return onsets
