"""Meanings of fields that edits need, at any depth of a message: frame ids, stamps, and geographic positions, found by
their names and by their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Bytes, FixedArray, Node, Rest, Scalar, Struct
from logreel.layout.nodes import Sequence as Counted
from logreel.lenses.base import Nodes, Stamp, columns, find_stamp, is_integer, is_number, is_text
from logreel.lenses.position import find_position
from logreel.log.log import Channel

#: Names of fields that contain the name of a frame of coordinates.
FRAMES = {"frame_id", "child_frame_id", "parent_frame_id", "source_frame_id", "target_frame_id"}
#: Deepest structs that are looked at, and most of them.
MAX_STRUCTS = 2000


def structs(layout: Layout) -> Iterator[tuple[str, Nodes]]:
    """Yield path (empty for the message) and members of each struct in a message, arrays without index."""
    try:
        record = layout.record
    except DefinitionError:
        return
    todo: list[tuple[str, Struct]] = [("", record)]
    for _ in range(MAX_STRUCTS):
        if not todo:
            return
        path, struct = todo.pop(0)
        nodes = {f.name: f.node for f in struct.visible()}
        yield path, nodes
        for name, node in nodes.items():
            inner = innermost(node)
            if isinstance(inner, Struct):
                todo.append((joined(path, name), inner))


def innermost(node: Node) -> Node:
    """Return the items of an array (of arrays …), or *node* itself."""
    while isinstance(node, FixedArray | Counted):
        node = node.item
    return node


def joined(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else name


def frame_paths(layout: Layout) -> list[str]:
    """Return the paths of all fields with names of frames."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if name in FRAMES and is_text(node)
    ]


def stamps(layout: Layout, clock_inside: bool) -> list[Stamp]:
    """Return the stamps of a message and of its parts, that of the message first.

    clock_inside  True: the log time of messages is a field of theirs, so that all fields in microseconds whose names
                  say that they are times are on that clock
    """
    by_paths: dict[tuple[str, ...], Stamp] = {}
    for path, nodes in structs(layout):
        stamp = find_stamp(nodes, path)
        if stamp is not None and _is_there(layout, stamp):
            by_paths.setdefault(tuple(stamp.paths), stamp)
        for name, node in nodes.items() if clock_inside else ():
            if node == Scalar("uint64") and _is_clock(name) and (path or name != "timestamp"):
                at = joined(path, name)
                by_paths.setdefault((at,), Stamp(((at, 1000),)))
    return list(by_paths.values())


def _is_clock(name: str) -> bool:
    words = name.lower().split("_")
    return "timestamp" in words and not {"utc", "relative"} & set(words)


def _is_there(layout: Layout, stamp: Stamp) -> bool:
    """Return whether the paths of a stamp are in *layout*; one in a struct inside an array counts, too."""
    known = set(layout.paths())
    return all(path in known for path in stamp.paths)


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LATITUDE, _LONGITUDE = {"lat", "latitude"}, {"lon", "lng", "longitude"}
_ALTITUDE = {"alt", "altitude", "height", "elevation", "hgt"}
#: Words of fields that are not a position though they are named after one: their errors, speeds, flags.
_OTHER = {
    *("vel", "velocity", "speed", "acc", "accel", "rate", "err", "error", "std", "stddev", "sigma", "var"),
    *(
        "variance",
        "cov",
        "covariance",
        "valid",
        "reset",
        "counter",
        "delta",
        "count",
        "type",
        "dop",
        "accuracy",
    ),
}
#: Words of positions in other coordinates, and of texts and bytes that contain positions.
_CARTESIAN = {"ecef", "utm", "easting", "northing"}
_CODES = {"geohash", "mgrs", "wkt", "pluscode", "geojson"}
_RECEIVER = {"gps", "gnss", "rtcm", "ubx", "ublox", "sbf", "novatel", "septentrio"}
#: Edge of the cells in degrees by which values are recognised as positions of the log.
CELL = 0.05
#: Fewest bytes of a field with the raw data of a receiver.
RAW_BYTES = 16
#: Degrees per unit of numbers that can be angles; integers as GPS receivers and autopilots send them.
_UNITS = {"float32": 1.0, "float64": 1.0, "int32": 1e-7}
#: Least share of the messages with both numbers in which these are a position of the log.
SHARE = 0.25
#: Longest array that can be a position.
SHORT = 4
#: Messages of a channel whose values are compared.
MANY = 1 << 20


