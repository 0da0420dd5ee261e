"""Conditions on single messages that need no database: the part of the language of ``where`` that is tested live.

A condition is about the messages of one topic. It has comparisons of fields, numbers and texts (``= <> < <= > >=``, IN,
BETWEEN, LIKE, ILIKE, IS NULL), ``abs``, AND, OR, NOT and parentheses, and means what DuckDB says of the same text: NULL
is not true, NaN equals NaN and exceeds all numbers, a decimal number is compared with a float32 as a float32.
``changed(topic.field)`` alone is true of each value that differs from the one before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from logreel.errors import NotFoundError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time, steps_of

#: A condition that is true of each message whose value differs from the one before.
CHANGED = re.compile(r"\s*changed\s*\((?P<field>.+)\)\s*", re.IGNORECASE | re.DOTALL)
_TOKENS = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<text>'(?:[^']|'')*')"""
    r"""|(?P<name>(?:[A-Za-z_]\w*|"(?:[^"]|"")+")(?:\.(?:[A-Za-z_]\w*|"(?:[^"]|"")+"))*)"""
    r"""|(?P<sign><>|!=|<=|>=|==|[=<>(),-]))"""
)
_PART = re.compile(r'[A-Za-z_]\w*|"(?:[^"]|"")+"')
_WORDS = frozenset(["and", "or", "not", "in", "between", "like", "ilike", "is", "null", "true", "false"])
_SIGNS = {"==": "=", "!=": "<>"}
#: Whether values compare so, from -1, 0 and 1.
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
#: Most characters of a condition, and parentheses inside of each other.
LONGEST, DEEPEST = 10_000, 50
#: Name of the time of a message among its fields, ns.
TIME_NS = "time_ns"

#: Function from the values of the fields of a message to the value of an expression.
Compute = Callable[[Mapping[tuple[str, ...], Any]], Any]


@dataclass(frozen=True, slots=True)
class _Expression:
    """A part of a condition.

    value_type  ``number``, ``text``, ``truth``, ``null``; or ``field``: that of the field *name*
    literal  the text of a number, and its sign
    """

    compute: Compute
    value_type: str
    name: tuple[str, ...] = ()
    literal: str = ""


#: A comparison of two expressions, whose kinds are known when the fields are.
_Pair = tuple[_Expression, _Expression]


