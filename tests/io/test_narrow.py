"""Where memory has 32-bit addresses, NumPy takes and gives 64-bit numbers as elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.io.narrow import GIVING, REFUSING, giving_int64, taking_int64


def test_counts_of_another_width_are_taken() -> None:
    # On 64-bit systems NumPy refuses uint64 as it refuses int64 on those with 32.
    counts = np.array([2, 0, 3], np.uint64)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.repeat(np.arange(3), counts)
    assert taking_int64(np.repeat, REFUSING["repeat"])(np.arange(3), counts).tolist() == [0, 0, 2, 2, 2]
    assert taking_int64(np.bincount, REFUSING["bincount"])(counts, minlength=5).tolist() == [1, 0, 1, 1, 0]


def test_other_arguments_stay_as_they_are() -> None:
    taking = taking_int64(np.repeat, 1)
    assert taking(np.arange(4).reshape(2, 2), 2, axis=1).tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]
    with pytest.raises(TypeError, match="Cannot cast"):
        taking(np.arange(2), np.array([1.5, 2.0]))


def test_more_items_than_memory_can_hold_are_refused_and_not_wrapped() -> None:
    with pytest.raises(OverflowError, match="more than memory can hold"):
        taking_int64(np.repeat, 1, np.int32)(np.arange(1), np.array([2**32 + 1]))


def test_integers_of_a_32_bit_system_are_given_as_int64() -> None:
    def arange(count: int, dtype: type = np.int32) -> np.ndarray:
        return np.arange(count, dtype=dtype)

    giving = giving_int64(arange, np.int32)
    # Seconds times nanoseconds overflow int32.
    assert (giving(4) * 10**9).tolist() == [0, 10**9, 2 * 10**9, 3 * 10**9]
    assert giving(4, dtype=np.int32).dtype == np.int32
    places = giving_int64(lambda: (np.zeros(2, np.int32), np.zeros(2, np.int32)), np.int32)()
    assert [part.dtype for part in places] == [np.int64, np.int64]
    assert giving_int64(np.bincount)(np.array([0, 1]), np.array([0.5, 1.0])).tolist() == [0.5, 1.0]


def test_all_functions_are_those_of_numpy() -> None:
    assert all(callable(getattr(np, name)) for name in (*REFUSING, *GIVING))
