"""Columns become messages as Arrow tables with the same values do, without pyarrow."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logreel.errors import UsageError
from logreel.layout.encode import encode_columns, encode_table
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Bytes, Field, FixedArray, Node, Scalar, Sequence, String, Struct
from logreel.layout.numpy_columns import Column, column_from, from_values

NUMBERS: list[Any] = [
    [],
    [0, 1],
    [-1],
    [127, 128, 255],
    [1 << 24, (1 << 24) + 1],
    [(1 << 53) + 1],
    [0.0, 3.0, -0.0],
    [0.5],
    [float("nan")],
    [1e300],
    [True, False],
]


def encoded(layout: Layout, column: Column) -> bytes | None:
    """Return all messages; None if the column does not fit."""
    try:
        data, start = encode_columns(layout, {"x": column}, len(column))
    except UsageError:
        return None
    assert len(start) == len(column) + 1
    return data.tobytes()


@pytest.mark.parametrize("values", NUMBERS, ids=str)
def test_numbers_fit_other_types_where_arrow_casts_them(values: list[Any]) -> None:
    for source, target in itertools.product(SCALARS, SCALARS):
        if "char" in (source, target):
            continue
        dtype = np.dtype(SCALARS[source][0])
        with np.errstate(all="ignore"):
            numbers = np.array(values, np.float64 if dtype.kind == "f" else None).astype(dtype)
        layout = Layout(Struct((Field("x", Scalar(target)),)))
        try:
            due = encode_table(layout, pa.table({"x": pa.array(numbers)}))[0].tobytes()
        except UsageError:
            due = None
        assert encoded(layout, Column(source, len(numbers), numbers)) == due, (source, target)


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (String(), b"\xff"),
        (Scalar("uint8"), "text"),
        (FixedArray(Scalar("uint8"), 3), [1, 2]),
        (Struct((Field("a", Scalar("uint8")),)), {"b": 1}),
        (Bytes(), [1, 2]),
    ],
)
def test_values_of_another_kind_are_refused(node: Node, value: Any) -> None:
    kinds: dict[type, Node] = {
        bytes: Bytes(),
        str: String(),
        list: Sequence(Scalar("int32")),
        dict: Struct((Field("b", Scalar("uint8")),)),
    }
    assert encoded(Layout(Struct((Field("x", node),))), from_values(kinds[type(value)], [value])) is None


def test_lists_and_arrays_become_each_other() -> None:
    lists, arrays = Sequence(Scalar("int32")), FixedArray(Scalar("int32"), 2)
    values = [[1, 2], [3, 4]]
    due = np.array(values, "<i4").tobytes()
    assert encoded(Layout(Struct((Field("x", arrays),))), from_values(lists, values)) == due
    counted = encoded(Layout(Struct((Field("x", lists),))), from_values(arrays, values))
    assert counted == b"".join(b"\2\0\0\0" + np.array(value, "<i4").tobytes() for value in values)


def test_missing_values_are_refused_and_settled_ones_are_zero() -> None:
    item = Struct((Field("a", Scalar("int32")), Field("b", String())))
    node = FixedArray(item, 2)
    one = [{"a": 7, "b": "x"}, {"a": 8, "b": "y"}]
    column = from_values(node, [one, None])
    layout = Layout(Struct((Field("x", node),)))
    assert encoded(layout, column) is None
    zero = [{"a": 0, "b": ""}] * 2
    assert column.settled().to_pylist() == [one, zero]
    assert encoded(layout, column.settled()) == encoded(layout, from_values(node, [one, zero]))


def test_parts_of_arrow_arrays_are_encoded_alone() -> None:
    array = pa.array([["a", "bc"], [], ["d"]])[1:]
    layout = Layout(Struct((Field("x", Sequence(String())),)))
    due = encoded(layout, from_values(Sequence(String()), [[], ["d"]]))
    assert encoded(layout, column_from(array)) == due
    assert encode_table(layout, pa.table({"x": array}))[0].tobytes() == due
