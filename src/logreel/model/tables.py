"""Channels to Arrow tables and NumPy arrays: which bytes to gather, and how to present them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem, UsageError
from logreel.model.gather import Gathered, Want, gather, gather_rows
from logreel.model.index import I64, TIME_MAX, TIME_MIN, Word
from logreel.model.nodes import Sequence as Records
from logreel.model.pieces import Piece, pieces
from logreel.model.reading import spread

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.model.arrow import Decoded
    from logreel.model.channel import Channel

Rows = slice | I64


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows are shown.

    explode      one row per record where a message holds many; else one per message, with lists
    utc          wall-clock times
    interpolate  spread the times of the records of a message evenly to the next one
    clock        False: nobody looks at the times, so they are zeros
    """

    explode: bool = True
    utc: bool = False
    interpolate: bool = False
    clock: bool = True


PLAIN = Shape()

#: A piece of a table holds at most so many times the messages of the one before.
GROWTH = 64

#: What the time of a record means where a message holds many of them: metadata of the column ``time``.
OF_MESSAGE = b"of the message that the record is in, which is that of its first record"
SPREAD = b"spread evenly from the message that the record is in to the next one; only the first record's is recorded"


def word_of(ch: Channel) -> Word | None:
    """The rule of a channel's times where one pass can gather them along with the columns."""
    track = ch.log.index.tracks[ch.number]
    return track.time if isinstance(track.time, Word) and track.made is None else None


def _length(rows: Rows, n: int) -> int:
    return len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)


def field_values(ch: Channel, path: str) -> NDArray[Any]:
    """One field of all messages of *ch*, see ``Channel.__getitem__``."""
    if ch.is_uniform:
        from logreel.model.columns import numpy_column

        leaf = ch.layout.find(path)
        want = Want(ch.number, (leaf,))
        made = ch.log.index.tracks[ch.number].made is not None
        out = gather_rows(ch.log.index, want, slice(None)) if made else gather(ch.log.index, [want])[0]
        return numpy_column(leaf, out.columns[0], len(ch))
    return column_values(table(ch, [path], None, None, PLAIN).column(path))


def column_values(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """The values of a column; arrays of fixed size become further axes."""
    shape: list[int] = []
    while hasattr(column.type, "list_size"):
        shape.append(column.type.list_size)
        column = (column.combine_chunks() if hasattr(column, "combine_chunks") else column).flatten()
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    parts = [as_numpy(chunk) for chunk in chunks]
    values = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)
    return values.reshape(-1, *shape) if shape else values


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
    ch: Channel, fields: list[str] | None, start: int | None, end: int | None, shape: Shape
) -> pa.Table:
    """Messages of *ch* as a table, see ``Channel.to_arrow``."""
    rows = ch.log.index.rows_between(ch.number, start, end)
    return table_of(ch, fields, rows, shape)


def empty_table(ch: Channel, shape: Shape = PLAIN) -> pa.Table:
    """The table of *ch* without rows, for its schema."""
    return table_of(ch, None, slice(0, 0), shape)


def table_of(ch: Channel, fields: list[str] | None, rows: Rows, shape: Shape = PLAIN) -> pa.Table:
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


def _times(ch: Channel, shape: Shape) -> I64:
    return ch.log.index.times(ch.number) if shape.clock else np.zeros(len(ch), np.int64)


def fixed(ch: Channel, fields: list[str] | None, got: Gathered, times: I64, shape: Shape = PLAIN) -> pa.Table:
    from logreel.model.arrow import assemble_fixed

    return _with_time(
        ch,
        times,
        assemble_fixed(ch.layout, got.columns, len(times), fields),
        fields,
        replace(shape, explode=True),
    )


def _variable(ch: Channel, fields: list[str] | None, rows: Rows, shape: Shape) -> pa.Table:
    import pyarrow as pa

    if (found := _swept(ch, fields, rows, shape)) is not None:
        return found
    done, parts = 0, []
    for piece in pieces(ch.log.index, ch.number, rows):
        numbers = _row_numbers(rows, len(ch), done, len(piece.offset))
        parts.append(decoded(ch, fields, piece, numbers, shape))
        done += len(piece.offset)
    if not parts:
        none = np.zeros(0, np.int64)
        parts.append(decoded(ch, fields, Piece(np.zeros(0, np.uint8), none, none), none, shape))
    return pa.concat_tables(parts)


def _swept(ch: Channel, fields: list[str] | None, rows: Rows, shape: Shape) -> pa.Table | None:
    """All messages of a channel, where its Reading has a way of its own to them."""
    from logreel.model.arrow import as_asked

    whole = getattr(ch.reading, "whole", None)
    if whole is None or shape.interpolate or not isinstance(rows, slice) or rows != slice(0, len(ch)):
        return None
    part = ch.layout if fields is None else ch.layout.project(fields)
    found = whole(ch.log.index, ch.number, part, shape.explode)
    if found is None:
        return None
    got = as_asked(part, found[0], fields, shape.explode)
    return _with_time(ch, got.times(found[1]), got.arrays, fields, shape)


