"""Side columns: numbers stored outside of payloads."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from logreel.index.gather import PayloadRange
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Sequence, Struct
from logreel.log.side_columns import LayoutDecoder, SideColumnsDecoder, with_members

RECORD = Struct((Field("a", Scalar("uint8")), Field("b", Scalar("uint16"))))
MANY = Layout(Sequence(RECORD, 1), "many")
ONE = Layout(RECORD, "one")
NUMBER = Field("number", Scalar("uint64"))


def decoder(layout: Layout) -> SideColumnsDecoder:
    return SideColumnsDecoder(
        ["number"], lambda index, rows: [(rows * 100).astype(np.uint64)], LayoutDecoder(layout)
    )


def payload_range(*messages: bytes) -> PayloadRange:
    size = np.array([len(m) for m in messages], np.int64)
    return PayloadRange(np.frombuffer(b"".join(messages), np.uint8), np.cumsum(size) - size, size)


def test_side_columns_are_repeated_for_each_decoded_record() -> None:
    layout = with_members(MANY, [NUMBER])
    assert layout.paths() == ["number", "a", "b"]
    some = payload_range(struct.pack("<BBHBH", 2, 1, 2, 3, 4), b"\0", b"\5\1", struct.pack("<BBH", 1, 9, 8))
    got = decoder(MANY).decode_batch(None, layout, some, np.array([4, 5, 6, 7]))
    assert [a.to_pylist() for a in got.arrays] == [[400, 400, 700], [1, 3, 9], [2, 4, 8]]
    assert [row for row, _ in got.bad] == [2]
    part = layout.project(["number"])
    (alone,) = decoder(MANY).decode_batch(None, part, some, np.array([4, 5, 6, 7])).arrays
    assert alone.to_pylist() == [400, 400, 700]


@pytest.mark.parametrize("fields", [["a"], ["b", "a"]])
def test_side_columns_not_selected_are_left_out(fields: list[str]) -> None:
    part = with_members(ONE, [NUMBER]).project(fields)
    got = decoder(ONE).decode_batch(None, part, payload_range(b"\1\2\0"), np.array([3]))
    assert len(got.arrays) == len(fields)


def test_single_message_has_side_columns_if_its_row_is_known() -> None:
    data = memoryview(b"\1\2\0")
    assert decoder(ONE).decode_message(None, data, 3) == {"number": 300, "a": 1, "b": 2}
    assert decoder(ONE).decode_message(None, data, None) == {"a": 1, "b": 2}
