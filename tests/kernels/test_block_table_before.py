"""Places of messages before others, against plain Python over every message; runs that no scan made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logreel.index.block_table import Blocks
from logreel.kernels import framed as kernel

CHANNELS = 5
#: Messages: channel, and bytes to the next one; some reach beyond what the kernel takes at a time.
MESSAGES = st.lists(
    st.tuples(st.integers(0, CHANNELS - 1), st.sampled_from([1, 2, 63, 64, 65, 300, 1 << 19, (1 << 19) + 7])),
    max_size=60,
)


def table_of(channel: list[int], at: list[int], blocks: int) -> Blocks:
    """Return a table of so many blocks."""
    base, start, entry = list[int](), list[list[int]](), list[int]()
    for rows in np.array_split(np.arange(len(at)), blocks):
        if len(rows):
            base.append(at[rows[0]] - min(3, at[rows[0]]))
            start.append([])
            for c in range(CHANNELS):
                start[-1].append(len(entry))
                entry += [at[i] - base[-1] for i in rows if channel[i] == c]
            start[-1].append(len(entry))
    return Blocks(
        np.array(base, np.int64),
        np.zeros(len(base), np.int32),
        np.array(start, np.int64).reshape(-1, CHANNELS + 1),
        np.array(entry, np.uint32),
    )


@given(MESSAGES, st.integers(1, 5), st.sets(st.integers(0, CHANNELS - 1)))
@example([(0, 1 << 20), (1, 5), (0, 5)], 1, {0})
@example([(1, 64)] * 9 + [(0, 1)], 2, {1})
def test_places_before_equal_plain_python(
    messages: list[tuple[int, int]], blocks: int, among: set[int]
) -> None:
    channel = [c for c, _ in messages]
    at = np.cumsum([7, *(step for _, step in messages)])[:-1].tolist()
    table = table_of(channel, at, blocks)
    for asked in range(CHANNELS):
        due = [
            max((a for a, c in zip(at, channel, strict=True) if c in among and a < place), default=-1)
            for place, c in zip(at, channel, strict=True)
            if c == asked
        ]
        assert table.latest_before(asked, sorted(among)).tolist() == due


@pytest.mark.parametrize("start", [[-1, 1, 2], [0, 1, 9], [0, 5, 2], [0, -(2**62), 2**62]])
def test_runs_outside_of_the_entries_are_not_followed(start: list[int]) -> None:
    """A mapped table may be overwritten at any moment."""
    arrays = np.zeros(1, np.int64), np.array([start], np.int64), np.array([1, 2], np.uint32)
    out = np.full(1, 77, np.int64)
    assert kernel.latest_before(*arrays, np.array([0]), 1, out) <= 1
    table = Blocks(arrays[0], np.zeros(1, np.int32), arrays[1], arrays[2])
    if start[0] < 0 or start[2] > 2:
        with pytest.raises((IndexError, ValueError)):
            table.latest_before(1, [0])


@pytest.mark.parametrize(("among", "asked"), [([-1], 0), ([2], 0), ([0], 2), ([0], -1)])
def test_channels_that_do_not_exist_fill_nothing(among: list[int], asked: int) -> None:
    out = np.full(1, 77, np.int64)
    arrays = np.zeros(1, np.int64), np.array([[0, 1, 2]], np.int64), np.array([1, 2], np.uint32)
    assert kernel.latest_before(*arrays, np.array(among), asked, out) == 0
    assert out.tolist() == [77]


@pytest.mark.parametrize("entry", [[9, 3, 200, 4], [2**32 - 1, 0, 5, 2**32 - 1]])
def test_entries_in_no_order_end(entry: list[int]) -> None:
    out = np.full(2, 77, np.int64)
    arrays = np.zeros(1, np.int64), np.array([[0, 2, 4]], np.int64), np.array(entry, np.uint32)
    assert kernel.latest_before(*arrays, np.array([0]), 1, out) == 2
    assert set(out.tolist()) <= {-1, *entry}
