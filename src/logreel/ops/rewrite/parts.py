"""Selections of messages of a log, computed from its index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from logreel.dataclass import dataclass, field, replace
from logreel.errors import LogError, UsageError
from logreel.index.gather import Rows, gather_times, intersect_rows
from logreel.index.merge import count_before
from logreel.io.arrays import I64
from logreel.log.joined_log import JOINED, JoinedLog, earlier
from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF, Attachment, Parameter, is_marked_latched
from logreel.log.times import interval
from logreel.ops.selection import Selection

if TYPE_CHECKING:
    from logreel.ops.query.windows import OnsetWindow

PARAMETERS = "~parameter"
#: Last parts of topics that count as latched, since bags do not always store that: static transforms, maps, robot
#: descriptions.
STATIC = frozenset(
    ("tf_static", "map", "map_metadata", "static_map", "robot_description", "robot_description_semantic")
)
#: Side column with the number of the publisher.
_PUBLISHER = "connection"
#: Most messages that are decoded to find their frames.
_MOST = 20_000


def is_parameters(ch: Channel) -> bool:
    """Return whether the messages of *ch* are values of parameters."""
    return ch.topic.split("@")[0] == PARAMETERS


def is_latched_by_name(ch: Channel) -> bool:
    """Return whether *ch* counts as latched by its name."""
    topic = str(ch.metadata.get("topic", ch.topic))
    return topic.startswith("/") and topic.rpartition("/")[2] in STATIC


def in_force(ch: Channel, start: int, latched: bool | None = None) -> list[int]:
    """Return the rows of *ch* before *start* (ns) that are in force at *start*.

    latched  True: the last message of each publisher is in force, and of transforms the last one of each frame;
             None: if the log marks the channel as latched, or its name is that of a latched topic
    """
    if latched is None:
        latched = is_marked_latched(ch) or is_latched_by_name(ch)
    parameters = is_parameters(ch)
    # Other channels cannot be read without these messages.
    needed = bool(ch.metadata.get("is_metadata"))
    if not (parameters or needed or latched):
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
    rows = _last_of_frames(ch, start, before)
    return _last_of_publishers(ch, times, before) if rows is None else rows


def _last_of_publishers(ch: Channel, times: I64, before: I64) -> list[int]:
    last = dict[int, int]()
    publisher = _publishers(ch, before)
    for row in before[np.argsort(times[before], kind="stable")].tolist():
        last[publisher.get(row, 0)] = row
    return sorted(last.values())


def _publishers(ch: Channel, rows: I64) -> dict[int, int]:
    """Return the publisher by row; empty if the log does not store publishers."""
    index = ch.log.index
    rule = index.rules[ch.number].side_columns.get(_PUBLISHER)
    if rule is None:
        return {}
    return dict(zip(rows.tolist(), rule.values(index, ch.number, rows).tolist(), strict=True))


def _last_of_frames(ch: Channel, start: int, before: I64) -> list[int] | None:
    """Return the rows with the last transform of some frame; None if the messages are no transforms."""
    if len(before) > _MOST:
        return None
    try:
        messages = [m.decode() for m in ch.log.messages([ch.topic], end=start, order="file")]
    except LogError:
        return None
    frames = [_frames(values) for values in messages]
    if len(frames) != len(before) or not any(frames):
        return None
    times = ch.times[before]
    seen, last = set[str](), list[int]()
    for i in np.argsort(times, kind="stable")[::-1].tolist():
        if frames[i] - seen:
            seen |= frames[i]
            last.append(int(before[i]))
    return sorted(last)


def _frames(values: Mapping[str, Any]) -> set[str]:
    """Return the child frames of a message of transforms."""
    transforms = values.get("transforms")
    if not isinstance(transforms, list):
        return set()
    return {
        str(transform["child_frame_id"])
        for transform in transforms
        if isinstance(transform, Mapping) and "child_frame_id" in transform
    }


#: All of a log.
ALL = Selection()


@dataclass(frozen=True, slots=True)
class Part:
    """Selected messages of a log.

    rows        rows by channel number; channels without rows are selected, too
    start, end  requested interval, ns
    names       new topics by channel number; other channels keep theirs
    shift       ns to add to times
    in_force    True: also select content in force at *start* that is not stored as messages
    floor       ns: time that earlier messages, selected since they are in force, are written with
    notes       sentences about the selection
    restamped   numbers of channels with other times than those in the fields of their messages
    filtered    True: messages were selected by conditions, not only by time
    content_shift  ns to add to times besides those of messages; None: *shift*
    clock       clock of the messages with *shift*, as in Target; empty: that of the Target
    joined      by which facts logs are of different recordings that become one anyway; empty: by none
    windows     the windows that the messages are in, if it was asked for these
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
    restamped: Collection[int] = ()
    filtered: bool = False
    joined: str = ""
    content_shift: int | None = None
    clock: str = ""
    windows: tuple[OnsetWindow, ...] = ()

    @property
    def channels(self) -> list[Channel]:
        """Selected channels in file order."""
        return [ch for ch in self.log.channels.values() if ch.number in self.rows]

    def count(self, number: int) -> int:
        """Return the number of selected messages of a channel."""
        rows = self.rows[number]
        return rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    @property
    def total(self) -> int:
        """Number of selected messages."""
        return sum(map(self.count, self.rows))

    @property
    def is_whole(self) -> bool:
        """Whether all messages of the log are selected."""
        return all(
            ch.number in self.rows and self.count(ch.number) == len(ch) for ch in self.log.channels.values()
        )

    @property
    def _begins_whole(self) -> bool:
        """Whether the selection includes the start of the log, which may be before its first message."""
        within = self.start is None or (self.log.start is not None and self.start <= self.log.start)
        within = within and not self.filtered
        # Messages that were made of others add no time of their own.
        return within and all(
            ch.number in self.rows
            for ch in self.log.channels.values()
            if not ch.reserved and MADE_OF not in ch.metadata
        )

    def begins(self) -> int | None:
        """Return the first time of the selection with *shift*, ns; None if it is empty.

        Parameters, and messages from before *start* or the start of the log, count only if there is nothing else.
        """
        if self.floor is not None:
            return self.floor + self.shift
        first = self.log.start
        if not self._begins_whole:
            first = _first_time(self.log, self.rows, self.start)
        return None if first is None else first + self.shift


