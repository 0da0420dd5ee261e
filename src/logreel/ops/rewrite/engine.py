"""The engine that writes a new log from parts of other logs: it reads, transforms, writes, and reads the new log back.

Without transforms, messages are copied without decoding them. The new file gets its name when it is complete and was
read back; until then, and after an error, an existing file stays unchanged.
"""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, IncompleteOutputError, LogError, UnsupportedError, UsageError
from logreel.index.gather import gather_times
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, ahead
from logreel.io.output_stream import OutputStream
from logreel.io.platform import pool
from logreel.io.source import Source
from logreel.io.two_pass import PIECE, DryRun, send, written_apart
from logreel.layout.layout import Layout
from logreel.log.joined_log import JOINED, JoinedLog
from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF, Attachment, Schema
from logreel.log.side_columns import lost_side_columns
from logreel.log.source_files import decrypted_notes
from logreel.log.times import utc_shift
from logreel.ops.rewrite.folders import to_folder
from logreel.ops.rewrite.parts import Part, by_file, compare_checksums, shift_clock
from logreel.ops.rewrite.streams import MessageBatch, in_file_order, in_time_order
from logreel.ops.rewrite.target import (
    Copied,
    Progress,
    Rewritten,
    Target,
    appends_only,
    check_names,
    format_of,
    format_to_write,
    is_folder_name,
)
from logreel.registry.format import Format
from logreel.registry.open import log_of
from logreel.registry.registry import formats
from logreel.write.format_writer import FormatWriter, SourceClock, tallied
from logreel.write.log_copier import Excerpt, LogCopier, copier_for, original_log_of, original_of
from logreel.write.writer import Writer, add_channel, check_format_options

#: Metadata key of a channel: the previous encoding of its messages.
TRANSCODED = "transcoded_from"
#: Bytes of logs that are rewritten without threads of their own.
SMALL = 1 << 20


def rewrite(
    parts: Sequence[Part],
    target: Target,
    by_time: bool = False,
    transforms: Sequence[Transform] = (),
    out: Appender | None = None,
    skipped: list[str] | None = None,
) -> Rewritten:
    """Write *parts* as one new log: by time, or (one part) in file order. Logs of several formats need a transform.

    transforms  what becomes of the messages on their way, one after another; empty: they stay as they are
    out      file for the bytes instead of a new one; of the path of *target* only the suffix is used then
    skipped  list for the sentences about what is left out

    A path that ends with a slash is that of a folder, in formats that have folders.

    Raises UsageError for an output that is an input and for an encrypted log that may not be decrypted,
    UnsupportedError for a format that cannot be written, LogError if the output exists or cannot be written.
    """
    if out is None and target.stream is None and is_folder_name(target.path):
        skipped = [] if skipped is None else skipped
        return to_folder(
            parts,
            target,
            lambda logs, to: rewrite(logs, to, by_time, transforms, None, skipped),
            rewrite,
            skipped if transforms else None,
        )
    plain = dict.fromkeys(
        note for part in parts for note in decrypted_notes(part.log, isinstance(out, DryRun))
    )
    # Files of one recording, one after another: their order is that of time if they do not overlap.
    in_turn = not transforms and not by_time and len(parts) == 1 and _is_in_turn(parts[0])
    by_time = by_time or any(isinstance(part.log, JoinedLog) for part in parts)
    log = parts[0].log
    fmt = format_to_write(target.path, log, target.format) if target.foreign else format_of(log)
    files = [part_of_file for part in parts for part_of_file in by_file(part)]
    for part in files:
        compare_checksums(part.log, part.rows)
    # A log of another format imports what all files have together.
    parts = [
        part_of_file
        for part in parts
        for part_of_file in (by_file(part) if part.log.format == fmt.name else [part])
    ]
    log = parts[0].log
    if out is None:
        check_names(files, target, fmt)
        if target.stream is not None:
            return _to_stream(parts, target, target.stream, by_time, transforms, fmt, skipped or [])
    check_format_options(fmt, target.options)
    was = None if fmt.name == log.format else original_log_of(log, fmt.name)
    # Another version of the format may not have what the source has, such as compression.
    alike = (
        was is not None or fmt.name in (log.format, log.converted_from)
    ) and "version" not in target.options
    metadata = log.metadata if was is None else was.metadata
    options = {**(fmt.like(metadata) if alike else {}), **target.options}
    for name, what in (("compression", "compression"), ("chunk_bytes", "chunks")):
        if getattr(target, name) is not None:
            if name not in fmt.like({}):
                raise UsageError(f"{fmt.title} has no {what} to choose")
            options[name] = getattr(target, name)
    out = out or Appender(target.path, target.force, keep=False)
    try:
        format_writer = fmt.create(out, **options)  # type: ignore[misc]
        copier = copier_for(fmt, format_writer)
        copier.clock = target.clock
        copier.repairs = target.repairs
        new = NewLog(parts, target, fmt, out, format_writer, copier, [] if skipped is None else skipped)
        new.notes += [note for part in parts for note in part.notes]
        new.notes += plain
        new.transforms, new.in_turn, new.options = transforms, in_turn, options
        return new.run(by_time)
    except BaseException:
        out.discard()
        raise


