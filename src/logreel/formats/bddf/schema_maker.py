"""Schemas of new BDDF files: types of series, the blocks that declare them, and Layouts for writing by fields.

Fields of descriptors are written in order of their numbers.
"""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.bddf import records
from logreel.formats.bddf.payload_decoders import (
    TICK,
    Signals,
    column_names,
    distinct_names,
    with_additional_indexes,
)
from logreel.formats.bddf.records import (
    BEFORE,
    DESCRIPTOR,
    DESCRIPTORS,
    END,
    END_MAGIC,
    JSON,
    JSON_SCHEMA,
    MAX_DESCRIPTOR,
    POD_TYPES,
    PROTOBUF,
    FileDescriptor,
    FileIndex,
    Identifier,
    MessageSeriesType,
    PodType,
    SeriesDeclaration,
    StructType,
    own_descriptors,
    schema_in_annotations,
)
from logreel.formats.bddf.scan_builder import TEXT, topic_of
from logreel.formats.bddf.value_series import RAW, block_layout
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Scalar, Sequence, Struct
from logreel.layout.numpy_columns import Column
from logreel.log.scan import ORIGINAL, Schema
from logreel.registry.format import channel_key
from logreel.schemas.jsonschema import JsonDecoder, json_bytes, json_schema
from logreel.schemas.languages import protobuf_serializer
from logreel.schemas.protobuf.encoder import mapping, number, packed, part, text
from logreel.write.format_writer import (
    Abilities,
    Payloads,
    PayloadSplitter,
    SchemaMaker,
    TextChannel,
    TextColumns,
    joined,
    serialize_rows,
)

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import ProtoMessage, Types

#: Size field of the end block, as the reference writer sets it; readers ignore it.
END_SIZE = 24


def descriptor(field: int, content: bytes) -> bytes:
    """Return a descriptor block with one message, given by its field number; 0: an empty block."""
    body = part(field, content) if field else b""
    return struct.pack("<Q", DESCRIPTOR << 56 | len(body)) + body


def file_descriptor(file: FileDescriptor) -> bytes:
    """Return the first block of a file."""
    version = b"".join(number(i + 1, n) for i, n in enumerate(file.version))
    body = part(1, version) + mapping(2, file.annotations)
    return descriptor(records.FILE, body + number(3, file.checksum) + number(4, file.checksum_size))


def identifier(name: Identifier) -> bytes:
    """Return the bytes of a SeriesIdentifier."""
    return text(1, name.type) + mapping(2, name.spec)


def series_descriptor(series: SeriesDeclaration) -> bytes:
    """Return the block that declares a series."""
    body = number(1, series.index) + part(2, identifier(series.identifier)) + number(3, series.hash)
    match series.type:
        case MessageSeriesType(content, name, is_metadata):
            body += part(4, text(1, content) + text(2, name) + number(3, is_metadata))
        case PodType(pod_type, dimension):
            body += part(5, number(1, POD_TYPES.index(pod_type)) + packed(2, dimension))
        case StructType(members):
            body += part(6, mapping(1, members))
    body += mapping(7, series.annotations) + b"".join(part(8, name) for name in series.names)
    return descriptor(records.SERIES, body + text(9, series.description))


def file_index(index: FileIndex) -> bytes:
    """Return the file index block, which is empty for a file without series."""
    if not index.identifiers:
        return descriptor(0, b"")
    names = b"".join(part(1, identifier(identity)) for identity in index.identifiers)
    return descriptor(records.FILE_INDEX, names + packed(2, index.offsets) + packed(3, index.hashes))


def end_block_head(index: int) -> bytes:
    """Return the end block up to its checksum, which covers this part; *index* is the offset of the file index."""
    return struct.pack("<QQ", END << 56 | END_SIZE, index)


def end_block_tail(digest: bytes) -> bytes:
    """Return the end block from its checksum on."""
    return digest + END_MAGIC


#: Returns the protobuf library's Descriptor of a message type, or None.
Find = Callable[[str], Any]
#: Returns the payload of a message given as a dict.
Serialize = Callable[[dict[str, Any]], bytes]
Bytes1 = NDArray[np.uint8]


