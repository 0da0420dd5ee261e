"""What Log and Channel inherit: showing, messages looked up ahead, and growth: ``refresh`` and ``follow``."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from logreel.errors import LogError, Problem, UsageError
from logreel.io.source import Source
from logreel.log.scan import Scan
from logreel.log.times import Time, interval_so_far

if TYPE_CHECKING:
    from threading import Event

    from logreel.index.gather import Gathered, Want
    from logreel.index.message_index import MessageIndex
    from logreel.io.growing_file import GrowingFile, GrowingStream
    from logreel.log.growth import Choice, FollowPosition, Growth, Rescan
    from logreel.log.read_ahead import Place, ReadAhead


#: Seconds between two looks at a file that does not grow.
POLL = 0.01
#: Greatest share of the time that is spent on refreshing: if that takes long, the file is looked at less often.
BUSY = 0.5


#: Members of a Log for authors of formats and outputs.
FOR_AUTHORS = {
    "adopt",
    "at_present",
    "check_unchanged",
    "derive",
    "format_state",
    "gather",
    "given_types",
    "holds_between",
    "messages_of",
    "note",
    "options",
    "rescan",
    "scan",
    "services",
    "source",
    "watch",
    "withdraw",
}


class ForPeople:
    """Mixin of Log: what plays and shows it, also in notebooks.

    ``dir``, and so the completion of a prompt, lists what people use.
    """

    def play(self, **options: Any) -> Iterable[Any]:
        """Return a Player, which yields messages in real time; options are those of ``logreel.play``."""
        log: Any = self
        return log.services.verb("play")(log, **options)  # type: ignore[no-any-return]

    def plot(self, *fields: str | Iterable[str], **options: Any) -> Any:
        """Return a Plot of *fields* over time, without any of the charts that matter most; see ``logreel.plot``."""
        log: Any = self
        return log.services.verb("plot")(log, *fields, **options)

    def view(self, **options: Any) -> Any:
        """Return a Viewer of the log, which notebooks show as a frame; options are those of ``logreel.view``."""
        log: Any = self
        return log.services.verb("view")(log, **options)

    def _repr_html_(self) -> str:
        from logreel.log.shown import log_html

        return log_html(self)

    def _ipython_key_completions_(self) -> list[str]:
        log: Any = self
        return list(log)

    def __dir__(self) -> list[str]:
        import re

        is_internal = re.compile(r"_(?!_|repr_html_|ipython)").match
        return [name for name in super().__dir__() if name not in FOR_AUTHORS and not is_internal(name)]


class ChannelForPeople:
    """Mixin of Channel: what shows it, also in notebooks."""

    def plot(self, *fields: str, **options: Any) -> Any:
        """Return a Plot of *fields* in one panel, or of all numeric fields; options are those of ``logreel.plot``."""
        ch: Any = self
        wanted = f"{ch.topic}:{','.join(fields)}" if fields else ch.topic
        return ch.log.services.verb("plot")(ch.log, wanted, **options)

    def _repr_html_(self) -> str:
        from logreel.log.shown import channel_table

        ch: Any = self
        return channel_table(ch, ch.log.closed)

    def _ipython_key_completions_(self) -> list[str]:
        ch: Any = self
        try:
            return ["time", *ch.fields]
        except LogError:
            return []


class GrowingLog(ForPeople):
    """The part of ``Log`` that concerns files which are still written."""

    closed: bool
    name: str
    source: Source
    scan: Scan
    #: Set by the function that opens logs; None: the log cannot grow.
    rescan: Rescan | None = None
    _growth: Growth | None = None
    #: How often the content was replaced by that of a longer file, or of another one.
    _adopted: int = 0
    #: Gathers columns; made when the first ones are read.
    _ahead: ReadAhead | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log. Messages, tables and arrays read before stay valid; reading more raises LogError."""
        self.closed = True
        self._ahead = None
        if self._growth is not None:
            self._growth.close()

    def gather(self, want: Want) -> Gathered:
        """Return the columns of a whole channel, see ``ReadAhead``."""
        log: Any = self
        if (ahead := self._ahead) is None:
            from logreel.log.read_ahead import ReadAhead

            ahead = self._ahead = ReadAhead({ch.number: ch for ch in log.channels.values()})
        return ahead.gather(log.index, want)

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
        if self._growth is None and self.source.path is not None and self.rescan is not None:
            # Not imported for logs that are opened once, which is most of them.
            from logreel.io.growing_file import GrowingFile

            file = GrowingFile(self.source.path, self.source.guard)
            file.adopt(self.source)
            self.watch(file, self.rescan)
        return self._growth

    def watch(self, file: GrowingFile | GrowingStream, rescan: Rescan) -> None:
        """Let ``refresh`` read from an open file; called by the function that opens the log."""
        from logreel.log.growth import Growth

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
        from logreel.log.growth import FollowPosition
        from logreel.log.topic_match import listed

        changes = self.changes(poll=poll, stop=(stop := stop or _event()))
        wanted: Choice = topics if topics is None or callable(topics) else listed(topics)
        self.refresh()
        position = FollowPosition(self, self._watched(), existing)
        return self._followed(position, wanted, (start, end), changes, stop)

    def _followed(
        self,
        position: FollowPosition,
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
                first, last = interval_so_far(log, *bounds)
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
        return self._changes(poll, stop or _event())

    def _changes(self, poll: float, stop: Event) -> Iterator[int]:
        new, growth = self.refresh(), self._watched()
        seen = 0 if growth is None else growth.news
        while True:
            # Readers may call refresh before they take the next item.
            known = self._adopted
            yield new
            before = time.monotonic()
            while not stop.is_set():
                self.refresh()
                if growth is not None and self._adopted == known:
                    growth.go_on()
                if growth is None or self._adopted != known or not growth.may_go_on:
                    break
                stop.wait(max(poll, (time.monotonic() - before) / BUSY))
                before = time.monotonic()
            if growth is None or stop.is_set() or self._adopted == known:
                return
            new, seen = growth.news - seen, growth.news

    def withdraw(self, problems: Collection[Problem]) -> None:
        """Remove Problems that ``note`` added, for readers that read the same messages again when all are there."""
        self.scan.problems[:] = [problem for problem in self.scan.problems if problem not in problems]

    def at_present(self) -> Any:
        """Return another Log of what this one has now; it does not grow."""
        log: Any = self
        return log.derive()

    def _channels_of(self, scan: Scan) -> dict[str, Any]:
        raise NotImplementedError

    def adopt(self, source: Source, format: str, scan: Scan) -> None:
        """Replace the content of the log by that of *scan*; Channels of the same topics stay the same objects."""
        from logreel.log.growth import replace_content

        replace_content(self, source, format, scan, self._channels_of(scan))
        self._ahead = None
        self._adopted += 1


def _event() -> Event:
    # Logs that are only read do not need the module.
    from threading import Event

    return Event()


class OneByOne(ChannelForPeople):
    """What a Channel knows of messages that are likely to be asked for next, by their numbers.

    _ahead  the table that they are from, the first row, places
    """

    number: int
    _ahead: tuple[Any, int, list[Place]] = (None, 0, [])
    _next = 0

    def _known_at(self, index: MessageIndex, row: int) -> tuple[int, Self, memoryview, int] | None:
        """Return what ``message_at`` does; None for a message that is not known."""
        table, first, places = self._ahead
        if table is not index.table or not 0 <= row - first < len(places):
            return self._known_at(index, row) if self._looks_ahead(index, row) else None
        time, chunk, start, end = places[row - first]
        chunks = index.chunks
        try:
            return time, self, chunks.view(chunk)[start:end], start
        finally:
            # An error may come from a file that was truncated.
            chunks.check()

    def _looks_ahead(self, index: MessageIndex, row: int) -> bool:
        """Keep the places of messages from *row* on, if those before were asked for; return whether there are any."""
        if not row or row != self._next:
            self._next = row + 1 if self._next >= 0 else -1
            return False
        from logreel.log.read_ahead import places_ahead

        places = places_ahead(index, self.number, row, len(self._ahead[2]))
        self._ahead = index.table, row, places or []
        self._next = -1 if places is None else row + len(places)
        return bool(places)
