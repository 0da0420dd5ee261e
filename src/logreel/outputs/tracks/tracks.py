"""Positions of a log as tracks: what is no position left out, cut where there was none for long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from xml.sax.saxutils import escape

import numpy as np

from logreel.errors import LogError
from logreel.lenses import Fixes
from logreel.log.times import SECOND, utc_shift, utc_text
from logreel.outputs.job import Job, LeftOut
from logreel.outputs.registry import readers

#: A track is cut where nothing came for longer than both: so many ns, so many usual periods.
GAP_NS, GAP_PERIODS = 10 * SECOND, 5
_UNKNOWN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Point:
    """One position: degrees, metres (None where it has no altitude), RFC 3339 (None where UTC is not known)."""

    latitude: float
    longitude: float
    altitude: float | None
    time: str | None


@dataclass(frozen=True, slots=True)
class Track:
    """The positions of one channel by time.

    type      of its messages
    segments  parts without a gap, none of them empty
    shift     ns to add to a time to have UTC, None where that is not known
    """

    topic: str
    type: str
    segments: list[Fixes]
    shift: int | None

    def points(self, segment: Fixes) -> Iterator[Point]:
        """The positions of one of the segments."""
        columns = (segment.latitude, segment.longitude, segment.altitude, segment.time)
        for lat, lon, alt, time in zip(*(c.tolist() for c in columns), strict=True):
            wall = None if self.shift is None else utc_text(time + self.shift, 6)
            yield Point(lat, lon, alt if isfinite(alt) else None, wall)


def tracks(job: Job) -> Iterator[Track]:
    """The tracks of all channels of *job* that hold positions, one after the other.

    Counts what is written and notes what is left out. Raises LogError at the end if there were positions, but none
    was valid.
    """
    shift = utc_shift(job.log)
    for ch in job.channels:
        for read in readers(ch, "fixes"):
            good, why = valid(read(ch, job.start, job.end))
            for left in why:
                job.notes += left.told("position", f"of {ch.topic!r} left out")
            if len(good):
                yield Track(ch.topic, ch.schema.name, list(segments(good)), shift)
                job.rows[ch.topic] = len(good)
        job.went(len(ch))
    if job.notes and not job.rows:
        raise LogError(f"no position is valid: {'; '.join(job.notes[:3])}", path=job.log.name)
    if shift is None:
        job.notes.append("the tracks have no times, as the log does not tell how its clock relates to UTC")


def valid(fixes: Fixes) -> tuple[Fixes, list[LeftOut]]:
    """The rows that are positions, by time, and how many are not, for each reason."""
    good, why = np.ones(len(fixes), np.bool_), []
    for reason, rows in fixes.faults().items():
        why.append(LeftOut(int(np.count_nonzero(rows & good)), reason))
        good &= ~rows
    found = fixes.take(good)
    return found.take(np.argsort(found.time, kind="stable")), why


def segments(fixes: Fixes) -> Iterator[Fixes]:
    """Parts of *fixes*, which are in order: cut at gaps, and where the way crosses 180° of longitude."""
    # As unsigned numbers, so that stamps from one end of int64 to the other cannot overflow.
    steps = fixes.time[1:].view(np.uint64) - fixes.time[:-1].view(np.uint64)
    usual = float(np.median(steps)) if len(steps) else 0.0
    apart = (steps > max(GAP_NS, GAP_PERIODS * usual)) | (np.abs(np.diff(fixes.longitude)) > 180)
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(fixes)]
    for first, last in pairwise(edges):
        yield fixes.take(slice(first, last))


def xml_text(text: str) -> str:
    """*text* as XML can hold it, in elements and in attributes; characters that XML forbids become U+FFFD."""
    return escape(_UNKNOWN.sub("\ufffd", text), {'"': "&quot;"})


def degrees(value: float) -> str:
    """Degrees with 9 decimals, a tenth of a millimetre, and no exponent."""
    return _decimal(value, 9)


def metres(value: float) -> str:
    """Metres with 3 decimals and no exponent."""
    return _decimal(value, 3)


def _decimal(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
