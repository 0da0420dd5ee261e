"""Counts of played and late messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Channel

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
        found: dict[str, int] = {}
        for ch, count in zip(self._channels, self.counts.tolist(), strict=True):
            found[ch.topic] = found.get(ch.topic, 0) + count
        return found

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
