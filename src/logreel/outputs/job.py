"""A conversion job: channels, interval, progress and results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.io.arrays import I64
from logreel.io.output_stream import OutputStream
from logreel.log.log import Log
from logreel.log.tables import RowOptions, empty_table, own_paths
from logreel.ops.query.record_batches import bounded_batches
from logreel.ops.rewrite.target import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel
    from logreel.log.topic_fields import FieldsByTopic


@dataclass
class SkipCounter:
    """Counts skipped items, and keeps the reason of the first."""

    count: int = 0
    reason: str = ""

    def add(self, reason: str) -> None:
        """Count one more item."""
        self.reason = self.reason or reason
        self.count += 1

    def sentences(self, item: str, what: str) -> list[str]:
        """Return the sentence ``3 <item>s <what>: <reason>`` in a list, empty if nothing was skipped."""
        counted = f"{self.count} {item}{'s' * (self.count != 1)}"
        return [f"{counted} {what}: {self.reason[:200]}"] if self.count else []


@dataclass
class Job:
    """Channels of a log to write, with start <= time < end (ns).

    utc      True: UTC times
    interpolate  True: in tables, spread the times of the records in a message up to the next message
    fields   field paths by topic, for tables and JSON; a topic without an entry, or with None: all
    rows     number of rows, messages, pictures … written so far, by topic
    skipped  a sentence for each thing that could not be written
    notes    a sentence for each remark that is no loss
    done     number of messages processed so far, see ``advance``
    stream   stream for the output instead of a file; None: a file
    """

    log: Log
    channels: list[Channel]
    start: int | None = None
    end: int | None = None
    utc: bool = False
    progress: Progress | None = None
    rows: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interpolate: bool = False
    fields: FieldsByTopic = field(default_factory=dict)
    done: int = 0
    stream: OutputStream | None = None
    _next: int = 0

    @cached_property
    def total(self) -> int:
        """Number of messages of all channels, outside of the interval included."""
        return sum(len(ch) for ch in self.channels)

    def in_interval(self, times: I64) -> NDArray[np.bool_]:
        """Return bool[n]: which of *times* (ns) are in the interval."""
        first = np.ones(len(times), np.bool_) if self.start is None else times >= self.start
        return first if self.end is None else first & (times < self.end)

    def count_rows(self, topic: str, rows: int) -> None:
        """Count *rows* of a topic as written; each is one message."""
        self.rows[topic] = self.rows.get(topic, 0) + rows
        self.advance(rows)

    def advance(self, messages: int) -> None:
        """Count *messages* as processed, and report to *progress* at every 0.5 % and at the end."""
        self.done += messages
        if self.progress is not None and self.done >= self._next:
            self._next = min(self.done + self.total // 200, self.total)
            self.progress(self.done, max(self.done, self.total))

    def table(self, ch: Channel) -> tuple[pa.Schema, Iterator[pa.RecordBatch], bool]:
        """Return the schema of *ch*, its rows in batches of bounded size, and whether there are any rows.

        Rows are counted when they are read. The metadata of the schema contains the definition of the messages, if it
        is text. Raises DefinitionError if the definition cannot be used.
        """
        batches = bounded_batches(
            ch, self.start, self.end, self.utc, self.interpolate, self.fields.get(ch.topic)
        )
        head = next(batches, None)
        if head is None:
            none = empty_table(ch, RowOptions(True, self.utc, self.interpolate), self.paths(ch))
            return with_definition(none.schema, ch), iter(()), False
        return (
            with_definition(head.schema, ch),
            self._counted(ch.topic, itertools.chain([head], batches)),
            True,
        )

    def paths(self, ch: Channel) -> list[str] | None:
        """Return the Layout paths of the fields chosen of *ch*, or None for all."""
        return own_paths(ch, self.fields.get(ch.topic))

    def _counted(self, topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self.count_rows(topic, batch.num_rows)


def with_definition(schema: pa.Schema, ch: Channel) -> pa.Schema:
    """Return *schema* with the definition of *ch* in its metadata."""
    definition = {"format": ch.log.format, "encoding": ch.schema.encoding, "definition": ch.schema.text}
    meta = {
        key.encode(): value.encode("utf-8", "backslashreplace") for key, value in definition.items() if value
    }
    return schema.with_metadata({**schema.metadata, **meta})
