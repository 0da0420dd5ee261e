"""Helpers of lenses: recognise types of fields, and read fields as flat columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Bytes, FixedArray, Node, Scalar, Sequence, String, Struct, Time

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column
    from logreel.log.columns import ChannelRows
    from logreel.log.log import Channel

Nodes = dict[str, Node]

#: Limits of a batch, in messages and bytes, where each message may be large.
FEW, FEW_BYTES = 64, 8 << 20


@dataclass(frozen=True, slots=True)
class LensFinder:
    """One way to recognise the meaning of a channel.

    name       name of the meaning, for conditions such as ``lens=position``
    find       returns the lens that fits a Channel, or None; raises nothing
    by_fields  True: *find* takes the nodes of the channel's fields by name, see ``members``
    """

    name: str
    find: Callable[[Any], Any]
    by_fields: bool = False


@dataclass(frozen=True, slots=True)
class Scaled:
    """A field and the factor that brings it to the lens's unit."""

    path: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time at which the data of a message were measured (not logged): the sum of some fields.

    parts  path of each number, and ns per unit
    """

    parts: tuple[tuple[str, int], ...]

    @property
    def paths(self) -> list[str]:
        """Paths of the fields to read."""
        return [path for path, _ in self.parts]

    def of(self, values: Mapping[str, NDArray[Any]]) -> I64:
        """Return int64[n] ns, 0 where a message has no such time; *values*: columns by path."""
        total: I64 = np.sum([_ns(values[path], unit) for path, unit in self.parts], axis=0, dtype=np.int64)
        return total


def _ns(values: NDArray[Any], unit: int) -> I64:
    """Return int64[n] ns for numbers in units of *unit* ns; 0 for missing values and those beyond 64 bits."""
    if values.dtype.kind == "M":
        ns = values.astype("datetime64[ns]").astype(np.int64)
        return np.where(np.isnat(values), 0, ns)
    with np.errstate(invalid="ignore"):
        fits = np.abs(np.nan_to_num(values.astype(np.float64), nan=np.inf)) < (1 << 62) / unit
        return np.where(fits, values, 0).astype(np.int64) * unit


#: Field names of the time of measurement, most specific first.
_STAMPS = ("header.stamp", "stamp", "timestamp")
#: Names of the seconds and nanoseconds of a time that is stored as two numbers.
_SECONDS, _NANOSECONDS = ("sec", "secs", "seconds"), ("nsec", "nanosec", "nsecs", "nanos")


def find_stamp(nodes: Nodes, path: str = "") -> Stamp | None:
    """Return the Stamp among *nodes*, the members of the struct at *path*, or None."""
    at = path + "." if path else ""
    for name in _STAMPS:
        *groups, last = name.split(".")
        inner = nodes
        for group in groups:
            inner = nodes_of(inner.get(group)) if isinstance(inner.get(group), Struct) else {}
        node = inner.get(last)
        if node == Time():
            return Stamp(((at + name, 1),))
        pair = nodes_of(node) if isinstance(node, Struct) else {}
        seconds = next((n for n in _SECONDS if is_number(pair.get(n))), None)
        rest = next((n for n in _NANOSECONDS if is_number(pair.get(n))), None)
        if seconds and rest:
            return Stamp(((f"{at}{name}.{seconds}", 10**9), (f"{at}{name}.{rest}", 1)))
    # Microseconds of the clock of the log, in addition to the publishing time, as flight controllers log them.
    if nodes.get("timestamp_sample") == Scalar("uint64"):
        return Stamp(((at + "timestamp_sample", 1000),))
    return None


def is_integer(node: Node | None) -> bool:
    """Return whether *node* is an integer."""
    return isinstance(node, Scalar) and node.type.lstrip("u").startswith("int")


def is_float(node: Node | None) -> bool:
    """Return whether *node* is a floating-point number."""
    return isinstance(node, Scalar) and node.type.startswith("float")


def is_number(node: Node | None) -> bool:
    """Return whether *node* is a number; bool and char are not."""
    return is_float(node) or is_integer(node)


def is_text(node: Node | None) -> bool:
    """Return whether *node* is text."""
    return isinstance(node, String) or (isinstance(node, FixedArray) and node.item == Scalar("char"))


def is_blob(node: Node | None) -> bool:
    """Return whether *node* is a variable-length array of opaque bytes."""
    return isinstance(node, Bytes) or (isinstance(node, Sequence) and node.item == Scalar("uint8"))


def is_floats(node: Node | None) -> bool:
    """Return whether *node* is a variable-length array of floating-point numbers."""
    return isinstance(node, Sequence) and is_float(node.item)


def nodes_of(node: Node | None) -> Nodes:
    """Return the members of a Struct, or of the Structs in a counted array, by name; else {}."""
    if isinstance(node, Sequence):
        node = node.item
    return {f.name: f.node for f in node.visible()} if isinstance(node, Struct) else {}


def members(ch: Channel) -> Nodes:
    """Return the members of the messages of *ch* by name; {} if its definition cannot be used."""
    try:
        return {f.name: f.node for f in ch.layout.record.visible()}
    except DefinitionError:
        return {}


def frame_path(nodes: Nodes) -> str | None:
    """Return the path of the name of the coordinate frame among *nodes*, or None."""
    return "header.frame_id" if isinstance(nodes_of(nodes.get("header")).get("frame_id"), String) else None


def is_vector(node: Node | None, axes: str = "xyz") -> bool:
    """Return whether *node* is a Struct of floats named after *axes*."""
    nodes = nodes_of(node) if isinstance(node, Struct) else {}
    return list(nodes) == list(axes) and all(map(is_float, nodes.values()))


def axes(path: str, names: str = "xyz") -> tuple[str, ...]:
    """Return the paths of the components of the vector at *path*."""
    return tuple(f"{path}.{name}" for name in names)


@dataclass(frozen=True, slots=True)
class Columns:
    """Fields of all messages that could be decoded, one row per item.

    time    int64[k]  ns, repeated where a message holds several items
    values  by path, an array of k items
    row     int64[k]  the row of the channel's table that contains each item
    stamp   int64[k]  ns when the data were measured, according to the message; 0 if unknown
    """

    time: I64
    values: dict[str, NDArray[Any]]
    row: I64
    stamp: I64

    def stack(self, paths: Seq[str]) -> F64:
        """Return float64[k, len(paths)]: the values at *paths* as columns."""
        if not paths:
            return np.zeros((len(self.time), 0))
        return np.stack([np.asarray(self.values[path], np.float64) for path in paths], axis=-1)


def columns(
    ch: Channel,
    paths: Seq[str],
    start: int | None = None,
    end: int | None = None,
    stamp: Stamp | None = None,
) -> Columns:
    """Return the fields at *paths* of messages with start <= time < end (ns), as flat columns.

    Fields inside counted arrays must all be in the same array; the others are repeated for each of its items.
    """
    from logreel.log.columns import column_rows

    names = paths_with(paths, stamp)
    messages = column_rows(ch, names, start, end)
    fields = columns_by_path(names, messages)
    lists = {path: column.flat() for path, column in fields.items() if column.type in ("list", "array")}
    deep, times = next((rows for _, rows in lists.values()), None), messages.time
    values = {path: lists[path][0] if path in lists else column.items() for path, column in fields.items()}
    if deep is None:
        deep = np.arange(len(messages), dtype=np.int64)
    else:
        values = {path: value if path in lists else value[deep] for path, value in values.items()}
        times = times[deep]
    stamps = stamp.of(values) if stamp else np.zeros(len(deep), np.int64)
    return Columns(times, values, deep, stamps)


def paths_with(paths: Iterable[str], stamp: Stamp | None) -> list[str]:
    """Return the paths to read: *paths* and those of *stamp*, without repeats."""
    return list(dict.fromkeys([*paths, *(stamp.paths if stamp else ())]))


def columns_by_path(paths: Seq[str], messages: ChannelRows) -> dict[str, Column]:
    """Return the columns of rows that were read with *paths*, by path."""
    return dict(zip(paths, messages.columns, strict=True))


def stamps_of(stamp: Stamp | None, columns: Mapping[str, Column], n: int) -> I64:
    """Return int64[n]: ns of *stamp* for each of *n* rows, from columns by path; 0 where there is no stamp."""
    if stamp is None:
        return np.zeros(n, np.int64)
    return stamp.of({path: columns[path].flat()[0] for path in stamp.paths})


def rows(
    ch: Channel, paths: Seq[str], start: int | None = None, end: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield time in ns and the fields at *paths* of each message with start <= time < end (ns), see ``Column.at``.

    In file order; a few messages are decoded at a time.
    """
    return ((time, fields) for time, _, fields in stamped_rows(ch, paths, None, start, end))


def stamped_rows(
    ch: Channel, paths: Seq[str], stamp: Stamp | None, start: int | None = None, end: int | None = None
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the same as ``rows``, with the ns of *stamp* (0 without one) between time and fields."""
    from logreel.log.columns import column_batches

    names = list(dict.fromkeys(paths))
    wanted = paths_with(names, stamp)
    for batch in column_batches(ch, FEW, wanted, start, end, FEW_BYTES):
        column = columns_by_path(wanted, batch)
        stamps = stamps_of(stamp, column, len(batch)).tolist()
        for i, (time, own) in enumerate(zip(batch.time.tolist(), stamps, strict=True)):
            yield time, own, {name: column[name].at(i) for name in names}


def grouped(keys: I64) -> tuple[I64, I64]:
    """Return the first row of each run of equal keys, and int64[groups + 1]: the start of each run, and the end."""
    n = len(keys)
    first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1)) if n else np.zeros(0, np.int64)
    return first, np.append(first, n).astype(np.int64)
