"""LZ4 in plain Python, from the public description of frames and blocks; only for truncated or damaged data."""

from __future__ import annotations

from collections.abc import Iterator


def blocks(frame: bytes) -> Iterator[bytes]:
    """Decompress the blocks of a frame up to the first invalid one; for a truncated block, its valid prefix."""
    if len(frame) < 7 or frame[:4] != b"\x04\x22\x4d\x18":
        return
    flags = frame[4]
    at = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    history = b""
    while at + 4 <= len(frame):
        word = int.from_bytes(frame[at : at + 4], "little")
        size, packed = word & 0x7FFFFFFF, frame[at + 4 : at + 4 + (word & 0x7FFFFFFF)]
        if word == 0:
            return
        try:
            is_cut = len(packed) < size
            block = packed if word >> 31 else _block(packed, b"" if flags & 0x20 else history, is_cut)
        except (IndexError, ValueError):
            return
        yield block
        history = (history + block)[-65536:]
        at += 4 + size + 4 * (flags >> 4 & 1)


def _block(packed: bytes, history: bytes, is_cut: bool) -> bytes:
    """Decompress a block; for a truncated block, all literals and complete matches."""
    out, at = bytearray(history), 0
    try:
        while at < len(packed):
            at = _pair(packed, at, out)
    except IndexError:
        if not is_cut:
            raise
    return bytes(out[len(history) :])


def _pair(packed: bytes, at: int, out: bytearray) -> int:
    """Decompress literals and the match after them, if there is one; return where the next ones begin."""
    token, at = packed[at], at + 1
    literals, at = _length(packed, at, token >> 4)
    out += packed[at : at + literals]
    at += literals
    if at > len(packed):
        raise IndexError("literals beyond the block")
    if at == len(packed):
        return at
    back = packed[at] | packed[at + 1] << 8
    length, at = _length(packed, at + 2, token & 15)
    if not 0 < back <= len(out):
        raise ValueError("a match before the beginning")
    for _ in range(length + 4):
        out.append(out[-back])
    return at


def _length(packed: bytes, at: int, value: int) -> tuple[int, int]:
    if value == 15:
        while True:
            value, at = value + packed[at], at + 1
            if packed[at - 1] != 255:
                break
    return value, at
