"""Sections of a summary about lines of text: the severe ones, events, and checks that fail; each sentence once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logreel.errors import LogError
from logreel.lenses.charts import Band
from logreel.lenses.meaning import WARNING, Fact, Section, since_start
from logreel.log.log import Log
from logreel.log.scan import TextLine
from logreel.ops.inspect.text import level_counts, level_name

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
    found: dict[tuple[str, str], Sentence] = {}
    for line in lines:
        key = (line.text.strip(), line.source)
        one = found.get(key)
        if one is None:
            found[key] = Sentence(*key, line.level, line.time, line.time)
            continue
        one.count += 1
        one.first, one.last = min(one.first, line.time), max(one.last, line.time)
        if line.level is not None and (one.level is None or line.level < one.level):
            one.level = line.level
    return sorted(found.values(), key=lambda one: one.first)


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
    found = sorted(sentences(lines), key=lambda one: NO_LEVEL if one.level is None else one.level)
    for number, one in enumerate(found[:LISTED], 1):
        yield _told(f"line_{number}", one, log, one.level)
    yield from _rest(found)


def _events(lines: Iterable[TextLine], log: Log) -> Iterator[Fact]:
    found = sentences(lines)
    for number, one in enumerate(found[:LISTED], 1):
        yield _told(f"event_{number}", one, log, None)
    yield from _rest(found)


def _told(key: str, one: Sentence, log: Log, level: int | None) -> Fact:
    times = f" ({one.count} times, until {since_start(one.last, log)})" if one.count > 1 else ""
    return Fact(key, since_start(one.first, log), one.value(), one.text + times, level=level)


def _checks(lines: Sequence[TextLine], log: Log, bands: Sequence[Band]) -> Iterator[Fact]:
    """Yield the checks that failed; those that began to fail while the vehicle was armed deserve attention."""
    armed = [band for band in bands if band.kind == "armed"]
    began = {
        (line.text.strip(), line.source)
        for line in lines
        if not line.repeated and any(band.start < line.time < band.end - DISARMED_NS for band in armed)
    }
    found = sentences(lines)
    for number, one in enumerate(found[:LISTED], 1):
        reports = "1 report" if one.count == 1 else f"{one.count} reports"
        times = since_start(one.first, log)
        if one.count > 1:
            times += f" to {since_start(one.last, log)}"
        is_new = (one.text, one.source) in began
        text = f"{level_name(one.level)}, {times}, in {reports}".removeprefix(", ")
        if is_new:
            text += ", began while armed"
        value = {**one.value(), "began_while_armed": is_new}
        yield Fact(
            f"check_{number}",
            one.text,
            value,
            text,
            level=one.level if is_new and (one.level or 0) <= WARNING else None,
            note="each report lists all checks that fail at its time",
        )
    yield from _rest(found)


def _rest(found: Sequence[Sentence]) -> Iterator[Fact]:
    if len(found) > LISTED:
        more = len(found) - LISTED
        yield Fact("more", "more", more, f"{more} more; 'logreel text' lists all")
