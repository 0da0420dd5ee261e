"""Bags that are read and written again: the same messages and channels, and where possible the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from support.builders.bag_variants import SYNTHETIC
from support.harness.rewriting import rewrite
from support.oracles import rosbag as bag_oracle

SAMPLES = sorted((SHARED / "data" / "rosbag").glob("*.bag"))
#: Written by the rules that are followed here: those of the C++ recorder.
IDENTICAL = {
    "syn_v11_rosrecord_md5",
    "v11_real_ekf_test_2008",
    "v12_real_laser_scan_2010",
    "v20_no_messages",
    "v20_real_cturtle_2010",
    "v20_real_two_chunks_2011",
}
IDENTICAL_MADE = {"1.1 rosrecord", "1.1 star", "1.1 all star", "1.2 per topic", "1.2 indexed", "2.0 empty"}
#: Times before 1970 or those that bags of old versions counted from another start.
NEGATIVE = {name for name in SYNTHETIC if name[:2] == "0 " or (name[:3] == "1.0" and name != "1.0 type md5")}


def _options(log: logreel.Log, data: bytes) -> dict[str, Any]:
    """Return options that write the version and compression of *log*; version 2.0 if its version cannot be written."""
    if log.version == "1.2":
        return {"version": "1.2", "indexed": b"index_pos=" in data[:60]}
    if log.version == "1.1":
        return {"version": "1.1"}
    packed = [one for one in log.metadata.get("compression", ()) if one]
    return {"compression": packed[0]} if packed else {}


def _channel_descriptions(log: logreel.Log) -> list[Any]:
    rows = []
    for ch in log.channels.values():
        # Where a standard type came without its text, the new file has it.
        text = ch.schema.text if ch.metadata["md5sum"] == "*" or ch.schema.text else ""
        rows.append((ch.topic, ch.schema.name, text, ch.metadata))
    return rows


def _compare(path: Path, folder: Path) -> bool:
    """Return whether the copy has the same bytes; the content must be the same."""
    log, data = logreel.open(path), path.read_bytes()
    copy = rewrite(log, folder / "copy.bag", **_options(log, data))
    again = logreel.open(copy)
    assert not again.problems
    assert [(m.channel.topic, m.time, bytes(m.data)) for m in again.messages(order="file")] == [
        (m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")
    ]
    for one, other in zip(_channel_descriptions(log), _channel_descriptions(again), strict=True):
        assert (one[:2], one[3]) == (other[:2], other[3])
        assert one[2] in ("", other[2])
    plain = bag_oracle.read(copy.read_bytes())
    assert not plain.lost
    assert len(plain.messages) == log.message_count
    third = rewrite(again, folder / "third.bag", **_options(again, copy.read_bytes()))
    assert third.read_bytes() == copy.read_bytes()
    return copy.read_bytes() == data


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_rewritten_samples_have_the_same_content_and_mostly_bytes(path: Path, tmp_path: Path) -> None:
    assert _compare(path, tmp_path) == (path.stem in IDENTICAL)


@pytest.mark.parametrize("name", sorted(set(SYNTHETIC) - NEGATIVE - {"1.1 roslog relative"}))
def test_rewritten_built_bags_have_the_same_content_and_mostly_bytes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made.bag"
    path.write_bytes(SYNTHETIC[name]())
    assert _compare(path, tmp_path) == (name in IDENTICAL_MADE)


@pytest.mark.parametrize("name", sorted(NEGATIVE))
def test_times_before_1970_are_skipped(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made.bag"
    path.write_bytes(SYNTHETIC[name]())
    with pytest.raises(logreel.UsageError, match="holds 0 to"):
        rewrite(logreel.open(path), tmp_path / "copy.bag")


@pytest.mark.parametrize("options", [{}, {"compression": "bz2"}, {"compression": "lz4"}])
def test_slice_keeps_chunk_sizes(options: dict[str, str], shared: Path, tmp_path: Path) -> None:
    log = logreel.open(shared / "data" / "rosbag" / "v20_real_turtlesim.bag")
    first = rewrite(log, tmp_path / "a.bag", chunk_bytes=50_000, **options)
    assert logreel.open(first).metadata["chunks"] > 10
    second = rewrite(logreel.open(first), tmp_path / "b.bag", chunk_bytes=50_000, **options)
    assert second.read_bytes() == first.read_bytes()
