"""Arrays of types without fields: counted, fixed and nested, against the plain decoder; limits of their counts."""

from __future__ import annotations

import itertools
import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import DamagedError, DefinitionError
from logreel.kernels import layout as kernel
from logreel.layout import nodes
from logreel.layout.arrow import CROWDED, decode_variable
from logreel.layout.arrow_arrays import as_list
from logreel.layout.decode import decoder
from logreel.layout.encode import encode_message, encode_table
from logreel.layout.encode_message import encoder
from logreel.layout.layout import Layout
from logreel.layout.program import compile_layout
from logreel.layout.projection import Projection
from support.builders.arrows import rows_of, same
from support.harness.examples import examples
from support.oracles.layout_walker import decode_all

EMPTY = nodes.Struct(())
#: No bytes either, though there are members.
HOLLOW = nodes.Struct(
    (nodes.Field("none", nodes.FixedArray(nodes.Scalar("int32"), 0)), nodes.Field("e", EMPTY))
)
empties = st.sampled_from(
    [EMPTY, HOLLOW, nodes.FixedArray(EMPTY, 2), nodes.Struct((nodes.Field("x", HOLLOW),))]
)
arrays = empties | st.builds(nodes.FixedArray, empties, st.integers(0, 3)) | empties.map(nodes.Sequence)
members = arrays | st.just(nodes.Scalar("uint8")) | st.just(nodes.String())


def structs(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Struct]:
    named = st.lists(items, min_size=1, max_size=4)
    return named.map(lambda found: nodes.Struct(tuple(nodes.Field(f"f{i}", n) for i, n in enumerate(found))))


deeper = members | structs(members).filter(lambda node: nodes.measure(node).least > 0).map(nodes.Sequence)
layouts = structs(deeper).map(Layout)


def payload(draw: st.DrawFn, node: nodes.Node) -> bytes:
    match node:
        case nodes.Struct(fields=fields):
            return b"".join(payload(draw, f.node) for f in fields)
        case nodes.FixedArray(item=item, count=n):
            return b"".join(payload(draw, item) for _ in range(n))
        case nodes.Sequence(item=item):
            n = draw(st.integers(0, 4))
            return struct.pack("<I", n) + b"".join(payload(draw, item) for _ in range(n))
        case nodes.String():
            return struct.pack("<I", 2) + b"hi"
        case _:
            return b"\x07"


def table(layout: Layout, messages: list[bytes], fields: list[str] | None = None) -> list[pa.Array]:
    sizes = np.array([len(m) for m in messages], np.int64)
    stop = np.cumsum(sizes)
    source = np.frombuffer(b"".join(messages) or b"\0", np.uint8)
    got = decode_variable(Projection(layout, fields), source, stop - sizes, stop)
    assert not got.bad
    for array in got.arrays:
        array.validate(full=True)
    return got.arrays


@settings(max_examples=examples(200))
@given(st.data())
def test_empty_items_are_decoded_and_encoded(data: st.DataObject) -> None:
    layout = data.draw(layouts)
    messages = [payload(data.draw, layout.root) for _ in range(data.draw(st.integers(1, 4)))]
    values = [decode_all(layout.root, m)[0] for m in messages]
    assert [decoder(layout.root)(memoryview(m)) for m in messages] == values
    found = table(layout, messages)
    assert same(rows_of(layout, found), values)
    assert [encode_message(layout, value) for value in values] == messages
    assert [bytes(encoder(layout)(value)) for value in values] == messages
    made, start = encode_table(layout, pa.Table.from_arrays(found, [f.name for f in layout.root.visible()]))
    assert [made[a:b].tobytes() for a, b in itertools.pairwise(start)] == messages


LISTS = Layout(
    nodes.Struct((nodes.Field("e", nodes.Sequence(EMPTY)), nodes.Field("x", nodes.Scalar("uint8"))))
)


def walked(counts: list[int]) -> tuple[int, list[int], list[int]]:
    messages = b"".join(struct.pack("<IB", n, 1) for n in counts)
    start = np.arange(len(counts), dtype=np.int64) * 5
    status, told = np.zeros(len(counts), np.uint8), np.zeros(2, np.int64)
    program = compile_layout(LISTS)
    good = kernel.count(np.frombuffer(messages, np.uint8), start, start + 5, program.ops, told, status)
    return good, status.tolist(), told.tolist()


def test_counts_of_empty_items_are_limited_by_message_size_and_spare() -> None:
    most = kernel.SPARE + 5
    assert walked([most, 0, 3]) == (3, [0, 0, 0], [most + 3, 0])
    assert walked([most + 1, 2, 2**32 - 1, 1]) == (2, [3, 0, 3, 0], [3, 0])


def test_absurd_counts_of_empty_items_cost_nothing() -> None:
    wild = struct.pack("<IB", 2**32 - 1, 1)
    data = wild + struct.pack("<IB", 2, 9)
    tracemalloc.start()
    got = decode_variable(LISTS, np.frombuffer(data, np.uint8), np.array([0, 5]), np.array([5, 10]))
    with pytest.raises(DamagedError, match="items without bytes"):
        decoder(LISTS.root)(memoryview(wild))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert got.bad == [(0, CROWDED)]
    assert [array.to_pylist() for array in got.arrays] == [[[{}, {}]], [9]]


def test_nested_lists_share_the_limit_of_their_message() -> None:
    inner = nodes.Struct((nodes.Field("e", nodes.Sequence(EMPTY)),))
    layout = Layout(nodes.Struct((nodes.Field("many", nodes.Sequence(inner)),)))
    data = struct.pack("<I", 3) + struct.pack("<I", kernel.SPARE // 2) * 3
    with pytest.raises(DamagedError, match="items without bytes"):
        decoder(layout.root)(memoryview(data))
    got = decode_variable(layout, np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]))
    assert got.bad == [(0, CROWDED)]


def test_more_empty_items_than_32_bit_offsets_make_several_arrays() -> None:
    n = 2**31 // kernel.SPARE + 10
    messages = np.frombuffer(struct.pack("<IB", kernel.SPARE, 1) * n, np.uint8)
    start = np.arange(n, dtype=np.int64) * 5
    got = decode_variable(LISTS, messages, start, start + 5)
    assert isinstance(got.arrays[0], pa.ChunkedArray)
    assert len(got.arrays[0]) == n
    assert sum(len(as_list(chunk).flatten()) for chunk in got.arrays[0].chunks) == n * kernel.SPARE


def test_a_definition_of_too_many_empty_items_is_refused() -> None:
    with pytest.raises(DefinitionError, match="leaves"):
        Layout(nodes.Struct((nodes.Field("e", nodes.FixedArray(EMPTY, 10**9)),)))


def test_other_fields_can_be_projected_without_empty_items() -> None:
    (found,) = table(LISTS, [struct.pack("<IB", 3, 7), struct.pack("<IB", 0, 8)], ["x"])
    assert found.to_pylist() == [7, 8]
