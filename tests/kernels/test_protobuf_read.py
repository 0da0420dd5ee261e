"""Columns read from protobuf messages by the kernel, compared with the protobuf library: random types and bytes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.message import DecodeError, Message

from logreel.errors import FileChangedError
from logreel.index.gather import PayloadRange
from logreel.kernels import protobuf_read as kernel
from logreel.layout.numpy_columns import PlainValues, column_of
from logreel.schemas.protobuf.layouts import LibraryOnly, ProtoColumns, ProtoLayout
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder
from support.harness.examples import examples
from support.harness.guard import guarded

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = [
    *(FIELD.TYPE_DOUBLE, FIELD.TYPE_FLOAT, FIELD.TYPE_INT64, FIELD.TYPE_UINT64, FIELD.TYPE_INT32, FIELD.TYPE_FIXED64),
    *(FIELD.TYPE_FIXED32, FIELD.TYPE_BOOL, FIELD.TYPE_STRING, FIELD.TYPE_BYTES, FIELD.TYPE_UINT32, FIELD.TYPE_ENUM),
    *(FIELD.TYPE_SFIXED32, FIELD.TYPE_SFIXED64, FIELD.TYPE_SINT32, FIELD.TYPE_SINT64),
]  # fmt: skip
TIMES = [".google.protobuf.Timestamp", ".google.protobuf.Duration"]


def random_type(rng: random.Random, syntax: str = "proto3") -> Any:
    """Return the Descriptor of a type with fields of all kinds in any order, nested, optional, repeated, in a oneof."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"])
    colour = file.enum_type.add(name="Colour")
    for number, name in enumerate(("NONE", "RED", "DEEP_BLUE")):
        colour.value.add(name=name, number=number)

    def add(depth: int) -> str:
        message = file.message_type.add(name=f"M{len(file.message_type)}")
        oneof = depth == 0 and rng.random() < 0.5
        if oneof:
            message.oneof_decl.add(name="either")
        numbers = rng.sample(range(1, 40), rng.randint(1, 9))
        for i, number in enumerate(numbers):
            field = message.field.add(name=f"f{i}", number=number, label=FIELD.LABEL_OPTIONAL)
            if rng.random() < 0.35:
                field.label = FIELD.LABEL_REPEATED
            choice = rng.random()
            if choice < 0.2 and depth < 3:
                field.type, field.type_name = FIELD.TYPE_MESSAGE, f".t.{add(depth + 1)}"
            elif choice < 0.3:
                field.type, field.type_name = FIELD.TYPE_MESSAGE, rng.choice(TIMES)
            else:
                field.type = rng.choice(SCALARS)
                if field.type == FIELD.TYPE_ENUM:
                    field.type_name = ".t.Colour"
            if field.label == FIELD.LABEL_OPTIONAL and oneof and rng.random() < 0.5:
                field.oneof_index = 0
        if oneof and not any(field.HasField("oneof_index") for field in message.field):
            message.field.add(name="last", number=99, label=1, type=FIELD.TYPE_INT32, oneof_index=0)
        if syntax == "proto3":
            for field in message.field:
                if (
                    field.label == FIELD.LABEL_OPTIONAL
                    and not field.HasField("oneof_index")
                    and rng.random() < 0.3
                ):
                    field.proto3_optional = True
                    field.oneof_index = len(message.oneof_decl)
                    message.oneof_decl.add(name=f"_{field.name}")
        return message.name

    name = add(0)
    return pool_of(file).FindMessageTypeByName(f"t.{name}")


