"""The kernel of single messages against its twin in plain Python: the same values and the same errors, on any bytes."""

from __future__ import annotations

import contextlib
import gc
import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import DamagedError
from logreel.kernels import layout_decode as kernel
from logreel.layout import nodes
from logreel.layout.decode import decoder
from logreel.layout.nodes import Field, FixedArray, Scalar, Sequence, String, Struct
from support.builders.strategies import leaves, widths
from support.harness.examples import examples
from support.harness.guard import guarded
from support.oracles.layout_walker import FORMATS
from support.oracles.plain_decoder import decoder as plain_decoder

grids = st.builds(nodes.Grid, st.sampled_from([1, 2, 4, 8]), st.integers(0, 9))
aligned_leaves = (
    leaves
    | st.builds(String, widths, grids, st.integers(0, 2))
    | st.builds(Sequence, st.sampled_from(["bool", "int16", "uint32", "float64"]).map(Scalar), widths, grids)
)


def with_hidden(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Struct]:
    """Return structs of *items* with members that are not shown."""
    hidden = (
        grids.map(nodes.Align)
        | st.binary(min_size=1, max_size=8).map(nodes.Expect)
        | st.integers(0, 3).map(nodes.Padding)
        | items.map(nodes.Skip)
    )

    def named(members: list[nodes.Node]) -> Struct:
        return Struct(
            tuple(Field("" if isinstance(m, nodes.HIDDEN) else f"f{i % 6}", m) for i, m in enumerate(members))
        )

    return st.lists(items | items | hidden, max_size=5).map(named)


def not_empty(node: nodes.Node) -> nodes.Node:
    """Return *node*, with a byte before it where it might take none: items of arrays need some."""
    if nodes.measure(node).least > 0:
        return node
    return Struct((Field("b", Scalar("uint8")), Field("x", node)))


def deeper(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Node]:
    shown = items.map(not_empty)
    return (
        with_hidden(items)
        | st.builds(FixedArray, shown, st.integers(0, 3))
        | st.builds(Sequence, shown, widths, st.none() | grids)
    )


any_node = st.recursive(aligned_leaves, deeper, max_leaves=8)


@st.composite
def roots(draw: st.DrawFn) -> Struct | Sequence:
    record = draw(with_hidden(any_node))
    if draw(st.booleans()) and nodes.measure(record).least:
        return Sequence(record, draw(widths))
    if draw(st.booleans()):
        record = Struct((*record.fields, Field("rest", nodes.Rest(draw(st.booleans())))))
    return record


def put(draw: st.DrawFn, node: nodes.Node, out: bytearray) -> None:
    """Append bytes that decode as *node*."""

    def random(size: int) -> bytes:
        return draw(st.binary(min_size=size, max_size=size))

    match node:
        case Struct(fields=fields):
            for f in fields:
                put(draw, f.node, out)
        case FixedArray(item=Scalar(type="char"), count=n):
            out += random(n)
        case FixedArray(item=item, count=n):
            for _ in range(n):
                put(draw, item, out)
        case Sequence(item=item, width=w, grid=grid):
            n = draw(st.integers(0, 3))
            out += n.to_bytes(w, "little")
            if grid is not None and n and item not in (Scalar("char"), Scalar("uint8")):
                out += random(grid.gap(len(out)))
            for _ in range(n):
                put(draw, item, out)
        case String(width=w) | nodes.Bytes(width=w):
            grid = getattr(node, "grid", None)
            out += random(grid.gap(len(out))) if grid is not None else b""
            raw = draw(st.text(max_size=20).map(str.encode) | st.binary(max_size=20))
            out += len(raw).to_bytes(w, "little") + raw
        case nodes.Rest():
            out += draw(st.binary(max_size=20))
        case nodes.Align(grid=grid):
            out += random(grid.gap(len(out)))
        case nodes.Expect(data=data):
            out += data
        case nodes.Skip(node=inner):
            put(draw, inner, out)
        case nodes.Time():
            out += random(8)
        case Scalar(type=t):
            out += random(struct.calcsize(FORMATS[t]))
        case nodes.Padding(size=n):
            out += random(n)


