"""Lines for people to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logreel.model.layout import String
from logreel.model.lenses.base import Nodes, is_number, times_of
from logreel.model.scan import TextLine

if TYPE_CHECKING:
    from logreel.model.channel import Channel

#: Levels that are bits, as log messages with a file, a function and a line have them: debug 1 … fatal 16.
BIT_LEVELS = ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2))


@dataclass(frozen=True, slots=True)
class Text:
    """Lines for people to read; *level* is a syslog number, *source* says who spoke.

    levels  where the level is not a syslog number: pairs of a level and its number; others have none
    """

    text: str
    level: str | None = None
    source: str | None = None
    levels: tuple[tuple[int, int], ...] = ()

    def lines(self, ch: Channel, start: int | None = None, end: int | None = None) -> list[TextLine]:
        """The lines of *ch* with start <= time < end (ns), in file order."""
        from logreel.model.tables import DENSE, table

        names = list(dict.fromkeys(name for name in (self.text, self.level, self.source) if name))
        found = table(ch, names, start, end, DENSE)
        values = {name: column.to_pylist() for name, column in zip(names, found.columns[1:], strict=True)}
        none = [None] * len(found)
        convert: Callable[[int], int | None] = dict(self.levels).get if self.levels else lambda level: level
        level = map(convert, values[self.level]) if self.level else none
        source = values[self.source] if self.source else [""] * len(found)
        return list(map(TextLine, times_of(found).tolist(), level, values[self.text], source))


def find_text(nodes: Nodes) -> Text | None:
    """The Text that *nodes* describe, if they do."""
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    level = next((n for n in ("level", "severity") if is_number(nodes.get(n))), None)
    if name is None or level is None:
        return None
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    bits = isinstance(nodes.get("file"), String) and isinstance(nodes.get("function"), String)
    return Text(name, level, source, BIT_LEVELS if bits and is_number(nodes.get("line")) else ())