def _is_in_turn(part: Part) -> bool:
    """Return whether *part* is of a log of several files that do not overlap, with the names and times of the files."""
    log = part.log
    plain = not part.names and not part.shift and part.floor is None and not part.in_force
    return isinstance(log, JoinedLog) and plain and not log.index.by_time and not any(log.shifts)


def _to_stream(
    parts: Sequence[Part],
    target: Target,
    stream: OutputStream,
    by_time: bool,
    transforms: Sequence[Transform],
    fmt: Format,
    skipped: Sequence[str],
) -> Rewritten:
    """Write the log to the stream of *target*: while it is written, if the format only appends; else in a second pass.

    The log for a thorough target is verified before the stream gets any of it.
    """
    done = list[Rewritten]()
    if target.thorough:

        def apart(path: str, out: Appender | None) -> Rewritten:
            inside = replace(target, path=path, stream=None)
            return rewrite(parts, inside, by_time, transforms, out, [*skipped])

        with (
            written_apart(apart, fmt.suffixes[0]) as (made, content),
            io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb") as file,
        ):
            shutil.copyfileobj(file, stream, PIECE)
        return replace(made, path=target.path)
    forward = appends_only(fmt)

    def make(out: Appender) -> None:
        first = not forward and isinstance(out, DryRun)
        progress = _in_two_passes(target.progress, first) if not forward else target.progress
        to_file = replace(target, stream=None, progress=progress)
        done.append(rewrite(parts, to_file, by_time, transforms, out, [*skipped]))

    size = send(target.path, stream.write, make, forward)
    return replace(done[-1], size=size)


def _in_two_passes(progress: Progress | None, first: bool) -> Progress | None:
    """Return *progress* for the first or the second of two passes over all messages."""
    if progress is None:
        return None
    return lambda done, total: progress(done if first else done + total, 2 * total)


#: Adds a NewChannel to a writer with its metadata; returns its number and name.
AddChannel = Callable[[Writer, "NewChannel"], tuple[int, str]]


@dataclass(slots=True)
class NewChannel:
    """A channel on its way into the new log.

    part      number of the part that its messages come from
    number    its number in batches: that of the source, or one after these
    source    the channel of the log whose messages it gets; None: a transform makes its messages
    topic     its name, which the user chose if *is_named*
    schema    definition, or the Layout that the format makes one of
    is_other  whether its messages are in another encoding than those of the source
    add       adds it to the writer in another way than ``NewLog.add_as_it_is``
    """

    part: int
    number: int
    source: Channel | None
    topic: str
    schema: Schema | Layout
    metadata: Mapping[str, Any]
    is_named: bool = False
    is_other: bool = False
    add: AddChannel | None = None

    @classmethod
    def of(cls, number: int, part: Part, channel: Channel) -> Self:
        """Return the copy of a channel of part *number*."""
        topic, is_named = part.names.get(channel.number, channel.topic), channel.number in part.names
        return cls(number, channel.number, channel, topic, channel.schema, channel.metadata, is_named)


