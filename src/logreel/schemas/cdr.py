"""Messages of ROS 2 and DDS in all encodings of CDR that no Layout describes, as columns and plain values.

The Layout kernel reads little-endian CDR and CDR2 of final types. What else a message states in its first two bytes
(big-endian numbers; sizes before appendable types; parameters of mutable ones), and wide text and optional members, is
first written again by ``kernels.cdr``: little-endian and without gaps, which a Layout describes. The encodings are in
OMG, "Extensible and Dynamic Topic Types for DDS", version 1.3, chapter 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logreel.errors import DamagedError, DefinitionError, Problem
from logreel.index.gather import PayloadRange
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.kernels import cdr as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    Bytes,
    Field,
    FixedArray,
    Node,
    Padding,
    Scalar,
    Sequence,
    String,
    Struct,
    measure,
)
from logreel.log.scan import decoded
from logreel.schemas.ros1msg.definition import short_name
from logreel.schemas.ros2msg import (
    APPENDABLE,
    ENCAPSULATIONS,
    FINAL,
    MUTABLE,
    NUMBERS,
    TIMES,
    WIDE,
    Ros2Definition,
    Ros2Field,
    number,
    reachable,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from logreel.layout.arrow import Decoded

#: Bytes behind a message that may be padding.
_PADDING = 3
#: The members of types that are shown as times.
_MOMENT = Ros2Field("int32", "sec"), Ros2Field("uint32", "nanosec")
#: What stands for a type without fields, which IDL does not have.
_DUMMY = Ros2Field("uint8", "")


class _Encoding(NamedTuple):
    """What the first two bytes of a message say: version of CDR, extensibility of its type, and order of bytes."""

    version: int
    extensibility: str
    is_big: bool

    def defaults(self, stated: str) -> tuple[str, ...]:
        """Return what types may be that state no extensibility, the likely first; *stated*: by the type of the message.

        Where that states none either, they are what it is. Else compilers differ: the specification has appendable.
        """
        if not stated:
            return (self.extensibility,)
        return (FINAL,) if self.version == 1 else (APPENDABLE, FINAL)

    @property
    def wide(self) -> tuple[tuple[int, bool], ...]:
        """How wide text may be written, the likely first: bytes of a character, whether its count is one of bytes.

        The specification has two bytes, and counts bytes; Fast CDR and what follows it have four, and count characters.
        """
        return (
            ((4, False), (2, True), (2, False)) if self.version == 1 else ((2, True), (4, False), (2, False))
        )


_ENCODINGS = {
    begin: _Encoding(
        1 if begin[1] < 6 else 2,
        {0: FINAL, 2: MUTABLE, 6: FINAL, 8: APPENDABLE, 10: MUTABLE}[begin[1] & ~1],
        begin[1] % 2 == 0,
    )
    for begin in ENCAPSULATIONS
}


class CdrDecoder:
    """Decodes messages of a type in any encoding of CDR, each by its own first bytes.

    name      of the type, one of *messages*
    samples   returns first messages, which show what definitions and first bytes leave open

    Raises DefinitionError for types that are missing, contain themselves, or are too large.
    """

    def __init__(
        self,
        name: str,
        messages: Mapping[str, Ros2Definition],
        samples: Callable[[], Iterable[bytes]] = tuple,
    ) -> None:
        top = short_name(name)
        try:
            definitions = _Definitions(top, messages)
            self.layout = Layout(definitions.struct(top, True), top)
            self._wire = Layout(definitions.struct(top, False), top)
        except DefinitionError as error:
            raise DefinitionError(f"{name[:80]}: {error.text}") from None
        self._definitions, self._samples = definitions, samples
        self._ways: dict[_Encoding, list[_Way]] = {}

    # ------------------------------------------------------------------------------------------- as PayloadDecoder

    def decode_batch(self, index: MessageIndex, layout: Layout, stored: PayloadRange, rows: I64) -> Decoded:
        """Decode a batch of payloads; payloads that do not fit are skipped (see PayloadDecoder)."""
        start = np.ascontiguousarray(stored.offset, np.int64)
        plain = self._rewritten(stored.data, start, start + stored.size)
        if self._definitions.has_optional:
            view, values = memoryview(plain.data.data), list[dict[str, Any]]()
            sound = plain.left >= 0
            for first, last in zip(plain.start[sound].tolist(), plain.stop[sound].tolist(), strict=True):
                values.append(self._values(view[first:last]))
            got = decoded(layout, values, plain.bad, len(rows))
        else:
            from logreel.layout.arrow import decode_variable
            from logreel.layout.numpy_columns import NumpyFields

            got = decode_variable(NumpyFields(layout), plain.data, plain.start, plain.stop)
        return replace(got, bad=plain.bad, leftover=np.flatnonzero(plain.left > _PADDING))

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one payload; raise DamagedError if it does not fit."""
        source = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
        plain = self._rewritten(source, np.zeros(1, np.int64), np.array([len(source)], np.int64))
        if plain.bad:
            raise DamagedError(Problem("payload", 0, len(source), True, plain.bad[0][1]))
        return self._values(memoryview(plain.data.data)[: plain.stop[0]])

    @cached_property
    def _read(self) -> Callable[[memoryview], dict[str, Any]]:
        return self._wire.decoder()

    def _values(self, data: memoryview) -> dict[str, Any]:
        values = self._read(data)
        return self._definitions.without_lists(values) if self._definitions.has_optional else values

    # -------------------------------------------------------------------------------------------------- rewriting

    def _rewritten(self, source: NDArray[np.uint8], start: I64, stop: I64) -> _Plain:
        """Return messages as ``_wire`` describes them."""
        plain = _Plain(len(start))
        begins = np.zeros(len(start), np.int64) - 1
        sound = (start >= 0) & (stop - start >= 4) & (stop <= len(source))
        begins[sound] = source[start[sound]].astype(np.int64) << 8 | source[start[sound] + 1]
        for begin in np.unique(begins).tolist():
            rows = np.flatnonzero(begins == begin)
            known = begin.to_bytes(2, "big") if begin >= 0 else b""
            if (encoding := _ENCODINGS.get(known)) is None:
                plain.refuse(
                    rows, f"it begins with {known.hex(' ')}, which is no known encoding" if known else ""
                )
                continue
            for way in self._ways_of(encoding):
                plain.take(rows, *_rewrite(source, start[rows], stop[rows], way))
                rows = rows[(plain.left[rows] < 0) | (plain.left[rows] > _PADDING)]
                if not len(rows):
                    break
            rows = rows[plain.left[rows] < 0]
            plain.refuse(rows, f"it does not fit its definition in {ENCAPSULATIONS[known]}")
        plain.finish()
        return plain

    def _ways_of(self, encoding: _Encoding) -> list[_Way]:
        """Return in which ways messages of an encoding may be read, that of most samples first."""
        if encoding not in self._ways:
            programs = list[list[list[int]]]()
            for default in encoding.defaults(self._definitions.stated):
                ops = self._definitions.ops(encoding.version, encoding.extensibility, default)
                if ops not in programs:
                    programs.append(ops)
            wide = encoding.wide if self._definitions.has_wide else encoding.wide[:1]
            most = 8 if encoding.version == 1 else 4
            ways = [
                _Way(np.array(ops, np.int64).reshape(-1, 6), (encoding.is_big, most, unit, in_bytes))
                for ops, (unit, in_bytes) in product(programs, wide)
            ]
            if len(ways) > 1:
                own = [data for data in self._samples() if _ENCODINGS.get(data[:2]) == encoding]
                ways.sort(key=lambda way: -sum(map(way.fits, own)))
            self._ways[encoding] = ways
        return self._ways[encoding]


