"""Calibration of a HDL-64E in its two forms: a db.xml, and status bytes of packets."""

from __future__ import annotations

import struct

import numpy as np

#: Types of status in the packets of one cycle.
CYCLE = b"HMSDNYGTV1234567"
#: Per laser: elevation and rotation in 0.01 degree, distance, two others, vertical and horizontal offset in mm.
UNIT = [
    (-2400 + 40 * i, 1000 - 31 * i, 1240 + i, 1250 + i, 1260 + i, 100 + i, -26 if i % 2 else 26)
    for i in range(64)
]


def xml(rows: list[tuple[int, ...]] = UNIT, doctype: str = "<!DOCTYPE boost_serialization>") -> bytes:
    """Return a db.xml with lengths in centimetres, in the structure of real ones."""
    items = "".join(
        f"<item><px><id_>{i}</id_><rotCorrection_>{b / 100}</rotCorrection_>"
        f"<vertCorrection_>{a / 100}</vertCorrection_><distCorrection_>{c / 10}</distCorrection_>"
        f"<distCorrectionX_>{d / 10}</distCorrectionX_><distCorrectionY_>{e / 10}</distCorrectionY_>"
        f"<vertOffsetCorrection_>{f / 10}</vertOffsetCorrection_>"
        f"<horizOffsetCorrection_>{g / 10}</horizOffsetCorrection_></px></item>"
        for i, (a, b, c, d, e, f, g) in enumerate(rows)
    )
    body = f"<DB><distLSB_>0.2</distLSB_><points_><count>{len(rows)}</count>{items}</points_></DB>"
    text = f'<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>\n{doctype}\n'
    return (text + f'<boost_serialization version="4">{body}</boost_serialization>').encode()


def status(rows: list[tuple[int, ...]] = UNIT) -> np.ndarray:
    """Return one cycle of the status bytes: uint8[4160, 2]."""
    cycles = [b"UNIT#\x00\x00"]
    for i, row in enumerate(rows):
        numbers = bytes([i]) + struct.pack("<7h", *row) + bytes(6) + bytes(7)
        cycles += [numbers[k : k + 7] for k in range(0, 28, 7)]
    cycles += [bytes(7)] * (260 - len(cycles))
    values = b"".join(bytes(range(9)) + cycle for cycle in cycles)
    return np.stack([np.frombuffer(CYCLE * 260, np.uint8), np.frombuffer(values, np.uint8)], axis=1)
