"""Point clouds and planar scans of laser scanners and depth cameras."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence, String
from logreel.lenses.base import (
    Nodes,
    Stamp,
    find_stamp,
    is_blob,
    is_float,
    is_floats,
    is_vector,
    nodes_of,
    rows,
    stamped_rows,
)

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: NumPy types by the ``datatype`` number of a packed cloud (sensor_msgs/PointField).
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
#: Maximum of fields of a point, and of values of one field; more would give a huge dtype.
_MAX_FIELDS, _MAX_COUNT = 1024, 65536
#: Fields may share bytes, such as a colour with two names; this limits how often, and so the memory.
_MAX_SHARED = 4


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one message.

    time    ns
    frame   name of their coordinate frame; empty if unknown
    fields  by name, an array of k points: ``x``, ``y``, ``z`` in metres, and other measured values
    lost    number of points that the message announces but does not contain
    stamp   ns when they were measured, according to the message; 0 if unknown
    """

    time: int
    frame: str
    fields: dict[str, NDArray[Any]]
    lost: int = 0
    stamp: int = 0

    @property
    def xyz(self) -> NDArray[np.float64]:
        """float64[k, 3] in metres; a missing axis is 0. Points without an echo may be NaN."""
        size = max((len(values) for values in self.fields.values()), default=0)
        out = np.zeros((size, 3))
        for i, name in enumerate("xyz"):
            if name in self.fields and self.fields[name].ndim == 1:
                out[:, i] = self.fields[name]
        return out

    @property
    def seen(self) -> tuple[I64, NDArray[np.float32]]:
        """int64[m] and float32[m, 3]: rows and places in metres of the points with finite coordinates."""
        with np.errstate(all="ignore"):
            place = self.xyz.astype(np.float32)
        rows = np.flatnonzero(np.isfinite(place).all(axis=1))
        return rows, place[rows]

    @property
    def colours(self) -> NDArray[np.uint8] | None:
        """uint8[k, 3]: red, green and blue; None if the message has no colours."""
        for names in (("r", "g", "b"), ("red", "green", "blue")):
            values = [self.fields[name] for name in names if name in self.fields]
            if len(values) == 3 and all(column.ndim == 1 for column in values):
                return np.stack([np.asarray(column, np.uint8) for column in values], axis=-1)
        packed = next((self.fields[name] for name in ("rgb", "rgba") if name in self.fields), None)
        if packed is None or packed.ndim != 1 or packed.dtype.itemsize != 4:
            return None
        # Blue is the lowest byte, whatever the stated type (point_cloud2 convention).
        word = np.ascontiguousarray(packed).astype(packed.dtype.newbyteorder("<")).view("<u4")
        return np.stack([(word >> shift & 255).astype(np.uint8) for shift in (16, 8, 0)], axis=-1)


@dataclass(frozen=True, slots=True)
class PackedCloud:
    """Point clouds packed into bytes; each message describes the fields of its points."""

    frame: str | None = None
    stamp: Stamp | None = None

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the points of each message with start <= time < end (ns), in file order, decoding in small batches.

        Fields outside of the bytes of a point, and points outside of the data, are left out.
        """
        paths = ["height", "width", "fields", "is_bigendian", "point_step", "row_step", "data"]
        more = [self.frame] if self.frame else []
        for time, stamp, found in stamped_rows(ch, [*paths, *more], self.stamp, start, end):
            data, fields = _bytes_of(found.pop("data")), found.pop("fields").values[:_MAX_FIELDS].to_pylist()
            value = {name: field.as_py() for name, field in found.items()}
            points = _point_rows(data, value)
            lost = value["width"] * value["height"] - len(points)
            order = ">" if value["is_bigendian"] else "<"
            frame = value[self.frame] if self.frame else ""
            yield Points(time, frame, _unpack_fields(points, fields, order), lost, stamp)


def _bytes_of(field: Any) -> NDArray[np.uint8]:
    if hasattr(field, "as_buffer"):
        return np.frombuffer(field.as_buffer() or b"", np.uint8)
    return np.asarray(field.values, np.uint8)


def _point_rows(data: NDArray[np.uint8], value: dict[str, Any]) -> NDArray[np.uint8]:
    """Return uint8[k, bytes of a point]: the points in *data*, at most width × height."""
    step, row_step, width, height = (value[k] for k in ("point_step", "row_step", "width", "height"))
    if height > 1 and row_step > width * step:
        # Rows with padding at their ends.
        lines = min(height, len(data) // row_step)
        data = np.ascontiguousarray(
            data[: lines * row_step].reshape(lines, row_step)[:, : width * step]
        ).ravel()
    count = min(width * height, len(data) // step) if step else 0
    return data[: count * step].reshape(count, step)


def _unpack_fields(
    points: NDArray[np.uint8], fields: list[dict[str, Any]], order: str
) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    room = _MAX_SHARED * points.shape[1]
    for f in fields:
        kind, items = _TYPES.get(f["datatype"]), max(1, f["count"])
        if kind is None or items > _MAX_COUNT or f["name"] in found:
            continue
        dtype = np.dtype(order + kind)
        size = items * dtype.itemsize
        if f["offset"] + size <= points.shape[1] and size <= room:
            room -= size
            column = np.ascontiguousarray(points[:, f["offset"] : f["offset"] + size]).view(dtype)
            found[f["name"]] = column[:, 0] if items == 1 else column
    return found


@dataclass(frozen=True, slots=True)
class PlainCloud:
    """Point clouds as a list of x, y, z, with further values in separate named lists."""

    frame: str | None = None
    channels: bool = True
    stamp: Stamp | None = None

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the points of each message with start <= time < end (ns), in file order, decoding in small batches."""
        paths = ["points", *(["channels"] if self.channels else []), *([self.frame] if self.frame else [])]
        for time, stamp, found in stamped_rows(ch, paths, self.stamp, start, end):
            points = found["points"].values
            fields = {name: np.asarray(points.field(name)) for name in "xyz"}
            for extra in found["channels"].as_py() if self.channels else ():
                if len(extra["values"]) == len(points) and extra["name"] not in fields:
                    fields[extra["name"]] = np.asarray(extra["values"], np.float32)
            yield Points(time, found[self.frame].as_py() if self.frame else "", fields, stamp=stamp)


