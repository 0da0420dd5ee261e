"""Valid logs with single faults, for tests of the checks that find them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from support.samples.ulog.builder import Builder

MS = 1000
SECOND = 10**6

#: Topic, time in µs, value.
Row = tuple[str, int, int]


def ulog(rows: Iterable[Row], name: str = "other") -> bytes:
    """Return a ULog of *rows* in the given order; *name*: of the second field."""
    rows_given = list(rows)
    out = Builder(start_us=rows_given[0][1] if rows_given else SECOND).flags()
    topics = list(dict.fromkeys(topic for topic, _, _ in rows_given))
    for topic in topics:
        out.format(f"{topic}:uint64_t timestamp;int32_t value;int32_t {name};")
    for number, topic in enumerate(topics):
        out.subscribe(topic, number)
    for topic, time, value in rows_given:
        out.data(topics.index(topic), struct.pack("<Qii", time, value, -value))
    return out.bytes()


def rows(topic: str, times: Iterable[int]) -> list[Row]:
    """Return a numbered row for each time."""
    return [(topic, time, n) for n, time in enumerate(times)]


def steady(count: int = 300, channels: int = 3, period: int = 10 * MS, start: int = 5 * SECOND) -> list[Row]:
    """Return rows of periodic channels ``a``, ``b`` … by time; the values of a channel differ."""
    names = "abcdefgh"[:channels]
    return [(name, start + n * period + k, n) for n in range(count) for k, name in enumerate(names)]


def moved(rows: Iterable[Row], since: int, by: int, topics: str = "abcdefgh") -> list[Row]:
    """Return the rows with *by* us added to the times of some topics from row *since* on."""
    return [(t, time + by if n >= since and t in topics else time, v) for n, (t, time, v) in enumerate(rows)]
