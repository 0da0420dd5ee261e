"""What is seen in space: point clouds, planar scans, occupancy grids, and markers that programs draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import NamedTuple, dataclass, field
from logreel.errors import DamagedError, Problem
from logreel.index.gather import payload_ranges
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Field, FixedArray, Node, Scalar, Sequence, String, Struct, Time, size_of
from logreel.lenses import velodyne
from logreel.lenses.base import (
    Nodes,
    Stamp,
    find_stamp,
    frame_path,
    is_blob,
    is_float,
    is_floats,
    is_integer,
    is_vector,
    nodes_of,
    rows,
    stamped_rows,
)
from logreel.lenses.velodyne import PACKET, Calibration, Cloud, Packets
from logreel.log.columns import ColumnReader, column_batches

if TYPE_CHECKING:
    from logreel.log.log import Channel, Message


#: Cells of a grid without a measurement.
UNKNOWN = -1
#: Shapes by the number of their type (visualization_msgs/Marker).
SHAPES = (
    "arrow",
    "cube",
    "sphere",
    "cylinder",
    "line strip",
    "line list",
    "cube list",
    "sphere list",
    "points",
    "text",
    "mesh",
    "triangle list",
)
#: Numbers of the actions of a marker.
_DELETE, _DELETE_ALL = 2, 3
#: Stands for the names of all markers.
ALL = "*"
#: Messages before a moment, and their bytes, that are looked through for markers that still stand then.
HISTORY, HISTORY_BYTES = 500, 16 << 20
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
        for time, stamp, value in stamped_rows(ch, [*paths, *more], self.stamp, start, end):
            stated = value["fields"]
            fields = stated.slice(0, min(len(stated), _MAX_FIELDS)).to_pylist()
            points = _point_rows(value["data"], value)
            lost = value["width"] * value["height"] - len(points)
            order = ">" if value["is_bigendian"] else "<"
            frame = value[self.frame] if self.frame else ""
            yield Points(time, frame, _unpack_fields(points, fields, order), lost, stamp)


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
    unpacked: dict[str, NDArray[Any]] = {}
    room = _MAX_SHARED * points.shape[1]
    for f in fields:
        stated_type, items = _TYPES.get(f["datatype"]), max(1, f["count"])
        if stated_type is None or items > _MAX_COUNT or f["name"] in unpacked:
            continue
        dtype = np.dtype(order + stated_type)
        size = items * dtype.itemsize
        if f["offset"] + size <= points.shape[1] and size <= room:
            room -= size
            column = np.ascontiguousarray(points[:, f["offset"] : f["offset"] + size]).view(dtype)
            unpacked[f["name"]] = column[:, 0] if items == 1 else column
    return unpacked


@dataclass(frozen=True, slots=True)
class PlainCloud:
    """Point clouds as a list of x, y, z, with further values in separate named lists."""

    frame: str | None = None
    channels: bool = True
    stamp: Stamp | None = None

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the points of each message with start <= time < end (ns), in file order, decoding in small batches."""
        paths = ["points", *(["channels"] if self.channels else []), *([self.frame] if self.frame else [])]
        for time, stamp, value in stamped_rows(ch, paths, self.stamp, start, end):
            points = value["points"]
            fields = {name: points.member(name).items() for name in "xyz"}
            for extra in value["channels"].to_pylist() if self.channels else ():
                if len(extra["values"]) == len(points) and extra["name"] not in fields:
                    fields[extra["name"]] = np.asarray(extra["values"], np.float32)
            yield Points(time, value[self.frame] if self.frame else "", fields, stamp=stamp)


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
        for time, stamp, value in stamped_rows(ch, [*paths, *more], self.stamp, start, end):
            strength = value["intensities"].items() if self.intensities else ()
            yield Sector(
                time,
                value[self.frame] if self.frame else "",
                value["angle_min"],
                value["angle_increment"],
                np.asarray(value["ranges"].items(), np.float64),
                np.asarray(strength, np.float64),
                stamp,
            )

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the echoes of each scan as points with z = 0, with ``range``, ``angle`` and, if known, ``intensity``.

        Ranges outside of the scanner's limits are left out.
        """
        paths = ["angle_min", "angle_increment", "range_min", "range_max", "ranges"]
        more = [*(["intensities"] if self.intensities else []), *([self.frame] if self.frame else [])]
        for time, value in rows(ch, [*paths, *more], start, end):
            sector = (value[name] for name in paths[:4])
            fields, seen = _echoes(value["ranges"].items(), *sector)
            if self.intensities and len(strength := value["intensities"].items()) == len(seen):
                fields["intensity"] = strength[seen]
            yield Points(time, value[self.frame] if self.frame else "", fields)


def _echoes(
    ranges: NDArray[Any], first: float, step: float, low: float, high: float
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Return the fields of the echoes, and bool[n]: which of *ranges* are echoes, between *low* and *high*."""
    # Ranges may hold any number; those outside of the limits are left out below.
    with np.errstate(all="ignore"):
        distance = ranges.astype(np.float64)
        seen = (distance >= low) & (distance <= high)
        angle, distance = (first + step * np.arange(len(distance)))[seen], distance[seen]
        columns: dict[str, NDArray[Any]] = {"x": distance * np.cos(angle), "y": distance * np.sin(angle)}
        columns |= {"z": np.zeros(len(angle)), "range": distance, "angle": angle}
        # No scanner measures distances to more digits than these have.
        return {name: values.astype(np.float32) for name, values in columns.items()}, seen


