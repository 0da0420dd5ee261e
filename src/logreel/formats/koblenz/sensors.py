"""Split messages of one type by sensor, with the leading fields that name the sensor."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED
from logreel.formats.koblenz.kinds import Kind
from logreel.index.gather import gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import PayloadRange
from logreel.io.arrays import I64, distinct
from logreel.io.chunks import Buffer
from logreel.layout.layout import Layout
from logreel.log.scan import LATIN_1
from logreel.log.side_columns import LayoutDecoder

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded

#: Largest number of sensors of a type with separate channels; no robot has as many.
MAX_SENSORS = 1000


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor.

    name      what its topic adds to the name of the type
    metadata  values of the leading fields
    """

    name: str
    metadata: dict[str, Any]
    layout: Layout


def as_text(data: bytes) -> str:
    """Decode UTF-8, or Latin-1 if that is invalid: the description names no encoding."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def sensors(kind: Kind, data: Buffer, offset: I64) -> tuple[list[Sensor], I64]:
    """Return the sensors in order of their first message, and int64[n]: the sensor number of each message.

    offset  int64[n]: positions of the payloads
    """
    keys, part = _leading_bytes(kind, data, offset)
    make = _pictures if "source_id" in _instance(kind) else _lasers
    found = make(kind, keys[:MAX_SENSORS])
    if len(keys) > MAX_SENSORS:
        found.append(Sensor("others", {}, RAW))
        part = np.minimum(part, MAX_SENSORS)
    return found, part


def pose_guesses(payload: bytes) -> dict[str, str]:
    """Guess the order of the quaternion and the unit of the acceleration from the first pose of a log."""
    numbers = struct.unpack("<7f", payload)
    force = math.hypot(*numbers[4:])
    unit = next((name for name, one in (("m/s2", 9.81), ("g", 1.0)) if abs(force / one - 1) < 0.2), "unknown")
    return {
        "quaternion_order": "w x y z" if abs(numbers[0]) >= abs(numbers[3]) else "x y z w",
        "acceleration_unit": unit,
    }


def _instance(kind: Kind) -> tuple[str, ...]:
    return kind.known.instance if kind.known is not None else ()


def _leading_bytes(kind: Kind, data: Buffer, offset: I64) -> tuple[list[bytes], I64]:
    """Return the distinct leading bytes in order of appearance, and int64[n]: which of them each message has."""
    groups = _number_pairs(offset) if "source_id" in _instance(kind) else _text_pairs(data, offset)
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


def _number_pairs(offset: I64) -> list[tuple[int, I64]]:
    """Return one group with all rows: two leading numbers have 8 bytes."""
    return [(8, np.arange(len(offset), dtype=np.int64))]


def _text_pairs(data: Buffer, offset: I64) -> list[tuple[int, I64]]:
    """Return rows grouped by the size of two leading texts in bytes; reading has checked their lengths."""
    one = gather_bytes(data, offset, 4).view("<u4")[:, 0].astype(np.int64)
    two = gather_bytes(data, offset + 4 + one, 4).view("<u4")[:, 0].astype(np.int64)
    width = 8 + one + two
    return [(int(w), np.flatnonzero(width == w)) for w in distinct(width)]


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
        names = {"sensor_type": key[4 : 4 + size], "sensor_name": key[8 + size :]}
        metadata: dict[str, Any] = {field: as_text(data) for field, data in names.items()}
        latin_1 = [field for field, data in names.items() if metadata[field].encode() != data]
        metadata |= {LATIN_1: latin_1} if latin_1 else {}
        found.append(Sensor(metadata["sensor_name"], metadata, kind.layout))
    return found


class NamesDecoder(LayoutDecoder):
    """Decodes messages of a sensor whose names are not UTF-8: *names* by field, as in its topic and metadata."""

    def __init__(self, layout: Layout, names: Mapping[str, str]) -> None:
        super().__init__(layout)
        self.layout, self._names = None, names

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        import pyarrow as pa

        got = super().decode_batch(index, layout, piece, rows)
        fields = [f.name for f in layout.record.visible()]
        arrays = [
            pa.array([self._names[name]] * len(array), pa.string()) if name in self._names else array
            for name, array in zip(fields, got.arrays, strict=True)
        ]
        return replace(got, arrays=arrays)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        found = super().decode_message(index, data, row)
        return found | {name: text for name, text in self._names.items() if name in found}
