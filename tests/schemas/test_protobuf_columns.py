"""Columns encoded as protobuf messages, compared byte by byte with the protobuf library."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from google.protobuf import message_factory

from logreel.schemas.protobuf.encoder import Many, encode, same, texts
from logreel.schemas.protobuf.layouts import fill
from logreel.schemas.protobuf.types import Enum, ProtoField, ProtoMessage, Types, descriptor_set

COLOUR = Enum("t.All.Colour", ("NONE", "RED", "GREEN"))
INNER = ProtoMessage("t.All.Inner", (ProtoField("x", 1, "double"), ProtoField("words", 2, "string", True)))
FAR = ProtoMessage(
    "t.Far", (ProtoField("n", 3, "int32"), ProtoField("inner", 4, ProtoMessage("t.Far.Inner", INNER.fields)))
)
FIELDS: tuple[ProtoField, ...] = (
    ProtoField("d", 1, "double"),
    ProtoField("f", 2, "float"),
    ProtoField("i32", 3, "int32"),
    ProtoField("i64", 4, "int64"),
    ProtoField("u32", 5, "uint32"),
    ProtoField("u64", 6, "uint64"),
    ProtoField("fixed", 7, "fixed32"),
    ProtoField("flag", 8, "bool"),
    ProtoField("word", 9, "string"),
    ProtoField("raw", 10, "bytes"),
    ProtoField("colour", 11, COLOUR),
    ProtoField("inner", 12, INNER),
    ProtoField("stamp", 13, "time"),
    ProtoField("lasting", 14, "duration"),
    ProtoField("ds", 15, "double", True),
    ProtoField("fs", 16, "float", True),
    ProtoField("ints", 17, "int64", True),
    ProtoField("small", 18, "uint32", True),
    ProtoField("flags", 19, "bool", True),
    ProtoField("words", 20, "string", True),
    ProtoField("stamps", 21, "time", True),
    ProtoField("inners", 2047, INNER, True),
    ProtoField("far", 300_000, FAR),
)
ALL = ProtoMessage("t.All", FIELDS)
EDGES = {
    "i32": (-(1 << 31), -1, 0, 1, 127, 128, (1 << 31) - 1),
    "i64": (-(1 << 63), -1, 0, 1, 1 << 35, (1 << 63) - 1),
    "u32": (0, 1, 127, 128, (1 << 32) - 1),
    "u64": (0, 1, 1 << 63, (1 << 64) - 1),
    "time": (0, 1, -1, 10**9, -(10**9), 1_700_000_000_123_456_789, -1_500_000_001, (1 << 62)),
    "size": (0, 1, 2, 127, 128, 300),
}


def plain(rng: random.Random, message: ProtoMessage = ALL) -> dict[str, Any]:
    """Return random values of a message, many of them zero, empty or extreme."""

    def word() -> str:
        return "ä" * (rng.choice(EDGES["size"]) // 2)

    def inner() -> dict[str, Any]:
        return {"x": rng.choice([0.0, 1.5, -2.0]), "words": [word() for _ in range(rng.randrange(3))]}

    def some(make: Any) -> list[Any]:
        return [make() for _ in range(rng.choice([0, 0, 1, 3, 20]))]

    def pick(name: str) -> Any:
        return rng.choice(EDGES[name])

    return {
        "d": rng.choice([0.0, 1.25, -3.0, float("inf")]),
        "f": rng.choice([0.0, 0.5, -1.0]),
        "i32": pick("i32"),
        "i64": pick("i64"),
        "u32": pick("u32"),
        "u64": pick("u64"),
        "fixed": pick("u32"),
        "flag": rng.random() < 0.5,
        "word": word(),
        "raw": bytes(pick("size")),
        "colour": rng.randrange(3),
        "inner": inner(),
        "stamp": pick("time"),
        "lasting": pick("time"),
        "ds": some(rng.random),
        "fs": some(lambda: rng.choice([0.0, 0.25])),
        "ints": some(lambda: pick("i64")),
        "small": some(lambda: rng.randrange(256)),
        "flags": some(lambda: rng.random() < 0.5),
        "words": some(word),
        "stamps": some(lambda: pick("time")),
        "inners": some(inner),
        "far": {"n": pick("i32"), "inner": inner()},
    }


DTYPES = {
    "double": np.float64,
    "float": np.float32,
    "int32": np.int32,
    "int64": np.int64,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "fixed32": np.uint32,
    "bool": np.bool_,
    "time": np.int64,
    "duration": np.int64,
}


def many(rows: list[list[Any]], make: Any, rng: random.Random) -> Many:
    """Return rows of items as a column, whose offsets need not begin at 0."""
    before = rng.randrange(3)
    flat = [rows[0][0] if rows[0] else None] * before if rows and rows[0] else []
    offsets = np.cumsum([len(flat), *map(len, rows)]).astype(np.int64)
    return Many(offsets, make([*flat, *(one for row in rows for one in row)]))


def column(kind: Any, rows: list[Any], rng: random.Random) -> Any:
    if isinstance(kind, ProtoMessage):
        return columns(kind, rows, rng)
    if isinstance(kind, Enum):
        return np.array(rows, np.int8)
    if kind == "string":
        return texts(rows)
    if kind == "bytes":
        return many([list(row) for row in rows], lambda items: np.array(items, np.uint8), rng)
    return np.array(rows, DTYPES[kind])


def columns(message: ProtoMessage, rows: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in message.fields:
        values = [row[f.name] for row in rows]
        if f.repeated:
            found[f.name] = many(values, lambda items, kind=f.kind: column(kind, items, rng), rng)
        else:
            found[f.name] = column(f.kind, values, rng)
    return found


def library(message: ProtoMessage) -> Any:
    return message_factory.GetMessageClass(Types((), descriptor_set(message)).find(message.name))


def as_library(made: Any, row: dict[str, Any]) -> bytes:
    """Return a row encoded by the protobuf library; messages are written even if they are empty."""
    message = made()
    fill(message, {**row, "colour": str(row["colour"]), "stamps": [], "inners": []})
    for name in ("inner", "stamp", "lasting", "far"):
        getattr(message, name).SetInParent()
    message.far.inner.SetInParent()
    for time in row["stamps"]:
        one = message.stamps.add()
        one.seconds, one.nanos = divmod(time, 10**9)
    for inner in row["inners"]:
        message.inners.add(**inner)
    return bytes(message.SerializeToString(deterministic=True))


@pytest.mark.parametrize("seed", range(6))
def test_bytes_equal_those_of_the_protobuf_library(seed: int) -> None:
    rng = random.Random(seed)
    rows = [plain(rng) for _ in range(30)]
    data, start = encode(ALL, columns(ALL, rows, rng), len(rows))
    made = library(ALL)
    assert (len(start), start[0], start[-1]) == (31, 0, len(data))
    for row, lo, hi in zip(rows, start.tolist(), start.tolist()[1:], strict=False):
        assert data[lo:hi].tobytes() == as_library(made, row)


def test_a_field_alone_and_no_fields() -> None:
    data, start = encode(ALL, {"u32": np.array([0, 300], np.uint16)}, 2)
    assert (data.tobytes(), start.tolist()) == (b"\x28\xac\x02", [0, 0, 3])
    assert encode(ALL, {}, 3)[1].tolist() == [0, 0, 0, 0]
    assert encode(ALL, columns(ALL, [], random.Random(1)), 0)[1].tolist() == [0]
    assert encode(FAR, {"inner": {}, "n": np.array([-1], np.int8)}, 1)[0].tobytes()[:1] == b"\x18"
    data, _ = encode(ALL, {"word": same("ab", 2)}, 2)
    assert data.tobytes() == b"\x4a\x02ab" * 2


def test_numbers_of_every_width_keep_their_sign() -> None:
    made = library(ALL)
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32):
        values = np.array([np.iinfo(kind).min, 0, 5, np.iinfo(kind).max], kind)
        data, start = encode(ALL, {"i64": values, "ints": Many(np.arange(5), values)}, 4)
        for value, lo, hi in zip(values.tolist(), start.tolist(), start.tolist()[1:], strict=False):
            message = made.FromString(data[lo:hi].tobytes())
            assert (message.i64, list(message.ints)) == (value, [value])


def test_arrays_that_do_not_fit_are_refused() -> None:
    for values in (
        {"d": np.zeros(1)},
        {"i64": np.zeros(2)},
        {"word": Many(np.zeros(2, np.int64), np.zeros(0, np.uint8))},
        {"words": Many(np.zeros(3, np.int32), texts([]))},
        {"d": np.zeros((2, 2))},
    ):
        with pytest.raises(TypeError):
            encode(ALL, values, 2)
