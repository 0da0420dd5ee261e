"""Decode PX4 events into sentences, with the definitions in the information ``metadata_events`` of a log.

Sources: mavlink/libevents README (text format, groups, serialisation), PX4 guide "Events Interface" (log
levels, the TAB at the end of a string that was also sent as an event), definitions in six logs of PX4 1.14 to 1.17.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError
from logreel.limits import Limits, beyond

#: Longest text of a definition, and longest sentence; real ones have less than 400 characters.
MAX_TEXT = 16384
#: Sentences that are kept while events are read.
MOST_KNOWN = 4096
#: Memory for the decompressor: PX4 writes a dictionary of 64 MiB, a damaged header can claim one of 4 GiB.
MAX_LZMA = 80 << 20

#: The profile whose content is shown: for developers, because it names the parameter that a message is about.
PROFILE = "dev"
#: Internal log levels from this one on, "protocol" and "disabled", are not shown.
HIDDEN_LEVEL = 8
#: The group of messages; events of other groups are parts of reports of the state, each begun by a summary.
MESSAGES, SUMMARY, FIRST_OF_REPORT = "default", "summary", "arming_check"

_CODES = {
    "int8_t": "b",
    "uint8_t": "B",
    "int16_t": "h",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
}
_BASIC = {**_CODES, "float": "f", "bool": "?"}
_TOKEN = re.compile(
    r"\\(?P<escaped>.)"
    r'|<(?P<end>/?)(?P<tag>[a-z]+)(?P<attributes>(?: +[a-z]+="[^"<>]*")*) *>'
    r"|\{(?P<index>\d{1,3})(?::(?:\.(?P<digits>\d{1,2}))?)?(?P<unit>m_v|m\^2|m/s|m|C)?\}",
    re.DOTALL,
)
#: JSON may contain lone surrogates; such a text cannot be encoded.
_SURROGATE = re.compile("[\ud800-\udfff]")
_PROFILE_NAME = re.compile(r'name="(!?)([^"]*)"')
_T = TypeVar("_T")


class Line(NamedTuple):
    """One line of text: *time* in ns (epoch of the log), *level* 0 (emergency) to 7 (debug) or None.

    group     of an event that is part of a report of the state, ``arming_check`` or ``health``; else empty
    repeated  whether the report before had the same event
    """

    time: int
    level: int | None
    text: str
    group: str = ""
    repeated: bool = False


class Row(NamedTuple):
    """One message of the topic ``event``, as logged; *time* in ns, *log_levels* holds two nibbles."""

    time: int
    id: int
    arguments: bytes
    log_levels: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event as text.

    name         ``namespace::name``, or "" when the definitions do not know the id
    group        ``default``, ``health``, ``arming_check``, ``calibration`` …
    kind         "" or a special type such as ``summary``
    message      one line of plain text
    description  more text, often ""
    level        0 (emergency) to 7 (debug), above: not shown; None: not given
    """

    id: int
    name: str
    group: str
    kind: str
    message: str
    description: str
    level: int | None

    @property
    def shown(self) -> bool:
        """Whether the event is for people; others, such as the end of a report, are for programs only."""
        return self.level is None or self.level < HIDDEN_LEVEL


@dataclass(frozen=True, slots=True)
class _Enum:
    code: str
    bitfield: bool
    entries: dict[int, str]

    def text(self, value: int) -> str:
        if not self.bitfield:
            return self.entries.get(value, f"(unknown: {value})")
        # A signed bit field may define its top bit as a negative entry.
        mask = (1 << 8 * struct.calcsize(self.code)) - 1
        names = {key & mask: name for key, name in self.entries.items()}
        bits = [1 << n for n in range(mask.bit_length()) if value & mask & (1 << n)]
        known = [names[bit] for bit in bits if bit in names]
        unknown = sum(bit for bit in bits if bit not in names)
        return "|".join([*known, f"(unknown: {unknown})"] if unknown else known)


class _Value(NamedTuple):
    value: int | float
    enum: _Enum | None

    def text(self, digits: str | None, unit: str | None) -> str:
        if self.enum is not None:
            text = self.enum.text(int(self.value))
        elif digits is not None:
            text = f"{self.value:.{digits}f}"
        elif isinstance(self.value, float):
            # As float32: 0.1 instead of 0.10000000149011612.
            text = str(np.float32(self.value))
        else:
            text = str(self.value).lower()
        # m_v is a vertical distance: a hint for ground stations that change units, still metres.
        return f"{text} {unit.removesuffix('_v')}" if unit else text


@dataclass(frozen=True, slots=True)
class _Definition:
    namespace: str
    name: str
    group: str
    kind: str
    message: str
    description: str
    types: tuple[str, ...]


