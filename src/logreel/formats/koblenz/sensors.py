"""Several sensors of one type: their messages told apart by the fields at the beginning that name the sensor."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED
from logreel.formats.koblenz.kinds import Kind
from logreel.index.gather import gather_bytes
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.layout.layout import Layout

#: Sensors of a type that have channels of their own; no robot has as many.
MAX_SENSORS = 1000


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor: what its topic adds to the name of the type, and what its messages say of it."""

    name: str
    metadata: dict[str, Any]
    layout: Layout


def as_text(data: bytes) -> str:
    """UTF-8 where it is valid, else Latin-1: the format does not tell."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def sensors(kind: Kind, data: Buffer, offset: I64) -> tuple[list[Sensor], I64]:
    """The sensors in the order of their first message, and which of them each message is of.

    offset  int64[n]: where the payloads begin
    """
    keys, part = _keys(kind, data, offset)
    made = _pictures if "source_id" in _instance(kind) else _lasers
    found = made(kind, keys[:MAX_SENSORS])
    if len(keys) > MAX_SENSORS:
        found.append(Sensor("others", {}, RAW))
        part = np.minimum(part, MAX_SENSORS)
    return found, part


def pose_guesses(payload: bytes) -> dict[str, str]:
    """What the first pose of a log lets one assume of the order of its quaternion and the unit of its acceleration."""
    numbers = struct.unpack("<7f", payload)
    force = math.hypot(*numbers[4:])
    unit = next((name for name, one in (("m/s2", 9.81), ("g", 1.0)) if abs(force / one - 1) < 0.2), "unknown")
    return {
        "quaternion_order": "w x y z" if abs(numbers[0]) >= abs(numbers[3]) else "x y z w",
        "acceleration_unit": unit,
    }


def _instance(kind: Kind) -> tuple[str, ...]:
    return kind.known.instance if kind.known is not None else ()


def _keys(kind: Kind, data: Buffer, offset: I64) -> tuple[list[bytes], I64]:
    """The distinct leading bytes by first appearance, and the number of each message's."""
    groups = _numbers(offset) if "source_id" in _instance(kind) else _text_pairs(data, offset)
    first: dict[bytes, int] = {}
    part = np.zeros(len(offset), np.int64)
    codes: dict[bytes, int] = {}
    for width, rows in groups:
        heads = gather_bytes(data, offset[rows], width).view(f"V{width}")[:, 0]
        distinct, at, code = np.unique(heads, return_index=True, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        for i, (head, row) in enumerate(zip(distinct.tolist(), rows[at].tolist(), strict=True)):
            numbers[i] = codes.setdefault(head, len(codes))
            first[head] = row
        part[rows] = numbers[code.reshape(-1)]
    order = sorted(first, key=lambda head: first[head])
    rank = np.empty(len(order), np.int64)
    rank[[codes[head] for head in order]] = np.arange(len(order))
    return order, rank[part]


def _numbers(offset: I64) -> list[tuple[int, I64]]:
    """All rows: two numbers at the beginning take eight bytes."""
    return [(8, np.arange(len(offset), dtype=np.int64))]


def _text_pairs(data: Buffer, offset: I64) -> list[tuple[int, I64]]:
    """Rows by the bytes that two texts at the beginning take together; the scan has checked their lengths."""
    one = gather_bytes(data, offset, 4).view("<u4")[:, 0].astype(np.int64)
    two = gather_bytes(data, offset + 4 + one, 4).view("<u4")[:, 0].astype(np.int64)
    width = 8 + one + two
    return [(int(w), np.flatnonzero(width == w)) for w in np.unique(width)]


def _pictures(kind: Kind, keys: list[bytes]) -> list[Sensor]:
    found = []
    for key in keys:
        camera = int.from_bytes(key[:4], "little", signed=True)
        compressed = any(key[4:])
        name = f"{camera}" if compressed else f"{camera}@uncompressed"
        layout = kind.layout if compressed else UNCOMPRESSED
        found.append(Sensor(name, {"source_id": camera}, layout))
    return found


def _lasers(kind: Kind, keys: list[bytes]) -> list[Sensor]:
    found = []
    for key in keys:
        size = int.from_bytes(key[:4], "little")
        model, name = as_text(key[4 : 4 + size]), as_text(key[8 + size :])
        found.append(Sensor(name, {"sensor_type": model, "sensor_name": name}, kind.layout))
    return found
