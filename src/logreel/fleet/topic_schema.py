"""Columns of a topic that hold the messages of many logs, whatever version of its type each of them has."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from logreel.errors import LogError
from logreel.fleet.source_files import LogPart, open_part
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import buffer_of, empty_table, fixed_list_type, item_type
from logreel.layout.projection import Projection
from logreel.log.columns import EMPTY_NODES, RowOptions, time_label
from logreel.log.log import Channel, Log
from logreel.log.tables import TableReader, as_numpy, flattened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.layout.layout import Layout

#: Columns of every table, before the fields: UTC or null, ns of the log's clock, path of the log.
TIME, TIME_NS, LOG = "time", "time_ns", "log"
HEAD = (
    pa.field(TIME, pa.timestamp("ns")),
    pa.field(TIME_NS, pa.int64()),
    pa.field(LOG, pa.string()),
)
_HEAD_NAMES = frozenset({TIME, TIME_NS, LOG})
#: Names of columns that no field gets, in lower case: those above, and those of partitions.
RESERVED = _HEAD_NAMES | {"topic", "date"}
_FIELD, _NOTE = b"field", b"note"
_NS, _US = pa.timestamp("ns"), pa.timestamp("us")
#: Types of timestamps by their unit.
TIMESTAMPS: dict[str, pa.DataType] = {"ns": _NS, "us": _US}
#: Bits that an integer has besides its sign, and integers that a float holds exactly.
_EXACT = {16: 11, 32: 24, 64: 53}


def utc_times(ns: I64, shift: int | None, stamp: pa.DataType = HEAD[0].type) -> pa.Array[Any]:
    """Return times of the clock of a log as the column ``time``: UTC; nulls where *shift*, the ns to it, is None.

    stamp  type of the column, one of TIMESTAMPS; µs are rounded down
    """
    import numpy as np

    if shift is None:
        return cast("pa.Array[Any]", pa.nulls(len(ns), cast("Any", stamp)))
    least, most = TIME_MIN - min(shift, 0), TIME_MAX - max(shift, 0)
    if len(ns) and (ns.min() < least or ns.max() > most):
        # Absurd stamps are clipped instead of overflowing.
        ns = np.clip(ns, least, most)
    utc = ns + shift if stamp == _NS else (ns + shift) // 1000
    # Not pa.array of NumPy's, which imports pandas where that is installed.
    return pa.Array.from_buffers(stamp, len(utc), [None, buffer_of(utc)])


def reader_of(ch: Channel, fields: Sequence[str] | None) -> TableReader:
    """Return the reader of the fields of *ch* that are named in *fields*, or of all.

    Raises DefinitionError if the definition cannot be used.
    """
    if fields is None:
        return TableReader(ch, None, RowOptions(), keep=False)
    own = []
    for path in fields:
        with suppress(LogError):
            ch.layout.project([path])
            own.append(path)
    return TableReader(ch, own, RowOptions(), keep=False)


def own_columns(reader: TableReader, timestamps: str = "ns") -> tuple[list[int], list[pa.Field[Any]]]:
    """Return the columns of the flat table of a channel that can be stored: their places, and how they are named.

    timestamps  ``us``: a field that is a timestamp in ns has two columns, a timestamp in µs and, with ``_ns`` at the
                end of its name, the integer; inside of lists and structs it is the integer

    Names differ in more than case, and from those of HEAD and of partitions. A struct without members holds nothing.
    """
    import numpy as np

    layout, fields = reader.projection.layout, reader.projection.fields
    if layout.measure.nodes > EMPTY_NODES or reader.ch.members:
        return _stored_columns(reader.read(np.zeros(0, np.int64)), timestamps)
    return _columns_of_layout(layout, fields, timestamps)


@lru_cache(1024)
def _columns_of_layout(
    layout: Layout, fields: tuple[str, ...] | None, timestamps: str
) -> tuple[list[int], list[pa.Field[Any]]]:
    """Return ``own_columns`` of every channel with this Layout, which the logs of a fleet share."""
    columns, label = Projection(layout, fields).arrow_fields(), time_label(layout)
    named = [f.with_name(label) if f.name == TIME and label else f for f in columns]
    return _stored_columns(empty_table(pa.schema([HEAD[0], *named])), timestamps)


def _stored_columns(rows: pa.Table, timestamps: str) -> tuple[list[int], list[pa.Field[Any]]]:
    flat = flattened(rows).schema
    taken, places = set(RESERVED), list[int]()
    columns: list[pa.Field[Any]] = []
    # The first column is the time.
    for n, field in enumerate(list(flat)[1:], 1):
        if not _has_values(field.type):
            continue
        for label, column_type in _stored_as(field, timestamps):
            name, k = label, 1
            while name.casefold() in taken:
                k += 1
                name = f"{label}_{k}"
            taken.add(name.casefold())
            places.append(n)
            columns.append(pa.field(name, column_type))
    return places, columns


def _stored_as(field: pa.Field[Any], timestamps: str) -> list[tuple[str, pa.DataType]]:
    """Return names and types of the columns for a field."""
    if timestamps == "ns":
        return [(field.name, field.type)]
    if field.type == _NS:
        return [(field.name, _US), (f"{field.name}_ns", pa.int64())]
    return [(field.name, _without_ns(field.type))]


def _without_ns(type_: pa.DataType) -> pa.DataType:
    """Return *kind* with integers for the timestamps in ns inside of it."""
    if type_ == _NS:
        return pa.int64()
    if kinds.is_struct(type_):
        return pa.struct([pa.field(field.name, _without_ns(field.type)) for field in type_])
    if kinds.is_fixed_size_list(type_):
        return fixed_list_type(_without_ns(item_type(type_)), type_.list_size)
    return pa.list_(_without_ns(item_type(type_))) if kinds.is_list(type_) else type_


def stored_array(array: pa.Array[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Return a column of a log as one of ``own_columns``; µs are rounded down."""
    if array.type == type_:
        return array
    if type_ == _US:
        floor: pa.Array[Any] = pc.floor_temporal(array, unit="microsecond").cast(_US)
        return floor
    return cast_array(array, type_)