class Definitions:
    """Definitions of events, by id; see ``load``."""

    def __init__(self, events: dict[int, _Definition], enums: dict[str, _Enum]) -> None:
        self._events, self._enums = events, enums

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, event_id: object) -> bool:
        return event_id in self._events

    def sentence(self, event_id: int, arguments: bytes, log_levels: int | None = None) -> Event:
        """Return the event as text; never raises.

        event_id    component in the high 8 bits, sub id in the low 24
        arguments   little endian, unpadded; excess bytes (the topic has a fixed array) are ignored
        log_levels  the byte of that name in the topic: internal level in the high nibble, external in the low one

        Without a definition, or with arguments that do not fit it, the text has id and arguments in hex.
        """
        level = None if log_levels is None else _level(log_levels)
        raw = f"arguments {arguments.hex()}" if arguments else "no arguments"
        known = self._events.get(event_id)
        if known is None:
            return Event(event_id, "", "default", "", f"[unknown event {event_id:#010x}, {raw}]", "", level)
        name = f"{known.namespace}::{known.name}"
        values = self._unpack(known, arguments)
        if values is None:
            text = f"[event {event_id:#010x} {name} does not fit its definition, {raw}]"
            return Event(event_id, name, known.group, known.kind, text, "", level)
        message, description = _render(known.message, values), _render(known.description, values)
        return Event(event_id, name, known.group, known.kind, message, description, level)

    def _unpack(self, known: _Definition, arguments: bytes) -> list[_Value] | None:
        """Decode the arguments; None if a type is unknown or bytes are missing."""
        enums = [self._enums.get(t if "::" in t else f"{known.namespace}::{t}") for t in known.types]
        codes = ["<"]
        for type_name, enum in zip(known.types, enums, strict=True):
            code = enum.code if enum else _BASIC.get(type_name)
            if code is None:
                return None
            codes.append(code)
        form = "".join(codes)
        if struct.calcsize(form) > len(arguments):
            return None
        values = struct.unpack_from(form, arguments)
        return [_Value(value, enum) for value, enum in zip(values, enums, strict=True)]


def load(xz: bytes, most: int = Limits().event_json_bytes) -> Definitions:
    """Parse the joined parts of ``metadata_events``, an XZ stream of JSON of at most *most* bytes.

    Raises DefinitionError when the stream is damaged or unreasonably large, or the JSON is not of this kind; or where
    Python was built without lzma, as in browsers.
    """
    try:
        import lzma
    except ImportError as error:
        raise DefinitionError("event definitions are an XZ stream, and this Python has no lzma") from error
    try:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_LZMA)
        text = stream.decompress(xz, max_length=most + 1)
    # A MemoryError is one of this process, since *memlimit* has another error: texts must not be left out silently.
    except lzma.LZMAError as error:
        raise DefinitionError(f"event definitions are not a sound XZ stream: {error}") from error
    if len(text) > most:
        raise DefinitionError(
            f"event definitions unpack to more than {most} bytes, {beyond('event_json_bytes')}"
        )
    if not stream.eof:
        raise DefinitionError(
            f"event definitions are cut off: the XZ stream does not end in its {len(xz)} bytes"
        )
    try:
        content = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"event definitions are not JSON: {error}") from error
    return _parse(content)


def lines(strings: Iterable[Line], rows: Iterable[Row], definitions: Definitions | None) -> list[Line]:
    """Merge logged strings and events by time, each message once.

    A string that ends in a TAB was also sent as an event: with definitions only the event is kept, without them only
    the string, without the TAB. At equal times events come first.
    """
    event_lines: list[Line] = [] if definitions is None else list(_event_lines(rows, definitions))
    for line in strings:
        if not line.text.endswith("\t"):
            event_lines.append(line)
        elif definitions is None:
            event_lines.append(line._replace(text=line.text.removesuffix("\t")))
    return sorted(event_lines, key=lambda line: line.time)


def _level(log_levels: int) -> int:
    """Return the more severe level of an event that is not hidden: a low battery is a warning for the pilot only."""
    internal, external = log_levels >> 4, log_levels & 0xF
    return internal if internal >= HIDDEN_LEVEL else min(internal, external)


def _event_lines(rows: Iterable[Row], definitions: Definitions) -> Iterator[Line]:
    """Yield the events for people; those of reports of the state with their group, and whether they are repeated.

    PX4 sends the whole report each time anything in it changes: a summary of arming checks, the checks that fail, then
    a summary of health with the checks of health before or behind it.
    """
    latest: set[tuple[str, str]] = set()
    before: set[tuple[str, str]] = set()
    known: dict[tuple[int, bytes, int], Event] = {}
    for row in rows:
        # Reports repeat what earlier ones said.
        event = known.get(row[1:]) or definitions.sentence(*row[1:])
        if len(known) < MOST_KNOWN:
            known[row[1:]] = event
        if event.group == MESSAGES:
            if event.shown:
                yield Line(row.time, event.level, event.message)
        elif event.kind == SUMMARY:
            if event.group == FIRST_OF_REPORT:
                before, latest = latest, set()
        elif event.shown:
            key = (event.group, event.message)
            yield Line(row.time, event.level, event.message, event.group, key in before or key in latest)
            latest.add(key)


