"""What people hold in their hands: a Log, its Channels, its Messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from sys import modules
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DamagedError, Finding, Problem, TopicError, UsageError
from logreel.model import sidecar
from logreel.model.channel import Channel
from logreel.model.match import match_topics
from logreel.model.registry import Format, find_format
from logreel.model.scan import Attachment, Parameter, Scan, TextLine
from logreel.model.source import Definitions, Readable, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.model.actor import Actor
    from logreel.model.index import MessageIndex, Selection

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


class Log:
    """An open log: a mapping of channels and an index of messages. Use ``logreel.open``.

    format, version  what the file is
    size             bytes
    epoch            what time 0 means: ``unix``, ``boot`` or ``start``
    metadata         information that the log carries, by name
    index            the MessageIndex
    definitions      files and folders with definitions that the user gave
    own              what the format keeps for its writer, or None
    origin           name of the format that the log was converted from, message by message; else its own
    """

    def __init__(self, source: Source, fmt: Format, scan: Scan) -> None:
        self._source, self._format, self._scan = source, fmt, scan
        self.name, self.size = source.name, source.size
        self.format = fmt.name
        self.definitions = source.definitions
        self.epoch = scan.epoch
        self.index: MessageIndex = scan.index
        self.own: Any = scan.own
        self.origin: str = scan.origin or fmt.name

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
        return {info.topic: Channel(self, i, info) for i, info in enumerate(self._scan.channels)}

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

    def __repr__(self) -> str:
        return f"<logreel.Log {self.name!r} {self.format} {self.version}: {len(self.channels)} channels>"

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """What the log tells about itself, by name: text, numbers, lists, or bytes."""
        return self._scan.metadata()

    @cached_property
    def utc_offset(self) -> int | None:
        """ns to add to a time to get UTC since 1970; None where the log does not tell."""
        return self._scan.utc_offset()

    @cached_property
    def attachments(self) -> Mapping[str, Attachment]:
        """Content that is not messages, by name."""
        return {a.name: a for a in self._scan.attachments()}

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters of the robot by name, with their changes and defaults."""
        return {p.name: p for p in self._scan.parameters()}

    @cached_property
    def text(self) -> tuple[TextLine, ...]:
        """What was logged for people to read, events included, by time."""
        if self._scan.text is not None:
            return tuple(self._scan.text())
        from logreel.model.lenses import text_lines

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
        return Log(self._source, self._format, scan)

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
        start: int | None = None,
        end: int | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Iterator[Message]:
        """Messages with start <= time < end (ns), by ``time`` (ties in file order) or in ``file`` order.

        topics  names or shell patterns; None: all channels but the reserved ones

        Raises TopicError for a topic that the log does not have, UsageError for another order.
        """
        channels = {ch.number: ch for ch in self.match(topics)}
        return self._messages(channels, self.index.pieces(channels, start, end, order, reverse))

    def play(self, **options: Any) -> Iterable[Message]:
        """Messages when they are due, by a clock: ``logreel.play(log, …)``, a Player, whose options these are."""
        # Players live on a higher floor, which is reached by the names that the package offers.
        return modules[__name__.partition(".")[0]].play(self, **options)  # type: ignore[no-any-return]

    def _messages(self, channels: dict[int, Channel], pieces: Iterator[Selection]) -> Iterator[Message]:
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
        fields: Iterable[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        utc: bool = False,
        interpolate: bool = False,
    ) -> pa.Table:
        """A channel as a ``pyarrow.Table``; see ``Channel.to_arrow``."""
        return self[topic].to_arrow(fields, start, end, utc=utc, interpolate=interpolate)

    def tables(self, topics: str | Iterable[str] | None = None) -> dict[str, pa.Table]:
        """Whole channels as ``pyarrow.Table`` by name, all filled in one pass over the log; empty ones left out."""
        from logreel.model.sweep import tables

        return tables([ch for ch in self.match(topics) if len(ch)])

    def verify(self) -> tuple[Finding, ...]:
        """What reading the whole file tells and opening it does not, such as a wrong checksum."""
        return tuple(self._scan.verify())

    def close(self) -> None:
        """Let go of the file. Tables and arrays already made stay valid."""
        self.__dict__.pop("channels", None)

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
) -> Log:
    """An open Log of any known format.

    path    a path, ``-`` for standard input, bytes, or a binary file object
    format  name of the format, where the content is not to be asked
    strict  True: the first Problem raises DamagedError instead of being recorded
    definitions  files or folders with message definitions (.msg …), for logs that do not carry their own; mappings of
                 topics to types among them tell the types of channels whose log does not. What is needed of them is
                 carried into every log that is written from this one
    ros_axes  True: in metres and right-handed axes; see ``Log.ros_axes``

    Raises UnknownFormatError, UnsupportedError, or OSError as the system gives it; TopicError for the type of a topic
    that the log does not have, UsageError for one that the log tells otherwise.
    """
    log = open_one_of_several(path, format, strict, definitions, ros_axes)
    check_types([log])
    return log


def open_one_of_several(
    path: Readable,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
) -> Log:
    """Open a log as ``open_log`` does, where *definitions* may have types of topics that only other logs have."""
    source = Source.open(path)
    source.define(definitions)
    fmt = find_format(source, format)
    scan = sidecar.load(source, fmt) or sidecar.keep(source, fmt, _fresh(source, fmt))
    log = Log(source, fmt, scan)
    if strict:
        # Of a large log parts of the index may only be read when asked for.
        _ = log.index.table.counts
    if strict and log.problems:
        raise DamagedError(log.problems[0], path=source.name)
    return log.ros_axes() if ros_axes else log


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
