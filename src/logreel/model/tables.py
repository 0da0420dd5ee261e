"""Channels to Arrow tables and NumPy arrays: which bytes to gather, and how to present them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem, UsageError
from logreel.model.gather import Gathered, Want, gather, gather_rows
from logreel.model.index import I64, TIME_MAX, TIME_MIN, Word
from logreel.model.pieces import pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.model.arrow import Decoded
    from logreel.model.channel import Channel

Rows = slice | I64


def _word(ch: Channel) -> Word | None:
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
    column = table(ch, [path], None, None, True, False).column(path)
    values: NDArray[Any] = column.to_numpy()
    return values


def table(
    ch: Channel, fields: list[str] | None, start: int | None, end: int | None, explode: bool, utc: bool
) -> pa.Table:
    """Messages of *ch* as a table, see ``Channel.to_arrow``."""
    rows = ch.log.index.rows_between(ch.number, start, end)
    return _table(ch, fields, rows, explode, utc)


def _table(
    ch: Channel, fields: list[str] | None, rows: Rows, explode: bool = True, utc: bool = False
) -> pa.Table:
    index, layout = ch.log.index, ch.layout
    if not ch.is_uniform:
        return _variable(ch, fields, rows, explode, utc)
    leaves = (layout if fields is None else layout.project(fields)).leaves
    word, n = _word(ch), len(ch)
    whole = isinstance(rows, slice) and rows.indices(n) == (0, n, 1)
    if whole and word is not None:
        (got,) = gather(index, [Want(ch.number, leaves, word)])
    else:
        got = gather_rows(index, Want(ch.number, leaves), rows)
    return _fixed(ch, fields, got, index.times(ch.number)[rows] if got.time is None else got.time, utc)


def _fixed(ch: Channel, fields: list[str] | None, got: Gathered, times: I64, utc: bool = False) -> pa.Table:
    from logreel.model.arrow import assemble_fixed

    return _with_time(
        ch, times, assemble_fixed(ch.layout, got.columns, len(times), fields), fields, True, utc
    )


def _variable(ch: Channel, fields: list[str] | None, rows: Rows, explode: bool, utc: bool) -> pa.Table:
    import pyarrow as pa

    from logreel.model.arrow import decode_variable

    times, done, parts = ch.log.index.times(ch.number)[rows], 0, []
    for piece in pieces(ch.log.index, ch.number, rows):
        got = decode_variable(ch.layout, piece.data, piece.offset, piece.offset + piece.size, fields, explode)
        _report(ch, got, _row_numbers(rows, len(ch), done))
        here = got.times(times[done : done + len(piece.offset)])
        parts.append(_with_time(ch, here, got.arrays, fields, explode, utc))
        done += len(piece.offset)
    if not parts:
        none = np.zeros(0, np.int64)
        got = decode_variable(ch.layout, np.zeros(0, np.uint8), none, none, fields, explode)
        parts.append(_with_time(ch, none, got.arrays, fields, explode, utc))
    return pa.concat_tables(parts)


def _row_numbers(rows: Rows, n: int, done: int) -> Callable[[int], int]:
    """From a place in a piece, of which *done* messages came before, to the number of the message in its channel."""
    first = rows.indices(n)[0] if isinstance(rows, slice) else 0
    return lambda i: first + done + i if isinstance(rows, slice) else int(rows[done + i])


def _report(ch: Channel, got: Decoded, number: Callable[[int], int]) -> None:
    """Record messages that do not fit the channel's definition."""
    if got.bad:
        row, why = got.bad[0]
        text = (
            f"{ch.topic}: {len(got.bad)} messages cannot be decoded; the first is number {number(row)}: {why}"
        )
        ch.log.note(Problem("payload", 0, 0, True, text))
    if len(got.leftover):
        first, count = number(int(got.leftover[0])), len(got.leftover)
        text = f"{ch.topic}: {count} messages are longer than their definition; the first is number {first}"
        ch.log.note(Problem("leftover", 0, 0, False, text))


def _with_time(
    ch: Channel, times: I64, arrays: Sequence[pa.Array], fields: list[str] | None, explode: bool, utc: bool
) -> pa.Table:
    import pyarrow as pa

    from logreel.model.arrow import schema_of

    kind = pa.timestamp("ns") if ch.log.epoch == "unix" else pa.duration("ns")
    if utc:
        offset = ch.log.utc_offset
        if offset is None:
            raise UsageError("the log does not tell how its clock relates to UTC", path=ch.log.name)
        # An absurd stamp stays at the end of time instead of wrapping around.
        times = np.clip(times, TIME_MIN - min(offset, 0), TIME_MAX - max(offset, 0)) + offset
        kind = pa.timestamp("ns", tz="UTC")
    first = pa.Array.from_buffers(kind, len(times), [None, pa.py_buffer(np.ascontiguousarray(times))])
    columns = schema_of(ch.layout, fields, explode)
    told = {"topic": ch.topic, "type": ch.schema.name, "epoch": ch.log.epoch, "source": ch.log.name}
    # A file name need not be Unicode, metadata must.
    meta = {key: value.encode("utf-8", "backslashreplace") for key, value in told.items()}
    return pa.Table.from_arrays(
        [first, *arrays], schema=pa.schema([pa.field("time", kind), *columns], metadata=meta)
    )


def tables(channels: Sequence[Channel]) -> dict[str, pa.Table]:
    """Whole channels as tables by topic; those of fixed size are filled in one pass over the log."""
    together = [ch for ch in channels if ch.is_uniform and _word(ch) is not None]
    wants = [Want(ch.number, ch.layout.leaves, _word(ch)) for ch in together]
    got = (
        dict(zip((ch.topic for ch in together), gather(channels[0].log.index, wants), strict=True))
        if wants
        else {}
    )

    def one(ch: Channel) -> pa.Table:
        filled = got.get(ch.topic)
        if filled is not None and filled.time is not None:
            return _fixed(ch, None, filled, filled.time)
        return _table(ch, None, slice(0, len(ch)))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip((ch.topic for ch in channels), pool.map(one, channels), strict=True))


def batches(
    ch: Channel, rows: int, fields: list[str] | None, start: int | None, end: int | None, utc: bool
) -> Iterator[pa.RecordBatch]:
    """The table of *ch* in pieces of at most *rows* messages, see ``Channel.batches``."""
    picked = ch.log.index.rows_between(ch.number, start, end)
    first = picked.start if isinstance(picked, slice) else 0
    for lo in range(first, first + _length(picked, len(ch)), rows):
        # Row numbers end by themselves, a slice of the channel would run on.
        part = slice(lo, min(lo + rows, picked.stop)) if isinstance(picked, slice) else picked[lo : lo + rows]
        yield from _table(ch, fields, part, utc=utc).combine_chunks().to_batches()
