"""Sections of a summary that any format can have: sensors, pictures, tracks, transforms, pauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

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
from logreel.lenses.base import F64
from logreel.lenses.meaning import WARNING, Fact, Section, since_start
from logreel.log.log import Channel, Log
from logreel.log.times import duration_text
from logreel.ops.inspect.stats import channel_stats

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
#: Mean radius of the Earth, m.
EARTH = 6_371_008.8
#: An interval without any message is a pause from this length on, and from this share of the log.
PAUSE_NS, PAUSE_SHARE = 10**9, 0.01
#: Number of intervals into which the log is divided to find pauses.
BINS = 1 << 16
#: Names of frames that are listed.
NAMES = 6

Found = list[tuple[Channel, list[Lens]]]


def by_lenses(log: Log, stated: set[str]) -> Iterator[Section]:
    """Yield the sections that lenses and times give; those with a key in *stated* are left out."""
    channels = [ch for ch in log.channels.values() if len(ch) and not ch.reserved]
    found = [(ch, lenses(ch)) for ch in channels]
    if "flight" not in stated and "track" not in stated:
        yield Section("track", "Track", tuple(_tracks(found)))
    # Flight controllers have hundreds of topics, whose sensors the sections of the flight cover.
    if not stated & {"sensors", "flight"}:
        left_out = [Image] if "pictures" in stated else []
        yield Section("sensors", "Sensors", tuple(_sensors(found, left_out)))
    if "transforms" not in stated:
        yield Section("transforms", "Transforms", tuple(_transforms(found)))
    if "pauses" not in stated:
        yield Section("pauses", "Pauses", tuple(_pauses(log, channels)))


def _tracks(channels: Found) -> Iterator[Fact]:
    for ch, found in channels:
        for lens in found:
            if isinstance(lens, Position):
                with suppress(LogError):
                    yield _track(ch, lens)


def _track(ch: Channel, lens: Position) -> Fact:
    """Return length and height of a track of positions."""
    fixes = lens.fixes(ch)
    sound = np.ones(len(fixes), bool)
    for wrong in fixes.faults().values():
        sound &= ~wrong
    if not sound.any():
        return Fact(ch.topic, ch.topic, None, "no position", level=WARNING)
    length = float(distances(fixes.latitude[sound], fixes.longitude[sound]).sum())
    value = {"distance": length}
    text = f"{length_text(length)} in {int(sound.sum())} positions"
    heights = fixes.altitude[sound]
    heights = heights[np.isfinite(heights)]
    if len(heights):
        value |= {"lowest": float(heights.min()), "highest": float(heights.max())}
        text += f", height {heights.min():.1f} to {heights.max():.1f} m"
    if not sound.all():
        text += f", {int((~sound).sum())} of {len(fixes)} without a fix"
    return Fact(ch.topic, ch.topic, value, text, "m")


def distances(latitude: F64, longitude: F64) -> F64:
    """Return float64[n - 1]: great-circle distances in m between positions in degrees that follow each other."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    half = np.sin(np.diff(lat) / 2) ** 2 + np.cos(lat[1:]) * np.cos(lat[:-1]) * np.sin(np.diff(lon) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1))))


def length_text(metres: float) -> str:
    """Return a length as text: ``35.2 m``, ``1.23 km``."""
    return f"{metres / 1000:.2f} km" if metres >= 1000 else f"{metres:.1f} m"


def _sensors(channels: Found, left_out: Sequence[type]) -> Iterator[Fact]:
    for ch, found in channels:
        role = next((ROLES[type(lens)] for lens in found if type(lens) in ROLES), None)
        if role is not None and not any(isinstance(lens, (Text, Transform, *left_out)) for lens in found):
            yield _sensor(ch, role)


def _sensor(ch: Channel, role: str) -> Fact:
    """Return number, rate and gaps of the messages of a sensor."""
    stats = channel_stats(ch)
    value = {"role": role, "messages": len(ch), "rate": stats.rate, "gaps": stats.gap_count}
    text = f"{role}, {len(ch)} messages"
    if stats.period_ns is not None and stats.period_ns.median > 0:
        text += f", {1e9 / stats.period_ns.median:.3g} Hz"
        value["median_rate"] = 1e9 / stats.period_ns.median
    level = None
    if stats.gap_count:
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


def _transforms(channels: Found) -> Iterator[Fact]:
    """Yield the frames, and the roots of their trees: one, if no link is missing."""
    links: set[tuple[str, str]] = set()
    for ch, found in channels:
        for lens in found:
            if isinstance(lens, Transform) and lens.frame and lens.child:
                with suppress(LogError):
                    places = lens.track(ch)
                    if places.frame is not None and places.child is not None:
                        pairs = zip(places.frame.tolist(), places.child.tolist(), strict=True)
                        links |= {(_plain(parent), _plain(child)) for parent, child in set(pairs)}
    if not links:
        return
    children = {child for _, child in links}
    frames = children | {parent for parent, _ in links}
    roots = sorted(frames - children)
    yield Fact("frames", "frames", sorted(frames), _names(sorted(frames)))
    if len(roots) > 1:
        text = f"{len(roots)} trees without a link between them, of {_names(roots)}"
        yield Fact("roots", "roots", roots, text, level=WARNING)
    elif roots:
        yield Fact("roots", "root", roots, roots[0])
    else:
        yield Fact("roots", "roots", [], "none: the links form a circle", level=WARNING)
    doubled = sorted(child for child in children if sum(c == child for _, c in links) > 1)
    if doubled:
        yield Fact("parents", "two parents", doubled, _names(doubled), level=WARNING)


def _plain(frame: str) -> str:
    """Return a name of a frame without the slash that old bags write before it."""
    return str(frame).lstrip("/")


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more


def _pauses(log: Log, channels: Sequence[Channel]) -> Iterator[Fact]:
    """Yield the intervals in which no channel has a message."""
    if log.start is None or log.end is None or log.end - log.start < 2 * PAUSE_NS:
        return
    width = (log.end - log.start) // BINS + 1
    filled = np.zeros(BINS + 1, bool)
    for ch in channels:
        at = (ch.times - log.start) // width
        filled[at[(at >= 0) & (at <= BINS)]] = True
    at = np.flatnonzero(filled)
    empty = np.diff(at) * width
    long = np.flatnonzero(empty > max(PAUSE_NS + width, PAUSE_SHARE * (log.end - log.start)))
    if len(long):
        spans = [[int(log.start + at[n] * width), int(log.start + at[n + 1] * width)] for n in long]
        worst = max(spans, key=lambda span: span[1] - span[0])
        text = (
            f"{len(spans)} without any message, the longest {duration_text(worst[1] - worst[0])}"
            f" at {since_start(worst[0], log)}"
        )
        yield Fact("pauses", "pauses", spans, text, level=WARNING)
