"""The public interface for writing logs: ``Writer`` and ``create``; each format implements a ``FormatWriter``."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import index
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, TopicError, UnsupportedError, UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.atomic_file import make_folders
from logreel.io.output_stream import Destination, live_appender, name_and_stream
from logreel.io.platform import pool
from logreel.kernels.records import Batch, now
from logreel.layout.layout import Layout
from logreel.layout.nodes import Sequence
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.log.times import Time, WriterClock, written_array, written_ns
from logreel.registry.format import Format
from logreel.registry.open import open_log
from logreel.registry.registry import check_options, formats, log_suffixes
from logreel.write.format_writer import FormatWriter, Payload, Payloads

if TYPE_CHECKING:
    import pyarrow as pa

#: Seconds after which the next message flushes.
FLUSH_EVERY = 1.0
#: Bytes of a file that is checked so soon that no thread waits for the disk meanwhile.
SMALL = 1 << 18
#: Maximum number of messages of a batch collected from single ones, and their bytes.
BATCH_MESSAGES, BATCH_BYTES = 16384, 1 << 20
#: Names tried for a channel whose name the format refuses.
TRIES = 8


class Writer:
    """A log being written; returned by ``logreel.create``, to be used as a context manager.

    Messages are appended in the order given, from any thread. Flushed messages survive a crash. While it is written,
    the file is called ``path + ".active"``; it is renamed when complete, and keeps that name if the block raises.

    flush_every  seconds after which messages are flushed; None: only by ``flush`` or when there are many
    sync         wait for the disk at every flush
    continued    an existing log that is continued; it stays as it is if nothing is written
    describe     called when the file is complete and has its name: it writes what lies beside it
    """

    def __init__(
        self,
        out: Appender,
        format_writer: FormatWriter,
        flush_every: float | None,
        sync: bool,
        continued: Log | None = None,
        describe: Callable[[], object] = lambda: None,
    ) -> None:
        self._out, self._sync, self._describe = out, sync, describe
        self._format_writer, self._schemas = format_writer, format_writer.schemas
        self._every = math.inf if flush_every is None else flush_every
        self._lock = RLock()
        self._topics = {topic: number for number, topic in enumerate(format_writer.old_channels)}
        self._continued, self._is_changed = continued, False
        #: Time of the first message that was passed to the FormatWriter, ns.
        self._start: int | None = None
        self._encoders: dict[int, tuple[Callable[[Mapping[str, Any]], bytes], tuple[str, int] | None]] = {}
        #: Channels whose payloads are exactly what the encoder returns.
        self._directly_encoded: set[int] = set()
        self._open = True
        self._batch = Batch(BATCH_MESSAGES, BATCH_BYTES, self._write)
        self._batch.earliest, self._batch.latest = format_writer.earliest, format_writer.latest
        self._batch.largest = format_writer.largest
        self._batch.channels, self._batch.due = len(self._topics), now() + self._every
        # One call of Python less for each message: this shadows the method, which does the same.
        self.write = self._batch.write  # type: ignore[method-assign]

    @property
    def format_writer(self) -> FormatWriter:
        """The format's writer, for names and schemas of channels; messages are written by the Writer."""
        return self._format_writer

    @property
    def size(self) -> int:
        """Bytes of the file so far, without messages that were collected since the last batch."""
        return self._out.tell()

    def add_channel(
        self,
        topic: str,
        schema: Schema | Layout,
        metadata: Mapping[str, Any] | None = None,
        *,
        copied: bool = False,
    ) -> int:
        """Add a channel; return its number for ``write``.

        schema  in the language of the format; from a Layout, the format makes a schema with the same fields
        copied  True: the channel is that of a log of the same format; some formats then keep an invalid definition

        In a log that is continued, a topic that it has already returns the number of its channel, whose metadata stay
        as they are. Raises UsageError for a topic added before, or if that channel has another schema; DefinitionError
        if the schema cannot be written.
        """
        with self._lock:
            self._check()
            old = self._format_writer.old_channels.get(topic)
            if topic in self._topics and old is None:
                raise UsageError(f"channel {topic!r} was added before", path=self._out.name)
            number = len(self._topics)
            self._drain()
            if isinstance(schema, Layout):
                schema = self._schemas.schema_from_layout(topic, schema)
            if old is not None:
                if not self._format_writer.is_same_schema(old, schema):
                    text = f"channel {topic!r} of the log has another definition of {old.name!r}"
                    if old.name != schema.name:
                        text = f"channel {topic!r} of the log has type {old.name!r}, not {schema.name!r}"
                    raise UsageError(text, path=self._out.name, hint="add a channel with another topic")
                return self._topics[topic]
            add = self._format_writer.copied_channel if copied else self._format_writer.channel
            add(number, topic, schema, metadata or {})
            self._topics[topic] = number
            self._is_changed = True
            self._batch.channels, self._batch.largest = number + 1, self._format_writer.largest
            return number

    def write(self, channel: int, time: Time, data: Payload | Mapping[str, Any]) -> None:
        """Append one message: its payload, or its fields as ``msg.decode()`` returns them.

        time  ns of the clock of the log, which is nearly always since 1970; an aware datetime, a pandas.Timestamp with
              a zone, a numpy.datetime64 (UTC); a timedelta after the first message that this Writer wrote; or text
              of the same meaning, such as ``"2024-05-01T12:00:00Z"``, ``"+1s"`` and ``"123ns"``

        Missing fields are zero or empty. Raises UsageError for other times, such as float, bool and numbers as text,
        and for fields that do not fit, LogError if the file cannot be written.
        """
        self._batch.write(channel, time, data)

    def _ns(self, time: Time) -> int:
        return written_ns(time, self._clock)

    def _clock(self) -> WriterClock:
        """Return the clock of the log, as the log that is continued or the first message tell it."""
        with self._lock:
            self._check()
            if self._start is None:
                self._drain()
        old = self._continued
        if old is not None and old.start is not None:
            return WriterClock(self._out.name, old.epoch, self._start, old.utc_offset)
        return WriterClock.begun(self._out.name, self._format_writer.epoch, self._start)

    def _write(self, channel: int, time: Time, data: Payload | Mapping[str, Any]) -> None:
        """Write a message that the batch did not collect: a dict, other times, a large payload, or a flush is due."""
        if type(time) is not int:
            time = self._ns(time)
        if type(data) is dict and channel in self._directly_encoded:
            data = self._encoded(channel, time, data)
            if self._batch.add(channel, time, data):
                return
        with self._lock:
            self._check(channel)
            channel = int(channel)
            if isinstance(data, Mapping):
                splitter = self._schemas.splitter(channel)
                numbers: dict[str, Any] = {}
                if splitter is not None:
                    # Collected payloads may determine the computed fields of this message.
                    self._drain()
                if splitter is not None and splitter.side_columns:
                    numbers = {name: data[name] for name in splitter.side_columns if name in data}
                    data = {name: value for name, value in data.items() if name not in numbers}
                data = self._encoded(channel, time, data)
                if splitter is not None:
                    payloads = splitter.split(np.frombuffer(data, np.uint8), np.array([0, len(data)]))
                    payloads = _with_side_columns(payloads, splitter.side_columns, numbers)
                    self._append(np.array([channel], np.int32), _as_times(time), payloads)
                    return
            data = bytes(data)
            if not self._batch.add(channel, time, data):
                self._drain()
                self._is_changed = True
                self._format_writer.message(channel, time, data)
                self._begin(time)
            self._flush_if_due()

    def _encoded(self, channel: int, time: int, data: Mapping[str, Any]) -> bytes:
        if channel not in self._encoders:
            from logreel.layout.encode_message import encoder

            self._encoders[channel] = (
                encoder(self._schemas.layout(channel)),
                self._schemas.time_field(channel),
            )
            if self._schemas.splitter(channel) is None and not self._schemas.computed_fields(channel):
                self._directly_encoded.add(channel)
        encode, stamp = self._encoders[channel]
        if stamp is not None and stamp[0] not in data:
            data = {**data, stamp[0]: time // stamp[1]}
        for name in self._schemas.computed_fields(channel):
            data = {key: value for key, value in data.items() if key != name}
        return encode(data)

    def write_table(self, channel: int, table: pa.Table) -> None:
        """Append a message per row: column ``time`` in ns (integers, timestamps or durations), and a column per field.

        If messages hold many records, consecutive rows of one time are one message. Raises UsageError for a column
        that is missing or holds what does not fit.
        """
        from logreel.layout.encode import columns_of, times_of
        from logreel.layout.numpy_columns import Column

        with self._lock:
            self._check(channel)
            layout = self._schemas.layout(channel)
            times = times_of(table)
            stamp, splitter, rows = (
                self._schemas.time_field(channel),
                self._schemas.splitter(channel),
                len(times),
            )
            columns = columns_of(layout, table)
            for name in splitter.optional if splitter is not None else ():
                columns.setdefault(name, Column("int64", rows, np.zeros(rows, np.int64)))
            if stamp is not None:
                columns.setdefault(stamp[0], Column("int64", rows, times // stamp[1]))
            records = None
            if isinstance(layout.root, Sequence):
                edges = np.flatnonzero(np.diff(times, prepend=times[:1] - 1)) if len(times) else times
                records, times = np.diff(np.append(edges, len(times))), times[edges]
            payloads = self._schemas.encode(channel, columns, rows, records)
            self._append(np.full(len(times), channel, np.int32), times, payloads)

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        self._drain()
        self._is_changed |= len(channel) > 0
        self._format_writer.messages(channel, time, payloads)
        if len(time):
            self._begin(int(time[0]))
        self._flush_if_due()

    def _begin(self, time: int) -> None:
        if self._start is None:
            self._start = time

    def write_many(
        self,
        channel: NDArray[np.int32],
        time: I64,
        data: NDArray[np.uint8],
        start: I64,
        size: I64,
        side_columns: I64 | None = None,
    ) -> None:
        """Append messages of any channels: the payload of message i is data[start[i]:start[i] + size[i]].

        channel int32[n], time int64[n] ns or datetime64[n] (UTC), data uint8[b], start and size int64[n]
        side_columns  int64[n, k]: numbers stored outside payloads, if the format has any; None: zeros
        """
        self.write_payloads(channel, time, Payloads(data, start, size, side_columns))

    def write_payloads(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages with payloads in one buffer or several; *channel* and *time* as for ``write_many``."""
        side_columns, time = payloads.side_columns, written_array(time, self._clock)
        with self._lock:
            self._check()
            for number in (channel.min(), channel.max()) if len(channel) else ():
                self._check(int(number))
            if not len(channel) == len(time) == len(payloads.start):
                raise UsageError("channels, times and payloads need a row for each message")
            if not payloads.are_inside:
                raise UsageError("payloads lie outside of the data, which are bytes in one row")
            if side_columns is not None and (side_columns.ndim != 2 or len(side_columns) != len(channel)):
                raise UsageError("numbers stored with payloads need a row for each message")
            self._append(channel, time, payloads)

    def metadata(self, name: str, value: Any) -> None:
        """Write metadata of the log; raises UnsupportedError if the format cannot hold it."""
        with self._lock:
            self._check()
            self._drain()
            self._format_writer.metadata(name, value)
            self._is_changed = True

    def parameter(self, name: str, value: float | int | str, time: Time | None = None) -> None:
        """Write a parameter set at *time*, as for ``write``; None: at the start.

        Raises UnsupportedError if the format has no parameters.
        """
        with self._lock:
            self._check()
            self._drain()
            self._format_writer.parameter(name, value, None if time is None else self._ns(time))
            self._is_changed = True

    def text(self, time: Time, text: str, level: int = 6) -> None:
        """Append a line of text with its syslog level, at *time*, as for ``write``.

        Raises UnsupportedError if the format has no text.
        """
        with self._lock:
            self._check()
            self._drain()
            self._format_writer.text(self._ns(time), level, text)
            self._is_changed = True

    def attachment(self, name: str, data: bytes, media_type: str = "application/octet-stream") -> None:
        """Write an attachment; raises UnsupportedError if the format cannot hold it."""
        with self._lock:
            self._check()
            self._drain()
            self._format_writer.attachment(name, data, media_type)
            self._is_changed = True

    def flush(self, sync: bool | None = None) -> None:
        """Write everything so far to the file, so that it survives a crash; *sync*: wait for the disk."""
        with self._lock:
            self._check()
            with self._stop_collecting_on_error():
                self._drain()
                self._format_writer.commit()
                self._out.flush(self._sync if sync is None else sync)
            self._batch.due = now() + self._every

    def close(self) -> None:
        """Complete the file and rename it to its final name; closing twice does nothing."""
        with self._lock:
            if self._open:
                with self._completed():
                    pass

    @contextlib.contextmanager
    def closing(self) -> Iterator[Path | bytes]:
        """Complete the file, and give it its final name after the block, which may read it; not if that raises."""
        with self._lock, self._completed():
            self._out.flush()
            # The disk writes while a large file is checked.
            with pool(1 if self._out.tell() > SMALL else 0) as behind:
                on_disk = behind.submit(self._out.flush, True)
                yield self._out.unfinished
            on_disk.result()

    @contextlib.contextmanager
    def _completed(self) -> Iterator[None]:
        """Complete the file; give it its name after the block, or leave it unfinished if that raises."""
        self._stop()
        try:
            self._drain()
            if self._continued is not None and not self._is_changed:
                self._out.discard()
                yield
                return
            self._format_writer.commit()
            self._format_writer.finish()
            yield
            self._out.finish()
        except BaseException:
            self._out.leave()
            raise
        self._describe()

    def leave(self) -> None:
        """Close the incomplete file, which keeps its temporary name."""
        with self._lock:
            if self._open:
                self._stop()
                with contextlib.suppress(LogError):
                    self._drain()
                    self._format_writer.commit()
                self._out.leave()

    def discard(self) -> None:
        """Close the file and remove it."""
        with self._lock:
            if self._open:
                self._stop()
                self._batch.take(True)
                self._out.discard()

    def _stop(self) -> None:
        # Other threads may be about to add.
        self._open, self._batch.due = False, -math.inf

    def _flush_if_due(self) -> None:
        if now() >= self._batch.due:
            self.flush()

    def _drain(self) -> None:
        """Pass the collected messages to the FormatWriter, before anything that must come after them."""
        collected = self._batch.take(not self._open)
        if collected is not None:
            self._is_changed = True
            with self._stop_collecting_on_error():
                channel, time, data, start, size = collected
                self._format_writer.messages(channel, time, Payloads(data, start, size))
            self._begin(int(time[0]))

    @contextlib.contextmanager
    def _stop_collecting_on_error(self) -> Iterator[None]:
        """Collect no more messages after a LogError: the file cannot be written any more."""
        try:
            yield
        except LogError:
            self._batch.largest = -1
            raise

    def _check(self, channel: int | None = None) -> None:
        if not self._open:
            raise LogError("is closed", path=self._out.name)
        self._out.check()
        if channel is not None and not 0 <= channel < len(self._topics):
            raise TopicError("channel", str(channel), map(str, range(len(self._topics))), path=self._out.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error_class is None:
            self.close()
        else:
            self.leave()


def _as_times(time: int) -> I64:
    try:
        return np.array([time], np.int64)
    except OverflowError:
        raise UsageError(f"time {time} ns does not fit into 64 bits") from None


def _with_side_columns(payloads: Payloads, names: Collection[str], numbers: Mapping[str, Any]) -> Payloads:
    """Return one payload with *numbers* in its side columns, which are called *names*."""
    if not numbers or payloads.side_columns is None:
        return payloads
    side_columns = payloads.side_columns.copy()
    for i, name in enumerate(names):
        try:
            side_columns[0, i] = index(numbers.get(name, side_columns[0, i]))
        except (TypeError, OverflowError):
            raise UsageError(f"{name}: {numbers[name]!r:.60} is no whole number of 64 bits") from None
    return replace(payloads, side_columns=side_columns)


def create(
    path: Destination,
    *,
    mode: str = "w",
    format: str | None = None,
    force: bool = False,
    flush_every: float | None = FLUSH_EVERY,
    sync: bool = False,
    **options: Any,
) -> Writer:
    """Create a log, or continue one, and return its Writer; use it as a context manager.

    path     its suffix selects the format, a slash at the end a folder; or a binary file object, which is written in
             order: with each flush, or as a whole in the end for formats that change earlier bytes
    mode     ``w``: a new log; ``a``: continue the log at *path*, or create it if there is none
    format   name of the format; None: by the suffix, or by the content of a log that is continued
    force    replace an existing file; with mode ``a`` only an unfinished one that no process writes
    flush_every, sync  see Writer
    options  of the format, see its page; those of a log that is continued are its own unless given

    A log that is continued stays as it is until the Writer is closed: the file ``path + ".active"`` begins with its
    messages, and replaces it then. Raises LogError if the file exists, and with mode ``a`` if it is damaged, of another
    format, or no log; UsageError for an unknown suffix, mode or option; UnsupportedError for a format whose logs cannot
    be continued.
    """
    if mode not in ("w", "a"):
        raise UsageError(f"mode {mode!r}; there are 'w' (a new log) and 'a' (continue a log)")
    name, stream = name_and_stream(path)
    if stream is None and name.endswith(("/", os.sep)):
        return _create_folder(name, mode, format, flush_every, sync, options)
    if stream is not None and mode == "a":
        raise UsageError("a stream holds no log to continue: mode 'a' is for a path")
    appends = mode == "a" and os.path.lexists(name)
    fmt = None if appends else format_of(name, format)
    continued: Log | None = None
    if fmt is not None:
        check_format_options(fmt, options)
    out: Appender | None = None
    try:
        if stream is not None and fmt is not None:
            out, format_writer = live_appender(stream, fmt.suffixes[0], partial(fmt.create, **options))
        else:
            out = Appender(name, force, append=appends)
            if fmt is None:
                fmt, continued = open_old(name, format)
                check_format_options(fmt, options, appends=True)
                format_writer = fmt.append(out, continued, **{**fmt.like(continued.metadata), **options})
            else:
                format_writer = fmt.create(out, **options)
    except BaseException:
        if out is not None:
            out.discard()
        raise
    return Writer(out, format_writer, flush_every, sync, continued)


def _create_folder(
    name: str,
    mode: str,
    format: str | None,
    flush_every: float | None,
    sync: bool,
    options: Mapping[str, Any],
) -> Writer:
    """Return the Writer of a new log that is a folder: of its one file, beside which the rest is written in the end."""
    able: list[Any] = [f for f in formats().values() if f.create is not None and f.new_folder is not None]
    able = [f for f in able if format in (None, f.name)]
    folder = Path(name)
    if not able or folder.name.lower().endswith(log_suffixes()):
        raise UsageError("is the name of a file: leave out the slash at the end", path=name)
    if mode == "a":
        raise UnsupportedError(
            "is a folder, which is continued by another file", path=name, hint="record into it with --append"
        )
    new = able[0].new_folder()
    own = {key: value for key, value in options.items() if key in new.options}
    if divides := own.keys() & inspect.signature(new.cuts).parameters.keys():
        text = f"{min(divides)}: a log that is created is one file of its folder"
        raise UsageError(text, path=name, hint="write it, and divide it by convert")
    inside = {key: value for key, value in options.items() if key not in own} | dict(new.inside(**own))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LogError("is there already, and not replaced", path=name, hint="write to another folder")
    check_format_options(able[0], inside)
    make_folders(folder)
    path = os.path.join(folder, new.part(folder.absolute().name, 0))
    out = Appender(path, False)
    try:
        format_writer = able[0].create(out, **inside)
    except BaseException:
        out.discard()
        raise
    return Writer(out, format_writer, flush_every, sync, describe=lambda: new.finish([path], {}, **own))


#: Names of types of options that are compared with their values.
_PLAIN = {"bool", "int", "float", "str", "None"}


def check_format_options(fmt: Format, options: Mapping[str, Any], appends: bool = False) -> None:
    """Raise UsageError for an option that logs of the format do not have, or a value of a wrong type.

    appends  True: a log is continued, for which there may be further options
    """
    if fmt.create is None:
        return
    _, *parameters = inspect.signature(fmt.create).parameters.values()
    if appends and fmt.append is not None:
        _, _, *more = inspect.signature(fmt.append).parameters.values()
        names = {p.name for p in parameters}
        parameters += [p for p in more if p.kind is p.KEYWORD_ONLY and p.name not in names]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        check_options(fmt.title, [p.name for p in parameters], options)
    for parameter in parameters:
        types = {type_name.strip() for type_name in str(parameter.annotation).split("|")}
        value = options.get(parameter.name)
        # An int is a float, too; other annotations than those of plain values are not checked.
        kinds = {"None" if value is None else type(value).__name__} | (
            {"float"} if type(value) is int else set()
        )
        if parameter.name in options and types <= _PLAIN and not types & kinds:
            raise UsageError(f"{parameter.name}={value!r}: expected {' or '.join(sorted(types - {'None'}))}")


def open_old(path: str | os.PathLike[str], format: str | None) -> tuple[Any, Log]:
    """Open the log at *path*, which is to be continued; return its Format and the Log.

    Raises LogError for a file that is damaged, of another format than *format* or its suffix say, or no log.
    """
    name = os.fspath(path)
    if format is not None and format not in formats():
        raise UsageError(f"no format {format!r}; there are {', '.join(formats())}")
    log = open_log(path)
    fmt = formats()[log.format]
    by_suffix = [f for f in formats().values() if name.lower().endswith(f.suffixes)]
    if format is None and by_suffix and fmt not in by_suffix:
        what = by_suffix[0].title
        raise LogError(
            f"is a log of the format {fmt.name}, while its suffix is that of {what}",
            path=name,
            hint=f"pass format={fmt.name!r} to append to it",
        )
    if format not in (None, fmt.name):
        raise LogError(f"is a log of the format {fmt.name}, not {format}", path=name)
    if fmt.append is None:
        raise UnsupportedError(
            f"logs of the format {fmt.name} cannot be continued",
            path=name,
            hint="write a new log, and join both by logreel.merge",
        )
    known = fmt.continues_after
    lost = next((problem for problem in log.problems if problem.lost and problem.code not in known), None)
    if lost is not None:
        raise LogError(
            f"is damaged: {lost.text}",
            path=name,
            offset=lost.offset,
            hint="save what can be read by logreel.recover, and append to that",
        )
    return fmt, log


def format_of(name: str, format: str | None) -> Any:
    """Return the Format called *format*, or by the suffix of *name* if None; raises UsageError for an unknown one."""
    able = {f.name: f for f in formats().values() if f.create is not None}
    if format is not None:
        if format not in able:
            raise UsageError(f"no format {format!r} that can be written; there are {', '.join(able)}")
        return able[format]
    fitting = [f for f in able.values() if name.lower().endswith(f.suffixes)]
    if len(fitting) > 1:
        what = " or ".join(f"{f.name!r} ({f.title})" for f in fitting)
        raise UsageError(f"the suffix of {name!r} is that of several formats; give one: {what}")
    if fitting:
        return fitting[0]
    known: Iterable[str] = (f.suffixes[0] for f in able.values())
    raise UsageError(f"the suffix of {name!r} names no format that can be written; known: {', '.join(known)}")


class TakesChannels(Protocol):
    """A Writer, as far as channels are added to it."""

    @property
    def format_writer(self) -> FormatWriter:
        """The FormatWriter of the log."""

    def add_channel(
        self,
        topic: str,
        schema: Schema | Layout,
        metadata: Mapping[str, Any] | None = None,
        *,
        copied: bool = False,
    ) -> int:
        """Add a channel; return its number."""


def add_channel(
    writer: TakesChannels,
    topic: str,
    schema: Schema | Layout,
    metadata: Mapping[str, Any],
    taken: Collection[str],
    copied: bool = False,
) -> tuple[int, str]:
    """Add a channel, under another name if the format refuses *topic* next to those *taken*; return number and name.

    copied  as in ``Writer.add_channel``

    Raises as ``Writer.add_channel`` does if no name is accepted.
    """
    # A copy of the names for each channel would take time in the square of their number.
    others, refused = _Names(taken), list[DefinitionError]()
    while len(refused) < TRIES:
        name = writer.format_writer.free_name(topic, others)
        try:
            return writer.add_channel(name, schema, metadata, copied=copied), name
        except DefinitionError as error:
            refused.append(error)
            others.more.append(name)
    raise refused[0]


@dataclass
class _Names(Collection[str]):
    """Names, and a few more."""

    names: Collection[str]
    more: list[str] = field(default_factory=list)

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.more

    def __iter__(self) -> Iterator[str]:
        yield from self.names
        yield from self.more

    def __len__(self) -> int:
        return len(self.names) + len(self.more)
