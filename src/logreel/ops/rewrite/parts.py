"""Which messages of a log are wanted, as arithmetic on its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from logreel.errors import UsageError
from logreel.index.gather import gather_times
from logreel.index.order import in_file_order
from logreel.index.ranges import Rows
from logreel.log.log import Channel, Log
from logreel.ops.rewrite.latched import in_force, is_parameters, is_static, is_told_latched


@dataclass(frozen=True, slots=True)
class Part:
    """Messages of a log.

    rows        which ones, by channel number; a channel without any is wanted, too
    start, end  the interval that was asked for, ns
    names       new topics, by channel number; the others keep theirs
    shift       ns to add to times
    in_force    what was in force at *start* is wanted, too, where that is no message
    floor       ns: messages from before, which are carried in since they are in force, are written with this time
    notes       sentences about what is wanted
    """

    log: Log
    rows: Mapping[int, Rows]
    start: int | None = None
    end: int | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    shift: int = 0
    in_force: bool = False
    floor: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def channels(self) -> list[Channel]:
        """The channels wanted, in file order."""
        return [ch for ch in self.log.channels.values() if ch.number in self.rows]

    def count(self, number: int) -> int:
        """How many messages of a channel are wanted."""
        rows = self.rows[number]
        return rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    @property
    def total(self) -> int:
        """How many messages are wanted."""
        return sum(map(self.count, self.rows))

    @property
    def is_whole(self) -> bool:
        """Whether all messages of the log are wanted."""
        return all(
            ch.number in self.rows and self.count(ch.number) == len(ch) for ch in self.log.channels.values()
        )

    @property
    def _begins_whole(self) -> bool:
        """Whether nothing is left out where the log begins, which may be before its first message."""
        within = self.start is None or (self.log.start is not None and self.start <= self.log.start)
        return within and all(ch.number in self.rows for ch in self.log.channels.values() if not ch.reserved)

    def begins(self) -> int | None:
        """ns of the first moment of what is wanted, *shift* included; None where there is none.

        Parameters do not count, nor what is carried in or was already old when the log began, unless there is nothing
        else.
        """
        if self.floor is not None:
            return self.floor + self.shift
        first = self.log.start
        if not self._begins_whole:
            first = _first_time(self.log, self.rows, self.start)
        return None if first is None else first + self.shift


def _first_time(log: Log, rows: Mapping[int, Rows], start: int | None) -> int | None:
    """The earliest of the times of *rows* that is not before *start* and the start of the log, or the earliest."""
    floor = max((t for t in (start, log.start) if t is not None), default=None)
    counted = [ch.number for ch in log.channels.values() if ch.number in rows and not is_parameters(ch)]
    gather_times((log.index, number) for number in counted)
    found, others = list[int](), list[int]()
    for number in counted:
        times = log.index.times(number)[rows[number]]
        if len(times):
            later = times if floor is None else times[times >= floor]
            found += [int(later.min())] if len(later) else []
            others.append(int(times.min()))
    return min(found or others, default=floor)


def whole(log: Log) -> Part:
    """All of a log."""
    return Part(log, {ch.number: slice(0, len(ch)) for ch in log.channels.values()})


def choose(
    log: Log,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: int | None = None,
    end: int | None = None,
    count: int | None = None,
    keep_latched: bool = False,
    latched: str | Iterable[str] = (),
) -> Part:
    """Messages of some channels with start <= time < end (ns).

    topics   names or shell patterns; None: all, the reserved ones included
    exclude  the same, for what is left out
    count    only so many in file order, reserved channels aside
    keep_latched  also the messages before *start* that still hold then: of latched channels, of those that others
                  cannot be read without, and the last change of each parameter
    latched  names or patterns of channels that count as latched, too

    Raises TopicError for a name or pattern that fits none, UsageError where nothing is left.
    """
    chosen = list(log.channels.values()) if topics is None else log.match(topics)
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    chosen = [ch for ch in chosen if ch.number not in without]
    if not chosen and log.channels:
        raise UsageError("no channel is left", path=log.name)
    rows = {ch.number: log.index.rows_between(ch.number, start, end) for ch in chosen}
    if count is not None:
        rows, end = _first(log, rows, count, end)
    part = Part(log, rows, start, end, in_force=keep_latched)
    plain = [ch for ch in chosen if not ch.reserved]
    if (
        (start, end) != (None, None)
        and not any(part.count(ch.number) for ch in plain)
        and any(map(len, plain))
    ):
        part = replace(part, notes=("no message of the chosen channels lies in the interval",))
    return _with_latched(part, start, latched) if keep_latched and start is not None else part


def _with_latched(part: Part, start: int, latched: str | Iterable[str]) -> Part:
    """*part* with what holds at its *start*, which gets the time of its first message."""
    named = {ch.number for ch in part.log.match(latched)} if latched else set[int]()
    by_name = [ch for ch in part.channels if is_static(ch) and not is_told_latched(ch)]
    counted = named | {ch.number for ch in part.channels if is_static(ch) or is_told_latched(ch)}
    carried = {ch.number: in_force(ch, start, ch.number in counted) for ch in part.channels}
    rows = {number: _with(carried[number], some) for number, some in part.rows.items()}
    moved = [ch for ch in part.channels if carried[ch.number] and not is_parameters(ch)]
    if not moved:
        return replace(part, rows=rows)
    notes = [f"{ch.topic!r} counts as latched by its name" for ch in by_name if ch in moved]
    many = ", ".join(f"{len(carried[ch.number])} of {ch.topic!r}" for ch in moved)
    notes.append(f"messages from before the start that still hold have the time of the first one: {many}")
    return replace(part, rows=rows, floor=part.begins(), notes=(*part.notes, *notes))


def with_members(log: Log, topics: str | Iterable[str]) -> list[str]:
    """The channels that *topics* name, and behind them those that some of them are joined from when they are read.

    Raises TopicError as ``Log.match`` does.
    """
    due = log.match(topics)
    numbers = {ch.number for ch in due}
    by_hash = {ch.metadata["hash"]: ch for ch in log.channels.values() if "hash" in ch.metadata}
    for ch in due:
        members = ch.metadata.get("members")
        for one in members.values() if isinstance(members, Mapping) else ():
            member = by_hash.get(one)
            if member is not None and member.number not in numbers:
                numbers.add(member.number)
                due.append(member)
    return [ch.topic for ch in due]


def _first(
    log: Log, rows: dict[int, Rows], count: int, end: int | None
) -> tuple[dict[int, Rows], int | None]:
    """The first *count* messages in file order, reserved channels up to their last time, and the new end."""
    # What the reader makes of other channels counts as little as what is reserved.
    made = {n for n, rule_set in enumerate(log.index.rules) if rule_set.synthetic is not None}
    reserved = made | {ch.number for ch in log.channels.values() if ch.reserved}
    plain = {n: r for n, r in rows.items() if n not in reserved}
    seen, last = dict.fromkeys(plain, 0), None
    for piece in in_file_order(log.index, plain):
        some = min(len(piece), count)
        for number, n in zip(*np.unique(piece.channel[:some], return_counts=True), strict=True):
            seen[int(number)] += int(n)
        if some:
            top = int(piece.time[:some].max())
            last = top if last is None else max(last, top)
        count -= some
        if not count:
            break
    cut = end if last is None else last + 1
    kept: dict[int, Rows] = {n: _head(plain[n], k) for n, k in seen.items()}
    for number in rows.keys() & reserved:
        within = log.index.times(number)[rows[number]] < (cut or 0)
        kept[number] = np.arange(len(log.index.times(number)))[rows[number]][within]
    return {n: kept[n] for n in rows}, cut


def _head(rows: Rows, count: int) -> Rows:
    return slice(rows.start, rows.start + count) if isinstance(rows, slice) else rows[:count]


def _with(some: list[int], rows: Rows) -> Rows:
    if not some:
        return rows
    others = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    return np.union1d(np.array(some, np.int64), others).astype(np.int64)
