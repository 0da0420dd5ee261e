"""Live sources of messages, the bounded queue between their threads and the recording, and which messages it takes."""

from __future__ import annotations

import sys
import time as clock
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Condition, Event
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from logreel.layout.layout import Layout
from logreel.log.scan import TOPIC, Facts, Schema
from logreel.log.topic_match import check_pattern, conditions, fitting, is_pattern, listed

#: Default capacity of the queue: bytes, and messages.
BUFFER_BYTES, BUFFER_MESSAGES = 256 << 20, 1 << 20
#: Bytes that a queued message needs besides its payload, about.
OVERHEAD = 128
#: Bytes of a number of Python, about; types of numbers, and of values whose size is all that they need.
_NUMBER, _NUMBERS, _WHOLE = 32, {int, float, bool}, {str, bytes, bytearray}
#: Most bytes that the recording takes out of the queue at once; these are in memory besides the queue.
TAKEN_BYTES = 8 << 20
#: Most sentences of one source; all are counted.
MOST_SENTENCES = 100
#: Longest wait of a blocked source in seconds, after which it sees that the recording stops.
PATIENCE = 0.2


@runtime_checkable
class LiveSource(Protocol):
    """A source of messages as they happen, such as a socket or a middleware.

    name  for people, such as ``udp://127.0.0.1:9000``

    ``run`` is called once, in a thread of its own. It declares channels, passes messages to *feed*, which never blocks
    unless asked to, and returns when there are no more, or soon (half a second) after ``feed.stopping`` becomes True.
    It may use further threads, all of which may use *feed*; these must have ended when it returns. A LogError or
    OSError that it raises is reported as the end of this source; the other sources go on.
    """

    name: str

    def run(self, feed: Feed) -> None:
        """Pass messages to *feed* until there are no more, or the recording stops."""


@dataclass(eq=False, slots=True)
class LiveChannel:
    """A channel of a source, as ``Feed.channel`` declared it.

    latched   the last message of a latched channel can be repeated at the start of each part of a split log
    number    number of the channel in the log; -1: not written yet, or refused
    refused   reason why the log cannot have this channel; messages of a refused channel are counted as *left_out*
    messages  messages written
    lost      messages lost because the queue was full, or before they came to logreel
    left_out  messages that could not be written
    first_lost, last_lost  times of the first and last lost message that the log does not mention yet, ns
    unnoted   number of these
    """

    source: str
    topic: str
    schema: Schema | Layout
    metadata: Mapping[str, Any]
    latched: bool = False
    number: int = -1
    refused: str = ""
    messages: int = 0
    lost: int = 0
    left_out: int = 0
    first_lost: int = 0
    last_lost: int = 0
    unnoted: int = 0


@dataclass(frozen=True, slots=True)
class DeclaredChannel:
    """Entry of the queue: a channel to be added to the log."""

    channel: LiveChannel


@dataclass(frozen=True, slots=True)
class Lost:
    """Entry of the queue: *messages* of a channel were lost here, the first and the last at these times, ns."""

    channel: LiveChannel
    messages: int
    first: int
    last: int


#: A message: its channel, its time in ns, its payload. Without a channel: a line of JSON, with its place for people.
Message = tuple[LiveChannel | None, int, Any]
Entry = Message | DeclaredChannel | Lost


