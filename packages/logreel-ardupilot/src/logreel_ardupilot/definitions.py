"""What DataFlash logs say of their messages: FMT, FMTU, UNIT and MULT records, as Definitions, Schemas and Layouts.

Source: ArduPilot, libraries/AP_Logger (LogStructure.h, README.md).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from logreel.plugin import DefinitionError, Field, FixedArray, Layout, Scalar, Schema, Struct

#: The mark of every record; bytes before its payload; kinds that a byte can tell apart.
MARK, HEAD, KINDS = b"\xa3\x95", 3, 256
#: Kind and payload of a definition: kind, bytes of the whole record, name, letters of the types, names of the columns.
FMT, FMT_RECORD = 128, struct.Struct("<BB4s16s64s")
#: Letters of types: node of the layout, bytes, and the factor that the letter stands for.
TYPES: Mapping[str, tuple[Scalar | FixedArray, int, float]] = {
    "a": (FixedArray(Scalar("int16"), 32), 64, 1.0),
    "b": (Scalar("int8"), 1, 1.0),
    "B": (Scalar("uint8"), 1, 1.0),
    "h": (Scalar("int16"), 2, 1.0),
    "H": (Scalar("uint16"), 2, 1.0),
    "i": (Scalar("int32"), 4, 1.0),
    "I": (Scalar("uint32"), 4, 1.0),
    "f": (Scalar("float32"), 4, 1.0),
    "d": (Scalar("float64"), 8, 1.0),
    "n": (FixedArray(Scalar("char"), 4), 4, 1.0),
    "N": (FixedArray(Scalar("char"), 16), 16, 1.0),
    "Z": (FixedArray(Scalar("char"), 64), 64, 1.0),
    "c": (Scalar("int16"), 2, 0.01),
    "C": (Scalar("uint16"), 2, 0.01),
    "e": (Scalar("int32"), 4, 0.01),
    "E": (Scalar("uint32"), 4, 0.01),
    "L": (Scalar("int32"), 4, 1e-7),
    "M": (Scalar("uint8"), 1, 1.0),
    "q": (Scalar("int64"), 8, 1.0),
    "Q": (Scalar("uint64"), 8, 1.0),
    # A half-precision number, for which layouts have no scalar: its bits.
    "g": (Scalar("uint16"), 2, 1.0),
}
#: Columns with the time of a message: type and ns per unit.
TIMES = {"TimeUS": ("Q", 1000), "US": ("Q", 1000), "TimeMS": ("I", 10**6)}
#: Units that have a usual sign, by the unit of the log and the factor; and shorter names of units.
SIGNS = {
    ("s", 1e-3): "ms",
    ("s", 1e-6): "us",
    ("m", 1e-2): "cm",
    ("m", 1e-3): "mm",
    ("m/s", 1e-2): "cm/s",
    ("m/s", 1e-3): "mm/s",
    ("Gauss", 1e-3): "mGauss",
    ("V", 1e-3): "mV",
    ("A", 1e-3): "mA",
    ("Ah", 1e-3): "mAh",
}
NAMES = {
    "deglatitude": "deg",
    "deglongitude": "deg",
    "degheading": "deg",
    "instance": "",
    "UNKNOWN": "",
    "s1e-06": "us",
}
#: Messages that only define others, and are no channels.
DEFINING = ("FMT", "FMTU", "UNIT", "MULT")
#: No unit, and no multiplier.
NONE = "-"

#: Names of messages and columns, which paths of fields can hold; units, and their letters.
_NAME, _WORD = re.compile(r"[^\s,.\[\]#\x7f-\xff]+"), re.compile(r"[!-~]*")


def text_of(raw: bytes) -> str:
    """Return the text before the first NUL."""
    return raw.split(b"\0", 1)[0].decode("latin-1")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a message.

    letter      of the type
    unit        of the log, empty if unknown; *unit_id*: its letter
    multiplier  factor to the unit, 0.0 if unknown; *multiplier_id*: its letter
    """

    letter: str
    name: str
    unit_id: str = NONE
    unit: str = ""
    multiplier_id: str = NONE
    multiplier: float = 0.0

    @property
    def factor(self) -> float:
        """The factor from the stored number to the unit."""
        return self.multiplier or TYPES[self.letter][2]

    @property
    def shown_unit(self) -> str:
        """The unit of the stored number."""
        if self.letter in "nNZ":
            return ""
        sign = SIGNS.get((self.unit, self.factor))
        if sign is not None:
            return sign
        unit = NAMES.get(self.unit, self.unit)
        return unit if self.factor == 1.0 else f"{self.factor:g} {unit}".rstrip()


