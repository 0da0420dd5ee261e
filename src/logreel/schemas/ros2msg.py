"""ROS 2 message definitions (``.msg``), and Layouts of their CDR messages.

A CDR message is four bytes that state the encoding, then fields, numbers aligned to their size. Alignment is relative
to the end of the first four bytes. Gaps that follow from the definition become Padding, so that messages without
strings and counted arrays have few parts; other gaps become Align.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import gcd
from pathlib import Path
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
from logreel.schemas import ros1msg
from logreel.schemas.ros1msg.definition import DefinitionText, join_text, short_name, split_text

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

    type         a built-in type, or ``pkg/Type``
    array        True if it has brackets
    count        number of items if it is fixed, else None
    id           of the member in messages of mutable types; None: one more than that of the field before it
    optional     whether messages may lack it
    enumeration  whether its numbers stand for names, which arrays of them in CDR2 show
    """

    type: str
    name: str
    array: bool = False
    count: int | None = None
    id: int | None = None
    optional: bool = False
    enumeration: bool = False


@dataclass(frozen=True, slots=True)
class Ros2Definition:
    """The definition of one type; *name*: ``pkg/Type``; *extensibility*: empty where it states none."""

    name: str
    fields: tuple[Ros2Field, ...]
    extensibility: str = ""


#: What types say of later versions of themselves.
FINAL, APPENDABLE, MUTABLE = "final", "appendable", "mutable"


