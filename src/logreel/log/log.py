"""What people hold in their hands: a Log, its Channels, its Messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from sys import modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DamagedError, Finding, LogError, Problem, TopicError, UsageError
from logreel.io.arrays import I64
from logreel.io.source import Definitions, Readable, Source
from logreel.log.channel import Channel
from logreel.log.scan import Attachment, Parameter, Scan, Segment, TextLine
from logreel.log.times import Time, interval
from logreel.log.topic_match import match_topics
from logreel.registry import index_cache
from logreel.registry.format import Format
from logreel.registry.registry import find_format

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.index.block_table import Selection
    from logreel.index.message_index import MessageIndex
    from logreel.log.actor import Actor

#: So many messages are turned into Python's numbers at once.
LIST_LENGTH = 8192


class Message(NamedTuple):
    """One message.

    time     ns, by the clock of the log
    channel  the Channel it belongs to
    data     its payload, a view into the log
    offset   where the payload begins in the bytes that it lies in
    """

    time: int
    channel: Channel
    data: memoryview
    offset: int | None = None

    def decode(self) -> dict[str, Any]:
        """The fields as plain Python values; for many messages a table is far faster.

        Raises DefinitionError if the channel's definition cannot be used, DamagedError if the payload does not fit it.
        """
        return self.channel.decode(self.data, self.offset)


class Log(Mapping[str, Channel]):
    """An open log: a mapping of channels by topic, and an index of messages. Use ``logreel.open``.

    format, version  what the file is
    size             bytes
    epoch            what time 0 means: ``unix``, ``boot`` or ``start``
    metadata         information that the log carries, by name
    index            the MessageIndex
    definitions      files and folders with definitions that the user gave
    own              what the format keeps for its writer, or None
    origin           name of the format that the log was converted from, message by message; else its own
    closed           whether it was closed; then whatever reads messages raises LogError, and the rest stays

    Logs are equal only to themselves. They pickle as their path and the options they were opened with.
    """

    def __init__(self, source: Source, fmt: Format, scan: Scan) -> None:
        self._source, self._format, self._scan = source, fmt, scan
        #: What ``open_log`` was given besides the path, for other processes.
        self._options: dict[str, Any] = {"definitions": (*source.definitions, source.types)}
        self.closed = False
        self.name, self.size = source.name, source.size
        self.format = fmt.name
        self.definitions = source.definitions
        self.epoch = scan.epoch
        self.own: Any = scan.own
        self.origin: str = scan.origin or fmt.name

    @property
    def index(self) -> MessageIndex:
        """Where the messages lie; raises LogError if the log is closed."""
        if self.closed:
            raise LogError(
                "the log is closed", path=self.name, hint="read from it before close(), or open it again"
            )
        return self._scan.index

    @cached_property
    def version(self) -> str:
        """Version of the format, or what is known of it."""
        version = self._scan.version
        return version if isinstance(version, str) else version()

    @cached_property
    def _bounds(self) -> tuple[int | None, int | None]:
        bounds = self._scan.bounds
        return (self._scan.start, self._scan.end) if bounds is None else bounds()

    @property
    def start(self) -> int | None:
        """ns of the first moment, robust against single absurd stamps; None if empty."""
        return self._bounds[0]

    @property
    def end(self) -> int | None:
        """ns of the last moment, robust against single absurd stamps; None if empty."""
        return self._bounds[1]

    @property
    def duration(self) -> int | None:
        """ns from the first moment to the last one; None if empty."""
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was found damaged so far, in file order; reading messages can add to it."""
        return tuple(sorted(self._scan.problems, key=lambda p: p.offset))

    def note(self, problem: Problem) -> None:
        """Record a Problem that was found while reading messages, once."""
        if problem not in self._scan.problems:
            self._scan.problems.append(problem)

    @cached_property
    def channels(self) -> Mapping[str, Channel]:
        """All channels by name, in file order; reserved names of text, parameters and the like begin with ``~``."""
        return MappingProxyType(
            {info.topic: Channel(self, i, info) for i, info in enumerate(self._scan.channels)}
        )

    def __getitem__(self, topic: str) -> Channel:
        """The channel named *topic*; raises TopicError, a KeyError, that names the nearest ones."""
        try:
            return self.channels[topic]
        except KeyError:
            raise TopicError("channel", topic, self.channels, path=self.name) from None

    def __contains__(self, topic: object) -> bool:
        return topic in self.channels

    def __iter__(self) -> Iterator[str]:
        return iter(self.channels)

    def __len__(self) -> int:
        """Channels, reserved ones included."""
        return len(self.channels)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<logreel.Log {self.name!r} {self.format} {self.version}: {len(self)} channels{closed}>"

    def _repr_html_(self) -> str:
        from logreel.log.html import log_html

        return log_html(self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.channels)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source.path is None:
            raise LogError(
                "a log of bytes or of a stream cannot be handed to another process",
                path=self.name,
                hint="write it to a file and open that",
            )
        return _reopened, (str(self._source.path), self.name, self._options)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """What the log tells about itself, by name: text, numbers, lists, or bytes."""
        return MappingProxyType(dict(self._scan.metadata()))

    @cached_property
    def utc_offset(self) -> int | None:
        """ns to add to a time to get UTC since 1970; None where the log does not tell."""
        return self._scan.utc_offset()

    @cached_property
    def attachments(self) -> Mapping[str, Attachment]:
        """Content that is not messages, by name."""
        return MappingProxyType({a.name: a for a in self._scan.attachments()})

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters of the robot by name, with their changes and defaults."""
        return MappingProxyType({p.name: p for p in self._scan.parameters()})

    @cached_property
    def text(self) -> tuple[TextLine, ...]:
        """What was logged for people to read, events included, by time."""
        if self._scan.text is not None:
            return tuple(self._scan.text())
        from logreel.lenses import text_lines

        return tuple(text_lines(self))

    @cached_property
    def actors(self) -> Mapping[int, Actor]:
        """Who takes part, by id: vehicles, walkers, lights … of a simulator; empty where the format has no actors."""
        return {} if self._scan.actors is None else self._scan.actors(self)

    def actor(self, id: int) -> Actor:
        """The actor with this id; raises TopicError, a KeyError, where there is none."""
        try:
            return self.actors[id]
        except KeyError:
            raise TopicError("actor", str(id), map(str, self.actors), path=self.name) from None

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The logs in the file, by number: nearly always one, this one; see ``segment``."""
        found = tuple(self._scan.segments())
        return found or (Segment(1, 0, self.start, self.end, self.message_count),)

    def segment(self, number: int) -> Log:
        """One of the logs in the file, from 1, with its own channels, start and end.

        A card that was used again can hold the rest of an older log behind the end of a new one. Raises UsageError
        where there is no such segment.
        """
        many = len(self.segments)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= many:
            there = "one segment, number 1" if many == 1 else f"segments 1 to {many}"
            raise UsageError(f"there is no segment {number!r}; the log has {there}", path=self.name)
        if self._scan.segment is None:
            return self
        log = Log(self._source, self._format, self._scan.segment(number))
        log._options = {**self._options, "segment": number}
        return log

    @property
    def has_other_axes(self) -> bool:
        """Whether lengths are not in metres or axes not right-handed, and ``ros_axes`` can bring them there."""
        return self._scan.ros_axes is not None

    def ros_axes(self) -> Log:
        """The same log in metres and right-handed axes (x forward, y left, z up), as ROS has them.

        Fields keep their names and say their units. Raises UsageError where the log has no other axes.
        """
        if self._scan.ros_axes is None:
            raise UsageError("the log has no other axes than its own", path=self.name)
        scan = replace(self._scan, channels=self._scan.ros_axes(), ros_axes=None)
        log = Log(self._source, self._format, scan)
        log._options = {**self._options, "ros_axes": True}
        return log

    def reread(self) -> Log:
        """The same log from everything that is wholly in the file, where opening believed an index; else itself."""
        return self if self._scan.reread is None else Log(self._source, self._format, self._scan.reread())

    @property
    def message_count(self) -> int:
        """Messages of all channels but the reserved ones."""
        counts = self.index.counts
        return int(sum(counts[ch.number] for ch in self.channels.values() if not ch.reserved))

    def match(self, topics: str | Iterable[str] | None) -> list[Channel]:
        """The channels that *topics* name: exact names or shell patterns; None: all but the reserved ones.

        Raises TopicError for a name or pattern that fits none.
        """
        return [self.channels[name] for name in match_topics(self.channels, topics, self.name)]

    def messages(
        self,
        topics: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Iterator[Message]:
        """Messages with start <= time < end, by ``time`` (ties in file order) or in ``file`` order.

        topics      names or shell patterns; None: all channels but the reserved ones
        start, end  int ns, text such as ``+5s``, aware datetimes, or timedeltas; None: no bound

        Raises TopicError for a topic that the log does not have, UsageError for another order, for what is no time,
        and for an interval that does not touch the log.
        """
        channels = {ch.number: ch for ch in self.match(topics)}
        first, last = interval(self, start, end)
        return self.messages_of(channels, self.index.pieces(channels, first, last, order, reverse))

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Whether any message of any channel has start <= time < end (ns), be it outside of the robust bounds."""
        spans = (self.index.rows_between(n, start, end) for n in range(len(self.index.tracks)))
        return any(
            len(range(rows.start, rows.stop)) if isinstance(rows, slice) else len(rows) for rows in spans
        )

    def play(self, **options: Any) -> Iterable[Message]:
        """Messages when they are due, by a clock: ``logreel.play(log, …)``, a Player, whose options these are."""
        # Players live on a higher floor, which is reached by the names that the package offers.
        return modules[__name__.partition(".")[0]].play(self, **options)  # type: ignore[no-any-return]

    def messages_of(self, channels: Mapping[int, Channel], pieces: Iterator[Selection]) -> Iterator[Message]:
        """The messages of these pieces of the index; *channels* by number."""
        views: dict[int, memoryview] = {}
        for picked in pieces:
            offset, end = picked.offset, picked.offset + picked.size
            for lo, hi in _stretches(picked.chunk):
                chunk = int(picked.chunk[lo])
                if chunk not in views:
                    # Each view may keep an unpacked chunk in memory.
                    views = {chunk: self.index.chunks.view(chunk), **dict(list(views.items())[:3])}
                view, some = views[chunk], slice(lo, hi)
                places = offset[some].tolist()
                rows = zip(
                    picked.time[some].tolist(),
                    [channels[number] for number in picked.channel[some].tolist()],
                    [view[a:b] for a, b in zip(places, end[some].tolist(), strict=True)],
                    places,
                    strict=True,
                )
                yield from map(Message._make, rows)

    def table(
        self,
        topic: str,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        utc: bool = False,
        interpolate: bool = False,
    ) -> pa.Table:
        """A channel as a ``pyarrow.Table``; see ``Channel.to_arrow``."""
        return self[topic].to_arrow(fields, start, end, utc=utc, interpolate=interpolate)

    def tables(self, topics: str | Iterable[str] | None = None) -> dict[str, pa.Table]:
        """Whole channels as ``pyarrow.Table`` by name, all filled in one pass over the log; empty ones left out."""
        from logreel.log.read_tables import tables

        return tables([ch for ch in self.match(topics) if len(ch)])

    def verify(self) -> tuple[Finding, ...]:
        """What reading the whole file tells and opening it does not, such as a wrong checksum."""
        return tuple(self._scan.verify())

    def close(self) -> None:
        """Let go of the file. Messages, tables and arrays already made stay valid; reading more raises LogError."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stretches(chunk: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """Rows that lie in one chunk, LIST_LENGTH at most: Python's numbers take far more room than those of arrays."""
    edges = np.flatnonzero(np.diff(chunk)) + 1
    cuts = np.union1d(edges, np.arange(0, len(chunk), LIST_LENGTH))
    return itertools.pairwise([*cuts.tolist(), len(chunk)])


def open_log(
    path: Readable,
    *,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
) -> Log:
    """An open Log of any known format.

    path    a path, ``-`` for standard input, bytes, or a binary file object
    format  name of the format, where the content is not to be asked
    strict  True: the first Problem raises DamagedError instead of being recorded
    definitions  files or folders with message definitions (.msg …), for logs that do not carry their own; mappings of
                 topics to types among them tell the types of channels whose log does not. What is needed of them is
                 carried into every log that is written from this one
    ros_axes  True: in metres and right-handed axes; see ``Log.ros_axes``
    segment  number of one of several logs in the file; see ``Log.segments``. None: all of them, channels of later ones
             by names of their own

    Raises UnknownFormatError, UnsupportedError, LogError for a folder, or OSError as the system gives it; TopicError
    for the type of a topic that the log does not have, UsageError for one that the log tells otherwise.
    """
    log = open_one_of_several(path, format, strict, definitions, ros_axes, segment)
    check_types([log])
    return log


def open_one_of_several(
    path: Readable,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
) -> Log:
    """Open a log as ``open_log`` does, where *definitions* may have types of topics that only other logs have."""
    source = Source.open(path)
    source.define(definitions)
    fmt = find_format(source, format)
    scan = index_cache.load(source, fmt) or index_cache.keep(source, fmt, _fresh(source, fmt))
    log = Log(source, fmt, scan)
    log._options |= {"format": format, "strict": strict}
    if segment is not None:
        log = log.segment(segment)
    if strict:
        # Of a large log parts of the index may only be read when asked for.
        _ = log.index.table.counts
    if strict and log.problems:
        raise DamagedError(log.problems[0], path=source.name)
    return log.ros_axes() if ros_axes else log


def with_rows(log: Log, rows: Mapping[int, slice | I64]) -> Log:
    """The same open log whose intervals have no other messages than *rows* of each channel, by its number."""
    found = Log(log._source, log._format, replace(log._scan, index=log.index.only(rows)))
    found.name, found._options = log.name, log._options
    return found


def _reopened(path: str, name: str, options: dict[str, Any]) -> Log:
    """The log in another process, called what it was called."""
    log = open_log(path, **options)
    log.name = name
    return log


def check_types(logs: Sequence[Log]) -> None:
    """Raise where a type that the user gave is that of no channel of *logs*.

    TopicError for a topic that none of them has, UsageError for one whose log tells what its messages are.
    """
    for log in logs:
        for topic, kind in log._source.types.items():
            found = [one[topic].schema.name for one in logs if topic in one]
            if not found:
                raise TopicError(
                    "channel", topic, {name: None for one in logs for name in one}, path=log.name
                )
            if kind not in found:
                told = f"channel {topic!r} has type {found[0]!r}, which {kind!r:.80} cannot replace"
                raise UsageError(f"{told}: types are given for channels of ROS 1", path=log.name)


def _fresh(source: Source, fmt: Format) -> Scan:
    scan = fmt.scan(source, None)
    if scan is None:
        raise TypeError(f"format {fmt.name} gave no scan")
    return scan
