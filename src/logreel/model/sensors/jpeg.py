"""The size that a JPEG states of itself."""

from __future__ import annotations

#: Segments before the pixels; a colour profile takes 255 at most.
_MAX_SEGMENTS = 4096
#: Markers of a frame header: all of C0 to CF but the tables among them.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def jpeg_size(data: bytes | memoryview) -> tuple[int, int] | None:
    """Width and height by the frame header, as ITU-T T.81 describes it; None where there is none."""
    if bytes(data[:3]) != b"\xff\xd8\xff":
        return None
    at = 2
    for _ in range(_MAX_SEGMENTS):
        while bytes(data[at : at + 2]) == b"\xff\xff":
            at += 1
        if len(data) - at < 9 or data[at] != 0xFF:
            return None
        if data[at + 1] in _FRAMES:
            high, wide = (int.from_bytes(data[at + i : at + i + 2], "big") for i in (5, 7))
            return wide, high
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None
