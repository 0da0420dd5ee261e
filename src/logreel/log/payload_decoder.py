"""Protocols and helpers of decoders for payloads that a Layout alone does not describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.io.arrays import I64

if TYPE_CHECKING:
    from logreel.index.message_index import MessageIndex
    from logreel.index.ranges import PayloadRange
    from logreel.layout.arrow import Decoded
    from logreel.layout.layout import Layout


class PayloadDecoder(Protocol):
    """Decodes the payloads of one channel instead of the Layout kernel; the Layout then describes only the result."""

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode messages into Arrow arrays, one per visible member of *layout*; flat where messages hold many records.

        layout  the Layout of the channel, or a part of it
        rows    int64[n]: row numbers in the channel of the messages of *piece*
        """
        ...

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one message as ``msg.decode()`` returns it.

        row  row number of the message in the channel, or None if unknown

        Raises DamagedError if the bytes do not fit.
        """
        ...


class WholeChannelDecoder(PayloadDecoder, Protocol):
    """A PayloadDecoder with a faster way to decode all messages of a channel."""

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """Decode all messages as ``decode_batch`` does, and also return their times, int64[n] ns.

        explode  True: messages without records may be left out

        None if the faster way cannot be used for this channel.
        """
        ...


def until_next(times: I64) -> I64:
    """Return int64[n]: ns from each message to the next one; the last has the length of the one before, or 0."""
    gap = np.diff(times)
    return np.append(gap, gap[-1:] if len(gap) else np.zeros(len(times), np.int64))


def spread(times: I64, gap: I64, records: I64) -> I64:
    """Return a time for every record, spread evenly from its message to the next message of the channel.

    times    int64[k]  time of the messages that hold the records, ns
    gap      int64[k]  ns from each of these messages to the next one of the channel, see ``until_next``
    records  int64[k]  number of records in each of these messages

    Where time does not advance, the records of a message share its time.
    """
    step = np.where(gap > 0, gap, 0) / np.maximum(records, 1)
    first = np.cumsum(records) - records
    number = np.arange(int(records.sum()), dtype=np.int64) - np.repeat(first, records)
    out: I64 = np.repeat(times, records) + (np.repeat(step, records) * number).astype(np.int64)
    return out


def payloads(piece: PayloadRange) -> Iterator[bytes]:
    """Yield the payload of each message of a range."""
    view = memoryview(piece.data)  # type: ignore[arg-type]
    for at, size in zip(piece.offset.tolist(), piece.size.tolist(), strict=True):
        yield bytes(view[at : at + size])


def decoded(layout: Layout, rows: list[dict[str, Any]], bad: list[tuple[int, str]], n: int) -> Decoded:
    """Return Python values of messages as columns of the visible members of *layout*.

    rows  one dict per message that could be decoded
    bad   (row, reason) of each of the others
    n     number of all messages
    """
    import pyarrow as pa

    from logreel.layout.arrow import Decoded
    from logreel.layout.arrow_from_buffers import arrow_field

    arrays = []
    for f in layout.record.visible():
        kind = arrow_field(f).type
        found = pa.array([row[f.name] for row in rows], kind, from_pandas=False)
        # A projection may want only a part of a struct.
        arrays.append(found)
    kept = np.setdiff1d(np.arange(n), [i for i, _ in bad]) if bad else None
    return Decoded(arrays, kept, bad, np.zeros(0, np.int64), None)
