"""Messages that arrive as lines of JSON, in the form of ``cat --format ndjson``: read, kept, and written to channels.

Lines come from a pipe that is not waited for, and are kept in a file until their types are inferred.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from logreel.errors import DamagedError, DefinitionError, LogError, UnsupportedError, UsageError
from logreel.io.append_file import ACTIVE
from logreel.io.platform import FLAGS, readable
from logreel.layout.layout import Layout
from logreel.log.log import Channel, Log
from logreel.log.scan import Facts, Schema
from logreel.ops.add import write_metadata
from logreel.ops.infer import json_converter, layout_of, observe_all
from logreel.ops.record.parts import SplitWriter
from logreel.ops.record.source import TopicFilter
from logreel.registry.format import Format
from logreel.write.log_copier import copier_for, try_each
from logreel.write.writer import Writer, add_channel

#: Suffix of the file, after the name of the log.
LINES = ".lines"


def spool_path(path: str | os.PathLike[str]) -> str:
    """Return the path of the lines that wait for the log at *path*."""
    return os.fspath(path) + LINES


def waiting_lines(path: str) -> str | None:
    """Return the path of lines that a recording has left for the unfinished log at *path*; None if there are none."""
    lines = spool_path(path.removesuffix(ACTIVE))
    return lines if os.path.isfile(lines) else None


def is_kept(source: object) -> bool:
    """Return whether lines come from a file on disk, which survives without us."""
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


class Spool:
    """A file with the waiting lines of one log; created with the first line, each line is passed to the system at once.

    path   of the log
    force  replace a file that a recording has left
    sync   None: do not wait for the disk; else wait for it after so many seconds

    Raises LogError if a recording has left such a file and *force* is not given, or the lines cannot be written.
    """

    def __init__(self, path: str, force: bool, sync: float | None) -> None:
        self.path = spool_path(path)
        self._force, self._sync, self._synced = force, sync, 0.0
        self._file: int | None = None
        #: Whether lines were added after the disk had all.
        self._is_behind = False
        if os.path.lexists(self.path) and not force:
            raise LogError(
                "holds lines of a recording that was killed",
                path=self.path,
                hint=f"make a log of them by logreel.record, from {self.path}, then remove it; force=True loses them",
            )

    def add(self, line: bytes | str) -> None:
        """Append one line."""
        data = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n") + b"\n"
        try:
            if self._file is None:
                if self._force:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self.path)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | FLAGS
                self._file = os.open(self.path, flags, 0o666)
                self._synced = monotonic()
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise LogError(f"cannot be written: {error.strerror or error}", path=self.path) from error
        self._is_behind = True
        self.sync()

    def sync(self) -> None:
        """Wait until the disk has the lines, if it is time to."""
        due = self._sync is not None and self._is_behind and monotonic() - self._synced >= self._sync
        if due and self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise LogError(f"cannot be written: {error.strerror or error}", path=self.path) from error
            self._synced, self._is_behind = monotonic(), False

    def remove(self) -> None:
        """Remove the file, since the log itself has the lines."""
        if self._file is not None:
            self.leave()
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def leave(self) -> bool:
        """Keep the file; return whether there is one."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
        return file is not None


#: Bytes read at once.
PIECE = 1 << 16
#: Shortest wait for a line in seconds.
LEAST_PATIENCE = 0.01
#: Longer lines are cut.
LONGEST = 1 << 28


class Pipe(Protocol):
    """A file object with a file descriptor."""

    def fileno(self) -> int:
        """Return the file descriptor."""


def read_lines(source: Pipe | Iterable[bytes | str], patience: float) -> Iterator[bytes | str | None]:
    """Yield the lines of *source*, and None after each *patience* seconds without the end of a line.

    source  a file with a file descriptor, from which nothing else reads, or any iterable of lines

    Lines longer than LONGEST bytes are cut.
    """
    number = _number(source)
    if number is not None:
        yield from _from_system(number, patience)
    else:
        yield from source  # type: ignore[misc] # without a file descriptor it is an iterable of lines


def _number(source: object) -> int | None:
    try:
        number: int = source.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    return number


def _from_system(number: int, patience: float) -> Iterator[bytes | None]:
    begun, last = bytearray(), monotonic()
    while True:
        if monotonic() - last >= patience or not readable(number, patience):
            # Also within a line that does not end.
            yield None
            last = monotonic()
            continue
        data = os.read(number, PIECE)
        if not data:
            break
        first, *others = data.split(b"\n")
        begun += first[: LONGEST - len(begun)]
        for part in others:
            yield bytes(begun)
            begun, last = bytearray(part), monotonic()
    if begun:
        yield bytes(begun)


