"""Values, operators, functions and methods that rule files may use; there are no others."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from logreel.ops.migrate.types import NS, Records, RosTime, RuleError, StructValue, TypeVersion

#: Most items of a list or text that arithmetic makes, and most bits of a whole number.
MAX_LENGTH, MAX_BITS = 1 << 24, 1 << 12


def attribute(value: Any, name: str) -> Any:
    """Return an attribute of a value."""
    if isinstance(value, StructValue):
        return value.get(name)
    if isinstance(value, RosTime) and name in ("secs", "nsecs", "sec", "nsec"):
        return value.secs if name in ("secs", "sec") else value.nsecs
    raise RuleError(f"{type(value).__name__} has no attribute {name!r}")


def set_attribute(value: Any, name: str, new: Any) -> None:
    if not isinstance(value, StructValue):
        raise RuleError(f"the attribute {name!r} of {type(value).__name__} cannot be set")
    value.set(name, new)


def _format(text: str, values: Any) -> str:
    """Return ``text % values``, without widths, which could be of any size."""
    if any(digits > "99" or len(digits) > 2 for digits in _numbers_in(text)):
        raise RuleError("a width of more than 99 characters")
    arguments = tuple(map(_plain, values)) if isinstance(values, tuple) else _plain(values)
    return text % arguments


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | bytes | list | tuple) else repr(value)


def _numbers_in(text: str) -> Iterator[str]:
    digits = ""
    for character in (*text, " "):
        if character.isdigit():
            digits += character
        elif digits:
            yield digits
            digits = ""
        if character == "*":
            yield "100"


def _times(left: Any, right: Any) -> Any:
    """Return a product; lists and texts are limited in size."""
    for sequence, other in ((left, right), (right, left)):
        if isinstance(sequence, list | tuple | str | bytes) and isinstance(other, int):
            if len(sequence) * other > MAX_LENGTH:
                raise RuleError(f"a list or text of more than {MAX_LENGTH} items")
            return sequence * other
    return _limited(left * right)


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > MAX_BITS:
        raise RuleError(f"a number of more than {MAX_BITS} bits")
    return left**right


def _shift(left: Any, right: Any) -> Any:
    if not isinstance(right, int) or right > MAX_BITS:
        raise RuleError(f"a number of more than {MAX_BITS} bits")
    return _limited(left << right)


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, Records) or isinstance(right, Records):
        return [*left, *right]
    if isinstance(left, list | tuple | str | bytes) and len(left) + len(right) > MAX_LENGTH:
        raise RuleError(f"a list or text of more than {MAX_LENGTH} items")
    return _limited(left + right)


def _limited(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise RuleError(f"a number of more than {MAX_BITS} bits")
    return value


def _remainder(left: Any, right: Any) -> Any:
    return _format(left, right) if isinstance(left, str) else left % right


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _sum,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _remainder,
    ast.Pow: _power,
    ast.LShift: _shift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _range(*numbers: int) -> range:
    numbers_in_range = range(*numbers)
    if len(numbers_in_range) > MAX_LENGTH:
        raise RuleError(f"a range of more than {MAX_LENGTH} numbers")
    return numbers_in_range


def as_list(values: Any = ()) -> list[Any]:
    items = list(islice(iter(values), MAX_LENGTH + 1))
    if len(items) > MAX_LENGTH:
        raise RuleError(f"a list of more than {MAX_LENGTH} items")
    return items


def _bytes(values: Any = b"") -> bytes:
    return values.encode("latin-1", "replace") if isinstance(values, str) else bytes(as_list(values))


def _integer(value: Any = 0) -> int:
    # Python refuses to read very long numbers by itself.
    return int(value.ns // NS if isinstance(value, RosTime) else value)


#: Functions that rules may call.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "bytearray": _bytes,
    "bytes": _bytes,
    "chr": chr,
    "enumerate": lambda values, start=0: list(enumerate(as_list(values), start)),
    "float": float,
    "int": _integer,
    "len": len,
    "list": as_list,
    "long": _integer,
    "max": max,
    "min": min,
    "ord": ord,
    "print": lambda *values: None,
    "range": _range,
    "reversed": lambda values: as_list(values)[::-1],
    "round": round,
    "set": lambda values=(): set(as_list(values)),
    "sorted": lambda values: sorted(as_list(values)),
    "str": lambda value="": str(_plain(value)),
    "sum": sum,
    "tuple": lambda values=(): tuple(as_list(values)),
    "xrange": _range,
    "zip": lambda *several: list(zip(*map(as_list, several), strict=False)),
}


def _time(secs: float = 0, nsecs: int = 0) -> RosTime:
    seconds = secs if isinstance(secs, int) else round(secs * NS)
    return RosTime((seconds * NS if isinstance(secs, int) else int(seconds)) + int(nsecs))


_ROS: dict[str, Any] = {
    "Time": _time,
    "Duration": _time,
    "Time.from_sec": lambda secs: _time(float(secs)),
    "Duration.from_sec": lambda secs: _time(float(secs)),
}
_MATH = {
    name: getattr(math, name)
    for name in (
        *(
            "pi",
            "e",
            "inf",
            "nan",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sqrt",
            "hypot",
            "exp",
        ),
        *(
            "log",
            "log10",
            "floor",
            "ceil",
            "degrees",
            "radians",
            "fabs",
            "fmod",
            "isnan",
            "isinf",
            "copysign",
        ),
    )
}
#: Content of the modules that rule files may import; importing them imports nothing.
MODULES: dict[str, Mapping[str, Any]] = {
    "math": _MATH,
    "rospy": _ROS,
    "genpy": _ROS,
    "roslib": {f"rostime.{name}": value for name, value in _ROS.items()},
    "roslib.rostime": _ROS,
    "copy": {"copy": lambda value: value, "deepcopy": lambda value: value},
}
_TEXT = {
    name: getattr(str, name)
    for name in (
        *("lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "startswith", "endswith", "find"),
        *("isdigit", "isalpha", "count", "partition", "rpartition", "title", "capitalize"),
    )
}
#: Methods that rules may call, by the type of the value.
METHODS: tuple[tuple[tuple[type, ...], Mapping[str, Callable[..., Any]]], ...] = (
    (
        (str,),
        {
            **_TEXT,
            "join": lambda text, values: text.join(map(str, as_list(values))),
            "replace": lambda text, old, new: text.replace(old, new) if old else text,
            "encode": lambda text, *_: text.encode("utf-8", "surrogateescape"),
        },
    ),
    ((bytes,), {"decode": lambda data, *_: data.decode("utf-8", "surrogateescape")}),
    (
        (list,),
        {
            "append": list.append,
            "extend": lambda items, values: items.extend(as_list(values)),
            "insert": list.insert,
            "pop": list.pop,
            "remove": list.remove,
            "index": list.index,
            "count": list.count,
            "sort": lambda items: items.sort(),
            "reverse": list.reverse,
        },
    ),
    ((Records,), {"append": Records.append, "extend": Records.extend}),
    (
        (dict,),
        {
            "get": dict.get,
            "keys": lambda found: list(found),
            "values": lambda found: list(found.values()),
            "items": lambda found: list(found.items()),
            "has_key": lambda found, key: key in found,
        },
    ),
    (
        (RosTime,),
        {
            "to_sec": lambda time: time.ns / NS,
            "toSec": lambda time: time.ns / NS,
            "to_nsec": lambda time: time.ns,
            "is_zero": lambda time: time.ns == 0,
        },
    ),
)


class Constructor:
    """The class of a new message, as ``self.get_new_class`` returns it."""

    __slots__ = ("type",)

    def __init__(self, type: TypeVersion) -> None:
        self.type = type

    def __call__(self, *values: Any) -> StructValue:
        """Return a message with these values in the order of its fields, or with zeros without values."""
        made = StructValue(self.type, self.type.default())
        if values and len(values) != len(self.type.fields):
            raise RuleError(f"{self.type.name} has {len(self.type.fields)} fields, not {len(values)}")
        for name, value in zip(self.type.fields, values, strict=False):
            made.set(name, value)
        return made


#: Every function that an expression may have as its value.
CALLABLE = frozenset(
    value for names in (FUNCTIONS, *MODULES.values()) for value in names.values() if callable(value)
)


def method_of(value: Any, name: str) -> Callable[..., Any] | None:
    for types, methods in METHODS:
        if isinstance(value, types):
            return methods.get(name)
    return None
