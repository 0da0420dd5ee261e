"""What a channel was before a conversion to another format, kept in its metadata so that it can be converted back.

That of one channel also says what the log was: formats need no place of their own for that.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF, ORIGINAL, Attachment, Schema

#: Key of bytes in JSON.
_BYTES = "$base64"
#: Bytes of attachments that a channel keeps: all readers of the new log read them with its definition.
MOST_ATTACHED = 1 << 20
#: Largest difference in ns between a time and what formats with coarser times store.
_COARSEST = 10**6


@dataclass(frozen=True, slots=True)
class OriginalLog:
    """A log of the format called *format*, besides its channels.

    start       ns at which it began; None if it was empty
    first       earliest time of its messages in ns, and *messages* their number: a log that was cut or moved has others
    utc_offset  ns from its clock, of *epoch*, to UTC; None if unknown
    metadata    with facts of the file, without what channels were before another conversion
    attachments  media type and bytes by name, of those that are small
    """

    format: str
    epoch: str
    utc_offset: int | None
    start: int | None
    first: int | None
    messages: int
    metadata: Mapping[str, Any]
    attachments: Mapping[str, tuple[str, bytes]]

    @classmethod
    def of(cls, log: Log) -> OriginalLog:
        """Return what *log* is."""
        metadata = {
            name: value for name, value in log.metadata.items() if not name.startswith(f"{ORIGINAL}/")
        }
        first, messages = _extent(log)
        small = {name: log.attachments[name] for name in small_attachments(log)}
        attachments = {name: (attachment.media_type, attachment.read()) for name, attachment in small.items()}
        return cls(log.format, log.epoch, log.utc_offset, log.start, first, messages, metadata, attachments)

    def is_all_of(self, log: Log) -> bool:
        """Return whether *log*, which was converted from it, still has all messages at their times."""
        first, messages = _extent(log)
        if messages != self.messages or first is None or self.first is None:
            return False
        return abs(first - self.first) <= _COARSEST

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "format": self.format,
            "epoch": self.epoch,
            "utc_offset": self.utc_offset,
            "span": [self.start, self.first, self.messages],
            "metadata": self.metadata,
            **({"attachments": self.attachments} if self.attachments else {}),
        }

    @classmethod
    def read(cls, values: Any) -> OriginalLog | None:
        """Return the log that plain data describe; None for anything else."""
        if not isinstance(values, dict):
            return None
        span, metadata = values.get("span"), values.get("metadata")
        stored = values.get("attachments")
        attachments = {
            name: (content[0], content[1])
            for name, content in (stored.items() if isinstance(stored, dict) else ())
            if isinstance(content, list) and [type(part) for part in content] == [str, bytes]
        }
        if not isinstance(span, list) or len(span) != 3 or not isinstance(metadata, dict):
            return None
        numbers = [values.get("utc_offset"), *span]
        known = [n is None or (type(n) is int and abs(n) < 1 << 63) for n in numbers]
        words = values.get("format"), values.get("epoch")
        if not all(known) or span[2] is None or not all(isinstance(word, str) for word in words):
            return None
        return cls(str(words[0]), str(words[1]), numbers[0], span[0], span[1], span[2], metadata, attachments)

    def attached(self) -> list[Attachment]:
        """Return the attachments as those of a log."""
        return [
            Attachment(name, media_type, len(data), lambda data=data: data)  # type: ignore[misc]
            for name, (media_type, data) in self.attachments.items()
        ]


def small_attachments(log: Log) -> list[str]:
    """Return the names of the first attachments of *log* that are together small enough to be kept with a channel."""
    sizes = itertools.accumulate(attachment.size for attachment in log.attachments.values())
    return [name for name, total in zip(log.attachments, sizes, strict=True) if total <= MOST_ATTACHED]


def _extent(log: Log) -> tuple[int | None, int]:
    """Return the earliest time of all messages in ns, None if there is none, and the number of messages."""
    first = [int(ch.times.min()) for ch in log.channels.values() if len(ch) and MADE_OF not in ch.metadata]
    count = sum(len(ch) for ch in log.channels.values() if MADE_OF not in ch.metadata)
    return min(first, default=None), count


@dataclass(frozen=True, slots=True)
class Original:
    """A channel of a log of the format called *format*.

    restamped  whether messages got other times than those in their fields (``Scan.logged_times``)
    log        what its log was; None in all channels but one
    """

    format: str
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]
    restamped: bool = False
    log: OriginalLog | None = None

    def text(self) -> str:
        """Return JSON text of it; metadata that JSON cannot hold are left out."""
        raw = self.schema.raw
        definition = (
            {"data": base64.b64encode(raw).decode()} if self.schema.data else {"definition": self.schema.text}
        )
        return json.dumps(
            {
                "format": self.format,
                "topic": self.topic,
                "type": self.schema.name,
                "encoding": self.schema.encoding,
                **definition,
                "metadata": {name: value for name, value in self.metadata.items() if _is_plain(value)},
                **({"restamped": True} if self.restamped else {}),
                **({"log": self.log.as_dict()} if self.log is not None else {}),
            },
            separators=(",", ":"),
            default=_other_values,
        )

    @classmethod
    def read(cls, text: Any) -> Original | None:
        """Return the channel that the JSON *text* describes; None for anything else."""
        return _read(text)


def original_of(ch: Channel) -> Original | None:
    """Return what *ch* was, by its metadata, or else by that of its log; None if it was not converted."""
    return Original.read(ch.metadata.get(ORIGINAL, ch.log.metadata.get(f"{ORIGINAL}/{ch.topic}")))


def _read(text: Any) -> Original | None:
    try:
        content = json.loads(text, object_hook=_bytes_again) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    words = [content.get(name) for name in ("format", "topic", "type", "encoding")]
    metadata, definition = content.get("metadata"), content.get("definition", "")
    if not all(isinstance(word, str) for word in (*words, definition)) or not isinstance(metadata, dict):
        return None
    data = b""
    if isinstance(content.get("data"), str):
        try:
            data = base64.b64decode(content["data"], validate=True)
        except ValueError:
            return None
    fmt, topic, name, encoding = (str(word) for word in words)
    return Original(
        fmt,
        topic,
        Schema(name, encoding, definition, data),
        metadata,
        content.get("restamped") is True,
        OriginalLog.read(content.get("log")),
    )


def original_log_of(log: Log, format: str) -> OriginalLog | None:
    """Return what *log* was in the format called *format*; None if it was not converted from that."""
    for ch in log.channels.values():
        was = original_of(ch)
        if was is not None and was.log is not None and was.log.format == format:
            return was.log
    return None


def _other_values(value: Any) -> Any:
    """Return plain data for a value that JSON has no place for."""
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else list(value)


def _bytes_again(values: dict[str, Any]) -> Any:
    return base64.b64decode(str(values[_BYTES])) if values.keys() == {_BYTES} else values


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
