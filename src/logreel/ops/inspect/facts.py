"""What was recorded, by what and when, as pairs of label and value for the head of a page."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from logreel.errors import LogError
from logreel.log.log import Log
from logreel.log.times import duration_text, utc_shift, utc_text
from logreel.registry.registry import meaning_of

#: Facts of the first section of the summary that are shown, and the longest text of one.
FACTS, LONGEST = 6, 80


def facts(log: Log) -> list[tuple[str, str]]:
    """Return label and value of what *log* says of its recording: start, duration, format, and what recorded it."""
    shift = utc_shift(log)
    found: list[tuple[str, str]] = []
    if log.start is not None and shift is not None:
        found.append(("Start", utc_text(log.start + shift, 0).replace("T", " ").replace("Z", " UTC")))
    found += [("Duration", duration_text(log.duration)), ("Format", f"{log.format} {log.version}".strip())]
    return [*found, *recorded_by(log)]


def recorded_by(log: Log) -> list[tuple[str, str]]:
    """Return label and value of what *log* says of the robot, vehicle or world: the first section of its summary."""
    with suppress(LogError):
        for section in islice(meaning_of(log), 1):
            short = [fact for fact in section if len(fact.text) <= LONGEST]
            return [(fact.label.capitalize(), fact.text) for fact in short[:FACTS]]
    return []
