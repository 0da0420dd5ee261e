"""Series of JSON with a JSON Schema: messages recorded without types are read back as columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Rest, Scalar, Sequence, String, Struct, Time
from logreel.ops.record import Recorded, record
from logreel.schemas.jsonschema import JsonDecoder, json_bytes, json_schema

SECOND = 10**9


def recorded(path: Path, *rows: dict[str, Any]) -> Recorded:
    lines = [json.dumps({"topic": "t", "time_ns": n * SECOND, "data": row}) for n, row in enumerate(rows)]
    return record(lines, path)


def test_inferred_fields_are_read_back_as_columns(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"n": 1, "big": 1 << 63, "x": 0.5, "ok": True, "s": "é\n", "in": {"a": [1, 2], "b": [[1.5], []]}},
        {"n": -1, "big": 7, "x": "NaN", "ok": False, "s": "", "in": {"a": [], "b": [{"no": 1}]}},
        {"n": -2, "big": 8, "x": "-Infinity", "ok": False, "s": "x", "in": {"a": [3], "b": []}},
    ]
    done = recorded(tmp_path / "a.bddf", *rows)
    # A list with another type than in the other messages is reported and not converted.
    assert (done.broken, done.messages) == (1, 2)
    log = logreel.open(done.path)
    ch = log["t"]
    assert ch["n"].tolist() == [1, -2]
    assert (ch["big"].dtype, ch["big"].tolist()) == ("uint64", [1 << 63, 8])
    assert ch["x"].tolist() == [0.5, -math.inf]
    assert ch["ok"].tolist() == [True, False]
    table = ch.to_arrow()
    assert table["s"].to_pylist() == ["é\n", "x"]
    assert table["in"].to_pylist() == [{"a": [1, 2], "b": [[1.5], []]}, {"a": [3], "b": []}]
    assert [json.loads(bytes(m.data))["s"] for m in log.messages()] == ["é\n", "x"]
    assert not log.problems
    assert log.verify() == ()


def test_recording_a_read_log_gives_the_same_log(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a.bddf", {"x": 1, "s": "a"}, {"x": 2, "s": "b"})
    log = logreel.open(first.path)
    again = record(
        [json.dumps({"topic": "t", "time_ns": m.time, "data": m.decode()}) for m in log.messages()],
        tmp_path / "b.bddf",
        like=log,
    )
    assert Path(again.path).read_bytes() == Path(first.path).read_bytes()


def test_slice_keeps_json_schema(tmp_path: Path) -> None:
    done = recorded(tmp_path / "a.bddf", *({"x": n} for n in range(9)))
    logreel.slice(done.path, tmp_path / "b.bddf", start=4 * SECOND)
    logreel.sort(tmp_path / "b.bddf", tmp_path / "c.bddf")
    assert logreel.open(tmp_path / "c.bddf")["t"]["x"].tolist() == [4, 5, 6, 7, 8]


def test_messages_without_fields_are_read_back(tmp_path: Path) -> None:
    done = recorded(tmp_path / "a.bddf", {}, {})
    assert [bytes(m.data) for m in logreel.open(done.path).messages()] == [b"{}", b"{}"]


def test_records_with_one_number_become_pods(tmp_path: Path) -> None:
    done = recorded(
        tmp_path / "a.bddf", {"records": [{"value": 1.5}, {"value": 2}]}, {"records": [{"value": 3}]}
    )
    ch = logreel.open(done.path)["t"]
    assert (ch.schema.name, ch["value"].tolist()) == ("float64", [1.5, 2.0, 3.0])
    other = recorded(tmp_path / "b.bddf", {"records": [{"value": 1.5, "sample": 7}]})
    assert next(logreel.open(other.path).messages()).decode() == {"records": [{"value": 1.5, "sample": 7}]}


@pytest.mark.parametrize("schema", ["{", "[1]", '{"type": "object"}', '{"$ref": "#/x"}'])
def test_schema_without_fields_shows_messages_as_text(schema: str, tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        metadata = {"annotations": {"logreel:json_schema": schema}}
        w.write(w.add_channel("t", logreel.Schema("", "application/json"), metadata), 0, b'{"x":1}')
    log = logreel.open(path)
    assert log["t"].to_arrow()["text"].to_pylist() == ['{"x":1}']
    assert [p.code for p in log.problems] == (["definition"] if schema == "{" else [])


def test_payloads_that_are_not_objects_are_null_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    layout = Layout(Struct((Field("x", Scalar("int64")),)))
    with logreel.create(path) as w:
        number = w.add_channel("t", layout)
        for n, data in enumerate((b'{"x":1}', b"[2]", b'{"x":', b'{"x":4}')):
            w.write(number, n, data)
    log = logreel.open(path)
    assert log["t"]["x"].tolist() == [1, None, None, 4]
    assert log.problems


def test_every_layout_node_has_a_json_schema() -> None:
    pair = Struct((Field("u", Scalar("uint64")), Field("f", Scalar("float32"))))
    nodes = [
        *(Scalar("bool"), Scalar("uint8"), Time(), String(), Bytes(), Rest(text=True)),
        *(FixedArray(Scalar("char"), 8), FixedArray(pair, 2), Sequence(Scalar("uint8")), Sequence(pair)),
    ]
    layout = Layout(Struct(tuple(Field(f"f{i}", node) for i, node in enumerate(nodes))))
    read = JsonDecoder(json_schema(layout)).layout
    assert [f.name for f in read.record.visible()] == [f"f{i}" for i in range(len(nodes))]
    texts = [i for i, f in enumerate(read.record.visible()) if isinstance(f.node, String)]
    assert texts == [3, 4, 5, 6, 8]
    many = json.loads(json_schema(Layout(Sequence(pair))))
    assert many["properties"]["records"]["items"]["properties"]["u"]["maximum"] == (1 << 64) - 1
    assert (
        json_bytes({"x": math.nan, "y": [math.inf, -math.inf]}) == b'{"x":"NaN","y":["Infinity","-Infinity"]}'
    )