class InputLayout:
    """Layout of the messages of one series when they are written: additional indexes, then the content.

    The content is samples, fields, ``text`` or ``data``.

    fields    names of the columns of the content
    splitter  turns messages in this Layout into payloads; None: they are the payloads

    Raises DefinitionError for a struct, which is joined from its members.
    """

    def __init__(self, series: SeriesDeclaration, find: Find) -> None:
        self._content, self._serialize = _content_layout(series, find)
        self.fields = column_names(self._content)
        names = distinct_names(series.names, self.fields)
        #: Number of additional indexes.
        self._k = len(names)
        self.layout = with_additional_indexes(self._content, names) if names else self._content
        self.splitter: PayloadSplitter | None = None
        if isinstance(self.layout.root, Sequence):
            self.splitter = PayloadSplitter([*names, "sample"], self._from_samples, names)
        elif names or self._serialize is not None:
            self.splitter = PayloadSplitter(names, self._from_fields)

    def _from_fields(self, data: Bytes1, start: I64) -> Payloads:
        """Return the payloads of messages: additional indexes, then the fields of the content."""
        first, size = start[:-1], np.diff(start)
        side_columns = _int64_columns(data, first, self._k) if self._k else None
        first, size = first + 8 * self._k, size - 8 * self._k
        if self._serialize is None:
            return Payloads(data, first, size, side_columns)
        encoded = serialize_rows(self._content, self._serialize, data, first, size)
        return replace(encoded, side_columns=side_columns)

    def _from_samples(self, data: Bytes1, start: I64) -> Payloads:
        """Return the payloads of messages: a count, then per sample additional indexes, sample number, value."""
        first, size = start[:-1], np.diff(start)
        lead, width = 8 * self._k + 4, Layout(self.layout.record, "").size or 0
        count = (size - 4) // width
        number = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        records = np.repeat(first + 4, count) + width * number
        values = joined(data, records + lead, np.full(len(records), width - lead, np.int64))
        size = count * (width - lead)
        side_columns = np.zeros((len(count), self._k), np.int64)
        side_columns[count > 0] = _int64_columns(data, (first + 4)[count > 0], self._k)
        return Payloads(values, np.cumsum(size) - size, size, side_columns if self._k else None)


def _content_layout(series: SeriesDeclaration, find: Find) -> tuple[Layout, Serialize | None]:
    """Return the Layout of the content, and the function that encodes it; None: its bytes are the payload."""
    series_type = series.type
    if isinstance(series_type, StructType):
        raise DefinitionError("a struct is joined from its members: write those")
    if isinstance(series_type, PodType):
        return block_layout(series, series_type) or RAW, None
    if not isinstance(series_type, MessageSeriesType):
        return RAW, None
    schema = schema_in_annotations(series.annotations)
    if series_type.content_type == JSON and schema is not None:
        decoder = JsonDecoder(schema)
        return (decoder.layout if decoder.has_fields else Layout(Struct(()))), json_bytes
    if series_type.content_type.startswith("text/") or series_type.content_type == JSON:
        return TEXT, None
    if series_type.content_type == PROTOBUF and (own := own_descriptors(series.annotations)):
        from logreel.schemas.protobuf.types import Types

        find = Types(own=own).find
    descriptor = find(series_type.name) if series_type.content_type == PROTOBUF and series_type.name else None
    if descriptor is None:
        return RAW, None
    return protobuf_serializer(descriptor)


def _int64_columns(data: Bytes1, at: I64, k: int) -> I64:
    """Return int64[n, k]: the k numbers at each of the offsets *at*."""
    raw = joined(data, at, np.full(len(at), 8 * k, np.int64))
    values: I64 = raw.view("<i8").astype(np.int64).reshape(len(at), k)
    return values


def schema_from_layout(layout: Layout) -> Schema:
    """Return a POD schema if each record is one number named ``value``, else JSON with a JSON Schema.

    PODs store no field names, so other names could not be read back.
    """
    pod = _pod_type(layout)
    return Schema(JSON, JSON, json_schema(layout)) if pod is None else Schema(pod, "bddf")


