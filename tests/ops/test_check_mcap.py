"""Checks of undamaged MCAPs give no false warnings: numbered equal messages, and the padding of CDR."""

from __future__ import annotations

import struct

import pytest

import logreel
from logreel.formats.mcap.sample.builder import START, Builder


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
