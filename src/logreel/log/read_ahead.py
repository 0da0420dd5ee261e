"""Columns of channels, and places of messages, that are read ahead when one after another is asked for."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from logreel.errors import LogError, Problem
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import Gathered, Want, gather, places
from logreel.index.message_index import MessageIndex
from logreel.layout.layout import Layout
from logreel.log.scan import PayloadDecoder, Schema


class LogContext(Protocol):
    """The part of a Log that tables need: index, clock, name, ``note`` for Problems, ``gather`` for columns."""

    name: str
    epoch: str

    @property
    def index(self) -> MessageIndex: ...

    @property
    def utc_offset(self) -> int | None: ...

    def note(self, problem: Problem) -> None: ...

    def gather(self, want: Want) -> Gathered: ...


class TableChannel(Protocol):
    """The part of a Channel that tables need; see ``Channel`` for its members."""

    number: int
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]

    @property
    def members(self) -> Sequence[TableChannel]: ...

    @property
    def shifts(self) -> Sequence[int]: ...

    @property
    def log(self) -> LogContext: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def decoder(self) -> PayloadDecoder | None: ...

    @property
    def is_uniform(self) -> bool: ...

    @property
    def time_label(self) -> str | None: ...

    def __len__(self) -> int: ...


#: Channels that must have been read in a row before the next ones are gathered with one of them.
SEQUENTIAL = 2
#: Channels of a row may have so many others between them that are not gathered: empty ones and those that are walked.
GAP = 8
#: Bytes of payloads, and channels, that are gathered at once.
AHEAD_BYTES, AHEAD_CHANNELS = 128 << 20, 64


class ReadAhead:
    """Gathers columns of whole channels of one log.

    Messages of different channels share cache lines, so gathering many channels in one pass takes much less time than
    one by one. Columns that were gathered ahead are dropped when the channels are no longer read in a row.

    channels  those of the log by their numbers
    """

    def __init__(self, channels: Mapping[int, TableChannel]) -> None:
        self._channels = channels
        self._lock = allocate_lock()
        self._last, self._in_a_row = -1, 0
        self._ready: dict[int, tuple[Want, Gathered]] = {}

    def gather(self, index: MessageIndex, want: Want) -> Gathered:
        """Return the columns of *want*, all messages of a uniform channel with stored times, in *index* of the log."""
        with self._lock:
            follows = 0 < want.channel - self._last <= GAP
            self._last, self._in_a_row = want.channel, self._in_a_row + 1 if follows else 0
            ready = self._ready.pop(want.channel, None)
            if ready is not None and ready[0] == want:
                return ready[1]
            if not follows:
                self._ready.clear()
            sequential = self._in_a_row >= SEQUENTIAL and not self._ready
        wants = [want]
        # A loop over some fields, or without times, is not followed; nor are channels that came by a refresh since.
        ch = self._channels.get(want.channel) if sequential and want.time is not None else None
        if ch is not None and want.leaves == ch.layout.leaves:
            wants += self._next(index, want.channel + 1)
        got = gather(index, wants)
        with self._lock:
            if sequential and self._last == want.channel:
                self._ready = {w.channel: (w, g) for w, g in zip(wants[1:], got[1:], strict=True)}
        return got[0]

    def _next(self, index: MessageIndex, number: int) -> list[Want]:
        """Return requests for the channels from *number* on, as far as they are alike and within the limits."""
        wants, size, gap = list[Want](), 0, 0
        for ch in (self._channels[n] for n in sorted(self._channels) if n >= number):
            try:
                want = self._want(index, ch)
            except LogError:
                want = None
            gap = gap + 1 if want is None else 0
            if want is not None:
                size += len(ch) * (ch.layout.size or 0)
            if gap >= GAP or size > AHEAD_BYTES or len(wants) == AHEAD_CHANNELS:
                break
            if want is not None:
                wants.append(want)
        return wants

    def _want(self, index: MessageIndex, ch: TableChannel) -> Want | None:
        time = index.rules[ch.number].time_field
        if not len(ch) or time is None or not ch.is_uniform:
            return None
        return Want(ch.number, ch.layout.leaves, time)


#: Messages of a channel that are looked for at first, how many times the last ones after that, and at most.
FEW, GROWTH, MOST = 32, 4, 1024
#: Time in ns, chunk, and first and last byte there, of a message.
Place = tuple[int, int, int, int]


def places_ahead(index: MessageIndex, channel: int, row: int, last: int) -> list[Place] | None:
    """Return where messages of a channel from *row* on are; None where not each of them has a place.

    last  how many were returned before
    """
    if index.reads_in_ranges:
        return None
    rows = slice(row, min(row + min(MOST, max(FEW, GROWTH * last)), index.count(channel)))
    chunk, start, size = places(index, channel, rows)
    if (size == MISSING_SIZE).any():
        return None
    columns = index.times_of(channel, rows), chunk, start, start + size
    return list(zip(*(column.tolist() for column in columns), strict=True))
