r"""Lines of text logs: to the payloads of the same messages in a DataFlash log, and back.

A line has the name of its message and its values, separated by commas. Numbers that the type scales are scaled:
``-12.34`` is stored as -1234. Text is escaped with backslashes (``\\``, ``\n``, ``\r``, ``\t``, ``\x2C``).

Source: Mission Planner, "Convert .Bin to .Log", by what it writes; pymavlink, by what it reads.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel_ardupilot.definitions import TYPES, Definition, dtype_of

U8 = NDArray[np.uint8]
#: Returns the number of a flight mode by its name, None if there is none.
ModeNumber = Callable[[str], int | None]
#: Letters of text, and their structs; the scale of the letters whose numbers are scaled.
_TEXTS, _SCALES = "nNZ", {"c": 100, "C": 100, "e": 100, "E": 100, "L": 10_000_000}
_STRUCTS = {
    "a": "32h",
    "n": "4s",
    "N": "16s",
    "Z": "64s",
    "c": "h",
    "C": "H",
    "e": "i",
    "E": "I",
    "L": "i",
    "M": "B",
}
_STRUCTS |= {"g": "e"}
#: Numbers of floats are whole only below this.
_WHOLE = 1 << 53
_ESCAPED, _PLAIN = re.compile(rb"\\(\\|n|r|t|x[0-9A-Fa-f]{2})"), re.compile(r"[ -\[\]-~\x80-\U0010ffff]*")
_MEANT = {b"\\": b"\\", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_ARRAY = re.compile(r"\[\s*(-?\d+(?:[\s,]+-?\d+){31})\s*\]")


def unescaped(text: bytes) -> bytes:
    """Return the text that is meant."""
    return _ESCAPED.sub(lambda match: _MEANT.get(match[1]) or bytes([int(match[1][1:], 16)]), text)


def escaped(raw: bytes, is_last: bool) -> bytes:
    """Return text as a line holds it; *is_last*: nothing follows, so that commas stay."""
    text = raw.rstrip(b"\0")
    if is_last and not text:
        # Other readers leave out lines that end with a comma.
        return b"\\x00"
    try:
        is_plain = _PLAIN.fullmatch(text.decode("utf-8")) is not None
    except UnicodeDecodeError:
        is_plain = False
    if is_plain and (is_last or b"," not in text) and text.strip() == text:
        return text
    out = bytearray()
    for at, byte in enumerate(text):
        if byte == 0x5C:
            out += b"\\\\"
        elif (
            not 32 <= byte < 127
            or (byte == 0x2C and not is_last)
            or (byte == 32 and at in (0, len(text) - 1))
        ):
            out += b"\\x%02X" % byte
        else:
            out.append(byte)
    return bytes(out)


def fields_of(line: bytes, count: int) -> list[bytes]:
    """Return the values of a line; raises ValueError if there are less than *count*. Commas of the last one stay."""
    fields = line.rstrip(b"\r").split(b",", count)[1:]
    if len(fields) < count:
        raise ValueError(f"{len(fields)} values where there are {count}")
    return [field[1:] if field[:1] == b" " else field for field in fields]


class LineCodec:
    """The lines of one kind of message. Only for definitions with columns."""

    def __init__(self, definition: Definition, mode_number: ModeNumber) -> None:
        self._columns, self._size, self._mode = definition.columns or (), definition.size, mode_number
        self.name, self._dtype = definition.name.encode("latin-1"), dtype_of(definition)
        letters = [column.letter for column in self._columns]
        self._struct = struct.Struct("<" + "".join(_STRUCTS.get(letter, letter) for letter in letters))
        self._is_plain = not set(letters) & {*_TEXTS, "a"}

    def payloads(self, lines: Sequence[bytes]) -> tuple[U8, NDArray[np.bool_]]:
        """Return uint8[n, size], the payloads, and bool[n], which lines are messages; the payloads of others are 0."""
        rows = self._numbers(lines) if self._is_plain else None
        if rows is not None:
            return rows, np.ones(len(lines), np.bool_)
        rows, good = np.zeros((len(lines), self._size), np.uint8), np.zeros(len(lines), np.bool_)
        for row, line in enumerate(lines):
            try:
                rows[row] = np.frombuffer(self.payload(line), np.uint8)
            except (ValueError, OverflowError, struct.error):
                continue
            good[row] = True
        return rows, good

    def _numbers(self, lines: Sequence[bytes]) -> U8 | None:
        """Return the payloads of lines with numbers only, all at once; None if any is not as expected."""
        count, begin = len(self._columns), len(self.name)
        if any(line.count(b",") != count or line[begin : begin + 1] != b"," for line in lines):
            return None
        text = b",".join([line[begin + 1 :] for line in lines])
        if text.translate(None, b"0123456789+-.eEnaifNIF, \r"):
            return None
        try:
            values = np.fromstring(text.decode("ascii").replace("\r", ""), np.float64, sep=",")
        except (ValueError, DeprecationWarning):
            return None
        if len(values) != count * len(lines):
            return None
        rows, table = np.zeros(len(lines), self._dtype), values.reshape(-1, count)
        for number, column in enumerate(self._columns):
            stored = table[:, number]
            if column.letter in "fdg":
                bits = np.float16 if column.letter == "g" else self._dtype[column.name]
                with np.errstate(over="ignore"):
                    narrow = stored.astype(bits)
                if (np.isinf(narrow) & np.isfinite(stored)).any():
                    return None
                rows[column.name] = narrow.view(np.uint16) if column.letter == "g" else narrow
                continue
            whole = np.rint(stored * _SCALES.get(column.letter, 1))
            bounds = np.iinfo(self._dtype[column.name])
            # Differences of a millionth are those of the floats.
            off = np.abs(stored * _SCALES.get(column.letter, 1) - whole)
            if not (
                (off < 1e-6) & (np.abs(whole) < _WHOLE) & (whole >= bounds.min) & (whole <= bounds.max)
            ).all():
                return None
            rows[column.name] = whole
        return rows.view(np.uint8).reshape(len(lines), self._size)

    def payload(self, line: bytes) -> bytes:
        """Return the payload of one line; raises ValueError, OverflowError or struct.error if it is none."""
        values: list[Any] = []
        for column, raw in zip(self._columns, fields_of(line, len(self._columns)), strict=True):
            value = self._value(column.letter, raw)
            values += value if isinstance(value, list) else [value]
        return self._struct.pack(*values)

    def _value(self, letter: str, raw: bytes) -> Any:
        if letter in _TEXTS:
            meant = unescaped(raw)
            if len(meant) > TYPES[letter][1]:
                raise ValueError(f"text of {len(meant)} bytes")
            return meant
        text = raw.decode("ascii").strip()
        if letter == "a":
            match = _ARRAY.fullmatch(text)
            if match is None:
                raise ValueError(text)
            return [int(number) for number in re.split(r"[\s,]+", match[1])]
        if "_" in text and letter != "M":
            raise ValueError(text)
        if letter in "fdg":
            return float(text)
        if letter == "M" and (mode := self._mode(text)) is not None:
            return mode
        if letter in _SCALES:
            scaled = float(text) * _SCALES[letter]
            number = round(scaled)
            if abs(scaled - number) >= 1e-6:
                raise ValueError(text)
            return number
        try:
            return int(text)
        except ValueError:
            value = float(text)
            if not value.is_integer() or abs(value) >= _WHOLE:
                raise
            return int(value)

    def lines(self, rows: U8) -> list[bytes]:
        """Return the lines of payloads, uint8[n, size], without ends of lines."""
        table = np.ascontiguousarray(rows).reshape(-1).view(self._dtype)
        last = len(self._columns) - 1
        columns = [
            self._texts(column.letter, table[column.name], number == last)
            for number, column in enumerate(self._columns)
        ]
        return [b", ".join((self.name, *values)) for values in zip(*columns, strict=True)]

    @staticmethod
    def _texts(letter: str, values: NDArray[Any], is_last: bool) -> list[bytes]:
        if letter in _TEXTS:
            # Bytes of the whole field: NumPy would end them at the last byte that is not 0.
            return [escaped(raw, is_last) for raw in values.tolist()]
        if letter == "a":
            return [b"[" + b" ".join(b"%d" % number for number in row) + b"]" for row in values.tolist()]
        if letter == "d" or letter in _SCALES:
            return [repr(number).encode() for number in (values / _SCALES.get(letter, 1)).tolist()]
        if letter in "fg":
            texts: list[bytes] = (values.view(np.float16) if letter == "g" else values).astype("S32").tolist()
            return texts
        return [b"%d" % number for number in values.tolist()]
