"""Channels to Arrow tables and NumPy arrays: which bytes to gather, and how to present them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, Problem, UsageError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.index.gather import Gathered, Want, gather, gather_rows
from logreel.index.ranges import PayloadRange, payload_ranges
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence as Records
from logreel.log.padding import is_padded, skipping, too_long
from logreel.log.payload_decoder import spread
from logreel.log.topic_match import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.layout.arrow import Decoded
    from logreel.layout.layout import Layout
    from logreel.log.table_channel import TableChannel

Rows = slice | I64


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows are shown.

    explode      one row per record where a message holds many; else one per message, with lists
    utc          wall-clock times
    interpolate  spread the times of the records of a message evenly to the next one
    clock        False: nobody looks at the times, so they are zeros
    gaps         a row of nulls for each message that cannot be decoded; else such messages are left out
    """

    explode: bool = True
    utc: bool = False
    interpolate: bool = False
    clock: bool = True
    gaps: bool = True


PLAIN = Shape()
#: For who has no use for rows without values.
DENSE = Shape(gaps=False)

#: The first column of every table.
TIME = "time"

#: An array of more structs is not flattened.
MAX_STRUCTS = 64

#: A piece of a table holds at most so many times the messages of the one before.
GROWTH = 64

#: What the time of a record means where a message holds many of them: metadata of the column ``time``.
OF_MESSAGE = b"of the message that the record is in, which is that of its first record"
SPREAD = b"spread evenly from the message that the record is in to the next one; only the first record's is recorded"


def word_of(ch: TableChannel) -> FieldAt | None:
    """The rule of a channel's times where one pass can gather them along with the columns."""
    return ch.log.index.rules[ch.number].time_field


def _length(rows: Rows, n: int) -> int:
    return len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)


def own_paths(ch: TableChannel, fields: str | Iterable[str] | None) -> list[str] | None:
    """The paths of the Layout that *fields* of the user mean, without repeats; None: all.

    ``time`` is the time of the messages, the first column of every table, and not a field; see ``time_label``.
    """
    if fields is None:
        return None
    label, found = ch.time_label, []
    for name in listed(fields):
        if label is not None and (name == label or name.startswith((f"{label}.", f"{label}["))):
            found.append(TIME + name[len(label) :])
        elif name != TIME or label is not None:
            found.append(name)
    return list(dict.fromkeys(found))


def time_label(layout: Layout) -> str | None:
    """The column of a field that is itself named ``time``: ``time_2``, or the next number that is free.

    None where there is no such field.
    """
    names = {f.name for f in layout.record.visible()}
    return next(n for i in itertools.count(2) if (n := f"{TIME}_{i}") not in names) if TIME in names else None


def field_values(ch: TableChannel, path: str, rows: Rows | None = None) -> NDArray[Any]:
    """One field of all messages of *ch*, or of *rows* of them, see ``Channel.__getitem__``."""
    rows = slice(0, len(ch)) if rows is None else rows
    if path == TIME:
        return _record_times(ch, rows)
    (path,) = own_paths(ch, path) or [path]
    if not ch.is_uniform:
        return column_values(table_of(ch, [path], rows).column(1))
    from logreel.layout.numpy_columns import numpy_column

    leaf = ch.layout.find(path)
    want, index = Want(ch.number, (leaf,)), ch.log.index
    whole = rows == slice(0, len(ch)) if isinstance(rows, slice) else False
    out = (
        gather(index, [want])[0]
        if whole and index.rules[ch.number].synthetic is None
        else gather_rows(index, want, rows)
    )
    return numpy_column(leaf, out.columns[0], _length(rows, len(ch)))


