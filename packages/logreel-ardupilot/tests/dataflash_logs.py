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
    "ARM": (146, "QBIBB", "TimeUS,ArmState,ArmChecks,Forced,Method", "s----", "F----"),
    "STAT": (147, "QBfBB", "TimeUS,isFlying,isFlyProb,Armed,Safety", "s----", "F----"),
    "BAT": (148, "QBfffffcfB", "TimeUS,Inst,Volt,VoltR,Curr,CurrTot,EnrgTot,Temp,Res,RemPct",
            "s---------", "F---------"),
    "VIBE": (149, "QBfffI", "TimeUS,IMU,VibeX,VibeY,VibeZ,Clip", "s-ooo-", "F-000-"),
    "XKF4": (150, "QBcccccfffHBIHb", "TimeUS,C,SV,SP,SH,SM,SVT,errRP,OFN,OFE,FS,TS,SS,GPS,PI", "s--------------",
             "F--------------"),
    "POS": (151, "QLLfff", "TimeUS,Lat,Lng,Alt,RelHomeAlt,RelOriginAlt", "sDUmmm", "FGG000"),
    "PM": (152, "QHHIIH", "TimeUS,NLon,NLoop,MaxT,Mem,Load", "s-----", "F-----"),
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


def troubled() -> bytes:
    """Return a log of 40 s of a copter: armed from 5 s to 35 s, with one trouble after another in between."""
    log, at = Builder(), 1_000_000
    log.add("MSG", at, b"ArduCopter V4.5.1 (abcdef01)")
    log.add("PARM", at, b"BATT_LOW_VOLT", 14.0, 0.0)
    log.add("PARM", at, b"WPNAV_SPEED", 500.0, 500.0)
    log.add("MODE", at, 0, 0, 1)
    for n in range(400):
        now, second = at + 100_000 * n, n / 10
        if n == 50:
            log.add("ARM", now, 1, 0, 0, 1)
            log.add("MODE", now, 5, 5, 1)
        if n == 60:
            log.add("EV", now, 28)
        if n == 200:
            log.add("ERR", now, 5, 1)
            log.add("MODE", now, 6, 6, 3)
        if n == 220:
            log.add("ERR", now, 5, 0)
            log.add("ERR", now, 6, 1)
        if n == 240:
            log.add("ERR", now, 10, 16)
        if n == 320:
            log.add("EV", now, 18)
        if n == 350:
            log.add("ARM", now, 0, 0, 0, 1)
        # While disarmed, nothing of this counts.
        shake = 70.0 if 10 <= second < 12 or second >= 37 else 5.0
        log.add("VIBE", now, 0, shake, 2.0, 3.0, 7 + 3 * (second >= 11) + 9 * (second >= 37))
        log.add("VIBE", now, 1, 1.0, 2.0, 3.0, 0)
        ratio = 90 if 14 <= second < 16 else 120 if 17 <= second < 19 else 30
        log.add("XKF4", now, 0, ratio, 10, 20, 40, 0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 1 if second >= 18 else 0)
        if n % 10 == 0:
            log.add(
                "BAT", now, 0, 16.0 - second / 15, 0.0, 12.5, second * 20, 0.0, 20, 0.01, int(100 - second)
            )
            fix = 1 if 25 <= second < 27 else 3
            place = 473_977_420 + 1000 * n, 85_455_940, 48_812
            satellites = 4 if n == 290 else 12
            log.add("GPS", now, 0, fix, MS + n * 100, WEEK, satellites, 80, *place, 3.5, 90.0, 0.0, 0.0, 1)
            log.add("POS", now, 473_977_420 + 1000 * n, 85_455_940, 500.0, second / 2, 0.0)
            log.add("PM", now, 0, 400, 2600, 100_000, 950 if n == 100 else 300)
    log.add("PARM", at + 30_000_000, b"WPNAV_SPEED", 900.0, 500.0)
    return bytes(log.out)