@dataclass(frozen=True)
class Definition:
    """A kind of message.

    size     bytes of the payload
    columns  None: the record that defines it is damaged, and payloads are bytes
    """

    name: str
    size: int
    columns: tuple[Column, ...] | None

    @classmethod
    def read(cls, payload: bytes) -> tuple[int, Definition | None]:
        """Return the kind that an FMT record defines, and its definition; None if no message can be of that size."""
        kind, length, name, letters, names = FMT_RECORD.unpack(payload)
        size, label = length - HEAD, text_of(name)
        if size < 1:
            return kind, None
        types, columns = text_of(letters), text_of(names).split(",")
        plain = _NAME.fullmatch(label) is not None
        whole = (
            plain
            and len(types) == len(columns) == len(set(columns))
            and all(letter in TYPES for letter in types)
            and sum(TYPES[letter][1] for letter in types) == size
            and all(_NAME.fullmatch(column) for column in columns)
        )
        if not whole:
            return kind, cls(label if plain else f"type_{kind}", size, None)
        return kind, cls(label, size, tuple(map(Column, types, columns)))

    def payload(self, kind: int) -> bytes:
        """Return the payload of the FMT record that defines it as *kind*."""
        columns = self.columns or ()
        letters, names = "".join(c.letter for c in columns), ",".join(c.name for c in columns)
        fields = (text.encode("latin-1") for text in (self.name, letters, names))
        return FMT_RECORD.pack(kind, self.size + HEAD, *fields)

    def with_units(
        self,
        units: Sequence[str],
        multipliers: Sequence[str],
        unit: Mapping[str, str],
        factor: Mapping[str, float],
    ) -> Definition:
        """Return the definition with units: their letters for each column, and what the letters mean."""
        if self.columns is None:
            return self
        columns = []
        for number, column in enumerate(self.columns):
            u = units[number] if number < len(units) else NONE
            m = multipliers[number] if number < len(multipliers) else NONE
            label, multiplier = unit.get(u, ""), factor.get(m, 0.0)
            u, m = (letter if _WORD.fullmatch(letter) else NONE for letter in (u, m))
            label = label if _WORD.fullmatch(label) else ""
            columns.append(Column(column.letter, column.name, u, label, m, multiplier))
        return Definition(self.name, self.size, tuple(columns))

    @cached_property
    def schema(self) -> Schema:
        """The definition as text: a line with name and size, and a line for each column."""
        lines = [f"{self.name} {self.size}"]
        for c in self.columns or ():
            lines.append(f"{c.letter} {c.name} {c.unit_id}:{c.unit} {c.multiplier_id}:{c.multiplier!r}")
        return Schema(self.name, "dataflash", "\n".join(lines))

    @classmethod
    def of_schema(cls, schema: Schema) -> Definition:
        """Return the Definition that is written in a Schema; raises DefinitionError for other text."""
        try:
            first, *rest = schema.text.split("\n")
            name, size = first.split(" ")
            columns = tuple(map(cls._column, rest))
            found = cls(name, int(size), columns or None)
        except (ValueError, KeyError):
            raise DefinitionError(f"{schema.name!r:.60} is not defined as in a DataFlash log") from None
        fits = not columns or sum(TYPES[c.letter][1] for c in columns) == found.size
        texts = [(name, 4), ("".join(c.letter for c in columns), 16), (",".join(c.name for c in columns), 64)]
        if not (fits and 0 < found.size <= 255 - HEAD and all(_fits(text, room) for text, room in texts)):
            raise DefinitionError(f"{schema.name!r:.60} does not fit into a definition of a DataFlash log")
        return found

    @staticmethod
    def _column(line: str) -> Column:
        letter, name, unit, multiplier = line.split(" ")
        _ = TYPES[letter]
        if unit[1] != ":" or multiplier[1] != ":":
            raise ValueError(line)
        return Column(letter, name, unit[0], unit[2:], multiplier[0], float(multiplier[2:]))

    @cached_property
    def layout(self) -> Layout:
        """The bytes of the payload."""
        if self.columns is None:
            return Layout(Struct((Field("data", FixedArray(Scalar("uint8"), self.size)),)), self.name)
        fields = (Field(c.name, TYPES[c.letter][0], c.shown_unit) for c in self.columns)
        return Layout(Struct(tuple(fields)), self.name)

    def place(self, name: str) -> tuple[int, Column] | None:
        """Return the offset of a column in the payload, and the column; None if there is none."""
        at = 0
        for column in self.columns or ():
            if column.name == name:
                return at, column
            at += TYPES[column.letter][1]
        return None

    @cached_property
    def time(self) -> tuple[int, int, int] | None:
        """Offset, bytes and ns per unit of the time of the message; None if it has none."""
        for name, (letter, unit) in TIMES.items():
            found = self.place(name)
            if found is not None and found[1].letter == letter and (name != "US" or found[0] == 0):
                return found[0], TYPES[letter][1], unit
        return None

    @property
    def is_defining(self) -> bool:
        """Whether its messages define others."""
        return self.name in DEFINING and self.columns is not None


