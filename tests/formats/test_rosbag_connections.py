"""Bags with several connections per channel: each message keeps its connection in all operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from support.builders.bag_variants import SYNTHETIC
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import START, Builder, string
from support.samples.rosbag.old import Topic

#: What came by which connection: time, payload, and what the publisher said of itself.
Row = tuple[int, bytes, bytes, bytes]


def bag(callers: str, start: int = START, **options: Any) -> bytes:
    """Return a bag with alternating publishers of one topic; those with a capital letter latch."""
    out = Builder(chunk_bytes=300, **options)
    numbers = [
        out.connection(
            Topic(
                "/chatter",
                "std_msgs/String",
                more=(("callerid", one.lower().encode()), *([("latching", b"1")] if one.isupper() else [])),
            )
        )
        for one in callers
    ]
    other = out.connection(Topic("/other", "std_msgs/String", more=(("callerid", b"z"),)))
    for k in range(40):
        # Not all of them from the beginning, and not in turns that could be guessed.
        out.message(
            other if k % 7 == 6 else numbers[k * k % min(len(numbers), 1 + k)], start + k * 10, string(str(k))
        )
    return out.bytes()


def rows(data: bytes) -> list[Row]:
    """Return every message of a bag with uncompressed chunks by time, read record by record."""
    said: dict[bytes, tuple[bytes, bytes]] = {}
    found = []
    for r in bag_oracle.records(data, 13, len(data), bag_oracle.MESSAGE_2_0, [], chunks=True):
        if r.op == 7:
            inner = bag_oracle.fields_of(data, r.data, r.data + r.size)
            said[r.fields[b"conn"]] = inner.get(b"callerid", b""), inner.get(b"latching", b"")
        elif r.op == 2:
            sec, nsec = (int.from_bytes(r.fields[b"time"][i : i + 4], "little") for i in (0, 4))
            found.append((sec * 10**9 + nsec, data[r.data : r.data + r.size], r.fields[b"conn"]))
    return sorted((time, payload, *said[conn]) for time, payload, conn in found)


def read(log: logreel.Log) -> list[Row]:
    """Return the same, read by the index."""
    found = []
    for ch in log.channels.values():
        turn = log.index.side_column(ch.number, "connection")
        headers = [ch.metadata["headers"][i] for i in (np.zeros(len(ch), int) if turn is None else turn)]
        for m, header in zip(log.messages(ch.topic, order="file"), headers, strict=True):
            who = header.get("callerid", "").encode(), header.get("latching", "").encode()
            found.append((m.time, bytes(m.data), *who))
    return sorted(found)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bag"
    path.write_bytes(bag("Abc"))
    return path


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_each_message_has_its_connection(indexed: bool, compression: str) -> None:
    data = bag("Abc", compression=compression)
    if not indexed:
        # Without its last bytes the index is not believed, and everything is read.
        data = data[:-3]
    assert read(logreel.open(data)) == rows(bag("Abc"))


def test_channels_with_one_connection_have_no_connection_column() -> None:
    assert logreel.open(bag("a")).index.side_column(0, "connection") is None


def test_slice_sort_and_recover_keep_connections(source: Path, tmp_path: Path) -> None:
    whole, middle = rows(source.read_bytes()), START + 150
    for name, due in (("all", whole), ("late", [row for row in whole if row[0] >= middle])):
        out = tmp_path / f"{name}.bag"
        logreel.slice(source, out, start=None if name == "all" else middle)
        assert rows(out.read_bytes()) == read(logreel.open(out)) == due
    logreel.sort(source, tmp_path / "sorted.bag")
    assert rows((tmp_path / "sorted.bag").read_bytes()) == whole
    (tmp_path / "cut.bag").write_bytes(source.read_bytes()[:6000])
    logreel.recover(tmp_path / "cut.bag", tmp_path / "saved.bag")
    saved = rows((tmp_path / "saved.bag").read_bytes())
    assert saved == whole[: len(saved)]
    assert len(saved) > 10
    parts = [rows(Path(one.path).read_bytes()) for one in logreel.split(source, tmp_path / "parts", every=90)]
    assert [row for part in parts for row in part] == whole
    assert len(parts) > 3


def test_merge_renumbers_connections_of_messages(source: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.bag", tmp_path / "merged.bag"
    other.write_bytes(bag("cXA", START + 5))
    logreel.merge([source, other], out)
    assert rows(out.read_bytes()) == sorted(rows(source.read_bytes()) + rows(other.read_bytes()))
    assert read(logreel.open(out)) == rows(out.read_bytes())
    metadata = logreel.open(out)["/chatter"].metadata
    assert sorted(h["callerid"] + h.get("latching", "") for h in metadata["headers"]) == [
        "a1",
        "b",
        "c",
        "x1",
    ]


@pytest.mark.parametrize("callers", ["x", "A", "xA"])
def test_merge_with_a_bag_of_one_connection(callers: str, tmp_path: Path) -> None:
    """The messages of the other bag have no connection column, but the merged bag has several connections."""
    paths = [tmp_path / "1.bag", tmp_path / "2.bag", tmp_path / "3.bag"]
    for n, (path, who) in enumerate(zip(paths, ("a", callers, "b"), strict=True)):
        path.write_bytes(bag(who, START + 3 * n))
    logreel.merge(paths, tmp_path / "out.bag")
    due = sorted(row for path in paths for row in rows(path.read_bytes()))
    assert rows((tmp_path / "out.bag").read_bytes()) == read(logreel.open(tmp_path / "out.bag")) == due


def test_writer_takes_several_connections_of_a_channel(source: Path, tmp_path: Path) -> None:
    """Messages written again with the connections of the index keep their connections."""
    log, path = logreel.open(source), tmp_path / "again.bag"
    ch = log["/chatter"]
    turn = log.index.side_column(ch.number, "connection")
    assert turn is not None
    picked = log.index.select([ch.number], order="file")
    data = np.frombuffer(source.read_bytes(), np.uint8)
    with logreel.create(path) as w:
        number = w.add_channel(ch.topic, ch.schema, ch.metadata)
        same = np.full(len(picked), number, np.int32)
        w.write_many(same, picked.time, data, picked.offset, picked.size, turn[:, None])
        w.write(number, START + 10**9, b"\0\0\0\0")
        w.write_many(same[:1], picked.time[:1], data, picked.offset[:1], picked.size[:1], turn[:1, None] + 99)
    found = rows(path.read_bytes())
    assert [row for row in found if row[0] < START + 10**9 and row[0] > START] == [
        row for row in rows(source.read_bytes()) if row[2] != b"z" and row[0] > START
    ]
    # A single message comes by the first connection, and there is none beyond the last.
    assert found[-1] == (START + 10**9, b"\0\0\0\0", b"a", b"1")
    assert [row[2] for row in found if row[0] == START] == [b"a", b"c"]


def test_slice_copies_all_connections(tmp_path: Path) -> None:
    name = next(name for name in SYNTHETIC if "connections" in name)
    path, out = tmp_path / "variant.bag", tmp_path / "out.bag"
    path.write_bytes(SYNTHETIC[name]())
    logreel.slice(path, out)
    assert read(logreel.open(out)) == read(logreel.open(path)) == rows(path.read_bytes())
