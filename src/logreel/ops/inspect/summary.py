"""What happened in a recording, as sections of facts: for people, programs, reports and viewers.

Any format can have the sections on robots, sensors, pictures, tracks, transforms and pauses; others have those of
their own.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import LogError
from logreel.lenses import (
    Diagnostics,
    Image,
    Imu,
    Joints,
    LaserScan,
    Lens,
    Markers,
    OccupancyGrid,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Pose,
    Position,
    RangeScan,
    Text,
    Transform,
    lenses,
)
from logreel.lenses.facts import ERROR, WARNING, Band, Fact, Section, since_start
from logreel.log.log import Channel, Log
from logreel.log.scan import Block, Tabular, TextLine
from logreel.log.times import Time, duration_text, interval, interval_text, utc_shift, utc_text
from logreel.meaning.charts import bands
from logreel.meaning.frames import links_of, roots_of
from logreel.meaning.tracks import Track, Way, is_of_robot, track_of
from logreel.ops.inspect.stats import channel_stats
from logreel.ops.inspect.text import level_counts, level_name
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log
from logreel.registry.registry import formats, meaning_of

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Last part of the topic by convention of ROS, and field with the text.
TOPIC, FIELD = "robot_description", "data"
# Not an XML parser: a text from a log may name entities and files. No expression goes beyond one tag.
_ROBOT = re.compile(r"""<robot\b[^<>]*?\bname\s*=\s*["']([^"'<>]*)["']""")
_LINK = re.compile(r"<link\b[^<>]*\bname\s*=")
_JOINT = re.compile(r"""<joint\b[^<>]*\btype\s*=\s*["'](\w+)["']""")


def robots(channels: Iterable[Channel]) -> Iterator[Fact]:
    """Yield name, number of links and joints of the robot that the last message of each description tells."""
    for ch in channels:
        if ch.topic.rpartition("/")[2] != TOPIC:
            continue
        with suppress(LogError):
            text = ch[len(ch) - 1].decode().get(FIELD)
            if isinstance(text, str) and (fact := _robot(ch.topic, text)) is not None:
                yield fact


def _robot(topic: str, text: str) -> Fact | None:
    """Return what a URDF says, or None if *text* is none."""
    first, *others = text.split("<!--")
    plain = first + "".join(other.partition("-->")[2] for other in others)
    match = _ROBOT.search(plain)
    if match is None:
        return None
    links, joints = len(_LINK.findall(plain)), Counter(_JOINT.findall(plain))
    kinds = ", ".join(f"{count} {joint_type}" for joint_type, count in joints.most_common())
    parts = f"{links} link{'s' * (links != 1)}, {joints.total()} joint{'s' * (joints.total() != 1)}"
    return Fact(topic, topic, match[1], f"{match[1]}: {parts}" + (f" ({kinds})" if kinds else ""))


#: What channels with a lens are called; those of text and transforms have sections of their own.
ROLES: dict[type, str] = {
    Position: "position",
    Image: "pictures",
    Pose: "poses",
    Imu: "inertial unit",
    Joints: "joints",
    LaserScan: "laser scans",
    RangeScan: "laser scans",
    PackedCloud: "point clouds",
    PlainCloud: "point clouds",
    PacketCloud: "laser packets",
    OccupancyGrid: "maps of occupancy",
    Markers: "markers",
}
#: Messages come in bursts if their median period is this much shorter than their mean one.
BURSTS = 3
#: Rates are mean ones, as those of ``info`` and ``stats``; what most periods say is added if it is this much faster.
FASTER = 1.1
#: Topics without a known meaning that are listed.
TOPICS = 12
#: An interval without any message is a pause from this length on, and from this share of the log.
PAUSE_NS, PAUSE_SHARE = 10**9, 0.01
#: … and from this number of times the usual interval between messages.
PAUSE_FACTOR = 10
#: Number of intervals into which the log is divided to find pauses.
BINS = 1 << 16
#: Positions of a flight that are no track if they are fewer.
FEW = 20
#: Names of frames that are listed.
NAMES = 6

Found = list[tuple[Channel, list[Lens]]]


def by_lenses(log: Log, stated: set[str], full_log: Log | None = None) -> Iterator[Section]:
    """Yield the sections that lenses and times give; those with a key in *stated* are left out.

    full_log  the log with all channels, if *log* lacks some; pauses are those of all
    """
    channels = _filled(log)
    # Flight controllers have hundreds of topics, whose sensors and times the sections of the flight cover.
    is_flight = bool(stated & {"flight", "vehicle"})
    recognised = [] if is_flight else [(ch, lenses(ch)) for ch in channels]
    if "robot" not in stated:
        yield Section("robot", "Robot", tuple(robots(channels)))
    if "track" not in stated:
        receivers = [(ch, [lens]) for ch in channels if (lens := _receiver(ch))] if is_flight else recognised
        # That a receiver of a flight has no fix is told with its satellites.
        facts = (fact for fact in _tracks(receivers) if fact.value is not None or not is_flight)
        yield Section("track", "Track", tuple(facts))
    if not stated & {"sensors", "actors"}:
        left_out = [Image] if "pictures" in stated else []
        yield Section("sensors", "Sensors", tuple(_sensors(recognised, left_out)))
        yield Section("topics", "Other topics", tuple(_others(recognised, left_out)))
    if "transforms" not in stated and not is_flight:
        yield Section("transforms", "Transforms", tuple(_transforms(log)))
    if "pauses" not in stated:
        every = channels if full_log is None else _filled(full_log)
        backwards = () if is_flight else _backwards(every)
        yield Section("pauses", "Times", (*_pauses(log, every), *backwards))


def _filled(log: Log) -> list[Channel]:
    """Return the channels with messages, without reserved ones."""
    return [ch for ch in log.channels.values() if len(ch) and not ch.reserved]


def _receiver(ch: Channel) -> Lens | None:
    """Return the lens of the positions of *ch*, unless they are those of pictures, of a home, or of other vehicles."""
    if len(ch) < FEW:
        return None
    positions = (lens for lens in lenses(ch) if isinstance(lens, Position))
    return next(filter(is_of_robot, positions), None)


def _tracks(channels: Found) -> Iterator[Fact]:
    for ch, fitting in channels:
        for lens in fitting:
            if isinstance(lens, Position):
                with suppress(LogError):
                    yield _track(ch, lens)
                break
            if isinstance(lens, Pose) and not lens.repeated:
                with suppress(LogError):
                    yield from _poses(ch, lens)
                break


def _poses(ch: Channel, lens: Pose) -> Iterator[Fact]:
    """Yield the length of a track of poses in a frame of the robot."""
    track = track_of(ch, lens)
    if track is None or len(track) < 2 or not track.place.any():
        # A sensor that measures rotation only.
        return
    way = track.way
    yield Fact(ch.topic, ch.topic, _value(way), way.text(), "m", WARNING if way.jumps else None)


def _track(ch: Channel, lens: Position) -> Fact:
    """Return length and height of a track of positions."""
    fixes = lens.fixes(ch)
    track = Track.of_fixes(fixes)
    if not len(track):
        return Fact(ch.topic, ch.topic, None, "no position", level=WARNING)
    way = track.way
    value, text = _value(way), way.text()
    heights = track.place[:, 2]
    heights = heights[np.isfinite(heights)]
    if len(heights):
        low, high = float(heights.min()), float(heights.max())
        value |= {"lowest": low, "highest": high}
        text += (
            f", height {low:.1f} m"
            if f"{low:.1f}" == f"{high:.1f}"
            else f", height {low:.1f} to {high:.1f} m"
        )
    if len(track) < len(fixes):
        text += f", {len(fixes) - len(track)} of {len(fixes)} without a fix"
    return Fact(ch.topic, ch.topic, value, text, "m", WARNING if way.jumps else None)


def _value(way: Way) -> dict[str, Any]:
    """Return a way as JSON data."""
    return {
        "distance": way.distance,
        "path": way.length,
        "extent": way.extent,
        "still": way.still,
        "jumps": [{"start_ns": jump.start, "end_ns": jump.end, "metres": jump.metres} for jump in way.jumps],
    }


def counted(number: int, word: str) -> str:
    """Return a number with its word, such as ``1 message`` or ``5 messages``."""
    return f"{number} {word}{'s' * (number != 1)}"


def _sensors(channels: Found, left_out: Sequence[type]) -> Iterator[Fact]:
    for ch, fitting in channels:
        role = next((ROLES[type(lens)] for lens in fitting if type(lens) in ROLES), None)
        if role is not None and not any(isinstance(lens, (Text, Transform, *left_out)) for lens in fitting):
            yield _sensor(ch, role)


def _others(channels: Found, left_out: Sequence[type]) -> Iterator[Fact]:
    """Yield the topics whose meaning is not known, those with the most messages first."""
    known = (*ROLES, Diagnostics, Text, Transform, *left_out)
    rest = [ch for ch, fitting in channels if not any(isinstance(lens, known) for lens in fitting)]
    rest.sort(key=lambda ch: -len(ch))
    for ch in rest[:TOPICS]:
        type_name = f"{ch.schema.name}, " if ch.schema.name else ""
        rate = f", {ch.rate:.3g} Hz" if ch.rate and len(ch) > 2 else ""
        value = {"type": ch.schema.name, "messages": len(ch), "rate": ch.rate}
        yield Fact(ch.topic, ch.topic, value, f"{type_name}{counted(len(ch), 'message')}{rate}")
    if len(rest) > TOPICS:
        more = len(rest) - TOPICS
        yield Fact("more", "more", more, f"{counted(more, 'topic')}; 'logreel info' lists all")


def _sensor(ch: Channel, role: str) -> Fact:
    """Return number, rate and gaps of the messages of a sensor."""
    stats = channel_stats(ch)
    value = {"role": role, "messages": len(ch), "rate": stats.rate, "gaps": stats.gap_count}
    text = f"{role}, {counted(len(ch), 'message')}"
    is_steady = False
    if stats.period_ns is not None and stats.rate is not None and stats.period_ns.median > 0:
        rate = 1e9 / stats.period_ns.median
        value["median_rate"] = rate
        # Messages that come in bursts have a median period that says nothing about their rate.
        is_steady = rate < BURSTS * stats.rate
        text += f", {stats.rate:.3g} Hz"
        if not is_steady:
            text += " in bursts"
        elif rate > FASTER * stats.rate:
            text += f" on average, mostly {rate:.3g} Hz"
    level = None
    if stats.gap_count and is_steady:
        longest = max(stats.gaps, key=lambda gap: gap.end_ns - gap.start_ns)
        count = "a gap" if stats.gap_count == 1 else f"{stats.gap_count} gaps, the longest"
        text += (
            f", {count} of {duration_text(longest.end_ns - longest.start_ns)}"
            f" at {since_start(longest.start_ns, ch.log)}"
        )
        level = WARNING
    if stats.out_of_order:
        text += f", {stats.out_of_order} out of order"
    return Fact(ch.topic, ch.topic, value, text, level=level)


def _transforms(log: Log) -> Iterator[Fact]:
    """Yield the frames, and the roots of their trees: one, if no link is missing."""
    links, _ = links_of(log, poses=False, stamps=False)
    if not links:
        return
    frames = {link.child for link in links} | {parent for link in links for parent in link.parents}
    roots = roots_of(links)
    yield Fact("frames", "frames", sorted(frames), _names(sorted(frames)))
    if len(roots) > 1:
        text = f"{len(roots)} trees without a link between them, of {_names(roots)}"
        yield Fact("roots", "roots", roots, text, level=WARNING)
    elif roots:
        yield Fact("roots", "root", roots, roots[0])
    else:
        yield Fact("roots", "roots", [], "none: the links form a circle", level=WARNING)
    doubled = sorted(link.child for link in links if len(link.parents) > 1)
    if doubled:
        yield Fact("parents", "two parents", doubled, _names(doubled), level=WARNING)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more


def _pauses(log: Log, channels: Sequence[Channel]) -> Iterator[Fact]:
    """Yield the intervals in which no channel has a message."""
    if log.start is None or log.end is None or log.end - log.start < 2 * PAUSE_NS:
        return
    width = (log.end - log.start) // BINS + 1
    filled = np.zeros(BINS + 1, bool)
    long = at = np.zeros(0, np.int64)
    # Mostly, one channel says that there is no pause, for which it needs no more messages than a few in each interval.
    dense = 4 * BINS
    order = sorted(channels, key=lambda ch: (len(ch) < dense, len(ch) if len(ch) >= dense else -len(ch)))
    for ch in order:
        for times in log.index.times_in_pieces(ch.number):
            places = (times - log.start) // width
            filled[places[(places >= 0) & (places <= BINS)]] = True
        at = np.flatnonzero(filled)
        empty = np.diff(at) * width
        # A log with few messages pauses most of the time.
        usual = float(np.median(empty)) if len(empty) else 0.0
        least = max(PAUSE_NS + width, PAUSE_SHARE * (log.end - log.start), PAUSE_FACTOR * usual)
        long = np.flatnonzero(empty > least)
        is_whole = (
            len(at) > 1
            and at[0] <= least // width
            and at[-1] >= (log.end - log.start) // width - least // width
        )
        if is_whole and not len(long):
            return
    if len(long):
        spans = [[int(log.start + at[n] * width), int(log.start + at[n + 1] * width)] for n in long]
        worst = max(spans, key=lambda span: span[1] - span[0])
        text = (
            "no message for " if len(spans) == 1 else f"{len(spans)} times no message, the longest for "
        ) + f"{duration_text(worst[1] - worst[0])} from {since_start(worst[0], log)} on"
        yield Fact("pauses", "pauses", spans, text, level=WARNING)


def _backwards(channels: Sequence[Channel]) -> Iterator[Fact]:
    """Yield the channels whose times go back from one message to the next one in the file."""
    counts = {}
    for ch in channels:
        back, last = 0, None
        for times in ch.log.index.times_in_pieces(ch.number):
            back += int(np.count_nonzero(times[1:] < times[:-1]))
            back += last is not None and bool(times[0] < last)
            last = times[-1]
        if back:
            counts[ch.topic] = back
    if counts:
        listed = ", ".join(f"{name} {n} times" for name, n in list(counts.items())[:NAMES])
        more = f" and {len(counts) - NAMES} more channels" if len(counts) > NAMES else ""
        yield Fact("backwards", "time goes back", counts, listed + more, level=WARNING)


#: Sentences of each section that are listed.
LISTED = 30
#: The state of being disarmed is logged later than the checks that run at once when the vehicle disarms, ns.
DISARMED_NS = 10**8
#: Level of a line without one, for sorting.
NO_LEVEL = 8


@dataclass(slots=True)
class Sentence:
    """A line of text that was logged once or several times; *level* is the most severe one."""

    text: str
    source: str
    level: int | None
    first: int
    last: int
    count: int = 1

    def value(self) -> dict[str, object]:
        """Return the sentence as JSON data."""
        return {
            "text": self.text,
            "source": self.source,
            "level": self.level,
            "count": self.count,
            "first_ns": self.first,
            "last_ns": self.last,
        }


def sentences(lines: Iterable[TextLine]) -> list[Sentence]:
    """Return each sentence once for each source, in the order of its first time."""
    by_text: dict[tuple[str, str], Sentence] = {}
    for line in lines:
        key = (line.text.strip(), line.source)
        sentence = by_text.get(key)
        if sentence is None:
            by_text[key] = Sentence(*key, line.level, line.time, line.time)
            continue
        sentence.count += 1
        sentence.first, sentence.last = min(sentence.first, line.time), max(sentence.last, line.time)
        if line.level is not None and (sentence.level is None or line.level < sentence.level):
            sentence.level = line.level
    return sorted(by_text.values(), key=lambda sentence: sentence.first)


def text_sections(log: Log, bands: Sequence[Band], stated: set[str]) -> Iterator[Section]:
    """Yield the sections about the text of *log*; those with a key in *stated* are left out.

    bands  intervals of the log, of which those of kind ``armed`` tell which checks fail during a flight
    """
    try:
        lines = list(log.text)
    except LogError as error:
        yield Section("text", "Text", (Fact("unreadable", "text", None, error.text, level=WARNING),))
        return
    checks = [line for line in lines if line.kind == "check"]
    others = [line for line in lines if line.kind != "check"]
    severe = [line for line in others if line.level is not None and line.level <= WARNING]
    yield Section("text", "Text", (*_levels(lines), *_severe(severe, log)))
    if "events" not in stated:
        events = [
            line for line in others if line.kind == "event" and (line.level is None or line.level > WARNING)
        ]
        yield Section("events", "Events", tuple(_events(events, log)))
    yield Section("checks", "Failing checks", tuple(_checks(checks, log, bands)))


def _levels(lines: Sequence[TextLine]) -> Iterator[Fact]:
    """Yield the number of lines by level, of those that ``logreel text`` prints."""
    printed = [line for line in lines if not line.repeated]
    levels = level_counts(printed)
    if levels:
        text = ", ".join(f"{n} {level}" for level, n in levels.items())
        checks = sum(line.kind == "check" for line in printed)
        more = f"; {checks} of them {'is a check that fails' if checks == 1 else 'are checks that fail'}"
        yield Fact("levels", "lines", levels, text + (more if checks else ""))


def _severe(lines: Iterable[TextLine], log: Log) -> Iterator[Fact]:
    """Yield warnings and errors, most severe first."""
    told = sorted(
        sentences(lines), key=lambda sentence: NO_LEVEL if sentence.level is None else sentence.level
    )
    for number, sentence in enumerate(told[:LISTED], 1):
        yield _told(f"line_{number}", sentence, log, sentence.level)
    yield from _rest(told)


def _events(lines: Iterable[TextLine], log: Log) -> Iterator[Fact]:
    told = sentences(lines)
    for number, sentence in enumerate(told[:LISTED], 1):
        yield _told(f"event_{number}", sentence, log, None)
    yield from _rest(told)


def _told(key: str, sentence: Sentence, log: Log, level: int | None) -> Fact:
    times = (
        f" ({sentence.count} times, until {since_start(sentence.last, log)})" if sentence.count > 1 else ""
    )
    return Fact(key, since_start(sentence.first, log), sentence.value(), sentence.text + times, level=level)


def _checks(lines: Sequence[TextLine], log: Log, bands: Sequence[Band]) -> Iterator[Fact]:
    """Yield the checks that failed; those that began to fail while the vehicle was armed deserve attention."""
    armed = [band for band in bands if band.kind == "armed"]
    began = {
        (line.text.strip(), line.source)
        for line in lines
        if not line.repeated and any(band.start < line.time < band.end - DISARMED_NS for band in armed)
    }
    failed = sentences(lines)
    for number, sentence in enumerate(failed[:LISTED], 1):
        reports = "1 report" if sentence.count == 1 else f"{sentence.count} reports"
        times = since_start(sentence.first, log)
        if sentence.count > 1:
            times += f" to {since_start(sentence.last, log)}"
        is_new = (sentence.text, sentence.source) in began
        text = f"{level_name(sentence.level)}, {times}, in {reports}".removeprefix(", ")
        if is_new:
            text += ", began while armed"
        value = {**sentence.value(), "began_while_armed": is_new}
        yield Fact(
            f"check_{number}",
            sentence.text,
            value,
            text,
            level=sentence.level if is_new and (sentence.level or 0) <= WARNING else None,
            note="each report lists all checks that fail at its time",
        )
    yield from _rest(failed)


def _rest(told: Sequence[Sentence]) -> Iterator[Fact]:
    if len(told) > LISTED:
        more = len(told) - LISTED
        yield Fact("more", "more", more, f"{more} more; 'logreel text' lists all")


#: Start of the year 2000 in ns of Unix time, before which no log of these formats was recorded.
EARLIEST_NS = 946_684_800 * 10**9
#: Findings of each log of a file with several that are named, and the longest text of one.
TOLD, LONGEST = 3, 60


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Tabular):
    """What happened in a recording.

    path      name of the log
    format    name of its format
    start_ns, end_ns  ns of the log's clock; None if it is empty
    utc       UTC time of the start, as text; empty if unknown
    sections  facts by subject, the recording itself first; sections without facts are left out
    bands     intervals such as modes, armed, in the air
    """

    path: str
    format: str
    start_ns: int | None
    end_ns: int | None
    utc: str
    sections: tuple[Section, ...]
    bands: tuple[Band, ...]

    def __iter__(self) -> Iterator[Section]:
        return iter(self.sections)

    def __getitem__(self, key: str) -> Section:
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(section.key == key for section in self.sections)

    @property
    def findings(self) -> list[tuple[Section, Fact]]:
        """Facts that deserve attention with their sections, most severe first."""
        levelled = [
            (section, fact) for section in self.sections for fact in section if fact.level is not None
        ]
        return sorted(levelled, key=lambda pair: pair[1].level or 0)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``summary --json``, with times in ns."""
        return {
            "path": self.path,
            "format": self.format,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "utc": self.utc,
            "sections": [section.as_dict() for section in self.sections],
            "bands": [
                {"start_ns": b.start, "end_ns": b.end, "label": b.label, "kind": b.kind, "source": b.source}
                for b in self.bands
            ],
        }

    def _blocks(self) -> Iterator[Block]:
        yield Block(self.path, (), ())
        for section in self.sections:
            rows = [
                ("" if fact.level is None else "!" if fact.level >= WARNING else "!!", fact.label, fact.text)
                for fact in section
            ]
            yield Block(section.title, (), rows)

    def table(self) -> pa.Table:
        """Return the facts as a table: section, key, label, value (JSON), unit, text, level, note."""
        import pyarrow as pa

        rows = [
            {
                "section": section.key,
                "key": fact.key,
                "label": fact.label,
                "value": json.dumps(fact.value),
                "unit": fact.unit,
                "text": fact.text,
                "level": fact.level,
                "note": fact.note,
            }
            for section in self.sections
            for fact in section
        ]
        names = ("section", "key", "label", "value", "unit", "text", "level", "note")
        schema = pa.schema([pa.field(name, pa.int8() if name == "level" else pa.string()) for name in names])
        return pa.Table.from_pylist(rows, schema)


def summary(
    what: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    segment: int | None = None,
    definitions: Definitions = (),
    max_messages: int | None = None,
) -> Summary:
    """Return what happened in a recording: facts from its own words and from the topics of its format.

    what     an open Log, or anything that ``logreel.open`` takes
    topics, exclude, start, end, where  ask about a part of the log, as for ``slice``; see ``Selection``
    segment  number of one log of a file with several; see ``Log.segments``
    definitions  as for ``logreel.open``
    max_messages  bounds the memory: fields of channels with more messages are not read, nor transforms and lines of
             text of channels with more than an eighth of that; the section ``left_out`` names these channels with
             their numbers of messages. None: all are read

    Channels that cannot be decoded are left out and their problems recorded; they never raise an error here.
    """
    selection = Selection(topics, exclude, start, end, where, segment)
    with as_open_log(what, definitions) as opened, selected_log(opened, selection) as every:
        log = every
        part = ""
        if selection.has_interval:
            part = interval_text(
                opened, *interval(opened if segment is None else opened.segment(segment), start, end)
            )
        shift = utc_shift(log)
        large = {} if max_messages is None else _large(log, max_messages)
        if large:
            log = log.derive(shown={ch.number for topic, ch in log.channels.items() if topic not in large})
        has_text_left_out = any(_is_text(every[topic]) for topic in large)
        spans = tuple(bands(log))
        stated = [section for section in _stated(log) if section.facts]
        sections = [
            _recording(every, part),
            *([] if segment is not None else _logs_in_file(every)),
            *stated,
            *by_lenses(log, {section.key for section in stated}, every),
            # The lines of a format are all or none.
            *(() if has_text_left_out else text_sections(log, spans, {section.key for section in stated})),
            Section("left_out", "Left out", tuple(map(_left_out, large.items()))),
        ]
        return Summary(
            log.name,
            log.format,
            log.start,
            log.end,
            "" if shift is None or log.start is None else utc_text(log.start + shift, 3),
            tuple(section for section in sections if section.facts),
            spans,
        )


def _large(log: Log, most: int) -> dict[str, int]:
    """Return the numbers of messages of channels that have too many for a summary in bounded memory, by topic."""
    counts = {}
    for topic, ch in log.channels.items():
        if len(ch) > most or (len(ch) > most // 8 and (_is_text(ch) or _has_lens(ch, Transform))):
            counts[topic] = len(ch)
    return counts


def _is_text(ch: Channel) -> bool:
    """Return whether messages of *ch* are lines of the log's text, each of which becomes an object of Python."""
    return ch.topic.partition("[")[0] == "~text" or (
        not ch.reserved and any(_has_lens(ch, lens) for lens in (Text, Diagnostics))
    )


