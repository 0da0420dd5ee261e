"""Bags of 2008 and 2009, versions 0 to 1.1: lines of text and lengths, nothing else.

Version 0    topic, two lines (type and checksum in either order) or none, then records
Version 1.0  the number of topics, three such lines for each, then records that begin with the topic
Version 1.1  every record begins with topic, checksum and type
A record ends in u32 seconds, u32 nanoseconds, u32 length and that many bytes.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag.connections import Connection
from logreel.formats.rosbag.found import MAX_SPAN, Found
from logreel.formats.rosbag.records import MAX_LINE, MULTILOG
from logreel.io.chunks import FILE
from logreel.io.source import Source

_TAIL = struct.Struct("<III")
_MD5 = re.compile(r"[0-9a-f]{32}\Z|\*\Z")
_TYPE = re.compile(r"[A-Za-z]\w*/[A-Za-z]\w*\Z|\*\Z")
_TOPIC = re.compile(r"[!-~][ -~]*\Z")
#: So many records in a row prove that a file without a mark is a bag of version 0.
PROOF = 16
#: Types that were moved before the first release.
RENAMED = {"rostools/Time": "roslib/Time", "rostools/Log": "roslib/Log", "rostools/Header": "roslib/Header"}


class NoRecord(ValueError):
    """What is expected at a place is not there; *cut*: because the file ends."""

    def __init__(self, text: str, cut: bool = False) -> None:
        super().__init__(text)
        self.cut = cut


@dataclass(slots=True)
class OldBag:
    """Messages and topics of an old bag, collected while reading."""

    source: Source
    problems: list[Problem] = field(default_factory=list)
    connections: dict[tuple[str, str, str], Connection] = field(default_factory=dict)
    key: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def declare(self, topic: str, kind: str, md5: str) -> int:
        """The key of a topic."""
        identity = topic, RENAMED.get(kind, kind), md5
        if identity not in self.connections:
            self.connections[identity] = Connection(len(self.connections), *identity)
        return self.connections[identity].key

    def message(self, key: int, pos: int) -> int:
        """Take in the message whose seconds stand at *pos*; gives where the next record begins."""
        time, data, size = _message(self.source, pos)
        self.key.append(key)
        self.time.append(time)
        self.data.append(data)
        self.size.append(size)
        return data + size

    def parts(self) -> list[Found]:
        """The messages as the index wants them."""
        data, size = np.array(self.data, np.int64), np.array(self.size, np.int64)
        key, time = np.array(self.key, np.int64), np.array(self.time, np.int64)
        found, lo = [], 0
        while lo < len(data):
            base = int(data[lo])
            at = slice(lo, int(np.searchsorted(data, base + MAX_SPAN)))
            entry = (data[at] - base).astype(np.uint32)
            found.append(
                Found(
                    FILE, base, base, self.source.size, key[at], time[at], entry, size[at].astype(np.uint32)
                )
            )
            lo = at.stop
        return found


def _line(source: Source, pos: int) -> tuple[str, int]:
    """The line of text at *pos* and where the next one begins; raises NoRecord."""
    piece = source.read(pos, MAX_LINE + 1)
    end = piece.find(b"\n")
    if end < 0:
        raise NoRecord("a line of text is missing", cut=pos + len(piece) >= source.size)
    return piece[:end].decode("latin-1").rstrip(), pos + end + 1


def _message(source: Source, pos: int) -> tuple[int, int, int]:
    """Time in ns, start and size of the data of the message whose seconds stand at *pos*; raises NoRecord."""
    if pos + 12 > source.size:
        raise NoRecord("the head of a message is cut", cut=True)
    sec, nsec, size = _TAIL.unpack_from(source.view, pos)
    if nsec >= 10**9:
        raise NoRecord(f"{nsec} nanoseconds")
    if size > source.size - pos - 12:
        raise NoRecord(f"a message of {size} bytes where {source.size - pos - 12} are left", cut=True)
    # The first recorders wrote start minus now, so times can be negative.
    seconds = sec - (1 << 32) if sec > 0x7FFFFFFF and sec > 0xF0000000 else sec
    return seconds * 10**9 + nsec, pos + 12, size


def _sorted_lines(first: str, second: str) -> tuple[str, str]:
    """Type and checksum of two lines that came in either order; raises NoRecord."""
    for kind, md5 in ((second, first), (first, second)):
        if _TYPE.match(kind) and _MD5.match(md5):
            return kind, md5
    raise NoRecord("no type and checksum")


# ------------------------------------------------------------------------------------------------- version 0


def header_of_version_0(source: Source) -> tuple[str, str, str, int] | None:
    """Topic, type, checksum and where the records begin, if the file is a bag of version 0."""
    try:
        topic, after = _line(source, 0)
    except NoRecord:
        return None
    if not _TOPIC.match(topic):
        return None
    try:
        first, pos = _line(source, after)
        second, pos = _line(source, pos)
        kind, md5 = _sorted_lines(first, second)
        # A real type and a real checksum are proof enough.
        if "*" not in (kind, md5) or _leads_on(source, pos):
            return topic, kind, md5, pos
    except NoRecord:
        pass
    # The very first recorders wrote the topic alone.
    return (topic, "*", "*", after) if after < source.size and _leads_on(source, after) else None


def _leads_on(source: Source, pos: int) -> bool:
    """True if messages follow each other from *pos* on, at least PROOF of them or up to the end."""
    for n in range(PROOF):
        if pos == source.size:
            return n > 0
        try:
            _, data, size = _message(source, pos)
        except NoRecord as error:
            return error.cut and n > 2
        pos = data + size
    return True


def read_0(source: Source) -> OldBag:
    """A bag of version 0."""
    bag = OldBag(source)
    head = header_of_version_0(source)
    if head is None:
        bag.problems.append(Problem("header", 0, source.size, True, "this is no bag of version 0"))
        return bag
    topic, kind, md5, pos = head
    key = bag.declare(topic, kind, md5)
    while pos < source.size:
        try:
            pos = bag.message(key, pos)
        except NoRecord as error:
            _rest(bag, pos, error)
            break
    return bag


def _rest(bag: OldBag, pos: int, error: NoRecord) -> None:
    code = "truncated" if error.cut else "garbage"
    size = bag.source.size - pos
    bag.problems.append(
        Problem(code, pos, size, True, f"the last {size} bytes are no whole message: {error}")
    )


# ---------------------------------------------------------------------------------------------- version 1.0


def read_1_0(source: Source) -> OldBag:
    """A bag of version 1.0."""
    bag = OldBag(source)
    topics: dict[str, int] = {}
    _, pos = _line(source, 0) if not source.head.startswith(MULTILOG) else ("", len(MULTILOG))
    try:
        # How many topics there are need not be known: a name met for the first time declares one.
        _, pos = _line(source, pos)
    except NoRecord as error:
        _rest(bag, pos, error)
        return bag
    while pos < source.size:
        try:
            topic, after = _line(source, pos)
            if topic not in topics:
                pos = _declare_1_0(bag, topics, topic, after)
                continue
            pos = bag.message(topics[topic], after)
        except NoRecord as error:
            pos = _find_1_0(bag, pos, topics, error)
    return bag


def _declare_1_0(bag: OldBag, topics: dict[str, int], topic: str, pos: int) -> int:
    first, pos = _line(bag.source, pos)
    second, pos = _line(bag.source, pos)
    topics[topic] = bag.declare(topic, *_sorted_lines(first, second))
    return pos


def _find_1_0(bag: OldBag, pos: int, topics: dict[str, int], error: NoRecord) -> int:
    """Step over damage to the next message of a known topic."""
    names = sorted((re.escape(t.encode("latin-1")) for t in topics), key=len, reverse=True)
    pattern = re.compile(rb"(?:" + rb"|".join(names) + rb")\n") if names else None
    return _step(bag, pos, pattern, error)


# ---------------------------------------------------------------------------------------------- version 1.1

_HEAD_1_1 = re.compile(rb"([!-~][ -~]{0,255})\n([0-9a-f]{32}|\*)\n([A-Za-z]\w*/[A-Za-z]\w*|\*)[ ]*\n")


def read_1_1(source: Source) -> OldBag:
    """A bag of version 1.1."""
    bag = OldBag(source)
    _, pos = _line(source, 0)
    while pos < source.size:
        try:
            m = _HEAD_1_1.match(source.read(pos, 3 * MAX_LINE))
            if m is None:
                raise NoRecord(
                    "no topic, checksum and type", cut=_is_cut_head(source.read(pos, 3 * MAX_LINE + 1))
                )
            topic, md5, kind = (text.decode("latin-1").rstrip() for text in m.groups())
            pos = bag.message(bag.declare(topic, kind, md5), pos + m.end())
        except NoRecord as error:
            pos = _step(bag, pos, _HEAD_1_1, error)
    return bag


def _is_cut_head(piece: bytes) -> bool:
    return len(piece) <= 3 * MAX_LINE and piece.count(b"\n") < 3


def _leads_to(source: Source, pos: int) -> bool:
    """True if a whole message stands at *pos*."""
    try:
        _message(source, pos)
    except NoRecord:
        return False
    return True


def _step(bag: OldBag, pos: int, head: re.Pattern[bytes] | None, error: NoRecord) -> int:
    """Report what is no message at *pos*; gives where the next one begins, after text that fits *head*."""
    source, found = bag.source, bag.source.size
    # The next one is near as a rule, and there may be thousands of damaged places.
    lo, step = pos + 1, 1 << 12
    while head is not None and lo < source.size and found == source.size:
        for m in head.finditer(source.read(lo, step + 3 * MAX_LINE)):
            if m.start() < step and _leads_to(source, lo + m.end()):
                found = lo + m.start()
                break
        lo += step
        step = min(4 * step, 1 << 20)
    if found == source.size:
        _rest(bag, pos, error)
    else:
        text = f"{found - pos} bytes that are no message ({error})"
        bag.problems.append(Problem("garbage", pos, found - pos, True, text))
    return found
