"""Channels whose messages are encoded again, a batch of messages at a time: ``Transcoded``, and lines of text.

Columns are decoded, become those of the new definition, and are encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.index.block_table import TIME_MAX
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Node, Padding, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import ARRAY, STRUCT, Column, from_values
from logreel.lenses.text import LineFields
from logreel.log.log import Channel
from logreel.ops.rewrite.fit import Columns, Fitted, missing
from logreel.ops.rewrite.streams import read_rows
from logreel.write.format_writer import Payloads, SchemaMaker, TextChannel, TextColumns, chained

if TYPE_CHECKING:
    from logreel.schemas.ros1to2 import Conversion

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
        columns, kept = read_rows(self.channel, rows)
        members = list(self.channel.layout.record.visible())
        self.filled += sum(map(missing, columns))
        column = {f.name: values.settled() for f, values in zip(members, columns, strict=True)}
        fields, n = self.fields, len(kept)
        for f in members:
            if f.name not in fields.names and n:
                self.lost[f.name] += _not_empty(f.node, column[f.name], time[kept])
        level = np.full(n, UNKNOWN, np.int64)
        if fields.level is not None:
            level = fields.levels_of(column[fields.level])
        source = (
            column[fields.source] if fields.source else from_values(String(), [fields.default_source] * n)
        )
        self.named += int(np.count_nonzero(np.diff(source.ends)))
        stored, again = self.target.level_of(level)
        self.changed += int(np.count_nonzero(again != level))
        made = self.target.columns(TextColumns(time[kept], stored, column[fields.text], source))
        return self.schemas.encode(self.number, made, n), kept, time[kept]

    def losses(self) -> list[str]:
        """Return sentences about fields that the text channel has not."""
        lost = [name for name, count in self.lost.items() if count]
        topic = self.channel.topic
        text = f"channel {topic!r}: {', '.join(lost)} left out: lines of text have no such fields"
        return [text] if lost else []

    def notes(self) -> list[str]:
        """Return sentences about changed levels, and sources that became part of the text."""
        topic, sentences = self.channel.topic, list[str]()
        if self.changed:
            sentences.append(
                f"{self.changed} lines of channel {topic!r} have the next level that the format has"
            )
        if self.named and not self.target.has_source:
            sentences.append(f"the sources of lines of channel {topic!r} are in brackets before the text")
        return sentences


def _not_empty(node: Node, column: Column, time: I64) -> int:
    """Return the number of values that are neither zero nor empty, nor a stamp that is the *time* of the message."""
    if isinstance(node, Struct):
        parts = zip(node.visible(), column.children, strict=True)
        return sum(_not_empty(f.node, part, time) for f, part in parts)
    filled = _filled(column)
    if isinstance(node, Time):
        filled &= column.values != time
    return int(np.count_nonzero(filled))


def _filled(column: Column) -> NDArray[np.bool_]:
    """Return bool[n]: whether each value is neither zero nor empty."""
    if column.offsets is not None:
        lengths: NDArray[np.int32] = np.diff(column.offsets)
        return lengths > 0
    if column.type == ARRAY:
        items: NDArray[np.bool_] = np.logical_or.reduce(
            _filled(column.item).reshape(len(column), column.size), axis=1
        )
        return items
    if column.type == STRUCT:
        parts = [np.zeros(len(column), bool), *map(_filled, column.children)]
        members: NDArray[np.bool_] = np.logical_or.reduce(np.stack(parts), axis=0)
        return members
    filled: NDArray[np.bool_] = column.values != 0
    return filled


#: Longest list of runs that is compared.
MAX_RUNS = 4096

#: Type of consecutive numbers, and how many there are.
Run = tuple[str, int]
_PADDING = "padding"


def same_bytes(old: Layout, new: Layout) -> int | None:
    """Return how many first bytes of messages of *old* are the messages of *new*; None if they have to be encoded.

    Only for messages of fixed size. What *old* has behind the fields is padding.
    """
    if old.size is None or new.size is None or new.size > old.size:
        return None
    before, after = list[Run](), list[Run]()
    if not _collect(old.root, before) or not _collect(new.root, after):
        return None
    if before and before[-1][0] == _PADDING and before[:-1] == after:
        return new.size
    return new.size if before == after else None


def _collect(node: Node, out: list[Run]) -> bool:
    """Append the runs of *node*; return False if there are too many, or it has bytes of another kind."""
    match node:
        case Scalar(type=name):
            return _add(out, name, 1)
        case Time(signed=signed):
            return _add(out, f"time {signed}", 1)
        case Padding(size=size):
            return _add(out, _PADDING, size)
        case FixedArray(item=Scalar(type=name), count=count):
            return _add(out, name, count)
        case FixedArray(item=item, count=count):
            return count <= MAX_RUNS and all(_collect(item, out) for _ in range(count))
        case Struct(fields=fields):
            return all(_collect(field.node, out) for field in fields)
    return False


def _add(out: list[Run], name: str, count: int) -> bool:
    if out and out[-1][0] == name:
        out[-1] = name, out[-1][1] + count
    elif count:
        out.append((name, count))
    return len(out) <= MAX_RUNS


#: Most messages of a channel that are left out one by one because of their values; with more, the definition is wrong.
MOST_UNFIT = 10_000


@dataclass
class Transcoded:
    """A channel whose messages are encoded again.

    fitted    its Layout fitted to the format
    restores  whether the messages are converted back to what they were
    columns   names of the columns that the format encodes
    stamp     field with the time of the message, and its ns per unit; None if none
    ignored   column that the format of the source added; None if none
    computed  names of restored columns that readers compute, so that messages do not hold them
    rows      row numbers of the messages in the order of writing, of which *done* are written
    keeps_stamps  whether the field *stamp* says the time of each message, which a conversion had changed
    filled    number of missing values that became zero or empty
    has_replaced_text  whether text has U+FFFD
    rounded   number of messages whose times the format stores less exactly
    unfit     number of messages that were left out because of their values
    conversion  by which messages of ROS 1 become those of ROS 2, or back; None: they were fitted
    lost      values without a place in the new messages that are neither zero nor empty, by field
    written   rows of the messages that were written, in parts
    """

    channel: Channel
    fitted: Fitted
    restores: bool
    schemas: SchemaMaker
    number: int
    stamp: tuple[str, int] | None
    ignored: int | None = None
    computed: Collection[str] = ()
    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    done: int = 0
    keeps_stamps: bool = False
    filled: int = 0
    has_replaced_text: bool = False
    rounded: int = 0
    unfit: int = 0
    conversion: Conversion | None = None
    lost: Counter[str] = field(default_factory=Counter)
    written: list[I64] = field(default_factory=list)

    @cached_property
    def copied_bytes(self) -> int | None:
        """How many first bytes of each message are the new message; None if messages have to be encoded."""
        channel, schemas = self.channel, self.schemas
        if (
            self.conversion is not None
            or self.stamp is not None
            or channel.decoder is not None
            or schemas.splitter(self.number) is not None
        ):
            return None
        if schemas.computed_fields(self.number) or not channel.is_uniform:
            return None
        try:
            return same_bytes(channel.layout, schemas.layout(self.number))
        except DefinitionError:
            return None

    def encode(self, count: int, time: I64) -> tuple[Payloads, I64, I64]:
        """Return the payloads of the next *count* messages, at *time*; which of them could be decoded; and their times.

        Both are int64[k]; the times are those given unless ``keeps_stamps``.
        """
        rows = self.rows[self.done : self.done + count]
        self.done += count
        payloads, kept, times = self._encode_rows(rows, time)
        self.written.append(rows[kept])
        return payloads, kept, times

    def _encode_rows(self, rows: I64, time: I64) -> tuple[Payloads, I64, I64]:
        """Return the same as ``encode`` for messages at *rows*, without those whose values a definition excludes.

        Damage can be decoded: to arrays of another number of items than all others have.
        """
        try:
            return self._encode_fitting(rows, time)
        except UsageError:
            if len(rows) < 2:
                self.unfit += 1
                if self.unfit > MOST_UNFIT:
                    raise
                none = np.zeros(0, np.int64)
                return Payloads(np.zeros(0, np.uint8), none, none), none, time[:0]
        half = len(rows) // 2
        parts = [self._encode_rows(rows[:half], time[:half]), self._encode_rows(rows[half:], time[half:])]
        payloads = [part[0] for part in parts]
        kept = np.concatenate([parts[0][1], parts[1][1] + half])
        joined = replace(chained(payloads), side_columns=side_columns(payloads))
        return joined, kept, np.concatenate([part[2] for part in parts])

    def _encode_fitting(self, rows: I64, time: I64) -> tuple[Payloads, I64, I64]:
        read, kept = read_rows(self.channel, rows)
        filled = sum(map(missing, read))
        columns = [column.settled(self.conversion is not None) for column in read]
        if self.conversion is None:
            self.has_replaced_text = self.has_replaced_text or any(map(Column.has_replaced_text, columns))
        elif self._lossy:
            from logreel.ops.rewrite.proof import count_filled

            names = [f.name for f in self.channel.layout.record.visible()]
            count_filled(dict(zip(names, columns, strict=True)), self._lossy, self.lost)
        if self.ignored is not None:
            del columns[self.ignored]
        made = (self.fitted.back if self.restores else self.fitted.forward)(columns)
        if self.computed:
            names = [f.name for f in self.fitted.source.record.visible()]
            made = [column for name, column in zip(names, made, strict=True) if name not in self.computed]
        payloads, time = self._encoded(made, time[kept])
        self.filled += filled
        return payloads, kept, time

    @cached_property
    def _lossy(self) -> list[tuple[str, ...]]:
        """Paths of fields that get lost; ``Header.seq``, which ROS 2 has not, does not count."""
        leaves = [] if self.conversion is None else self.conversion.leaves()
        return [
            pair.source
            for pair in leaves
            if pair.source is not None and pair.target is None and pair.source[-1:] != ("seq",)
        ]

    @property
    def loses_seq(self) -> bool:
        """Whether messages have headers whose number gets lost."""
        leaves = [] if self.conversion is None else self.conversion.leaves()
        return any(pair.target is None and (pair.source or ())[-1:] == ("seq",) for pair in leaves)

    def losses(self) -> list[str]:
        """Return a sentence about each field that gets lost."""
        if self.conversion is None:
            return []
        where = "ROS 2" if self.conversion.forward else "ROS 1"
        return [
            f"channel {self.channel.topic!r}: {count} values of {name!r} left out: {where} has no such field"
            for name, count in self.lost.items()
        ]

    def _encoded(self, made: Columns, time: I64) -> tuple[Payloads, I64]:
        target, records = self.schemas.layout(self.number), None
        record = target.record if self.restores else self.fitted.layout.record
        hidden = self.schemas.computed_fields(self.number) if self.restores else ()
        names = [f.name for f in record.visible() if f.name not in hidden]
        if isinstance(target.root, Counted):
            if not self.restores:
                (records_field,) = record.visible()
                names = [f.name for f in record_members(records_field.node)]
            records, made = _exploded(made, self.restores)
        columns = dict(zip(names, made, strict=True))
        n = len(time) if records is None else int(records.sum())
        if self.stamp is not None and self.stamp[0] not in columns:
            columns[self.stamp[0]] = Column("int64", n, time // self.stamp[1])
        elif self.stamp is not None and self.keeps_stamps:
            stamps = columns[self.stamp[0]].values
            time = np.minimum(stamps, TIME_MAX // self.stamp[1]).astype(np.int64) * self.stamp[1]
        splitter = self.schemas.splitter(self.number)
        for name in splitter.optional if splitter is not None else ():
            columns.setdefault(name, Column("int64", n, np.zeros(n, np.int64)))
        return self.schemas.encode(self.number, columns, n, records), time


def side_columns(payloads: Sequence[Payloads]) -> I64 | None:
    """Return int64[n, k]: the side columns of all payloads, zeros where there are none; None if none has any."""
    width = max(0 if part.side_columns is None else part.side_columns.shape[1] for part in payloads)
    if not width:
        return None
    columns = np.zeros((sum(len(part.start) for part in payloads), width), np.int64)
    at = 0
    for part in payloads:
        if part.side_columns is not None:
            columns[at : at + len(part.start), : part.side_columns.shape[1]] = part.side_columns
        at += len(part.start)
    return columns


def record_members(node: Node) -> list[Field]:
    """Return the members of the records that *node*, an array of structs, holds."""
    item = node.item if isinstance(node, Counted) else node
    return list(item.visible()) if isinstance(item, Struct) else []


def _exploded(columns: Columns, by_member: bool) -> tuple[I64, Columns]:
    """Return the number of records of each message, and the members of the records of all messages as columns.

    by_member  True: a column of lists per member; False: one column with lists of records
    """
    size = np.diff(columns[0].ends).astype(np.int64)
    flat = [column.item for column in columns]
    return size, flat if by_member else [*flat[0].children]
