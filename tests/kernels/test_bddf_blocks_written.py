"""Writing kernels of bddf, blocks and index entries, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logreel.kernels import bddf
from support.oracles.bddf import data_block
from support.samples.bddf.builder import data_block as make
from support.samples.bddf.builder import num, number, raw, stamp

I64 = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 127, 128, -1, 10**9, -(10**9), 2**35 - 1])
KEYS, COUNTS = [0, 1, 127, 128, 65535], [0, 2, 1, 3, 0]
MESSAGES = st.lists(
    st.tuples(st.integers(0, 4), I64, st.binary(max_size=300), st.lists(I64, min_size=3, max_size=3)),
    max_size=20,
)


def composed(rows: list[tuple[int, int, bytes, list[int]]]) -> tuple[bytes, np.ndarray]:
    channel = np.array([row[0] for row in rows], np.int32)
    time = np.array([row[1] for row in rows], np.int64)
    size = np.array([len(row[2]) for row in rows], np.int64)
    data = np.frombuffer(b"".join(row[2] for row in rows), np.uint8)
    further = np.array([row[3] for row in rows], np.int64).reshape(len(rows), 3)
    series = np.stack([np.array(KEYS, np.int64), np.array(COUNTS, np.int64)], axis=1)
    head = np.empty(len(rows), np.int64)
    bddf.descriptor_sizes(channel, time, size, series, further, head)
    place = np.concatenate([[0], np.cumsum(12 + head + size)]).astype(np.int64)
    out = np.zeros(int(place[-1]), np.uint8)
    start = np.cumsum(size) - size
    bddf.write_blocks(data, channel, time, start, size, series, further, head, place[:-1], out)
    return out.tobytes(), place


@given(MESSAGES)
def test_blocks_equal_the_plain_builder(rows: list[tuple[int, int, bytes, list[int]]]) -> None:
    due = [make(KEYS[k], ns, data, numbers[: COUNTS[k]]) for k, ns, data, numbers in rows]
    assert composed(rows)[0] == b"".join(due)


@given(MESSAGES)
def test_index_entries_equal_the_plain_builder(rows: list[tuple[int, int, bytes, list[int]]]) -> None:
    made, place = composed(rows)
    data, place = np.frombuffer(b"BDDF" + made, np.uint8), place[:-1] + 4
    due = b""
    for (k, ns, _, numbers), at in zip(rows, place.tolist(), strict=True):
        packed = b"".join(map(number, numbers[: COUNTS[k]]))
        due += raw(3, raw(1, stamp(ns)) + num(2, at) + (raw(3, packed) if packed else b""))
    payloads = sum(len(row[2]) for row in rows)
    assert bddf.write_index_entries(data, place, np.zeros(0, np.uint8)) == (len(due), payloads)
    out = np.zeros(len(due), np.uint8)
    assert bddf.write_index_entries(data, place, out) == (len(due), payloads)
    assert out.tobytes() == due


def test_index_entries_keep_descriptors_of_other_writers() -> None:
    """Numbers one by one, parts in another order, and what nobody knows."""
    head = number(3 << 3) + number(5) + raw(9, b"?") + raw(2, stamp(7)) + number(24) + number(6) + num(1, 2)
    block = (len(head) + 3).to_bytes(8, "little") + len(head).to_bytes(4, "little") + head + b"abc"
    row = data_block(block, 0)
    assert (row.series, row.ns, row.numbers) == (2, 7, [5, 6])
    data, place = np.frombuffer(b"BDDF" + block, np.uint8), np.array([4], np.int64)
    out = np.zeros(100, np.uint8)
    size, payloads = bddf.write_index_entries(data, place, out)
    due = raw(3, raw(1, stamp(7)) + num(2, 4) + b"\x18\x05\x18\x06")
    assert (out[:size].tobytes(), payloads) == (due, 3)


def test_index_entries_of_positions_without_a_block_are_refused() -> None:
    data = np.frombuffer(b"BDDF" + make(0, 7, b"x")[:-1], np.uint8)
    for at in (-1, 0, 4, 5, len(data), 1 << 40):
        assert bddf.write_index_entries(data, np.array([at], np.int64), np.zeros(0, np.uint8))[0] == -1
