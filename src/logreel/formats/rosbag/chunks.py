"""The content of chunks: stored as it is, bz2 or LZ4; bounded, and as much as can be had of a cut one."""

from __future__ import annotations

import bz2
import struct
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.model.source import Source

Buffer = NDArray[np.uint8]

#: Unpacked chunks kept at hand; enough for neighbours in time, bounded whatever the log.
CACHE_BYTES = 64 << 20
#: No chunk unpacks to more: writers close them at 768 KiB or so, the largest option in use is far below.
MAX_CHUNK = 1 << 30
#: LZ4 cannot shrink data by more than this factor.
LZ4_RATIO = 255
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a chunk lies in the file, how it is packed, and how many bytes it says it unpacks to."""

    pos: int
    data: int
    stored: int
    compression: str
    size: int


def unpack(source: Source, chunk: Chunk) -> tuple[Buffer, str]:
    """The unpacked bytes, and what is wrong with them (empty: nothing).

    Of a damaged or cut chunk this gives what unpacks: for LZ4 all blocks before the damage, for bz2 likewise.
    Never holds more than the chunk states or MAX_CHUNK, whatever the packed bytes would make.
    """
    packed = source.data[chunk.data : chunk.data + chunk.stored]
    limit = min(chunk.size, MAX_CHUNK) if chunk.size else MAX_CHUNK
    if chunk.compression == "none":
        return packed, ""
    if chunk.compression == "bz2":
        data, wrong = _bz2(packed, limit)
    elif chunk.compression == "lz4":
        data, wrong = _lz4(packed, limit)
    else:
        return packed[:0], f"unknown compression {chunk.compression[:20]!r}"
    if not wrong and chunk.size and len(data) != chunk.size:
        wrong = f"it unpacks to {len(data)} bytes where {chunk.size} are stated"
    return data, wrong


def _bz2(packed: Buffer, limit: int) -> tuple[Buffer, str]:
    decompressor = bz2.BZ2Decompressor()
    out = bytearray()
    feed = packed.tobytes()
    try:
        while not decompressor.eof and len(out) < limit:
            out += decompressor.decompress(feed, min(_STEP, limit - len(out)))
            feed = b""
            if decompressor.needs_input:
                return np.frombuffer(bytes(out), np.uint8), "its bz2 stream is cut"
    except (OSError, EOFError, ValueError) as error:
        return np.frombuffer(bytes(out), np.uint8), f"its bz2 stream is damaged: {error}"
    return np.frombuffer(bytes(out), np.uint8), ""


def _lz4(packed: Buffer, limit: int) -> tuple[Buffer, str]:
    if limit > LZ4_RATIO * len(packed) + 64:
        limit = LZ4_RATIO * len(packed) + 64
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        data = decompressor.decompress(packed, max_length=limit)
    except RuntimeError as error:
        data, wrong = _lz4_blocks(packed, limit)
        return data, wrong or f"its LZ4 frame is damaged: {error}"
    if not decompressor.eof and decompressor.needs_input:
        data, wrong = _lz4_blocks(packed, limit)
        return data, wrong or "its LZ4 frame is cut"
    return np.frombuffer(data, np.uint8), ""


def _lz4_blocks(packed: Buffer, limit: int) -> tuple[Buffer, str]:
    """Every block of an LZ4 frame that unpacks, up to the first that does not."""
    import lz4.block

    raw = packed.tobytes()
    if len(raw) < 7 or raw[:4] != b"\x04\x22\x4d\x18":
        return np.zeros(0, np.uint8), "it is no LZ4 frame"
    flags, largest = raw[4], 1 << (8 + 2 * (raw[5] >> 4 & 7))
    at = 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    linked = not flags & 0x20
    out = bytearray()
    while at + 4 <= len(raw) and len(out) < limit:
        (word,) = struct.unpack_from("<I", raw, at)
        n = word & 0x7FFFFFFF
        block = raw[at + 4 : at + 4 + n]
        if word == 0:
            return np.frombuffer(bytes(out), np.uint8), ""
        if n > len(block):
            return np.frombuffer(bytes(out), np.uint8), "its LZ4 frame is cut"
        try:
            more: dict[str, Any] = {"dict": bytes(out[-65536:])} if linked and out else {}
            out += block if word >> 31 else lz4.block.decompress(block, uncompressed_size=largest, **more)
        except (lz4.block.LZ4BlockError, ValueError, MemoryError) as error:
            return np.frombuffer(bytes(out), np.uint8), f"a block of its LZ4 frame is damaged: {error}"
        at += 4 + n + (4 if flags & 0x10 else 0)
    return np.frombuffer(bytes(out), np.uint8), "its LZ4 frame is cut"


class ChunkCache:
    """Unpacked chunks by number, the latest used ones kept within CACHE_BYTES; safe to use from several threads."""

    def __init__(self, source: Source, chunks: list[Chunk]) -> None:
        self._source, self._chunks = source, chunks
        self._kept: OrderedDict[int, Buffer] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def __call__(self, number: int) -> Buffer:
        """The unpacked bytes of a chunk; of a damaged one what there is."""
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        data, _ = unpack(self._source, self._chunks[number])
        with self._lock:
            if number not in self._kept:
                self._kept[number] = data
                self._bytes += len(data)
            while self._bytes > CACHE_BYTES and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old)
        return data