def words(name: str) -> set[str]:
    """Return the words of a name such as ``ref_lat`` or ``latitudeDeg``, in lower case."""
    lowered = {word.lower() for word in _WORD.findall(name)}
    # Only alone: elsewhere it means longitudinal.
    return {"longitude"} if lowered == {"long"} else lowered


@dataclass(frozen=True, slots=True)
class PlaceFields:
    """Fields of one position.

    latitude, longitude  paths
    altitudes            paths of heights, that above sea level first
    geoid                paths of the height of the geoid, which depends on the place
    degree, metre        degrees per unit of the angles, metres per unit of each altitude
    minutes              angles may be degrees and minutes as in NMEA: ddmm.mmmm
    """

    latitude: str
    longitude: str
    altitudes: tuple[str, ...] = ()
    geoid: tuple[str, ...] = ()
    degree: float = 1.0
    metre: tuple[float, ...] = ()
    minutes: bool = False


@dataclass(slots=True)
class Cells:
    """Places that occur in a log, as numbers of cells of latitude and longitude."""

    numbers: set[tuple[int, int]] = field(default_factory=set)

    def add(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> None:
        """Add positions in degrees."""
        pairs = np.stack([np.floor(latitude / CELL), np.floor(longitude / CELL)], axis=1).astype(np.int64)
        self.numbers |= {(int(a), int(b)) for a, b in np.unique(pairs, axis=0)}

    def contain(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[n]: whether positions are in these cells or next to them."""
        known = np.zeros(len(latitude), bool)
        good = np.isfinite(latitude) & np.isfinite(longitude) & (np.abs(latitude) <= 90)
        good &= (np.abs(longitude) <= 180) & ((latitude != 0) | (longitude != 0))
        rows = np.flatnonzero(good)
        near = {(a + i, b + j) for a, b in self.numbers for i in (-1, 0, 1) for j in (-1, 0, 1)}
        pairs = zip(
            np.floor(latitude[rows] / CELL).astype(np.int64).tolist(),
            np.floor(longitude[rows] / CELL).astype(np.int64).tolist(),
            strict=True,
        )
        known[rows] = [pair in near for pair in pairs]
        return known

    def axis(self, values: NDArray[np.float64], which: int) -> NDArray[np.bool_]:
        """Return bool[n]: whether numbers can be latitudes (0) or longitudes (1) of these cells."""
        near = {pair[which] + i for pair in self.numbers for i in (-1, 0, 1)}
        with np.errstate(invalid="ignore"):
            good = np.isfinite(values) & (np.abs(values) <= 180) & (values != np.rint(values))
        numbers = np.floor(np.where(good, values, 0) / CELL).astype(np.int64)
        return np.asarray(good & np.isin(numbers, np.array(sorted(near), np.int64)))


def find_places(layout: Layout) -> Iterator[PlaceFields]:
    """Yield the positions in messages of *layout*, at any depth: pairs of fields named after latitude and longitude."""
    for path, nodes in structs(layout):
        by_words = {name: words(name) for name, node in nodes.items() if _is_wide(node)}
        for name, its in by_words.items():
            if not its & _LATITUDE or its & (_LONGITUDE | _OTHER):
                continue
            rest = its - _LATITUDE
            other = next(
                (n for n, w in by_words.items() if w & _LONGITUDE and w - _LONGITUDE == rest and n != name),
                None,
            )
            if other is not None and nodes[other] == nodes[name]:
                yield _place(path, nodes, name, other, by_words)


def _place(
    path: str, nodes: Nodes, latitude: str, longitude: str, by_words: dict[str, set[str]]
) -> PlaceFields:
    heights = [n for n, w in by_words.items() if w & _ALTITUDE and not w & (_OTHER | {"geoid"})]
    heights = [n for n in heights if nodes[n] == innermost(nodes[n])] if _is_plain(nodes[latitude]) else []
    # Of several positions in one struct, each has the heights named like it.
    rest = by_words[latitude] - _LATITUDE - {"deg", "degrees"}
    alike = [n for n in heights if rest and by_words[n] >= rest]
    heights = alike or heights
    heights.sort(key=lambda n: (bool({"ellipsoid", "ellipsoidal"} & by_words[n]), len(by_words[n])))
    geoid = tuple(joined(path, n) for n, w in by_words.items() if "geoid" in w or "undulation" in w)
    node = innermost(nodes[latitude])
    degree = 180 / np.pi if "rad" in by_words[latitude] else 1e-7 if is_integer(node) else 1.0
    if isinstance(node, Scalar) and node.type.endswith("int64"):
        degree = 1e-9
    lens = find_position(nodes) if not path else None
    minutes = lens is not None and lens.warning is not None and lens.latitude.path == latitude
    return PlaceFields(
        joined(path, latitude),
        joined(path, longitude),
        tuple(joined(path, n) for n in heights),
        geoid,
        degree,
        tuple(1e-3 if is_integer(nodes[n]) else 1.0 for n in heights),
        minutes,
    )


def _is_plain(node: Node) -> bool:
    return isinstance(node, Scalar)


def _is_wide(node: Node) -> bool:
    """Return whether a node is a number that can hold a position, or an array of such."""
    item = innermost(node)
    return is_number(item) and isinstance(item, Scalar) and SCALARS[item.type][1] >= 4


def cartesian_paths(layout: Layout) -> list[str]:
    """Return the paths of numbers that are positions in earth-centred or projected coordinates."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if _is_wide(node) and words(name) & _CARTESIAN and not words(name) & _OTHER
    ]


def code_paths(layout: Layout) -> list[str]:
    """Return the paths of texts that are positions by their names, such as a geohash."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if is_text(node) and words(name) & _CODES
    ]


def text_paths(layout: Layout) -> list[str]:
    """Return the paths of texts in which people or programs can write anything, arrays of texts included."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if name not in FRAMES and (is_text(node) or is_text(innermost(node)) or node == Rest(text=True))
    ]


