"""A log that is copied to a log of its own format while it comes through a pipe."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

from logreel.io.append_file import Appender
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import OutputStream
from logreel.io.source import Source
from logreel.io.two_pass import DryRun
from logreel.log.log import Log
from logreel.log.source_files import inputs_of
from logreel.registry.format import Format
from logreel.write.log_copier import LogCopier, copier_for

#: Bytes copied at once.
PIECE = 1 << 20


def copies_bytes(log: Log, fmt: Format) -> bool:
    """Return whether a whole sound log is copied byte for byte when it is converted to *fmt*."""
    if fmt.name != log.format or fmt.create is None:
        return False
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
        comparing = _Comparing(self._pieces())
        written = write(OutputStream(comparing, f"<copy>{suffix}"))
        return comparing.ends(), written

    def _pieces(self) -> Iterator[bytes]:
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
    """A binary file that compares what is written with *pieces* of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._pieces, self._due, self._is_equal = chunks, memoryview(b""), True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        left = view
        while self._is_equal and len(left):
            if not len(self._due):
                self._due = memoryview(next(self._pieces, b""))
            count = min(len(left), len(self._due))
            self._is_equal = count > 0 and left[:count] == self._due[:count]
            left, self._due = left[count:], self._due[count:]
        return len(view)

    def ends(self) -> bool:
        """Return whether all bytes were equal, and none are missing."""
        return self._is_equal and not len(self._due) and next(self._pieces, None) is None
