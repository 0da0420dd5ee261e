"""Definition of a channel's messages as stored in the log, and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from logreel.errors import DefinitionError
from logreel.layout.arrow_arrays import item_type
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    import pyarrow as pa

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
    from logreel.layout.arrow import schema_of

    one = ch.schema
    try:
        fields = tuple(found for top in schema_of(ch.layout) for found in _fields(top, top.name))
    except DefinitionError as error:
        return SchemaInfo(
            ch.topic, one.name, one.encoding, one.text, None, error.text, to_json_values(ch.metadata)
        )
    return SchemaInfo(ch.topic, one.name, one.encoding, one.text, fields, "", to_json_values(ch.metadata))


def _fields(one: pa.Field[Any], path: str) -> Iterator[FieldInfo]:
    """Yield *one*, or the members of a struct one by one; those of arrays of structs as ``esc[8].rpm``."""
    import pyarrow as pa

    kind = one.type
    while pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        if not pa.types.is_struct(innermost(kind)):
            break
        path += f"[{kind.list_size}]" if pa.types.is_fixed_size_list(kind) else "[]"
        kind = item_type(kind)
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            yield from _fields(kind.field(i), f"{path}.{kind.field(i).name}")
    else:
        unit = (one.metadata or {}).get(b"unit", b"").decode()
        yield FieldInfo(path, type_text(kind), unit)


def innermost(kind: pa.DataType) -> pa.DataType:
    """Return the type of the innermost items of nested arrays."""
    import pyarrow as pa

    while pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        kind = item_type(kind)
    return kind


def type_text(kind: pa.DataType) -> str:
    """Return a short name of a type: ``float32[4]``, ``uint8[]``, ``string``, ``duration[ns]``."""
    import pyarrow as pa

    sizes = ""
    while pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        sizes += f"[{kind.list_size}]" if pa.types.is_fixed_size_list(kind) else "[]"
        kind = item_type(kind)
    short = {"float": "float32", "double": "float64"}.get(str(kind), str(kind))
    return short + sizes
