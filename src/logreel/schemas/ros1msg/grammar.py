"""Parser of one message definition: fields, constants, comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from logreel.errors import DefinitionError
from logreel.layout.nodes import MAX_LEAVES
from logreel.schemas.ros1msg.names import BUILTIN, is_name, is_type, package_of

#: Most characters of a concatenated definition; the largest real ones have some ten thousand.
MAX_TEXT = 1 << 22
#: Most digits of an array's count: no message has ten thousand million items.
_MAX_DIGITS = 10

Value = bool | int | float | str

_FLOATS = ("float32", "float64")
_CONSTANT_TYPES = BUILTIN - {"time", "duration"}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: char is unsigned and byte is signed, as in messages.
_RANGES: dict[str, tuple[int, int]] = {"byte": (-(1 << 7), (1 << 7) - 1), "char": (0, (1 << 8) - 1)}
for _bits in (8, 16, 32, 64):
    _RANGES[f"int{_bits}"] = (-(1 << (_bits - 1)), (1 << (_bits - 1)) - 1)
    _RANGES[f"uint{_bits}"] = (0, (1 << _bits) - 1)


@dataclass(frozen=True, slots=True)
class FieldLine:
    """A field of a definition.

    type   as written, without brackets: ``float64``, ``Header``, ``geometry_msgs/Point``
    array  True if it has brackets
    count  the number in the brackets, or None
    """

    type: str
    name: str
    array: bool = False
    count: int | None = None

    @property
    def spelled(self) -> str:
        """Type with its brackets."""
        if not self.array:
            return self.type
        return f"{self.type}[]" if self.count is None else f"{self.type}[{self.count}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a definition; it takes no bytes in messages.

    text   right-hand side as written, without surrounding blanks
    value  value of *text*; None if it is no value of the type, which does not matter for reading messages
    """

    type: str
    name: str
    text: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class Message:
    """The definition of one type, without the types that it uses.

    name  ``pkg/Type``
    text  verbatim text
    """

    name: str
    text: str
    fields: tuple[FieldLine, ...]
    constants: tuple[Constant, ...]

    @property
    def package(self) -> str:
        """Package in which type names without a package are looked up."""
        return package_of(self.name)


def parse_message(text: str, name: str) -> Message:
    """Return the message of one definition text; *name*: its type.

    Words may be separated by blanks or tabs, lines may end with CR. Raises DefinitionError with the line number.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    fields: list[FieldLine] = []
    constants: list[Constant] = []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.partition("#")[0].strip()
        if not code:
            continue
        try:
            if "=" in code:
                constants.append(_constant(code, line))
            else:
                fields.append(_field(code))
        except DefinitionError as error:
            raise DefinitionError(f"{name[:80]}, line {number}: {error.text}") from None
        if len(fields) + len(constants) > MAX_LEAVES:
            raise DefinitionError(f"{name[:80]} has more than {MAX_LEAVES} fields and constants")
    _check_distinct([f.name for f in fields], name)
    return Message(name, text, tuple(fields), tuple(constants))


def _bad(what: str, text: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:60] + "…"
    raise DefinitionError(f"expected {what}, found {shown!r}")


def _check_distinct(names: list[str], name: str) -> None:
    seen: set[str] = set()
    for n in names:
        if n in seen:
            raise DefinitionError(f"{name[:80]} has two fields named {n}")
        seen.add(n)


def _field(code: str) -> FieldLine:
    words = code.split(None, 2)
    if len(words) != 2 or not is_name(words[1]):
        _bad("a type and a name", code)
    base, bracket, inside = words[0].partition("[")
    if not is_type(base):
        _bad("a type", words[0])
    if not bracket:
        return FieldLine(base, words[1])
    digits = inside.removesuffix("]")
    if digits == inside or (digits and not _is_count(digits)):
        _bad("an array like T[] or T[3]", words[0])
    return FieldLine(base, words[1], True, int(digits) if digits else None)


def _is_count(digits: str) -> bool:
    return len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdigit()


def _constant(code: str, line: str) -> Constant:
    left, _, right = code.partition("=")
    words = left.split(None, 2)
    if len(words) != 2 or not is_name(words[1]):
        _bad("a type and a name before '='", code)
    if words[0] not in _CONSTANT_TYPES:
        _bad("the type of a constant", words[0])
    # The value of a string constant extends to the end of the line, without comments.
    text = (line.partition("=")[2] if words[0] == "string" else right).strip()
    return Constant(words[0], words[1], text, _value(words[0], text))


def _value(kind: str, text: str) -> Value | None:
    if kind == "string":
        return text
    # Python refuses to convert very long numbers; int() and float() accept "_", ROS does not.
    if len(text) > 400 or "_" in text:
        return None
    if kind == "bool":
        return _TRUTH.get(text.lower())
    try:
        if kind in _FLOATS:
            return float(text)
        value = int(text)
    except ValueError:
        return None
    low, high = _RANGES[kind]
    return value if low <= value <= high else None
