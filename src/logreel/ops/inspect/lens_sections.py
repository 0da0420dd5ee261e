"""Sections of a summary that any format can have: robots, sensors, pictures, tracks, transforms, pauses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from logreel.errors import LogError
from logreel.lenses import (
    Image,
    Imu,
    Joints,
    LaserScan,
    Lens,
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
from logreel.lenses.facts import WARNING, Fact, Section, since_start
from logreel.log.log import Channel, Log
from logreel.log.times import duration_text
from logreel.meaning.frames import links_of, roots_of
from logreel.meaning.tracks import Track, Way, is_of_robot, track_of
from logreel.ops.inspect.stats import channel_stats

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
    known = (*ROLES, Text, Transform, *left_out)
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
