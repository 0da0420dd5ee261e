"""Layouts inferred from JSON values, and conversion of JSON values to the values that a Layout holds."""

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
#: A float64 holds all integers up to this one exactly.
EXACT = 1 << 53
#: Least size in bytes of texts in messages of fixed size; larger sizes are powers of two.
ROOM = 32


@dataclass
class Observed:
    """Type and ranges of a value, observed in one message or several.

    type         ``nothing``, ``bool``, ``int``, ``float``, ``unfinite`` (a text such as "NaN"), ``text``, ``list``,
                 ``struct``
    least, most  range of integers; range of the sizes of texts (bytes) and lists (items)
    """

    type: str
    least: int = 0
    most: int = 0
    item: Observed | None = None
    members: dict[str, Observed] = field(default_factory=dict)


def observe(value: Any) -> Observed:
    """Return the type of one value; raises UsageError for a list whose items have no common type."""
    try:
        return _observe(value, True)
    except UsageError:
        # Again in the order of items: the error names their first conflict.
        return _observe(value, False)


def _observe(value: Any, by_field: bool) -> Observed:
    match value:
        case None:
            return Observed("nothing")
        case bool():
            return Observed("bool")
        case int():
            return Observed("int", value, value)
        case float():
            return Observed("float")
        case str():
            size = len(value.encode("utf-8", "surrogatepass"))
            return Observed("unfinite" if value in UNFINITE else "text", size, size)
        case list():
            return Observed("list", len(value), len(value), _observe_items(value, by_field))
        case _:
            return Observed(
                "struct", members={str(name): _observe(member, by_field) for name, member in value.items()}
            )


def _observe_items(items: list[Any], by_field: bool) -> Observed:
    """Return the common type of the items of a list; fast for lists of numbers.

    by_field  whether objects with the same keys are compared field by field, which is faster than one after another
    """
    kinds = set(map(type, items))
    if kinds == {float}:
        return Observed("float")
    if kinds == {int}:
        return Observed("int", min(items), max(items))
    if by_field and kinds == {dict} and all(map(items[0].keys().__eq__, map(dict.keys, items))):
        columns = {name: [record[name] for record in items] for name in items[0]}
        members = {str(name): _observe_items(column, by_field) for name, column in columns.items()}
        return Observed("struct", members=members)
    return functools.reduce(join, (_observe(item, by_field) for item in items), Observed("nothing"))


def join(a: Observed, b: Observed) -> Observed:
    """Return the type that holds both; raises UsageError if there is none."""
    if a.type == "nothing" or b.type == "nothing":
        return b if a.type == "nothing" else a
    least, most = min(a.least, b.least), max(a.most, b.most)
    if a.type != b.type:
        return Observed(_common(a, b), least, most)
    item = join(a.item, b.item) if a.item is not None and b.item is not None else None
    members = dict(a.members)
    for name, member in b.members.items():
        members[name] = join(members[name], member) if name in members else member
    return Observed(a.type, least, most, item, members)


def _common(a: Observed, b: Observed) -> str:
    types = {a.type, b.type}
    if types == {"text", "unfinite"}:
        return "text"
    if types <= {"int", "float", "unfinite"}:
        integer = a if a.type == "int" else b
        if integer.type != "int" or max(-integer.least, integer.most) <= EXACT:
            return "float"
    raise UsageError(f"one is {_name(a)}, another one {_name(b)}")


def _name(observed: Observed) -> str:
    return {"int": "a whole number", "struct": "an object"}.get(observed.type, f"a {observed.type}")


def layout_of(what: Observed, fixed: bool, name: str = "") -> Layout:
    """Return the Layout for messages of type *what*: int64 (or uint64), float64, bool, text, lists, structs.

    fixed  True: messages of one size; lists get the size of the longest one, texts that rounded up to a power of two

    Members that were always null are left out. The items of lists that were always empty are float64.
    """
    node = _node(what, fixed)
    return Layout(node if isinstance(node, Struct) else Struct(()), name)


def _node(what: Observed, fixed: bool) -> Node:
    match what.type:
        case "bool":
            return Scalar("bool")
        case "int":
            return Scalar("uint64" if what.most >= 1 << 63 else "int64")
        case "text":
            if not fixed:
                return String()
            return FixedArray(Scalar("char"), max(ROOM, 1 << max(0, what.most - 1).bit_length()))
        case "list":
            item = _node(what.item or Observed("nothing"), fixed)
            return FixedArray(item, what.most) if fixed else Sequence(item)
        case "struct":
            members = [(name, member) for name, member in what.members.items() if member.type != "nothing"]
            return Struct(tuple(Field(name, _node(member, fixed)) for name, member in members))
        case _:
            return Scalar("float64")


#: Function that converts one value.
Convert = Callable[[Any], Any]


class _Misfit(Exception):
    """Error: a node cannot hold a value; *path* is the path of the field."""

    def __init__(self, text: str, path: str = "") -> None:
        self.text, self.path = text, path


def json_converter(
    layout: Layout, side_columns: Iterable[str] = ()
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function from a JSON message to the dict for ``Writer.write``: bytes from base64, "NaN" as a number.

    side_columns  names of integers at the top level of messages with many records; see ``PayloadSplitter``

    The function raises UsageError with the path of the field for a value that would be different when read back
    (apart from float32 rounding), and for a field that the Layout does not have. Nulls are left out.
    """
    is_list = not isinstance(layout.root, Struct)
    numbers = [Field(name, Scalar("int64")) for name in side_columns]
    root = Struct((*numbers, Field("records", layout.root))) if is_list else layout.root
    turn = _converter(root)

    def restore(fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            restored: dict[str, Any] = turn(fields)
        except _Misfit as error:
            raise UsageError(f"{error.path}: {error.text}" if error.path else error.text) from None
        return restored

    return restore


def _converter(node: Node) -> Convert:
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
            return _items(_converter(item), None)
        case FixedArray(item=item, count=n):
            return _items(_converter(item), n)
        case Struct():
            return _members({f.name: _converter(f.node) for f in node.visible()})
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


def _padded(count: int) -> Convert:
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


def _items(item: Convert, count: int | None) -> Convert:
    def turn(value: Any) -> list[Any]:
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise _refused(value, "a list" if count is None else f"a list of {count} items")
        return [item(element) for element in value]

    return turn


def _members(known: Mapping[str, Convert]) -> Convert:
    def turn(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refused(value, "an object")
        turned = {}
        for name, member in value.items():
            if member is None:
                continue
            if name not in known:
                raise _Misfit("there is no such field", name)
            try:
                turned[name] = known[name](member)
            except _Misfit as error:
                raise _Misfit(error.text, f"{name}.{error.path}".rstrip(".")) from None
        return turned

    return turn


def observe_all(values: Iterable[Mapping[str, Any]]) -> Observed:
    """Return the common type of *values*; values that do not fit those before are ignored."""
    joined = Observed("nothing")
    for value in values:
        try:
            joined = join(joined, observe(value))
        except (UsageError, RecursionError):
            continue
    return joined
