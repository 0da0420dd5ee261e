"""One or several logs as one sequence of messages, readable in both directions from any position."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from logreel.errors import TopicError, UsageError
from logreel.index.block_table import TIME_MIN
from logreel.index.gather import Rows, intersect_rows
from logreel.index.merge import Merged, Queue, merged, part_of
from logreel.io.arrays import I64
from logreel.io.source import FILE, SHARES_VIEWS, slices
from logreel.layout.layout import Layout
from logreel.log.joined_log import Together, clock_shift
from logreel.log.log import Channel, Log, Message
from logreel.log.scan import PayloadDecoder, is_marked_latched
from logreel.log.times import Length, Time, duration_ns, interval
from logreel.log.topic_match import match_topics
from logreel.ops.rewrite.merge import kept_topics
from logreel.ops.rewrite.parts import in_force, is_latched_by_name
from logreel.ops.selection import Selection, SpanOptions


def renamed(channels: Sequence[Channel], prefix: str, names: Mapping[str, str]) -> list[Channel]:
    """Return *channels* with the topics that they are played with; a channel that keeps its topic is the same object.

    prefix  text in front of each topic, except reserved ones and those in *names*; ``//`` becomes ``/``, and a topic
            that begins with ``/`` still does
    names   complete new topics by old ones; an old topic is that of the log, or that with the prefix; a ``/`` at the
            begin of both may be left out, as in ROS

    Channels of one topic with other definitions (``/imu[1]``) keep that number. Raises TopicError for an old topic that
    no channel has, UsageError for an empty new one.
    """
    new = NewTopics(prefix, names)
    result = [new.of(ch) for ch in channels]
    new.check(channels)
    return result


class _Renamed(Channel):
    """A channel with another topic; all else is that of *ch*, as it is at present where its log grows."""

    def __init__(self, ch: Channel, topic: str) -> None:
        self._ch, self.topic = ch, topic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ch, name)

    # What a class of channels may have of its own, too.

    @property
    def members(self) -> tuple[Channel, ...]:  # type: ignore[override]
        return self._ch.members

    @property
    def shifts(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._ch.shifts

    @property
    def layout(self) -> Layout:
        return self._ch.layout

    @property
    def decoder(self) -> PayloadDecoder | None:
        return self._ch.decoder

    @property
    def is_uniform(self) -> bool:
        return self._ch.is_uniform

    def decode(self, data: memoryview, offset: int | None = None) -> dict[str, Any]:
        return self._ch.decode(data, offset)


class NewTopics:
    """The topics that channels are played with, of channels that may come one after the other; see ``renamed``."""

    def __init__(self, prefix: str, names: Mapping[str, str]) -> None:
        for old, new in names.items():
            if not new or not old:
                raise UsageError(f"a topic is renamed from one name to another, not from {old!r} to {new!r}")
        self._prefix, self._names, self._used = prefix, names, set[str]()
        self._copies: dict[Channel, Channel] = {}

    def of(self, ch: Channel) -> Channel:
        """Return *ch* with its topic of the replay: the same object in every call, with the present content of *ch*."""
        topic = _topic(ch.topic, self._prefix, self._names, self._used)
        if topic == ch.topic:
            return ch
        if ch not in self._copies:
            self._copies[ch] = _Renamed(ch, topic)
        return self._copies[ch]

    def check(self, channels: Sequence[Channel]) -> None:
        """Raise TopicError for an old topic that none of *channels*, all channels that were renamed, has."""
        for old in self._names:
            if old not in self._used:
                raise TopicError("channel to be renamed", old, [ch.topic for ch in channels])


def _topic(topic: str, prefix: str, names: Mapping[str, str], used: set[str]) -> str:
    """Return the new name of *topic*; adds the key of *names* that it took to *used*."""
    name, bracket, number = topic.partition("[")
    full = name if name[:1] == "~" else _prefixed(name, prefix)
    for spelling in (topic, full, name):
        if spelling in names:
            used.add(spelling)
            return names[spelling] + (bracket + number if spelling != topic else "")
        if spelling[:1] == "/" and spelling[1:] in names:
            used.add(spelling[1:])
            return "/" + names[spelling[1:]].removeprefix("/") + bracket + number
    return full + bracket + number


def _prefixed(name: str, prefix: str) -> str:
    if not prefix:
        return name
    if name[:1] == "/" and prefix[:1] != "/":
        prefix = "/" + prefix
    return prefix + (name[1:] if name[:1] == "/" and prefix[-1:] == "/" else name)


_new: Callable[[type[Message], tuple[Any, ...]], Message] = tuple.__new__


class PlayingOptions(TypedDict, total=False):
    """Members of a Playing as keyword arguments; see there."""

    rate: float
    duration: Length | None
    align: str | None
    loop: bool
    paused: bool
    skip_silence: Length | None
    delay: Length | None
    prefix: str
    rename: Mapping[str, str] | None
    pause_topics: str | Iterable[str]
    clock: float | None
    stay: bool | None


class PlayedOptions(SpanOptions, PlayingOptions, total=False):
    """What is played, and how, as keyword arguments."""

    count: int | None
    latched: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Playing:
    """How logs are played; what is played is a Selection.

    rate      speed relative to the recording; 0: as fast as possible; negative: backwards
    duration  longest duration, ns or text
    align     shift of the clocks of the second and later logs, as for ``merge``
    loop      start again at the end
    paused    wait for ``resume`` or ``step``
    skip_silence  shorten intervals without messages to this duration, ns or text
    delay     wait so long before the first message, ns or text; None: as the sink requires
    prefix    text in front of all topics
    rename    new topics by those of the logs
    pause_topics  names or patterns of channels; the Player pauses before each of their messages
    clock     messages ``/clock`` per second, with the time of the replay; None: none
    stay      wait at the end for ``seek`` or ``stop``; None: if the sink requires it
    """

    rate: float = 1.0
    duration: Length | None = None
    align: str | None = None
    loop: bool = False
    paused: bool = False
    skip_silence: Length | None = None
    delay: Length | None = None
    prefix: str = ""
    rename: Mapping[str, str] | None = None
    pause_topics: str | Iterable[str] = ()
    clock: float | None = None
    stay: bool | None = None

    def __post_init__(self) -> None:
        checked_rate(self.rate)
        if self.clock is not None and not 0 < self.clock <= 1e6:
            raise UsageError(f"a clock ticks more than 0 times a second, not {self.clock} times")
        if (self.silence_ns or 0) < 0:
            raise UsageError(f"a silence is not shortened to {self.skip_silence}")
        if (self.delay_ns or 0) < 0:
            raise UsageError(f"a delay is not negative, as {self.delay!r} is")

    @classmethod
    def of(cls, playing: Self | None, options: Mapping[str, Any]) -> Self:
        """Return *playing*, or if it is None the one whose members are among *options*; UsageError for both."""
        members = {name: options[name] for name in PlayingOptions.__annotations__ if name in options}
        if playing is None:
            return cls(**members)
        if members:
            raise UsageError(f"the options say that already: leave out {', '.join(members)}")
        return playing

    @property
    def silence_ns(self) -> int | None:
        """Longest interval without messages, ns; None: as they are."""
        return None if self.skip_silence is None else duration_ns(self.skip_silence)

    @property
    def delay_ns(self) -> int | None:
        """Wait before the first message, ns; None: as the sink requires."""
        return None if self.delay is None else duration_ns(self.delay)


def checked_rate(rate: float) -> float:
    """Return *rate* as float; raises UsageError for one that is too large, or no number."""
    if not abs(rate) < 1e9:
        raise UsageError(f"a rate is a number below a thousand million, not {rate}")
    return float(rate)


@dataclass(frozen=True)
class Run:
    """Messages in playing order; payloads are read on access.

    channels  channels of the replay
    view      function from log number and chunk to the bytes of the chunk
    channel   int32[n]  index in *channels*
    time      int64[n]  replay time, ns
    origin    int32[n]  number of the log
    chunk     int32[n]  chunk of that log
    offset    int64[n]  offset of the payload in the chunk
    size      int64[n]  bytes of the payload
    """

    channels: Sequence[Channel]
    view: Callable[[int, int], memoryview]
    channel: NDArray[np.int32]
    time: I64
    origin: NDArray[np.int32]
    chunk: NDArray[np.int32]
    offset: I64
    size: I64

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> Run:
        return Run(
            self.channels,
            self.view,
            self.channel[rows],
            self.time[rows],
            self.origin[rows],
            self.chunk[rows],
            self.offset[rows],
            self.size[rows],
        )

    @cached_property
    def times(self) -> list[int]:
        """Times as list of int."""
        times: list[int] = self.time.tolist()
        return times

    @cached_property
    def _places(self) -> list[int]:
        offsets: list[int] = self.offset.tolist()
        return offsets

    @cached_property
    def _ends(self) -> list[int]:
        ends: list[int] = (self.offset + self.size).tolist()
        return ends

    @cached_property
    def _of(self) -> list[Channel]:
        return list(map(self.channels.__getitem__, self.channel.tolist()))

    @cached_property
    def _views(self) -> list[memoryview]:
        """The chunk of each message."""
        turns = self._turns
        edges = [*turns.tolist(), len(self)]
        known: dict[tuple[int, int], memoryview] = {}
        for place in zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True):
            if place not in known:
                known[place] = self.view(*place)
        of = zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True)
        repeated = map(itertools.repeat, map(known.__getitem__, of), map(int.__sub__, edges[1:], edges))
        return list(itertools.chain.from_iterable(repeated))

    @property
    def _turns(self) -> I64:
        """int64[k]: indices of the first message of each series in one chunk."""
        other = (np.diff(self.chunk) != 0) | (np.diff(self.origin) != 0)
        return np.concatenate([[0], np.flatnonzero(other) + 1])[: len(self)].astype(np.int64)

    @property
    def chunks(self) -> set[tuple[int, int]]:
        """Log number and chunk number of all chunks with messages."""
        turns = self._turns
        return set(zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True))

    def load(self) -> None:
        """Read and decompress all chunks, so that ``messages`` does not wait for them."""
        _ = self.times, self._places, self._ends, self._of, self._views

    def payloads(self) -> Iterator[memoryview]:
        """Yield the payload of each message."""
        for view, start, end in zip(self._views, self._places, self._ends, strict=True):
            yield view[start:end] if SHARES_VIEWS else slices(view, [start], [end])[0]

    def messages(self, first: int = 0, last: int | None = None) -> Iterator[Message]:
        """Yield the messages from index *first* to *last*, exclusive."""
        span = slice(first, last)
        places = self._places[span]
        data = [
            view[start:end] if SHARES_VIEWS else slices(view, [start], [end])[0]
            for view, start, end in zip(self._views[span], places, self._ends[span], strict=True)
        ]
        rows = zip(self.times[span], self._of[span], data, places, strict=True)
        # As Message._make, without a Python call per message.
        return map(_new, itertools.repeat(Message), rows)


#: Most messages of a run, and bytes of their decompressed chunks.
RUN, RUN_BYTES = 2048, 8 << 20


@dataclass(frozen=True, slots=True)
class PlayPosition:
    """A position between two messages.

    time    ns; earlier messages are before the position, later ones after it
    passed  number of messages of that time already played
    step    1: played forwards, so the first ones; -1: played backwards, so the last ones
    """

    time: int
    passed: int = 0
    step: int = 1

    def behind(self, time: int, count: int, step: int) -> PlayPosition:
        """Return the position after *count* more messages of *time* in direction *step*."""
        more = self.passed if (time, step) == (self.time, self.step) else 0
        return PlayPosition(time, more + count, step)


class Timeline:
    """Messages of *logs* with start <= time < end, ordered by time, then by log, then by file position.

    Times are those of the clock of the first log.

    selection  what is played: topics, exclude, start, end, count and latched
    playing    of its members, duration, align, prefix and rename

    channels    selected channels, log by log in file order, with the topics that they are played with
    start, end  first and last time of the replay, ns; not affected by single wrong times
    """

    def __init__(
        self,
        logs: Sequence[Log],
        selection: Selection = Selection(),  # noqa: B008 # frozen
        playing: Playing = Playing(),  # frozen
    ) -> None:
        if not logs:
            raise UsageError("there is nothing to play")
        self.logs = list(logs)
        first = self.logs[0]
        self.name, self.epoch, self.utc_offset = first.name, first.epoch, first.utc_offset
        self._shifts = [0, *(clock_shift(log, first, playing.align) for log in self.logs[1:])]
        self._together = Together(self.logs, self._shifts)
        self.start, self.end = self._together.start, self._together.end
        self.bounds = self._bounds(selection.start, selection.end, playing.duration)
        self._clip()
        #: The selected channels as the logs name them.
        self._own: list[Channel] = []
        #: Log number of each channel, int32[c].
        origin: list[int] = []
        for n, (log, names) in enumerate(zip(self.logs, kept_topics(self.logs, selection), strict=True)):
            chosen = [ch for ch in log.match(names) if selection.topics is not None or not ch.reserved]
            self._own += chosen
            origin += [n] * len(chosen)
        self._origin = np.array(origin, np.int32)
        self.channels = renamed(self._own, playing.prefix, playing.rename or {})
        named = (
            kept_topics(self.logs, Selection(selection.latched))
            if selection.latched
            else [set[str]() for _ in self.logs]
        )
        #: Whether each channel is latched.
        self._latched = [
            ch.topic in named[n] or is_marked_latched(ch) or is_latched_by_name(ch)
            for ch, n in zip(self._own, origin, strict=True)
        ]
        #: Rows of each channel that are played; None: all between the bounds.
        self._first: list[Rows] | None = None
        if selection.count is not None:
            self._first = self._take(selection.count)

    # ------------------------------------------------------------------------------------------------- times

    def _bounds(
        self, start: Time | None, end: Time | None, duration: Length | None
    ) -> tuple[int | None, int | None]:
        first, last = interval(self, start, end)
        if duration is not None:
            length = duration_ns(duration)
            begin = first if first is not None else self.start
            if length < 0:
                raise UsageError(f"a duration is not negative, as {duration!r} is")
            if begin is not None:
                last = begin + length if last is None else min(last, begin + length)
        return first, last

    def _clip(self) -> None:
        if self.start is None or self.end is None:
            return
        first, last = self.bounds
        self.start = self.start if first is None else max(self.start, first)
        self.end = max(self.start, self.end if last is None else min(self.end, last))

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return whether any message has start <= time < end (ns), also outside of ``start`` and ``end``."""
        return self._together.holds_between(start, end)

    def clamp(self, time: int) -> int:
        """Return *time* limited to start and end; 0 if the logs have no times."""
        if self.start is None or self.end is None:
            return 0
        return min(max(time, self.start), self.end)

    def shift(self, ch: Channel) -> int:
        """Return the ns added to the times of a channel; 0 for a channel of another log."""
        return next((shift for log, shift in zip(self.logs, self._shifts, strict=True) if log is ch.log), 0)

    def _take(self, count: int) -> list[Rows]:
        """Return rows per channel of the first *count* messages, and end the replay at the last of them."""
        if count < 0:
            raise UsageError(f"there are no {count} messages")
        counts, last = np.zeros(len(self.channels), np.int64), None
        queues = self._queues(None, None)
        for batch in merged(queues, first=RUN):
            taken = min(count, len(batch.time))
            counts += np.bincount(batch.queue[:taken], minlength=len(counts))
            last = int(batch.time[taken - 1]) if taken else last
            count -= taken
            if not count:
                break
        if last is not None and self.start is not None and self.end is not None:
            self.end = min(max(self.start, last), self.end)
        return [
            _earliest(queue.index.times(queue.channel), queue.rows, n)
            for queue, n in zip(queues, counts.tolist(), strict=True)
        ]

    # ---------------------------------------------------------------------------------------------- messages

    def facing(self, place: PlayPosition, step: int) -> PlayPosition:
        """Return the same position for direction *step*."""
        if step == place.step:
            return place
        return PlayPosition(place.time, self._count_at(place.time) - place.passed, step)

    def runs(self, place: PlayPosition) -> Iterator[Run]:
        """Yield the messages after *place* in its direction."""
        skip, step = place.passed, place.step
        span = (place.time, None) if step > 0 else (None, place.time + 1)
        for batch in merged(self._queues(*span), reverse=step < 0, first=RUN):
            run = self._run(batch)
            if skip:
                passed = min(skip, len(run))
                run, skip = run[passed:], skip - passed
            yield from self._bounded(run)

    def numbers(self, topics: str | Iterable[str]) -> frozenset[int]:
        """Return the numbers in ``channels`` of those that names or patterns select; raises TopicError as usual."""
        if not topics:
            return frozenset()
        named = set(match_topics([ch.topic for ch in self._own], topics))
        return frozenset(n for n, ch in enumerate(self._own) if ch.topic in named)

    def is_latched(self, ch: Channel) -> bool:
        """Return whether one of ``channels`` is latched: marked as such in its log, by its name, or on request."""
        return any(
            ch is other and latched for other, latched in zip(self.channels, self._latched, strict=True)
        )

    def in_force(self, time: int, only: Channel | None = None) -> Iterator[Run]:
        """Yield messages from before *time* that are in force: latched ones, and those that others need to be read.

        only  one of ``channels``, whose messages are yielded; None: those of all
        """
        valid = [
            in_force(own, time - self.shift(own), latched) if only is None or ch is only else []
            for own, ch, latched in zip(self._own, self.channels, self._latched, strict=True)
        ]
        if any(valid):
            for batch in merged(self._queued([np.array(rows, np.int64) for rows in valid])):
                yield from self._bounded(self._run(batch))

    @property
    def empty(self) -> bool:
        """Whether there are no messages to play."""
        return not any(len(batch.time) for batch in merged(self._queues(None, None), first=1))

    def _count_at(self, time: int) -> int:
        return sum(len(batch.time) for batch in merged(self._queues(time, time + 1)))

    def _queues(self, start: int | None, end: int | None) -> list[Queue]:
        """Return queues of all channels between *start* and *end*, and within the bounds of the replay."""
        first = max((t for t in (start, self.bounds[0]) if t is not None), default=None)
        last = min((t for t in (end, self.bounds[1]) if t is not None), default=None)
        rows = []
        for n, ch in enumerate(self.channels):
            shift = self.shift(ch)
            begin = None if first is None else max(first - shift, TIME_MIN)
            stop = None if last is None else last - shift
            between = ch.log.index.rows_between(ch.number, begin, stop)
            rows.append(between if self._first is None else intersect_rows(between, self._first[n]))
        return self._queued(rows)

    def _queued(self, rows: Sequence[Rows]) -> list[Queue]:
        """Return queues of these rows of each channel; synthetic messages precede others of their log and time."""
        queues = []
        for ch, chosen, origin in zip(self.channels, rows, self._origin.tolist(), strict=True):
            index = ch.log.index
            synthetic = index.rules[ch.number].synthetic is not None
            queues.append(Queue(index, ch.number, chosen, self._shifts[origin], 2 * origin - synthetic))
        return queues

    def _run(self, batch: Merged) -> Run:
        origin = self._origin[batch.queue]
        return Run(
            self.channels, self._view, batch.queue, batch.time, origin, batch.chunk, batch.offset, batch.size
        )

    def _view(self, origin: int, chunk: int) -> memoryview:
        return self.logs[origin].index.chunks.view(chunk)

    def _bounded(self, run: Run) -> Iterator[Run]:
        """Yield the messages in short runs that need few decompressed chunks each."""
        for start in range(0, len(run), RUN):
            yield from self._halved(run[start : start + RUN])

    def _halved(self, run: Run) -> Iterator[Run]:
        unpacked = [(origin, chunk) for origin, chunk in run.chunks if chunk > FILE]
        size = sum(self.logs[origin].index.chunks.size_of(chunk) for origin, chunk in unpacked)
        if size <= RUN_BYTES or len(unpacked) <= 2 or len(run) < 2:
            yield run
            return
        middle = len(run) // 2
        yield from self._halved(run[:middle])
        yield from self._halved(run[middle:])


def _earliest(times: I64, rows: Rows, count: int) -> Rows:
    """Return the *count* earliest of *rows* by time, ties in file order."""
    chosen = times[rows]
    if (chosen[1:] >= chosen[:-1]).all():
        return part_of(rows, 0, count)
    kept = np.sort(np.argsort(chosen, kind="stable")[:count])
    return rows.start + kept if isinstance(rows, slice) else rows[kept]
