"""Decoders of packets: most packets of most kinds have no records and are skipped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from logreel.formats.carla.clock import FRAME, Frames
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import PayloadRange, payload_ranges
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Sequence, measure
from logreel.log.side_columns import LayoutDecoder, SideColumnsDecoder

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded


class PacketDecoder(SideColumnsDecoder):
    """Decodes packets with the number of their frame as a column."""

    def __init__(self, frames: Frames, channel: int, body: PacketFieldsDecoder) -> None:
        super().__init__([FRAME.name], lambda _, rows: frames.numbers(channel, rows), body)
        self._frames = frames

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """See WholeChannelDecoder; packets without records are skipped."""
        if not explode or not isinstance(layout.root, Sequence):
            return None
        (piece,) = payload_ranges(index, channel, slice(None))
        full = np.flatnonzero(piece.size > layout.root.width)
        got = self.decode_batch(
            index, layout, PayloadRange(piece.data, piece.offset[full], piece.size[full]), full
        )
        if got.bad or len(got.leftover):
            return None
        return got, self._frames.times(channel, full)


class PacketFieldsDecoder(LayoutDecoder):
    """Decodes packets; for records of fixed size the number of records follows from the size of the packet."""

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.layout.arrow import decode_variable

        root = layout.root
        width = measure(root.item).size if isinstance(root, Sequence) else None
        if not isinstance(root, Sequence) or width is None:
            return super().decode_batch(index, layout, piece, rows)
        full = np.flatnonzero(piece.size > root.width)
        start, size = piece.offset[full], piece.size[full]
        records = np.zeros(len(piece.size), np.int64)
        records[full], rest = np.divmod(size - root.width, width)
        if rest.any():
            return super().decode_batch(index, layout, piece, rows)
        got = decode_variable(layout, piece.data, start, start + size, records=records[full])
        return replace(got, records=records)
