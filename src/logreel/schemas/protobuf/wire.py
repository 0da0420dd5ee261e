"""Decoding of protobuf fields in plain Python, for the few messages that formats themselves consist of.

Large or many messages are decoded by a kernel or the library. This decoder needs no import and keeps the order of maps.
"""

from __future__ import annotations

from collections.abc import Iterator

from logreel.dataclass import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes


class BadWire(ValueError):
    """The bytes are no protobuf fields."""


@dataclass(frozen=True, slots=True)
class Item:
    """A field; *value*: unsigned int for the wire types VARINT, FIXED64 and FIXED32, bytes for BYTES."""

    number: int
    wire: int
    value: Value

    @property
    def signed(self) -> int:
        """Number as int64."""
        value = self.integer
        return value - (1 << 64) if value >> 63 else value

    @property
    def integer(self) -> int:
        """Number; 0 for a field of bytes, as for readers that expect a number."""
        return self.value if isinstance(self.value, int) else 0

    @property
    def bytes(self) -> bytes:
        """Bytes; empty for a field with a number."""
        return self.value if isinstance(self.value, bytes) else b""

    @property
    def text(self) -> str:
        """Bytes as text, invalid UTF-8 replaced."""
        return self.bytes.decode("utf-8", "replace")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at *at* and the offset of its end; raise BadWire if it is cut or has more than 64 bits."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
        shift += 7
        if shift > 63:
            break
    raise BadWire("a number that is cut or has more than 64 bits")


def items(data: bytes) -> Iterator[Item]:
    """Yield the fields of a message in order; raise BadWire at the first malformed one."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise BadWire(f"a field with number {number}")
        if wire == VARINT:
            value, at = varint(data, at)
            yield Item(number, wire, value)
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise BadWire(f"a field of wire type {wire}")
        if size > len(data) - at:
            raise BadWire(f"a field of {size} bytes where {len(data) - at} are left")
        raw = data[at : at + size]
        at += size
        yield Item(number, wire, raw if wire == BYTES else int.from_bytes(raw, "little"))


def packed(item: Item) -> Iterator[int]:
    """Yield the numbers of a repeated varint field, packed or not."""
    if not isinstance(item.value, bytes):
        yield item.value
        return
    at = 0
    while at < len(item.value):
        value, at = varint(item.value, at)
        yield value


def entry(data: bytes) -> tuple[str, Item]:
    """Return key and value of an entry of a map with text keys."""
    key, value = "", Item(2, BYTES, b"")
    for item in items(data):
        if item.number == 1:
            key = item.text
        elif item.number == 2:
            value = item
    return key, value