def _has_values(column_type: pa.DataType) -> bool:
    """Return whether Parquet can store *column_type*: it contains no struct without members."""
    if kinds.is_struct(column_type):
        return column_type.num_fields > 0 and all(_has_values(field.type) for field in column_type)
    if kinds.is_list(column_type) or kinds.is_fixed_size_list(column_type):
        return _has_values(item_type(column_type))
    return not kinds.is_null(column_type)


def widen(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return a type that holds all values of both exactly; None if there is none."""
    if a == b:
        return a
    if kinds.is_integer(a) and kinds.is_integer(b):
        return _wider_integer(a, b)
    if (kinds.is_integer(a) or kinds.is_floating(a)) and (kinds.is_integer(b) or kinds.is_floating(b)):
        return _wider_float(a, b)
    lists = [kinds.is_list(column_type) or kinds.is_fixed_size_list(column_type) for column_type in (a, b)]
    if all(lists):
        item = widen(item_type(a), item_type(b))
        if item is None:
            return None
        if kinds.is_fixed_size_list(a) and kinds.is_fixed_size_list(b) and a.list_size == b.list_size:
            return fixed_list_type(item, a.list_size)
        return pa.list_(item)
    if kinds.is_struct(a) and kinds.is_struct(b):
        return _wider_struct(a, b)
    return None


def _wider_integer(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    signed = [column_type for column_type in (a, b) if kinds.is_signed_integer(column_type)]
    unsigned = [column_type for column_type in (a, b) if kinds.is_unsigned_integer(column_type)]
    if not signed or not unsigned:
        return max((a, b), key=lambda column_type: column_type.bit_width)
    bits = max(signed[0].bit_width, 2 * unsigned[0].bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _wider_float(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    exact = 0
    for column_type in (a, b):
        if kinds.is_floating(column_type):
            exact = max(exact, _EXACT[column_type.bit_width])
        else:
            exact = max(exact, column_type.bit_width - (1 if kinds.is_signed_integer(column_type) else 0))
    floats = {11: pa.float16(), 24: pa.float32(), 53: pa.float64()}
    return next((column_type for bits, column_type in floats.items() if exact <= bits), None)


def _members(column_type: pa.DataType) -> list[pa.Field[Any]]:
    return [column_type.field(n) for n in range(column_type.num_fields)]


def _wider_struct(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    members: dict[str, pa.DataType] = {}
    for field in (*_members(a), *_members(b)):
        column_type = widen(members[field.name], field.type) if field.name in members else field.type
        if column_type is None:
            return None
        members[field.name] = column_type
    return pa.struct([pa.field(name, column_type) for name, column_type in members.items()])


@dataclass(frozen=True)
class TopicSchema:
    """The columns of one topic in all logs: HEAD, then the fields of all versions of its type.

    Where versions differ in a column, it has a type that holds the values of all of them; where there is none, as for
    numbers and text, each kind of value is a column, the later one with its type in the name: ``mode``,
    ``mode__string``.
    """

    topic: str
    schema: pa.Schema

    @classmethod
    def of(cls, topic: str, columns: Iterable[pa.Field[Any]], timestamps: str = "ns") -> TopicSchema:
        """Return the columns of one log, from ``own_columns`` with the same *timestamps*."""
        return cls(topic, pa.schema([HEAD[0].with_type(TIMESTAMPS[timestamps]), *HEAD[1:]])).extended(columns)

    @property
    def notes(self) -> dict[str, str]:
        """What was done to columns that differ between versions, as a sentence by column."""
        return {f.name: f.metadata[_NOTE].decode() for f in self.schema if f.metadata and _NOTE in f.metadata}

    def extended(self, columns: Iterable[pa.Field[Any]]) -> TopicSchema:
        """Return the schema that also holds *columns* of another version; the same object if it does so already."""
        fields, changed = list(self.schema), False
        taken = {field.name.casefold() for field in fields} | RESERVED
        places: dict[str, list[int]] = {}
        for n, field in enumerate(fields[len(HEAD) :], len(HEAD)):
            places.setdefault(source_of(field), []).append(n)
        for column in columns:
            same = places.setdefault(column.name, [])
            kept = None
            for n in same:
                column_type = widen(fields[n].type, column.type)
                if column_type is not None:
                    kept = n
                    narrow = fields[n].type if column_type != fields[n].type else column.type
                    # A version that comes after a wider one is noted as well, once.
                    if column_type != fields[n].type or (
                        narrow != column_type and _NOTE not in (fields[n].metadata or {})
                    ):
                        note = f"widened from {narrow} to {column_type}"
                        fields[n] = _field(fields[n].name, column_type, column.name, note)
                        changed = True
                    break
            if kept is not None:
                continue
            name, note = column.name, ""
            if same:
                plain = "".join(c if c.isalnum() else "_" for c in str(column.type)).strip("_")
                name = f"{column.name}__{plain}"
                note = (
                    f"{column.type} cannot be combined with {fields[same[0]].type} of {fields[same[0]].name}"
                )
            label, k = name, 1
            while label.casefold() in taken:
                k += 1
                label = f"{name}_{k}"
            taken.add(label.casefold())
            same.append(len(fields))
            fields.append(_field(label, column.type, column.name, note))
            changed = True
        return TopicSchema(self.topic, pa.schema(fields)) if changed else self

    def merged(self, other: TopicSchema) -> TopicSchema:
        """Return the schema that also holds the columns of *other*."""
        return self.extended(
            pa.field(source_of(field), field.type) for field in list(other.schema)[len(HEAD) :]
        )

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of files: without notes, which change with other logs and are in the catalogue."""
        return pa.schema([field.remove_metadata() for field in self.schema])

    @cached_property
    def digest(self) -> str:
        """A digest of names and types of the columns."""
        return schema_digest(self.schema)

    @cached_property
    def _columns_of(self) -> dict[str, list[pa.Field[Any]]]:
        """Columns, without those of HEAD, by the field of a log that they hold."""
        columns: dict[str, list[pa.Field[Any]]] = {}
        for field in list(self.schema)[len(HEAD) :]:
            columns.setdefault(source_of(field), []).append(field)
        return columns

    def arrays(
        self, columns: Mapping[str, pa.Array[Any]], rows: int, wanted: Iterable[str]
    ) -> dict[str, pa.Array[Any]]:
        """Return those columns of this schema that are *wanted*, without those of HEAD, for some messages.

        columns  arrays by the names of ``own_columns``; those that are missing become nulls
        """
        names = frozenset(wanted)
        arrays: dict[str, pa.Array[Any]] = {}
        for source, array in columns.items():
            # Of several columns for one field, the first that can hold its values gets them, wanted or not.
            for field in self._columns_of.get(source, ()):
                if widen(field.type, array.type) == field.type:
                    if field.name in names:
                        arrays[field.name] = (
                            array if array.type == field.type else cast_array(array, field.type)
                        )
                    break
        for name in names.difference(arrays, _HEAD_NAMES):
            arrays[name] = pa.nulls(rows, self.schema.field(name).type)
        return arrays

    def text(self) -> str:
        """Return the schema as text, for files of JSON."""
        return base64.b64encode(self.schema.serialize().to_pybytes()).decode()

    @classmethod
    def of_text(cls, topic: str, text: str) -> TopicSchema:
        """Return the schema of ``text``; raises LogError for any other text."""
        try:
            return cls(topic, pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True))))
        except MemoryError:
            raise
        except (ValueError, OSError, pa.ArrowException) as error:
            raise LogError(f"the stored schema of {topic!r} cannot be read: {error}") from None


