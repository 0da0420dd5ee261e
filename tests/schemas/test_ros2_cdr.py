"""ROS 2 messages in CDR compared with the rosbags library: all its types, with random content."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from logreel.errors import DamagedError, DefinitionError
from logreel.layout import nodes
from logreel.layout.arrow import decode_variable
from logreel.layout.encode import encode_message, encode_table
from logreel.layout.projection import Projection
from logreel.schemas import ros2msg

STORE = get_typestore(Stores.ROS2_FOXY)
#: Moments are numbers inside of messages only.
TYPES = sorted(
    name
    for name in STORE.fielddefs
    if "wstring" not in str(STORE.fielddefs[name]) and not name.startswith("builtin_interfaces")
)
#: What rosbags calls the byte of a type without fields.
DUMMY = "structure_needs_at_least_one_member"
MIXED = "pkg/msg/Mixed"
MIXED_TEXT = """# every way in which things can be aligned
uint8 a
float64 b
string<=20 c "a # default"
bool[3] d
int16[] e
float64[<=5] f
Pair[] g
uint8 h
Pair[2] i
string[2] j
string[] k
Triple[] l
int8 LIMIT = 3
string NAME="x=y"
char m 7
Late[] n
uint64[2] o
byte[] p
Empty q
Late r
"""
PARTS = {
    "pkg/msg/Pair": "uint8 a\nfloat64 b\n",
    "pkg/msg/Triple": "uint8 a\nuint8 b\nuint8 c\n",
    "pkg/msg/Late": "uint32 a\nuint32 b\nfloat64 c\nstring d\n",
    "pkg/msg/Empty": "",
}


def text_of(name: str) -> str:
    if name != MIXED:
        return str(STORE.generate_msgdef(name, ros_version=2)[0])
    rule = "=" * 80
    return MIXED_TEXT + "".join(
        f"{rule}\nMSG: {part.replace('/msg', '')}\n{text}" for part, text in PARTS.items()
    )


def register() -> None:
    found: dict[str, Any] = {}
    for name, text in {MIXED: MIXED_TEXT, **PARTS}.items():
        found.update(get_types_from_msg(text, name))
    STORE.register(found)


register()


def value(kind: Any, rng: random.Random) -> Any:
    """Return random content, and the same as plain data."""
    node, inside = kind
    if node == Nodetype.NAME:
        return message(inside, rng)
    if node == Nodetype.BASE:
        return scalar(inside[0], rng)
    item, count = inside
    many = count if node == Nodetype.ARRAY else rng.randrange(4 if not count else min(count, 4))
    found = [value(item, rng) for _ in range(many)]
    if item[0] == Nodetype.BASE and item[1][0] != "string":
        kinds = {"byte": "uint8", "char": "uint8", "octet": "uint8"}
        return np.array(found, kinds.get(item[1][0], item[1][0]))
    return found


def scalar(kind: str, rng: random.Random) -> Any:
    if kind == "string":
        return rng.choice(("", "x", "seven__", "ärger", "more text"))
    if kind == "bool":
        return rng.random() < 0.5
    if kind.startswith("float"):
        return float(np.float32(rng.uniform(-9, 9)))
    return rng.randrange(100)


def message(name: str, rng: random.Random) -> Any:
    fields = {field: value(kind, rng) for field, kind in STORE.fielddefs[name][1]}
    if DUMMY in fields:
        fields[DUMMY] = 0
    return STORE.types[name](**fields)


def plain(name: str, one: Any) -> Any:
    if name in ("builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration"):
        return one.sec * 10**9 + one.nanosec
    found = {}
    for field, kind in STORE.fielddefs[name][1]:
        if field != DUMMY:
            found[field] = _plain(kind, getattr(one, field))
    return found


def _plain(kind: Any, one: Any) -> Any:
    node, inside = kind
    if node == Nodetype.NAME:
        return plain(inside, one)
    if node == Nodetype.BASE:
        return one
    item = inside[0]
    if item[0] == Nodetype.BASE and item[1][0] != "string":
        small = item[1][0] in ("uint8", "byte", "char", "octet") and node == Nodetype.SEQUENCE
        return one.tobytes() if small else one.tolist()
    return [_plain(item, v) for v in one]


@pytest.mark.parametrize("name", [*TYPES, MIXED])
def test_messages_are_read_and_written_as_rosbags_does(name: str) -> None:
    rng = random.Random(name)
    layout = ros2msg.layout(name, text_of(name))
    ones = [message(name, rng) for _ in range(6)]
    raw = [bytes(STORE.serialize_cdr(one, name)) for one in ones]
    due = [plain(name, one) for one in ones]
    read = layout.decoder()
    assert [read(memoryview(data)) for data in raw] == due
    assert [encode_message(layout, fields) for fields in due] == raw
    start = np.cumsum([0, *map(len, raw)])
    got = decode_variable(layout, np.frombuffer(b"".join(raw), np.uint8), start[:-1], start[1:])
    assert not got.bad
    assert not len(got.leftover)
    names = [f.name for f in layout.record.visible()]
    table = pa.table(dict(zip(names, got.arrays, strict=True)))
    if names:
        data, places = encode_table(layout, table)
        assert data.tobytes() == b"".join(raw)
        assert places.tolist() == start.tolist()
    for path in layout.paths()[-2:]:
        some = decode_variable(
            Projection(layout, [path]), np.frombuffer(b"".join(raw), np.uint8), start[:-1], start[1:]
        )
        assert not some.bad


def test_payloads_that_do_not_fit_are_skipped() -> None:
    layout = ros2msg.layout("a/msg/B", "uint8 x\nfloat64 y\n")
    sound = b"\0\1\0\0" + b"\5" + bytes(7) + bytes(8)
    read = layout.decoder()
    assert read(memoryview(sound)) == {"x": 5, "y": 0.0}
    for bad, why in (
        (b"\0\0" + sound[2:], "expected bytes 00 01, found 00 00"),
        (sound[:-1], "ends too early"),
    ):
        with pytest.raises(DamagedError, match=why):
            read(memoryview(bad))
    raw = np.frombuffer(sound + b"\0\0" + sound[2:] + sound[:9], np.uint8)
    start, stop = np.array([0, 20, 40]), np.array([20, 40, 49])
    got = decode_variable(layout, raw, start, stop)
    assert [row for row, _ in got.bad] == [1, 2]
    assert got.arrays[0].to_pylist() == [5]


def test_gaps_known_from_the_definition_are_padding() -> None:
    def parts(text: str) -> list[type]:
        return [type(f.node) for f in ros2msg.layout("a/B", text).record.fields[2:]]

    assert parts("uint8 a\nfloat64 b\n") == [nodes.Scalar, nodes.Padding, nodes.Scalar]
    assert parts("string a\nfloat64 b\nfloat64 c\n") == [
        nodes.String,
        nodes.Align,
        nodes.Scalar,
        nodes.Scalar,
    ]
    points = "Point[] p\n" + "=" * 80 + "\nMSG: a/Point\nfloat64 x\nfloat64 y\n"
    (field,) = ros2msg.layout("a/B", points).record.visible()
    assert isinstance(field.node, nodes.Sequence)
    assert nodes.size_of(field.node.item) == 16
    assert field.node.grid == nodes.Grid(8, 4)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("wstring a\n", "wide text"),
        ("nobody/Knows a\n", "nobody/Knows is missing"),
        ("B a\n", "contains itself"),
        ("float64\n", "line 1: expected a type and a name"),
        ("int32<=3 a\n", "line 1"),
        ("int32 a\nint32 a\n", "two fields"),
        ("x" * (1 << 23), "characters"),
        ("uint8[99999999999] a\n", "line 1"),
        ("uint8[9999999999] a\n", "bytes"),
    ],
)
def test_invalid_definitions_are_refused(text: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        ros2msg.layout("a/B", text)


def test_types_that_share_parts_take_no_time() -> None:
    rule = "=" * 80
    text = "T0 a\nT0 b\n" + "".join(f"{rule}\nMSG: a/T{n}\nT{n + 1} x\nT{n + 1} y\n" for n in range(40))
    with pytest.raises(DefinitionError):
        ros2msg.layout("a/B", text + f"{rule}\nMSG: a/T40\nuint8 x\nstring y\n")


def test_invalid_grids_are_refused() -> None:
    for node in (
        nodes.Align(nodes.Grid(3)),
        nodes.Align(nodes.Grid(8, -1)),
        nodes.Expect(bytes(9)),
        nodes.String(4, nodes.Grid(0)),
    ):
        with pytest.raises(DefinitionError):
            nodes.measure(node)