def _has_lens(ch: Channel, meaning: type) -> bool:
    with suppress(LogError):
        return any(isinstance(lens, meaning) for lens in lenses(ch))
    return False


def _left_out(left_out: tuple[str, int]) -> Fact:
    topic, count = left_out
    return Fact(topic, topic, count, f"{count} messages", note="too many to be read in bounded memory")


def _stated(log: Log) -> Iterator[Section]:
    """Yield the sections that the format of *log* states, up to one that cannot be read."""
    with suppress(LogError):
        yield from meaning_of(log)


def _logs_in_file(log: Log) -> Iterator[Section]:
    """Yield a section about each log of a file with several; all other sections are about the first one."""
    count = len(log.segments)
    if count < 2:
        return
    facts = [Fact("count", "logs", count, f"{count}; what follows is about the first", level=WARNING)]
    for number in range(1, count + 1):
        facts.append(_segment(log.segment(number), number))
    yield Section("segments", "Logs in the file", tuple(facts))


def _segment(log: Log, number: int) -> Fact:
    """Return when one log of a file was recorded, how long it is, and what deserves attention in it."""
    about = summary(log)
    start = f", {about.utc[:-1].replace('T', ' ')} UTC" if about.utc else ""
    text = f"{duration_text(log.duration)}{start}, {counted(log.message_count, 'message')}"
    told = [
        fact.text[:LONGEST] if section.key == "text" else f"{section.title}, {fact.label}"
        for section, fact in about.findings
    ]
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    text += f"; look at: {'; '.join(told[:TOLD])}{more}" if told else ""
    value = {
        "number": number,
        "start_ns": log.start,
        "end_ns": log.end,
        "messages": log.message_count,
        "findings": told,
    }
    return Fact(
        f"log_{number}", str(number), value, text, note=f"logreel summary --segment {number} says more"
    )


