"""Plain writer and reader of CDR of both versions, from OMG "Extensible and Dynamic Topic Types for DDS" 1.3, 7.4.

A type is ``Type(extensibility, members)``; a member has a name, an id, what it is, and whether it is optional. What it
is: a format character of ``struct``, ``text``, ``wide``, ``enum``, a Type, or ``[item]`` and ``[item, count]``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

BEGINS = {"final": (0, 6), "appendable": (0, 8), "mutable": (2, 10)}


@dataclass(frozen=True)
class Member:
    name: str
    id: int
    what: Any
    optional: bool = False


@dataclass(frozen=True)
class Type:
    extensibility: str
    members: tuple[Member, ...]


class Bad(Exception):
    """Bytes that are no message of the type."""


def primitive(what: Any) -> bool:
    return isinstance(what, str) and len(what) == 1


def default(what: Any) -> Any:
    if isinstance(what, Type):
        return {m.name: None if m.optional else default(m.what) for m in what.members}
    if isinstance(what, list):
        values = [default(what[0])] * (what[1] if len(what) > 1 else 0)
        return b"" if what == ["B"] else values
    return {"text": "", "wide": "", "?": False, "f": 0.0, "d": 0.0}.get(what, 0)


class Writer:
    def __init__(self, version: int, big: bool, unit: int = 2, octets: bool = True) -> None:
        self.version, self.mark, self.most = version, ">" if big else "<", 8 if version == 1 else 4
        self.unit, self.octets = unit, octets
        self.out, self.base = bytearray(), 0

    def align(self, width: int) -> None:
        while (len(self.out) - self.base) % min(width, self.most):
            self.out.append(0)

    def number(self, form: str, value: Any) -> None:
        self.align(struct.calcsize(self.mark + form))
        self.out += struct.pack(self.mark + form, value)

    def sized(self) -> int:
        self.number("I", 0)
        return len(self.out)

    def close(self, at: int) -> None:
        struct.pack_into(self.mark + "I", self.out, at - 4, len(self.out) - at)

    def value(self, what: Any, value: Any) -> None:
        if isinstance(what, Type):
            self.type(what, value)
        elif isinstance(what, list):
            at = self.sized() if self.version == 2 and not primitive(what[0]) else None
            if len(what) == 1:
                self.number("I", len(value))
            for item in value:
                self.value(what[0], item)
            if at is not None:
                self.close(at)
        elif what == "text":
            data = value.encode() + b"\0"
            self.number("I", len(data))
            self.out += data
        elif what == "wide":
            units = value.encode("utf-16-le")
            words = struct.unpack(f"<{len(units) // 2}H", units)
            self.number("I", len(units) if self.octets else len(words))
            for word in words:
                self.number("I" if self.unit == 4 else "H", word)
        else:
            self.number("I" if what == "enum" else what, value)

    def type(self, kind: Type, values: dict[str, Any]) -> None:
        if kind.extensibility == "mutable":
            self.mutable(kind, values)
            return
        at = self.sized() if self.version == 2 and kind.extensibility == "appendable" else None
        for m in kind.members:
            if not m.optional:
                self.value(m.what, values[m.name])
            elif self.version == 2:
                self.out.append(values[m.name] is not None)
                if values[m.name] is not None:
                    self.value(m.what, values[m.name])
            else:
                self.parameter(m, values[m.name], absent=values[m.name] is None)
        if at is not None:
            self.close(at)

    def parameter(self, m: Member, value: Any, absent: bool = False) -> None:
        self.align(4)
        # Both forms of the header are written.
        if m.id < 0x3F00 and m.id % 2:
            self.out += struct.pack(self.mark + "HH", m.id | 0x4000 * (m.id % 4 == 1), 0)
            size = len(self.out) - 2, "H"
        else:
            self.out += struct.pack(self.mark + "HHII", 0x3F01, 8, m.id, 0)
            size = len(self.out) - 4, "I"
        begin = len(self.out)
        outer, self.base = self.base, begin
        if not absent:
            self.value(m.what, value)
        self.base = outer
        struct.pack_into(self.mark + size[1], self.out, size[0], len(self.out) - begin)

    def mutable(self, kind: Type, values: dict[str, Any]) -> None:
        at = self.sized() if self.version == 2 else None
        # Any order is allowed.
        for m in sorted(kind.members, key=lambda m: m.id):
            value = values[m.name]
            if value is None:
                continue
            if at is None:
                self.parameter(m, value)
                continue
            self.align(4)
            width = (
                struct.calcsize("<" + ("I" if m.what == "enum" else m.what))
                if m.what == "enum" or primitive(m.what)
                else 0
            )
            if width:
                self.out += struct.pack(self.mark + "I", (width.bit_length() - 1) << 28 | m.id)
                self.value(m.what, value)
            elif m.what == "text":
                # The count of the text is the size of the member.
                self.out += struct.pack(self.mark + "I", 5 << 28 | m.id)
                self.value(m.what, value)
            elif m.what in (["d"], ["q"]) or m.what in (["I"], ["f"]):
                self.out += struct.pack(self.mark + "I", (7 if m.what[0] in "dq" else 6) << 28 | m.id)
                self.value(m.what, value)
            else:
                self.out += struct.pack(self.mark + "II", 1 << 31 | 4 << 28 | m.id, 0)
                begin = len(self.out)
                self.value(m.what, value)
                self.close(begin)
        if at is not None:
            self.close(at)
        else:
            self.align(4)
            self.out += struct.pack(self.mark + "HH", 0x3F02 | 0x4000, 0)


def write(
    kind: Type, values: dict[str, Any], version: int, big: bool, unit: int = 2, octets: bool = True
) -> bytes:
    w = Writer(version, big, unit, octets)
    w.type(kind, values)
    return bytes([0, BEGINS[kind.extensibility][version - 1] + (not big), 0, 0]) + bytes(w.out)


class Reader:
    def __init__(self, data: bytes, version: int, big: bool) -> None:
        self.data, self.version, self.mark = data, version, ">" if big else "<"
        self.most, self.at, self.stop, self.base = 8 if version == 1 else 4, 0, len(data), 0

    def align(self, width: int) -> None:
        self.at += -(self.at - self.base) % min(width, self.most)

    def take(self, n: int) -> bytes:
        if self.at + n > self.stop:
            raise Bad
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str) -> Any:
        self.align(struct.calcsize(self.mark + form))
        (value,) = struct.unpack(self.mark + form, self.take(struct.calcsize(self.mark + form)))
        return value

    def block(self) -> tuple[int, int]:
        """Read a size; return where the bytes end that were read so far, and where its bytes end."""
        size = self.number("I")
        if self.at + size > self.stop:
            raise Bad
        outer, self.stop = self.stop, self.at + size
        return outer, self.stop

    def value(self, what: Any) -> Any:
        if isinstance(what, Type):
            return self.type(what)
        if isinstance(what, list):
            ends = self.block() if self.version == 2 and not primitive(what[0]) else None
            count = what[1] if len(what) > 1 else self.number("I")
            if count > self.stop - self.at:
                raise Bad
            values: Any = [self.value(what[0]) for _ in range(count)]
            if ends is not None:
                self.leave(ends)
            return bytes(values) if what == ["B"] else values
        if what == "text":
            size = self.number("I")
            return self.take(size)[: max(0, size - 1)].decode("utf-8", "replace")
        if what == "?":
            return self.number("B") != 0
        return self.number("I" if what == "enum" else what)

    def leave(self, ends: tuple[int, int]) -> None:
        if self.at > ends[1]:
            raise Bad
        self.stop, self.at = ends

    def type(self, kind: Type) -> dict[str, Any]:
        if kind.extensibility == "mutable":
            return self.mutable(kind)
        ends = self.block() if self.version == 2 and kind.extensibility == "appendable" else None
        values = dict[str, Any]()
        for m in kind.members:
            if ends is not None and self.at >= self.stop:
                values[m.name] = None if m.optional else default(m.what)
            elif not m.optional:
                values[m.name] = self.value(m.what)
            elif self.version == 2:
                flag = self.take(1)[0]
                if flag > 1:
                    raise Bad
                values[m.name] = self.value(m.what) if flag else None
            else:
                number, _, begin, end = self.header()
                if number != m.id:
                    raise Bad
                values[m.name] = self.inside(m.what, begin, end) if end > begin else None
                self.at = end
        if ends is not None:
            self.leave(ends)
        return values

    def header(self) -> tuple[int, bool, int, int]:
        """Return id, whether it must be understood, begin and end of a parameter; id -2: the end of the list."""
        self.at += -(self.at - self.base) % 4
        if self.version == 1:
            head, size = struct.unpack(self.mark + "HH", self.take(4))
            number, must = head & 0x3FFF, head & 0x4000 != 0
            if number == 0x3F02:
                return -2, False, self.at, self.at
            if number == 0x3F03:
                number, must = -1, False
            if number == 0x3F01:
                head, size = struct.unpack(self.mark + "II", self.take(8))
                number, must = head & 0x0FFFFFFF, head >> 30 & 1 == 1
        else:
            (head,) = struct.unpack(self.mark + "I", self.take(4))
            number, must, form = head & 0x0FFFFFFF, head >> 31 == 1, head >> 28 & 7
            size = 1 << form
            if form > 3:
                (size,) = struct.unpack(self.mark + "I", self.take(4))
                if form > 4:
                    size = 4 + size * {5: 1, 6: 4, 7: 8}[form]
                    self.at -= 4
        if self.at + size > self.stop:
            raise Bad
        return number, must, self.at, self.at + size

    def inside(self, what: Any, begin: int, end: int) -> Any:
        kept = self.at, self.stop, self.base
        self.at, self.stop = begin, end
        if self.version == 1:
            self.base = begin
        value = self.value(what)
        if self.at > end:
            raise Bad
        self.at, self.stop, self.base = kept
        return value

    def mutable(self, kind: Type) -> dict[str, Any]:
        ends = self.block() if self.version == 2 else None
        places: list[tuple[int, int, int]] = []
        known = {m.id for m in kind.members}
        while True:
            if ends is not None and self.stop - (self.at + -(self.at - self.base) % 4) < 4:
                break
            number, must, begin, end = self.header()
            if number == -2:
                break
            if must and number not in known:
                raise Bad
            places.append((number, begin, end))
            self.at = end
        after, cursor, values = self.at, 0, dict[str, Any]()
        for m in kind.members:
            # Of several parameters with one id, that behind the member before counts.
            order = [*range(cursor, len(places)), *range(cursor)]
            at = next((n for n in order if places[n][0] == m.id), None)
            if at is None:
                values[m.name] = None if m.optional else default(m.what)
                continue
            values[m.name], cursor = self.inside(m.what, *places[at][1:]), at + 1
        self.at = after
        if ends is not None:
            self.stop, self.at = ends
        return values


def read(kind: Type, data: bytes) -> tuple[dict[str, Any], int]:
    """Return the values of a message, and the bytes behind it; raise Bad if it is none."""
    if len(data) < 4 or data[0] or data[1] not in (0, 1, 2, 3, 6, 7, 8, 9, 10, 11):
        raise Bad
    begin = data[1] & ~1
    stated = {0: "final", 2: "mutable", 6: "final", 8: "appendable", 10: "mutable"}[begin]
    reader = Reader(data[4:], 1 if begin < 6 else 2, data[1] % 2 == 0)
    values = reader.type(Type(stated, kind.members))
    if reader.at > len(data) - 4:
        raise Bad
    return values, len(data) - 4 - reader.at
