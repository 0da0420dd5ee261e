"""Tracks of the valid positions of a log, cut at long gaps and jumps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from xml.sax.saxutils import escape

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import LogError
from logreel.lenses import Fixes
from logreel.log.log import Channel
from logreel.log.times import utc_shift, utc_text
from logreel.meaning.tracks import Track, length_text, segments, valid_fixes
from logreel.outputs.job import Job, SkipCounter
from logreel.outputs.registry import readers

_UNKNOWN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Point:
    """A position: degrees, metres (None without altitude), time in RFC 3339 (None if UTC is not known).

    more  what else is known of it, by name: hdop, vdop, accuracy (m), speed (m/s), course and heading (degrees)
    """

    latitude: float
    longitude: float
    altitude: float | None
    time: str | None
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FixedTrack:
    """The positions of one channel, sorted by time.

    type      name of its schema
    segments  parts without gaps, none of them empty
    shift     ns to add for UTC; None if it is not known
    """

    topic: str
    type: str
    segments: list[Fixes]
    shift: int | None

    @property
    def is_of_pictures(self) -> bool:
        """Whether a camera took a picture at each of the positions, so that they are no line."""
        return self.segments[0].number is not None

    def pictures(self) -> Iterator[tuple[int, Point]]:
        """Yield number and position of each picture of a camera."""
        for segment in self.segments:
            if segment.number is not None:
                yield from zip(segment.number.tolist(), self.points(segment), strict=True)

    def points(self, segment: Fixes) -> Iterator[Point]:
        """Yield the positions of one segment."""
        columns = (segment.latitude, segment.longitude, segment.altitude, segment.time)
        more = qualities(segment)
        for n, (lat, lon, alt, time) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            wall = None if self.shift is None else utc_text(time + self.shift, 6)
            own = {name: values[n] for name, values in more.items() if isfinite(values[n])}
            yield Point(lat, lon, alt if isfinite(alt) else None, wall, own)


def qualities(fixes: Fixes) -> dict[str, list[float]]:
    """Return what is known of positions besides their place, by name; NaN where it is not, nothing if it never is."""
    quality = fixes.quality
    if quality is None:
        return {}
    values = {
        "hdop": quality.hdop,
        "vdop": quality.vdop,
        "accuracy": quality.accuracy,
        "speed": quality.speed,
        "course": quality.course,
        "heading": np.degrees(quality.heading) % 360,
    }
    return {name: column.tolist() for name, column in values.items() if np.isfinite(column).any()}


def left_out(track: FixedTrack, written: Collection[str]) -> dict[str, None]:
    """Return the names, as in ``qualities``, of what is known of positions of *track* and not among *written*."""
    known = (name for segment in track.segments for name in qualities(segment))
    return dict.fromkeys(name for name in known if name not in written)


def note_left_out(job: Job, names: Collection[str], form: str) -> None:
    """Note in *job* that *form* cannot hold what *names* say."""
    if names:
        job.notes.append(f"{form} has no place for {', '.join(names)} of positions")


def tracks(job: Job) -> Iterator[FixedTrack]:
    """Yield the tracks of all channels of *job* with positions.

    Counts written positions and reports skipped ones to *job*. Raises LogError at the end if there were positions, but
    none was valid.
    """
    shift = utc_shift(job.log)
    for ch in job.channels:
        for read in readers(ch, "fixes"):
            good = noted_valid(job, ch, read(ch, job.start, job.end, quality=True))
            if len(good):
                if jumps := Track.of_fixes(good).way.jumps:
                    cut = f"{len(jumps)} jump{'s' * (len(jumps) > 1)} of up to {length_text(jumps[0].metres)}"
                    job.notes.append(f"the track of {ch.topic!r} is cut at {cut}")
                yield FixedTrack(ch.topic, ch.schema.name, list(segments(good)), shift)
                job.rows[ch.topic] = len(good)
        job.advance(len(ch))
    if job.notes and not job.rows:
        raise LogError(f"no position is valid: {'; '.join(job.notes[:3])}", path=job.log.name)
    if shift is None:
        job.notes.append("the tracks have no times, as the log does not tell how its clock relates to UTC")


def noted_valid(job: Job, ch: Channel, fixes: Fixes) -> Fixes:
    """Return the valid ones of *fixes*, sorted by time; note in *job* how many others of *ch* there are, and why."""
    good, left_out = valid_fixes(fixes)
    for reason, count in left_out.items():
        job.notes += SkipCounter(count, reason).sentences("position", f"of {ch.topic!r} left out")
    return good


def xml_text(text: str) -> str:
    """Return *text* escaped for XML elements and attributes; forbidden characters become U+FFFD."""
    return escape(_UNKNOWN.sub("\ufffd", text), {'"': "&quot;"})


def degrees(value: float) -> str:
    """Return degrees with 9 decimals (0.1 mm) and no exponent."""
    return _decimal(value, 9)


def metres(value: float) -> str:
    """Return metres with 3 decimals and no exponent."""
    return _decimal(value, 3)


def _decimal(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
