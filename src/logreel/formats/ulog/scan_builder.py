"""Build the Scan of a ULog from what reading found: channels, times, segments.

``save`` and ``restore`` keep what was found in an index sidecar. Every stored value is checked against the log, and
``IndexComparison`` compares bytes with their digests when they are used.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from logreel.dataclass import NamedTuple, asdict, replace
from logreel.errors import CHANGED, DefinitionError, Finding, Problem, UnsupportedError
from logreel.formats.ulog import clock, records
from logreel.formats.ulog.clock import (
    LATEST_US,
    NS_PER_US,
    UNIX_US,
    UTC_OFFSET,
    Found,
    LatestTimes,
    ShortClocks,
    Topic,
    first_jump,
)
from logreel.formats.ulog.definitions import Definitions, parse_format
from logreel.formats.ulog.non_data_records import (
    LogTimes,
    NonDataRecords,
    SyntheticChannel,
    TimeRule,
    synthetic_channels,
    synthetic_messages,
    synthetic_offsets,
    text_lines,
)
from logreel.formats.ulog.reader import Reader, read
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, BadRecord
from logreel.index.block_table import TIME_MAX, Blocks
from logreel.index.channel_index import ChannelRules, FieldAt
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, without
from logreel.io.source import FILE, Chunks, Source
from logreel.kernels import block_table
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.log import Log
from logreel.log.scan import ChannelInfo, Parameter, Saved, Scan, ScanPart, Schema, Segment, TextLine
from logreel.log.times import duration_text


def save(content: Found) -> Saved:
    """Return *content* as plain data and arrays, from which ``restore`` builds it."""
    plain = {
        "version": content.version,
        "begin": content.begin,
        "topics": [[t.name, t.instance, t.segment, t.raw] for t in content.topics],
        "segments": content.segments,
        "segment_us": content.segment_us,
        "own_definitions": content.own_definitions,
        "appended": content.appended,
        "problems": [asdict(p) for p in content.problems],
    }
    arrays = {
        "base": content.blocks.base,
        "start": content.blocks.start,
        "entry": content.blocks.entry,
        "parsed": np.array(content.parsed, np.int64),
        "notes": content.notes,
    }
    return Saved(plain, arrays)


def restore(source: Source, saved: Saved) -> Found | None:
    """Return what was saved, or None if anything in it does not fit the log."""
    try:
        return _restore(source, saved.plain, saved.arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, BadRecord, DefinitionError):
        return None


def _restore(source: Source, plain: dict[str, Any], arrays: Any) -> Found | None:
    base, start, entry, parsed, notes = (arrays[k] for k in ("base", "start", "entry", "parsed", "notes"))
    if (entry.dtype, entry.ndim) != (np.uint32, 1) or start.shape != (len(base), len(plain["topics"]) + 1):
        return None
    if any(a.dtype != np.int64 for a in (base, start, parsed, notes)) or any(
        a.ndim != 1 for a in (base, parsed, notes)
    ):
        return None
    if not (_are_records(source, parsed, records.PARSED) and _are_records(source, notes, records.NOTED)):
        return None
    segments, segment_us = ([int(n) for n in plain[key]] for key in ("segments", "segment_us"))
    own = [bool(b) for b in plain["own_definitions"]]
    if not (len(segments) == len(segment_us) == len(own)) or segments[0] != 0 or segments != sorted(segments):
        return None
    definitions = _definitions(source, parsed, segments, own)
    topics = [
        _topic(str(n), int(i), int(s), definitions[int(s) - 1], bool(r)) for n, i, s, r in plain["topics"]
    ]
    if not all(0 <= t.instance < 256 and 1 <= t.segment <= len(segments) for t in topics):
        return None
    least = [0 if t.raw else _least(t) for t in topics]
    if (np.diff(base) < 0).any() or len({t.channel_name for t in topics}) < len(topics):
        return None
    if not block_table.is_valid_table(
        start, base, entry, np.array([*least, 0], np.int64), DATA_HEAD, source.size
    ):
        return None
    blocks = Blocks(base, np.full(len(base), FILE, np.int32), start, entry)
    problems = [
        Problem(str(p["code"]), int(p["offset"]), int(p["size"]), bool(p["lost"]), str(p["text"]))
        for p in plain["problems"]
    ]
    return Found(
        int(plain["version"]),
        int(plain["begin"]),
        topics,
        blocks,
        parsed.tolist(),
        notes,
        segments,
        segment_us,
        own,
        [int(n) for n in plain["appended"]],
        problems,
    )


class IndexComparison:
    """Compares bytes of a log with the digests of when its index was made, before messages in them are used.

    Where they differ, the problems of the log as it is now are added to *found.problems*; damage of which the log
    itself shows nothing is a problem ``changed``, too.
    """

    def __init__(self, source: Source, content: Found) -> None:
        self._source, self._found = source, content
        #: Damage that the log shows now, once it was looked for.
        self._lost: list[Problem] | None = None

    def blocks(self, rows: I64) -> None:
        """Compare the blocks *rows* of the block table."""
        if self._source.digests is not None:
            base = np.append(self._found.blocks.base, self._source.size)
            self._compare(base[rows], base[rows + 1])

    def records(self, positions: I64) -> None:
        """Compare the records at *positions*."""
        if self._source.digests is not None and len(positions):
            size = self._source.data[positions].astype(np.int64)
            size |= self._source.data[positions + 1].astype(np.int64) << 8
            self._compare(positions, positions + HEAD + size)

    def _compare(self, start: I64, stop: I64) -> None:
        digests = self._source.digests
        for offset, size in digests.changed(start, stop) if digests is not None else ():
            if self._lost is None:
                self._lost = [problem for problem in read(self._source).problems if problem.lost]
                known = set(self._found.problems)
                self._found.problems.extend(problem for problem in self._lost if problem not in known)
                self._found.problems.append(CHANGED)
            if not any(p.offset < offset + size and p.offset + p.size > offset for p in self._lost):
                text = f"some of {size} bytes are not what they were when the index was made"
                self._found.problems.append(Problem("changed", offset, size, True, text))


def _are_records(source: Source, positions: I64, letters: bytes) -> bool:
    """Return whether a whole record of one of the kinds *letters* with a valid size is at each of the *positions*."""
    if not len(positions):
        return True
    if positions.min() < FILE_HEADER or positions.max() > source.size - HEAD:
        return False
    data, table = source.data, records.noted_table()
    size = data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8
    letter = data[positions + 2]
    if (positions + HEAD + size > source.size).any():
        return False
    row = table[letter]
    least, low, high = row["least"], row["first_least"], row["first_most"]
    # Unknown kinds are noted too, and may be empty; their row of the table is zero.
    known = row["action"] != 0
    first = data[np.minimum(positions + HEAD, source.size - 1)]
    fits = (
        (size >= least) & (first >= low) & (first <= high) & np.isin(letter, np.frombuffer(letters, np.uint8))
    )
    return bool((fits | ~known).all() and (np.diff(positions) > 0).all())


def _definitions(source: Source, parsed: I64, segments: list[int], own: list[bool]) -> list[Definitions]:
    """Parse the definitions that hold in each segment."""
    by_segment = [Definitions()]
    for fresh in own[1:]:
        by_segment.append(Definitions() if fresh else by_segment[-1])
    for at in parsed.tolist():
        size = int.from_bytes(source.read(at, 2), "little")
        payload = source.read(at + HEAD, size)
        if source.data[at + 2] == ord("F"):
            by_segment[bisect.bisect_right(segments, at) - 1].add(parse_format(payload))
        elif chr(source.data[at + 2]) in "IPMQ":
            records.match_key(
                payload, int(chr(source.data[at + 2]) in "MQ"), chr(source.data[at + 2]) in "PQ"
            )
    return by_segment


def _topic(name: str, instance: int, segment: int, definitions: Definitions, raw: bool) -> Topic:
    if raw:
        return Topic(name, instance, segment, definitions, None, True)
    return Topic(name, instance, segment, definitions, definitions.extent(name).stamp, False)


def _least(topic: Topic) -> int:
    return topic.definitions.extent(topic.name).least


#: Messages are stamped up to this long before they are logged, ns.
EARLY_NS = 10**9


def log_times(others: NonDataRecords, chunks: Chunks, blocks: Blocks) -> LogTimes:
    """Work out the times of a log in two steps.

    Full timestamps give the bounds and the latest data times, from which the times of all other channels follow. Only a
    log without any full timestamp has its bounds from these others.

    blocks  columns: the channels of the log, then synthetic ones
    """
    content, topics = others.found, others.found.channels
    header_us = content.segment_us[content.main_segment - 1]
    in_main = [i for i, t in enumerate(topics) if t.segment == content.main_segment]
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
    is_empty = not stamps and not any(content.topic_counts)
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
    content, others = dict[int, I64](), times.others.found
    if times.start is None or times.end is None:
        return content
    for number, topic in enumerate(others.channels):
        if topic.segment != others.main_segment or not index.count(number):
            continue
        time = index.times(number)
        outside = (time < times.start - EARLY_NS) | (time > times.end)
        if outside.any():
            # Not later than messages that follow in the channel, so that its messages stay in their order.
            later = np.minimum.accumulate(np.where(outside, TIME_MAX, time)[::-1])[::-1]
            logged = times.latest_times.before(index.offsets(number)[outside])
            content[number] = time.copy()
            content[number][outside] = np.minimum(logged, later[outside])
    return content


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
    receivers = [
        gnss
        for number, topic in enumerate(others.found.channels)
        if topic.name in GPS_TOPICS and not topic.raw and topic.segment == 1
        if (gnss := _by_topic(index, number, topic)) is not None
    ]
    return max(receivers, key=lambda gnss: (gnss.has_fix, gnss.messages), default=None)


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


def segment_list(content: Found, segment: Callable[[int], Scan]) -> list[Segment]:
    """Return a description of each segment; *segment* gives the Scan of one by its number."""
    described = []
    for number, offset in enumerate(content.segments, 1):
        part = segment(number)
        counts = part.index.counts
        messages = sum(
            int(counts[n]) for n, info in enumerate(part.channels) if not info.topic.startswith("~")
        )
        described.append(Segment(number, offset, part.start, part.end, messages))
    return described


def segment_found(source: Source, content: Found, number: int) -> Found:
    """Return what was found in segment *number*; its channels have names without ``@``.

    A segment without definitions of its own keeps the formats of the latest segment before it that has some, but no
    other records of that segment: they belong to another log.
    """
    begin, end = content.segments[number - 1], [*content.segments, source.size][number]
    own = content.own_definitions[number - 1]
    parsed = [at for at in content.parsed if begin <= at < end]
    if not own:
        since = max(
            at
            for at, has_own in zip(content.segments[:number], content.own_definitions, strict=False)
            if has_own
        )
        formats = [at for at in content.parsed if since <= at < begin and source.view[at + 2] == ord("F")]
        parsed = formats + parsed
    # Topics are ordered by segment.
    numbers = [n for n, topic in enumerate(content.topics) if topic.segment == number]
    first, last = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    blocks = content.blocks
    return replace(
        content,
        topics=[replace(topic, segment=1) for topic in content.topics[first:last]],
        blocks=Blocks(
            blocks.base, blocks.chunk, np.ascontiguousarray(blocks.start[:, first : last + 1]), blocks.entry
        ),
        parsed=parsed,
        notes=content.notes[(content.notes >= begin) & (content.notes < end)],
        segments=[0],
        # The header of the log before says nothing about this one.
        segment_us=[content.segment_us[number - 1] if own else 0],
        own_definitions=[own],
        appended=[],
        problems=[p for p in content.problems if begin <= p.offset < end and p.code != "segment"],
        is_segment=True,
    )


#: Bytes of the flag bits record that every writer writes.
_FLAGS = HEAD + 40
_RAW = Layout(Struct((Field("data", Rest()),)), "raw")


def scan(source: Source, content: Found) -> Scan:
    """Return the Scan of a whole file, which gives access to its segments if there are several."""
    all_segments = scan_segment(source, content)
    if len(content.segments) < 2:
        return all_segments

    def segment(number: int) -> Scan:
        return replace(scan_segment(source, segment_found(source, content, number)), saved=None)

    return replace(all_segments, segments=lambda: segment_list(content, segment), segment=segment)


def scan_segment(source: Source, content: Found) -> Scan:
    """Return the Scan of what was found in a file, or in one of its segments."""
    others = NonDataRecords(source, content)
    synthetic = synthetic_channels(others)
    blocks = content.blocks
    if len(content.channels) < len(content.topics) or synthetic:
        blocks = blocks.reshaped(content.channel_topics, len(synthetic))
    chunks = Chunks(source)
    times = log_times(others, chunks, blocks)
    rules = [ChannelRules(*pair) for pair in zip(times.rules, _payload_sizes(others), strict=True)]
    rules += [ChannelRules(FieldAt(0, 8), 0, synthetic=len(channel.offsets)) for channel in synthetic]
    compared = IndexComparison(source, content) if source.digests is not None else None

    def parameters() -> list[Parameter]:
        if compared is not None:
            compared.records(np.array(content.parsed, np.int64))
        return others.keyed.parameters(times.of_records)

    def text() -> list[TextLine]:
        if compared is not None:
            compared.records(others.texts)
        return text_lines(others, index)

    resolve, compare = (None, None) if compared is None else (compared.blocks, compared.records)
    build = partial(synthetic_messages, others, synthetic, times, compare)
    index = MessageIndex(chunks, blocks, rules, build, resolve)
    has_wall_clock = content.segment_us[content.main_segment - 1] >= UNIX_US
    clock = cache(lambda: Utc(0) if has_wall_clock else utc(others, index))
    return Scan(
        version=str(content.version),
        epoch="unix" if has_wall_clock else "boot",
        start=times.start,
        end=times.end,
        channels=[*map(_channel_info, content.channels), *map(_synthetic_info, synthetic)],
        index=index,
        problems=content.problems,
        metadata=others.keyed.metadata,
        attachments=others.keyed.attachments,
        parameters=parameters,
        text=text,
        utc_offset=lambda: clock().offset,
        utc_notes=lambda: clock().notes,
        saved=save(content),
        verify=partial(_verify, others, index),
        logged_times=partial(logged_times, times, index),
        format_state=others,
        part=partial(_part, others, lambda: clock().offset),
    )


def _part(others: NonDataRecords, utc_offset: Callable[[], int | None], selected: ScanPart) -> Scan:
    """Return the Scan of a part of a log, with definitions, information and the initial parameters of all of it."""
    content, index = others.found, selected.index
    synthetic = synthetic_offsets(others)
    left_out, wanted = [np.zeros(0, np.int64)], [others.initial_parameters]
    for number, positions in synthetic.items():
        left_out.append(positions)
        messages = index.synthetic(number) if number in selected.shown else None
        if messages is not None and messages.place is not None:
            wanted.append(messages.place)
    subscriptions = [at for at, n in others.subscriptions() if n is None or n not in selected.shown]
    left_out.append(np.array(subscriptions, np.int64))
    removed = without(np.concatenate(left_out), np.concatenate(wanted))
    topics = [n for number, n in enumerate(content.channel_topics) if number in selected.shown]
    part = replace(
        content,
        topics=[content.topics[n] for n in topics],
        blocks=content.blocks.only(index.entries).reshaped(topics, 0),
        parsed=without(np.array(content.parsed, np.int64), removed).tolist(),
        notes=without(content.notes, removed),
        problems=list(content.problems),
    )
    if selected.begins is None:
        return scan_segment(others.source, part)
    main, start_us = part.main_segment - 1, list(part.segment_us)
    begins = selected.begins()
    if begins is not None and begins >= 0 and (start_us[main] >= UNIX_US) == (begins // NS_PER_US >= UNIX_US):
        start_us[main] = begins // NS_PER_US
    scan = scan_segment(others.source, replace(part, segment_us=start_us))
    return replace(scan, utc_offset=utc_offset, utc_notes=tuple)


def _verify(others: NonDataRecords, index: MessageIndex) -> Iterator[Finding]:
    from logreel.formats.ulog.verify import verify

    return verify(others, index)


def _channel_info(topic: Topic) -> ChannelInfo:
    if topic.raw:
        return ChannelInfo(topic.channel_name, Schema(topic.name, "ulog"), lambda: _RAW)
    definitions, name = topic.definitions, topic.name
    schema = Schema(name, "ulog", definitions.text(name))
    layout = partial(definitions.layout, name)
    return ChannelInfo(topic.channel_name, schema, layout, {"multi_id": topic.instance})


def _synthetic_info(channel: SyntheticChannel) -> ChannelInfo:
    schema = Schema(channel.kind[1:], "ulog")
    return ChannelInfo(channel.topic, schema, partial(Layout, channel.root, channel.topic))


def _payload_sizes(others: NonDataRecords) -> list[int | FieldAt]:
    """Return the size rule of each channel that is not synthetic: one number if all its messages have that size.

    A message may contain its trailing padding or not. If no message does, the size of the file follows from the number
    of messages, and only then; this comparison saves reading the size of every message.
    """
    content, data = others.found, others.source.data
    if content.is_growing:
        # Comparing would read all other records again whenever the file has grown.
        return [FieldAt(-DATA_HEAD, 2, 1, -2)] * len(content.channels)
    least = [0 if t.raw else t.definitions.extent(t.name).least for t in content.topics]
    positions = np.concatenate([content.notes, np.array(content.parsed, np.int64)])
    lengths = data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8
    messages = np.array(content.topic_counts, np.int64) * (np.array(least, np.int64) + DATA_HEAD)
    size_without_padding = content.begin + int((lengths + HEAD).sum()) + int(messages.sum())
    if not content.problems and size_without_padding == others.source.size:
        return [least[i] for i in content.channel_topics]
    return [FieldAt(-DATA_HEAD, 2, 1, -2)] * len(content.channels)


class UlogGrowing:
    """The Growing of one ULog."""

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._flags = b""
        self._blocks_checked = 0

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        flags = source.read(FILE_HEADER, _FLAGS)
        has_flags, size = flags[2:3] == b"B", int.from_bytes(flags[:2], "little")
        if len(flags) < HEAD or (has_flags and source.size < FILE_HEADER + HEAD + size):
            raise UnsupportedError("the file ends inside its header", path=source.name)
        # Appending writes the position of the appended data into the flags.
        if self._reader is None or (has_flags and flags != self._flags):
            self._reader, self._flags, self._blocks_checked = Reader(source), flags, 0
        if not self._reader.feed(source):
            return None
        content = self._reader.found()
        if len(content.blocks.base) > self._blocks_checked + 1:
            self._blocks_checked = len(content.blocks.base)
            if first_jump(source, content) is not None:
                # Another log begins there: rare, and only in files that are not written at the moment.
                self._reader = None
                return None
        return replace(scan(source, content), saved=None)


def share(logs: Sequence[Log], shifts: Sequence[int]) -> list[Log]:
    """Return the logs, of which only the first has the initial values and defaults of parameters as messages."""
    first, *others = logs
    return [first, *map(_without_initial_parameters, others)]


def _without_initial_parameters(log: Log) -> Log:
    rows = {
        ch.number: partial(_later_changes, log, ch.topic)
        for ch in log.channels.values()
        if ch.topic.split("@")[0] == "~parameter"
    }
    return log.derive(index=log.index.with_synthetic_rows(rows))


def _later_changes(log: Log, topic: str) -> I64:
    """Return the rows of a channel ``~parameter`` that are no initial values or defaults."""
    state = log.format_state
    offsets = next(synthetic.offsets for synthetic in synthetic_channels(state) if synthetic.topic == topic)
    return np.flatnonzero(~np.isin(offsets, state.initial_parameters))
