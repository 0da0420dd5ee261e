"""Messages of several channels in one order, against sorted lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.channel_index import ChannelRules, ComputedValues, FieldAt, StoredValues, SyntheticMessages
from logreel.index.merge import Queue, _tournament, merged
from logreel.index.message_index import MessageIndex
from logreel.io.source import SYNTHETIC, Chunks, Source

#: Messages of a log: channel, time, and bytes to the next one. The last channel is made.
CHANNELS = 4
MESSAGES = st.lists(
    st.tuples(st.integers(0, CHANNELS - 1), st.integers(-3, 5), st.integers(1, 9)), max_size=40
)


def indexed(
    rows: list[tuple[int, int, int]], blocks: int, late: bool = False
) -> tuple[MessageIndex, list[Any]]:
    """An index over messages in so many blocks, and each message: channel, time, chunk, offset, size.

    late  entries and sizes are wrong until their block is resolved
    """
    made = [row for row in rows if row[0] == CHANNELS - 1]
    inside = [row for row in rows if row[0] < CHANNELS - 1]
    at = np.cumsum([0, *(row[2] for row in inside)])[: len(inside)].astype(np.int64)
    of = np.array([i * blocks // max(1, len(inside)) for i in range(len(inside))], np.int64)
    channel = np.array([row[0] for row in inside], np.int64)
    base = np.array([at[of == k][0] if (of == k).any() else 0 for k in range(blocks)], np.int64)
    order = np.lexsort((np.arange(len(inside)), channel, of))
    counts = np.array(
        [[((of == k) & (channel == c)).sum() for c in range(CHANNELS)] for k in range(blocks)], np.int64
    ).reshape(blocks, CHANNELS)
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    start = np.column_stack([ends[:, 0] - counts[:, 0], ends])
    entry = (at - base[of])[order].astype(np.uint32)
    size = np.array([inside[i][2] if inside[i][2] < 9 else MISSING_SIZE for i in order], np.uint32)
    time = np.array([inside[i][1] for i in order], np.int64)
    right = entry.copy(), size.copy()
    if late:
        entry[:], size[:] = 7, 7

    def resolve(numbers: np.ndarray) -> None:
        for k in numbers.tolist():
            span = slice(int(start[k, 0]), int(start[k, -1]))
            entry[span], size[span] = right[0][span], right[1][span]

    rules = [ChannelRules(StoredValues(time), StoredValues(size))] * (CHANNELS - 1)
    rules.append(ChannelRules(StoredValues(time), StoredValues(size), len(made)))
    places = np.arange(len(made), dtype=np.int64) * 10
    own = SyntheticMessages(places, places * 0 + 3, np.array([row[1] for row in made], np.int64))
    index = MessageIndex(
        Chunks(Source(b"", "log")),
        Blocks(base, (np.arange(blocks) - 1).astype(np.int32), start, entry),
        rules,
        lambda: (np.zeros(0, np.uint8), {CHANNELS - 1: own}),
        resolve if late else None,
    )
    due: list[Any] = [
        (row[0], row[1], int(of[i]) - 1, int(at[i]), row[2] if row[2] < 9 else MISSING_SIZE)
        for i, row in enumerate(inside)
    ]
    due += [(row[0], row[1], SYNTHETIC, 10 * i, 3) for i, row in enumerate(made)]
    return index, due


@given(MESSAGES, st.integers(1, 4), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 50))
def test_merge_equals_sorting_by_time_or_place(
    rows: list[tuple[int, int, int]], blocks: int, late: bool, by_time: bool, reverse: bool, first: int
) -> None:
    index, due = indexed(rows, blocks, late)
    queues = [Queue(index, c, slice(None), rank=-(c == CHANNELS - 1)) for c in range(CHANNELS)]
    found = list(merged(queues, by_time, reverse, first))
    seen = [
        row
        for piece in found
        for row in zip(
            *(a.tolist() for a in (piece.queue, piece.time, piece.chunk, piece.offset, piece.size)),
            strict=True,
        )
    ]
    due.sort(key=lambda row: (row[1] if by_time else 0, -(row[2] == SYNTHETIC), row[2], row[3]))
    assert seen == [row for row in (due[::-1] if reverse else due) if row[4] != MISSING_SIZE]
    # Pieces are no larger than asked for; there is none without messages.
    assert all(len(piece.time) > 0 for piece in found)
    if len(seen) == len(due) and found:
        assert len(found[0].time) == min(first, len(seen))


@given(MESSAGES, MESSAGES, st.integers(-4, 4), st.data())
def test_merge_of_two_logs_equals_sorting_by_time_then_log(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]], shift: int, data: st.DataObject
) -> None:
    queues, due = [], []
    for rank, (rows, moved) in enumerate(((one, 0), (two, shift))):
        index, every = indexed(rows, 2)
        for c in range(CHANNELS):
            mine = [row for row in every if row[0] == c]
            keep = sorted(data.draw(st.sets(st.integers(0, max(0, len(mine) - 1)))) if mine else ())
            due += [(mine[i][1] + moved, rank, *mine[i][2:], len(queues)) for i in keep]
            queues.append(Queue(index, c, np.array(keep, np.int64), moved, rank))
    due = [row for row in sorted(due) if row[4] != MISSING_SIZE]
    found = [
        (piece.time.tolist()[i], piece.queue.tolist()[i], piece.offset.tolist()[i])
        for piece in merged(queues, first=3)
        for i in range(len(piece.time))
    ]
    assert found == [(row[0], row[5], row[3]) for row in due]


SIZES = {
    "one for all": 5,
    "beside": FieldAt(-2, 2, 3, -1),
    "listed": StoredValues(np.array([7, 8, 9, 10], np.uint32)),
    "signed": StoredValues(np.array([7, 8, 9, 10], np.int32)),
    "wide": FieldAt(-2, 8),
    "derived": ComputedValues(lambda data, start: start * 2),
}


@given(st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4))
def test_sizes_of_every_rule(names: list[str]) -> None:
    """Sizes that the kernel knows how to ask for and others, mixed."""
    data = np.arange(60, dtype=np.uint8)
    sources = [Chunks(Source(data.tobytes(), "log")) for _ in names]
    queues, due = [], []
    for i, (name, chunks) in enumerate(zip(names, sources, strict=True)):
        offset = np.array([10, 20, 30, 40], np.int64)
        blocks = Blocks.of(offset, np.zeros(4, np.int64), 1)
        rule_set = ChannelRules(StoredValues(np.arange(4, dtype=np.int64)), SIZES[name])
        queues.append(Queue(MessageIndex(chunks, blocks, [rule_set]), 0, slice(None)))
        for row, at in enumerate(offset.tolist()):
            word = int(data[at - 2]) | int(data[at - 1]) << 8
            eight = int.from_bytes(data[at - 2 : at + 6].tobytes(), "little")
            size = {"one for all": 5, "beside": word * 3 - 1, "derived": at * 2, "wide": eight}
            due.append((row, i, at, size.get(name, 7 + row)))
    found = [
        row
        for piece in merged(queues, first=3)
        for row in zip(
            *(a.tolist() for a in (piece.time, piece.queue, piece.offset, piece.size)), strict=True
        )
    ]
    # Logs of one rank come in no order of their own.
    assert sorted(found) == sorted(due)


@pytest.mark.parametrize("counts", [[1], [5, 5], [1, 100, 1, 1, 1000, 7], [0, 0, 3, 0], list(range(40))])
def test_queues_with_many_messages_are_near_the_root(counts: list[int]) -> None:
    up = _tournament(counts).tolist()
    k = len(counts)
    depth = []
    for i in range(k):
        node, seen = up[i], list[int]()
        while node:
            seen.append(node)
            node = up[k + node]
        assert len(set(seen)) == len(seen)
        assert not seen or seen[-1] == 1
        depth.append(len(seen))
    # Each of the other places in the tree is met by exactly two.
    assert sorted(node for node in up[:k] + up[k + 1 :] if node) == sorted([*range(1, k)] * 2)
    for i in range(k):
        for j in range(k):
            assert counts[i] <= counts[j] or depth[i] <= depth[j]


def test_merge_without_queues_is_empty() -> None:
    assert list(merged([])) == []
    index, _ = indexed([], 1)
    assert list(merged([Queue(index, 0, slice(0, 0))])) == []


@pytest.mark.parametrize("reverse", [False, True])
def test_extreme_int64_times_are_ordered(reverse: bool) -> None:
    last = (1 << 63) - 1
    index, _ = indexed([(0, 0, 1), (1, 0, 1), (2, 0, 1)], 1)
    index._times = {0: np.array([last]), 1: np.array([-last - 1]), 2: np.array([0])}
    found = next(merged([Queue(index, c, slice(None)) for c in range(3)], reverse=reverse))
    assert found.time.tolist() == sorted([last, 0, -last - 1], reverse=reverse)
