"""Text lines of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from threading import Event
from typing import Any

from logreel.errors import UsageError
from logreel.log.growing_log import POLL
from logreel.log.log import Log
from logreel.log.scan import TextLine
from logreel.log.times import Time, interval, interval_so_far
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection

#: Syslog names of levels 0 … 7.
LEVELS = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")


def level_number(name: str) -> int:
    """Return the syslog number of a level given by name, by the beginning of its name, or by number.

    Raises UsageError for an unknown name or an ambiguous beginning.
    """
    if name.isascii() and name.isdigit() and int(name) < len(LEVELS):
        return int(name)
    fits = [i for i, level in enumerate(LEVELS) if name and level.startswith(name.lower())]
    if len(fits) != 1:
        raise UsageError(f"no level {name!r}: use one of {', '.join(LEVELS)}, or 0 to 7")
    return fits[0]


def level_name(level: int | None) -> str:
    """Return the syslog name of a level, e.g. ``error`` for 3; empty for None."""
    if level is None:
        return ""
    return LEVELS[level] if 0 <= level < len(LEVELS) else str(level)


def level_counts(lines: Iterable[TextLine]) -> dict[str, int]:
    """Return the number of lines by the name of their level, most severe first; those without a level do not count."""
    counts = Counter(line.level for line in lines if line.level is not None and 0 <= line.level < len(LEVELS))
    return {LEVELS[level]: n for level, n in sorted(counts.items())}


def text(
    log: Log,
    level: int | None = None,
    start: Time | None = None,
    end: Time | None = None,
    *,
    repeated: bool = False,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    where: str | Iterable[str] = (),
) -> Iterator[TextLine]:
    """Yield lines by time with start <= time < end.

    level  highest level number to include (7: all); lines without a level are always included
    repeated  include the checks of each report, not only those that the report before did not have
    topics, exclude, where  only text from messages that ``slice`` would copy for these
    """
    span = interval(log, start, end)
    selection = Selection(topics, exclude, where=where)
    if not selection.is_part:
        return lines_between(log, level, *span, repeated=repeated)
    with selected_log(log, selection) as part:
        return iter(list(lines_between(part, level, *span, repeated=repeated)))


def lines_between(
    log: Log, level: int | None, start: int | None, end: int | None, *, repeated: bool = True
) -> Iterator[TextLine]:
    """Yield the same as ``text`` for times in ns; the interval may lie outside of the log."""
    for line in log.text:
        if line.repeated and not repeated:
            continue
        if level is not None and line.level is not None and line.level > level:
            continue
        if (start is None or line.time >= start) and (end is None or line.time < end):
            yield line


def follow_text(
    log: Log,
    level: int | None = None,
    start: Time | None = None,
    end: Time | None = None,
    *,
    repeated: bool = False,
    poll: float = POLL,
    stop: Event | None = None,
) -> Iterator[TextLine]:
    """Yield the lines that are there by time, then new ones as the file grows; arguments as for ``text``."""
    seen = Counter[TextLine]()
    first = last = None
    is_open = (start, end) != (None, None)
    file = None
    for _ in log.changes(poll=poll, stop=stop):
        if is_open and log.start is not None:
            first, last = interval_so_far(log, start, end)
            is_open = False
        if is_open:
            continue
        if (log.name, log.replacements) != file:
            file = log.name, log.replacements
            seen.clear()
        again = Counter[TextLine]()
        for line in lines_between(log, level, first, last, repeated=repeated):
            again[line] += 1
            # The same line may be logged more than once.
            if again[line] > seen[line]:
                yield line
        seen |= again


def as_dict(line: TextLine) -> dict[str, Any]:
    """Return a line as one entry of ``text --json``."""
    return {
        "time_ns": line.time,
        "level": line.level,
        "text": line.text,
        "source": line.source,
        "kind": line.kind,
        "repeated": line.repeated,
    }
