"""Read the image size from the header of a complete JPEG."""

from __future__ import annotations

#: Maximum of segments before the pixels; a colour profile takes up to 255.
_MAX_SEGMENTS = 4096
_SCAN = 0xDA
#: Markers of segments that may come before the pixels.
_SEGMENTS = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, _SCAN))
#: Markers of a frame header: C0 to CF except those of tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
MAGIC, _END = b"\xff\xd8\xff", b"\xff\xd9"


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a JPEG; None for other, damaged or truncated data.

    Source: ITU-T T.81, annex B: segments up to the scan, one of which is the frame header, and an end marker.
    """
    if not data.startswith(MAGIC):
        return None
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
            high, wide = (int.from_bytes(data[at + i : at + i + 2], "big") for i in (5, 7))
            size = wide, high
        at += 2 + length
        if marker == _SCAN:
            return size if data.rfind(_END) >= at else None
    return None
