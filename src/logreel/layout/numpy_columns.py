"""Typed NumPy arrays from raw column bytes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.layout.nodes import SCALARS, Leaf

Buffer = NDArray[np.uint8]


def numpy_column(leaf: Leaf, buffer: Buffer, rows: int) -> NDArray[Any]:
    """Return the values of one leaf with shape ``(rows, *leaf.shape)``.

    buffer  uint8[rows * len(leaf.runs) * leaf.width], as the gather kernel fills it; the result is a view of
            it where the bytes are the values already

    Times and durations are int64 ns; a char array is ``S`` bytes, cut at its first NUL, without the last
    axis of the shape. Raises ValueError if *buffer* has another size.
    """
    if len(buffer) != rows * len(leaf.runs) * leaf.width:
        raise ValueError(f"{'.'.join(leaf.path)}: {len(buffer)} bytes do not hold {rows} rows")
    if leaf.type == "char":
        return padded_text(buffer, prod((rows, *leaf.shape[:-1])), leaf.shape[-1]).reshape(
            (rows, *leaf.shape[:-1])
        )
    return typed(leaf.type, buffer).reshape((rows, *leaf.shape))


def typed(kind: str, buffer: Buffer) -> NDArray[Any]:
    """Return a flat array of the values of scalars of one type (or ``time``, ``duration``) from their bytes."""
    if kind in ("time", "duration"):
        words = buffer.view("<u4" if kind == "time" else "<i4").reshape(-1, 2)
        # In place: one temporary array less for columns of millions of rows.
        ns: NDArray[np.int64] = words[:, 0].astype(np.int64)
        ns *= 1_000_000_000
        ns += words[:, 1]
        return ns
    values: NDArray[Any] = buffer != 0 if kind == "bool" else buffer.view(SCALARS[kind][0])
    return values


def text_lengths(chars: Buffer) -> NDArray[np.int64]:
    """Return the number of characters before the first NUL of each row of a uint8[n, width] array."""
    n, width = chars.shape
    if width == 0:
        return np.zeros(n, np.int64)
    end = chars == 0
    lengths: NDArray[np.int64] = np.where(end.any(axis=1), end.argmax(axis=1), width)
    return lengths


def padded_text(buffer: Buffer, count: int, width: int) -> NDArray[np.bytes_]:
    """Return *count* NUL-padded texts of *width* bytes as an ``S`` array; bytes after a NUL are dropped."""
    if width == 0:
        return np.zeros(count, "S1")
    chars = buffer.reshape(count, width)
    keep = np.arange(width) < text_lengths(chars)[:, None]
    return np.where(keep, chars, np.uint8(0)).view(f"S{width}").reshape(count)
