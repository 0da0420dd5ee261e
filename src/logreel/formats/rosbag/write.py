"""Bags of version 2.0 being written: chunks with their index, then a summary; the header is completed at the end."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.rosbag import records
from logreel.model.appender import Appender
from logreel.model.heads import Heads
from logreel.model.layout import Layout
from logreel.model.schema import Schema
from logreel.model.writer import Payload, Sink
from logreel.schemas import ros1msg

I64 = NDArray[np.int64]
MAGIC = b"#ROSBAG V2.0\n"
#: Header and data of the bag header together, so that it can be completed in place.
HEADER_BYTES = 4096 - 8
CHUNK_BYTES = 768 << 10
LARGEST = (1 << 31) - 1
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


def _lz4(data: bytes) -> bytes:
    # Genuine ROS refuses frames with other flags than these.
    import lz4.frame

    packer = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX1MB, block_linked=False, content_checksum=True
    )
    packed: bytes = packer.begin() + packer.compress(data) + packer.flush()
    return packed


_PACK: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "bz2": bz2.compress, "lz4": _lz4}


@dataclass(frozen=True, slots=True)
class _Info:
    """A chunk that was written: where, its times, messages by connection."""

    pos: int
    start: int
    end: int
    counts: dict[int, int]


class BagSink(Sink):
    """Writes version 2.0.

    compression  of chunks: ``none``, ``bz2`` or ``lz4``, as genuine ROS reads them
    chunk_bytes  a chunk is closed when it has grown beyond this, or when the file is flushed
    """

    title = "a ROS bag"

    def __init__(self, out: Appender, *, compression: str = "none", chunk_bytes: int = CHUNK_BYTES) -> None:
        super().__init__(out)
        if compression not in _PACK:
            raise UsageError(f"compression {compression!r}; a bag has {', '.join(_PACK)}")
        self._compression, self._limit = compression, min(max(1, chunk_bytes), LARGEST)
        self._heads = Heads()
        self._connections: list[bytes] = []
        self._layouts: list[Layout | None] = []
        self._written: set[int] = set()
        self._infos: list[_Info] = []
        self._begin_chunk()
        self.out.write(MAGIC + self._bag_header(0))
        self.out.commit()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a connection.

        metadata  ``md5sum`` (worked out where it is not given), ``callerids`` and ``latching`` as channels have them
        """
        if schema.encoding != "ros1msg":
            raise DefinitionError(f"channel {topic!r} of a bag needs a schema of encoding 'ros1msg'")
        stated = str(metadata.get("md5sum", ""))
        layout, text, md5 = _define(schema, stated)
        inner = {"topic": topic, "type": schema.name, "md5sum": stated or md5, "message_definition": text}
        callers = list(metadata.get("callerids", ()))
        inner |= {"callerid": str(callers[0])} if callers else {}
        inner |= {"latching": "1"} if metadata.get("latching") else {}
        conn = _U32.pack(number)
        data = _fields({name: value.encode() for name, value in inner.items()})
        self._connections.append(
            _record(records.OP_CONNECTION, {"conn": conn, "topic": topic.encode()}, data)
        )
        head = _fields({"conn": conn, "op": bytes((records.OP_MESSAGE,)), "time": bytes(8)})
        whole = _U32.pack(len(head)) + head + bytes(4)
        self._heads.add(whole, size_at=len(whole) - 4, time_at=len(whole) - 12)
        self._layouts.append(layout)

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's definition."""
        found = self._layouts[number]
        if found is None:
            raise DefinitionError("the channel has no definition: its messages are bytes")
        return found

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message to the chunk."""
        one = np.zeros(1, np.int64)
        raw = np.frombuffer(data, np.uint8)
        self.messages(one.astype(np.int32) + channel, one + time, raw, one, one + len(raw))

    def messages(
        self, channel: NDArray[np.int32], time: I64, data: NDArray[np.uint8], start: I64, size: I64
    ) -> None:
        """Append messages, chunk by chunk."""
        if len(time) and not 0 <= int(time.min()) <= int(time.max()) < 10**9 << 32:
            raise UsageError("a bag holds times from 1970 to 2106")
        place = self._heads.places(channel, size)
        lo = 0
        while lo < len(channel):
            hi = int(np.searchsorted(place, place[lo] + self._limit - self._bytes))
            hi = min(max(hi, lo + 1), len(channel))
            self._add(channel[lo:hi], time[lo:hi], data, start[lo:hi], size[lo:hi], place[lo : hi + 1])
            lo = hi
            if self._bytes >= self._limit:
                self.settle()

    def _add(
        self,
        channel: NDArray[np.int32],
        time: I64,
        data: NDArray[np.uint8],
        start: I64,
        size: I64,
        place: I64,
    ) -> None:
        for number in dict.fromkeys(channel.tolist()):
            if number not in self._written:
                self._written.add(number)
                self._put(self._connections[number])
        place = place - place[0]
        if int(place[-1]) > LARGEST - self._bytes:
            raise UsageError(f"a message of {int(size.max())} bytes does not fit into a chunk")
        self._entries.append((channel, time, place[:-1] + self._bytes))
        self._put(self._heads.compose(channel, time, data, start, size, place).data)

    def _put(self, part: Payload) -> None:
        self._content.append(bytes(part))
        self._bytes += len(self._content[-1])

    def _begin_chunk(self) -> None:
        self._content: list[bytes] = []
        self._bytes = 0
        self._entries: list[tuple[NDArray[np.int32], I64, I64]] = []

    def settle(self) -> None:
        """Close the chunk: what is in it can be read from here on."""
        if not self._content:
            return
        content, pos = b"".join(self._content), self.out.tell()
        channel, time, place = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        head = {"compression": self._compression.encode(), "size": _U32.pack(len(content))}
        self.out.write(_record(records.OP_CHUNK, head, _PACK[self._compression](content)))
        counts: dict[int, int] = {}
        for number in np.unique(channel).tolist():
            mine = np.flatnonzero(channel == number)
            mine = mine[np.argsort(time[mine], kind="stable")]
            entries = np.empty(len(mine), ENTRY)
            entries["sec"], entries["nsec"] = np.divmod(time[mine], 10**9)
            entries["offset"] = place[mine]
            counts[number] = len(mine)
            fields = {"ver": _U32.pack(1), "conn": _U32.pack(number), "count": _U32.pack(len(mine))}
            self.out.write(_record(records.OP_INDEX, fields, entries.tobytes()))
        self.out.commit()
        self._infos.append(_Info(pos, int(time.min()), int(time.max()), counts))
        self._begin_chunk()

    def finish(self) -> None:
        """Write the summary, and complete the header."""
        at = self.out.tell()
        for connection in self._connections:
            self.out.write(connection)
        for info in self._infos:
            fields = {
                "ver": _U32.pack(1),
                "chunk_pos": _U64.pack(info.pos),
                "start_time": _time(info.start),
                "end_time": _time(info.end),
                "count": _U32.pack(len(info.counts)),
            }
            pairs = b"".join(_U32.pack(conn) + _U32.pack(n) for conn, n in info.counts.items())
            self.out.write(_record(records.OP_CHUNK_INFO, fields, pairs))
        self.out.commit()
        self.out.patch(len(MAGIC), self._bag_header(at))

    def _bag_header(self, index_pos: int) -> bytes:
        finished = bool(index_pos)
        fields = {
            "index_pos": _U64.pack(index_pos),
            "conn_count": _U32.pack(len(self._connections) if finished else 0),
            "chunk_count": _U32.pack(len(self._infos) if finished else 0),
        }
        bare = _record(records.OP_FILE, fields, b"")
        return _record(records.OP_FILE, fields, b" " * (HEADER_BYTES - (len(bare) - 8)))


def _define(schema: Schema, stated: str) -> tuple[Layout | None, str, str]:
    """Layout, text and checksum of a type: by its own text, else a standard one, else raw bytes under its checksum."""
    try:
        found = ros1msg.define(schema.name, schema.text, stated, ros1msg.standard())
    except DefinitionError:
        if not stated:
            raise
        return None, schema.text, stated
    return ros1msg.layout(found), schema.text or found.text, found.md5


def _fields(fields: Mapping[str, bytes]) -> bytes:
    parts = [name.encode() + b"=" + value for name, value in fields.items()]
    return b"".join(_U32.pack(len(part)) + part for part in parts)


def _record(op: int, fields: Mapping[str, bytes], data: bytes) -> bytes:
    head = _fields({"op": bytes((op,)), **fields})
    return b"".join((_U32.pack(len(head)), head, _U32.pack(len(data)), data))


def _time(ns: int) -> bytes:
    return _U32.pack(ns // 10**9) + _U32.pack(ns % 10**9)
