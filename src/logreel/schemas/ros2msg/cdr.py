"""Layouts of CDR messages: four bytes that state the encoding, then fields, numbers aligned to their size.

Alignment is relative to the end of the first four bytes. Gaps that follow from the definition become Padding, so that
messages without strings and counted arrays have few parts; other gaps become Align.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import NamedTuple

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    Align,
    Bytes,
    Expect,
    Field,
    FixedArray,
    Grid,
    Measure,
    Node,
    Padding,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
    measure,
)
from logreel.schemas.ros1msg.names import short_name
from logreel.schemas.ros2msg.grammar import NUMBERS, FieldLine, Message, parse

#: Plain CDR, little-endian; the next two bytes are options.
LITTLE = b"\x00\x01"
ORIGIN = 4
#: The length of a string includes its NUL.
TEXT = String(4, Grid(4, ORIGIN), tail=1)
_SAME = {"byte": "uint8", "char": "uint8"}
#: Types that are shown as times, whatever the text defines.
_TIMES: dict[str, Node] = {
    "builtin_interfaces/Time": Time(),
    "builtin_interfaces/Duration": Time(signed=True),
}


class State(NamedTuple):
    """Known alignment of an offset: it is *value* modulo *step*."""

    step: int
    value: int

    def after(self, size: int) -> State:
        """Return the state *size* bytes further."""
        return State(self.step, (self.value + size) % self.step)


START, NOTHING = State(8, 0), State(1, 0)


def layout(name: str, text: str) -> Layout:
    """Return the Layout of little-endian CDR messages of type *name*; *text*: concatenated definition.

    Raises DefinitionError for an invalid text, a missing type, and ``wstring``, which is encoded in several ways.
    """
    messages = parse(text, name)
    try:
        body, _ = _Maker(messages).struct(short_name(name), START, 1)
    except DefinitionError as error:
        raise DefinitionError(f"{name[:80]}: {error.text}") from None
    head = (Field("", Expect(LITTLE)), Field("", Padding(2)))
    return Layout(Struct((*head, *body.fields)), short_name(name))


class _Maker:
    def __init__(self, messages: Mapping[str, Message]) -> None:
        self.messages = messages
        self.made: dict[tuple[str, State], tuple[Struct, State]] = {}
        self.sizes: dict[int, Measure] = {}
        self.active: set[str] = set()

    def struct(self, name: str, state: State, depth: int) -> tuple[Struct, State]:
        """Return the Struct of a type that begins at *state*, and the state of its end."""
        if (name, state) in self.made:
            return self.made[name, state]
        if name not in self.messages:
            raise DefinitionError(f"the definition of {name[:80]} is missing")
        if name in self.active or depth > MAX_DEPTH:
            raise DefinitionError(
                f"{name[:80]} contains itself, or types are nested more than {MAX_DEPTH} deep"
            )
        self.active.add(name)
        begin, out = state, list[Field]()
        for f in self.messages[name].fields:
            state = self.field(f, state, out, depth)
        if not self.messages[name].fields:
            # A type without fields has one byte in IDL, which definitions are translated to.
            out.append(Field("", Padding(1)))
            state = state.after(1)
        self.active.discard(name)
        self.made[name, begin] = Struct(tuple(out)), state
        return self.made[name, begin]

    def field(self, f: FieldLine, state: State, out: list[Field], depth: int) -> State:
        """Add a field to *out*, after its alignment; return the state of its end."""
        if f.type == "wstring":
            raise DefinitionError(f"{f.name} is wide text, which is encoded in several ways")
        if f.array and f.count is None:
            node, state = self.sequence(f, _aligned(4, state, out).after(4), depth)
        elif f.array and f.count == 0:
            return state
        elif (size := _width(f.type)) is not None:
            state = _aligned(size[0], state, out).after(size[1] * (f.count or 1))
            node = _number(f.type) if f.count is None else FixedArray(_number(f.type), f.count)
        elif f.type == "string":
            node, state = (TEXT if f.count is None else FixedArray(TEXT, f.count)), NOTHING
        elif f.count is None:
            node, state = self.struct(f.type, state, depth + 1)
        else:
            node, state = self.repeated(f.type, f.count, state, depth)
        out.append(Field(f.name, node))
        return state

    def repeated(self, name: str, count: int, state: State, depth: int) -> tuple[Node, State]:
        for begin in (state, NOTHING):
            item, end = self.struct(name, begin, depth + 1)
            if measure(item, self.sizes).size is not None and end == begin:
                return FixedArray(item, count), end
        return FixedArray(item, count), end

    def sequence(self, f: FieldLine, state: State, depth: int) -> tuple[Node, State]:
        """Return the Node of a counted array whose count ends at *state*, and the state of its end."""
        if f.type == "string":
            return Sequence(TEXT), NOTHING
        if (size := _width(f.type)) is not None:
            if _number(f.type) == Scalar("uint8"):
                return Bytes(4), NOTHING
            grid = Grid(8, ORIGIN) if size[0] == 8 else None
            return Sequence(_number(f.type), 4, grid), _multiple(gcd(4, size[1]))
        for begin, grid in ((START, Grid(8, ORIGIN)), (State(4, 0), None), (NOTHING, None)):
            item, end = self.struct(f.type, begin, depth + 1)
            fixed = measure(item, self.sizes).size
            # Only an 8-byte number aligns the first item to 8 bytes.
            if fixed is not None and end == begin and (grid is None or self.first(f.type) == 8):
                return Sequence(item, 4, grid), _multiple(gcd(4, fixed))
        # The array may be empty.
        return Sequence(item), NOTHING

    def first(self, name: str) -> int:
        """Return the alignment of the first number of a type."""
        f = next(iter(self.messages[name].fields), None)
        if f is None:
            return 1
        if f.type == "string" or (f.array and f.count is None):
            return 4
        size = _width(f.type)
        return self.first(f.type) if size is None else size[0]


def _multiple(step: int) -> State:
    return State(step, 0)


def _aligned(size: int, state: State, out: list[Field]) -> State:
    """Add the alignment of the next field to a multiple of *size*; return the state of the field."""
    if state.step % size:
        out.append(Field("", Align(Grid(size, ORIGIN))))
        return State(size, 0)
    gap = -state.value % size
    if gap:
        out.append(Field("", Padding(gap)))
    return state.after(gap)


def _width(kind: str) -> tuple[int, int] | None:
    """Return alignment and size in bytes of a built-in type of fixed size, else None."""
    if kind in _TIMES:
        return 4, 8
    return (NUMBERS[kind], NUMBERS[kind]) if kind in NUMBERS else None


def _number(kind: str) -> Node:
    return _TIMES.get(kind) or Scalar(_SAME.get(kind, kind))
