"""Decoders of single messages."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.errors import DamagedError, LogError
from logreel.layout import nodes
from logreel.layout.layout import Layout
from logreel.layout.projection import arrow_select
from support.builders.arrows import same
from support.builders.strategies import layouts, payloads
from support.oracles.layout_walker import Short, decode


def wrapped(layout: Layout, value):
    return {"records": value} if isinstance(layout.root, nodes.Sequence) else value


@given(st.data())
def test_messages_decode_like_the_oracle(data):
    layout = data.draw(layouts())
    payload = data.draw(payloads(layout.root))
    expected = wrapped(layout, decode(layout.root, payload))
    assert same(layout.decoder()(memoryview(payload)), expected)


@given(st.data())
def test_garbage_decodes_like_the_oracle_or_is_refused(data):
    layout = data.draw(layouts())
    payload = data.draw(st.binary(max_size=60))
    decoder = layout.decoder()
    try:
        expected = wrapped(layout, decode(layout.root, payload))
    except Short:
        with pytest.raises(LogError):
            decoder(memoryview(payload))
    else:
        assert same(decoder(memoryview(payload)), expected)


def test_absurd_counts_are_refused():
    item = nodes.Struct((nodes.Field("s", nodes.String()),))
    for node in (
        nodes.Sequence(item),
        nodes.Sequence(nodes.Scalar("float64")),
        nodes.String(),
        nodes.FixedArray(item, 10**8),
    ):
        layout = Layout(nodes.Struct((nodes.Field("a", node),)))
        with pytest.raises(DamagedError, match="ends too early") as error:
            layout.decoder()(memoryview(b"\xff\xff\xff\xff"))
        assert error.value.problem.code == "truncated"


def test_projection_shows_only_its_fields():
    inner = nodes.Struct((nodes.Field("s", nodes.String()), nodes.Field("n", nodes.Scalar("uint8"))))
    layout = Layout(
        nodes.Struct(
            (
                nodes.Field("many", nodes.Sequence(inner, 1)),
                nodes.Field("t", nodes.Time(signed=True)),
                nodes.Field("one", inner),
            )
        )
    )
    message = b"\1" + b"\2\0\0\0hi\7" + b"\xff\xff\xff\xff\1\0\0\0" + b"\0\0\0\0\5"
    assert layout.decoder()(memoryview(message)) == {
        "many": [{"s": "hi", "n": 7}],
        "t": -999_999_999,
        "one": {"s": "", "n": 5},
    }
    assert layout.project(["many.n", "one.n"]).decoder()(memoryview(message)) == {
        "many": [{"n": 7}],
        "one": {"n": 5},
    }


NUMBERS = st.lists(st.integers(0, 9), max_size=3)


@given(st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | NUMBERS}), max_size=6), st.integers(0, 2))
def test_items_of_lists_that_are_absent_are_null(rows, index):
    array = pa.array(rows, pa.struct([("a", pa.list_(pa.int64()))]))
    lists = [None if row is None else row["a"] for row in rows]
    due = [None if items is None or index >= len(items) else items[index] for items in lists]
    assert arrow_select(array, ["a", index]).to_pylist() == due
