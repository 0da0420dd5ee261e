"""Text in rows of a fixed width, against plain Python; text that is not UTF-8."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.kernels import block_table
from logreel.layout.arrow_from_buffers import text_array
from logreel.layout.numpy_columns import cut_text, padded_text, replaced_text, text_lengths
from support.harness.guard import guarded

ROWS = st.integers(0, 20).flatmap(
    lambda width: st.tuples(
        st.just(width),
        st.lists(
            st.binary(min_size=width, max_size=width).map(lambda b: b.replace(b"z", b"\0")), max_size=20
        ),
    )
)
TEXTS = st.lists(
    st.one_of(
        st.binary(max_size=6), st.text(max_size=4).map(str.encode), st.sampled_from([b"a", b"\xe2\x82"])
    ),
    max_size=20,
)


@given(ROWS)
def test_rows_are_cut_at_their_first_nul(rows: tuple[int, list[bytes]]) -> None:
    width, raw = rows
    chars = guarded(b"".join(raw)).reshape(len(raw), width)
    due = [row.split(b"\0")[0] for row in raw]
    assert text_lengths(chars).tolist() == [len(text) for text in due]
    offsets, data = cut_text(chars)
    assert [data[a:b].tobytes() for a, b in pairwise(offsets)] == due
    assert padded_text(chars.reshape(-1), len(raw), width).tolist() == due


def test_rows_that_are_not_adjacent_are_cut() -> None:
    chars = np.frombuffer(b"ab\0defg\0", np.uint8).reshape(2, 4)[:, ::2]
    assert cut_text(chars)[1].tobytes() == b"aeg"


@pytest.mark.parametrize("lengths", [[-1, 1], [3, 1], [2, 2]])
def test_lengths_that_do_not_fit_are_not_copied(lengths: list[int]) -> None:
    out = guarded(b"\0\0\0", writeable=True)
    copied = block_table.join_rows(np.full((2, 2), 7, np.uint8), np.array(lengths, np.int64), out)
    assert copied <= 3
    assert not out[copied:].any()


@given(TEXTS, st.binary(max_size=3))
def test_text_that_is_not_utf8_is_replaced(texts: list[bytes], before: bytes) -> None:
    """Also of offsets that do not begin at 0, and with bytes behind the last one."""
    offsets = np.cumsum([len(before), *map(len, texts)]).astype(np.int32)
    data = np.frombuffer(before + b"".join(texts) + b"\xff\xff", np.uint8)
    due = [text.decode("utf-8", "replace") for text in texts]
    ends, content = replaced_text(offsets, data)
    assert [content[a:b].tobytes().decode() for a, b in pairwise(ends)] == due
    assert text_array(offsets, data).to_pylist() == due
