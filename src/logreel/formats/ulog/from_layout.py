"""Build format texts from a Layout."""

from __future__ import annotations

import re
from collections.abc import Iterator

from logreel.errors import DefinitionError
from logreel.formats.ulog.records import BASIC
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Node, Scalar, Struct, Time

STAMP = "timestamp"
_KIND = {scalar: name for name, scalar in BASIC.items()}
#: Names of fields.
FIELD = re.compile(r"(?!_padding)[A-Za-z0-9_]+")


def definition_from_layout(layout: Layout, name: str) -> str:
    """Return the text of a format *name* with the fields of *layout*, followed by one line for each nested struct.

    Without a field ``timestamp``, one is added as the first field. Raises DefinitionError for fields without a fixed
    size, arrays of arrays, and invalid names.
    """
    if not isinstance(layout.root, Struct):
        raise DefinitionError("a message of a ULog holds one record")
    fields = list(layout.root.visible())
    found = next((f for f in fields if f.name == STAMP), None)
    if found is not None and not (isinstance(found.node, Scalar) and "int" in found.node.type):
        raise DefinitionError(f"the field {STAMP!r} of a ULog is the time of the message, in microseconds")
    stamp = Field(STAMP, Scalar("uint64"))
    fields = [stamp if f is found else f for f in fields] if found else [stamp, *fields]
    lines: list[str] = []
    _add_struct(Struct(tuple(fields)), name, lines)
    return "\n".join(lines)


def _add_struct(node: Struct, name: str, lines: list[str]) -> None:
    place = len(lines)
    lines.append("")
    text = "".join(f"{kind};" for kind in _fields(node, name, lines))
    if not text:
        raise DefinitionError("a ULog has no messages without fields")
    lines[place] = f"{name}:{text}"


def _fields(node: Struct, name: str, lines: list[str]) -> Iterator[str]:
    for f in node.visible():
        if not FIELD.fullmatch(f.name):
            raise DefinitionError(f"{f.name!r:.60} cannot be a field of a ULog: letters, digits and _ only")
        kind, times = _type(f.node, f"{name}-{f.name}", lines)
        yield f"{kind}{times} {f.name}"


def _type(node: Node, name: str, lines: list[str]) -> tuple[str, str]:
    """Return the type of a field, and its brackets."""
    match node:
        case Scalar(type=t):
            return _KIND[t], ""
        case Time():
            return "int64_t", ""
        case Struct():
            _add_struct(node, name, lines)
            return name, ""
        case FixedArray(item=item, count=n):
            kind, times = _type(item, name, lines)
            if times:
                raise DefinitionError("a ULog has no arrays of arrays")
            return kind, f"[{n}]"
        case _:
            raise DefinitionError(f"{type(node).__name__}: the messages of a ULog have a fixed size")