def has_text(layout: Layout) -> bool:
    """Return whether messages of *layout* contain texts besides names of frames."""
    return bool(text_paths(layout))


def is_receiver_data(ch: Channel, layout: Layout) -> bool:
    """Return whether messages of *ch* are raw data of a GNSS receiver, in which positions are encoded."""
    if not (words(ch.topic) | words(ch.schema.name)) & _RECEIVER:
        return False
    for _, nodes in structs(layout):
        for node in nodes.values():
            if isinstance(node, FixedArray) and node.item == Scalar("uint8") and node.count >= RAW_BYTES:
                return True
            if isinstance(node, Counted) and node.item == Scalar("uint8"):
                return True
            if isinstance(node, Bytes) or (isinstance(node, Rest) and not node.text):
                return True
    return False


@dataclass(frozen=True, slots=True)
class HiddenPair:
    """Neighbouring numbers with a latitude and a longitude; *degree*: degrees per unit."""

    latitude: str
    longitude: str
    degree: float


def hidden_pairs(ch: Channel, layout: Layout, cells: Cells, known: set[str]) -> list[HiddenPair]:
    """Return the neighbouring numbers that hold positions of the log, though their names do not say so.

    known  paths of fields that are known to be positions
    """
    pairs: list[HiddenPair] = []
    for first, second, degree in _neighbours(layout) if 0 < len(ch) <= MANY else ():
        if {first, second} & known:
            continue
        try:
            values = columns(ch, [first, second]).values
            column, other = (np.asarray(values[path], np.float64) * degree for path in (first, second))
        except (LogError, ValueError, TypeError):
            continue
        if len(column) != len(other):
            continue
        stated = np.count_nonzero(np.isfinite(column) & np.isfinite(other) & (column != 0) & (other != 0))
        for names, lat, lon in (((first, second), column, other), ((second, first), other, column)):
            both = np.flatnonzero(cells.axis(lat, 0) & cells.axis(lon, 1))
            both = both[(np.abs(lat[both]) >= 1) | (np.abs(lon[both]) >= 1)]
            hits = np.count_nonzero(cells.contain(lat[both], lon[both]))
            # Other quantities can pass through such values; positions of one log are all near each other.
            if hits and hits >= SHARE * stated:
                pairs.append(HiddenPair(*names, degree))
                break
    return pairs


def _neighbours(layout: Layout) -> Iterator[tuple[str, str, float]]:
    """Yield the paths of neighbouring numbers of one type, and degrees per unit if they are angles."""
    for path, nodes in structs(layout):
        for a, b in pairwise(nodes):
            if nodes[a] == nodes[b] and (degree := _UNITS.get(_scalar(nodes[a]))) is not None:
                yield joined(path, a), joined(path, b), degree
        for name, node in nodes.items():
            short = isinstance(node, FixedArray) and 2 <= node.count <= SHORT
            if (
                isinstance(node, FixedArray)
                and short
                and (degree := _UNITS.get(_scalar(node.item))) is not None
            ):
                for i in range(node.count - 1):
                    yield f"{joined(path, name)}[{i}]", f"{joined(path, name)}[{i + 1}]", degree


def _scalar(node: Node) -> str:
    return node.type if isinstance(node, Scalar) else ""
