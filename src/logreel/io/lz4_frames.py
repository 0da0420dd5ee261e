"""Decompression of concatenated LZ4 frames; for truncated input, the valid prefix.

Source: the LZ4 frame and block format descriptions.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[np.uint8]

#: LZ4 cannot shrink data by more than this factor.
RATIO = 255
MAGIC = 0x184D2204
#: The first of sixteen magic numbers of skippable frames.
SKIPPABLE = 0x184D2A50
_U32 = struct.Struct("<I")
#: Greatest distance of matches in bytes.
_WINDOW = 1 << 16
#: Extra bytes that a truncated block, closed by ``_closed``, unpacks to.
_ADDED = 5
_INDEPENDENT, _BLOCK_SUMS, _SIZE, _SUM, _DICTIONARY = 0x20, 0x10, 8, 4, 1


def unpack_lz4(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """Decompress concatenated frames to at most *limit* bytes; for truncated input, return the valid prefix.

    Returns the bytes, a description of what is wrong or ``""``, and the number of packed bytes left over.
    """
    limit = min(limit, RATIO * len(packed) + 64)
    view = memoryview(packed)  # type: ignore[arg-type]
    parts: list[Buffer] = []
    have, at, wrong = 0, 0, "" if len(packed) else "its LZ4 frame is cut"
    while at < len(view) and have < limit and not wrong:
        magic = int.from_bytes(view[at : at + 4], "little")
        if magic & ~15 == SKIPPABLE:
            at += 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        elif magic == MAGIC:
            end = _frame_end(view, at)
            data, wrong = _frame(view[at:end], limit - have)
            parts.append(data)
            have, at = have + len(data), end
        else:
            wrong = "" if at else "it is no LZ4 frame"
            break
    if at > len(view):
        at, wrong = len(view), "its LZ4 frame is cut"
    empty = np.zeros(0, np.uint8)
    return parts[0] if len(parts) == 1 else np.concatenate([empty, *parts]), wrong, len(view) - at


def _header(view: memoryview) -> tuple[int, int]:
    """Return the flags of a frame and the size of its header in bytes."""
    flags = view[4] if len(view) > 4 else 0
    return flags, 7 + (8 if flags & _SIZE else 0) + (4 if flags & _DICTIONARY else 0)


def _frame_end(view: memoryview, pos: int) -> int:
    """Return where the frame at *pos* ends by its lengths; the end of *view* if it is truncated."""
    flags, header = _header(view[pos : pos + 5])
    at, extra = pos + header, 4 if flags & _BLOCK_SUMS else 0
    while at + 4 <= len(view):
        (word,) = _U32.unpack_from(view, at)
        if word == 0:
            return min(at + (8 if flags & _SUM else 4), len(view))
        at += 4 + (word & 0x7FFFFFFF) + extra
    return len(view)


def _frame(frame: memoryview, limit: int) -> tuple[Buffer, str]:
    """Return at most *limit* bytes of one frame, and a description of what is wrong with it."""
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        data = decompressor.decompress(frame, max_length=limit)
    except RuntimeError as error:
        found, wrong = _blocks(frame, limit)
        return found, wrong or f"its LZ4 frame is damaged: {error}"
    if not decompressor.eof and len(data) < limit:
        found, wrong = _blocks(frame, limit)
        return found, wrong or "its LZ4 frame is cut"
    return np.frombuffer(data, np.uint8), ""


def _blocks(frame: memoryview, limit: int) -> tuple[Buffer, str]:
    """Decompress the blocks of a frame up to the first damaged one; of a truncated block, its valid prefix."""
    import lz4.block

    flags, at = _header(frame)
    largest = 1 << (8 + 2 * (frame[5] >> 4 & 7)) if len(frame) > 5 else 0
    out, wrong = bytearray(), "its LZ4 frame is cut"
    while at + 4 <= len(frame) and len(out) < limit:
        (word,) = _U32.unpack_from(frame, at)
        n = word & 0x7FFFFFFF
        block = bytes(frame[at + 4 : at + 4 + n])
        if word == 0:
            wrong = ""
            break
        is_cut = len(block) < n
        try:
            if word >> 31:
                out += block
            else:
                more: dict[str, Any] = {} if flags & _INDEPENDENT else {"dict": bytes(out[-_WINDOW:])}
                whole = _closed(block) if is_cut else block
                data = lz4.block.decompress(whole, uncompressed_size=largest + _ADDED, **more)
                out += data[:-_ADDED] if is_cut else data
        except (lz4.block.LZ4BlockError, ValueError, MemoryError) as error:
            wrong = wrong if is_cut else f"a block of its LZ4 frame is damaged: {error}"
            break
        at += 4 + n + (4 if flags & _BLOCK_SUMS else 0)
    return np.frombuffer(bytes(out[:limit]), np.uint8), wrong


def _closed(block: bytes) -> bytes:
    """Return a complete block from the start of a truncated one; it unpacks to _ADDED bytes more."""
    at = 0
    while True:
        literals = _length(block, at + 1, block[at] >> 4) if at < len(block) else None
        if literals is None:
            return block[:at] + _literals(b"")
        # The literals are followed by two bytes with the distance of the match.
        match = _length(block, sum(literals) + 2, block[at] & 15)
        if match is None:
            return block[:at] + _literals(block[literals[0] : sum(literals)])
        at = match[0]


def _literals(data: bytes) -> bytes:
    """Return the last sequence of a block: *data* and filler, since a block must end in at least five literals."""
    more, left = divmod(len(data) + _ADDED - 15, 255)
    length = bytes([(len(data) + _ADDED) << 4]) if more < 0 else b"\xf0" + b"\xff" * more + bytes([left])
    return length + data + bytes(_ADDED)


def _length(block: bytes, at: int, value: int) -> tuple[int, int] | None:
    """Return where a length ends, and the length, whose token has *value*; None if it is truncated."""
    if value == 15:
        while at < len(block):
            value += block[at]
            at += 1
            if block[at - 1] != 255:
                break
        else:
            return None
    return (at, value) if at <= len(block) else None
