"""Messages that a chunk holds and its index leaves out, though the index agrees with itself and with the summary.

Only the chunk can tell. At opening the first and the last chunk are asked, since recorders that leave out messages do
it everywhere; the others when their messages are first asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.rosbag.chunks import Buffer, Chunk, unpack
from logreel.formats.rosbag.reader import Stretch, pass_over, read_stretch
from logreel.formats.rosbag.records import BadRecord
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.io.source import Source

#: Bytes of a message record besides its data: two lengths and the fields conn, op and time.
SMALLEST = 46
#: A chunk that is larger than writers make them is not looked at when the bag is opened, nor one in bz2, which is slow.
PROBED_BYTES = 4 << 20


def probe(source: Source, chunks: list[Chunk], named: I64) -> None:
    """Look into the first and the last chunk; raises BadRecord if there are more messages than the index names.

    named  int64[k]  messages of each chunk in the index
    """
    for k in np.flatnonzero(named == 0).tolist():
        if chunks[k].stored:
            raise BadRecord(f"it names no message of the chunk at {chunks[k].pos}")
    for k in {0, len(chunks) - 1} if chunks else ():
        chunk = chunks[k]
        if max(chunk.size, chunk.stored) > PROBED_BYTES or chunk.compression == "bz2":
            continue
        data = unpack(source, chunk).data
        more = _count(data, 0, len(data)) - int(named[k])
        if more > 0:
            raise BadRecord(f"it leaves out {more} messages of the chunk at {chunk.pos}")


def omitted(size: NDArray[np.uint32], data: Buffer, base: int, end: int, pos: int) -> Problem | None:
    """What to report of a chunk whose index leaves out messages, None if it has them all.

    size             uint32[n]  of each message that it names, all of which were found
    data, base, end  the bytes that hold the chunk, and where it lies in them
    pos              where the chunk begins in the file
    """
    room = end - base - SMALLEST * len(size) - int(size.sum(dtype=np.int64))
    # Where no other message has room nothing need be read.
    more = _count(data, base, end) - len(size) if not 0 <= room < SMALLEST else 0
    if more <= 0:
        return None
    text = f"the index of a chunk leaves out {more} messages that are in it: they are not shown"
    return Problem("index", pos, 0, True, text)


def _count(data: Buffer, base: int, end: int) -> int:
    found, _ = read_stretch(Stretch(Source(data, ""), FILE, base, end), pass_over, [])
    return sum(len(part.key) for part in found)
