"""Checks of undamaged MCAPs give no false warnings: numbered equal messages, and the padding of CDR."""

from __future__ import annotations

import contextlib
import hashlib
import io
import sqlite3
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

import logreel
from logreel.errors import DefinitionError
from logreel.ops.inspect import check as payloads
from support.samples.mcap.builder import START, Builder


def codes(data: bytes) -> set[str]:
    return {f.code for f in logreel.check(data).findings if f.at_least("warn")}


@pytest.mark.parametrize(
    ("numbers", "due"), [((7, 8), set()), ((7, 7), {"duplicate"}), ((0, 0), {"duplicate"})]
)
def test_messages_of_different_numbers_are_no_duplicates(numbers: tuple[int, int], due: set[str]) -> None:
    out = Builder().channel(1, 0, "/a", "json").message(1, START, b"{}", 1)
    for number in numbers:
        out.message(1, START + 10, b'{"x": 1}', number)
    assert codes(out.bytes()) == due


CDR = b"\0\1\0\0"


@pytest.mark.parametrize(
    ("definition", "body"),
    [
        (b"uint8 x\n", b"\5"),
        (b"uint16 x\n", b"\5\0"),
        (b"string s\n", struct.pack("<I", 2) + b"a\0"),
        (b"string s\nuint8 x\n", struct.pack("<I", 3) + b"ab\0" + b"\1"),
    ],
)
def test_zeros_up_to_a_multiple_of_four_are_the_padding_of_cdr(definition: bytes, body: bytes) -> None:
    def made(*tails: bytes) -> bytes:
        out = Builder().schema(1, "a/msg/B", "ros2msg", definition).channel(1, 1, "/a", "cdr")
        for k, tail in enumerate(tails):
            out.message(1, START + k, CDR + body + tail, k)
        return out.bytes()

    assert codes(made(b"", bytes(1), bytes(2), bytes(3))) == set()
    assert codes(made(b"", bytes(4))) == {"leftover"}
    assert codes(made(b"", b"\0\1")) == {"leftover"}
    assert codes(made(b"", b"\1\0")) == {"leftover"}


@pytest.mark.parametrize(
    ("definition", "body"), [(b"uint8 x\n", b"\5"), (b"string s\n", struct.pack("<I", 2) + b"a\0")]
)
def test_decoding_notes_no_padding_of_cdr_as_bytes_left_over(definition: bytes, body: bytes) -> None:
    def noted(*tails: bytes) -> list[str]:
        out = Builder().schema(1, "a/msg/B", "ros2msg", definition).channel(1, 1, "/a", "cdr")
        for k, tail in enumerate(tails):
            out.message(1, START + k, CDR + body + tail, k)
        with logreel.open(out.bytes()) as log:
            assert log["/a"].to_arrow().num_rows == len(tails)
            return [problem.text for problem in log.problems if problem.code == "leftover"]

    assert noted(b"", bytes(1), bytes(2), bytes(3)) == []
    (text,) = noted(b"", bytes(3), bytes(4), b"\0\1")
    assert "2 messages are longer than their definition; the first is number 2" in text


# ------------------------------------------------------------------------------------- files that others wrote

#: Log time and sequence number of the messages of TenMessages, a file of the conformance suite of MCAP, from its JSON.
TEN = ((0, 0), (2, 1), (1, 2), (3, 3), (3, 4), (5, 5), (4, 6), (7, 7), (8, 8), (9, 9))
#: SHA-256 of TenMessages-ch-chx-mx.mcap.
TEN_DIGEST = "b712b86b989c4e9de1f0fa677cfca1d67b63870376b773115c68f4e948eb37cc"


def ten_messages(numbers: Iterable[tuple[int, int]] = TEN) -> bytes:
    """Return the file of the conformance suite, written by the library of the vendor."""
    writer = pytest.importorskip("mcap.writer")
    out = io.BytesIO()
    w = writer.Writer(
        out,
        compression=writer.CompressionType.NONE,
        index_types=writer.IndexType.CHUNK | writer.IndexType.MESSAGE,
        repeat_channels=False,
        repeat_schemas=False,
        use_statistics=False,
        use_summary_offsets=False,
        enable_data_crcs=True,
    )
    w.start(profile="", library="")
    schema = w.register_schema("Example", "c", bytes([4, 5, 6]))
    channel = w.register_channel("example", "a", schema, {"foo": "bar"})
    for time, number in numbers:
        w.add_message(channel, time, bytes([1, 2, 3]), time, number)
    w.finish()
    return out.getvalue()


def test_equal_messages_of_the_conformance_suite_are_no_duplicates() -> None:
    data = ten_messages()
    assert len(data) == 803
    assert hashlib.sha256(data).hexdigest() == TEN_DIGEST
    assert "duplicate" not in codes(data)
    # Its fourth and fifth message differ only by their numbers.
    assert "duplicate" in codes(ten_messages((time, 3 if number == 4 else number) for time, number in TEN))


def test_genuine_rosbag2_files_have_no_bytes_left_over(shared: Path) -> None:
    decoded = 0
    for path in sorted((shared / "data" / "rosbag2").glob("*/*.mcap")):
        with logreel.open(path) as log:
            for ch in log.channels.values():
                with contextlib.suppress(DefinitionError):
                    decoded += ch.to_arrow().num_rows
            assert "leftover" not in {problem.code for problem in log.problems}
        assert "leftover" not in codes(path.read_bytes())
    if not decoded:
        pytest.skip("needs samples of rosbag2")
    assert decoded == 6084


@pytest.mark.parametrize(("more", "due"), [(0, 0), (4, 188)])
def test_genuine_messages_may_be_padded_to_a_multiple_of_four(
    shared: Path, monkeypatch: pytest.MonkeyPatch, more: int, due: int
) -> None:
    """Of 94 types; some vendors of DDS pad them, the one that wrote these does not. *more* zeros are no padding."""
    typesys = pytest.importorskip("rosbags.typesys")
    path = shared / "data" / "rosbag2" / "sqlite3_188_types" / "test_bag_sqlite3.db3"
    if not path.exists():
        pytest.skip("needs samples of rosbag2")
    types = typesys.get_typestore(typesys.Stores.ROS2_FOXY)
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as base:
        topics = base.execute("select id, name, type from topics").fetchall()
        rows = base.execute("select topic_id, data from messages").fetchall()
    out = Builder()
    for number, topic, name in topics:
        text = types.generate_msgdef(name, ros_version=2)[0].encode()
        out.schema(number, name, "ros2msg", text).channel(number, number, topic, "cdr")
    padded = 0
    for k, (number, payload) in enumerate(rows):
        padding = bytes(-len(payload) % 4 + more)
        padded += bool(padding)
        out.message(number, START + k, payload + padding, k)
    data = out.bytes()

    def left() -> int:
        return sum(f.count for f in logreel.check(data).findings if f.code == "leftover")

    assert left() == due
    # The test can fail: without the rule of CDR, padded messages are too long.
    monkeypatch.setattr(payloads, "is_padded", lambda metadata: False)
    assert left() == padded > 0
