"""Decode blocks whose columns are not only in the payload: the additional indexes lie in the descriptor before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.formats.bddf.collect import U32
from logreel.kernels import wireindex
from logreel.model.chunks import FILE
from logreel.model.index import I64, MessageIndex
from logreel.model.layout import Field, Layout, Scalar, Struct
from logreel.model.layout import Sequence as Records
from logreel.model.pieces import Piece

if TYPE_CHECKING:
    from logreel.model.arrow import Decoded


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


class NumberedReading:
    """Additional indexes as columns, and after them what *body* finds in the payload.

    head  uint32[n], per entry of the index: bytes of the descriptor
    """

    def __init__(self, channel: int, names: Sequence[str], head: U32, body: Body) -> None:
        self._channel, self._names, self._head, self._body = channel, names, head, body

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
        numbers = self._numbers(index, piece.data, piece.offset, rows)
        if got.kept is not None:
            numbers = numbers[got.kept]
        if got.records is not None:
            numbers = np.repeat(numbers, got.records, axis=0)
        arrays = [pa.array(np.ascontiguousarray(numbers[:, i])) for i in wanted]
        return Decoded([*arrays, *got.arrays], got.kept, got.bad, got.leftover, got.records)

    def _numbers(self, index: MessageIndex, data: np.ndarray[Any, Any], offset: I64, rows: I64) -> I64:
        """int64[n, k]: the additional indexes of some blocks."""
        out = np.zeros((len(rows), len(self._names)), np.int64)
        if len(rows):
            head = index.take(self._channel, self._head)[rows].astype(np.uint32)
            wireindex.numbers(data, np.ascontiguousarray(offset), head, out)
        return out

    def one(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See Reading; without *row* the additional indexes are not known and left out."""
        found = self._body.one(index, data, row)
        if row is None:
            return found
        rows = np.array([row], np.int64)
        offset = index.offsets(self._channel)[rows]
        numbers = self._numbers(index, index.chunks[FILE], offset, rows)[0].tolist()
        return dict(zip(self._names, numbers, strict=True)) | found
