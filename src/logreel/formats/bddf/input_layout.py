"""Layouts of messages that are written by fields, and the payloads encoded from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.formats.bddf.content_types import JSON, PROTOBUF, json_schema, own_descriptors
from logreel.formats.bddf.descriptors import MessageType, PodType, Series, StructType
from logreel.formats.bddf.payload_decoders import column_names, distinct_names, with_additional_indexes
from logreel.formats.bddf.pod_series import RAW, block_layout
from logreel.formats.bddf.scan_builder import TEXT
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Sequence, Struct
from logreel.schemas.json.from_layout import json_bytes
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.schemas.languages import protobuf_serializer
from logreel.write.payloads import Payloads, joined
from logreel.write.schema_maker import PayloadSplitter
from logreel.write.serialize_rows import serialize_rows

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

    def __init__(self, series: Series, find: Find) -> None:
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
        found = serialize_rows(self._content, self._serialize, data, first, size)
        return replace(found, side_columns=side_columns)

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


def _content_layout(series: Series, find: Find) -> tuple[Layout, Serialize | None]:
    """Return the Layout of the content, and the function that encodes it; None: its bytes are the payload."""
    kind = series.type
    if isinstance(kind, StructType):
        raise DefinitionError("a struct is joined from its members: write those")
    if isinstance(kind, PodType):
        return block_layout(series, kind) or RAW, None
    if not isinstance(kind, MessageType):
        return RAW, None
    schema = json_schema(series.annotations)
    if kind.content_type == JSON and schema is not None:
        decoder = JsonDecoder(schema)
        return (decoder.layout if decoder.has_fields else Layout(Struct(()))), json_bytes
    if kind.content_type.startswith("text/") or kind.content_type == JSON:
        return TEXT, None
    if kind.content_type == PROTOBUF and (own := own_descriptors(series.annotations)):
        from logreel.schemas.protobuf.types import Types

        find = Types(own=own).find
    descriptor = find(kind.name) if kind.content_type == PROTOBUF and kind.name else None
    if descriptor is None:
        return RAW, None
    return protobuf_serializer(descriptor)


def _int64_columns(data: Bytes1, at: I64, k: int) -> I64:
    """Return int64[n, k]: the k numbers at each of the offsets *at*."""
    raw = joined(data, at, np.full(len(at), 8 * k, np.int64))
    found: I64 = raw.view("<i8").astype(np.int64).reshape(len(at), k)
    return found