class Transform:
    """A change of logs on their way into a new one; as it is, it changes nothing.

    A transform is used for one log at a time, and begins anew with each call of ``channels``.

    depth        number of batches that are prepared in advance
    moves_times  whether messages get other times, apart from the shift of their part
    """

    depth: int = 4
    moves_times: bool = False

    def changes(self, part: Part) -> bool:
        """Return whether anything of *part* changes; if not, whole records can be copied."""
        return True

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Return what *channels* become; called once, before anything is written to *new*."""
        return channels

    def change_content(self, new: NewLog) -> None:
        """Have what the logs hold besides messages written to *new* with its changes."""

    def content(self, new: NewLog, log: Log) -> Log:
        """Return *log*, of another format, with what it holds besides messages as it is imported into *new*."""
        return log

    def batches(self, new: NewLog, batches: Iterable[MessageBatch]) -> Iterable[MessageBatch]:
        """Yield what messages become; called once, when the channels are added to *new*."""
        return batches

    def finish(self, new: NewLog) -> None:
        """Add sentences about the messages, which are all written, to *new*."""

    def why_unwritten(self, channel: NewChannel) -> str:
        """Return why messages of *channel* were left out; empty if that was for no reason of this transform."""
        return ""

    def verify(self, new: NewLog, log: Log) -> None:
        """Compare *log*, the new log read back, with what it should be; raises LogError."""

    def search(self, log: Log, path: str) -> None:
        """Search *log*, the new log read back, for what was to be removed; raises LogError."""


@dataclass
class NewLog:
    """A new log while it is written.

    names      members of each new channel, by its name
    made       message counts in the new file of channels that readers build from others
    declared   metadata by which messages of a channel are counted, if not those that it has
    unwritten  number of selected messages that were not written, by name; below 0: of messages that were made
    options    options with which the FormatWriter was created
    by_time    whether messages are written by time, not in file order
    returns    whether the log is converted back to what it was
    metadata, attachments  those that are set, besides those of the logs
    in_turn    whether *parts* are files of one recording that do not overlap in time
    """

    parts: Sequence[Part]
    target: Target
    fmt: Format
    out: Appender
    format_writer: FormatWriter
    copier: LogCopier
    skipped: list[str]
    transforms: Sequence[Transform] = ()
    notes: list[str] = field(default_factory=list)
    names: dict[str, list[NewChannel]] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    declared: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unwritten: Counter[str] = field(default_factory=Counter)
    options: Mapping[str, Any] = field(default_factory=dict)
    by_time: bool = False
    in_turn: bool = False
    returns: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    #: Numbers of the new channels by name, and by part and number in batches, -1 for others.
    _numbers: dict[str, int] = field(default_factory=dict)
    _table: NDArray[np.int32] = field(default_factory=lambda: np.zeros((1, 0), np.int32))
    #: New values of the last side column, by part and channel number.
    _moved: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    #: Numbers of messages of parts that a transform did not select, by part and channel number.
    _passed_over: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: Part and number of each channel that the format cannot hold.
    _left_out: set[tuple[int, int]] = field(default_factory=set)

    @property
    def is_foreign(self) -> bool:
        """Whether the first log is of another format than the new one."""
        return self.is_from_other_format(self.parts[0])

    def is_from_other_format(self, part: Part) -> bool:
        """Return whether the log of *part* is of another format than the new one."""
        return part.log.format != self.fmt.name

    def number_of(self, channel: NewChannel) -> int:
        """Return the number of a channel in the new log; -1 if it was left out."""
        return int(self._table[channel.part, channel.number])

    def numbers_of(self, batch: MessageBatch) -> NDArray[np.int32]:
        """Return int32[n]: the number in the new log of the channel of each message."""
        numbers: NDArray[np.int32] = self._table[batch.origins, batch.channels].take(batch.queue)
        return numbers

    def run(self, by_time: bool) -> Rewritten:
        """Write the log, read it back, and give the file its name; raises FileChangedError if a source changed."""
        try:
            return self._run(by_time)
        except Exception:
            self._check_sources()
            raise

    def _check_sources(self) -> None:
        for part in self.parts:
            part.log.check_unchanged()

    def _run(self, by_time: bool) -> Rewritten:
        writer = Writer(self.out, self.format_writer, None, False)
        self.begin()
        self.by_time = by_time
        if not self._copies_records() and not self._copies_files():
            self.by_time = by_time or self._has_synthetic
            self._compose(writer)
        self._check_sources()
        if self.out.readable:
            with writer.closing() as path:
                self._verify(path)
        else:
            writer.close()
        self._check_sources()
        self._tell(1, 1)
        self.notes += self.format_writer.notes
        return Rewritten(
            self.target.path, self.out.tell(), tuple(self._copied()), tuple(self.notes), tuple(self.skipped)
        )

    # ---------------------------------------------------------------------------------------- copying records

    def _copies_records(self) -> bool:
        """Copy whole records of the first part, if all of them stay as they are; return whether that is done."""
        part = self.parts[0]
        moves = self.by_time or part.names or part.shift or part.floor is not None
        if moves or self.is_foreign or any(transform.changes(part) for transform in self.transforms):
            return False
        if not self.copier.copy_records(Excerpt(part.log, part.rows, part.start, part.end, part.in_force)):
            return False
        self.names = {ch.topic: [NewChannel.of(0, part, ch)] for ch in part.channels}
        return True

    def _copies_files(self) -> bool:
        """Copy the records of several files one after another, if that is possible; return whether it is done."""
        if not self.in_turn or self.is_foreign:
            return False
        # Files without messages of the selection give nothing.
        filled = [(p, part) for p, part in enumerate(self.parts) if part.total]
        excerpts = [Excerpt(part.log, part.rows, part.start, part.end) for _, part in filled]
        if not excerpts or not self.copier.copy_files(excerpts):
            return False
        for p, part in filled:
            for ch in part.channels:
                self.names.setdefault(ch.topic, []).append(NewChannel.of(p, part, ch))
        return True

    # ---------------------------------------------------------------------------------------------- facts

    def _clock(self) -> SourceClock:
        """Return the clock of the first log, shifted as its messages are."""
        part = self.parts[0]
        offset, epoch = utc_shift(part.log), part.log.epoch
        if part.shift and offset is not None:
            offset -= part.shift
            epoch = epoch if offset else "unix"
        return SourceClock(offset, epoch, len(self.parts) == 1 and part.is_whole, self._begins)

    def _begins(self) -> int | None:
        """Return the first time of all parts, ns, or None."""
        return min((first for part in self.parts if (first := part.begins()) is not None), default=None)

    @property
    def _has_synthetic(self) -> bool:
        """Whether synthetic messages without known positions go to another format, which orders them by time."""
        return any(
            (synthetic := part.log.index.synthetic(number)) is not None and synthetic.place is None
            for part in self.parts
            if self.is_from_other_format(part)
            for number in part.rows
        )

    def _copied(self) -> Iterator[Copied]:
        for name, members in self.names.items():
            if not name.startswith("~"):
                extra = self.format_writer.extra_messages[self._count_key(name, members[0].metadata)]
                yield Copied(name, self.made.get(name, self._due(name) + extra))

    def pass_over(self, batch: MessageBatch) -> None:
        """Count the messages of *batch* as not selected."""
        counts = tallied(batch.queue, len(batch.channels)).tolist()
        pairs = zip(batch.origins.tolist(), batch.channels.tolist(), strict=True)
        for pair, count in zip(pairs, counts, strict=True):
            self._passed_over[pair] += count

    def _selected(self, channel: NewChannel) -> int:
        """Return the number of selected messages of the source of a channel; 0 if its messages are made."""
        if channel.source is None:
            return 0
        return (
            self.parts[channel.part].count(channel.number) - self._passed_over[channel.part, channel.number]
        )

    def _due(self, name: str) -> int:
        """Return the number of messages that were written of a new channel."""
        return sum(map(self._selected, self.names[name])) - self.unwritten[name]

    def _count_key(self, name: str, metadata: Mapping[str, Any]) -> str:
        return self.copier.count_key(name, self.declared.get(name, metadata))

    # ---------------------------------------------------------------------------------------------- writing

    def begin(self) -> None:
        """Tell the writer the clock of the sources."""
        self.format_writer.source_clock = self._clock()

    def prepare(self, writer: Writer) -> None:
        """Add the channels, and all that is copied besides messages."""
        wanted = [(part.log.index, number) for part in self.parts for number in part.rows]
        due, skipped = sum(part.total for part in self.parts), list[str]()
        channels: Sequence[NewChannel] = [
            NewChannel.of(p, part, ch) for p, part in enumerate(self.parts) for ch in part.channels
        ]
        for transform in self.transforms:
            channels = transform.channels(self, channels)
        with pool(0 if self._is_small else 1) as gatherer:
            times = gatherer.submit(gather_times, wanted)
            for part in self.parts:
                skipped += self._copy_content(part)
                if part.joined and JOINED not in part.log.metadata:
                    self._tell_joined(part.joined)
            for name, value in self.metadata.items():
                self.format_writer.metadata(name, value)
            self._add_channels(writer, channels)
            for attachment in self.attachments:
                self.format_writer.attachment(attachment.name, attachment.read(), attachment.media_type)
        times.result()
        self.skipped += skipped
        # Times out of range are a loss, except after a requested shift, where they are an error.
        self.parts = [
            self._representable(part) if self.is_from_other_format(part) or not part.shift else part
            for part in self.parts
        ]
        self._refuse(due, sum(part.total for part in self.parts))

    def transformed(self, batches: Iterable[MessageBatch]) -> Iterable[MessageBatch]:
        """Return what *batches* of the parts become."""
        for transform in self.transforms:
            batches = transform.batches(self, batches)
        return batches

    @property
    def _is_small(self) -> bool:
        """Whether to start threads takes longer than they save."""
        return sum(part.log.size for part in self.parts) <= SMALL

    def _compose(self, writer: Writer) -> None:
        due = sum(part.total for part in self.parts)
        self.prepare(writer)
        total, done = sum(part.total for part in self.parts), 0
        written = np.zeros(int(self._table.max(initial=-1)) + 1, np.int64)
        depth = min((transform.depth for transform in self.transforms), default=Transform.depth)
        batches = self.transformed(self._read())
        for batch in batches if self._is_small else ahead(batches, depth):
            channel = self.numbers_of(batch)
            written += tallied(channel, len(written))
            payloads = replace(batch.payloads, side_columns=self._side_columns(batch))
            writer.write_payloads(channel, batch.time, payloads)
            done += len(channel)
            self._tell(done, total)
        self.account(written)
        self._refuse(due, int(written.sum()))

    def _copy_content(self, part: Part) -> list[str]:
        """Copy or import what a log holds besides messages; return sentences about what was left out."""
        log, self.copier.clock = part.log, part.clock or self.target.clock
        if not self.is_from_other_format(part):
            return self.copier.copy_metadata(log)
        shift = part.shift if part.content_shift is None else part.content_shift
        # A copier with the clock ``utc`` shifts imported times itself.
        moved = log if self.copier.clock == "utc" else shift_clock(log, shift)
        for transform in self.transforms:
            moved = transform.content(self, moved)
        return self.copier.import_foreign(moved, self.returns or log.converted_from == self.fmt.name)

    def _tell_joined(self, reason: str) -> None:
        """Write into the metadata that logs of different recordings were joined anyway."""
        for value in (reason, {"reason": reason}):
            with suppress(UsageError, UnsupportedError):
                self.format_writer.metadata(JOINED, value)
                return

    def account(self, written: I64) -> None:
        """Compare the numbers of messages written, by new channel number, with the counts of the logs."""
        for name, members in self.names.items():
            due, count = sum(map(self._selected, members)), int(written[self._numbers[name]])
            self.unwritten[name] = due - count
            if due > count and all(member.source is not None for member in members):
                reasons = (transform.why_unwritten(members[0]) for transform in self.transforms)
                why = next(filter(None, reasons), "they are not in the file")
                self.skipped.append(f"{due - count} messages of {name!r} were left out: {why}")
        for transform in self.transforms:
            transform.finish(self)

    def _refuse(self, due: int, written: int) -> None:
        """Raise IncompleteOutputError if *strict* and something is left out, or if none of *due* messages is written.

        A file of another format without any of the messages could be mistaken for the log.
        """
        if self.target.strict and self.skipped:
            raise IncompleteOutputError("", self.skipped, path=self.target.path)
        if self.is_foreign and due and not written:
            why = f"{self.format_writer.title} can hold none of the {due} messages{self.alternative()}: "
            raise IncompleteOutputError(why, [*self.skipped, *self.notes], path=self.target.path)

    def alternative(self) -> str:
        """Return a hint which conversion can hold the messages; empty if no format can."""
        log = self.parts[0].log
        if any(self._was_here(ch) for ch in log.channels.values()):
            return " (convert --raw makes logs that can be converted back)"
        able = [
            fmt for fmt in formats().values() if fmt.exchange and fmt.name not in (log.format, self.fmt.name)
        ]
        return f" ({able[0].title}, *{able[0].suffixes[0]}, holds those of every format)" if able else ""

    def _was_here(self, channel: Channel) -> bool:
        """Return whether a channel was in the format of the target before it was translated for other tools."""
        was = original_of(channel) if TRANSCODED in channel.metadata else None
        return was is not None and was.format == self.fmt.name

    def _tell(self, done: int, total: int) -> None:
        if self.target.progress is not None:
            self.target.progress(done, max(done, total))

    # --------------------------------------------------------------------------------------------- messages

    def _read(self) -> Iterator[MessageBatch]:
        """Yield the messages in writing order, with the side columns that the format stores in its own way."""
        numbered = [
            (p, ch.number)
            for p, part in enumerate(self.parts)
            for ch in part.channels
            if not self.is_from_other_format(part)
            and self.copier.side_columns(part.log, ch.number, np.zeros(0, np.int64)) is not None
        ]
        for batch in in_time_order(self.parts) if self.by_time else in_file_order(self.parts[0]):
            if not numbered:
                yield batch
                continue
            columns = np.zeros((len(batch.queue), 0), np.int64)
            for p, channel in numbered:
                rows = np.flatnonzero((batch.origin == p) & (batch.channel == channel))
                values = self.copier.side_columns(self.parts[p].log, channel, batch.offset[rows])
                if values is not None:
                    columns = np.pad(columns, ((0, 0), (0, max(0, values.shape[1] - columns.shape[1]))))
                    columns[rows, : values.shape[1]] = values
            yield (
                replace(batch, payloads=replace(batch.payloads, side_columns=columns))
                if columns.shape[1]
                else batch
            )

    def _side_columns(self, batch: MessageBatch) -> np.ndarray | None:
        """Return int64[n, k]: side columns of the batch, zeros for channels without; None if there are none."""
        names = self.format_writer.side_column_names
        complete = bool(names) and batch.more.keys() >= set(names)
        if not complete and not self._moved:
            return batch.payloads.side_columns
        none = np.zeros(len(batch.queue), np.int64)
        columns = np.column_stack([batch.more[name] if complete else none for name in names])
        for (p, channel), numbers in self._moved.items():
            rows = np.flatnonzero((batch.origin == p) & (batch.channel == channel))
            columns[rows, -1] = numbers[columns[rows, -1]]
        return columns

    def _representable(self, part: Part) -> Part:
        """Return *part* without messages whose times the format cannot hold."""
        rows = dict(part.rows)
        for number, selected in part.rows.items():
            times = part.log.index.times_of(number, selected)
            if not len(times) or self._holds(int(times.min()) + part.shift, int(times.max()) + part.shift):
                continue
            times = times + part.shift
            fits = (times >= self.format_writer.earliest) & (times <= self.format_writer.latest)
            rows[number] = np.arange(part.log.index.count(number))[selected][fits]
            topic = next(ch.topic for ch in part.channels if ch.number == number)
            text = f"{int((~fits).sum())} messages of {topic!r} were left out: "
            self.skipped.append(text + f"{self.format_writer.title} cannot hold their times")
        return replace(part, rows=rows)

    def _holds(self, first: int, last: int) -> bool:
        """Return whether the format can hold times from *first* to *last*."""
        return self.format_writer.earliest <= first and last <= self.format_writer.latest

    # --------------------------------------------------------------------------------------------- channels

    def _add_channels(self, writer: Writer, channels: Sequence[NewChannel]) -> None:
        """Add the channels, those that are alike as one."""
        width = max(
            max(len(part.log.channels) for part in self.parts), *(ch.number + 1 for ch in channels), 0
        )
        self._table = np.full((len(self.parts), width), -1, np.int32)
        groups: dict[Hashable, list[NewChannel]] = {}
        for ch in channels:
            try:
                key = self._merge_key(ch)
            except (DefinitionError, UsageError) as error:
                if not self.is_foreign and ch.is_named:
                    raise
                self._refuse_channel([ch], error)
                continue
            if ch.source is None and any(other.part == ch.part for other in groups.get(key, ())):
                key = (key, ch.number)
            groups.setdefault(key, []).append(ch)
        for members in groups.values():
            first = members[0]
            before = [member.metadata for member in members]
            first.metadata = self.copier.merged_metadata(before)
            try:
                number, name = (first.add or self.add_as_it_is)(writer, first)
            except (DefinitionError, UsageError) as error:
                self._refuse_channel(members, error)
                continue
            if name != first.topic and first.source is not None and first.add is None:
                self.notes.append(f"{first.topic!r} of {first.source.log.name} became {name!r}")
            self.names[name], self._numbers[name] = members, number
            for member, metadata in zip(members, before, strict=True):
                self._table[member.part, member.number] = number
                if member.source is not None and not self.is_from_other_format(self.parts[member.part]):
                    moved = self.copier.side_column_map(metadata, first.metadata)
                    if moved is not None:
                        self._moved[member.part, member.number] = moved
        if self._left_out:
            self.parts = [
                replace(part, rows={n: rows for n, rows in part.rows.items() if (p, n) not in self._left_out})
                for p, part in enumerate(self.parts)
            ]

    def _merge_key(self, channel: NewChannel) -> Hashable:
        """Return a key that is equal for channels that become one."""
        schema = channel.schema
        if not isinstance(schema, Schema):
            schema = Schema("", "", "") if channel.source is None else channel.source.schema
        try:
            return self.copier.merge_key(channel.topic, schema, channel.metadata)
        except (DefinitionError, UsageError, KeyError):
            if channel.add is None:
                raise
            # Its name or its definition is not possible in the format, but may become so.
            return channel.topic, channel.number

    def add_as_it_is(self, writer: Writer, channel: NewChannel) -> tuple[int, str]:
        """Add a channel; return its number and name. Raises DefinitionError or UsageError if it cannot be added."""
        source, is_foreign = channel.source, self.is_from_other_format(self.parts[channel.part])
        if is_foreign and source is not None and not channel.is_other:
            self.skipped += lost_side_columns(source)
        # Damage to a definition costs no messages; a name given by the user must be valid.
        copied = source is not None and not is_foreign and not channel.is_named
        return add_channel(writer, channel.topic, channel.schema, channel.metadata, self.names, copied)

    def _refuse_channel(self, members: Sequence[NewChannel], error: LogError) -> None:
        """Leave out a channel that the format refuses; raise *error* if its name was requested.

        A requested name is a mistake of the user; a name or definition from another format or a damaged file is a loss.
        """
        if not self.is_foreign and any(member.is_named for member in members):
            raise error
        for member in members:
            ch, why = member.source, error.text
            if ch is None:
                raise error
            text = f"channel {ch.topic!r} ({self._selected(member)} messages) was left out: "
            hint = "; convert --raw keeps messages as they are" * self._was_here(ch)
            if MADE_OF in ch.metadata:
                self.notes.append(f"{text}it was made of {ch.metadata[MADE_OF]!r}")
            else:
                self.skipped.append(text + why + hint)
            self._left_out.add((member.part, member.number))

    # -------------------------------------------------------------------------------------------- verifying

    def _verify(self, path: Path | bytes) -> None:
        """Read the new log and compare; raises LogError if messages that were written are missing."""
        # Payloads may have been read from the sources until now.
        self._check_sources()
        source = Source.open(path)
        scan = self.fmt.scan(source, None)
        if scan is None:
            raise LogError("the new file cannot be read again", path=self.target.path)
        log = log_of(source, self.fmt, scan)
        lost = [problem for problem in log.problems if problem.lost]
        if lost:
            raise LogError(f"the new file is damaged: {lost[0].text}", path=self.target.path)
        before = self.parts[0].log.version
        if not self.is_foreign and log.version != before:
            self.notes.append(f"version {before} of {self.fmt.title} became {log.version}")
        self._compare_counts(log)
        if self.target.thorough and not any(transform.moves_times for transform in self.transforms):
            self._compare_times(log)
        for transform in self.transforms:
            transform.verify(self, log)

    def _compare_counts(self, log: Log) -> None:
        due, read = Counter(self.format_writer.extra_messages), Counter[str]()
        for name, members in self.names.items():
            for member in members:
                due[self._count_key(name, member.metadata)] += self._selected(member)
            due[self._count_key(name, members[0].metadata)] -= self.unwritten[name]
        for ch in log.channels.values():
            read[self._count_key(ch.topic, ch.metadata)] += len(ch)
        for name, count in due.items():
            if read[name] == count or name.startswith("~"):
                continue
            if name in self.names and self._is_synthetic(name):
                self.made[name] = read[name]
                text = f"{name!r} is made of other channels: {read[name]} of {count} messages"
                self.notes.append(f"{text} come of those that were copied")
            else:
                text = f"the new file has {read[name]} messages of {name!r} where {count} are due"
                raise LogError(text, path=self.target.path)

    def _is_synthetic(self, name: str) -> bool:
        """Return whether readers build the channel *name* from others."""
        return any(
            ch.source is not None and ch.source.log.index.rules[ch.source.number].synthetic is not None
            for ch in self.names[name]
        )

    def _compare_times(self, log: Log) -> None:
        for name, members in self.names.items():
            if name not in log or name.startswith("~") or name in self.made or self.unwritten[name]:
                continue
            due = [
                part.log.index.times_of(ch.number, part.rows[ch.number]) + part.shift
                for ch in members
                for part in (self.parts[ch.part],)
            ]
            times = np.concatenate(due)
            if not (
                np.array_equal(times, log[name].times)
                or np.array_equal(np.sort(times), np.sort(log[name].times))
            ):
                self.notes.append(f"times of {name!r} read differently in the new file")
