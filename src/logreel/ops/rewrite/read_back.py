"""Reading a log back while it is written, in bounded memory and without a file."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b

import numpy as np

from logreel.errors import LogError
from logreel.index.tail import BEGIN, MessagePlace, last_place
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.io.two_pass import DryRun, Make, StreamOut, Take
from logreel.log.log import Log
from logreel.log.scan import Growing, Scan
from logreel.registry.format import Format
from logreel.registry.open import log_of

#: Bytes after which the log so far is read.
STEP = 16 << 20
#: Bytes at the start of a log that stay: readers return to them.
HEAD = 1 << 20
_DIGEST = 16


class _Memory(mmap.mmap):
    """Memory for a log, of which only the pages take room that have something in them."""

    def size(self) -> int:
        """Return the number of bytes; there is no file whose size could change."""
        return len(self)

    def forget(self, start: int, stop: int) -> None:
        """Give the pages between two offsets back, where the system can do that."""
        start = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        size = stop // mmap.PAGESIZE * mmap.PAGESIZE - start
        if size > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self.madvise(mmap.MADV_DONTNEED, start, size)


def growing_that_reads_once(fmt: Format) -> Growing | None:
    """Return a new Growing of *fmt*, see ``Growing.reads_once``; None if it has none of this kind."""
    growing = None if fmt.follow is None else fmt.follow()
    return growing if getattr(growing, "reads_once", False) else None


class ReadBack(StreamOut):
    """An Appender that sends nothing: it reads what it gets as a log that grows, and forgets what was read.

    dry_run  a DryRun of the same log
    seen     called with the log so far and the place of its last message, at the end with None for the place;
             returns the place up to which bytes may be forgotten

    What is left at the end are the numbers of messages and their times, and digests of the bytes, so that a stream can
    get exactly the bytes that were read.
    """

    def __init__(
        self,
        dry_run: DryRun,
        fmt: Format,
        make: Make,
        seen: Callable[[Log, MessagePlace | None], int] | None = None,
    ) -> None:
        super().__init__(dry_run.name, self._receive, dry_run.edits, make=make)
        growing = growing_that_reads_once(fmt)
        if growing is None:
            raise TypeError(f"{fmt.title} cannot be read without all of its messages")
        self._format, self._growing, self._tell = fmt, growing, seen
        self._memory = _Memory(-1, max(dry_run.tell(), 1))
        self._digests: list[bytes] = []
        self._end = self._seen = self._forgotten = 0
        self._log: Log | None = None
        self._counts = Counter[str]()
        self._times: dict[str, list[I64]] = {}

    def _receive(self, data: bytes) -> None:
        end = self._end + len(data)
        if end > len(self._memory):
            raise self._changed()
        self._memory[self._end : end] = data
        self._digests.append(blake2b(data, digest_size=_DIGEST).digest())
        self._end = end
        if end - self._seen >= STEP:
            self._look()

    def _look(self) -> None:
        """Read what has come since the last call, and forget the messages before the last one."""
        self._seen = self._end
        source = Source(memoryview(self._memory)[: self._end], self.name, guard=False)
        try:
            scan = self._growing.extend(source)
        except LogError:
            # Nothing but the beginning of the header may be there.
            scan = None
        self._take_over(source, scan)

    def _take_over(self, source: Source, scan: Scan | None) -> None:
        """Note counts and times of the messages that *scan* has more than before."""
        self._log = None if scan is None else log_of(source, self._format, scan)
        if self._log is None:
            return
        for topic, ch in self._log.channels.items():
            known, count = self._counts[topic], len(ch)
            if count > known and not ch.reserved and self._log.index.rules[ch.number].synthetic is None:
                times = self._log.index.times_of(ch.number, slice(known, count))
                self._times.setdefault(topic, []).append(times.copy())
            self._counts[topic] = count
        # Readers go on after the last message.
        last = last_place(self._log.index)
        needed = last.file
        if self._tell is not None:
            is_end = self._end == len(self._memory) or last == BEGIN
            needed = 0 if is_end else min(self._tell(self._log, last), needed)
        start, self._forgotten = max(self._forgotten, HEAD), max(needed, self._forgotten)
        self._memory.forget(start, self._forgotten)

    def log(self) -> Log:
        """Return the log, of which only structure is left: see ``times``. Raises LogError if it cannot be read."""
        self._look()
        if self._log is None and self._forgotten <= HEAD:
            # Some readers decide only at the end how a small log is to be read.
            source = Source(memoryview(self._memory)[: self._end], self.name, guard=False)
            self._take_over(source, self._format.scan(source, None))
        if self._log is None or self._end != len(self._memory):
            raise LogError("the new file cannot be read again", path=self.name)
        if self._tell is not None:
            self._tell(self._log, None)
        return self._log

    def times(self, topic: str) -> I64:
        """Return int64[n] ns: the times of the messages of a channel, as they were read."""
        return np.concatenate([np.zeros(0, np.int64), *self._times.get(topic, ())])

    def checked(self, take: Take) -> Take:
        """Return a function that passes the pieces of the same log on to *take* if they are those that were read."""
        due: Iterator[bytes] = iter(self._digests)

        def take_checked(data: bytes) -> None:
            if blake2b(data, digest_size=_DIGEST).digest() != next(due, b""):
                raise self._changed()
            take(data)

        return take_checked

    def _changed(self) -> LogError:
        return LogError("was changed by another program while it was sent", path=self.name)
