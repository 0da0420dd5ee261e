"""How messages become records where their bytes are no little-endian walk."""

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
    """Takes the place of the Layout kernel for one channel, whose Layout then says only what comes out."""

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Messages as Arrow arrays, one per visible member of *layout*, flat where a message holds many records.

        layout  the channel's, or a part of it
        rows    int64[n]: numbers of the messages of *piece* in their channel
        """
        ...

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """One message as ``msg.decode()`` shows it; *row* is its number in the channel, where that is known.

        Raises DamagedError where the bytes do not fit.
        """
        ...


class WholeChannelDecoder(PayloadDecoder, Protocol):
    """A PayloadDecoder that has a shorter way to all messages of a channel."""

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """What ``columns`` gives for all messages, and int64[n] times in ns; None where the short way is none.

        explode  messages without records may be left out
        """
        ...


def spread(times: I64, rows: I64, records: I64) -> I64:
    """A time for every record: spread evenly from its message to the next one of the channel.

    times    int64[n]  ns of all messages of the channel
    rows     int64[k]  the messages that the records are of
    records  int64[k]  how many each of them has

    The last message takes the step of the one before. Where time stands still or goes back, the records of a message
    share its time.
    """
    gap = np.diff(times)
    gap = np.append(gap, gap[-1:] if len(gap) else np.zeros(1, np.int64))[rows]
    step = np.where(gap > 0, gap, 0) / np.maximum(records, 1)
    first = np.cumsum(records) - records
    number = np.arange(int(records.sum()), dtype=np.int64) - np.repeat(first, records)
    out: I64 = np.repeat(times[rows], records) + (np.repeat(step, records) * number).astype(np.int64)
    return out


def payloads(piece: PayloadRange) -> Iterator[bytes]:
    """The bytes of each message of a piece."""
    view = memoryview(piece.data)  # type: ignore[arg-type]
    for at, size in zip(piece.offset.tolist(), piece.size.tolist(), strict=True):
        yield bytes(view[at : at + size])


def decoded(layout: Layout, rows: list[dict[str, Any]], bad: list[tuple[int, str]], n: int) -> Decoded:
    """Plain values of the messages that could be read, as columns of the members that *layout* shows.

    rows  those that could be read
    bad   number and reason of the others, of *n* in all
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
