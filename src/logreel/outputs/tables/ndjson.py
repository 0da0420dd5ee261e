"""Messages as lines of JSON, in time order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import DamagedError, DefinitionError
from logreel.log.log import Log, Message
from logreel.log.times import shift_of, utc_text
from logreel.log.topic_fields import field_picker
from logreel.ops.json_values import to_json_values
from logreel.outputs.job import Job, SkipCounter

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.log.topic_fields import FieldsByTopic

_ENCODER = json.JSONEncoder(allow_nan=False, default=to_json_values)


def write(out: IO[bytes], job: Job) -> None:
    """Write all messages of *job*; messages that cannot be decoded are skipped and reported."""
    shift = shift_of(job.log, job.utc)
    for message, data in decoded(job.log, job.channels, job.start, job.end, job.skipped, job.fields):
        out.write(line(message, data, shift).encode("ascii") + b"\n")
        job.count_rows(message.channel.topic, 1)


def line(message: Message, data: dict[str, Any], shift: int | None = None, log: str | None = None) -> str:
    """Return a message as JSON in ASCII: ``{"topic": …, "time_ns": …, "data": {…}}``.

    shift  ns to add for UTC; adds ``"utc"`` in RFC 3339. None: no ``"utc"``
    log    name of the log, of several; adds ``"log"``. None: no ``"log"``
    """
    values: dict[str, Any] = {} if log is None else {"log": log}
    values |= {"topic": message.channel.topic, "time_ns": message.time}
    if shift is not None:
        values["utc"] = utc_text(message.time + shift)
    values["data"] = data
    try:
        return _ENCODER.encode(values)
    except ValueError:
        # NaN or infinity in the message: rare, so values are checked only then.
        return _ENCODER.encode(to_json_values(values))


class Decoder:
    """Decodes messages, and counts those that cannot be decoded.

    skipped  gets a sentence for each channel whose definition cannot be used, and from ``report`` for each channel with
             skipped messages
    fields   field paths by topic; other topics, and None: all fields
    """

    def __init__(
        self, channels: Iterable[Channel], skipped: list[str], fields: FieldsByTopic | None = None
    ) -> None:
        self.usable: list[str] = []
        self._unusable: set[Channel] = set()
        self._bad: dict[str, SkipCounter] = {}
        self._skipped = skipped
        self._pick: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        for ch in channels:
            try:
                _ = ch.layout
            except DefinitionError as error:
                skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                self._unusable.add(ch)
            else:
                self.usable.append(ch.topic)
                pick = field_picker(ch, (fields or {}).get(ch.topic))
                if pick is not None:
                    self._pick[ch.topic] = pick

    def __call__(self, message: Message) -> dict[str, Any] | None:
        """Return the fields of *message*; None if it cannot be decoded."""
        if message.channel in self._unusable:
            return None
        try:
            data = message.decode()
        except (DamagedError, DefinitionError) as error:
            self._bad.setdefault(message.channel.topic, SkipCounter()).add(error.text)
            return None
        pick = self._pick.get(message.channel.topic)
        return data if pick is None else pick(data)

    def report(self) -> None:
        """Add a sentence to *skipped* for each channel with skipped messages."""
        for topic, left in self._bad.items():
            self._skipped += left.sentences("message", f"of {topic!r} left out")


def decoded(
    log: Log,
    channels: Iterable[Channel],
    start: int | None,
    end: int | None,
    skipped: list[str],
    fields: FieldsByTopic | None = None,
) -> Iterator[tuple[Message, dict[str, Any]]]:
    """Yield messages of *channels* by time with their fields; *skipped* gets sentences about skipped ones."""
    decode = Decoder(channels, skipped, fields)
    for message in log.messages(decode.usable, start, end):
        data = decode(message)
        if data is not None:
            yield message, data
    decode.report()
