"""Calibration of a HDL-64E: from the vendor's ``db.xml``, or from the status bytes that some units send."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.lenses.sensors.velodyne import LASERS, Calibration

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
            found = _from_cycles(status[at : at + len(period), 1].reshape(CYCLES, len(CYCLE))[:, -_BYTES:])
            if found is not None:
                return found
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
