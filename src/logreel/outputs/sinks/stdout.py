"""Sink that writes to standard output: lines of JSON, or binary frames."""

from __future__ import annotations

import json
import struct
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

from logreel.errors import UsageError
from logreel.log.log import Message
from logreel.log.times import seconds_text
from logreel.ops.json_values import to_json_values
from logreel.ops.replay import Sink
from logreel.outputs.tables.ndjson import Decoder, line
from logreel.registry.registry import describer

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.ops.replay import PlayerControls, Run


#: Head of a binary frame: size of the rest, kind, number of the channel.
HEAD = struct.Struct("<IBI")
CHANNEL, MESSAGE = 0, 1
_TIME = struct.Struct("<q")


class Stdout(Sink):
    """Writes each message.

    frames  ``ndjson``: a line of JSON, as of ``logreel cat``; ``raw``: binary frames, see docs/howto/play.md
    out     a binary file; None: standard output
    """

    prints = True
    follows = True
    sends = False

    def __init__(self, frames: str = "ndjson", out: IO[bytes] | None = None) -> None:
        if frames not in ("ndjson", "raw"):
            raise UsageError(f"frames are 'ndjson' or 'raw', not {frames!r}")
        self._out = sys.stdout.buffer if out is None else out
        self._raw = self.sends = frames == "raw"
        self._numbers: dict[Channel, int] = {}

    def open(self, player: PlayerControls) -> None:
        """Determine which channels can be decoded; raises UsageError for binary frames on a terminal."""
        if self._raw:
            if self._out.isatty():
                raise UsageError("raw frames are not for a terminal: send them to a file or a program")
            return
        self._decode = Decoder(player.channels, self.skipped)

    def message(self, message: Message) -> None:
        """Write one message; messages that cannot be decoded are skipped and counted."""
        if self._raw:
            self._frame(message)
            return
        data = self._decode(message)
        if data is not None:
            self._out.write(line(message, data).encode("ascii") + b"\n")

    def flush(self) -> None:
        """Flush the output."""
        self._out.flush()

    def close(self) -> None:
        """Flush the output, and report skipped messages."""
        if not self._raw:
            self._decode.report()
        self._out.flush()

    def _frame(self, message: Message) -> None:
        number = self._numbers.get(message.channel)
        if number is None:
            number = self._numbers[message.channel] = len(self._numbers)
            body = json.dumps(to_json_values(_channel_info(message.channel))).encode("ascii")
            self._out.write(HEAD.pack(5 + len(body), CHANNEL, number) + body)
        size = 5 + _TIME.size + len(message.data)
        self._out.write(HEAD.pack(size, MESSAGE, number) + _TIME.pack(message.time))
        self._out.write(message.data)


def _channel_info(ch: Channel) -> dict[str, object]:
    """Return the description of a channel for receivers; a binary definition becomes base64."""
    schema = ch.schema
    definition = {"data": schema.data} if schema.data else {"text": schema.text}
    return {
        "topic": ch.topic,
        "type": schema.name,
        "encoding": schema.encoding,
        "log": ch.log.name,
        **definition,
    }


class Null(Sink):
    """Discards all messages, to see only the status line, or to measure the maximum rate."""

    batches = True
    follows = True
    sends = False

    def batch(self, run: Run) -> None:
        """Do nothing."""


Describe = Callable[[Sequence["Message"]], list[str]]


class FrameLines(Sink):
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
        topics = ", ".join(topic if n == 1 else f"{topic} ×{n}" for topic, n in counts.items())
        return [f"{seconds_text(frame[0].time - start)} s: {topics}"]

    return describe
