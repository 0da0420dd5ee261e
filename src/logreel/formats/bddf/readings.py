"""Decode blocks whose columns are not only in the payload: the additional indexes lie in the descriptor before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.kernels import wireindex
from logreel.model.chunks import Buffer
from logreel.model.index import I64, MessageIndex
from logreel.model.layout import Field, Layout, Scalar, Struct
from logreel.model.layout import Sequence as Records
from logreel.model.pieces import Piece

if TYPE_CHECKING:
    from logreel.model.arrow import Decoded

_DIVIDES = re.compile(r"[.\[\]]")


class Body(Protocol):
    """Decodes payloads; see Reading."""

    def columns(self, index: MessageIndex, layout: Layout, piece: Piece, rows: I64) -> Decoded: ...
    def one(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]: ...


class PlainBody:
    """Decodes payloads that a Layout describes."""

    def __init__(self, layout: Layout) -> None:
        self._decode = layout.decoder()

    def columns(self, index: MessageIndex, layout: Layout, piece: Piece, rows: I64) -> Decoded:
        """See Reading."""
        from logreel.model.arrow import decode_variable

        return decode_variable(layout, piece.data, piece.offset, piece.offset + piece.size)

    def one(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See Reading."""
        return self._decode(data)


def with_numbers(layout: Layout, names: Sequence[str]) -> Layout:
    """*layout* with the additional indexes as int64 members before its own."""
    fields = tuple(Field(name, Scalar("int64")) for name in names)
    record = Struct((*fields, *layout.record.fields))
    return Layout(Records(record) if isinstance(layout.root, Records) else record, layout.name)


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


class NumberedReading:
    """Additional indexes as columns, and after them what *body* finds in the payload."""

    def __init__(self, channel: int, names: Sequence[str], body: Body) -> None:
        self._channel, self._names, self._body = channel, names, body

    def columns(self, index: MessageIndex, layout: Layout, piece: Piece, rows: I64) -> Decoded:
        """See Reading."""
        import pyarrow as pa

        from logreel.model.arrow import Decoded

        k = len(self._names)
        fields = layout.record.fields
        inner = Struct(fields[k:])
        got = self._body.columns(
            index,
            Layout(Records(inner) if isinstance(layout.root, Records) else inner, layout.name),
            piece,
            rows,
        )
        wanted = [i for i, f in enumerate(fields[:k]) if f.name]
        if not wanted:
            return got
        numbers = self._numbers(piece.data, index.starts(self._channel)[rows])
        if got.kept is not None:
            numbers = numbers[got.kept]
        if got.records is not None:
            numbers = np.repeat(numbers, got.records, axis=0)
        arrays = [pa.array(np.ascontiguousarray(numbers[:, i])) for i in wanted]
        return Decoded([*arrays, *got.arrays], got.kept, got.bad, got.leftover, got.records)

    def _numbers(self, data: Buffer, start: I64) -> I64:
        """int64[n, k]: the additional indexes of the blocks that begin at *start*."""
        out = np.zeros((len(start), len(self._names)), np.int64)
        if len(start):
            wireindex.numbers(data, start, out)
        return out

    def one(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See Reading; without *row* the additional indexes are not known and left out."""
        found = self._body.one(index, data, row)
        if row is None:
            return found
        chunk, start = index.place(self._channel, row)
        numbers = self._numbers(index.chunks[chunk], np.array([start], np.int64))[0].tolist()
        return dict(zip(self._names, numbers, strict=True)) | found
