"""Compiler from Layouts to the op tables of ``kernels.layout``, which fills columns, shared among threads.

Columns are in the order of the tree; ``layout/arrow.py`` takes their buffers in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.dataclass import NamedTuple, dataclass
from logreel.errors import FileChangedError
from logreel.io.arrays import I64, aligned, run, shares
from logreel.kernels import layout as kernel
from logreel.kernels.layout import ALIGN, BLOB, EXPECT, FIXED, LIST, REPEAT, REST, SKIP, STRINGS
from logreel.layout.nodes import (
    HIDDEN,
    MAX_SIZE,
    SCALARS,
    Align,
    Bytes,
    Expect,
    Field,
    FixedArray,
    Leaf,
    Measure,
    Node,
    Padding,
    Place,
    Rest,
    Scalar,
    Sequence,
    Skip,
    String,
    Struct,
    leaves_of,
    measure,
    packed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_COLUMN = -1

#: Arrays of structs with more runs of bytes than this become loops instead of being written out.
MAX_INLINE = 64


class Column(NamedTuple):
    """Content of one column.

    width   bytes of an element; 0 where there are only offsets
    counted whether the kernel counts elements and fills int32 offsets
    scope   the column whose elements contain this one's, or -1 for messages
    times   entries in each element of the scope
    """

    width: int
    counted: bool
    scope: int
    times: int


class ColumnBuffers(NamedTuple):
    """Memory for the columns of a Program, in s shares that are filled independently.

    buffers  per column its offsets (int32) if counted, then its bytes (uint8) if any: views of *arena*
    arena    uint8[a]
    offsets  int64[s, c]: start in *arena* of the offsets of each column and share, of which the first is set
    data     int64[s + 1, c]: start in *arena* of the bytes of each column and share, and the end of the last share
    """

    buffers: list[NDArray[Any]]
    arena: NDArray[np.uint8]
    offsets: I64
    data: I64


@dataclass(frozen=True, slots=True)
class Program:
    """Tables of ``kernels.layout``, ops int64[n, 6] and copies int64[m, 5], and the columns that they fill."""

    ops: NDArray[np.int64]
    copies: NDArray[np.int64]
    columns: tuple[Column, ...]

    def allocate(self, rows: list[int], counts: NDArray[np.int64]) -> ColumnBuffers:
        """Allocate exact memory for shares of messages: one block, so that the system backs it with huge pages.

        rows    number of messages of each of s shares
        counts  int64[s, c]  items of each column in each share, as counted by the kernel
        """
        counts = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
        entries, items = self._extent(np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]), counts)
        width = np.array([column.width for column in self.columns], np.int64)
        counted = np.array([column.counted for column in self.columns], bool)
        sizes = np.stack([np.where(counted, 4 * (entries[-1] + 1), 0), items[-1] * width], axis=1)
        ends = np.cumsum((sizes + 63) // 64 * 64).reshape(-1, 2)
        arena = aligned(int(ends.max(initial=0)))
        starts = ends - (sizes + 63) // 64 * 64
        buffers: list[NDArray[Any]] = []
        for i, (at, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
            if counted[i]:
                offsets = arena[at[0] : at[0] + size[0]].view(np.int32)
                offsets[entries[:-1, i]] = counts[:-1, i]
                buffers.append(offsets)
            if width[i] or not counted[i]:
                buffers.append(arena[at[1] : at[1] + size[1]])
        offset = np.where(counted, starts[:, 0] + 4 * entries[:-1], 0)
        return ColumnBuffers(buffers, arena, offset, starts[:, 1] + items * width)

    def _extent(self, rows: I64, counts: I64) -> tuple[I64, I64]:
        """Return int64[k, c] twice: entries and items of every column for these numbers of messages and counts."""
        entries = np.empty_like(counts)
        for i, column in enumerate(self.columns):
            entries[:, i] = column.times * (rows if column.scope < 0 else counts[:, column.scope])
        counted = np.array([column.counted for column in self.columns], bool)
        return entries, np.where(counted, counts, entries)


class Rooted(Protocol):
    """A Layout, which this module does not import."""

    @property
    def root(self) -> Struct | Sequence: ...


def compile_layout(layout: Rooted) -> Program:
    """Return the Program of *layout*; hidden members are skipped, not copied."""
    return compile_root(layout.root)


def compile_root(root: Struct | Sequence) -> Program:
    """Return the Program of a root node; hidden members are skipped, not copied."""
    emitter = _Emitter()
    emitter.node(root, NO_COLUMN, 1)
    emitter.flush()
    # At the end, because no Arrow array takes their buffers.
    for op in emitter.uncounted:
        op[1] = emitter.column(0, True, NO_COLUMN, 0)
    return Program(
        np.array(emitter.ops, np.int64).reshape(-1, 6),
        np.array(emitter.copies, np.int64).reshape(-1, 5),
        tuple(emitter.columns),
    )


class _Emitter:
    """Writer of ops; bytes of fixed size collect in a pending run until another op follows."""

    def __init__(self) -> None:
        self.ops: list[list[int]] = []
        self.copies: list[list[int]] = []
        self.columns: list[Column] = []
        self.sizes: dict[int, Measure] = {}
        #: Hidden lists of items without bytes, which are counted too: nothing else limits them.
        self.uncounted: list[list[int]] = []
        self.pending, self.first = 0, 0

    def flush(self) -> None:
        if self.pending:
            self.ops.append([FIXED, self.pending, self.first, len(self.copies), 0, 0])
        self.pending, self.first = 0, len(self.copies)

    def column(self, width: int, counted: bool, scope: int, times: int) -> int:
        self.columns.append(Column(width, counted, scope, times))
        return len(self.columns) - 1

    def op(self, code: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> None:
        self.flush()
        self.ops.append([code, a, b, c, d, e])

    def body(
        self, code: int, a: int, b: int, item: Node, scope: int, times: int, shown: bool = True, grid: int = 0
    ) -> None:
        """Add an op whose body is the ops of *item*."""
        self.op(code, a, b, 0, measure(item, self.sizes).least, grid)
        head = self.ops[-1]
        at = len(self.ops)
        self.node(item, scope, times, shown)
        self.flush()
        head[3] = len(self.ops) - at

    def node(self, node: Node, scope: int, times: int, shown: bool = True) -> None:
        """Add the ops of *node*, which occurs *times* in each element of *scope*."""
        extent = measure(node, self.sizes)
        if extent.size is not None and (extent.runs <= MAX_INLINE or not shown or not extent.size):
            self.fixed(node, extent.size, scope, times, shown)
            return
        match node:
            case Struct(fields=fields):
                for f in fields:
                    self.node(f.node, scope, times, shown and not isinstance(f.node, HIDDEN))
            case FixedArray(item=item, count=n):
                self.body(REPEAT, 0, n, item, scope, times * n, shown)
            case Sequence():
                self.sequence(node, scope, times, shown)
            case String(width=w, grid=grid, tail=tail):
                if grid is not None:
                    self.op(ALIGN, packed(grid))
                self.blob(w, 1, scope, times, shown, tail)
            case Bytes(width=w):
                self.blob(w, 1, scope, times, shown)
            case Align(grid=grid):
                self.op(ALIGN, packed(grid))
            case Expect(data=data):
                self.op(EXPECT, len(data), int.from_bytes(data.ljust(8, b"\0"), "little", signed=True))
            case Rest():
                self.op(REST, self.column(1, True, scope, times) if shown else NO_COLUMN)
            case Skip(node=inner):
                self.node(inner, scope, times, False)

    def fixed(self, node: Node, size: int, scope: int, times: int, shown: bool) -> None:
        """Add *size* bytes to the pending run, and the copies of their leaves."""
        for leaf in leaves_of(node, Place(), self.sizes) if shown and not isinstance(node, Padding) else ():
            self.leaf(leaf, scope, times)
        self.pending += size

    def leaf(self, leaf: Leaf, scope: int, times: int) -> None:
        step = leaf.width * len(leaf.runs)
        column = self.column(step, False, scope, times)
        if step:
            for run in leaf.runs:
                self.copies.append([self.pending + run, leaf.width, column, step, 0])
            self.copies[-1][4] = step

    def blob(
        self, prefix: int, item: int, scope: int, times: int, shown: bool, tail: int = 0, grid: int = 0
    ) -> None:
        if shown:
            self.op(BLOB, self.column(item, True, scope, times), prefix, item, tail, grid)
        else:
            self.op(SKIP, 0, prefix, item, 0, grid)
            self.uncounted += [self.ops[-1]] if item == 0 else []

    def sequence(self, node: Sequence, scope: int, times: int, shown: bool) -> None:
        item, prefix, grid = node.item, node.width, packed(node.grid)
        size = measure(item, self.sizes).size
        if size is not None and (not shown or (size > 0 and self.is_one_run(item, size))):
            self.blob(prefix, size, scope, times, shown, grid=grid)
        elif (
            isinstance(item, String | Bytes) and not grid and item in (String(item.width), Bytes(item.width))
        ):
            column = self.column(0, True, scope, times) if shown else NO_COLUMN
            text = self.column(1, True, column, 1) if shown else NO_COLUMN
            self.op(STRINGS, column, prefix, text, item.width)
        else:
            column = self.column(0, True, scope, times) if shown else NO_COLUMN
            self.body(LIST, column, prefix, item, column, 1, shown, grid)

    def is_one_run(self, item: Node, size: int) -> bool:
        """Return whether the bytes of *item* are exactly the bytes of one column."""
        if isinstance(item, Scalar):
            return SCALARS[item.type][1] == size
        if measure(item, self.sizes).runs > MAX_INLINE:
            return False
        leaves = list(leaves_of(item, Place(), self.sizes))
        return len(leaves) == 1 and leaves[0].width == size


#: Least number of messages for a thread.
SHARE = 1 << 14

SHORT, LEFTOVER, TOO_MANY = kernel.SHORT, kernel.LEFTOVER, kernel.TOO_MANY


class Crowded(Exception):
    """Raised where messages have more items without bytes than 32-bit offsets allow: take fewer at a time."""


def unsound(status: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return bool[n]: which messages do not decode."""
    return (status & 1).astype(bool)


