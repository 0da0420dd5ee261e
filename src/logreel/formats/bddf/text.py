"""Text lines of a log: text messages, comments of operators, events, and series of plain text."""

from __future__ import annotations

from logreel.formats.bddf.descriptors import MessageType
from logreel.log.scan import TextLine
from logreel.schemas.protobuf.wire import BadWire, items

#: Syslog severity by the level of a TextMessage.
LEVELS = {1: 7, 2: 6, 3: 4, 4: 3}
_TEXT, _COMMENT, _EVENT = "bosdyn.api.TextMessage", "bosdyn.api.OperatorComment", "bosdyn.api.Event"


def is_text(kind: MessageType) -> bool:
    """Return True if the messages of a series become text lines."""
    return kind.content_type.startswith("text/") or kind.name in (_TEXT, _COMMENT, _EVENT)


def text_line(kind: MessageType, topic: str, time: int, data: bytes) -> TextLine | None:
    """Return a message of such a series as a text line, or None if it cannot be parsed."""
    if kind.content_type.startswith("text/"):
        return TextLine(time, None, data.decode("utf-8", "replace"), topic)
    try:
        fields = {item.number: item for item in items(data)}
    except BadWire:
        return None

    def text(number: int) -> str:
        return fields[number].text if number in fields else ""

    if kind.name == _COMMENT:
        return TextLine(time, None, text(1), "operator", "comment")
    if kind.name == _TEXT:
        level = fields[4].integer if 4 in fields else 0
        return TextLine(time, LEVELS.get(level), text(1), text(3))
    event = ": ".join(part for part in (text(1), text(2)) if part)
    return TextLine(time, None, event, text(3), "event")
