"""Logs written from parts of other logs without decoding messages: slice, merge, split, sort, recover and convert.

The new file gets its name when it is complete and was read back; until then, and after an error, an existing file stays
unchanged.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from logreel.errors import (
    DefinitionError,
    IncompleteOutputError,
    LogError,
    UnsupportedError,
    UsageError,
)
from logreel.index.gather import gather_times
from logreel.io.append_file import Appender
from logreel.io.output_stream import OutputStream
from logreel.io.parallel import ahead
from logreel.io.source import Source
from logreel.io.two_pass import PIECE, DryRun, send
from logreel.layout.layout import Layout
from logreel.log.decrypted import decrypted_notes
from logreel.log.joined_log import JOINED, JoinedLog
from logreel.log.limited_log import compare_checksums
from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF
from logreel.log.schema import Schema
from logreel.log.side_columns import lost_side_columns
from logreel.log.times import utc_shift
from logreel.ops.rewrite.parts import Part, by_file
from logreel.ops.rewrite.shifted_log import shift_clock
from logreel.ops.rewrite.streams import Batch, in_file_order, in_time_order
from logreel.ops.rewrite.target import (
    Copied,
    Progress,
    Rewritten,
    Target,
    appends_only,
    check_names,
    format_of,
    format_to_write,
)
from logreel.registry.format import Format
from logreel.registry.open import log_of
from logreel.registry.registry import formats
from logreel.write.format_writer import FormatWriter, SourceClock
from logreel.write.log_copier import Excerpt, LogCopier, copier_for
from logreel.write.original import original_log_of, original_of
from logreel.write.payloads import tallied
from logreel.write.writer import Writer, add_channel, check_format_options

#: Metadata key of a channel: the previous encoding of its messages.
TRANSCODED = "transcoded_from"


def rewrite(
    parts: Sequence[Part],
    target: Target,
    by_time: bool = False,
    how: Callable[..., Rewriting] | None = None,
    out: Appender | None = None,
    skipped: list[str] | None = None,
) -> Rewritten:
    """Write *parts*, all of one format, as one new log: by time, or (one part) in file order.

    how      subclass of ``Rewriting``, or a function that returns one, to write other messages than those of the parts
    out      file for the bytes instead of a new one; of the path of *target* only the suffix is used then
    skipped  list for the sentences about what is left out

    Raises UsageError for an output that is an input and for an encrypted log that may not be decrypted,
    UnsupportedError for a format that cannot be written, LogError if the output exists or cannot be written.
    """
    plain = dict.fromkeys(
        note for part in parts for note in decrypted_notes(part.log, isinstance(out, DryRun))
    )
    # Files of one recording, one after another: their order is that of time if they do not overlap.
    in_turn = how is None and not by_time and len(parts) == 1 and _is_in_turn(parts[0])
    by_time = by_time or any(isinstance(part.log, JoinedLog) for part in parts)
    log = parts[0].log
    fmt = format_to_write(target.path, log, target.format) if target.foreign else format_of(log)
    files = [one for part in parts for one in by_file(part)]
    for part in files:
        compare_checksums(part.log, part.rows)
    if fmt.name == log.format:
        # A log of another format imports what all files have together.
        parts, log = files, files[0].log
    if out is None:
        check_names(files, target, fmt)
        if target.stream is not None:
            return _to_stream(parts, target, target.stream, by_time, how, fmt, skipped or [])
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
        found = (how or Rewriting)(
            parts, target, fmt, out, format_writer, copier, [] if skipped is None else skipped
        )
        found.notes += [note for part in parts for note in part.notes]
        found.notes += plain
        found.in_turn, found.options = in_turn, options
        return found.run(by_time)
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
    how: Callable[..., Rewriting] | None,
    fmt: Format,
    skipped: Sequence[str],
) -> Rewritten:
    """Write the log to the stream of *target*: while it is written, if the format only appends; else in a second pass.

    A thorough target gets a file, which is verified, and copied to the stream then.
    """
    done = list[Rewritten]()
    if target.thorough:
        with tempfile.TemporaryDirectory(prefix="logreel-") as folder:
            path = os.path.join(folder, f"log{fmt.suffixes[0]}")
            made = rewrite(parts, replace(target, path=path, stream=None), by_time, how, None, [*skipped])
            with open(path, "rb") as file:
                shutil.copyfileobj(file, stream, PIECE)
            return replace(made, path=target.path)
    forward = appends_only(fmt)

    def make(out: Appender) -> None:
        first = not forward and isinstance(out, DryRun)
        progress = _in_two_passes(target.progress, first) if not forward else target.progress
        there = replace(target, stream=None, progress=progress)
        done.append(rewrite(parts, there, by_time, how, out, [*skipped]))

    size = send(target.path, stream.write, make, forward)
    return replace(done[-1], size=size)


def _in_two_passes(progress: Progress | None, first: bool) -> Progress | None:
    """Return *progress* for the first or the second of two passes over all messages."""
    if progress is None:
        return None
    return lambda done, total: progress(done if first else done + total, 2 * total)


@dataclass
class Rewriting:
    """Writing of one new log."""

    #: Number of batches prepared in advance.
    depth: ClassVar[int] = 4

    parts: Sequence[Part]
    target: Target
    fmt: Format
    out: Appender
    format_writer: FormatWriter
    copier: LogCopier
    skipped: list[str]
    notes: list[str] = field(default_factory=list)
    names: dict[str, list[tuple[int, Channel]]] = field(default_factory=dict)
    #: Message counts in the new file of channels that readers build from others.
    made: dict[str, int] = field(default_factory=dict)
    #: New values of the last side column, by part and channel number.
    moved: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    #: Whether *parts* are files of one recording that do not overlap in time.
    in_turn: bool = False
    #: Options with which the FormatWriter was created.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Number of selected messages that were not written, by name.
    unwritten: Counter[str] = field(default_factory=Counter)
    #: Part and number of each channel that the format cannot hold.
    _left_out: set[tuple[int, int]] = field(default_factory=set)

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
        part = self.parts[0]
        self.format_writer.source_clock = self._clock()
        excerpt = Excerpt(part.log, part.rows, part.start, part.end, part.in_force)
        if self._copies_records(part, by_time) and self.copier.copy_records(excerpt):
            self.names = {ch.topic: [(0, ch)] for ch in part.channels}
        elif not self._copies_files():
            self._compose(writer, by_time or self._has_synthetic)
        self._check_sources()
        writer.close(self._verify if self.out.readable else None)
        self._check_sources()
        self._tell(1, 1)
        self.notes += self.format_writer.notes
        return Rewritten(
            self.target.path, self.out.tell(), tuple(self._copied()), tuple(self.notes), tuple(self.skipped)
        )

    def _copies_records(self, part: Part, by_time: bool) -> bool:
        """Return whether all records of *part* stay as they are."""
        return not (by_time or part.names or part.shift or part.floor is not None or self._is_foreign)

    def _copies_files(self) -> bool:
        """Copy the records of several files one after another, if that is possible; return whether it is done."""
        if not self.in_turn or self._is_foreign:
            return False
        # Files without messages of the selection give nothing.
        some = [(p, part) for p, part in enumerate(self.parts) if part.total]
        excerpts = [Excerpt(part.log, part.rows, part.start, part.end) for _, part in some]
        if not excerpts or not self.copier.copy_files(excerpts):
            return False
        for p, part in some:
            for ch in part.channels:
                self.names.setdefault(ch.topic, []).append((p, ch))
        return True

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
    def _is_foreign(self) -> bool:
        """Whether the new log is of another format."""
        return self.parts[0].log.format != self.fmt.name

    @property
    def _has_synthetic(self) -> bool:
        """Whether synthetic messages without known positions go to another format, which orders them by time."""
        return self._is_foreign and any(
            (synthetic := part.log.index.synthetic(number)) is not None and synthetic.place is None
            for part in self.parts
            for number in part.rows
        )

    def _copied(self) -> Iterator[Copied]:
        for name, members in self.names.items():
            if not name.startswith("~"):
                given = sum(self.parts[p].count(ch.number) for p, ch in members)
                extra = self.format_writer.extra_messages[self._count_key(name, members[0][1])]
                count = given - self.unwritten[name] + extra
                yield Copied(name, self.made.get(name, count))

    def _count_key(self, name: str, channel: Channel) -> str:
        return self.copier.count_key(name, channel.metadata)

    def _tell_joined(self, reason: str) -> None:
        """Write into the metadata that logs of different recordings were joined anyway."""
        for value in (reason, {"reason": reason}):
            with suppress(UsageError, UnsupportedError):
                self.format_writer.metadata(JOINED, value)
                return

    # ---------------------------------------------------------------------------------------------- writing

    def _compose(self, writer: Writer, by_time: bool) -> None:
        wanted = [(part.log.index, number) for part in self.parts for number in part.rows]
        due, skipped = sum(part.total for part in self.parts), list[str]()
        with ThreadPoolExecutor(1) as pool:
            times = pool.submit(gather_times, wanted)
            for part in self.parts:
                log = part.log
                if self._is_foreign:
                    # A copier with the clock ``utc`` shifts imported times itself.
                    moved = log if self.copier.clock == "utc" else shift_clock(log, part.shift)
                    skipped += self._import(moved)
                else:
                    skipped += self.copier.copy_metadata(log)
                if part.joined and JOINED not in log.metadata:
                    self._tell_joined(part.joined)
            table = self._add_channels(writer)
        times.result()
        self.skipped += skipped
        # Times out of range are a loss, except after a requested shift, where they are an error.
        self.parts = [
            self._representable(part) if self._is_foreign or not part.shift else part for part in self.parts
        ]
        total, done = sum(part.total for part in self.parts), 0
        self._refuse(due, total)
        numbered = [
            (p, ch.number)
            for p, part in enumerate(self.parts)
            for ch in part.channels
            if not self._is_foreign
            and self.copier.side_columns(part.log, ch.number, np.zeros(0, np.int64)) is not None
        ]
        batches = self._batches(by_time)
        written = np.zeros(int(table.max(initial=-1)) + 1, np.int64)
        for batch in ahead(batches, self.depth):
            channel = table[batch.origins, batch.channels].take(batch.queue)
            written += tallied(channel, len(written))
            side_columns = self._side_columns(batch, numbered)
            writer.write_payloads(channel, batch.time, replace(batch.payloads, side_columns=side_columns))
            done += len(channel)
            self._tell(done, total)
        self._account(written.tolist())
        self._refuse(due, int(written.sum()))

    def _import(self, log: Log) -> list[str]:
        """Import what a log of another format holds besides messages; return sentences about what was left out."""
        return self.copier.import_foreign(log, log.converted_from == self.fmt.name)

    def _account(self, written: Sequence[int]) -> None:
        """Compare the numbers of messages written, by new channel number, with the counts of the logs."""
        for (name, members), count in zip(self.names.items(), written, strict=False):
            missing = sum(self.parts[p].count(ch.number) for p, ch in members) - count
            if missing:
                self.unwritten[name] = missing
                why = self._why_unwritten(members[0][1])
                self.skipped.append(f"{missing} messages of {name!r} were left out: {why}")

    def _refuse(self, due: int, held: int) -> None:
        """Raise IncompleteOutputError if *strict* and something is left out, or if none of *due* messages is written.

        A file of another format without any of the messages could be mistaken for the log.
        """
        if self.target.strict and self.skipped:
            raise IncompleteOutputError("", self.skipped, path=self.target.path)
        if self._is_foreign and due and not held:
            why = f"{self.format_writer.title} can hold none of the {due} messages{self._alternative()}: "
            raise IncompleteOutputError(why, [*self.skipped, *self.notes], path=self.target.path)

    def _alternative(self) -> str:
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

    def _why_unwritten(self, channel: Channel) -> str:
        return "they are not in the file"

    def _batches(self, by_time: bool) -> Iterable[Batch]:
        """Return the messages in writing order."""
        return in_time_order(self.parts) if by_time else in_file_order(self.parts[0])

    def _side_columns(self, batch: Batch, numbered: list[tuple[int, int]]) -> np.ndarray | None:
        """Return int64[n, k]: side columns of the batch, zeros for channels without; None if there are none."""
        names = self.format_writer.side_column_names
        complete = bool(names) and batch.more.keys() >= set(names)
        if complete or self.moved:
            none = np.zeros(len(batch.queue), np.int64)
            found = np.column_stack([batch.more[name] if complete else none for name in names])
            for (p, channel), numbers in self.moved.items():
                mine = np.flatnonzero((batch.origin == p) & (batch.channel == channel))
                found[mine, -1] = numbers[found[mine, -1]]
            return found
        if not numbered:
            return None
        found = np.zeros((len(batch.queue), 0), np.int64)
        for p, channel in numbered:
            mine = np.flatnonzero((batch.origin == p) & (batch.channel == channel))
            some = self.copier.side_columns(self.parts[p].log, channel, batch.offset[mine])
            if some is not None:
                found = np.pad(found, ((0, 0), (0, max(0, some.shape[1] - found.shape[1]))))
                found[mine, : some.shape[1]] = some
        return found if found.shape[1] else None

    def _tell(self, done: int, total: int) -> None:
        if self.target.progress is not None:
            self.target.progress(done, max(done, total))

    def _add_channels(self, writer: Writer) -> np.ndarray:
        """Add the channels; return int32[part, channel]: the number of each channel in the new log, or -1."""
        table = np.full((len(self.parts), max(len(p.log.channels) for p in self.parts)), -1, np.int32)
        alike: dict[Hashable, list[tuple[int, Channel]]] = {}
        for p, part in enumerate(self.parts):
            for ch in part.channels:
                topic = part.names.get(ch.number, ch.topic)
                try:
                    key = self._merge_key(topic, ch)
                except (DefinitionError, UsageError) as error:
                    if not self._is_foreign and ch.number in part.names:
                        raise
                    self._refuse_channel([(p, ch)], error)
                    continue
                alike.setdefault(key, []).append((p, ch))
        for members in alike.values():
            p, ch = members[0]
            topic = self.parts[p].names.get(ch.number, ch.topic)
            metadata = self.copier.merged_metadata([ch.metadata for _, ch in members])
            renamed = any(ch.number in self.parts[p].names for p, ch in members)
            # Damage to a definition costs no messages; a name given by the user must be valid.
            copied = not self._is_foreign and not renamed
            try:
                number, name = self._add_channel(writer, topic, ch, metadata, copied)
            except (DefinitionError, UsageError) as error:
                self._refuse_channel(members, error)
                continue
            if name != topic:
                self._note_name(topic, ch, name)
            self.names[name] = members
            for p, ch in members:
                table[p, ch.number] = number
                moved = None if self._is_foreign else self.copier.side_column_map(ch.metadata, metadata)
                if moved is not None:
                    self.moved[p, ch.number] = moved
        if self._left_out:
            self.parts = [
                replace(part, rows={n: rows for n, rows in part.rows.items() if (p, n) not in self._left_out})
                for p, part in enumerate(self.parts)
            ]
        return table

    def _note_name(self, topic: str, channel: Channel, name: str) -> None:
        """Note that *topic* is called *name* in the new log."""
        self.notes.append(f"{topic!r} of {channel.log.name} became {name!r}")

    def _merge_key(self, topic: str, channel: Channel) -> Hashable:
        """Return a key that is equal for channels that become one."""
        return self.copier.merge_key(topic, channel.schema, channel.metadata)

    def _add_channel(
        self, writer: Writer, topic: str, channel: Channel, metadata: Mapping[str, Any], copied: bool
    ) -> tuple[int, str]:
        """Add a channel; return its number and name. Raises DefinitionError or UsageError if it cannot be added."""
        return add_channel(writer, topic, *self._declared(channel, metadata), self.names, copied)

    def _declared(
        self, channel: Channel, metadata: Mapping[str, Any]
    ) -> tuple[Schema | Layout, Mapping[str, Any]]:
        """Return the schema, or the Layout to make one of, and the metadata that a channel is written with."""
        self.skipped += lost_side_columns(channel) if self._is_foreign else []
        return channel.schema, metadata

    def _refuse_channel(self, members: Sequence[tuple[int, Channel]], error: LogError) -> None:
        """Leave out a channel that the format refuses; raise *error* if its name was requested.

        A requested name is a mistake of the user; a name or definition from another format or a damaged file is a loss.
        """
        if not self._is_foreign and any(ch.number in self.parts[p].names for p, ch in members):
            raise error
        self._leave_out(members, error.text)

    def _leave_out(self, members: Sequence[tuple[int, Channel]], why: str) -> None:
        """Leave out a channel that the format cannot hold."""
        for p, ch in members:
            part = self.parts[p]
            text = f"channel {ch.topic!r} ({part.count(ch.number)} messages) was left out: "
            hint = "; convert --raw keeps messages as they are" * self._was_here(ch)
            if MADE_OF in ch.metadata:
                self.notes.append(f"{text}it was made of {ch.metadata[MADE_OF]!r}")
            else:
                self.skipped.append(text + why + hint)
            self._left_out.add((p, ch.number))

    def _representable(self, part: Part) -> Part:
        """Return *part* without messages whose times the format cannot hold."""
        rows = dict(part.rows)
        for number, some in part.rows.items():
            times = part.log.index.times_of(number, some)
            if not len(times) or self._holds(int(times.min()) + part.shift, int(times.max()) + part.shift):
                continue
            times = times + part.shift
            fits = (times >= self.format_writer.earliest) & (times <= self.format_writer.latest)
            rows[number] = np.arange(part.log.index.count(number))[some][fits]
            topic = next(ch.topic for ch in part.channels if ch.number == number)
            text = f"{int((~fits).sum())} messages of {topic!r} were left out: "
            self.skipped.append(text + f"{self.format_writer.title} cannot hold their times")
        return replace(part, rows=rows)

    def _holds(self, first: int, last: int) -> bool:
        """Return whether the format can hold times from *first* to *last*."""
        return self.format_writer.earliest <= first and last <= self.format_writer.latest

    # -------------------------------------------------------------------------------------------- verifying

    def _verify(self, path: Path) -> None:
        """Read the new file and compare; raises LogError if messages that were written are missing."""
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
        if not self._is_foreign and log.version != before:
            self.notes.append(f"version {before} of {self.fmt.title} became {log.version}")
        due, found = Counter(self.format_writer.extra_messages), Counter[str]()
        for name, members in self.names.items():
            for p, ch in members:
                due[self._count_key(name, ch)] += self.parts[p].count(ch.number)
            due[self._count_key(name, members[0][1])] -= self.unwritten[name]
        for ch in log.channels.values():
            found[self._count_key(ch.topic, ch)] += len(ch)
        for name, count in due.items():
            if found[name] == count or name.startswith("~"):
                continue
            if name in self.names and self._is_synthetic(name):
                self.made[name] = found[name]
                text = f"{name!r} is made of other channels: {found[name]} of {count} messages"
                self.notes.append(f"{text} come of those that were copied")
            else:
                text = f"the new file has {found[name]} messages of {name!r} where {count} are due"
                raise LogError(text, path=self.target.path)
        if self.target.thorough:
            self._compare_times(log)

    def _is_synthetic(self, name: str) -> bool:
        """Return whether readers build the channel *name* from others."""
        return any(
            self.parts[p].log.index.rules[ch.number].synthetic is not None for p, ch in self.names[name]
        )

    def _compare_times(self, log: Log) -> None:
        for name, members in self.names.items():
            if name not in log or name.startswith("~") or name in self.made or self.unwritten[name]:
                continue
            due = [
                self.parts[p].log.index.times_of(ch.number, self.parts[p].rows[ch.number])
                + self.parts[p].shift
                for p, ch in members
            ]
            times = np.concatenate(due)
            if not (
                np.array_equal(times, log[name].times)
                or np.array_equal(np.sort(times), np.sort(log[name].times))
            ):
                self.notes.append(f"times of {name!r} read differently in the new file")
