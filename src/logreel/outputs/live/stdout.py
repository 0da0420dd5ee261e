"""Sink that writes to standard output: lines of JSON, or binary frames."""

from __future__ import annotations

import json
import struct
import sys
from typing import IO, TYPE_CHECKING

from logreel.errors import UsageError
from logreel.log.log import Message
from logreel.ops.json_values import to_json_values
from logreel.ops.replay import Sink
from logreel.outputs.tables.ndjson import Decoder, line

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.ops.replay import PlayerControls

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
