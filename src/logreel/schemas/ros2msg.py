"""ROS 2 message definitions (``.msg``), and Layouts of their CDR messages.

A CDR message is four bytes that state the encoding, then fields, numbers aligned to their size. Alignment is relative
to the end of the first four bytes. Gaps that follow from the definition become Padding, so that messages without
strings and counted arrays have few parts; other gaps become Align.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    MAX_LEAVES,
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
from logreel.schemas.ros1msg.definition import short_name, split_text

#: Most characters of a concatenated definition.
MAX_TEXT = 1 << 22
#: Size of numbers in bytes.
NUMBERS = {
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
_LINE = re.compile(
    r"""(?P<type>[A-Za-z]\w*(?:/[A-Za-z]\w*){0,2}) (?:<=(?P<bound>\d{1,10}))?
        (?P<array>\[(?P<most><=)?(?P<count>\d{0,10})\])?
        \s+ (?P<name>[A-Za-z_]\w*) \s* (?P<constant>=)? (?P<rest>.*)""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Ros2Field:
    """A field of a definition; bounds, which do not change the bytes of messages, are left out.

    type   a built-in type, or ``pkg/Type``
    array  True if it has brackets
    count  number of items if it is fixed, else None
    """

    type: str
    name: str
    array: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Ros2Definition:
    """The definition of one type; *name*: ``pkg/Type``."""

    name: str
    fields: tuple[Ros2Field, ...]


def parse(text: str, name: str) -> Mapping[str, Ros2Definition]:
    """Return the messages in a concatenated definition by name, that of *name* first.

    Raises DefinitionError with the line number.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    messages: dict[str, Ros2Definition] = {}
    for section in split_text(text, name):
        if section.name not in messages:
            messages[section.name] = _message(section.text, section.name)
    return messages


def _message(text: str, name: str) -> Ros2Definition:
    package, fields = name.rpartition("/")[0], list[Ros2Field]()
    for number, line in enumerate(text.splitlines(), 1):
        # "#" may be part of a text default; what follows the name does not matter here.
        code = line.partition("#")[0].strip()
        if not code or code.startswith("@"):
            continue
        match = _LINE.fullmatch(code)
        if match is None or (match["bound"] and match["type"] not in ("string", "wstring")):
            raise DefinitionError(
                f"{name[:80]}, line {number}: expected a type and a name, found {code[:60]!r}"
            )
        if match["constant"]:
            continue
        type_name = match["type"]
        if type_name not in NUMBERS and type_name not in ("string", "wstring"):
            type_name = short_name(type_name if "/" in type_name else f"{package}/{type_name}")
        fixed = bool(match["array"] and match["count"] and not match["most"])
        fields.append(
            Ros2Field(type_name, match["name"], bool(match["array"]), int(match["count"]) if fixed else None)
        )
        if len(fields) > MAX_LEAVES:
            raise DefinitionError(f"{name[:80]} has more than {MAX_LEAVES} fields")
    names = [f.name for f in fields]
    if len(set(names)) < len(names):
        raise DefinitionError(f"{name[:80]} has two fields of one name")
    return Ros2Definition(name, tuple(fields))


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
    def __init__(self, messages: Mapping[str, Ros2Definition]) -> None:
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

    def field(self, f: Ros2Field, state: State, out: list[Field], depth: int) -> State:
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

    def sequence(self, f: Ros2Field, state: State, depth: int) -> tuple[Node, State]:
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


def _width(type_name: str) -> tuple[int, int] | None:
    """Return alignment and size in bytes of a built-in type of fixed size, else None."""
    if type_name in _TIMES:
        return 4, 8
    return (NUMBERS[type_name], NUMBERS[type_name]) if type_name in NUMBERS else None


def _number(type_name: str) -> Node:
    return _TIMES.get(type_name) or Scalar(_SAME.get(type_name, type_name))
