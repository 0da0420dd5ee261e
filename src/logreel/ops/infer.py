"""What values that came as JSON have in common, as a Layout; and such values turned into those that a Layout holds."""

from __future__ import annotations

import base64
import binascii
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from logreel.errors import UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time

#: Numbers that JSON has no digits for.
UNFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Larger integers are not told apart by a float64.
EXACT = 1 << 53
#: Where texts cannot grow there is room for this many bytes, or twice as many again and again.
ROOM = 32


@dataclass
class Seen:
    """What was seen of one value, in one message or several.

    kind         ``nothing``, ``bool``, ``int``, ``float``, ``unfinite`` (a text such as "NaN"), ``text``, ``list``,
                 ``struct``
    least, most  of integers their range, of texts their bytes, of lists their items
    """

    kind: str
    least: int = 0
    most: int = 0
    item: Seen | None = None
    members: dict[str, Seen] = field(default_factory=dict)


def seen(value: Any) -> Seen:
    """What there is to see of one value; raises UsageError for a list of things that have nothing in common."""
    match value:
        case None:
            return Seen("nothing")
        case bool():
            return Seen("bool")
        case int():
            return Seen("int", value, value)
        case float():
            return Seen("float")
        case str():
            size = len(value.encode("utf-8", "surrogatepass"))
            return Seen("unfinite" if value in UNFINITE else "text", size, size)
        case list():
            return Seen("list", len(value), len(value), _seen_in(value))
        case _:
            return Seen("struct", members={str(name): seen(one) for name, one in value.items()})


def _seen_in(items: list[Any]) -> Seen:
    """What the items of a list have in common; most are numbers, and many."""
    kinds = set(map(type, items))
    if kinds == {float}:
        return Seen("float")
    if kinds == {int}:
        return Seen("int", min(items), max(items))
    return functools.reduce(joined, map(seen, items), Seen("nothing"))


def joined(a: Seen, b: Seen) -> Seen:
    """What holds both; raises UsageError where nothing does."""
    if a.kind == "nothing" or b.kind == "nothing":
        return b if a.kind == "nothing" else a
    least, most = min(a.least, b.least), max(a.most, b.most)
    if a.kind != b.kind:
        return Seen(_common(a, b), least, most)
    item = joined(a.item, b.item) if a.item is not None and b.item is not None else None
    members = dict(a.members)
    for name, one in b.members.items():
        members[name] = joined(members[name], one) if name in members else one
    return Seen(a.kind, least, most, item, members)


def _common(a: Seen, b: Seen) -> str:
    kinds = {a.kind, b.kind}
    if kinds == {"text", "unfinite"}:
        return "text"
    if kinds <= {"int", "float", "unfinite"}:
        whole = a if a.kind == "int" else b
        if whole.kind != "int" or max(-whole.least, whole.most) <= EXACT:
            return "float"
    raise UsageError(f"one is {_name(a)}, another one {_name(b)}")


def _name(one: Seen) -> str:
    return {"int": "a whole number", "struct": "an object"}.get(one.kind, f"a {one.kind}")


def layout_of(what: Seen, fixed: bool, name: str = "") -> Layout:
    """The Layout of messages of which *what* was seen: int64 (or uint64), float64, bool, text, lists, structs.

    fixed  texts and lists cannot grow: they get the room of the longest one, texts up to the next power of two

    What was never anything but null is left out; lists without any item are taken for lists of float64.
    """
    node = _node(what, fixed)
    return Layout(node if isinstance(node, Struct) else Struct(()), name)