@dataclass(frozen=True, slots=True)
class MessageCondition:
    """A condition as it was written; *names*: of its fields, in parts, such as ``("battery_status", "voltage_v")``."""

    text: str
    names: tuple[tuple[str, ...], ...]
    is_change: bool

    @classmethod
    def parse(cls, text: str) -> MessageCondition:
        """Return the condition in *text*; raises UsageError for what is not one, or not of this language."""
        if len(text) > LONGEST:
            raise UsageError(f"a condition of {len(text)} characters is too long")
        parser = _Parser(text)
        parser.whole()
        names = tuple(dict.fromkeys(parser.names))
        if not names:
            raise UsageError(f"the condition {text!r} names no field: write topic.field")
        for name in names:
            if len(name) < 2:
                raise UsageError(f"{name[0]!r} in the condition {text!r} has no topic: write topic.{name[0]}")
        return cls(text, names, parser.is_change)

    def is_about(self, topic: str) -> bool:
        """Return whether a field in the condition may be one of *topic*."""
        return any(_path_in(name, topic) is not None for name in self.names)

    def bind(self, topic: str, layout: Layout) -> BoundCondition | None:
        """Return the condition on messages of *topic*, in this Layout; None if it is about another topic.

        Raises NotFoundError for a field that the messages do not have; UsageError for one that is not a single value,
        that is compared with a value of another type, or for fields of several topics.
        """
        paths = {name: path for name in self.names if (path := _path_in(name, topic)) is not None}
        if not paths:
            return None
        if len(paths) < len(self.names):
            other = ".".join(next(name for name in self.names if name not in paths))
            raise UsageError(f"a condition is about one topic: {other!r} is no field of {topic!r}")
        steps, nodes = {}, dict[tuple[str, ...], Node]()
        for name, path in paths.items():
            if path == TIME_NS:
                nodes[name] = Scalar("int64")
                continue
            steps[name], nodes[name] = _field(layout, topic, path)
        parser = _Parser(self.text, {name for name, node in nodes.items() if node == Scalar("float32")})
        compute = parser.whole().compute
        for pair in parser.pairs:
            _check_kinds(self.text, pair, nodes)
        fields = [path for path in dict.fromkeys(paths.values()) if path != TIME_NS]
        decode = layout.project(fields).decoder() if fields else None
        return BoundCondition(self, paths, steps, nodes, compute, decode)


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition on the messages of one channel.

    paths   field paths by the names in the condition
    decode  function from payloads to these fields; None: only the time counts
    """

    condition: MessageCondition
    paths: Mapping[tuple[str, ...], str]
    _steps: Mapping[tuple[str, ...], tuple[str | int, ...]]
    _nodes: Mapping[tuple[str, ...], Node]
    _compute: Compute
    decode: Callable[[memoryview], dict[str, Any]] | None

    def values(self, time: int, data: bytes | Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
        """Return the values of the fields by name: of a payload, or a dict, whose missing fields are zero or empty.

        Raises DamagedError for a payload that does not fit.
        """
        if not isinstance(data, Mapping):
            data = {} if self.decode is None else self.decode(memoryview(data))
        values: dict[tuple[str, ...], Any] = {}
        for name in self.paths:
            if name not in self._steps:
                values[name] = time
                continue
            value = _at(data, self._steps[name])
            node = self._nodes[name]
            if value is None:
                value = _EMPTY[_kind(node)]
            # A dict may have more digits than its field.
            values[name] = float(np.float32(value)) if node == Scalar("float32") else value
        return values

    def test(self, values: Mapping[tuple[str, ...], Any]) -> Any:
        """Return whether the condition is true of these values; of ``changed``, the value to compare."""
        value = self._compute(values)
        if self.condition.is_change:
            return None if value is None else _comparable(value)
        return _truth(value) is True


_EMPTY: Mapping[str, Any] = {"number": 0, "text": "", "truth": False}


def _path_in(name: tuple[str, ...], topic: str) -> str | None:
    """Return the field path in a name that begins with *topic*, or with its name in SQL; None if it does not."""
    from logreel.ops.query.topic_table import alias

    known = {topic.casefold(), alias(topic).casefold()}
    for n in range(len(name) - 1, 0, -1):
        if ".".join(name[:n]).casefold() in known:
            return ".".join(name[n:])
    return None


def _field(layout: Layout, topic: str, path: str) -> tuple[tuple[str | int, ...], Node]:
    """Return steps and node of the field at *path*, whose case counts only if fields differ in nothing else."""
    if isinstance(layout.root, Sequence):
        raise UsageError(f"a message of {topic!r} holds many records, not one value")
    try:
        steps = steps_of(layout.record, path)
    except NotFoundError:
        alike = [known for known in layout.paths() if known.casefold() == path.casefold()]
        if len(alike) != 1:
            raise
        steps = steps_of(layout.record, alike[0])
    node: Node = layout.record
    for step in steps:
        if isinstance(step, int) and isinstance(node, FixedArray | Sequence):
            node = node.item
        elif isinstance(step, str) and isinstance(node, Struct):
            node = next(field.node for field in node.visible() if field.name == step)
        else:
            raise UsageError(f"{path!r} of {topic!r} is not a single value: name an item of it")
    if not _kind(node):
        raise UsageError(f"{path!r} of {topic!r} is not a single number, text or truth value")
    return steps, node


def _kind(node: Node) -> str:
    """Return the kind of the values of a field; empty for several values."""
    match node:
        case Scalar("bool"):
            return "truth"
        case Scalar() | Time():
            return "number"
        case String() | Rest(text=True) | FixedArray(item=Scalar("char")):
            return "text"
    return ""


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list | tuple) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is None:
            return None
    return value


def _check_kinds(text: str, pair: _Pair, nodes: Mapping[tuple[str, ...], Node]) -> None:
    kinds = [_kind(nodes[part.name]) if part.value_type == "field" else part.value_type for part in pair]
    if "text" in kinds and not {*kinds} <= {"text", "null"}:
        raise UsageError(f"the condition {text!r} compares a text with another value")


def _truth(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _comparable(value: Any) -> Any:
    """Return a value of which equality means that it is the same, also for NaN."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _order(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 as *a* is before, equal to or after *b*: NaN is after all other numbers."""
    is_nan = [isinstance(value, float) and math.isnan(value) for value in (a, b)]
    if any(is_nan):
        return is_nan[0] - is_nan[1]
    return int(a > b) - int(a < b)


