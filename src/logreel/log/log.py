"""The public objects of an open log: Log, Channel and Message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from operator import getitem
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from logreel.dataclass import NamedTuple, replace
from logreel.errors import Finding, LogError, NotFoundError, Problem, TopicError, UsageError, library
from logreel.index.message_index import MessageIndex, message_at, rows_of
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import mapguard
from logreel.layout.layout import Layout
from logreel.log.growing_log import GrowingLog, OneByOne
from logreel.log.scan import (
    NO_SERVICES,
    Attachment,
    ChannelInfo,
    Facts,
    Noted,
    Parameter,
    PayloadDecoder,
    Scan,
    Schema,
    Segment,
    Services,
    TextLine,
    units_of,
)
from logreel.log.times import Time, interval, mean_rate

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from logreel.index.block_table import SelectedMessages
    from logreel.log.scan import Actor


T = TypeVar("T")


class _Kept(cached_property[T]):
    """A cached property: all threads get the value kept first, and none that ``adopt`` made stale meanwhile."""

    #: Whether FileChangedError is raised if the file was truncated meanwhile, also in place of another error.
    checks = False

    def __get__(self, of: Any, owner: type[Any] | None = None) -> Any:
        if of is None:
            return self
        log, info = getattr(of, "log", of), of.__dict__.get("_info")
        scan = log.scan
        try:
            value = self.func(of)
        finally:
            if self.checks:
                log.check_unchanged()
        kept = of.__dict__.setdefault(self.attrname, value)
        if kept is value and (log.scan is not scan or of.__dict__.get("_info") is not info):
            of.__dict__.pop(self.attrname, None)
        return kept


class _Checked(_Kept[T]):
    checks = True


if TYPE_CHECKING:
    kept_property = checked_property = cached_property
else:
    kept_property, checked_property = _Kept, _Checked


class Message(NamedTuple):
    """One message of a log.

    time     ns, by the clock of the log
    channel  the Channel that the message belongs to
    data     the payload, a view of the bytes of the log
    offset   position of the payload in the file, or in the chunk that contains it; None where it is not known
    """

    time: int
    channel: Channel
    data: memoryview
    offset: int | None = None

    def decode(self) -> dict[str, Any]:
        """Return the fields as a dict of plain Python values; for many messages ``Channel.to_arrow`` is far faster.

        Raises DefinitionError if the definition of the channel cannot be used, DamagedError if the payload does not
        fit it.
        """
        return self.channel.decode(self.data, self.offset)


#: Make a Message of its four values, without a call of Python code as ``Message._make`` is.
_message: Callable[[Iterable[Any]], Message] = partial(tuple.__new__, Message)


class Channel(OneByOne):
    """The messages of one topic: a sequence of Messages in file order, with fields that can be read as columns.

    ``ch[0]``, ``ch[:10]`` and iteration return messages; ``ch["q"]`` and ``ch[["q", "lat"]]`` return fields.

    log       the Log that the channel belongs to
    topic     name of the channel, unique inside the log
    schema    the definition of the messages, as the log contains it
    metadata  what the format records about the channel, by name
    number    number of the channel in ``log.index``
    members   channels that it joins, in a log of several files, with *shifts*: ns to add to their times
    reserved  whether the name begins with ``~``: a synthetic channel of text, parameters and similar content
    """

    members: tuple[Channel, ...] = ()
    shifts: tuple[int, ...] = ()

    def __init__(self, log: Log, number: int, info: ChannelInfo) -> None:
        self.log, self.number, self._info = log, number, info
        self.topic: str = info.topic
        self.schema: Schema = info.schema
        self.metadata: Mapping[str, Any] = MappingProxyType(dict(info.metadata))
        self.reserved = info.topic.startswith("~")

    def __len__(self) -> int:
        """Return the number of messages; where a message holds many records, each message counts once."""
        return self.log.index.count(self.number)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        count = "closed" if self.log.closed else f"{len(self)} messages"
        return f"<logreel.Channel {self.topic!r} {self.schema.name}: {count}>"

    @kept_property
    def layout(self) -> Layout:
        """The Layout of the messages; raises DefinitionError if the definition cannot be used."""
        return self._info.layout()

    @kept_property
    def decoder(self) -> PayloadDecoder | None:
        """The PayloadDecoder of the channel, or None where the Layout alone describes the payloads."""
        return self._info.decoder()

    @kept_property
    def facts(self) -> Mapping[str, tuple[str, ...]]:
        """What the channel says of itself, as texts by key, for conditions such as ``type=sensor_msgs/Imu``.

        The keys are ``topic``, ``type``, ``encoding``, ``units`` of all fields, ``lens``, and those of ``metadata``.
        """
        return Facts(self.topic, self.schema, self.metadata, self._units, self.log.services.lens_names, self)

    def _units(self) -> list[str]:
        with suppress(LogError):
            return units_of(self.layout)
        return []

    @kept_property
    def is_uniform(self) -> bool:
        """Whether all messages are uncompressed in the file and have the fixed size of the Layout.

        If so, columns are gathered from known offsets; otherwise each message is walked and checked.
        """
        if self.decoder is not None:
            return False
        index, size = self.log.index, self.layout.size
        return size is not None and index.rules[self.number].size.guarantees_size(index, self.number, size)

    @property
    def times(self) -> I64:
        """``int64[n]``: time of each message in ns, in file order; read-only."""
        return self.log.index.times(self.number)

    @kept_property
    def _first_and_last_times(self) -> tuple[int | None, int | None]:
        return self.log.index.first_and_last_times(self.number)

    @property
    def start(self) -> int | None:
        """Time in ns of the first message in file order; None for an empty channel."""
        return self._first_and_last_times[0]

    @property
    def end(self) -> int | None:
        """Time in ns of the last message in file order; None for an empty channel."""
        return self._first_and_last_times[1]

    @property
    def rate(self) -> float | None:
        """Mean rate in Hz from the first to the last message; None without one, and for less than 1 µs per message."""
        first, last = self._first_and_last_times
        return None if first is None or last is None else mean_rate(len(self) - 1, last - first)

    @property
    def bytes(self) -> int:
        """Total size of all payloads in bytes."""
        return self.log.index.bytes_of(self.number)

    @property
    def fields(self) -> list[str]:
        """Paths of all fields, such as ``q`` or ``pose.position.x``; a field ``time`` is listed as ``time_2``."""
        label = self.time_label
        return [label if label and path == "time" else path for path in self.layout.paths()]

    @kept_property
    def _decode(self) -> Callable[[memoryview], dict[str, Any]]:
        return self.layout.decoder()

    def decode(self, data: memoryview, offset: int | None = None) -> dict[str, Any]:
        """Return the fields of one payload of this channel as a dict of plain Python values.

        offset  offset of the message (``Message.offset``) if *data* is from this log; needed for side columns, which
                some formats store outside the payload

        Raises DefinitionError if the definition cannot be used, DamagedError if the payload does not fit it.
        """
        if self.decoder is not None:
            row = None if offset is None else self._row_at(offset)
            return self.decoder.decode_message(self.log.index, data, row)
        fields = self._decode(data)
        if mapguard.losses():
            self.log.check_unchanged()
        return fields

    @kept_property
    def _offsets(self) -> I64:
        return self.log.index.offsets(self.number)

    def _row_at(self, offset: int) -> int | None:
        row = int(self._offsets.searchsorted(offset))
        return row if row < len(self._offsets) and self._offsets[row] == offset else None

    @kept_property
    def time_label(self) -> str | None:
        """Column name of a field that is itself named ``time``, usually ``time_2``; None without such a field."""
        from logreel.log.columns import time_label

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
        """Return a field, several fields, or messages.

        ``ch["q"]``          one field as a NumPy array of shape [n] or [n, …], with one row per message (per record,
                             where messages hold many); paths are ``lat``, ``q[2]``, ``pose.position.x``
        ``ch["time"]``       ``int64[n]``: time of each row in ns
        ``ch[["a", "b"]]``   a ``pyarrow.Table`` of these fields, see ``to_arrow``
        ``ch[0]``, ``ch[-1]``  one Message, in file order
        ``ch[:10]``          a list of Messages

        For a message that cannot be decoded, floats are NaN and objects are None; arrays of other types are then
        NumPy masked arrays. Raises NotFoundError (a KeyError) for an unknown field, IndexError for a message after
        the last one, UsageError for any other key.
        """
        if type(key) is int and key >= 0 and (message := self._message_at(key)) is not None:
            return message
        if isinstance(key, str):
            from logreel.log.columns import field_values

            return field_values(self, key)
        if isinstance(key, slice):
            return self._messages_at(np.arange(len(self), dtype=np.int64)[key])
        if isinstance(key, (list, tuple)):
            return self.to_arrow(key)
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
            raise UsageError(f"a channel has fields, messages and slices of these, not {key!r}")
        count = len(self)
        row = int(key) + count if key < 0 else int(key)
        if not 0 <= row < count:
            raise IndexError(f"{self.topic} has {count} messages, so there is none at {key}")
        return self._message_at(row) or self._messages_at(np.array([row], np.int64))[0]

    def _message_at(self, row: int) -> Message | None:
        """Return one message; None if there is none, and where only ``_messages_at`` can tell."""
        index = self.log.index
        values = self._known_at(index, row) or message_at(index, self.number, self, row)
        return None if values is None else _message(values)

    def _messages_at(self, rows: I64) -> list[Message]:
        """Return the messages with these row numbers, which ascend or descend."""
        down = len(rows) > 1 and rows[0] > rows[-1]
        batches = self.log.index.select_rows({self.number: rows[::-1] if down else rows})
        messages = list(self.log.messages_of({self.number: self}, batches))
        return messages[::-1] if down else messages

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages in file order."""
        index = self.log.index
        return self.log.messages_of({self.number: self}, index.select_batches([self.number], order="file"))

    def __reversed__(self) -> Iterator[Message]:
        """Yield the messages from the last one in the file to the first."""
        index = self.log.index
        batches = index.select_batches([self.number], order="file", reverse=True)
        return self.log.messages_of({self.number: self}, batches)

    def __contains__(self, item: object) -> bool:
        """Return whether *item* is the path of a field, or else whether it equals one of the messages."""
        if not isinstance(item, str):
            return any(message == item for message in self)
        from logreel.log.columns import own_paths

        return all(self.layout.has(path) for path in own_paths(self, item) or [])

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
        """Return the messages with start <= time < end as a ``pyarrow.Table``, in file order.

        The first column is ``time``: timestamp[ns] if the epoch is ``unix``, else duration[ns]; with *utc* always
        timestamp[ns, UTC]. A field that is itself named ``time`` becomes the column ``time_2``. A message that cannot
        be decoded becomes a row of nulls, and is reported in ``log.problems``.

        fields       one field path or several; None: all
        start, end   int ns, text such as ``+5s``, aware datetimes, or timedeltas; None: no bound
        explode      True: one row per record, where a message holds many; False: one row per message, with lists
        utc          wall-clock times instead of the clock of the log
        interpolate  where a message holds many records, spread their times evenly up to the next message

        Raises NotFoundError for an unknown field; UsageError for a time that cannot be read, for an interval outside
        of the log, and with *utc* for a log whose offset to UTC is unknown; DefinitionError if the definition of the
        channel cannot be used.
        """
        from logreel.log.columns import RowOptions, own_paths
        from logreel.log.tables import table

        span = interval(self.log, start, end)
        return table(self, own_paths(self, fields), *span, RowOptions(explode, utc, interpolate))

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
        """Yield the table of ``to_arrow`` in batches of at most *rows* messages, decoding each one on demand.

        Parameters and errors are those of ``to_arrow``; raises UsageError also if *rows* is less than 1.
        """
        from logreel.log.columns import RowOptions, own_paths
        from logreel.log.tables import batches

        if not isinstance(rows, (int, np.integer)) or isinstance(rows, bool) or rows < 1:
            raise UsageError(f"a batch has 1 row or more, not {rows!r}")
        span = interval(self.log, start, end)
        return batches(self, int(rows), own_paths(self, fields), *span, RowOptions(True, utc, interpolate))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table of ``to_arrow`` as an Arrow stream (PyCapsule protocol), decoded while it is read.

        Used by ``pa.table(ch)``, ``pl.DataFrame(ch)`` and ``duckdb.sql("from ch")``.
        """
        from logreel.log.tables import arrow_stream

        return arrow_stream(self, requested_schema)

    def to_numpy(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return NumPy arrays of equal length by field path; the first one is ``time``, int64 ns.

        Parameters and errors are those of ``to_arrow``, types of arrays those of ``ch[field]``.
        """
        from logreel.log.columns import TIME, numpy_columns
        from logreel.log.topic_match import listed

        rows = self.log.index.rows_between(self.number, *interval(self.log, start, end))
        return numpy_columns(self, None if fields is None else [TIME, *listed(fields)], rows)

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
        """Return a ``pandas.DataFrame``; other parameters as for ``to_arrow``. Needs ``logreel[pandas]``.

        flatten  True: one column per member of a struct and per value of an array of fixed size, such as
                 ``pose.position.x`` and ``q[0]``; False: dicts and arrays
        index    the column that becomes the index, usually ``time``; None: row numbers

        Raises NotFoundError for an unknown *index*, MissingDependencyError without pandas.
        """
        from logreel.log.dataframes import pandas_frame

        library("pandas")
        table = self.to_arrow(fields, start, end, explode=explode, utc=utc, interpolate=interpolate)
        return pandas_frame(table, flatten, index, self.log.name)

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
        """Return a ``polars.DataFrame``; parameters as for ``to_arrow``. Needs ``logreel[polars]``.

        Raises MissingDependencyError without polars.
        """
        polars = library("polars")
        return polars.from_arrow(
            self.to_arrow(fields, start, end, explode=explode, utc=utc, interpolate=interpolate)
        )

    def to_xarray(
        self,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        utc: bool = False,
        interpolate: bool = False,
    ) -> Any:
        """Return an ``xarray.Dataset`` with the coordinate ``time`` and one variable per field, named by its path.

        Arrays of fixed size have further dimensions, such as ``q_dim_0``. Units are in ``attrs``. Parameters as for
        ``to_arrow``. Needs ``logreel[xarray]``; raises MissingDependencyError without it.
        """
        from logreel.log.dataframes import dataset

        library("xarray")
        names = self.fields if fields is None else fields
        return dataset(self.to_arrow(names, start, end, utc=utc, interpolate=interpolate))

    def __reduce__(self) -> tuple[Any, ...]:
        return getitem, (self.log, self.topic)