def _record_times(ch: TableChannel, rows: Rows) -> I64:
    """int64[n]: ns of each row, which is a record where messages hold many."""
    try:
        many = isinstance(ch.layout.root, Records)
    except DefinitionError:
        many = False
    if not many:
        return ch.log.index.times(ch.number)[rows]
    # Some field has to be decoded to know how many records each message has.
    column = table_of(ch, ch.layout.paths()[:1], rows).column(0)
    return np.concatenate([np.zeros(0, np.int64), *map(as_numpy, column.chunks)])


def column_values(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """The values of a column; arrays of fixed size become further axes.

    What is null is NaN in floats and None in objects; other types become a masked array of the same type.
    """
    import pyarrow as pa

    shape: list[int] = []
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = _items(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_masked(chunk) for chunk in chunks]
    together = np.ma.concatenate if any(isinstance(p, np.ma.MaskedArray) for p in parts) else np.concatenate
    values: NDArray[Any] = parts[0] if len(parts) == 1 else together(parts) if parts else np.zeros(0)
    return values.reshape(-1, *shape) if shape else values


def _items(array: pa.FixedSizeListArray) -> pa.Array:
    """The items of all lists one after another, nulls for a list that is null."""
    import pyarrow as pa

    if not array.null_count:
        return array.flatten()
    size = array.type.list_size
    at = np.arange(len(array) * size, dtype=np.int64) + array.offset * size
    absent = np.repeat(np.asarray(array.is_null().to_numpy(zero_copy_only=False)), size)
    return array.values.take(pa.array(at, mask=absent))


def _masked(array: pa.Array) -> NDArray[Any]:
    """The values of *array*, of which those that are null stand behind a mask where their type has no NaN."""
    import pyarrow as pa

    kind = array.type
    if not array.null_count or not (
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    ):
        return as_numpy(array)
    plain = array.cast(pa.int64()) if pa.types.is_temporal(kind) else array
    absent = array.is_null().to_numpy(zero_copy_only=False)
    filled = as_numpy(plain.fill_null(False if pa.types.is_boolean(kind) else 0))
    return np.ma.MaskedArray(filled, mask=absent)


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """The values of *array*: numbers, and times as int64 ns, are views of its memory.

    pyarrow's own way imports pandas wherever that is installed, which takes longer than most fields.
    """
    import pyarrow as pa

    kind = array.type
    if array.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        number = np.dtype(kind.to_pandas_dtype())
    elif array.null_count == 0 and pa.types.is_temporal(kind):
        number = np.dtype(np.int64)
    else:
        other: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return other
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, number)
    return np.frombuffer(data, number, len(array), array.offset * number.itemsize)


def table(
    ch: TableChannel, fields: list[str] | None, start: int | None, end: int | None, shape: Shape
) -> pa.Table:
    """Messages of *ch* as a table, see ``Channel.to_arrow``."""
    rows = ch.log.index.rows_between(ch.number, start, end)
    return table_of(ch, fields, rows, shape)


def empty_table(ch: TableChannel, shape: Shape = PLAIN, fields: list[str] | None = None) -> pa.Table:
    """The table of *ch* without rows, for its schema."""
    return table_of(ch, fields, slice(0, 0), shape)


def table_of(ch: TableChannel, fields: list[str] | None, rows: Rows, shape: Shape = PLAIN) -> pa.Table:
    index, layout = ch.log.index, ch.layout
    if not ch.is_uniform:
        return _variable(ch, fields, rows, shape)
    leaves = (layout if fields is None else layout.project(fields)).leaves
    word, n = word_of(ch), len(ch)
    whole = isinstance(rows, slice) and rows.indices(n) == (0, n, 1)
    if whole and word is not None:
        (got,) = gather(index, [Want(ch.number, leaves, word if shape.clock else None)])
    else:
        got = gather_rows(index, Want(ch.number, leaves), rows)
    return fixed(ch, fields, got, _times(ch, shape)[rows] if got.time is None else got.time, shape)


def _times(ch: TableChannel, shape: Shape) -> I64:
    return ch.log.index.times(ch.number) if shape.clock else np.zeros(len(ch), np.int64)


