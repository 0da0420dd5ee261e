"""Decoders of packets: most packets of most kinds have no records and are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import replace
from logreel.formats.carla.clock import FRAME, Frames
from logreel.index.gather import PayloadRange, payload_ranges
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_list, as_struct
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Node, Sequence, Struct, measure
from logreel.log.side_columns import LayoutDecoder, SideColumnsDecoder

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.layout.arrow import Decoded


class PacketDecoder(SideColumnsDecoder):
    """Decodes packets with the number of their frame as a column."""

    def __init__(self, frames: Frames, channel: int, body: PacketFieldsDecoder) -> None:
        super().__init__([FRAME.name], lambda _, rows: frames.numbers(channel, rows), body)
        self._frames = frames

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """See WholeChannelDecoder; packets without records are skipped."""
        if not explode or not isinstance(layout.root, Sequence):
            return None
        (payloads,) = payload_ranges(index, channel, slice(None))
        full = np.flatnonzero(payloads.size > layout.root.width)
        got = self.decode_batch(
            index, layout, PayloadRange(payloads.data, payloads.offset[full], payloads.size[full]), full
        )
        if got.bad or len(got.leftover):
            return None
        return got, self._frames.times(channel, full)


class PacketFieldsDecoder(LayoutDecoder):
    """Decodes packets; for records of fixed size the number of records follows from the size of the packet."""

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.layout.arrow import decode_variable

        root = layout.root
        width = measure(root.item).size if isinstance(root, Sequence) else None
        if not isinstance(root, Sequence) or width is None:
            return super().decode_batch(index, layout, piece, rows)
        full = np.flatnonzero(piece.size > root.width)
        start, size = piece.offset[full], piece.size[full]
        records = np.zeros(len(piece.size), np.int64)
        records[full], rest = np.divmod(size - root.width, width)
        if rest.any():
            return super().decode_batch(index, layout, piece, rows)
        got = decode_variable(layout, piece.data, start, start + size, records=records[full])
        return replace(got, records=records)


Divisors = tuple[float, float, float]

#: Divisors of the members of a vector, by the name of its field.
_VECTORS: dict[str, Divisors] = {
    "location": (100.0, -100.0, 100.0),
    "position": (100.0, -100.0, 100.0),
    "origin": (100.0, -100.0, 100.0),
    "extent": (100.0, 100.0, 100.0),
    "rotation": (1.0, -1.0, -1.0),
    "linear": (1.0, -1.0, 1.0),
    "angular": (-1.0, 1.0, -1.0),
    "center_of_mass": (1.0, -1.0, 1.0),
}
#: Scalar fields that are lengths in cm or speeds in cm/s.
_LENGTHS = ("radius", "speed")
_UNITS = {"cm": "m", "cm/s": "m/s"}


def with_ros_units(layout: Layout) -> Layout:
    """Return *layout* with the units that its fields have after the conversion."""
    record = Struct(tuple(map(_field, layout.record.fields)))
    root = Sequence(record, layout.root.width) if isinstance(layout.root, Sequence) else record
    return Layout(root, layout.name)


def _field(f: Field) -> Field:
    return Field(f.name, _node(f.node), _UNITS.get(f.unit, f.unit))


def _node(node: Node) -> Node:
    if isinstance(node, Struct):
        return Struct(tuple(map(_field, node.fields)))
    return Sequence(_node(node.item), node.width) if isinstance(node, Sequence) else node


def _divisors(f: Field) -> dict[str, float]:
    """Return the divisor of each member of a spatial vector; empty for other fields."""
    if isinstance(f.node, Struct) and f.name in _VECTORS:
        names = "roll pitch yaw" if f.name == "rotation" else "x y z"
        return dict(zip(names.split(), _VECTORS[f.name], strict=True))
    return {}


class RosAxesDecoder(PacketFieldsDecoder):
    """Decodes payloads of a Layout and converts them to metres and right-handed axes."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.layout = None
        self._record = layout.record
        self._many = isinstance(layout.root, Sequence)

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.dataclass import replace

        got = super().decode_batch(index, layout, piece, rows)
        members = zip(layout.record.visible(), got.arrays, strict=True)
        return replace(got, arrays=[_chunks(f, array) for f, array in members])

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        values = super().decode_message(index, data, row)
        if self._many:
            return {"records": [_values(self._record, record) for record in values["records"]]}
        return _values(self._record, values)


def _values(struct: Struct, values: dict[str, Any]) -> dict[str, Any]:
    return {f.name: _value(f, values[f.name]) for f in struct.visible()}


def _value(f: Field, value: Any) -> Any:
    if by := _divisors(f):
        return {name: _divided(value[name], by[name]) for name in value}
    if isinstance(f.node, Struct):
        return _values(f.node, value)
    if isinstance(f.node, Sequence) and isinstance(f.node.item, Struct):
        return [_values(f.node.item, member) for member in value]
    return value / 100.0 if f.name in _LENGTHS else value


def _divided(value: float, by: float) -> float:
    # Subtracting from zero avoids negative zeros.
    return value / by if by > 0 else 0.0 - value / -by


def _chunks(f: Field, array: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([_array(f, chunk) for chunk in array.chunks])
    return _array(f, array)


def _array(f: Field, array: pa.Array[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    from logreel.layout.arrow_from_buffers import arrow_field

    if isinstance(f.node, Struct):
        by = _divisors(f)
        children = []
        for member in f.node.visible():
            child = as_struct(array).field(member.name)
            if member.name in by:
                children.append(_quotient(child, by[member.name]))
            else:
                children.append(_array(member, child))
        fields = [arrow_field(_field(member)) for member in f.node.visible()]
        return pa.StructArray.from_arrays(children, fields=fields)
    if isinstance(f.node, Sequence) and isinstance(f.node.item, Struct):
        items = _array(Field("item", f.node.item), as_list(array).values)
        return pa.ListArray.from_arrays(as_list(array).offsets, items)
    return _quotient(array, 100.0) if f.name in _LENGTHS else array


def _quotient(array: pa.Array[Any], by: float) -> pa.Array[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    quotient = pc.divide(array, pa.scalar(abs(by), array.type)) if abs(by) != 1 else array
    return quotient if by > 0 else pc.subtract(pa.scalar(0.0, array.type), quotient)
