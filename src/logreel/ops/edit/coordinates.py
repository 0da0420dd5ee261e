"""Coordinates besides degrees: earth-centred, UTM, MGRS, Web Mercator, plus codes, geohash.

Angles are degrees, lengths metres, all on WGS 84. Arrays are computed item by item.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

#: Semi-major axis in metres, flattening, and square of the eccentricity of WGS 84.
AXIS = 6378137.0
FLATTENING = 1 / 298.257223563
ECCENTRICITY = FLATTENING * (2 - FLATTENING)
#: Scale of UTM on its central meridian, and easting of that meridian; northing of the equator in the south.
SCALE, EAST, SOUTH = 0.9996, 500_000.0, 10_000_000.0
#: Coefficients of Krueger's series to the third order of the third flattening.
_N = FLATTENING / (2 - FLATTENING)
_RECTIFYING = AXIS / (1 + _N) * (1 + _N**2 / 4 + _N**4 / 64)
_ALPHA = (
    _N / 2 - 2 * _N**2 / 3 + 5 * _N**3 / 16,
    13 * _N**2 / 48 - 3 * _N**3 / 5,
    61 * _N**3 / 240,
)
_BETA = (
    _N / 2 - 2 * _N**2 / 3 + 37 * _N**3 / 96,
    _N**2 / 48 + _N**3 / 15,
    17 * _N**3 / 480,
)
_DELTA = (2 * _N - 2 * _N**2 / 3 - 2 * _N**3, 7 * _N**2 / 3 - 8 * _N**3 / 5, 56 * _N**3 / 15)
#: Letters of the bands of UTM from 80 degrees south; columns and rows of MGRS.
BANDS = "CDEFGHJKLMNPQRSTUVWX"
_COLUMNS = ("ABCDEFGH", "JKLMNPQR", "STUVWXYZ")
_ROWS = "ABCDEFGHJKLMNPQRSTUV"
_PLUS = "23456789CFGHJMPQRVWX"
_GEOHASH = "0123456789bcdefghjkmnpqrstuvwxyz"
_MGRS = re.compile(r"(\d{1,2})([C-HJ-NP-X])\s*([A-HJ-NP-Z])([A-HJ-NP-V])\s*(\d[\d ]*)\Z")


def ecef_of(latitude: Any, longitude: Any, height: Any = 0.0) -> tuple[F64, F64, F64]:
    """Return earth-centred, earth-fixed x, y, z."""
    lat, lon = np.radians(np.asarray(latitude, np.float64)), np.radians(np.asarray(longitude, np.float64))
    normal = AXIS / np.sqrt(1 - ECCENTRICITY * np.sin(lat) ** 2)
    flat = (normal + height) * np.cos(lat)
    z = (normal * (1 - ECCENTRICITY) + height) * np.sin(lat)
    return flat * np.cos(lon), flat * np.sin(lon), np.asarray(z)


def degrees_of_ecef(x: Any, y: Any, z: Any) -> tuple[F64, F64, F64]:
    """Return latitude, longitude and height of earth-centred positions."""
    x, y, z = (np.asarray(item, np.float64) for item in (x, y, z))
    flat = np.hypot(x, y)
    lat = np.arctan2(z, flat * (1 - ECCENTRICITY))
    for _ in range(6):
        normal = AXIS / np.sqrt(1 - ECCENTRICITY * np.sin(lat) ** 2)
        lat = np.arctan2(z + ECCENTRICITY * normal * np.sin(lat), flat)
    normal = AXIS / np.sqrt(1 - ECCENTRICITY * np.sin(lat) ** 2)
    height = flat * np.cos(lat) + z * np.sin(lat) - AXIS**2 / normal
    return np.degrees(lat), np.degrees(np.arctan2(y, x)), np.asarray(height)


def zone_of(latitude: float, longitude: float) -> int:
    """Return the zone of UTM, with the exceptions of Norway and Svalbard."""
    zone = int((longitude + 180) // 6) % 60 + 1
    if 56 <= latitude < 64 and 3 <= longitude < 12:
        return 32
    if 72 <= latitude <= 84 and 0 <= longitude < 42:
        return 31 if longitude < 9 else 33 if longitude < 21 else 35 if longitude < 33 else 37
    return zone


def utm_of(latitude: Any, longitude: Any, zone: int) -> tuple[F64, F64]:
    """Return easting and northing in *zone*; northings of the south have the false northing."""
    lat = np.radians(np.asarray(latitude, np.float64))
    away = np.radians(np.asarray(longitude, np.float64) - (zone * 6 - 183))
    root = 2 * np.sqrt(_N) / (1 + _N)
    t = np.sinh(np.arctanh(np.sin(lat)) - root * np.arctanh(root * np.sin(lat)))
    xi, eta = np.arctan2(t, np.cos(away)), np.arctanh(np.sin(away) / np.sqrt(1 + t**2))
    north, east = xi, eta
    for j, a in enumerate(_ALPHA, 1):
        north = north + a * np.sin(2 * j * xi) * np.cosh(2 * j * eta)
        east = east + a * np.cos(2 * j * xi) * np.sinh(2 * j * eta)
    northing = SCALE * _RECTIFYING * north
    return EAST + SCALE * _RECTIFYING * east, np.where(lat < 0, northing + SOUTH, northing)


def degrees_of_utm(easting: Any, northing: Any, zone: int, south: bool = False) -> tuple[F64, F64]:
    """Return latitude and longitude of eastings and northings in *zone*."""
    north = np.asarray(northing, np.float64) - (SOUTH if south else 0.0)
    xi, eta = north / (SCALE * _RECTIFYING), (np.asarray(easting, np.float64) - EAST) / (SCALE * _RECTIFYING)
    at, beside = xi, eta
    for j, b in enumerate(_BETA, 1):
        at = at - b * np.sin(2 * j * xi) * np.cosh(2 * j * eta)
        beside = beside - b * np.cos(2 * j * xi) * np.sinh(2 * j * eta)
    chi = np.arcsin(np.clip(np.sin(at) / np.cosh(beside), -1, 1))
    lat = chi
    for j, d in enumerate(_DELTA, 1):
        lat = lat + d * np.sin(2 * j * chi)
    lon = zone * 6 - 183 + np.degrees(np.arctan2(np.sinh(beside), np.cos(at)))
    return np.degrees(lat), np.asarray(lon)


def mercator_of(latitude: Any, longitude: Any) -> tuple[F64, F64]:
    """Return x and y in Web Mercator, in which tiles of maps are."""
    lat = np.radians(np.clip(np.asarray(latitude, np.float64), -85, 85))
    x = AXIS * np.radians(np.asarray(longitude, np.float64))
    return np.asarray(x), np.asarray(AXIS * np.arctanh(np.sin(lat)))


def mgrs_of(latitude: float, longitude: float) -> str:
    """Return the MGRS reference to 1 m."""
    zone = zone_of(latitude, longitude)
    band = BANDS[min(int((latitude + 80) // 8), 19)]
    east, north = (float(item) for item in utm_of(latitude, longitude, zone))
    column = _COLUMNS[(zone - 1) % 3][int(east // 100_000) - 1]
    row = _ROWS[(int(north // 100_000) + (5 if zone % 2 == 0 else 0)) % 20]
    return f"{zone:02d}{band}{column}{row}{int(east % 100_000):05d}{int(north % 100_000):05d}"


def degrees_of_mgrs(text: str) -> tuple[float, float] | None:
    """Return latitude and longitude of a reference of MGRS; None if *text* is none."""
    match = _MGRS.match(text.strip().upper())
    if match is None:
        return None
    zone, band, digits = int(match[1]), match[2], match[5].replace(" ", "")
    column = _COLUMNS[(zone - 1) % 3].find(match[3])
    if not 1 <= zone <= 60 or column < 0 or len(digits) % 2 or len(digits) > 10:
        return None
    half = len(digits) // 2
    step = 10 ** (5 - half)
    east = (column + 1) * 100_000 + int(digits[:half]) * step
    row = (_ROWS.index(match[4]) - (5 if zone % 2 == 0 else 0)) % 20
    south = band < "N"
    least = float(utm_of(BANDS.index(band) * 8 - 80, zone * 6 - 183, zone)[1])
    north = row * 100_000 + int(digits[half:]) * step
    while north < least - 100_000:
        north += 2_000_000
    lat, lon = degrees_of_utm(east, north, zone, south)
    return float(lat), float(lon)


def plus_code_of(latitude: float, longitude: float) -> str:
    """Return the plus code of ten digits."""
    lat, lon = int((latitude + 90) * 8000), int((longitude + 180) * 8000)
    digits_made = ""
    for _ in range(5):
        digits_made = _PLUS[lat % 20] + _PLUS[lon % 20] + digits_made
        lat, lon = lat // 20, lon // 20
    return f"{digits_made[:8]}+{digits_made[8:]}"


def degrees_of_plus_code(text: str) -> tuple[float, float] | None:
    """Return the centre of a plus code with at least eight digits before the plus; None if *text* is none."""
    digits = text.upper().replace("+", "")[:10]
    if len(digits) < 8 or any(item not in _PLUS for item in digits):
        return None
    lat = lon = 0.0
    step = 20.0
    for at in range(0, len(digits) - 1, 2):
        lat, lon = lat + _PLUS.index(digits[at]) * step, lon + _PLUS.index(digits[at + 1]) * step
        step /= 20
    return lat - 90 + step * 10, lon - 180 + step * 10


def degrees_of_geohash(text: str) -> tuple[float, float] | None:
    """Return the centre of a geohash; None if *text* is none."""
    bounds = [[-180.0, 180.0], [-90.0, 90.0]]
    axis = 0
    for letter in text.lower():
        number = _GEOHASH.find(letter)
        if number < 0:
            return None
        for bit in range(4, -1, -1):
            middle = sum(bounds[axis]) / 2
            bounds[axis][0 if number >> bit & 1 else 1] = middle
            axis = 1 - axis
    return sum(bounds[1]) / 2, sum(bounds[0]) / 2