class _Parser:
    """Parses one condition; the names of fields that it has read are in *names*, what is compared in *pairs*.

    singles  names of the fields that are float32
    """

    def __init__(self, text: str, singles: Collection[tuple[str, ...]] = ()) -> None:
        change = CHANGED.fullmatch(text)
        self.is_change = change is not None
        self._text, self._depth, self._singles = text, 0, singles
        self._tokens = list(self._split(text if change is None else change["field"]))
        self._next = 0
        self.names: list[tuple[str, ...]] = []
        self.pairs: list[_Pair] = []

    def _split(self, text: str) -> Iterator[tuple[str, str]]:
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKENS.match(text, at)
            if match is None or match.lastgroup is None:
                self._refuse(text[at:].split()[0][:20])
            at, token_type, token = match.end(), match.lastgroup, match[match.lastgroup]
            if token_type == "name" and token.lower() in _WORDS:
                token_type, token = "word", token.lower()
            yield token_type, _SIGNS.get(token, token) if token_type == "sign" else token

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"cannot read {what!r} in the condition {self._text!r}",
            hint="write topic.field < 14; there are = <> < <= > >=, in, between, like, is null, abs, and, or, not; in "
            'double quotes topics with a slash, "/imu".x, and items, topic."q[0]"',
        )

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "its end")

    def _take(self, *wanted: tuple[str, str]) -> bool:
        """Pass the next tokens if they are these; return whether."""
        if tuple(self._tokens[self._next : self._next + len(wanted)]) != wanted:
            return False
        self._next += len(wanted)
        return True

    def _need(self, token: str, token_type: str = "sign") -> None:
        if not self._take((token_type, token)):
            self._refuse(self._peek()[1])

    def whole(self) -> _Expression:
        """Return the condition; raises UsageError if it is none, or if there is more."""
        expression = self._field() if self.is_change else self._condition()
        if self._next < len(self._tokens):
            self._refuse(self._peek()[1])
        return expression

    def _field(self) -> _Expression:
        token_type, token = self._peek()
        if token_type != "name":
            self._refuse(token)
        self._next += 1
        name = tuple(
            part[1:-1].replace('""', '"') if part[0] == '"' else part for part in _PART.findall(token)
        )
        self.names.append(name)
        return _Expression(lambda values: values[name], "field", name)

    def _condition(self) -> _Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UsageError("the condition has too many parentheses")
        terms = [self._all()]
        while self._take(("word", "or")):
            terms.append(self._all())
        self._depth -= 1
        return terms[0] if len(terms) == 1 else _Expression(_either([t.compute for t in terms]), "truth")

    def _all(self) -> _Expression:
        terms = [self._not()]
        while self._take(("word", "and")):
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else _Expression(_both([t.compute for t in terms]), "truth")

    def _not(self) -> _Expression:
        negations = 0
        while self._take(("word", "not")):
            negations += 1
        term = self._comparison()
        return term if not negations else _Expression(_negated(term.compute, negations % 2 == 1), "truth")

    def _comparison(self) -> _Expression:
        left = self._value()
        token_type, token = self._peek()
        if token_type == "sign" and token in _COMPARISONS:
            self._next += 1
            return _Expression(self._compared(token, left, self._value()), "truth")
        if self._take(("word", "is")):
            is_negated = self._take(("word", "not"))
            self._need("null", "word")
            compute = left.compute
            return _Expression(lambda values: (compute(values) is None) is not is_negated, "truth")
        is_negated = self._take(("word", "not"))
        if self._take(("word", "between")):
            low = self._value()
            self._need("and", "word")
            within = _both([self._compared(">=", left, low), self._compared("<=", left, self._value())])
            return _Expression(_negated(within, is_negated), "truth")
        if self._take(("word", "in")):
            self._need("(")
            among = [self._compared("=", left, self._value())]
            while self._take(("sign", ",")):
                among.append(self._compared("=", left, self._value()))
            self._need(")")
            return _Expression(_negated(_either(among), is_negated), "truth")
        for word, flags in (("like", re.DOTALL), ("ilike", re.DOTALL | re.IGNORECASE)):
            if self._take(("word", word)):
                token_type, token = self._peek()
                if token_type != "text":
                    self._refuse(token)
                self._next += 1
                self.pairs.append((left, _Expression(lambda values: "", "text")))
                fits = _like(left.compute, _quoted(token), flags)
                return _Expression(_negated(fits, is_negated), "truth")
        if is_negated:
            self._refuse(self._peek()[1])
        return left

    def _compared(self, sign: str, left: _Expression, right: _Expression) -> Compute:
        self.pairs.append((left, right))
        fits, a, b = _COMPARISONS[sign], left.compute, right.compute
        sides = ((left, right), (right, left))
        # A decimal number becomes a float32 beside one.
        is_single = any(side.name in self._singles and other.literal for side, other in sides)

        def compare(values: Mapping[tuple[str, ...], Any]) -> bool | None:
            x, y = a(values), b(values)
            if x is None or y is None:
                return None
            if is_single:
                x, y = float(np.float32(x)), float(np.float32(y))
            return fits(_order(x, y))

        return compare

    def _value(self) -> _Expression:
        token_type, token = self._peek()
        if self._take(("sign", "(")):
            inner = self._condition()
            self._need(")")
            return inner
        if self._take(("sign", "-")):
            value = self._value()
            negate = value.compute
            literal = f"-{value.literal}" if value.literal else ""
            return _Expression(
                lambda values: _applied(lambda x: -x, negate(values)), "number", value.name, literal
            )
        if (
            token_type == "name"
            and token.lower() == "abs"
            and self._tokens[self._next + 1 :][:1] == [("sign", "(")]
        ):
            self._next += 2
            value = self._value()
            self._need(")")
            size = value.compute
            return _Expression(
                lambda values: _applied(abs, size(values)), "number", value.name, value.literal
            )
        if token_type == "name":
            return self._field()
        self._next += 1
        if token_type == "number":
            number = float(token) if {*token.lower()} & {".", "e"} else int(token)
            # A number with an exponent is a double.
            return _Expression(lambda values: number, "number", literal="" if "e" in token.lower() else token)
        if token_type == "text":
            text = _quoted(token)
            return _Expression(lambda values: text, "text")
        if token_type == "word" and token in ("true", "false"):
            return _Expression(lambda values: token == "true", "truth")
        if token_type == "word" and token == "null":
            return _Expression(lambda values: None, "null")
        self._refuse(token)
        return None