class _Way(NamedTuple):
    """A way to read messages: ops of ``kernels.cdr``, and how numbers and wide text are written."""

    ops: I64
    how: tuple[bool, int, int, bool]

    def fits(self, data: bytes) -> bool:
        """Return whether a message can be read so, without bytes left over."""
        *_, left = _rewrite(
            np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)], np.int64), self
        )
        return 0 <= int(left[0]) <= _PADDING


class _Plain:
    """Messages that were written again.

    data   uint8[b]
    start  int64[n]: message i is data[start[i]:stop[i]]; it ends before it starts where it could not be read
    left   int64[n]: bytes behind it in the log, negative where it could not be read
    bad    (message, reason) of each of these
    """

    def __init__(self, rows: int) -> None:
        self.data, self._pieces, self._size = np.zeros(0, np.uint8), list[Any](), 0
        self.start, self.stop = np.zeros(rows, np.int64), np.full(rows, -1, np.int64)
        self.left, self.bad = np.full(rows, kernel.BAD, np.int64), list[tuple[int, str]]()

    def take(self, rows: I64, data: list[NDArray[np.uint8]], places: I64, sizes: I64, left: I64) -> None:
        """Take messages of *rows* that were read, unless they were read before with fewer bytes left over."""
        better = (left >= 0) & ((self.left[rows] < 0) | (left < self.left[rows]))
        at = rows[better]
        self.left[at], self.start[at] = left[better], self._size + places[better]
        self.stop[at] = self.start[at] + sizes[better]
        self._pieces += data
        self._size += sum(map(len, data))

    def refuse(self, rows: I64, why: str) -> None:
        """Give *why* as the reason that messages cannot be read; empty: they are too short."""
        from logreel.layout.arrow import TOO_SHORT

        self.bad += [(row, why or TOO_SHORT) for row in rows.tolist()]

    def finish(self) -> None:
        """Join what was taken."""
        self.bad.sort()
        if self._pieces:
            self.data = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)


