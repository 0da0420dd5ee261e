"""Minimal baseline JPEG encoder for sample logs: grey blocks of 8 × 8 pixels.

Each block has only its mean (DC), so the DC table is complete and the AC table has a single code, "end of block".
Source: ITU-T T.81.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

#: Sizes in bits of a difference of means, each with a code of four bits; codes of only ones are not allowed.
_SIZES = range(12)
#: Quantisation: one grey level is 8 after the transform, then half a unit, so that differences fit 10 bits.
_QUANTUM = 16


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def jpeg(image: NDArray[np.uint8]) -> bytes:
    """Return the grey *image*, uint8[8·h, 8·w], as JPEG; each block of 8 × 8 pixels becomes its mean."""
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
    """Return the scan data: for each block the difference from the one before, and an end-of-block code."""
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