def fit_together(start: I64, stop: I64) -> bool:
    """Return whether all messages together fit 32-bit offsets."""
    # An array of their sizes would cost page faults. Sums of places may overflow, their difference does not.
    size = (int(stop.sum()) - int(start.sum())) % (1 << 64)
    return size <= MAX_SIZE and bool((stop >= start).all())


def batches(start: I64, stop: I64) -> Iterator[slice]:
    """Yield slices of rows whose columns fit 32-bit offsets; single messages must be smaller than that."""
    # No column has more elements than its messages have bytes, except for items without bytes, see ``Crowded``.
    ends = np.cumsum(np.maximum(stop - start, 0))
    lo, n = 0, len(start)
    while lo < n:
        before = int(ends[lo - 1]) if lo else 0
        hi = int(np.searchsorted(ends, before + MAX_SIZE, side="right"))
        yield slice(lo, hi)
        lo = hi


def walk(
    program: Program,
    source: NDArray[np.uint8],
    start: I64,
    stop: I64,
    status: NDArray[np.uint8],
    cut: list[slice] | None = None,
    records: I64 | None = None,
) -> tuple[list[NDArray[Any]], int]:
    """Return buffers of all sound messages, for ``arrow_from_buffers.build_fields``, and the number of these messages.

    status   uint8[n]  set to 0 sound, SHORT, TOO_MANY or LEFTOVER (sound too)
    cut      shares of the messages for threads; None: chosen by their number
    records  int64[n]: number of records of fixed size in each message, if the reader has checked that messages contain
             nothing else; None: every message is walked and checked

    Raises Crowded where several messages have too many items for the columns, and FileChangedError where another
    process changed their bytes between counting and filling.
    """
    cut = shares(len(start), SHARE) if cut is None else cut
    counts = np.zeros((len(cut), len(program.columns)), np.int64)
    if records is None:
        good = run(
            [
                partial(kernel.count, source, start[rows], stop[rows], program.ops, counts[i], status[rows])
                for i, rows in enumerate(cut)
            ]
        )
    else:
        status[:] = 0
        good = [part.stop - part.start for part in cut]
        counts[:, program.ops[0, 1]] = [int(records[part].sum()) for part in cut]
    # Counts of a message that does not decode are taken back by reading it again.
    if counts.min(initial=0) < 0:
        raise bytes_changed()
    if len(start) > 1 and counts.sum(axis=0).max(initial=0) > MAX_SIZE:
        raise Crowded
    if sum(good) < len(start):
        sound = ~unsound(status)
        start, stop = start[sound], stop[sound]
        ends = np.cumsum(good).tolist()
        cut = [slice(hi - n, hi) for hi, n in zip(ends, good, strict=True)]
    out = program.allocate(good, counts)
    places = [(out.arena, out.data[i], out.data[i + 1], out.offsets[i], counts[i]) for i in range(len(cut))]
    fills = [
        partial(kernel.fill, source, start[rows], stop[rows], program.ops, program.copies, *to)
        for rows, to in zip(cut, places, strict=True)
    ]
    if not all(run(fills)):
        raise bytes_changed()
    return out.buffers, len(start)


def bytes_changed() -> FileChangedError:
    """Return the error for messages whose bytes differ between counting and filling."""
    text = "bytes of messages changed while they were decoded; what was read is not valid"
    return FileChangedError(text, hint="open the log again when nothing writes it")


def measuring(layout: Rooted) -> Program:
    """Return a Program for ``extent``: the message, then all remaining bytes as a last column."""
    return compile_root(Struct((Field("message", layout.root), Field("rest", Rest()))))


def extent(program: Program, source: NDArray[np.uint8], start: int, stop: int) -> int:
    """Return where the message at source[start] ends by its content, or -1 if that is after *stop*."""
    counts = np.zeros(len(program.columns), np.int64)
    first, last = np.array([start], np.int64), np.array([stop], np.int64)
    good = kernel.count(source, first, last, program.ops, counts, np.zeros(1, np.uint8))
    return stop - int(counts[-1]) if good else -1
