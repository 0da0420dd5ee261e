"""Chosen messages of a channel as columns with one row per message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct, measure
from logreel.layout.numpy_columns import Column
from logreel.log.columns import ChannelRows, ColumnReader, RowOptions
from logreel.log.log import Channel

#: Booleans of a message that are looked at.
MOST_BOOLEANS = 64
#: One row per message; messages that cannot be decoded are left out, or become a row of nulls.
WHOLE, _GAPS = RowOptions(explode=False, gaps=False), RowOptions(explode=False)


def read_rows(channel: Channel, rows: I64) -> tuple[list[Column], I64]:
    """Return columns of messages at *rows*, one row per message, and int64[k]: which of them could be decoded."""
    read = _read(channel, rows, WHOLE)
    kept = np.arange(len(rows), dtype=np.int64)
    if len(read) != len(rows):
        gaps = _read(channel, rows, _GAPS)
        good = np.zeros(len(rows), bool)
        for column in gaps.columns:
            good |= True if column.valid is None else column.valid
        kept = np.flatnonzero(good)
        if len(kept) != len(read):
            kept = np.flatnonzero([len(_read(channel, rows[i : i + 1], WHOLE)) for i in range(len(rows))])
    return [*read.columns], kept


def replaced_texts(channel: Channel) -> list[str]:
    """Return a sentence with the number of messages of *channel* whose text is not UTF-8; none if there are none."""
    count = 0
    for message in channel.log.messages([channel.topic], order="file"):
        # Text may contain the character itself.
        with contextlib.suppress(LogError):
            count += "\ufffd" in repr(message.decode()) and "\ufffd".encode() not in bytes(message.data)
    text = f"text in {count} messages of {channel.topic!r} is not UTF-8: U+FFFD stands for what is not"
    return [text] if count else []


def odd_booleans(channel: Channel) -> list[str]:
    """Return a sentence with the number of messages with bytes for true other than 1; none if there are none.

    Only for messages of a fixed size, in which programs leave bytes that they never set.
    """
    try:
        places = list(_boolean_places(channel.layout.root, 0)) if channel.is_uniform else []
    except LogError:
        return []
    index, count = channel.log.index, 0
    for chunk, start in index.payloads_by_chunk(channel.number) if places else ():
        odd = np.zeros(len(start), bool)
        for place in places[:MOST_BOOLEANS]:
            odd |= FieldAt(place, 1).read(index.chunks[chunk], start) > 1
        count += int(np.count_nonzero(odd))
    return [f"{count} messages of {channel.topic!r} have other bytes than 1 for true: they become 1"] * (
        count > 0
    )


def _boolean_places(node: Node, at: int) -> Iterator[int]:
    """Yield the offsets of the booleans in a value of fixed size that begins at *at*."""
    match node:
        case Scalar(type="bool"):
            yield at
        case Struct(fields=fields):
            for f in fields:
                yield from _boolean_places(f.node, at)
                at += measure(f.node).size or 0
        case FixedArray(item=item, count=count) if any(True for _ in _boolean_places(item, 0)):
            for i in range(count):
                yield from _boolean_places(item, at + i * (measure(item).size or 0))


def _read(channel: Channel, rows: I64, shape: RowOptions) -> ChannelRows:
    n = len(rows)
    if n and int(rows[-1]) - int(rows[0]) == n - 1 and (np.diff(rows) == 1).all():
        return ColumnReader(channel, None, shape).read(slice(int(rows[0]), int(rows[0]) + n))
    return ColumnReader(channel, None, shape).read(rows)
