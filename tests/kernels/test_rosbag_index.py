"""Chunk headers and index records of rosbag against plain Python, on sound and damaged bytes up to a forbidden page."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import rosbag
from support.harness.examples import examples
from support.harness.guard import guarded

U32 = st.integers(0, (1 << 32) - 1)


def record(fields: dict[bytes, bytes], data: bytes, stated: int | None = None) -> bytes:
    parts = [name + b"=" + value for name, value in fields.items()]
    head = b"".join(struct.pack("<I", len(p)) + p for p in parts)
    size = len(data) if stated is None else stated
    return struct.pack("<I", len(head)) + head + struct.pack("<I", size) + data


@st.composite
def chunks(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, list[tuple[int, int, int]]]]]:
    """A chunk, and its index records: connection and entries of each."""
    packing = draw(st.sampled_from(rosbag.COMPRESSIONS))
    fields = {b"op": b"\x05", b"compression": packing.encode(), b"size": struct.pack("<I", draw(U32))}
    out = record({k: fields[k] for k in draw(st.permutations(list(fields)))}, draw(st.binary(max_size=20)))
    runs = draw(st.lists(st.tuples(U32, st.lists(st.tuples(U32, U32, U32), max_size=3)), max_size=3))
    for conn, rows in runs:
        entries = b"".join(struct.pack("<III", *row) for row in rows)
        head = {b"ver": b"\1\0\0\0", b"op": b"\x04", b"conn": struct.pack("<I", conn)}
        head[b"count"] = struct.pack("<I", len(rows))
        # Recorders of 2010 stated more than they wrote.
        out += record(head, entries, draw(st.sampled_from((None, len(entries) + 4))))
    return out, [(conn, rows) for conn, rows in runs if rows]


@settings(max_examples=examples(300))
@given(st.lists(chunks(), min_size=1, max_size=3), st.data())
def test_index_entries_equal_the_written_ones_of_bags(parts: list, draw: st.DataObject) -> None:
    data = b"".join(raw for raw, _ in parts)
    places = np.cumsum([0, *(len(raw) for raw, _ in parts)])
    many = np.array([len(runs) for _, runs in parts], np.int64)
    chunk, run = np.zeros((len(parts), 5), np.int64), np.zeros((int(many.sum()), 3), np.int64)
    assert rosbag.read_chunk_headers(guarded(data), places[:-1].copy(), many, chunk, run) == (0, len(parts))
    flat = [one for _, runs in parts for one in runs]
    assert run[:, :2].tolist() == [[conn, len(rows)] for conn, rows in flat]
    # Index records without entries may stand at the end of a chunk.
    assert (chunk[:, 4] <= places[1:]).all()

    rows = [row for _, rows in flat for row in rows]
    time, place = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint32)
    limit = draw.draw(U32)
    table = np.column_stack([run[:, 1:], np.full(len(run), limit)]).astype(np.int64)
    outside = rosbag.read_index_entries(guarded(data), table, time, place)
    assert time.tolist() == [sec * 10**9 + nsec for sec, nsec, _ in rows]
    assert place.tolist() == [at for _, _, at in rows]
    beyond = [k for k, (_, rows) in enumerate(flat) if any(at >= limit for _, _, at in rows)]
    assert outside == (beyond[0] if beyond else len(flat))


@settings(max_examples=examples(400))
@given(chunks(), st.data())
def test_damaged_chunks_are_refused_without_reading_beyond(part: tuple, draw: st.DataObject) -> None:
    data, runs = bytearray(part[0]), part[1]
    for _ in range(draw.draw(st.integers(0, 2))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    cut = guarded(bytes(data[: draw.draw(st.integers(1, len(data)))]))
    pos = draw.draw(st.sampled_from((0, 1, len(data), len(data) + 5)))
    chunk, run = np.zeros((1, 5), np.int64), np.zeros((len(runs), 3), np.int64)
    many = np.array([len(runs)], np.int64)
    why, k = rosbag.read_chunk_headers(cut, np.array([pos], np.int64), many, chunk, run)
    if why == rosbag.OK:
        assert k == 1
        assert (chunk[:, 0] + chunk[:, 1] <= len(cut)).all()
        assert (run[:, 2] + 12 * run[:, 1] <= len(cut)).all()
    else:
        assert k == 0


def test_every_truncation_has_its_reason() -> None:
    chunk = record({b"op": b"\x05", b"compression": b"lz4", b"size": b"\x09\0\0\0"}, b"packed")
    index = record({b"op": b"\x04", b"conn": bytes(4), b"count": b"\1\0\0\0"}, bytes(12))
    whole = chunk + index
    for cut in range(1, len(whole) + 1):
        out, run = np.zeros((1, 5), np.int64), np.zeros((1, 3), np.int64)
        one = np.ones(1, np.int64)
        why, _ = rosbag.read_chunk_headers(guarded(whole[:cut]), np.zeros(1, np.int64), one, out, run)
        if cut == len(whole):
            assert why == rosbag.OK
            assert out.tolist() == [[len(chunk) - 6, 6, 2, 9, len(whole)]]
            assert run.tolist() == [[0, 1, len(whole) - 12]]
        elif cut >= len(chunk):
            assert why == rosbag.NO_INDEX
        else:
            assert why == (rosbag.CUT if cut >= len(chunk) - 6 else rosbag.NO_CHUNK)