def _render(template: str, values: list[_Value]) -> str:
    """Return a template as plain text: arguments inserted, markup and content of other profiles removed."""
    parts: list[str] = []
    size = at = 0
    hidden = False
    for token in _TOKEN.finditer(template):
        literal = template[at : token.start()]
        at = token.end()
        if not hidden:
            parts.append(literal)
        if token["tag"] == "profile":
            name = _PROFILE_NAME.search(token["attributes"])
            hidden = not token["end"] and not (name and (name[2] == PROFILE) != bool(name[1]))
        elif not hidden and not token["tag"]:
            literal += (shown := _fill(token, values))
            parts.append(shown)
        size += len(literal)
        if size > MAX_TEXT:
            break
    if not hidden:
        parts.append(template[at:])
    text = "".join(parts).strip()
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _fill(token: re.Match[str], values: list[_Value]) -> str:
    """Return the text for an escaped character or a placeholder; without such an argument the placeholder."""
    if token["escaped"]:
        return token["escaped"]
    index = int(token["index"])
    return values[index - 1].text(token["digits"], token["unit"]) if 0 < index <= len(values) else token[0]


def _parse(content: object) -> Definitions:
    """Build definitions from JSON; every value is checked. Raises DefinitionError."""
    top = _expect(content, dict, "the top")
    if _field(top, "version", int, "") < 1:
        raise DefinitionError(f"event definitions: version {top['version']}; expected 1 or more")
    events: dict[int, _Definition] = {}
    enums: dict[str, _Enum] = {}
    for component, number, where in _numbered(_field(top, "components", dict, ""), "components", 0, 0xFF):
        space = _field(component, "namespace", str, where)
        for name, enum in _field(component, "enums", dict, where, {}).items():
            enums[f"{space}::{name}"] = _parse_enum(enum, f"{where}.enums.{name}")
        for group, members in _field(component, "event_groups", dict, where, {}).items():
            path = f"{where}.event_groups.{_expect(group, str, 'a group name')}"
            listed = _field(_expect(members, dict, path), "events", dict, path, {})
            for event, sub, at in _numbered(listed, f"{path}.events", 0, 0xFFFFFF):
                events[number << 24 | sub] = _parse_event(event, space, group, at)
    return Definitions(events, enums)


def _parse_enum(content: object, where: str) -> _Enum:
    enum = _expect(content, dict, where)
    base_type = _field(enum, "type", str, where)
    if base_type not in _CODES:
        raise DefinitionError(
            f"event definitions: {where}.type is {base_type[:40]!r}; expected an integer type"
        )
    entries = _field(enum, "entries", dict, where, {})
    named = _numbered(entries, f"{where}.entries", -(1 << 63), (1 << 64) - 1)
    texts = {value: _field(entry, "description", str, at) for entry, value, at in named}
    return _Enum(_CODES[base_type], _field(enum, "is_bitfield", bool, where, False), texts)


def _parse_event(event: dict[str, Any], space: str, group: str, where: str) -> _Definition:
    arguments = _field(event, "arguments", list, where, [])
    paths = [f"{where}.arguments[{n}]" for n in range(len(arguments))]
    types = [_field(_expect(a, dict, at), "type", str, at) for a, at in zip(arguments, paths, strict=True)]
    return _Definition(
        namespace=space,
        name=_field(event, "name", str, where),
        group=group,
        kind=_field(event, "type", str, where, ""),
        message=_field(event, "message", str, where),
        description=_field(event, "description", str, where, ""),
        types=tuple(types),
    )


def _expect(value: object, expected: type[_T], where: str) -> _T:
    # bool is a subclass of int.
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise DefinitionError(
            f"event definitions: {where} is of type {type(value).__name__}; expected {expected.__name__}"
        )
    if isinstance(value, str) and (len(value) > MAX_TEXT or _SURROGATE.search(value)):
        raise DefinitionError(f"event definitions: {where} is too long or not Unicode: {value[:40]!a}")
    return value


def _field(owner: dict[str, Any], key: str, expected: type[_T], where: str, default: _T | None = None) -> _T:
    path = f"{where}.{key}" if where else key
    if key in owner:
        return _expect(owner[key], expected, path)
    if default is None:
        raise DefinitionError(f"event definitions: {path} is missing")
    return default


def _numbered(
    owner: dict[str, Any], where: str, low: int, high: int
) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Yield the objects of a JSON object whose keys are whole numbers, each with its number and its path."""
    for key, value in owner.items():
        number = int(key) if re.fullmatch(r"-?[0-9]{1,20}", key) else high + 1
        if not low <= number <= high:
            raise DefinitionError(f"event definitions: key {key[:40]!r} in {where}; expected a whole number")
        yield _expect(value, dict, f"{where}.{key}"), number, f"{where}.{key}"
