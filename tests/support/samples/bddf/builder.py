"""Builder of BDDF files, valid and invalid ones, byte by byte. Shares no code with the reader."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Self

T0 = 1_700_000_000 * 10**9
#: Number and ``struct`` format of each POD type.
PODS = {
    "int8": (1, "b"),
    "int16": (2, "h"),
    "int32": (3, "i"),
    "int64": (4, "q"),
    "uint8": (5, "B"),
    "uint16": (6, "H"),
    "uint32": (7, "I"),
    "uint64": (8, "Q"),
    "float32": (9, "f"),
    "float64": (10, "d"),
}


def number(value: int) -> bytes:
    """Return a varint; negative numbers as 64 bits."""
    value %= 1 << 64
    out = b""
    while value > 127:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def num(field: int, value: int) -> bytes:
    """Return a varint field; nothing for 0, as in files of the vendor."""
    return number(field * 8) + number(value) if value else b""


def raw(field: int, value: bytes | str) -> bytes:
    """Return a field with bytes or text."""
    value = value.encode() if isinstance(value, str) else value
    return number(field * 8 + 2) + number(len(value)) + value


def stamp(ns: int) -> bytes:
    """Return a Timestamp: seconds, and nanoseconds that are never negative."""
    seconds, nanos = divmod(ns, 10**9)
    return num(1, seconds) + num(2, nanos)


def mapping(field: int, values: Mapping[str, str | int]) -> bytes:
    """Return a map: one field per pair."""
    return b"".join(
        raw(field, raw(1, key) + (num(2, value) if isinstance(value, int) else raw(2, value)))
        for key, value in values.items()
    )


def hash_of(kind: str, spec: Mapping[str, str]) -> int:
    """Return the hash of the identifier of a series."""
    text = kind + "".join(key + spec[key] for key in sorted(spec))
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[:8], "big")


def block(kind: int, body: bytes) -> bytes:
    """Return a block that is not a data block."""
    return struct.pack("<Q", kind << 56 | len(body)) + body


def data_block(series: int, ns: int, payload: bytes, numbers: Sequence[int] = ()) -> bytes:
    """Return a data block."""
    head = num(1, series) + raw(2, stamp(ns))
    if numbers:
        head += raw(3, b"".join(map(number, numbers)))
    return struct.pack("<QI", len(head) + len(payload), len(head)) + head + payload


class Builder:
    """Builds a file block by block; ``bytes`` returns the closed file, ``killed`` the unfinished one."""

    def __init__(self, annotations: Mapping[str, str] | None = None, checksum: int = 2) -> None:
        self._checksum = checksum
        self.out = bytearray(b"BDDF")
        body = raw(1, num(1, 1)) + mapping(2, annotations or {}) + num(3, checksum) + num(4, 20)
        self.out += block(1, raw(1, body))
        self._names: list[bytes] = []
        self._hashes: list[int] = []
        self._declared: list[int] = []
        self._entries: list[bytearray] = []
        self._totals: list[int] = []

    def series(
        self,
        spec: Mapping[str, str],
        content: bytes,
        *,
        kind: str = "bosdyn:channel",
        annotations: Mapping[str, str] | None = None,
        names: Sequence[str] = (),
        description: str = "",
    ) -> int:
        """Declare a series with the type field *content*; return its number."""
        index, name, hash_ = len(self._names), raw(1, kind) + mapping(2, spec), hash_of(kind, spec)
        self._names.append(name)
        self._hashes.append(hash_)
        self._declared.append(len(self.out))
        self._entries.append(bytearray())
        self._totals.append(0)
        body = num(1, index) + raw(2, name) + num(3, hash_) + content + mapping(7, annotations or {})
        body += b"".join(raw(8, one) for one in names) + (raw(9, description) if description else b"")
        self.out += block(1, raw(2, body))
        return index

    def messages(
        self,
        channel: str,
        content_type: str = "application/protobuf",
        name: str = "",
        metadata: bool = False,
        names: Sequence[str] = (),
    ) -> int:
        """Declare a series of messages; return its number."""
        kind = raw(1, content_type) + raw(2, name or channel) + num(3, metadata)
        return self.series({"bosdyn:channel": channel}, raw(4, kind), names=names)

    def pods(
        self,
        spec: Mapping[str, str],
        kind: str,
        dimension: Sequence[int] = (),
        units: str = "",
        names: Sequence[str] = (),
    ) -> int:
        """Declare a series of plain values; return its number."""
        content = num(1, PODS[kind][0])
        content += raw(2, b"".join(map(number, dimension))) if dimension else b""
        notes = {"units": units} if units else {}
        return self.series(spec, raw(5, content), kind="bosdyn:logtick", annotations=notes, names=names)

    def struct(self, spec: Mapping[str, str], members: Mapping[str, int]) -> int:
        """Declare a struct series of *members*, series numbers by name; return its number."""
        by_hash = {name: self._hashes[index] for name, index in members.items()}
        return self.series(spec, raw(6, mapping(1, by_hash)), kind="bosdyn:logtick-struct")

    def data(self, series: int, ns: int, payload: bytes, numbers: Sequence[int] = ()) -> Self:
        """Add a data block."""
        entry = raw(1, stamp(ns)) + num(2, len(self.out))
        if numbers:
            entry += raw(3, b"".join(map(number, numbers)))
        self._entries[series] += raw(3, entry)
        self._totals[series] += len(payload)
        self.out += data_block(series, ns, payload, numbers)
        return self

    def values(self, series: int, ns: int, kind: str, values: Sequence[float]) -> Self:
        """Add a data block of plain values."""
        return self.data(series, ns, struct.pack(f"<{len(values)}{PODS[kind][1]}", *values))

    def killed(self) -> bytes:
        """Return the file as it is when its writer is killed."""
        return bytes(self.out)

    def bytes(self, index: bool = True) -> bytes:
        """Return the closed file, with checksum and end block; *index*: also with index."""
        out = bytearray(self.out)
        places, at = [], 0
        if index:
            for i, entries in enumerate(self._entries):
                places.append(len(out))
                body = num(1, i) + num(2, self._declared[i]) + entries + num(4, self._totals[i])
                out += block(1, raw(3, body))
            at = len(out)
            body = b"".join(raw(1, name) for name in self._names)
            if places:
                body += raw(2, b"".join(map(number, places))) + raw(3, b"".join(map(number, self._hashes)))
            out += block(1, raw(4, body) if places else b"")
        out += struct.pack("<QQ", 2 << 56 | 24, at)
        digest = hashlib.sha1(out).digest() if self._checksum == 2 else bytes(20)
        return bytes(out + digest + b"FDDB")


# ------------------------------------------------------------------------------------------- sample log


def text_message(text: str, ns: int, level: int, source: str) -> bytes:
    """Return a ``bosdyn.api.TextMessage``."""
    return raw(1, text) + raw(2, stamp(ns)) + raw(3, source) + num(4, level)


def comment(text: str, ns: int) -> bytes:
    """Return a ``bosdyn.api.OperatorComment``."""
    return raw(1, text) + raw(2, stamp(ns))


def event(kind: str, text: str, start: int, end: int) -> bytes:
    """Return a ``bosdyn.api.Event``."""
    return raw(1, kind) + raw(2, text) + raw(3, "patrol") + raw(5, stamp(start)) + raw(6, stamp(end))


def schema(name: str, variables: Mapping[str, str]) -> bytes:
    """Return a ``bosdyn.api.SignalSchema``; the first variable is the time."""
    parts = [
        raw(1, raw(1, variable) + num(2, PODS[kind][0]) + num(3, i == 0))
        for i, (variable, kind) in enumerate(variables.items())
    ]
    return b"".join(parts) + raw(2, name)


def tick(sequence: int, ns: int, data: bytes) -> bytes:
    """Return a ``bosdyn.api.SignalTick`` with packed values."""
    return num(1, sequence) + raw(2, stamp(ns)) + raw(3, "patrol") + num(4, 1) + num(5, 1) + raw(6, data)


@functools.lru_cache(16)
def walk(seconds: float = 20.0) -> bytes:
    """Return the sample log, a short patrol: text, comments, events, signals, and plain values of several shapes."""
    out = Builder({"bosdyn:robot-serial-number": "spot-sample-0001", "logreel:note": "made, not recorded"})
    speed = out.pods({"client": "patrol", "schema": "body", "varname": "speed"}, "float32", units="m/s")
    place = out.pods({"client": "patrol", "schema": "body", "varname": "position"}, "float64", [3], "m")
    height = out.pods({"client": "patrol", "schema": "body", "varname": "height"}, "float64", units="m")
    charge = out.pods({"client": "patrol", "schema": "body", "varname": "charge"}, "float64", units="%")
    out.struct({"schema": "body"}, {"height": height, "charge": charge})
    lines = out.messages("bosdyn.api.TextMessage")
    notes = out.messages("bosdyn.api.OperatorComment")
    events = out.messages("bosdyn.api.Event")
    shapes = out.messages("bosdyn.api.SignalSchema", metadata=True)
    ticks = out.messages("bosdyn.api.SignalTick", names=["sequence"])
    mission = out.messages("mission", "application/json", "mission.State")
    out.data(
        shapes,
        T0,
        schema("motor", {"time": "int64", "torque": "float32", "temperature": "int8", "on": "uint8"}),
    )
    out.data(notes, T0, comment("start of the patrol", T0))
    steps = round(seconds * 10)
    for i in range(steps):
        now = T0 + i * 10**8
        phase = i / 40
        if i % 10 == 0:
            # One block holds the samples of a second.
            fine = [phase + k / 400 for k in range(100)]
            out.values(speed, now, "float32", [0.8 + 0.4 * math.sin(7 * x) for x in fine])
            ring = [c for x in fine for c in (5 * math.cos(x), 5 * math.sin(x), 0.02 * x)]
            out.values(place, now, "float64", ring)
            out.values(height, now, "float64", [0.52 + 0.01 * math.sin(30 * x) for x in fine])
            out.values(charge, now, "float64", [80 - 0.01 * x for x in fine])
        data = struct.pack("<qfbB", now, 12 * math.sin(9 * phase), 40 + i % 5, i % 20 < 15)
        out.data(ticks, now, tick(i, now, data), [i])
        if i % 50 == 25:
            level = 1 + i // 50 % 4
            out.data(lines, now, text_message(f"leg {i % 4} slipped by {i % 7} mm", now, level, "locomotion"))
            out.data(events, now, event("stairs", f"flight {i // 50 + 1}", now - 3 * 10**9, now))
        if i % 25 == 0:
            state = {"waypoint": i // 25, "battery": round(80 - 0.01 * phase, 3)}
            out.data(mission, now, json.dumps(state).encode())
    out.data(notes, T0 + steps * 10**8, comment("back at the dock", T0 + steps * 10**8))
    return out.bytes()
