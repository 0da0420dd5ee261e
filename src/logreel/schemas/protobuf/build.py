"""Encoding of protobuf fields in plain Python, for the few messages that formats themselves consist of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Return a varint; negative numbers as 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a varint field; empty for 0."""
    return varint(field << 3) + varint(value) if value else b""


def part(field: int, value: bytes | str) -> bytes:
    """Return a length-delimited field of bytes, text or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def text(field: int, value: str) -> bytes:
    """Return a text field; empty for an empty text."""
    return part(field, value) if value else b""


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a field of packed varints; empty without values."""
    run = b"".join(map(varint, values))
    return part(field, run) if run else b""


def mapping(field: int, values: Mapping[str, str | int]) -> bytes:
    """Return a field for each entry of a map, in the given order."""
    entries = (
        part(1, key) + (varint(16) + varint(value) if isinstance(value, int) else part(2, value))
        for key, value in values.items()
    )
    return b"".join(part(field, entry) for entry in entries)
