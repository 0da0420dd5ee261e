"""Writing of bags of version 2.0: chunks with their index, then a summary; the file header is completed at the end.

A bag that is continued begins with the chunks of the old one; the new summary repeats the records of the old summary.
"""

from __future__ import annotations

import bz2
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.old_bag import OldSummary
from logreel.formats.rosbag.records import (
    U32,
    U64,
    fields_bytes,
    file_header_bytes,
    record_bytes,
    record_head,
)
from logreel.formats.rosbag.write_channels import Declared
from logreel.formats.rosbag.writer_base import BagWriter
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.log.schema import Schema

MAGIC = b"#ROSBAG V2.0\n"
CHUNK_BYTES = 768 << 10
#: Largest chunk_bytes: the last message can double the size of a chunk, and sizes have 32 bits.
LARGEST = (1 << 31) - 1
#: Greatest number of a connection.
LAST_CONNECTION = (1 << 32) - 1
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])


def _lz4(data: bytes) -> bytes:
    # ROS refuses frames with other flags.
    import lz4.frame

    packer = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX1MB, block_linked=False, content_checksum=True
    )
    packed: bytes = packer.begin() + packer.compress(data) + packer.flush()
    return packed


_PACK: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "lz4": _lz4}


@dataclass(frozen=True, slots=True)
class _Info:
    """A chunk that was written: offset, first and last time in ns, uint32[k, 2] connections and numbers of messages."""

    pos: int
    start: int
    end: int
    counts: NDArray[np.uint32]


