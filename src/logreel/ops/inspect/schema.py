"""Definition of a channel's messages as stored in the log, and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.dataclass import asdict, dataclass, field
from logreel.errors import DefinitionError
from logreel.layout.nodes import Field, FixedArray, Node, Sequence, Struct
from logreel.layout.numpy_columns import ARRAY, LIST, TYPE_NAMES, type_of
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One field: path (``q``, ``esc.rpm``), Arrow type, and unit, empty if the definition has none."""

    path: str
    type: str
    unit: str


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """Definition of a channel.

    text      text in the log, unchanged; empty if there is none
    fields    None if the definition cannot be used, for the reason *trouble*
    metadata  metadata of the channel as JSON data
    """

    topic: str
    name: str
    encoding: str
    text: str
    fields: tuple[FieldInfo, ...] | None
    trouble: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return one entry of ``schema --json``."""
        return asdict(self)


def schema(ch: Channel) -> SchemaInfo:
    """Return the definition of *ch* and its fields."""
    definition = ch.schema
    try:
        fields = tuple(field for top in ch.layout.record.visible() for field in _fields(top, top.name))
    except DefinitionError as error:
        return SchemaInfo(
            ch.topic,
            definition.name,
            definition.encoding,
            definition.text,
            None,
            error.text,
            to_json_values(ch.metadata),
        )
    return SchemaInfo(
        ch.topic,
        definition.name,
        definition.encoding,
        definition.text,
        fields,
        "",
        to_json_values(ch.metadata),
    )


def _fields(member: Field, path: str) -> Iterator[FieldInfo]:
    """Yield *member*, or the members of a struct one by one; those of arrays of structs as ``esc[8].rpm``."""
    node = member.node
    if isinstance(innermost(node), Struct):
        path += sizes_text(node)
        for inner in innermost(node).visible():
            yield from _fields(inner, f"{path}.{inner.name}")
    else:
        yield FieldInfo(path, type_text(node), member.unit)


def innermost(node: Node) -> Any:
    """Return the node of the innermost items of nested arrays."""
    while isinstance(node, FixedArray | Sequence) and type_of(node) in (ARRAY, LIST):
        node = node.item
    return node


def sizes_text(node: Node) -> str:
    """Return the sizes of nested arrays: ``[4]``, ``[]`` …"""
    sizes = ""
    while isinstance(node, FixedArray | Sequence) and type_of(node) in (ARRAY, LIST):
        sizes += f"[{node.count}]" if isinstance(node, FixedArray) else "[]"
        node = node.item
    return sizes


def type_text(node: Node) -> str:
    """Return a short name of a type: ``float32[4]``, ``uint8[]``, ``string``, ``duration[ns]``."""
    kind = type_of(innermost(node))
    return TYPE_NAMES.get(kind, kind) + sizes_text(node)
