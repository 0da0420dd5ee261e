"""Decode blocks whose columns are not only in the payload: the additional indexes lie in the descriptor before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from logreel.formats.bddf.collect import U32
from logreel.kernels import wireindex
from logreel.model.beside import BesideReading, Body, PlainBody, with_members
from logreel.model.chunks import FILE
from logreel.model.index import I64, MessageIndex
from logreel.model.layout import Field, Layout, Scalar
from logreel.model.pieces import places

__all__ = ["Body", "NumberedReading", "PlainBody", "distinct_names", "with_numbers"]


def with_numbers(layout: Layout, names: Sequence[str]) -> Layout:
    """*layout* with the additional indexes as int64 members before its own."""
    return with_members(layout, [Field(name, Scalar("int64")) for name in names])


def distinct_names(names: Sequence[str], layout: Layout) -> list[str]:
    """*names* as members can have them: none empty, none twice, none that the payload has too."""
    taken = {f.name for f in layout.record.visible()} | {"time"}
    found = []
    for i, name in enumerate(names):
        name = label = name or f"index_{i}"
        n = 1
        while label in taken:
            n += 1
            label = f"{name}_{n}"
        taken.add(label)
        found.append(label)
    return found


class NumberedReading(BesideReading):
    """Additional indexes as columns, and after them what *body* finds in the payload.

    head  uint32[n], per entry of the index: bytes of the descriptor
    """

    def __init__(self, channel: int, names: Sequence[str], head: U32, body: Body) -> None:
        super().__init__(names, self._numbers, body)
        self._channel, self._head = channel, head

    def _numbers(self, index: MessageIndex, rows: I64) -> list[np.ndarray[Any, Any]]:
        """int64[n] per additional index of some blocks."""
        out = np.zeros((len(rows), len(self._names)), np.int64)
        if len(rows):
            head = index.take(self._channel, self._head)[rows].astype(np.uint32)
            _, offset, _ = places(index, self._channel, rows)
            wireindex.numbers(index.chunks[FILE], np.ascontiguousarray(offset), head, out)
        return list(out.T)
