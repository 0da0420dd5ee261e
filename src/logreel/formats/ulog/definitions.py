"""Definitions in text: format records (``name:type field;…``) to Layouts, and information records (``I``, ``M``).

Values of information records become plain values, and these become the same bytes again. What plain values do not say
is kept in the metadata under the name of the format, so that a converted log can be converted back to the same
records; see ``RecordDetails``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import NamedTuple, dataclass, lazy_pattern
from logreel.errors import DefinitionError, UsageError
from logreel.formats.ulog.records import BASIC, RECORD, BadRecord, KeyValue, is_name, typed_name
from logreel.layout.layout import Layout, shared
from logreel.layout.nodes import (
    MAX_DEPTH,
    MAX_LEAVES,
    SCALARS,
    Field,
    FixedArray,
    Node,
    Padding,
    Scalar,
    Struct,
)
from logreel.log.scan import Schema

if TYPE_CHECKING:
    from logreel.write.format_writer import Payload

#: Largest payload of a record; arrays that cannot fit are refused before anything is built.
MAX_BYTES = 65535

_WIDTHS = {name: SCALARS[scalar][1] for name, scalar in BASIC.items()}
#: Number of parsed texts that are cached, and the longest one in bytes.
FORMATS, SHORT = 1024, 4096
_SCALARS = {name: Scalar(scalar) for name, scalar in BASIC.items()}
_STAMPS = ("uint64_t", "uint32_t", "uint16_t", "uint8_t")


class FieldText(NamedTuple):
    """One field of a format.

    times       number of items of an array; None for a single value
    is_padding  whether the writer inserted it for alignment
    """

    type: str
    times: int | None
    name: str
    is_padding: bool


@dataclass(frozen=True, slots=True)
class FormatText:
    """A parsed ``F`` record."""

    name: str
    fields: tuple[FieldText, ...]
    text: str


def parse_format(payload: bytes) -> FormatText:
    """Parse an ``F`` record. Raises BadRecord."""
    return _remembered(payload) if len(payload) <= SHORT else _parsed(payload)


def _parsed(payload: bytes) -> FormatText:
    text = payload.decode("utf-8", "replace")
    name, colon, body = text.partition(":")
    parts = body.split(";")
    if parts and not parts[-1].strip("\0 "):
        parts.pop()
    if not colon or not is_name(name) or name in BASIC or not parts:
        raise BadRecord(f"not a format: {text[:60]!r}")
    fields = []
    for part in parts:
        typed = typed_name(part)
        if typed is None or not is_name(typed[2]) or not {*"-/"}.isdisjoint(typed[2]):
            raise BadRecord(f"format {name}: not a field: {part[:40]!r}")
        fields.append(FieldText(*typed, typed[2].startswith("_padding")))
    return FormatText(name, tuple(fields), text)


#: Merged logs, and the new log, have the same definitions.
_remembered = lru_cache(FORMATS)(_parsed)


@dataclass(frozen=True, slots=True)
class TimestampField:
    """The timestamp of a message: byte offset, width in bytes, and microseconds per unit."""

    offset: int
    width: int
    unit: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Sizes of a resolved format in bytes.

    size    with trailing padding
    tail    trailing padding
    leaves  number of fields that nested types and arrays of them flatten to
    stamp   the top-level timestamp, if there is one
    """

    size: int
    tail: int
    leaves: int
    stamp: TimestampField | None

    @property
    def least(self) -> int:
        """Size of a message in bytes without the trailing padding, which writers may omit."""
        return self.size - self.tail


