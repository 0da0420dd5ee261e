"""The gather kernels against slices of bytes, with forbidden memory behind data and arena; tables that are valid."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import block_table
from support.harness.examples import examples
from support.harness.guard import guarded

TOP = 2**63 - 1
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 40)
#: What fills destinations beforehand: a byte between two rows must still hold it afterwards.
BLANK = 0xA5


class Column:
    """One field: where it lies in a payload, its multiplier, and where its rows go."""

    def __init__(self, rng: Random, size: int, rows: int) -> None:
        self.mul = rng.choice((0, 0, 0, 1, 1000, 10**9, TOP))
        widths = [w for w in (WIDTHS if not self.mul else range(1, 9)) if w <= size]
        self.width = rng.choice(widths)
        # Some fields lie before the payload, as the size of a record does.
        self.offset = rng.choice((size - self.width, rng.randrange(size - self.width + 1), -2))
        self.step = (8 if self.mul else self.width) + rng.choice((0, 0, 1, 8))
        self.rows = rows
        self.size = max(rows - 1, 0) * self.step + (8 if self.mul else self.width)
        self.at = 0
        self.out = np.zeros(0, np.uint8)

    @property
    def row(self) -> tuple[int, int, int, int, int]:
        return self.offset, self.width, self.at, self.step, self.mul

    def expected(self, data: bytes, starts: list[int]) -> np.ndarray:
        out = np.full_like(self.out, BLANK)
        for i, start in enumerate(starts):
            raw = data[start + self.offset : start + self.offset + self.width]
            if self.mul:
                raw = min(int.from_bytes(raw, "little") * self.mul, TOP).to_bytes(8, "little")
            out[i * self.step : i * self.step + len(raw)] = np.frombuffer(raw, np.uint8)
        return out


def place(fields: list[Column]) -> np.ndarray:
    """Put columns into one arena, which ends where reading and writing is forbidden."""
    arena = guarded(bytes([BLANK]) * sum(f.size for f in fields), writeable=True)
    at = 0
    for f in fields:
        f.at, f.out = at, arena[at : at + f.size]
        at += f.size
    return arena


def rows_of(fields: list[Column]) -> np.ndarray:
    return np.array([f.row for f in fields], block_table.FIELD)


def payloads(rng: Random, data: bytes, size: int, n: int) -> list[int]:
    """*n* payload starts from byte 2 on; the last one ends with the data."""
    starts = [rng.randrange(2, len(data) - size + 1) for _ in range(n)]
    return [*starts[:-1], len(data) - size] if starts else []


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_gather_at_equals_slices(seed: int) -> None:
    rng = Random(seed)
    size = rng.choice((1, 8, 45))
    data = rng.randbytes(size + 2 + rng.randrange(5000))
    starts = payloads(rng, data, size, rng.choice((1, 2, 255, 256, 257, 700)))
    fields = [Column(rng, size, len(starts)) for _ in range(rng.randrange(1, 9))]
    arena, half = place(fields), len(starts) // 2
    for lo, hi in ((0, half), (half, len(starts))):
        offset = np.array(starts[lo:hi], np.int64)
        block_table.gather_at(guarded(data), offset, rows_of(fields), arena, lo)
    for f in fields:
        np.testing.assert_array_equal(f.out, f.expected(data, starts))


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_gather_blocks_equals_slices(seed: int) -> None:
    """Several blocks and channels, of which some are wanted, in two calls that each take a part of the blocks."""
    rng = Random(seed)
    channels, size = rng.randrange(1, 6), rng.choice((1, 8, 45))
    data = rng.randbytes(size + 2 + rng.randrange(5000))
    base, start, entry = [], [], []
    found: list[list[int]] = [[] for _ in range(channels)]
    for _ in range(rng.randrange(1, 6)):
        base.append(rng.randrange(3))
        start.append([len(entry)])
        for c in range(channels):
            starts = payloads(rng, data, size, rng.choice((0, 0, 1, 300)))
            found[c] += starts
            entry += [s - base[-1] for s in starts]
            start[-1].append(len(entry))
    wanted = rng.sample(range(channels), rng.randrange(1, channels + 1))
    fields = [[Column(rng, size, len(found[c])) for _ in range(rng.randrange(4))] for c in wanted]
    arena = place([f for group in fields for f in group])
    table = rows_of([f for group in fields for f in group])
    split = np.cumsum([0] + [len(group) for group in fields]).astype(np.int64)
    rows = np.zeros(len(wanted), np.int64)
    blocks = (np.array(base, np.int64), np.array(start, np.int64), np.array([*entry, 0], np.uint32))
    cut = rng.randrange(len(base) + 1)
    for lo, hi in ((0, cut), (cut, len(base))):
        chosen = np.array(wanted, np.int64)
        block_table.gather_blocks(
            guarded(data), *blocks, lo, hi, chosen, rows, split, table, arena, rng.random() < 0.5
        )
    assert rows.tolist() == [len(found[c]) for c in wanted]
    for c, group in zip(wanted, fields, strict=True):
        for f in group:
            np.testing.assert_array_equal(f.out, f.expected(data, found[c]))


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_adjacent_numbers_equal_slices(seed: int) -> None:
    """Runs of numbers of two and four bytes, several at a time, from the first byte to the last one."""
    rng = Random(seed)
    widths = [
        w for _ in range(rng.randrange(1, 4)) for w in [rng.choice((1, 2, 4, 8))] * rng.randrange(1, 20)
    ]
    size = sum(widths)
    data = rng.randbytes(size + 2 + rng.randrange(3000))
    starts = [0, *payloads(rng, data, size, rng.choice((2, 3, 4, 6, 7, 8, 11, 255, 256, 259, 264, 700)))]
    fields, at = [], 0
    for width in widths:
        f = Column(rng, size, len(starts))
        f.offset, f.width, f.mul, f.step = at, width, 0, width + rng.choice((0,) * 15 + (1,))
        f.size = (len(starts) - 1) * f.step + width
        at += width
        # A missing field, and a column elsewhere in the arena, end a run.
        if rng.randrange(12):
            fields.insert(len(fields) if rng.randrange(12) else rng.randrange(len(fields) + 1), f)
    if not fields:
        return
    for far in (False, True):
        arena, table = place(fields), rows_of(fields)
        if far:
            block_table.gather_at(guarded(data), np.array(starts, np.int64), table, arena)
        else:
            blocks = np.zeros(1, np.int64), np.array([[0, len(starts)]]), np.array(starts, np.uint32)
            one, split = np.zeros(1, np.int64), np.array([0, len(fields)])
            block_table.gather_blocks(
                guarded(data), *blocks, 0, 1, one, one.copy(), split, table, arena, True
            )
        for f in fields:
            np.testing.assert_array_equal(f.out, f.expected(data, starts))


@pytest.mark.parametrize("mul", [1, 2, 3, 1000, 10**6, TOP])
def test_products_are_held_at_the_greatest_int64(mul: int) -> None:
    edge = TOP // mul
    values = [0, 1, edge - 1, edge, edge + 1, TOP, TOP + 1, 2**64 - 1]
    values = [v for v in values if 0 <= v < 2**64]
    out = np.zeros(len(values), np.int64)
    data = guarded(b"".join(v.to_bytes(8, "little") for v in values))
    field = np.array([(0, 8, 0, 8, mul)], block_table.FIELD)
    block_table.gather_at(data, np.arange(0, len(data), 8, dtype=np.int64), field, out.view(np.uint8))
    assert out.tolist() == [min(v * mul, TOP) for v in values]


@pytest.mark.parametrize(
    "field",
    [
        (0, 8, 1, 8, 0),
        (0, 8, 0, 9, 0),
        (0, 9, 0, 8, 0),
        (0, 1, 1, 8, 1),
        (0, 8, -8, 8, 0),
        (0, 1, TOP, 1, 0),
        (0, 1, 31, -1, 0),
        (0, -1, 0, 8, 0),
        (0, 1, 0, TOP, 0),
        (0, 1, 32, 1, 0),
    ],
)
def test_columns_outside_of_the_arena_are_refused(field: tuple[int, ...]) -> None:
    data, out = np.zeros(64, np.uint8), np.full(32, BLANK, np.uint8)
    table, offset = np.array([field], block_table.FIELD), np.arange(0, 32, 8)
    with pytest.raises(IndexError):
        block_table.gather_at(data, offset, table, out)
    blocks = np.zeros(1, np.int64), np.array([[0, 4]]), np.arange(0, 32, 8, dtype=np.uint32)
    one = np.zeros(1, np.int64)
    with pytest.raises(IndexError):
        block_table.gather_blocks(data, *blocks, 0, 1, one, one.copy(), np.array([0, 1]), table, out, False)
    assert (out == BLANK).all()


# ------------------------------------------------------------------ tables that come from elsewhere


def _is_valid(
    start: list[list[int]], base: list[int], entry: list[int], least: list[int], limit: int
) -> bool:
    arrays = (np.array(a, np.int64) for a in (start, base))
    return block_table.is_valid_table(  # type: ignore[call-arg]
        *arrays, np.array(entry, np.uint32), np.array(least, np.int64), 5, limit
    )


def _sound(
    start: list[list[int]], base: list[int], entry: list[int], least: list[int], before: int, limit: int
) -> bool:
    """The same question by the meaning of the table."""
    at = 0
    for row, b in zip(start, base, strict=True):
        if not 0 <= b <= limit or row[0] != at:
            return False
        for c in range(len(row) - 1):
            if not row[c] <= row[c + 1] <= len(entry):
                return False
            places = [b + e for e in entry[row[c] : row[c + 1]]]
            if any(p < before or p + least[c] > limit for p in places):
                return False
        at = row[-1]
    return at == len(entry)


SOUND = ([[0, 2, 2, 3], [3, 3, 4, 4]], [0, 100], [5, 20, 40, 90], [8, 0, 60, 0], 200)


def test_is_valid_table_lets_a_sound_table_pass() -> None:
    assert _is_valid(*SOUND)
    assert _sound(*SOUND[:4], 5, SOUND[4])


HOSTILE = (-1, 0, 1, 3, 4, 5, 99, 100, 141, 192, 193, 200, 201, 2**31, 2**32 - 1, 2**32, TOP, -TOP - 1)


@settings(max_examples=examples(500))
@given(st.integers(0, 2**32))
def test_is_valid_table_judges_as_the_plain_reading(seed: int) -> None:
    rng = Random(seed)
    start, base, entry, least, limit = [list(row) for row in SOUND[0]], *map(list, SOUND[1:4]), SOUND[4]
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = rng.choice(HOSTILE)
        match rng.randrange(4):
            case 0:
                start[rng.randrange(2)][rng.randrange(4)] = value
            case 1:
                base[rng.randrange(2)] = value
            case 2:
                entry[rng.randrange(4)] = value & 0xFFFFFFFF
            case 3:
                limit = max(0, min(value, 2**40))
    assert _is_valid(start, base, entry, least, limit) == _sound(start, base, entry, least, 5, limit)
