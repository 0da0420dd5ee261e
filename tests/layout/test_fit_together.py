"""Whether messages are decoded in one batch is found from sums, as from the sizes of all messages."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.layout.nodes import MAX_SIZE
from logreel.layout.program import batches, fit_together

FAR = 1 << 62


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        ([], []),
        ([0, 10], [10, 10]),
        ([0], [MAX_SIZE]),
        ([0], [MAX_SIZE + 1]),
        ([0, 0], [MAX_SIZE, 1]),
        # The sums of places overflow.
        ([FAR, FAR, FAR], [FAR + 5, FAR + 6, FAR + 7]),
        ([FAR, FAR, FAR], [FAR + MAX_SIZE, FAR + 1, FAR]),
        # A message that ends before it starts takes nothing away from the others.
        ([0, MAX_SIZE], [MAX_SIZE + 9, MAX_SIZE - 9]),
    ],
)
def test_messages_that_fit_together_are_one_batch(start: list[int], stop: list[int]) -> None:
    places = np.array(start, np.int64), np.array(stop, np.int64)
    sizes = [b - a for a, b in zip(start, stop, strict=True)]
    fit = fit_together(*places)
    assert fit == (min(sizes, default=0) >= 0 and sum(sizes) <= MAX_SIZE)
    if fit and start:
        assert [*batches(*places)] == [slice(0, len(start))]
