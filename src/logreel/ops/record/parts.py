"""A log that is written as one file or as several parts, one after the other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.append_file import ACTIVE
from logreel.io.arrays import I64
from logreel.io.atomic_file import exists
from logreel.io.part_files import existing_parts, part_name
from logreel.layout.layout import Layout
from logreel.log.scan import Schema
from logreel.registry.format import Format
from logreel.write.format_writer import FormatWriter, Payload, SomeRefusedError
from logreel.write.writer import Writer

#: Bytes that a message given as a dict probably needs.
USUAL_SIZE = 64


@dataclass(frozen=True, slots=True)
class Split:
    """When a new part begins; None: never for this reason.

    size            bytes of a part, about: a part ends with the message that reaches it
    duration        ns of the clock of the messages; parts begin at whole multiples after the first message
    most            number of newest parts that are kept; older ones are removed
    repeat_latched  write the last message of each latched channel again at the start of each part
    """

    size: int | None = None
    duration: int | None = None
    most: int | None = None
    repeat_latched: bool = False

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("duration", self.duration), ("max_splits", self.most)):
            if value is not None and value <= 0:
                raise UsageError(f"{name} of parts: {value} is not positive")
        if self.size is None and self.duration is None and (self.most is not None or self.repeat_latched):
            raise UsageError(
                "no parts are asked for",
                hint="pass split_size= or split_duration=",
            )

    def __bool__(self) -> bool:
        return self.size is not None or self.duration is not None


@dataclass(slots=True)
class _Given:
    """A channel as it was added: for the parts that follow."""

    schema: Schema | Layout
    metadata: Mapping[str, Any]
    copied: bool


class SplitWriter:
    """Writes a log as ``Writer`` does, and begins a new file when a part is full. For one thread.

    path    of the log; parts are called ``part_name(path, 0)``, 1, 2 …; without *split*, it is the only file
    fmt     its format
    make    function that creates the Writer of a file
    is_file  False: the log goes to a stream, so there are no files

    taken   names of the channels that were added

    Every part has all channels, under the same names and numbers, and what ``at_start`` adds. A full part is flushed,
    then completed and renamed by a background thread, while the next one is written.
    """

    def __init__(
        self,
        path: str,
        fmt: Format,
        make: Callable[[str], Writer],
        split: Split,
        force: bool,
        is_file: bool = True,
    ) -> None:
        self._is_file = is_file
        self._path, self.format, self._make, self._split = path, fmt, make, split
        self.notes: list[str] = []
        #: Channels by name, in order of their numbers.
        self._channels: dict[str, _Given] = {}
        self._starters: list[Callable[[Writer], None]] = []
        #: Last message of latched channels.
        self._latched: dict[int, tuple[int, Payload | Mapping[str, Any]] | None] = {}
        #: Completed files with their identity on disk, and bytes of those that were removed.
        self.completed: list[tuple[str, tuple[int, int]]] = []
        self._done_bytes = self._count = 0
        self._pool: ThreadPoolExecutor | None = None
        self._closing: list[Future[None]] = []
        #: End of the part by time, size of its file when last looked at, and bytes given since.
        self._until: int | None = None
        self._seen = self._pending = 0
        if split and not force and (old := existing_parts(path, fmt.suffixes)):
            raise exists(old[0])
        self._old = set(existing_parts(path, fmt.suffixes)) if split else set[str]()
        self.path = self._next_path() if split else path
        self._writer = make(self.path)
        # Those of a log that is continued keep their numbers, and are taken when they are added again.
        for topic, schema in self._writer.format_writer.old_channels.items():
            self._channels[topic] = _Given(schema, {}, copied=True)
        self.taken = set[str]()
        if not split:
            # One call less for each message: this shadows the method, which does the same.
            self.write = self._writer.write  # type: ignore[method-assign]

    # ------------------------------------------------------------------------------------------- as a Writer

    @property
    def format_writer(self) -> FormatWriter:
        """The FormatWriter of the present part."""
        return self._writer.format_writer

    @property
    def names(self) -> list[str]:
        """Names of the channels, in order of their numbers."""
        return list(self._channels)

    @property
    def size(self) -> int:
        """Bytes of all files written, about."""
        return self._done_bytes + self._writer.size

    def add_channel(
        self,
        topic: str,
        schema: Schema | Layout,
        metadata: Mapping[str, Any] | None = None,
        *,
        copied: bool = False,
    ) -> int:
        """Add a channel to this and all later parts; as ``Writer.add_channel``."""
        number = self._writer.add_channel(topic, schema, metadata, copied=copied)
        self._channels[topic] = _Given(schema, dict(metadata or {}), copied)
        self.taken.add(topic)
        return number

    def latch(self, channel: int) -> None:
        """Repeat the last message of *channel* at the start of each part, if this is wanted."""
        if self._split.repeat_latched:
            self._latched.setdefault(channel, None)

    def at_start(self, call: Callable[[Writer], None]) -> None:
        """Call a function with the Writer of this and of each later part, before channels are added."""
        call(self._writer)
        self._starters.append(call)

    def write(self, channel: int, time: int, data: Payload | Mapping[str, Any]) -> None:
        """Append one message; as ``Writer.write``."""
        size = USUAL_SIZE if isinstance(data, Mapping) else len(data)
        if self._may_be_over(time, size) and self._is_over(time, size):
            self._begin_part(time)
        self._writer.write(channel, time, data)
        if channel in self._latched:
            self._latched[channel] = time, data

    def write_batch(
        self, batch: Sequence[tuple[int, int, bytes]], refuse: Callable[[int, UsageError], None]
    ) -> None:
        """Append messages: number of the channel, time in ns, payload.

        refuse  called with the position in *batch* of each message that cannot be written, and why; all others are
        """
        begun = 0
        for i, (channel, time, payload) in enumerate(batch):
            if self._split and self._may_be_over(time, len(payload)):
                self._write_together(batch, begun, i, refuse)
                begun = i
                if self._is_over(time, len(payload)):
                    self._begin_part(time)
            if channel in self._latched:
                self._latched[channel] = time, payload
        self._write_together(batch, begun, len(batch), refuse)

    def _write_together(
        self,
        batch: Sequence[tuple[int, int, bytes]],
        start: int,
        end: int,
        refuse: Callable[[int, UsageError], None],
    ) -> None:
        """Append the messages from *start* to *end*, one by one if they cannot be written together."""
        if start == end:
            return
        channels, times, payloads = zip(*batch[start:end], strict=True)
        try:
            size = np.array([len(payload) for payload in payloads], np.int64)
            place = np.cumsum(size) - size
            data = np.frombuffer(b"".join(payloads), np.uint8)
            numbers, ns = np.array(channels, np.int32), _times(times)
            try:
                self._writer.write_many(numbers, ns, data, place, size)
            except SomeRefusedError as error:
                if error.total == end - start:
                    for row in error.rows.tolist():
                        refuse(start + row, error)
                    return
                # These are messages collected before, and nothing of this call was written.
                self.notes.append(error.text)
                self._writer.write_many(numbers, ns, data, place, size)
        except UsageError as error:
            if end - start == 1:
                refuse(start, error)
                return
            middle = (start + end) // 2
            self._write_together(batch, start, middle, refuse)
            self._write_together(batch, middle, end, refuse)

    def text(self, time: int, text: str, level: int) -> None:
        """Append a line of text; as ``Writer.text``."""
        self._writer.text(time, text, level)

    def flush(self, sync: bool | None = None) -> None:
        """Write everything so far to the files; as ``Writer.flush``."""
        if sync:
            # Those that are being completed are on the disk afterwards.
            self._wait()
        self._writer.flush(sync)

    def close(self) -> None:
        """Complete the last part, and wait until all parts are complete and have their names."""
        try:
            self._wait()
            self._complete(self._writer, self.path)
        except BaseException:
            self._writer.leave()
            raise
        finally:
            self._end_pool()

    def leave(self) -> None:
        """Close the incomplete last part, which keeps its temporary name; complete the others."""
        self._writer.leave()
        with contextlib.suppress(LogError):
            self._wait()
        self._end_pool()

    def discard(self) -> None:
        """Remove the file that is being written."""
        self._writer.discard()
        self._end_pool()

    # ------------------------------------------------------------------------------------------------ parts

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the completed files that were kept, in order."""
        return tuple(name for name, _ in self.completed)

    def left_from_before(self) -> list[str]:
        """Return the paths of files that look like parts of this log, but were there before."""
        return sorted(name for name in self._old - {*self.files} if os.path.lexists(name))

    def _next_path(self) -> str:
        while True:
            path = part_name(self._path, self._count, self.format.suffixes)
            self._count += 1
            if path in self._old or path + ACTIVE in self._old:
                return path
            # Files that another program created meanwhile are never replaced.
            if not os.path.lexists(path) and not os.path.lexists(path + ACTIVE):
                return path
            self.notes.append(f"{path} was created by another program, so its number was left out")

    def _may_be_over(self, time: int, size: int) -> bool:
        """Return whether ``_is_over`` must decide about the next message, of so many bytes; counts it."""
        if self._split.duration is not None and (self._until is None or time >= self._until):
            return True
        if self._split.size is None:
            return False
        now = self._writer.size
        if now != self._seen:
            self._seen, self._pending = now, 0
        self._pending += size
        return now + self._pending >= self._split.size

    def _is_over(self, time: int, size: int) -> bool:
        """Return whether the next message, of so many bytes, must begin a new part."""
        split = self._split
        if split.duration is not None:
            if self._until is None:
                self._until = time + split.duration
            if time >= self._until:
                return True
        if split.size is None:
            return False
        if self._writer.size < split.size <= self._seen + self._pending:
            # What was collected, and may be compressed, counts when it is in the file.
            self._writer.flush()
        self._seen, self._pending = self._writer.size, size
        return self._seen >= split.size

    def _begin_part(self, time: int) -> None:
        """Complete the present part in the background, and begin the next one, whose first message has *time*."""
        done, path = self._writer, self.path
        done.flush()
        self._wait(most=1)
        self._done_bytes += done.size
        self.path = self._next_path()
        self._writer = self._make(self.path)
        self._pool = self._pool or ThreadPoolExecutor(1, "logreel-complete")
        self._closing.append(self._pool.submit(self._complete, done, path))
        for call in self._starters:
            call(self._writer)
        for name, added in self._channels.items():
            self._writer.add_channel(name, added.schema, added.metadata, copied=added.copied)
        if self._until is not None and self._split.duration is not None:
            late = max(0, time - self._until) // self._split.duration
            self._until += (late + 1) * self._split.duration
        for channel, message in self._latched.items():
            if message is not None:
                self._writer.write(channel, time, message[1])
        self._seen, self._pending = self._writer.size, 0

    def _complete(self, writer: Writer, path: str) -> None:
        """Complete a part, and remove the oldest if there are too many. Runs in the background, except for the last."""
        writer.close()
        self.notes += writer.format_writer.notes
        if not self._is_file:
            return
        written = os.stat(path)
        self.completed.append((path, (written.st_dev, written.st_ino)))
        # One more is being written, except at the end.
        while self._split.most is not None and len(self.completed) > self._split.most - (
            writer is not self._writer
        ):
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the oldest completed file."""
        old, identity = self.completed.pop(0)
        with contextlib.suppress(OSError):
            present = os.lstat(old)
            # Somebody may have replaced it.
            if (present.st_dev, present.st_ino) == identity:
                os.unlink(old)

    def _wait(self, most: int = 0) -> None:
        """Wait until at most *most* parts are being completed; raises their errors."""
        while len(self._closing) > most:
            self._closing.pop(0).result()

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is None:
            self.close()
        else:
            self.leave()


def _times(times: tuple[int, ...]) -> I64:
    try:
        return np.array(times, np.int64)
    except OverflowError:
        raise UsageError("a time does not fit into 64 bits of ns") from None
