"""Receivers of a replay: ``Sink``, the part of a Player that they may use, and counts of what they got."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Channel, Message

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log, Message
    from logreel.log.times import Time
    from logreel.ops.replay.timeline import Run


class Sink:
    """Base of receivers of a replay; a subclass overrides at least ``message``.

    The Player calls all methods from the thread that plays. A sink may call methods of the Player (``pause``,
    ``seek`` …) at any time from any thread. An exception in a method ends the replay.

    batches  True: ``batch`` is called with all messages that are due at once
    waits    True: the Player waits at the end for ``seek`` or ``stop``
    prints   True: the sink writes to standard output
    sends    False: what it gets stays in this process or is printed as text; other sinks get messages of encrypted logs
             only if these were opened with ``decrypt=True``
    delay    seconds that the Player waits between ``open`` and the first message, unless told otherwise
    follows  True: the sink can play a log that is still written: it gets each message by ``message``, and channels that
             get their first message later by ``add_channels``; ``player.grows`` is True
    """

    batches = False
    waits = False
    prints = False
    sends = True
    delay = 0.0
    follows = False
    #: Function that shows a sentence to the user.
    say: Callable[[str], object] = staticmethod(lambda text: None)

    @cached_property
    def skipped(self) -> list[str]:
        """Sentences about what could not be played."""
        return []

    def open(self, player: PlayerControls) -> None:
        """Prepare for messages of ``player.channels``; called once, before all other methods."""

    def add_channels(self, channels: Sequence[Channel]) -> None:
        """Prepare for messages of further channels; called only for logs that are still written."""

    def message(self, message: Message) -> None:
        """Receive one message."""

    def batch(self, run: Run) -> None:
        """Receive consecutive messages; those of ``/clock`` are still passed to ``message``."""
        for message in run.messages():
            self.message(message)

    def in_force(self, run: Run) -> None:
        """Receive messages in force at the new position, with their original times."""
        if self.batches:
            self.batch(run)
        else:
            for message in run.messages():
                self.message(message)

    def flush(self) -> None:
        """Write out buffered messages: none follow for a while."""

    def moved(self, time: int) -> None:
        """The replay continues at *time* ns; messages in force there follow first, with their original times."""

    def changed(self) -> None:
        """The Player was paused or resumed, reached its end, or got another rate."""

    def close(self) -> None:
        """The replay ended or failed; called once if ``open`` was called."""


class Calls(Sink):
    """Sink that calls a function with each message."""

    sends = False

    def __init__(self, function: Callable[[Message], object]) -> None:
        self._function = function

    def message(self, message: Message) -> None:
        """Call the function."""
        self._function(message)


class PlayerControls(Protocol):
    """State and controls of a Player; see ``Player`` for their meaning."""

    rate: float
    limit: int | None

    @property
    def grows(self) -> bool: ...
    @property
    def logs(self) -> Sequence[Log]: ...
    @property
    def channels(self) -> Sequence[Channel]: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def start_time(self) -> int: ...
    @property
    def end_time(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def utc_offset(self) -> int | None: ...
    @property
    def backwards(self) -> bool: ...
    @property
    def paused(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    def shift(self, ch: Channel) -> int: ...
    def is_latched(self, ch: Channel) -> bool: ...
    def in_force(self, ch: Channel) -> list[Message]: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def toggle(self) -> None: ...
    def seek(self, time: Time) -> None: ...
    def skip(self, ns: int) -> None: ...
    def step(self, count: int = 1) -> None: ...
    def stop(self) -> None: ...


#: Messages later than this are counted as late, ns.
LATE = 1_000_000
#: Up to this many messages are counted one by one, which is faster.
FEW = 8


class Tally:
    """Counts of a replay.

    messages  messages played, including those in force at a position
    timed     messages that were due at a time
    late      timed messages played more than a millisecond late
    worst     largest lateness, ns
    counts    int64[c]: messages by channel of the Player
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        self.messages = self.timed = self.late = self.worst = self._sum = 0
        self.counts: I64 = np.zeros(len(channels), np.int64)

    @property
    def mean(self) -> float:
        """Mean lateness, ns."""
        return self._sum / self.timed if self.timed else 0.0

    @property
    def topics(self) -> dict[str, int]:
        """Messages by topic."""
        counts: dict[str, int] = {}
        for ch, count in zip(self._channels, self.counts.tolist(), strict=True):
            counts[ch.topic] = counts.get(ch.topic, 0) + count
        return counts

    def count(self, channel: NDArray[np.int32]) -> None:
        """Count messages by channel number, int32[n]."""
        self.messages += len(channel)
        if len(channel) <= FEW:
            for number in channel.tolist():
                self.counts[number] += 1
        else:
            self.counts += np.bincount(channel, minlength=len(self.counts))

    def lateness(self, ns: int) -> None:
        """Count the lateness of one message."""
        self.timed += 1
        self._sum += ns
        self.late += ns > LATE
        self.worst = max(self.worst, ns)

    def many(self, ns: I64) -> None:
        """Count the lateness of several messages, int64[n] ns."""
        self.timed += len(ns)
        self._sum += int(ns.sum())
        self.late += int((ns > LATE).sum())
        self.worst = max(self.worst, int(ns.max(initial=0)))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON data, durations in ns."""
        return {
            "messages": self.messages,
            "late": self.late,
            "worst_ns": self.worst,
            "mean_ns": round(self.mean),
            "topics": self.topics,
        }
