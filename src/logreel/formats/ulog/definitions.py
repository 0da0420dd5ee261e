"""Format texts to Layouts: ``name:type field;…`` with nested types, arrays and padding."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logreel.errors import DefinitionError
from logreel.formats.ulog.records import BASIC, BadRecord
from logreel.model.layout import MAX_DEPTH, MAX_LEAVES, SCALARS, Field, FixedArray, Layout, Node, Padding, Scalar, Struct

#: A data record holds at most this many bytes; arrays that cannot fit are refused before anything is built.
MAX_BYTES = 65535

_FIELD = re.compile(r"([A-Za-z0-9_\-/]+)(?:\[(\d{1,9})\])? ([A-Za-z0-9_]+)\Z")
_NAME = re.compile(r"[A-Za-z0-9_\-/]+\Z")


@dataclass(frozen=True, slots=True)
class FieldText:
    """One field as the format text has it: *count* is None where there are no brackets."""

    type: str
    count: int | None
    name: str

    @property
    def is_padding(self) -> bool:
        """True for what the writer inserted for alignment."""
        return self.name.startswith("_padding")


@dataclass(frozen=True, slots=True)
class FormatText:
    """A parsed ``F`` record."""

    name: str
    fields: tuple[FieldText, ...]
    text: str


def parse_format(payload: bytes) -> FormatText:
    """The name and fields of an ``F`` record. Raises BadRecord."""
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
        fields.append(FieldText(m[1], int(m[2]) if m[2] is not None else None, m[3]))
    return FormatText(name, tuple(fields), text)


@dataclass(frozen=True, slots=True)
class Extent:
    """Sizes of a resolved format: bytes in all, of its own trailing padding, and flattened leaves."""

    size: int
    tail: int
    leaves: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where the message's own timestamp lies: byte offset and width, and microseconds per unit."""

    offset: int
    width: int
    unit: int


class Definitions:
    """All formats of a log so far, resolved by name when asked: a nested type may be defined after its user."""

    def __init__(self) -> None:
        self._texts: dict[str, FormatText] = {}
        self._extents: dict[str, Extent] = {}
        self._nodes: dict[str, Struct] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: FormatText) -> bool:
        """Take in a format; False if another text of that name is in force already, which then stays."""
        known = self._texts.setdefault(text.name, text)
        return known.fields == text.fields

    def extent(self, name: str) -> Extent:
        """Sizes of format *name*, from memory after the first time.

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
        for f in self._texts[name].fields:
            one, inner = (SCALARS[BASIC[f.type]][1], 1) if f.type in BASIC else self._nested(f, name, users)
            count = 1 if f.count is None else f.count
            size += one * count
            tail = tail + one * count if f.is_padding else 0
            leaves += 0 if f.is_padding else inner * (count if f.type not in BASIC else 1)
            if size > MAX_BYTES or leaves > MAX_LEAVES:
                raise DefinitionError(f"format {name} is larger than a message can be")
        self._extents[name] = Extent(size, tail, leaves)
        return self._extents[name]

    def _nested(self, f: FieldText, name: str, users: tuple[str, ...]) -> tuple[int, int]:
        found = self._extent(f.type, (*users, name))
        return found.size, found.leaves

    def stamp(self, name: str) -> Stamp | None:
        """Where the top-level ``timestamp`` lies, or None if format *name* has no usable one."""
        at = 0
        for f in self._texts[name].fields:
            size = SCALARS[BASIC[f.type]][1] if f.type in BASIC else self.extent(f.type).size
            if f.name == "timestamp" and f.count is None and f.type.startswith("uint"):
                # An 8-bit timestamp counts milliseconds, the others microseconds.
                return Stamp(at, size, 1000 if size == 1 else 1)
            at += size * (1 if f.count is None else f.count)
        return None

    def layout(self, name: str) -> Layout:
        """The Layout of format *name*, without its trailing padding, which writers may leave out.

        Raises DefinitionError as ``extent`` does.
        """
        self.extent(name)
        fields = list(self._struct(name).fields)
        while fields and isinstance(fields[-1].node, Padding):
            fields.pop()
        return Layout(Struct(tuple(fields)), name)

    def _struct(self, name: str) -> Struct:
        if name not in self._nodes:
            self._nodes[name] = Struct(tuple(self._field(f) for f in self._texts[name].fields))
        return self._nodes[name]

    def _field(self, f: FieldText) -> Field:
        node: Node = Scalar(BASIC[f.type]) if f.type in BASIC else self._struct(f.type)
        count = 1 if f.count is None else f.count
        if f.is_padding or count == 0:
            size = SCALARS[BASIC[f.type]][1] if f.type in BASIC else self.extent(f.type).size
            return Field("", Padding(size * count))
        return Field(f.name, node if f.count is None else FixedArray(node, count))

    def text(self, name: str) -> str:
        """The format text of *name* and, each on a line of its own, of every type nested in it."""
        lines: dict[str, str] = {}
        todo = [name]
        while todo:
            n = todo.pop()
            if n in lines or n not in self._texts:
                continue
            lines[n] = self._texts[n].text
            todo += [f.type for f in reversed(self._texts[n].fields) if f.type not in BASIC]
        return "\n".join(lines.values())
