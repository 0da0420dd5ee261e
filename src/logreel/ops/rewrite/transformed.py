"""Logs with transformed messages that are not written: what transforms make of a log, as a log.

Its index lists the new messages in chunks, each of which is made of one batch of the source when it is read, as chunks
of compressed logs are unpacked. So whatever reads logs can read it, and several changes need no log between them.
``Changes`` are the edits and migrations that a log gets in the pass that writes it in another form.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.index.block_table import Blocks
from logreel.index.channel_index import (
    ChannelRules,
    ConstantValues,
    FieldAt,
    IndexAccess,
    Rule,
    StoredValues,
    SyntheticMessages,
)
from logreel.index.gather import Rows
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Buffer, Chunks, Source
from logreel.io.two_pass import DryRun, written_apart
from logreel.layout.layout import Layout
from logreel.log.joined_log import JoinedLog, earlier
from logreel.log.log import Log
from logreel.log.scan import Attachment, ChannelInfo, Parameter, PayloadDecoder, Scan
from logreel.ops.edit.edit import plan_edits
from logreel.ops.edit.recipe import Recipe, RecipeOptions, read_recipe
from logreel.ops.migrate.migrate import Migration, plan_migration
from logreel.ops.migrate.plan import Files, Planner
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part, part_of, shift_clock, whole_log
from logreel.ops.rewrite.streams import MessageBatch, in_file_order
from logreel.ops.rewrite.target import Target, format_of
from logreel.ops.selection import Selection
from logreel.registry.open import open_log
from logreel.write.format_writer import Payloads, chained
from logreel.write.log_copier import copier_for
from logreel.write.writer import Writer

if TYPE_CHECKING:
    from logreel.index.gather import PayloadRange
    from logreel.layout.arrow import Decoded

#: Bytes of chunks that are kept in memory.
KEPT_BYTES = 64 << 20
#: Side column with the row of each message in the source.
ROW = "row in the source"


@dataclass(frozen=True, slots=True)
class TransformedLog:
    """What transforms made of a part.

    log   the new log
    rows  int64[n]: the rows in the source of the messages of each channel, by number
    notes, skipped  sentences about what changed without loss, and what was left out
    """

    log: Log
    rows: Mapping[int, I64]
    notes: list[str]
    skipped: list[str]


def transformed(part: Part, transforms: Sequence[Transform], keeps_content: bool = False) -> TransformedLog:
    """Return what ``rewrite`` would write of *part*, of a log of one file, in its own format.

    Messages that a writer adds, such as the frames of packets that have none, are not in it.

    keeps_content  what the log holds besides messages stays as it is

    Raises as ``rewrite`` does.
    """
    first = _Work.of(part, transforms)
    chunks, indexed = _MadeChunks(part, transforms, first), list[_Indexed]()
    written = np.zeros(max([first.new.number_of(ch) for ch in first.channels], default=-1) + 1, np.int64)
    synthetic = _Synthetic(part)
    for number, batch in enumerate(first.made(_numbered(in_file_order(part), part))):
        written += np.bincount(first.new.numbers_of(batch), minlength=len(written))
        plain = _joined(synthetic.without(batch))
        indexed.append(_Indexed.of(number, plain, len(part.log.index.rules)))
        chunks.keep(number, plain.payloads.data)
        chunks.add(batch, plain, {n: rows for n, rows in first.taken.items() if n not in synthetic.channels})
    first.new.account(written)
    rows = {n: chunks.source_rows(n) for n in part.rows}
    log = _log(
        part,
        first,
        MessageIndex(chunks, *_index(part, indexed, synthetic.counts), synthetic.build),
        rows,
        keeps_content,
    )
    for transform in transforms:
        transform.verify(first.new, log)
    return TransformedLog(log, rows, first.new.notes, first.new.skipped)


def _numbered(batches: Iterator[MessageBatch], part: Part) -> Iterator[MessageBatch]:
    """Yield *batches* of *part* with the row of each message in the log as side column."""
    done = dict.fromkeys(part.rows, 0)
    for batch in batches:
        rows = np.zeros(len(batch.queue), np.int64)
        for queue, channel in enumerate(batch.channels.tolist()):
            places = np.flatnonzero(batch.queue == queue)
            if len(places):
                lo, hi = done[channel], done[channel] + len(places)
                rows[places], done[channel] = _at(part.rows[channel], lo, hi), hi
        yield replace(batch, more={**batch.more, ROW: rows})


def _at(rows: Rows, lo: int, hi: int) -> I64:
    """Return int64[hi - lo]: the row numbers of *rows* from position *lo* on."""
    if isinstance(rows, slice):
        return np.arange(rows.start + lo, rows.start + hi, dtype=np.int64)
    return rows[lo:hi]


class _Work:
    """A NewLog of which only the channels are written, to nowhere, and what transforms make of batches for it."""

    def __init__(self, new: NewLog, part: Part, file: Writer) -> None:
        self.new, self._file = new, file
        self._stamps = {
            n: rule.time
            for n, rule in enumerate(part.log.index.rules)
            if is_inside(rule.time) and not rule.is_synthetic
        }
        schemas = new.format_writer.schemas
        #: Numbers in the new log of channels with more fields that state times, by number in the source.
        self._timed = {
            ch.number: new.number_of(ch)
            for ch in self.channels
            if schemas.time_dependent_fields(new.number_of(ch))
        }
        #: Messages that were taken of each channel for the last batch, by number.
        self.taken: dict[int, I64] = {}

    @classmethod
    def of(cls, part: Part, transforms: Sequence[Transform]) -> _Work:
        fmt, out = format_of(part.log), DryRun(part.log.name)
        writer = fmt.create(out)  # type: ignore[misc]
        new = NewLog([part], Target(part.log.name), fmt, out, writer, copier_for(fmt, writer), [])
        new.transforms, new.notes = transforms, list(part.notes)
        new.begin()
        file = Writer(out, writer, None, False)
        new.prepare(file)
        return cls(new, part, file)

    def declared(self) -> Scan | None:
        """Return what a reader of the new log finds without messages; None if it finds nothing."""
        out = self.new.out
        with suppress(LogError):
            self._file.close()
            content = out.content if isinstance(out, DryRun) else None
            return None if content is None else self.new.fmt.scan(Source.open(content), None)
        return None

    @property
    def channels(self) -> list[NewChannel]:
        """The channels of the new log."""
        return [channel for members in self.new.names.values() for channel in members]

    def made(self, batches: Iterator[MessageBatch]) -> Iterator[MessageBatch]:
        """Yield what becomes of each batch, with the new payloads one after another."""
        return map(self._stamped, self.new.transformed(self._taken(batches)))

    def _taken(self, batches: Iterator[MessageBatch]) -> Iterator[MessageBatch]:
        for batch in batches:
            rows = batch.more[ROW]
            self.taken = {
                channel: rows[batch.queue == queue] for queue, channel in enumerate(batch.channels.tolist())
            }
            yield batch

    def _stamped(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* with payloads in one buffer, in which log times are those of the messages."""
        # Where times are in payloads, their unit is that of the other times.
        unit = min((stamp.mul for stamp in self._stamps.values()), default=1)
        batch = batch if unit == 1 else replace(batch, time=batch.time // unit * unit)
        batch = _joined(batch)
        data, start, size = batch.payloads.data, batch.payloads.start, batch.payloads.size
        for queue, channel in enumerate(batch.channels.tolist()):
            stamp, number = self._stamps.get(channel), self._timed.get(channel)
            if stamp is None and number is None:
                continue
            rows = np.flatnonzero(batch.queue == queue)
            if number is not None:
                self.new.format_writer.schemas.set_times(number, data, start[rows], batch.time[rows])
            if stamp is None:
                continue
            rows = rows[size[rows] >= stamp.offset + stamp.width]
            due = (batch.time[rows] - stamp.add) // stamp.mul
            places = start[rows] + stamp.offset
            # Times that are read as the greatest one stay.
            changed = np.flatnonzero(stamp.read(data, start[rows]) // stamp.mul != due)
            bytes_of = due[changed].astype("<u8").view(np.uint8).reshape(-1, 8)[:, : stamp.width]
            data[places[changed][:, None] + np.arange(stamp.width)] = bytes_of
        return batch


def _joined(batch: MessageBatch) -> MessageBatch:
    """Return *batch* with its payloads one after another in a buffer of its own."""
    size = batch.payloads.size
    return replace(batch, payloads=Payloads(batch.payloads.joined(), np.cumsum(size) - size, size))


class _Synthetic:
    """The messages of channels that the reader builds of other content, apart from those in chunks."""

    def __init__(self, part: Part) -> None:
        self.channels = {n for n in part.rows if part.log.index.rules[n].synthetic is not None}
        self._batches: dict[int, list[MessageBatch]] = {n: [] for n in self.channels}

    def without(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* without these messages, which are kept."""
        for queue, channel in enumerate(batch.channels.tolist()):
            if channel in self.channels:
                rows = np.flatnonzero(batch.queue == queue)
                if len(rows):
                    self._batches[channel].append(_joined(batch.rows(rows)))
        if not any(self._batches.values()):
            return batch
        return batch.rows(np.flatnonzero(~np.isin(batch.channel, list(self.channels))))

    @property
    def counts(self) -> dict[int, int]:
        """Numbers of messages by channel number."""
        return {n: sum(len(batch.time) for batch in batches) for n, batches in self._batches.items()}

    def build(self) -> tuple[Buffer, dict[int, SyntheticMessages]]:
        """Return the buffer of all messages, and where those of each channel are."""
        buffers, messages, at = [np.zeros(0, np.uint8)], dict[int, SyntheticMessages](), 0
        none = [np.zeros(0, np.int64)]
        for channel, batches in self._batches.items():
            size = np.concatenate([batch.payloads.size for batch in batches] or none)
            time = np.concatenate([batch.time for batch in batches] or none)
            messages[channel] = SyntheticMessages(at + np.cumsum(size) - size, size, time)
            buffers += [batch.payloads.data for batch in batches]
            at += int(size.sum())
        return np.concatenate(buffers), messages


class _MadeChunks(Chunks):
    """Chunks of transformed messages, which are made again when they are no longer in memory."""

    def __init__(self, part: Part, transforms: Sequence[Transform], first: _Work) -> None:
        super().__init__(part.log.source, self._made, self._size)
        self._part, self._transforms = part, transforms
        self._work: Iterator[MessageBatch] | None = None
        self._wanted: list[MessageBatch] = []
        #: Rows of the source that each chunk is made of, and those of its messages, by channel number.
        self._taken: list[dict[int, I64]] = []
        self._rows: dict[int, list[I64]] = {n: [] for n in part.rows}
        self._sizes_made: list[int] = []
        self._kept: OrderedDict[int, Buffer] = OrderedDict()
        self._kept_bytes = 0
        self._lock = RLock()

    def add(self, batch: MessageBatch, plain: MessageBatch, taken: dict[int, I64]) -> None:
        """Add a chunk with the messages of *plain*, those of *batch* that are not synthetic, made of those *taken*."""
        self._taken.append(taken)
        self._sizes_made.append(len(plain.payloads.data))
        for queue, channel in enumerate(batch.channels.tolist()):
            self._rows[channel].append(batch.more[ROW][batch.queue == queue])

    def source_rows(self, channel: int) -> I64:
        """Return int64[n]: the rows in the source of the messages of a channel."""
        return np.concatenate([np.zeros(0, np.int64), *self._rows[channel]])

    def keep(self, chunk: int, data: Buffer) -> None:
        """Keep a chunk in memory, and let go of those that were not used for longest."""
        with self._lock:
            self._kept[chunk] = data
            self._kept_bytes += len(data)
            while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1])

    def _size(self, chunk: int) -> int:
        return self._sizes_made[chunk]

    def _made(self, chunk: int) -> Buffer:
        with self._lock:
            if chunk in self._kept:
                self._kept.move_to_end(chunk)
                return self._kept[chunk]
            if self._work is None:
                # Other objects than those whose counts are told.
                again = _Work.of(self._part, [copy(transform) for transform in self._transforms])
                self._work = again.made(self._waiting())
            part = replace(self._part, rows=self._taken[chunk])
            self._wanted = list(_numbered(in_file_order(part), part))
            self._wanted = [_in_one(self._wanted)]
            data = next(self._work).payloads.data
            self.keep(chunk, data)
            return data

    def _waiting(self) -> Iterator[MessageBatch]:
        while True:
            yield self._wanted.pop()


def _in_one(batches: Sequence[MessageBatch]) -> MessageBatch:
    """Return consecutive batches of one stream as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    return replace(
        first,
        queue=np.concatenate([batch.queue for batch in batches]),
        time=np.concatenate([batch.time for batch in batches]),
        payloads=chained([batch.payloads for batch in batches]),
        offset=np.concatenate([batch.offset for batch in batches]),
        more={name: np.concatenate([batch.more[name] for batch in batches]) for name in first.more},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _OneSize(ConstantValues):
    """The size of all messages of a channel, which a Layout of that size decodes unchecked."""

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Return whether that is the size."""
        return size == self.value


@dataclass(frozen=True, slots=True)
class _Indexed:
    """The messages of a chunk: its block table, and numbers of the messages in its order."""

    table: Blocks
    time: I64
    size: I64
    more: Mapping[str, I64]

    @classmethod
    def of(cls, chunk: int, batch: MessageBatch, channels: int) -> _Indexed:
        start, channel = batch.payloads.start, batch.channel
        order = Blocks.order(start, channel)
        table = Blocks.of(start, channel, channels, chunk)
        more = {name: values[order] for name, values in batch.more.items() if name != ROW}
        return cls(table, batch.time[order], batch.payloads.size[order], more)


def _index(
    part: Part, indexed: Sequence[_Indexed], synthetic: Mapping[int, int]
) -> tuple[Blocks, list[ChannelRules]]:
    """Return the block table of all chunks, and the rules of the channels."""
    rules = part.log.index.rules
    tables = [Blocks.empty(len(rules)), *(chunk.table for chunk in indexed)]
    begins = np.cumsum([0, *(len(table.entry) for table in tables)])
    table = Blocks(
        np.concatenate([table.base for table in tables]),
        np.concatenate([table.chunk for table in tables]),
        np.concatenate([table.start + begin for table, begin in zip(tables, begins, strict=False)]),
        np.concatenate([table.entry for table in tables]),
    )
    none = [np.zeros(0, np.int64)]
    time = StoredValues(np.concatenate([chunk.time for chunk in indexed] or none))
    size = StoredValues(np.concatenate([chunk.size for chunk in indexed] or none).astype(np.uint32))
    sizes = {
        n: _OneSize(int(lengths[0]))
        for n in range(len(rules))
        if len(lengths := _sizes_of(table, size.stored, n)) and (lengths == lengths[0]).all()
    }
    names = {name for chunk in indexed for name in chunk.more}
    more = {
        name: StoredValues(
            np.concatenate([chunk.more.get(name, np.zeros(len(chunk.time), np.int64)) for chunk in indexed])
        )
        for name in names
    }
    return table, [
        ChannelRules(
            rule.time if rule.is_synthetic or is_inside(rule.time) else time,
            rule.size if rule.is_synthetic else sizes.get(n, size),
            synthetic.get(n, 0) if rule.is_synthetic else None,
            side_columns={name: more[name] for name in rule.side_columns if name in more},
        )
        for n, rule in enumerate(rules)
    ]


def _sizes_of(table: Blocks, size: NDArray[Any], channel: int) -> NDArray[Any]:
    """Return the sizes of the messages of a channel, which *size* has for all messages in the order of *table*."""
    return size[table.rows(channel)[1]]


def is_inside(time: Rule) -> TypeGuard[FieldAt]:
    """Return whether times are a field of payloads."""
    return isinstance(time, FieldAt) and time.offset >= 0


def _log(part: Part, work: _Work, index: MessageIndex, rows: Mapping[int, I64], keeps_content: bool) -> Log:
    """Return the log of *part* with the channels and content of the new log, and the messages of *index*."""
    new, source = work.new, part.log
    infos, shown, without_messages = list(source.scan.channels), set[int](), work.declared()
    declared = {info.topic: info for info in ([] if without_messages is None else without_messages.channels)}
    for name, (channel, *_) in new.names.items():
        shown.add(channel.number)
        info = _info(infos[channel.number], name, channel, new, declared.get(name))
        if not channel.is_other and channel.source is not None:
            info = _decoded_in(source, info, source.scan.channels[channel.number], rows[channel.number])
        infos[channel.number] = info
    moved, clock = shift_clock(source, part.shift), new.format_writer.source_clock
    times = source.scan.logged_times()
    changes: dict[str, Any] = {
        "channels": infos,
        "index": index,
        "shown": shown,
        "text": None,
        "ros_axes": partial(_in_ros_axes, source, infos, rows) if source.has_other_axes else None,
        "checksums": None,
        "reread": None,
        "saved": None,
        "segments": list,
        "segment": None,
        "logged_times": lambda: {
            n: values + part.shift for n, values in times.items() if len(values) == index.count(n)
        },
    }
    # Where times are those since 1970, others than these cannot be said.
    offset = source.utc_offset if clock is None or source.epoch == "unix" else clock.utc_offset
    stated = None if without_messages is None else without_messages.utc_offset()
    offset = offset if stated is None else stated
    changes |= {"utc_offset": lambda: offset, "epoch": source.epoch}
    if len(shown) < len(source.channels) or any(transform.moves_times for transform in new.transforms):
        times_by_channel = [
            channel_times
            for n in shown
            if not infos[n].topic.startswith("~") and len(channel_times := index.times(n))
        ]
        first = min((int(channel_times.min()) for channel_times in times_by_channel), default=None)
        last = max((int(channel_times.max()) for channel_times in times_by_channel), default=None)
        changes["bounds"] = lambda: (first, last)
    if not keeps_content:
        changes |= {
            "metadata": lambda: _metadata(moved, new),
            "attachments": lambda: _attachments(moved, new),
            "parameters": lambda: _parameters(moved, new),
        }
    return moved.derive(**changes)


def _decoded_in(source: Log, info: ChannelInfo, of_source: ChannelInfo, rows: I64) -> ChannelInfo:
    """Return *info* with the decoder that a channel has in *source*, for its messages that were at *rows* there."""

    def decoder() -> PayloadDecoder | None:
        read = of_source.decoder()
        return None if read is None else _SourceDecoder(read, source.index, rows)

    return replace(info, decoder=decoder)


def _in_ros_axes(source: Log, infos: Sequence[ChannelInfo], rows: Mapping[int, I64]) -> list[ChannelInfo]:
    """Return *infos* in metres and right-handed axes, as the channels of *source* are then."""
    turned = source.ros_axes().scan.channels
    return [
        _decoded_in(source, replace(other, topic=info.topic), other, rows[n]) if n in rows else info
        for n, (info, other) in enumerate(zip(infos, turned, strict=True))
    ]


class _SourceDecoder:
    """The decoder of the source, which may read numbers that stand outside of payloads there."""

    def __init__(self, decoder: PayloadDecoder, index: MessageIndex, rows: I64) -> None:
        self._decoder, self._index, self._rows = decoder, index, rows
        #: See ``SideColumnsDecoder``.
        self.logged: tuple[str, ...] = getattr(decoder, "logged", ())

    def decode_batch(self, index: MessageIndex, layout: Layout, payloads: PayloadRange, rows: I64) -> Decoded:
        """See ``PayloadDecoder``."""
        return self._decoder.decode_batch(self._index, layout, payloads, self._rows[rows])

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See ``PayloadDecoder``."""
        source_row = None if row is None else int(self._rows[row])
        return self._decoder.decode_message(self._index, data, source_row)


def _info(
    info: ChannelInfo, name: str, channel: NewChannel, new: NewLog, declared: ChannelInfo | None
) -> ChannelInfo:
    """Return a channel of the new log; *declared*: as a reader of the new log finds it, if that is known."""
    if declared is not None and channel.is_other:
        return declared
    if declared is not None:
        return replace(info, topic=name, schema=declared.schema, metadata=declared.metadata)
    number, schema = new.number_of(channel), channel.schema
    if not channel.is_other and not isinstance(schema, Layout):
        return replace(info, topic=name, schema=schema, metadata=channel.metadata)
    schemas = new.format_writer.schemas
    layout = schemas.layout(number)
    if isinstance(schema, Layout):
        schema = schemas.schema_from_layout(name, schema)
    return ChannelInfo(name, schema, lambda: layout, channel.metadata)


def _metadata(log: Log, new: NewLog) -> Mapping[str, Any]:
    copier = new.copier
    kept = {name: value for name, value in log.metadata.items() if name not in copier.replaced_metadata}
    if copier.masking is not None:
        kept = {name: copier.masking.value(name, value) for name, value in kept.items()}
    return {**kept, **new.metadata}


def _attachments(log: Log, new: NewLog) -> list[Attachment]:
    masking, kept = new.copier.masking, list(log.attachments.values())
    if masking is not None:
        masked = list[Attachment]()
        for attachment in kept:
            data = masking.content(attachment.name, attachment.read())
            name = masking.name("attachment", attachment.name)
            created = None if attachment.created is None else masking.time(attachment.created)
            masked.append(
                replace(attachment, name=name, size=len(data), read=partial(bytes, data), created=created)
            )
        kept = masked
    return [*kept, *new.attachments]


def _parameters(log: Log, new: NewLog) -> list[Parameter]:
    masking, kept = new.copier.masking, list(log.parameters.values())
    if masking is None:
        return kept
    return [
        replace(
            parameter,
            value=None if parameter.value is None else masking.value(parameter.name, parameter.value),
            changes=tuple(
                replace(change, value=masking.value(parameter.name, change.value))
                for change in parameter.changes
            ),
            defaults={
                default: masking.value(parameter.name, value) for default, value in parameter.defaults.items()
            },
        )
        for parameter in kept
    ]


#: Edits as a recipe, the path of one, or members of one as for ``logreel.edit``.
Edit = Recipe | RecipeOptions | str | os.PathLike[str]


class MigrateOptions(TypedDict, total=False):
    """Parameters of ``logreel.migrate``, without source and target."""

    rules: Files
    to: Files
    known: bool
    partial: bool


#: A migration by its parameters, or with the definitions that logreel knows (True).
Migrate = MigrateOptions | bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a log before its messages are selected; None: no such change.

    recipe   edits, which come first
    migrate  migration of the types of messages
    """

    recipe: Recipe | None = None
    migrate: MigrateOptions | None = None

    @classmethod
    def of(cls, edit: Edit | None, migrate: Migrate | None) -> Changes:
        """Return the changes as callers give them; raises UsageError for what is none."""
        recipe: Recipe | None
        if edit is None or isinstance(edit, Recipe):
            recipe = edit
        elif isinstance(edit, Mapping):
            recipe = Recipe.of(**edit)
        else:
            recipe = read_recipe(edit)
        if migrate is None or isinstance(migrate, bool):
            return cls(recipe, MigrateOptions() if migrate else None)
        unknown = set(migrate) - set(MigrateOptions.__annotations__)
        if unknown:
            known = ", ".join(MigrateOptions.__annotations__)
            raise UsageError(f"{min(unknown)!r} is no option of a migration; there are {known}")
        return cls(recipe, migrate)

    def __bool__(self) -> bool:
        return self.recipe is not None or self.migrate is not None

    @property
    def renames_before_migration(self) -> bool:
        """Whether topics get other names before types are looked at, which some formats name after their topic."""
        return self.migrate is not None and self.recipe is not None and bool(self.recipe.rename)

    def _migration(self, log: Log) -> tuple[Part, Migration, list[str]]:
        options: dict[str, Any] = {**(self.migrate or {})}
        partial = options.pop("partial", False)
        return plan_migration(log, Planner(**options), partial)

    def made_of(
        self, log: Log, files: ExitStack, folder: str | None = None, keeps_content: bool = False
    ) -> ChangedLog:
        """Return *log* with the changes, without writing it.

        files, folder  for the temporary file of several files, which become one first
        keeps_content  what the log holds besides messages stays as it is
        """
        made = ChangedLog(log, {})
        if isinstance(log, JoinedLog):
            made.take(_merged(log, files, folder))
            log = made.log
        if self.recipe is not None:
            part, edits = plan_edits(log, self.recipe)
            made.take(transformed(part, [edits], keeps_content), edits, edits.plan.problems)
        if self.migrate is not None:
            part, migration, skipped = self._migration(made.log)
            made.take(transformed(part, [migration], keeps_content), migration, skipped)
        return made

    def part_of(
        self, log: Log, chosen: Selection, files: ExitStack, folder: str | None = None
    ) -> tuple[Part, list[Transform], list[str]]:
        """Return what of *log* is written to a log of its format, its transforms, and what is left as it is.

        The selection is about the log with its changes.
        """
        if isinstance(log, JoinedLog):
            joined = _merged(log, files, folder)
            part, transforms, skipped = self.part_of(joined.log, chosen, files, folder)
            return replace(part, notes=(*joined.notes, *part.notes)), transforms, [*joined.skipped, *skipped]
        part, transforms, skipped = whole_log(log), list[Transform](), list[str]()
        if self.recipe is not None:
            part, edits = plan_edits(log, self.recipe)
            transforms.append(edits)
            skipped += edits.plan.problems
        if self.migrate is not None:
            migrated, migration, left = self._migration(log)
            transforms.append(migration)
            skipped += left
            names = {n: topic for n, topic in migrated.names.items() if n not in part.names}
            part = replace(part, names={**part.names, **names}, notes=(*part.notes, *migrated.notes))
        if not chosen.is_part:
            return part, transforms, skipped
        made = self.made_of(log, files, folder)
        selected = part_of(made.log, chosen)
        moves = any(transform.moves_times for transform in made.transforms)
        start, end = (None, None) if moves else earlier((selected.start, selected.end), part.shift)
        return (
            replace(
                part,
                rows={n: made.source_rows(n, rows) for n, rows in selected.rows.items()},
                start=start,
                end=end,
                floor=None if selected.floor is None or moves else selected.floor - part.shift,
                notes=(*part.notes, *selected.notes),
                filtered=True,
                windows=selected.windows,
            ),
            transforms,
            skipped,
        )


def _merged(log: JoinedLog, files: ExitStack, folder: str | None) -> TransformedLog:
    """Return the files of *log* as one, see ``written_apart``, as long as *files* are open.

    What is redacted in one file has to be found in all of them: in their metadata, parameters and attachments, too.
    """
    fmt, parts = format_of(log), [whole_log(log)]
    done, content = files.enter_context(
        written_apart(
            lambda path, out: rewrite(parts, Target(path, format=fmt.name), out=out), fmt.suffixes[0], folder
        )
    )
    merged = files.enter_context(open_log(content))
    merged.name = log.name
    return TransformedLog(merged, {}, list(done.notes), list(done.skipped))


@dataclass
class ChangedLog:
    """A log with changes that are not written.

    rows        rows in the source by channel number; a channel without keeps its rows
    transforms  what changed it
    """

    log: Log
    rows: dict[int, I64]
    transforms: tuple[Transform, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def take(
        self, made: TransformedLog, transform: Transform | None = None, skipped: Sequence[str] = ()
    ) -> None:
        """Go on with *made*, which *transform* made of the log so far; None: that in one file."""
        before = self.rows
        self.rows = {n: before[n][rows] if n in before else rows for n, rows in made.rows.items()}
        self.log, self.transforms = made.log, (*self.transforms, *([] if transform is None else [transform]))
        self.notes, self.skipped = (*self.notes, *made.notes), (*self.skipped, *skipped, *made.skipped)

    def source_rows(self, channel: int, rows: slice | I64) -> I64:
        """Return int64[n]: the rows in the source of messages at *rows* of a channel."""
        return self.rows[channel][rows] if channel in self.rows else np.asarray(rows, np.int64)


@dataclass
class ChangedContent(Transform):
    """What a transform changes of a log besides messages, for a log whose messages have their changes already.

    is_copied  the content is copied from the log without its changes, not imported with them
    """

    transform: Transform
    is_copied: bool

    def changes(self, part: Part) -> bool:
        """Return whether copied content changes."""
        return self.is_copied

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Have the content written with its changes."""
        if self.is_copied:
            self.transform.change_content(new)
        return channels

    def verify(self, new: NewLog, log: Log) -> None:
        """Search *log* for what was to be removed."""
        self.transform.search(log, new.target.path)
