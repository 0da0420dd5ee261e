"""Where the messages begin, and what their sizes count: both are tried, not trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logreel.errors import Problem, UnsupportedError
from logreel.formats.koblenz.framing import Framing
from logreel.formats.koblenz.records import FILE_HEADER, READINGS, VALID_MARK, Reading, is_end, read_head
from logreel.model.index import I64
from logreel.model.source import Source

#: So many messages in a row decide what sizes count.
ENOUGH = 3
#: Entries of the index that are tried as the first message.
TRIED = 64
#: Bytes searched for a first message under each reading.
SEARCHED = 64 << 20
MAJOR, MINOR = 1, 1


@dataclass(frozen=True, slots=True)
class Start:
    """How to read a file.

    first    where the first message begins
    entries  int64[n]: the index as the file has it
    """

    version: str
    reading: Reading
    first: int
    entries: I64
    problems: list[Problem]


def find_start(source: Source) -> Start:
    """How to read *source*. Raises UnsupportedError for a version from the future."""
    head = source.head
    if len(head) < FILE_HEADER:
        text = f"the file ends inside its header: {source.size} of {FILE_HEADER} bytes"
        raise UnsupportedError(text, path=source.name)
    major, minor, count = (int.from_bytes(head[a:b], "little") for a, b in ((4, 6), (6, 8), (8, 12)))
    version = f"{major}.{minor}"
    if major > MAJOR:
        raise UnsupportedError(f"a Koblenz log of version {version}", path=source.name, offset=4)
    problems = []
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
    reading, first = _decide(source, begin, entries)
    problems += _before(source, begin, first)
    return Start(version, reading, first, entries, problems)


def _decide(source: Source, begin: int, entries: I64) -> tuple[Reading, int]:
    """The reading under which messages follow each other, and where the first of them is."""
    tables: dict[Reading, Framing] = {}
    inside = entries[(entries >= FILE_HEADER) & (entries < source.size)]
    for first in (begin, *np.unique(inside)[:TRIED].tolist()):
        for reading in READINGS:
            if reading not in tables:
                tables[reading] = Framing(source, reading)
            if _reads(tables[reading], first):
                # Messages before the one that the index points to may be sound, too.
                sound = tables[reading].search(begin, first - 1)
                return reading, sound if sound >= 0 else first
    end = min(source.size, begin + SEARCHED)
    found = [(framing.search(begin, end), i) for i, framing in enumerate(tables.values())]
    found = [(pos, i) for pos, i in found if pos >= 0]
    if found:
        first, i = min(found)
        return READINGS[i], first
    return READINGS[0], begin


def _reads(framing: Framing, pos: int) -> bool:
    """True if enough messages follow each other from *pos* on, or fewer up to the end."""
    source, known = framing.source, 0
    for count in range(ENOUGH):
        if is_end(source, pos):
            return count > 0
        head = read_head(source, pos)
        if head is None:
            return known > 0
        kind = framing.kind_of(head)
        if head.mark != VALID_MARK or not head.is_plausible(framing.reading):
            return False
        after = head.end(framing.reading)
        if after > source.size:
            return known > 0
        if kind is not None:
            if framing.content_end(head) != after:
                return False
            known += 1
        pos = after
    return True


def _before(source: Source, begin: int, first: int) -> list[Problem]:
    """What is to be said of the bytes between the index and the first message."""
    size = abs(first - begin)
    if first == begin:
        return []
    if first < begin:
        return [Problem("index", 8, 4, False, f"messages begin {size} bytes before the index ends")]
    if not source.data[begin:first].any():
        return [Problem("index", begin, size, False, f"{size} bytes of room for an index that are not used")]
    return [Problem("garbage", begin, size, True, f"{size} bytes before the first message")]
