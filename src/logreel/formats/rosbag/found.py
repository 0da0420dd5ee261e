"""What reading a bag finds: the messages of chunks, and what their index says of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64

#: Blocks of files without chunks: relative positions must fit 32 bits.
MAX_SPAN = 1 << 31


@dataclass(slots=True)
class Found:
    """The messages of one chunk (or stretch of a file without chunks).

    chunk  its number, FILE if it lies in the file as it is
    pos    where it begins in the file, to report problems at
    base   what *entry* counts from
    end    where its data ends, in the file or in the unpacked chunk
    key    int64[n]    connection of each message; those of one connection are in file order
    time   int64[n]    ns
    entry  uint32[n]   start of the message's data
    size   uint32[n]   bytes of it
    """

    chunk: int
    pos: int
    base: int
    end: int
    key: NDArray[np.int64]
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Indexed:
    """The messages of all chunks as their index names them, run by run: a connection in a chunk.

    pos    int64[k]     where each chunk begins in the file
    data   int64[k]     where its data begins
    size   int64[k]     bytes that it unpacks to
    plain  True if no chunk is packed
    run    int64[m, 3]  number of the chunk, connection, messages; chunk by chunk
    time   int64[n]     ns, run after run
    entry  uint32[n]    where the record of each message begins in its chunk; ascending in each run
    span   int64[k, 2]  ns of the first and the last message of each chunk as the summary has them, -1 where it does not
    """

    pos: I64
    data: I64
    size: I64
    plain: bool
    run: I64
    time: I64
    entry: NDArray[np.uint32]
    span: I64 = field(default_factory=lambda: np.zeros((0, 2), np.int64))


@dataclass(frozen=True, slots=True)
class Claims:
    """What the index of a chunk says: start and size of the data (to be filled in), connection and time in ns."""

    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]
    conn: NDArray[np.uint32]
    time: I64