#: Most messages, seconds and bytes of lines that are read before the first message is written.
AHEAD, AHEAD_SECONDS, AHEAD_BYTES = 10_000, 10.0, 1 << 24
#: Seconds without a line after which types are inferred.
SILENT_SECONDS = 2.0
#: Most sentences about broken lines; all are counted.
MOST_SENTENCES = 100
#: Channel of text lines.
TEXT = "~text"
_TIMES = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class _Line:
    """A message from a line; *place*: for people, such as ``line 7``."""

    place: str
    topic: str
    time: int
    data: Mapping[str, Any]


@dataclass(slots=True)
class _Channel:
    """A channel of the new log.

    restore  function from a JSON message to the dict for ``Writer.write``
    """

    number: int
    name: str
    restore: Callable[[Mapping[str, Any]], dict[str, Any]]
    stamp: tuple[str, int] | None
    messages: int = 0


class LineRecorder:
    """Parses lines and writes them to their channels.

    writer   of the log
    fmt      its format
    ahead    most messages that are read before unknown types are inferred
    strict   raise LogError at the first line that cannot be written
    spool    file for lines whose types are not known yet; None: they are only in memory
    every    seconds after which messages are flushed; None: only at the end
    """

    def __init__(
        self,
        writer: SplitWriter,
        fmt: Format,
        ahead: int,
        strict: bool,
        selection: TopicFilter,
        spool: Spool | None = None,
        every: float | None = None,
    ) -> None:
        self.channels: dict[str, _Channel] = {}
        self.notes: list[str] = []
        self.skipped: list[str] = []
        self.lines = self.broken = self.messages = 0
        #: Whether writing takes too long for a recording that is to end, and the messages that were not written then.
        self.is_late: Callable[[], bool] = lambda: False
        self.unwritten = 0
        self._writer, self._format, self._strict, self._selection = writer, fmt, strict, selection
        #: Lines read before types are inferred, and their limits.
        self._waiting: list[_Line] = []
        self._ahead, self._room, self._since, self._heard = ahead, AHEAD_BYTES, 0.0, 0.0
        self._spool, self._every = spool, every
        #: When the lines in the spool were written to the log, which may not have passed them to the system yet.
        self._inferred: float | None = None
        self._known: dict[str, tuple[Schema | Layout, Mapping[str, Any]]] = {}
        #: Whether the recording wants a topic.
        self._accepted: dict[str, bool] = {}
        #: Reason why a topic has no channel.
        self._refused: dict[str, str] = {}
        #: First and last time written, except to reserved channels, ns.
        self._first, self._last = _TIMES.stop, _TIMES.start
        #: Whether a line was of ``~text``.
        self._has_text = False

    # ---------------------------------------------------------------------------------------------- schemas

    def add_known(
        self,
        log: Log | None,
        files: Mapping[str, str | os.PathLike[str]],
        metadata: Mapping[str, Any],
    ) -> None:
        """Copy the content besides messages of *log*, write *metadata*, and add channels with known schemas.

        Reserved channels are added with their first message.
        """
        first = True

        def start(writer: Writer) -> None:
            nonlocal first
            skipped = [] if log is None else self._copy_content(log, writer)
            skipped += try_each(
                "metadata", metadata, lambda name: write_metadata(writer, name, metadata[name]), False
            )
            # The same is left out of all parts.
            self.skipped += skipped if first else []
            first = False

        self._writer.at_start(start)
        schemas = self._writer.format_writer.schemas
        # Those of a log that is continued are added with their first message, under their numbers.
        self._known |= {
            topic: (schema, {}) for topic, schema in self._writer.format_writer.old_channels.items()
        }
        for topic, file in files.items():
            text = Path(file).read_text(encoding="utf-8")
            self._known[topic] = schemas.schema_from_text(topic, text, os.fspath(file)), {}
            self._add(topic, *self._known[topic])
        if log is not None:
            for ch in log.channels.values():
                if ch.topic not in self._known:
                    self._add_channel_of(ch)

    def _copy_content(self, log: Log, writer: Writer) -> list[str]:
        """Copy metadata, parameters and attachments of a log; return sentences about what was left out."""
        copier = copier_for(self._format, writer.format_writer)
        if log.format == self._format.name:
            return copier.copy_metadata(log)
        return copier.import_foreign(log, log.converted_from == self._format.name)

    def copy_text(self, log: Log) -> None:
        """Copy the text lines of *log* within the recorded interval, unless lines contained text.

        Called after the last line. Raises LogError if *strict* and a text line cannot be written.
        """
        ch = log.channels.get(TEXT)
        if ch is None or not len(ch) or self._first > self._last:
            return
        if self._has_text:
            self.notes.append(f"{TEXT!r} holds what came; that of {log.name} was left alone")
            return
        # Text before the first or after the last message of *log* is kept with these messages.
        others = [other for other in log.channels.values() if len(other) and not other.reserved]
        begun = any((other.start or 0) < self._first for other in others)
        ended = any((other.end or 0) > self._last for other in others)
        count, left = 0, list[str]()
        for message in log.messages([TEXT]):
            if (begun and message.time < self._first) or (ended and message.time > self._last):
                continue
            try:
                channel = self._channel_of(TEXT, ())
                is_same = self._known[TEXT][0] is ch.schema
                self._writer.write(
                    channel.number, message.time, message.data if is_same else message.decode()
                )
                count += 1
            except (UsageError, DamagedError, DefinitionError) as error:
                left.append(error.text)
        self.notes.append(f"{count} of {len(ch)} messages of {TEXT!r} came along from {log.name}")
        if left:
            text = f"{len(left)} messages of {TEXT!r} in {log.name} were left out: {left[0]}"
            if self._strict:
                raise LogError(text)
            self.skipped.append(text)

    def _add_channel_of(self, ch: Channel) -> None:
        try:
            schema = (
                (ch.schema, ch.metadata)
                if self._writer.format_writer.schemas.accepts_schema(ch.schema)
                else (ch.layout, {})
            )
            self._known[ch.topic] = schema
            if not ch.reserved:
                self._add(ch.topic, *schema)
        except (DefinitionError, UsageError) as error:
            self._refused[ch.topic] = error.text

    def _add(self, topic: str, schema: Schema | Layout, metadata: Mapping[str, Any]) -> None:
        schemas = self._writer.format_writer.schemas
        number, name = add_channel(self._writer, topic, schema, metadata, self._writer.taken)
        if name != topic:
            self.notes.append(f"{topic!r} became {name!r}")
        splitter = schemas.splitter(number)
        restore = json_converter(schemas.layout(number), splitter.side_columns if splitter else ())
        self.channels[topic] = _Channel(number, name, restore, schemas.time_field(number))

    def number_of(self, topic: str) -> int | None:
        """Return the number of the channel that the user defined for *topic*; None if there is none."""
        return self.channels[topic].number if topic in self.channels else None

    def _channel_of(self, topic: str, data: Iterable[Mapping[str, Any]]) -> _Channel:
        """Return the channel of *topic*; add it, with a type inferred from *data*, if needed. Raises UsageError."""
        if topic not in self.channels and topic not in self._refused:
            try:
                if topic not in self._known:
                    self._known[topic] = (
                        layout_of(observe_all(data), self._writer.format_writer.schemas.fixed_size, topic),
                        {},
                    )
                self._add(topic, *self._known[topic])
            except (DefinitionError, UsageError, UnsupportedError) as error:
                self._refused[topic] = error.text
        if topic in self._refused:
            raise UsageError(f"channel {topic!r} cannot be written: {self._refused[topic]}")
        return self.channels[topic]

    # ------------------------------------------------------------------------------------------------ lines

    def take(self, place: str, text: bytes | str) -> None:
        """Write a line, or keep it until types are known; *place*: for people, such as ``line 7``."""
        if not text.strip():
            return
        self.lines += 1
        try:
            line = _parsed(place, text)
        except UsageError as error:
            self._leave_out(place, error)
            return
        if not self._accepts(line.topic) or not self._selection.takes(line.topic):
            return
        self._has_text |= line.topic == TEXT
        if self._ahead > 0 and (self._waiting or line.topic not in self.channels):
            self._heard = monotonic()
            self._since = self._since if self._waiting else self._heard
            self._waiting.append(line)
            self._room -= len(text)
            if self._spool is not None:
                self._spool.add(text)
            if len(self._waiting) == self._ahead or self._room < 0:
                self.infer()
        else:
            self._write(line)

    def _accepts(self, topic: str) -> bool:
        """Return whether the recording wants the channel; types that are inferred are not known yet."""
        if topic not in self._accepted:
            schema, metadata = self._known.get(topic, (None, {}))
            about = schema if isinstance(schema, Schema) else None
            self._accepted[topic] = self._selection.accepts(Facts(topic, about, metadata))
        return self._accepted[topic]

    def infer_if_due(self, silent: bool) -> None:
        """Infer types if lines have waited long enough; *silent*: none came now. Remove lines that are in the log."""
        if self._waiting and self._waited_enough(silent):
            self.infer()
        elif self._spool is not None:
            self._spool.sync()
            # Not sooner: some formats take no definitions after a flush.
            if self._inferred is not None and monotonic() - self._inferred >= (self._every or 0.0):
                self._writer.flush()
                self._end_spool()

    def close(self) -> None:
        """Remove the lines that are in the log; called after the log is complete."""
        if not self._waiting:
            self._end_spool()

    def leave(self) -> str | None:
        """Return the path of the file with lines that are not in the log; None if there is none. For a failure."""
        if self._spool is not None and self._spool.leave():
            return self._spool.path
        return None

    def _end_spool(self) -> None:
        if self._spool is not None:
            self._spool.remove()
        self._spool = self._inferred = None

    @property
    def is_waiting(self) -> bool:
        """Whether lines wait until their types are inferred."""
        return bool(self._waiting)

    def _waited_enough(self, silent: bool) -> bool:
        """Return whether to infer types now."""
        now = monotonic()
        return now - self._since >= AHEAD_SECONDS or (silent and now - self._heard >= SILENT_SECONDS)

    def infer(self) -> None:
        """Infer types from the waiting lines and write them; later lines do not wait."""
        if not self._waiting:
            return
        lines, self._waiting, self._ahead = self._waiting, [], 0
        data: dict[str, list[Mapping[str, Any]]] = {}
        for line in lines:
            data.setdefault(line.topic, []).append(line.data)
        for topic, messages in data.items():
            # Thousands of topics take long.
            if self.is_late():
                break
            with contextlib.suppress(UsageError):
                self._channel_of(topic, messages)
        for n, line in enumerate(lines):
            if self.is_late():
                self.unwritten += len(lines) - n
                break
            self._write(line)
        self._inferred = monotonic()

    def _write(self, line: _Line) -> None:
        try:
            channel = self._channel_of(line.topic, [line.data])
            # May change with messages that were written.
            derived = self._writer.format_writer.schemas.computed_fields(channel.number)
            values = channel.restore({k: v for k, v in line.data.items() if k not in derived})
            self._writer.write(channel.number, line.time, values)
        except UsageError as error:
            self._leave_out(line.place, error)
            return
        channel.messages += 1
        self.messages += 1
        if channel.name[0] != "~":
            self._first, self._last = min(self._first, line.time), max(self._last, line.time)
        if channel.stamp is not None:
            self._compare(channel, line.time, values)

    def _compare(self, channel: _Channel, time: int, values: Mapping[str, Any]) -> None:
        """Add a note, once per channel, if the time field of a message differs from the time of its line."""
        name, unit = channel.stamp or ("", 1)
        if values.get(name, time // unit) != time // unit:
            channel.stamp = None
            self.notes.append(f"the field {name!r} of {channel.name!r} was set to the time of the message")

    def _leave_out(self, place: str, error: UsageError) -> None:
        text = f"{place}: {error.text}"
        if self._strict:
            raise LogError(text)
        self.broken += 1
        if self.broken <= MOST_SENTENCES:
            self.skipped.append(text)


def _parsed(place: str, text: bytes | str) -> _Line:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        cut = f", and was cut at {LONGEST} bytes: longer lines are not read" if len(text) >= LONGEST else ""
        raise UsageError(f"this is no JSON: {error}{cut}") from None
    if not isinstance(values, dict):
        raise UsageError("this is no JSON object")
    topic, time, data = (values.get(name) for name in ("topic", "time_ns", "data"))
    if not isinstance(topic, str) or not topic:
        raise UsageError('"topic" is no text')
    if not isinstance(time, int) or isinstance(time, bool) or time not in _TIMES:
        raise UsageError('"time_ns" is no whole number of 64 bits')
    if not isinstance(data, dict):
        raise UsageError('"data" is no object')
    return _Line(place, topic, time, data)
