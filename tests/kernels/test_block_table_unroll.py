"""Block tables unrolled, and numbers repeated, against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logreel.index.block_table import unrolled
from logreel.io import arrays as parallel
from logreel.kernels import block_table

RUNS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 1 << 40)), max_size=8)


@given(RUNS, st.sampled_from([np.uint32, np.int64]))
def test_unroll_equals_numpy(runs: list[tuple[int, int, int]], kind: type) -> None:
    values = np.arange(30, dtype=kind) * 7
    first, count, base = (np.array([run[i] for run in runs], np.int64) for i in range(3))
    due = [int(b) + 7 * k for f, n, b in runs for k in range(f, f + n)]
    assert unrolled(values, first, first + count, base).tolist() == due
    assert unrolled(values, first, first + count).tolist() == [
        7 * k for f, n, _ in runs for k in range(f, f + n)
    ]


def test_nothing_is_read_or_written_beyond_the_ends() -> None:
    values, one = np.arange(4, dtype=np.uint32), np.ones(1, np.int64)
    for first, last, room in ((0, 5, 9), (-1, 2, 9), (0, 4, 3), (1 << 62, (1 << 62) + 1, 9)):
        out = np.full(room, -5, np.int64)
        assert block_table.unroll(values, one * first, one * last, one, out) == 0
        assert (out == -5).all()
    out = np.full(3, -5, np.int64)
    assert block_table.repeat(np.array([1, 2, 3]), np.array([1, 1, 2]), out) == 2
    assert block_table.repeat(np.array([1, 2]), np.array([-1, 1]), out) == 0
    assert out.tolist() == [1, 2, -5]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 7))
def test_repeat_in_threads_equals_numpy(counts: list[int], least: int) -> None:
    count = np.array(counts, np.int64)
    before, parallel.NUMBERS = parallel.NUMBERS, least
    try:
        for values in (
            np.arange(len(count)) - 3,
            np.arange(len(count)) / 3,
            np.arange(len(count), dtype="u1"),
        ):
            assert parallel.repeated(values, count).tolist() == np.repeat(values, count).tolist()
    finally:
        parallel.NUMBERS = before