def by_file(part: Part) -> list[Part]:
    """Return a part of a log of several files as parts of the logs of these files; any other part as it is."""
    log = part.log
    if not isinstance(log, JoinedLog):
        return [part]
    parts = []
    for n, (file, shift) in enumerate(zip(log.parts, log.shifts, strict=True)):
        rows, names = dict[int, Rows](), dict[int, str]()
        for ch in part.channels:
            for member in ch.members:
                if member.log is file:
                    rows[member.number] = slice(0, 0)
                    if ch.number in part.names:
                        names[member.number] = part.names[ch.number]
            for m in log.index.members(ch.number, part.rows[ch.number]) or ():
                if m.part == n:
                    rows[m.channel] = m.rows
        start, end = earlier((part.start, part.end), shift)
        floor = None if part.floor is None else part.floor - shift
        notes = part.notes if n == 0 else ()
        parts.append(
            Part(
                file,
                rows,
                start,
                end,
                names,
                part.shift + shift,
                part.in_force,
                floor,
                notes,
                filtered=part.filtered,
                joined=str(log.metadata.get(JOINED, "")) if n == 0 else "",
            )
        )
    return parts


def _first_time(log: Log, rows: Mapping[int, Rows], start: int | None) -> int | None:
    """Return the first time of *rows* not before *start* and the start of the log, else the first time; or None."""
    floor = max((t for t in (start, log.start) if t is not None), default=None)
    counted = [ch.number for ch in log.channels.values() if ch.number in rows and not is_parameters(ch)]
    gather_times([(log.index, number) for number in counted])
    firsts, others = list[int](), list[int]()
    for number in counted:
        times = log.index.times_of(number, rows[number])
        if len(times):
            later = times if floor is None else times[times >= floor]
            firsts += [int(later.min())] if len(later) else []
            others.append(int(times.min()))
    return min(firsts or others, default=floor)


def whole_log(log: Log) -> Part:
    """Return all of a log."""
    return Part(log, {ch.number: slice(0, len(ch)) for ch in log.channels.values()})


def part_of(log: Log, selection: Selection) -> Part:
    """Return the messages of *log* that *selection* means; raises as ``select_part`` does."""
    log = log if selection.segment is None else log.segment(selection.segment)
    if not selection.is_part:
        return whole_log(log)
    selection = selection.for_log
    start, end = interval(log, selection.start, selection.end)
    topics = None if selection.topics is None else with_members(log, selection.topics)
    return select_part(log, replace(selection, topics=topics, start=start, end=end))


