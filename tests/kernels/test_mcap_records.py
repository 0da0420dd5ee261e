"""Kernels of mcap against plain Python: records, message indexes."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from logreel.kernels import mcap

#: The least content of each kind.
LEAST = {
    1: 8,
    2: 20,
    3: 14,
    4: 16,
    5: 22,
    6: 40,
    7: 6,
    8: 64,
    9: 36,
    10: 48,
    11: 46,
    12: 8,
    13: 20,
    14: 17,
    15: 4,
}


def record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def message(key: int, time: int, payload: bytes) -> bytes:
    return record(5, struct.pack("<HIQQ", key, 1, time, time) + payload)


def walk(
    data: bytes, pos: int, end: int, stop: int = 0, room: int = 1000
) -> tuple[int, int, list[tuple], list[int]]:
    arrays = [np.empty(room, np.int64) for _ in range(4)]
    note = np.empty(room, np.int64)
    raw = np.frombuffer(data + b"\xee", np.uint8)
    why, at, n, m = mcap.walk(raw, pos, end, *arrays, note, stop)  # type: ignore[call-arg]
    return why, at, list(zip(*(a[:n].tolist() for a in arrays), strict=True)), note[:m].tolist()


def plain(data: bytes, pos: int, end: int, stop: int = 0) -> tuple[int, int, list[tuple], list[int]]:
    messages, notes = [], []
    while pos < end:
        if data[pos] == 0:
            return mcap.BAD, pos, messages, notes
        if end - pos < 9:
            return mcap.CUT, pos, messages, notes
        kind, size = struct.unpack_from("<BQ", data, pos)
        if size >= 1 << 63 or size < LEAST.get(kind, 0):
            return mcap.BAD, pos, messages, notes
        if size > end - pos - 9:
            return mcap.CUT, pos, messages, notes
        if kind < 64 and stop >> kind & 1:
            return mcap.STOP, pos, messages, notes
        if kind == 5:
            key, _, time, _ = struct.unpack_from("<HIQQ", data, pos + 9)
            messages.append((key, min(time, (1 << 63) - 1), pos + 31, size - 22))
        else:
            notes.append(pos)
        pos += 9 + size
    return mcap.END, pos, messages, notes


def some(rng: random.Random) -> bytes:
    out = bytearray()
    for _ in range(rng.randrange(12)):
        kind = rng.choice((5, 5, 5, *LEAST, 0x42, 0x81))
        content = rng.randbytes(LEAST.get(kind, 0) + rng.randrange(9))
        out += record(kind, content)
    for _ in range(rng.choice((0, 0, 1, 3))):
        if out:
            out[rng.randrange(len(out))] = rng.choice((0, 1, 5, 255, rng.randrange(256)))
    return bytes(out)


def test_walk_equals_the_plain_walk() -> None:
    for seed in range(3000):
        rng = random.Random(seed)
        data, stop = some(rng), rng.choice((0, 1 << 6, 1 << 2 | 1 << 6))
        end = rng.choice((len(data), rng.randrange(len(data) + 1)))
        assert walk(data, 0, end, stop) == plain(data, 0, end, stop), seed


def test_walk_stops_when_its_arrays_are_full() -> None:
    data = message(1, 5, b"a") * 4
    why, pos, found, _ = walk(data, 0, len(data), room=3)
    assert (why, pos, len(found)) == (mcap.FULL, 3 * 32, 3)
    assert walk(data, pos, len(data))[2] == [(1, 5, 3 * 32 + 31, 1)]


@pytest.mark.parametrize("junk", [b"", b"\0", bytes(100), b"\x05" * 50, b"\xff" * 20])
def test_find_records_skips_junk(junk: bytes) -> None:
    two = message(1, 2, b"abc") + message(2, 3, b"")

    def find(data: bytes) -> int:
        return mcap.find_records(np.frombuffer(data, np.uint8), 0, len(data))

    assert find(junk + two + b"\0" * 40) == len(junk)
    assert find(junk + two[:34]) == len(junk)
    assert find(junk + two[:33]) == len(junk) + 33
    # A whole one and the head of the next are enough, one that stands alone is not.
    assert find(junk + two[:34] + two[34:50]) == len(junk)
    assert find(junk + two[:34] + bytes(9)) == len(junk) + 43


def test_locate_messages_accepts_only_matching_entries() -> None:
    chunk = message(3, 10, b"xy") + message(4, 11, b"") + message(3, 12, b"z")
    index = record(7, struct.pack("<HI", 3, 32) + struct.pack("<4Q", 10, 0, 12, 64))
    data = np.frombuffer(b"\xee" + index, np.uint8)

    def entries(*run: int) -> tuple[int, list[int], list[int]]:
        time, place, good = np.zeros(2, np.int64), np.zeros(2, np.uint32), np.zeros(1, np.uint8)
        mcap.read_index_entries(data, np.array([run], np.int64), time, place, good)
        return int(good[0]), time.tolist(), place.tolist()

    size = len(chunk)
    assert entries(1, 3, 2, size, 0) == (1, [10, 12], [31, 95])
    for bad in (
        (0, 3, 2, size, 0),
        (1, 4, 2, size, 0),
        (1, 3, 1, size, 0),
        (1, 3, 2, 90, 0),
        (-1, 3, 2, size, 0),
    ):
        assert entries(*bad)[0] == 0
    assert entries(1 << 62, 3, 2, size, 0)[0] == 0

    def locate(key: int, *rows: tuple[int, int]) -> tuple[int, list[int]]:
        entry, time = np.array([r[0] for r in rows], np.uint32), np.array([r[1] for r in rows], np.int64)
        found, good = np.full(len(rows), 99, np.uint32), np.zeros(1, np.int64)
        run = np.array([[0, len(rows), 0, size, key]], np.int64)
        mcap.locate_messages(np.frombuffer(chunk, np.uint8), run, entry, time, found, good)
        return int(good[0]), found.tolist()

    assert locate(3, (31, 10), (95, 12)) == (2, [2, 1])
    assert locate(3, (31, 11), (64, 11), (0, 10), (size + 31, 12), (30, 10)) == (0, [99] * 5)
    assert locate(4, (64, 11)) == (1, [0])


def test_write_index_equals_the_plain_index() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        chunk, rows = b"", []
        for _ in range(rng.randrange(1, 40)):
            chunk += record(3, bytes(14)) * rng.randrange(2)
            rows.append((rng.randrange(9), rng.randrange(1 << 62), len(chunk)))
            chunk += message(*rows[-1][:2], bytes(rng.randrange(9)))
        due, begin = b"", []
        for key in range(9):
            entries = b"".join(struct.pack("<QQ", time, place) for k, time, place in rows if k == key)
            begin.append(len(due))
            due += record(7, struct.pack("<HI", key, len(entries)) + entries) if entries else b""
        data, place = np.frombuffer(chunk, np.uint8), np.array([row[2] for row in rows])
        counts, found, out = np.zeros(9, np.int64), np.empty(9, np.int64), np.empty(len(due), np.uint8)
        times = mcap.count_messages(data, place, counts)
        mcap.write_index(data, place, counts, found, out)
        assert (out.tobytes(), found.tolist()) == (due, begin), seed
        assert times == (min(row[1] for row in rows), max(row[1] for row in rows))
        assert counts.tolist() == [sum(k == key for k, _, _ in rows) for key in range(9)]
