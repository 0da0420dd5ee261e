"""Commands on bags of every version, and metadata of connections."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import logreel
from logreel.cli import main
from support.builders.bag_variants import SYNTHETIC
from support.samples.rosbag.builder import CHATTER, COUNT, START, Builder, tiny

VERSIONS = ["0", "1.0", "1.1", "1.2", "2.0"]
OTHERS = [
    "0 bare",
    "1.0 late",
    "1.1 star",
    "1.2 indexed",
    "2.0 bz2",
    "2.0 lz4",
    "2.0 connections",
    "2.0 empty",
    "2.0 star",
]
NAMES = [*VERSIONS, *OTHERS]


@pytest.fixture(params=NAMES)
def bag(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name = str(request.param)
    path = tmp_path / "a.bag"
    path.write_bytes(tiny(name) if name in VERSIONS else SYNTHETIC[name]())
    return path


def test_every_command_accepts_every_bag(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logreel.open(bag)
    assert main(["info", str(bag), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert (info["format"], info["messages"]) == ("rosbag", log.message_count)
    assert main(["cat", str(bag), "--format", "ndjson"]) in (0, 3)
    assert len(capsys.readouterr().out.splitlines()) <= log.message_count
    assert main(["stats", str(bag), "--json"]) == 0
    capsys.readouterr()
    for topic in log.channels:
        assert main(["schema", str(bag), topic]) == 0
        assert capsys.readouterr().out
    for suffix in (".parquet/", ".csv/", ".ndjson", ".arrow/"):
        assert main(["convert", str(bag), f"{bag.parent}/out{suffix}"]) in (0, 3), suffix
        assert (bag.parent / f"out{suffix}").exists() or not log.message_count
    capsys.readouterr()


@pytest.mark.parametrize("version", VERSIONS)
def test_converted_messages_are_those_of_the_bag(version: str, tmp_path: Path) -> None:
    path, out = tmp_path / "a.bag", tmp_path / "out.parquet"
    path.write_bytes(tiny(version))
    log = logreel.open(path)
    assert main(["convert", str(path), f"{out}/"]) == 0
    tables = [pq.read_table(f) for f in sorted(out.glob("*.parquet"))]
    assert sum(t.num_rows for t in tables) == log.message_count
    texts = [row for t in tables if "data" in t.column_names for row in t["data"].to_pylist()]
    assert set(texts) >= {"one", "", "three"}


def test_the_metadata_of_connections_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(SYNTHETIC["2.0 connections"]())
    assert main(["info", str(path), "--json"]) == 0
    channels = {c["topic"]: c for c in json.loads(capsys.readouterr().out)["channels"]}
    assert channels["/chatter"]["metadata"]["callerids"] == ["/a", "/b"]
    assert channels["/chatter"]["metadata"]["latching"] is True
    assert len(channels["/chatter"]["metadata"]["md5sum"]) == 32


def test_leftover_and_missing_bytes_are_reported_with_topic_and_row() -> None:
    out = Builder()
    count, chatter = out.connection(COUNT), out.connection(CHATTER)
    payloads = [struct.pack("<i", 1), struct.pack("<i", 2) + b"more", b"ab", struct.pack("<i", 4)]
    for k, payload in enumerate(payloads):
        out.message(count, START + k, payload)
    out.message(chatter, START, struct.pack("<I", 1 << 31) + b"short")
    log = logreel.open(out.bytes())
    assert log["/count"]["data"].tolist() == [1, 2, None, 4]
    assert log["/chatter"].to_arrow()["data"].to_pylist() == [None]
    problems = {p.code + p.text.partition(":")[0]: p for p in log.problems}
    assert sorted(problems) == ["leftover/count", "payload/chatter", "payload/count"]
    assert "number 1" in problems["leftover/count"].text
    assert "number 2" in problems["payload/count"].text
    assert problems["payload/count"].lost
    assert not problems["leftover/count"].lost


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
@pytest.mark.parametrize("finished", [True, False])
def test_one_field_of_many_chunks(compression: str, finished: bool) -> None:
    out = Builder(compression, chunk_bytes=300, finished=finished)
    count = out.connection(COUNT)
    for k in range(40):
        out.message(count, START + k, struct.pack("<i", k))
    log = logreel.open(out.bytes())
    assert len(out.chunks) > 5
    assert log["/count"]["data"].tolist() == list(range(40))
    assert log["/count"].to_arrow()["data"].to_pylist() == list(range(40))
