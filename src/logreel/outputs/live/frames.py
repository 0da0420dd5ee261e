"""Sink that prints one or more lines per frame."""

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
    """Describes each frame, which is all messages of one log with the same time.

    Formats can have their own description (``Format.frames``); the default is the time since the start, and the number
    of messages per channel.

    out  a binary file; None: standard output
    """

    prints = True
    follows = True
    sends = False

    def __init__(self, out: IO[bytes] | None = None) -> None:
        self._out = sys.stdout.buffer if out is None else out
        self._frame: list[Message] = []
        self._describe: dict[int, Describe] = {}

    def open(self, player: PlayerControls) -> None:
        """Choose the description for each log."""
        self._grows = player.grows
        for log in player.logs:
            self._describe[id(log)] = describer(log) or _default_description(player.start_time)

    def message(self, message: Message) -> None:
        """Collect a message; print the frame when the next one starts."""
        frame = self._frame
        if frame and (message.time != frame[0].time or message.channel.log is not frame[0].channel.log):
            self._print_frame()
        self._frame.append(message)

    def flush(self) -> None:
        """Print the collected frame; that of a log that is still written is printed when the next one starts."""
        if not self._grows:
            self._print_frame()
        self._out.flush()

    def close(self) -> None:
        """Print the last frame."""
        self._print_frame()
        self._out.flush()

    def _print_frame(self) -> None:
        frame, self._frame = self._frame, []
        # Messages of /clock belong to no log.
        describe = self._describe.get(id(frame[0].channel.log)) if frame else None
        for text in describe(frame) if describe is not None else ():
            # Escape control characters for terminals.
            safe = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
            self._out.write(safe.encode("utf-8", "backslashreplace") + b"\n")


def _default_description(start: int) -> Describe:
    def describe(frame: Sequence[Message]) -> list[str]:
        counts = Counter(message.channel.topic for message in frame)
        some = ", ".join(topic if n == 1 else f"{topic} ×{n}" for topic, n in counts.items())
        return [f"{seconds_text(frame[0].time - start)} s: {some}"]

    return describe
