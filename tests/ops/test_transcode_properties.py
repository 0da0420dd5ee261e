"""Generated logs survive a conversion to another format and back; every difference is said."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Scalar, Sequence, String, Struct, Time
from support.harness.equal_tables import assert_restored

#: Nodes of fields that every definition of ROS, protobuf and Koblenz can have, with values that fit.
NUMBERS = {
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
    "uint64": (0, 2**64 - 1),
}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
FORMATS = (".bag", ".bddf", ".vel", ".ulg", ".mcap")
T0 = 1_700_000_000_000_000_000


def scalars() -> st.SearchStrategy[tuple[Node, st.SearchStrategy[Any]]]:
    whole = [(Scalar(name), st.integers(*limits)) for name, limits in NUMBERS.items()]
    floats = [(Scalar("float64"), st.floats(allow_nan=False)), (Scalar("float32"), st.floats(width=32))]
    return st.sampled_from([*whole, *floats, (Scalar("bool"), st.booleans())])


@st.composite
def nodes(draw: st.DrawFn, variable: bool, depth: int = 0) -> tuple[Node, st.SearchStrategy[Any]]:
    """Return a node and values of it; *variable*: of any size."""
    node, values = draw(scalars())
    kind = draw(st.sampled_from(["scalar", "array", "struct", *["text", "bytes", "list", "time"] * variable]))
    if kind == "scalar" or depth > 1:
        return node, values
    if kind == "text":
        return String(), TEXT
    if kind == "bytes":
        return Bytes(), st.binary(max_size=5)
    if kind == "time":
        return Time(), st.integers(0, 2**31 * 10**9)
    if kind == "struct":
        members = draw(st.lists(nodes(variable, depth + 1), min_size=1, max_size=2))
        fields = tuple(Field(f"m{n}", one) for n, (one, _) in enumerate(members))
        return Struct(fields), st.fixed_dictionaries({f"m{n}": some for n, (_, some) in enumerate(members)})
    if kind == "list" and node != Scalar("int8"):
        return Sequence(node), st.lists(values, max_size=3)
    count = draw(st.integers(1, 3))
    return FixedArray(node, count), st.lists(values, min_size=count, max_size=count)


@st.composite
def logs(draw: st.DrawFn, variable: bool) -> list[tuple[Layout, list[tuple[int, dict[str, Any]]]]]:
    """Return channels: a Layout, and times and fields of messages."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        members = draw(st.lists(nodes(variable), min_size=1, max_size=3))
        layout = Layout(Struct(tuple(Field(f"f{n}", one) for n, (one, _) in enumerate(members))), "T")
        row = st.fixed_dictionaries({f"f{n}": some for n, (_, some) in enumerate(members)})
        gaps = st.integers(0, 10**10)
        rows = draw(st.lists(st.tuples(gaps, row), min_size=1, max_size=4))
        times = itertools.accumulate(gap for gap, _ in rows)
        found.append((layout, list(zip(times, (fields for _, fields in rows), strict=True))))
    return found


def write(path: Path, log: list[tuple[Layout, list[tuple[int, dict[str, Any]]]]]) -> None:
    topics = {".vel": "Kind{}M", ".bag": "/topic{}"}
    with logreel.create(path) as out:
        if path.suffix == ".vel":
            from logreel.formats.koblenz.definitions import definition_of

            schemas: list[Any] = [
                logreel.Schema(f"Kind{n}M", "koblenz", definition_of(layout))
                for n, (layout, _) in enumerate(log)
            ]
        else:
            schemas = [layout for layout, _ in log]
        numbers = [
            out.add_channel(topics.get(path.suffix, "topic{}").format(n), one)
            for n, one in enumerate(schemas)
        ]
        for number, (_, rows) in zip(numbers, log, strict=True):
            for time, fields in rows:
                out.write(number, T0 + time // 1000 * 1000, fields)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(FORMATS, 2)))
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_logs_come_back(one: str, other: str, data: st.DataObject) -> None:
    log = data.draw(logs(one != ".ulg"))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"a{one}"), Path(folder, f"b{other}"), Path(folder, f"c{one}")]
        write(paths[0], log)
        there = logreel.convert(paths[0], paths[1], raw=other == ".mcap")
        back = logreel.convert(paths[1], paths[2])
        told = [*there.skipped, *there.notes, *back.skipped, *back.notes]
        assert_restored(paths[0], paths[2], told)
        counts = [sum(len(ch) for ch in logreel.open(path).channels.values()) for path in paths]
        assert counts == [np.sum([len(rows) for _, rows in log])] * 3
