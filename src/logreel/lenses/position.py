"""Geographic positions: latitude, longitude and altitude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.layout.nodes import Scalar
from logreel.lenses.base import (
    F64,
    Columns,
    Nodes,
    Scaled,
    Stamp,
    columns,
    find_stamp,
    is_integer,
    is_number,
    nodes_of,
)

if TYPE_CHECKING:
    from logreel.log.log import Channel


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
    """

    time: I64
    latitude: F64
    longitude: F64
    altitude: F64
    fixed: NDArray[np.bool_]
    stamp: I64
    number: I64 | None = None

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
        )


@dataclass(frozen=True, slots=True)
class Known:
    """A field whose value is at least *least* if the position is known."""

    path: str
    least: int


@dataclass(frozen=True, slots=True)
class Position:
    """Geographic position: latitude and longitude in degrees, altitude in metres if present.

    known    field that says whether the position is known, if any
    warning  path of a field of NMEA sentences that is 0 if the position is known; angles may be ddmm.mmmm there
    stamp    time of measurement
    number   path of the number of a picture: a camera took one at each of the positions
    """

    latitude: Scaled
    longitude: Scaled
    altitude: Scaled | None
    known: Known | None = None
    warning: str | None = None
    stamp: Stamp | None = None
    number: str | None = None

    def fixes(self, ch: Channel, start: int | None = None, end: int | None = None) -> Fixes:
        """Return the positions of *ch* with start <= time < end (ns)."""
        scaled = [field for field in (self.latitude, self.longitude, self.altitude) if field]
        known = [self.known.path] if self.known else []
        known += [path for path in (self.warning, self.number) if path]
        found = columns(ch, [field.path for field in scaled] + known, start, end, self.stamp)
        size = len(found.time)
        lat, lon = _scaled(found, self.latitude), _scaled(found, self.longitude)
        altitude = _scaled(found, self.altitude) if self.altitude else np.full(size, np.nan)
        fixed = found.values[self.known.path] >= self.known.least if self.known else np.ones(size, np.bool_)
        if self.warning:
            fixed &= found.values[self.warning] == 0
            lat, lon = _to_degrees(lat, lon, fixed)
        number = found.values[self.number].astype(np.int64) if self.number else None
        return Fixes(found.time, lat, lon, altitude, fixed, found.stamp, number)

    def track(self, ch: Channel) -> tuple[F64, F64, F64]:
        """Return latitude, longitude (degrees) and altitude (metres; NaN if unknown): float64[n] each."""
        found = self.fixes(ch)
        return found.latitude, found.longitude, found.altitude


def _to_degrees(lat: F64, lon: F64, fixed: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Return angles in degrees; they are taken as ddmm.mmmm if most are outside of ±90° or ±180°."""
    there = fixed & np.isfinite(lat) & np.isfinite(lon)
    beyond = (np.abs(lat) > 90) | (np.abs(lon) > 180)
    if not np.count_nonzero(beyond[there]) * 2 > np.count_nonzero(there):
        return lat, lon
    whole = [np.trunc(angle / 100) for angle in (lat, lon)]
    return whole[0] + (lat - 100 * whole[0]) / 60, whole[1] + (lon - 100 * whole[1]) / 60


def _scaled(found: Columns, field: Scaled) -> F64:
    # Signalling NaNs would cause a warning.
    with np.errstate(invalid="ignore"):
        return found.values[field.path].astype(np.float64) * field.factor


#: Field names of the same quantity in different formats, most specific first.
_LATITUDE = (("latitude_deg", "longitude_deg"), ("lat", "lon"), ("latitude", "longitude"))
_ALTITUDE = ("altitude_msl_m", "alt", "altitude", "height")
#: Integers are in 1e-7 degrees and millimetres, as GPS receivers send them.
_DEGREE, _METRE = 1e-7, 1e-3
#: Fields that say whether a position is known: the status of a receiver (-1: no fix), the type of fix (2: 2D,
#: 3: 3D), the NMEA quality (0: no fix), or a flag.
_KNOWN = (
    Known("status.status", 0),
    Known("fix_type", 2),
    Known("quality", 1),
    Known("lat_lon_valid", 1),
    Known("valid_hpos", 1),
)


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
            )
    return None


def _is_picture(nodes: Nodes) -> bool:
    """Return whether each message is about a picture, as ``camera_capture`` of PX4: it has a number and a UTC time."""
    return is_integer(nodes.get("seq")) and is_integer(nodes.get("timestamp_utc"))


def _find_known(nodes: Nodes) -> Known | None:
    for known in _KNOWN:
        group, _, name = known.path.rpartition(".")
        node = (nodes_of(nodes.get(group)) if group else nodes).get(name)
        if is_integer(node) or node == Scalar("bool"):
            return known
    return None
