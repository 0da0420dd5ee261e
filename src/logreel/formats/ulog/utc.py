"""The UTC offset of a ULog: from information records and from GNSS messages, whichever is more exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logreel.formats.ulog.clock import LATEST_US, NS_PER_US, UTC_OFFSET
from logreel.formats.ulog.found import Topic
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.index.message_index import MessageIndex
from logreel.index.rules import FieldAt
from logreel.log.times import duration_text

#: Topics whose messages have the field ``time_utc_usec``.
GPS_TOPICS = ("vehicle_gps_position", "sensor_gps")
#: Information with the time of the boot by the clock of the computer, microseconds since 1970.
BOOT_TIME = "boot_time_utc_us"
#: Least value of ``fix_type`` of a receiver that knows its position, and so the time.
FIX = 2
#: Number of messages with a fix whose median is more exact than the clock of the computer at its boot.
ENOUGH = 5
#: Differences between sources that are told, ns; messages take up to a few tenths of a second to arrive.
DIFFERS = 100_000_000


class Utc(NamedTuple):
    """The ns to add to times since boot to get UTC, None if unknown, and sentences about sources that differ."""

    offset: int | None
    notes: tuple[str, ...] = ()


class _Gnss(NamedTuple):
    """Median offset of *messages* messages of *topic*, and whether these have a fix."""

    offset: int
    messages: int
    has_fix: bool
    topic: str


def utc(others: NonDataRecords, index: MessageIndex) -> Utc:
    """Return what the log says of UTC: the offset that logreel wrote, that of GNSS messages, or the boot time."""
    values = {e.key.name: e.value for e in reversed(others.keyed.entries) if e.kind == "I"}
    written = values.get(UTC_OFFSET)
    if isinstance(written, int) and abs(written) < LATEST_US * NS_PER_US:
        return Utc(written)
    gnss = _gnss(others, index)
    boot = values.get(BOOT_TIME)
    if not isinstance(boot, int) or not 0 < boot < LATEST_US:
        return Utc(None if gnss is None else gnss.offset)
    by_clock = boot * NS_PER_US
    if gnss is None:
        return Utc(by_clock)
    receiver = f"{gnss.messages} GNSS message{'s' * (gnss.messages != 1)} ({gnss.topic})"
    sources = [(by_clock, BOOT_TIME), (gnss.offset, receiver)]
    if gnss.has_fix and gnss.messages >= ENOUGH:
        sources.reverse()
    (offset, kept), (other_offset, other) = sources
    difference = other_offset - offset
    if abs(difference) < DIFFERS:
        return Utc(offset)
    order = "later" if difference > 0 else "earlier"
    return Utc(
        offset, (f"UTC is that of {kept}; by {other}, it would be {duration_text(abs(difference))} {order}",)
    )


def _gnss(others: NonDataRecords, index: MessageIndex) -> _Gnss | None:
    """Return the offset by the topic with the most messages with a fix, or else with a time; None if there is none."""
    found = [
        gnss
        for number, topic in enumerate(others.found.channels)
        if topic.name in GPS_TOPICS and not topic.raw and topic.segment == 1
        if (gnss := _by_topic(index, number, topic)) is not None
    ]
    return max(found, key=lambda gnss: (gnss.has_fix, gnss.messages), default=None)


def _by_topic(index: MessageIndex, number: int, topic: Topic) -> _Gnss | None:
    time, fix = _field(topic, "time_utc_usec", 8, NS_PER_US), _field(topic, "fix_type", 1)
    if time is None or not int(index.counts[number]):
        return None
    utc = time.values(index, number)
    is_known = (utc > 0) & (utc < LATEST_US * NS_PER_US)
    has_fix = is_known & (is_known if fix is None else fix.values(index, number) >= FIX)
    offsets = np.sort((utc - index.times(number))[has_fix if has_fix.any() else is_known])
    if not len(offsets):
        return None
    # The middle one: a mean of two would be a float, which has no ns left.
    return _Gnss(int(offsets[len(offsets) // 2]), len(offsets), bool(has_fix.any()), topic.channel_name)


def _field(topic: Topic, name: str, width: int, unit: int = 1) -> FieldAt | None:
    """Return the rule of an integer field; None if messages have no such field."""
    leaf = next((x for x in topic.definitions.layout(topic.name).leaves if x.path == (name,)), None)
    return None if leaf is None or leaf.width != width else FieldAt(leaf.runs[0], width, unit)
