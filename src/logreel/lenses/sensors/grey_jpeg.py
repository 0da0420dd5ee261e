"""The smallest baseline JPEG encoder that can show something: grey squares of 8 × 8 pixels.

Every block has a mean and nothing else, so only the table of mean differences is needed; the other one has a single
code, "end of block". After ITU-T T.81.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

#: Bits that a difference of means takes, each with a code of four bits; codes of ones alone are not allowed.
_SIZES = range(12)
#: A mean of one grey level is 8 after the transform; halved again, so differences fit 10 bits.
_QUANTUM = 16


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def jpeg(image: NDArray[np.uint8]) -> bytes:
    """A grey *image*, uint8[8·h, 8·w], as JPEG; each block of 8 × 8 comes out as its mean."""
    high, wide = image.shape
    means = image.reshape(high // 8, 8, wide // 8, 8).mean(axis=(1, 3))
    levels = np.rint((means - 128) * 8 / _QUANTUM).astype(int).ravel().tolist()
    mean_codes = bytes((0, 0, 0, 0, len(_SIZES), *[0] * 12, *_SIZES))
    end_code = bytes((0x10, 1, *[0] * 15, 0))
    return b"".join(
        (
            b"\xff\xd8",
            _segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            _segment(0xDB, bytes((0, *[_QUANTUM] * 64))),
            _segment(0xC0, struct.pack(">BHHB3B", 8, high, wide, 1, 1, 0x11, 0)),
            _segment(0xC4, mean_codes),
            _segment(0xC4, end_code),
            _segment(0xDA, bytes((1, 1, 0, 0, 63, 0))),
            _scan(levels),
            b"\xff\xd9",
        )
    )


def _scan(levels: list[int]) -> bytes:
    """The blocks, each as the difference from the one before and an end mark."""
    bits, before = "", 0
    for level in levels:
        difference, before = level - before, level
        size = abs(difference).bit_length()
        bits += f"{size:04b}"
        if size:
            bits += f"{difference if difference > 0 else difference + (1 << size) - 1:0{size}b}"
        bits += "0"
    bits += "1" * (-len(bits) % 8)
    packed = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return packed.replace(b"\xff", b"\xff\0")
