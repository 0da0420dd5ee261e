"""Log lines: text messages with a level and a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logreel.io.arrays import I64
from logreel.layout.nodes import String
from logreel.lenses.base import (
    Nodes,
    Stamp,
    columns_by_path,
    find_stamp,
    is_number,
    paths_with,
    stamps_of,
    times_of,
)
from logreel.log.scan import TextLine

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Syslog numbers by level for levels that are bits (rosgraph_msgs/Log): debug 1 … fatal 16.
BIT_LEVELS = ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2))


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
        from logreel.log.tables import DENSE, table

        names = paths_with([name for name in (self.text, self.level, self.source) if name], self.stamp)
        found = table(ch, names, start, end, DENSE)
        column = columns_by_path(names, found)
        none = [None] * len(found)
        convert: Callable[[int], int | None] = dict(self.levels).get if self.levels else lambda level: level
        level = map(convert, column[self.level].to_pylist()) if self.level else none
        source = column[self.source].to_pylist() if self.source else [""] * len(found)
        lines = list(map(TextLine, times_of(found).tolist(), level, column[self.text].to_pylist(), source))
        return lines, stamps_of(self.stamp, column, len(lines))


def find_text(nodes: Nodes) -> Text | None:
    """Return the Text that *nodes* describe, or None."""
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    level = next((n for n in ("level", "severity") if is_number(nodes.get(n))), None)
    if name is None or level is None:
        return None
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    bits = isinstance(nodes.get("file"), String) and isinstance(nodes.get("function"), String)
    levels = BIT_LEVELS if bits and is_number(nodes.get("line")) else ()
    return Text(name, level, source, levels, find_stamp(nodes))
