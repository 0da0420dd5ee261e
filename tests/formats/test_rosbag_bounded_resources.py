"""Bags with huge sizes and counts: bounded memory and time, and a Problem."""

from __future__ import annotations

import bz2
import functools
import gc
import struct
from collections.abc import Callable

import pytest

import logreel
from logreel.errors import LogError
from support.builders.bag_rows import read_all
from support.builders.bag_variants import many
from support.harness.limits import limited, processor
from support.samples.rosbag.builder import (
    CHATTER,
    MAGIC,
    START,
    Builder,
    lz4_frame,
    string,
    tiny,
)
from support.samples.rosbag.old import header, record, version_0, version_1_0, version_1_1, version_1_2

MANY = 2**32 - 1


@pytest.mark.parametrize("where", ["header", "data"])
@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_huge_lengths_take_no_memory(version: str, where: str) -> None:
    data = tiny(version)
    fields = [("op", b"\x02"), ("conn", bytes(4)), ("time", bytes(8))]
    lengths = {"header_len": MANY} if where == "header" else {"data_len": MANY}
    bad = data[:-40] + record(fields, b"abc", **lengths)  # type: ignore[arg-type]

    def job() -> None:
        log, rows = read_all(bad)
        assert rows
        assert log.problems

    limited(job)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
@pytest.mark.parametrize("finished", [True, False])
def test_a_chunk_of_4_gib_takes_no_memory(compression: str, finished: bool) -> None:
    out = Builder(compression)
    conn = out.connection(CHATTER)
    out.message(conn, START, string("one"))
    out.chunk(size=MANY, stored=MANY)
    out.message(conn, START + 1, string("two"))
    out.finished = finished
    data = out.bytes()

    def job() -> None:
        log, rows = read_all(data)
        assert [row[4] for row in rows] == [string("one"), string("two")]
        assert log.problems

    limited(job)


@pytest.mark.parametrize(
    "make",
    [
        lambda: version_0([(CHATTER, 0, b"abcd")] * 5),
        lambda: version_1_0([(CHATTER, 0, b"abcd")] * 5),
        lambda: version_1_1([(CHATTER, 0, b"abcd")] * 5),
    ],
)
def test_old_messages_of_4_gib_take_no_memory(make: Callable[[], bytes]) -> None:
    data = make()
    bad = data[:-8] + struct.pack("<I", MANY) + data[-4:]

    def job() -> None:
        log, rows = read_all(bad)
        assert len(rows) == 4
        assert [p.code for p in log.problems] == ["truncated"]

    limited(job)


@functools.cache
def _packed(compression: str, content: bytes, size: int) -> bytes:
    """Return *content* and *size* zeros, compressed."""
    if compression == "bz2":
        packer = bz2.BZ2Compressor(9)
        parts = [packer.compress(content)]
        parts += [packer.compress(bytes(1 << 22)) for _ in range(size >> 22)]
        return b"".join((*parts, packer.flush()))
    block = lz4_frame(bytes(1 << 22), 7, checksum=False)[7:-4]
    first = lz4_frame(content, 7, checksum=False)
    return first[:-4] + block * (size >> 22) + bytes(4)


def _bomb(compression: str, size: int, stated: int | None) -> bytes:
    """Return a chunk with one message and *size* zeros after it."""
    out = Builder(compression)
    out.message(out.connection(CHATTER), START, string("boom"))
    out.chunks[0].size = stated
    content = bytes(out.chunks[0].content)
    out.chunks[0].pack = lambda _: _packed(compression, content, size)
    return out.bytes()


@pytest.mark.parametrize("stated", [None, MANY, 0, 2000])
@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_decompression_bombs_are_bounded(compression: str, stated: int | None) -> None:
    # A bz2 chunk of this size may have 32 MiB, an LZ4 chunk 288.
    data = _bomb(compression, {"bz2": 48, "lz4": 288}[compression] << 20, stated)
    assert len(data) < 6 << 20

    def job() -> None:
        log, rows = read_all(data)
        assert [row[4] for row in rows] == [string("boom")]
        assert log.problems
        if compression == "bz2" and stated in (MANY, 0):
            assert any(f"more than {32 << 20} bytes" in problem.text for problem in log.problems)

    limited(job)


def test_a_megabyte_of_false_records_takes_no_time() -> None:
    """Every eighth byte looks like the beginning of the field ``op``."""
    junk = (b"\x04\0\0\0op=\x02" * 131_072)[: 1 << 20]
    nested = struct.pack("<I", 1000) * 4 + b"\x04\0\0\0op=\x02"
    for content in (junk, (nested * 50_000)[: 1 << 20], (b"\x0c\0\0\0" + b"\x04\0\0\0op=\x02") * 80_000):
        with processor(2):
            log = logreel.open(MAGIC + Builder().bag_header() + content)
        assert log.message_count == 0
        assert log.problems


def test_thousands_of_damaged_places_take_no_time() -> None:
    row = record([("conn", bytes(4)), ("op", b"\x02"), ("time", bytes(8))], b"abcd")
    data = MAGIC + Builder().bag_header() + (row + b"\xff" * 20) * 20_000
    with processor(10):
        log = logreel.open(data)
    assert sum(p.size for p in log.problems if p.lost) == 20 * 20_000
    old = version_1_1([(CHATTER, 0, b"abcd")])
    with processor(10):
        log = logreel.open(old + (b"\xff" * 20 + old[16:]) * 10_000)
    assert log.message_count == 10_001


def test_records_without_a_connection_are_no_messages() -> None:
    out = Builder(finished=False)
    out.message(out.connection(CHATTER), START, string("one"))
    stray = record([("op", b"\x02"), ("time", bytes(8))], string("nobody's"))
    log, rows = read_all(out.bytes() + stray + stray)
    assert [row[4] for row in rows] == [string("one")]
    assert any(p.code == "garbage" and p.lost for p in log.problems)


def test_fields_without_a_name_are_reported() -> None:
    nameless = struct.pack("<I", 4) + b"oops" + header([("op", b"\x01")])
    bad = struct.pack("<I", len(nameless)) + nameless + bytes(4)
    sound = version_1_2(many(10), indexed=False)
    log, rows = read_all(sound + bad + sound[16:])
    assert len(rows) == 20
    assert any(p.lost for p in log.problems)


def test_the_temporary_file_of_unpacked_chunks_is_closed() -> None:
    """Python warns of files that are not closed, and tests turn its warnings into errors."""
    out = Builder("lz4", chunk_bytes=100)
    conn = out.connection(CHATTER)
    for k in range(3):
        out.message(conn, START + k, string("x" * 200))
        # Stated sizes decide whether a temporary file is worth while.
        out.chunks[-1].size = 100 << 20
    data = out.bytes()
    log, rows = read_all(data)
    assert len(rows) == 3
    del log
    gc.collect()


def test_strict_raises_the_first_problem() -> None:
    with pytest.raises(LogError):
        logreel.open(tiny()[:-3], strict=True)
