"""Signals: ticks with packed values, whose names and types are in a SignalSchema message of another series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.formats.bddf.descriptors import POD_TYPES
from logreel.formats.bddf.payload_decoders import column_names, distinct_names
from logreel.index.gather import PayloadRange
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Field, Padding, Scalar, Skip, Struct
from logreel.log.scan import payloads
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder
from logreel.schemas.protobuf.wire import BadWire, items

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded

TICK, SCHEMA = "bosdyn.api.SignalTick", "bosdyn.api.SignalSchema"
#: Field number of the packed values in a SignalTick.
_DATA = 6


@dataclass(frozen=True, slots=True)
class Signals:
    """Variables of one SignalSchema in the order of their packed values: name, type, and whether it is a time."""

    name: str
    variables: tuple[tuple[str, str, bool], ...]

    @classmethod
    def parse(cls, data: bytes) -> Signals | None:
        """Parse a SignalSchema; return None if it is invalid, empty, or has a variable of an unknown type."""
        name = ""
        variables: list[tuple[str, str, bool]] = []
        try:
            for item in items(data):
                if item.number == 2:
                    name = item.text
                elif item.number == 1:
                    variable, scalar, is_time = f"signal_{len(variables)}", 0, False
                    for part in items(item.bytes):
                        if part.number == 1:
                            variable = part.text
                        elif part.number == 2:
                            scalar = part.integer
                        elif part.number == 3:
                            is_time = bool(part.integer)
                    if not 0 < scalar < len(POD_TYPES):
                        return None
                    variables.append((variable, POD_TYPES[scalar], is_time))
        except BadWire:
            return None
        names = distinct_names(variable for variable, _, _ in variables)
        renamed = tuple(
            (name, scalar, is_time) for name, (_, scalar, is_time) in zip(names, variables, strict=True)
        )
        return cls(name or "signals", renamed) if variables else None

    @property
    def size(self) -> int:
        """Bytes of the packed values of one tick."""
        return sum(SCALARS[scalar][1] for _, scalar, _ in self.variables)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the packed values of one tick."""
        return np.dtype([(name, SCALARS[scalar][0]) for name, scalar, _ in self.variables])

    @property
    def node(self) -> Struct:
        """Layout node of the values, one member per variable; times are in ns."""
        return Struct(
            tuple(
                Field(name, Scalar(scalar), "ns" if is_time else "")
                for name, scalar, is_time in self.variables
            )
        )


def distinct_sizes(signals: Iterable[Signals | None]) -> list[Signals]:
    """Return the schemas whose size no other schema has: the size is all that links a tick to its schema."""
    known = list(dict.fromkeys(s for s in signals if s is not None))
    sizes = [s.size for s in known]
    return [s for s in known if sizes.count(s.size) == 1]


class SignalDecoder:
    """Decodes ticks with a struct of values for each schema of the file; null for ticks of another schema."""

    def __init__(self, base: ProtobufDecoder | WireDecoder, schemas: Sequence[Signals]) -> None:
        self._base = base
        names = distinct_names((schema.name for schema in schemas), column_names(base.layout))
        self._schemas = dict(zip(names, schemas, strict=True))
        fields = [Field(name, schema.node) for name, schema in self._schemas.items()]
        self.layout = Layout(Struct((*base.layout.record.fields, *fields)), base.layout.name)

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        k = len(self._base.layout.record.fields)
        fields = layout.record.fields
        got = self._base.decode_batch(index, Layout(Struct(fields[:k]), layout.name), piece, rows)
        wanted = [
            (f, schema)
            for f, schema in zip(fields[k:], self._schemas.values(), strict=True)
            if not isinstance(f.node, Padding | Skip)
        ]
        if not wanted:
            return got
        values = list(map(_values, payloads(piece)))
        if got.kept is not None:
            values = [values[i] for i in got.kept.tolist()]
        return replace(got, arrays=[*got.arrays, *(_column(f, schema, values) for f, schema in wanted)])

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        message = self._base.decode_message(index, data, row)
        values = _values(bytes(data))
        for name, schema in self._schemas.items():
            if len(values) == schema.size:
                row_values = np.frombuffer(values, schema.dtype)[0].tolist()
                message[name] = dict(zip((v for v, _, _ in schema.variables), row_values, strict=True))
        return message


def _values(data: bytes) -> bytes:
    try:
        return next((item.bytes for item in items(data) if item.number == _DATA), b"")
    except BadWire:
        return b""


def _column(field: Field, schema: Signals, values: list[bytes]) -> Any:
    import pyarrow as pa

    from logreel.layout.arrow_from_buffers import arrow_field

    fits = [len(value) == schema.size for value in values]
    table = np.frombuffer(b"".join(v for v, fit in zip(values, fits, strict=True) if fit), schema.dtype)
    arrow_type = arrow_field(field).type
    at = np.cumsum(fits) - 1
    take = pa.array(np.maximum(at, 0), mask=~np.array(fits, bool))
    parts = [pa.array(np.ascontiguousarray(table[f.name])) for f in arrow_type]
    structs = pa.StructArray.from_arrays(parts, fields=list(arrow_type))
    return structs.take(take) if len(structs) else pa.nulls(len(values), arrow_type)
