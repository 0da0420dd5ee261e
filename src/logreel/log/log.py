"""What people hold in their hands: a Log, its Channels, its Messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from sys import modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding, LogError, NotFoundError, Problem, TopicError, UsageError
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.log.scan import Attachment, Parameter, Scan, Segment, TextLine
from logreel.log.times import Time, duration_text, interval
from logreel.log.topic_match import match_topics

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.index.block_table import Selection
    from logreel.index.message_index import MessageIndex
    from logreel.log.actor import Actor
from typing import TYPE_CHECKING, overload

from logreel.errors import MissingDependencyError
from logreel.layout.layout import Layout
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.scan import ChannelInfo
from logreel.log.schema import Schema
from logreel.log.topic_match import listed

if TYPE_CHECKING:
    import pyarrow as pa


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


#: A batch of an Arrow stream has at most so many messages, and about so many bytes.
STREAM_ROWS, STREAM_BYTES = 1 << 16, 8 << 20


class Channel:
    """The messages of one topic: a sequence of Messages in file order, and their fields by name.

    ``for message in ch``, ``ch[0]``, ``ch[:10]`` give messages, ``ch["q"]`` and ``ch[["q", "lat"]]`` fields.

    topic     its name, unique inside the log
    schema    the definition of its messages as the log carries it
    metadata  what the format tells about the channel
    number    its number in ``log.index``
    """

    def __init__(self, log: Log, number: int, info: ChannelInfo) -> None:
        self.log, self.number, self._info = log, number, info
        self.topic: str = info.topic
        self.schema: Schema = info.schema
        self.metadata: Mapping[str, Any] = MappingProxyType(dict(info.metadata))
        self.reserved = info.topic.startswith("~")

    def __len__(self) -> int:
        """Messages, not records."""
        return self.log.index.count(self.number)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        count = "closed" if self.log.closed else f"{len(self)} messages"
        return f"<logreel.Channel {self.topic!r} {self.schema.name}: {count}>"

    @cached_property
    def layout(self) -> Layout:
        """How its messages are laid out; raises DefinitionError if the definition cannot be used."""
        return self._info.layout()

    @cached_property
    def decoder(self) -> PayloadDecoder | None:
        """What decodes its messages where the Layout is no walk of their bytes, else None."""
        return self._info.decoder()

    @cached_property
    def is_uniform(self) -> bool:
        """True if all messages lie in the file as it is and are as long as the Layout says.

        Then columns are gathered from known places; otherwise each message is walked and checked.
        """
        if self.decoder is not None:
            return False
        index, size = self.log.index, self.layout.size
        return size is not None and index.rules[self.number].size.guarantees_size(index, self.number, size)

    @property
    def times(self) -> I64:
        """int64[n]: time of each message in ns, in file order, read only."""
        return self.log.index.times(self.number)

    @cached_property
    def _edges(self) -> tuple[int | None, int | None]:
        return self.log.index.first_and_last_times(self.number)

    @property
    def start(self) -> int | None:
        """ns of the first message in file order, or None if there is none."""
        return self._edges[0]

    @property
    def end(self) -> int | None:
        """ns of the last message in file order, or None if there is none."""
        return self._edges[1]

    @property
    def rate(self) -> float | None:
        """Messages per second between the first and the last one, or None where that has no meaning."""
        first, last = self._edges
        if first is None or last is None or last <= first:
            return None
        return (len(self) - 1) * 1e9 / (last - first)

    @property
    def bytes(self) -> int:
        """Payload bytes of all its messages."""
        return self.log.index.bytes_of(self.number)

    @property
    def fields(self) -> list[str]:
        """Paths of all fields, e.g. ``q``, ``pose.position.x``; one named ``time`` as tables call it, ``time_2``."""
        label = self.time_label
        return [label if label and path == "time" else path for path in self.layout.paths()]

    @cached_property
    def _decoder(self) -> Any:
        return self.layout.decoder()

    def decode(self, data: memoryview, offset: int | None = None) -> dict[str, Any]:
        """The fields of one payload of this channel as plain Python values.

        offset  its place in the log, where the payload is one of the log: some formats keep fields beside it
        """
        if self.decoder is not None:
            return self.decoder.decode_message(
                self.log.index, data, None if offset is None else self._row_at(offset)
            )
        fields: dict[str, Any] = self._decoder(data)
        return fields

    @cached_property
    def _offsets(self) -> I64:
        return self.log.index.offsets(self.number)

    def _row_at(self, offset: int) -> int | None:
        row = int(self._offsets.searchsorted(offset))
        return row if row < len(self._offsets) and self._offsets[row] == offset else None

    @cached_property
    def time_label(self) -> str | None:
        """What tables call a field that is itself named ``time``, usually ``time_2``; None where there is none."""
        from logreel.log.tables import time_label

        return time_label(self.layout)

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Message: ...
    @overload
    def __getitem__(self, key: slice) -> list[Message]: ...
    @overload
    def __getitem__(self, key: list[str]) -> pa.Table: ...
    def __getitem__(self, key: Any) -> Any:
        """A field, some fields, or messages.

        ``ch["q"]``          one field as array[n] or [n, …], a row per message (per record, where messages hold
                             many), reading nothing else; paths are ``lat``, ``q[2]``, ``pose.position.x``
        ``ch["time"]``       int64[n]: ns of each of these rows
        ``ch[["a", "b"]]``   a ``pyarrow.Table`` of these fields, as ``to_arrow`` gives it
        ``ch[0]``, ``ch[-1]``  one Message, in file order
        ``ch[:10]``          a list of Messages

        A message that cannot be decoded has NaN in floats and None in objects; other arrays are then masked arrays
        of NumPy. Raises NotFoundError, a KeyError, for a field that the schema does not have, IndexError for a
        message beyond the end, UsageError for another key.
        """
        if isinstance(key, str):
            from logreel.log.tables import field_values

            return field_values(self, key)
        if isinstance(key, slice):
            return self._messages_at(np.arange(len(self), dtype=np.int64)[key])
        if isinstance(key, (list, tuple)):
            return self.to_arrow(key)
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
            raise UsageError(f"a channel has fields, messages and slices of these, not {key!r}")
        row = int(key) + len(self) if key < 0 else int(key)
        if not 0 <= row < len(self):
            raise IndexError(f"{self.topic} has {len(self)} messages, so there is none at {key}")
        return self._messages_at(np.array([row], np.int64))[0]

    def _messages_at(self, rows: I64) -> list[Message]:
        """Messages by number, in the order of *rows*, which goes up or down."""
        from logreel.index.order import in_file_order

        down = len(rows) > 1 and rows[0] > rows[-1]
        found = in_file_order(self.log.index, {self.number: rows[::-1] if down else rows})
        messages = list(self.log.messages_of({self.number: self}, found))
        return messages[::-1] if down else messages

    def __iter__(self) -> Iterator[Message]:
        """Its messages in file order."""
        index = self.log.index
        return self.log.messages_of({self.number: self}, index.select_batches([self.number], order="file"))

    def __reversed__(self) -> Iterator[Message]:
        index = self.log.index
        pieces = index.select_batches([self.number], order="file", reverse=True)
        return self.log.messages_of({self.number: self}, pieces)

    def __contains__(self, item: object) -> bool:
        """Whether ``ch[item]`` is a field, for text; else whether one of its messages equals *item*."""
        if not isinstance(item, str):
            return any(message == item for message in self)
        from logreel.log.tables import own_paths

        try:
            for path in own_paths(self, item) or []:
                self.layout.project([path])
        except NotFoundError:
            return False
        return True

    def to_arrow(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        explode: bool = True,
        utc: bool = False,
        interpolate: bool = False,
    ) -> pa.Table:
        """Messages with start <= time < end as a ``pyarrow.Table``, in file order.

        The first column is ``time``: timestamp[ns] where the epoch is ``unix``, else duration[ns]; with *utc* always
        timestamp[ns, UTC], which raises UsageError if the log does not tell its offset. A field that is itself
        named ``time`` is the column ``time_2``. A message that cannot be decoded is a row of nulls, and a Problem.

        fields   field paths, or one of them; None: all
        start, end  int ns, text such as ``+5s``, aware datetimes, or timedeltas; None: no bound
        explode  False: one row per message with lists, where a message holds many records
        interpolate  where a message holds many records of one time, spread their times evenly to the next message

        Raises NotFoundError for an unknown field, UsageError for what is no time and for an interval that does not
        touch the log.
        """
        from logreel.log.tables import Shape, own_paths, table

        span = interval(self.log, start, end)
        return table(self, own_paths(self, fields), *span, Shape(explode, utc, interpolate))

    def batches(
        self,
        rows: int = 65536,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        utc: bool = False,
        interpolate: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The table of ``to_arrow`` in pieces of at most *rows* messages, each decoded when asked for.

        Raises UsageError for less than one row.
        """
        from logreel.log.tables import Shape, batches, own_paths

        if not isinstance(rows, (int, np.integer)) or isinstance(rows, bool) or rows < 1:
            raise UsageError(f"a batch has 1 row or more, not {rows!r}")
        span = interval(self.log, start, end)
        return batches(self, int(rows), own_paths(self, fields), *span, Shape(True, utc, interpolate))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table of ``to_arrow`` for any library of the Arrow PyCapsule protocol, decoded while it is read.

        So ``pa.table(ch)``, ``pl.DataFrame(ch)`` and ``duckdb.sql("from ch")`` work.
        """
        import pyarrow as pa

        from logreel.log.tables import PLAIN, batches, empty_table

        pieces = batches(self, STREAM_ROWS, None, None, None, PLAIN, STREAM_BYTES)
        reader = pa.RecordBatchReader.from_batches(empty_table(self).schema, pieces)
        return reader.__arrow_c_stream__(requested_schema)

    def to_numpy(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Arrays by field path, all of one length, with ``time`` as int64 ns first; see ``ch[field]``."""
        from logreel.log.tables import TIME, numpy_columns

        rows = self.log.index.rows_between(self.number, *interval(self.log, start, end))
        names = self.fields if fields is None else listed(fields)
        return numpy_columns(self, [TIME, *names], rows)

    def to_pandas(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        explode: bool = True,
        utc: bool = False,
        interpolate: bool = False,
        flatten: bool = True,
        index: str | None = None,
    ) -> Any:
        """A ``pandas.DataFrame``; parameters as for ``to_arrow``. Needs ``logreel[pandas]``.

        flatten  a column per member of a struct, ``pose.position.x``; False: dicts
        index    the column that becomes the index, above all ``time``
        """
        from logreel.log.tables import flattened

        _need("pandas")
        table = self.to_arrow(fields, start, end, explode=explode, utc=utc, interpolate=interpolate)
        frame = (flattened(table) if flatten else table).to_pandas()
        if index is None:
            return frame
        if index not in frame.columns:
            raise NotFoundError("column", index, frame.columns, path=self.log.name)
        return frame.set_index(index)

    def to_polars(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        explode: bool = True,
        utc: bool = False,
        interpolate: bool = False,
    ) -> Any:
        """A ``polars.DataFrame``; parameters as for ``to_arrow``. Needs ``logreel[polars]``."""
        table = self.to_arrow(fields, start, end, explode=explode, utc=utc, interpolate=interpolate)
        return _need("polars").from_arrow(table)

    def to_xarray(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        utc: bool = False,
        interpolate: bool = False,
    ) -> Any:
        """An ``xarray.Dataset`` with the coordinate ``time`` and a variable per field, named by its path.

        Arrays of fixed size get a dimension of their own, ``q_dim_0``. Units are in ``attrs``. Parameters as for
        ``to_arrow``. Needs ``logreel[xarray]``.
        """
        _need("xarray")
        from logreel.log.xarray import dataset

        names = self.fields if fields is None else fields
        return dataset(self.to_arrow(names, start, end, utc=utc, interpolate=interpolate))

    def _repr_html_(self) -> str:
        from logreel.log.html import table

        count, rate = self._numbers_text()
        head = f"{self.topic} ({self.schema.name}): {count} messages{rate and f', {rate}'}"
        try:
            rows = [(path,) for path in self.fields]
        except LogError as error:
            rows = [(error.text,)]
        return table(head, ("field",), rows)

    def _numbers_text(self) -> tuple[str, str]:
        """Messages and rate for people, both empty where the log is closed."""
        if self.log.closed:
            return "", ""
        return str(len(self)), "" if self.rate is None else f"{self.rate:.4g} Hz"

    def _ipython_key_completions_(self) -> list[str]:
        try:
            return ["time", *self.fields]
        except LogError:
            return []

    def __reduce__(self) -> tuple[Any, ...]:
        return _channel_of, (self.log, self.topic)