class Definitions:
    """The formats of a log, resolved by name when asked: a nested type may be defined after its user."""

    def __init__(self) -> None:
        self._texts: dict[str, FormatText] = {}
        self._extents: dict[str, Extent] = {}
        self._nodes: dict[str, Struct] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: FormatText) -> bool:
        """Add a format; return False, without any change, if that name is defined with other fields."""
        known = self._texts.setdefault(text.name, text)
        return known.fields == text.fields

    def differs(self, name: str, text: FormatText) -> bool:
        """Return whether *name* is defined with other fields than *text* has."""
        return name in self._texts and self._texts[name].fields != text.fields

    def extent(self, name: str) -> Extent:
        """Return the sizes of format *name*; cached.

        Raises DefinitionError for a missing or circular nested type, or one that cannot fit into a message.
        """
        return self._extent(name, ())

    def _extent(self, name: str, users: tuple[str, ...]) -> Extent:
        if name in self._extents:
            return self._extents[name]
        if name in users or len(users) > MAX_DEPTH:
            raise DefinitionError(f"format {name} contains itself or nests deeper than {MAX_DEPTH}")
        if name not in self._texts:
            raise DefinitionError(f"there is no format {name}")
        size = tail = leaves = 0
        stamp = None
        for type_name, times, label, is_padding in self._texts[name].fields:
            width, inner = self._item(type_name, name, users)
            count = 1 if times is None else times
            if label == "timestamp" and times is None and type_name in _STAMPS:
                # An 8-bit timestamp counts milliseconds, the others microseconds.
                stamp = TimestampField(size, width, 1000 if width == 1 else 1)
            size += width * count
            tail = tail + width * count if is_padding else 0
            leaves += 0 if is_padding else inner * (1 if type_name in BASIC else count)
            if size > MAX_BYTES:
                text = f"format {name} has {size} bytes or more; a message has at most {MAX_BYTES}"
                raise DefinitionError(text)
            if leaves > MAX_LEAVES:
                raise DefinitionError(f"format {name} has more than {MAX_LEAVES} leaves")
        self._extents[name] = Extent(size, tail, leaves, stamp)
        return self._extents[name]

    def _item(self, type_name: str, name: str, users: tuple[str, ...]) -> tuple[int, int]:
        """Return bytes and leaves of one item of type *type_name*, used by format *name*."""
        if type_name in _WIDTHS:
            return _WIDTHS[type_name], 1
        extent = self._extent(type_name, (*users, name))
        return extent.size, extent.leaves

    def layout(self, name: str) -> Layout:
        """Return the Layout of format *name* without its trailing padding, which writers may omit.

        Raises DefinitionError as ``extent`` does.
        """
        self.extent(name)
        return shared(("ulog", name, self.text(name)), lambda: self._layout(name))

    def _layout(self, name: str) -> Layout:
        fields = list(self._struct(name).fields)
        while fields and isinstance(fields[-1].node, Padding):
            fields.pop()
        return Layout(Struct(tuple(fields)), name)

    def value_layout(self, name: str, count: int | None) -> tuple[Layout, int, int]:
        """Return the Layout of a field ``value`` of the type *name*, or an array of *count*, and its sizes.

        The sizes are in bytes, without and with trailing padding. Raises DefinitionError as ``extent`` does.
        """
        extent = self.extent(name)
        size = extent.size * (1 if count is None else count)
        if not 0 < size <= MAX_BYTES:
            raise DefinitionError(f"{size} bytes of {name} fit into no record, which has 1 to {MAX_BYTES}")
        layout = Layout(Struct((self._field(FieldText(name, count, "value", False)),)), name)
        return layout, size - extent.tail, size

    def _struct(self, name: str) -> Struct:
        if name not in self._nodes:
            self._nodes[name] = Struct(tuple(self._field(f) for f in self._texts[name].fields))
        return self._nodes[name]

    def _field(self, f: FieldText) -> Field:
        node: Node = _SCALARS[f.type] if f.type in BASIC else self._struct(f.type)
        count = 1 if f.times is None else f.times
        if f.is_padding or count == 0:
            return Field("", Padding(self._item(f.type, "", ())[0] * count))
        return Field(f.name, node if f.times is None else FixedArray(node, count))

    def text(self, name: str) -> str:
        """Return the format text of *name*, followed by that of every type nested in it, one per line."""
        lines: dict[str, str] = {}
        todo = [name]
        while todo:
            n = todo.pop()
            if n in lines or n not in self._texts:
                continue
            lines[n] = self._texts[n].text
            todo += [f.type for f in reversed(self._texts[n].fields) if f.type not in BASIC]
        return "\n".join(lines.values())


