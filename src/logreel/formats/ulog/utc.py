"""The UTC offset of a ULog: from information records, or else from GPS messages."""

from __future__ import annotations

import numpy as np

from logreel.formats.ulog.clock import LATEST_US, NS_PER_US, UTC_OFFSET
from logreel.formats.ulog.found import Topic
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.index.message_index import MessageIndex
from logreel.index.rules import FieldAt

#: Topics whose messages have the field ``time_utc_usec``.
GPS_TOPICS = ("vehicle_gps_position", "sensor_gps")


def utc_offset(others: NonDataRecords, index: MessageIndex) -> int | None:
    """Return the ns to add to times since boot to get UTC, or None if the log does not say."""
    values = {e.key.name: e.value for e in reversed(others.keyed.entries) if e.kind == "I"}
    offset = values.get(UTC_OFFSET)
    if isinstance(offset, int) and abs(offset) < LATEST_US * NS_PER_US:
        return offset
    boot = values.get("boot_time_utc_us")
    if isinstance(boot, int) and 0 < boot < LATEST_US:
        return boot * NS_PER_US
    for number, topic in enumerate(others.found.channels):
        if topic.name in GPS_TOPICS and not topic.raw and topic.segment == 1:
            offset = _offset_from_gps(index, number, topic)
            if offset is not None:
                return offset
    return None


def _offset_from_gps(index: MessageIndex, number: int, topic: Topic) -> int | None:
    """Return the offset from the first GPS message that has a UTC time; None if no message has."""
    leaf = next(
        (x for x in topic.definitions.layout(topic.name).leaves if x.path == ("time_utc_usec",)), None
    )
    if leaf is None or leaf.width != 8 or not int(index.counts[number]):
        return None
    utc = FieldAt(leaf.runs[0], 8, NS_PER_US).values(index, number)
    known = np.flatnonzero((utc > 0) & (utc < LATEST_US * NS_PER_US))
    return int(utc[known[0]] - index.times(number)[known[0]]) if len(known) else None