def pool_of(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return pool


def fill(rng: random.Random, message: Message) -> None:
    """Set most fields of a message to random values, many of them extreme."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.3:
            continue
        repeated = ProtoFieldKind.repeated(field)
        for _ in range(rng.choice((0, 1, 2, 7)) if repeated else 1):
            if field.type == FIELD.TYPE_MESSAGE:
                inner = getattr(message, field.name)
                inner = inner.add() if repeated else inner
                inner.SetInParent()
                if inner.DESCRIPTOR.full_name.startswith("google"):
                    sign = rng.choice((1, -1)) if inner.DESCRIPTOR.name == "Duration" else 1
                    inner.seconds, inner.nanos = (
                        sign * rng.choice((0, 7, 1_700_000_000)),
                        sign * rng.randrange(10**9),
                    )
                else:
                    fill(rng, inner)
            elif repeated:
                getattr(message, field.name).append(ProtoFieldKind.value(rng, field.type))
            else:
                setattr(message, field.name, ProtoFieldKind.value(rng, field.type))


class ProtoFieldKind:
    """Random values of fields."""

    @staticmethod
    def repeated(field: Any) -> bool:
        own = getattr(field, "is_repeated", None)
        return bool(field.label == 3 if own is None else own)

    @staticmethod
    def value(rng: random.Random, kind: int) -> Any:
        if kind in (FIELD.TYPE_DOUBLE, FIELD.TYPE_FLOAT):
            return rng.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), -(2.0**-120)))
        if kind == FIELD.TYPE_BOOL:
            return rng.random() < 0.5
        if kind == FIELD.TYPE_STRING:
            return rng.choice(("", "a", "größer", "\U0001f916" * 3, "x" * 200, "\0", "€"))
        if kind == FIELD.TYPE_BYTES:
            return rng.randbytes(rng.choice((0, 1, 5, 300)))
        if kind == FIELD.TYPE_ENUM:
            return rng.choice((0, 1, 2))
        bits = 31 if kind in (FIELD.TYPE_INT32, FIELD.TYPE_SFIXED32, FIELD.TYPE_SINT32) else 63
        if kind in (FIELD.TYPE_UINT32, FIELD.TYPE_FIXED32):
            return rng.choice((0, 1, 127, 128, (1 << 32) - 1))
        if kind in (FIELD.TYPE_UINT64, FIELD.TYPE_FIXED64):
            return rng.choice((0, 1, 1 << 35, (1 << 64) - 1))
        return rng.choice((0, 1, -1, 300, -(1 << bits), (1 << bits) - 1))


def piece_of(payloads: list[bytes], guard: bool = False) -> PayloadRange:
    """Return payloads with bytes between them that belong to none."""
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    gap = 0 if guard else 3
    data = bytes([0xFF] * gap).join(payloads)
    starts = np.concatenate([[0], np.cumsum(sizes + gap)[:-1]]) if len(sizes) else sizes
    return PayloadRange(
        guarded(data) if guard else np.frombuffer(data, np.uint8), starts.astype(np.int64), sizes
    )


def by_library(decoder: ProtobufDecoder, payloads: list[bytes], names: list[str]) -> dict[str, list[Any]]:
    rows = [decoder._values(decoder.parse(payload)) for payload in payloads]
    nodes = {field.name: field.node for field in decoder.layout.record.fields}
    columns = {name: PlainValues(nodes[name], [row[name] for row in rows]) for name in names}
    return {name: column_of(nodes[name], column).to_pylist() for name, column in columns.items()}


def by_kernel(decoder: ProtobufDecoder, payloads: list[bytes], names: list[str]) -> dict[str, list[Any]]:
    reader = ProtoColumns(decoder._descriptor, decoder.layout)
    columns = reader.read(decoder.layout.project(names), piece_of(payloads))
    assert isinstance(columns, list), "irregular"
    visible = [field.name for field in decoder.layout.project(names).record.visible()]
    return {name: column.to_pylist() for name, column in zip(visible, columns, strict=True)}


@pytest.mark.parametrize("seed", range(examples(400)))
def test_columns_of_random_types_are_those_of_the_library(seed: int) -> None:
    rng = random.Random(seed)
    descriptor = random_type(rng)
    decoder = ProtobufDecoder(descriptor)
    cls = message_factory.GetMessageClass(descriptor)
    payloads = []
    for _ in range(rng.choice((0, 1, 20))):
        message = cls()
        fill(rng, message)
        payloads.append(message.SerializeToString())
    names = [field.name for field in descriptor.fields]
    every = by_kernel(decoder, payloads, names)
    assert repr(every) == repr(by_library(decoder, payloads, names))
    some = rng.sample(names, rng.randint(1, len(names)))
    assert repr(by_kernel(decoder, payloads, some)) == repr(
        {name: every[name] for name in names if name in some}
    )
    if payloads:
        assert_tables_are_equal(decoder, payloads)


def assert_tables_are_equal(decoder: ProtobufDecoder, payloads: list[bytes]) -> None:
    """Compare Arrow arrays, whole and of fields inside of messages."""
    pa = pytest.importorskip("pyarrow")
    from logreel.layout.arrow import select_decoded
    from logreel.layout.nodes import paths
    from logreel.layout.projection import Projection

    piece, rows = piece_of(payloads), np.arange(len(payloads))
    for fields in (None, paths(decoder.layout.record)):
        projection = Projection(decoder.layout, fields)
        ours = decoder.decode_batch(None, projection.part, piece, rows)
        assert not any(isinstance(column, PlainValues) for column in ours.arrays)
        theirs = decoder._decode_by_library(projection.part, piece)
        for got, due in zip(
            select_decoded(projection, ours, True).arrays,
            select_decoded(projection, theirs, True).arrays,
            strict=True,
        ):
            got.validate(full=True)
            assert got.type == due.type
            assert pa.Array.equals(got, due) or repr(got.to_pylist()) == repr(due.to_pylist())


@pytest.mark.parametrize("seed", range(examples(200)))
def test_what_the_kernel_accepts_of_damaged_messages_is_what_the_library_reads(seed: int) -> None:
    """Bytes changed, cut, doubled, exchanged; each message alone, directly before a protected page."""
    rng = random.Random(seed)
    descriptor = random_type(rng, rng.choice(("proto3", "proto3", "proto2")))
    decoder = ProtobufDecoder(descriptor)
    try:
        reader = ProtoColumns(descriptor, decoder.layout)
    except LibraryOnly:
        return
    cls, names = message_factory.GetMessageClass(descriptor), [field.name for field in descriptor.fields]
    accepted = 0
    for _ in range(40):
        message = cls()
        fill(rng, message)
        data = bytearray(message.SerializeToString())
        for _ in range(rng.choice((0, 1, 1, 2))):
            at = rng.randrange(len(data) + 1)
            what = rng.randrange(5)
            if what == 0 and at < len(data):
                data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
            elif what == 1:
                del data[at:]
            elif what == 2:
                # Messages one after another are merged.
                data += data[: rng.choice((at, len(data)))]
            elif what == 3:
                data[at:at] = rng.randbytes(rng.randint(1, 3))
            else:
                other = cls()
                fill(rng, other)
                data += other.SerializeToString()
        payload = bytes(data)
        columns = reader.read(decoder.layout, piece_of([payload], guard=True))
        if isinstance(columns, np.ndarray):
            assert columns.tolist() == [True]
            continue
        accepted += 1
        due = by_library(decoder, [payload], names)
        got = {name: column.to_pylist() for name, column in zip(names, columns, strict=True)}
        assert repr(got) == repr(due), payload
    assert accepted


def test_damaged_messages_among_others_are_told_and_the_others_read() -> None:
    descriptor = timestamped()
    decoder = ProtobufDecoder(descriptor)
    good = message_factory.GetMessageClass(descriptor)(name="a", stamp={"seconds": 5}).SerializeToString()
    piece = piece_of([good, good[:-1], good, b"\x0a\x01\xff", good])
    got = decoder.decode_batch(None, decoder.layout, piece, np.arange(5))
    assert [row for row, _ in got.bad] == [1, 3]
    assert got.kept is not None
    assert got.kept.tolist() == [0, 2, 4]
    assert [column.to_pylist() for column in got.arrays] == [["a"] * 3, [5 * 10**9] * 3]


def test_messages_that_are_merged_are_read_by_the_library() -> None:
    descriptor = timestamped()
    decoder = ProtobufDecoder(descriptor)
    cls = message_factory.GetMessageClass(descriptor)
    parts = [cls(stamp={"seconds": 5}), cls(stamp={"nanos": 7}), cls(name="a")]
    payloads = [b"".join(part.SerializeToString() for part in parts), parts[0].SerializeToString()]
    got = decoder.decode_batch(None, decoder.layout, piece_of(payloads), np.arange(2))
    assert all(isinstance(column, PlainValues) for column in got.arrays)
    assert [column.values for column in got.arrays] == [["a", ""], [5 * 10**9 + 7, 5 * 10**9]]


def test_bytes_that_change_between_both_passes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = timestamped()
    decoder = ProtobufDecoder(descriptor)
    good = message_factory.GetMessageClass(descriptor)(name="abc").SerializeToString()
    data = np.frombuffer(good * 50, np.uint8).copy()
    starts, sizes = np.arange(50) * len(good), np.full(50, len(good))
    own = kernel.fill

    for change in (lambda: data.fill(0), lambda: data.__setitem__(slice(1, None, len(good)), 1)):
        data[:] = np.frombuffer(good * 50, np.uint8)

        def fill_changed(*args: Any, change: Any = change) -> bool:
            change()
            return own(*args)

        monkeypatch.setattr(kernel, "fill", fill_changed)
        with pytest.raises(FileChangedError):
            decoder.decode_batch(None, decoder.layout, PayloadRange(data, starts, sizes), np.arange(50))


@pytest.mark.parametrize("columns", [[], [np.zeros(1, np.uint8)] * 5])
def test_columns_that_are_too_small_are_not_written(columns: list[Any]) -> None:
    descriptor = timestamped()
    reader = ProtoColumns(descriptor, ProtoLayout(descriptor).layout)
    piece = piece_of(
        [message_factory.GetMessageClass(descriptor)(name="abc").SerializeToString()] * 3, guard=True
    )
    counts, marks = np.zeros(len(reader._ends), np.int64), np.zeros(reader._marks + 1, np.int64)
    assert not kernel.fill(piece.data, piece.offset, piece.size, *reader._tables, counts, marks, columns)


def test_messages_beyond_the_bytes_are_irregular() -> None:
    descriptor = timestamped()
    reader = ProtoColumns(descriptor, ProtoLayout(descriptor).layout)
    for start, size in ((0, 1), (-1, 0), (1 << 62, 1 << 62), (0, -1)):
        piece = PayloadRange(guarded(b""), np.array([start]), np.array([size]))
        assert reader.read(ProtoLayout(descriptor).layout, piece).tolist() == [True]


def timestamped() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Named")
    message.field.add(name="name", number=1, label=1, type=FIELD.TYPE_STRING)
    message.field.add(name="stamp", number=2, label=1, type=FIELD.TYPE_MESSAGE, type_name=TIMES[0])
    return pool_of(file).FindMessageTypeByName("t.Named")


def test_the_library_rejects_what_it_is_asked_about() -> None:
    # Otherwise the comparison with damaged messages would compare nothing.
    with pytest.raises(DecodeError):
        message_factory.GetMessageClass(timestamped()).FromString(b"\x0a\x05a")
