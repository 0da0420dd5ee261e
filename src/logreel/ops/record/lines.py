"""Recording of messages that arrive as lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from logreel.errors import DamagedError, DefinitionError, LogError, UnsupportedError, UsageError
from logreel.io.append_file import ACTIVE
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.io.source import Definitions, Readable
from logreel.layout.layout import Layout
from logreel.log.log import Channel, Log
from logreel.log.schema import Schema
from logreel.ops.infer import json_converter, layout_of, observe_all
from logreel.ops.open_logs import as_open_log
from logreel.ops.record.pipe_lines import Pipe, read_lines
from logreel.ops.rewrite.rewrite import add_channel
from logreel.ops.rewrite.target import Copied, Rewritten
from logreel.write.log_copier import LogCopier, copier_for, try_each
from logreel.write.writer import FLUSH_EVERY, Writer, create, format_of

#: Most messages, seconds and bytes of lines that are read before the first message is written.
AHEAD, AHEAD_SECONDS, AHEAD_BYTES = 10_000, 10.0, 1 << 24
#: Seconds without a line after which types are inferred.
SILENT_SECONDS = 2.0
#: Most sentences about broken lines; all are counted.
MOST_SENTENCES = 100
#: Longest and shortest wait for a line in seconds, between flushes and checks of *stop*.
PATIENCE, LEAST_PATIENCE = 0.2, 0.01
#: Channel of text lines.
TEXT = "~text"
_TIMES = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True, repr=False)
class Recorded(Rewritten):
    """Result of a recording.

    lines    lines that were not blank
    broken   lines left out; *skipped* has a sentence for each of the first ones
    stopped  True: ended by *stop* before the end of the source
    """

    lines: int
    broken: int
    stopped: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``record --json``."""
        counts = {"lines": self.lines, "broken": self.broken, "stopped": self.stopped}
        return Rewritten.as_dict(self) | counts


@dataclass(frozen=True, slots=True)
class _Line:
    """A message from line *number*, from 1."""

    number: int
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


