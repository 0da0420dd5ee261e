"""Geographic positions: latitude, longitude and altitude."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.lenses.base import (
    Columns,
    Nodes,
    Scaled,
    Stamp,
    columns,
    find_stamp,
    is_float,
    is_integer,
    is_number,
    is_vector,
    nodes_of,
)

if TYPE_CHECKING:
    from logreel.log.log import Channel


#: Kinds of covariances: unknown, approximated, only the diagonal is known, known (as in sensor_msgs/NavSatFix).
UNKNOWN, APPROXIMATED, DIAGONAL, FULL = range(4)


@dataclass(frozen=True, slots=True)
class Quality:
    """How exact positions are, and how the receiver moves; NaN where it is not known.

    covariance  float64[k, 9]  m², rows of the matrix for east, north, up
    kind        int8[k]        kind of the covariance, 0 to 3; 0: unknown
    velocity    float64[k, 3]  m/s east, north, up; up is NaN if only speed and course are known
    heading     float64[k]     direction of the vehicle's nose, rad clockwise from north
    hdop, vdop  float64[k]     dilution of precision, horizontal and vertical
    """

    covariance: F64
    kind: NDArray[np.int8]
    velocity: F64
    heading: F64
    hdop: F64
    vdop: F64

    def take(self, rows: NDArray[np.bool_] | I64 | slice) -> Quality:
        """Return the values at these rows."""
        return Quality(
            self.covariance[rows],
            self.kind[rows],
            self.velocity[rows],
            self.heading[rows],
            self.hdop[rows],
            self.vdop[rows],
        )

    @property
    def accuracy(self) -> F64:
        """float64[k]: standard deviation of the horizontal position in m, the greater one of east and north."""
        metres: F64 = np.sqrt(np.maximum(self.covariance[:, 0], self.covariance[:, 4]))
        return metres

    @property
    def speed(self) -> F64:
        """float64[k]: horizontal speed in m/s."""
        speed: F64 = np.hypot(self.velocity[:, 0], self.velocity[:, 1])
        return speed

    @property
    def course(self) -> F64:
        """float64[k]: direction of motion, degrees clockwise from north; NaN without motion."""
        east, north = self.velocity[:, 0], self.velocity[:, 1]
        degrees: F64 = np.where((east == 0) & (north == 0), np.nan, np.degrees(np.arctan2(east, north)) % 360)
        return degrees


@dataclass(frozen=True, slots=True)
class Fixes:
    """Geographic positions, one row per message, in the order of the log.

    time       int64[k]    ns
    latitude   float64[k]  degrees
    longitude  float64[k]  degrees
    altitude   float64[k]  metres; NaN if the channel has none
    fixed      bool[k]     False if the message says that the position is unknown
    stamp      int64[k]    ns when it was measured, according to the message; 0 if unknown
    number     int64[k]    numbers of the pictures that a camera took there; None for other positions
    quality    how exact they are, and how the receiver moves; None unless it was asked for
    """

    time: I64
    latitude: F64
    longitude: F64
    altitude: F64
    fixed: NDArray[np.bool_]
    stamp: I64
    number: I64 | None = None
    quality: Quality | None = None

    def __len__(self) -> int:
        return len(self.time)

    def faults(self) -> dict[str, NDArray[np.bool_]]:
        """Return bool[k] by reason: the rows that are not valid positions. All outputs use this rule."""
        lat, lon = self.latitude, self.longitude
        with np.errstate(invalid="ignore"):
            return {
                "no fix": ~self.fixed,
                "not a number": ~(np.isfinite(lat) & np.isfinite(lon)),
                "latitude and longitude are both 0": (lat == 0) & (lon == 0),
                "beyond 90° or 180°": (np.abs(lat) > 90) | (np.abs(lon) > 180),
            }

    @property
    def valid(self) -> NDArray[np.bool_]:
        """bool[k]: the rows that are valid positions."""
        good = np.ones(len(self), np.bool_)
        for rows in self.faults().values():
            good &= ~rows
        return good

    def take(self, rows: NDArray[np.bool_] | I64 | slice) -> Fixes:
        """Return the positions at these rows."""
        return Fixes(
            self.time[rows],
            self.latitude[rows],
            self.longitude[rows],
            self.altitude[rows],
            self.fixed[rows],
            self.stamp[rows],
            None if self.number is None else self.number[rows],
            None if self.quality is None else self.quality.take(rows),
        )


@dataclass(frozen=True, slots=True)
class KnownWhen:
    """A field whose value is at least *least* if the position is known."""

    path: str
    least: int


@dataclass(frozen=True, slots=True)
class QualityPaths:
    """Paths of what ``Quality`` contains; None or () where messages have no such field.

    covariance   array of nine numbers in m², and the number of its kind
    deviation    standard deviations in m, horizontal and vertical
    velocity     m/s; *down*: north, east, down; else east, north, up
    trusted      flag that is 0 where the velocity is not known
    speed        and *course* clockwise from north, used without *velocity*
    heading      of the vehicle
    """

    covariance: str | None = None
    kind: str | None = None
    deviation: tuple[str, ...] = ()
    velocity: tuple[str, ...] = ()
    down: bool = True
    trusted: str | None = None
    speed: Scaled | None = None
    course: Scaled | None = None
    heading: Scaled | None = None
    hdop: str | None = None
    vdop: str | None = None

    @property
    def paths(self) -> list[str]:
        """All paths to read."""
        paths = [f"{self.covariance}[{n}]" for n in range(9)] if self.covariance else []
        paths += [*self.deviation, *self.velocity]
        paths += [field.path for field in (self.speed, self.course, self.heading) if field]
        return paths + [path for path in (self.kind, self.trusted, self.hdop, self.vdop) if path]

    def read(self, messages: Columns) -> Quality:
        """Return the values of these paths among *messages*."""
        n = len(messages.time)
        covariance, covariance_type = self._covariance(messages, n)
        return Quality(
            covariance,
            covariance_type,
            self._velocity(messages, n),
            _scaled(messages, self.heading) if self.heading else np.full(n, np.nan),
            _positive(messages, self.hdop, n),
            _positive(messages, self.vdop, n),
        )

    def _covariance(self, messages: Columns, n: int) -> tuple[F64, NDArray[np.int8]]:
        matrix, covariance_type = np.full((n, 9), np.nan), np.zeros(n, np.int8)
        if self.covariance:
            values = messages.stack([f"{self.covariance}[{i}]" for i in range(9)])
            covariance_type = np.full(n, FULL, np.int8)
            if self.kind:
                stated = np.asarray(messages.values[self.kind], np.int64)
                covariance_type = np.where((stated >= UNKNOWN) & (stated <= FULL), stated, UNKNOWN).astype(
                    np.int8
                )
            good = (covariance_type != UNKNOWN) & np.isfinite(values).all(axis=1)
            matrix[good], covariance_type[~good] = values[good], UNKNOWN
        elif self.deviation:
            # As drivers of ROS do it: the accuracies that a receiver states are standard deviations.
            east, up = (messages.values[path].astype(np.float64) for path in self.deviation)
            with np.errstate(invalid="ignore", over="ignore"):
                good = np.isfinite(east) & np.isfinite(up) & (east > 0) & (up > 0)
            matrix[good] = 0.0
            matrix[good, 0] = matrix[good, 4] = east[good] ** 2
            matrix[good, 8] = up[good] ** 2
            covariance_type[good] = DIAGONAL
        return matrix, covariance_type

    def _velocity(self, messages: Columns, n: int) -> F64:
        if self.velocity:
            values = messages.stack(self.velocity)
            values = values[:, [1, 0, 2]] * (1, 1, -1) + 0.0 if self.down else values
        elif self.speed and self.course:
            speed, course = _scaled(messages, self.speed), _scaled(messages, self.course)
            values = np.stack([speed * np.sin(course), speed * np.cos(course), np.full(n, np.nan)], axis=-1)
        else:
            return np.full((n, 3), np.nan)
        if self.trusted:
            values[~np.asarray(messages.values[self.trusted], np.bool_)] = np.nan
        return values


def _positive(messages: Columns, path: str | None, n: int) -> F64:
    """Return the numbers at *path*, NaN where they are 0 or less, which receivers send for unknown ones."""
    if path is None:
        return np.full(n, np.nan)
    values = messages.values[path].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(values > 0, values, np.nan)


@dataclass(frozen=True, slots=True)
class Position:
    """Geographic position: latitude and longitude in degrees, altitude in metres if present.

    known    field that says whether the position is known, if any
    warning  path of a field of NMEA sentences that is 0 if the position is known; angles may be ddmm.mmmm there
    stamp    time of measurement
    number   path of the number of a picture: a camera took one at each of the positions
    quality  paths of accuracy, velocity and heading; None if messages have none of these
    of_others  whether they are those of other vehicles, one after another, as a transponder hears them
    """

    latitude: Scaled
    longitude: Scaled
    altitude: Scaled | None
    known: KnownWhen | None = None
    warning: str | None = None
    stamp: Stamp | None = None
    number: str | None = None
    quality: QualityPaths | None = None
    of_others: bool = False

    def fixes(
        self, ch: Channel, start: int | None = None, end: int | None = None, *, quality: bool = False
    ) -> Fixes:
        """Return the positions of *ch* with start <= time < end (ns); *quality*: also how exact they are."""
        wanted = self.quality if quality else None
        scaled = [field for field in (self.latitude, self.longitude, self.altitude) if field]
        known = [self.known.path] if self.known else []
        known += [path for path in (self.warning, self.number) if path]
        known += wanted.paths if wanted else []
        messages = columns(ch, [field.path for field in scaled] + known, start, end, self.stamp)
        size = len(messages.time)
        lat, lon = _scaled(messages, self.latitude), _scaled(messages, self.longitude)
        altitude = _scaled(messages, self.altitude) if self.altitude else np.full(size, np.nan)
        fixed = (
            messages.values[self.known.path] >= self.known.least if self.known else np.ones(size, np.bool_)
        )
        if self.warning:
            fixed &= messages.values[self.warning] == 0
            lat, lon = _to_degrees(lat, lon, fixed)
        number = messages.values[self.number].astype(np.int64) if self.number else None
        more = wanted.read(messages) if wanted else None
        return Fixes(messages.time, lat, lon, altitude, fixed, messages.stamp, number, more)

    def track(self, ch: Channel) -> tuple[F64, F64, F64]:
        """Return latitude, longitude (degrees) and altitude (metres; NaN if unknown): float64[n] each."""
        fixes = self.fixes(ch)
        return fixes.latitude, fixes.longitude, fixes.altitude


def _to_degrees(lat: F64, lon: F64, fixed: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Return angles in degrees; they are taken as ddmm.mmmm if most are outside of ±90° or ±180°."""
    both_known = fixed & np.isfinite(lat) & np.isfinite(lon)
    beyond = (np.abs(lat) > 90) | (np.abs(lon) > 180)
    if not np.count_nonzero(beyond[both_known]) * 2 > np.count_nonzero(both_known):
        return lat, lon
    full_degrees = [np.trunc(angle / 100) for angle in (lat, lon)]
    return full_degrees[0] + (lat - 100 * full_degrees[0]) / 60, full_degrees[1] + (
        lon - 100 * full_degrees[1]
    ) / 60


