"""Generated logs that the tests of ops, outputs and the command line share."""

from __future__ import annotations

import functools
import struct

from support.samples.ulog.builder import Builder, flight, tiny

SECONDS = 4.0


@functools.cache
def short_flight() -> bytes:
    """Return a valid flight of a few seconds."""
    return flight(SECONDS)


def damaged() -> bytes:
    """Return a flight that ends inside a record: a part of it is lost."""
    return short_flight()[: len(short_flight()) * 2 // 3 - 5]


def hostile() -> bytes:
    """Return a sound log with terminal control sequences in texts, and values that JSON cannot express."""
    out = Builder(start_us=1_000_000).flags()
    out.info("sys_name", "PX4\x1b[2J\u202e").format("odd:uint64_t timestamp;float value;double other;")
    out.parameter("GAIN\x1b[31m", 0.5).info_multiple("uint8_t[4] ../../evil\x1b", b"\x00\x01\xfe\xff")
    out.subscribe("odd", 0)
    for step, value in enumerate((1.5, float("nan"), float("inf"), float("-inf"))):
        out.data(0, struct.pack("<Qfd", 1_000_000 + step, value, -value))
    out.text(6, 1_000_002, "\x1b]0;owned\x07 two\nlines \x9b31m \u202e")
    return out.bytes()


def incompatible() -> bytes:
    """Return a ULog with an unknown incompatible flag."""
    return Builder().flags(incompat=0x80).bytes()


__all__ = ["SECONDS", "damaged", "hostile", "incompatible", "short_flight", "tiny"]