def _recording(log: Log, part: str) -> Section:
    """Return what the file itself says: format, size, time, losses; *part*: the interval looked at, or empty."""
    facts = (Fact("part", "part", part, f"{part}; times below count from its start"),) if part else ()
    return Section("recording", "Recording", (*facts, *_recording_facts(log)))


def _recording_facts(log: Log) -> Iterator[Fact]:
    fmt = formats().get(log.format)
    title = fmt.title if fmt is not None else log.format
    version = f", version {log.version}" if log.version else ""
    yield Fact("format", "format", [log.format, log.version], f"{title}{version}")
    shift = utc_shift(log)
    if log.start is None or log.end is None:
        yield Fact("messages", "messages", 0, "none", level=WARNING)
    else:
        if shift is not None:
            early = ", before there were such logs: its clock was not set"
            yield Fact(
                "start",
                "start",
                log.start,
                f"{utc_text(log.start + shift, 3)[:-1].replace('T', ' ')} UTC"
                + (early if log.start + shift < EARLIEST_NS else ""),
                "ns",
                level=WARNING if log.start + shift < EARLIEST_NS else None,
            )
        for text in log.utc_notes:
            yield Fact("utc", "UTC", text, text)
        length = log.end - log.start
        yield Fact("duration", "duration", length, duration_text(length), "ns")
        used = [ch for ch in log.channels.values() if len(ch) and not ch.reserved]
        count = sum(map(len, used))
        yield Fact("messages", "messages", count, f"{count} in {len(used)} channel{'s' * (len(used) != 1)}")
    if log.problems:
        lost = sum(problem.size for problem in log.problems if problem.lost)
        # What was lost matters more than an index that was not used.
        first = min(log.problems, key=lambda problem: not problem.lost).text
        more = f", and {len(log.problems) - 1} more" if len(log.problems) > 1 else ""
        yield Fact(
            "problems",
            "problems",
            {"count": len(log.problems), "lost_bytes": lost},
            f"{first}{more}" + (f"; {counted(lost, 'byte')} lost" if lost else ""),
            level=ERROR if lost else WARNING,
        )


def name_of(summary: Summary) -> str:
    """Return the name of the file of a summary, without its folder."""
    return os.path.basename(summary.path)
