"""Messages of MAVLink: their definitions, frames of versions 1 and 2, checksums.

Source: https://mavlink.io/en/guide/serialization.html. ``messages.txt`` has the facts of the public definitions, see
``tools/make_messages.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import (
    Decoded,
    Field,
    FixedArray,
    Layout,
    MessageIndex,
    PayloadRange,
    Scalar,
    Struct,
    decode_variable,
)

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
#: First bytes of frames of version 1 and 2; bytes before the payload, of the checksum, and of a signature.
V1, V2, HEADS, CHECKSUM, SIGNATURE = 0xFE, 0xFD, {0xFE: 6, 0xFD: 10}, 2, 13
#: Flag of a frame of version 2 that is signed.
SIGNED = 1
_FIELD = re.compile(r"(\w+):(\w+?)(?:_t)?(?:\[(\d+)\])?(?::(\S+))?")
_WIDTHS = {"int8": 1, "uint8": 1, "char": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "float": 4} | {
    "int64": 8,
    "uint64": 8,
    "double": 8,
}
_SCALARS = {"float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class Member:
    """A field: *count* 0 if it is no array."""

    name: str
    type: str
    count: int
    unit: str

    @property
    def size(self) -> int:
        """Bytes in a payload."""
        return _WIDTHS[self.type] * (self.count or 1)


@dataclass(frozen=True)
class Definition:
    """A message; *text* is its line in messages.txt."""

    text: str

    @cached_property
    def id(self) -> int:
        """The number of the message."""
        return int(self.text.split(" ", 1)[0])

    @cached_property
    def name(self) -> str:
        """The name of the message."""
        return self.text.split(" ", 2)[1]

    @cached_property
    def _members(self) -> tuple[list[Member], list[Member]]:
        """Fields in the order of the bytes, and extensions."""
        base, _, more = self.text.partition(" | ")
        fields = [
            [self._member(word) for word in part.split(" ")] for part in (base.split(" ", 2)[2], more) if part
        ]
        return sorted(fields[0], key=lambda one: -_WIDTHS[one.type]), fields[1] if more else []

    @staticmethod
    def _member(word: str) -> Member:
        name, kind, count, unit = _FIELD.fullmatch(word).groups()  # type: ignore[union-attr]
        return Member(name, kind, int(count or 0), unit or "")

    @cached_property
    def layout(self) -> Layout:
        """The payload with all extensions, not shortened."""
        fields = []
        for one in (*self._members[0], *self._members[1]):
            scalar = Scalar(_SCALARS.get(one.type, one.type))
            fields.append(Field(one.name, FixedArray(scalar, one.count) if one.count else scalar, one.unit))
        return Layout(Struct(tuple(fields)), self.name)

    @cached_property
    def extra(self) -> int:
        """The byte that the checksum covers besides the frame: a digest of the fields without extensions."""
        words = bytearray(f"{self.name} ".encode())
        for one in self._members[0]:
            kind = one.type if one.type in ("float", "double", "char") else f"{one.type}_t"
            words += f"{kind} {one.name} ".encode() + bytes([one.count] * bool(one.count))
        number = checksum(bytes(words))
        return number & 0xFF ^ number >> 8


@cache
def definitions() -> Mapping[int, Definition]:
    """Return the known messages by number."""
    text = Path(__file__).with_name("messages.txt").read_text(encoding="ascii")
    every = map(Definition, text.splitlines())
    return {one.id: one for one in every}


@cache
def _table() -> NDArray[np.uint16]:
    """Return uint16[256]: CRC-16/MCRF4XX of a byte."""
    table = np.arange(256, dtype=np.uint16)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0x8408, table >> 1).astype(np.uint16)
    return table


@cache
def _plain_table() -> list[int]:
    return [int(number) for number in _table()]


def checksum(data: bytes) -> int:
    """Return the CRC-16/MCRF4XX of bytes."""
    crc, table = 0xFFFF, _plain_table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def checksums(data: U8, start: I64, size: I64, number: I64) -> NDArray[np.uint16]:
    """Return uint16[n]: the checksum that each frame of a known message should have.

    start   int64[n]  first byte of each frame
    size    int64[n]  bytes from there to the checksum
    number  int64[n]  of the messages
    """
    table = _table()
    # Longest first: at each byte, those that have it are in front.
    rows = np.argsort(-size, kind="stable")
    begin, length = start[rows], size[rows]
    crc: NDArray[Any] = np.full(len(rows), 0xFFFF, np.uint16)
    longest = int(length.max()) if len(rows) else 0
    having = np.searchsorted(-length, -np.arange(longest + 1), side="left").tolist()
    for at in range(1, longest):
        n = having[at]
        crc[:n] = crc[:n] >> 8 ^ table[(crc[:n] ^ data[begin[:n] + at]) & 0xFF]
    kinds, turns = np.unique(number[rows], return_inverse=True)
    extra = np.array([definitions()[kind].extra for kind in kinds.tolist()], np.uint16)[turns]
    made = np.empty(len(rows), np.uint16)
    made[rows] = crc >> 8 ^ table[(crc ^ extra) & 0xFF]
    return made


def are_sound(data: U8, start: I64, size: I64, number: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether the checksum of each frame agrees, True for messages that are not known.

    Parameters as for ``checksums``.
    """
    sound = np.ones(len(start), np.bool_)
    rows = np.flatnonzero(np.isin(number, list(definitions())))
    end = start[rows] + size[rows]
    stated = data[end].astype(np.uint16) | data[end + 1].astype(np.uint16) << 8
    sound[rows] = checksums(data, start[rows], size[rows], number[rows]) == stated
    return sound


