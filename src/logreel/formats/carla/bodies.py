"""Packets to columns: most packets of most kinds are empty, and need no walk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from logreel.formats.carla.clock import FRAME, Frames
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import Piece, pieces
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Sequence, measure
from logreel.log.side_columns import BesideReading, PlainBody

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded


class PacketReading(BesideReading):
    """Packets with the number of the frame that they lie in."""

    def __init__(self, frames: Frames, channel: int, body: PacketBody) -> None:
        super().__init__([FRAME.name], lambda _, rows: frames.numbers(channel, rows), body)
        self._frames = frames

    def whole(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """See Sweeping; empty packets are left out, since no row comes of them."""
        if not explode or not isinstance(layout.root, Sequence):
            return None
        (piece,) = pieces(index, channel, slice(None))
        full = np.flatnonzero(piece.size > layout.root.width)
        got = self.columns(index, layout, Piece(piece.data, piece.offset[full], piece.size[full]), full)
        if got.bad or len(got.leftover):
            return None
        return got, self._frames.times(channel, full)


class PacketBody(PlainBody):
    """Decodes packets; where records have one size, the walk of the file has seen that counts and sizes agree."""

    def columns(self, index: MessageIndex, layout: Layout, piece: Piece, rows: I64) -> Decoded:
        """See Reading."""
        from logreel.layout.arrow import decode_variable

        root = layout.root
        width = measure(root.item).size if isinstance(root, Sequence) else None
        if not isinstance(root, Sequence) or width is None:
            return super().columns(index, layout, piece, rows)
        full = np.flatnonzero(piece.size > root.width)
        start, size = piece.offset[full], piece.size[full]
        records = np.zeros(len(piece.size), np.int64)
        records[full], rest = np.divmod(size - root.width, width)
        if rest.any():
            return super().columns(index, layout, piece, rows)
        got = decode_variable(layout, piece.data, start, start + size, records=records[full])
        return replace(got, records=records)
