"""The wire of protocol buffers, written: fields as bytes, for the few messages that a format itself is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """A number of variable length; negative ones as 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A field that holds a number; nothing for 0."""
    return varint(field << 3) + varint(value) if value else b""


def part(field: int, value: bytes | str) -> bytes:
    """A field that holds bytes, text or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def text(field: int, value: str) -> bytes:
    """A field that holds text; nothing for an empty one."""
    return part(field, value) if value else b""


def packed(field: int, values: Iterable[int]) -> bytes:
    """A field that holds numbers in one run of bytes; nothing where there are none."""
    run = b"".join(map(varint, values))
    return part(field, run) if run else b""


def mapping(field: int, values: Mapping[str, str | int]) -> bytes:
    """A field for each entry of a map, in the order given."""
    entries = (
        part(1, key) + (varint(16) + varint(value) if isinstance(value, int) else part(2, value))
        for key, value in values.items()
    )
    return b"".join(part(field, entry) for entry in entries)
