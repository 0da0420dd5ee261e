"""Latest times before positions in a file, against plain Python over every message."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logreel.formats.ulog.clock import LatestTimes
from logreel.index.block_table import Blocks
from logreel.index.channel_index import FieldAt
from logreel.io.source import Chunks, Source
from logreel.kernels import block_table as kernel

#: Where the time of each channel lies: bytes from the payload, its own bytes, ns of its unit. The last one tells none.
WORDS = [(0, 8, 1000), (1, 4, 7), (-2, 2, 1), (0, 1, 10**9)]
#: Messages: channel, and how many times 32 bytes to the next one.
MESSAGES = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=30)


@given(
    MESSAGES,
    st.integers(0, 1 << 32),
    st.lists(st.integers(0, 4000), max_size=12),
    st.sampled_from([0, 1, 5000, 10**10, (1 << 63) - 1]),
    st.sampled_from([1, 32, 100, 1000, (1 << 63) - 1]),
)
def test_latest_times_equal_plain_python(
    messages: list[tuple[int, int]], seed: int, places: list[int], end: int, window: int
) -> None:
    data = np.random.default_rng(seed).integers(0, 256, 4096).astype(np.uint8)
    # Times of 64 bits that are not absurd, sometimes.
    data[: 4096 : 32 if seed % 2 else 1 << 20] = 1
    at = [64 + 32 * int(n) for n in np.cumsum([0, *(step for _, step in messages)])[:-1]]
    due = []
    for place in sorted(places):
        best = 0
        for (channel, _), start in zip(messages, at, strict=True):
            near = any(0 < other - start <= window for other in places if other <= place)
            if near and channel < len(WORDS):
                offset, width, mul = WORDS[channel]
                time = int.from_bytes(data[start + offset : start + offset + width].tobytes(), "little") * mul
                best = max(best, time if time <= end else 0)
        due.append(best)
    order = sorted(range(len(at)), key=lambda i: (messages[i][0], i))
    start = np.searchsorted([messages[i][0] for i in order], range(6)).astype(np.int64)
    entry = np.array([at[i] - 10 for i in order], np.uint32)
    words = np.array([(c, *word) for c, word in enumerate(WORDS)], np.int64)
    out = np.full(len(places), 77, np.int64)
    kernel.latest_times(data, 10, start, entry, words, end, window, np.array(sorted(places), np.int64), out)
    assert out.tolist() == due


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=40), st.data())
def test_latest_times_look_back_one_block(messages: list[tuple[int, int]], data: st.DataObject) -> None:
    """Of blocks of ten messages; a place in no order."""
    offset = np.arange(len(messages), dtype=np.int64) * 16 + 16
    raw = np.zeros(16 * len(messages) + 32, np.uint8)
    raw[offset] = [time for _, time in messages]
    channel = np.array([c for c, _ in messages])
    parts = [Blocks.of(offset[lo : lo + 10], channel[lo : lo + 10], 3) for lo in range(0, len(messages), 10)]
    shift = np.cumsum([0, *(len(part.entry) for part in parts)])[:-1]
    table = Blocks(
        np.concatenate([part.base for part in parts]),
        np.concatenate([part.chunk for part in parts]),
        np.concatenate([part.start + n for part, n in zip(parts, shift, strict=True)]),
        np.concatenate([part.entry for part in parts]),
    )
    # The last channel has no full stamp: its times do not count here.
    stamps = {0: FieldAt(0, 8, 5), 1: FieldAt(0, 1, 5)}
    chunks = Chunks(Source(raw.tobytes(), "log"))
    places = np.array(data.draw(st.lists(st.integers(0, len(raw)), max_size=9)), np.int64)
    found = LatestTimes(chunks, table, stamps, 3, 35).before(places).tolist()
    for place, moment in zip(places.tolist(), found, strict=True):
        block = max((k for k in range(len(table.base)) if int(table.base[k]) <= place), default=-1)
        seen = [
            5 * time
            for i, (c, time) in enumerate(messages)
            if int(offset[i]) < place and c < 2 and 5 * time <= 35 and block - 1 <= i // 10
        ]
        assert moment == max([3, *seen])