def find_cloud(nodes: Nodes) -> PackedCloud | PlainCloud | None:
    """Return the point cloud lens that *nodes* describe, or None."""
    inner = nodes_of(nodes.get("fields")) if isinstance(nodes.get("fields"), Sequence) else {}
    sizes = ("height", "width", "is_bigendian", "point_step", "row_step")
    if (
        {"name", "offset", "datatype", "count"} <= set(inner)
        and is_blob(nodes.get("data"))
        and set(sizes) <= set(nodes)
    ):
        return PackedCloud(frame_path(nodes), find_stamp(nodes))
    points = nodes.get("points")
    if isinstance(points, Sequence) and is_vector(points.item):
        channels = nodes_of(nodes.get("channels")) if isinstance(nodes.get("channels"), Sequence) else {}
        named = isinstance(channels.get("name"), String) and is_floats(channels.get("values"))
        # Other lists of points are shapes, such as polygons, not measurements.
        return PlainCloud(frame_path(nodes), stamp=find_stamp(nodes)) if named else None
    return None


def find_scan(nodes: Nodes) -> LaserScan | None:
    """Return the LaserScan that *nodes* describe, or None."""
    numbers = ("angle_min", "angle_increment", "range_min", "range_max")
    if not (is_floats(nodes.get("ranges")) and all(is_float(nodes.get(name)) for name in numbers)):
        return None
    return LaserScan(frame_path(nodes), is_floats(nodes.get("intensities")), find_stamp(nodes))


