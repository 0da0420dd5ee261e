"""Constants and structs of ULog records: framing tables for the walker, and parsers of all kinds except data.

Sources: the page "ULog File Format" of the PX4 guide, and real logs; docs/formats/ulog.md has the source of each
fact.
"""

from __future__ import annotations

import struct

import numpy as np

from logreel.dataclass import NamedTuple, dataclass
from logreel.io.source import Source
from logreel.kernels import framed
from logreel.layout.nodes import SCALARS

MAGIC = b"ULog\x01\x12\x35"
FILE_HEADER = 16
SYNC = bytes.fromhex("2f731320250cbb12")

RECORD = struct.Struct("<HB")
#: Bytes of a record header: size and kind; of the header of a data message: also its id.
HEAD, DATA_HEAD = 3, 5

#: Size of the payload of a flag bits record, and its position in a file that has one.
FLAGS, FLAGS_AT = 40, FILE_HEADER + HEAD
#: Bit in the first byte of compatible flags: the log has default parameters.
DEFAULTS_FLAG = 1
#: Bit in the first byte of incompatible flags, at INCOMPATIBLE_AT: data was appended, at the three u64 of OFFSETS_AT.
APPENDED_FLAG = 1
INCOMPATIBLE_AT, OFFSETS_AT = FLAGS_AT + 8, FLAGS_AT + 16

#: Basic types of ULog, and their names in a Layout.
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

# uint16 size at 0, uint8 kind at 2, and for data uint16 id at 3; the size does not include the header.
SPEC = np.array([(HEAD, 0, 0xFFFF, HEAD, 2, HEAD, 0xFFFF, DATA_HEAD, 0, 0)], framed.SPEC)

#: Kinds that change the meaning of later bytes, or carry a key: each record is parsed before the walker goes on.
PARSED = b"BFIMPQA"
#: Kinds whose positions are only noted.
NOTED = b"LCSOR"

_DATA, _NOTE, _STOP, _TOLERATE = framed.DATA, framed.NOTE, framed.STOP, framed.TOLERATE
_KINDS = {
    # action, least and greatest size, least and greatest first payload byte
    "D": (_DATA, 2, 65535, 0, 255),
    "L": (_NOTE, 9, 65535, 0x30, 0x37),
    "C": (_NOTE, 11, 65535, 0x30, 0x37),
    # Any content: early specifications did not define the magic.
    "S": (_NOTE, 8, 8, 0, 255),
    "O": (_NOTE, 2, 2, 0, 255),
    "R": (_NOTE, 2, 2, 0, 255),
    "A": (_STOP, 4, 65535, 0, 255),
    "F": (_STOP, 5, 65535, 0x2D, 0x7A),
    "I": (_STOP, 4, 65535, 3, 255),
    "P": (_STOP, 4, 65535, 3, 255),
    "M": (_STOP, 5, 65535, 0, 1),
    "Q": (_STOP, 5, 65535, 1, 255),
    # Only valid as the first record, and 0x42 is common in floats: with any size allowed it would swallow data.
    "B": (_STOP, 40, 40, 0, 255),
}


def kinds_table() -> np.ndarray:
    """Return a new framed.TAG[256] table of record kinds for the walker."""
    table = np.zeros(256, framed.TAG)
    for letter, row in _KINDS.items():
        table[ord(letter)] = row
    return table


_PARSED_SIZES = {ord(letter): _KINDS[letter][1:3] for letter in PARSED.decode()}


def is_parsed(size: int, letter: int, left: int) -> bool:
    """Return whether a record is whole (*left* bytes remain), of a parsed kind, and of a valid size."""
    least, greatest = _PARSED_SIZES.get(letter, (1, 0))
    return least <= size <= min(left, greatest)


def is_letter(letter: int) -> bool:
    """Return whether a kind is an ASCII letter, as all known kinds are."""
    return chr(letter).isascii() and chr(letter).isalpha()


def is_unknown(letter: int) -> bool:
    """Return whether the format does not define a kind."""
    return chr(letter) not in _KINDS


def name_of(letter: int) -> str:
    """Return a kind as text: the quoted letter, or the number in hex."""
    return repr(chr(letter)) if is_letter(letter) else f"0x{letter:02x}"


def allow(table: np.ndarray, letter: int) -> None:
    """Let the walker step over records of an undefined kind, or of a known kind with invalid content."""
    # Zeros only are no record.
    table[letter] = _ODD.get(chr(letter), (_TOLERATE, int(letter == 0), 65535, 0, 255))


#: Known kinds that are accepted with invalid content if the next records prove their size.
_ODD = {
    "L": (_NOTE, 9, 65535, 0, 255),
    "C": (_NOTE, 11, 65535, 0, 255),
    "S": (_TOLERATE, 0, 65535, 0, 255),
}


def noted_table() -> np.ndarray:
    """Return a new framed.TAG[256] table of the records that a walk may note."""
    table = kinds_table()
    for letter in _ODD:
        allow(table, ord(letter))
    return table