def select_part(log: Log, selection: Selection = ALL) -> Part:
    """Select messages of channels with start <= time < end (ns), as *selection* says.

    topics   None: all, also reserved ones
    count    only the first *count* messages in file order, not counting reserved channels
    keep_latched  also messages before *start* that are still in force: of latched channels, of channels that others
                  need to be read, and the last change of each parameter

    Raises TopicError for a name or pattern that matches nothing, UsageError if no channel is left, and for a condition
    that cannot be read or applied.
    """
    start, end = bounds_of(selection)
    where, keeps_latched = selection.where, selection.keeps_latched
    windows = _windows(log, selection)
    if windows:
        start, end = windows[0].start, windows[-1].end
    channels = list(log.channels.values()) if selection.topics is None else log.match(selection.topics)
    without = {ch.number for ch in log.match(selection.exclude)} if selection.exclude else set()
    channels = [ch for ch in channels if ch.number not in without]
    if not channels and log.channels:
        raise UsageError("no channel is left", path=log.name)
    notes: tuple[str, ...] = ()
    matches: Mapping[int, I64] = {}
    if where:
        from logreel.ops.query.where import matching

        # What is in force at the start has to meet the conditions, too.
        matched = matching(log, where, channels, None if keeps_latched else start, end)
        matches, notes = matched.rows, matched.notes
        channels = [ch for ch in channels if ch.number in matches]
    rows = {ch.number: _rows_in(log, ch.number, start, end, windows) for ch in channels}
    rows |= {number: intersect_rows(rows[number], matching_rows) for number, matching_rows in matches.items()}
    if selection.count is not None:
        rows, end = _first(log, rows, selection.count, end)
    chosen = bool(where or windows)
    part = Part(log, rows, start, end, in_force=keeps_latched, notes=notes, filtered=chosen, windows=windows)
    plain = [ch for ch in channels if not ch.reserved]
    if (
        (start, end) != (None, None)
        and not any(part.count(ch.number) for ch in plain)
        and any(map(len, plain))
        and not chosen
    ):
        part = replace(part, notes=("no message of the chosen channels lies in the interval",))
    if where and not part.total:
        part = replace(part, notes=(*notes, "no message meets the condition"))
    if not keeps_latched or start is None:
        return part
    return _with_latched(part, start, selection.latched, matches)


def _windows(log: Log, selection: Selection) -> tuple[OnsetWindow, ...]:
    """Return the windows that are asked for; none if it is not asked for windows."""
    if selection.around is None:
        return ()
    from logreel.ops.query.windows import windows_of

    return tuple(windows_of(log, selection.around, bounds_of(selection)))


def _rows_in(
    log: Log, number: int, start: int | None, end: int | None, windows: Sequence[OnsetWindow]
) -> Rows:
    """Return the rows of a channel in an interval, or in the windows, of which these are the bounds."""
    if len(windows) < 2:
        return log.index.rows_between(number, start, end)
    inside = np.zeros(log.index.count(number), np.bool_)
    for window in windows:
        inside[log.index.rows_between(number, window.start, window.end)] = True
    return np.flatnonzero(inside)


def bounds_of(selection: Selection) -> tuple[int | None, int | None]:
    """Return the bounds of a selection whose times are ns already."""
    return cast("int | None", selection.start), cast("int | None", selection.end)


def _with_latched(
    part: Part, start: int, latched: str | Iterable[str], matches: Mapping[int, I64] = MappingProxyType({})
) -> Part:
    """Return *part* with the messages in force at *start*, written with the time of the first message.

    matches  only these rows of the channels in it, by number
    """
    named = {ch.number for ch in part.log.match(latched)} if latched else set[int]()
    by_name = [ch for ch in part.channels if is_latched_by_name(ch) and not is_marked_latched(ch)]
    counted = named | {ch.number for ch in part.channels if is_latched_by_name(ch) or is_marked_latched(ch)}
    carried = {ch.number: in_force(ch, start, ch.number in counted) for ch in part.channels}
    # Between two windows, what changes before the later one keeps its time.
    changed = {
        ch.number: sorted(
            {row for w in part.windows[1:] for row in in_force(ch, w.start, ch.number in counted)}
        )
        for ch in part.channels
    }
    for number, rows_of_channel in matches.items():
        for rows_in_force in (carried, changed):
            kept = np.intersect1d(rows_in_force[number], rows_of_channel)
            rows_in_force[number] = kept.astype(np.int64).tolist()
    rows = {
        number: _with(sorted({*carried[number], *changed[number]}), rows_of_channel)
        for number, rows_of_channel in part.rows.items()
    }
    moved = [ch for ch in part.channels if carried[ch.number] and not is_parameters(ch)]
    if not moved:
        return replace(part, rows=rows)
    notes = [f"{ch.topic!r} counts as latched by its name" for ch in by_name if ch in moved]
    counts = ", ".join(f"{len(carried[ch.number])} of {ch.topic!r}" for ch in moved)
    notes.append(f"messages from before the start that still hold have the time of the first one: {counts}")
    return replace(part, rows=rows, floor=part.begins(), notes=(*part.notes, *notes))


