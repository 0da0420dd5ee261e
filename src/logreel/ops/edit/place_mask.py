"""Masks of places, in texts and in numbers that no name gives away: other coordinates, other units, arrays.

And all masks of a log, applied to what it holds besides messages: metadata, parameters, attachments, topics,
definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.lenses.base import is_float
from logreel.log.log import Channel
from logreel.log.scan import Schema
from logreel.log.side_columns import payload_layout
from logreel.ops.edit import coordinates
from logreel.ops.edit.masks import IdentityMask, Mask, TimeMask, content, masked
from logreel.ops.edit.meanings import SHARE, Cells, innermost, joined, structs, words

F64 = NDArray[np.float64]
Rows = NDArray[np.bool_]

#: Most bytes between latitude and longitude in a text.
NEAR = 100
#: Metres from a position of the log within which a number can be one of its projected coordinates.
METRES = 20_000.0
#: Distances of the surface of the earth from its centre, with some air.
EARTH = (6.33e6, 6.42e6)
#: Positions of the log that are compared.
POINTS = 64
#: A decimal number that can be an angle in degrees.
_NUMBER = re.compile(rb"(?<![\d.])[-+]?\d{1,3}\.\d{3,}")
_SHORT_NUMBER = re.compile(rb"(?<![\d.])[-+]?\d{1,3}\.\d{1,}")
#: Position in a sentence of NMEA: latitude, N or S, longitude, E or W.
_NMEA = re.compile(rb"\d{3,5}(?:\.\d+)?,[NS],\d{4,6}(?:\.\d+)?,[EW]")
_SENTENCE = re.compile(rb"([$!])([^$!*\r\n]*)\*([0-9A-Fa-f]{2})")
_MARK = rb"(?:\xc2\xb0|\xc2\xba|\xb0|\bdeg\b|\\u00b0)"
_MINUTE = rb"(?:'|\xe2\x80\xb2|\xe2\x80\x99|m|min)"
_SECOND = rb"(?:\\?\"|''|\xe2\x80\xb3|\xe2\x80\x9d|s|sec)"
_ANGLE = (
    rb"(?:\b[NSEWO] ?)?[-+]?\b\d{1,3}(?:[.,]\d+)?\s*" + _MARK + rb"\s*(?:\d{1,2}(?:[.,]\d+)?\s*"
    + _MINUTE + rb"\s*(?:\d{1,2}(?:[.,]\d+)?\s*" + _SECOND + rb"\s*)?[NSEWO]?\b|\s*[NSEWO]\b)"
)  # fmt: skip
_SPACED = rb"\b\d{1,3}[ :]\d{1,2}[ :]\d{1,2}(?:\.\d+)? ?[NS]\b[ ,;/]*\d{1,3}[ :]\d{1,2}[ :]\d{1,2}(?:\.\d+)? ?[EW]\b"
_MINUTES = rb"\b\d{1,3}[ ]\d{1,2}\.\d+'? ?[NS]\b[ ,;/]*\d{1,3}[ ]\d{1,2}\.\d+'? ?[EW]\b"
_MGRS = (
    rb"(?<![\w.])\d{1,2}[C-HJ-NP-X] ?[A-HJ-NP-Z][A-HJ-NP-V] ?(?:\d{5} ?\d{5}|\d{4} ?\d{4}|\d{3} ?\d{3})(?!\w)"
)
_UTM = (
    rb"(?i:\bzone\s*)?(?<![\w.])\d{1,2} ?[C-HJ-NP-X]\b[ ,:;]*(?:[EN=: ]*)\d{6,7}(?:\.\d+)? ?(?:m ?)?[EN]?[ ,;/NE=:m]*"
    rb"\d{6,8}(?:\.\d+)? ?(?:m ?)?[NE]?(?!\w)"
)
_PLUS = rb"(?<![\w+])[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}(?!\w)"
_WORDS = rb"(?<!/)///[^\W\d_]+\.[^\W\d_]+\.[^\W\d_]+"
_GEO = rb"\bgeo:-?\d+(?:\.\d+)?,-?\d+(?:\.\d+)?(?:,-?[\d.]+)?"
_HASHED = re.compile(rb"(?<![\w.-])(?=[0-9b-hjkmnp-z]*\d)[0-9b-hjkmnp-z]{6,12}(?![\w-])")
_METRES = re.compile(rb"(?<![\d.])[-+]?\d{5,8}(?:\.\d+)?(?![\d])")
_TEXTS = tuple(re.compile(item) for item in (_GEO, _ANGLE, _SPACED, _MINUTES, _MGRS, _UTM, _PLUS, _WORDS))
#: What a place in a text becomes.
HIDDEN = b"[place]"
_LATITUDE, _LONGITUDE = {"lat", "latitude"}, {"lon", "lng", "longitude"}
#: Words of names whose numbers depend on the place.
DEPENDS = {"declination", "decl", "inclination", "incl", "geomag"}
_HEIGHT = {"alt", "altitude", "elevation", "amsl"}
#: Words of names whose texts name a place.
_NAMES = {
    *("location", "site", "city", "town", "street", "address", "country", "region", "airport", "airfield"),
    *("place", "village", "county", "postcode", "zip", "venue", "campus", "building", "home"),
}


@dataclass(slots=True)
class PlaceMask:
    """Places of a log: what says them in texts and in values is hidden.

    cells   the places of the log
    points  some positions of it, degrees
    move    returns new latitudes and longitudes; None: positions become 0
    """

    cells: Cells
    points: list[tuple[float, float]] = field(default_factory=list)
    move: Callable[[F64, F64], tuple[F64, F64]] | None = None
    kind: str = "place"
    repeats: bool = True
    names: IdentityMask = field(default_factory=IdentityMask)
    _cache: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, latitude: float, longitude: float) -> None:
        """Add a position of the log."""
        self.cells.add(np.array([latitude]), np.array([longitude]))
        if len(self.points) < POINTS:
            self.points.append((latitude, longitude))
        self._cache.clear()

    def text(self, text: bytes) -> bytes:
        """See Mask."""
        known = self._cache.get(text)
        if known is not None:
            return known
        new = text
        for pattern in _TEXTS:
            new = pattern.sub(HIDDEN, new)
        new = without_numbers(new, self.cells)
        new = self._without_metres(new) if self.points else new
        if self.cells.numbers:
            new = _HASHED.sub(self._hashed, new)
            new = self._without_short_pairs(new)
        if self.names.learned:
            new = self.names.names(new)
        if len(text) < 300 and len(self._cache) < 100_000:
            self._cache[text] = new
        return new

    def name(self, text: bytes) -> bytes:
        """Return the name of a topic or frame, where underscores can stand for points.

        Each part of a name that says a place gets a token, so that different names stay different.
        """
        parts = text.split(b"/")
        return b"/".join(
            self.names.token("place", item) if self._says_place(item) else item for item in parts
        )

    def _says_place(self, text: bytes) -> bool:
        dotted = re.sub(rb"(?<=\d)_(?=\d{3})", b".", text)
        return self.text(text) != text or without_numbers(dotted, self.cells) != dotted

    def _hashed(self, match: re.Match[bytes]) -> bytes:
        results = coordinates.degrees_of_geohash(match[0].decode())
        if results is None or not self.cells.contain(*(np.array([item]) for item in results))[0]:
            return match[0]
        return HIDDEN

    def _without_short_pairs(self, text: bytes) -> bytes:
        """Return a text without neighbouring numbers that are latitude and longitude, in degrees or radians."""
        results = list(_SHORT_NUMBER.finditer(text))
        cut: list[re.Match[bytes]] = []
        for a, b in pairwise(results):
            if b.start() - a.end() < NEAR // 4 and a not in cut:
                item, other = float(a[0]), float(b[0])
                for unit in (1.0, 180 / np.pi):
                    pair = np.array([item * unit]), np.array([other * unit])
                    fine = all(abs(p[0]) > (1 if unit == 1 else 0.5) for p in pair)
                    short = unit != 1 and min(len(a[0]), len(b[0])) < 6
                    if (
                        fine
                        and not short
                        and (self.cells.contain(*pair)[0] or self.cells.contain(*pair[::-1])[0])
                    ):
                        cut += [a, b]
                        break
        return _crossed_out(text, cut)

    def _without_metres(self, text: bytes) -> bytes:
        """Return a text without projected and earth-centred coordinates of the log's places."""
        results = list(_METRES.finditer(text))
        cut: set[re.Match[bytes]] = set()
        for size in (2, 3):
            for at in range(len(results) - size + 1):
                chosen = results[at : at + size]
                if all(b.start() - a.end() < NEAR // 4 for a, b in pairwise(chosen)):
                    values = [np.array([float(item[0])]) for item in chosen]
                    if any(rule.width == size and rule.hits(values)[0] for rule in self.rules()):
                        cut |= set(chosen)
        return _crossed_out(text, cut)

    def value(self, name: str, value: Any) -> Any:
        """See Mask."""
        its = words(name)
        if isinstance(value, int | float):
            if its & DEPENDS and "type" not in its:
                return type(value)(0)
            for axis, chosen in ((0, _LATITUDE), (1, _LONGITUDE)):
                degrees = float(value) * (1e-7 if abs(value) > 1000 else 1)
                if its & chosen and self.cells.axis(np.array([degrees]), axis)[0]:
                    return type(value)(0)
            return value
        if (
            isinstance(value, str)
            and its & _NAMES
            and len(value) >= 3
            and not value.replace(".", "").isdigit()
        ):
            raw = value.encode("utf-8", "surrogateescape")
            return value if raw.startswith(b"place-") else self.names.token("place", raw).decode()
        return value

    def mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        """See Mask. Latitude and longitude move together."""
        axes: list[str | None] = []
        for chosen, other in ((_LATITUDE, _LONGITUDE), (_LONGITUDE, _LATITUDE)):
            axes.append(
                next(
                    (
                        k
                        for k, v in entries.items()
                        if _is_number(v) and words(k) & chosen and not words(k) & other
                    ),
                    None,
                )
            )
        if axes[0] is None or axes[1] is None:
            return entries
        lat, lon = float(entries[axes[0]]), float(entries[axes[1]])
        unit = 1e-7 if abs(lat) > 1000 or abs(lon) > 1000 else 1.0
        if not self.cells.contain(np.array([lat * unit]), np.array([lon * unit]))[0]:
            return entries
        new = (np.zeros(1), np.zeros(1))
        if self.move is not None:
            new = self.move(np.array([lat * unit]), np.array([lon * unit]))
        made = dict(entries)
        for key, item in zip(axes, new, strict=True):
            if key is not None:
                made[key] = round(float(item[0]) / unit) if isinstance(entries[key], int) else float(item[0])
        for key, item in entries.items():
            if words(key) & _HEIGHT and _is_number(item):
                made[key] = type(item)(0)
        return made

    def numbers(self, values: list[Any]) -> list[Any]:
        """See Mask. Neighbours that are a place of the log move, or become 0."""
        plain, made = np.array(values, np.float64), list(values)
        for rule in self.rules():
            if len(values) < rule.width or (rule.types[0] == "int32") != isinstance(values[0], int):
                continue
            parts = windows(plain, rule.width)
            for at in np.flatnonzero(rule.hits(parts)).tolist():
                chosen = [part[at : at + 1] for part in parts]
                new = None if self.move is None or rule.moved is None else rule.moved(chosen, self.move)
                for n in range(rule.width):
                    made[at + n] = type(values[at + n])(0 if new is None else new[n][0])
        return made

    def learn_entries(self, name: str, value: Any, deep: int = 0) -> None:
        """Remember the names of places, and positions, among metadata and other structures."""
        if isinstance(value, dict) and deep < 20:
            pair = [
                next((float(v) for k, v in value.items() if _is_number(v) and words(str(k)) & chosen), None)
                for chosen in (_LATITUDE, _LONGITUDE)
            ]
            if pair[0] is not None and pair[1] is not None:
                unit = 1e-7 if max(abs(pair[0]), abs(pair[1])) > 1000 else 1.0
                if abs(pair[0] * unit) <= 90 and abs(pair[1] * unit) <= 180 and (pair[0] or pair[1]):
                    self.add(pair[0] * unit, pair[1] * unit)
            for key, item in value.items():
                self.learn_entries(str(key), item, deep + 1)
        elif isinstance(value, list | tuple) and deep < 20:
            for item in value:
                self.learn_entries(name, item, deep + 1)
        elif isinstance(value, str) and words(name) & _NAMES and not value.replace(".", "").isdigit():
            self.names.learn("place", value)

    def rules(self) -> list[PlaceRule]:
        """Return how numbers without a name can say a place of this log."""
        return list(_rules(self.cells, self.points))


def _crossed_out(text: bytes, cut: Iterable[re.Match[bytes]]) -> bytes:
    for item in sorted(set(cut), key=lambda match: match.start(), reverse=True):
        text = text[: item.start()] + b"x" * len(item[0]) + text[item.end() :]
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def without_numbers(text: bytes, cells: Cells) -> bytes:
    """Return a text without positions: those of NMEA, and decimal numbers that are angles of these places."""
    new = _NMEA.sub(b",,,", text)
    if new != text:
        new = _SENTENCE.sub(_with_checksum, new)
    results = list(_NUMBER.finditer(new)) if cells.numbers else []
    if results:
        values = np.array([float(item[0]) for item in results])
        hits = cells.axis(values, 0) | cells.axis(values, 1)
        # A number below 1 says a place only next to the other angle.
        sure = hits & (np.abs(values) >= 1)
        beside = np.append(sure[1:], False) | np.append(False, sure[:-1])
        hits = sure | (hits & beside)
        for item in [m for m, hit in zip(results, hits.tolist(), strict=True) if hit][::-1]:
            new = new[: item.start()] + b"x" * (item.end() - item.start()) + new[item.end() :]
    return new


def says_pair(text: bytes, cells: Cells) -> bool:
    """Return whether a latitude and a longitude of these places follow each other in a text."""
    if _NMEA.search(text):
        return True
    results = list(_NUMBER.finditer(text)) if cells.numbers else []
    values = np.array([float(item[0]) for item in results])
    for which in (0, 1):
        first = cells.axis(values[:-1], which) & cells.axis(values[1:], 1 - which)
        near = [b.start() - a.end() < NEAR for a, b in pairwise(results)]
        if (first & np.array(near, bool)).any():
            return True
    return False


def _with_checksum(sentence: re.Match[bytes]) -> bytes:
    total = 0
    for byte in sentence[2]:
        total ^= byte
    return sentence[1] + sentence[2] + b"*%02X" % total


def stated_positions(text: bytes) -> Iterator[tuple[float, float]]:
    """Yield the positions that a text says without doubt: plus codes, MGRS, NMEA, and degrees with minutes."""
    for match in re.finditer(_PLUS, text):
        results = coordinates.degrees_of_plus_code(match[0].decode())
        if results is not None and len(match[0].partition(b"+")[0]) == 8:
            yield results
    for match in re.finditer(_MGRS, text):
        results = coordinates.degrees_of_mgrs(match[0].decode())
        if results is not None:
            yield results
    for match in _NMEA.finditer(text):
        lat, north, lon, east = match[0].split(b",")
        pair = [int(float(item) // 100) + float(item) % 100 / 60 for item in (lat, lon)]
        yield pair[0] * (-1 if north == b"S" else 1), pair[1] * (-1 if east == b"W" else 1)
    angles = [m for m in re.finditer(_ANGLE, text) if re.search(rb"[NSEWO]\s*\Z|\A[NSEWO]", m[0])]
    for a, b in pairwise(angles):
        if b.start() - a.end() < NEAR:
            item, other = _angle(a[0]), _angle(b[0])
            if item[1] in b"NS" and other[1] in b"EWO":
                yield item[0], other[0]
    for match in re.finditer(rb"\bgeo:(-?\d+\.\d+),(-?\d+\.\d+)", text):
        yield float(match[1]), float(match[2])


def _angle(text: bytes) -> tuple[float, bytes]:
    side = re.findall(rb"[NSEWO]", re.sub(_MARK, b" ", text))[0]
    parts = [
        float(item.replace(b",", b"."))
        for item in re.findall(rb"\d+(?:[.,]\d+)?", re.sub(rb"\\u00b0", b" ", text))
    ]
    total = sum(part / 60**n for n, part in enumerate(parts[:3]))
    return (-total if side in b"SW" else total), side


# -------------------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """One way in which neighbouring numbers say a place.

    name    for the list of changes
    width   how many numbers belong together
    types   Arrow types of the numbers
    hits    returns which rows are places of the log
    moved   returns the numbers after a move of latitudes and longitudes; None: they become unknown
    """

    name: str
    width: int
    types: tuple[str, ...]
    hits: Callable[[list[F64]], Rows]
    moved: Callable[[list[F64], Callable[[F64, F64], tuple[F64, F64]]], list[F64]] | None


def _rules(cells: Cells, points: list[tuple[float, float]]) -> Iterator[PlaceRule]:
    floats = ("float", "double")
    if cells.numbers:
        for name, unit, types in (
            ("degrees", 1.0, floats),
            ("radians", 180 / np.pi, floats),
            ("1e-7 degrees", 1e-7, ("int32", "int64")),
        ):
            for swapped in (False, True):
                yield _angles(name, unit, types, swapped, cells)
    yield PlaceRule("earth-centred", 3, floats, lambda v: _is_earth(v, cells), None)
    for name, plane in _planes(points):
        for swapped in (False, True):
            yield _plane(name, plane, points, swapped, floats)


def _angles(name: str, unit: float, types: tuple[str, ...], swapped: bool, cells: Cells) -> PlaceRule:
    order = slice(None, None, -1 if swapped else 1)

    def hits(values: list[F64]) -> Rows:
        lat, lon = [item * unit for item in values][order]
        rows = np.zeros(len(lat), bool)
        chosen = np.flatnonzero(cells.axis(lat, 0) & cells.axis(lon, 1))
        # Angles of less than a degree, and radians that are whole numbers in degrees, are too common.
        chosen = chosen[(np.abs(lat[chosen]) >= 1) | (np.abs(lon[chosen]) >= 1)]
        rows[chosen] = cells.contain(lat[chosen], lon[chosen])
        return rows

    def moved(values: list[F64], move: Callable[[F64, F64], tuple[F64, F64]]) -> list[F64]:
        lat, lon = [item * unit for item in values][order]
        return [item / unit for item in move(lat, lon)][order]

    return PlaceRule(name, 2, types, hits, moved)


def _is_earth(values: list[F64], cells: Cells) -> Rows:
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.sqrt(sum(item * item for item in values))
        rows = np.asarray((far > EARTH[0]) & (far < EARTH[1]))
    rows &= np.all([np.abs(item) > 1 for item in values], axis=0)
    if cells.numbers and rows.any():
        chosen = np.flatnonzero(rows)
        lat, lon, _ = coordinates.degrees_of_ecef(*(item[chosen] for item in values))
        rows[chosen] = cells.contain(lat, lon)
    return rows


def _planes(points: list[tuple[float, float]]) -> Iterator[tuple[str, Callable[[Any, Any], tuple[F64, F64]]]]:
    zones = {coordinates.zone_of(*item) for item in points}
    for zone in sorted(zones)[:4]:
        yield "UTM", partial(coordinates.utm_of, zone=zone)
    if points:
        yield "Web Mercator", coordinates.mercator_of


def _plane(
    name: str,
    plane: Callable[[Any, Any], tuple[F64, F64]],
    points: list[tuple[float, float]],
    swapped: bool,
    types: tuple[str, ...],
) -> PlaceRule:
    lat, lon = (np.array(chosen) for chosen in zip(*points, strict=True))
    east, north = plane(lat, lon)
    order = slice(None, None, -1 if swapped else 1)

    def hits(values: list[F64]) -> Rows:
        x, y = values[order]
        with np.errstate(invalid="ignore"):
            good = (x >= east.min() - METRES) & (x <= east.max() + METRES)
            good &= (y >= north.min() - METRES) & (y <= north.max() + METRES)
        # Near the equator or the meridian, coordinates are like any numbers.
        return np.asarray(good & (np.abs(x) > 10 * METRES / 4) & (np.abs(y) > 10 * METRES / 4))

    def moved(values: list[F64], move: Callable[[F64, F64], tuple[F64, F64]]) -> list[F64]:
        to = move(lat[:1], lon[:1])
        new_east, new_north = coordinates.utm_of(*to, coordinates.zone_of(float(to[0][0]), float(to[1][0])))
        x, y = values[order]
        return [x - east[0] + new_east[0], y - north[0] + new_north[0]][order]

    return PlaceRule(name, 2, types, hits, moved)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Numbers of one field of a channel.

    path    the field; arrays have no index
    values  all numbers, one after another
    type    Arrow type
    many    True: they are items of an array
    """

    path: str
    values: F64
    type: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class HiddenPlace:
    """Fields whose numbers are places of the log by *rule*; one path: an array."""

    paths: tuple[str, ...]
    rule: PlaceRule


def numeric_columns(ch: Channel) -> Iterator[list[NumberColumn]]:
    """Yield the numbers of all fields of a channel, a list for each batch of messages."""
    try:
        # Numbers beside the payloads are no fields of these.
        fields = {f.name for f in (payload_layout(ch) or ch.layout).record.visible()}
        for batch in ch.batches():
            results: list[NumberColumn] = []
            for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
                if name not in fields:
                    continue
                chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
                results += _leaves(name, chunk, False)
            yield results
    except (LogError, ValueError, TypeError, pa.ArrowException):
        return


def _leaves(path: str, array: Any, repeated: bool) -> Iterator[NumberColumn]:
    value_type = array.type
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_struct(value_type):
        for member, item in zip(value_type, array.flatten(), strict=True):
            yield from _leaves(joined(path, member.name), item, repeated)
    elif (
        pa.types.is_list(value_type)
        or pa.types.is_large_list(value_type)
        or pa.types.is_fixed_size_list(value_type)
    ):
        yield from _leaves(path, array.flatten(), True)
    elif (pa.types.is_integer(value_type) and value_type.bit_width >= 32) or (
        pa.types.is_floating(value_type) and value_type.bit_width >= 32
    ):
        values = array.to_numpy(zero_copy_only=False)
        yield NumberColumn(path, np.asarray(values, np.float64), str(value_type), repeated)


def hidden_places(ch: Channel, rules: list[PlaceRule], known: set[str]) -> list[HiddenPlace]:
    """Return the fields whose numbers are places of the log, though their names do not say so.

    known  paths of fields that are known to be positions
    """
    total, hits, by_key = (
        len(ch),
        dict[tuple[tuple[str, ...], int], int](),
        dict[tuple[tuple[str, ...], int], int](),
    )
    for columns in numeric_columns(ch):
        for number, rule in enumerate(rules):
            for paths, values in _candidates(columns, rule):
                if not known.isdisjoint(paths):
                    continue
                with np.errstate(invalid="ignore", over="ignore"):
                    rows = rule.hits(values)
                stated = np.count_nonzero(np.all([np.isfinite(v) & (v != 0) for v in values], axis=0))
                key = paths, number
                hits[key] = hits.get(key, 0) + int(np.count_nonzero(rows))
                by_key[key] = by_key.get(key, 0) + int(stated)
    results: list[HiddenPlace] = []
    taken = set(known)
    for (paths, number), count in sorted(hits.items(), key=lambda item: -item[1]):
        # Other quantities can pass through such values; positions of one log are all near each other.
        enough = count >= SHARE * by_key[paths, number] or (len(paths) == 1 and count >= SHARE * total)
        if count and enough and taken.isdisjoint(paths):
            results.append(HiddenPlace(paths, rules[number]))
            taken |= set(paths)
    return results


def _candidates(columns: list[NumberColumn], rule: PlaceRule) -> Iterator[tuple[tuple[str, ...], list[F64]]]:
    """Yield numbers that can be a place: neighbours in one struct, and neighbours in an array."""
    fit = [item for item in columns if item.type in rule.types]
    for at in range(len(fit) - rule.width + 1):
        chosen = fit[at : at + rule.width]
        parents = {item.path.rpartition(".")[0] for item in chosen}
        if (
            len(parents) == 1
            and len({item.type for item in chosen}) == 1
            and len({len(item.values) for item in chosen}) == 1
        ):
            yield tuple(item.path for item in chosen), [item.values for item in chosen]
    for item in fit:
        if item.repeated and len(item.values) >= rule.width:
            yield (item.path,), windows(item.values, rule.width)


def windows(values: F64, width: int) -> list[F64]:
    """Return neighbouring numbers: *width* arrays, of the numbers and of those after them."""
    return [values[n : len(values) - width + 1 + n] for n in range(width)]


def positions_of(ch: Channel, place: HiddenPlace) -> Iterator[tuple[float, float]]:
    """Yield some positions that earth-centred numbers say."""
    for columns in numeric_columns(ch):
        for paths, values in _candidates(columns, place.rule):
            if paths == place.paths:
                rows = np.flatnonzero(place.rule.hits(values))
                rows = rows[:: max(1, len(rows) // 8)]
                lat, lon, _ = coordinates.degrees_of_ecef(*(item[rows] for item in values))
                yield from zip(lat.tolist(), lon.tolist(), strict=True)
        return


def dependent_paths(layout: Layout) -> list[str]:
    """Return the paths of numbers that depend on the place, such as the magnetic declination."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if is_float(innermost(node)) and words(name) & DEPENDS
    ]


DAY = 86400 * 10**9
#: Metadata of channels that definitions and formats need as they are.
_STRUCTURE = {
    *(
        "md5sum",
        "type",
        "message_definition",
        "topic",
        "hash",
        "content_type",
        "type_name",
        "latching",
        "packet",
    ),
    *("series_type", "type_id", "version", "multi_id", "axes", "connections", "offered_qos_profiles"),
}
_COMMENT = re.compile(rb"(?:#|//)[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DESCRIPTION = re.compile(rb'"(?:description|title|\$comment|\$id)"\s*:\s*"(?:[^"\\]|\\.)*"')


@dataclass(slots=True)
class LogMasking:
    """All masks of one log; implements ``write.log_copier.Masking``.

    changes  kind, the word for what changed and its name, in the order of changes
    """

    masks: Sequence[Mask]
    changes: dict[tuple[str, str, str], None] = field(default_factory=dict)

    @property
    def identity(self) -> IdentityMask | None:
        """The mask of identities, if there is one."""
        return next((item for item in self.masks if isinstance(item, IdentityMask)), None)

    @property
    def place(self) -> PlaceMask | None:
        """The mask of places, if there is one."""
        return next((item for item in self.masks if isinstance(item, PlaceMask)), None)

    @property
    def offset(self) -> int:
        """Nanoseconds that are added to times."""
        return next((item.offset for item in self.masks if isinstance(item, TimeMask)), 0)

    def value(self, name: str, value: Any) -> Any:
        """See Masking."""
        for mask in self.masks:
            new = masked(mask, name, value)
            if new != value:
                self.changes[mask.kind, "entry", name] = None
                value = new
        return value

    def name(self, what: str, name: str) -> str:
        """See Masking."""
        raw = name.encode("utf-8", "surrogateescape")
        for mask in self.masks:
            new = named(mask, raw) if what == "topic" else mask.text(raw)
            if new != raw:
                self.changes[mask.kind, f"name of {what}", name] = None
                raw = new
        return raw.decode("utf-8", "surrogateescape")

    def content(self, name: str, data: bytes) -> bytes:
        """See Masking."""
        for mask in self.masks:
            new = content(mask, data)
            if new != data:
                self.changes[mask.kind, "attachment", name] = None
                data = new
        return data

    def time(self, time: int) -> int:
        """See Masking."""
        return max(0, time + self.offset) if time > 0 else time

    def moved_times(self, values: I64) -> I64:
        """Return whole numbers, of which those that are times of the log in any unit move."""
        mask = next((item for item in self.masks if isinstance(item, TimeMask)), None)
        if mask is None or mask.start is None or mask.end is None:
            return values
        made = values.copy()
        for unit in (1, 1000, 10**6, 10**9):
            rows = (values > (mask.start - DAY) // unit) & (values < (mask.end + DAY) // unit)
            made[rows] += mask.offset // unit
        return made

    def channel_metadata(self, topic: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata of a channel; what formats need stays."""
        made: dict[str, Any] = {}
        for name, value in metadata.items():
            if name in _STRUCTURE:
                made[name] = value
            elif name == "headers" and isinstance(value, Sequence):
                made[name] = [self.channel_metadata(topic, item) for item in value]
            else:
                made[name] = self.value(name, value)
        return made

    def schema(self, topic: str, schema: Schema) -> Schema:
        """Return the definition of messages with comments and descriptions masked."""
        if not schema.text:
            return schema
        pattern = _DESCRIPTION if schema.text.lstrip()[:1] == "{" else _COMMENT
        raw = schema.raw
        for mask in self.masks:
            new = pattern.sub(lambda match, mask=mask: _in_comment(mask, match[0]), raw)  # type: ignore[misc]
            if new != raw:
                self.changes[mask.kind, "comments of the definition of", topic] = None
                raw = new
        return schema if raw == schema.raw else replace(schema, text=raw.decode("utf-8", "replace"))


def _in_comment(mask: Mask, text: bytes) -> bytes:
    return mask.text(text).replace(b"\n", b" ") if b"\n" not in text else mask.text(text)


def named(mask: Mask, name: bytes) -> bytes:
    """Return the name of a topic or frame without what *mask* hides."""
    return mask.name(name) if isinstance(mask, IdentityMask | PlaceMask) else mask.text(name)
