"""How messages that are written are given by fields, and the payloads that come of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.bddf.messages import MessageType, PodType, Series, StructType
from logreel.formats.bddf.payload_decoders import distinct_names, names_of, with_numbers
from logreel.formats.bddf.payloads import JSON, PROTOBUF, json_schema
from logreel.formats.bddf.pods import RAW, layout_of
from logreel.formats.bddf.scan_builder import TEXT
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Sequence, Struct
from logreel.schemas.json.from_layout import written
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.write.payloads import Payloads, joined
from logreel.write.schema_maker import PayloadSplitter

#: Gives the library's Descriptor of a message type, or None.
Find = Callable[[str], Any]
Bytes1 = NDArray[np.uint8]


class InputLayout:
    """The Layout by which messages of one series are given: additional indexes, then samples, fields, text or bytes.

    splitter  how to get from there to the payload; None where the Layout is a walk of it

    Raises DefinitionError for a struct, which is joined from its members.
    """

    def __init__(self, series: Series, find: Find) -> None:
        kind, self._inner = series.type, RAW
        #: Makes the payload of a message given by fields, where these are no walk of it.
        self._serialized: Callable[[dict[str, Any]], bytes] | None = None
        if isinstance(kind, StructType):
            raise DefinitionError("a struct is joined from its members: write those")
        if isinstance(kind, PodType):
            self._inner = layout_of(series, kind) or RAW
        elif isinstance(kind, MessageType):
            self._take(series, kind, find)
        #: Names of what the payload holds.
        self.fields = names_of(self._inner)
        names = distinct_names(series.names, self.fields)
        self._k = len(names)
        self.layout = with_numbers(self._inner, names) if names else self._inner
        self.splitter: PayloadSplitter | None = None
        if isinstance(self.layout.root, Sequence):
            self.splitter = PayloadSplitter([*names, "sample"], self._samples, names)
        elif names or self._serialized is not None:
            self.splitter = PayloadSplitter(names, self._messages)

    def _take(self, series: Series, kind: MessageType, find: Find) -> None:
        if kind.content_type.startswith("text/") or kind.content_type == JSON:
            self._inner = TEXT
        schema = json_schema(series.annotations)
        if kind.content_type == JSON and schema is not None:
            body = JsonDecoder(schema)
            self._inner = body.layout if body.has_fields else Layout(Struct(()))
            self._serialized = written
        descriptor = find(kind.name) if kind.content_type == PROTOBUF and kind.name else None
        if descriptor is not None:
            from google.protobuf import message_factory

            from logreel.schemas.protobuf.layouts import Shape

            self._inner = Shape(descriptor).layout
            self._serialized = partial(self._filled, message_factory.GetMessageClass(descriptor))

    def _messages(self, data: Bytes1, start: I64) -> Payloads:
        """Additional indexes, and the fields of a message."""
        first, size = start[:-1], np.diff(start)
        side_columns = _numbers(data, first, self._k) if self._k else None
        first, size = first + 8 * self._k, size - 8 * self._k
        if self._serialized is None:
            return Payloads(data, first, size, side_columns)
        decode, view, encoded = self._inner.decoder(), memoryview(data.data), []
        for at, end in zip(first.tolist(), (first + size).tolist(), strict=True):
            encoded.append(self._serialized(decode(view[at:end])))
        size = np.array([len(one) for one in encoded], np.int64)
        return Payloads(
            np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(size) - size, size, side_columns
        )

    def _filled(self, make: Callable[[], Any], fields: dict[str, Any]) -> bytes:
        from google.protobuf.message import DecodeError

        from logreel.schemas.protobuf.fill import fill

        message = make()
        try:
            fill(message, fields)
        except (ValueError, TypeError, DecodeError) as error:
            raise UsageError(f"{self._inner.name}: {error}") from None
        return bytes(message.SerializePartialToString())

    def _samples(self, data: Bytes1, start: I64) -> Payloads:
        """A count, then for each sample the additional indexes, its number, and the value."""
        first, size = start[:-1], np.diff(start)
        lead, width = 8 * self._k + 4, Layout(self.layout.record, "").size or 0
        count = (size - 4) // width
        number = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        records = np.repeat(first + 4, count) + width * number
        values = joined(data, records + lead, np.full(len(records), width - lead, np.int64))
        size = count * (width - lead)
        side_columns = np.zeros((len(count), self._k), np.int64)
        side_columns[count > 0] = _numbers(data, (first + 4)[count > 0], self._k)
        return Payloads(values, np.cumsum(size) - size, size, side_columns if self._k else None)


def _numbers(data: Bytes1, at: I64, k: int) -> I64:
    """int64[n, k]: the numbers that begin at *at*."""
    raw = joined(data, at, np.full(len(at), 8 * k, np.int64))
    found: I64 = raw.view("<i8").astype(np.int64).reshape(len(at), k)
    return found
