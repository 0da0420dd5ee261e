"""Packets to columns: most packets of most kinds are empty, and need no walk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from logreel.model.beside import PlainBody
from logreel.model.index import I64, MessageIndex
from logreel.model.layout import Layout, Sequence, measure
from logreel.model.pieces import Piece

if TYPE_CHECKING:
    from logreel.model.arrow import Decoded


class PacketBody(PlainBody):
    """Decodes packets; where records have one size, the walk of the file has seen that counts and sizes agree."""

    def columns(self, index: MessageIndex, layout: Layout, piece: Piece, rows: I64) -> Decoded:
        """See Reading."""
        root = layout.root
        if not isinstance(root, Sequence) or measure(root.item).size is None:
            return super().columns(index, layout, piece, rows)
        full = np.flatnonzero(piece.size > root.width)
        if len(full) > len(piece.size) // 2:
            return super().columns(index, layout, piece, rows)
        some = Piece(piece.data, piece.offset[full], piece.size[full])
        got = super().columns(index, layout, some, rows[full])
        records = np.zeros(len(piece.size), np.int64)
        if got.records is None or got.bad:
            return super().columns(index, layout, piece, rows)
        records[full] = got.records
        return replace(got, leftover=full[got.leftover], records=records)
