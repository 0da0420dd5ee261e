"""Call everything that reads a log once; damage tests do so for each damaged file."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from itertools import islice

import numpy as np

import logreel
from logreel.errors import LogError, UnsupportedError
from logreel.io.source import Readable
from logreel.layout.nodes import parse_path
from logreel.lenses import Position, lenses
from logreel.log.log import Log
from logreel.outputs.media import clouds, pictures

#: Bytes behind the last message of a channel that a kernel might read by mistake.
ROOM = 64
#: Digests of what the columns depend on that were read in this process.
_READ: set[bytes] = set()
#: So many fields of a channel are read one by one, and so many messages decoded; the rest comes as tables.
FEW = 4


def full_read(data: Readable) -> Log | None:
    """Return the log after reading all of it; None if it cannot be opened.

    Only errors of logreel and of the system are caught.
    """
    try:
        log = logreel.open(data)
    except (LogError, OSError):
        return None
    _overview(log)
    for ch in log.channels.values():
        _channel(ch)
    with suppress(LogError):
        log.tables()
    for message in islice(log.messages(list(log.channels)), 50):
        _decode(message)
    for message in islice(log.messages(order="file", reverse=True), 20):
        _decode(message)
    return log


def _overview(log: Log) -> None:
    assert log.size >= 16
    assert log.start is None or log.end is None or log.start <= log.end
    for part in (log.metadata, log.attachments, log.parameters, log.text, log.utc_offset, repr(log)):
        assert part is not Ellipsis
    for name, attachment in log.attachments.items():
        assert len(attachment.read()) == attachment.size, name
    for problem in log.problems:
        assert problem.as_dict()["text"]
        assert 0 <= problem.offset <= problem.offset + problem.size <= log.size, problem
    assert len(log.index) == sum(map(len, log.channels.values()))


def _channel(ch: logreel.Channel) -> None:
    n = len(ch)
    assert len(ch.times) == len(log_offsets(ch)) == n
    assert (ch.start is None) == (n == 0)
    with suppress(LogError):
        if (same := _what_columns_depend_on(ch)) not in _READ:
            _columns(ch)
            _READ.add(same)
        for lens in lenses(ch):
            if isinstance(lens, Position):
                assert all(len(column) == n for column in lens.track(ch))
            for name, write in (("pictures", pictures.write_picture), ("clouds", clouds.write_ply)):
                for one in islice(getattr(lens, name)(ch), FEW) if hasattr(lens, name) else ():
                    with suppress(UnsupportedError):
                        assert write(one).suffix


def _columns(ch: logreel.Channel) -> None:
    n = len(ch)
    assert ch.to_arrow().num_rows == n
    for name in ch.fields[:FEW]:
        parse_path(name)
        assert len(ch[name]) == n
    assert sum(b.num_rows for b in islice(ch.batches(1000), 2)) == min(n, 2000)


def _what_columns_depend_on(ch: logreel.Channel) -> bytes:
    """Return a digest of type, places, times and bytes of all messages, and of the room behind the last one.

    Of two cuts of a log, most channels have the same; their columns are read once.
    """
    index, offset = ch.log.index, log_offsets(ch)
    size = index.sizes(ch.number)
    buffers = [index.chunks[int(chunk)] for chunk in np.unique(index.chunk_of(ch.number))]
    first, last = (int(offset.min()), int((offset + size).max())) if len(offset) else (0, 0)
    rooms = [min(len(buffer) - last, ROOM) for buffer in buffers]
    digest = hashlib.sha256(repr((ch.log.format, ch.topic, ch.layout, ch.metadata, rooms)).encode())
    for part in (offset, size, ch.times, *(buffer[first:last] for buffer in buffers)):
        digest.update(bytes(part))
    return digest.digest()


def log_offsets(ch: logreel.Channel) -> np.ndarray:
    """Return the payload offsets, int64[n], after checking that the payloads are inside their buffer."""
    index = ch.log.index
    offset, size = index.offsets(ch.number), index.sizes(ch.number)
    if len(offset):
        buffer = index.chunks[int(index.chunk_of(ch.number)[0])]
        assert offset.min() >= 0
        assert size.min() >= 0
        assert (offset + size).max() <= len(buffer)
    return offset


def _decode(message: logreel.Message) -> None:
    with suppress(LogError):
        message.decode()
