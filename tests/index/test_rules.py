"""Rules of channels: numbers of all messages, of some rows, and of messages in a range agree."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.channel_index import (
    ChannelRules,
    ComputedValues,
    ConstantValues,
    FieldAt,
    FunctionValues,
    HeaderField,
    Rule,
    StoredValues,
)
from logreel.index.gather import payload_ranges
from logreel.index.merge import Queue, merged
from logreel.index.message_index import MessageIndex
from logreel.io.source import Chunks, Source

N = 40
DATA = np.arange(4, 4 + 16 * N, dtype=np.int64).astype(np.uint8)
RULES: dict[str, Rule] = {
    "field": FieldAt(2, 1, 3),
    "field plus constant": FieldAt(1, 1, 1, 5),
    "stored": StoredValues(np.arange(N, dtype=np.uint32) * 7),
    "stored signed": StoredValues(np.arange(N, dtype=np.int32) * 7),
    "computed": ComputedValues(lambda data, start: start * 2 + data[start]),
    "constant": ConstantValues(9),
    "function": FunctionValues(lambda index: index.starts(0) + 1),
}
EXPECTED = {
    "field": DATA[2::16].astype(np.int64) * 3,
    "field plus constant": DATA[1::16].astype(np.int64) + 5,
    "stored": np.arange(N) * 7,
    "stored signed": np.arange(N) * 7,
    "computed": np.arange(N) * 32 + DATA[::16],
    "constant": np.full(N, 9),
    "function": np.arange(N) * 16 + 1,
}
ROWS = np.array([0, 3, 4, N - 1], np.int64)


def index_of(rules: ChannelRules, chunked: bool = False) -> MessageIndex:
    """Return an index of one channel with N messages in four blocks, in the file itself or a chunk each."""
    base = np.arange(4, dtype=np.int64) * 160
    runs = np.arange(5, dtype=np.int64) * 10
    entry = np.tile(np.arange(10, dtype=np.uint32) * 16, 4)
    if chunked:
        data, base, chunk = DATA.reshape(4, -1), np.zeros(4, np.int64), np.arange(4, dtype=np.int32)
        chunks = Chunks(Source(b"", "log"), data.__getitem__)
    else:
        chunk, chunks = np.full(4, -1, np.int32), Chunks(Source(DATA.tobytes(), "log"))
    blocks = Blocks(base, chunk, np.stack((runs[:-1], runs[1:]), axis=1), entry)
    return MessageIndex(chunks, blocks, [rules])


@pytest.mark.parametrize("name", RULES)
def test_values_of_rows_equal_rows_of_all_values(name: str) -> None:
    index = index_of(ChannelRules(RULES[name], 16))
    assert RULES[name].values(index, 0).tolist() == EXPECTED[name].tolist()
    assert RULES[name].values(index, 0, ROWS).tolist() == EXPECTED[name][ROWS].tolist()
    assert index.times_at(0, ROWS).tolist() == EXPECTED[name][ROWS].tolist()
    assert index.first_and_last_times(0) == (EXPECTED[name][0], EXPECTED[name][-1])
    assert index.times(0).tolist() == EXPECTED[name].tolist()


@pytest.mark.parametrize("name", [name for name in RULES if name != "function"])
def test_sizes_agree_in_the_index_in_ranges_and_in_the_merge(name: str) -> None:
    index, due = index_of(ChannelRules(StoredValues(np.arange(N)), RULES[name])), EXPECTED[name].tolist()
    assert index.sizes(0).tolist() == due
    assert index.bytes_of(0) == sum(due)
    assert [n for some in payload_ranges(index, 0, slice(3, None)) for n in some.size.tolist()] == due[3:]
    found = [n for batch in merged([Queue(index, 0, slice(None))]) for n in batch.size.tolist()]
    assert found == due


@pytest.mark.parametrize(
    "rows", [ROWS, np.arange(N), np.arange(9, 21, 2), np.zeros(0, np.int64), np.array([N - 1])]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_ranges_of_row_numbers_equal_rows_of_all_ranges(rows: np.ndarray, chunked: bool) -> None:
    size = FieldAt(2, 1) if chunked else RULES["stored"]
    index = index_of(ChannelRules(FieldAt(0, 2), size), chunked)
    whole = [
        (bytes(some.data[at : at + 16]), n)
        for some in payload_ranges(index, 0, slice(None))
        for at, n in zip(some.offset.tolist(), some.size.tolist(), strict=True)
    ]
    found = [
        (bytes(some.data[at : at + 16]), n)
        for some in payload_ranges(index, 0, rows)
        for at, n in zip(some.offset.tolist(), some.size.tolist(), strict=True)
    ]
    assert len(whole) == N
    assert found == [whole[row] for row in rows]


def test_missing_messages_have_size_0_and_are_skipped_in_order() -> None:
    stored = np.arange(N, dtype=np.uint32)
    stored[5] = MISSING_SIZE
    index = index_of(ChannelRules(StoredValues(np.arange(N)), StoredValues(stored)))
    assert index.sizes(0)[5] == 0
    assert len(index.select(order="file")) == N - 1


def test_header_fields_of_messages_outside_of_the_data_are_0() -> None:
    field = HeaderField(-2, 2)
    offset = np.array([0, 1, 2, 16, len(DATA) + 9], np.int64)
    word = int(DATA[0]) | int(DATA[1]) << 8
    other = int(DATA[14]) | int(DATA[15]) << 8
    assert field.read(DATA, offset).tolist() == [0, 0, word, other, 0]


def test_side_columns_become_header_fields() -> None:
    rules = ChannelRules(FieldAt(0, 8), 16, side_columns={"a": FieldAt(-2, 2, 3, 1), "b": RULES["stored"]})
    assert rules.side_columns == {"a": HeaderField(-2, 2, 3, 1), "b": RULES["stored"]}
    index = index_of(rules)
    column = index.side_column(0, "b")
    assert column is not None
    assert column.tolist() == EXPECTED["stored"].tolist()
    assert index.side_column(0, "c") is None


@pytest.mark.parametrize(
    "rule",
    [
        *(rule for rule in RULES.values() if not isinstance(rule, FunctionValues)),
        HeaderField(-4, 2, 1000, 7),
        FieldAt(0, 4, 1 << 31),
        FieldAt(0, 8, 1000),
    ],
    ids=[*(name for name in RULES if name != "function"), "field of a header", "large", "long"],
)
def test_the_number_of_one_message_is_that_of_several(rule: Rule) -> None:
    for entry, start in ((0, 0), (3, 48), (N - 1, 16 * N - 16)):
        several = rule.values_at(DATA, np.array([start], np.int64), lambda stored, k=entry: stored[k : k + 1])
        assert rule.value_at(DATA, start, entry) == int(several[0])


@pytest.mark.parametrize("chunked", [False, True])
def test_a_message_that_is_not_there_has_no_place(chunked: bool) -> None:
    index = index_of(ChannelRules(ConstantValues(3), StoredValues(np.arange(N, dtype=np.uint32))), chunked)
    for _ in range(2):
        places = [index.message_at(0, row) for row in range(N + 2)]
        assert places[N:] == [None, None]
        assert [place[3] for place in places[:N] if place] == list(range(N))
    # Another index of the same table has other times.
    moved = index.with_times({0: np.arange(N, dtype=np.int64)})
    assert [place[0] for row in range(N) if (place := moved.message_at(0, row))] == list(range(N))
