"""Reading kernels of bddf against the plain reader: sound blocks, any bytes, and the edge of readable memory."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from logreel.kernels import bddf
from support.harness.examples import examples
from support.harness.guard import guarded
from support.oracles import bddf as oracle
from support.samples.bddf.builder import data_block, num, number, raw, stamp

END, OTHER, BAD, CUT, FULL = range(5)
TIMES = st.integers(-(1 << 62), (1 << 63) - 1)
I64 = NDArray[np.int64]
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


class Walk:
    """One run of the walker over all of *data*."""

    def __init__(self, data: bytes, known: int = 4, capacity: int = 1 << 12) -> None:
        self.buffer = guarded(data)
        self.state = np.array([0, 0, -1, 0, 0], np.int64)
        record, count = np.empty(capacity, np.uint64), np.zeros(known, np.int64)
        channel = np.arange(known, dtype=np.int32)
        self.why = bddf.walk(self.buffer, self.state, len(data), channel, record, count)
        self.pos, self.n, base = self.state[:3].tolist()
        keys = (record[: self.n] >> np.uint64(32)).tolist()
        assert count.tolist() == [keys.count(k) for k in range(known)]
        self.start = (record[: self.n] & np.uint64(0xFFFFFFFF)).astype(np.int64) + base
        payload, size, time = (np.empty(self.n, np.int64) for _ in range(3))
        bddf.payload_ranges(self.buffer, self.start, payload, size)
        bddf.block_times(self.buffer, self.start, time)
        self._gather(payload, size, time)
        columns = (time.tolist(), payload.tolist(), size.tolist())
        self.rows = list(zip(keys, *columns, strict=True))

    def _gather(self, payload: I64, size: I64, time: I64) -> None:
        """Blocks of the size of the first one are gathered as long as they come."""
        if self.n and size[0]:
            same = int(np.append(np.flatnonzero(size != size[0]), self.n)[0])
            out, stamps = np.zeros(self.n * int(size[0]), np.uint8), np.zeros(self.n, np.int64)
            entry = self.start.astype(np.uint32)
            assert bddf.gather_payloads(self.buffer, entry, 0, int(size[0]), out, stamps) == same
            assert stamps[:same].tolist() == time[:same].tolist()
            rows = payload[:same, None] + np.arange(size[0])
            assert np.array_equal(out[: same * int(size[0])], self.buffer[rows.ravel()])


def plain(data: bytes, known: int = 4) -> tuple[list[tuple[int, int, int, int]], int]:
    """What the walker should find, and where it should stop."""
    at, rows = 0, []
    while at < len(data):
        try:
            row = oracle.data_block(data, at, strict=False)
        except oracle.Bad:
            break
        if row.series >= known:
            break
        rows.append((row.series, row.ns, row.end - len(row.payload), len(row.payload)))
        at = row.end
    return rows, at


blocks = st.builds(data_block, st.integers(0, 3), TIMES, st.binary(max_size=40), st.lists(INT64, max_size=4))


@given(st.lists(blocks, max_size=12), st.binary(max_size=30))
def test_walk_equals_the_plain_reader(parts: list[bytes], rest: bytes) -> None:
    data = b"".join(parts) + rest
    if not data:
        return
    got = Walk(data)
    assert (got.rows, got.pos) == plain(data)
    assert got.why == END or got.pos < len(data)


@settings(max_examples=examples(400))
@given(st.lists(blocks, min_size=1, max_size=4), st.data())
def test_walk_of_damaged_bytes_equals_the_plain_reader(parts: list[bytes], draw: st.DataObject) -> None:
    data = bytearray(b"".join(parts))
    for _ in range(draw.draw(st.integers(0, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    cut = bytes(data[: draw.draw(st.integers(1, len(data)))])
    got = Walk(cut)
    assert (got.rows, got.pos) == plain(cut)


def field_lists() -> st.SearchStrategy[bytes]:
    """Fields of every wire type, known ones among them, and bytes that are none."""
    tags = st.sampled_from([8, 16, 18, 24, 26, 9, 13, 32, 34, 48, 11, 12, 1 << 20])
    one = st.builds(lambda tag, body: number(tag) + body, tags, st.binary(max_size=12))
    return st.lists(one | st.binary(max_size=6), max_size=5).map(b"".join)


@settings(max_examples=examples(300))
@given(field_lists(), st.binary(max_size=3))
def test_any_descriptor_equals_the_plain_reader(head: bytes, payload: bytes) -> None:
    data = struct.pack("<QI", len(head) + len(payload), len(head)) + head + payload
    got = Walk(data, known=1 << 12)
    assert (got.rows, got.pos) == plain(data, 1 << 12)


def test_seconds_without_bytes_are_refused() -> None:
    head = b"\x12\x0c\x08" + bytes(5) + b"\x10" + b"\x80\x80\x80\x80\x01"
    data = struct.pack("<QI", len(head), len(head)) + head + bytes(80)
    got = Walk(data)
    assert (got.why, got.n) == (BAD, 0)
    assert plain(data) == ([], 0)


def like(nanos: int, series: int = 1, seconds: int = 1_700_000_000) -> bytes:
    return data_block(series, seconds * 10**9 + nanos, b"payload")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9 - 1)), min_size=3, max_size=20), st.data())
def test_descriptors_of_the_previous_shape_equal_the_plain_reader(
    parts: list[tuple[int, int]], draw: st.DataObject
) -> None:
    rest = like(5) + bytes(80)
    data = bytearray(b"".join(like(nanos, series) for series, nanos in parts))
    for _ in range(draw.draw(st.integers(0, 2))):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    whole = bytes(data) + rest
    got = Walk(whole)
    assert (got.rows, got.pos) == plain(whole)


def test_nanoseconds_of_a_full_second_are_refused_behind_a_valid_block() -> None:
    for nanos, good in ((10**9 - 1, True), (10**9, False), (10**9 + 1, False), ((1 << 35) - 1, False)):
        head = b"\x08\x01\x12\x0c\x08" + number(1_700_000_000) + b"\x10" + number(nanos)
        block = struct.pack("<QI", len(head), len(head)) + head
        data = like(999_999_998) * 3 + block + like(5) * 9
        got = Walk(data)
        assert (got.rows, got.pos) == plain(data)
        assert got.n == (13 if good else 3)


def test_varints_of_more_than_64_bits_are_refused() -> None:
    for head in (b"\x08" + b"\xff" * 10, b"\x08" + b"\xff" * 9 + b"\x02", b"\x12\x0c\x08" + b"\x80" * 11):
        data = struct.pack("<QI", len(head), len(head)) + head
        assert Walk(data).why == BAD


def test_huge_sizes_do_not_overflow() -> None:
    for size in (1 << 55, (1 << 56) - 1, (1 << 56) - 12):
        for d in (2, 10, 1 << 31, (1 << 32) - 1):
            data = struct.pack("<QI", size, d) + bytes(20)
            assert Walk(data).why in (BAD, CUT)
        assert Walk(struct.pack("<Q", 1 << 56 | size) + bytes(20)).why == CUT


def test_walk_stops_when_its_array_is_full() -> None:
    data = b"".join(data_block(0, i, b"x") for i in range(10))
    got = Walk(data, capacity=4)
    assert (got.why, got.n) == (FULL, 4)


def test_resync_finds_only_chains() -> None:
    chain = b"".join(data_block(1, i, b"payload") for i in range(4))
    known = np.array([-1, 0], np.int32)
    for junk in (b"", b"\x00" * 50, bytes(range(1, 200)), data_block(0, 5, b"undeclared")):
        data = junk + chain
        assert bddf.resync(guarded(data), 0, len(data), known, 3, len(data), 40) == len(junk)
    lonely = b"\x01" * 20 + data_block(1, 5, b"one") + b"\xff" * 40
    assert bddf.resync(guarded(lonely), 0, len(lonely), known, 3, len(lonely), 40) == -1


entries = st.lists(st.tuples(TIMES, st.integers(0, 1 << 62), st.lists(INT64, max_size=2)), max_size=8)


@given(entries, st.integers(0, 1 << 31), st.integers(0, 1 << 60), st.data())
def test_index_entries_equal_the_written_ones(
    rows: list[tuple[int, int, list[int]]], key: int, total: int, draw: st.DataObject
) -> None:
    body = num(1, key) + num(2, 77)
    for ns, place, numbers in rows:
        packed = raw(3, b"".join(map(number, numbers))) if numbers else b""
        body += raw(3, raw(1, stamp(ns)) + num(2, place) + packed)
    body += num(4, total)
    if not body:
        return
    time, place = np.empty(8, np.int64), np.empty(8, np.int64)
    n, *told = bddf.read_index_entries(guarded(body), 0, len(body), time, place)
    assert (n, told) == (len(rows), [key, 77, total])
    assert list(zip(time[:n].tolist(), place[:n].tolist(), strict=True)) == [row[:2] for row in rows]
    cut = body[: draw.draw(st.integers(1, len(body)))]
    try:
        whole = sum(tag == 26 for tag, _ in oracle.fields(cut))
    except oracle.Bad:
        whole = -1
    assert bddf.read_index_entries(guarded(cut), 0, len(cut), time, place)[0] == whole


@given(st.lists(st.tuples(st.lists(INT64, max_size=4), st.binary(max_size=5)), min_size=1, max_size=6))
def test_further_numbers_are_gathered(rows: list[tuple[list[int], bytes]]) -> None:
    data = b"".join(data_block(0, 1, payload, numbers) for numbers, payload in rows)
    got = Walk(data)
    out = np.zeros((got.n, 2), np.int64)
    odd = bddf.gather_numbers(got.buffer, got.start, out)
    assert odd == sum(len(numbers) != 2 for numbers, _ in rows)
    assert out.tolist() == [[*numbers[:2], 0, 0][:2] for numbers, _ in rows]


def test_verify_blocks_stops_at_the_first_wrong_block() -> None:
    parts = [data_block(1, 100 + i, bytes(i)) for i in range(5)]
    data = b"".join(parts)
    place = np.cumsum([0, *map(len, parts[:-1])]).astype(np.int64)
    time = np.arange(100, 105)

    def good(key: int, place: np.ndarray, time: np.ndarray) -> int:
        n, payloads, total = bddf.verify_blocks(guarded(data), len(data), key, place, time)
        assert (payloads, total) == (sum(range(n)), sum(map(len, parts[:n])))
        return n

    assert good(1, place, time) == 5
    assert good(2, place, time) == 0
    assert good(1, place, time + (place == place[2])) == 2
    for wrong in (-1, len(data), len(data) - 3, 1 << 62, 5):
        assert good(1, np.where(np.arange(5) == 3, wrong, place), time) == 3


def test_positions_without_a_block_give_zeros() -> None:
    data = data_block(0, 5, b"x") + b"\xff" * 30
    place = np.array([0, len(data) - 1, len(data), -1, 1 << 62, 8], np.int64)
    payload, size, time = (np.empty(len(place), np.int64) for _ in range(3))
    bddf.payload_ranges(guarded(data), place, payload, size)
    bddf.block_times(guarded(data), place, time)
    whole = len(data) - 30
    assert (
        list(zip(payload.tolist(), size.tolist(), time.tolist(), strict=True))
        == [(whole - 1, 1, 5)] + [(0, 0, 0)] * 5
    )
