"""Rules that say where the times and sizes of messages are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.kernels import block_table


@dataclass(frozen=True, slots=True)
class FieldAt:
    """An unsigned integer that lies at a fixed distance from the payload of every message: value × mul + add."""

    offset: int
    width: int
    mul: int = 1
    add: int = 0


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Numbers that the reader keeps, one for each entry of the block table, in its order."""

    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """Numbers that the reader works out when asked: *get* gives int64[n] for messages that begin at int64[n] in data.

    Where messages begin is what the block table says: their payloads, unless the ChannelRules tells where those lie.
    """

    get: Callable[[Buffer, I64], I64]


def field_values(data: Buffer, offset: I64, word: FieldAt) -> I64:
    """int64[n]: the value of *word* for payloads that start at *offset* in *data*; held at the maximum of int64."""
    out = np.empty(len(offset), np.int64)
    if len(offset):
        field = np.array([(word.offset, word.width, 0, 8, word.mul)], block_table.FIELD)
        block_table.gather_at(data, np.ascontiguousarray(offset, np.int64), field, out.view(np.uint8))
    if word.add:
        out += word.add
    return out


def field_values_or_zero(data: Buffer, offset: I64, word: FieldAt) -> I64:
    """The same for a word that lies before the payload; 0 where the payload is not in *data*."""
    there = (offset >= -word.offset) & (offset <= len(data))
    out = np.zeros(len(offset), np.int64)
    out[there] = field_values(data, offset[there], word)
    return out


@dataclass(frozen=True, slots=True)
class SyntheticMessages:
    """Messages of one channel that the reader made: their place in the SYNTHETIC chunk and their times.

    place  ascending: where what each was made of lies in the file, as all other messages then do (not in chunks), so
           that it keeps its place among these; or None
    """

    offset: I64
    size: I64
    time: I64
    place: I64 | None = None


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """How the index answers for one channel.

    time     a FieldAt of the payload in ns, StoredValues or ComputedValues ns, or a function giving int64[n] where
    that is not enough
    size     a FieldAt, StoredValues or ComputedValues bytes, or the size that all messages have
    made     number of messages if the reader makes them, or a function giving it; else None
    payload  gives int64[n] payload starts and sizes for messages that begin at int64[n] in data, where the block table
             tells the place of something before the payload
    more     what else the format keeps beside a message, by name: ``publish_time`` in ns, ``sequence``, ``connection``
             (its number in ``headers`` of the channel's metadata)
    """

    time: FieldAt | StoredValues | ComputedValues | Callable[[Any], I64]
    size: FieldAt | StoredValues | ComputedValues | int
    synthetic: int | Callable[[], int] | None = None
    payload: Callable[[Buffer, I64], tuple[I64, I64]] | None = None
    more: Mapping[str, FieldAt | StoredValues] = field(default_factory=dict)