class Log(GrowingLog, Mapping[str, Channel]):
    """An open log: a mapping of channels by topic. ``logreel.open`` returns it.

    name             name of the file, or the name given for bytes and streams
    size             size of the file in bytes
    format           name of the format, such as ``ulog``
    epoch            meaning of time 0: ``unix`` (1970), ``boot`` of the robot, or ``start`` of the log
    definitions      files and folders with message definitions that the user gave
    given_types      message types by topic that the user gave, for logs that do not contain them
    format_state     data of the format for its FormatWriter, or None
    converted_from   name of the format that the log was converted from without loss; else its own format
    encryption       how the file is encrypted, as text; empty if it is not
    source           the Source of its bytes; of several files that of the first
    scan             the Scan: what the format says of the file, from which ``derive`` makes other logs
    options          options of ``logreel.open`` with which other processes open the log
    services         the Services: functions of higher floors that methods call
    closed           whether the log was closed; then everything that reads messages raises LogError

    A Log equals only itself. It pickles as its path and the options of ``logreel.open``.
    """

    def __init__(self, source: Source, format: str, scan: Scan, services: Services = NO_SERVICES) -> None:
        self.source, self.scan, self.services = source, scan, services
        self.options: dict[str, Any] = {"definitions": (*source.definitions, source.types)}
        self.closed = False
        self.name, self.size = source.name, source.size
        self.format = format
        self.definitions = source.definitions
        self.given_types: Mapping[str, str] = source.types
        self.epoch = scan.epoch
        self.format_state: Any = scan.format_state
        self.converted_from: str = scan.converted_from or format
        self.encryption: str = scan.encryption
        self._noted = Noted()

    @property
    def index(self) -> MessageIndex:
        """The MessageIndex: where the messages are in the file. Raises LogError if the log is closed."""
        if self.closed:
            raise LogError(
                "the log is closed", path=self.name, hint="read from it before close(), or open it again"
            )
        return self.scan.index

    @checked_property
    def version(self) -> str:
        """Version of the format as text, as far as it is known."""
        version = self.scan.version
        return version if isinstance(version, str) else version()

    @checked_property
    def _bounds(self) -> tuple[int | None, int | None]:
        bounds = self.scan.bounds
        return (self.scan.start, self.scan.end) if bounds is None else bounds()

    @property
    def start(self) -> int | None:
        """Time in ns at which the log begins, ignoring single absurd time stamps; None for an empty log."""
        return self._bounds[0]

    @property
    def end(self) -> int | None:
        """Time in ns at which the log ends, ignoring single absurd time stamps; None for an empty log."""
        return self._bounds[1]

    @property
    def duration(self) -> int | None:
        """Time in ns from ``start`` to ``end``; None for an empty log."""
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Damage found so far, in file order; reading messages can add further Problems."""
        return tuple(sorted(self.scan.problems, key=lambda p: p.offset))

    def note(self, problem: Problem) -> None:
        """Add a Problem that was found while reading messages, unless it is there already."""
        self._noted.add(self.scan.problems, problem)

    @kept_property
    def channels(self) -> Mapping[str, Channel]:
        """All channels by topic, in file order; reserved topics (text, parameters, …) begin with ``~``."""
        return MappingProxyType(self._channels_of(self.scan))

    def _channels_of(self, scan: Scan) -> dict[str, Channel]:
        return {
            info.topic: Channel(self, number, info)
            for number, info in enumerate(scan.channels)
            if scan.shows(number)
        }

    def __getitem__(self, topic: str) -> Channel:
        """Return the channel named *topic*; raises TopicError (a KeyError), which names similar topics."""
        try:
            return self.channels[topic]
        except KeyError:
            raise TopicError("channel", topic, self.channels, path=self.name) from None

    def __contains__(self, topic: object) -> bool:
        return topic in self.channels

    def __iter__(self) -> Iterator[str]:
        return iter(self.channels)

    def __len__(self) -> int:
        """Return the number of channels, including reserved ones."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        if self.source.address is None:
            raise LogError(
                "a log of bytes or of a stream cannot be handed to another process",
                path=self.name,
                hint="write it to a file and open that",
            )
        return self.services.reopen, (self.source.address, self.name, self.options)

    @checked_property
    def metadata(self) -> Mapping[str, Any]:
        """Information about the log as a whole, by name: text, numbers, lists, or bytes."""
        return MappingProxyType(dict(self.scan.metadata()))

    @checked_property
    def utc_offset(self) -> int | None:
        """Offset in ns from the clock of the log to UTC since 1970; None if it is unknown."""
        return self.scan.utc_offset()

    @checked_property
    def utc_notes(self) -> tuple[str, ...]:
        """Sentences about times of the log that give another UTC than ``utc_offset``, with the difference."""
        return tuple(self.scan.utc_notes())

    @checked_property
    def attachments(self) -> Mapping[str, Attachment]:
        """Named content other than messages, such as files stored in the log."""
        return MappingProxyType({a.name: a for a in self.scan.attachments()})

    @checked_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters of the robot by name, with their changes and defaults."""
        return MappingProxyType({p.name: p for p in self.scan.parameters()})

    @checked_property
    def text(self) -> tuple[TextLine, ...]:
        """Text messages and events for people to read, sorted by time."""
        read = self.scan.text or partial(self.scan.text_of or self.services.text_lines, self)
        return tuple(read())

    @checked_property
    def actors(self) -> Mapping[int, Actor]:
        """Actors of a simulation by id: vehicles, walkers, traffic lights …; else empty."""
        return {} if self.scan.actors is None else self.scan.actors(self)

    def actor(self, id: int) -> Actor:
        """Return the actor with this id; raises NotFoundError (a KeyError) for an unknown id."""
        try:
            return self.actors[id]
        except KeyError:
            raise NotFoundError("actor", str(id), map(str, self.actors), path=self.name) from None

    @checked_property
    def segments(self) -> tuple[Segment, ...]:
        """The logs that the file contains, in file order: nearly always exactly one; see ``segment``."""
        segments = tuple(self.scan.segments())
        return segments or (Segment(1, 0, self.start, self.end, self.message_count),)

    def segment(self, number: int) -> Log:
        """Return one of the logs that the file contains, with its own channels, start and end.

        A memory card that was used again can contain the rest of an older log after the end of the new one.

        number  from 1

        Raises UsageError for an unknown number.
        """
        count = len(self.segments)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            numbers = "one segment, number 1" if count == 1 else f"segments 1 to {count}"
            raise UsageError(f"there is no segment {number!r}; the log has {numbers}", path=self.name)
        scan_of = self.scan.segment
        return self if scan_of is None else self._derived(scan_of(number), segment=number)

    @property
    def has_other_axes(self) -> bool:
        """Whether ``ros_axes`` can convert the log: lengths are not in metres, or axes not right-handed."""
        return self.scan.ros_axes is not None

    def ros_axes(self) -> Log:
        """Return the same log in metres and right-handed axes (x forward, y left, z up), as in ROS.

        Fields keep their names; their units are in the Layout. Raises UsageError if ``has_other_axes`` is False.
        """
        if self.scan.ros_axes is None:
            raise UsageError("the log has no other axes than its own", path=self.name)
        scan = replace(self.scan, channels=self.scan.ros_axes(), ros_axes=None)
        return self._derived(scan, ros_axes=True)

    def reread(self) -> Log:
        """Return the log read from all complete records; itself where opening did not trust an index."""
        return self if self.scan.reread is None else self._derived(self.scan.reread())

    def derive(self, **changes: Any) -> Log:
        """Return the same open log with other members of its Scan, such as ``index``, ``text`` or ``shown``.

        This is how a log is made from another one, without reading the file again: the new log has the source, name
        and options of this one, and its own Channels. It does not grow. Raises TypeError for a member that Scan does
        not have.
        """
        return self._derived(replace(self.scan, **changes))

    def _derived(self, scan: Scan, **options: Any) -> Log:
        log = self._with_scan(scan)
        log.options = {**self.options, **options}
        log.name, log.closed = self.name, self.closed
        return log

    def _with_scan(self, scan: Scan) -> Log:
        return Log(self.source, self.format, scan, self.services)

    @property
    def message_count(self) -> int:
        """Number of messages of all channels except reserved ones."""
        # Before the index, which may grow meanwhile.
        numbers = [ch.number for ch in self.channels.values() if not ch.reserved]
        return int(self.index.counts[numbers].sum())

    def match(self, topics: str | Iterable[str] | None) -> list[Channel]:
        """Return the channels that *topics* select.

        topics  names, shell patterns, ``re:`` and a regular expression, or conditions on ``Channel.facts`` such as
                ``type=sensor_msgs/Imu``, several joined by commas; None: all channels except reserved ones

        Raises TopicError for what selects no channel, UsageError for an invalid expression.
        """
        from logreel.log.topic_match import match_topics

        return [self.channels[name] for name in match_topics(self.channels, topics, self.name)]

    def messages(
        self,
        topics: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Iterator[Message]:
        """Yield the messages with start <= time < end.

        topics      names or patterns, see ``match``; None: all channels except reserved ones
        start, end  int ns, text such as ``+5s``, aware datetimes, or timedeltas; None: no bound
        order       ``time`` (equal times in file order), or ``file``
        reverse     from the last message to the first

        Raises TopicError for an unknown topic; UsageError for another *order*, for a time that cannot be read, and for
        an interval outside of the log.
        """
        channels, span = {ch.number: ch for ch in self.match(topics)}, interval(self, start, end)
        return self.messages_of(channels, self.index.select_batches(channels, *span, order, reverse))

    @property
    def parts(self) -> Sequence[Log]:
        """The logs of the files, if they were opened as one log; the log itself for one file."""
        return (self,)

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return whether any message has start <= time < end (ns), even outside of ``self.start`` and ``end``."""
        spans = (self.index.rows_between(n, start, end) for n in range(len(self.index.rules)))
        return any(rows.stop > rows.start if isinstance(rows, slice) else len(rows) for rows in spans)

    def messages_of(
        self, channels: Mapping[int, Channel], selections: Iterator[SelectedMessages]
    ) -> Iterator[Message]:
        """Yield the messages of selections of the index; *channels*: by number."""
        return map(_message, rows_of(self.index, channels, selections))

    def check_unchanged(self) -> None:
        """Raise FileChangedError if a file of the log was truncated or overwritten since it was opened.

        All methods do this when they return. Views of the file, such as ``Message.data``, are valid only if it raises
        nothing after they were used.
        """
        for part in self.parts:
            part.source.check()

    def table(
        self,
        topic: str,
        fields: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        utc: bool = False,
        interpolate: bool = False,
    ) -> pa.Table:
        """Return one channel as a ``pyarrow.Table``; see ``Channel.to_arrow``."""
        return self[topic].to_arrow(fields, start, end, utc=utc, interpolate=interpolate)

    def tables(self, topics: str | Iterable[str] | None = None) -> dict[str, pa.Table]:
        """Return whole channels as ``pyarrow.Table`` by topic, read in one pass; empty channels are left out.

        topics  names or patterns, see ``match``; None: all channels except reserved ones
        """
        from logreel.log.read_tables import tables

        return tables([ch for ch in self.match(topics) if len(ch)])

    def verify(self) -> tuple[Finding, ...]:
        """Read the whole file and return what opening it does not check, such as wrong checksums."""
        with self.source.checked():
            return tuple(self.scan.verify())
