"""Indexes that leave out messages in agreement with their summary: reported, or all messages are read."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable

import pytest

import logreel
from logreel.formats.rosbag import index_builder
from support.builders.bag_rows import Row, fast_rows, plain_rows
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import CHATTER, COUNT, START, Builder, Chunk, lz4_frame, string
from support.samples.rosbag.old import record, stamp

PACKS: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "lz4": lz4_frame, "bz2": bz2.compress}


def _bag(compression: str = "none", chunks: int = 5) -> Builder:
    """Return a bag with chunks of 20 messages of two topics, some empty; the second begins in the third chunk."""
    out = Builder()
    for topic in (CHATTER, COUNT):
        out.connection(topic)
    for k in range(20 * chunks):
        if k % 20 == 0:
            out.chunk(compression=compression, pack=PACKS[compression])
        conn = k % 2 if k >= 40 else 0
        out.message(conn, START + k * 10**6, b"" if k % 7 == 0 else string("x" * (k % 13)))
    return out


def _rows(out: Builder) -> list[Row]:
    return plain_rows(bag_oracle.read(out.bytes()))


def _leave_out(chunk: Chunk, places: list[int]) -> None:
    chunk.entries = [entry for k, entry in enumerate(chunk.entries) if k not in places]


PLACES = [[0], [19], [7], [14], [3, 4, 5], list(range(19)), list(range(1, 20)), list(range(0, 20, 2))]


@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_omission_in_an_outer_chunk_makes_all_chunks_be_read(
    compression: str, number: int, places: list[int]
) -> None:
    out = _bag(compression)
    want = _rows(out)
    _leave_out(out.chunks[number], places)
    log = logreel.open(out.bytes())
    assert fast_rows(log) == want
    assert [(p.code, p.lost) for p in log.problems] == [("index", False)]
    assert f"leaves out {len(places)} messages" in log.problems[0].text


@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize("compression", ["none", "lz4", "bz2"])
def test_omission_in_another_chunk_is_reported_when_it_is_read(compression: str, places: list[int]) -> None:
    out = _bag(compression)
    want = _rows(out)
    gone = {want[40 + k] for k in places}
    _leave_out(out.chunks[2], places)
    log = logreel.open(out.bytes())
    assert log.problems == ()
    assert fast_rows(log) == [row for row in want if row not in gone]
    (problem,) = log.problems
    assert (problem.code, problem.offset, problem.lost) == ("index", out.chunks[2].pos, True)
    assert f"leaves out {len(places)} messages" in problem.text
    # Reading columns reports it, too; payloads too short for their definition are another problem.
    other = logreel.open(out.bytes())
    for ch in other.channels.values():
        ch.to_arrow()
    assert [p for p in other.problems if p.code == "index"] == [problem]


def test_chunk_without_index_entries_is_read() -> None:
    out = _bag()
    want = _rows(out)
    out.chunks[2].entries = []
    log = logreel.open(out.bytes())
    assert fast_rows(log) == want
    assert [(p.code, p.lost) for p in log.problems] == [("index", False)]


def test_bz2_and_large_chunks_are_not_read_on_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    for compression in ("bz2", "none"):
        monkeypatch.setattr(index_builder, "PROBED_BYTES", 1 << 20 if compression == "bz2" else 100)
        out = _bag(compression)
        _leave_out(out.chunks[0], [3])
        log = logreel.open(out.bytes())
        assert log.problems == ()
        assert len(fast_rows(log)) == 99
        assert [(p.code, p.lost) for p in log.problems] == [("index", True)]


@pytest.mark.parametrize("compression", ["none", "lz4", "bz2"])
def test_complete_index_is_used(compression: str) -> None:
    out = _bag(compression)
    log = logreel.open(out.bytes())
    assert fast_rows(log) == _rows(out)
    assert log.metadata["indexed"] is True
    assert log.problems == ()


def test_longer_headers_and_repeated_connections_are_no_messages() -> None:
    out = _bag()
    for chunk in out.chunks:
        content, chunk.content = bytes(chunk.content), bytearray()
        fields = [("op", b"\x08"), ("note", bytes(100))]
        chunk.content += content + record(fields, b"unknown")
        for k in range(3):
            chunk.entries.append((0, START + k, len(chunk.content)))
            more = [
                ("conn", struct.pack("<I", 0)),
                ("op", b"\x02"),
                ("time", stamp(START + k)),
                ("why", bytes(90)),
            ]
            chunk.content += record(more, b"abcd")
    log = logreel.open(out.bytes())
    assert fast_rows(log) == _rows(out)
    assert log.problems == ()
    assert log.metadata["indexed"] is True
