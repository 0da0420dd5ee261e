"""Messages of fixed size encoded as protobuf, compared with the protobuf library and with encoding by columns."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from google.protobuf import message_factory
from google.protobuf.internal import api_implementation

from logreel.layout.arrow import decode_variable
from logreel.layout.layout import Layout
from logreel.layout.nodes import MAX_LEAVES, SCALARS, FixedArray, Node, Padding, Scalar, String, Struct, Time
from logreel.layout.nodes import Field as Member
from logreel.schemas.protobuf.encoder import OPAQUE, descriptor_from_layout, encode, values
from logreel.schemas.protobuf.fixed_encoder import FixedEncoder, FixedEncoders, fixed_encoder
from logreel.schemas.protobuf.types import ProtoMessage, Types, descriptor_set
from support.harness.examples import half
from support.harness.guard import guarded

NUMBERS = sorted(SCALARS)


def struct_of(*nodes: Node) -> Struct:
    return Struct(
        tuple(Member("" if isinstance(one, Padding) else f"m{i}", one) for i, one in enumerate(nodes))
    )


BYTE = struct_of(Scalar("uint8"))


def some_node(rng: random.Random, depth: int) -> Node:
    kind = rng.randrange(10 if depth else 6)
    if kind < 5:
        return Scalar(rng.choice(NUMBERS))
    if kind == 5:
        return rng.choice([Time(), Time(True), Padding(rng.randrange(1, 5))])
    if kind < 8:
        item = some_node(rng, depth - 1)
        while isinstance(item, Padding) or item == Scalar("char"):
            item = some_node(rng, depth - 1)
        return FixedArray(item, rng.choice([1, 2, 3, 5, OPAQUE + 1 if isinstance(item, Scalar) else 2]))
    return some_struct(rng, depth - 1)


def some_struct(rng: random.Random, depth: int) -> Struct:
    """Return a random struct with runs of one type, as in most definitions; sometimes with many fields."""
    nodes = [Scalar(rng.choice(NUMBERS))]
    for _ in range(rng.randrange(40 if rng.random() < 0.2 else 8)):
        nodes.append(nodes[-1] if rng.random() < 0.5 else some_node(rng, depth))
    return struct_of(*nodes)


def payload(rng: random.Random, size: int) -> bytes:
    """Return random bytes: runs of zeros, of ones, and of any value."""
    out = bytearray()
    while len(out) < size:
        n = rng.choice([1, 4, 8, 8])
        out += rng.choice([bytes(n), bytes([1]) + bytes(n - 1), b"\xff" * n, rng.randbytes(n)])
    return bytes(out[:size])


def written(one: FixedEncoder, payloads: list[bytes]) -> list[bytes]:
    """Return each encoded message, after messages of another kind."""
    # Two buffers, each of which ends with its last message.
    half = len(payloads) // 2
    buffers = [guarded(b"".join(part) or b"\0") for part in (payloads[:half], payloads[half:])]
    which = np.repeat(np.array([0, 1], np.int32), [half, len(payloads) - half])
    place = np.concatenate(
        [np.cumsum([0, *map(len, part)])[:-1] for part in (payloads[:half], payloads[half:])]
    )
    other = fixed_encoder(Layout(BYTE), descriptor_from_layout(Layout(BYTE), "o.O"))
    assert other is not None
    kind = np.ones(len(payloads), np.int32)
    kind[::7] = 0
    out, start = FixedEncoders([other, one]).encode(kind, buffers, which, place)
    assert (start[0], start[-1]) == (0, len(out))
    found = [out[lo:hi].tobytes() for lo, hi in zip(start.tolist(), start.tolist()[1:], strict=False)]
    for i, (raw, kept) in enumerate(zip(payloads, found, strict=True)):
        if i % 7 == 0:
            assert kept == plain(BYTE, raw)
    return [one for i, one in enumerate(found) if i % 7]


def through_columns(layout: Layout, message: ProtoMessage, payloads: list[bytes]) -> list[bytes]:
    import pyarrow as pa

    data = np.frombuffer(b"".join(payloads), np.uint8)
    ends = np.cumsum([len(one) for one in payloads])
    got = decode_variable(layout, data, ends - len(payloads[0]), ends)
    columns = [pa.chunked_array([array]) for array in got.arrays]
    out, start = encode(message, values(layout, message, columns), len(payloads))
    return [out[lo:hi].tobytes() for lo, hi in zip(start.tolist(), start.tolist()[1:], strict=False)]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def span(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def width(node: Node) -> int:
    match node:
        case Scalar(type=kind):
            return SCALARS[kind][1]
        case Time():
            return 8
        case Padding(size=size):
            return size
        case FixedArray(item=item, count=n):
            return n * width(item)
        case Struct(fields=fields):
            return sum(width(one.node) for one in fields)
    raise TypeError(node)


def number(kind: str, raw: bytes) -> bytes:
    """Return a number without a tag."""
    if kind.startswith("float"):
        return raw
    if kind == "bool":
        return bytes([any(raw)])
    return varint(int.from_bytes(raw, "little", signed=not kind.startswith("u")))


def field(at: int, node: Node, raw: bytes) -> bytes:
    """Return an encoded field from the bytes of *node*."""
    match node:
        case Scalar(type=kind):
            wire = {"float32": 5, "float64": 1}.get(kind, 0)
            return varint(at << 3 | wire) + number(kind, raw) if any(raw) else b""
        case Time(signed=signed):
            seconds, nanos = struct.unpack("<ii" if signed else "<II", raw)
            time = seconds * 10**9 + nanos
            parts = divmod(abs(time), 10**9)
            inner = [one if time >= 0 else -one for one in parts]
            return span(at, b"".join(varint(8 * n) + varint(one) for n, one in enumerate(inner, 1) if one))
        case FixedArray(item=item):
            size = width(item)
            items = [raw[lo : lo + size] for lo in range(0, len(raw), size)]
            if item == Scalar("uint8") and len(raw) > OPAQUE:
                return span(at, raw)
            if isinstance(item, Scalar):
                return span(at, b"".join(number(item.type, one) for one in items))
            if isinstance(item, FixedArray):
                return b"".join(span(at, field(1, item, one)) for one in items)
            return b"".join(field(at, item, one) for one in items)
        case Struct():
            return span(at, plain(node, raw))
    raise TypeError(node)


def plain(root: Struct, raw: bytes) -> bytes:
    """Return the message encoded from *raw*."""
    out, lo, at = b"", 0, 0
    for one in root.fields:
        if not isinstance(one.node, Padding):
            at += 1
            out += field(at, one.node, raw[lo : lo + width(one.node)])
        lo += width(one.node)
    return out


@pytest.mark.parametrize("seed", range(half(60)))
def test_bytes_are_those_of_a_plain_writer_and_of_columns(seed: int) -> None:
    rng = random.Random(seed)
    layout = Layout(some_struct(rng, 3))
    message = descriptor_from_layout(layout, "t.All")
    one = fixed_encoder(layout, message)
    payloads = [payload(rng, layout.size or 0) for _ in range(30)]
    if one is None:
        assert "count=65" in repr(layout.root)
        return
    found = written(one, payloads)
    rest = [raw for i, raw in enumerate(payloads) if i % 7]
    assert found == [raw for i, raw in enumerate(through_columns(layout, message, payloads)) if i % 7]
    library = message_factory.GetMessageClass(Types((), descriptor_set(message)).find(message.name))
    for raw, mine in zip(rest, found, strict=True):
        assert mine == plain(layout.record, raw)
        again = library.FromString(mine)
        # protobuf in Python, which a free-threaded one has, writes each NaN alike.
        assert again.SerializeToString(deterministic=True) == mine or api_implementation.Type() == "python"
        assert len(mine) <= one.most


def test_layouts_with_text_or_opaque_rows_have_no_fixed_encoder() -> None:
    for node in (
        FixedArray(Scalar("char"), 4),
        FixedArray(FixedArray(Scalar("uint8"), OPAQUE + 1), 2),
        FixedArray(struct_of(Scalar("int8"), FixedArray(Scalar("char"), 2)), 2),
        String(),
    ):
        layout = Layout(struct_of(Scalar("uint8"), node))
        assert fixed_encoder(layout, descriptor_from_layout(layout, "t.All")) is None
    many = Layout(struct_of(FixedArray(struct_of(Scalar("uint8"), Padding(1)), MAX_LEAVES + 1)))
    assert fixed_encoder(many, descriptor_from_layout(many, "t.All")) is None


def test_fields_that_follow_each_other_are_one_op() -> None:
    layout = Layout(struct_of(*[Scalar("float32")] * 40))
    one = fixed_encoder(layout, descriptor_from_layout(layout, "t.All"))
    # Tags of one or two bytes, of which one alone counts.
    assert one is not None
    assert one.ops[:, 5].tolist() == [15, 16, 9]
    assert one.most == 40 * 4 + 15 + 25 * 2


def test_no_messages_and_no_bytes() -> None:
    layout = Layout(struct_of(Scalar("uint8"), FixedArray(Scalar("uint16"), 0), struct_of(Padding(1))))
    one = fixed_encoder(layout, descriptor_from_layout(layout, "t.All"))
    assert one is not None
    data, start = FixedEncoders([one]).encode(np.zeros(0, np.int32), [], None, np.zeros(0, np.int64))
    assert (len(data), start.tolist()) == (0, [0])
    assert written(one, [bytes(2)] * 3) == [b"\x1a\0"] * 2
    empty = FixedEncoders([]).encode(np.zeros(0, np.int32), [], None, np.zeros(0, np.int64))
    assert empty[1].tolist() == [0]