def record(
    source: Pipe | Iterable[bytes | str],
    path: Destination,
    *,
    like: Readable | Log | None = None,
    schemas: Mapping[str, str | os.PathLike[str]] | None = None,
    format: str | None = None,
    ahead: int = AHEAD,
    flush_every: float | None = FLUSH_EVERY,
    sync: bool = False,
    strict: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
    definitions: Definitions = (),
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Recorded:
    """Write messages, one per line in the form of ``cat --format ndjson``, as a log.

    source   a pipe or file, or lines
    path     of the new log, or a binary file object, see ``create``
    like     a log whose channels, with their schemas, become channels of the new log; its metadata, parameters and
             attachments are copied, and, unless a line is of ``~text``, its text lines of the recorded interval
    metadata  further or replaced metadata of the new log; as for ``Writer.metadata``
    schemas  files with definitions in the language of the format, by topic; they have precedence over *like*
    format, flush_every, sync, force, options  as for ``create``
    ahead    most messages that are read before unknown types are inferred; waits at most ten seconds, or two without a
             line; the type of a channel that appears later is inferred from its first message
    strict   raise LogError at the first line that cannot be written; earlier messages are in the ``.active`` file
    definitions  as for ``logreel.open``, of *like*
    stop     function called between lines; returns True to complete the log

    A message that does not fit the type of its channel is left out and counted, never changed. ``skipped`` also lists
    what the format cannot hold of *like* and *metadata*. Raises as ``create`` does, and DefinitionError or UsageError
    for a schema that cannot be used.
    """
    read = [
        like.name if isinstance(like, Log) else like,
        getattr(source, "name", None),
        *(schemas or {}).values(),
    ]
    target, stream = name_and_stream(path)
    for name in (target, target + ACTIVE):
        keep_sources(name, [one for one in read if isinstance(one, str | os.PathLike)])
    with contextlib.ExitStack() as stack:
        # The new log may read from it until it is complete.
        log = None if like is None else stack.enter_context(as_open_log(like, definitions))
        fmt = format_of(target, format)
        if log is not None and fmt.name in (log.format, log.converted_from):
            options = fmt.like(log.metadata) | options
        writer = create(
            stream or target, format=format, force=force, flush_every=flush_every, sync=sync, **options
        )
        job = _Recorder(writer, copier_for(fmt, writer.format_writer), fmt.name, ahead, strict)
        try:
            job.add_known(log, schemas or {}, metadata or {})
        except BaseException:
            writer.discard()
            raise
        with writer:
            stopped = job.run(source, flush_every, stop)
            if log is not None:
                job.copy_text(log)
    channels = tuple(Copied(ch.name, ch.messages) for ch in job.channels.values() if ch.name[:1] != "~")
    size = os.stat(target).st_size if stream is None else stream.tell()
    sentences = tuple(job.notes), tuple(job.skipped)
    return Recorded(target, size, channels, *sentences, job.lines, job.broken, stopped)


class _Recorder:
    """Parses lines and writes them to their channels."""

    def __init__(self, writer: Writer, copier: LogCopier, format: str, ahead: int, strict: bool) -> None:
        self.channels: dict[str, _Channel] = {}
        self.notes: list[str] = []
        self.skipped: list[str] = []
        self.lines = self.broken = 0
        self._writer, self._copier, self._format, self._strict = writer, copier, format, strict
        #: Lines read before types are inferred, and their limits.
        self._waiting: list[_Line] = []
        self._ahead, self._room, self._since, self._heard = ahead, AHEAD_BYTES, 0.0, 0.0
        self._known: dict[str, tuple[Schema | Layout, Mapping[str, Any]]] = {}
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
        if log is not None:
            self._copy_content(log)
        self.skipped += try_each(
            "metadata", metadata, lambda name: self._write_metadata(name, metadata[name]), False
        )
        schemas = self._writer.format_writer.schemas
        for topic, file in files.items():
            text = Path(file).read_text(encoding="utf-8")
            self._known[topic] = schemas.schema_from_text(topic, text, os.fspath(file)), {}
            self._add(topic, *self._known[topic])
        if log is not None:
            for ch in log.channels.values():
                if ch.topic not in self._known:
                    self._add_channel_of(ch)

    def _copy_content(self, log: Log) -> None:
        """Copy metadata, parameters and attachments of a log."""
        if log.format == self._format:
            self.skipped += self._copier.copy_metadata(log)
        else:
            self.skipped += self._copier.import_foreign(log, log.converted_from == self._format)

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
                whole = self._known[TEXT][0] is ch.schema
                self._writer.write(channel.number, message.time, message.data if whole else message.decode())
                count += 1
            except (UsageError, DamagedError, DefinitionError) as error:
                left.append(error.text)
        self.notes.append(f"{count} of {len(ch)} messages of {TEXT!r} came along from {log.name}")
        if left:
            text = f"{len(left)} messages of {TEXT!r} in {log.name} were left out: {left[0]}"
            if self._strict:
                raise LogError(text)
            self.skipped.append(text)

    def _write_metadata(self, name: str, value: Any) -> None:
        try:
            self._writer.format_writer.metadata(name, value)
        except UsageError:
            # Some formats store named maps of texts instead of single values.
            if isinstance(value, Mapping):
                raise
            self._writer.format_writer.metadata(name, {name: value})

    def _add_channel_of(self, ch: Channel) -> None:
        try:
            given = (
                (ch.schema, ch.metadata)
                if self._writer.format_writer.schemas.accepts_schema(ch.schema)
                else (ch.layout, {})
            )
            self._known[ch.topic] = given
            if not ch.reserved:
                self._add(ch.topic, *given)
        except (DefinitionError, UsageError) as error:
            self._refused[ch.topic] = error.text

    def _add(self, topic: str, schema: Schema | Layout, metadata: Mapping[str, Any]) -> None:
        schemas, taken = self._writer.format_writer.schemas, {ch.name for ch in self.channels.values()}
        number, name = add_channel(self._writer, topic, schema, metadata, taken)
        if name != topic:
            self.notes.append(f"{topic!r} became {name!r}")
        splitter = schemas.splitter(number)
        restore = json_converter(schemas.layout(number), splitter.side_columns if splitter else ())
        self.channels[topic] = _Channel(number, name, restore, schemas.time_field(number))

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

    def run(
        self, source: Pipe | Iterable[bytes | str], every: float | None, stop: Callable[[], bool]
    ) -> bool:
        """Read all lines, and flush while none arrive; return whether *stop* ended the recording."""
        number, flushed, stopped = 0, monotonic(), False
        patience = PATIENCE if every is None else max(LEAST_PATIENCE, min(PATIENCE, every))
        for line in read_lines(source, patience):
            stopped = stop()
            if stopped:
                break
            if line is not None:
                number += 1
                self._take(number, line)
            if self._waiting and self._waited_enough(silent=line is None):
                self._infer()
            # Some formats take no definitions after a flush, so do not flush before types are known.
            begun = self.lines and not self._waiting
            if line is None and begun and every is not None and monotonic() - flushed >= every:
                self._writer.flush()
                flushed = monotonic()
        self._infer()
        return stopped

    def _waited_enough(self, silent: bool) -> bool:
        """Return whether to infer types now."""
        now = monotonic()
        return now - self._since >= AHEAD_SECONDS or (silent and now - self._heard >= SILENT_SECONDS)

    def _take(self, number: int, text: bytes | str) -> None:
        if not text.strip():
            return
        self.lines += 1
        try:
            line = _parsed(number, text)
        except UsageError as error:
            self._leave_out(number, error)
            return
        self._has_text |= line.topic == TEXT
        if self._ahead > 0 and (self._waiting or line.topic not in self.channels):
            self._heard = monotonic()
            self._since = self._since if self._waiting else self._heard
            self._waiting.append(line)
            self._room -= len(text)
            if len(self._waiting) == self._ahead or self._room < 0:
                self._infer()
        else:
            self._write(line)

    def _infer(self) -> None:
        """Infer types from the waiting lines and write them; later lines do not wait."""
        if not self._waiting:
            return
        lines, self._waiting, self._ahead = self._waiting, [], 0
        data: dict[str, list[Mapping[str, Any]]] = {}
        for line in lines:
            data.setdefault(line.topic, []).append(line.data)
        for topic, some in data.items():
            with contextlib.suppress(UsageError):
                self._channel_of(topic, some)
        for line in lines:
            self._write(line)

    def _write(self, line: _Line) -> None:
        try:
            channel = self._channel_of(line.topic, [line.data])
            # May change with messages that were written.
            derived = self._writer.format_writer.schemas.computed_fields(channel.number)
            values = channel.restore({k: v for k, v in line.data.items() if k not in derived})
            self._writer.write(channel.number, line.time, values)
        except UsageError as error:
            self._leave_out(line.number, error)
            return
        channel.messages += 1
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

    def _leave_out(self, number: int, error: UsageError) -> None:
        text = f"line {number}: {error.text}"
        if self._strict:
            raise LogError(text)
        self.broken += 1
        if self.broken <= MOST_SENTENCES:
            self.skipped.append(text)


def _parsed(number: int, text: bytes | str) -> _Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError("this is no JSON object")
    topic, time, data = (found.get(name) for name in ("topic", "time_ns", "data"))
    if not isinstance(topic, str) or not topic:
        raise UsageError('"topic" is no text')
    if not isinstance(time, int) or isinstance(time, bool) or time not in _TIMES:
        raise UsageError('"time_ns" is no whole number of 64 bits')
    if not isinstance(data, dict):
        raise UsageError('"data" is no object')
    return _Line(number, topic, time, data)