def _channel_of(log: Log, topic: str) -> Channel:
    return log[topic]


def _need(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(library, library) from error


class Log(Mapping[str, Channel]):
    """An open log: a mapping of channels by topic, and an index of messages. Use ``logreel.open``.

    format, version  what the file is
    size             bytes
    epoch            what time 0 means: ``unix``, ``boot`` or ``start``
    metadata         information that the log carries, by name
    index            the MessageIndex
    definitions      files and folders with definitions that the user gave
    own              what the format keeps for its writer, or None
    given_types      types of topics that the user gave, for logs that do not tell them
    origin           name of the format that the log was converted from, message by message; else its own
    closed           whether it was closed; then whatever reads messages raises LogError, and the rest stays

    Logs are equal only to themselves. They pickle as their path and the options they were opened with.
    """

    def __init__(
        self,
        source: Source,
        format: str,
        scan: Scan,
        read_text: Callable[[Log], Iterable[TextLine]] | None = None,
    ) -> None:
        self._source, self._scan, self._read_text = source, scan, read_text
        #: What ``open_log`` was given besides the path, for other processes.
        self._options: dict[str, Any] = {"definitions": (*source.definitions, source.types)}
        self.closed = False
        self.name, self.size = source.name, source.size
        self.format = format
        self.definitions = source.definitions
        self.given_types: Mapping[str, str] = source.types
        self.epoch = scan.epoch
        self.format_state: Any = scan.format_state
        self.converted_from: str = scan.converted_from or format

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
        from logreel.log.html import table

        channels = [ch for ch in self.channels.values() if not ch.reserved]
        span = "" if self.duration is None else f", {duration_text(self.duration)}"
        head = f"{self.name}: {self.format} {self.version}, {len(channels)} channels{span}"
        rows = [(ch.topic, ch.schema.name, *ch._numbers_text()) for ch in channels]
        return table(head, ("topic", "type", "messages", "rate"), rows)

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
        return () if self._read_text is None else tuple(self._read_text(self))

    @cached_property
    def actors(self) -> Mapping[int, Actor]:
        """Who takes part, by id: vehicles, walkers, lights … of a simulator; empty where the format has no actors."""
        return {} if self._scan.actors is None else self._scan.actors(self)

    def actor(self, id: int) -> Actor:
        """The actor with this id; raises NotFoundError, a KeyError, where there is none."""
        try:
            return self.actors[id]
        except KeyError:
            raise NotFoundError("actor", str(id), map(str, self.actors), path=self.name) from None

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
        log = Log(self._source, self.format, self._scan.segment(number), self._read_text)
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
        log = Log(self._source, self.format, scan, self._read_text)
        log._options = {**self._options, "ros_axes": True}
        return log

    def reread(self) -> Log:
        """The same log from everything that is wholly in the file, where opening believed an index; else itself."""
        if self._scan.reread is None:
            return self
        return Log(self._source, self.format, self._scan.reread(), self._read_text)

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
        return self.messages_of(channels, self.index.select_batches(channels, first, last, order, reverse))

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Whether any message of any channel has start <= time < end (ns), be it outside of the robust bounds."""
        spans = (self.index.rows_between(n, start, end) for n in range(len(self.index.rules)))
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


def with_rows(log: Log, rows: Mapping[int, slice | I64]) -> Log:
    """The same open log whose intervals have no other messages than *rows* of each channel, by its number."""
    found = Log(
        log._source, log.format, replace(log._scan, index=log.index.restricted_to(rows)), log._read_text
    )
    found.name, found._options = log.name, log._options
    return found


def _reopened(path: str, name: str, options: dict[str, Any]) -> Log:
    """The log in another process, called what it was called."""
    # Opening lives on a higher floor, which is reached by the names that the package offers.
    log: Log = modules[__name__.partition(".")[0]].open(path, **options)
    log.name = name
    return log
