"""``distinct`` gives what ``np.unique`` gives, sorted or not, and never a view of its argument."""

from __future__ import annotations

import numpy as np

from logreel.io.arrays import distinct, without


def test_distinct_is_unique_of_numpy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        drawn = rng.integers(-3, 4, rng.integers(0, 9))
        for values in (drawn, np.sort(drawn), drawn.astype(np.uint8), drawn / 2):
            before = values.copy()
            result = distinct(values)
            np.testing.assert_array_equal(result, np.unique(values))
            assert result.dtype == values.dtype
            assert not np.shares_memory(result, values)
            np.testing.assert_array_equal(values, before)


def test_without_is_setdiff1d_of_numpy() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        values, others = (rng.integers(-3, 9, rng.integers(0, 9)) for _ in range(2))
        result = without(values, others)
        np.testing.assert_array_equal(result, np.setdiff1d(values, others))
        assert result.dtype == values.dtype
