"""Decode Velodyne packets of a HDL-64E or HDL-32E to points, and group them by revolution.

Source: the vendor's manuals; docs/howto/sensors.md lists the assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError
from logreel.io.arrays import F64, I64
from logreel.io.source import Buffer
from logreel.kernels import sensors as kernel

F32 = NDArray[np.float32]

PACKET, BLOCKS, LASERS = kernel.VELODYNE_PACKET, kernel.VELODYNE_BLOCKS, kernel.VELODYNE_LASERS
PER_PACKET = BLOCKS * LASERS
#: Maximum of packets in a sweep: also ends sweeps where azimuths never decrease.
MAX_SWEEP = 4096
#: Packets decoded at a time.
STEP = 2048
#: HDL-32E: ns from one firing of all lasers to the next, and from one laser to the next.
FIRING, SHOT = 46_080, 1_152
#: Packets that are searched for a lower bank: a HDL-64E sends it in one of four blocks.
LOOKED_AT = 256
_AZIMUTHS = 36_000
_LOWER = kernel.VELODYNE_LOWER.to_bytes(2, "little")


@dataclass(frozen=True)
class Calibration:
    """Directions and offsets of the lasers: float64 arrays of one value per laser, 32 or 64, the upper bank first.

    elevation   degrees above the horizon
    rotation    degrees to subtract from the azimuth
    distance    metres to add to the distance
    vertical    metres by which the laser is above the axis
    horizontal  metres by which the laser is to the side of the axis
    origin      description of the source of these numbers
    """

    elevation: F64
    rotation: F64
    distance: F64
    vertical: F64
    horizontal: F64
    origin: str

    @classmethod
    def plain(cls, elevation: Iterable[float], origin: str) -> Calibration:
        """Return a calibration with these elevations and no other corrections."""
        angles = np.array(list(elevation), np.float64)
        zero = np.zeros(len(angles))
        return cls(angles, zero, zero, zero, zero, origin)

    @cached_property
    def table(self) -> F32:
        """float32[8, 64]: the table for ``kernels.sensors``."""
        out = np.zeros((8, 2 * LASERS))
        tilt, turn = np.deg2rad(self.elevation), np.deg2rad(self.rotation)
        rows = (np.cos(tilt), np.sin(tilt), np.cos(turn), np.sin(turn))
        for row, values in zip(
            out, (*rows, self.distance, self.vertical, self.horizontal, self.rotation), strict=True
        ):
            row[: len(values)] = values
        return out.astype(np.float32)

    @cached_property
    def rings(self) -> NDArray[np.uint8]:
        """uint8[64]: the rank of each laser by elevation, 0 is the lowest."""
        out = np.zeros(2 * LASERS, np.uint8)
        out[np.argsort(self.elevation, kind="stable")] = np.arange(len(self.elevation))
        return out


def _hdl32e_elevations() -> Iterator[float]:
    for j in range(LASERS):
        yield (-9.33 if j % 2 else -30.67) + 4 / 3 * (j // 2)


#: Elevations of one unit of the first series: only an approximation for other units.
_UPPER_64E = (
    -7.16, -6.82, 0.32, 0.66, -6.48, -6.14, -8.52, -8.18, -5.80, -5.46, -7.84, -7.50, -3.08, -2.74, -5.12, -4.78,
    -2.40, -2.06, -4.44, -4.10, -1.72, -1.38, -3.76, -3.42, 1.00, 1.34, -1.04, -0.70, 1.68, 2.02, -0.36, -0.02,
)  # fmt: skip
_LOWER_64E = (
    -22.74, -22.23, -11.51, -11.00, -21.71, -21.20, -24.71, -24.28, -20.69, -20.18, -23.76, -23.25, -16.62, -16.11,
    -19.67, -19.16, -15.60, -15.09, -18.56, -18.14, -14.58, -14.07, -17.63, -17.12, -10.49, -9.98, -13.56, -13.05,
    -9.46, -8.95, -12.54, -12.03,
)  # fmt: skip

HDL32E = Calibration.plain(_hdl32e_elevations(), "HDL-32E")
HDL64E = Calibration.plain((*_UPPER_64E, *_LOWER_64E), "HDL-64E without calibration: a rough picture")


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in the order of the log.

    data    uint8[b]  the buffer that contains them
    offset  int64[n]  start of each packet in *data*; all are inside of it
    time    int64[n]  ns of each packet, by the sensor or the message
    logged  int64[n]  ns of the message that contains each; None: as *time*
    stamp   int64[n]  ns of each as stated in the message, 0 if unknown; None: unknown for all
    """

    data: Buffer
    offset: I64
    time: I64
    logged: I64 | None = None
    stamp: I64 | None = None

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def azimuth(self) -> I64:
        """int64[n]: azimuth of the first block, in hundredths of a degree."""
        return self.data[self.offset + 2].astype(np.int64) | self.data[self.offset + 3].astype(np.int64) << 8

    @property
    def status(self) -> NDArray[np.uint8]:
        """uint8[n, 2]: type and value of the status of a HDL-64E."""
        return np.stack([self.data[self.offset + 1204], self.data[self.offset + 1205]], axis=1)

    def has_lower_bank(self) -> bool:
        """Return whether any of the first packets is of a HDL-64E, whose lower bank of lasers has a separate flag."""
        at = self.offset[:LOOKED_AT, None] + 100 * np.arange(BLOCKS)
        return bool(((self.data[at] == _LOWER[0]) & (self.data[at + 1] == _LOWER[1])).any())


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points, one value per point in every array.

    xyz        float32[3, k]  metres: forward (azimuth 0), left, up
    intensity  uint8[k]
    ring       uint8[k]       rank of the laser by elevation, 0 is the lowest
    azimuth    float32[k]     degrees, clockwise seen from above, 0 up to 360
    time       int64[k]       ns
    """

    xyz: F32
    intensity: NDArray[np.uint8]
    ring: NDArray[np.uint8]
    azimuth: F32
    time: I64

    def __len__(self) -> int:
        return len(self.ring)

    def part(self, lo: int, hi: int) -> Cloud:
        """Return points *lo* … *hi*-1, without a copy."""
        at = slice(lo, hi)
        return Cloud(self.xyz[:, at], self.intensity[at], self.ring[at], self.azimuth[at], self.time[at])

    @classmethod
    def join(cls, parts: list[Cloud]) -> Cloud:
        """Return several clouds as one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([p.xyz for p in parts], axis=1),
            np.concatenate([p.intensity for p in parts]),
            np.concatenate([p.ring for p in parts]),
            np.concatenate([p.azimuth for p in parts]),
            np.concatenate([p.time for p in parts]),
        )