class LiveQueue:
    """Messages on their way from the threads of the sources to the recording, in one order.

    most_bytes, most_messages  capacity; what does not fit is lost and counted, or its source waits
    """

    def __init__(self, most_bytes: int = BUFFER_BYTES, most_messages: int = BUFFER_MESSAGES) -> None:
        self._most_bytes, self._most_messages = most_bytes, most_messages
        self._entries = deque[Entry]()
        #: Bytes that each entry counts for, and all together.
        self._sizes = deque[int]()
        self._bytes = 0
        self._changed = Condition()
        #: Set when the queue is half full, so that the recording does not wait for more.
        self._half = Event()
        self.stopping = Event()
        #: Whether nothing is taken any more.
        self._closed = False

    @property
    def filling(self) -> float:
        """Used part of the capacity, from 0 to 1."""
        return max(self._bytes / self._most_bytes, len(self._entries) / self._most_messages)

    def tell(self, entry: DeclaredChannel | Lost) -> None:
        """Append an entry that is no message; it always fits."""
        with self._changed:
            self._append(entry, 0)
            self._changed.notify()

    def put(self, channel: LiveChannel | None, time: int, payload: Any, size: int, wait: bool) -> bool:
        """Append a message; return False if it was lost.

        wait  wait while the queue is full; also while the recording stops, since it takes what is there
        """
        size += OVERHEAD
        with self._changed:
            # A single message larger than the queue passes when the queue is empty.
            while self._entries and (
                self._bytes + size > self._most_bytes or len(self._entries) >= self._most_messages
            ):
                if not wait or self._closed:
                    if channel is not None:
                        _count_lost(channel, 1, time)
                    return False
                self._changed.wait(PATIENCE)
            if channel is not None and channel.unnoted:
                self._append(_taken_loss(channel), 0)
            if not self._entries:
                self._changed.notify_all()
            self._append((channel, time, payload), size)
            if self._is_half_full():
                self._half.set()
        return True

    def lose(self, channel: LiveChannel, messages: int, time: int) -> None:
        """Count messages that were lost at *time* ns before they reached the queue."""
        with self._changed:
            _count_lost(channel, messages, time)

    def take(self, patience: float) -> deque[Entry]:
        """Return the next entries, so many that memory stays bounded; none after *patience* seconds without any."""
        with self._changed:
            if not self._entries:
                self._changed.wait(patience)
            taken, size = deque[Entry](), 0
            while self._entries and size < TAKEN_BYTES:
                taken.append(self._entries.popleft())
                size += self._sizes.popleft()
            self._bytes -= size
            if not self._is_half_full():
                self._half.clear()
            self._changed.notify_all()
        return taken

    def _append(self, entry: Entry, size: int) -> None:
        self._entries.append(entry)
        self._sizes.append(size)
        self._bytes += size

    def _is_half_full(self) -> bool:
        return 2 * self._bytes > self._most_bytes or 2 * len(self._entries) > self._most_messages

    def gather(self, seconds: float) -> None:
        """Wait until messages have gathered: *seconds*, or until the queue is half full or the recording stops."""
        if not self.stopping.is_set():
            self._half.wait(seconds)

    def losses(self, channels: list[LiveChannel]) -> list[Lost]:
        """Return the losses of *channels* that no entry mentions yet."""
        with self._changed:
            return [_taken_loss(ch) for ch in channels if ch.unnoted]

    def close(self) -> None:
        """Take nothing any more: what waits for room, or comes later, is lost."""
        self._closed = True
        self.wake()

    def wake(self) -> None:
        """End a wait in ``take``."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Ask the sources to end."""
        self.stopping.set()
        with self._changed:
            self._changed.notify_all()
        self._half.set()


def _count_lost(channel: LiveChannel, messages: int, time: int) -> None:
    channel.first_lost = min(channel.first_lost, time) if channel.unnoted else time
    channel.last_lost = max(channel.last_lost, time) if channel.unnoted else time
    channel.unnoted += messages
    channel.lost += messages


def _taken_loss(channel: LiveChannel) -> Lost:
    loss = Lost(channel, channel.unnoted, channel.first_lost, channel.last_lost)
    channel.unnoted = 0
    return loss