def layout_of(schema: Schema) -> Layout | None:
    """Return the Layout of a channel from its schema alone; None if that has no text. Raises DefinitionError."""
    if not schema.text:
        return None
    known = Definitions()
    try:
        names = [text.name for text in map(parse_format, schema.raw.splitlines()) if known.add(text)]
    except BadRecord as error:
        raise DefinitionError(str(error)) from None
    return known.layout(names[0])


MAX_SIZE = 65535
_WHOLE = (("int32_t", "i"), ("uint32_t", "I"), ("int64_t", "q"), ("uint64_t", "Q"))


def pack_record(letter: str, *parts: Payload) -> bytes:
    """Return a record with its header. Raises UsageError if the parts are too large."""
    size = sum(map(len, parts))
    if size > MAX_SIZE:
        raise UsageError(f"a record of {size} bytes; a ULog holds at most {MAX_SIZE} in one")
    return b"".join((RECORD.pack(size, ord(letter)), *parts))


def pack_key(text: str, name: str) -> bytes:
    """Return the key *text*, which ends in *name*, after its length. Raises UsageError for an invalid name."""
    if not is_name(name) or len(text) > 255:
        raise UsageError(f"{name!r:.60} is no name of a ULog: letters, digits, _ - and / only")
    return bytes((len(text),)) + text.encode()


def pack_number(name: str, code: str, value: Any) -> bytes:
    """Encode a number by its struct code. Raises UsageError if it does not fit."""
    try:
        return struct.pack("<" + code, value)
    except (struct.error, OverflowError) as error:
        raise UsageError(f"{name!r}: {value!r:.40} cannot be written: {error}") from None


def pack_key_value(name: str, value: Any) -> tuple[bytes, bytes]:
    """Encode key and value of information, with the first type that holds *value*. Raises UsageError."""
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        type_name = "char" if isinstance(value, str) else "uint8_t"
        return pack_key(f"{type_name}[{len(data)}] {name}", name), data
    if isinstance(value, float):
        return pack_key(f"double {name}", name), pack_number(name, "d", value)
    if isinstance(value, bool):
        return pack_key(f"bool {name}", name), pack_number(name, "?", value)
    if not isinstance(value, int):
        raise UsageError(f"metadata {name!r}: a ULog holds text, numbers and bytes, not {value!r:.40}")
    for type_name, code in _WHOLE:
        try:
            return pack_key(f"{type_name} {name}", name), struct.pack("<" + code, value)
        except struct.error:
            continue
    raise UsageError(f"metadata {name!r}: {value} does not fit 64 bits")


#: Name in the metadata of the details that only this format has.
OWN = "ulog"
#: Information that is a version, packed into 32 bits: major, minor, patch, stage.
RELEASES = ("ver_sw_release", "ver_vendor_sw_release")
_STAGES = ((255, ""), (192, "-rc"), (128, "-beta"), (64, "-alpha"), (0, "-dev"))
_RELEASE = lazy_pattern(r"v(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:(-dev|-alpha|-beta|-rc)(\d{1,2})?)?\Z")
_TYPE = lazy_pattern(r"([A-Za-z0-9_\-/]+)(\[\d*\])?\Z")


def release(number: int) -> str:
    """Return a packed version as text: ``v1.16.0``, ``v1.16.0-rc`` or, with a number, ``v1.16.0-rc2``."""
    major, minor, patch, stage = struct.pack(">I", number)
    least, suffix = next(entry for entry in _STAGES if stage >= entry[0])
    return f"v{major}.{minor}.{patch}{suffix}" + (str(stage - least) if stage > least else "")


