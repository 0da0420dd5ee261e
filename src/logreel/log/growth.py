"""The file of a log that grows, and the places in it up to which messages were yielded."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any
from weakref import WeakSet, ref

import numpy as np

from logreel.errors import FileChangedError, LogError
from logreel.index.block_table import SelectedMessages
from logreel.index.message_index import MessageIndex
from logreel.index.tail import BEGIN, MessagePlace, last_place, rows_after, select_rows
from logreel.io.growing_file import FileChange, GrowingFile, GrowingStream
from logreel.io.part_files import LaterParts
from logreel.io.source import FILE, Source
from logreel.log.scan import Scan
from logreel.log.topic_match import fitting

#: Returns the name of the format and the Scan of a Source. *is_other*: of another file than before, or a truncated one;
#: *is_final*: the file will not grow any more.
Rescan = Callable[[Source, bool, bool], tuple[str, Scan]]

#: Names and patterns of channels, or a function from the Log to its Channels; None: all except reserved ones.
Choice = list[str] | Callable[[Any], list[Any]] | None

#: Seconds for which the next part of a split recording may come after one is complete, and between two looks for parts
#: whose number is not the next one.
PARTS = 1.0
#: Sources of one file, from before it has grown, that may be waiting for the garbage collector.
MAX_SOURCES = 32


#: Cached properties of a Channel that follow from its Layout alone.
_FROM_LAYOUT = ("layout", "_decode", "time_label")


def replace_content(log: Any, source: Source, format: str, scan: Scan, channels: Mapping[str, Any]) -> None:
    """Give *log* the content of *scan*, while other threads read it; see ``GrowingLog.adopt``.

    channels  those of *scan*; of a topic that there was before, the Channel stays and gets the content of the new one
    """
    old = log.channels
    if log.source is not source:
        log.source.release()
    log.source, log.scan = source, scan
    log.format, log.size, log.epoch = format, source.size, scan.epoch
    log.format_state, log.converted_from = scan.format_state, scan.converted_from or format
    log.__dict__["channels"] = MappingProxyType(
        {topic: _renewed(old[topic], new) if topic in old else new for topic, new in channels.items()}
    )
    # After the Scan was replaced: what others compute from the old one is not kept any more.
    for name in _cached_names(log.__class__) - {"channels"}:
        log.__dict__.pop(name, None)


@cache
def _cached_names(owner_class: type) -> frozenset[str]:
    """Return the names of the cached properties of a class."""
    return frozenset(
        name for name in dir(owner_class) if isinstance(getattr(owner_class, name, None), cached_property)
    )


def _renewed(old: Any, new: Any) -> Any:
    """Return the Channel *old* with the content of *new*; what it derived from an unchanged Layout is kept."""
    stale = set(_cached_names(old.__class__))
    if "layout" in old.__dict__ and old.schema == new.schema:
        with suppress(LogError):
            if new.layout is old.layout:
                stale -= {*_FROM_LAYOUT}
    old.__dict__.update(new.__dict__)
    for name in stale - new.__dict__.keys():
        old.__dict__.pop(name, None)
    return old


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
        self._positions = WeakSet[FollowPosition]()
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
        if change is FileChange.SAME:
            return 0
        if change is FileChange.COMPLETE:
            self.complete, self._completed = True, time.monotonic()
            # The end of a sound file is read already. Of a damaged one all is known now.
            return self._read_again() if self._log.problems or self._is_other else 0
        if change is FileChange.REPLACED and not self._file.open():
            return 0
        self._is_other |= change is not FileChange.GROWN
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
        if not self.complete and not (self._file.is_left() and self._file.look() is FileChange.SAME):
            return
        part = GrowingFile(path, self._file.guard)
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

    def track(self, position: FollowPosition) -> None:
        """Keep the rest of the present file for *position* when another one takes its place."""
        self._positions.add(position)

    def is_readable(self) -> bool:
        """Return whether all mapped bytes are still in the file; others are read as zeros."""
        return self._file.still_has(self._log.source)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._parts = None
        self.complete = True

    def _read_again(self) -> int:
        log = self._log
        old, old_index = log.source, log.index
        source = self._new_source(self._file, log.name)
        self._release_old(source)
        # Kept now: after a truncation it can no longer be read.
        self._was_empty |= not source.head and source.inode == old.inode
        try:
            name, scan = self._rescan(source, self._is_other, self.complete)
        except LogError:
            # The beginning of a file may be too short to be recognised; a database may be in the middle of a change.
            if isinstance(self._file, GrowingFile):
                self._file.look_again()
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
        old = self._log.source
        source = file.source(name)
        source.definitions, source.types = old.definitions, old.types
        return source

    def _switch(self, resumes: MessagePlace, is_cut: bool = False) -> None:
        """Go on behind *resumes* in another file, or, if *is_cut*, in the same one, which was truncated."""
        for position in self._positions:
            position.switch(resumes, is_cut)
        self.switches, self.resumes, self.end = self.switches + 1, resumes, resumes

    def _adopt(self, source: Source, name: str, scan: Scan) -> int:
        self._log.adopt(source, name, scan)
        new = rows_after(scan.index, self.end, range(len(scan.channels)))
        self.end = max(self.end, last_place(scan.index))
        count = sum(map(len, new.values()))
        self.news += count
        return count

    def _release_old(self, source: Source) -> None:
        """Collect Sources that nothing but cycles keep: each has an open file handle."""
        # All objects of the process are looked at only if the young ones were not the cause.
        for generation in (1, 2):
            self._sources = [one for one in self._sources if one() is not None]
            if len(self._sources) < MAX_SOURCES:
                break
            gc.collect(generation)
        self._sources.append(ref(source))


def _resumed(old: tuple[Source, MessageIndex], new: tuple[Source, MessageIndex]) -> MessagePlace | None:
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
        sum(index.count(n) for n in numbers) for index, numbers in zip((before, after), channels, strict=True)
    ]
    if not counts[0]:
        return BEGIN
    place = BEGIN
    for row in {0, min(counts) - 1} if counts[1] else ():
        one, other = (
            _nth(index, numbers, row) for index, numbers in zip((before, after), channels, strict=True)
        )
        if one is None or other is None or one[:2] != other[:2]:
            return BEGIN
        place = max(place, other[2])
    return place if counts[1] >= counts[0] else None


def _nth(index: MessageIndex, channels: list[int], row: int) -> tuple[int, bytes, MessagePlace] | None:
    """Return time, payload and place of a message of an index in file order; None if it has fewer."""
    for batch in index.select_batches(channels, order="file"):
        if row < len(batch):
            chunk, offset, size = (int(a[row]) for a in (batch.chunk, batch.offset, batch.size))
            payload = bytes(index.chunks.view(chunk)[offset : offset + size])
            place = (
                MessagePlace(offset, chunk, 0)
                if chunk == FILE
                else MessagePlace(index.chunks.place_of(chunk), chunk, offset)
            )
            return int(batch.time[row]), payload, place
        row -= len(batch)
    return None


class FollowPosition:
    """How far one iteration of ``follow`` is.

    existing  False: behind the messages that are there
    """

    def __init__(self, log: Any, growth: Growth | None, existing: bool) -> None:
        self._log, self._growth = log, growth
        self._place = BEGIN if existing or growth is None else growth.end
        self._is_new = existing
        #: Logs of earlier files with messages that were not yielded before another file took their place.
        self._rests: list[tuple[Any, MessagePlace, bool, dict[str, int]]] = []
        #: Number of messages yielded so far of synthetic channels, by topic.
        self._synthetic = {} if existing else _synthetic_counts(log)
        if growth is not None:
            growth.track(self)

    def switch(self, resumes: MessagePlace, is_cut: bool) -> None:
        """Go on behind *resumes* in another file, after the rest of this one; see ``Growth``."""
        growth = self._growth
        if is_cut:
            # The other messages cannot be read any more.
            self._place = min(self._place, resumes)
            self._is_new |= self._place == BEGIN
            return
        if growth is not None and (self._is_new or self._place < growth.end):
            self._rests.append((self._log.at_present(), self._place, self._is_new, self._synthetic))
        self._place, self._is_new = resumes, resumes == BEGIN

    def new_messages(self, topics: Choice, first: int | None, last: int | None) -> Iterator[Any]:
        """Yield the messages after the position with first <= time < last, and go to the end."""
        log, growth = self._log, self._growth
        # The log may be refreshed, and even get the content of another file, while messages are yielded.
        present = log.at_present()
        batches = _batches_after(log, self._place, self._is_new, self._synthetic, topics)
        rests, self._rests = self._rests, []
        self._place = last_place(log.index) if growth is None else growth.end
        self._synthetic = ({} if self._is_new else self._synthetic) | _synthetic_counts(log)
        self._is_new = False
        for rest in rests:
            for message in _messages(rest[0], *_batches_after(*rest, topics), first, last):
                yield message._replace(data=memoryview(bytes(message.data)))
        try:
            for message in _messages(present, *batches, first, last):
                copy = message._replace(data=memoryview(bytes(message.data)))
                if growth is not None and not growth.is_readable():
                    return
                yield copy
        except FileChangedError:
            # The next refresh reads the file that is there then.
            if growth is None:
                raise


def _batches_after(
    log: Any, place: MessagePlace, is_new: bool, synthetic: Mapping[str, int], topics: Choice
) -> tuple[dict[int, Any], Iterator[SelectedMessages]]:
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
    log: Any,
    channels: Mapping[int, Any],
    batches: Iterator[SelectedMessages],
    first: int | None,
    last: int | None,
) -> Iterator[Any]:
    messages: Iterator[Any] = log.messages_of(channels, (_between(batch, first, last) for batch in batches))
    return messages


def _synthetic_counts(log: Any) -> dict[str, int]:
    """Return the number of messages of the synthetic channels by topic."""
    rules = log.index.rules
    return {ch.topic: len(ch) for ch in log.channels.values() if rules[ch.number].is_synthetic}


def _between(batch: SelectedMessages, first: int | None, last: int | None) -> SelectedMessages:
    """Return the messages of *batch* with first <= time < last."""
    keep = np.ones(len(batch), np.bool_)
    if first is not None:
        keep &= batch.time >= first
    if last is not None:
        keep &= batch.time < last
    return (
        batch
        if keep.all()
        else SelectedMessages(*(getattr(batch, name)[keep] for name, _ in SelectedMessages.KINDS))
    )


def _chosen(log: Any, topics: Choice) -> list[Any]:
    """Return the channels that *topics* select so far."""
    if callable(topics):
        return topics(log)
    if topics is None:
        return [ch for ch in log.channels.values() if not ch.reserved]
    names = set().union(*(fitting(log.channels, topic) for topic in topics))
    return [ch for ch in log.channels.values() if ch.topic in names]