def fixed(
    ch: TableChannel, fields: list[str] | None, got: Gathered, times: I64, shape: Shape = PLAIN
) -> pa.Table:
    from logreel.layout.arrow import assemble_fixed

    return _with_time(
        ch,
        times,
        assemble_fixed(ch.layout, got.columns, len(times), fields),
        fields,
        replace(shape, explode=True),
    )


def _variable(ch: TableChannel, fields: list[str] | None, rows: Rows, shape: Shape) -> pa.Table:
    import pyarrow as pa

    if (found := _swept(ch, fields, rows, shape)) is not None:
        return found
    done, parts = 0, []
    for piece in payload_ranges(ch.log.index, ch.number, rows):
        numbers = _row_numbers(rows, len(ch), done, len(piece.offset))
        parts.append(decoded(ch, fields, piece, numbers, shape))
        done += len(piece.offset)
    if not parts:
        none = np.zeros(0, np.int64)
        parts.append(decoded(ch, fields, PayloadRange(np.zeros(0, np.uint8), none, none), none, shape))
    return pa.concat_tables(parts)


def _swept(ch: TableChannel, fields: list[str] | None, rows: Rows, shape: Shape) -> pa.Table | None:
    """All messages of a channel, where its Reading has a way of its own to them."""
    from logreel.layout.arrow import as_asked

    whole = getattr(ch.decoder, "decode_all", None)
    if whole is None or shape.interpolate or not isinstance(rows, slice) or rows != slice(0, len(ch)):
        return None
    part = ch.layout if fields is None else ch.layout.project(fields)
    found = whole(ch.log.index, ch.number, part, shape.explode)
    if found is None:
        return None
    got = as_asked(part, found[0], fields, shape.explode)
    return _with_time(ch, got.times(found[1]), got.arrays, fields, shape)


def decoded(
    ch: TableChannel, fields: list[str] | None, piece: PayloadRange, numbers: I64, shape: Shape
) -> pa.Table:
    """The messages of a piece, whose numbers in their channel are *numbers*, by the walk of their Layout."""
    times = _times(ch, shape)
    got = _decode(ch, piece, numbers, fields, shape.explode)
    _report(ch, got, piece, numbers)
    if shape.gaps:
        got = with_gaps(got, len(numbers))
    if shape.interpolate and got.records is not None:
        here = spread(times, numbers if got.kept is None else numbers[got.kept], got.records)
    else:
        here = got.times(_picked(times, numbers))
    return _with_time(ch, here, got.arrays, fields, shape)


def with_gaps(got: Decoded, n: int) -> Decoded:
    """*got*, of *n* messages, with a row of nulls for each message that did not decode."""
    if not got.bad:
        return got
    import pyarrow as pa

    bad = np.array([row for row, _ in got.bad], np.int64)
    kept = np.arange(n, dtype=np.int64) if got.kept is None else got.kept
    records = np.ones(len(kept), np.int64) if got.records is None else got.records
    messages = np.concatenate([kept, bad])
    order = np.argsort(messages, kind="stable")
    counts = np.concatenate([records, np.ones(len(bad), np.int64)])[order]
    first = np.concatenate([np.cumsum(records) - records, np.full(len(bad), -1)])[order]
    at = (
        np.repeat(first, counts)
        + np.arange(int(counts.sum()))
        - np.repeat(np.cumsum(counts) - counts, counts)
    )
    where = pa.array(at, mask=np.repeat(first < 0, counts))
    return replace(
        got,
        arrays=[array.take(where) for array in got.arrays],
        kept=messages[order],
        records=None if got.records is None else counts,
    )


def _picked(times: I64, numbers: I64) -> I64:
    """The times of these messages: a view where they follow one another."""
    n = len(numbers)
    if n and int(numbers[-1]) - int(numbers[0]) == n - 1:
        return times[int(numbers[0]) : int(numbers[0]) + n]
    return times[numbers]


