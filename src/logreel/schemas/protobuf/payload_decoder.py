"""Decoding of protobuf payloads to columns and plain values."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DamagedError, Problem
from logreel.index.gather import PayloadRange
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, Scalar, Sequence, String, Struct
from logreel.log.scan import decoded, payloads
from logreel.schemas.protobuf.wire import BYTES, FIXED32, FIXED64, VARINT, BadWire, Item, items

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded
    from logreel.schemas.protobuf.layouts import ProtoColumns

_ITEM = Struct(
    (
        Field("number", Scalar("uint32")),
        Field("wire", String()),
        Field("value", Scalar("uint64")),
        Field("data", Bytes()),
    )
)
#: Layout of messages without a descriptor: their fields by number.
WIRE = Layout(Struct((Field("fields", Sequence(_ITEM)),)), "wire")
_NAMES = {VARINT: "varint", FIXED64: "fixed64", BYTES: "bytes", FIXED32: "fixed32"}


class ProtobufDecoder:
    """Decodes messages of a type with a descriptor; see ``types.Types``."""

    def __init__(self, descriptor: Any) -> None:
        from logreel.schemas.protobuf.layouts import ProtoLayout
        from logreel.schemas.protobuf.types import message_class

        self._class, self._descriptor = message_class(descriptor), descriptor
        shape = ProtoLayout(descriptor)
        self.layout, self._values, self._values_of = shape.layout, shape.values, shape.values_of

    @cached_property
    def _reader(self) -> ProtoColumns | None:
        """What reads columns without the library; None for types that only the library reads."""
        from logreel.schemas.protobuf.layouts import LibraryOnly, ProtoColumns

        try:
            return ProtoColumns(self._descriptor, self.layout)
        except LibraryOnly:
            return None

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode a batch of payloads; payloads that are no such message are skipped (see PayloadDecoder)."""
        if self._reader is not None and (columns := self._columns(self._reader, layout, piece)) is not None:
            return columns
        return self._decode_by_library(layout, piece)

    def _columns(self, reader: ProtoColumns, layout: Layout, batch: PayloadRange) -> Decoded | None:
        """Return a batch as the kernel reads it; None if it cannot read a message that the library can."""
        from logreel.layout.arrow import Decoded

        columns, bad, kept = reader.read(layout, batch), [], None
        if isinstance(columns, np.ndarray):
            irregular = PayloadRange(batch.data, batch.offset[columns], batch.size[columns])
            refused = self._decode_by_library(layout, irregular)
            if len(refused.bad) < int(columns.sum()):
                return None
            at, kept = np.flatnonzero(columns), np.flatnonzero(~columns)
            bad = [(int(at[i]), reason) for i, reason in refused.bad]
            columns = reader.read(layout, batch, ~columns)
        return None if columns is None else Decoded(columns, kept, bad, np.zeros(0, np.int64), None)

    def _decode_by_library(self, layout: Layout, batch: PayloadRange) -> Decoded:
        from google.protobuf.message import DecodeError

        rows_of_values: list[dict[str, Any]] = []
        bad: list[tuple[int, str]] = []
        values = self._values_of({member.name for member in layout.record.visible()})
        for i, data in enumerate(payloads(batch)):
            try:
                rows_of_values.append(values(self._class.FromString(data)))
            except (DecodeError, UnicodeDecodeError) as error:
                bad.append((i, f"no such message: {error}"))
        return decoded(layout, rows_of_values, bad, len(batch.size))

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one payload; raise DamagedError if it is no such message."""
        return self._values(self.parse(data))

    def parse(self, data: bytes | memoryview) -> Any:
        """Return one payload as a protobuf message; raise DamagedError if it is none."""
        from google.protobuf.message import DecodeError

        try:
            return self._class.FromString(bytes(data))
        except (DecodeError, UnicodeDecodeError) as error:
            raise DamagedError(Problem("payload", 0, len(data), True, f"no such message: {error}")) from None


class WireDecoder:
    """Decodes messages without a descriptor to their fields by number; other bytes become one field ``raw``."""

    layout = WIRE

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode a batch of payloads (see PayloadDecoder)."""
        return decoded(layout, [self._row(data) for data in payloads(piece)], [], len(rows))

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one payload."""
        return self._row(bytes(data))

    def _row(self, data: bytes) -> dict[str, Any]:
        wire_items: list[Item] = []
        try:
            wire_items.extend(items(data))
        except BadWire:
            # Bytes that are no message are shown whole.
            return {"fields": [{"number": 0, "wire": "raw", "value": None, "data": data}]}
        shown = [
            {
                "number": item.number,
                "wire": _NAMES[item.wire],
                "value": item.value if isinstance(item.value, int) else None,
                "data": item.value if isinstance(item.value, bytes) else None,
            }
            for item in wire_items
        ]
        return {"fields": shown}
