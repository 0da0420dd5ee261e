"""Logs that grow: ``Log.refresh`` extends an open log by what its file has more, ``Log.follow`` yields new messages."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from threading import Event
from types import MappingProxyType
from typing import Any
from weakref import WeakSet, ref

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.index.block_table import Selection
from logreel.index.message_index import MessageIndex
from logreel.index.tail import BEGIN, Place, last_place, rows_after, select_rows
from logreel.io.chunks import FILE
from logreel.io.growing_file import Change, GrowingFile
from logreel.io.growing_stream import GrowingStream
from logreel.io.part_files import LaterParts
from logreel.io.source import Source
from logreel.log.scan import Scan
from logreel.log.times import Time, time_ns
from logreel.log.topic_match import fitting, listed

#: Returns the name of the format and the Scan of a Source. *is_other*: of another file than before, or a truncated one;
#: *is_final*: the file will not grow any more.
Rescan = Callable[[Source, bool, bool], tuple[str, Scan]]

#: Names and patterns of channels, or a function from the Log to its Channels; None: all except reserved ones.
Choice = list[str] | Callable[[Any], list[Any]] | None

#: Seconds between two looks at a file that does not grow.
POLL = 0.01
#: Greatest share of the time that is spent on refreshing: if that takes long, the file is looked at less often.
BUSY = 0.5
#: Seconds for which the next part of a split recording may come after one is complete, and between two looks for parts
#: whose number is not the next one.
PARTS = 1.0
#: Sources of one file, from before it has grown, that may be waiting for the garbage collector.
MAX_SOURCES = 32
#: Cached properties of a Channel that follow from its Layout alone.
_FROM_LAYOUT = ("layout", "_decoder", "time_label")


class Growth:
    """The growing file of one log.

    log       the Log
    end       place of the last message
    switches  number of times that the file was replaced or truncated, or that the next part was begun
    restarts  number of those times that the same file name then had other messages
    resumes   place in the present file of the last message of the one before; BEGIN: it has other messages
    complete  whether the writer has given the file its final name
    news      number of messages that came since the log was opened
    """

    def __init__(self, log: Any, rescan: Rescan, file: GrowingFile | GrowingStream) -> None:
        self._log, self._rescan, self._file = log, rescan, file
        self._is_other = self._was_empty = False
        self._sources: list[ref[Source]] = []
        self._positions = WeakSet[_Position]()
        self._watch_parts()
        self.end = last_place(log.index)
        self.switches, self.restarts, self.resumes = 0, 0, BEGIN
        self.complete = False
        self.news = 0

    def _watch_parts(self) -> None:
        target = self._file.target
        self._parts = None if target is None else LaterParts(target)
        self._is_next_there = False
        self._completed = self._listed = -PARTS

    def refresh(self) -> int:
        """Extend the log; return the number of new messages."""
        if self.complete:
            return 0
        change = self._file.look()
        if change is Change.SAME:
            return 0
        if change is Change.COMPLETE:
            self.complete, self._completed = True, time.monotonic()
            # The end of a sound file is read already. Of a damaged one all is known now.
            return self._read_again() if self._log.problems or self._is_other else 0
        if change is Change.REPLACED and not self._file.open():
            return 0
        self._is_other |= change is not Change.GROWN
        return self._read_again()

    @property
    def may_go_on(self) -> bool:
        """Whether the file may become longer, or may be followed by the next part of a split recording."""
        waits = self._is_next_there or time.monotonic() < self._completed + PARTS
        return not self.complete or (bool(self._parts) and waits)

    def go_on(self) -> None:
        """Replace the content of the log by the next part of a split recording, if all of this part was read."""
        if not self._parts or not isinstance(self._file, GrowingFile):
            return
        now = time.monotonic()
        every = self.complete or self._file.is_removed or now >= self._listed + PARTS
        if every:
            self._listed = now
        path = self._parts.next(self._file.modified_ns, every)
        self._is_next_there = path is not None
        if path is None:
            return
        # What was written until it was left is to be read first.
        if not self.complete and not (self._file.is_left() and self._file.look() is Change.SAME):
            return
        part = GrowingFile(path)
        if not part.open():
            return
        source = self._new_source(part, os.path.join(os.path.dirname(self._log.name), path.name))
        try:
            name, scan = self._rescan(source, True, False)
        except LogError:
            # The beginning of a file may be too short to be recognised.
            return
        self._switch(BEGIN)
        part.follows(self._file)
        self._file.close()
        self._file = part
        self._watch_parts()
        self.complete = self._is_other = self._was_empty = False
        self._adopt(source, name, scan)
        self._log.name = source.name

    def track(self, position: _Position) -> None:
        """Keep the rest of the present file for *position* when another one takes its place."""
        self._positions.add(position)

    def is_readable(self) -> bool:
        """Return whether all mapped bytes are still in the file; reading others would end the process."""
        return self._file.still_has(self._log._source)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._parts = None
        self.complete = True

    def _read_again(self) -> int:
        log = self._log
        old, old_index = log._source, log.index
        source = self._new_source(self._file, log.name)
        self._release_old(source)
        # Kept now: after a truncation it can no longer be read.
        self._was_empty |= not source.head and source.inode == old.inode
        try:
            name, scan = self._rescan(source, self._is_other, self.complete)
        except LogError:
            # The beginning of a file may be too short to be recognised.
            return 0
        if self._is_other:
            resumes = BEGIN if self._was_empty else _resumed((old, old_index), (source, scan.index))
            if resumes is None and not self.complete:
                return 0
            self._switch(last_place(scan.index) if resumes is None else resumes, source.inode == old.inode)
            self.restarts += self.resumes == BEGIN
            self._is_other = self._was_empty = False
        return self._adopt(source, name, scan)

    def _new_source(self, file: GrowingFile | GrowingStream, name: str) -> Source:
        old = self._log._source
        source = file.source(name)
        source.definitions, source.types = old.definitions, old.types
        return source

    def _switch(self, resumes: Place, is_cut: bool = False) -> None:
        """Go on behind *resumes* in another file, or, if *is_cut*, in the same one, which was truncated."""
        for position in self._positions:
            position.switch(resumes, is_cut)
        self.switches, self.resumes, self.end = self.switches + 1, resumes, resumes

    def _adopt(self, source: Source, name: str, scan: Scan) -> int:
        self._log._adopt(source, name, scan)
        new = rows_after(scan.index, self.end, range(len(scan.channels)))
        self.end = max(self.end, last_place(scan.index))
        count = sum(map(len, new.values()))
        self.news += count
        return count

    def _release_old(self, source: Source) -> None:
        """Collect Sources that nothing but cycles keep: each has an open file handle."""
        self._sources = [one for one in self._sources if one() is not None]
        if len(self._sources) >= MAX_SOURCES:
            gc.collect()
        self._sources.append(ref(source))


def _resumed(old: tuple[Source, MessageIndex], new: tuple[Source, MessageIndex]) -> Place | None:
    """Return the place in a new file of the last message of the old one, if it begins with the same messages.

    Else BEGIN. None: it has no other messages so far than the first ones of the old file, as a copy that is being made.
    """
    (old_source, before), (new_source, after) = old, new
    if old_source.inode == new_source.inode:
        # It was truncated, so the old messages cannot be read any more.
        same = new_source.size > 0 and old_source.head.startswith(new_source.head)
        return last_place(after) if same else BEGIN
    channels = [
        [n for n, rules in enumerate(index.rules) if not rules.is_synthetic] for index in (before, after)
    ]
    counts = [
        sum(index.count(n) for n in some) for index, some in zip((before, after), channels, strict=True)
    ]
    if not counts[0]:
        return BEGIN
    place = BEGIN
    for row in {0, min(counts) - 1} if counts[1] else ():
        one, other = (_nth(index, some, row) for index, some in zip((before, after), channels, strict=True))
        if one is None or other is None or one[:2] != other[:2]:
            return BEGIN
        place = max(place, other[2])
    return place if counts[1] >= counts[0] else None


def _nth(index: MessageIndex, channels: list[int], row: int) -> tuple[int, bytes, Place] | None:
    """Return time, payload and place of a message of an index in file order; None if it has fewer."""
    for batch in index.select_batches(channels, order="file"):
        if row < len(batch):
            chunk, offset, size = (int(a[row]) for a in (batch.chunk, batch.offset, batch.size))
            payload = bytes(index.chunks.view(chunk)[offset : offset + size])
            place = (
                Place(offset, chunk, 0)
                if chunk == FILE
                else Place(index.chunks.place_of(chunk), chunk, offset)
            )
            return int(batch.time[row]), payload, place
        row -= len(batch)
    return None


class _Position:
    """How far one iteration of ``follow`` is.

    existing  False: behind the messages that are there
    """

    def __init__(self, log: Any, growth: Growth | None, existing: bool) -> None:
        self._log, self._growth = log, growth
        self._place = BEGIN if existing or growth is None else growth.end
        self._is_new = existing
        #: Logs of earlier files with messages that were not yielded before another file took their place.
        self._rests: list[tuple[Any, Place, bool, dict[str, int]]] = []
        #: Number of messages yielded so far of synthetic channels, by topic.
        self._synthetic = {} if existing else _synthetic_counts(log)
        if growth is not None:
            growth.track(self)

    def switch(self, resumes: Place, is_cut: bool) -> None:
        """Go on behind *resumes* in another file, after the rest of this one; see ``Growth``."""
        growth = self._growth
        if is_cut:
            # The other messages cannot be read any more.
            self._place = min(self._place, resumes)
            self._is_new |= self._place == BEGIN
            return
        if growth is not None and (self._is_new or self._place < growth.end):
            self._rests.append((self._log._at_present(), self._place, self._is_new, self._synthetic))
        self._place, self._is_new = resumes, resumes == BEGIN

    def new_messages(self, topics: Choice, first: int | None, last: int | None) -> Iterator[Any]:
        """Yield the messages after the position with first <= time < last, and go to the end."""
        log, growth = self._log, self._growth
        # The log may be refreshed, and even get the content of another file, while messages are yielded.
        present = log._at_present()
        found = _batches_after(log, self._place, self._is_new, self._synthetic, topics)
        rests, self._rests = self._rests, []
        self._place = last_place(log.index) if growth is None else growth.end
        self._synthetic = ({} if self._is_new else self._synthetic) | _synthetic_counts(log)
        self._is_new = False
        for rest in rests:
            for message in _messages(rest[0], *_batches_after(*rest, topics), first, last):
                yield message._replace(data=memoryview(bytes(message.data)))
        for message in _messages(present, *found, first, last):
            if growth is not None and not growth.is_readable():
                return
            yield message._replace(data=memoryview(bytes(message.data)))


def _batches_after(
    log: Any, place: Place, is_new: bool, synthetic: Mapping[str, int], topics: Choice
) -> tuple[dict[int, Any], Iterator[Selection]]:
    """Return the chosen channels of a log, and its messages of them after *place*; if *is_new*, all of them.

    synthetic  number of messages of synthetic channels that are left out, by topic
    """
    channels = {ch.number: ch for ch in _chosen(log, topics)}
    index: MessageIndex = log.index
    if is_new:
        return channels, index.select_batches(channels, order="file")
    rows = rows_after(index, place, channels)
    for topic, count in _synthetic_counts(log).items():
        number = log[topic].number
        if number in channels and count > (seen := synthetic.get(topic, 0)):
            rows[number] = np.arange(seen, count)
    return channels, iter([select_rows(index, rows)] if rows else [])


def _messages(
    log: Any, channels: Mapping[int, Any], batches: Iterator[Selection], first: int | None, last: int | None
) -> Iterator[Any]:
    messages: Iterator[Any] = log.messages_of(channels, (_between(batch, first, last) for batch in batches))
    return messages


def _synthetic_counts(log: Any) -> dict[str, int]:
    """Return the number of messages of the synthetic channels by topic."""
    rules = log.index.rules
    return {ch.topic: len(ch) for ch in log.channels.values() if rules[ch.number].is_synthetic}


def _between(batch: Selection, first: int | None, last: int | None) -> Selection:
    """Return the messages of *batch* with first <= time < last."""
    keep = np.ones(len(batch), np.bool_)
    if first is not None:
        keep &= batch.time >= first
    if last is not None:
        keep &= batch.time < last
    return batch if keep.all() else Selection(*(getattr(batch, name)[keep] for name, _ in Selection.KINDS))


def _chosen(log: Any, topics: Choice) -> list[Any]:
    """Return the channels that *topics* select so far."""
    if callable(topics):
        return topics(log)
    if topics is None:
        return [ch for ch in log.channels.values() if not ch.reserved]
    names = set().union(*(fitting(log.channels, topic) for topic in topics))
    return [ch for ch in log.channels.values() if ch.topic in names]


class GrowingLog:
    """The part of ``Log`` that concerns files which are still written."""

    closed: bool
    name: str
    _source: Source
    _scan: Scan
    #: Set by the function that opens logs; None: the log cannot grow.
    _rescan: Rescan | None = None
    _growth: Growth | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the log cannot grow: its writer gave the file its final name, its stream ended, or it is no file."""
        growth = self._watched()
        return growth is None or growth.complete

    @property
    def replacements(self) -> int:
        """How often the file was replaced by one with other messages since the log was opened."""
        return 0 if self._growth is None else self._growth.restarts

    def refresh(self) -> int:
        """Extend the log by what its file has more than before, and return the number of new messages.

        For formats that support it, only the new bytes are read, except by the first call; files of other formats are
        scanned from the start. The channels stay the same objects; messages, arrays and tables read before stay valid.
        A record that is not complete yet is no message, but a Problem.

        Another file under the same name, such as a new recording, replaces the content of the log after all messages
        of the old file have been read. While ``x.active`` is written, ``x`` means that file. Logs of bytes do not
        grow, and those of streams only if ``logreel.open_growing`` opened them.

        Raises LogError if the log is closed, OSError if the file cannot be read any more.
        """
        if self.closed:
            raise LogError("the log is closed", path=self.name, hint="open it again")
        growth = self._watched()
        return 0 if growth is None else growth.refresh()

    def _watched(self) -> Growth | None:
        if self._growth is None and self._source.path is not None and self._rescan is not None:
            file = GrowingFile(self._source.path)
            file.adopt(self._source)
            self._watch(file, self._rescan)
        return self._growth

    def _watch(self, file: GrowingFile | GrowingStream, rescan: Rescan) -> None:
        """Let ``refresh`` read from an open file; called by the function that opens the log."""
        self._growth = Growth(self, rescan, file)

    def follow(
        self,
        topics: str | Iterable[str] | Callable[[Any], list[Any]] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        existing: bool = True,
        poll: float = POLL,
        stop: Event | None = None,
    ) -> Iterator[Any]:
        """Yield the messages in the order of the file, and wait for more while the file is written.

        Each message is yielded once, when it is complete; its data is a copy, which stays valid if the file is
        truncated. The iteration ends when the recording is complete (``x.active`` was renamed to ``x``, or the stream
        ended), or when *stop* is set; a file that just stops growing, as that of a killed recorder, is waited for.
        Another file under the same name is followed from its start, or, if it begins with the same messages, from the
        next one. After a part of a split recording (``x_0.bag``) comes the next one (``x_1.bag``), whose content and
        name then replace those of the log.

        topics      names or patterns, see ``match``; the channels may come later; or a function that returns
                    channels of the log so far; None: all except reserved ones
        start, end  only messages with start <= time < end, also those that come later; forms as for ``messages``,
                    relative to the messages that are there first; None: no bound
        existing    False: only messages that come after this call
        poll        seconds between two looks at the file
        stop        a threading.Event that ends the iteration

        Raises UsageError for a *poll* that is not positive, and for times that cannot be read.
        """
        changes = self.changes(poll=poll, stop=(stop := stop or Event()))
        wanted: Choice = topics if topics is None or callable(topics) else listed(topics)
        self.refresh()
        position = _Position(self, self._watched(), existing)
        return self._followed(position, wanted, (start, end), changes, stop)

    def _followed(
        self,
        position: _Position,
        topics: Choice,
        bounds: tuple[Time | None, Time | None],
        changes: Iterator[int],
        stop: Event,
    ) -> Iterator[Any]:
        first = last = None
        is_open = bounds != (None, None)
        for _ in changes:
            log: Any = self
            if is_open and log.start is not None:
                first, last = (None if t is None else time_ns(t, log) for t in bounds)
                is_open = False
            if not is_open:
                for message in position.new_messages(topics, first, last):
                    yield message
                    if stop.is_set():
                        return

    def changes(self, *, poll: float = POLL, stop: Event | None = None) -> Iterator[int]:
        """Yield the number of new messages whenever the log has grown, first at once; wait in between.

        Ends as ``follow`` does; *poll* and *stop* are those of ``follow``. Between two items, the log stays as it is.
        """
        if not poll > 0:
            raise UsageError(f"poll is a positive number of seconds, not {poll!r}")
        return self._changes(poll, stop or Event())

    def _changes(self, poll: float, stop: Event) -> Iterator[int]:
        new, growth = self.refresh(), self._watched()
        seen = 0 if growth is None else growth.news
        while True:
            # Readers may call refresh before they take the next item.
            known = self._state()
            yield new
            before = time.monotonic()
            while not stop.is_set():
                self.refresh()
                if growth is not None and self._state() == known:
                    growth.go_on()
                if growth is None or self._state() != known or not growth.may_go_on:
                    break
                stop.wait(max(poll, (time.monotonic() - before) / BUSY))
                before = time.monotonic()
            if growth is None or stop.is_set() or self._state() == known:
                return
            new, seen = growth.news - seen, growth.news

    def _state(self) -> tuple[int, ...]:
        """Return what is not the same after a change that readers see."""
        return id(self._scan), self.replacements

    def _at_present(self) -> Any:
        """Return another Log of what this one has now; it does not grow."""
        log: Any = self
        return log.__class__(log._source, log.format, log._scan, log._read_text)

    def _adopt(self, source: Source, format: str, scan: Scan) -> None:
        """Replace the content of the log by that of *scan*; Channels of the same topics stay the same objects."""
        log: Any = self
        old = log.__dict__.get("channels", {})
        for name in _cached_names(log.__class__):
            self.__dict__.pop(name, None)
        log._read_ahead.clear()
        log._source, log._scan = source, scan
        log.format, log.size, log.epoch = format, source.size, scan.epoch
        log.format_state, log.converted_from = scan.format_state, scan.converted_from or format
        channels = {}
        for topic, new in log.channels.items():
            channels[topic] = _renewed(old[topic], new) if topic in old else new
        self.__dict__["channels"] = MappingProxyType(channels)


@cache
def _cached_names(kind: type) -> tuple[str, ...]:
    """Return the names of the cached properties of a class."""
    return tuple(
        n for base in kind.__mro__ for n, value in vars(base).items() if isinstance(value, cached_property)
    )


def _renewed(old: Any, new: Any) -> Any:
    """Return the Channel *old* with the content of *new*; what it derived from an unchanged Layout is kept."""
    kept = {}
    if "layout" in old.__dict__ and old.schema == new.schema:
        with suppress(LogError):
            if new.layout is old.layout:
                kept = {name: old.__dict__[name] for name in _FROM_LAYOUT if name in old.__dict__}
    old.__dict__.clear()
    old.__dict__.update(new.__dict__, **kept)
    return old
