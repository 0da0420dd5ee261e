"""Nodes, limits, leaves and field paths."""

from __future__ import annotations

import time

import pytest

from logreel.errors import DefinitionError, NotFoundError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    Field,
    FixedArray,
    Leaf,
    Padding,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
    measure,
)

F32, F64, U8 = Scalar("float32"), Scalar("float64"), Scalar("uint8")


def struct(**fields) -> Struct:
    return Struct(tuple(Field(name, node) for name, node in fields.items()))


ESC = Struct((Field("rpm", Scalar("int32")), Field("", Padding(1)), Field("load", FixedArray(U8, 3))))
STATUS = Layout(
    struct(
        t=Scalar("uint64"), q=FixedArray(F32, 4), esc=FixedArray(ESC, 2), name=FixedArray(Scalar("char"), 5)
    )
)
POSE = struct(position=struct(x=F64, y=F64), covariance=FixedArray(FixedArray(F64, 2), 2))
ODOM = Layout(struct(stamp=Time(), frame=String(), pose=POSE, points=Sequence(struct(x=F32, y=F32))))


def test_leaves_have_the_offsets_of_their_columns():
    t, q, rpm, load, name = STATUS.leaves
    assert t == Leaf(("t",), "uint64", (0,))
    assert q == Leaf(("q",), "float32", (8,), 4, (4,))
    assert rpm == Leaf(("esc", "rpm"), "int32", (24, 32), 1, (2,))
    assert load == Leaf(("esc", "load"), "uint8", (29, 37), 3, (2, 3))
    assert name == Leaf(("name",), "char", (40,), 5, (5,))
    assert STATUS.size == 45


def test_adjacent_runs_are_merged():
    (leaf,) = Layout(struct(m=FixedArray(FixedArray(F32, 3), 4))).leaves
    assert leaf == Leaf(("m",), "float32", (0,), 12, (4, 3))


@pytest.mark.parametrize(
    ("path", "leaf"),
    [
        ("t", Leaf(("t",), "uint64", (0,))),
        ("q[2]", Leaf(("q",), "float32", (16,))),
        ("esc.rpm", Leaf(("esc", "rpm"), "int32", (24, 32), 1, (2,))),
        ("esc[1].rpm", Leaf(("esc", "rpm"), "int32", (32,))),
        ("esc.load[2]", Leaf(("esc", "load"), "uint8", (31, 39), 1, (2,))),
        ("esc[1].load[2]", Leaf(("esc", "load"), "uint8", (39,))),
        ("name[4]", Leaf(("name",), "int8", (44,))),
    ],
)
def test_find_returns_the_leaf_of_a_path(path, leaf):
    assert STATUS.find(path) == leaf


@pytest.mark.parametrize(
    "path", ["nope", "q[4]", "q.x", "t[0]", "esc.rpmm", "esc[2].rpm", "q[", "", "q[0][0]"]
)
def test_wrong_path_raises_key_error(path):
    with pytest.raises(NotFoundError) as error:
        STATUS.find(path)
    assert isinstance(error.value, KeyError)


def test_wrong_path_names_the_nearest_paths():
    with pytest.raises(NotFoundError, match=r"esc\.rpm"):
        STATUS.find("esc.rpmm")
    with pytest.raises(NotFoundError, match=r"q\[3\]"):
        STATUS.find("q[9]")


def test_path_of_a_struct_names_its_leaves_in_the_error():
    with pytest.raises(UsageError, match=r"esc\.rpm, esc\.load"):
        STATUS.find("esc")


def test_leaf_before_variable_data_is_found():
    assert ODOM.find("stamp") == Leaf(("stamp",), "time", (0,))
    for path in ("frame", "pose.position.x", "points.x", "points[0].x"):
        with pytest.raises(DefinitionError):
            ODOM.find(path)


def test_paths_list_every_leaf():
    assert STATUS.paths() == ["t", "q", "esc.rpm", "esc.load", "name"]
    assert ODOM.paths() == [
        "stamp",
        "frame",
        "pose.position.x",
        "pose.position.y",
        "pose.covariance",
        "points.x",
        "points.y",
    ]


def test_projection_keeps_the_size():
    part = STATUS.project(["esc.load", "t"])
    assert part.size == STATUS.size
    assert part.paths() == ["t", "esc.load"]
    assert part.leaves == (STATUS.find("t"), STATUS.find("esc.load"))
    assert STATUS.project(["esc.load", "esc"]).paths() == ["esc.rpm", "esc.load"]
    assert ODOM.project(["points.y", "pose.position"]).paths() == [
        "pose.position.x",
        "pose.position.y",
        "points.y",
    ]


def test_shared_parts_are_measured_in_linear_time():
    began = time.perf_counter()
    for leaf, text in ((U8, "bytes"), (String(), "bytes"), (FixedArray(U8, 0), "leaves")):
        node = struct(x=leaf)
        for _ in range(60):
            node = struct(x=node, y=node)
        with pytest.raises(DefinitionError, match=text):
            Layout(node)
    assert measure(node).nodes > 2**60
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    "node",
    [
        FixedArray(struct(), 10**12),
        FixedArray(U8, -1),
        FixedArray(U8, 10**12),
        FixedArray(FixedArray(U8, 10**6), 10**6),
        Padding(-1),
        Sequence(Rest()),
        Sequence(struct(a=Rest())),
        Sequence(Padding(1)),
        String(3),
    ],
)
def test_undecodable_nodes_are_refused(node):
    with pytest.raises(DefinitionError):
        Layout(struct(a=node))


def test_deep_nesting_is_refused():
    node = U8
    for _ in range(5000):
        node = struct(a=node)
    with pytest.raises(DefinitionError, match="deep"):
        Layout(node)
    node = U8
    for _ in range(60):
        node = struct(a=node)
    assert Layout(node).paths() == [".".join("a" * 60)]


def test_layout_of_too_many_runs_has_no_leaves():
    big = Layout(struct(a=FixedArray(struct(x=U8, y=U8), 60_000)))
    assert big.size == 120_000
    with pytest.raises(DefinitionError):
        _ = big.leaves
    with pytest.raises(NotFoundError):
        big.find("a.x[3]")
    assert len(big.find("a.x").runs) == 60_000
    assert big.find("a[3].y").runs == (7,)