def _scaled(messages: Columns, field: Scaled) -> F64:
    # Signalling NaNs would cause a warning.
    with np.errstate(invalid="ignore"):
        return messages.values[field.path].astype(np.float64) * field.factor


#: Field names of the same quantity in different formats, most specific first.
_LATITUDE = (("latitude_deg", "longitude_deg"), ("lat", "lon"), ("latitude", "longitude"))
_ALTITUDE = ("altitude_msl_m", "alt", "altitude", "height")
#: Integers are in 1e-7 degrees and millimetres, as GPS receivers send them.
_DEGREE, _METRE = 1e-7, 1e-3
#: Fields that say whether a position is known: the status of a receiver (-1: no fix), the type of fix (2: 2D,
#: 3: 3D), the NMEA quality (0: no fix), or a flag.
_KNOWN = (
    KnownWhen("status.status", 0),
    KnownWhen("fix_type", 2),
    KnownWhen("quality", 1),
    KnownWhen("lat_lon_valid", 1),
    KnownWhen("valid_hpos", 1),
)


#: Names of the address of a vehicle in what transponders of aircraft and ships send.
_ADDRESSES = ("icao_address", "mmsi")


def find_position(nodes: Nodes) -> Position | None:
    """Return the Position that *nodes* describe, or None."""
    for lat, lon in _LATITUDE:
        if is_number(nodes.get(lat)) and is_number(nodes.get(lon)):
            name = next((a for a in _ALTITUDE if is_number(nodes.get(a))), None)
            altitude = Scaled(name, _METRE if is_integer(nodes[name]) else 1.0) if name else None
            factor = _DEGREE if is_integer(nodes[lat]) else 1.0
            known = _find_known(nodes)
            nmea = known is not None and known.path == "quality" and is_integer(nodes.get("warning"))
            return Position(
                Scaled(lat, factor),
                Scaled(lon, factor),
                altitude,
                known,
                "warning" if nmea else None,
                find_stamp(nodes),
                "seq" if _is_picture(nodes) else None,
                _find_quality(nodes, nmea),
                any(is_integer(nodes.get(name)) for name in _ADDRESSES),
            )
    return None


