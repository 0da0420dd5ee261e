"""A channel: one topic with one schema, and its messages as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from logreel.errors import MissingDependencyError
from logreel.model.chunks import FILE
from logreel.model.index import I64, Aligned, Derived
from logreel.model.layout import Layout
from logreel.model.reading import Reading
from logreel.model.scan import ChannelInfo
from logreel.model.schema import Schema
from logreel.model.times import Time, interval

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.model.log import Log


class Channel:
    """The messages of one topic.

    topic     its name, unique inside the log
    schema    the definition of its messages as the log carries it
    metadata  what the format tells about the channel
    number    its number in ``log.index``
    """

    def __init__(self, log: Log, number: int, info: ChannelInfo) -> None:
        self.log, self.number, self._info = log, number, info
        self.topic: str = info.topic
        self.schema: Schema = info.schema
        self.metadata: Mapping[str, Any] = info.metadata
        self.reserved = info.topic.startswith("~")

    def __len__(self) -> int:
        """Messages, not records."""
        return self.log.index.count(self.number)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<logreel.Channel {self.topic!r} {self.schema.name}: {len(self)} messages>"

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
        """Paths of all fields, e.g. ``q``, ``pose.position.x``."""
        return self.layout.paths()

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

    def __getitem__(self, path: str) -> NDArray[Any]:
        """One field of all messages in file order, reading nothing else: array[n] or [n, …] for arrays in the field.

        path  names, dots and indices: ``lat``, ``q``, ``q[2]``, ``pose.position.x``, ``esc[0].esc_rpm``

        Raises TopicError, a KeyError, for a field that the schema does not have.
        """
        from logreel.model.tables import field_values

        return field_values(self, path)

    def to_arrow(
        self,
        fields: Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        explode: bool = True,
        utc: bool = False,
        interpolate: bool = False,
    ) -> pa.Table:
        """Messages with start <= time < end as a ``pyarrow.Table``, in file order.

        The first column is ``time``: timestamp[ns] where the epoch is ``unix``, else duration[ns]; with *utc* always
        timestamp[ns, UTC], which raises UsageError if the log does not tell its offset.

        fields   field paths; None: all
        start, end  int ns, text such as ``+5s``, aware datetimes, or timedeltas; None: no bound
        explode  False: one row per message with lists, where a message holds many records
        interpolate  where a message holds many records of one time, spread their times evenly to the next message
        """
        from logreel.model.tables import Shape, table

        span = interval(self.log, start, end)
        return table(self, None if fields is None else list(fields), *span, Shape(explode, utc, interpolate))

    def batches(
        self,
        rows: int = 65536,
        fields: Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        *,
        utc: bool = False,
        interpolate: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The table of ``to_arrow`` in pieces of at most *rows* messages, each decoded when asked for."""
        from logreel.model.tables import Shape, batches

        shape = Shape(True, utc, interpolate)
        span = interval(self.log, start, end)
        return batches(self, rows, None if fields is None else list(fields), *span, shape)

    def to_numpy(self, fields: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Arrays by field path, with ``time`` as int64 ns first."""
        names = self.fields if fields is None else list(fields)
        return {"time": self.times, **{name: self[name] for name in names}}

    def to_pandas(self, fields: Iterable[str] | None = None, **options: Any) -> Any:
        """A ``pandas.DataFrame``; *options* as for ``to_arrow``. Needs ``logreel[pandas]``."""
        _need("pandas")
        return self.to_arrow(fields, **options).to_pandas()

    def to_polars(self, fields: Iterable[str] | None = None, **options: Any) -> Any:
        """A ``polars.DataFrame``; *options* as for ``to_arrow``. Needs ``logreel[polars]``."""
        return _need("polars").from_arrow(self.to_arrow(fields, **options))

    def to_xarray(self, fields: Iterable[str] | None = None, **options: Any) -> Any:
        """An ``xarray.Dataset`` with the coordinate ``time`` and a variable per field, named by its path.

        Arrays of fixed size get a dimension of their own, ``q_dim_0``. Units are in ``attrs``. *options* as for
        ``to_arrow``. Needs ``logreel[xarray]``.
        """
        _need("xarray")
        from logreel.model.xarray import dataset

        return dataset(self, self.fields if fields is None else list(fields), options)


def _need(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(library, library) from error
