"""Lines for people to read."""

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

#: Levels that are bits, as log messages with a file, a function and a line have them: debug 1 … fatal 16.
BIT_LEVELS = ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2))


@dataclass(frozen=True, slots=True)
class Text:
    """Lines for people to read; *level* is a syslog number, *source* says who spoke.

    levels  where the level is not a syslog number: pairs of a level and its number; others have none
    stamp   tells when it was said
    """

    text: str
    level: str | None = None
    source: str | None = None
    levels: tuple[tuple[int, int], ...] = ()
    stamp: Stamp | None = None

    def lines(self, ch: Channel, start: int | None = None, end: int | None = None) -> list[TextLine]:
        """The lines of *ch* with start <= time < end (ns), in file order."""
        return self.stamped(ch, start, end)[0]

    def stamped(
        self, ch: Channel, start: int | None = None, end: int | None = None
    ) -> tuple[list[TextLine], I64]:
        """The same, and int64[n] ns when each was said, 0 where the message does not tell."""
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
    """The Text that *nodes* describe, if they do."""
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    level = next((n for n in ("level", "severity") if is_number(nodes.get(n))), None)
    if name is None or level is None:
        return None
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    bits = isinstance(nodes.get("file"), String) and isinstance(nodes.get("function"), String)
    levels = BIT_LEVELS if bits and is_number(nodes.get("line")) else ()
    return Text(name, level, source, levels, find_stamp(nodes))