def is_odd(record_type: int, size: int, first: int) -> bool:
    """Return whether a record is a logged string with an invalid level, or a sync record that is not 8 bytes."""
    letter = chr(record_type)
    if letter == "S":
        return size != _KINDS["S"][1]
    return letter in _ODD and size >= _KINDS[letter][1] and not 0x30 <= first <= 0x37


class BadRecord(ValueError):
    """The content of a record is invalid; the text says what is wrong."""


def as_text(data: bytes) -> str:
    """Decode UTF-8; invalid bytes are replaced."""
    return data.decode("utf-8", "replace")


def payload_at(source: Source, pos: int) -> bytes:
    """Return the payload of the record at *pos*."""
    view, at = source.view, pos + HEAD
    return bytes(view[at : at + (view[pos] | view[pos + 1] << 8)])


_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/")
_NAME_BYTES = frozenset("".join(_NAME).encode())
#: The types of parameters, of which a log has a thousand: too many for an array each.
PARAMETERS = {"int32_t": struct.Struct("<i"), "float": struct.Struct("<f")}


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Key and value of an information record, parameter or default.

    data  the value as bytes
    head  the byte before the key: whether an ``M`` continues the one before, or which defaults a ``Q`` states
    """

    type: str
    count: int | None
    name: str
    data: bytes
    head: int = 0

    def value(self) -> object:
        """Return text, a number or a list of numbers; bytes if the type is not basic or the size does not fit."""
        if self.type == "char" and self.count is not None:
            return as_text(self.data)
        scalar = BASIC.get(self.type)
        if scalar is None:
            return self.data
        if self.count is None and len(self.data) == 4 and self.type in PARAMETERS:
            return PARAMETERS[self.type].unpack(self.data)[0]
        dtype = np.dtype(SCALARS[scalar][0])
        if len(self.data) % dtype.itemsize or not self.data:
            return self.data
        numbers = np.frombuffer(self.data, dtype).tolist()
        return numbers[0] if self.count is None and len(numbers) == 1 else numbers


def typed_name(text: str) -> tuple[str, int | None, str] | None:
    """Return type, count and name of ``type name`` or ``type[count] name``; the name is not checked. None for others.

    Without a pattern: for a small log it takes longer to compile it than to read all records.
    """
    type_name, space, name = text.partition(" ")
    if is_name(type_name):
        return (type_name, None, name) if space else None
    type_name, _, count = type_name.partition("[")
    digits = count[:-1]
    if not space or count[-1:] != "]" or len(digits) > 9 or not (digits.isascii() and digits.isdigit()):
        return None
    return (type_name, int(digits), name) if is_name(type_name) else None


class Key(NamedTuple):
    """A key: its type, the length of an array (None: no array), its name, and where its value begins in the payload."""

    type: str
    length: int | None
    name: str
    end: int


def match_key(payload: bytes, at: int, number: bool) -> Key:
    """Return the key whose length is at payload[at].

    With *number* the value must be one int32_t or float, as parameters are. Raises BadRecord.
    """
    end = at + 1 + (payload[at] if len(payload) > at else 0)
    text = payload[at + 1 : end]
    typed = typed_name(text.decode("latin-1"))
    if typed is None or end > len(payload) or not is_name(typed[2].replace(" ", "_")):
        raise BadRecord(f"not a key: {text[:40]!r}")
    key = Key(*typed, end)
    if number and (key.type not in PARAMETERS or key.length is not None or len(payload) - end != 4):
        raise BadRecord(
            f"a parameter is one int32_t or float, not {text[:40]!r} with {len(payload) - end} bytes"
        )
    return key


def parse_key(payload: bytes, has_head: bool) -> KeyValue:
    """Parse an ``I`` or ``P`` record, or with *has_head* an ``M`` or ``Q`` record. Raises BadRecord."""
    key = match_key(payload, int(has_head), False)
    head = payload[0] if has_head else 0
    return KeyValue(key.type, key.length, key.name, payload[key.end :], head)


def is_name(name: str | bytes) -> bool:
    """Return whether *name* is one for a format, field or key: letters, digits, ``_``, ``-`` and ``/``."""
    return bool(name) and (_NAME if isinstance(name, str) else _NAME_BYTES).issuperset(name)


def parse_subscription(payload: bytes) -> tuple[int, int, str]:
    """Return instance, message id and format name of an ``A`` record. Raises BadRecord."""
    name = payload[3:]
    if not is_name(name):
        raise BadRecord(f"not a message name: {name[:40]!r}")
    return payload[0], payload[1] | payload[2] << 8, name.decode()


def parse_flags(payload: bytes) -> tuple[bytes, bytes, tuple[int, int, int]]:
    """Return compatible flags, incompatible flags and the three appended offsets of a ``B`` record."""
    return payload[:8], payload[8:16], struct.unpack_from("<3Q", payload, 16)
