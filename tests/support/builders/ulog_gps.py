"""ULogs with the raw communication of GPS receivers."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import NamedTuple

from support.samples.ulog.builder import Builder

#: Fields of the message as PX4 has them; the padding aligns the next message.
FORMAT = (
    "gps_dump:uint64_t timestamp;uint32_t device_id;uint8_t instance;uint8_t len;uint8_t[79] data;"
    "uint8_t[3] _padding0;"
)
OLD_FORMAT = "gps_dump:uint64_t timestamp;uint8_t len;uint8_t[79] data;"


class Piece(NamedTuple):
    """Bytes to or from a receiver."""

    instance: int
    to_device: bool
    data: bytes


def pieces(count: int = 300, seed: int = 1) -> list[Piece]:
    """Return *count* random pieces of two receivers in both directions."""
    chance = random.Random(seed)
    return [
        Piece(chance.randrange(2), chance.random() < 0.3, chance.randbytes(chance.choice((0, 1, 40, 79))))
        for _ in range(count)
    ]


def gps_log(some: Sequence[Piece], old: bool = False, dropouts: int = 0) -> bytes:
    """Return a ULog with a message for each of *some*; *old*: without the number of the receiver."""
    b = Builder(start_us=1_000_000).flags().format(OLD_FORMAT if old else FORMAT).subscribe("gps_dump", 0)
    for n, piece in enumerate(some):
        size = len(piece.data) | (0x80 if piece.to_device else 0)
        who = b"" if old else struct.pack("<IB", 7, piece.instance)
        b.data(
            0, struct.pack("<Q", 1_000_000 + 1000 * n) + who + bytes([size]) + piece.data.ljust(79, b"\xee")
        )
    for _ in range(dropouts):
        b.dropout(5)
    return bytes(b.bytes())
