"""Plain reader of bags of versions 0 to 1.1; see ``rosbag``."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from support.builders.bag_content import Bad, Bag, Connection, Message, seconds

MD5 = re.compile(rb"[0-9a-f]{32}|\*")
TYPE = re.compile(rb"[A-Za-z]\w*/[A-Za-z]\w*|\*")
RENAMED = {
    b"rostools/Time": b"roslib/Time",
    b"rostools/Log": b"roslib/Log",
    b"rostools/Header": b"roslib/Header",
}


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    text, newline, _ = data[at : at + 300].partition(b"\n")
    if not newline:
        raise Bad("no line")
    return text.rstrip(), at + len(text) + 1


def _old_message(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Return time in ns, payload and its offset."""
    if at + 12 > len(data):
        raise Bad("cut")
    sec, nsec, size = struct.unpack_from("<III", data, at)
    if nsec >= 10**9 or size > len(data) - at - 12:
        raise Bad("cut or no message")
    return seconds(sec, nsec), data[at + 12 : at + 12 + size], at + 12


def _kind_and_sum(first: bytes, second: bytes) -> tuple[bytes, bytes]:
    if MD5.fullmatch(second) and TYPE.fullmatch(first):
        return first, second
    if MD5.fullmatch(first) and TYPE.fullmatch(second):
        return second, first
    raise Bad("no type and checksum")


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _add(bag: Bag, row: tuple[bytes, bytes, bytes], found: tuple[int, bytes, int]) -> int:
    topic, kind, md5 = row
    names = _text(topic), _text(RENAMED.get(kind, kind)), _text(md5)
    bag.messages.append(Message(*names, *found))
    if Connection(*names) not in bag.connections:
        bag.connections.append(Connection(*names))
    return found[2] + len(found[1])


def _chain(data: bytes, at: int) -> int:
    """Return the number of complete messages of version 0 from *at* on; -1 if something else follows them."""
    count = 0
    while at < len(data):
        try:
            _, payload, start = _old_message(data, at)
        except Bad:
            _, nsec, size = struct.unpack("<III", data[at : at + 12].ljust(12, b"\0"))
            return count if nsec < 10**9 and at + 12 + size > len(data) else -1
        at, count = start + len(payload), count + 1
    return count


def read_0(data: bytes) -> Bag:
    bag = Bag("0")
    topic, after = _line(data, 0)
    try:
        first, at = _line(data, after)
        second, at = _line(data, at)
        row = topic, *_kind_and_sum(first, second)
        if _chain(data, at) < 0:
            raise Bad("no chain")
    except Bad:
        row, at = (topic, b"*", b"*"), after
    while at < len(data):
        try:
            at = _add(bag, row, _old_message(data, at))
        except Bad:
            bag.lost.append((at, len(data)))
            break
    return bag


def read_1_0(data: bytes) -> Bag:
    bag = Bag("1.0")
    rows: dict[bytes, tuple[bytes, bytes, bytes]] = {}

    def row_at(at: int) -> int:
        topic, at = _line(data, at)
        first, at = _line(data, at)
        second, at = _line(data, at)
        rows[topic] = topic, *_kind_and_sum(first, second)
        return at

    def record_at(at: int) -> int:
        topic, after = _line(data, at)
        if topic not in rows:
            return row_at(at)
        return _add(bag, rows[topic], _old_message(data, after))

    _, at = _line(data, 0)
    quantity, at = _line(data, at)
    int(quantity)
    _walk(bag, data, at, record_at, lambda at: any(data.startswith(topic + b"\n", at) for topic in rows))
    return bag


def read_1_1(data: bytes) -> Bag:
    bag = Bag("1.1")

    def record_at(at: int) -> int:
        topic, at = _line(data, at)
        md5, at = _line(data, at)
        kind, at = _line(data, at)
        if not topic or not MD5.fullmatch(md5) or not TYPE.fullmatch(kind) or not topic.isascii():
            raise Bad("no topic, checksum and type")
        if not topic.decode().isprintable():
            raise Bad("no topic")
        return _add(bag, (topic, kind, md5), _old_message(data, at))

    _walk(bag, data, _line(data, 0)[1], record_at, lambda at: True)
    return bag


def _walk(
    bag: Bag, data: bytes, at: int, record_at: Callable[[int], int], begins: Callable[[int], bool]
) -> None:
    """Read record after record; after damage, search the next one byte by byte."""
    while at < len(data):
        bad_from = at
        while at < len(data):
            try:
                if at > bad_from and not begins(at):
                    raise Bad("not here")
                following = record_at(at)
            except Bad:
                at += 1
            else:
                break
        if at > bad_from:
            bag.lost.append((bad_from, at))
        if at < len(data):
            at = following