@dataclass(frozen=True, slots=True)
class Sector:
    """One scan, as measured.

    time         ns
    frame        name of its coordinate frame; empty if unknown
    first, step  rad: the angle of the first range, and the increment
    ranges       float64[n]  metres; failed measurements are NaN, infinite or outside of the scanner's limits
    intensities  float64[n], or empty
    stamp        ns when it was measured, according to the message; 0 if unknown
    """

    time: int
    frame: str
    first: float
    step: float
    ranges: NDArray[np.float64]
    intensities: NDArray[np.float64]
    stamp: int = 0


@dataclass(frozen=True, slots=True)
class LaserScan:
    """Scans of one plane at regular angles: angles in rad, ranges in metres."""

    frame: str | None = None
    intensities: bool = True
    stamp: Stamp | None = None

    def sectors(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Sector]:
        """Yield the scans of *ch* with start <= time < end (ns), in file order, as measured."""
        paths = ["angle_min", "angle_increment", "ranges"]
        more = [*(["intensities"] if self.intensities else []), *([self.frame] if self.frame else [])]
        for time, stamp, found in stamped_rows(ch, [*paths, *more], self.stamp, start, end):
            strength = found["intensities"].values if self.intensities else ()
            yield Sector(
                time,
                found[self.frame].as_py() if self.frame else "",
                found["angle_min"].as_py(),
                found["angle_increment"].as_py(),
                np.asarray(found["ranges"].values, np.float64),
                np.asarray(strength, np.float64),
                stamp,
            )

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the echoes of each scan as points with z = 0, with ``range``, ``angle`` and, if known, ``intensity``.

        Ranges outside of the scanner's limits are left out.
        """
        paths = ["angle_min", "angle_increment", "range_min", "range_max", "ranges"]
        more = [*(["intensities"] if self.intensities else []), *([self.frame] if self.frame else [])]
        for time, found in rows(ch, [*paths, *more], start, end):
            sector = (found[name].as_py() for name in paths[:4])
            fields, seen = _echoes(np.asarray(found["ranges"].values), *sector)
            if self.intensities and len(strength := np.asarray(found["intensities"].values)) == len(seen):
                fields["intensity"] = strength[seen]
            yield Points(time, found[self.frame].as_py() if self.frame else "", fields)


def _echoes(
    ranges: NDArray[Any], first: float, step: float, low: float, high: float
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Return the fields of the echoes, and bool[n]: which of *ranges* are echoes, between *low* and *high*."""
    # Ranges may hold any number; those outside of the limits are left out below.
    with np.errstate(all="ignore"):
        distance = ranges.astype(np.float64)
        seen = (distance >= low) & (distance <= high)
        angle, distance = (first + step * np.arange(len(distance)))[seen], distance[seen]
        columns = {"x": distance * np.cos(angle), "y": distance * np.sin(angle), "z": np.zeros(len(angle))}
        columns |= {"range": distance, "angle": angle}
        # No scanner measures distances to more digits than these have.
        return {name: values.astype(np.float32) for name, values in columns.items()}, seen


def _frame_path(nodes: Nodes) -> str | None:
    return "header.frame_id" if isinstance(nodes_of(nodes.get("header")).get("frame_id"), String) else None


def find_cloud(nodes: Nodes) -> PackedCloud | PlainCloud | None:
    """Return the point cloud lens that *nodes* describe, or None."""
    inner = nodes_of(nodes.get("fields")) if isinstance(nodes.get("fields"), Sequence) else {}
    sizes = ("height", "width", "is_bigendian", "point_step", "row_step")
    if (
        {"name", "offset", "datatype", "count"} <= set(inner)
        and is_blob(nodes.get("data"))
        and set(sizes) <= set(nodes)
    ):
        return PackedCloud(_frame_path(nodes), find_stamp(nodes))
    points = nodes.get("points")
    if isinstance(points, Sequence) and is_vector(points.item):
        channels = nodes_of(nodes.get("channels")) if isinstance(nodes.get("channels"), Sequence) else {}
        named = isinstance(channels.get("name"), String) and is_floats(channels.get("values"))
        # Other lists of points are shapes, such as polygons, not measurements.
        return PlainCloud(_frame_path(nodes), stamp=find_stamp(nodes)) if named else None
    return None


def find_scan(nodes: Nodes) -> LaserScan | None:
    """Return the LaserScan that *nodes* describe, or None."""
    numbers = ("angle_min", "angle_increment", "range_min", "range_max")
    if not (is_floats(nodes.get("ranges")) and all(is_float(nodes.get(name)) for name in numbers)):
        return None
    return LaserScan(_frame_path(nodes), is_floats(nodes.get("intensities")), find_stamp(nodes))
