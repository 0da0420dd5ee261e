"""Log lines: text messages with a level and a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from logreel.dataclass import dataclass
from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence, String
from logreel.lenses.base import (
    Nodes,
    Stamp,
    columns,
    columns_by_path,
    find_stamp,
    is_integer,
    is_number,
    members,
    nodes_of,
    paths_with,
    stamps_of,
)
from logreel.log.scan import TextLine

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column
    from logreel.log.log import Channel

#: Syslog numbers by level for levels that are bits (rosgraph_msgs/Log): debug 1 … fatal 16.
BIT_LEVELS = ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2))


#: The same for levels as names, and for those of ROS 2.
LEVEL_NAMES = {
    "DEBUG": 7,
    "INFO": 6,
    "NOTICE": 5,
    "WARN": 4,
    "WARNING": 4,
    "ERROR": 3,
    "FATAL": 2,
    "CRITICAL": 2,
    "ALERT": 1,
    "EMERGENCY": 0,
}
ROS2_LEVELS = ((10, 7), (20, 6), (30, 4), (40, 3), (50, 2))
#: The level of a good state, and syslog numbers of those of diagnostics: good, warning, error, stale.
_GOOD, _DIAGNOSTIC_LEVELS = 0, {0: 6, 1: 4, 2: 3, 3: 4}
#: Levels from the best to the worst.
_WORST = (0, 1, 3, 2)
#: Fields that lines of text have besides text, level and source.
_MORE = {
    "header",
    "stamp",
    "timestamp",
    "tag",
    "file",
    "filename",
    "function",
    "line",
    "line_number",
    "topics",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Log lines: paths of the text, of its syslog level, and of the name of its source.

    levels  pairs of a level and its syslog number, if levels are not syslog numbers; other levels become None
    stamp   time at which the source wrote the line
    """

    text: str
    level: str | None = None
    source: str | None = None
    levels: tuple[tuple[int, int], ...] = ()
    stamp: Stamp | None = None

    def lines(self, ch: Channel, start: int | None = None, end: int | None = None) -> list[TextLine]:
        """Return the lines of *ch* with start <= time < end (ns), in file order."""
        return self.stamped(ch, start, end)[0]

    def stamped(
        self, ch: Channel, start: int | None = None, end: int | None = None
    ) -> tuple[list[TextLine], I64]:
        """Return the same as ``lines``, and the stamp of each line, int64[n] ns, 0 if unknown."""
        from logreel.log.columns import column_rows

        names = paths_with([name for name in (self.text, self.level, self.source) if name], self.stamp)
        messages = column_rows(ch, names, start, end)
        column = columns_by_path(names, messages)
        none = [None] * len(messages)
        convert: Callable[[int], int | None] = dict(self.levels).get if self.levels else lambda level: level
        level = map(convert, column[self.level].to_pylist()) if self.level else none
        source = column[self.source].to_pylist() if self.source else [""] * len(messages)
        lines = list(map(TextLine, messages.time.tolist(), level, column[self.text].to_pylist(), source))
        return lines, stamps_of(self.stamp, column, len(lines))


