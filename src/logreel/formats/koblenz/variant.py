"""Detect the variant of a file: what sizes count, the valid mark, and where messages begin.

The description is ambiguous about all three, and headers may be damaged: variants are tried, and evidence decides.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import Problem, UnsupportedError
from logreel.formats.koblenz.framing import Framing, search
from logreel.formats.koblenz.records import (
    FILE_HEADER,
    MAGIC,
    MARKS,
    SIZE_READINGS,
    VALID_MARK,
    SizeReading,
    is_end,
    read_head,
)
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source

#: Number of consecutive messages that decide what sizes count.
ENOUGH = 3
#: Number of messages whose marks are counted if the first message has an unusual mark.
COUNTED = 1024
#: Number of index entries that are tried as the first message.
TRIED = 64
#: Number of bytes searched for a first message.
SEARCHED = 64 << 20
MAJOR, MINOR = 1, 1


@dataclass(frozen=True, slots=True)
class Variant:
    """How to read a file.

    mark     mark of valid messages
    first    position of the first message
    entries  int64[n]: the time index of the file, unchecked
    named    positions in the file that the time index names
    """

    version: str
    size_reading: SizeReading
    mark: int
    first: int
    entries: I64
    named: frozenset[int]
    problems: list[Problem]


def detect_variant(source: Source) -> Variant:
    """Return how to read *source*. Raises UnsupportedError for a version from the future."""
    head = source.head
    if len(head) < FILE_HEADER:
        text = f"the file ends inside its header: {source.size} of {FILE_HEADER} bytes"
        raise UnsupportedError(text, path=source.name)
    major, minor, count = (int.from_bytes(head[a:b], "little") for a, b in ((4, 6), (6, 8), (8, 12)))
    version = f"{major}.{minor}"
    if major > MAJOR:
        raise UnsupportedError(f"a Koblenz log of version {version}", path=source.name, offset=4)
    problems = []
    if head[:4] != MAGIC:
        text = f"the file begins with {head[:4].hex(' ')}, not with {MAGIC.hex(' ')}"
        problems.append(Problem("header", 0, 4, False, text))
    if minor > MINOR:
        text = f"version {version} is newer than {MAJOR}.{MINOR}"
        problems.append(Problem("version", 4, 4, False, text))
    room = (source.size - FILE_HEADER) // 8
    if count > room:
        text = f"an index of {count} entries where there is room for {room}"
        problems.append(Problem("index", 8, 4, False, text))
        count = 0
    begin = FILE_HEADER + 8 * count
    entries = np.frombuffer(source.data, "<i8", count, FILE_HEADER).astype(np.int64)
    named = distinct(entries[(entries >= FILE_HEADER) & (entries < source.size)]).tolist()
    framing, first = _detect_framing(source, begin, named)
    problems += _problems_before(source, begin, first)
    if framing.mark != VALID_MARK:
        text = f"messages are marked as valid by 0x{framing.mark:02X} where 0x{VALID_MARK:02X} is usual"
        problems.append(Problem("mark", first + 4, 1, False, text))
    return Variant(version, framing.size_reading, framing.mark, first, entries, frozenset(named), problems)


def _detect_framing(source: Source, begin: int, named: list[int]) -> tuple[Framing, int]:
    """Return the framing (size reading and mark) in which messages follow each other, and the first message.

    named  positions that the time index names, ascending
    """
    places = frozenset(named)
    tables: list[list[Framing]] = []
    for mark in MARKS:
        framings = [Framing(source, size_reading, mark, places) for size_reading in SIZE_READINGS]
        tables.append(framings)
        for first in (begin, *named[:TRIED]):
            best = max(framings, key=lambda framing: _evidence(framing, first))
            if _evidence(best, first) and (best.mark == VALID_MARK or _prevails(best, first)):
                # Messages before the first one that the index names may be sound, too.
                sound = best.search(begin, first - 1)
                return best, sound if sound >= 0 else first
    end = min(source.size, begin + SEARCHED)
    for framings in tables:
        first, which = search(framings, begin, end)
        if first >= 0:
            return framings[which], first
    return tables[0][0], begin


def _evidence(framing: Framing, pos: int) -> int:
    """Count the positions from *pos* on where a message must begin or end, and does.

    0 if one of the messages is invalid, or the first one is not whole. A chain of ``ENOUGH`` messages, or of all
    messages up to the end, counts most.
    """
    source = framing.source
    for count in range(ENOUGH):
        if is_end(source, pos):
            return 2 * count + (source.size - pos == 0 or source.size - pos >= 4) if count else 0
        head = read_head(source, pos)
        if head is None:
            # A header that the end of the file cuts may still have the mark.
            mark = source.read(pos + 4, 1)
            return 2 * count + (mark[0] == framing.mark) if mark and count else 2 * count
        if head.mark != framing.mark or not head.is_plausible(framing.size_reading):
            return 0
        after = head.end(framing.size_reading)
        if after > source.size:
            return 2 * count + 1 if count else 0
        if framing.is_believed(head) and framing.content_end(head) != after:
            return 0
        pos = after
    return 2 * ENOUGH


def _prevails(framing: Framing, pos: int) -> bool:
    """Return whether no mark is more frequent than that of *framing* among the messages from *pos* on."""
    seen = Counter[int]()
    for _ in range(COUNTED):
        head = read_head(framing.source, pos)
        if head is None or not head.is_plausible(framing.size_reading):
            break
        seen[head.mark] += 1
        pos = head.end(framing.size_reading)
    return seen[framing.mark] == max(seen.values(), default=0)


def _problems_before(source: Source, begin: int, first: int) -> list[Problem]:
    """Return a problem for the bytes between the index and the first message, if there are any."""
    size = abs(first - begin)
    if first == begin:
        return []
    if first < begin:
        return [Problem("index", 8, 4, False, f"messages begin {size} bytes before the index ends")]
    if not source.data[begin:first].any():
        return [Problem("index", begin, size, False, f"{size} bytes of room for an index that are not used")]
    return [Problem("garbage", begin, size, True, f"{size} bytes before the first message")]


#: Entries of an index, about 18 hours: one absurd stamp must not make an index larger than the log.
MAX_ENTRIES = 1 << 16
#: An entry may point to a message this much before its second, in ms.
SLACK_MS = 1.0
NS_PER_S = 10**9


def seconds_between(first: int, last: int) -> int:
    """Return the number of index entries of a log from *first*, the time of its first message, to *last* (ns)."""
    return min(max(0, last - first) // NS_PER_S + 1, MAX_ENTRIES)


def is_complete(entries: I64, seconds: int) -> bool:
    """Return whether an index has an entry for each of *seconds*; whether the last one has an entry is left open."""
    return len(entries) >= max(seconds - 1, min(seconds, 1))


def wrong_entries(source: Source, variant: Variant) -> list[Problem]:
    """Return a problem ``index`` if entries do not point to a message of their second."""
    entries, wrong = variant.entries[:MAX_ENTRIES].tolist(), []
    first = read_head(source, variant.first)
    for second, entry in enumerate(entries):
        head = read_head(source, entry) if entry >= 0 else None
        good = head is not None and head.mark == variant.mark and head.is_plausible(variant.size_reading)
        if not good or (head and first and head.ms < first.ms + 1000 * second - SLACK_MS):
            wrong.append(second)
    if not wrong:
        return []
    text = f"{len(wrong)} of {len(entries)} index entries do not point to the message of their second"
    return [Problem("index", 12 + 8 * wrong[0], 8, False, text)]


class TimeIndexBuilder:
    """Collects for each second, counted from the first message, the first message at or after it."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._latest = 0
        self._offsets: list[I64] = []
        self._count = 0

    def add(self, time: I64, offset: I64) -> None:
        """Add the next messages of the file: their times in ns and the positions where they begin."""
        if not len(time):
            return
        if self._first is None:
            self._first = self._latest = int(time[0])
        latest = np.maximum(np.maximum.accumulate(time), self._latest)
        self._latest = int(latest[-1])
        count = seconds_between(self._first, self._latest)
        due = self._first + NS_PER_S * np.arange(self._count, count, dtype=np.int64)
        self._offsets.append(offset[latest.searchsorted(due)])
        self._count = count

    @property
    def offsets(self) -> I64:
        """int64[n]: for each second the position of the first message to read."""
        return np.concatenate([np.zeros(0, np.int64), *self._offsets])