def _pod_type(layout: Layout) -> str | None:
    fields = list(layout.root.visible()) if isinstance(layout.root, Struct) else []
    if [f.name for f in fields] != ["records"] or not isinstance(fields[0].node, Sequence):
        return None
    record = fields[0].node.item
    members = list(record.visible()) if isinstance(record, Struct) else []
    if [f.name for f in members] != ["value"] or not isinstance(members[0].node, Scalar):
        return None
    scalar_type = members[0].node.type
    return scalar_type if scalar_type in POD_TYPES[1:] and scalar_type != "bool" else None


TEXT_MESSAGE = "bosdyn.api.TextMessage"
#: Fields of a line of text, in the order of their numbers, and their kinds; the level is an enumeration.
_TEXT_KINDS = {"message": "string", "timestamp": "time", "source": "string", "level": "int32"}


def _text_columns(lines: TextColumns) -> dict[str, Column]:
    n = len(lines.time)
    return {
        "message": lines.text,
        "timestamp": Column("int64", n, lines.time),
        "source": lines.source,
        "level": Column("int32", n, lines.level.astype(np.int32)),
    }


def _text_payloads(columns: Mapping[str, Column], rows: int) -> Payloads:
    """Return messages of the type TextMessage."""
    from logreel.schemas.protobuf.encoder import Many, encode
    from logreel.schemas.protobuf.types import ProtoField, ProtoMessage

    fields = (ProtoField(name, n, field_type) for n, (name, field_type) in enumerate(_TEXT_KINDS.items(), 1))
    values = dict[str, Any]()
    for name, field_type in _TEXT_KINDS.items():
        column = columns[name]
        is_text = field_type == "string"
        values[name] = Many(column.ends.astype(np.int64), column.values) if is_text else column.values
    data, start = encode(ProtoMessage(TEXT_MESSAGE, tuple(fields)), values, rows)
    return Payloads(data, start[:-1], np.diff(start))


