"""Write text logs: as DataFlash logs are written, with a line for each record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import Appender, DefinitionError, Log
from logreel_ardupilot.definitions import FMT, FORMAT, HEAD, Definition
from logreel_ardupilot.lines import LineCodec
from logreel_ardupilot.writer import I64, DataFlashWriter, begun, continued

#: End of a line, as other programs write it on every system.
END = b"\r\n"


class TextWriter(DataFlashWriter):
    """Writes the messages in the order in which they are given, a line each."""

    title = "a text log of ArduPilot"

    def __init__(self, out: Appender) -> None:
        super().__init__(out)
        self._codecs: list[LineCodec] = []
        #: Channels of each name, and which of several its lines are of.
        self._channels: dict[str, list[int]] = {}
        self._current: dict[str, int] = {}
        self._channel_kinds: list[int] = []

    def write_record(self, kind: int, payload: bytes) -> None:
        """Write the line of a message that is none of a channel."""
        definition = FORMAT if kind == FMT else self._taken[kind]
        self.out.write(_codec(definition).lines(np.frombuffer(payload, np.uint8))[0] + END)

    def _add(self, kind: int, definition: Definition) -> None:
        super()._add(kind, definition)
        if definition.columns is None:
            raise DefinitionError(f"messages of {definition.name!r} are bytes, which no line can hold")
        self._codecs.append(_codec(definition))
        self._channels.setdefault(definition.name, []).append(len(self._channel_kinds))
        self._channel_kinds.append(kind)

    def write_records(self, channel: NDArray[np.int32], place: I64, records: NDArray[np.uint8]) -> None:
        """Write the lines of records."""
        lines = np.empty(len(channel), object)
        for number in np.unique(channel).tolist():
            definition, rows = self.schemas.definitions[number], np.flatnonzero(channel == number)
            payloads = records[(place[rows] + HEAD)[:, None] + np.arange(definition.size)]
            lines[rows] = self._codecs[number].lines(payloads)
        for numbers in self._channels.values():
            if len(numbers) > 1:
                self._define_again(lines, channel, numbers)
        self.out.write(END.join([*lines.tolist(), b""]))

    def _define_again(self, lines: NDArray[Any], channel: NDArray[np.int32], numbers: list[int]) -> None:
        """Put a definition before lines of a name with several where they are of another one than before."""
        for row in np.flatnonzero(np.isin(channel, numbers)).tolist():
            number = int(channel[row])
            definition = self.schemas.definitions[number]
            if self._current.get(definition.name) != number:
                payload = np.frombuffer(definition.payload(self._channel_kinds[number]), np.uint8)
                lines[row] = _codec(FORMAT).lines(payload)[0] + END + lines[row]
                self._current[definition.name] = number


def _codec(definition: Definition) -> LineCodec:
    return LineCodec(definition, lambda name: None)


def create(out: Appender) -> TextWriter:
    """Return the writer of a new log."""
    return begun(TextWriter(out))


def append(out: Appender, log: Log) -> TextWriter:
    """Return the writer that continues *log*."""
    return continued(TextWriter(out), log)
