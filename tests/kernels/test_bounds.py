"""Kernels refuse what lies outside of its array; debug builds check every index and every read of a column."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from logreel.errors import FileChangedError
from logreel.kernels import block_table, layout, layout_encode, merge, protobuf, records

DEBUG_ONLY = pytest.mark.skipif(not records.DEBUG, reason="needs kernels built with LOGREEL_DEBUG=1")


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_kernels_are_debug_builds_where_the_environment_says_so() -> None:
    if "LOGREEL_DEBUG" not in os.environ:
        pytest.skip("LOGREEL_DEBUG is not set")
    assert records.DEBUG


# --------------------------------------------------------------------------------------------- debug builds


@DEBUG_ONLY
@pytest.mark.parametrize("channel", [1, 5, -1])
def test_a_bad_index_raises_in_a_debug_build(channel: int) -> None:
    headers = np.array([(0, 0, -1, 0, 0, -1, 0)], records.HEADER)
    with pytest.raises(IndexError, match="Out of bounds"):
        records.record_offsets(i32(channel), i64(3), headers, np.zeros(2, np.int64))
    start, entry = i64(0, 0), np.zeros(1, np.uint32)
    words = i64(channel, 0, 8, 1).reshape(1, 4)
    with pytest.raises(IndexError, match="Out of bounds"):
        block_table.latest_times(np.zeros(9, np.uint8), 0, start, entry, words, 9, 9, i64(1), i64(0))


# ----------------------------------------------------------------------------------------------- all builds

RECORDS: dict[str, Any] = {
    "buffers": [np.arange(4, dtype=np.uint8), np.arange(6, dtype=np.uint8)],
    "which": i32(0, 1),
    "channel": i32(0, 1),
    "time": i64(1, 2),
    "start": i64(1, 2),
    "size": i64(3, 4),
    "heads": np.arange(10, dtype=np.uint8),
    "headers": np.array([(0, 1, -1, 0, 0, -1, 0), (1, 9, 1, 8, 0, 1, 0)], records.HEADER),
    "place": i64(0, 4),
    "out": np.zeros(17, np.uint8),
}


@pytest.mark.parametrize(
    "change",
    [
        {"start": i64(2, 2)},
        {"start": i64(-1, 2)},
        {"size": i64(3, 5)},
        {"size": i64(3, -1)},
        {"size": i64(3, (1 << 63) - 1)},
        {"which": i32(0, 2)},
        {"which": i32(-1, 1)},
        {"which": i32(1)},
        {"buffers": []},
        {"channel": i32(0, 2)},
        {"channel": i32(-1, 0)},
        {"place": i64(0, 5)},
        {"place": i64(-1, 4)},
        {"heads": np.arange(9, dtype=np.uint8)},
        {"headers": np.array([(0, 1, -1, 0, 0, -1, 0), (1, 9, 2, 8, 0, 1, 0)], records.HEADER)},
        {"headers": np.array([(0, 1, -1, 0, 0, -1, 0), (1, 9, 1, 8, 0, 2, 0)], records.HEADER)},
        {"headers": np.array([(0, 1, -1, 0, 0, -1, 0), (1, 9, 1, 8, 0, 0, -2)], records.HEADER)},
        {"headers": np.array([(-1, 1, -1, 0, 0, -1, 0), (1, 9, 1, 8, 0, 1, 0)], records.HEADER)},
        {"headers": np.zeros(0, records.HEADER)},
    ],
)
def test_records_outside_of_their_buffers_are_refused(change: dict[str, Any]) -> None:
    records.write_records(*RECORDS.values())
    with pytest.raises(IndexError):
        records.write_records(*{**RECORDS, **change}.values())


def test_a_buffer_that_is_not_contiguous_is_refused() -> None:
    strided = np.arange(8, dtype=np.uint8)[::2]
    with pytest.raises((BufferError, ValueError)):
        records.write_records(*{**RECORDS, "buffers": [strided, strided]}.values())


#: A message of a text, of messages with a number each, and of a time; two rows.
COLUMNS: list[Any] = [
    np.arange(5, dtype=np.uint8),
    i64(0, 2, 5),
    np.arange(3, dtype=np.uint16),
    i64(0, 1, 3),
    i64(10**9, 5),
]
OPS = np.array(
    [
        [protobuf.COLUMN_SPAN, 10, 0, 1, 0, 1],
        [protobuf.COLUMN_VARINT, 8, 2, 2, 0, 0],
        [protobuf.COLUMN_MESSAGES, 18, 0, 0, 1, 3],
        [protobuf.COLUMN_TIME, 0, 4, 0, 0, 0],
        [protobuf.COLUMN_MESSAGE, 26, 0, 0, 1, 0],
    ],
    np.int64,
)
#: Two spans of up to 5 bytes, three numbers and three messages, two times and two messages.
ROOM = 2 * 11 + 5 + 3 * 11 + 3 * 11 + 2 * 22 + 2 * 11


def written_columns(columns: list[Any], room: int = ROOM) -> None:
    protobuf.write_columns(OPS, columns, np.zeros(3, np.int64), np.zeros(room, np.uint8))


@pytest.mark.parametrize(
    ("number", "column"),
    [
        (0, np.arange(4, dtype=np.uint8)),
        (1, i64(0, 2)),
        (1, i64(0, 6, 5)),
        (1, i64(-1, 2, 5)),
        (1, i64(0, 2, 1 << 62)),
        (2, np.arange(2, dtype=np.uint16)),
        (3, i64(0, 1, 4)),
        (4, i64(0)),
    ],
)
def test_columns_with_too_few_items_are_refused(number: int, column: np.ndarray) -> None:
    written_columns(COLUMNS)
    columns = list(COLUMNS)
    columns[number] = column
    with pytest.raises(IndexError, match="does not have the rows"):
        written_columns(columns)


def test_columns_that_are_missing_and_too_little_room_are_refused() -> None:
    with pytest.raises(IndexError, match="does not have the rows"):
        written_columns(COLUMNS[:4])
    with pytest.raises(IndexError, match="too small"):
        written_columns(COLUMNS, ROOM - 1)


FIXED: dict[str, Any] = {
    "ops": i32(protobuf.FIXED_LONGS, 9 << 24, 1, 0, 0, 1, 8 << 24, 0).reshape(1, 8),
    "kinds": np.array([(0, 1, 8, 9)], protobuf.KIND),
    "kind": i32(0, 0),
    "buffers": [np.ones(8, np.uint8), np.ones(10, np.uint8)],
    "which": i32(0, 1),
    "place": i64(0, 2),
    "start": i64(0, 0, 0),
    "out": np.zeros(18 + protobuf.ROOM, np.uint8),
}


@pytest.mark.parametrize(
    "change",
    [
        {"place": i64(1, 2)},
        {"place": i64(0, -1)},
        {"which": i32(1, 2)},
        {"which": i32(-1, 1)},
        {"which": i32()},
        {"kind": i32(0, 1)},
        {"kind": i32(-1, 0)},
        {"buffers": []},
        {"out": np.zeros(17 + protobuf.ROOM, np.uint8)},
        {"kinds": np.array([(0, 2, 8, 9)], protobuf.KIND)},
        {"kinds": np.array([(0, 1, 9, 9)], protobuf.KIND)},
    ],
)
def test_fixed_messages_outside_of_their_buffers_are_refused(change: dict[str, Any]) -> None:
    protobuf.write_fixed(*FIXED.values())
    assert FIXED["out"][protobuf.ROOM :].tolist() == ([9] + [1] * 8) * 2
    with pytest.raises(IndexError):
        protobuf.write_fixed(*{**FIXED, **change}.values())


BLOB = i64(layout.BLOB, 0, 2, 1, 0, 0).reshape(1, 6)


@pytest.mark.parametrize("offsets", [i32(0, 2), i32(0), i32(), i32(0, 2, 1)])
def test_columns_with_too_few_offsets_are_not_encoded(offsets: np.ndarray) -> None:
    size = np.zeros(2, np.int64)
    assert layout_encode.encoded_sizes(BLOB, [i32(0, 2, 3)], size, 99) == (2, 0)
    assert size.tolist() == [4, 3]
    with pytest.raises(IndexError, match="too few items"):
        layout_encode.encoded_sizes(BLOB, [offsets], size, 99)
    no_copies = np.zeros((0, 5), np.int64)
    with pytest.raises(IndexError, match="too few items"):
        layout_encode.encode(
            BLOB, no_copies, [np.zeros(3, np.uint8)], [offsets], i64(0, 4), np.zeros(9, np.uint8)
        )


FIXED_OF_8 = i64(layout.FIXED, 8, 0, 1, 0, 0).reshape(1, 6)


@pytest.mark.parametrize(
    ("column", "start"), [(15, i64(0, 8)), (16, i64(0, 9)), (16, i64(0, -1)), (16, i64(0, 17))]
)
def test_columns_and_places_that_are_too_small_are_not_encoded(column: int, start: np.ndarray) -> None:
    copies = i64(0, 8, 0, 8, 8).reshape(1, 5)
    out = np.zeros(16, np.uint8)
    layout_encode.encode(FIXED_OF_8, copies, [np.ones(16, np.uint8)], [i32(0)], i64(0, 8), out)
    assert out.tolist() == [1] * 16
    with pytest.raises(IndexError):
        layout_encode.encode(FIXED_OF_8, copies, [np.ones(column, np.uint8)], [i32(0)], start, out)


def test_offsets_that_grow_between_measuring_and_writing_stay_inside_of_the_output() -> None:
    """Tables may lie in files that another process overwrites."""
    size, no_copies, room = np.zeros(1, np.int64), np.zeros((0, 5), np.int64), np.full(20, 7, np.uint8)
    layout_encode.encoded_sizes(BLOB, [i32(0, 2)], size, 99)
    with pytest.raises(IndexError, match="does not fit"):
        layout_encode.encode(BLOB, no_copies, [np.zeros(9, np.uint8)], [i32(0, 9)], i64(0), room[: size[0]])
    assert room[size[0] :].tolist() == [7] * (20 - size[0])


def gathered(offset: np.ndarray, at: int, size: int = 20) -> np.ndarray:
    fields = np.array([(at, 4, 0, 4, 0)], block_table.FIELD)
    out = np.zeros(8, np.uint8)
    block_table.gather_at(np.arange(size, dtype=np.uint8), offset, fields, out)
    return out


@pytest.mark.parametrize(
    ("offset", "at"),
    [(i64(0, 17), 0), (i64(-1, 4), 0), (i64(3, 0), -1), (i64(3, 0), 14), (i64(0, 1 << 62), 0)],
)
def test_messages_outside_of_the_data_are_not_gathered(offset: np.ndarray, at: int) -> None:
    assert gathered(i64(0, 16), 0).tolist() == [0, 1, 2, 3, 16, 17, 18, 19]
    with pytest.raises(FileChangedError):
        gathered(offset, at)


BLOCKS: dict[str, Any] = {
    "times": i64(1, 2, 3),
    "rows": None,
    "first_row": 0,
    "shift": 0,
    "rank": 0,
    "entries": np.array([0, 5, 9, 2], np.uint32),
    "begins": i64(1, 3),
    "ends": i64(2, 3),
    "bases": i64(0, 100),
    "chunks": i32(-1, -1),
    "ready": None,
}


@pytest.mark.parametrize(
    "change",
    [
        {"entries": np.array([0, 5, 9], np.uint32)},
        {"begins": i64(-1, 3)},
        {"ends": i64(2, 1)},
        {"first_row": 1},
        {"first_row": -1},
        {"rows": i64(0, 1, 3)},
        {"rows": i64(-1, 0, 1)},
    ],
)
def test_queues_of_messages_outside_of_the_blocks_are_refused(change: dict[str, Any]) -> None:
    queues = merge.Queues(i64(0, 0), True, False)
    with pytest.raises(IndexError):
        queues.add(*{**BLOCKS, **change}.values())
    queues.add(*BLOCKS.values())
    time, start, at = (np.zeros(4, np.int64) for _ in range(3))
    assert queues.merge(time, np.zeros(4, np.int32), np.zeros(4, np.int32), start, at, 0) == 3
    assert (time[:3].tolist(), start[:3].tolist(), at[:3].tolist()) == ([1, 2, 3], [5, 9, 102], [1, 2, 3])
    with pytest.raises(IndexError):
        queues.add(*BLOCKS.values())


@pytest.mark.parametrize(("start", "at"), [(1, 0), (11, 0), (1 << 62, 0), (2, 4), (2, -1)])
def test_sizes_outside_of_their_array_are_refused(start: int, at: int) -> None:
    rules = merge.SizeRules(2)
    rules.add_field(np.arange(10, dtype=np.uint8), -2, 2, 1, 0)
    rules.add_stored(np.arange(4, dtype=np.uint32).view(np.uint8), 4)
    size = np.zeros(2, np.int64)
    assert rules.measure(i32(0, 1), i64(2, 0), i64(0, 3), size) == 0
    assert size.tolist() == [256, 3]
    with pytest.raises(IndexError):
        rules.measure(i32(0, 1), i64(start, 0), i64(0, at), size)
    with pytest.raises(IndexError):
        rules.measure(i32(2, 1), i64(2, 0), i64(0, 3), size)
