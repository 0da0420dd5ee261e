"""Pictures, point clouds and scans as columns of well-known messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem, UnsupportedError
from logreel.io.arrays import I64
from logreel.lenses import Image, PackedCloud, PacketCloud, Picture, PlainCloud, Points
from logreel.lenses.cloud import LaserScan, RangeScan, Sector
from logreel.outputs.foxglove.schemas import Fill, Rows, number_of, stamped
from logreel.schemas.protobuf.columns import Many, Values, texts

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: First bytes of encoded pictures, by format.
_BEGIN = {"jpeg": b"\xff\xd8", "png": b"\x89PNG"}
#: ``NumericType`` by NumPy type.
_TYPES = {
    "u1": "UINT8",
    "i1": "INT8",
    "u2": "UINT16",
    "i2": "INT16",
    "u4": "UINT32",
    "i4": "INT32",
    "f4": "FLOAT32",
    "f8": "FLOAT64",
}


def images(lens: Image, shift: int) -> Fill:
    """Return the function that fills ``CompressedImage`` with JPEG, PNG and WebP; others become a Problem."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        found = [(one, _format(one)) for one in lens.pictures(ch, start, end)]
        kept = [(one, name) for one, name in found if name]
        if len(kept) < len(found):
            _note(
                ch,
                "picture",
                f"pictures that are neither JPEG, PNG nor WebP have no {ch.topic}/CompressedImage",
            )
        time, stamp = _times(ch, [one for one, _ in kept], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(kept)),
            "data": _joined([one.data for one, _ in kept]),
            "format": texts([name for _, name in kept]),
        }

    return fill


def _format(picture: Picture) -> str:
    for name, begin in _BEGIN.items():
        if bytes(picture.data[: len(begin)]) == begin:
            return name
    return "webp" if bytes(picture.data[8:12]) == b"WEBP" else ""


def raw_images(lens: Image, shift: int) -> Fill:
    """Return the function that fills ``RawImage`` with pixels, little-endian and without padding."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        found = []
        for one in lens.pictures(ch, start, end):
            try:
                found.append((one, _pixels(one)))
            except UnsupportedError as error:
                _note(ch, "picture", f"a picture has no {ch.topic}/RawImage: {error.text}")
        time, stamp = _times(ch, [one for one, _ in found], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(found)),
            "width": np.array([one.width for one, _ in found], np.uint32),
            "height": np.array([one.height for one, _ in found], np.uint32),
            "encoding": texts([one.encoding or "" for one, _ in found]),
            "step": np.array([len(data) // one.height for one, data in found], np.uint32),
            "data": _joined([data for _, data in found]),
        }

    return fill


def _pixels(picture: Picture) -> NDArray[np.uint8]:
    pixels = picture.array()
    return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)


def clouds(lens: PackedCloud | PlainCloud, shift: int) -> Fill:
    """Return the function that fills ``PointCloud``, one per message."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        return _clouds(list(lens.clouds(ch, start, end)), ch, shift)

    return fill


class Revolutions:
    """Fills ``PointCloud``, one per revolution of a scanner; revolutions continue across consecutive intervals."""

    def __init__(self, lens: PacketCloud, shift: int) -> None:
        self._lens, self._shift = lens, shift
        self._stream: Iterator[Points] = iter(())
        self._due: int | None = None

    def __call__(self, ch: Channel, start: int | None, end: int | None) -> Rows:
        if start is None or start != self._due:
            self._stream = self._lens.clouds(ch, start)
        found, self._due = list[Points](), end
        for one in self._stream:
            if end is not None and one.time >= end:
                self._stream = itertools.chain([one], self._stream)
                break
            found.append(one)
        return _clouds(found, ch, self._shift)


def scans(lens: LaserScan | RangeScan, shift: int) -> Fill:
    """Return the function that fills ``LaserScan``, one per scan."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        found: list[Sector] = list(lens.sectors(ch, start, end))
        time, stamp = _times(ch, found, shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([one.frame or ch.topic for one in found]),
            "pose": _origin(len(found)),
            "start_angle": np.array([one.first for one in found]),
            "end_angle": np.array([one.first + one.step * max(0, len(one.ranges) - 1) for one in found]),
            "ranges": _joined([one.ranges for one in found]),
            "intensities": _joined([one.intensities for one in found]),
        }

    return fill


def _times(ch: Channel, found: Sequence[Picture | Points | Sector], shift: int) -> tuple[I64, I64]:
    """Return int64[n] ns each: times by the clock of the log, and values of ``timestamp``."""
    time = np.array([one.time for one in found], np.int64)
    return time, stamped(ch, time, np.array([one.stamp for one in found], np.int64), shift)


def _clouds(found: Sequence[Points], ch: Channel, shift: int) -> Rows:
    packed = [_packed(one) for one in found]
    time, stamp = _times(ch, found, shift)
    fields = [field for _, kind in packed for field in _fields(kind)]
    return time, {
        "timestamp": stamp,
        "frame_id": texts([one.frame or ch.topic for one in found]),
        "pose": _origin(len(found)),
        "point_stride": np.array([kind.itemsize for _, kind in packed], np.uint32),
        "fields": Many(
            _edges(len(kind.names or ()) for _, kind in packed),
            {
                "name": texts([name for name, _, _ in fields]),
                "offset": np.array([offset for _, offset, _ in fields], np.uint32),
                "type": np.array([number for _, _, number in fields], np.int32),
            },
        ),
        "data": _joined([data for data, _ in packed]),
    }


def _packed(points: Points) -> tuple[NDArray[np.uint8], np.dtype[Any]]:
    """Return the packed points and the dtype of one; 64-bit integers become float64."""
    columns = dict(_columns(points))
    kind = np.dtype([(name, f"<{_kind(values)}") for name, values in columns.items()])
    out = np.empty(max(map(len, columns.values()), default=0), kind)
    for name, values in columns.items():
        out[name] = values
    return out.view(np.uint8) if kind.itemsize else np.zeros(0, np.uint8), kind


def _columns(points: Points) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, values in points.fields.items():
        if values.ndim == 1:
            yield name, values
        else:
            yield from ((f"{name}[{i}]", values[:, i]) for i in range(values.shape[1]))


def _kind(values: NDArray[Any]) -> str:
    kind = values.dtype.str[1:]
    return kind if kind in _TYPES else "f8"


def _fields(kind: np.dtype[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and ``NumericType`` number of each field."""
    for name in kind.names or ():
        inner, place = kind.fields[name][:2]  # type: ignore[index]
        yield name, place, number_of("PackedElementField.NumericType", _TYPES[inner.str[1:]])


def _origin(n: int) -> Values:
    """Return the columns of the identity pose."""
    return {"position": {}, "orientation": {"w": np.ones(n)}}


def _joined(parts: Sequence[Any]) -> Many:
    """Return one array, or bytes, per row as a repeated column."""
    items = [np.frombuffer(one, np.uint8) if isinstance(one, memoryview) else one for one in parts]
    return Many(_edges(map(len, items)), np.concatenate(items) if items else np.zeros(0, np.uint8))


def _edges(counts: Iterable[int]) -> I64:
    found = np.fromiter(counts, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(found)])


def _note(ch: Channel, code: str, text: str) -> None:
    ch.log.note(Problem(code, 0, 0, False, text))