def _rewrite(
    source: NDArray[np.uint8], start: I64, stop: I64, way: _Way
) -> tuple[list[NDArray[np.uint8]], I64, I64, I64]:
    """Return pieces of rewritten messages; places in all of them, sizes, and bytes that are left, of each."""
    rows, at, size = len(start), 0, 0
    pieces, first, sizes = list[Any](), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    left = np.zeros(rows, np.int64)
    room = 2 * int((stop - start).sum()) + 8192
    while at < rows:
        out, places = np.empty(room, np.uint8), np.zeros(rows - at + 1, np.int64)
        done = kernel.rewrite(source, start[at:], stop[at:], way.ops, way.how, out, places, left[at:])
        pieces.append(out[: int(places[done])])
        first[at : at + done] = size + places[:done]
        sizes[at : at + done] = np.diff(places[: done + 1])
        size, at = size + int(places[done]), at + done
        if at < rows:
            room = max(room, 20 * int(stop[at] - start[at]) + 8192)
    return pieces, first, sizes, left


@dataclass
class _Definitions:
    """What definitions say of the bytes of messages: nodes of a Layout without gaps, and the ops that write them."""

    top: str
    messages: Mapping[str, Ros2Definition]

    def __post_init__(self) -> None:
        self._made: dict[tuple[str, bool], Struct] = {}
        self._active: set[str] = set()
        self.stated = self._definition(self.top).extensibility
        fields = [f for d in reachable(self.top, self.messages) for f in d.fields]
        self.has_optional = any(f.optional for f in fields)
        self.has_wide = any(f.type in WIDE for f in fields)
        for d in reachable(self.top, self.messages):
            ids = [member_id for member_id, _ in _with_ids(d)]
            if len(set(ids)) < len(ids):
                raise DefinitionError(f"{d.name[:80]} has two members of one id")

    def _definition(self, name: str) -> Ros2Definition:
        known = self.messages.get(name) or (Ros2Definition(name, _MOMENT) if name in TIMES else None)
        if known is None:
            raise DefinitionError(f"the definition of {name[:80]} is missing")
        return replace(known, fields=_MOMENT if name in TIMES else known.fields or (_DUMMY,))

    # ---------------------------------------------------------------------------------------------------- nodes

    def struct(self, name: str, is_shown: bool, depth: int = 1) -> Struct:
        """Return the Struct of a type; *is_shown*: with what is optional as itself, else as a list."""
        key = (name, is_shown)
        if key not in self._made:
            if name in self._active or depth > MAX_DEPTH:
                raise DefinitionError(
                    f"{name[:80]} contains itself, or types are nested more than {MAX_DEPTH} deep"
                )
            self._active.add(name)
            fields = [
                Field(f.name, self.node(f, is_shown, depth) if f.name else Padding(1))
                for f in self._definition(name).fields
                if f.count != 0
            ]
            self._active.discard(name)
            self._made[key] = Struct(tuple(fields))
        return self._made[key]

    def node(self, f: Ros2Field, is_shown: bool, depth: int = 1) -> Node:
        """Return the Node of a field."""
        item: Node
        if f.type in ("string", "wstring"):
            item = String()
        elif f.type in NUMBERS or f.type in TIMES or f.type == "wchar":
            item = number("uint16" if f.type == "wchar" else f.type)
        else:
            item = self.struct(f.type, is_shown, depth + 1)
        if f.array and f.count is None:
            if measure(item).least == 0:
                raise DefinitionError(f"{f.name} is an array of items without bytes")
            item = Bytes() if item == Scalar("uint8") else Sequence(item)
        elif f.count is not None:
            item = FixedArray(item, f.count)
        return Sequence(Struct((Field("value", item),))) if f.optional and not is_shown else item

    def without_lists(self, values: dict[str, Any], name: str = "") -> dict[str, Any]:
        """Return the values of a message, with what is optional as its value or None."""
        out = dict[str, Any]()
        for f in self._definition(name or self.top).fields:
            if f.count == 0 or not f.name:
                continue
            value = values[f.name]
            if f.optional:
                value = value[0]["value"] if value else None
            if value is not None and f.type in self.messages and f.type not in TIMES:
                value = (
                    [self.without_lists(item, f.type) for item in value]
                    if f.array
                    else self.without_lists(value, f.type)
                )
            out[f.name] = value
        return out

    # ------------------------------------------------------------------------------------------------------ ops

    def ops(self, version: int, extensibility: str, default: str) -> list[list[int]]:
        """Return the ops of a message.

        extensibility  of its type, as the message states it
        default        of types that state none
        """
        return self._type_ops(self.top, version, extensibility, default)

    def _type_ops(self, name: str, version: int, extensibility: str, default: str) -> list[list[int]]:
        out = list[list[int]]()
        is_sized = extensibility == MUTABLE or (extensibility == APPENDABLE and version == 2)
        for member_id, f in _with_ids(self._definition(name)):
            if f.count == 0:
                continue
            body = self._field_ops(f, version, default)
            if f.optional and extensibility != MUTABLE:
                body = _with_body(kernel.OPTIONAL, body, version, member_id)
            if is_sized:
                absent = measure(self.node(f, False)).least if f.name else 1
                is_list = f.optional and extensibility == MUTABLE
                body = _with_body(kernel.MEMBER, body, member_id, absent, is_list)
            out += body
        if extensibility == MUTABLE:
            return _with_body(kernel.PARAMETERS, out, version)
        return _with_body(kernel.DELIMITED, out) if is_sized else out

    def _field_ops(self, f: Ros2Field, version: int, default: str) -> list[list[int]]:
        is_counted = f.array and f.count is None
        if f.type in NUMBERS:
            width = NUMBERS[f.type]
            body = [[kernel.NUMBERS, width] if is_counted else [kernel.NUMBER, width, f.count or 1]]
            body = [[*op, *[0] * (6 - len(op))] for op in body]
            return _with_body(kernel.BLOCK, body) if f.array and f.enumeration and version == 2 else body
        if f.type == "wchar" and not is_counted:
            return [[kernel.WCHAR, f.count or 1, 0, 0, 0, 0]]
        if f.type in ("string", "wstring"):
            body = [[kernel.TEXT if f.type == "string" else kernel.WIDE, 0, 0, 0, 0, 0]]
        elif f.type == "wchar":
            body = [[kernel.WCHAR, 1, 0, 0, 0, 0]]
        else:
            extensibility = self._definition(f.type).extensibility or default
            body = self._type_ops(f.type, version, extensibility, default)
        if f.array:
            body = (
                _with_body(kernel.LIST, body, 1)
                if is_counted
                else _with_body(kernel.REPEAT, body, f.count or 0)
            )
            if version == 2 and f.type != "wchar":
                body = _with_body(kernel.BLOCK, body)
        return body


def _with_ids(definition: Ros2Definition) -> Iterator[tuple[int, Ros2Field]]:
    member_id = -1
    for f in definition.fields:
        member_id = member_id + 1 if f.id is None else f.id
        yield member_id, f


def _with_body(code: int, body: list[list[int]], a: int = 0, b: int = 0, c: int = 0) -> list[list[int]]:
    return [[code, a, b, int(c), 0, len(body)], *body]
