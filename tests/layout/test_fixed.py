"""Columns of fixed-size messages in NumPy and Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.layout import nodes
from logreel.layout.arrow import assemble_fixed, schema_of
from logreel.layout.layout import Layout
from logreel.layout.nodes import Leaf
from logreel.layout.numpy_columns import numpy_arrays, numpy_column
from logreel.layout.projection import Projection
from support.builders.arrows import rows_of, same
from support.builders.strategies import fixed_layouts, payloads
from support.oracles.layout_walker import decode


def gather(leaf: Leaf, messages: list[bytes]) -> np.ndarray:
    """Return the same column as the gather kernel, one run at a time."""
    joined = b"".join(m[at : at + leaf.width] for m in messages for at in leaf.runs)
    return np.frombuffer(joined, np.uint8)


def assembled(layout: Layout, messages: list[bytes], fields: list[str] | None = None) -> list[pa.Array]:
    projection = Projection(layout, fields)
    columns = [gather(leaf, messages) for leaf in projection.part.leaves]
    arrays = assemble_fixed(projection, columns, len(messages))
    for array in arrays:
        array.validate(full=True)
    assert [a.type for a in arrays] == [f.type for f in projection.arrow_fields()]
    return arrays


@given(st.data())
def test_columns_equal_the_oracle(data):
    layout = data.draw(fixed_layouts)
    messages = data.draw(st.lists(payloads(layout.root), max_size=4))
    expected = [decode(layout.root, m) for m in messages]
    arrays = assembled(layout, messages)
    if arrays:
        assert same(rows_of(layout, arrays), expected)


@given(st.data())
def test_numpy_columns_equal_the_oracle(data):
    layout = data.draw(fixed_layouts)
    messages = data.draw(st.lists(payloads(layout.root), min_size=1, max_size=4))
    buffers = [gather(leaf, messages) for leaf in layout.leaves]
    arrays = numpy_arrays(layout.leaves, buffers, len(messages))
    assert [*layout.leaves.paths] == layout.paths()
    for leaf, buffer, array in zip(layout.leaves, buffers, arrays, strict=True):
        column = numpy_column(leaf, buffer, len(messages))
        assert (array.dtype, array.shape, array.tobytes()) == (column.dtype, column.shape, column.tobytes())
        axes = leaf.shape[:-1] if leaf.type == "char" else leaf.shape
        assert column.shape == (len(messages), *axes)
        for row, message in zip(column, messages, strict=True):
            value = decode(layout.root, message)
            assert same(flat(row.tolist()), flat(below(value, leaf.path)))


def below(value, path):
    if isinstance(value, list):
        return [below(item, path) for item in value]
    return below(value[path[0]], path[1:]) if path else value


def flat(value):
    """Return the items of nested lists in order, and text as str, like the oracle."""
    if isinstance(value, list):
        return [x for item in value for x in flat(item)]
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value]


ITEM = nodes.Struct(
    (
        nodes.Field("a", nodes.Scalar("int16")),
        nodes.Field("b", nodes.FixedArray(nodes.Scalar("bool"), 2), "V"),
    )
)
LAYOUT = Layout(
    nodes.Struct(
        (
            nodes.Field("x", nodes.Scalar("float64"), "m/s"),
            nodes.Field("items", nodes.FixedArray(ITEM, 3)),
            nodes.Field("name", nodes.FixedArray(nodes.Scalar("char"), 4)),
        )
    )
)
MESSAGES = [bytes(range(i, i + 24)) for i in (0, 60)]


def test_numbers_are_not_copied_to_arrow():
    columns = [gather(leaf, MESSAGES) for leaf in LAYOUT.leaves]
    arrays = assemble_fixed(Projection(LAYOUT), columns, 2)
    assert arrays[0].buffers()[1].address == columns[0].ctypes.data


def test_units_are_in_the_metadata():
    x, items, _ = schema_of(LAYOUT)
    assert x.metadata == {b"unit": b"m/s"}
    assert items.type == pa.list_(
        pa.struct([("a", pa.int16()), pa.field("b", pa.list_(pa.bool_(), 2), metadata={"unit": "V"})]), 3
    )
    assert schema_of(LAYOUT, ["items.b"])[0].metadata == {b"unit": b"V"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("items.a", lambda m: [i["a"] for i in m["items"]]),
        ("items[1].a", lambda m: m["items"][1]["a"]),
        ("items.b[1]", lambda m: [i["b"][1] for i in m["items"]]),
        ("items[2].b[0]", lambda m: m["items"][2]["b"][0]),
        ("items[2]", lambda m: m["items"][2]),
        ("x", lambda m: m["x"]),
    ],
)
def test_selected_fields_equal_those_of_the_oracle(path, expected):
    arrays = assembled(LAYOUT, MESSAGES, ["name", path])
    assert arrays[1].to_pylist() == [expected(decode(LAYOUT.root, m)) for m in MESSAGES]
    leaf = None if path == "items[2]" else LAYOUT.find(path)
    if leaf:
        assert numpy_column(leaf, gather(leaf, MESSAGES), 2).tolist() == arrays[1].to_pylist()


def test_column_of_wrong_size_is_refused():
    columns = [gather(leaf, MESSAGES) for leaf in LAYOUT.leaves]
    with pytest.raises(ValueError, match="do not hold 3 rows"):
        assemble_fixed(Projection(LAYOUT), columns, 3)
    with pytest.raises(ValueError, match="x: 16 bytes"):
        numpy_column(LAYOUT.leaves[0], columns[0], 3)


def test_text_ends_at_the_first_nul():
    layout = Layout(nodes.Struct((nodes.Field("s", nodes.FixedArray(nodes.Scalar("char"), 4)),)))
    messages = [b"ab\0c", b"abcd", b"\0\0\0\0", b"\xff\0ab", "é\0\0".encode()]
    assert assembled(layout, messages)[0].to_pylist() == ["ab", "abcd", "", "�", "é"]
    column = numpy_column(layout.leaves[0], gather(layout.leaves[0], messages), 5)
    assert column.tolist() == [b"ab", b"abcd", b"", b"\xff", "é".encode()]
