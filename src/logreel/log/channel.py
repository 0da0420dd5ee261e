"""A channel: one topic with one schema, and its messages as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, MissingDependencyError, TopicError, UsageError
from logreel.index.rules import Aligned, Derived
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.layout.layout import Layout
from logreel.log.payload_decoder import Reading
from logreel.log.scan import ChannelInfo
from logreel.log.schema import Schema
from logreel.log.times import Time, interval
from logreel.log.topic_match import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log, Message


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
    def reading(self) -> Reading | None:
        """What decodes its messages where the Layout is no walk of their bytes, else None."""
        return self._info.reading()

    @cached_property
    def is_uniform(self) -> bool:
        """True if all messages lie in the file as it is and are as long as the Layout says.

        Then columns are gathered from known places; otherwise each message is walked and checked.
        """
        if self.reading is not None:
            return False
        index, size = self.log.index, self.layout.size
        rule = index.tracks[self.number].size
        if size is None or isinstance(rule, Derived):
            return False
        if not isinstance(rule, Aligned):
            return True
        return bool((index.chunk_of(self.number) == FILE).all() and (index.sizes(self.number) == size).all())

    @property
    def times(self) -> I64:
        """int64[n]: time of each message in ns, in file order, read only."""
        return self.log.index.times(self.number)

    @cached_property
    def _edges(self) -> tuple[int | None, int | None]:
        return self.log.index.edges(self.number)

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
        if self.reading is not None:
            return self.reading.one(self.log.index, data, None if offset is None else self._row_at(offset))
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
        of NumPy. Raises TopicError, a KeyError, for a field that the schema does not have, IndexError for a
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
        from logreel.index.order import by_rows

        down = len(rows) > 1 and rows[0] > rows[-1]
        found = by_rows(self.log.index, {self.number: rows[::-1] if down else rows})
        messages = list(self.log.messages_of({self.number: self}, found))
        return messages[::-1] if down else messages

    def __iter__(self) -> Iterator[Message]:
        """Its messages in file order."""
        index = self.log.index
        return self.log.messages_of({self.number: self}, index.pieces([self.number], order="file"))

    def __reversed__(self) -> Iterator[Message]:
        index = self.log.index
        pieces = index.pieces([self.number], order="file", reverse=True)
        return self.log.messages_of({self.number: self}, pieces)

    def __contains__(self, item: object) -> bool:
        """Whether ``ch[item]`` is a field, for text; else whether one of its messages equals *item*."""
        if not isinstance(item, str):
            return any(message == item for message in self)
        from logreel.log.tables import own_paths

        try:
            for path in own_paths(self, item) or []:
                self.layout.project([path])
        except TopicError:
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

        Raises TopicError for an unknown field, UsageError for what is no time and for an interval that does not
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
        from logreel.log.tables import TIME, field_values

        rows = self.log.index.rows_between(self.number, *interval(self.log, start, end))
        names = self.fields if fields is None else listed(fields)
        return {name: field_values(self, name, rows) for name in dict.fromkeys([TIME, *names])}

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
            raise TopicError("column", index, frame.columns, path=self.log.name)
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
        from logreel.log.html import channel_html

        return channel_html(self)

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
