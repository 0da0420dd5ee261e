"""Text lines of a log: text messages, comments of operators, events, and series of plain text."""

from __future__ import annotations

import json
import struct

from logreel.formats.bddf.descriptors import MessageType
from logreel.log.scan import TextLine
from logreel.log.times import seconds_text, utc_text
from logreel.schemas.protobuf.wire import BadWire, items

#: Syslog severity by the level of a TextMessage.
LEVELS = {1: 7, 2: 6, 3: 4, 4: 3}
#: Name and syslog severity by the level of an Event. Without a level, an event counts as low, but says no level.
#: Source: data_buffer.proto of the vendor's SDK.
EVENT_LEVELS = {
    1: ("low", 6),
    2: ("medium", 5),
    3: ("high", 4),
    4: ("mission critical", 2),
    5: ("system critical", 1),
}
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
    name, severity = EVENT_LEVELS.get(fields[7].integer if 7 in fields else 0, ("", None))
    parts = [": ".join(part for part in (text(1), text(2)) if part), f"[{name}]" if name else ""]
    try:
        parts += [parameter(item.bytes) for item in items(data) if item.number == 8]
    except BadWire:
        return None
    return TextLine(time, severity, " ".join(part for part in parts if part), text(3), "event")


def parameter(data: bytes) -> str:
    """Return a ``bosdyn.api.Parameter`` as ``label=value units``; raises BadWire for malformed bytes.

    Source: parameter.proto of the vendor's SDK.
    """
    label = units = value = ""
    for item in items(data):
        match item.number:
            case 1:
                label = item.text
            case 2:
                units = item.text
            case 3:
                value = str(item.signed)
            case 4:
                value = f"{struct.unpack('<d', item.integer.to_bytes(8, 'little'))[0]:g}"
            case 5:
                value = utc_text(_nanoseconds(item.bytes))
            case 6:
                value = f"{seconds_text(_nanoseconds(item.bytes), 9)} s"
            case 7:
                value = json.dumps(item.text, ensure_ascii=False)
            case 8:
                value = "true" if item.integer else "false"
    return f"{label}={value}" + (f" {units}" if units else "")


def _nanoseconds(data: bytes) -> int:
    """Return a Timestamp or Duration as ns."""
    numbers = {item.number: item.signed for item in items(data)}
    return numbers.get(1, 0) * 10**9 + numbers.get(2, 0)
