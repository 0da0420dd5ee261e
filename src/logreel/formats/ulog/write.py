"""ULog files being written: definitions first, then records as they come."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

from logreel.errors import DefinitionError, UsageError
from logreel.formats.ulog.definitions import Definitions, parse_format
from logreel.formats.ulog.records import MAGIC, RECORD, BadRecord
from logreel.model.appender import Appender
from logreel.model.layout import Layout
from logreel.model.schema import Schema
from logreel.model.writer import Payload, Sink

MAX_SIZE = 65535
_KEY = re.compile(r"[A-Za-z0-9_\-/]+\Z")
_INSTANCE = re.compile(r"(.*)\[(\d{1,3})\]\Z", re.DOTALL)


class UlogSink(Sink):
    """Writes version 1.

    started  ns of the file header; None: the time of the first message
    """

    title = "ULog"

    def __init__(self, out: Appender, *, started: int | None = None) -> None:
        super().__init__(out)
        self._started = started
        self._definitions = Definitions()
        self._head = bytearray()
        self._begun = False
        self._channels: list[tuple[str, int]] = []
        self._subscribed: set[int] = set()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel: its topic is the name of its format, further instances end in ``[1]``, ``[2]`` …"""
        if self._begun:
            raise UsageError("a ULog defines all channels before the first message")
        instance = _INSTANCE.match(topic)
        base, multi = (instance[1], int(instance[2])) if instance else (topic, 0)
        if schema.encoding != "ulog" or base != schema.name:
            raise DefinitionError(
                f"channel {topic!r} of a ULog needs a schema of encoding 'ulog' and of its own name"
            )
        if multi > 255:
            raise UsageError(f"channel {topic!r}: a topic of a ULog has at most 256 instances")
        for line in schema.text.splitlines():
            self._define(line)
        self._definitions.extent(base)
        self._channels.append((base, multi))

    def _define(self, line: str) -> None:
        try:
            text = parse_format(line.encode())
        except BadRecord as error:
            raise DefinitionError(str(error)) from None
        if text.name in self._definitions:
            if not self._definitions.add(text):
                raise DefinitionError(f"format {text.name} is defined in two ways")
            return
        self._definitions.add(text)
        self._head += _record("F", line.encode())

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's format."""
        return self._definitions.layout(self._channels[number][0])

    def stamp(self, number: int) -> tuple[str, int] | None:
        """ULog keeps the time of a message in its field ``timestamp``, in microseconds."""
        found = self._definitions.extent(self._channels[number][0]).stamp
        return None if found is None else ("timestamp", found.unit * 1000)

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append a data record."""
        self._begin(time)
        name, multi = self._channels[channel]
        if channel not in self._subscribed:
            self._subscribed.add(channel)
            self._put("A", struct.pack("<BH", multi, channel) + name.encode())
        self._put("D", struct.pack("<H", channel), data)

    def metadata(self, name: str, value: Any) -> None:
        """Append an information record: text, a whole number, a float or bytes; or a list of such, one record each."""
        if isinstance(value, list | tuple):
            for one in value:
                self._put("M", b"\0", *_key_value(name, one))
        else:
            self._put("I", *_key_value(name, value))

    def parameter(self, name: str, value: float | int | str, time: int | None) -> None:
        """Append a parameter: an int32 or a float; later ones are changes at the time of the message before."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"parameter {name!r}: a ULog holds whole numbers and floats, not {value!r:.40}")
        if time is not None:
            self._begin(time)
        kind, code = ("int32_t", "i") if isinstance(value, int) else ("float", "f")
        self._put("P", _key(f"{kind} {name}", name), _packed(name, code, value))

    def text(self, time: int, level: int, text: str) -> None:
        """Append a logged string."""
        if not 0 <= level <= 7:
            raise UsageError(f"level {level} is no syslog level from 0 to 7")
        self._begin(time)
        self._put("L", struct.pack("<BQ", 0x30 + level, time // 1000), text.encode())

    def settle(self) -> None:
        """Write the definitions even if no message has come."""
        self._begin(0)

    def _begin(self, time: int) -> None:
        if not self._begun:
            start = time if self._started is None else self._started
            self.out.write(MAGIC + struct.pack("<BQ", 1, max(0, start) // 1000))
            self.out.write(_record("B", bytes(40)))
            self.out.write(self._head)
            self.out.commit()
            self._begun = True

    def _put(self, letter: str, *parts: Payload) -> None:
        record = _record(letter, *parts)
        if self._begun:
            self.out.write(record)
            self.out.commit()
        else:
            self._head += record


def _record(letter: str, *parts: Payload) -> bytes:
    size = sum(map(len, parts))
    if size > MAX_SIZE:
        raise UsageError(f"a record of {size} bytes; a ULog holds at most {MAX_SIZE} in one")
    return b"".join((RECORD.pack(size, ord(letter)), *parts))


def _key(key: str, name: str) -> bytes:
    if not _KEY.match(name) or len(key) > 255:
        raise UsageError(f"{name!r:.60} is no name of a ULog: letters, digits, _ - and / only")
    return bytes((len(key),)) + key.encode()


def _packed(name: str, code: str, value: Any) -> bytes:
    try:
        return struct.pack("<" + code, value)
    except (struct.error, OverflowError) as error:
        raise UsageError(f"{name!r}: {value!r:.40} cannot be written: {error}") from None


def _key_value(name: str, value: Any) -> tuple[bytes, bytes]:
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        kind = "char" if isinstance(value, str) else "uint8_t"
        return _key(f"{kind}[{len(data)}] {name}", name), data
    if isinstance(value, float):
        return _key(f"double {name}", name), _packed(name, "d", value)
    if not isinstance(value, int):
        raise UsageError(f"metadata {name!r}: a ULog holds text, numbers and bytes, not {value!r:.40}")
    for kind, code in (
        ("bool", "?"),
        ("int32_t", "i"),
        ("uint32_t", "I"),
        ("int64_t", "q"),
        ("uint64_t", "Q"),
    ):
        with_room = isinstance(value, bool) or kind != "bool"
        try:
            if with_room:
                return _key(f"{kind} {name}", name), struct.pack("<" + code, value)
        except struct.error:
            continue
    raise UsageError(f"metadata {name!r}: {value} does not fit 64 bits")
