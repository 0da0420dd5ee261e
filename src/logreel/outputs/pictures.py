"""Sizes that encoded pictures state, found after checking that they are whole."""

from __future__ import annotations

import struct
import zlib

from logreel.errors import UnsupportedError

#: Segments before the pixels of a JPEG; a colour profile takes 255 at most.
_MAX_SEGMENTS = 4096
_SCAN = 0xDA
#: Markers of segments that may come before the pixels.
_SEGMENTS = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, _SCAN))
#: Markers of a frame header: all of C0 to CF but the tables among them.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def kind_of(data: bytes) -> str | None:
    """``.jpg`` or ``.png``, by how *data* begins."""
    if data.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    return ".png" if data.startswith(PNG_MAGIC) else None


def size_of(data: bytes, kind: str) -> tuple[int, int]:
    """Width and height of a picture; raises UnsupportedError where it is not whole."""
    width, height = _jpeg_size(data) if kind == ".jpg" else _png_size(data)
    if not (width and height):
        raise UnsupportedError("it has no pixels")
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """ITU-T T.81, annex B: segments up to the scan, one of which is the frame header, and an end."""
    at, size = 2, None
    for _ in range(_MAX_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if len(data) - at < 4 or data[at] != 0xFF:
            break
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker not in _SEGMENTS or length < 2 or length > len(data) - at - 2:
            break
        if marker in _FRAMES and length >= 8:
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = width, height
        at += 2 + length
        if marker == _SCAN:
            if size is None or data.rfind(b"\xff\xd9") < at:
                break
            return size
    raise UnsupportedError("its JPEG is broken or cut off")


def _png_size(data: bytes) -> tuple[int, int]:
    """PNG, section 5: chunks with a check sum each, the first is the header and the last the end."""
    at, size = len(PNG_MAGIC), None
    while len(data) - at >= 12:
        length, kind = struct.unpack_from(">I4s", data, at)
        if length > len(data) - at - 12:
            break
        content = data[at + 4 : at + 8 + length]
        if zlib.crc32(content) != int.from_bytes(data[at + 8 + length : at + 12 + length], "big"):
            break
        if size is None:
            if kind != b"IHDR" or length != 13:
                break
            size = struct.unpack_from(">II", data, at + 8)
        if kind == b"IEND":
            return size
        at += 12 + length
    raise UnsupportedError("its PNG is broken or cut off")