def with_members(log: Log, topics: str | Iterable[str]) -> list[str]:
    """Return the channels that *topics* name, followed by those that readers join them from.

    Raises TopicError as ``Log.match`` does.
    """
    due = log.match(topics)
    numbers = {ch.number for ch in due}
    by_hash = {ch.metadata["hash"]: ch for ch in log.channels.values() if "hash" in ch.metadata}
    for ch in due:
        members = ch.metadata.get("members")
        for member_hash in members.values() if isinstance(members, Mapping) else ():
            member = by_hash.get(member_hash)
            if member is not None and member.number not in numbers:
                numbers.add(member.number)
                due.append(member)
    return [ch.topic for ch in due]


def _first(
    log: Log, rows: dict[int, Rows], count: int, end: int | None
) -> tuple[dict[int, Rows], int | None]:
    """Return rows of the first *count* messages in file order, reserved channels up to their last time, and the end."""
    # Synthetic messages do not count, as those of reserved channels.
    made = {n for n, rule_set in enumerate(log.index.rules) if rule_set.synthetic is not None}
    reserved = made | {ch.number for ch in log.channels.values() if ch.reserved}
    plain = {n: r for n, r in rows.items() if n not in reserved}
    seen, last = dict.fromkeys(plain, 0), None
    for batch in log.index.select_rows(plain):
        taken = min(len(batch), count)
        for number, n in zip(*np.unique(batch.channel[:taken], return_counts=True), strict=True):
            seen[int(number)] += int(n)
        if taken:
            top = int(batch.time[:taken].max())
            last = top if last is None else max(last, top)
        count -= taken
        if not count:
            break
    cut = end if last is None else last + 1
    kept: dict[int, Rows] = {n: _head(plain[n], k) for n, k in seen.items()}
    for number in rows.keys() & reserved:
        within = log.index.times_of(number, rows[number]) < (cut or 0)
        kept[number] = np.arange(log.index.count(number))[rows[number]][within]
    return {n: kept[n] for n in rows}, cut


def _head(rows: Rows, count: int) -> Rows:
    return slice(rows.start, rows.start + count) if isinstance(rows, slice) else rows[:count]


def _with(more_rows: list[int], rows: Rows) -> Rows:
    if not more_rows:
        return rows
    others = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    return np.union1d(np.array(more_rows, np.int64), others).astype(np.int64)


def compare_checksums(log: Log, rows: Mapping[int, Rows]) -> None:
    """Compare the checksums of messages, *rows* by channel number, as far as reading them does not; add Problems.

    For functions that copy messages: what is wrong in the file would get a right checksum in a new one.
    """
    compare = log.scan.checksums
    if compare is None:
        return
    table = log.index.table
    touched = np.zeros(len(table.base), np.bool_)
    for number, wanted in rows.items():
        if log.index.rules[number].synthetic is None:
            first, last = table.run(number)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(last - first)])
            touched |= np.diff(count_before(wanted, ends)) > 0
    compare(np.flatnonzero(touched))


def shift_clock(log: Log, shift: int) -> Log:
    """Return *log* with *shift* ns added to start and end, and to the times of parameters and attachments.

    ``utc_offset`` is reduced by *shift*; if it becomes 0, the epoch becomes ``unix``. Messages keep their times: their
    writer adds the shift.
    """
    if not shift:
        return log

    def later(time: int | None) -> int | None:
        return None if time is None else time + shift

    def parameters() -> list[Parameter]:
        return [
            replace(
                parameter,
                changes=tuple(replace(change, time=change.time + shift) for change in parameter.changes),
            )
            for parameter in log.parameters.values()
        ]

    def attachments() -> list[Attachment]:
        return [replace(attachment, time=later(attachment.time)) for attachment in log.attachments.values()]

    offset = log.utc_offset
    return log.derive(
        bounds=lambda: (later(log.start), later(log.end)),
        parameters=parameters,
        attachments=attachments,
        utc_offset=lambda: None if offset is None else offset - shift,
        epoch="unix" if offset == shift else log.epoch,
    )
