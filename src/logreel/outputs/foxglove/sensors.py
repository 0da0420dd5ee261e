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
from logreel.schemas.protobuf.encoder import Many, Values, texts

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
        with_format = [(picture, _format(picture)) for picture in lens.pictures(ch, start, end)]
        kept = [(picture, name) for picture, name in with_format if name]
        if len(kept) < len(with_format):
            _note(
                ch,
                "picture",
                f"pictures that are neither JPEG, PNG nor WebP have no {ch.topic}/CompressedImage",
            )
        time, stamp = _times(ch, [picture for picture, _ in kept], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(kept)),
            "data": _joined([picture.data for picture, _ in kept]),
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
        pixels = []
        for picture in lens.pictures(ch, start, end):
            try:
                pixels.append((picture, _pixels(picture)))
            except UnsupportedError as error:
                _note(ch, "picture", f"a picture has no {ch.topic}/RawImage: {error.text}")
        time, stamp = _times(ch, [picture for picture, _ in pixels], shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([ch.topic] * len(pixels)),
            "width": np.array([picture.width for picture, _ in pixels], np.uint32),
            "height": np.array([picture.height for picture, _ in pixels], np.uint32),
            "encoding": texts([picture.encoding or "" for picture, _ in pixels]),
            "step": np.array([len(data) // picture.height for picture, data in pixels], np.uint32),
            "data": _joined([data for _, data in pixels]),
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
        clouds, self._due = list[Points](), end
        for cloud in self._stream:
            if end is not None and cloud.time >= end:
                self._stream = itertools.chain([cloud], self._stream)
                break
            clouds.append(cloud)
        return _clouds(clouds, ch, self._shift)


def scans(lens: LaserScan | RangeScan, shift: int) -> Fill:
    """Return the function that fills ``LaserScan``, one per scan."""

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        sectors: list[Sector] = list(lens.sectors(ch, start, end))
        time, stamp = _times(ch, sectors, shift)
        return time, {
            "timestamp": stamp,
            "frame_id": texts([sector.frame or ch.topic for sector in sectors]),
            "pose": _origin(len(sectors)),
            "start_angle": np.array([sector.first for sector in sectors]),
            "end_angle": np.array(
                [sector.first + sector.step * max(0, len(sector.ranges) - 1) for sector in sectors]
            ),
            "ranges": _joined([sector.ranges for sector in sectors]),
            "intensities": _joined([sector.intensities for sector in sectors]),
        }

    return fill


def _times(ch: Channel, items: Sequence[Picture | Points | Sector], shift: int) -> tuple[I64, I64]:
    """Return int64[n] ns each: times by the clock of the log, and values of ``timestamp``."""
    time = np.array([item.time for item in items], np.int64)
    return time, stamped(ch, time, np.array([item.stamp for item in items], np.int64), shift)


def _clouds(clouds: Sequence[Points], ch: Channel, shift: int) -> Rows:
    packed = [_packed(cloud) for cloud in clouds]
    time, stamp = _times(ch, clouds, shift)
    fields = [field for _, dtype in packed for field in _fields(dtype)]
    return time, {
        "timestamp": stamp,
        "frame_id": texts([cloud.frame or ch.topic for cloud in clouds]),
        "pose": _origin(len(clouds)),
        "point_stride": np.array([dtype.itemsize for _, dtype in packed], np.uint32),
        "fields": Many(
            _edges(len(dtype.names or ()) for _, dtype in packed),
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
    dtype = np.dtype([(name, f"<{_kind(values)}") for name, values in columns.items()])
    out = np.empty(max(map(len, columns.values()), default=0), dtype)
    for name, values in columns.items():
        out[name] = values
    return out.view(np.uint8) if dtype.itemsize else np.zeros(0, np.uint8), dtype


def _columns(points: Points) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, values in points.fields.items():
        if values.ndim == 1:
            yield name, values
        else:
            yield from ((f"{name}[{i}]", values[:, i]) for i in range(values.shape[1]))


def _kind(values: NDArray[Any]) -> str:
    type_code = values.dtype.str[1:]
    return type_code if type_code in _TYPES else "f8"


def _fields(dtype: np.dtype[Any]) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and ``NumericType`` number of each field."""
    for name in dtype.names or ():
        inner, place = dtype.fields[name][:2]  # type: ignore[index]
        yield name, place, number_of("PackedElementField.NumericType", _TYPES[inner.str[1:]])


def _origin(n: int) -> Values:
    """Return the columns of the identity pose."""
    return {"position": {}, "orientation": {"w": np.ones(n)}}


def _joined(parts: Sequence[Any]) -> Many:
    """Return one array, or bytes, per row as a repeated column."""
    items = [np.frombuffer(part, np.uint8) if isinstance(part, memoryview) else part for part in parts]
    return Many(_edges(map(len, items)), np.concatenate(items) if items else np.zeros(0, np.uint8))


def _edges(counts: Iterable[int]) -> I64:
    sizes = np.fromiter(counts, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _note(ch: Channel, code: str, text: str) -> None:
    ch.log.note(Problem(code, 0, 0, False, text))
