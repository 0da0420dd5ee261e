"""What logs contain, kept in memory: their channels with facts, counts and times, without open files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np

from logreel.errors import LogError
from logreel.log.channel_facts import ALIASES
from logreel.log.log import Channel, Log
from logreel.log.times import utc_shift
from logreel.outputs.serve.catalogue import Entry
from logreel.outputs.serve.log_cache import Logs

#: Channels of all contents that are kept.
CHANNELS = 100_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of a channel: their number, and the ns of the earliest and of the latest; None if there are none."""

    messages: int
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class ChannelContents:
    """One channel: its number in the log, what it says of itself, and all of its messages."""

    topic: str
    number: int
    type: str
    encoding: str
    facts: Mapping[str, tuple[str, ...]]
    every: Stretch

    @classmethod
    def of(cls, ch: Channel) -> ChannelContents:
        """Return the contents of a channel of an open log."""
        facts = dict(ch.facts)
        facts |= {alias: facts[key] for alias, key in ALIASES.items()}
        return cls(ch.topic, ch.number, ch.schema.name, ch.schema.encoding, facts, stretch(ch.log, ch.number))


@dataclass(frozen=True, slots=True)
class Contents:
    """What one log contains.

    shift     ns from its clock to UTC since 1970; None if unknown
    error     why it cannot be opened; else empty
    """

    entry: Entry
    epoch: str | None
    shift: int | None
    channels: Mapping[str, ChannelContents]
    error: str = ""

    @classmethod
    def of(cls, entry: Entry, log: Log) -> Contents:
        """Return the contents of an open log."""
        channels = {topic: ChannelContents.of(ch) for topic, ch in log.channels.items()}
        return cls(entry, log.epoch, utc_shift(log), channels)


def stretch(log: Log, number: int, first: int | None = None, last: int | None = None) -> Stretch:
    """Return the messages of a channel with first <= time < last (ns); None: no bound."""
    times = log.index.times(number)
    if (first, last) != (None, None):
        times = times[log.index.rows_between(number, first, last)]
    if not len(times):
        return Stretch(0, None, None)
    return Stretch(len(times), int(np.min(times)), int(np.max(times)))


class ContentsCache:
    """The contents of the logs that were asked for last; a log is opened for them once, until its file changes."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._lock = Lock()
        self._kept: OrderedDict[str, Contents] = OrderedDict()
        self._channels = 0

    def of(self, entry: Entry) -> Contents:
        """Return the contents of a log; if it cannot be opened, ``error`` says why."""
        with self._lock:
            kept = self._kept.get(entry.id)
            if kept is not None and kept.entry == entry:
                self._kept.move_to_end(entry.id)
                return kept
        try:
            with self._logs.cached(entry).log() as log:
                found = Contents.of(entry, log)
        except LogError as failed:
            found = Contents(entry, None, None, {}, failed.text)
        except OSError as failed:
            found = Contents(entry, None, None, {}, failed.strerror or "cannot be read")
        self._keep(found)
        return found

    def _keep(self, found: Contents) -> None:
        with self._lock:
            self._drop(found.entry.id)
            self._kept[found.entry.id] = found
            # Logs without channels take room, too.
            self._channels += len(found.channels) + 1
            while self._channels > CHANNELS and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def _drop(self, id: str) -> None:
        old = self._kept.pop(id, None)
        if old is not None:
            self._channels -= len(old.channels) + 1

    def between(self, contents: Contents, topic: str, first: int | None, last: int | None) -> Stretch:
        """Return the messages of a channel with first <= time < last (ns); the log is opened only if it must be."""
        ch = contents.channels[topic]
        every = ch.every
        if every.first is None or every.last is None:
            return every
        if (first is None or first <= every.first) and (last is None or last > every.last):
            return every
        if (first is not None and first > every.last) or (last is not None and last <= every.first):
            return Stretch(0, None, None)
        with self._logs.cached(contents.entry).log() as log:
            return stretch(log, ch.number, first, last)
