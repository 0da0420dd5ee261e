"""How one log is divided into pieces of bounded size by its index: topics, then windows of time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logreel.errors import LogError, TopicError, UsageError
from logreel.fleet.source_files import Fingerprint, fingerprint
from logreel.log.times import interval
from logreel.registry.open import open_log

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log
    from logreel.log.times import Time


@dataclass(frozen=True, slots=True)
class Piece:
    """Some channels of a log in a window of time (ns of its clock, half-open), and what the index says they hold."""

    topics: tuple[str, ...]
    start: int | None
    end: int | None
    bytes: int
    messages: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The pieces of one log; none if it cannot be opened, for which *error* is the reason, or if nothing is wanted."""

    fingerprint: Fingerprint | None
    pieces: tuple[Piece, ...]
    error: str = ""


class _Load(NamedTuple):
    """A channel with the messages of the interval: how many, and their payload bytes."""

    ch: Channel
    messages: int
    bytes: int


def error_text(error: BaseException) -> str:
    """Return what an error says, without the path, for a row of the catalogue."""
    if isinstance(error, LogError):
        return error.text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return f"{type(error).__name__}: {error}"


def cut_log(
    path: str,
    topics: Sequence[str] | None,
    start: Time | None,
    end: Time | None,
    target_bytes: int,
    passing: Collection[int] = (),
) -> Cut:
    """Return the pieces of about *target_bytes* of the log at *path*.

    passing  error numbers of faults that may pass, for which OSError is raised; all else that is wrong with the file
             is in the result
    """
    mark = None
    try:
        mark = fingerprint(path)
        with open_log(path) as log:
            try:
                first, last = interval(log, start, end)
                channels = _chosen(log, topics)
            except UsageError as error:
                return Cut(mark, (), error.text)
            loads = [_load(log, ch, first, last) for ch in channels]
            return Cut(mark, tuple(_pieces(log, loads, first, last, target_bytes)))
    except (LogError, OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno in passing:
            raise
        return Cut(mark, (), error_text(error))


def _chosen(log: Log, topics: Sequence[str] | None) -> list[Channel]:
    """Return the channels that any of *topics* selects, in file order; a log may have none of some."""
    found: dict[str, Channel] = {}
    for topic in [None] if topics is None else topics:
        with suppress(TopicError):
            found |= {ch.topic: ch for ch in log.match(topic)}
    return [ch for name, ch in log.channels.items() if name in found]


def _load(log: Log, ch: Channel, first: int | None, last: int | None) -> _Load:
    """Return how much of a channel lies in the interval."""
    count = len(ch)
    size = ch.bytes if log.index.sizes_are_cheap else None
    if size is None:
        # Sizes of compressed messages are known only after decompression.
        size = log.size * count // max(1, sum(map(len, log.channels.values())))
    if first is None and last is None:
        return _Load(ch, count, size)
    rows: Any = log.index.rows_between(ch.number, first, last)
    inside = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
    return _Load(ch, inside, size * inside // max(1, count))


def _pieces(log: Log, loads: list[_Load], first: int | None, last: int | None, target: int) -> list[Piece]:
    """Return large channels divided by time, and groups of small ones, in order of the first channel of each."""
    found: list[Piece] = []
    group: list[_Load] = []

    def close() -> None:
        if group:
            names = tuple(one.ch.topic for one in group)
            total = sum(one.bytes for one in group), sum(one.messages for one in group)
            found.append(Piece(names, first, last, *total))
            group.clear()

    for load in loads:
        if load.bytes > target and load.messages > 1:
            close()
            found += _windows(log, load, first, last, target)
            continue
        if sum(one.bytes for one in group) + load.bytes > target:
            close()
        group.append(load)
    close()
    return found


def _windows(log: Log, load: _Load, first: int | None, last: int | None, target: int) -> list[Piece]:
    """Return windows of one channel with about equal numbers of messages.

    The first and the last window have the bounds of the interval, so that together they hold each of its messages
    once, in any order of times.
    """
    ch = load.ch
    rows = log.index.rows_between(ch.number, first, last)
    times = np.sort(ch.times[rows])
    count = min(-(-load.bytes // target), len(times))
    at = np.arange(1, count, dtype=np.int64) * len(times) // count
    edges = [int(t) for t in np.unique(times[at]) if t > times[0]]
    bounds = [first, *edges, last]
    places = [0, *np.searchsorted(times, edges).tolist(), len(times)]
    return [
        Piece((ch.topic,), bounds[n], bounds[n + 1], load.bytes * m // max(1, len(times)), m)
        for n, m in enumerate(np.diff(places).tolist())
    ]
