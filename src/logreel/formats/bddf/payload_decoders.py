"""Decoders of message series, of the additional indexes, which are stored outside the payload, and of signals.

Signals are ticks with packed values, whose names and types are in a SignalSchema message of another series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, Problem
from logreel.formats.bddf.records import POD_TYPES, PROTOBUF, MessageSeriesType
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import PayloadRange, places
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Source
from logreel.kernels import bddf
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Field, Scalar, Struct
from logreel.log.scan import Noted, PayloadDecoder, payloads
from logreel.log.side_columns import SideColumnsDecoder, with_members
from logreel.schemas.jsonschema import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder
from logreel.schemas.protobuf.wire import BadWire, items

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded
    from logreel.layout.numpy_columns import Column
    from logreel.schemas.protobuf.types import Types

#: Characters with a meaning in paths of fields.
_PATH_SEPARATORS = re.compile(r"[.\[\]]")


def with_additional_indexes(layout: Layout, names: Sequence[str]) -> Layout:
    """Return *layout* with the additional indexes as int64 members before its own members."""
    return with_members(layout, [Field(name, Scalar("int64")) for name in names])


def distinct_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return *names* as valid member names: not empty, all different, not in *taken*, without ``.``, ``[``, ``]``."""
    used = set(taken)
    distinct = []
    for i, name in enumerate(names):
        name = label = _PATH_SEPARATORS.sub("_", name) or f"index_{i}"
        n = 1
        while label in used:
            n += 1
            label = f"{name}_{n}"
        used.add(label)
        distinct.append(label)
    return distinct


def column_names(layout: Layout) -> set[str]:
    """Return the names of the columns of a table of *layout*."""
    return {f.name for f in layout.record.visible()} | {"time"}


class AdditionalIndexDecoder(SideColumnsDecoder):
    """Decodes additional indexes as columns, followed by the columns that *body* decodes from the payload."""

    def __init__(self, channel: int, names: Sequence[str], body: PayloadDecoder) -> None:
        super().__init__(names, partial(_additional_indexes, channel=channel, count=len(names)), body)
        self.logged = tuple(names)


def _additional_indexes(
    index: MessageIndex, rows: I64, *, channel: int, count: int
) -> list[np.ndarray[Any, Any]]:
    """Return each of the *count* additional indexes of some messages of a channel: int64[n]."""
    out = np.zeros((len(rows), count), np.int64)
    if len(rows):
        data, start = index.chunks[FILE], _starts(index, channel, rows)
        bddf.gather_numbers(data, start, out)
    return list(out.T)


def _starts(index: MessageIndex, channel: int, rows: I64) -> I64:
    """Return int64[n]: the starts of the blocks of some messages; -1 for blocks that are not what the index says."""
    if not index.reads_in_ranges:
        return index.starts(channel)[rows]
    # Resolves these blocks only.
    _, _, size = places(index, channel, rows)
    _, start, _ = index.locate(channel, rows)
    start[size == MISSING_SIZE] = -1
    return start


class MessageDecoders:
    """Decoders of the protobuf and JSON series of one log; unusable definitions are recorded as a Problem, once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._noted = Noted()
        self._protobuf: dict[tuple[str, bytes], ProtobufDecoder | WireDecoder] = {}

    @cached_property
    def _types(self) -> Types:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(self._source.definitions)
        except DefinitionError as error:
            self._add_problem(error.text)
            return Types()

    def descriptors(self, series_type: MessageSeriesType, own: bytes) -> bytes:
        """Return the FileDescriptorSet of a type: *own*, of its series, else that the user passed, or b""."""
        if series_type.content_type != PROTOBUF:
            return b""
        if own or not self._source.definitions:
            return own
        return self._types.set_of(series_type.name)

    def _add_problem(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        self._noted.add(self._problems, problem)

    def protobuf(
        self, topic: str, series_type: MessageSeriesType, own: bytes = b""
    ) -> ProtobufDecoder | WireDecoder:
        """Return the decoder of a protobuf series: fields by name if the type is described, else by number.

        own  a FileDescriptorSet that the series contains; empty: none
        """
        key = series_type.name, own
        if key not in self._protobuf:
            self._protobuf[key] = self._protobuf_decoder(topic, series_type.name, own)
        return self._protobuf[key]

    def json(self, topic: str, schema: str) -> JsonDecoder | None:
        """Return the decoder of a series of JSON by its JSON Schema, or None if the schema has no fields."""
        try:
            decoder = JsonDecoder(schema)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}; its messages are shown as text")
            return None
        return decoder if decoder.has_fields else None

    def _own_descriptor(self, topic: str, name: str, own: bytes) -> Any:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(own=own).find(name)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}")
            return None

    def _protobuf_decoder(self, topic: str, name: str, own: bytes) -> ProtobufDecoder | WireDecoder:
        descriptor = self._own_descriptor(topic, name, own) if own else None
        if descriptor is None and name:
            descriptor = self._types.find(name)
        if descriptor is None:
            said = f"{topic}: nothing describes {name or 'its messages'}"
            self._add_problem(
                f"{said}; its fields are shown by number (a file with descriptors can be given when the log is opened)"
            )
            return WireDecoder()
        try:
            return ProtobufDecoder(descriptor)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}; its fields are shown by number")
            return WireDecoder()


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
            (f.node, schema)
            for f, schema in zip(fields[k:], self._schemas.values(), strict=True)
            if isinstance(f.node, Struct)
        ]
        if not wanted:
            return got
        values = list(map(_values, payloads(piece)))
        if got.kept is not None:
            values = [values[i] for i in got.kept.tolist()]
        return replace(got, arrays=[*got.arrays, *(_column(node, schema, values) for node, schema in wanted)])

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


def _column(node: Struct, schema: Signals, values: list[bytes]) -> Column:
    from logreel.layout.numpy_columns import Column, struct, type_of

    fits = np.array([len(value) == schema.size for value in values], bool)
    table = np.frombuffer(b"".join(v for v, fit in zip(values, fits, strict=True) if fit), schema.dtype)
    members = [
        (f, Column(type_of(f.node), len(table), np.ascontiguousarray(table[f.name]))) for f in node.visible()
    ]
    return struct(members, len(table)).take(np.cumsum(fits) - 1, ~fits)