def _decode(
    ch: TableChannel, piece: PayloadRange, numbers: I64, fields: list[str] | None, explode: bool
) -> Decoded:
    """The messages of a piece, whose numbers in their channel are *numbers*."""
    from logreel.layout.arrow import as_asked, decode_variable

    if ch.decoder is None:
        return decode_variable(
            ch.layout, piece.data, piece.offset, piece.offset + piece.size, fields, explode
        )
    part = ch.layout if fields is None else ch.layout.project(fields)
    return as_asked(part, ch.decoder.decode_batch(ch.log.index, part, piece, numbers), fields, explode)


def _row_numbers(rows: Rows, n: int, done: int, count: int) -> I64:
    """int64[count]: which messages of the channel a piece holds, before which *done* of the *rows* came."""
    if isinstance(rows, slice):
        first = rows.indices(n)[0] + done
        return np.arange(first, first + count, dtype=np.int64)
    return rows[done : done + count]


def _report(ch: TableChannel, got: Decoded, piece: PayloadRange, numbers: I64) -> None:
    """Record messages of a piece that do not fit the channel's definition; padding does no harm."""
    if got.bad:
        row, why = got.bad[0]
        text = f"{ch.topic}: {len(got.bad)} messages cannot be decoded; the first is number {numbers[row]}: {why}"
        ch.log.note(Problem("payload", 0, 0, True, text, len(got.bad)))
    left = got.leftover
    if len(left) and is_padded(ch.metadata):
        left = too_long(skipping(ch.layout), piece, left)
    if len(left):
        first, count = int(numbers[left[0]]), len(left)
        text = f"{ch.topic}: {count} messages are longer than their definition; the first is number {first}"
        ch.log.note(Problem("leftover", 0, 0, False, text))


def time_column(ch: TableChannel, times: I64, utc: bool = False) -> pa.Array:
    """Times of messages of *ch* (ns of its clock) as the column ``time`` shows them, see ``Channel.to_arrow``."""
    import pyarrow as pa

    kind = pa.timestamp("ns") if ch.log.epoch == "unix" else pa.duration("ns")
    if utc:
        offset = ch.log.utc_offset
        if offset is None:
            raise UsageError("the log does not tell how its clock relates to UTC", path=ch.log.name)
        # An absurd stamp stays at the end of time instead of wrapping around.
        times = np.clip(times, TIME_MIN - min(offset, 0), TIME_MAX - max(offset, 0)) + offset
        kind = pa.timestamp("ns", tz="UTC")
    return pa.Array.from_buffers(kind, len(times), [None, pa.py_buffer(np.ascontiguousarray(times))])


def _with_time(
    ch: TableChannel, times: I64, arrays: Sequence[pa.Array], fields: list[str] | None, shape: Shape
) -> pa.Table:
    import pyarrow as pa

    from logreel.layout.arrow import schema_of

    first = time_column(ch, times, shape.utc)
    columns = [
        f.with_name(ch.time_label) if f.name == TIME and ch.time_label else f
        for f in schema_of(ch.layout, fields, shape.explode)
    ]
    told = {"topic": ch.topic, "type": ch.schema.name, "epoch": ch.log.epoch, "source": ch.log.name}
    # A file name need not be Unicode, metadata must.
    meta = {key: value.encode("utf-8", "backslashreplace") for key, value in told.items()}
    return pa.Table.from_arrays(
        [first, *arrays],
        schema=pa.schema([pa.field(TIME, first.type, metadata=_meaning(ch, shape)), *columns], metadata=meta),
    )


def _meaning(ch: TableChannel, shape: Shape) -> dict[bytes, bytes] | None:
    if ch.decoder is None or not shape.explode or not isinstance(ch.layout.root, Records):
        return None
    return {b"meaning": SPREAD if shape.interpolate else OF_MESSAGE}