def frames_of(payloads: U8, number: int, system: int, component: int, sequence: int) -> tuple[U8, I64]:
    """Return frames of version 2, one after another, and int64[n], the bytes of each.

    payloads  uint8[n, size]  with all extensions; zeros at their ends are left out
    sequence  number of the first frame
    """
    n, size = payloads.shape
    used = size - np.argmax(payloads[:, ::-1] != 0, axis=1)
    # The first byte stays.
    used = np.where(payloads.any(axis=1), used, 1).astype(np.int64)
    head = HEADS[V2]
    sizes = head + used + CHECKSUM
    start = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    heads = np.zeros((n, head), np.uint8)
    heads[:, 0], heads[:, 1], heads[:, 4] = V2, used, (sequence + np.arange(n)) & 0xFF
    heads[:, 5], heads[:, 6] = system, component
    heads[:, 7:] = np.frombuffer(number.to_bytes(3, "little"), np.uint8)
    out[start[:, None] + np.arange(head)] = heads
    inside = np.arange(size) < used[:, None]
    out[((start + head)[:, None] + np.arange(size))[inside]] = payloads[inside]
    crc = checksums(out, start, head + used, np.full(n, number))
    out[start + head + used], out[start + head + used + 1] = crc & 0xFF, crc >> 8
    return out, sizes


class FrameDecoder:
    """Decodes frames: payloads end with their last byte that is not zero, and those of version 1 lack extensions."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        size = layout.size or 0
        data, offset = np.asarray(piece.data), piece.offset
        head = np.where(data[offset] == V1, HEADS[V1], HEADS[V2])
        columns = np.arange(size)
        inside = columns < np.minimum(data[offset + 1].astype(np.int64), size)[:, None]
        place = np.where(inside, (offset + head)[:, None] + columns, offset[:, None])
        payloads = np.where(inside, data[place], 0).astype(np.uint8).reshape(-1)
        start = np.arange(len(offset), dtype=np.int64) * size
        return decode_variable(layout, payloads, start, start + size)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, object]:
        """See PayloadDecoder."""
        return self.payload(data)

    def payload(self, data: memoryview) -> dict[str, object]:
        """Return the fields of a frame."""
        size, head = self._layout.size or 0, HEADS[data[0]]
        payload = bytes(data[head : head + min(data[1], size)])
        return self._layout.decoder()(memoryview(payload + bytes(size - len(payload))))