def release_number(text: str) -> int | None:
    """Return the packed version for which ``release`` gives *text*, or None."""
    match = _RELEASE.match(text)
    if match is None:
        return None
    stage = {suffix: least for least, suffix in _STAGES}[match[4] or ""] + int(match[5] or 0)
    parts = [int(match[n]) for n in (1, 2, 3)] + [stage]
    number = int.from_bytes(bytes(parts)) if max(parts) <= 255 else -1
    return number if number >= 0 and release(number) == text else None


def type_of(key_value: KeyValue) -> str:
    """Return the type of a value with its length in brackets; without the length for text."""
    if key_value.count is None:
        return key_value.type
    return f"{key_value.type}[]" if key_value.type == "char" else f"{key_value.type}[{key_value.count}]"


def is_binary(key_value: KeyValue) -> bool:
    """Return whether a value is binary content, to be shown as an attachment."""
    return key_value.type == "uint8_t" and key_value.count is not None


def value_of(key_value: KeyValue, definitions: Definitions) -> Any:
    """Decode a value: text, number, list, or dict for the type of a format; bytes if the size does not fit."""
    if key_value.type in BASIC:
        value = key_value.value()
        if key_value.name in RELEASES and type_of(key_value) == "uint32_t" and isinstance(value, int):
            return release(value)
        return value
    try:
        layout, least, size = definitions.value_layout(key_value.type, key_value.count)
    except DefinitionError:
        return key_value.data
    if not least <= len(key_value.data) <= size:
        return key_value.data
    row: Mapping[str, Any] = layout.decoder()(memoryview(key_value.data + bytes(size - len(key_value.data))))
    return row["value"]


def pack_value(name: str, value: Any, type_name: str | None) -> tuple[bytes, bytes]:
    """Encode key and value of information of type *type_name*; None: of the first type that holds *value*.

    Raises UsageError for a value that the type does not hold.
    """
    number = release_number(value) if name in RELEASES and isinstance(value, str) else None
    if number is not None and type_name in (None, "uint32_t"):
        value, type_name = number, "uint32_t"
    match = _TYPE.match(type_name or "")
    if match is None or match[1] not in BASIC or isinstance(value, str | bytes):
        return pack_key_value(name, value)
    dtype = np.dtype(SCALARS[BASIC[match[1]]][0])
    try:
        packed = np.array(value, dtype)
        if dtype.kind != "f" and (packed != np.array(value)).any():
            raise ValueError
        return pack_key(f"{type_name} {name}", name), packed.tobytes()
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"metadata {name!r}: {value!r:.40} is no {type_name}") from None


class RecordDetails:
    """Details of information records that plain values do not have, and that writing the same records needs.

    types    type of each value, by name
    parts    sizes of the parts of binary entries, by name
    raw      kind and payload of records that cannot be encoded from their value, by name
    formats  definitions of types that are not basic
    """

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.parts: dict[str, list[list[int]]] = {}
        self.raw: dict[str, list[list[Any]]] = {}
        self.formats: list[str] = []

    def add(
        self,
        letter: str,
        name: str,
        entries: Sequence[tuple[KeyValue, bytes]],
        values: Sequence[Any],
        definitions: Definitions,
    ) -> None:
        """Add all records of one key: key with value and payload of each, and the decoded values."""
        first = entries[0][0]
        self.types[name] = type_name = type_of(first)
        if first.type not in BASIC:
            self.formats += [t for t in definitions.text(first.type).splitlines() if t not in self.formats]
        for (detail, payload), value in zip(entries, values, strict=True):
            try:
                encoded = b"".join(pack_value(detail.name, value, type_name))
            except UsageError:
                encoded = b""
            if payload[letter == "M" :] != encoded:
                self.raw[name] = [[letter, payload] for _, payload in entries]
                return

    def metadata(self) -> dict[str, Any]:
        """Return the details that are not empty, as metadata."""
        every = {"types": self.types, "parts": self.parts, "raw": self.raw, "formats": self.formats}
        return {name: value for name, value in every.items() if value}
