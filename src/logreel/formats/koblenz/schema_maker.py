"""Schemas of new Koblenz logs: message types, named by topics, and checks that payloads are such messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.definitions import (
    RAW,
    UNCOMPRESSED,
    USUAL_VERSION,
    Kind,
    MessageType,
    registered_types,
    type_id,
)
from logreel.formats.koblenz.own_types import class_name, definition_of
from logreel.formats.koblenz.records import MAX_ID, MAX_VERSION
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct
from logreel.layout.program import compile_layout
from logreel.log.scan import Schema
from logreel.write.format_writer import Abilities, Payloads, SchemaMaker, TextChannel, TextColumns

if TYPE_CHECKING:
    import pyarrow as pa


_VERSION = re.compile(r"[^/]*@(\d{1,5})(/.*)?", re.DOTALL)
_ID = re.compile(r"0x([0-9A-Fa-f]{1,8})")
#: The field ``compressed`` of a picture.
_COMPRESSED = FieldAt(4, 4)


def kind_of(
    topic: str,
    schema: Schema,
    metadata: Mapping[str, Any],
    own: Mapping[int, MessageType] = MappingProxyType({}),
) -> Kind:
    """Return type and version of a channel.

    Both come from *metadata* (``type_id``, ``version``); else the type is the class that *schema* names, and the
    version that of the topic or of the description. Raises DefinitionError for an invalid type, UsageError for a topic
    that reading would not give: topics follow from types.

    own  types that the log describes, by id
    """
    if schema.encoding != "koblenz":
        raise DefinitionError(f"channel {topic!r} of a Koblenz log needs a schema of encoding 'koblenz'")
    number = _ID.fullmatch(str(metadata.get("type_id", schema.name)))
    kind_id = int(number[1], 16) if number else type_id(schema.name)
    if not 0 < kind_id < MAX_ID:
        raise DefinitionError(f"channel {topic!r}: {schema.name!r:.60} cannot be the name of a message type")
    known = registered_types().get(kind_id) or own.get(kind_id)
    stated = _VERSION.fullmatch(topic)
    usual = known.version if known else USUAL_VERSION
    version = int(metadata.get("version", stated[1] if stated else usual))
    if not 0 <= version < MAX_VERSION:
        raise DefinitionError(f"channel {topic!r}: there is no version {version}")
    message_kind = Kind(kind_id, version, known)
    several = message_kind.is_described and known is not None and known.instance
    if not (topic.startswith(f"{message_kind.name}/") if several else topic == message_kind.name):
        due = f"'{message_kind.name}/' and a sensor" if several else repr(message_kind.name)
        raise UsageError(f"{topic!r}: a Koblenz log names channels by their types; this one is {due}")
    return message_kind


def layout_of(message_kind: Kind, topic: str) -> Layout:
    """Return the Layout that encodes fields of a channel."""
    return UNCOMPRESSED if topic.endswith("@uncompressed") else message_kind.layout


def misfits(message_kind: Kind, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether the content of each payload ends elsewhere than the payload."""
    layout = message_kind.layout
    bad = size < layout.measure.least
    if layout is RAW:
        return bad
    described = ~bad
    if message_kind.is_described and message_kind.known and "compressed" in message_kind.known.instance:
        described[described] = _COMPRESSED.read(data, start[described]) != 0
    starts, ends = start[described], (start + size)[described]
    program = compile_layout(layout)
    status = np.zeros(len(starts), np.uint8)
    kernel.count(data, starts, ends, program.ops, np.zeros(len(program.columns), np.int64), status)
    bad[described] = status != kernel.OK
    return bad


_TEXT = Layout(
    Struct((Field("level", Scalar("int32")), Field("source", String()), Field("text", String()))), "TextM"
)


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa

    return {"level": pa.array(lines.level.astype(np.int32)), "source": lines.source, "text": lines.text}


def _latin_1(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return text as strings of its bytes in Latin-1; in UTF-8 what has none."""
    import pyarrow as pa

    rows = [_bytes_of(str(text)) for text in column.to_pylist()]
    raw = pa.array(rows, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.offset)


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


class KoblenzSchemaMaker(SchemaMaker):
    """Message types; *layouts* are those of the channels, one field ``payload`` for types without description."""

    encoding = "koblenz"
    abilities = Abilities()

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.layouts: list[Layout] = []
        #: Names of the fields of each channel whose texts are Latin-1.
        self.latin_1: list[frozenset[str]] = []
        #: Types that the log describes, by id.
        self.own: dict[int, MessageType] = {}

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type that *topic* begins with, whatever the fields are."""
        schema = Schema(topic.partition("/")[0].partition("@")[0], self.encoding)
        try:
            kind_of(topic, schema, {})
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a type of its own named after *topic*, with a description of its fields."""
        return Schema(topic, self.encoding, definition_of(layout))

    def text_channel(self) -> TextChannel:
        """Return a type of its own for lines of text, with syslog levels; -1: unknown."""
        schema = Schema("TextM", self.encoding, definition_of(_TEXT))
        return TextChannel("TextM", schema, tuple(range(8)), -1, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return the class name of a type for *topic*: topics are types."""
        return class_name(topic, registered_types().keys() | self.own.keys())

    def encode(self, number: int, table: pa.Table, records: I64 | None = None) -> Payloads:
        """Return the payloads of messages; texts are Latin-1 where they were in the log that is written again."""
        for name in self.latin_1[number] & {*table.column_names}:
            at = table.column_names.index(name)
            table = table.set_column(at, name, _latin_1(table.column(name)))
        return super().encode(number, table, records)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's type."""
        return self.layouts[number]
