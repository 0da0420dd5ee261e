"""States between messages: a value holds until the next message of its channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence as Records
from logreel.log.log import Channel, Log
from logreel.log.tables import RowOptions, TableReader, column_values, own_paths
from logreel.log.topic_fields import fields_by_topic
from logreel.ops.query.record_batches import BYTES, intersect_intervals, most_rows
from logreel.ops.query.where import Tester, Where, apply, numbers_of, parse_where

#: start <= time < end, ns; None: unbounded.
Span = tuple[int | None, int | None]


def value_changes(log: Log, wanted: str, span: Span, most: int) -> list[tuple[int | None, str]]:
    """Return the start of each interval in which a field keeps its value, ns, and the value as text.

    wanted  ``topic.field``, a single number, text or truth value
    span    interval; the first value counts from its start, or from the last message before it
    most    largest number of intervals

    NaN is equal to NaN, and to -0 is 0; null and messages that cannot be decoded do not change the value. Of messages
    with equal times, the last one counts. Raises UsageError for what is no single value, and for more intervals.
    """
    ch, path = one_field(log, wanted)
    rows = log.index.rows_between(ch.number, None, span[1])
    known, codes = dict[str, int](), list[NDArray[np.int32]]()
    reader = TableReader(ch, own_paths(ch, [path]), RowOptions(explode=False, clock=bool(ch.members)))
    for batch in reader.batches(rows, most_rows(ch), BYTES):
        column = batch.column(1)
        if _is_nested(column.type):
            raise UsageError(f"{path!r} of {ch.topic!r} is not a single value: choose an item of it")
        dictionary = column.dictionary_encode()
        numbers = [known.setdefault(text, len(known)) for text in _texts(dictionary.dictionary)]
        if len(known) > most:
            raise UsageError(f"{path!r} of {ch.topic!r} has more than {most} different values")
        table = np.array([*numbers, -1], np.int32)
        codes.append(table[dictionary.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)])
    code = np.concatenate([np.zeros(0, np.int32), *codes])
    is_known = code >= 0
    times, code = _last_of_each_time(ch.times[rows][is_known], code[is_known])
    if not len(times):
        raise UsageError(f"{path!r} of {ch.topic!r} has no value in the interval", path=log.name)
    changed = np.flatnonzero(np.diff(code, prepend=-1))
    if span[0] is not None:
        # What holds at the start begins there.
        before = int(times[changed].searchsorted(span[0], "right")) - 1
        changed = changed[max(before, 0) :]
    if len(changed) > most:
        raise UsageError(
            f"{path!r} of {ch.topic!r} has {len(changed)} values one after another; at most {most}"
        )
    texts = list(known)
    starts = [span[0], *times[changed[1:]].tolist()]
    return [(start, texts[number]) for start, number in zip(starts, code[changed].tolist(), strict=True)]


def true_intervals(log: Log, where: Where, span: Span) -> list[Span]:
    """Return the intervals in *span* in which all conditions are true, ascending.

    Each condition is about one channel, and is true from a message that meets it up to the next one that does not.
    NULL is not true. Raises UsageError for a condition about several channels, and as ``where.matching``.
    """
    intervals: list[Span] = [span]
    channels = [ch for ch in log.channels.values() if len(ch)]
    with Tester() as tester:
        for condition in parse_where(where):
            several = apply(log, condition, channels)
            if len(several) != 1:
                names = ", ".join(repr(applied.ch.topic) for applied in several[:3]) + " …" * (
                    len(several) > 3
                )
                raise UsageError(
                    f"the fields of the condition are in several channels, {names}: write topic.field",
                    path=log.name,
                )
            (applied,) = several
            rows = numbers_of(log.index.rows_between(applied.ch.number, None, span[1]))
            intervals = intersect_intervals(
                intervals, _intervals(applied.ch, rows, tester.test(applied, rows))
            )
    return intervals


def _intervals(ch: Channel, rows: Rows, met: NDArray[np.bool_]) -> list[Span]:
    times, met = _last_of_each_time(ch.times[rows], met)
    turns = np.flatnonzero(np.diff(met, prepend=False))
    edges = [*times[turns].tolist(), None]
    return [(edges[i], edges[i + 1]) for i in range(0, len(turns), 2)]


def _last_of_each_time(times: I64, values: NDArray[Any]) -> tuple[I64, NDArray[Any]]:
    """Return ascending times without repeats, and for each the last of its values."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.flatnonzero(np.diff(times, append=times[-1:] + 1) != 0) if len(times) else order
    return times[last], values[last]


def one_field(log: Log, wanted: str) -> tuple[Channel, str]:
    """Return channel and path of ``topic.field``; raises UsageError unless it is one field of one channel."""
    chosen = fields_by_topic(log, [wanted])
    (topic, paths), *others = chosen.items()
    if others or paths is None or len(paths) != 1:
        what = "a whole channel" if paths is None else f"{len(chosen) * len(paths)} fields"
        raise UsageError(f"{wanted!r} is {what}: name one field, as topic.field", path=log.name)
    ch = log[topic]
    if isinstance(ch.layout.root, Records):
        raise UsageError(f"a message of {topic!r} holds many records, not one value", path=log.name)
    return ch, paths[0]


def _is_nested(arrow_type: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_nested(arrow_type)
        or pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
    )


def _texts(values: Any) -> list[str]:
    """Return the values of an Arrow array as text; integers for times."""
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        return ["true" if value else "false" for value in values.to_pylist()]
    if pa.types.is_string(values.type):
        return [str(value) for value in values.to_pylist()]
    # Numbers of float32 are written with their own digits.
    return [_number(value) for value in column_values(values)]


def _number(value: Any) -> str:
    if isinstance(value, np.floating):
        text = str(value + type(value)(0))
        return text.removesuffix(".0")
    return str(value)
