"""Parser of ROS 2 message definitions: fields with bounds and defaults, constants, comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from logreel.errors import DefinitionError
from logreel.layout.nodes import MAX_LEAVES
from logreel.schemas.ros1msg.names import short_name
from logreel.schemas.ros1msg.sections import split_text

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
class FieldLine:
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
class Message:
    """The definition of one type; *name*: ``pkg/Type``."""

    name: str
    fields: tuple[FieldLine, ...]


def parse(text: str, name: str) -> Mapping[str, Message]:
    """Return the messages in a concatenated definition by name, that of *name* first.

    Raises DefinitionError with the line number.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    found: dict[str, Message] = {}
    for section in split_text(text, name):
        if section.name not in found:
            found[section.name] = _message(section.text, section.name)
    return found


def _message(text: str, name: str) -> Message:
    package, fields = name.rpartition("/")[0], list[FieldLine]()
    for number, line in enumerate(text.splitlines(), 1):
        # "#" may be part of a text default; what follows the name does not matter here.
        code = line.partition("#")[0].strip()
        if not code or code.startswith("@"):
            continue
        found = _LINE.fullmatch(code)
        if found is None or (found["bound"] and found["type"] not in ("string", "wstring")):
            raise DefinitionError(
                f"{name[:80]}, line {number}: expected a type and a name, found {code[:60]!r}"
            )
        if found["constant"]:
            continue
        kind = found["type"]
        if kind not in NUMBERS and kind not in ("string", "wstring"):
            kind = short_name(kind if "/" in kind else f"{package}/{kind}")
        fixed = bool(found["array"] and found["count"] and not found["most"])
        fields.append(
            FieldLine(kind, found["name"], bool(found["array"]), int(found["count"]) if fixed else None)
        )
        if len(fields) > MAX_LEAVES:
            raise DefinitionError(f"{name[:80]} has more than {MAX_LEAVES} fields")
    names = [f.name for f in fields]
    if len(set(names)) < len(names):
        raise DefinitionError(f"{name[:80]} has two fields of one name")
    return Message(name, tuple(fields))