def outcome(decode, data: bytes) -> str:
    """Return what a decoder makes of *data* at the end of readable memory: the value to the bit, or the error."""
    try:
        return repr(decode(memoryview(guarded(data))))
    except DamagedError as error:
        return repr((str(error), error.problem))


@settings(max_examples=examples(150))
@given(st.data())
def test_any_layout_and_any_bytes(data: st.DataObject) -> None:
    root = data.draw(roots())
    sound = bytearray()
    put(data.draw, root, sound)
    decode, plain = decoder(root), plain_decoder(root)
    messages = [bytes(sound), bytes(sound) + b"\1\2", data.draw(st.binary(max_size=40))]
    messages += [bytes(sound[:n]) for n in range(0, len(sound), 1 + len(sound) // 20)]
    if sound:
        damaged = bytearray(sound)
        damaged[data.draw(st.integers(0, len(sound) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        messages.append(bytes(damaged))
    for message in messages:
        assert outcome(decode, message) == outcome(plain, message)
    assert not outcome(decode, bytes(sound)).startswith("(")


EVERY = Struct(
    (
        *(Field(t, Scalar(t)) for t in nodes.SCALARS),
        Field("stamp", nodes.Time()),
        Field("span", nodes.Time(signed=True)),
        Field("name", FixedArray(Scalar("char"), 6)),
        Field(
            "more", Sequence(Struct((Field("s", String(1)), Field("q", FixedArray(Scalar("float32"), 2)))), 1)
        ),
    )
)


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
def test_extreme_numbers_have_their_types(byte: int) -> None:
    size = sum(nodes.measure(f.node).least for f in EVERY.fields[:-1])
    message = bytes([byte]) * size + b"\1\2\xc3(" + bytes([byte]) * 8
    assert outcome(decoder(EVERY), message) == outcome(plain_decoder(EVERY), message)


def test_messages_share_nothing_and_leave_nothing_behind() -> None:
    decode = decoder(EVERY)
    message = bytearray(b"\1" * 120)
    first, second = decode(message), decode(message)
    assert first == second
    first["more"].append(1)
    first["new"] = first["name"] = 2
    assert second == decode(bytes(message)) != first
    gc.collect()
    before = sys.getrefcount(None), sys.getrefcount(sys.intern("stamp"))
    for _ in range(1000):
        decode(message)
        with contextlib.suppress(DamagedError):
            decode(message[:50])
    gc.collect()
    after = sys.getrefcount(None), sys.getrefcount(sys.intern("stamp"))
    assert all(abs(a - b) < 500 for a, b in zip(before, after, strict=True))
    # No view of the message is kept, so that it can grow.
    message.append(1)


def test_what_is_not_contiguous_bytes_is_refused() -> None:
    with pytest.raises(BufferError):
        decoder(EVERY)(memoryview(bytes(400))[::2])
    with pytest.raises(TypeError):
        decoder(EVERY)("text")


def test_a_message_that_is_refused_without_an_error_ends_in_one() -> None:
    refused: list[tuple[int, int, int, bytes]] = []
    decode = kernel.MessageDecoder(
        [kernel.NEED, -1, 4, 0, 0, 0], (), lambda data, *why: refused.append(why)
    ).decode
    with pytest.raises(ValueError, match="does not decode"):
        decode(b"abc")
    assert refused == [(kernel.SHORT, 0, 4, b"")]


def test_deep_and_wide_layouts() -> None:
    node: nodes.Node = Scalar("uint8")
    for _ in range(60):
        node = Struct((Field("a", node),))
    wide = Struct(tuple(Field(f"f{i}", Scalar("uint16")) for i in range(3000)))
    many = Struct((Field("x", FixedArray(Struct((Field("b", Scalar("bool")),)), 200_000)),))
    for root, message in ((node, b"\7"), (wide, bytes(range(200)) * 30), (many, b"\2" * 200_000)):
        assert isinstance(root, Struct)
        assert outcome(decoder(root), message) == outcome(plain_decoder(root), message)
        assert outcome(decoder(root), message[:-1]) == outcome(plain_decoder(root), message[:-1])
