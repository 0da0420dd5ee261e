"""A plain reader of Koblenz logs, message by message, from the facts alone: it judges the fast one.

Its rules for damage are those of docs/formats/koblenz.md, section "When bytes are wrong".
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

HEAD = 21
GREATEST = 64 << 20
#: Version described, and how the payload's length follows from its bytes.
TYPES = {81987: 100, 84530: 100, 68041: 100, 123714: 100, 201003: 100, 198928: 101}
FIXED = {81987: 28, 84530: 80, 123714: 28}
#: Shortest payloads of the others.
LEAST = {68041: 20, 201003: 4, 198928: 12}
READINGS = {"A": (17, 4), "B": (21, 0), "C": (0, 21)}


@dataclass
class Row:
    """A message: its place and the numbers of its header."""

    at: int
    size: int
    mark: int
    type: int
    version: int
    ms: float
    end: int


@dataclass
class Found:
    """What the reader found; *lost* are ranges of bytes."""

    reading: str
    first: int
    rows: list[Row] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None


class Oracle:
    def __init__(self, data: bytes, reading: str) -> None:
        self.data, self.reading = data, reading
        self.base, self.add = READINGS[reading]

    def head(self, at: int) -> Row | None:
        if not 0 <= at <= len(self.data) - HEAD:
            return None
        size, mark, kind, version, ms = struct.unpack_from("<IBiid", self.data, at)
        return Row(at, size, mark, kind, version, ms, at + size + self.add)

    def plausible(self, row: Row) -> bool:
        return (
            self.base <= row.size <= GREATEST
            and 0 < row.type < 1 << 24
            and 0 <= row.version < 1 << 16
            and math.isfinite(row.ms)
            and abs(row.ms) < 1e15
        )

    def over(self, at: int) -> bool:
        """True at the end of the file or of the log."""
        return at <= len(self.data) and (len(self.data) - at < 4 or self.data[at : at + 4] == b"\xff" * 4)

    def believed(self, row: Row) -> bool:
        return row.type in TYPES and 0 <= row.version - TYPES[row.type] <= 10

    def described(self, row: Row) -> bool:
        return TYPES.get(row.type) == row.version

    def content(self, row: Row) -> int:
        """Where the content ends by its own counts, -1 if behind the message."""
        if row.type not in TYPES or row.version < TYPES[row.type]:
            return row.end
        body = self.data[row.at + HEAD : row.end]

        def number(at: int) -> int:
            return struct.unpack_from("<I", body, at)[0] if 0 <= at <= len(body) - 4 else 1 << 40

        if row.type in FIXED:
            need = FIXED[row.type]
        elif row.type == 68041:
            need = 20 + number(16)
            if self.described(row) and number(4) in (0, 1 << 40):
                need = max(8, len(body))
        elif row.type == 201003:
            # Of another version nothing is known but that there are bytes.
            need = 4 + 1206 * number(0) if self.described(row) else len(body)
        else:
            one = number(0)
            two = number(4 + one)
            need = 12 + one + two + 4 * number(8 + one + two)
        if need > len(body):
            return -1
        return row.at + HEAD + need if self.described(row) else row.end

    def leads_on(self, at: int, far: int = 8) -> bool:
        if self.over(at):
            return True
        row = self.head(at)
        if row is None:
            return at < len(self.data)
        if far == 0 or not self.plausible(row):
            return False
        if self.believed(row):
            return self.content(row) >= 0 if row.end <= len(self.data) else row.mark == 0x49
        return row.mark == 0x49 and row.end <= len(self.data) and self.leads_on(row.end, far - 1)

    def sound(self, row: Row) -> bool:
        good = self.believed(row) and self.plausible(row) and row.mark == 0x49
        return good and row.end <= len(self.data) and self.content(row) == row.end

    def search(self, at: int, last: int) -> int:
        # Only to be quick: every sound message has one of these at its fifth byte.
        starts = [b"\x49" + struct.pack("<i", kind) for kind in TYPES]
        while at <= last:
            hits = [p - 4 for s in starts if (p := self.data.find(s, at + 4)) >= 0]
            at = min(hits, default=last + 1)
            row = self.head(at) if at <= last else None
            if row is not None and self.sound(row) and (self.leads_on(row.end) or self.blank(row.end)):
                return at
            at += 1
        return -1

    def blank(self, at: int) -> bool:
        return not any(self.data[at : at + HEAD])

    def invalid(self, row: Row) -> bool:
        """True for a message that only its mark makes none."""
        good = self.believed(row) and self.plausible(row) and row.mark != 0x49
        return good and self.leads_on(row.end) and self.content(row) >= 0

    def longer(self, row: Row) -> bool:
        content = self.content(row)
        good = self.plausible(row) and 0 <= content < row.end
        return good and self.leads_on(row.end) and not self.leads_on(content)

    def run(self, first: int) -> Found:
        found = Found(self.reading, first)
        unknown: set[tuple[int, int]] = set()
        at, last, size = first, None, len(self.data)
        while at < size:
            row = self.head(at)
            if not self.over(at) and row is not None and self.accepts(row, unknown):
                found.rows.append(row)
                last, at = row, row.end
                continue
            if self.over(at):
                if size - at < 4:
                    found.lost.append((at, size))
                else:
                    found.end = at
                break
            if row is not None and self.invalid(row):
                found.lost.append((at, row.end))
                at = row.end
                continue
            nxt = -1
            if (
                last is not None
                and last.end == at
                and not (self.described(last) and self.content(last) == at)
            ):
                nxt = self.search(last.at + 1, at - 1)
                if nxt >= 0:
                    found.rows.pop()
                    at = last.at
            if nxt < 0:
                nxt = self.search(at + 1, size)
            last = None
            found.lost.append((at, nxt if nxt >= 0 else size))
            at = nxt if nxt >= 0 else size
        return found

    def accepts(self, row: Row, unknown: set[tuple[int, int]]) -> bool:
        if row.mark != 0x49 or row.end > len(self.data) or not self.base <= row.size <= GREATEST:
            return False
        if self.believed(row):
            content = self.content(row)
            if self.described(row) and content != row.end:
                return self.longer(row)
            return content >= 0
        if self.content(row) < 0:
            return False
        key = (row.type, row.version)
        if key not in unknown:
            if not self.plausible(row) or not self.leads_on(row.end) or len(unknown) == 256:
                return False
            unknown.add(key)
        return True


def begins(o: Oracle, at: int) -> bool:
    """True if three messages in a row, or all that there are, are sound under a reading."""
    known = 0
    for count in range(3):
        if o.over(at):
            return count > 0
        row = o.head(at)
        if row is None:
            return known > 0
        if row.mark != 0x49 or not o.plausible(row):
            return False
        if row.end > len(o.data):
            return known > 0
        if o.believed(row):
            if o.content(row) != row.end:
                return False
            known += 1
        at = row.end
    return True


def walk(data: bytes) -> Found:
    """Everything in a file that begins with a header."""
    count = struct.unpack_from("<I", data, 8)[0]
    if count > (len(data) - 12) // 8:
        count = 0
    begin = 12 + 8 * count
    entries = sorted({e for e in struct.unpack_from(f"<{count}q", data, 12) if 12 <= e < len(data)})
    for first in (begin, *entries[:64]):
        for name in READINGS:
            if begins(Oracle(data, name), first):
                sound = Oracle(data, name).search(begin, first - 1)
                return beginning(data, name, begin, sound if sound >= 0 else first)
    hits = [(Oracle(data, name).search(begin, len(data)), name) for name in READINGS]
    hits = [hit for hit in hits if hit[0] >= 0]
    first, name = min(hits) if hits else (begin, "A")
    return beginning(data, name, begin, first)


def beginning(data: bytes, name: str, begin: int, first: int) -> Found:
    found = Oracle(data, name).run(first)
    if first > begin and any(data[begin:first]):
        found.lost.insert(0, (begin, first))
    return found