class BddfSchemaMaker(SchemaMaker):
    """Makes types of series.

    series   declared series, by channel number
    signals  schemas of signals known so far, written or of source logs: readers compute the values of ticks by them
    """

    abilities = Abilities(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"))

    def __init__(self, title: str, definitions: Iterable[str | os.PathLike[str]]) -> None:
        super().__init__(title)
        self.series: list[SeriesDeclaration] = []
        self.signals: list[Signals] = []
        self._input_layouts: dict[int, InputLayout] = {}
        self._definitions = tuple(definitions)
        self._types: Types | None = None
        #: Types made for messages that are encoded from columns, with their Layouts, by definition.
        self._made: dict[bytes, tuple[ProtoMessage, Layout]] = {}

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a POD type if each record is one number named ``value``, else JSON with a JSON Schema."""
        return schema_from_layout(layout)

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a POD type as ``schema_from_layout`` does, else a protobuf type, which the series describes."""
        from logreel.schemas.protobuf.encoder import descriptor_from_layout, identifier
        from logreel.schemas.protobuf.types import descriptor_set

        pod = schema_from_layout(layout)
        if pod.encoding == "bddf":
            return pod
        message = descriptor_from_layout(layout, f"logreel.{identifier(topic.strip('/~'))}")
        encoded = Schema.of(message.name, "protobuf", descriptor_set(message))
        self._made[encoded.raw] = message, layout
        return encoded

    def encode(
        self, number: int, columns: Mapping[str, Column], rows: int, records: I64 | None = None
    ) -> Payloads:
        """Return the payloads of messages; those of types made here are encoded from columns at once."""
        if is_message(self.series[number], TEXT_MESSAGE) and [*columns] == [*_TEXT_KINDS]:
            return _text_payloads(columns, rows)
        made = self._made.get(own_descriptors(self.series[number].annotations))
        if made is None:
            return super().encode(number, columns, rows, records)
        from logreel.schemas.protobuf.encoder import encode, values

        message, layout = made
        names = [f.name for f in layout.record.visible()]
        data, start = encode(message, values(layout, message, [columns[name] for name in names]), rows)
        return Payloads(data, start[:-1], np.diff(start))

    def text_channel(self) -> TextChannel:
        """Return a series of TextMessage: debug, information, warning, error."""
        return TextChannel(
            "text", Schema(TEXT_MESSAGE, "protobuf"), (4, 4, 4, 4, 3, 2, 2, 1), 0, _text_columns
        )

    def topic_for(self, topic: str) -> str:
        """Return *topic* without the tilde of reserved channels."""
        return topic.lstrip("~") or "channel"

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether *schema* is a content type, protobuf, or a type of plain values."""
        return schema.encoding in ("bddf", "protobuf") or "/" in schema.encoding

    def layout(self, number: int) -> Layout:
        """Return the Layout: additional indexes, then samples, ``text``, ``data``, or fields of a described type."""
        return self._input_layout(number).layout

    def splitter(self, number: int) -> PayloadSplitter | None:
        """Return how to split off additional indexes and to encode JSON and protobuf; None: not needed."""
        return self._input_layout(number).splitter

    def computed_fields(self, number: int) -> Collection[str]:
        """Return the fields with the values of signals, which readers compute for ticks."""
        if not self.signals or not is_message(self.series[number], TICK):
            return ()
        return distinct_names([signal.name for signal in self.signals], self._input_layout(number).fields)

    def _input_layout(self, number: int) -> InputLayout:
        if number not in self._input_layouts:
            self._input_layouts[number] = InputLayout(self.series[number], self._find)
        return self._input_layouts[number]

    def _find(self, name: str) -> Any:
        from logreel.schemas.protobuf.types import Types

        if self._types is None:
            self._types = Types(map(Path, self._definitions))
        return self._types.find(name)


def is_message(series: SeriesDeclaration, name: str) -> bool:
    """Return whether messages of *series* are of the message type called *name*."""
    return isinstance(series.type, MessageSeriesType) and series.type.name == name


CHANNEL = "bosdyn:channel"
#: The only annotation without an organization that the format defines.
UNITS = "units"
_POD = re.compile(rf"({'|'.join(POD_TYPES[1:])})((\[\d{{1,10}}\])*)")
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;.*)?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{16}")


def declare(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> SeriesDeclaration:
    """Return the declaration of a channel, without a series number; hashes of struct members are from *metadata*.

    Raises DefinitionError or UsageError for a channel that a file cannot hold.
    """
    if not topic or topic.startswith("~"):
        raise UsageError(f"{topic!r} cannot be the topic of a series: it must not be empty or begin with '~'")
    series = SeriesDeclaration(
        identifier=Identifier(
            str(metadata.get("series_type", CHANNEL)),
            _text_dict(metadata.get("spec", {CHANNEL: topic}), "spec"),
        ),
        type=_type(topic, schema, metadata),
        annotations=_text_dict(metadata.get("annotations", {}), "annotations"),
        names=tuple(map(str, metadata.get("additional_indexes", ()))),
        description=str(metadata.get("description", "")),
    )
    if schema.encoding == JSON and schema.text and schema_in_annotations(series.annotations) is None:
        series = replace(series, annotations={JSON_SCHEMA: schema.text, **series.annotations})
    if schema.encoding == "protobuf" and schema.raw and "series_type" not in metadata:
        own = {DESCRIPTORS: base64.b64encode(schema.raw).decode()}
        series = replace(series, annotations={**own, **series.annotations})
    if ORIGINAL in metadata and "series_type" not in metadata:
        series = replace(series, annotations={BEFORE: str(metadata[ORIGINAL]), **series.annotations})
    series = with_topic(series, topic)
    series = replace(series, hash=series.identifier.hash)
    check_descriptor(lambda: series_descriptor(series), f"channel {topic!r:.60}")
    return series


def series_key(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for channels of several logs that become one series."""
    try:
        return identity(declare(topic, schema, metadata))
    except DefinitionError:
        # A channel that cannot be declared is refused when it is added.
        return channel_key(topic, schema, metadata)


def check_keys(annotations: Iterable[str]) -> None:
    """Raise UsageError for reserved keys of annotations: those without an organization, except ``units``."""
    for key in annotations:
        if (key != UNITS and not key.partition(":")[1]) or key.startswith(":"):
            text = "keys without an organization are reserved by the format: call it 'ORGANIZATION:NAME'"
            raise UsageError(f"annotation {key!r:.60}: {text}")


def check_descriptor(encode: Callable[[], bytes], what: str) -> None:
    """Raise UsageError if the descriptor that *encode* returns is one that readers would refuse."""
    try:
        size = len(encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{what}: what it says of itself is no text: {error.reason}") from None
    if size > MAX_DESCRIPTOR:
        raise UsageError(
            f"{what}: what it says of itself has {size} bytes; at most {MAX_DESCRIPTOR} are read"
        )


def with_topic(series: SeriesDeclaration, topic: str) -> SeriesDeclaration:
    """Return *series* with a spec that readers show as *topic*; suffixes such as ``[1]`` are added by readers."""
    name = topic_of(series)
    if re.fullmatch(re.escape(name) + r"(\[\d+\])*", topic):
        return series
    spec = {**series.identifier.spec, CHANNEL: topic}
    return replace(series, identifier=Identifier(series.identifier.type, spec))


def _text_dict(texts: object, what: str) -> dict[str, str]:
    if not isinstance(texts, Mapping):
        raise UsageError(f"metadata {what!r} is a dict of texts")
    return {str(key): str(value) for key, value in texts.items()}


def _type(
    topic: str, schema: Schema, metadata: Mapping[str, Any]
) -> MessageSeriesType | PodType | StructType | None:
    if schema.encoding == "bddf":
        return _bddf_type(topic, schema, metadata)
    content = PROTOBUF if schema.encoding == "protobuf" else schema.encoding
    if not _MIME.fullmatch(content) and metadata.get("content_type") != content:
        text = "needs a schema of encoding 'protobuf', 'bddf' or a content type such as 'text/plain'"
        raise DefinitionError(f"channel {topic!r} of a BDDF file {text}")
    # A series without a type name is shown under its content type.
    name = str(metadata.get("type_name", "")) if schema.name == content else schema.name
    return MessageSeriesType(content, name, bool(metadata.get("is_metadata")))


def _bddf_type(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> PodType | StructType | None:
    if schema.name == "struct":
        return StructType(_members(topic, metadata.get("members", {})))
    if schema.name.startswith("unknown"):
        dimension = metadata.get("dimension")
        return None if dimension is None else PodType("", tuple(map(int, dimension)))
    pod = _POD.fullmatch(schema.name)
    if pod is None:
        text = "a type such as 'float64' or 'float32[3]', or 'struct'"
        raise DefinitionError(
            f"channel {topic!r}: {schema.name!r:.60} is no type of plain values: expected {text}"
        )
    dimension = tuple(int(n) for n in re.findall(r"\d+", pod[2]))
    if any(n >= 1 << 32 for n in dimension):
        raise DefinitionError(f"channel {topic!r}: a dimension of {max(dimension)}")
    return PodType(pod[1], dimension)


def _members(topic: str, hashes: object) -> dict[str, int]:
    if not isinstance(hashes, Mapping) or not all(_HASH.fullmatch(str(value)) for value in hashes.values()):
        raise DefinitionError(
            f"struct {topic!r}: metadata 'members' names a channel added before for each member"
        )
    return {str(name): int(str(value), 16) for name, value in hashes.items()}


def identity(series: SeriesDeclaration) -> Hashable:
    """Return a key that is equal for series that readers treat as one."""
    series_type = series.type
    parts: Hashable = (
        series_type if not isinstance(series_type, StructType) else tuple(sorted(series_type.members.items()))
    )
    texts = (series.identifier.spec, series.annotations)
    return series.identifier.type, parts, series.names, *(tuple(sorted(mapping.items())) for mapping in texts)


class MemberHashes:
    """Hashes of struct members in the new file, by topic and by the hash that they have in the source."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}

    def add(self, series: SeriesDeclaration, metadata: Mapping[str, Any]) -> None:
        """Add a declared series; ``hash`` in its *metadata* is the hash that it has in the source."""
        new = f"{series.hash:016x}"
        self._new.setdefault(topic_of(series), new)
        self._new[str(metadata.get("hash", new))] = new

    def resolved(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *metadata* of a struct with the hashes that its members have in the new file."""
        members = metadata.get("members")
        if not isinstance(members, Mapping):
            return metadata
        return {
            **metadata,
            "members": {name: self._new.get(str(member), member) for name, member in members.items()},
        }
