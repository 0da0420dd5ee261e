"""Bags that promise too much or whose index lies: bounded memory, a Problem, and never wrong data without a word."""

from __future__ import annotations

import bz2
import functools
import gc
import os
import random
import resource
import struct
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import bag_oracle
import logreel
from bag_rows import fast_rows, plain_rows
from bag_variants import MADE, many
from logreel.errors import LogError
from logreel.formats.rosbag.sample import (
    CHATTER,
    COUNT,
    MAGIC,
    START,
    Builder,
    lz4_frame,
    string,
    tiny,
    version_2_0,
)
from logreel.formats.rosbag.sample_old import header, record, version_0, version_1_0, version_1_1, version_1_2

MANY = 2**32 - 1
#: What a job may take on top of what the process has.
ROOM = 600 << 20


def _limited(job: Callable[[], Any]) -> None:
    """Run *job* in a child that can have ROOM more memory; fails if it fails or takes 15 s of a processor."""
    child = os.fork()
    if not child:
        status = 1
        try:
            with open("/proc/self/statm") as f:
                used = int(f.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
            start = time.process_time()
            job()
            status = 0 if time.process_time() - start < 15 else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _read(data: bytes) -> tuple[logreel.Log, list[Any]]:
    log = logreel.open(data)
    return log, fast_rows(log)


# ---------------------------------------------------------------------------------------------------- promises


@pytest.mark.parametrize("where", ["header", "data"])
@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_lengths_without_end_take_no_memory(version: str, where: str) -> None:
    data = tiny(version)
    fields = [("op", b"\x02"), ("conn", bytes(4)), ("time", bytes(8))]
    lengths = {"header_len": MANY} if where == "header" else {"data_len": MANY}
    bad = data[:-40] + record(fields, b"abc", **lengths)  # type: ignore[arg-type]

    def job() -> None:
        log, rows = _read(bad)
        assert rows
        assert log.problems

    _limited(job)


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
        log, rows = _read(data)
        assert [row[4] for row in rows] == [string("one"), string("two")]
        assert log.problems

    _limited(job)


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
        log, rows = _read(bad)
        assert len(rows) == 4
        assert [p.code for p in log.problems] == ["truncated"]

    _limited(job)


@functools.cache
def _bomb(compression: str, size: int, stated: int | None) -> bytes:
    """A chunk with one message and *size* zeros after it."""
    out = Builder(compression)
    out.message(out.connection(CHATTER), START, string("boom"))
    content = bytes(out.chunks[0].content)
    out.chunks[0].size = stated
    if compression == "bz2":
        packer = bz2.BZ2Compressor(9)
        parts = [packer.compress(content)]
        parts += [packer.compress(bytes(1 << 22)) for _ in range(size >> 22)]
        packed = b"".join((*parts, packer.flush()))
    else:
        block = lz4_frame(bytes(1 << 22), 7, checksum=False)[7:-4]
        first = lz4_frame(content, 7, checksum=False)
        packed = first[:-4] + block * (size >> 22) + bytes(4)
    out.chunks[0].pack = lambda _: packed
    return out.bytes()


@pytest.mark.parametrize("stated", [None, MANY, 0, 2000])
@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_bombs_are_bounded(compression: str, stated: int | None) -> None:
    data = _bomb(compression, 288 << 20, stated)
    assert len(data) < 6 << 20

    def job() -> None:
        log, rows = _read(data)
        assert [row[4] for row in rows] == [string("boom")]
        assert log.problems

    _limited(job)


def test_a_megabyte_of_false_records_takes_no_time() -> None:
    """Every eighth byte looks like the beginning of the field that says what a record is."""
    junk = (b"\x04\0\0\0op=\x02" * 131_072)[: 1 << 20]
    nested = struct.pack("<I", 1000) * 4 + b"\x04\0\0\0op=\x02"
    for content in (junk, (nested * 50_000)[: 1 << 20], (b"\x0c\0\0\0" + b"\x04\0\0\0op=\x02") * 80_000):
        start = time.monotonic()
        log = logreel.open(MAGIC + Builder().bag_header() + content)
        assert log.message_count == 0
        assert log.problems
        assert time.monotonic() - start < 5


def test_thousands_of_damaged_places_take_no_time() -> None:
    row = record([("conn", bytes(4)), ("op", b"\x02"), ("time", bytes(8))], b"abcd")
    data = MAGIC + Builder().bag_header() + (row + b"\xff" * 20) * 20_000
    start = time.monotonic()
    log = logreel.open(data)
    assert sum(p.size for p in log.problems if p.lost) == 20 * 20_000
    old = version_1_1([(CHATTER, 0, b"abcd")])
    log = logreel.open(old + (b"\xff" * 20 + old[16:]) * 10_000)
    assert log.message_count == 10_001
    assert time.monotonic() - start < 10


# ------------------------------------------------------------------------------------------------------ cut chunks


def _unsqueezable(n: int) -> list[Any]:
    rng = random.Random(5)
    return [(CHATTER, START + k, string(rng.randbytes(5000).hex())) for k in range(n)]


@pytest.mark.parametrize(
    "options", [{}, {"linked": True}, {"block_size": 5, "block_checksums": True}, {"content_size": True}]
)
def test_whole_blocks_of_a_cut_lz4_chunk_are_read(options: dict[str, Any]) -> None:
    options = {"block_size": 4, **options}
    out = Builder("lz4", pack=lambda data: lz4_frame(data, **options), chunk_bytes=1 << 30, finished=False)
    data = version_2_0(_unsqueezable(80), out)
    whole = plain_rows(bag_oracle.read(data))
    assert len(whole) == 80
    for cut in (len(data) * 9 // 10, len(data) * 3 // 4, len(data) // 2):
        log, rows = _read(data[:cut])
        judge = plain_rows(bag_oracle.read(data[:cut]))
        assert rows == judge == whole[: len(rows)]
        assert any(p.code == "chunk" and p.lost for p in log.problems)
    assert 20 < len(rows) < 50


def test_whole_blocks_of_a_cut_bz2_chunk_are_read() -> None:
    data = version_2_0(_unsqueezable(300), Builder("bz2", chunk_bytes=1 << 30, finished=False))
    whole = plain_rows(bag_oracle.read(data))
    log, rows = _read(data[: len(data) * 2 // 3])
    assert rows == plain_rows(bag_oracle.read(data[: len(data) * 2 // 3])) == whole[: len(rows)]
    assert 80 < len(rows) < 200
    assert any(p.code == "chunk" and p.lost for p in log.problems)


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
@pytest.mark.parametrize("indexed", [True, False])
def test_one_wrong_bit_in_a_packed_chunk_is_told(compression: str, indexed: bool) -> None:
    out = Builder(compression, chunk_bytes=20_000, finished=indexed)
    sound = version_2_0(many(), out)
    at = sound.index(b"op=\x05") + 60
    whole = plain_rows(bag_oracle.read(sound))
    for shift in range(0, 4000, 131):
        broken = bytearray(sound)
        broken[at + shift] ^= 4
        log, rows = _read(bytes(broken))
        assert any(p.lost for p in log.problems), shift
        assert len(rows) <= len(whole)
        for ch in log.channels.values():
            assert len(ch.to_arrow()) <= len(ch)


# ------------------------------------------------------------------------------------------------------ index lies


def _honest() -> Builder:
    out = Builder(chunk_bytes=9000)
    for topic, at, data in many(120, topics=(CHATTER, COUNT)):
        if topic not in [t for _, t in out.connections]:
            out.connection(topic)
        out.message([t for _, t in out.connections].index(topic), at, data)
    return out


def _swap(entries: list[tuple[int, int, int]]) -> None:
    (a, t, x), (b, u, y) = entries[2], entries[3]
    entries[2:4] = [(a, t, y), (b, u, x)]


LIES: dict[str, Callable[[list[tuple[int, int, int]]], Any]] = {
    "beyond the chunk": lambda e: e.__setitem__(3, (e[3][0], e[3][1], 1 << 31)),
    "just beyond the chunk": lambda e: e.__setitem__(3, (e[3][0], e[3][1], 9500)),
    "between records": lambda e: e.__setitem__(3, (e[3][0], e[3][1], e[3][2] + 5)),
    "places exchanged": _swap,
    "another connection": lambda e: e.__setitem__(3, (1 - e[3][0], e[3][1], e[3][2])),
    "another time": lambda e: e.__setitem__(3, (e[3][0], e[3][1] + 1, e[3][2])),
    "twice": lambda e: e.append(e[3]),
    "100000 times": lambda e: e.extend([e[3]] * 100_000),
    "too many": lambda e: e.extend((e[3][0], e[3][1], k) for k in range(5000)),
}


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("lie", LIES)
def test_an_index_that_lies_is_told_and_believed_nowhere(lie: str, compression: str) -> None:
    out = _honest()
    for chunk in out.chunks:
        chunk.compression = compression
        chunk.pack = lz4_frame if compression == "lz4" else bytes
    want = plain_rows(bag_oracle.read(out.bytes()))
    LIES[lie](out.chunks[0].entries)
    data = out.bytes()

    def job() -> None:
        log, rows = _read(data)
        assert any(p.code == "index" for p in log.problems)
        # What is read is in the bag; what an index hides may be missing.
        left = list(want)
        for row in rows:
            left.remove(row)
        assert len(left) <= (2 if lie in ("another connection", "another time") else 0)
        for ch in log.channels.values():
            assert len(ch.to_arrow()) <= len(ch)

    _limited(job)


def test_an_index_may_point_at_the_connection_before_its_message() -> None:
    out = _honest()
    first = out.chunks[0]
    conn, at, _ = first.entries[0]
    first.entries[0] = conn, at, 0
    log, rows = _read(out.bytes())
    assert rows == plain_rows(bag_oracle.read(out.bytes()))
    assert not log.problems


def test_a_chunk_that_the_summary_leaves_out_is_read() -> None:
    data = MADE["2.0 none"]()
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    # Its index records go with it: the summary alone names chunks.
    hidden = out.chunks[1]
    before = out.bytes()
    out.chunks[2].before = before[hidden.pos : out.chunks[2].pos]
    del out.chunks[1]
    log, rows = _read(out.bytes())
    assert rows == want
    assert [p.code for p in log.problems] == ["index"]
    assert not logreel.open(data).problems


@pytest.mark.parametrize("name", ["conn_count", "chunk_count", "index_pos"])
@pytest.mark.parametrize("value", [0, 1, 13, 5000, MANY])
def test_wrong_numbers_in_the_bag_header(name: str, value: int) -> None:
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    out.stated[name] = value
    log, rows = _read(out.bytes())
    assert rows == want
    assert any(p.code == "index" for p in log.problems)


@pytest.mark.parametrize("count", [0, 1, 7, 1 << 20, MANY])
def test_wrong_counts_in_index_records_of_a_bag_without_summary(count: int) -> None:
    out = _honest()
    out.finished = False
    data = bytearray(out.bytes())
    want = plain_rows(bag_oracle.read(_honest().bytes()))
    at = data.index(b"count=") + 6
    data[at : at + 4] = struct.pack("<I", count)
    log, rows = _read(bytes(data))
    assert rows == want
    assert log.problems


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
@pytest.mark.parametrize("stored", [10, 1500, 60_000])
def test_wrong_sizes_of_a_chunk_hide_no_other_chunk(compression: str, stored: int) -> None:
    out = _honest()
    out.finished = False
    for chunk in out.chunks:
        chunk.compression = compression
        chunk.pack = {"none": bytes, "bz2": bz2.compress, "lz4": lz4_frame}[compression]
    want = plain_rows(bag_oracle.read(out.bytes()))
    here = len(out.chunks[1].entries)
    out.chunks[1].stored = stored
    log, rows = _read(out.bytes())
    assert len([row for row in want if row not in rows]) <= (here if compression != "none" else 0)
    if len(rows) < len(want):
        assert any(p.lost for p in log.problems)


@pytest.mark.parametrize("size", [0, 100, 100_000, MANY])
def test_a_plain_chunk_that_states_another_size_is_read_by_what_is_there(size: int) -> None:
    out = _honest()
    want = plain_rows(bag_oracle.read(out.bytes()))
    out.chunks[-1].size = size
    # An entry that only the wrong size allows for.
    out.chunks[-1].entries.append((0, START, len(out.chunks[-1].content) + 5000))
    log, rows = _read(out.bytes())
    assert rows == want
    assert any(p.code == "index" for p in log.problems)


def test_records_without_a_connection_are_none() -> None:
    out = Builder(finished=False)
    out.message(out.connection(CHATTER), START, string("one"))
    stray = record([("op", b"\x02"), ("time", bytes(8))], string("nobody's"))
    log, rows = _read(out.bytes() + stray + stray)
    assert [row[4] for row in rows] == [string("one")]
    assert any(p.code == "garbage" and p.lost for p in log.problems)


def test_fields_without_a_name_are_told() -> None:
    nameless = struct.pack("<I", 4) + b"oops" + header([("op", b"\x01")])
    bad = struct.pack("<I", len(nameless)) + nameless + bytes(4)
    sound = version_1_2(many(10), indexed=False)
    log, rows = _read(sound + bad + sound[16:])
    assert len(rows) == 20
    assert any(p.lost for p in log.problems)


def test_the_temporary_file_of_unpacked_chunks_is_closed() -> None:
    """Python warns of files that nobody closed, and the tests make errors of its warnings."""
    out = Builder("lz4", chunk_bytes=100)
    conn = out.connection(CHATTER)
    for k in range(3):
        out.message(conn, START + k, string("x" * 200))
        # Stated sizes decide whether a temporary file is worth while.
        out.chunks[-1].size = 100 << 20
    data = out.bytes()
    log, rows = _read(data)
    assert len(rows) == 3
    del log
    gc.collect()


def test_strict_raises_the_first_problem() -> None:
    with pytest.raises(LogError):
        logreel.open(tiny()[:-3], strict=True)
