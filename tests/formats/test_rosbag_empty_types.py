"""Arrays of a type without fields: lists of empty structs in all outputs, and written again."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest

import logreel
from logreel.schemas import ros1msg
from support.samples.rosbag.builder import START, Builder, version_2_0
from support.samples.rosbag.old import Topic

RULE = "\n" + "=" * 80 + "\n"
TEXT = f"Empty[] e\nEmpty[2] pair\nEmpty one\nint32 n\nInner[] inner\n{RULE}MSG: pkg/Empty\n# nothing\n{RULE}"
TEXT += "MSG: pkg/Inner\nEmpty[] e\nint32 x\n"
KIND = "pkg/Holder"
PAYLOAD = struct.pack("<IiIIi", 3, 7, 1, 2, 5)
DECODED = {"e": [{}, {}, {}], "pair": [{}, {}], "one": {}, "n": 7, "inner": [{"e": [{}, {}], "x": 5}]}


def _bag(*payloads: bytes) -> bytes:
    topic = Topic("/holder", KIND, ros1msg.parse(TEXT, KIND).md5, TEXT)
    return version_2_0([(topic, START + i, data) for i, data in enumerate(payloads)], Builder())


def test_arrays_of_a_type_without_fields_are_lists_of_empty_structs() -> None:
    log = logreel.open(_bag(PAYLOAD, PAYLOAD))
    assert next(log.messages()).decode() == DECODED
    rows = log["/holder"].to_arrow().drop_columns("time").to_pylist()
    assert rows == [DECODED, DECODED]
    assert not log.problems


def test_empty_structs_are_written_by_every_table_format(tmp_path: Path) -> None:
    log = logreel.open(_bag(PAYLOAD))
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    frame = log["/holder"].to_pandas()
    assert [len(frame["e"][0]), frame["n"][0]] == [3, 7]
    frame = log["/holder"].to_polars()
    assert frame["e"].list.len().to_list() == [3]
    assert log["/holder"]["n"].tolist() == [7]
    logreel.convert(log, tmp_path / "x.ndjson")
    assert json.loads((tmp_path / "x.ndjson").read_text())["data"] == DECODED


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_tables_with_empty_structs_become_messages(suffix: str, tmp_path: Path) -> None:
    log = logreel.open(_bag(PAYLOAD, PAYLOAD))
    done = logreel.convert(log, tmp_path / f"x{suffix}", topics="/holder")
    assert done.rows == 2


@pytest.mark.parametrize("name", ["x.bag", "x.mcap"])
def test_record_writes_empty_structs(name: str, tmp_path: Path) -> None:
    log = logreel.open(_bag(PAYLOAD))
    line = json.dumps({"topic": "/holder", "time_ns": START, "data": DECODED})
    logreel.record(io.BytesIO(line.encode()), tmp_path / name, like=log)
    with logreel.open(tmp_path / name) as found:
        assert [bytes(m.data) for m in found.messages()] == [PAYLOAD]
    # Without a definition the type is inferred, and holds them, too.
    logreel.record(io.BytesIO(line.encode()), tmp_path / f"new-{name}")
    with logreel.open(tmp_path / f"new-{name}") as found:
        assert next(found.messages()).decode() == DECODED


def test_table_of_empty_structs_becomes_messages(tmp_path: Path) -> None:
    log = logreel.open(_bag(PAYLOAD, PAYLOAD))
    with logreel.create(tmp_path / "x.bag") as w:
        ch = w.add_channel("/holder", log["/holder"].schema)
        w.write_table(ch, log["/holder"].to_arrow())
    assert [bytes(m.data) for m in logreel.open(tmp_path / "x.bag").messages()] == [PAYLOAD, PAYLOAD]


def test_too_large_count_of_empty_items_is_a_problem() -> None:
    wild = struct.pack("<IiI", 2**32 - 1, 7, 0)
    log = logreel.open(_bag(PAYLOAD, wild))
    assert log["/holder"].to_arrow()["e"].is_null().to_pylist() == [False, True]
    assert ["items without bytes" in p.text for p in log.problems] == [True]
    assert "payload" in {f.code for f in logreel.check(_bag(PAYLOAD, wild)).findings}
