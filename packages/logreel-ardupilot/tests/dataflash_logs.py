"""Build DataFlash logs from the specification, without code of the package."""

from __future__ import annotations

import struct

TYPES = {"b": "b", "B": "B", "h": "h", "H": "H", "i": "i", "I": "I", "f": "f", "d": "d", "n": "4s", "N": "16s",
         "Z": "64s", "c": "h", "C": "H", "e": "i", "E": "I", "L": "i", "M": "B", "q": "q", "Q": "Q",
         "a": "32h"}  # fmt: skip
KINDS = {
    "FMT": (128, "BBnNZ", "Type,Length,Name,Format,Columns", "-b---", "-----"),
    "FMTU": (118, "QBNN", "TimeUS,FmtType,UnitIds,MultIds", "s---", "F---"),
    "UNIT": (177, "QbZ", "TimeUS,Id,Label", "s--", "F--"),
    "MULT": (178, "Qbd", "TimeUS,Id,Mult", "s--", "F--"),
    "MSG": (59, "QZ", "TimeUS,Message", "s-", "F-"),
    "PARM": (32, "QNff", "TimeUS,Name,Value,Default", "s---", "F---"),
    "ATT": (140, "QccccCCccB", "TimeUS,DesRoll,Roll,DesPitch,Pitch,DesYaw,Yaw,ErrRP,ErrYaw,AEKF",
            "sddddhhdh-", "FBBBBBBBB-"),
    "GPS": (141, "QBBIHBcLLeffffB", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt,Spd,GCrs,VZ,Yaw,U",
            "s#-s-S-DUmnhnh-", "F--C-0BGGB000--"),
    "MODE": (142, "QMBB", "TimeUS,Mode,ModeNum,Rsn", "s---", "F---"),
    "EV": (143, "QB", "TimeUS,Id", "s-", "F-"),
    "ERR": (144, "QBB", "TimeUS,Subsys,ECode", "s--", "F--"),
    "ISBD": (145, "QHHaaa", "TimeUS,N,seqno,x,y,z", "s--ooo", "F--???"),
    "FILE": (203, "NIBZ", "FileName,Offset,Length,Data", "----", "----"),
}  # fmt: skip
UNITS = {"-": "", "s": "s", "d": "deg", "h": "degheading", "D": "deglatitude", "U": "deglongitude", "m": "m",
         "n": "m/s", "S": "satellites", "b": "B", "#": "instance", "o": "m/s/s", "?": "UNKNOWN"}  # fmt: skip
MULTIPLIERS = {"-": 0.0, "F": 1e-6, "B": 1e-2, "C": 1e-3, "G": 1e-7, "0": 1.0, "?": 1.0}
#: 2023-11-14T22:13:20 UTC: week, and ms in it, of GPS.
WEEK, MS = 2288, 252_818_000


class Builder:
    """The bytes of a log, record by record."""

    def __init__(self, units: bool = True) -> None:
        self.out, self.defined, self.units = bytearray(), set[str](), units

    def define(self, name: str) -> None:
        """Write the definition of a message, with units, once."""
        if name in self.defined:
            return
        self.defined.add(name)
        kind, letters, columns, units, multipliers = KINDS[name]
        size = 3 + sum(struct.calcsize("<" + TYPES[letter]) for letter in letters)
        self.add("FMT", kind, size, name.encode(), letters.encode(), columns.encode())
        if self.units and name != "FMTU":
            self.add("FMTU", 0, kind, units.encode(), multipliers.encode())

    def add(self, name: str, *values: object) -> None:
        """Write a message, and first its definition."""
        if name != "FMT" or not self.defined:
            self.define(name)
        kind, letters = KINDS[name][:2]
        flat = []
        for value in values:
            flat += value if isinstance(value, list) else [value]
        self.out += b"\xa3\x95" + bytes([kind]) + struct.pack("<" + "".join(TYPES[c] for c in letters), *flat)


def flight(rounds: int = 12, units: bool = True) -> bytes:
    """Return a log of a copter."""
    log = Builder(units)
    at = 1_000_000
    log.add("MSG", at, b"ArduCopter V4.5.1 (abcdef01)")
    log.add("FILE", b"@SYS/uarts.txt", 0, 5, b"hello")
    log.add("FILE", b"@SYS/uarts.txt", 5, 5, b"world")
    if units:
        for letter, label in UNITS.items():
            log.add("UNIT", at, ord(letter), label.encode())
        for letter, factor in MULTIPLIERS.items():
            log.add("MULT", at, ord(letter), factor)
    for name, value in ((b"ARMING_CHECK", 1.0), (b"SYSID_THISMAV", 1.0)):
        log.add("PARM", at + 10, name, value, 0.0)
    log.add("MODE", at + 20, 0, 0, 1)
    log.add("EV", at + 30, 10)
    for n in range(rounds):
        now = at + 100_000 * (n + 1)
        log.add("ATT", now, n, 10 * n, -n, -10 * n, 9000, 100 * n, 1, 2, 3)
        log.add("ATT", now + 50_000, n, 11 * n, -n, -11 * n, 9000, 101 * n, 1, 2, 3)
        fix = 0, 3, MS + now // 1000, WEEK, 12, 80, 473_977_420 + n, 85_455_940 - n, 48_812 + n
        log.add("GPS", now + 7, *fix, 1.5, 90.0, -0.25, 0.0, 1)
        if n % 4 == 3:
            log.add("FILE", b"@SYS/tasks.txt", n, 3, bytes([n] * 3))
        if n % 6 == 1:
            log.add("ISBD", now + 9, n, n, *([n * k % 300 for k in range(32)] for _ in range(3)))
    log.add("MODE", at + 700_000, 6, 6, 1)
    log.add("PARM", at + 710_000, b"ARMING_CHECK", 0.0, 0.0)
    log.add("ERR", at + 720_000, 5, 1)
    log.add("ERR", at + 730_000, 5, 0)
    return bytes(log.out)