def batches(
    ch: TableChannel,
    rows: int,
    fields: list[str] | None,
    start: int | None,
    end: int | None,
    shape: Shape,
    size: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The table of *ch* in pieces of at most *rows* messages, see ``Channel.batches``; *size*: see ``batches_of``."""
    return batches_of(ch, ch.log.index.rows_between(ch.number, start, end), rows, fields, shape, size)


def batches_of(
    ch: TableChannel, picked: Rows, rows: int, fields: list[str] | None, shape: Shape, size: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The messages *picked* of *ch* as a table in pieces of at most *rows* messages.

    size  bytes of a piece, which begin with one message and grow or shrink as the one before tells; None: any
    """
    lo = picked.start if isinstance(picked, slice) else 0
    stop, count = lo + _length(picked, len(ch)), rows if size is None else 1
    if size is not None and stop - lo == len(ch) <= rows and _bytes_of(ch, fields) <= size:
        count = len(ch)
    while lo < stop:
        # Row numbers end by themselves, a slice of the channel would run on.
        hi = min(lo + count, picked.stop) if isinstance(picked, slice) else lo + count
        found = table_of(ch, fields, slice(lo, hi) if isinstance(picked, slice) else picked[lo:hi], shape)
        if size is not None:
            # Whoever wants the first rows only should not have thousands decoded.
            count = max(1, min(rows, count * size // max(1, found.nbytes), count * GROWTH))
        yield from found.combine_chunks().to_batches()
        lo = hi


def _bytes_of(ch: TableChannel, fields: list[str] | None) -> float:
    """Bytes of *fields* of all messages where they are known before anything is decoded, else infinitely many."""
    if not ch.is_uniform:
        return inf
    leaves = (ch.layout if fields is None else ch.layout.project(fields)).leaves
    return len(ch) * sum(len(leaf.runs) * leaf.width for leaf in leaves)


def flattened(rows: Any) -> Any:
    """A table or a batch whose structs became columns of their own: ``pose.position.x``, ``esc[0].rpm``.

    Lists stay what they are, but for structs in arrays of fixed size, of up to MAX_STRUCTS.
    """
    import pyarrow as pa

    if not any(_has_structs(field.type) for field in rows.schema):
        return rows
    flat = [
        one for field, column in zip(rows.schema, rows.columns, strict=True) for one in _flat(field, column)
    ]
    names = distinct([field.name for field, _ in flat])
    fields = [field.with_name(name) for (field, _), name in zip(flat, names, strict=True)]
    return type(rows).from_arrays(
        [column for _, column in flat], schema=pa.schema(fields, metadata=rows.schema.metadata)
    )


def _has_structs(kind: pa.DataType) -> bool:
    """Whether *kind* becomes columns of its own when it is flattened."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return kind.list_size <= MAX_STRUCTS and _has_structs(kind.value_type)
    # A struct without members has no columns to become.
    return bool(pa.types.is_struct(kind)) and kind.num_fields > 0


def _flat(field: pa.Field, column: Any) -> Iterator[tuple[pa.Field, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = field.type
    if not _has_structs(kind):
        yield field, column
    elif pa.types.is_struct(kind):
        # Nulls of the struct become nulls of its members.
        for i, child in enumerate(column.flatten()):
            inner = kind.field(i)
            yield from _flat(inner.with_name(f"{field.name}.{inner.name}").with_nullable(True), child)
    else:
        for i in range(kind.list_size):
            item = pa.field(f"{field.name}[{i}]", kind.value_type, metadata=field.metadata)
            yield from _flat(item, pc.list_element(column, i))


def distinct(names: list[str]) -> list[str]:
    """*names* with every repeated one made unique by a number: ``time`` twice is ``time``, ``time_2``."""
    taken, found = set(names), set()
    out = []
    for name in names:
        label, n = name, 1
        while label in found or (n > 1 and label in taken):
            n += 1
            label = f"{name}_{n}"
        found.add(label)
        out.append(label)
    return out