@dataclass(frozen=True, slots=True)
class Scanner:
    """One scanner model.

    slits   steps of a full revolution
    front   the step that points straight ahead
    least   ranges below this, in mm, are error codes
    first   the first step of a scan by the number of its ranges
    codes   meaning of each error code
    """

    slits: int
    front: int
    least: int
    first: Mapping[int, int]
    codes: Mapping[int, str] = field(default_factory=dict)

    def angles(self, count: int) -> F64:
        """Return angles, float64[count]: rad from straight ahead, counter-clockwise; centred if *count* is unusual."""
        first = self.first.get(count, self.front - count // 2)
        steps: F64 = np.arange(count, dtype=np.float64) + (first - self.front)
        return steps * (2 * np.pi / self.slits)

    def masked(self, ranges: NDArray[np.uint32]) -> F64:
        """Return ranges in metres, float64[n]; NaN for error codes."""
        out: F64 = ranges.astype(np.float64) / 1000
        out[ranges < self.least] = np.nan
        return out


_URG = {
    0: "nothing, or an object 22 m away",
    1: "weak",
    2: "weak",
    6: "other",
    7: "differs from its neighbours",
    8: "intensity",
    9: "repeated",
    16: "beyond the limit",
    18: "strong reflector",
    19: "not measurable",
}
_UTM = {1: "nothing in range", 2: "too near", 3: "measurement error", 4: "too near to measure", 5: "other"}

SCANNERS = {
    "Hokuyo_URG-04LX": Scanner(1024, 384, 20, {682: 44, 725: 0, 726: 0, 768: 0, 769: 0}, _URG),
    "Hokuyo_UTM-30LX": Scanner(1440, 540, 6, {1080: 0, 1081: 0}, _UTM),
}


@dataclass(frozen=True, slots=True)
class ScanPoints:
    """One scan.

    time     ns
    angles   float64[n]  rad from straight ahead, counter-clockwise seen from above
    ranges   float64[n]  metres, NaN for error codes
    codes    uint32[n]   the error code, 0 for a valid range
    """

    time: int
    angles: F64
    ranges: F64
    codes: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class RangeScan:
    """Ranges in millimetres and error codes of a scanner; each message names the model."""

    model: str
    ranges: str

    def scans(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[ScanPoints]:
        """Yield the scans of *ch* with start <= time < end (ns), in file order.

        Scans of unknown models are left out. A scan with an unusual number of ranges is assumed to be centred straight
        ahead. Both are noted as Problems with code ``scan``.
        """
        for time, value in rows(ch, [self.model, self.ranges], start, end):
            model, ranges = value[self.model], np.asarray(value[self.ranges].items(), np.uint32)
            scanner = SCANNERS.get(model)
            if scanner is None:
                _note(ch, f"scanner {model[:60]!r} is not known: its angles are unknown")
                continue
            if len(ranges) not in scanner.first:
                _note(ch, f"a scan of {len(ranges)} ranges is taken to be centred straight ahead")
            masked = scanner.masked(ranges)
            codes = np.where(np.isnan(masked), ranges, 0).astype(np.uint32)
            yield ScanPoints(time, scanner.angles(len(ranges)), masked, codes)

    def sectors(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Sector]:
        """Yield the scans of *ch* with start <= time < end (ns), in file order; ranges are NaN for error codes."""
        for scan in self.scans(ch, start, end):
            if len(scan.angles):
                first, last = float(scan.angles[0]), float(scan.angles[-1])
                step = (last - first) / max(1, len(scan.angles) - 1)
                yield Sector(scan.time, "", first, step, scan.ranges, np.zeros(0))

    def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Points]:
        """Yield the echoes of each scan as points with z = 0, with ``range`` and ``angle``."""
        for scan in self.scans(ch, start, end):
            seen = ~np.isnan(scan.ranges)
            far, angle = scan.ranges[seen], scan.angles[seen]
            fields = {"x": far * np.cos(angle), "y": far * np.sin(angle), "z": np.zeros(len(far))}
            fields |= {"range": far, "angle": angle}
            yield Points(scan.time, "", {name: v.astype(np.float32) for name, v in fields.items()})


def _note(ch: Channel, text: str) -> None:
    ch.log.note(Problem("scan", 0, 0, False, f"{ch.topic}: {text}"))


def find_ranges(nodes: Nodes) -> RangeScan | None:
    """Return the RangeScan that *nodes* describe, or None."""
    if isinstance(nodes.get("sensor_type"), String) and nodes.get("ranges") == Sequence(Scalar("uint32")):
        return RangeScan("sensor_type", "ranges")
    return None


#: Packets read at a time.
_MANY = velodyne.STEP
#: Consecutive packets that certainly contain a whole calibration, if the unit sends one.
_CALIBRATED = 2 * 4160
#: Bytes of the count before the packets of a message.
_COUNT = 4


@dataclass(frozen=True, slots=True)
class PacketCloud:
    """Velodyne packets of a HDL-64E or HDL-32E.

    data   path of their bytes; None if the message is a count followed by packets
    stamp  path of the time of each packet
    frame  path of the name of the coordinate frame of the points
    """

    data: str | None = None
    stamp: str | None = None
    frame: str | None = None

    def clouds(
        self,
        ch: Channel,
        start: int | None = None,
        end: int | None = None,
        calibration: Calibration | None = None,
    ) -> Iterator[Points]:
        """Yield the points of each revolution of the sensor in messages with start <= time < end (ns).

        Fields are ``x`` ``y`` ``z`` (float32 m; forward at azimuth 0, left, up), ``intensity`` and ``ring`` (uint8; 0
        is the lowest laser), ``azimuth`` (float32 degrees, clockwise) and ``time`` (int64 ns). Shots without an
        echo are left out.

        calibration  of a HDL-64E; None: from a ``db.xml`` among the definitions that the log was opened with, else from
                     the packets if they contain it, else that of another unit, which gives approximate points

        Raises DefinitionError for a ``db.xml`` that cannot be used.
        """
        if calibration is None:
            calibration = self.calibration(ch)
        frame = self._frame(ch) if self.frame else ""
        for turn in velodyne.sweeps(self.packets(ch, start, end), calibration):
            yield Points(turn.time, frame, _fields(turn.cloud), stamp=turn.stamp)

    def calibration(self, ch: Channel) -> Calibration:
        """Return the calibration that ``clouds`` uses by default; its ``origin`` says where it comes from."""
        several = self.packets(ch)
        first = next(several, None)
        if first is None or not first.has_lower_bank():
            return velodyne.HDL32E
        from logreel.lenses.velodyne import from_status, read_xml

        files = [path for path in ch.log.definitions if path.suffix.lower() == ".xml"]
        if files:
            return read_xml(files[0])
        status = [first.status]
        for packets in islice(several, _CALIBRATED // _MANY):
            status.append(packets.status)
        return from_status(np.concatenate(status)) or velodyne.HDL64E

    def packets(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Packets]:
        """Yield the packets of messages with start <= time < end (ns), some thousand at a time."""
        return self._from_field(ch, start, end) if self.data else _from_payloads(ch, start, end)

    def _from_field(self, ch: Channel, start: int | None, end: int | None) -> Iterator[Packets]:
        """Yield packets that are a field of the items of a counted array."""
        paths = [str(self.data), *([self.stamp] if self.stamp else [])]
        for batch in column_batches(ch, _batch_size(ch), paths, start, end):
            column = batch.columns[0]
            counts = np.diff(column.ends)
            data, _ = column.flat()
            time = np.repeat(batch.time, counts)
            logged, own = time, np.zeros(len(time), np.int64)
            if self.stamp:
                stamps, _ = batch.columns[1].flat()
                own = stamps.view(np.int64) if stamps.dtype.kind in "mM" else stamps
                time = np.where(own != 0, own, time)
            if len(time):
                yield Packets(data, np.arange(len(time), dtype=np.int64) * PACKET, time, logged, own)

    def _frame(self, ch: Channel) -> str:
        messages = ColumnReader(ch, [str(self.frame)]).read(slice(0, min(1, len(ch))))
        return str(messages.columns[0].at(0)) if len(messages) else ""


def _from_payloads(ch: Channel, start: int | None, end: int | None) -> Iterator[Packets]:
    """Yield packets that follow a count in the payload, as offsets into the log, without copying."""
    index, step = ch.log.index, _batch_size(ch)
    picked = index.rows_between(ch.number, start, end)
    rows = np.arange(*picked.indices(len(ch)), dtype=np.int64) if isinstance(picked, slice) else picked
    times = ch.times
    for lo in range(0, len(rows), step):
        step_rows, done = rows[lo : lo + step], 0
        for payloads in payload_ranges(index, ch.number, step_rows):
            numbers = step_rows[done : done + len(payloads.offset)]
            done += len(numbers)
            complete = payloads.size >= _COUNT
            offset, size, numbers = payloads.offset[complete], payloads.size[complete], numbers[complete]
            count = np.zeros(len(offset), np.int64)
            for i in range(_COUNT):
                count |= payloads.data[offset + i].astype(np.int64) << (8 * i)
            count = np.minimum(count, (size - _COUNT) // PACKET)
            message = np.repeat(np.arange(len(offset), dtype=np.int64), count)
            place = np.arange(len(message), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
            at = offset[message] + _COUNT + place * PACKET
            if len(at):
                yield velodyne.spread(Packets(payloads.data, at, times[numbers][message]), message)


def _batch_size(ch: Channel) -> int:
    """Return the number of messages that together contain some thousand packets."""
    return max(1, _MANY * PACKET * len(ch) // max(1, ch.bytes))


def _fields(cloud: Cloud) -> dict[str, Any]:
    return {
        **dict(zip("xyz", cloud.xyz, strict=True)),
        "intensity": cloud.intensity,
        "ring": cloud.ring,
        "azimuth": cloud.azimuth,
        "time": cloud.time,
    }


def find_packets(nodes: Nodes) -> PacketCloud | None:
    """Return the PacketCloud that *nodes* describe, or None."""
    if _is_packet(nodes):
        return PacketCloud()
    for name, node in nodes.items():
        inner = nodes_of(node) if isinstance(node, Sequence) else {}
        for part, part_node in inner.items():
            if part_node == FixedArray(Scalar("uint8"), PACKET):
                stamp = next(
                    (f"{name}.{n}" for n, member_node in inner.items() if isinstance(member_node, Time)), None
                )
                framed = isinstance(nodes_of(nodes.get("header")).get("frame_id"), String)
                return PacketCloud(f"{name}.{part}", stamp, "header.frame_id" if framed else None)
    return None


def _is_packet(nodes: Nodes) -> bool:
    """Return whether *nodes* are the fields of one packet, stored as a record."""
    blocks = nodes.get("blocks")
    if not (isinstance(blocks, FixedArray) and blocks.count == velodyne.BLOCKS):
        return False
    names = list(nodes_of(Sequence(blocks.item)))
    packet = Struct(tuple(Field(name, node) for name, node in nodes.items()))
    return names == ["flag", "azimuth", "returns"] and size_of(packet) == PACKET


@dataclass(frozen=True, slots=True, eq=False)
class GridCells:
    """An occupancy grid.

    time        ns
    frame       name of its coordinate frame; empty if unknown
    resolution  metres of an edge of a cell
    position    float64[3]  metres: the corner of the first cell
    rotation    float64[4]  quaternion x, y, z, w
    cells       int8[height, width]: 0 free to 100 occupied, UNKNOWN without a measurement; rows along y
    """

    time: int
    frame: str
    resolution: float
    position: F64
    rotation: F64
    cells: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class OccupancyGrid:
    """Grids of cells with a probability of being occupied (nav_msgs/OccupancyGrid)."""

    frame: str | None = None

    def grids(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[GridCells]:
        """Yield the grids with start <= time < end (ns), in file order; rows of cells that are missing are unknown."""
        origin = [
            f"info.origin.{part}.{axis}"
            for part, axes in (("position", "xyz"), ("orientation", "xyzw"))
            for axis in axes
        ]
        paths = ["info.resolution", "info.width", "info.height", *origin, "data"]
        for time, value in rows(ch, [*paths, *([self.frame] if self.frame else [])], start, end):
            data = value["data"]
            cells = np.asarray(data if isinstance(data, np.ndarray) else data.items()).view(np.int8)
            width, height = int(value["info.width"]), int(value["info.height"])
            # What a message states must not take more memory than it holds.
            height = min(height, -(-len(cells) // width)) if width else 0
            width = min(width, len(cells))
            full = np.full(width * height, UNKNOWN, np.int8)
            full[: len(cells)] = cells[: len(full)]
            place = np.array([value[path] for path in origin], np.float64)
            yield GridCells(
                time,
                value[self.frame] if self.frame else "",
                float(value["info.resolution"]),
                place[:3],
                place[3:],
                full.reshape(height, width),
            )


@dataclass(frozen=True, slots=True, eq=False)
class Marker:
    """A shape as it was last sent.

    time      ns of its message
    name      namespace and number
    shape     one of SHAPES; ``unknown`` for others
    frame     name of its coordinate frame; empty if unknown
    position, rotation  float64[3] in metres and float64[4], quaternion x, y, z, w
    scale     float64[3]  metres
    colour    float64[4]  red, green, blue, opacity from 0 to 1
    points    float64[n, 3]  metres, relative to its pose; of lists and of arrows between two points
    colours   float64[n, 4]  of each point; empty where all have *colour*
    text      what a label says
    """

    time: int
    name: str
    shape: str
    frame: str
    position: F64
    rotation: F64
    scale: F64
    colour: F64
    points: F64
    colours: F64
    text: str


class SentMarkers(NamedTuple):
    """What a message does to markers.

    size      its bytes
    changes   name of each marker, or ALL, its new state (None: deleted), and the ns until which it stands (0: always)
    is_sound  False: it cannot be decoded
    """

    size: int
    changes: list[tuple[str, Marker | None, int]]
    is_sound: bool = True


@dataclass(frozen=True, slots=True)
class Markers:
    """Markers (visualization_msgs/Marker), alone or as an array; each stands until it is replaced, deleted or expires.

    array  True: a message has many
    """

    array: bool

    def standing(
        self, ch: Channel, at: int, known: dict[int, SentMarkers] | None = None
    ) -> tuple[list[Marker], int]:
        """Return the markers that stand at the moment *at* (ns), and the number of messages that were not read.

        These are messages that cannot be decoded, and those further back than HISTORY.

        known  messages by row that were decoded for other moments; new ones are added
        """
        known = {} if known is None else known
        before = ch.log.index.rows_between(ch.number, None, at + 1)
        numbers = np.arange(before.start, before.stop) if isinstance(before, slice) else np.asarray(before)
        left_out = max(0, len(numbers) - HISTORY)
        messages, size = list[SentMarkers](), 0
        for row in numbers[left_out:][::-1].tolist():
            if row not in known:
                known[row] = self._sent(ch[row])
            size += known[row].size
            if messages and size > HISTORY_BYTES:
                left_out = len(numbers) - len(messages)
                break
            messages.append(known[row])
        for row in list(known)[: -2 * HISTORY]:
            del known[row]
        shown = dict[str, tuple[Marker, int]]()
        for message in reversed(messages):
            left_out += not message.is_sound
            for name, marker, until in message.changes:
                if marker is not None:
                    shown.pop(name, None)
                    shown[name] = marker, until
                elif name == ALL:
                    shown.clear()
                else:
                    shown.pop(name, None)
        return [marker for marker, until in shown.values() if until == 0 or at < until], left_out

    def _sent(self, message: Message) -> SentMarkers:
        try:
            fields = message.decode()
        except DamagedError:
            return SentMarkers(len(message.data), [], False)
        values = fields["markers"] if self.array else [fields]
        return SentMarkers(len(message.data), [_change(value, message.time) for value in values])


def _change(value: Mapping[str, Any], time: int) -> tuple[str, Marker | None, int]:
    """Return name, new state (None: deleted), and the ns until which it stands (0: always) of a marker in a message."""
    if value["action"] == _DELETE_ALL:
        return ALL, None, 0
    name = f"{value.get('ns', '')}/{value.get('id', 0)}".lstrip("/")
    if value["action"] == _DELETE:
        return name, None, 0
    lifetime = _ns(value.get("lifetime", 0))
    points = [_numbers(point, "xyz") for point in value.get("points", ())]
    colours = [_numbers(colour, "rgba") for colour in value.get("colors", ())]
    marker = Marker(
        time,
        name,
        SHAPES[value["type"]] if 0 <= value["type"] < len(SHAPES) else "unknown",
        str(value.get("header", {}).get("frame_id", "")),
        _numbers(value["pose"]["position"], "xyz"),
        _numbers(value["pose"]["orientation"], "xyzw"),
        _numbers(value["scale"], "xyz"),
        _numbers(value["color"], "rgba"),
        np.array(points, np.float64).reshape(-1, 3),
        np.array(colours, np.float64).reshape(-1, 4),
        str(value.get("text", "")),
    )
    return name, marker, time + lifetime if lifetime > 0 else 0


def _numbers(value: Mapping[str, float], axes: str) -> F64:
    return np.array([value[axis] for axis in axes], np.float64)


def _ns(lifetime: Any) -> int:
    if isinstance(lifetime, Mapping):
        return int(lifetime.get("sec", 0)) * 10**9 + int(lifetime.get("nanosec", 0))
    return int(lifetime)


def find_grid(nodes: Nodes) -> OccupancyGrid | None:
    """Return the OccupancyGrid that *nodes* describe, or None."""
    info = nodes_of(nodes.get("info")) if isinstance(nodes.get("info"), Struct) else {}
    data = nodes.get("data")
    is_cells = is_blob(data) or (isinstance(data, Sequence) and data.item == Scalar("int8"))
    if not (is_float(info.get("resolution")) and is_cells and _is_pose(info.get("origin"))):
        return None
    if not (is_integer(info.get("width")) and is_integer(info.get("height"))):
        return None
    return OccupancyGrid(frame_path(nodes))


def find_markers(nodes: Nodes) -> Markers | None:
    """Return the Markers that *nodes* describe, or None."""
    many = nodes.get("markers")
    if isinstance(many, Sequence):
        return Markers(True) if _is_marker(nodes_of(many)) else None
    return Markers(False) if _is_marker(nodes) else None


def _is_marker(nodes: Nodes) -> bool:
    # Interactive markers have no type.
    return (
        all(is_integer(nodes.get(name)) for name in ("type", "action", "id"))
        and isinstance(nodes.get("ns"), String)
        and _is_pose(nodes.get("pose"))
        and is_vector(nodes.get("scale"))
        and is_vector(nodes.get("color"), "rgba")
    )


def _is_pose(node: Node | None) -> bool:
    nodes = nodes_of(node) if isinstance(node, Struct) else {}
    return is_vector(nodes.get("position")) and is_vector(nodes.get("orientation"), "xyzw")
