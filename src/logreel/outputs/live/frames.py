"""What happens, frame by frame, as lines for people while it is played."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

from logreel.log.times import seconds_text
from logreel.ops.replay import Sink
from logreel.registry.registry import describer

if TYPE_CHECKING:
    from logreel.log.log import Message
    from logreel.ops.replay import PlayerControls

Describe = Callable[[Sequence["Message"]], list[str]]


class Frames(Sink):
    """Tells of each frame: the messages that one log has at one time.

    A format may have its own words for them (``Format.frames``); for others it is the time since the start, and how
    many messages there are of which channel.

    out  a binary file; None: standard output
    """

    prints = True

    def __init__(self, out: IO[bytes] | None = None) -> None:
        self._out = sys.stdout.buffer if out is None else out
        self._frame: list[Message] = []
        self._ways: dict[int, Describe] = {}

    def open(self, player: PlayerControls) -> None:
        """Ask each log for its words."""
        for log in player.logs:
            self._ways[id(log)] = describer(log) or _plainly(player.start_time)

    def message(self, message: Message) -> None:
        """Take a message; the frame before it is told when another one begins."""
        frame = self._frame
        if frame and (message.time != frame[0].time or message.channel.log is not frame[0].channel.log):
            self._tell()
        self._frame.append(message)

    def flush(self) -> None:
        """Tell of the frame that is there."""
        self._tell()
        self._out.flush()

    def close(self) -> None:
        """The same."""
        self.flush()

    def _tell(self) -> None:
        frame, self._frame = self._frame, []
        # The clock of the replay is of no log.
        way = self._ways.get(id(frame[0].channel.log)) if frame else None
        for text in way(frame) if way is not None else ():
            # A log may hold characters that a terminal would obey.
            safe = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
            self._out.write(safe.encode("utf-8", "backslashreplace") + b"\n")


def _plainly(start: int) -> Describe:
    def describe(frame: Sequence[Message]) -> list[str]:
        counts = Counter(message.channel.topic for message in frame)
        some = ", ".join(topic if n == 1 else f"{topic} ×{n}" for topic, n in counts.items())
        return [f"{seconds_text(frame[0].time - start)} s: {some}"]

    return describe
