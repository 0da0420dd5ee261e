"""Messages as JSON, one line each, in time order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import DamagedError, DefinitionError
from logreel.log.log import Log, Message
from logreel.log.times import shift_of, utc_text
from logreel.ops.json_values import to_json_values
from logreel.ops.query.topic_fields import field_picker
from logreel.outputs.job import Job, LeftOut

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.ops.query.topic_fields import FieldsByTopic

_ENCODER = json.JSONEncoder(allow_nan=False, default=to_json_values)


def write(out: IO[bytes], job: Job) -> None:
    """Write all messages of *job*; those that cannot be decoded are left out and told of."""
    shift = shift_of(job.log, job.utc)
    for message, data in decoded(job.log, job.channels, job.start, job.end, job.skipped, job.fields):
        out.write(line(message, data, shift).encode("ascii") + b"\n")
        job.wrote(message.channel.topic, 1)


def line(message: Message, data: dict[str, Any], shift: int | None = None) -> str:
    """One message as JSON in ASCII: ``{"topic": …, "time_ns": …, "data": {…}}``.

    shift  ns to add to have UTC: adds ``"utc"`` as RFC 3339
    """
    found: dict[str, Any] = {"topic": message.channel.topic, "time_ns": message.time}
    if shift is not None:
        found["utc"] = utc_text(message.time + shift)
    found["data"] = data
    try:
        return _ENCODER.encode(found)
    except ValueError:
        # NaN or an infinity somewhere: rare, so only then every value is looked at.
        return _ENCODER.encode(to_json_values(found))


class Decoder:
    """Gives the fields of messages, and keeps count of what cannot be decoded.

    skipped  gets a sentence for each channel whose definition cannot be used, and from ``tell`` for each with others
    fields   field paths by topic; of other topics, and for None, all fields
    """

    def __init__(
        self, channels: Iterable[Channel], skipped: list[str], fields: FieldsByTopic | None = None
    ) -> None:
        self.usable: list[str] = []
        self._unusable: set[Channel] = set()
        self._bad: dict[str, LeftOut] = {}
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
        """The fields of *message*, or None."""
        if message.channel in self._unusable:
            return None
        try:
            data = message.decode()
        except (DamagedError, DefinitionError) as error:
            self._bad.setdefault(message.channel.topic, LeftOut()).add(error.text)
            return None
        pick = self._pick.get(message.channel.topic)
        return data if pick is None else pick(data)

    def tell(self) -> None:
        """Tell *skipped* of the messages that could not be decoded."""
        for topic, left in self._bad.items():
            self._skipped += left.told("message", f"of {topic!r} left out")


def decoded(
    log: Log,
    channels: Iterable[Channel],
    start: int | None,
    end: int | None,
    skipped: list[str],
    fields: FieldsByTopic | None = None,
) -> Iterator[tuple[Message, dict[str, Any]]]:
    """Messages of *channels* by time with their fields; *skipped* gets a sentence for what is left out."""
    decode = Decoder(channels, skipped, fields)
    for message in log.messages(decode.usable, start, end):
        data = decode(message)
        if data is not None:
            yield message, data
    decode.tell()
