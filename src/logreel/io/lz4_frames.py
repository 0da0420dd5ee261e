"""Decompression of concatenated LZ4 frames; for truncated input, the valid prefix.

Source: the LZ4 frame and block format descriptions.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
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
#: Bytes that are unpacked at a time; fewer where few packed bytes become many.
_STEP, _LEAST_STEP = 16 << 20, 4 << 20
#: Extra bytes that a truncated block, closed by ``_closed``, unpacks to.
_ADDED = 5
#: Part of the message of the library where memory ends, which is no damage.
_NO_MEMORY = "ERROR_allocation_failed"
_INDEPENDENT, _BLOCK_SUMS, _SIZE, _SUM, _DICTIONARY = 0x20, 0x10, 8, 4, 1


def unpack_lz4(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """Decompress concatenated frames to at most *limit* bytes; for truncated input, return the valid prefix.

    Returns the bytes, a description of what is wrong or ``""``, and the number of packed bytes left over. Raises
    MemoryError when there is no memory for them, which is no damage.
    """
    out = _Output(min(limit, RATIO * len(packed) + 64))
    view = packed.data
    at, wrong = 0, "" if len(packed) else "its LZ4 frame is cut"
    while at < len(view) and out.left and not wrong:
        magic = int.from_bytes(view[at : at + 4], "little")
        if magic & ~15 == SKIPPABLE:
            at += 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        elif magic == MAGIC:
            end = _frame_end(view, at)
            wrong, at = _frame(view[at:end], out), end
        else:
            wrong = "" if at else "it is no LZ4 frame"
            break
    if at > len(view):
        at, wrong = len(view), "its LZ4 frame is cut"
    return out.found, wrong, len(view) - at


class _Output:
    """At most *limit* unpacked bytes. There is never a second copy of them, however they are packed.

    left  number of bytes that may still be added
    """

    def __init__(self, limit: int) -> None:
        self.left = limit
        self._have = 0
        #: All bytes, as long as they are one piece.
        self._only: Buffer | None = None
        self._room: Buffer | None = None

    def add(self, data: bytes) -> None:
        """Add *data*, as far as it fits."""
        piece = np.frombuffer(data, np.uint8)[: self.left]
        if not self._have:
            self._only = piece
        else:
            self._whole()[self._have : self._have + len(piece)] = piece
        self._have, self.left = self._have + len(piece), self.left - len(piece)

    def _whole(self) -> Buffer:
        if self._room is None:
            # Pages that are not written take no memory.
            self._room = np.empty(self._have + self.left, np.uint8)
        if self._only is not None:
            self._room[: self._have], self._only = self._only, None
        return self._room

    @property
    def length(self) -> int:
        """Number of bytes that were added."""
        return self._have

    def cut(self, length: int) -> None:
        """Take back all but the first *length* bytes, which were complete at that time."""
        self._whole()
        self.left += self._have - length
        self._have = length

    def last(self, size: int, begin: int) -> bytes:
        """Return the last *size* bytes of those from *begin* on."""
        return bytes(self.found[max(begin, self._have - size) :])

    @property
    def found(self) -> Buffer:
        """All bytes that were added."""
        return (self._only if self._only is not None else self._whole())[: self._have]


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


def _frame(frame: memoryview, out: _Output) -> str:
    """Add the bytes of one frame to *out*; return a description of what is wrong with it."""
    import lz4.frame

    begin, decompressor = out.length, lz4.frame.LZ4FrameDecompressor()
    # Each step copies the packed bytes that are left.
    step = min(max(_LEAST_STEP, 4 * len(frame)), _STEP)
    try:
        wanted = min(out.left, step)
        data = decompressor.decompress(frame, max_length=wanted)
        out.add(data)
        while data and len(data) == wanted and out.left and not decompressor.eof:
            wanted = min(out.left, step)
            data = decompressor.decompress(b"", max_length=wanted)
            out.add(data)
    except RuntimeError as error:
        if _NO_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        wrong = f"its LZ4 frame is damaged: {error}"
    else:
        if decompressor.eof or not out.left:
            return ""
        wrong = "its LZ4 frame is cut"
    del decompressor
    out.cut(begin)
    return _blocks(frame, out) or wrong


def _blocks(frame: memoryview, out: _Output) -> str:
    """Add the blocks of a frame up to the first damaged one to *out*; of a truncated block, its valid prefix."""
    import lz4.block

    flags, at = _header(frame)
    largest = 1 << (8 + 2 * (frame[5] >> 4 & 7)) if len(frame) > 5 else 0
    begin, wrong = out.length, "its LZ4 frame is cut"
    while at + 4 <= len(frame) and out.left:
        (word,) = _U32.unpack_from(frame, at)
        n = word & 0x7FFFFFFF
        block = bytes(frame[at + 4 : at + 4 + n])
        if word == 0:
            wrong = ""
            break
        is_cut = len(block) < n
        try:
            if word >> 31:
                out.add(block)
            else:
                more: dict[str, Any] = {} if flags & _INDEPENDENT else {"dict": out.last(_WINDOW, begin)}
                whole = _closed(block) if is_cut else block
                data = lz4.block.decompress(whole, uncompressed_size=largest + _ADDED, **more)
                out.add(data[:-_ADDED] if is_cut else data)
        except (lz4.block.LZ4BlockError, ValueError) as error:
            wrong = wrong if is_cut else f"a block of its LZ4 frame is damaged: {error}"
            break
        at += 4 + n + (4 if flags & _BLOCK_SUMS else 0)
    return wrong


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
