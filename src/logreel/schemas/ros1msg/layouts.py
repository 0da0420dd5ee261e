"""Layouts of ROS 1 definitions."""

from __future__ import annotations

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Scalar, Sequence, String, Struct, Time
from logreel.schemas.ros1msg.definition import Definition
from logreel.schemas.ros1msg.grammar import FieldLine

#: char is unsigned, byte is signed. All lengths and counts have four bytes.
_SCALARS = {
    **{name: Scalar(name) for name in ("bool", "float32", "float64")},
    **{f"{sign}int{bits}": Scalar(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "char": Scalar("uint8"),
    "byte": Scalar("int8"),
}
BUILTIN_NODES: dict[str, Node] = {
    **_SCALARS,
    "time": Time(),
    "duration": Time(signed=True),
    "string": String(4),
}
COUNT_BYTES = 4


def layout(definition: Definition) -> Layout:
    """Return the Layout of a message, whose fields follow each other without padding.

    Raises DefinitionError for a type that is too large or nested too deep.
    """
    structs: dict[str, Node] = {}
    try:
        for name in definition.users:
            uses = definition.uses[name]
            fields = [
                _field(f, BUILTIN_NODES.get(f.type) or structs[uses[f.type]])
                for f in definition.messages[name].fields
            ]
            structs[name] = Struct(tuple(fields))
        root = structs[definition.name]
        return Layout(root if isinstance(root, Struct) else Struct(()), definition.name)
    except DefinitionError as error:
        raise DefinitionError(f"{definition.name}: {error.text}") from None


def _field(f: FieldLine, item: Node) -> Field:
    """Return the Layout field of *f*."""
    if not f.array:
        return Field(f.name, item)
    if f.count is not None:
        return Field(f.name, FixedArray(item, f.count))
    if item == _SCALARS["uint8"]:
        return Field(f.name, Bytes(COUNT_BYTES))
    return Field(f.name, Sequence(item, COUNT_BYTES))