def _is_picture(nodes: Nodes) -> bool:
    """Return whether each message is about a picture, as ``camera_capture`` of PX4: it has a number and a UTC time."""
    return is_integer(nodes.get("seq")) and is_integer(nodes.get("timestamp_utc"))


def _find_known(nodes: Nodes) -> KnownWhen | None:
    for known in _KNOWN:
        group, _, name = known.path.rpartition(".")
        node = (nodes_of(nodes.get(group)) if group else nodes).get(name)
        if is_integer(node) or node == Scalar("bool"):
            return known
    return None


#: Standard deviations in m, horizontal and vertical, of the same quantity in different formats.
_DEVIATIONS = (("eph", "epv"),)
#: North, east and down velocity in m/s.
_VELOCITIES = (("vel_n_m_s", "vel_e_m_s", "vel_d_m_s"), ("vel_n", "vel_e", "vel_d"))
_DEGREES, _KMH = float(np.pi / 180), 1 / 3.6


def _find_quality(nodes: Nodes, nmea: bool) -> QualityPaths | None:
    """Return the QualityPaths of a message with a position, or None."""
    has = {name for name, node in nodes.items() if is_float(node)}
    matrix = next((name for name in _COVARIANCES if _is_matrix(nodes.get(name))), None)
    type_path = f"{matrix or _COVARIANCES[0]}_type"
    deviation = next((pair for pair in _DEVIATIONS if has >= set(pair)), ())
    velocity = next((three for three in _VELOCITIES if has >= set(three)), ())
    down = True
    east_up = nodes.get("velocity")
    if not velocity and isinstance(east_up, Struct) and is_vector(east_up):
        velocity, down = ("velocity.x", "velocity.y", "velocity.z"), False
    speed = course = None
    if not velocity and has >= {"speed", "track"}:
        speed, course = Scaled("speed"), Scaled("track", _DEGREES)
    elif not velocity and nmea and has >= {"speed", "course"}:
        speed, course = Scaled("speed", _KMH), Scaled("course", _DEGREES)
    # Of other messages, the unit of an angle is not known.
    in_rad = nodes.get("timestamp") == Scalar("uint64") or (type_path in nodes and "velocity" in nodes)
    paths = QualityPaths(
        matrix,
        type_path if matrix and is_integer(nodes.get(type_path)) else None,
        () if matrix else deviation,
        velocity,
        down,
        "vel_ned_valid" if velocity and "vel_ned_valid" in nodes else None,
        speed,
        course,
        next((Scaled(name) for name in ("heading", "yaw") if name in has and in_rad), None),
        *(name if name in has else None for name in ("hdop", "vdop")),
    )
    return paths if paths.paths else None


#: Names of covariance matrices, with ``_type`` for the kind.
_COVARIANCES = ("position_covariance",)


def _is_matrix(node: Node | None) -> bool:
    return isinstance(node, FixedArray) and node.count == 9 and is_float(node.item)
