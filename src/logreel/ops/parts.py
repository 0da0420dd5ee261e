"""Which messages of a log are wanted, as arithmetic on its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from logreel.errors import UsageError
from logreel.model.channel import Channel
from logreel.model.gather import gather_times
from logreel.model.log import Log
from logreel.model.order import by_rows
from logreel.model.pieces import Rows

PARAMETERS = "~parameter"


@dataclass(frozen=True, slots=True)
class Part:
    """Messages of a log.

    rows        which ones, by channel number; a channel without any is wanted, too
    start, end  the interval that was asked for, ns
    names       new topics, by channel number; the others keep theirs
    shift       ns to add to times
    in_force    what was in force at *start* is wanted, too, where that is no message
    floor       ns: messages from before, which are carried in since they are in force, are written with this time
    """

    log: Log
    rows: Mapping[int, Rows]
    start: int | None = None
    end: int | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    shift: int = 0
    in_force: bool = False
    floor: int | None = None

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
    counted = [ch.number for ch in log.channels.values() if ch.number in rows and not _is_parameters(ch)]
    gather_times((log.index, number) for number in counted)
    found, others = list[int](), list[int]()
    for number in counted:
        times = log.index.times(number)[rows[number]]
        if len(times):
            later = times if floor is None else times[times >= floor]
            found += [int(later.min())] if len(later) else []
            others.append(int(times.min()))
    return min(found or others, default=floor)


def _is_parameters(ch: Channel) -> bool:
    return ch.topic.split("@")[0] == PARAMETERS


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
) -> Part:
    """Messages of some channels with start <= time < end (ns).

    topics   names or shell patterns; None: all, the reserved ones included
    exclude  the same, for what is left out
    count    only so many in file order, reserved channels aside
    keep_latched  also the last earlier message of each latched channel, all of those that others cannot be read
                  without, and the last change of each parameter

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
    if not keep_latched or start is None:
        return part
    carried = {ch.number: in_force(ch, start) for ch in chosen}
    if any(carried.values()):
        rows = {number: _with(carried[number], some) for number, some in rows.items()}
        part = replace(part, rows=rows, floor=part.begins())
    return part


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
    made = {n for n, track in enumerate(log.index.tracks) if track.made is not None}
    reserved = made | {ch.number for ch in log.channels.values() if ch.reserved}
    plain = {n: r for n, r in rows.items() if n not in reserved}
    seen, last = dict.fromkeys(plain, 0), None
    for piece in by_rows(log.index, plain):
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


def in_force(ch: Channel, start: int) -> list[int]:
    """Rows of *ch* before *start* (ns) whose content is still in force then."""
    parameters = _is_parameters(ch)
    # Later messages of other channels cannot be read without them.
    needed = bool(ch.metadata.get("is_metadata"))
    if not (parameters or needed or ch.metadata.get("latching")):
        return []
    times = ch.times
    before = np.flatnonzero(times < start)
    if not len(before):
        return []
    if parameters:
        names = ch["name"][before]
        return sorted({str(name): int(row) for name, row in zip(names, before, strict=True)}.values())
    if needed:
        return [int(row) for row in before]
    return [int(before[np.flatnonzero(times[before] == times[before].max())[-1]])]


def _with(some: list[int], rows: Rows) -> Rows:
    if not some:
        return rows
    others = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    return np.union1d(np.array(some, np.int64), others).astype(np.int64)
