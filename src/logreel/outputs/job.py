"""What is to be written: channels, interval, and someone to tell how far it got."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.log.tables import Shape, empty_table, own_paths
from logreel.ops.query.record_batches import bounded_batches
from logreel.ops.rewrite.target import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel
    from logreel.ops.query.topic_fields import FieldsByTopic


@dataclass
class LeftOut:
    """How many things were left out, and why the first of them was."""

    count: int = 0
    reason: str = ""

    def add(self, reason: str) -> None:
        """Count one more."""
        self.reason = self.reason or reason
        self.count += 1

    def told(self, item: str, what: str) -> list[str]:
        """The sentence ``3 <item>s <what>: <reason>``, or none where nothing was left out."""
        some = f"{self.count} {item}{'s' * (self.count != 1)}"
        return [f"{some} {what}: {self.reason[:200]}"] if self.count else []


@dataclass
class Job:
    """Channels of a log to write, with start <= time < end (ns).

    utc      True: wall-clock times
    interpolate  True: the times of records that share one are spread to the next message, in tables
    fields   field paths by topic, for tables and JSON; a topic without an entry, or with None: all
    rows     rows, messages, pictures … written so far, by topic
    skipped  one sentence for each thing that could not be written
    notes    one sentence for each thing worth knowing that is no loss
    done     messages so far, as ``went`` was told
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
    _next: int = 0

    @cached_property
    def total(self) -> int:
        """Messages of all channels; an interval may leave some of them out."""
        return sum(len(ch) for ch in self.channels)

    def wants(self, times: I64) -> NDArray[np.bool_]:
        """Which of *times* (ns) lie in the interval."""
        first = np.ones(len(times), np.bool_) if self.start is None else times >= self.start
        return first if self.end is None else first & (times < self.end)

    def wrote(self, topic: str, rows: int) -> None:
        """Count *rows*, each of which is a message, as written."""
        self.rows[topic] = self.rows.get(topic, 0) + rows
        self.went(rows)

    def went(self, messages: int) -> None:
        """Tell *progress* that so many *messages* are done: at every half percent, and at the end."""
        self.done += messages
        if self.progress is not None and self.done >= self._next:
            self._next = min(self.done + self.total // 200, self.total)
            self.progress(self.done, max(self.done, self.total))

    def table(self, ch: Channel) -> tuple[pa.Schema, Iterator[pa.RecordBatch], bool]:
        """Schema of *ch*, its rows in batches of bounded size, counted when taken, and whether there are any.

        The metadata of the schema also has the definition of the messages as the log carries it, where it is text.
        Raises DefinitionError if the definition of *ch* cannot be used.
        """
        batches = bounded_batches(
            ch, self.start, self.end, self.utc, self.interpolate, self.fields.get(ch.topic)
        )
        head = next(batches, None)
        if head is None:
            none = empty_table(ch, Shape(True, self.utc, self.interpolate), self.paths(ch))
            return _defined(none.schema, ch), iter(()), False
        return _defined(head.schema, ch), self._counted(ch.topic, itertools.chain([head], batches)), True

    def paths(self, ch: Channel) -> list[str] | None:
        """Return the Layout paths of the fields chosen of *ch*, or None for all."""
        return own_paths(ch, self.fields.get(ch.topic))

    def _counted(self, topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self.wrote(topic, batch.num_rows)


def _defined(schema: pa.Schema, ch: Channel) -> pa.Schema:
    """*schema* with the definition of *ch* in its metadata."""
    told = {"format": ch.log.format, "encoding": ch.schema.encoding, "definition": ch.schema.text}
    meta = {key.encode(): value.encode("utf-8", "backslashreplace") for key, value in told.items() if value}
    return schema.with_metadata({**schema.metadata, **meta})
