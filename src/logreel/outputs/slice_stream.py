"""A log as a stream of bytes: a slice in any form that is one file, or the bytes of a log that comes through a pipe."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import OutputStream
from logreel.io.source import Source
from logreel.log.log import Log
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.log.times import Time, interval
from logreel.ops.selection import Selection
from logreel.outputs.registry import CSV_WITHOUT_FORMULAS, OUTPUTS, Output, Shape, channels_for, logs
from logreel.registry.format import Format
from logreel.registry.open import read_itself
from logreel.registry.registry import formats

#: CSV whose text no spreadsheet runs.
SAFE_CSV = "safe-csv"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """Channels, interval and output format of a slice.

    topics, exclude  names or patterns as for ``logreel.slice``
    start, end  times in any form of ``logreel.slice``; half-open
    kind     suffix of an output without the dot, name of a format, or ``safe-csv``: CSV without text that a spreadsheet
             would run; None: the format of the log
    """

    topics: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    start: Time | None = None
    end: Time | None = None
    kind: str | None = None


def kinds() -> dict[str, str]:
    """Return the values of ``SliceRequest.kind`` with their suffixes: formats, and outputs that are one file."""
    every = {**OUTPUTS.all(), **logs()}
    suffixes = {
        suffix[1:]: suffix
        for suffix, output in every.items()
        if output.media and output.shape is not Shape.ITEMS
    }
    suffixes[SAFE_CSV] = ".csv"
    for fmt in formats().values():
        if fmt.create is not None:
            suffixes |= {suffix.lstrip("."): suffix for suffix in fmt.suffixes} | {fmt.name: fmt.suffixes[0]}
    return suffixes


def file_stem(log: Log) -> str:
    """Return the name of the file of *log* without folders and suffix, with only letters that every system accepts."""
    stem = os.path.basename(log.name)
    return _UNSAFE.sub("_", os.path.splitext(stem)[0]).strip("._") or "log"


class SliceStream:
    """The checked answer to a SliceRequest; it can be written several times, always with the same bytes.

    name     file name for the slice
    media    media type
    forward  True: can be streamed while it is written; False: needs a DryRun first
    skipped  sentences about left out content, from the last run so far

    Raises UsageError, TopicError, UnsupportedError, and LogError if there is nothing to write.
    """

    def __init__(self, log: Log, request: SliceRequest) -> None:
        from logreel.ops.rewrite.parts import select_part
        from logreel.ops.rewrite.target import appends_only, format_of, format_to_write

        decrypted_notes(log)
        log = read_itself(log, also_remote=False)
        self._log, self._request = log, request
        self._interval = interval(log, request.start, request.end)
        self.skipped: list[str] = []
        self._output, suffix = (
            (None, format_of(log).suffixes[0]) if request.kind is None else _output(request.kind)
        )
        self.name, self.media = file_stem(log) + suffix, "application/octet-stream"
        if self._output is None:
            self._format = format_of(log) if request.kind is None else format_to_write(self.name, log)
            self._part = select_part(log, Selection(request.topics, request.exclude, *self._interval))
            self.forward = appends_only(self._format)
        else:
            self.media, self.forward = self._output.media, True
            self._channels = channels_for(log, request.topics, self._output, request.exclude)
            if self._output.shape is Shape.TABLES and len(self._channels) != 1:
                raise UsageError(
                    f"{len(self._channels)} channels do not fit into one {suffix} file: choose one channel"
                )

    def write(self, out: Appender) -> None:
        """Write all bytes to *out*."""
        # A service starts without what writes logs.
        from logreel.ops.rewrite.engine import rewrite
        from logreel.ops.rewrite.target import Target
        from logreel.ops.rewrite.transcode import Transcode
        from logreel.outputs.registry import Job
        from logreel.outputs.write import write_job

        self.skipped = []
        if self._output is None:
            is_foreign = self._request.kind is not None
            target = Target(self.name, foreign=is_foreign)
            # As convert does, except for other tools' schemas in formats for exchange.
            transforms = [Transcode()] if is_foreign and not self._format.exchange else []
            rewrite([self._part], target, transforms=transforms, out=out, skipped=self.skipped)
            return
        job = Job(self._log, self._channels, *self._interval, skipped=self.skipped)
        write_job(AppenderFile(out), job, self._output)  # type: ignore[arg-type]
        out.finish()


def _output(name_of_format: str) -> tuple[Output | None, str]:
    """Return the output for *name_of_format*, None for a log, and its suffix."""
    known: Mapping[str, str] = kinds()
    name = name_of_format.lower().removeprefix(".")
    suffix = known.get(name)
    if suffix is None:
        raise UsageError(f"no format {name_of_format!r}; there are: {', '.join(sorted(known))}")
    return CSV_WITHOUT_FORMULAS if name == SAFE_CSV else OUTPUTS.get(suffix), suffix


class AppenderFile(io.RawIOBase):
    """Adapts an Appender to the binary file interface."""

    def __init__(self, out: Appender) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._out.tell()

    def write(self, data: Any) -> int:
        self._out.write(data)
        return memoryview(data).nbytes


#: Bytes copied at once.
PIECE = 1 << 20


def copies_bytes(log: Log, fmt: Format) -> bool:
    """Return whether a whole sound log is copied byte for byte when it is converted to *fmt*."""
    if fmt.name != log.format or fmt.create is None:
        return False
    from logreel.io.two_pass import DryRun
    from logreel.write.log_copier import LogCopier, copier_for

    # Formats without it compose the new log of its messages.
    return type(copier_for(fmt, fmt.create(DryRun("")))).copy_records is not LogCopier.copy_records


def copy_growing(log: Log, dst: str | OutputStream, force: bool, poll: float, stop: Event) -> Copy | None:
    """Copy the bytes of a growing log while they come; return the copy when the log is complete.

    dst  path of the copy, which is called ``x.active`` until ``Copy.finish``; or a stream

    Incomplete records at the end, and bytes in which no record was found, are left out. Returns None if *stop* ended
    the copying; a file keeps the name ``x.active`` then. Raises LogError if the file exists and *force* is not given.
    """
    copy = Copy(log, dst, force)
    try:
        for _ in log.changes(poll=poll, stop=stop):
            copy.extend()
    except BaseException:
        copy.leave()
        raise
    if not log.is_complete:
        copy.leave()
        return None
    return copy


class Copy:
    """The copy of the bytes of a log; see ``copy_growing``."""

    def __init__(self, log: Log, dst: str | OutputStream, force: bool) -> None:
        self._log, self._dst = log, dst
        if not isinstance(dst, OutputStream):
            keep_sources(dst, inputs_of(log))
        self._out = None if isinstance(dst, OutputStream) else Appender(dst, force)
        self._at = 0
        #: What was copied: ranges of the bytes of the log.
        self._ranges: list[tuple[int, int]] = []

    def extend(self) -> None:
        """Copy what has come."""
        lost = sorted((p.offset, p.offset + p.size) for p in self._log.problems if p.lost and p.size)
        end = self._log.size
        # A record that is not complete yet is lost so far.
        while lost and lost[-1][1] >= end:
            end = lost.pop()[0]
        for begin, until in [*lost, (end, end)]:
            if begin > self._at:
                self._copy(self._at, min(begin, end))
            self._at = max(self._at, min(until, end))
        if self._out is not None:
            self._out.flush()

    def _copy(self, begin: int, end: int) -> None:
        for at in range(begin, end, PIECE):
            data = self._source.read(at, min(PIECE, end - at))
            if self._out is None:
                self._dst.write(data)  # type: ignore[union-attr]
            else:
                self._out.put(data)
        if end > begin:
            self._ranges.append((begin, end))

    @property
    def _source(self) -> Source:
        return self._log.source

    def is_what(self, write: Callable[[OutputStream], Any], suffix: str) -> tuple[bool, Any]:
        """Return whether the copy has the bytes that *write* writes to a stream, and what *write* returns.

        suffix  of the name of the stream
        """
        comparing = _Comparing(self._blocks())
        written = write(OutputStream(comparing, f"<copy>{suffix}"))
        return comparing.ends(), written

    def _blocks(self) -> Iterator[bytes]:
        for begin, end in self._ranges:
            for at in range(begin, end, PIECE):
                yield self._source.read(at, min(PIECE, end - at))

    def finish(self) -> None:
        """Give a file its name."""
        if self._out is not None:
            self._out.finish()

    def leave(self) -> None:
        """Close a file under its unfinished name; remove it if it is empty."""
        if self._out is not None:
            (self._out.leave if self._out.tell() else self._out.discard)()

    def discard(self) -> None:
        """Remove a file."""
        if self._out is not None:
            self._out.discard()


class _Comparing(io.RawIOBase):
    """A binary file that compares what is written with *blocks* of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._blocks, self._due, self._is_equal = chunks, memoryview(b""), True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        left = view
        while self._is_equal and len(left):
            if not len(self._due):
                self._due = memoryview(next(self._blocks, b""))
            count = min(len(left), len(self._due))
            self._is_equal = count > 0 and left[:count] == self._due[:count]
            left, self._due = left[count:], self._due[count:]
        return len(view)

    def ends(self) -> bool:
        """Return whether all bytes were equal, and none are missing."""
        return self._is_equal and not len(self._due) and next(self._blocks, None) is None
