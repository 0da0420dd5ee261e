"""Parse format records (``name:type field;…``) and build Layouts from them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError
from logreel.formats.ulog.records import BASIC, BadRecord
from logreel.layout.layout import Layout
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

#: Largest payload of a record; arrays that cannot fit are refused before anything is built.
MAX_BYTES = 65535

_FIELD = re.compile(r"([A-Za-z0-9_\-/]+)(?:\[(\d{1,9})\])? ([A-Za-z0-9_]+)\Z")
_NAME = re.compile(r"[A-Za-z0-9_\-/]+\Z")
_WIDTHS = {name: SCALARS[scalar][1] for name, scalar in BASIC.items()}
#: Number of parsed texts that are cached, and the longest one in bytes.
FORMATS, SHORT = 1024, 4096
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
    if not colon or not _NAME.match(name) or name in BASIC or not parts:
        raise BadRecord(f"not a format: {text[:60]!r}")
    fields = []
    for part in parts:
        m = _FIELD.match(part)
        if m is None:
            raise BadRecord(f"format {name}: not a field: {part[:40]!r}")
        type_name, count, field = m.groups()
        fields.append(
            FieldText(type_name, None if count is None else int(count), field, field.startswith("_padding"))
        )
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
        node: Node = Scalar(BASIC[f.type]) if f.type in BASIC else self._struct(f.type)
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