@cache
def _sines_and_cosines() -> F32:
    angle = np.deg2rad(np.arange(_AZIMUTHS) / 100)
    return np.stack([np.sin(angle), np.cos(angle)]).astype(np.float32)


@cache
def _delays(two_banks: bool) -> I64:
    """Return the ns after the packet's time of each shot, int64[2, 12, 32], of a HDL-32E; 0 for a HDL-64E (unknown)."""
    firing = np.stack([np.arange(BLOCKS), np.arange(BLOCKS) // 2])[:, :, None]
    delay = firing * FIRING + np.arange(LASERS) * SHOT
    return np.zeros_like(delay) if two_banks else delay


def decode(packets: Packets, calibration: Calibration) -> tuple[Cloud, I64]:
    """Return the points of *packets*, and int64[n]: the number of points of each; shots without echo are left out.

    With a calibration of 64 lasers, the flag of a block gives its bank; with one of 32, there is only one bank. Blocks
    with other flags, or with azimuths beyond 360°, are left out.
    """
    n, two_banks = len(packets), len(calibration.elevation) > LASERS
    room = max(1, n * PER_PACKET)
    cloud = Cloud(
        np.empty((3, room), np.float32),
        np.empty(room, np.uint8),
        np.empty(room, np.uint8),
        np.empty(room, np.float32),
        np.empty(room, np.int64),
    )
    count = np.zeros(n, np.int64)
    if n:
        kernel.velodyne_points(
            packets.data, np.ascontiguousarray(packets.offset), np.ascontiguousarray(packets.time),
            _sines_and_cosines(), calibration.table, _delays(two_banks), calibration.rings, two_banks,
            cloud.xyz, cloud.intensity, cloud.ring, cloud.azimuth, cloud.time, count,
        )  # fmt: skip
    return cloud.part(0, int(count.sum())), count


def spread(packets: Packets, message: I64) -> Packets:
    """Return *packets* with times from their clocks, where packets of one message share its time.

    message  int64[n]: number of the message that contains each packet, ascending; its time is that of its first packet

    Within a message, clocks must not decrease and must advance by less than a second; else all its packets keep its
    time.
    """
    if not len(packets):
        return packets
    clock = np.zeros(len(packets), np.int64)
    for i in range(4):
        clock |= packets.data[packets.offset + 1200 + i].astype(np.int64) << (8 * i)
    first = np.searchsorted(message, message)
    # The clock restarts every hour.
    elapsed = (clock - clock[first]) % HOUR_US
    last = np.append(np.flatnonzero(np.diff(message)), len(message) - 1)
    steady = np.ones(len(packets), np.bool_)
    steady[1:] = (elapsed[1:] >= elapsed[:-1]) | (first[1:] != first[:-1])
    broken = np.unique(message[~steady | (clock >= HOUR_US)])
    sane = (elapsed[last] < SECOND_US) & ~np.isin(message[last], broken)
    good = sane[np.searchsorted(last, np.arange(len(packets)))]
    return replace(packets, time=packets.time + np.where(good, elapsed, 0) * 1000)


HOUR_US, SECOND_US = 3_600_000_000, 1_000_000


def _split(batches: Iterable[Packets]) -> Iterator[Packets]:
    """Yield the packets, at most STEP at a time: points take ten times the memory of packets."""
    for packets in batches:
        for lo in range(0, len(packets), STEP):
            at = slice(lo, lo + STEP)
            more = (None if column is None else column[at] for column in (packets.logged, packets.stamp))
            yield Packets(packets.data, packets.offset[at], packets.time[at], *more)


class Revolution(NamedTuple):
    """Points of one revolution; *time* (ns, of the log) and *stamp* (ns, 0: unknown) are those of its first packet."""

    time: int
    cloud: Cloud
    stamp: int


def sweeps(batches: Iterable[Packets], calibration: Calibration) -> Iterator[Revolution]:
    """Yield each revolution; a new one begins with the packet whose azimuth decreases."""
    waiting: list[Cloud] = []
    begin, stamp, before, collected = 0, 0, -1, 0
    for packets in _split(batches):
        cloud, count = decode(packets, calibration)
        ends = np.concatenate([[0], np.cumsum(count)]).tolist()
        azimuth = packets.azimuth
        falls = azimuth < np.concatenate([[before], azimuth[:-1]])
        cuts = sorted({0, *np.flatnonzero(falls).tolist()})
        for lo, hi in zip(cuts, [*cuts[1:], len(packets)], strict=True):
            if waiting and (falls[lo] or collected + hi - lo > MAX_SWEEP):
                yield Revolution(begin, Cloud.join(waiting), stamp)
                waiting, collected = [], 0
            if not waiting:
                begin = int((packets.time if packets.logged is None else packets.logged)[lo])
                stamp = 0 if packets.stamp is None else int(packets.stamp[lo])
            waiting.append(cloud.part(ends[lo], ends[hi]))
            collected += hi - lo
        before = int(azimuth[-1]) if len(azimuth) else before
    if waiting:
        yield Revolution(begin, Cloud.join(waiting), stamp)


#: Real files have 50 kB.
MAX_BYTES = 1 << 20
MAX_DEPTH = 32
#: Elements of one laser, and the factors to degrees and metres: lengths are in centimetres.
_FIELDS = {
    "vertCorrection_": 1.0,
    "rotCorrection_": 1.0,
    "distCorrection_": 0.01,
    "vertOffsetCorrection_": 0.01,
    "horizOffsetCorrection_": 0.01,
}
_LASERS = 2 * LASERS

#: Status types of the packets of one cycle, and the cycles of one whole calibration.
CYCLE, CYCLES = b"HMSDNYGTV1234567", 260
_BYTES = 7
_MARK = b"UNIT#"


def read_xml(path: str | Path) -> Calibration:
    """Return the calibration in a ``db.xml`` file, see ``parse_xml``; also raises OSError."""
    with open(path, "rb") as file:
        return parse_xml(file.read(MAX_BYTES + 1), str(path))


def parse_xml(data: bytes, origin: str = "db.xml") -> Calibration:
    """Return the calibration in the vendor's XML.

    Entities are refused and nothing is fetched. Raises DefinitionError for other content, for more than 1 MiB, and
    for a laser that is missing or has an invalid number.
    """
    if len(data) > MAX_BYTES:
        raise DefinitionError(f"a calibration of more than {MAX_BYTES} bytes", path=origin)
    parser = _Parser()
    try:
        parser.run(data)
    except (expat.ExpatError, _Refused) as error:
        raise DefinitionError(f"no calibration in XML: {error}", path=origin) from None
    missing = [i for i in range(_LASERS) if not set(_FIELDS) <= set(parser.lasers.get(i, ()))]
    if missing:
        text = f"{len(missing)} of {_LASERS} lasers have no calibration, the first is number {missing[0]}"
        raise DefinitionError(text, path=origin)
    rows = [[parser.lasers[i][name] for i in range(_LASERS)] for name in _FIELDS]
    elevation, rotation, distance, vertical, horizontal = np.array(rows)
    return Calibration(elevation, rotation, distance, vertical, horizontal, origin)


class _Refused(ValueError):
    """Raised for content that a calibration must not have."""


class _Parser:
    """Parser that collects the numbers of each ``px`` element."""

    def __init__(self) -> None:
        self.lasers: dict[int, dict[str, float]] = {}
        self._path: list[str] = []
        self._text: list[str] = []
        self._now: dict[str, float] = {}

    def run(self, data: bytes) -> None:
        parser = expat.ParserCreate()
        parser.EntityDeclHandler = self._entity
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.Parse(data, True)

    def _entity(self, *_: Any) -> None:
        raise _Refused("it declares entities")

    def _start(self, name: str, _: Any) -> None:
        self._path.append(name)
        self._text.clear()
        if len(self._path) > MAX_DEPTH:
            raise _Refused(f"elements are nested more than {MAX_DEPTH} deep")
        if name == "px":
            self._now = {}

    def _end(self, name: str) -> None:
        self._path.pop()
        if name == "px":
            self._take()
        elif self._path[-1:] == ["px"] and name in ("id_", *_FIELDS):
            self._now[name] = _number(name, "".join(self._text))
        self._text.clear()

    def _take(self) -> None:
        number = self._now.get("id_", -1)
        if number not in range(_LASERS):
            raise _Refused(f"there is no laser {number}")
        self.lasers[int(number)] = {
            name: self._now[name] * factor for name, factor in _FIELDS.items() if name in self._now
        }


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _Refused(f"{name} is {text.strip()[:40]!r}")
    return value


def from_status(status: NDArray[np.uint8]) -> Calibration | None:
    """Return the calibration that a unit sends in its packets; None if it is not found completely.

    status  uint8[n, 2]: type and value of the status bytes of consecutive packets
    """
    kinds, values = status[:, 0].tobytes(), status[:, 1].tobytes()
    period = CYCLE * CYCLES
    at = kinds.find(CYCLE)
    while at >= 0:
        here = at + len(CYCLE) - _BYTES
        if values[here : here + len(_MARK)] == _MARK and kinds[at : at + len(period)] == period:
            calibration = _from_cycles(
                status[at : at + len(period), 1].reshape(CYCLES, len(CYCLE))[:, -_BYTES:]
            )
            if calibration is not None:
                return calibration
        at = kinds.find(CYCLE, at + 1)
    return None


def _from_cycles(rows: NDArray[np.uint8]) -> Calibration | None:
    """Return the calibration in uint8[260, 7]: the mark, then 4 cycles per laser; None if laser numbers are wrong."""
    numbers = rows[1 : 1 + 4 * _LASERS].reshape(_LASERS, 4 * _BYTES)
    order = numbers[:, 0]
    if sorted(order.tolist()) != list(range(_LASERS)):
        return None
    # Elevation, rotation and distance; two corrections for near targets; vertical and horizontal offset.
    words = np.ascontiguousarray(numbers[:, 1:15]).view("<i2").astype(np.float64)
    sorted_ = words[np.argsort(order)]
    angles, lengths = sorted_[:, :2] / 100, sorted_[:, 2:] / 1000
    return Calibration(
        angles[:, 0],
        angles[:, 1],
        lengths[:, 0],
        lengths[:, 3],
        lengths[:, 4],
        "the unit's own, from its packets",
    )
