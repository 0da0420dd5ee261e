"""What may still identify: a search of a written log for what its source says, by other rules than the redaction's.

Nothing here uses fields, layouts or masks: texts are runs of printable bytes, numbers are read at every byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.lenses import Clouds, Image, Position, lenses
from logreel.log.log import Channel, Log
from logreel.ops.edit import coordinates
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import in_file_order

U8 = NDArray[np.uint8]

#: Degrees and metres from a position of the source within which numbers look like it.
DEGREES, METRES = 0.03, 5000.0
#: Seconds around the source in which numbers look like its times; days for texts.
AROUND = 3600
DAY = 86400
NS = 10**9
#: Bytes of each message of a channel with pictures or clouds that are searched: the pixels say nothing.
HEAD = 1 << 14
#: Fewest messages, and largest in bytes, whose numbers are compared column by column.
ROWS, WIDEST = 5, 256
#: Messages of a batch that are compared like this.
SAMPLE = 200
#: Positions of the source that are compared.
POINTS = 40

_RUN = re.compile(rb"(?:[\t\n\r\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}){6,}")
#: Least share of letters, digits and usual signs in text; bits of numbers are printable by accident.
_USUAL, _SHARE = re.compile(rb"[\w .,:;/+@=\"'-]"), 0.8
_LOOKS: Mapping[str, re.Pattern[bytes]] = {
    "an e-mail address": re.compile(rb"[\w.+-]{2,}@[\w-]{2,}(?:\.[\w-]+)+"),
    "a network address": re.compile(
        rb"(?<![\w.])(?!127\.|0\.|255\.)(?:[1-9]\d{0,2}\.)(?:\d{1,3}\.){2}\d{1,3}(?![\w.])"
    ),
    "a MAC address": re.compile(rb"(?i)(?<![\w:-])[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}(?![\w:-])"),
    # Not the decimals of a small number, such as 9.999999974752427e-07.
    "a serial number or UUID": re.compile(
        rb"(?i)(?<![0-9a-z])(?!(?<=\d\.)\d+e[+-]\d)"
        rb"(?:[0-9a-f]{8}-[0-9a-f-]{20,27}|(?=[0-9]*[a-f])[0-9a-f]{16,32})(?![0-9a-z])"
    ),
    "a path with the name of a user": re.compile(rb"(?:/home/|/Users/|\\Users\\|~/[\w.-]+/)[\w.]"),
    "the name of a computer": re.compile(rb"(?i)(?<![\w.])[a-z][\w-]*\.(?:local|lan|internal|corp|localdomain)(?!\w)"),
    "the name of a person": re.compile(
        rb"(?i)(?:operator|pilot|driver|user ?name|owner|author)[\"']?\s*[:=]\s*[\"']?(?!person-|name-)[a-z]{3}"
    ),
    "an angle in degrees": re.compile(rb"\d\s*(?:\xc2\xb0|\xc2\xba|\xb0)\s*(?:\d|[NSEW])|\d deg \d+' \d"),
    "a sentence of a receiver": re.compile(rb"\$G[A-Z]{4},[^*\r\n]*?\d{4}\.\d+,[NS],\d{5}\.\d+,[EW]"),
    "a plus code": re.compile(rb"(?<![A-Z0-9])[2-9CFGHJMPQRVWX]{6,8}\+[2-9CFGHJMPQRVWX]{2,3}(?![A-Z0-9])"),
    "a grid reference": re.compile(rb"(?<![A-Z0-9])\d{1,2}[C-X] ?[A-HJ-NP-Z]{2} ?\d{3,5} ?\d{3,5}(?![A-Z0-9])"),
    "the address of a map": re.compile(rb"(?i)(?:maps\.|openstreetmap|\bgeo:-?\d+\.\d|what3words|///\w+\.\w+\.\w+)"),
}  # fmt: skip
_PICTURE = re.compile(
    rb"Exif\0\0(?:II\*\0|MM\0\*)|http://ns\.adobe\.com/xap/1\.0/\0|\0\0..eXIf|EXIF....(?:II\*\0|MM\0\*)",
    re.DOTALL,
)
_PACKED = {
    b"\x1f\x8b": "gzip", b"PK\x03\x04": "ZIP", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd",
    b"%PDF": "PDF", b"SQLite format 3": "SQLite", b"II*\0": "TIFF", b"MM\0*": "TIFF",
}  # fmt: skip
_DECIMAL = re.compile(rb"(?<![\d.])-?\d{1,3}[.,]\d{3,}")
_METRES = re.compile(rb"(?<![\d.])\d{5,8}(?:\.\d+)?(?!\d)")
_WORD = re.compile(rb"(?<![\w])(?=[a-z]*\d)[0-9b-hjkmnp-z]{5,12}(?!\w)")
_LONG = re.compile(rb"(?<![\d.])\d{10,19}(?!\d)")
#: Parts of names of metadata whose values identify something.
_KEYS = ("uuid", "serial", "host", "user", "operator", "pilot", "vehicle_name", "vehicle_id", "robot", "callsign",
         "call_sign", "owner", "email", "imei", "ssid", "mac_addr", "board_id", "device_id", "nickname")  # fmt: skip
_DATES = (
    "%Y-%m-%d",
    "%Y_%m_%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%Y:%m:%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%b %d %Y",
    "%d %b %Y",
)


@dataclass(frozen=True, slots=True)
class Residue:
    """Something in a written log that may identify who, where or when.

    where  the channel, or what else of the log it is in
    what   what it looks like; never the value itself
    count  how often it was found
    """

    where: str
    what: str
    count: int


@dataclass
class SourceFacts:
    """What a source says, to be searched for.

    points      latitude and longitude in degrees: float64[n, 2]
    start, end  first and last time, seconds since 1970; None: unknown
    values      texts that identify something by the names of metadata
    """

    points: NDArray[np.float64]
    start: int | None
    end: int | None
    values: set[bytes] = field(default_factory=set)

    @cached_property
    def planes(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """East and north of the points in the projections that logs use, float64[n] each."""
        zone = coordinates.zone_of(*self.points[0].tolist())
        return [
            coordinates.utm_of(self.points[:, 0], self.points[:, 1], zone),
            coordinates.mercator_of(*self.points.T),
        ]

    @cached_property
    def earth(self) -> NDArray[np.float64]:
        """The points in the earth-centred system: float64[n, 3]."""
        return np.stack(coordinates.ecef_of(self.points[:, 0], self.points[:, 1]), axis=1)

    @cached_property
    def codes(self) -> list[bytes]:
        """How codes of places near the first points begin."""
        codes = list[bytes]()
        for latitude, longitude in self.points[:8].tolist():
            grid = coordinates.mgrs_of(latitude, longitude)
            plus = coordinates.plus_code_of(latitude, longitude)
            texts = plus[:6], grid[:7], f"{grid[:3]} {grid[3:5]} {grid[5:7]}"
            codes += [text.encode() for text in texts]
        return codes

    @cached_property
    def days(self) -> list[bytes]:
        """The days of the source, as texts write them; ten at most."""
        if self.start is None or self.end is None:
            return []
        first, last = self.start // DAY, min(self.end // DAY, self.start // DAY + 10)
        moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(first, last + 1)]
        return [moment.strftime(item).encode() for moment in moments for item in _DATES]


def facts_of(log: Log, what: Collection[str]) -> SourceFacts:
    """Return what *log* says; *what*: the kinds that are redacted."""
    points: list[NDArray[np.float64]] = []
    for ch in log.channels.values() if {"place", "position"} & set(what) else ():
        for lens in lenses(ch):
            if isinstance(lens, Position) and len(ch):
                try:
                    fixes = lens.fixes(ch)
                except (LogError, ValueError):
                    continue
                good = fixes.take(fixes.valid)
                pairs = np.stack([good.latitude, good.longitude], axis=1)
                points.append(pairs[:: max(1, len(pairs) // POINTS)])
    stated = np.concatenate(points) if points else np.zeros((0, 2))
    stated = np.unique(np.round(stated[np.abs(stated).max(axis=1, initial=0) > 0.5], 2), axis=0)[:POINTS]
    offset, start, end = log.utc_offset, log.start, log.end
    known = (
        "time" in what
        and start is not None
        and end is not None
        and (offset is not None or log.epoch == "unix")
    )
    facts = SourceFacts(stated, None, None)
    if known and start is not None and end is not None and (start + (offset or 0)) > 10**17:
        facts.start, facts.end = (start + (offset or 0)) // NS, (end + (offset or 0)) // NS
    if "identity" in what:
        others = set[bytes]()
        for value in (log.metadata, [ch.metadata for ch in log.channels.values()]):
            _add_values(facts.values, others, "", value)
        # What stands under other names, too, is a word such as the type of an entry.
        facts.values -= others
    return facts


def _add_values(findings: set[bytes], others: set[bytes], name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _add_values(findings, others, str(key), item)
    elif isinstance(value, list | tuple):
        for item in value:
            _add_values(findings, others, name, item)
    elif isinstance(value, str) and 5 <= len(value) < 200:
        identifies = any(key in name.lower() for key in _KEYS)
        (findings if identifies else others).add(value.strip("/").encode("utf-8", "surrogateescape"))


@dataclass(slots=True)
class Search:
    """A search of a written log.

    removed  texts of the source that were replaced, and must not be there
    left     where such texts were found
    """

    facts: SourceFacts
    removed: re.Pattern[bytes] | None
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: SourceFacts, removed: Collection[bytes]) -> Search:
        """Return a search for *facts* and the texts *removed*."""
        sure = sorted((item for item in removed if len(item) >= 5), key=len, reverse=True)[:20_000]
        pattern = b"(?<![A-Za-z0-9])(?:" + b"|".join(map(re.escape, sure)) + b")(?![A-Za-z0-9])"
        return cls(facts, re.compile(pattern) if sure else None)

    def run(self, log: Log) -> list[Residue]:
        """Search *log*; return what was found, in the order of channels, then the rest."""
        if self._is_then(log.start):
            self.findings["times of messages", "the time of the source"] += 1
        rows = {ch.number: slice(0, len(ch)) for ch in log.channels.values() if len(ch)}
        topics = {ch.number: ch.topic for ch in log.channels.values()}
        heads = {ch.number for ch in log.channels.values() if _is_large(ch)}
        for batch in in_file_order(Part(log, rows)) if rows else ():
            for place, number in enumerate(batch.channels.tolist()):
                places_of_channel = np.flatnonzero(batch.queue == place)
                if not len(places_of_channel):
                    continue
                if number in heads:
                    for row in places_of_channel.tolist():
                        payload = batch.payloads.rows(np.array([row])).joined()
                        self._search_bytes(topics[number], payload[:HEAD])
                else:
                    payloads = batch.payloads.rows(places_of_channel)
                    self._search_bytes(topics[number], payloads.joined())
                    self._search_columns(topics[number], payloads.joined(), payloads.size)
        for ch in log.channels.values():
            self._search_text("topic", ch.topic.encode("utf-8", "surrogateescape"))
            self._search_text(f"definition of {ch.topic}", ch.schema.raw)
            for name, text in _texts("", ch.metadata):
                if name not in ("md5sum", "message_definition", "type") and "hash" not in name:
                    self._search_text(f"metadata of {ch.topic}", text)
        for name, text in _texts("", log.metadata):
            if name not in ("sha1", "metadata_events_sha256"):
                self._search_text(f"metadata {name}", text)
        for name, item in log.attachments.items():
            self._search_text("name of an attachment", name.encode("utf-8", "surrogateescape"))
            data = item.read()
            self._search_bytes(f"attachment {name}", np.frombuffer(data, np.uint8))
            packed = next((word for magic, word in _PACKED.items() if data.startswith(magic)), None)
            if packed is not None:
                self.findings[f"attachment {name}", f"content in {packed}, which was not searched"] += 1
        return [Residue(where, what, count) for (where, what), count in self.findings.items()]

    def _search_bytes(self, where: str, data: U8) -> None:
        raw = data.tobytes()
        for match in _RUN.finditer(raw):
            text = match[0]
            if len(text) > 200 or len(_USUAL.findall(text)) >= _SHARE * len(text):
                self._search_text(where, text)
        pictures = len(_PICTURE.findall(raw))
        if pictures:
            self.findings[where, "details of a picture (Exif or XMP)"] += pictures
        for what, count in numbers_like(data, self.facts).items():
            self.findings[where, what] += count

    def _search_columns(self, where: str, data: U8, size: NDArray[np.int64]) -> None:
        """Search messages of one size for a latitude or longitude that stands alone."""
        width = int(size[0])
        if (
            not len(self.facts.points)
            or len(size) < ROWS
            or (size != width).any()
            or not 8 <= width <= WIDEST
        ):
            return
        table = np.ascontiguousarray(data).reshape(len(size), width)[:: max(1, len(size) // SAMPLE)]
        for at in range(width - 7):
            values = np.ascontiguousarray(table[:, at : at + 8]).view("<f8")[:, 0]
            with np.errstate(all="ignore"):
                near = (np.abs(values[:, None] - self.facts.points.ravel()) < DEGREES).any(axis=1)
                # A voltage of 47.4 is no latitude.
                near &= np.abs(values * 1000 - np.rint(values * 1000)) > 1e-6
                near &= np.abs(values) > 1
            if np.count_nonzero(near) > 0.9 * len(values):
                self.findings[where, "numbers like a latitude or longitude of the source"] += len(size)
                return

    def _search_text(self, where: str, text: bytes) -> None:
        if self.removed is not None and self.removed.search(text):
            self.left[where] = None
        for what, pattern in _LOOKS.items():
            count = sum(1 for _ in pattern.finditer(text))
            if count:
                self.findings[where, f"looks like {what}"] += count
        for value in self.facts.values:
            if value in text:
                self.findings[where, "a value that identifies the source"] += 1
        for what, count in _stated(text, self.facts).items():
            self.findings[where, what] += count

    def _is_then(self, time: int | None) -> bool:
        start, end = self.facts.start, self.facts.end
        return (
            time is not None
            and start is not None
            and end is not None
            and start - DAY < time // NS < end + DAY
        )


def _is_large(ch: Channel) -> bool:
    return any(isinstance(lens, Image | Clouds) for lens in lenses(ch))


def _texts(name: str, value: Any) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield name, str(key).encode("utf-8", "surrogateescape")
            yield from _texts(str(key), item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(name, item)
    elif isinstance(value, str):
        yield name, value.encode("utf-8", "surrogateescape")
    elif isinstance(value, bytes):
        yield name, value
    elif value is not None and not isinstance(value, bool):
        yield name, repr(value).encode()


def _stated(text: bytes, facts: SourceFacts) -> Counter[str]:
    """Return what a text says of places and times of the source."""
    findings = Counter[str]()
    if len(facts.points):
        for match in _DECIMAL.finditer(text):
            value = abs(float(match[0].replace(b",", b".")))
            if np.abs(np.abs(facts.points) - value).min() < DEGREES and value > 1:
                findings["a number near a latitude or longitude of the source"] += 1
        findings["a code of the place"] += sum(
            1 for match in _WORD.finditer(text) if _is_hash(match[0], facts.points)
        )
        metres = [float(match[0]) for match in _METRES.finditer(text)]
        findings["numbers like a projected position of the source"] += sum(
            1 for pair in pairwise(metres) if _is_projected(pair, facts)
        )
        findings["a code of the place"] += sum(1 for code in facts.codes if code in text)
    if facts.start is not None and facts.end is not None:
        findings["the date of the source"] += sum(map(text.count, facts.days))
        for match in _LONG.finditer(text):
            if facts.start - DAY < int(match[0][:10]) < facts.end + DAY:
                findings["the time of the source"] += 1
    return +findings


def _is_hash(word: bytes, points: NDArray[np.float64]) -> bool:
    place = coordinates.degrees_of_geohash(word.decode())
    return place is not None and bool((np.abs(points - place) < DEGREES).all(axis=1).any())


def _is_projected(pair: tuple[float, float], facts: SourceFacts) -> bool:
    for plane in facts.planes:
        for axes in (pair, pair[::-1]):
            if all((np.abs(axis - value) < METRES).any() for axis, value in zip(plane, axes, strict=True)):
                return True
    return False


def numbers_like(data: U8, facts: SourceFacts) -> Counter[str]:
    """Return what numbers at any byte of *data* look like: positions and times of the source."""
    findings = Counter[str]()
    for number_type in ("<f8", "<f4", "<i4", "<i8"):
        width = int(number_type[2])
        for shift in range(width):
            count = (len(data) - shift) // width
            if count < 1:
                continue
            values = (
                np.frombuffer(data, number_type, count, shift)
                if data.flags.c_contiguous
                else data[:0].view("<f8")
            )
            if number_type != "<i8" and len(facts.points):
                findings += _positions_among(values, number_type, facts)
            if facts.start is not None and facts.end is not None:
                findings += _times_among(values, number_type, facts.start - AROUND, facts.end + AROUND)
    return findings


def _positions_among(values: NDArray[Any], number_type: str, facts: SourceFacts) -> Counter[str]:
    findings, points = Counter[str](), facts.points
    with np.errstate(all="ignore"):
        # Float64 has range for all; nothing here is exact to more than metres.
        wide = values.astype(np.float64)
        units = {"degrees": 1.0, "radians": 180 / np.pi} if number_type != "<i4" else {"1e-7 degrees": 1e-7}
        low, high = points.min(axis=0) - DEGREES, points.max(axis=0) + DEGREES
        for name, unit in units.items():
            degrees = wide * unit
            lat = (degrees >= low[0]) & (degrees <= high[0])
            lon = (degrees >= low[1]) & (degrees <= high[1])
            both = sum(int(np.count_nonzero(a[:-1] & b[1:])) for a, b in ((lat, lon), (lon, lat)))
            # Zeros and whole numbers are no positions.
            findings[f"numbers like a position of the source in {name}"] += both
        if number_type == "<i4":
            return +findings
        inside = [(wide > axis.min() - METRES) & (wide < axis.max() + METRES) for axis in facts.earth.T]
        if len(wide) > 2:
            every = inside[0][:-2] & inside[1][1:-1] & inside[2][2:]
            findings["numbers like an earth-centred position of the source"] += int(np.count_nonzero(every))
        for east, north in facts.planes:
            x = (wide > east.min() - METRES) & (wide < east.max() + METRES)
            y = (wide > north.min() - METRES) & (wide < north.max() + METRES)
            both = sum(int(np.count_nonzero(a[:-1] & b[1:])) for a, b in ((x, y), (y, x)))
            findings["numbers like a projected position of the source"] += both
    return +findings


#: Fewest numbers that look like times: bits of other numbers do so by accident.
_FEWEST = 3


def _times_among(values: NDArray[Any], number_type: str, start: int, end: int) -> Counter[str]:
    findings = Counter[str]()
    if number_type == "<f4":
        return findings
    if number_type == "<i4":
        seconds, rest = values[:-1], values[1:]
        likely = (seconds > start) & (seconds < end) & (rest >= 0) & (rest < NS) & (rest > 0)
        count, chance = int(np.count_nonzero(likely)), len(values) * (end - start) / 2**32 / 4
        findings["numbers like times of the source"] += count if count > 3 + 5 * chance else 0
        return +findings
    with np.errstate(all="ignore"):
        for unit in (1, 1000, 10**6, NS) if number_type == "<i8" else (1,):
            count = int(np.count_nonzero((values > start * unit) & (values < end * unit)))
            findings["numbers like times of the source"] += count if count >= min(_FEWEST, len(values)) else 0
    return +findings
