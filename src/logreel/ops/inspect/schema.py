"""Definition of a channel's messages as stored in the log, and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.dataclass import asdict, dataclass, field
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

    definition = ch.schema
    try:
        fields = tuple(field for top in schema_of(ch.layout) for field in _fields(top, top.name))
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


def _fields(field: pa.Field[Any], path: str) -> Iterator[FieldInfo]:
    """Yield *field*, or the members of a struct one by one; those of arrays of structs as ``esc[8].rpm``."""
    import pyarrow as pa

    data_type = field.type
    while pa.types.is_nested(data_type) and not pa.types.is_struct(data_type):
        if not pa.types.is_struct(innermost(data_type)):
            break
        path += f"[{data_type.list_size}]" if pa.types.is_fixed_size_list(data_type) else "[]"
        data_type = item_type(data_type)
    if pa.types.is_struct(data_type):
        for i in range(data_type.num_fields):
            yield from _fields(data_type.field(i), f"{path}.{data_type.field(i).name}")
    else:
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        yield FieldInfo(path, type_text(data_type), unit)


def innermost(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the innermost items of nested arrays."""
    import pyarrow as pa

    while pa.types.is_nested(data_type) and not pa.types.is_struct(data_type):
        data_type = item_type(data_type)
    return data_type


def type_text(data_type: pa.DataType) -> str:
    """Return a short name of a type: ``float32[4]``, ``uint8[]``, ``string``, ``duration[ns]``."""
    import pyarrow as pa

    sizes = ""
    while pa.types.is_nested(data_type) and not pa.types.is_struct(data_type):
        sizes += f"[{data_type.list_size}]" if pa.types.is_fixed_size_list(data_type) else "[]"
        data_type = item_type(data_type)
    short = {"float": "float32", "double": "float64"}.get(str(data_type), str(data_type))
    return short + sizes
