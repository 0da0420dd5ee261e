"""Lines for people: text messages, operators' comments, events, and series of plain text."""

from __future__ import annotations

from logreel.formats.bddf.messages import MessageType
from logreel.log.scan import TextLine
from logreel.schemas.protobuf.wire import BadWire, items

#: Levels of a text message and the syslog number that each stands for.
LEVELS = {1: 7, 2: 6, 3: 4, 4: 3}
_TEXT, _COMMENT, _EVENT = "bosdyn.api.TextMessage", "bosdyn.api.OperatorComment", "bosdyn.api.Event"


def speaks(kind: MessageType) -> bool:
    """True if the messages of a series are for people to read."""
    return kind.content_type.startswith("text/") or kind.name in (_TEXT, _COMMENT, _EVENT)


def line(kind: MessageType, topic: str, time: int, data: bytes) -> TextLine | None:
    """One message of such a series as a line; None where it cannot be read."""
    if kind.content_type.startswith("text/"):
        return TextLine(time, None, data.decode("utf-8", "replace"), topic)
    try:
        fields = {item.number: item for item in items(data)}
    except BadWire:
        return None

    def text(number: int) -> str:
        return fields[number].text if number in fields else ""

    if kind.name == _COMMENT:
        return TextLine(time, None, text(1), "operator")
    if kind.name == _TEXT:
        level = fields[4].integer if 4 in fields else 0
        return TextLine(time, LEVELS.get(level), text(1), text(3))
    said = ": ".join(part for part in (text(1), text(2)) if part)
    return TextLine(time, None, said, text(3))
