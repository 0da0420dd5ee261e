"""Results and states of a recording."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from logreel.ops.rewrite.target import Rewritten


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages of a topic that were lost while recording; *source*: where they came from."""

    topic: str
    messages: int
    source: str


@dataclass(frozen=True, slots=True, repr=False)
class Recorded(Rewritten):
    """Result of a recording.

    lines    lines of JSON that were not blank
    broken   lines and frames left out; *skipped* has a sentence for each of the first ones
    stopped  True: ended by *stop* before the end of the sources
    parts    files of the log, in order: one, unless it was split
    losses   messages that were lost because they came faster than they were written, or before they came to logreel
    """

    lines: int
    broken: int
    stopped: bool
    parts: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def lost(self) -> int:
        """Number of lost messages of all topics."""
        return sum(one.messages for one in self.losses)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``record --json``."""
        counts = {"lines": self.lines, "broken": self.broken, "stopped": self.stopped}
        losses = {"lost": self.lost, "losses": [asdict(one) for one in self.losses]}
        return Rewritten.as_dict(self) | counts | {"parts": list(self.parts)} | losses


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a recording under way.

    seconds   since the start
    messages  messages written
    size      bytes of all files so far, about
    lost      messages lost
    filling   used part of the queue, from 0 to 1
    path      file that is being written
    """

    seconds: float
    messages: int
    size: int
    lost: int
    filling: float
    path: str