def _node(what: Seen, fixed: bool) -> Node:
    match what.kind:
        case "bool":
            return Scalar("bool")
        case "int":
            return Scalar("uint64" if what.most >= 1 << 63 else "int64")
        case "text":
            if not fixed:
                return String()
            return FixedArray(Scalar("char"), max(ROOM, 1 << max(0, what.most - 1).bit_length()))
        case "list":
            item = _node(what.item or Seen("nothing"), fixed)
            return FixedArray(item, what.most) if fixed else Sequence(item)
        case "struct":
            members = [(name, one) for name, one in what.members.items() if one.kind != "nothing"]
            return Struct(tuple(Field(name, _node(one, fixed)) for name, one in members))
        case _:
            return Scalar("float64")


#: Turns one value.
Turn = Callable[[Any], Any]


class _Misfit(Exception):
    """A value that a node cannot hold; *path* is where it stands."""

    def __init__(self, text: str, path: str = "") -> None:
        self.text, self.path = text, path


def restorer(
    layout: Layout, side_columns: Iterable[str] = ()
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from a message as JSON has it to what ``Writer.write`` takes: bytes from base64, "NaN" as a number.

    beside  names of the whole numbers that a message of many records has beside them; see ``Wrapping``

    The function raises UsageError, naming the field, for every value that would not be the same when it is read back
    (but for the rounding of a float32), and for fields that the Layout does not have. Nulls are left out.
    """
    many = not isinstance(layout.root, Struct)
    numbers = [Field(name, Scalar("int64")) for name in side_columns]
    root = Struct((*numbers, Field("records", layout.root))) if many else layout.root
    turn = _turn(root)

    def restore(fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = turn(fields)
        except _Misfit as error:
            raise UsageError(f"{error.path}: {error.text}" if error.path else error.text) from None
        return found

    return restore


def _turn(node: Node) -> Turn:
    match node:
        case Scalar(type="bool"):
            return _bool
        case Scalar(type="float32" | "float64"):
            return _float
        case Scalar() | Time():
            return _int
        case String() | Rest(text=True):
            return _text
        case FixedArray(item=Scalar(type="char"), count=n):
            return _padded(n)
        case Bytes() | Rest() | Sequence(item=Scalar(type="uint8" | "char")):
            return _bytes
        case Sequence(item=item):
            return _items(_turn(item), None)
        case FixedArray(item=item, count=n):
            return _items(_turn(item), n)
        case Struct():
            return _members({f.name: _turn(f.node) for f in node.visible()})
        case _:
            return lambda value: value


def _refused(value: Any, what: str) -> _Misfit:
    return _Misfit(f"expected {what}, found {value!r:.60}")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _refused(value, "true or false")


def _int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _refused(value, "a whole number")


def _float(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= EXACT:
        return float(value)
    if isinstance(value, str) and value in UNFINITE:
        return UNFINITE[value]
    raise _refused(value, "a number that a float holds")


def _text(value: Any) -> str:
    if isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value):
        return value
    raise _refused(value, "a text")


def _padded(count: int) -> Turn:
    def turn(value: Any) -> str:
        text = _text(value)
        if len(text.encode()) > count or "\0" in text:
            raise _refused(value, f"a text of at most {count} bytes")
        return text

    return turn


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise _refused(value, "bytes as base64") from None


def _items(item: Turn, count: int | None) -> Turn:
    def turn(value: Any) -> list[Any]:
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise _refused(value, "a list" if count is None else f"a list of {count} items")
        return [item(one) for one in value]

    return turn


def _members(known: Mapping[str, Turn]) -> Turn:
    def turn(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refused(value, "an object")
        found = {}
        for name, one in value.items():
            if one is None:
                continue
            if name not in known:
                raise _Misfit("there is no such field", name)
            try:
                found[name] = known[name](one)
            except _Misfit as error:
                raise _Misfit(error.text, f"{name}.{error.path}".rstrip(".")) from None
        return found

    return turn


def common(values: Iterable[Mapping[str, Any]]) -> Seen:
    """What the *values* have in common; those that do not go with the ones before do not count."""
    found = Seen("nothing")
    for value in values:
        try:
            found = joined(found, seen(value))
        except (UsageError, RecursionError):
            continue
    return found