@dataclass(slots=True)
class Feed:
    """What a source passes its channels and messages to; for any thread.

    wants  function that returns whether the recording can want a topic, by its name

    accepts  function that returns whether it wants the channel with these facts

    say    function that shows a sentence to the user at once

    channels  declared channels, in order
    settled   set it to True when no further channels will come: formats that define all channels first then begin,
              and a recording of so many messages per topic knows when it is over
    skipped   sentences about what was left out, the first ones; *broken* counts all
    """

    name: str
    queue: LiveQueue
    wants: Callable[[str], bool] = lambda topic: True
    say: Callable[[str], None] = lambda text: None
    channels: list[LiveChannel] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    broken: int = 0
    settled: bool = False
    accepts: Callable[[Facts], bool] = lambda facts: True

    @property
    def stopping(self) -> bool:
        """Whether the recording stops."""
        return self.queue.stopping.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the recording stops, or *seconds*; return whether it stops."""
        return self.queue.stopping.wait(seconds)

    def channel(
        self,
        topic: str,
        schema: Schema | Layout,
        metadata: Mapping[str, Any] | None = None,
        *,
        latched: bool = False,
    ) -> LiveChannel | None:
        """Declare a channel; return it for ``put``, or None if the recording does not want it.

        topic     as the source names it; channels of several sources with one topic and type share a channel
        schema    a Schema in the language of the source, e.g. ``ros1msg``, or the Layout of the payloads. Where the
                  format of the log has another language, messages are decoded and encoded again
        metadata  as ``Writer.add_channel`` takes it, e.g. ``md5sum``, ``callerids``, ``latching`` for ROS 1, or
                  ``message_encoding`` if it is not the usual one of the schema
        latched   see LiveChannel

        The log may refuse the channel later: then ``refused`` of the returned object has the reason, and a source may
        end its subscription.
        """
        about = schema if isinstance(schema, Schema) else None
        if not self.wants(topic) or not self.accepts(Facts(topic, about, metadata)):
            return None
        made = LiveChannel(self.name, topic, schema, dict(metadata or {}), latched)
        self.channels.append(made)
        self.queue.tell(DeclaredChannel(made))
        return made

    def put(
        self, channel: LiveChannel, time: int | None, payload: bytes | dict[str, Any], *, wait: bool = False
    ) -> bool:
        """Pass on one message; return False if it was lost because the queue is full. Losses are counted.

        time     ns since 1970; None: now
        payload  bytes in the encoding of the schema, which must not change later, or a dict of its fields
        wait     wait while the queue is full, for sources with a flow control, such as TCP
        """
        if time is None:
            time = clock.time_ns()
        size = len(payload) if type(payload) is bytes else bytes_of(payload)
        return self.queue.put(channel, time, payload, size, wait)

    def line(self, place: str, text: bytes | str) -> bool:
        """Pass on a line of JSON, in the form of ``cat --format ndjson``; waits while the queue is full.

        place  where it comes from, for people, such as ``line 7``
        """
        return self.queue.put(None, 0, (place, text), len(text), True)

    def lose(self, channel: LiveChannel, messages: int = 1, time: int | None = None) -> None:
        """Count messages that were lost before they came to logreel, e.g. by gaps in their sequence numbers."""
        self.queue.lose(channel, messages, clock.time_ns() if time is None else time)

    def skip(self, text: str) -> None:
        """Count something that was left out, such as an invalid frame, and report it; *text*: a sentence about it."""
        self.broken += 1
        if self.broken <= MOST_SENTENCES:
            self.skipped.append(f"{self.name}: {text}")

    def note(self, text: str) -> None:
        """Report something that is not a loss."""
        self.notes.append(f"{self.name}: {text}")


def bytes_of(value: Any) -> int:
    """Return about the bytes that a message needs in memory: a payload, or fields with all that is in them."""
    size = sys.getsizeof(value)
    if type(value) in _WHOLE:
        return size
    if isinstance(value, (dict, Mapping)):
        # Most fields are numbers.
        return size + sum([_NUMBER if type(part) in _NUMBERS else bytes_of(part) for part in value.values()])
    if isinstance(value, list | tuple):
        # Looking at each of many numbers would take longer than to pass on the message.
        is_numbers = value and type(value[0]) in _NUMBERS
        return size + (len(value) * _NUMBER if is_numbers else sum(map(bytes_of, value)))
    # What is a part of an array, or of bytes, says of itself only how much it shows.
    return max(size, getattr(value, "nbytes", 0))


#: Seconds for writing what has come when a recording is to end.
DRAIN_WITHIN = 3.0


class DrainLimit:
    """Function that returns whether writing takes too long for a recording that is to end.

    stop  whether the recording was asked to end
    ends  when it ends by itself, as ``time.monotonic`` has it; None: not
    """

    def __init__(self, stop: Callable[[], bool], ends: float | None = None) -> None:
        self._stop, self._ends = stop, ends
        self._late_at: float | None = None

    def __call__(self) -> bool:
        if self._late_at is None:
            now = monotonic()
            if self._stop() or (self._ends is not None and now >= self._ends):
                self._late_at = now + DRAIN_WITHIN
        return self._late_at is not None and monotonic() >= self._late_at


@dataclass(frozen=True, slots=True)
class _Channel:
    """What conditions are tested on."""

    facts: Facts


class TopicFilter:
    """Decides by topic and by what a channel says of itself, and counts.

    topics, exclude  names, shell patterns, ``re:`` and a regular expression, or conditions, as in ``Log.messages``;
                     None: all
    limit            most messages of each topic; None: any number

    Raises UsageError for an invalid regular expression.
    """

    def __init__(
        self,
        topics: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        limit: int | None = None,
    ) -> None:
        self.limit = limit
        self._topics = None if topics is None else listed(topics)
        self._exclude = listed(exclude)
        self._known: dict[str, bool] = {}
        self._all = {*(self._topics or ()), *self._exclude}
        self._unused = set(self._all)
        self._counts = Counter[str]()
        for pattern in self._all:
            check_pattern(pattern)

    def wants(self, topic: str) -> bool:
        """Return whether messages of *topic* can be recorded, as far as its name decides this."""
        if topic not in self._known:
            fits = self._used({pattern for pattern in self._all if fitting([topic], pattern)})
            chosen = [*(self._topics or ())]
            wanted = self._topics is None or not fits.isdisjoint(chosen) or any(map(conditions, chosen))
            self._known[topic] = wanted and fits.isdisjoint(self._exclude)
        return self._known[topic]

    def accepts(self, facts: Facts) -> bool:
        """Return whether messages of the channel with these facts are recorded."""
        (topic,) = facts[TOPIC]
        channel = {topic: _Channel(facts)}
        fits = self._used({pattern for pattern in self._all if fitting(channel, pattern)})
        return (self._topics is None or not fits.isdisjoint(self._topics)) and fits.isdisjoint(self._exclude)

    def _used(self, fits: set[str]) -> set[str]:
        self._unused -= fits
        return fits

    def takes(self, topic: str) -> bool:
        """Return whether to record the next message of *topic*; counts it if so."""
        if not self.wants(topic):
            return False
        if self.limit is not None:
            if self._counts[topic] >= self.limit:
                return False
            self._counts[topic] += 1
        return True

    def has_all(self, topic: str) -> bool:
        """Return whether all messages of *topic* that are wanted were recorded."""
        return not self.wants(topic) or (self.limit is not None and self._counts[topic] >= self.limit)

    @property
    def is_complete(self) -> bool:
        """Whether the topics were given by names, and each has as many messages as wanted."""
        return (
            self.limit is not None
            and self._topics is not None
            and not any(map(is_pattern, self._topics))
            and all(self._counts[name] >= self.limit for name in self._topics)
        )

    def unused(self) -> list[str]:
        """Return the names, patterns and conditions that fitted no channel."""
        return [name for name in [*(self._topics or ()), *self._exclude] if name in self._unused]
