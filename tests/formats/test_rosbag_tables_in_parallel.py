"""Tables of all channels of compressed bags, read in threads, compared with tables of single channels."""

from __future__ import annotations

from functools import cache

import pytest

import logreel
from logreel.index import gather as ranges
from support.builders.arrows import same
from support.harness.equal_tables import have_same_bytes
from support.samples.rosbag.builder import drive

LZ4 = b"\x04\x22\x4d\x18"


@cache
def bag_of(compression: str) -> bytes:
    return drive(1.0, compression=compression, chunk_bytes=1 << 13)


@pytest.mark.parametrize("compression", ["none", "lz4", "bz2"])
@pytest.mark.parametrize("range_bytes", [1, 1 << 16, 1 << 23])
def test_parallel_tables_equal_tables_of_single_channels(
    compression: str, range_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "RANGE_BYTES", range_bytes)
    data = bag_of(compression)
    found = logreel.open(data).tables()
    assert len(found) > 3
    for topic, table in found.items():
        alone = logreel.open(data)[topic].to_arrow()
        assert table.num_rows == alone.num_rows > 0
        assert table.schema.equals(alone.schema, check_metadata=True)
        assert have_same_bytes(table, alone), topic


def test_parallel_tables_report_a_damaged_chunk_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "RANGE_BYTES", 1)
    data = bytearray(drive(2.0, compression="lz4", chunk_bytes=1 << 14))
    second = data.index(LZ4, data.index(LZ4) + 1)
    data[second + 7 : second + 11] = b"\xff\xff\xff\x7f"
    log = logreel.open(bytes(data))
    tables = log.tables()
    assert {topic: t.num_rows for topic, t in tables.items()} == {
        ch.topic: len(ch) for ch in log.values() if len(ch)
    }
    # Messages of the chunk are rows of nulls, so that rows and times correspond.
    assert 0 < sum(t.column(1).null_count for t in tables.values()) < sum(t.num_rows for t in tables.values())
    assert [p.code for p in log.problems].count("chunk") == 1
    again = logreel.open(bytes(data))
    for topic, table in tables.items():
        assert same(table.to_pylist(), again[topic].to_arrow().to_pylist()), topic