def _quoted(token: str) -> str:
    return token[1:-1].replace("''", "'")


def _applied(function: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else function(value)


def _negated(compute: Compute, is_negated: bool) -> Compute:
    def negate(values: Mapping[tuple[str, ...], Any]) -> bool | None:
        value = _truth(compute(values))
        return value if value is None or not is_negated else not value

    return negate


def _either(terms: list[Compute]) -> Compute:
    def either(values: Mapping[tuple[str, ...], Any]) -> bool | None:
        answers = [_truth(term(values)) for term in terms]
        return True if True in answers else None if None in answers else False

    return either


def _both(terms: list[Compute]) -> Compute:
    def both(values: Mapping[tuple[str, ...], Any]) -> bool | None:
        answers = [_truth(term(values)) for term in terms]
        return False if False in answers else None if None in answers else True

    return both


def _like(compute: Compute, pattern: str, flags: int) -> Compute:
    """Return a function that tells whether a text fits a pattern in which % is any text and _ any character."""
    # Runs of % are one: several of them would be tried in all ways.
    parts = re.split(r"([%_])", re.sub(r"%+", "%", pattern))
    fits = re.compile("".join({"%": ".*", "_": "."}.get(part) or re.escape(part) for part in parts), flags)

    def like(values: Mapping[tuple[str, ...], Any]) -> bool | None:
        value = compute(values)
        return None if value is None else fits.fullmatch(value) is not None

    return like
