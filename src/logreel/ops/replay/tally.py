"""What was played, and how much of it too late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Channel

#: From here on a message counts as late; ns.
LATE = 1_000_000
#: So few are counted one by one, which is faster then.
FEW = 8


class Tally:
    """Counts of a replay.

    messages  handed out, those that were in force at a place included
    timed     those of them that had a moment at which they were due
    late      those of these handed out more than a millisecond behind it
    worst     ns by which the latest one was late
    counts    int64[c]: messages by channel of the Player
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        self.messages = self.timed = self.late = self.worst = self._sum = 0
        self.counts: I64 = np.zeros(len(channels), np.int64)

    @property
    def mean(self) -> float:
        """ns by which messages were late on average."""
        return self._sum / self.timed if self.timed else 0.0

    @property
    def topics(self) -> dict[str, int]:
        """Messages by topic."""
        found: dict[str, int] = {}
        for ch, count in zip(self._channels, self.counts.tolist(), strict=True):
            found[ch.topic] = found.get(ch.topic, 0) + count
        return found

    def count(self, channel: NDArray[np.int32]) -> None:
        """Count a message for each of these numbers."""
        self.messages += len(channel)
        if len(channel) <= FEW:
            for number in channel.tolist():
                self.counts[number] += 1
        else:
            self.counts += np.bincount(channel, minlength=len(self.counts))

    def lateness(self, ns: int) -> None:
        """Count by how much one message was late."""
        self.timed += 1
        self._sum += ns
        self.late += ns > LATE
        self.worst = max(self.worst, ns)

    def many(self, ns: I64) -> None:
        """The same for each of several messages."""
        self.timed += len(ns)
        self._sum += int(ns.sum())
        self.late += int((ns > LATE).sum())
        self.worst = max(self.worst, int(ns.max(initial=0)))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data; lengths of time in ns."""
        return {
            "messages": self.messages,
            "late": self.late,
            "worst_ns": self.worst,
            "mean_ns": round(self.mean),
            "topics": self.topics,
        }