class BagV20Writer(BagWriter):
    """Writes version 2.0.

    old  what the bag that is continued has besides chunks, which are in *out* already; None for a new bag
    """

    def __init__(
        self, out: Appender, compression: str, chunk_bytes: int | None, old: OldSummary | None = None
    ) -> None:
        super().__init__(out)
        known = ("none", *_PACK)
        if compression not in known:
            raise UsageError(f"compression {compression!r}; a bag has {', '.join(known)}")
        if chunk_bytes is not None and not 0 < chunk_bytes <= LARGEST:
            raise UsageError(f"chunks of {chunk_bytes} bytes; a bag has chunks of 1 to {LARGEST}")
        self._compression, self._limit = compression, chunk_bytes or CHUNK_BYTES
        self._has_default_limit = chunk_bytes is None
        self._old = old
        #: Number and connection record of each line; see ``BagWriter``.
        self._lines_known: list[tuple[int, bytes]] = []
        #: Connection records of the summary, in its order.
        self._connections: list[bytes] = list(old.connections.values()) if old else []
        self._index_order = old.index_order if old else ()
        self._next = max(old.connections, default=-1) + 1 if old else 0
        self._infos: list[_Info] = []
        self._begin_chunk()
        if old is None:
            self.out.write(MAGIC + self._header(0, 0))
            self.out.commit()
        else:
            # Until the new summary is written, readers must not look for one.
            self.out.patch(len(MAGIC), self._header(0, 0))

    def add(self, declared: Declared) -> int:
        """Add a channel with one or more connections."""
        for header in declared.headers:
            if self._next > LAST_CONNECTION:
                raise UsageError("the bag has used all numbers for connections")
            inner = {
                **header,
                "type": declared.type,
                "md5sum": declared.md5,
                "message_definition": declared.text,
            }
            data = fields_bytes({name: value.encode() for name, value in inner.items()})
            named = {"conn": U32.pack(self._next), "topic": declared.topic.encode()}
            self._connections.append(record_bytes(records.OP_CONNECTION, named, data))
            self._add_line(self._next, self._connections[-1])
            self._next += 1
        return len(declared.headers)

    def continue_channel(
        self, topic: str, schema: Schema, declared: Declared, numbers: Sequence[int]
    ) -> None:
        """Add a channel of the old bag with its connections, whose *numbers* stay the same."""
        connections = {} if self._old is None else self._old.connections
        for number in numbers:
            self._add_line(number, connections[number])
        self.add_old_channel(topic, schema, declared, len(numbers))

    def _add_line(self, number: int, record: bytes) -> None:
        self._lines_known.append((number, record))
        head = record_head(records.OP_MESSAGE, {"conn": U32.pack(number), "time": bytes(8)}, 0)
        self._headers.add(head, size_at=len(head) - 4, time_at=len(head) - 12)

    def use_chunk_sizes(self, sizes: Sequence[int]) -> None:
        """Use the chunk size of the first source bag that has chunks, unless a size was given."""
        limit = typical_limit(sizes)
        if self._has_default_limit and limit:
            self._limit, self._has_default_limit = limit, False

    def declare(self, number: int) -> None:
        """Add a connection record to the chunk."""
        self._put(np.frombuffer(self._lines_known[number][1], np.uint8))

    def batch_limit(self) -> int:
        """Return the bytes that may still be added to the chunk."""
        return self._limit - self._bytes

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Add records to the chunk, and close it if it is full."""
        self._entries.append((channel, time, place + self._bytes))
        self._put(made)
        if self._bytes > self._limit:
            self._close_chunk()

    def _put(self, part: NDArray[np.uint8]) -> None:
        self._content.append(part.data)
        self._bytes += part.nbytes

    def _begin_chunk(self) -> None:
        self._content: list[memoryview] = []
        self._bytes = 0
        self._entries: list[tuple[NDArray[np.int32], I64, I64]] = []

    def commit(self) -> None:
        """Close the chunk, so that its messages can be read."""
        if self._entries:
            self._close_chunk()

    def _close_chunk(self) -> None:
        pos = self.out.tell()
        pack = _PACK.get(self._compression)
        content = self._content if pack is None else [memoryview(pack(b"".join(self._content)))]
        head = {"compression": self._compression.encode(), "size": U32.pack(self._bytes)}
        self.out.write(record_head(records.OP_CHUNK, head, sum(map(len, content))))
        for part in content:
            self.out.write(part)
        number, time, place = _ordered(*(np.concatenate(parts) for parts in zip(*self._entries, strict=True)))
        entries = np.empty(len(time), ENTRY)
        entries["sec"], entries["nsec"] = np.divmod(time, 10**9)
        entries["offset"] = place
        first = np.append(0, np.flatnonzero(np.diff(number)) + 1)
        numbers = np.array([self._lines_known[line][0] for line in number[first].tolist()], np.int64)
        count = np.diff(np.append(first, len(number)))
        for one, lo, n in zip(numbers.tolist(), first.tolist(), count.tolist(), strict=True):
            named = {"ver": U32.pack(1), "conn": U32.pack(one), "count": U32.pack(n)}
            data = entries[lo : lo + n].tobytes()
            self.out.write(record_bytes(records.OP_INDEX, named, data, self._index_order))
        self.out.commit()
        counts = np.stack((numbers, count), axis=1).astype("<u4")
        self._infos.append(_Info(pos, int(time.min()), int(time.max()), counts))
        self._begin_chunk()

    def finish(self) -> None:
        """Write the summary, and complete the file header."""
        at = self.out.tell()
        for record in (*self._connections, *(self._old.infos if self._old else ())):
            self.out.write(record)
        for info in self._infos:
            named = {
                "ver": U32.pack(1),
                "chunk_pos": U64.pack(info.pos),
                "start_time": _time(info.start),
                "end_time": _time(info.end),
                "count": U32.pack(len(info.counts)),
            }
            self.out.write(record_bytes(records.OP_CHUNK_INFO, named, info.counts.tobytes()))
        self.out.commit()
        self.out.patch(len(MAGIC), self._header(at, len(self._connections)))

    def _header(self, index_pos: int, connections: int) -> bytes:
        chunks = len(self._infos) + (len(self._old.infos) if self._old else 0) if index_pos else 0
        if self._old is not None:
            return self._old.header.with_values(
                {b"index_pos": index_pos, b"conn_count": connections, b"chunk_count": chunks}
            )
        named = {
            "index_pos": U64.pack(index_pos),
            "conn_count": U32.pack(connections),
            "chunk_count": U32.pack(chunks),
        }
        return file_header_bytes(named)


def _ordered(number: NDArray[np.int32], time: I64, place: I64) -> tuple[NDArray[np.int32], I64, I64]:
    """Return the messages of a chunk ordered by connection, in a connection by time."""
    rising = bool((time[1:] >= time[:-1]).all())
    if rising and bool((number == number[0]).all()):
        return number, time, place
    # Usually times ascend, so that sorting by connection is enough.
    order = np.argsort(number, kind="stable") if rising else np.lexsort((time, number))
    return number[order], time[order], place[order]


def typical_limit(sizes: Sequence[int]) -> int:
    """Return the limit that closes chunks at the same messages as in a bag with chunks of *sizes*; 0: unknown."""
    whole = sizes[:-1]
    # Chunks that were closed by a flush are smaller.
    median = statistics.median(whole) if whole else 0
    typical = [size for size in whole if 2 * size > median]
    return min(max(0, min(typical, default=0) - 1), LARGEST)


def _time(ns: int) -> bytes:
    return U32.pack(ns // 10**9) + U32.pack(ns % 10**9)