def schema_digest(schema: pa.Schema) -> str:
    """Return a digest of names and types of columns."""
    text = "\n".join(f"{field.name} {field.type}" for field in schema)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def source_of(field: pa.Field[Any]) -> str:
    """Return the name of the field of a log that a column of a TopicSchema holds."""
    return (field.metadata or {}).get(_FIELD, field.name.encode()).decode()


def part_of_schema(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return the columns of *schema* that *names* has, in the order of the schema; touches no other column."""
    # Of a thousand columns of all topics, each topic has some dozens.
    places = sorted(n for n in (schema.get_field_index(name) for name in names) if n >= 0)
    return pa.schema([schema.field(n) for n in places])


def _field(name: str, column_type: pa.DataType, source: str, note: str) -> pa.Field[Any]:
    about = ({_FIELD: source.encode()} if source != name else {}) | ({_NOTE: note.encode()} if note else {})
    return pa.field(name, column_type, metadata=about or None)


def cast_array(array: Any, column_type: pa.DataType) -> pa.Array[Any]:
    """Return *array* as the wider type *column_type*: members that structs lack become nulls."""
    import numpy as np

    if array.type == column_type:
        same: pa.Array[Any] = array
        return same
    if kinds.is_struct(column_type):
        own = {array.type.field(n).name: member for n, member in enumerate(array.flatten())}
        members = [
            cast_array(own[f.name], f.type) if f.name in own else pa.nulls(len(array), f.type)
            for f in column_type
        ]
        return pa.StructArray.from_arrays(members, fields=list(column_type), mask=array.is_null())
    if kinds.is_list(column_type):
        lists: Any = array if kinds.is_list(array.type) else array.cast(pa.list_(array.type.value_type))
        ends = as_numpy(lists.offsets) if len(lists) else np.zeros(1, np.int32)
        items = cast_array(lists.values.slice(int(ends[0]), int(ends[-1] - ends[0])), item_type(column_type))
        offsets: Any = pa.Array.from_buffers(pa.int32(), len(ends), [None, buffer_of(ends - ends[0])])
        return pa.ListArray.from_arrays(offsets, items, type=column_type, mask=lists.is_null())
    wider: pa.Array[Any] = array.cast(column_type)
    return wider


def schemas_of(tasks: Iterable[LogPart]) -> dict[str, TopicSchema]:
    """Return the columns of each topic over all logs of *tasks*; opens every log, but decodes nothing.

    Logs that cannot be opened, and channels whose definition cannot be used, contribute nothing.
    """
    schemas: dict[str, TopicSchema] = {}
    first: dict[str, LogPart] = {}
    topics: dict[str, dict[str, None]] = {}
    for task in tasks:
        if not task.error:
            first.setdefault(task.path, task)
            topics.setdefault(task.path, {}).update(dict.fromkeys(task.topics))
    for path, names in topics.items():
        task = first[path]
        with suppress(LogError, OSError), open_part(path, task.definitions, task.types) as log:
            for topic, schema in log_schemas(log, names, task.fields).items():
                schemas[topic] = schemas[topic].merged(schema) if topic in schemas else schema
    return schemas


def log_schemas(
    log: Log, topics: Iterable[str], fields: Sequence[str] | None, timestamps: str = "ns"
) -> dict[str, TopicSchema]:
    """Return the columns of topics of a log; channels whose definition cannot be used are left out."""
    schemas = {}
    for topic in topics:
        with suppress(LogError):
            own = own_columns(reader_of(log.channels[topic], fields), timestamps)[1]
            schemas[topic] = TopicSchema.of(topic, own, timestamps)
    return schemas


def union(schemas: Iterable[TopicSchema]) -> TopicSchema:
    """Return one schema for several topics, one at least."""
    return reduce(TopicSchema.merged, schemas)
