"""Kernels of pyramids, against loops."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import pyramid as kernel
from logreel.meaning.pyramids import PyramidShape

VALUES = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf]), st.floats(-5, 5)),
    min_size=1,
    max_size=700,
)


def built(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return begin, least, most, least_at, most_at of a pyramid."""
    begin = PyramidShape(len(values), False).begin
    m = int(begin[-1])
    low, high = np.empty(m), np.empty(m)
    low_at, high_at = np.empty(m, np.uint8), np.empty(m, np.uint8)
    below = values, values
    for a, b in pairwise(begin):
        assert kernel.fold(*below, low[a:b], high[a:b], low_at[a:b], high_at[a:b]) == b - a
        below = low[a:b], high[a:b]
    return begin, low, high, low_at, high_at


def first_of(values: list[float], best: object) -> int:
    numbers = [v for v in values if v == v]
    return values.index(best(numbers)) if numbers else -1  # type: ignore[operator]


@given(VALUES, st.lists(st.integers(0, 700), max_size=20))
@settings(deadline=None)
def test_extrema_of_ranges_are_those_of_their_rows(some: list[float], cuts: list[int]) -> None:
    values = np.array(some)
    edges = np.unique(np.clip([0, *cuts, len(some)], 0, len(some))).astype(np.int64)
    group = np.unique(edges // 16)
    group = group[group * 16 < len(some)]
    padded = np.concatenate([values, np.full(32, np.nan)])
    raw = padded[group[:, None] * 16 + np.arange(16)]
    found = np.empty((len(edges) - 1, 2), np.int64)
    kernel.extrema(edges, group, raw, *built(values), len(values), found)
    for (a, b), (low, high) in zip(pairwise(edges), found.tolist(), strict=True):
        for row, best in ((low, min), (high, max)):
            expected = first_of(some[a:b], best)
            assert row == (-1 if expected < 0 else a + expected)


def test_places_of_a_forged_pyramid_lead_to_no_row() -> None:
    values = np.arange(10_000.0)
    begin, low, high, low_at, high_at = built(values)
    edges, found = np.array([0, 10_000], np.int64), np.empty((1, 2), np.int64)
    for forged in (16, 200, 255):
        high_at[:] = forged
        kernel.extrema(
            edges, np.zeros(0, np.int64), np.zeros((0, 16)), begin, low, high, low_at, high_at, 10_000, found
        )
        assert found.tolist() == [[0, -1]]
    # Inside of its group, but behind the last row.
    high_at[:] = 15
    kernel.extrema(
        edges, np.zeros(0, np.int64), np.zeros((0, 16)), begin, low, high, low_at, high_at, 10_000, found
    )
    assert found.tolist()[0][1] in {-1, *range(10_000)}


def test_missing_groups_and_short_arrays_raise() -> None:
    values = np.arange(100.0)
    found = np.empty((1, 2), np.int64)
    with pytest.raises(ValueError, match="missing"):
        kernel.extrema(
            np.array([3, 90], np.int64), np.zeros(0, np.int64), np.zeros((0, 16)), *built(values), 100, found
        )
    with pytest.raises(ValueError, match="group"):
        kernel.fold(values, values, np.empty(6), np.empty(7), np.empty(7, np.uint8), np.empty(7, np.uint8))
