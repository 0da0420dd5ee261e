"""Channels of log lines written to the text channel of another format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_struct
from logreel.layout.nodes import Node, Struct, Time
from logreel.lenses.text import LineFields
from logreel.log.log import Channel
from logreel.log.tables import as_numpy
from logreel.ops.rewrite.fit import missing, without_nulls, zeros
from logreel.ops.rewrite.read_rows import read_rows
from logreel.write.payloads import Payloads
from logreel.write.schema_maker import SchemaMaker, TextChannel, TextColumns

if TYPE_CHECKING:
    import pyarrow as pa

#: Level of lines whose level is unknown.
UNKNOWN = -1


@dataclass(slots=True)
class TextTranscoded:
    """A channel of log lines; *fields*: where text, level and source are.

    lost     number of messages with other fields that are not zero or empty, by field
    changed  number of lines whose level the format cannot hold
    named    number of lines with a source
    """

    channel: Channel
    fields: LineFields
    target: TextChannel
    schemas: SchemaMaker
    number: int
    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    done: int = 0
    filled: int = 0
    rounded: int = 0
    changed: int = 0
    named: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    def encode(self, count: int, time: I64) -> tuple[Payloads, I64, I64]:
        """Return the payloads of the next *count* messages, at *time*; which could be decoded; and their times."""
        rows = self.rows[self.done : self.done + count]
        self.done += count
        arrays, kept = read_rows(self.channel, rows)
        members = list(self.channel.layout.record.visible())
        column: dict[str, Any] = {}
        for f, array in zip(members, arrays, strict=True):
            self.filled += missing(array)
            column[f.name] = without_nulls(f.node, array)
        fields, n = self.fields, len(kept)
        for f in members:
            if f.name not in fields.names and n:
                self.lost[f.name] += _not_empty(f.node, column[f.name], time[kept])
        level = np.full(n, UNKNOWN, np.int64)
        if fields.level is not None:
            level = fields.levels_of(column[fields.level])
        source = column[fields.source] if fields.source else _same(fields.default_source, n)
        self.named += int(np.count_nonzero(np.asarray(source, object) != ""))
        stored, again = self.target.level_of(level)
        self.changed += int(np.count_nonzero(again != level))
        import pyarrow as pa

        columns = self.target.columns(TextColumns(time[kept], stored, column[fields.text], source))
        return self.schemas.encode(self.number, pa.table(columns)), kept, time[kept]

    def losses(self) -> list[str]:
        """Return sentences about fields that the text channel has not."""
        lost = [name for name, count in self.lost.items() if count]
        topic = self.channel.topic
        text = f"channel {topic!r}: {', '.join(lost)} left out: lines of text have no such fields"
        return [text] if lost else []

    def notes(self) -> list[str]:
        """Return sentences about changed levels, and sources that became part of the text."""
        topic, found = self.channel.topic, list[str]()
        if self.changed:
            found.append(f"{self.changed} lines of channel {topic!r} have the next level that the format has")
        if self.named and not self.target.has_source:
            found.append(f"the sources of lines of channel {topic!r} are in brackets before the text")
        return found


def _not_empty(node: Node, array: pa.Array[Any], time: I64) -> int:
    """Return the number of values that are neither zero nor empty, nor a stamp that is the *time* of the message."""
    if isinstance(node, Struct):
        parts = zip(node.visible(), as_struct(array).flatten(), strict=True)
        return sum(_not_empty(f.node, part, time) for f, part in parts)
    if isinstance(node, Time):
        stamp = as_numpy(array)
        return int(np.count_nonzero((stamp != 0) & (stamp != time)))
    empty = zeros(node, 1)[0]
    return sum(value != empty for value in array)


def _same(text: str, n: int) -> pa.Array[Any]:
    import pyarrow as pa

    return pa.array([text] * n, pa.string())
