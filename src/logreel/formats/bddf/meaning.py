"""What happened on a walk: events by type and as bands, comments of the operator, signals without a valid value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.layout.numpy_columns import Column
from logreel.lenses.facts import WARNING, Band, Fact, Section, since_start
from logreel.log.log import Log
from logreel.log.scan import TextLine
from logreel.log.tables import ColumnReader

#: Comments and types of events that are listed.
LISTED = 8
#: Metadata that name the robot.
ROBOT = {
    "bosdyn:robot-serial-number": "serial number",
    "bosdyn:robot-species": "species",
    "bosdyn:robot-version": "version",
    "bosdyn:robot-computer-serial": "computer",
    "bosdyn:robot-nickname": "name",
    "release_version": "release",
}


def meaning(log: Log) -> Iterator[Section]:
    """Yield the sections of the summary of a BDDF log."""
    about = log.metadata
    robot = [Fact(key, label, about[key], str(about[key])) for key, label in ROBOT.items() if about.get(key)]
    yield Section("robot", "Robot", tuple(robot))
    lines = list(log.text)
    yield Section("events", "Events", (*_events(log, lines), *_comments(log, lines)))
    yield Section("signals", "Signals", tuple(_signals(log)))


def _events(log: Log, lines: list[TextLine]) -> Iterator[Fact]:
    """Yield how often each type of event happened, most severe types first."""
    by_type: dict[str, list[TextLine]] = defaultdict(list)
    for line in lines:
        if line.kind == "event":
            by_type[line.text.partition(":")[0]].append(line)

    def severity(line: TextLine) -> int:
        return 7 if line.level is None else line.level

    worst = {event_type: min(map(severity, events)) for event_type, events in by_type.items()}
    for number, event_type in enumerate(
        sorted(by_type, key=lambda event_type: (worst[event_type], -len(by_type[event_type])))[:LISTED], 1
    ):
        events = by_type[event_type]
        first = f"first at {since_start(events[0].time, log)}: {events[0].text}"
        yield Fact(
            f"event_{number}",
            event_type,
            {"type": event_type, "count": len(events), "first_ns": events[0].time},
            f"{len(events)} x, {first}",
            level=worst[event_type] if worst[event_type] <= WARNING else None,
        )


def _comments(log: Log, lines: list[TextLine]) -> Iterator[Fact]:
    comments = [line for line in lines if line.kind == "comment"]
    for number, line in enumerate(comments[:LISTED], 1):
        yield Fact(
            f"comment_{number}",
            f"comment {since_start(line.time, log)}",
            {"time_ns": line.time, "text": line.text},
            line.text,
        )
    if len(comments) > LISTED:
        yield Fact("comments", "comments", len(comments), f"{len(comments) - LISTED} more")


def _signals(log: Log) -> Iterator[Fact]:
    """Yield the numeric series and signals, and those with values that are no numbers."""
    count, bad = 0, {}
    for ch in log.channels.values():
        if not len(ch):
            continue
        with suppress(LogError):
            reader = ColumnReader(ch)
            columns = reader.read(slice(0, len(ch))).columns
            for top, column in zip(reader.names, columns, strict=True):
                for name, values in _decimals(top, column):
                    count += 1
                    if wrong := int(np.count_nonzero(~np.isfinite(values))):
                        bad[f"{ch.topic}.{name}"] = wrong
    if count:
        yield Fact(
            "signals",
            "signals",
            count,
            f"{count} with decimal numbers, " + ("some are not finite" if bad else "all of them finite"),
        )
    if bad:
        text = ", ".join(f"{name} {n} x" for name, n in list(bad.items())[:LISTED])
        yield Fact("not_finite", "not finite", bad, text, level=WARNING)


def _decimals(name: str, column: Column) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield path and values of decimal numbers, also those of structs and of arrays of a few structs."""
    if column.type == "struct":
        for member in column.names:
            yield from _decimals(f"{name}.{member}", column.member(member))
    elif column.has_structs:
        for i in range(column.size):
            yield from _decimals(f"{name}[{i}]", column.select((i,)))
    elif column.type in ("float32", "float64"):
        yield name, column.items()


#: Type of the messages, and most of them that become bands.
EVENT, MOST = "bosdyn.api.Event", 500


def bands(log: Log) -> Iterator[Band]:
    """Yield the events of *log* that have a start and a later end, each after the end of the one before."""
    for ch in log.channels.values():
        if ch.schema.name != EVENT or not len(ch):
            continue
        try:
            rows = ColumnReader(ch, ["type", "description", "start_time", "end_time"]).read(slice(0, len(ch)))
        except LogError:
            continue
        start, end = (column.items().astype("M8[ns]").astype(np.int64) for column in rows.columns[2:])
        kinds, texts = (column.to_pylist() for column in rows.columns[:2])
        last = -(2**63)
        for row in np.argsort(start, kind="stable")[:MOST].tolist():
            # A time of 0 means that it is unknown.
            if 0 < start[row] < end[row] and start[row] >= last:
                last = int(end[row])
                label = ": ".join(text for text in (kinds[row], texts[row]) if text)
                yield Band(int(start[row]), last, label or "event", "event", ch.topic)
