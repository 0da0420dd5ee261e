"""Column buffers from messages of any Layout, by ``kernels.layout``, shared among threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import FileChangedError
from logreel.io.arrays import I64, run, shares
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import MAX_SIZE, Field, Rest, Struct
from logreel.layout.program import Program, compile_layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Least number of messages for a thread.
SHARE = 1 << 14

SHORT, LEFTOVER, TOO_MANY = kernel.SHORT, kernel.LEFTOVER, kernel.TOO_MANY


class Crowded(Exception):
    """Raised where messages have more items without bytes than 32-bit offsets allow: take fewer at a time."""


def unsound(status: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return bool[n]: which messages do not decode."""
    return (status & 1).astype(bool)


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
        raise _changed()
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
        raise _changed()
    return out.buffers, len(start)


def _changed() -> FileChangedError:
    text = "bytes of messages changed while they were decoded; what was read is not valid"
    return FileChangedError(text, hint="open the log again when nothing writes it")


def measuring(layout: Layout) -> Program:
    """Return a Program for ``extent``: the message, then all remaining bytes as a last column."""
    return compile_layout(Layout(Struct((Field("message", layout.root), Field("rest", Rest())))))


def extent(program: Program, source: NDArray[np.uint8], start: int, stop: int) -> int:
    """Return where the message at source[start] ends by its content, or -1 if that is after *stop*."""
    counts = np.zeros(len(program.columns), np.int64)
    first, last = np.array([start], np.int64), np.array([stop], np.int64)
    good = kernel.count(source, first, last, program.ops, counts, np.zeros(1, np.uint8))
    return stop - int(counts[-1]) if good else -1
