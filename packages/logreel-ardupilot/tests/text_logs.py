"""Build text logs from DataFlash logs, without code of the package: a line for each record, as ground stations do."""

from __future__ import annotations

import struct

from dataflash_logs import TYPES

_SCALES = {"c": 100, "C": 100, "e": 100, "E": 100, "L": 1e7}
#: Name, number and columns by kind, of FMT records.
Known = dict[int, tuple[str, str]]


def as_lines(data: bytes, end: str = "\r\n", separator: str = ", ") -> bytes:
    """Return the text of a DataFlash log without damage."""
    known: Known = {128: ("FMT", "BBnNZ")}
    out, pos = list[str](), 0
    while pos < len(data):
        name, letters = known[data[pos + 2]]
        form = struct.Struct("<" + "".join(TYPES[letter] for letter in letters))
        values = list(form.unpack_from(data, pos + 3))
        pos += 3 + form.size
        if name == "FMT":
            texts = [value.rstrip(b"\0").decode() for value in values[2:]]
            known[values[0]] = texts[0], texts[1]
        fields = [_shown(letter, values) for letter in letters]
        out.append(separator.join([name, *fields]))
    return "".join(line + end for line in out).encode("latin-1")


def _shown(letter: str, values: list[object]) -> str:
    if letter == "a":
        return "[" + " ".join(str(values.pop(0)) for _ in range(32)) + "]"
    value = values.pop(0)
    if isinstance(value, bytes):
        text = value.rstrip(b"\0")
        return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\x{c:02X}" for c in text)
    if letter in _SCALES:
        assert isinstance(value, int)
        return repr(value / _SCALES[letter])
    if letter == "f":
        return f"{value:.9g}"
    return str(value)


def old_flight() -> bytes:
    """Return a log as old firmware printed it: lines before the first definition, names of modes, times in ms."""
    lines = [
        "ArduCopter V3.1.5",
        "Free RAM: 1234",
        "FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format",
        "FMT, 129, 23, PARM, Nf, Name,Value",
        "FMT, 3, 14, CURR, IhIhh, TimeMS,ThrOut,ThrInt,Volt,Curr",
        "FMT, 4, 9, MODE, Mh, Mode,ThrCrs",
        "FMT, 1, 21, ATT, IccccCC, TimeMS,DesRoll,Roll,DesPitch,Pitch,DesYaw,Yaw",
        "PARM, SYSID_SW_MREV, 120.000000",
        "MODE, STABILIZE, 500",
        *(f"ATT, {1000 + 100 * n}, 0.{n:02d}, -{n}.50, 0.00, 1.00, 0.00, 359.99" for n in range(5)),
        "MODE, AltHold, 500",
        "CURR, 2000, 500, 12345, 1190, 1500",
    ]
    return "".join(line + "\n" for line in lines).encode()
