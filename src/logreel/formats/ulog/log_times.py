"""Times of one ULog: its bounds, the time rule of each channel, and times for records that carry none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from logreel.formats.ulog import clock
from logreel.formats.ulog.clock import NS_PER_US, LatestTimes, ShortClocks
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.index.block_table import TIME_MAX, Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, FieldAt
from logreel.io.arrays import I64
from logreel.io.chunks import Chunks

#: Messages are stamped up to this long before they are logged, ns.
EARLY_NS = 10**9

TimeRule = FieldAt | Callable[[MessageIndex], I64]


@dataclass(frozen=True, slots=True)
class LogTimes:
    """Times of one log.

    rules         the time rule of each channel that is not synthetic
    start, end    bounds of the main segment in ns; None for a log without data
    latest_times  the latest data time before any position
    """

    rules: list[TimeRule]
    start: int | None
    end: int | None
    latest_times: LatestTimes
    others: NonDataRecords

    def of_records(self, offsets: Sequence[int] | I64) -> I64:
        """Return int64[n] ns for records that carry no time.

        For definitions that is the start of the log, for other records the latest data time before them.
        """
        at, data_phase = np.asarray(offsets, np.int64), self.others.keyed.data_phase
        return np.where(at < data_phase, np.int64(self.start or 0), self.latest_times.before(at))


def log_times(others: NonDataRecords, chunks: Chunks, blocks: Blocks) -> LogTimes:
    """Work out the times of a log in two steps.

    Full timestamps give the bounds and the latest data times, from which the times of all other channels follow. Only a
    log without any full timestamp has its bounds from these others.

    blocks  columns: the channels of the log, then synthetic ones
    """
    found, topics = others.found, others.found.channels
    header_us = found.segment_us[found.main_segment - 1]
    in_main = [i for i, t in enumerate(topics) if t.segment == found.main_segment]
    stamps = {
        i: clock.field_of(t.stamp) for i, t in enumerate(topics) if t.stamp is not None and t.has_full_stamp
    }
    # Only positions are asked here: they need no rules.
    places = MessageIndex(chunks, blocks, [])
    edges = [
        stamps[i].values(places, i, np.array(clock.edge_rows(blocks.count(i)), np.int64)).tolist()
        for i in in_main
        if i in stamps and blocks.count(i)
    ]
    is_empty = not stamps and not any(found.topic_counts)
    texts = _text_bounds(others)
    start, end = clock.bounds(edges, header_us, texts if stamps or is_empty else [])
    latest_times = LatestTimes(chunks, blocks, stamps, start, end)
    latest_mark = (end or 0) + clock.SUPPORT_NS if stamps else TIME_MAX
    rules = _time_rules(others, latest_times, latest_mark)
    if not stamps and not is_empty:
        index = MessageIndex(chunks, blocks, [ChannelRules(rule, 0) for rule in rules])
        edges = [
            index.times(i)[clock.edge_rows(blocks.count(i))].tolist() for i in in_main if blocks.count(i)
        ]
        start, end = clock.bounds(edges, header_us, texts)
    return LogTimes(rules, start, end, latest_times, others)


def logged_times(times: LogTimes, index: MessageIndex) -> dict[int, I64]:
    """Return int64[n] ns by channel number for channels with timestamps outside of the log; see ``Scan``.

    Some programs never set the timestamp; others publish once, long before the log begins. Such messages were logged
    after those that are before them in the file. Channels of other segments have times of their own.
    """
    found, others = dict[int, I64](), times.others.found
    if times.start is None or times.end is None:
        return found
    for number, topic in enumerate(others.channels):
        if topic.segment != others.main_segment or not index.count(number):
            continue
        time = index.times(number)
        outside = (time < times.start - EARLY_NS) | (time > times.end)
        if outside.any():
            # Not later than messages that follow in the channel, so that its messages stay in their order.
            later = np.minimum.accumulate(np.where(outside, TIME_MAX, time)[::-1])[::-1]
            logged = times.latest_times.before(index.offsets(number)[outside])
            found[number] = time.copy()
            found[number][outside] = np.minimum(logged, later[outside])
    return found


def _time_rules(others: NonDataRecords, latest_times: LatestTimes, latest_mark: int) -> list[TimeRule]:
    """Return the time rule of each channel: a field of the payload, a short clock, or the latest data time."""
    topics, rules = others.found.channels, list[TimeRule]()
    short = {i: t for i, t in enumerate(topics) if t.stamp is not None and not t.has_full_stamp}
    clocks = {
        segment: ShortClocks(
            {i: t.stamp for i, t in short.items() if t.stamp is not None and t.segment == segment},
            others.found.segment_us[segment - 1] * NS_PER_US,
            latest_times,
            partial(_time_marks, others, segment, latest_mark),
        )
        for segment in {t.segment for t in short.values()}
    }
    for i, topic in enumerate(topics):
        if topic.stamp is None:
            rules.append(partial(_latest_time, latest_times, i))
        elif topic.has_full_stamp:
            rules.append(clock.field_of(topic.stamp))
        else:
            rules.append(partial(clocks[topic.segment].times, i))
    return rules


def _latest_time(latest_times: LatestTimes, channel: int, index: MessageIndex) -> I64:
    return latest_times.before(index.offsets(channel))


def _text_bounds(others: NonDataRecords) -> list[int]:
    """Return the times of the first and the last logged string of the main segment, unless they are 0."""
    segment, texts = others.found.main_segment, others.texts.tolist()
    ends = (
        next((at for at in way if others.found.segment_of(at) == segment), None)
        for way in (texts, texts[::-1])
    )
    return [time for at in ends if at is not None and (time := others.string_at(at).time)]


def _time_marks(others: NonDataRecords, segment: int, latest: int) -> list[clock.TimeMark]:
    """Return the logged strings and dropouts of a segment as marks for short clocks.

    latest  later times of strings are left out: one damaged stamp would carry all later times away
    """
    strings = [clock.TimeMark(at, others.string_at(at).time, False) for at in others.texts.tolist()]
    dropouts = [clock.TimeMark(at, others.dropout_ms(at) * 10**6, True) for at in others.dropouts.tolist()]
    marks = [mark for mark in strings if mark.ns <= latest] + dropouts
    return [mark for mark in marks if others.found.segment_of(mark.offset) == segment]