@dataclass(frozen=True, slots=True)
class PartState:
    """What a part of a robot last said of itself.

    time    ns
    level   0 good, 1 warning, 2 error, 3 stale
    since   ns of the first message of this level in a row
    row     of the message, and *place* of the state in it
    """

    name: str
    level: int
    message: str
    time: int
    since: int
    row: int
    place: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """States of parts of a robot, each with a level and a text, sent again and again: diagnostic_msgs/DiagnosticArray.

    status  path of the list of states
    """

    status: str = "status"

    def lines(self, ch: Channel, start: int | None = None, end: int | None = None) -> list[TextLine]:
        """Return a line for each state of *ch* with another level than before, start <= time < end (ns).

        In file order. The first state of a part is a line if it is not good. The source of a line is the part's name.
        """
        paths = [f"{self.status}.{name}" for name in ("name", "level", "message")]
        # Levels before *start* tell what changes after it.
        states = columns(ch, paths, None, end)
        lines, before = list[TextLine](), dict[str, int]()
        values = (states.time.tolist(), *(states.values[path].tolist() for path in paths))
        for time, name, level, message in zip(*values, strict=True):
            if before.get(name, _GOOD) != level and (start is None or time >= start):
                lines.append(TextLine(time, _DIAGNOSTIC_LEVELS.get(level), message, name))
            before[name] = level
        return lines

    def states(self, ch: Channel) -> Callable[[int], list[PartState]]:
        """Return a function that returns the last state of each part at a moment (ns), worst first, then by name."""
        paths = [f"{self.status}.{name}" for name in ("name", "level", "message")]
        states = columns(ch, paths)
        order = np.argsort(states.time, kind="stable")
        time, row = states.time[order], states.row[order]
        names, level, message = (states.values[path][order] for path in paths)
        first = np.searchsorted(states.row, states.row)
        place = (np.arange(len(states.row)) - first)[order]
        by_name: dict[str, list[int]] = {}
        for at, name in enumerate(names.tolist()):
            by_name.setdefault(str(name), []).append(at)
        rows = {name: np.array(own, np.int64) for name, own in by_name.items()}
        # The first state of each run of one level.
        runs = {
            name: np.maximum.accumulate(
                np.where(np.diff(level[own], prepend=255) != 0, np.arange(len(own)), 0)
            )
            for name, own in rows.items()
        }

        def latest(at: int) -> list[PartState]:
            states_of_parts = []
            for name, own in rows.items():
                last = int(np.searchsorted(time[own], at, side="right")) - 1
                if last < 0:
                    continue
                here, begin = int(own[last]), int(own[runs[name][last]])
                about = (int(level[here]), str(message[here]), int(time[here]), int(time[begin]))
                states_of_parts.append(PartState(name, *about, int(row[here]), int(place[here])))
            # Stale is worse than a warning, and not as bad as an error.
            return sorted(states_of_parts, key=lambda state: (-_WORST.index(min(state.level, 3)), state.name))

        return latest


@dataclass(frozen=True, slots=True)
class LineFields:
    """Fields of messages that are nothing but log lines.

    default_source  source of lines without a field for it
    levels          pairs of a level and its syslog number, if levels are not syslog numbers
    names           fields that a line of text holds
    """

    text: str
    level: str | None
    source: str | None
    default_source: str
    levels: tuple[tuple[int, int], ...]
    names: frozenset[str]

    def levels_of(self, column: Column) -> I64:
        """Return int64[n]: syslog levels of a column of levels, -1 where they are unknown."""
        if column.offsets is not None:
            return np.array([LEVEL_NAMES.get(str(name).upper(), -1) for name in column.to_pylist()], np.int64)
        numbers = column.values.astype(np.int64)
        if not self.levels:
            return np.where((numbers >= 0) & (numbers < 8), numbers, -1)
        levels = np.full(len(numbers), -1, np.int64)
        for level, number in self.levels:
            levels[numbers == level] = number
        return levels


def line_fields(ch: Channel) -> LineFields | None:
    """Return the fields of *ch* if its messages are lines of text with level and source, and nothing else; or None.

    Comments, and series of plain text, are lines without a level.
    """
    nodes = members(ch)
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    level = next((n for n in ("level", "severity") if is_number(nodes.get(n)) or n in nodes), None)
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    used = {n for n in (name, level, source) if n is not None}
    if name is None or not nodes.keys() <= used | _MORE:
        return None
    if level is None and not (ch.schema.name.endswith("Comment") or ch.schema.encoding.startswith("text/")):
        return None
    if level is not None and not (is_number(nodes[level]) or isinstance(nodes[level], String)):
        return None
    bits = "file" in nodes and "line" in nodes and level is not None
    stamp = {n for n in ("stamp", "timestamp") if n in nodes}
    return LineFields(
        name,
        level,
        source,
        ch.topic if level is None else "",
        BIT_LEVELS + ROS2_LEVELS if bits else (),
        frozenset(used | stamp),
    )


def find_text(nodes: Nodes) -> Text | None:
    """Return the Text that *nodes* describe, or None."""
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    level = next((n for n in ("level", "severity") if is_number(nodes.get(n))), None)
    if name is None or level is None:
        return None
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    bits = isinstance(nodes.get("file"), String) and isinstance(nodes.get("function"), String)
    levels = BIT_LEVELS + ROS2_LEVELS if bits and is_number(nodes.get("line")) else ()
    return Text(name, level, source, levels, find_stamp(nodes))


def find_diagnostics(nodes: Nodes) -> Diagnostics | None:
    """Return the Diagnostics that *nodes* describe, or None."""
    state = nodes_of(nodes.get("status")) if isinstance(nodes.get("status"), Sequence) else {}
    named = all(isinstance(state.get(name), String) for name in ("name", "message"))
    return Diagnostics() if named and is_integer(state.get("level")) else None