def dtype_of(definition: Definition) -> np.dtype[np.void]:
    """Return the NumPy type of the payloads of a definition with columns."""
    codes = {"n": "S4", "N": "S16", "Z": "S64", "a": ("<i2", 32), "f": "<f4", "d": "<f8"}
    fields: list[Any] = []
    for column in definition.columns or ():
        number = f"<{'i' if column.letter in 'bhiceLq' else 'u'}{TYPES[column.letter][1]}"
        code = codes.get(column.letter, number)
        fields.append((column.name, *code) if isinstance(code, tuple) else (column.name, code))
    return np.dtype(fields)


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and text.isascii()


def definition(name: str, letters: str, columns: str) -> Definition:
    """Return the Definition of a message without units, its columns separated by commas."""
    size = sum(TYPES[letter][1] for letter in letters)
    return Definition(name, size, tuple(map(Column, letters, columns.split(","))))


#: Letters of units by the sign of a unit, as ArduPilot has them; of the multiplier 1, and of µs.
UNIT_LETTERS = {
    "m": "m",
    "m/s": "n",
    "m/s/s": "o",
    "m/s^2": "o",
    "deg": "d",
    "deg/s": "k",
    "rad": "r",
    "rad/s": "E",
    "s": "s",
    "V": "v",
    "A": "A",
    "degC": "O",
    "Hz": "z",
    "Pa": "P",
    "%": "%",
    "B": "b",
    "Gauss": "G",
    "Ohm": "w",
    "us": "s",
}
_ONE, _MICRO = ("0", 1.0), ("F", 1e-6)
#: Columns of a message.
_MOST_COLUMNS = 16


def definition_of(name: str, layout: Layout) -> Definition:
    """Return the Definition of a message with the fields of *layout*, and a time before them if they have none.

    Raises DefinitionError for what a DataFlash log cannot hold.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,3}", name) or name in DEFINING or name == CLOCK.name:
        raise DefinitionError(
            f"{name!r:.60}: DataFlash messages have names of one to four capital letters and digits"
        )
    if not isinstance(layout.root, Struct):
        raise DefinitionError(f"{name!r}: a DataFlash message holds one record")
    # Letters that scale have the same nodes as others.
    letters = {
        node: letter for letter, (node, _, factor) in TYPES.items() if factor == 1.0 and letter not in "Mg"
    }
    columns = []
    for field in layout.root.visible():
        letter = letters.get(field.node) if isinstance(field.node, (Scalar, FixedArray)) else None
        if letter is None:
            raise DefinitionError(f"field {field.name!r:.60}: a DataFlash message has no such type")
        unit_id = UNIT_LETTERS.get(field.unit, NONE)
        unit = field.unit if unit_id != NONE else ""
        factor = (NONE, 0.0) if not unit else _MICRO if unit == "us" else _ONE
        columns.append(Column(letter, field.name, unit_id, "s" if unit == "us" else unit, *factor))
    time = TIMES.get(columns[0].name) if columns else None
    if time is None or time[0] != columns[0].letter:
        columns.insert(0, Column("Q", "TimeUS", "s", "s", *_MICRO))
    made = Definition(name, sum(TYPES[c.letter][1] for c in columns), tuple(columns))
    if len(columns) > _MOST_COLUMNS:
        raise DefinitionError(
            f"{name!r} has {len(columns)} fields: a DataFlash message has at most {_MOST_COLUMNS}"
        )
    return Definition.of_schema(made.schema)


#: The definitions of defining messages, as ArduPilot writes them.
FORMAT = definition("FMT", "BBnNZ", "Type,Length,Name,Format,Columns")
UNITS = definition("FMTU", "QBNN", "TimeUS,FmtType,UnitIds,MultIds")
UNIT = definition("UNIT", "QbZ", "TimeUS,Id,Label")
MULTIPLIER = definition("MULT", "Qbd", "TimeUS,Id,Mult")
#: A record that logreel adds: the time of what follows, µs, and ns to add to times to get UTC, 0: unknown.
CLOCK = definition("LREL", "Qq", "TimeUS,UtcNs")


def shown(names: Iterable[str], most: int = 5) -> str:
    """Return names for people, not all if there are many."""
    names = list(names)
    return ", ".join(names[:most]) + " …" * (len(names) > most)
