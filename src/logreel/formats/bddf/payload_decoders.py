"""Decode blocks whose columns are not only in the payload: the additional indexes lie in the descriptor before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.kernels import bddf
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar
from logreel.log.side_columns import LayoutDecoder, PayloadDecoder, SideColumnsDecoder, with_members

__all__ = ["LayoutDecoder", "NumberedDecoder", "PayloadDecoder", "distinct_names", "names_of", "with_numbers"]

_DIVIDES = re.compile(r"[.\[\]]")


def with_numbers(layout: Layout, names: Sequence[str]) -> Layout:
    """*layout* with the additional indexes as int64 members before its own."""
    return with_members(layout, [Field(name, Scalar("int64")) for name in names])


def distinct_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """*names* as members can have them: none empty, none twice, none of *taken*, and none that a path would divide."""
    used = set(taken)
    found = []
    for i, name in enumerate(names):
        name = label = _DIVIDES.sub("_", name) or f"index_{i}"
        n = 1
        while label in used:
            n += 1
            label = f"{name}_{n}"
        used.add(label)
        found.append(label)
    return found


def names_of(layout: Layout) -> set[str]:
    """What the columns of a table of *layout* are called."""
    return {f.name for f in layout.record.visible()} | {"time"}


class NumberedDecoder(SideColumnsDecoder):
    """Additional indexes as columns, and after them what *body* finds in the payload."""

    def __init__(self, channel: int, names: Sequence[str], body: PayloadDecoder) -> None:
        super().__init__(names, self._numbers, body)
        self._channel, self.logged = channel, tuple(names)

    def _numbers(self, index: MessageIndex, rows: I64) -> list[np.ndarray[Any, Any]]:
        """int64[n] per additional index of some blocks."""
        out = np.zeros((len(rows), len(self._names)), np.int64)
        if len(rows):
            bddf.gather_numbers(index.chunks[FILE], index.starts(self._channel)[rows], out)
        return list(out.T)