def decoded(ch: Channel, fields: list[str] | None, piece: Piece, numbers: I64, shape: Shape) -> pa.Table:
    """The messages of a piece, whose numbers in their channel are *numbers*, by the walk of their Layout."""
    times = _times(ch, shape)
    got = _decode(ch, piece, numbers, fields, shape.explode)
    _report(ch, got, numbers)
    if shape.interpolate and got.records is not None:
        here = spread(times, numbers if got.kept is None else numbers[got.kept], got.records)
    else:
        here = got.times(_picked(times, numbers))
    return _with_time(ch, here, got.arrays, fields, shape)


def _picked(times: I64, numbers: I64) -> I64:
    """The times of these messages: a view where they follow one another."""
    n = len(numbers)
    if n and int(numbers[-1]) - int(numbers[0]) == n - 1:
        return times[int(numbers[0]) : int(numbers[0]) + n]
    return times[numbers]


def _decode(ch: Channel, piece: Piece, numbers: I64, fields: list[str] | None, explode: bool) -> Decoded:
    """The messages of a piece, whose numbers in their channel are *numbers*."""
    from logreel.model.arrow import as_asked, decode_variable

    if ch.reading is None:
        return decode_variable(
            ch.layout, piece.data, piece.offset, piece.offset + piece.size, fields, explode
        )
    part = ch.layout if fields is None else ch.layout.project(fields)
    return as_asked(part, ch.reading.columns(ch.log.index, part, piece, numbers), fields, explode)


def _row_numbers(rows: Rows, n: int, done: int, count: int) -> I64:
    """int64[count]: which messages of the channel a piece holds, before which *done* of the *rows* came."""
    if isinstance(rows, slice):
        first = rows.indices(n)[0] + done
        return np.arange(first, first + count, dtype=np.int64)
    return rows[done : done + count]


def _report(ch: Channel, got: Decoded, numbers: I64) -> None:
    """Record messages that do not fit the channel's definition."""
    if got.bad:
        row, why = got.bad[0]
        text = f"{ch.topic}: {len(got.bad)} messages cannot be decoded; the first is number {numbers[row]}: {why}"
        ch.log.note(Problem("payload", 0, 0, True, text))
    if len(got.leftover):
        first, count = int(numbers[got.leftover[0]]), len(got.leftover)
        text = f"{ch.topic}: {count} messages are longer than their definition; the first is number {first}"
        ch.log.note(Problem("leftover", 0, 0, False, text))


def time_column(ch: Channel, times: I64, utc: bool = False) -> pa.Array:
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
    ch: Channel, times: I64, arrays: Sequence[pa.Array], fields: list[str] | None, shape: Shape
) -> pa.Table:
    import pyarrow as pa

    from logreel.model.arrow import schema_of

    first = time_column(ch, times, shape.utc)
    columns = schema_of(ch.layout, fields, shape.explode)
    told = {"topic": ch.topic, "type": ch.schema.name, "epoch": ch.log.epoch, "source": ch.log.name}
    # A file name need not be Unicode, metadata must.
    meta = {key: value.encode("utf-8", "backslashreplace") for key, value in told.items()}
    return pa.Table.from_arrays(
        [first, *arrays],
        schema=pa.schema(
            [pa.field("time", first.type, metadata=_meaning(ch, shape)), *columns], metadata=meta
        ),
    )


def _meaning(ch: Channel, shape: Shape) -> dict[bytes, bytes] | None:
    if ch.reading is None or not shape.explode or not isinstance(ch.layout.root, Records):
        return None
    return {b"meaning": SPREAD if shape.interpolate else OF_MESSAGE}


def batches(
    ch: Channel,
    rows: int,
    fields: list[str] | None,
    start: int | None,
    end: int | None,
    shape: Shape,
    size: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The table of *ch* in pieces of at most *rows* messages, see ``Channel.batches``; *size* as for ``batches_of``."""
    return batches_of(ch, ch.log.index.rows_between(ch.number, start, end), rows, fields, shape, size)


def batches_of(
    ch: Channel, picked: Rows, rows: int, fields: list[str] | None, shape: Shape, size: int | None = None
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


def _bytes_of(ch: Channel, fields: list[str] | None) -> float:
    """Bytes of *fields* of all messages where they are known before anything is decoded, else infinitely many."""
    if not ch.is_uniform:
        return inf
    leaves = (ch.layout if fields is None else ch.layout.project(fields)).leaves
    return len(ch) * sum(len(leaf.runs) * leaf.width for leaf in leaves)
