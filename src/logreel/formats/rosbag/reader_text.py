"""Reading of bags of versions 0, 1.0 and 1.1 (2008 and 2009), whose headers are lines of text.

Version 0    topic, two lines (type and checksum in either order) or none, then records
Version 1.0  the number of topics, three such lines for each, then records that begin with the topic
Version 1.1  every record begins with topic, checksum and type
A record ends with u32 seconds, u32 nanoseconds, u32 length and that many bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import Problem, UnsupportedError
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.found import MAX_SPAN, ChunkMessages
from logreel.formats.rosbag.reader import Reader
from logreel.formats.rosbag.records import MAX_LINE, MULTILOG, BadRecord
from logreel.io.source import FILE, Source

_TAIL = struct.Struct("<III")
_MD5 = re.compile(r"[0-9a-f]{32}\Z|\*\Z")
_TYPE = re.compile(r"[A-Za-z]\w*/[A-Za-z]\w*\Z|\*\Z")
_TOPIC = re.compile(r"[!-~][ -~]*\Z")
#: So many consecutive records prove that a file without a magic line is a bag of version 0.
PROOF = 16
#: Types that were moved to another package before the first release.
RENAMED = {"rostools/Time": "roslib/Time", "rostools/Log": "roslib/Log", "rostools/Header": "roslib/Header"}


@dataclass(slots=True)
class FoundText:
    """Messages, connections and problems of a bag of version 0, 1.0 or 1.1.

    topics  version 1.0: key of each topic that was declared
    stated  version 1.0: the number of topics as the file states it, its offset and its bytes; None in other versions
    """

    source: Source
    problems: list[Problem] = field(default_factory=list)
    connections: dict[tuple[str, str, str], Connection] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    stated: tuple[str, int, int] | None = None
    key: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def declare(self, topic: str, type_name: str, md5: str) -> int:
        """Return the key of a topic; a topic met for the first time becomes a connection."""
        identity = topic, RENAMED.get(type_name, type_name), md5
        if identity not in self.connections:
            self.connections[identity] = Connection(len(self.connections), *identity)
        return self.connections[identity].key

    def message(self, key: int, pos: int) -> int:
        """Add the message whose u32 seconds are at *pos*; return the offset of the next record."""
        time, data, size = _message(self.source, pos)
        self.key.append(key)
        self.time.append(time)
        self.data.append(data)
        self.size.append(size)
        return data + size

    def take_parts(self) -> list[ChunkMessages]:
        """Return the messages so far as ``parts`` does, and forget them."""
        parts = self.parts()
        for numbers in (self.key, self.time, self.data, self.size):
            numbers.clear()
        return parts

    def parts(self) -> list[ChunkMessages]:
        """Return the messages as arrays, divided where offsets relative to their base would not fit 32 bits."""
        data, size = np.array(self.data, np.int64), np.array(self.size, np.int64)
        key, time = np.array(self.key, np.int64), np.array(self.time, np.int64)
        parts, lo = [], 0
        while lo < len(data):
            base = int(data[lo])
            at = slice(lo, int(np.searchsorted(data, base + MAX_SPAN)))
            entry = (data[at] - base).astype(np.uint32)
            parts.append(
                ChunkMessages(
                    FILE, base, base, self.source.size, key[at], time[at], entry, size[at].astype(np.uint32)
                )
            )
            lo = at.stop
        return parts


def _line(source: Source, pos: int) -> tuple[str, int]:
    """Return the line of text at *pos* and the offset of the next line; raise BadRecord."""
    part_bytes = source.read(pos, MAX_LINE + 1)
    end = part_bytes.find(b"\n")
    if end < 0:
        raise BadRecord("a line of text is missing", cut=pos + len(part_bytes) >= source.size)
    return part_bytes[:end].decode("latin-1").rstrip(), pos + end + 1


def _message(source: Source, pos: int) -> tuple[int, int, int]:
    """Return time in ns, offset and size of the data of the message whose u32 seconds are at *pos*; raise BadRecord."""
    if pos + 12 > source.size:
        raise BadRecord("the head of a message is cut", cut=True)
    sec, nsec, size = _TAIL.unpack_from(source.view, pos)
    if nsec >= 10**9:
        raise BadRecord(f"{nsec} nanoseconds")
    if size > source.size - pos - 12:
        raise BadRecord(f"a message of {size} bytes where {source.size - pos - 12} are left", cut=True)
    # The first recorders wrote the start minus the time of day, which can be negative.
    seconds = sec - (1 << 32) if sec > 0x7FFFFFFF and sec > 0xF0000000 else sec
    return seconds * 10**9 + nsec, pos + 12, size


def _sorted_lines(first: str, second: str) -> tuple[str, str]:
    """Return type and checksum of two lines in either order; raise BadRecord."""
    for type_name, md5 in ((second, first), (first, second)):
        if _TYPE.match(type_name) and _MD5.match(md5):
            return type_name, md5
    raise BadRecord("no type and checksum")


# ------------------------------------------------------------------------------------------------- version 0


def header_of_version_0(source: Source) -> tuple[str, str, str, int] | None:
    """Return topic, type, checksum and offset of the first record; None if the file is no bag of version 0."""
    try:
        topic, after = _line(source, 0)
    except BadRecord:
        return None
    if not _TOPIC.match(topic):
        return None
    try:
        first, pos = _line(source, after)
        second, pos = _line(source, pos)
        type_name, md5 = _sorted_lines(first, second)
        # A type and a checksum that are not "*" are proof enough.
        if "*" not in (type_name, md5) or _is_followed_by_messages(source, pos):
            return topic, type_name, md5, pos
    except BadRecord:
        pass
    # The very first recorders wrote the topic alone.
    is_bag = after < source.size and _is_followed_by_messages(source, after)
    return (topic, "*", "*", after) if is_bag else None


def _is_followed_by_messages(source: Source, pos: int) -> bool:
    """Return whether messages follow each other from *pos* on: PROOF of them, or all up to the end of the file."""
    for n in range(PROOF):
        if pos == source.size:
            return n > 0
        try:
            _, data, size = _message(source, pos)
        except BadRecord as error:
            return error.cut and n > 2
        pos = data + size
    return True


def _begin_0(bag: FoundText) -> int:
    head = header_of_version_0(bag.source)
    if head is None:
        bag.problems.append(Problem("header", 0, bag.source.size, True, "this is no bag of version 0"))
        return bag.source.size
    bag.declare(*head[:3])
    return head[3]


def _read_0(bag: FoundText, pos: int) -> int:
    return bag.message(0, pos)


def _end_0(bag: FoundText, pos: int, error: BadRecord) -> int:
    _report_rest(bag, pos, error)
    return bag.source.size


def _report_rest(bag: FoundText, pos: int, error: BadRecord) -> None:
    """Report that no message was found from *pos* to the end of the file."""
    code = "truncated" if error.cut else "garbage"
    size = bag.source.size - pos
    bag.problems.append(
        Problem(code, pos, size, True, f"the last {size} bytes are no whole message: {error}")
    )


# ---------------------------------------------------------------------------------------------- version 1.0


def _begin_1_0(bag: FoundText) -> int:
    _, pos = _line(bag.source, 0) if not bag.source.head.startswith(MULTILOG) else ("", len(MULTILOG))
    # The number of topics is not needed for reading: a name met for the first time declares a topic.
    quantity, after = _line(bag.source, pos)
    bag.stated = quantity, pos, after - pos - 1
    return after


def _read_1_0(bag: FoundText, pos: int) -> int:
    topic, after = _line(bag.source, pos)
    if topic not in bag.topics:
        return _declare_1_0(bag, topic, after)
    return bag.message(bag.topics[topic], after)


def _declare_1_0(bag: FoundText, topic: str, pos: int) -> int:
    """Declare *topic* by the two lines at *pos*; return the offset after them."""
    first, pos = _line(bag.source, pos)
    second, pos = _line(bag.source, pos)
    bag.topics[topic] = bag.declare(topic, *_sorted_lines(first, second))
    return pos


def _skip_damage_1_0(bag: FoundText, pos: int, error: BadRecord) -> int:
    """Report the damage at *pos*; return the offset of the next message of a known topic."""
    names = sorted((re.escape(t.encode("latin-1")) for t in bag.topics), key=len, reverse=True)
    pattern = re.compile(rb"(?:" + rb"|".join(names) + rb")\n") if names else None
    return _skip_damage(bag, pos, pattern, error)


# ---------------------------------------------------------------------------------------------- version 1.1

_HEAD_1_1 = re.compile(rb"([!-~][ -~]{0,255})\n([0-9a-f]{32}|\*)\n([A-Za-z]\w*/[A-Za-z]\w*|\*)[ ]*\n")


def _begin_1_1(bag: FoundText) -> int:
    return _line(bag.source, 0)[1]


def _read_1_1(bag: FoundText, pos: int) -> int:
    part_bytes = bag.source.read(pos, 3 * MAX_LINE + 1)
    m = _HEAD_1_1.match(part_bytes[: 3 * MAX_LINE])
    if m is None:
        raise BadRecord("no topic, checksum and type", cut=_is_cut_head(part_bytes))
    topic, md5, type_name = (text.decode("latin-1").rstrip() for text in m.groups())
    return bag.message(bag.declare(topic, type_name, md5), pos + m.end())


def _skip_damage_1_1(bag: FoundText, pos: int, error: BadRecord) -> int:
    return _skip_damage(bag, pos, _HEAD_1_1, error)


def _is_cut_head(head: bytes) -> bool:
    return len(head) <= 3 * MAX_LINE and head.count(b"\n") < 3


def _is_message(source: Source, pos: int) -> bool:
    """Return whether a whole message is at *pos*."""
    try:
        _message(source, pos)
    except BadRecord:
        return False
    return True


def _skip_damage(bag: FoundText, pos: int, head: re.Pattern[bytes] | None, error: BadRecord) -> int:
    """Report the bytes at *pos* that are no message; return the offset of the next text that fits *head*.

    Without such a text, or without *head*, this is the end of the file.
    """
    source, next_message = bag.source, bag.source.size
    # The search begins with few bytes: the next message is usually near, and there may be thousands of damaged places.
    lo, step = pos + 1, 1 << 12
    while head is not None and lo < source.size and next_message == source.size:
        for m in head.finditer(source.read(lo, step + 3 * MAX_LINE)):
            if m.start() < step and _is_message(source, lo + m.end()):
                next_message = lo + m.start()
                break
        lo += step
        step = min(4 * step, 1 << 20)
    if next_message == source.size:
        _report_rest(bag, pos, error)
    else:
        text = f"{next_message - pos} bytes that are no message ({error})"
        bag.problems.append(Problem("garbage", pos, next_message - pos, True, text))
    return next_message


# ------------------------------------------------------------------------------------------------ all versions


class TextVersion(NamedTuple):
    """How bags of one version are read; *read* and *begin* raise BadRecord.

    begin  returns the offset of the first record
    read   reads the record at an offset; returns the offset of the next one
    skip   reports damage at an offset; returns the offset of the next record
    """

    begin: Callable[[FoundText], int]
    read: Callable[[FoundText, int], int]
    skip: Callable[[FoundText, int, BadRecord], int]


TEXT_VERSIONS = {
    "0": TextVersion(_begin_0, _read_0, _end_0),
    "1.0": TextVersion(_begin_1_0, _read_1_0, _skip_damage_1_0),
    "1.1": TextVersion(_begin_1_1, _read_1_1, _skip_damage_1_1),
}


class TextReader(Reader):
    """Reads a bag of version 0, 1.0 or 1.1."""

    def __init__(self, source: Source, version: str) -> None:
        super().__init__(source)
        self.bag, self._version = FoundText(source), TEXT_VERSIONS[version]
        self.pos, self.problems = 0, self.bag.problems
        #: Whether the header was read.
        self._has_begun = False

    def feed(self, source: Source) -> bool:
        """See ``Reader``. Raises UnsupportedError if the file ends inside its header."""
        self.bag.source = source
        if not self._has_begun:
            try:
                self._begin()
            except BadRecord as error:
                raise UnsupportedError("the file ends inside its header", path=source.name) from error
        return super().feed(source)

    def finish(self) -> None:
        """See ``Reader``."""
        try:
            self._begin()
        except BadRecord as error:
            _report_rest(self.bag, 0, error)
            return
        super().finish()
        _compare_quantity(self.bag)

    def _begin(self) -> None:
        if not self._has_begun:
            self.pos = self._version.begin(self.bag)
            self._has_begun = True

    def _after(self, pos: int) -> int:
        return self._version.read(self.bag, pos)

    def _skip(self, pos: int, error: BadRecord) -> int:
        return self._version.skip(self.bag, pos, error)

    def take_parts(self) -> list[ChunkMessages]:
        """See ``Reader``."""
        return self.bag.take_parts()

    def connections(self) -> Iterable[Connection]:
        """See ``Reader``."""
        return self.bag.connections.values()


def read(source: Source, version: str) -> FoundText:
    """Return the content of a bag of version 0, 1.0 or 1.1."""
    reader = TextReader(source, version)
    reader.finish()
    return reader.bag


def _compare_quantity(bag: FoundText) -> None:
    """Report a number of topics that is not that of the topics in the file."""
    if bag.stated is None:
        return
    quantity, pos, size = bag.stated
    if not quantity.isdecimal() or int(quantity) != len(bag.topics):
        text = f"the header states {quantity[:20]!r} topics, the file has {len(bag.topics)}"
        bag.problems.append(Problem("header", pos, size, False, text))
