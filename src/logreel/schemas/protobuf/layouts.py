"""Layouts of message types, and by them: messages as plain values, as columns, and, with ``fill``, messages of values.

Columns are read by kernels/protobuf_read.py, without a Python object for each message. Types with maps, groups,
extensions, enums of proto2, and messages that are shown as bytes are left to the protobuf library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import replace
from logreel.errors import DefinitionError
from logreel.index.gather import PayloadRange
from logreel.io.arrays import I64
from logreel.kernels import protobuf_read as kernel
from logreel.layout import numpy_columns
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_SIZE,
    SCALARS,
    Bytes,
    Field,
    Node,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
)
from logreel.layout.numpy_columns import Column
from logreel.layout.program import bytes_changed

Convert = Callable[[Any], Any]

#: Scalar types by FieldDescriptor type number.
_SCALARS = {
    1: "float64",
    2: "float32",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "uint64",
    7: "uint32",
    8: "bool",
    13: "uint32",
    15: "int32",
    16: "int64",
    17: "int32",
    18: "int64",
}
GROUP, STRING, BYTES, MESSAGE, ENUM = 10, 9, 12, 11, 14
_LIMIT = 1 << 63


class ProtoLayout:
    """Layout of a message type, and ``values``, which converts a message to a dict in the order of the fields.

    Raises DefinitionError for a type with more parts than a Layout can have, and for one that is a single value.
    """

    def __init__(self, descriptor: Any) -> None:
        self._parts = 0
        self._converts = list[tuple[str, Convert]]()
        # A message without fields says that something happened.
        node, convert = self._message(descriptor, ()) if descriptor.fields else (Struct(()), lambda _: {})
        if not isinstance(node, Struct):
            raise DefinitionError(f"{descriptor.full_name} is a value, not a message of its own")
        self.layout = Layout(node, descriptor.full_name)
        self.values: Callable[[Any], dict[str, Any]] = convert

    def values_of(self, names: Container[str]) -> Callable[[Any], dict[str, Any]]:
        """Return what ``values`` does, for the fields *names* of the message only."""
        converts = [(name, convert) for name, convert in self._converts if name in names]
        return lambda message: {name: convert(message) for name, convert in converts}

    def _message(self, descriptor: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        name = descriptor.full_name
        if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            return Time(signed=name.endswith("Duration")), _nanoseconds
        # Recursive types and types without fields cannot be columns: they are shown as bytes.
        if name in above or len(above) > MAX_DEPTH // 2 or not descriptor.fields:
            return Bytes(), _serialized
        fields, converts = [], []
        for one in descriptor.fields:
            self._parts += 1
            if self._parts > MAX_LEAVES // 4:
                raise DefinitionError(f"{name} has too many fields")
            node, convert = self._field(one, (*above, name))
            fields.append(Field(one.name, node))
            converts.append((one.name, convert))
        # The outermost message is finished last.
        self._converts = converts
        return Struct(tuple(fields)), lambda message: {n: convert(message) for n, convert in converts}

    def _field(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        name = field.name
        if is_map(field):
            return self._map(field, above)
        node, convert = self._value(field, above)
        if is_repeated(field):
            return Sequence(node), lambda message: [convert(v) for v in getattr(message, name)]
        if field.has_presence:
            return node, lambda m: convert(getattr(m, name)) if m.HasField(name) else None
        return node, lambda message: convert(getattr(message, name))

    def _map(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        key_node, key = self._value(field.message_type.fields_by_name["key"], above)
        value_node, value = self._value(field.message_type.fields_by_name["value"], above)
        name = field.name
        node = Sequence(Struct((Field("key", key_node), Field("value", value_node))))
        return node, lambda m: [{"key": key(k), "value": value(v)} for k, v in getattr(m, name).items()]

    def _value(self, field: Any, above: tuple[str, ...]) -> tuple[Node, Convert]:
        kind = field.type
        if kind in (MESSAGE, GROUP):
            return self._message(field.message_type, above)
        if kind == ENUM:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return String(), lambda value: names.get(value, str(value))
        if kind == STRING:
            return String(), str
        if kind == BYTES:
            return Bytes(), bytes
        return Scalar(_SCALARS[kind]), lambda value: value


def is_repeated(field: Any) -> bool:
    """Return whether a field is repeated."""
    # Newer releases of the library replace label by is_repeated.
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == 3 if repeated is None else repeated)


def is_map(field: Any) -> bool:
    """Return whether a field is a map."""
    return bool(field.type == MESSAGE and field.message_type.GetOptions().map_entry)


def _nanoseconds(message: Any) -> int:
    return int(min(max(message.seconds * 10**9 + message.nanos, -_LIMIT), _LIMIT - 1))


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializePartialToString())


#: Numbers by FieldDescriptor type number that are not varints, and varints whose lowest bit is the sign.
_FIXED, _ZIGZAG = {1, 2, 6, 7, 15, 16}, {17, 18}
_MESSAGES = 0
_NONE = -1

#: Makes the Column of a node from the arrays of all columns and the counters.
Make = Callable[[Node, list[NDArray[Any]], I64], Column]


class LibraryOnly(Exception):
    """Raised for a type whose messages only the library reads."""


class ProtoColumns:
    """Reads messages of one type into Columns; raises LibraryOnly for a type that only the library reads."""

    def __init__(self, descriptor: Any, layout: Layout) -> None:
        self._bodies: list[list[int]] = []
        self._fields: list[list[int]] = []
        #: For each counter of values, the pairs of a column of offsets and a counter; of bytes: none.
        self._ends: list[list[tuple[int, int]]] = [[]]
        #: Of each column: dtype, its counter, whether it has offsets (one more than values), its member of the message.
        self._columns: list[tuple[str, int, bool, str]] = []
        self._marks = 0
        self._member = ""
        _, self._makes = self._body(descriptor, layout.record, _MESSAGES)
        firsts = itertools.accumulate(map(len, self._ends), initial=0)
        self._tables = (
            _table(self._bodies, 3),
            _table(self._fields, 10),
            _table([[first, len(ends)] for first, ends in zip(firsts, self._ends, strict=False)], 2),
            _table([[*pair] for ends in self._ends for pair in ends], 2),
        )

    def read(self, layout: Layout, batch: PayloadRange, rows: NDArray[np.bool_] | None = None) -> Any:
        """Return a Column for each visible member of *layout*; an array of the messages that are irregular, if any are.

        rows  bool[n]: the messages to read; None: all

        None where one array cannot hold a column. Raises FileChangedError where another process changed the bytes.
        """
        source = np.asarray(batch.data, np.uint8)
        start, size = (batch.offset, batch.size) if rows is None else (batch.offset[rows], batch.size[rows])
        start, size = np.ascontiguousarray(start, np.int64), np.ascontiguousarray(size, np.int64)
        counts, marks = np.zeros(len(self._ends), np.int64), np.zeros(self._marks + 1, np.int64)
        irregular = np.zeros(len(start), np.uint8)
        if kernel.count(source, start, size, *self._tables, counts, marks, irregular):
            return irregular.astype(bool)
        if counts.max() > MAX_SIZE:
            return None
        wanted = {member.name: member.node for member in layout.record.visible()}
        columns = [
            np.zeros(int(counts[counter]) + has_offsets if member in wanted else 0, dtype)
            for dtype, counter, has_offsets, member in self._columns
        ]
        filled = np.zeros_like(counts)
        if not kernel.fill(source, start, size, *self._tables_of(wanted), filled, marks, columns) or (
            (filled != counts).any()
        ):
            raise bytes_changed()
        return [self._makes[name](node, columns, counts) for name, node in wanted.items()]

    def _tables_of(self, wanted: Collection[str]) -> tuple[I64, I64, I64, I64]:
        """Return the tables without the columns of members that are not wanted."""
        hidden = np.array([*(member not in wanted for *_, member in self._columns), False])
        if not hidden.any():
            return self._tables
        bodies, fields, scopes, ends = self._tables
        fields, ends = fields.copy(), ends.copy()
        for table, place in ((fields, 3), (fields, 4), (ends, 0)):
            table[hidden[table[:, place]], place] = _NONE
        return bodies, fields, scopes, ends

    # -- tables

    def _column(self, dtype: str, counter: int, has_offsets: bool = False) -> int:
        self._columns.append((dtype, counter, has_offsets, self._member))
        return len(self._columns) - 1

    def _counter(self) -> int:
        self._ends.append([])
        return len(self._ends) - 1

    def _mark(self) -> int:
        self._marks += 1
        return self._marks - 1

    def _body(self, descriptor: Any, struct: Struct, scope: int) -> tuple[int, dict[str, Make]]:
        """Add the type at a place in the tree; return its row, and what makes the Columns of its members."""
        # Messages may have fields of others, which the library reads, too.
        if descriptor.is_extendable:
            raise LibraryOnly
        number = len(self._bodies)
        self._bodies.append([])
        oneofs = {oneof.full_name: self._mark() for oneof in descriptor.oneofs}
        makes, rows = dict[str, Make](), []
        for field, member in zip(descriptor.fields, struct.fields, strict=True):
            if not number:
                self._member = field.name
            row, makes[field.name] = self._field(field, member.node, scope)
            row[9] = oneofs[field.containing_oneof.full_name] if field.containing_oneof else _NONE
            rows.append(row)
        self._bodies[number] = [len(self._fields), len(rows), scope]
        self._fields += sorted(rows)
        return number, makes

    def _field(self, field: Any, node: Node, scope: int) -> tuple[list[int], Make]:
        if is_map(field):
            raise LibraryOnly
        if not is_repeated(field):
            return self._value(field, node, scope, _NONE)
        if not isinstance(node, Sequence):
            raise LibraryOnly
        items = self._counter()
        offsets = self._column("<i4", scope, has_offsets=True)
        self._ends[scope].append((offsets, items))
        row, make = self._value(field, node.item, items, items)

        def make_list(node: Any, columns: list[NDArray[Any]], counts: I64) -> Column:
            item = make(node.item, columns, counts)
            return Column(numpy_columns.LIST, int(counts[scope]), offsets=columns[offsets], children=(item,))

        return row, make_list

    def _value(self, field: Any, node: Node, scope: int, items: int) -> tuple[list[int], Make]:
        """Return the row of a field of values that *scope* counts, and what makes their Column."""
        valid = self._column("?", scope) if items < 0 and field.has_presence else _NONE
        row = [field.number, 0, 0, _NONE, valid, 0, 0, items, self._mark(), _NONE]
        match node:
            case Struct():
                make = self._message(field, node, scope, row)
            case Time(signed=signed):
                data = self._column("<i8", scope)
                row[1:4] = [kernel.TIME, 8, data]
                make = _values(numpy_columns.DURATION if signed else numpy_columns.TIME, data)
            case Scalar(type=number_type):
                data = self._column(SCALARS[number_type][0], scope)
                width = -SCALARS[number_type][1] if field.type in _ZIGZAG else SCALARS[number_type][1]
                row[1:4] = [kernel.FIXED if field.type in _FIXED else kernel.VARINT, width, data]
                make = _values(number_type, data)
            case _ if field.type == ENUM:
                make = self._enum(field, scope, row)
            case _ if field.type in (STRING, BYTES):
                make = self._span(field.type == STRING, scope, row)
            case _:
                # A group, or a message that is shown as bytes.
                raise LibraryOnly
        if valid < 0:
            return row, make
        return row, lambda node, columns, counts: _present(make(node, columns, counts), columns[valid])

    def _message(self, field: Any, node: Struct, scope: int, row: list[int]) -> Make:
        if field.type != MESSAGE:
            raise LibraryOnly
        row[1] = kernel.MESSAGE
        row[5], makes = self._body(field.message_type, node, scope)

        def make(node: Any, columns: list[NDArray[Any]], counts: I64) -> Column:
            members = [*node.visible()]
            children = tuple(makes[member.name](member.node, columns, counts) for member in members)
            names, units = tuple(member.name for member in members), tuple(member.unit for member in members)
            return Column(
                numpy_columns.STRUCT, int(counts[scope]), children=children, names=names, units=units
            )

        return make

    def _enum(self, field: Any, scope: int, row: list[int]) -> Make:
        # What a closed one does not know is an unknown field.
        if getattr(field.enum_type, "is_closed", True):
            raise LibraryOnly
        data = self._column("<i4", scope)
        row[1:4] = [kernel.VARINT, 4, data]
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}

        def make(node: Any, columns: list[NDArray[Any]], counts: I64) -> Column:
            numbers, places = np.unique(columns[data], return_inverse=True)
            texts = [names.get(number, str(number)).encode() for number in numbers.tolist()]
            ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
            characters = np.frombuffer(b"".join(texts), np.uint8)
            return Column(numpy_columns.TEXT, len(texts), characters, ends).take(places.astype(np.int64))

        return make

    def _span(self, is_text: bool, scope: int, row: list[int]) -> Make:
        size = self._counter()
        offsets, data = self._column("<i4", scope, has_offsets=True), self._column("u1", size)
        self._ends[scope].append((offsets, size))
        row[1:4], row[6] = [kernel.SPAN, int(is_text), data], size
        type_name = numpy_columns.TEXT if is_text else numpy_columns.BYTES
        return lambda node, columns, counts: Column(
            type_name, int(counts[scope]), columns[data], columns[offsets]
        )


def _table(rows: list[list[int]], width: int) -> I64:
    """Return a table for the kernel, with a row that is not used, so that none is empty."""
    return np.array([*rows, [_NONE] * width], np.int64)


def _values(type_name: str, data: int) -> Make:
    return lambda node, columns, counts: Column(type_name, len(columns[data]), columns[data])


def _present(column: Column, valid: NDArray[np.bool_]) -> Column:
    return column if valid.all() else replace(column, valid=valid)


def fill(message: Any, values: Mapping[str, Any]) -> None:
    """Set the fields of *message*; zeros, empty values and missing ones are not set.

    Raises ValueError for a value that does not fit its field.
    """
    for field in message.DESCRIPTOR.fields:
        value: Any = values.get(field.name)
        if _empty(value):
            continue
        if is_map(field):
            _fill_map(getattr(message, field.name), field.message_type.fields_by_name["value"], value)
        elif field.type in (MESSAGE, GROUP):
            inner = getattr(message, field.name)
            if not is_repeated(field):
                _fill_message(inner, value)
            else:
                for one in value:
                    _fill_message(inner.add(), one)
        elif is_repeated(field):
            getattr(message, field.name).extend([_plain(field, one) for one in value])
        else:
            setattr(message, field.name, _plain(field, value))


def _empty(value: Any) -> bool:
    return not (any(not _empty(one) for one in value.values()) if isinstance(value, Mapping) else value)


def _fill_map(target: Any, field: Any, items: list[Mapping[str, Any]]) -> None:
    for item in items:
        if field.type == MESSAGE:
            _fill_message(target[item["key"]], item["value"])
        else:
            target[item["key"]] = _plain(field, item["value"])


def _fill_message(message: Any, value: Any) -> None:
    if isinstance(value, bytes):
        message.MergeFromString(value)
    elif isinstance(value, int):
        message.seconds, message.nanos = divmod(value, 10**9)
        if message.seconds < 0 < message.nanos and message.DESCRIPTOR.name == "Duration":
            # In a Duration, both numbers have the same sign.
            message.seconds, message.nanos = message.seconds + 1, message.nanos - 10**9
    else:
        fill(message, value)


def _plain(field: Any, value: Any) -> Any:
    if field.type != ENUM:
        return value
    known = field.enum_type.values_by_name.get(value)
    if known is None and not value.lstrip("-").isdecimal():
        raise ValueError(
            f"{field.name}: {value!r:.60} is none of {', '.join(field.enum_type.values_by_name)}"
        )
    return int(value) if known is None else known.number
