"""Padding after the content of CDR messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.index.gather import PayloadRange
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Skip, Struct
from logreel.layout.program import Program, compile_layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Writers of CDR append zeros up to a multiple of four bytes: at most this many.
PADDING = 3


def is_padded(metadata: Mapping[str, Any]) -> bool:
    """Return whether messages of a channel with this metadata may end with padding."""
    return metadata.get("message_encoding") == "cdr"


def skipping(layout: Layout) -> Program:
    """Return a Program that finds the end of messages without copying their content."""
    return compile_layout(Layout(Struct((Field("", Skip(layout.root)),))))


def too_long(program: Program, piece: PayloadRange, rows: I64) -> I64:
    """Return those *rows* of a range that have more than padding after their content.

    program  the result of ``skipping`` for the Layout of these messages
    rows     messages with bytes after their content
    """
    start, end = piece.offset[rows], piece.offset[rows] + piece.size[rows]
    zeros, fits = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    counts = np.zeros(len(program.columns), np.int64)
    for size in range(1, PADDING + 1):
        last = np.maximum(end - size, start)
        zeros &= (last == end - size) & (piece.data[last] == 0)
        status: NDArray[np.uint8] = np.zeros(len(rows), np.uint8)
        kernel.count(piece.data, start, last, program.ops, counts, status)
        fits |= zeros & (status == 0)
    return rows[~fits]
