"""The records of a ULog file: framing tables for the walker, and the parsing of each kind but data.

Facts from the ULog file format page of the PX4 guide and from real logs; docs/formats/ulog.md tells which is which.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np

from logreel.io.source import Source
from logreel.layout.nodes import SCALARS

MAGIC = b"ULog\x01\x12\x35"
FILE_HEADER = 16
SYNC = bytes.fromhex("2f731320250cbb12")

RECORD = struct.Struct("<HB")
#: Bytes before a payload: size and kind; before the payload of a data message also its id.
HEAD, DATA_HEAD = 3, 5

#: Bytes of the payload of a flag bits record, and where it begins in a file that has one.
FLAGS, FLAGS_AT = 40, FILE_HEADER + HEAD
#: Bit of the first compatible flag byte: the log has defaults of parameters.
DEFAULTS_FLAG = 1

#: ULog's basic types and what they are called in a Layout.
BASIC = {
    "int8_t": "int8",
    "uint8_t": "uint8",
    "bool": "bool",
    "char": "char",
    "int16_t": "int16",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "float": "float32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "double": "float64",
}

# u16 size at 0, u8 kind at 2, and for data u16 id at 3; the size does not count the header.
SPEC = np.array([HEAD, 0, 0xFFFF, HEAD, 2, HEAD, 0xFFFF, DATA_HEAD], np.int64)

#: Kinds that change what later bytes mean, or carry a key: each is parsed and judged before the walk goes on.
PARSED = b"BFIMPQA"
#: Kinds that only need to be found again.
NOTED = b"LCSOR"

_DATA, _NOTE, _STOP, _TOLERATE = 1, 2, 3, 4
_KINDS = {
    # action, least and greatest size, least and greatest first payload byte
    "D": (_DATA, 2, 65535, 0, 255),
    "L": (_NOTE, 9, 65535, 0x30, 0x37),
    "C": (_NOTE, 11, 65535, 0x30, 0x37),
    # Of any content: what the magic is was once left open.
    "S": (_NOTE, 8, 8, 0, 255),
    "O": (_NOTE, 2, 2, 0, 255),
    "R": (_NOTE, 2, 2, 0, 255),
    "A": (_STOP, 4, 65535, 0, 255),
    "F": (_STOP, 5, 65535, 0x2D, 0x7A),
    "I": (_STOP, 4, 65535, 3, 255),
    "P": (_STOP, 4, 65535, 3, 255),
    "M": (_STOP, 5, 65535, 0, 1),
    "Q": (_STOP, 5, 65535, 1, 255),
    # One that is not the first record says nothing, and 0x42 is common in floats: of any size it would swallow data.
    "B": (_STOP, 40, 40, 0, 255),
}


def kinds_table() -> np.ndarray:
    """A fresh int64[256, 5] table of record kinds for the walker."""
    table = np.zeros((256, 5), np.int64)
    for letter, row in _KINDS.items():
        table[ord(letter)] = row
    return table


_PARSED_SIZES = {ord(letter): _KINDS[letter][1:3] for letter in PARSED.decode()}


def is_parsed(size: int, kind: int, left: int) -> bool:
    """True for a whole record, of *left* bytes at most, of a kind that is parsed and of a size it can have."""
    least, greatest = _PARSED_SIZES.get(kind, (1, 0))
    return least <= size <= min(left, greatest)


def is_letter(kind: int) -> bool:
    """True for an ASCII letter, as all kinds are so far."""
    return chr(kind).isascii() and chr(kind).isalpha()


def is_unknown(kind: int) -> bool:
    """True for a kind that the format does not use yet."""
    return chr(kind) not in _KINDS


def name_of(kind: int) -> str:
    """A kind as people write it."""
    return repr(chr(kind)) if is_letter(kind) else f"0x{kind:02x}"


def allow(table: np.ndarray, kind: int) -> None:
    """Let the walker step over records of a kind that is not defined (yet), or of a known one with odd content."""
    # What is zero from end to end is no record.
    table[kind] = _ODD.get(chr(kind), (_TOLERATE, int(kind == 0), 65535, 0, 255))


#: Known kinds that are taken with content that the format does not allow, where the records behind prove their size.
_ODD = {
    "L": (_NOTE, 9, 65535, 0, 255),
    "C": (_NOTE, 11, 65535, 0, 255),
    "S": (_TOLERATE, 0, 65535, 0, 255),
}


def noted_table() -> np.ndarray:
    """A fresh int64[256, 5] table of what a walk may have noted."""
    table = kinds_table()
    for letter in _ODD:
        allow(table, ord(letter))
    return table


def is_odd(kind: int, size: int, first: int) -> bool:
    """True for a text whose level is no digit from 0 to 7, and for a sync record of another size than 8."""
    letter = chr(kind)
    if letter == "S":
        return size != _KINDS["S"][1]
    return letter in _ODD and size >= _KINDS[letter][1] and not 0x30 <= first <= 0x37


class BadRecord(ValueError):
    """The bytes of a record are not what its kind requires; the text says what is wrong."""


def as_text(data: bytes) -> str:
    """Text of a log, invalid UTF-8 replaced."""
    return data.decode("utf-8", "replace")


def payload_at(source: Source, pos: int) -> bytes:
    """The payload of the record at *pos*."""
    size = int(source.view[pos]) | int(source.view[pos + 1]) << 8
    return source.read(pos + HEAD, size)


_NAME = re.compile(rb"[A-Za-z0-9_\-/]+\Z")
_TYPED = re.compile(rb"([A-Za-z0-9_\-/]+)(?:\[(\d{1,9})\])? ([A-Za-z0-9_\-/ ]+)")
_NUMBERS = (b"int32_t", b"float")


@dataclass(frozen=True, slots=True)
class KeyValue:
    """An info, parameter or default: ``type name`` and the raw value. *head*: continued mark or default kinds."""

    type: str
    count: int | None
    name: str
    data: bytes
    head: int = 0

    def value(self) -> object:
        """Text for char arrays, numbers or lists of numbers otherwise, raw bytes where the size does not fit."""
        if self.type == "char" and self.count is not None:
            return as_text(self.data)
        scalar = BASIC.get(self.type)
        if scalar is None:
            return self.data
        dtype = np.dtype(SCALARS[scalar][0])
        if len(self.data) % dtype.itemsize or not self.data:
            return self.data
        numbers = np.frombuffer(self.data, dtype).tolist()
        return numbers[0] if self.count is None and len(numbers) == 1 else numbers


def match_key(payload: bytes, at: int, number: bool) -> re.Match[bytes]:
    """The key that begins with its length at payload[at], as type, count and name; the value begins where it ends.

    *number*: the value must be one int32_t or float, as parameters are. Raises BadRecord.
    """
    end = at + 1 + (payload[at] if len(payload) > at else 0)
    m = _TYPED.fullmatch(payload, at + 1, end)
    if m is None or m.end() != end:
        raise BadRecord(f"not a key: {payload[at + 1 : end][:40]!r}")
    if number and (m[1] not in _NUMBERS or m[2] is not None or len(payload) - end != 4):
        raise BadRecord(
            f"a parameter is one int32_t or float, not {m[0][:40]!r} with {len(payload) - end} bytes"
        )
    return m


def parse_key(payload: bytes, has_head: bool) -> KeyValue:
    """The key and value of an ``I`` or ``P`` record, or with *has_head* of an ``M`` or ``Q``. Raises BadRecord."""
    m = match_key(payload, int(has_head), False)
    count = int(m[2]) if m[2] else None
    return KeyValue(m[1].decode(), count, m[3].decode(), payload[m.end() :], payload[0] if has_head else 0)


def parse_subscription(payload: bytes) -> tuple[int, int, str]:
    """The instance, the message id and the format name of an ``A`` record. Raises BadRecord."""
    name = payload[3:]
    if not _NAME.match(name):
        raise BadRecord(f"not a message name: {name[:40]!r}")
    return payload[0], payload[1] | payload[2] << 8, name.decode()


def parse_flags(payload: bytes) -> tuple[bytes, bytes, tuple[int, int, int]]:
    """The compatible and incompatible flags and the three appended offsets of a ``B`` record."""
    return payload[:8], payload[8:16], struct.unpack_from("<3Q", payload, 16)