def parse(text: str, name: str) -> Mapping[str, Ros2Definition]:
    """Return the messages in a concatenated definition by name, that of *name* first.

    Raises DefinitionError with the line number.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    messages: dict[str, Ros2Definition] = {}
    for section in _with_event(split_text(text, name), name):
        if section.name not in messages:
            messages[section.name] = _message(section.text, section.name)
    return messages


#: What the events of a service have, in which recorders see its calls (``service_msgs/ServiceEventInfo``).
_EVENT = """service_msgs/ServiceEventInfo info
{0}_Request[<=1] request
{0}_Response[<=1] response"""
_EVENT_INFO = """uint8 event_type
builtin_interfaces/Time stamp
char[16] client_gid
int64 sequence_number"""
_DASHES = re.compile(r"^---[ \t\r]*$", re.MULTILINE)


def _with_event(sections: Sequence_[DefinitionText], name: str) -> Sequence_[DefinitionText]:
    """Return *sections*; those of a service, whose first one is a ``.srv``, begin with the message of its events."""
    first = sections[0]
    halves = _DASHES.split(first.text)
    if not name.endswith("_Event") or len(halves) != 2:
        return sections
    service = short_name(name).replace("/srv/", "/").removesuffix("_Event")
    return [
        DefinitionText(short_name(name), _EVENT.format(service)),
        DefinitionText(f"{service}_Request", halves[0]),
        DefinitionText(f"{service}_Response", halves[1]),
        *sections[1:],
        DefinitionText("service_msgs/ServiceEventInfo", _EVENT_INFO),
    ]


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


#: Plain CDR, little-endian, of version 1 and 2 (XCDR2); the next two bytes are options.
LITTLE, LITTLE_2 = b"\x00\x01", b"\x00\x07"
#: Names of the encodings that the first two bytes of a message state (OMG, "Extensible and Dynamic Topic Types").
ENCAPSULATIONS = {
    b"\x00\x00": "CDR of big-endian numbers",
    LITTLE: "CDR",
    b"\x00\x02": "PL_CDR of big-endian numbers, for mutable types",
    b"\x00\x03": "PL_CDR, for mutable types",
    b"\x00\x06": "CDR2 of big-endian numbers",
    LITTLE_2: "CDR2",
    b"\x00\x08": "D_CDR2 of big-endian numbers, for appendable types",
    b"\x00\x09": "D_CDR2, for appendable types",
    b"\x00\x0a": "PL_CDR2 of big-endian numbers, for mutable types",
    b"\x00\x0b": "PL_CDR2, for mutable types",
}
#: So many first messages of a channel say how all are encoded: one that is damaged does not.
LOOKED_AT = 9
#: Most bytes of such a message where more than its first bytes are looked at.
SAMPLE_BYTES = 1 << 20


def encapsulation_of(begins: Iterable[bytes]) -> bytes:
    """Return the first two bytes of most messages, of those of the first LOOKED_AT; empty if no encoding has them."""
    most = Counter(begins).most_common(1)
    return most[0][0] if most and most[0][0] in ENCAPSULATIONS else b""


ORIGIN = 4
#: The length of a string includes its NUL.
TEXT = String(4, Grid(4, ORIGIN), tail=1)
_SAME = {"byte": "uint8", "char": "uint8"}
#: Wide text, which is encoded in several ways.
WIDE = ("wstring", "wchar")
#: Types that are shown as times, whatever the text defines.
TIMES: dict[str, Node] = {
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


def layout(name: str, text: str, encapsulation: bytes = LITTLE) -> Layout:
    """Return the Layout of little-endian CDR messages of type *name*; *text*: concatenated definition.

    encapsulation  what the messages begin with: LITTLE or LITTLE_2

    Raises DefinitionError for an invalid text, a missing type, and what is not ``plain``: ``schemas.cdr`` reads that.
    """
    return layout_of(name, parse(text, name), encapsulation)


_NO_TYPE = Ros2Definition("", ())


def plain(name: str, messages: Mapping[str, Ros2Definition], encapsulation: bytes) -> bool:
    """Return whether a Layout describes messages of type *name* that begin so: without sizes, flags and wide text."""
    if encapsulation not in (LITTLE, LITTLE_2):
        return False
    top, *parts = reachable(name, messages) if short_name(name) in messages else (_NO_TYPE,)
    sized = {MUTABLE} if encapsulation == LITTLE else {MUTABLE, APPENDABLE}
    if encapsulation == LITTLE_2 and top.extensibility:
        # Parts that state no extensibility need not be as the type that does.
        sized |= {""}
    return not any(f.optional or f.type in WIDE for d in (top, *parts) for f in d.fields) and not any(
        d.extensibility in sized for d in parts
    )


def reachable(name: str, messages: Mapping[str, Ros2Definition]) -> Iterator[Ros2Definition]:
    """Yield the definitions that type *name* uses, its own first; those that are missing are left out."""
    waiting = [short_name(name)]
    seen = set(waiting)
    while waiting:
        if (definition := messages.get(waiting.pop())) is None:
            continue
        yield definition
        new = {f.type for f in definition.fields} - seen
        seen |= new
        waiting += sorted(new)


def layout_of(name: str, messages: Mapping[str, Ros2Definition], encapsulation: bytes = LITTLE) -> Layout:
    """Return the Layout of CDR messages of type *name*, one of *messages*; raise as ``layout``."""
    if encapsulation not in (LITTLE, LITTLE_2):
        encoding = ENCAPSULATIONS.get(encapsulation, f"an unknown encoding, {encapsulation.hex(' ')}")
        raise DefinitionError(
            f"{name[:80]}: its messages are in {encoding}; little-endian CDR and CDR2 have a Layout"
        )
    if any(d.extensibility in (MUTABLE, APPENDABLE) for d in messages.values()) and not plain(
        name, messages, encapsulation
    ):
        raise DefinitionError(f"{name[:80]}: it uses types that are mutable or appendable")
    try:
        body, _ = _Maker(messages, 8 if encapsulation == LITTLE else 4).struct(short_name(name), START, 1)
    except DefinitionError as error:
        raise DefinitionError(f"{name[:80]}: {error.text}") from None
    head = (Field("", Expect(encapsulation)), Field("", Padding(2)))
    return Layout(Struct((*head, *body.fields)), short_name(name))


class _Maker:
    """Makes Structs; *most*: greatest alignment of numbers, 4 in CDR2."""

    def __init__(self, messages: Mapping[str, Ros2Definition], most: int) -> None:
        self.messages, self.most = messages, most
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
        if f.type in WIDE or f.optional:
            what = "is optional" if f.optional else "is wide text, which is encoded in several ways"
            raise DefinitionError(f"{f.name} {what}")
        if f.array and f.count != 0 and self.most < 8 and (f.type not in NUMBERS or f.enumeration):
            # In CDR2, the size of arrays of anything but numbers comes before them.
            state = _aligned(4, state, out).after(4)
            out.append(Field("", Padding(4)))
        if f.array and f.count is None:
            node, state = self.sequence(f, _aligned(4, state, out).after(4), depth)
        elif f.array and f.count == 0:
            return state
        elif (size := _width(f.type)) is not None:
            state = _aligned(min(size[0], self.most), state, out).after(size[1] * (f.count or 1))
            node = number(f.type) if f.count is None else FixedArray(number(f.type), f.count)
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
            if number(f.type) == Scalar("uint8"):
                return Bytes(4), NOTHING
            grid = Grid(8, ORIGIN) if min(size[0], self.most) == 8 else None
            return Sequence(number(f.type), 4, grid), _multiple(gcd(4, size[1]))
        for begin, grid in ((START, Grid(8, ORIGIN)), (State(4, 0), None), (NOTHING, None)):
            item, end = self.struct(f.type, begin, depth + 1)
            fixed = measure(item, self.sizes).size
            # Only an 8-byte number aligns the first item to 8 bytes.
            if (
                fixed is not None
                and end == begin
                and (grid is None or min(self.first(f.type), self.most) == 8)
            ):
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
    if type_name in TIMES:
        return 4, 8
    return (NUMBERS[type_name], NUMBERS[type_name]) if type_name in NUMBERS else None


def number(type_name: str) -> Node:
    """Return the Node of a number or moment."""
    return TIMES.get(type_name) or Scalar(_SAME.get(type_name, type_name))


# ------------------------------------------------------------------------------------------------- definitions made

#: Names of fields in definitions that are made: those that the tools of ROS accept.
FIELD = ros1msg.FIELD
#: Types of ROS 2 for those that ROS 1 has built in.
_MOMENTS = {"time": "builtin_interfaces/Time", "duration": "builtin_interfaces/Duration"}


def type_name(topic: str) -> str:
    """Return the name of a generated type for *topic*: ``logreel/msg/ImuData`` for ``/imu/data``."""
    return ros1msg.type_name(topic).replace("/", "/msg/")


def definition_from_layout(layout: Layout, name: str) -> str:
    """Return the definition of type *name*, ``pkg/msg/Type``, with the visible fields of *layout*.

    It is as ``ros1msg.definition_from_layout`` makes it, and contains the types of times that it uses.
    """
    made, used = list[DefinitionText](), dict[str, None]()
    for section in split_text(ros1msg.definition_from_layout(layout, short_name(name)), name):
        lines = list[str]()
        for line in section.text.splitlines(keepends=True):
            type_name, blank, rest = line.partition(" ")
            word, bracket, count = type_name.partition("[")
            if moment := _MOMENTS.get(word):
                used[moment] = None
            lines.append(f"{moment or word}{bracket}{count}{blank}{rest}")
        made.append(DefinitionText(section.name, "".join(lines)))
    return join_text([*made, *(DefinitionText(moment, standard()[moment]) for moment in used)])


# ------------------------------------------------------------------------------------------------- known definitions

#: Most files of a folder with definitions that are looked at, and most bytes of one.
_MAX_FILES, _MAX_BYTES = 100_000, 1 << 20


@cache
def standard() -> Mapping[str, str]:
    """Return the definitions that logreel ships by ``pkg/Type``, without those that they use."""
    text = (resources.files(__package__) / "standard" / "ros2.msgs").read_text(encoding="utf-8")
    sections = re.split(r"^MSG: (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def is_known(name: str) -> bool:
    """Return whether logreel ships the definition of a type."""
    return short_name(name) in standard()


def given(paths: Iterable[Path]) -> dict[str, str]:
    """Return the definitions in files ``pkg/msg/Type.msg`` or ``pkg/Type.msg``, and below folders, by ``pkg/Type``."""
    texts: dict[str, str] = {}
    for path in paths:
        for file in _files(path):
            package = file.parent.parent if file.parent.name == "msg" else file.parent
            texts.setdefault(f"{package.name}/{file.stem}", file.read_text("utf-8", "replace"))
    return texts


def _files(path: Path) -> Iterator[Path]:
    files = sorted(path.rglob("*.msg"))[:_MAX_FILES] if path.is_dir() else [path]
    yield from (file for file in files if file.suffix == ".msg" and file.stat().st_size <= _MAX_BYTES)


def full_text(name: str, own: Mapping[str, str]) -> str:
    """Return the definition of a type with all that it uses, *own* ones first, then known ones; empty if unknown."""
    name = short_name(name)
    sections, waiting = dict[str, str](), [name]
    while waiting:
        type_name = waiting.pop(0)
        text = own.get(type_name, standard().get(type_name))
        if type_name in sections or text is None:
            continue
        sections[type_name] = text.rstrip("\n")
        waiting += [
            f.type for f in _message(text, type_name).fields if "/" in f.type and f.type not in sections
        ]
    return join_text(DefinitionText(*item) for item in sections.items()) if name in sections else ""
