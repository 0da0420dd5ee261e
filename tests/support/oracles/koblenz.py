"""Plain reader of Koblenz logs, message by message: the reference for the fast reader.

Its rules for damage are those of docs/formats/koblenz.md, section "When bytes are wrong".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection
from dataclasses import dataclass, field

HEAD = 21
GREATEST = 64 << 20
#: Described version of each type.
TYPES = {81987: 100, 84530: 100, 68041: 100, 123714: 100, 201003: 100, 198928: 101}
FIXED = {81987: 28, 84530: 80, 123714: 28}
#: Least payload sizes of the other types.
LEAST = {68041: 20, 201003: 4, 198928: 12}
READINGS = {"A": (17, 4), "B": (21, 0), "C": (0, 21)}


@dataclass
class Row:
    """A message: its offset and the values of its header."""

    at: int
    size: int
    mark: int
    type: int
    version: int
    ms: float
    end: int


@dataclass
class Found:
    """Content that the reader found; *lost*: intervals of bytes."""

    reading: str
    first: int
    mark: int = 0x49
    rows: list[Row] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None


class Oracle:
    def __init__(self, data: bytes, reading: str, mark: int = 0x49, named: Collection[int] = ()) -> None:
        self.data, self.reading, self.mark, self.named = data, reading, mark, named
        self.base, self.add = READINGS[reading]
        #: Types and versions found that are not described, and those of them with additional fields.
        self.met: set[tuple[int, int]] = set()
        self.own: set[tuple[int, int]] = set()

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
        """Return True at the end of the file or of the log."""
        return at <= len(self.data) and (len(self.data) - at < 4 or self.data[at : at + 4] == b"\xff" * 4)

    def believed(self, row: Row) -> bool:
        return row.type in TYPES and 0 <= row.version - TYPES[row.type] <= 10

    def described(self, row: Row) -> bool:
        return TYPES.get(row.type) == row.version

    def content(self, row: Row) -> int:
        """Return the end of the content by its own counts, -1 if it is after the message."""
        key = (row.type, row.version)
        if row.type not in TYPES or row.version < TYPES[row.type] or key in self.own:
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
            # The content of other versions is not described.
            need = 4 + 1206 * number(0) if self.described(row) else len(body)
        else:
            one = number(0)
            two = number(4 + one)
            need = 12 + one + two + 4 * number(8 + one + two)
        if need > len(body):
            return -1
        return row.at + HEAD + need if self.described(row) else row.end

    def leads_on(self, at: int, need: int) -> bool:
        """Return True if *need* headers follow each other, if one of them has a known type, or up to the end."""
        if self.over(at):
            return True
        row = self.head(at)
        if row is None:
            return at < len(self.data)
        if not self.plausible(row):
            return False
        if self.believed(row):
            return self.content(row) >= 0 if row.end <= len(self.data) else row.mark == self.mark
        if row.mark != self.mark:
            return False
        if need == 1 or row.end > len(self.data):
            return True
        return self.leads_on(row.end, need - 1) or self.blank(row.end)

    def sound(self, row: Row) -> bool:
        if not self.plausible(row) or row.mark != self.mark or row.end > len(self.data):
            return False
        if self.believed(row):
            return self.content(row) == row.end and (self.leads_on(row.end, 2) or self.blank(row.end))
        if (row.type, row.version) in self.met:
            return self.leads_on(row.end, 1)
        return self.leads_on(row.end, 1 if row.at in self.named else 2)

    def search(self, at: int, last: int) -> int:
        while at <= last:
            # Only for speed: every valid message has the mark at its fifth byte.
            at = self.data.find(bytes([self.mark]), at + 4) - 4
            if not 0 <= at <= last:
                return -1
            row = self.head(at)
            if row is not None and self.sound(row):
                return at
            at += 1
        return -1

    def blank(self, at: int) -> bool:
        return not any(self.data[at : at + HEAD])

    def invalid(self, row: Row) -> bool:
        """Return True for a message that is valid except for its mark."""
        seen = self.believed(row) or (row.type, row.version) in self.met
        good = seen and self.plausible(row) and row.mark != self.mark
        return good and self.leads_on(row.end, 1) and self.content(row) >= 0

    def longer(self, row: Row) -> bool:
        content = self.content(row)
        good = self.plausible(row) and 0 <= content < row.end
        return good and self.leads_on(row.end, 1) and not self.leads_on(content, 1)

    def run(self, first: int) -> Found:
        """Read from *first* on; read again if versions far from the described one have additional fields."""
        while True:
            before = len(self.own)
            self.met.clear()
            found = self.once(first)
            if len(self.own) == before:
                return found

    def once(self, first: int) -> Found:
        found = Found(self.reading, first, self.mark)
        at, last, size = first, None, len(self.data)
        while at < size:
            row = self.head(at)
            if not self.over(at) and row is not None and self.accepts(row):
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

    def accepts(self, row: Row) -> bool:
        if row.mark != self.mark or row.end > len(self.data) or not self.base <= row.size <= GREATEST:
            return False
        if self.believed(row):
            content = self.content(row)
            if self.described(row) and content != row.end:
                return self.longer(row)
            return content >= 0
        key = (row.type, row.version)
        if key not in self.met:
            follows = self.leads_on(row.end, 1) or self.blank(row.end)
            if not self.plausible(row) or not follows or len(self.met) == 256:
                return False
            self.met.add(key)
        if self.content(row) < 0:
            self.own.add(key)
        return True


def begins(o: Oracle, at: int) -> int:
    """Return how well up to three messages follow each other under a size reading; 0: they do not.

    Two points for each, and one if the file ends with the last one or inside the next header or message.
    """
    for count in range(3):
        left = len(o.data) - at
        if o.over(at):
            return 2 * count + (left == 0 or left >= 4) if count else 0
        row = o.head(at)
        if row is None:
            return 2 * count + (count > 0 and left > 4 and o.data[at + 4] == o.mark)
        if row.mark != o.mark or not o.plausible(row):
            return 0
        if row.end > len(o.data):
            return 2 * count + (count > 0)
        if o.believed(row) and o.content(row) != row.end:
            return 0
        at = row.end
    return 6


def usual_here(o: Oracle, at: int) -> bool:
    """Return True if no mark is more frequent than that of *o* in the chain from *at* on."""
    marks = []
    while len(marks) < 1024 and (row := o.head(at)) is not None and o.plausible(row):
        marks.append(row.mark)
        at = row.end
    return all(marks.count(o.mark) >= marks.count(other) for other in set(marks))


def walk(data: bytes) -> Found:
    """Read a file that begins with a file header."""
    count = struct.unpack_from("<I", data, 8)[0]
    if count > (len(data) - 12) // 8:
        count = 0
    begin = 12 + 8 * count
    entries = sorted({e for e in struct.unpack_from(f"<{count}q", data, 12) if 12 <= e < len(data)})
    readers = {mark: [Oracle(data, name, mark, entries) for name in READINGS] for mark in (0x49, 0x31, 1)}
    for mark, some in readers.items():
        for first in (begin, *entries[:64]):
            best = max(some, key=lambda o: begins(o, first))
            if begins(best, first) and (mark == 0x49 or usual_here(best, first)):
                sound = best.search(begin, first - 1)
                return beginning(best, begin, sound if sound >= 0 else first)
    for some in readers.values():
        hits = [(o.search(begin, len(data)), o.reading) for o in some]
        hits = [hit for hit in hits if hit[0] >= 0]
        if hits:
            first, name = min(hits)
            return beginning(next(o for o in some if o.reading == name), begin, first)
    return beginning(readers[0x49][0], begin, begin)


def beginning(reader: Oracle, begin: int, first: int) -> Found:
    data, found = reader.data, reader.run(first)
    if first > begin and any(data[begin:first]):
        found.lost.insert(0, (begin, first))
    return found
