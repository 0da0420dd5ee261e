"""Payloads in one buffer or several, compared with slices of bytes, and records composed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.errors import UsageError
from logreel.write.format_writer import (
    NANOSECONDS_TWICE,
    FormatWriter,
    Payloads,
    RecordHeaders,
    chained,
    joined,
    tallied,
)
from logreel.write.writer import Writer

#: Buffers, and payloads in them: buffer number, start as a fraction of it, and size as a fraction of the rest.
BUFFERS = st.lists(st.binary(max_size=20), min_size=1, max_size=4)
PLACES = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.floats(0, 1)), max_size=12)


def payloads_at(buffers: list[bytes], places: list[tuple[int, float, float]]) -> tuple[Payloads, list[bytes]]:
    """Return Payloads at *places* in *buffers*, and their expected content."""
    which = [k % len(buffers) for k, _, _ in places]
    start = [int(at * len(buffers[k])) for k, (_, at, _) in zip(which, places, strict=True)]
    rest = [len(buffers[k]) - a for k, a in zip(which, start, strict=True)]
    size = [int(part * n) for n, (_, _, part) in zip(rest, places, strict=True)]
    data = [np.frombuffer(one, np.uint8) for one in buffers]
    found = Payloads(
        data[0],
        np.array(start, np.int64),
        np.array(size, np.int64),
        None,
        data[1:],
        np.array(which, np.int32),
    )
    return found, [buffers[k][a : a + n] for k, a, n in zip(which, start, size, strict=True)]


@given(BUFFERS, PLACES, st.data())
def test_payloads_of_several_buffers_equal_their_slices(
    buffers: list[bytes], places: list[Any], data: st.DataObject
) -> None:
    payloads, due = payloads_at(buffers, places)
    assert payloads.are_inside
    assert payloads.joined().tobytes() == b"".join(due)
    one = payloads.in_one()
    assert one.which is None
    assert one.in_one() is one
    assert [one.data[a : a + n].tobytes() for a, n in zip(one.start, one.size, strict=True)] == due
    assert joined(one.data, one.start, one.size).tobytes() == b"".join(due)
    rows = np.array(data.draw(st.lists(st.integers(0, max(0, len(due) - 1)))) if due else [], np.int64)
    assert payloads.rows(rows).joined().tobytes() == b"".join(due[i] for i in rows.tolist())
    both = chained([payloads, one, payloads])
    assert both.joined().tobytes() == b"".join(due) * 3


@given(BUFFERS, PLACES)
def test_composed_records_are_headers_and_payloads(buffers: list[bytes], places: list[Any]) -> None:
    payloads, due = payloads_at(buffers, places)
    heads = RecordHeaders()
    heads.add(b"ab....cd", size_at=2, size_width=4, size_add=1)
    heads.add(bytes(16), time_at=0, time_kind=NANOSECONDS_TWICE)
    channel = np.arange(len(due), dtype=np.int32) % 2
    time = np.arange(len(due), dtype=np.int64) * 7
    place = heads.places(channel, payloads.size)
    want = [
        b"ab" + (len(one) + 1).to_bytes(4, "little") + b"cd" + one
        if i % 2 == 0
        else (7 * i).to_bytes(8, "little") * 2 + one
        for i, one in enumerate(due)
    ]
    assert place.tolist() == np.cumsum([0, *map(len, want)]).tolist()
    assert heads.compose(channel, time, payloads, place).tobytes() == b"".join(want)
    room = np.zeros(int(place[-1]), np.uint8)
    assert heads.compose(channel, time, payloads, place, room) is room
    assert room.tobytes() == b"".join(want)


@pytest.mark.parametrize(
    ("start", "size", "which"),
    [(0, 4, 0), (1, 3, 0), (-1, 1, 0), (0, -1, 0), (0, 6, 1), (1 << 62, 1, 1), (1, (1 << 63) - 1, 0)],
)
def test_payloads_outside_of_their_buffer_are_detected(start: int, size: int, which: int) -> None:
    three, five = np.zeros(3, np.uint8), np.zeros(5, np.uint8)
    where = np.array([start], np.int64), np.array([size], np.int64)
    assert not Payloads(three, *where, None, [five], np.array([which], np.int32)).are_inside
    if which == 0:
        assert not Payloads(three, *where).are_inside


def test_buffers_other_than_one_dimensional_bytes_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    raw = np.zeros(8, np.uint8)
    assert Payloads(raw, one, one).are_inside
    for wrong in (
        Payloads(raw.reshape(2, 4), one, one),
        Payloads(raw.view(np.uint16), one, one),  # type: ignore[arg-type]
        Payloads(raw, one, two),
        Payloads(raw, one, one, None, [raw], np.array([2], np.int32)),
        Payloads(raw, one, one, None, [raw], np.array([-1], np.int32)),
        Payloads(raw, one, one, None, [raw], np.array([0, 1], np.int32)),
    ):
        assert not wrong.are_inside


def test_strided_buffers_are_accepted() -> None:
    every_other = np.arange(10, dtype=np.uint8)[::2]
    payloads = Payloads(every_other, np.array([1, 0], np.int64), np.array([3, 1], np.int64))
    assert payloads.joined().tolist() == [2, 4, 6, 0]


@given(st.lists(st.integers(0, 6), max_size=50))
def test_tallied_counts_messages_by_channel(numbers: list[int]) -> None:
    channel = np.array(numbers, np.int32)
    assert tallied(channel, 7).tolist() == [numbers.count(k) for k in range(7)]
    for wrong in (-1, 7):
        with pytest.raises(IndexError):
            tallied(np.append(channel, np.int32(wrong)), 7)


class RecordingFormatWriter(FormatWriter):
    """Format writer that stores payloads in a list."""

    def __init__(self, out: Any) -> None:
        super().__init__(out)
        self.found: list[bytes] = []

    def channel(self, number: int, topic: str, schema: Any, metadata: Any) -> None:
        """Accept any channel."""

    def messages(self, channel: Any, time: Any, payloads: Payloads) -> None:
        self.found.append(payloads.joined().tobytes())


class FileStub:
    """Stub of an Appender with the methods that a Writer calls."""

    name = "nothing"

    def check(self) -> None:
        """Raise nothing."""


def test_writer_accepts_payloads_of_several_buffers() -> None:
    format_writer = RecordingFormatWriter(FileStub())
    writer = Writer(FileStub(), format_writer, None, False)  # type: ignore[arg-type]
    number = writer.add_channel("a", None)  # type: ignore[arg-type]
    buffers = [np.frombuffer(one, np.uint8) for one in (b"one", b"other")]
    start, size = np.array([1, 0], np.int64), np.array([2, 5], np.int64)
    channel, time = np.full(2, number, np.int32), np.arange(2)
    payloads = Payloads(buffers[0], start, size, None, buffers[1:], np.array([0, 1], np.int32))
    writer.write_payloads(channel, time, payloads)
    assert format_writer.found == [b"neother"]
    with pytest.raises(UsageError, match="a row for each"):
        writer.write_payloads(channel, time[:1], payloads)
    with pytest.raises(UsageError, match="outside"):
        writer.write_payloads(channel, time, Payloads(buffers[0], start, size))
    format_writer.message(number, 0, b"single")
    assert format_writer.found == [b"neother", b"single"]
