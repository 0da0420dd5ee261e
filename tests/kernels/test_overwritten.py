"""Bytes that another process overwrites between or during the passes of a kernel: no access outside, no wrong data."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import FileChangedError
from logreel.kernels import bddf, layout, mcap, rosbag
from logreel.layout import nodes
from logreel.layout import program as walking
from logreel.layout.layout import Layout
from logreel.layout.program import Program, compile_layout
from support.builders.strategies import layouts, payloads
from support.harness.examples import examples
from support.harness.guard import guarded

#: Bytes behind each column that no kernel may write.
FENCE = 64


def counted(
    program: Program, source: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[int, np.ndarray]:
    """Return the number of sound messages, and the items of each column."""
    counts = np.zeros(len(program.columns), np.int64)
    status = np.zeros(len(start), np.uint8)
    return layout.count(source, start, stop, program.ops, counts, status), counts


def filled(
    program: Program, counts: np.ndarray, source: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[bool, list[np.ndarray]]:
    """Fill columns that have room for *counts* from other bytes; return the result and the columns."""
    out = program.allocate([len(start)], counts.reshape(1, -1))
    # Every column alone in an arena with a fence of known bytes around it.
    arena = np.full(len(out.arena) + FENCE * (2 * len(counts) + 2), 0xA5, np.uint8)
    data, limits, offsets = (np.zeros(len(counts), np.int64) for _ in range(3))
    used = np.zeros(len(arena), bool)
    at = FENCE
    for i, column in enumerate(program.columns):
        size = int(out.data[1, i] - out.data[0, i])
        data[i], limits[i] = at, at + size
        used[at : at + size] = True
        at += -(-size // FENCE) * FENCE + FENCE
        if column.counted:
            scope = column.scope
            entries = column.times * (len(start) if scope < 0 else int(counts[scope])) + 1
            offsets[i] = at
            arena = np.concatenate([arena, np.full(4 * entries + FENCE, 0xA5, np.uint8)])
            used = np.concatenate([used, np.zeros(4 * entries + FENCE, bool)])
            arena[at : at + 4] = 0
            used[at : at + 4 * entries] = True
            at += -(-4 * entries // FENCE) * FENCE + FENCE
    arena = arena[: max(at, FENCE)].copy()
    same = layout.fill(source, start, stop, program.ops, program.copies, arena, data, limits, offsets, counts)
    assert (arena[~used[: len(arena)]] == 0xA5).all()
    columns = [
        arena[data[i] : limits[i]]
        if column.width or not column.counted
        else arena[offsets[i] : offsets[i] + 4]
        for i, column in enumerate(program.columns)
    ]
    return same, columns


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_other_bytes_than_those_counted_are_never_written_outside_of_a_column(data: st.DataObject) -> None:
    found = data.draw(layouts())
    program = compile_layout(found)
    before = data.draw(payloads(found.root))
    kind = data.draw(st.sampled_from(["message", "bytes", "one byte", "ones"]))
    after = bytearray(data.draw(payloads(found.root))) if kind == "message" else bytearray(before)
    if kind == "bytes":
        after = bytearray(data.draw(st.binary(min_size=len(before), max_size=len(before))))
    elif kind == "one byte" and before:
        after[data.draw(st.integers(0, len(before) - 1))] ^= data.draw(st.integers(1, 255))
    elif kind == "ones" and before:
        at = data.draw(st.integers(0, len(before) - 1))
        after[at : at + 4] = b"\xff" * len(after[at : at + 4])
    # A file keeps its size: the message is cut or filled.
    after = after[: len(before)].ljust(len(before), b"\xff")
    start, stop = np.zeros(1, np.int64), np.array([len(before)], np.int64)
    good, counts = counted(program, guarded(before), start, stop)
    if not good:
        return
    assert filled(program, counts, guarded(before), start, stop)[0]
    same, _ = filled(program, counts, guarded(bytes(after)), start, stop)
    good, now = counted(program, guarded(bytes(after)), start, stop)
    if same and program.columns and (good == 0 or now.tolist() != counts.tolist()):
        # Only what EXPECT compares may differ unseen.
        assert (program.ops[:, 0] == layout.EXPECT).any()
    if good and now.tolist() == counts.tolist():
        assert same


def lists_of(*fields: tuple[str, nodes.Node]) -> Layout:
    return Layout(nodes.Struct(tuple(nodes.Field(name, node) for name, node in fields)))


NUMBER = nodes.Scalar("uint32")
POINT = nodes.Struct((nodes.Field("x", NUMBER), nodes.Field("y", nodes.Scalar("uint64"))))
TEXTS = nodes.Sequence(nodes.String(4), 4)
KINDS: dict[str, tuple[Layout, bytes]] = {
    "blob": (lists_of(("a", nodes.Sequence(NUMBER, 4))), b"\2\0\0\0" + b"\1\0\0\0" * 2),
    "string": (lists_of(("a", nodes.String(4))), b"\4\0\0\0text"),
    "strings": (lists_of(("a", TEXTS)), b"\2\0\0\0" + b"\1\0\0\0x" * 2),
    "list of fixed": (lists_of(("a", nodes.Sequence(POINT, 4))), b"\2\0\0\0" + bytes(24)),
    "list of texts": (
        lists_of(("a", nodes.Sequence(nodes.Struct((nodes.Field("t", nodes.String(4)),)), 4))),
        b"\2\0\0\0" + b"\1\0\0\0x" * 2,
    ),
    "fixed behind": (lists_of(("a", nodes.String(4)), ("b", NUMBER)), b"\4\0\0\0text\1\2\3\4"),
    "rest": (lists_of(("a", nodes.String(4)), ("b", nodes.Rest())), b"\4\0\0\0textrest"),
    "hidden": (
        lists_of(("a", nodes.Skip(TEXTS)), ("b", NUMBER)),
        b"\2\0\0\0" + b"\1\0\0\0x" * 2 + b"\1\2\3\4",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("claim", [0, 1, 3, 5, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_count_that_changes_between_counting_and_filling_is_noticed(kind: str, claim: int) -> None:
    """Every op that reads a count; the changed message begins in the middle of others and ends at the last byte."""
    found, message = KINDS[kind]
    program = compile_layout(found)
    whole = message * 3
    ends = np.arange(1, 4, dtype=np.int64) * len(message)
    good, counts = counted(program, guarded(whole), ends - len(message), ends)
    assert good == 3
    for row in range(3):
        changed = bytearray(whole)
        at = row * len(message)
        changed[at : at + 4] = claim.to_bytes(4, "little")
        if bytes(changed) != whole:
            same, _ = filled(program, counts, guarded(bytes(changed)), ends - len(message), ends)
            # Fewer hidden items are as many bytes that belong to what follows.
            assert same == (kind == "hidden" and claim < 2)


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_raises_where_bytes_change_between_the_passes(kind: str) -> None:
    found, message = KINDS[kind]
    program = compile_layout(found)
    source = np.frombuffer(message, np.uint8).copy()
    start, stop = np.zeros(1, np.int64), np.array([len(message)], np.int64)
    count = layout.count

    def count_then_overwrite(*args: Any) -> int:
        good = count(*args)
        source[:4] = 0xFF
        return good

    with mock.patch.object(layout, "count", count_then_overwrite), pytest.raises(FileChangedError):
        walking.walk(program, source, start, stop, np.zeros(1, np.uint8))


def test_decoding_while_a_thread_overwrites_the_bytes_either_works_or_says_so() -> None:
    """The kernels run without the lock of the interpreter, so the bytes change in the middle of their loops."""
    found = lists_of(
        ("a", TEXTS),
        ("b", nodes.Sequence(POINT, 4)),
        ("c", nodes.Sequence(nodes.Struct((nodes.Field("t", nodes.String(4)),)), 4)),
    )
    message = b"\2\0\0\0" + b"\3\0\0\0xyz" * 2 + b"\2\0\0\0" + bytes(24) + b"\1\0\0\0" + b"\5\0\0\0abcde"
    program = compile_layout(found)
    rows = 20_000
    source = np.frombuffer(message * rows, np.uint8).copy()
    stop = np.arange(1, rows + 1, dtype=np.int64) * len(message)
    done = threading.Event()

    def overwrite() -> None:
        rng = np.random.default_rng(1)
        sound = source.copy()
        while not done.is_set():
            source[rng.integers(0, len(source), 2000)] = 0xFF
            np.copyto(source, sound)

    writer = threading.Thread(target=overwrite)
    writer.start()
    outcomes = set()
    try:
        for _ in range(60):
            try:
                walking.walk(program, source, stop - len(message), stop, np.zeros(rows, np.uint8))
                outcomes.add("decoded")
            except FileChangedError:
                outcomes.add("changed")
    finally:
        done.set()
        writer.join()
    assert outcomes


# ------------------------------------------------------------------------------------------------ other kernels


def test_index_entries_of_blocks_that_grow_between_measuring_and_writing_stay_inside_of_the_output() -> None:
    def block(time: bytes) -> bytes:
        head = b"\x12" + bytes([len(time)]) + time
        return (len(head) + 4).to_bytes(8, "little") + len(head).to_bytes(4, "little") + head + b"load"

    short, long = block(b"\x08\x01").ljust(40, b"\0"), block(b"\x08\x01\x10" + b"\x80" * 3 + b"\x01")
    place = np.zeros(1, np.int64)
    size, _ = bddf.write_index_entries(np.frombuffer(short, np.uint8), place, np.zeros(0, np.uint8))
    out = np.full(size + FENCE, 0xA5, np.uint8)
    assert bddf.write_index_entries(np.frombuffer(long, np.uint8), place, out[:size])[0] == -1
    assert (out[size:] == 0xA5).all()


class Racing:
    """Run a kernel in this thread while another one overwrites bytes of its input with *values* in turn."""

    def __init__(self, data: np.ndarray, at: int, values: list[bytes]) -> None:
        self._data, self._at, self._values = data, at, [np.frombuffer(v, np.uint8) for v in values]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done.is_set():
            for value in self._values:
                self._data[self._at : self._at + len(value)] = value

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def test_records_of_mcap_that_change_their_kind_never_get_a_negative_size() -> None:
    """A message has at least 22 bytes; a record of another kind may have fewer."""
    record = b"\x04" + (16).to_bytes(8, "little") + bytes(16)
    data = np.frombuffer(record * 400, np.uint8).copy()
    key, time, start, size = (np.zeros(400, np.int64) for _ in range(4))
    note = np.zeros(400, np.int64)
    with Racing(data, 200 * len(record), [b"\x05", b"\x04"]):
        for _ in range(300):
            *_, n, _ = mcap.walk(data, 0, len(data), key, time, start, size, note, 0)
            assert (size[:n] >= 0).all()


def test_headers_of_a_bag_that_shrink_while_they_are_compared_are_read_inside_of_the_data() -> None:
    head = b"\4\0\0\0op=\2" + b"\x09\0\0\0conn=\1\0\0\0" + b"\x0d\0\0\0time=\1\0\0\0\2\0\0\0"
    record = len(head).to_bytes(4, "little") + head + b"\4\0\0\0data"
    n = 400
    data = guarded(record * n).copy()
    run = np.array([[0, n, 0, len(data)]], np.int64)
    with Racing(data, 0, [b"\0\0\0\0", len(head).to_bytes(4, "little")]):
        for _ in range(300):
            entry = (np.arange(n) * len(record)).astype(np.uint32)
            size, good = np.zeros(n, np.uint32), np.zeros(1, np.int64)
            time, conn = np.full(n, 1_000_000_002, np.int64), np.ones(n, np.uint32)
            rosbag.locate_messages(data, run, conn, entry, time, size, good)
            assert (size[: good[0]] == 4).all()
