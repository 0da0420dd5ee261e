"""Positions of a log as GPS tags of pictures."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.lenses import Fixes
from logreel.log.log import Channel, Log
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.log.times import SECOND, Length, duration_ns, utc_shift
from logreel.meaning.tracks import valid_fixes
from logreel.outputs.files import new_file
from logreel.outputs.registry import readers
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


_EXIF = b"Exif\0\0"
#: Tags of the first directory that point to others.
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_DATE_TIME_ORIGINAL, _SUBSECONDS = 0x9003, 0x9291
_BYTE, _ASCII, _LONG, _RATIONAL = 1, 2, 4, 5
_SIZES = {
    _BYTE: 1,
    _ASCII: 1,
    3: 2,
    _LONG: 4,
    _RATIONAL: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
}
#: Most bytes of a segment of a JPEG, with its length.
_SEGMENT = 0xFFFF


class GpsPlace(NamedTuple):
    """The position of a picture: degrees, metres above sea level (None: unknown), ns since 1970 (None: unknown)."""

    latitude: float
    longitude: float
    altitude: float | None = None
    time: int | None = None


class _Entry(NamedTuple):
    tag: int
    type: int
    items: int
    value: bytes


def with_place(picture: bytes, place: GpsPlace) -> bytes:
    """Return a JPEG with GPS tags for *place* instead of those that it has; pixels and other tags stay unchanged.

    Raises LogError for what is no JPEG, for invalid EXIF data, and if no room is left for the tags.
    """
    start, end, tiff = _find(picture)
    block = _EXIF + _with_gps(tiff or b"II*\0\x08\0\0\0\0\0\0\0\0\0", place)
    if len(block) + 2 > _SEGMENT:
        raise LogError("the EXIF data of the picture leave no room for its position")
    return picture[:start] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + picture[end:]


def time_taken(picture: bytes) -> int | None:
    """Return when a picture was taken, by the camera's clock taken as UTC: ns since 1970; None if it does not say."""
    _, _, tiff = _find(picture)
    if not tiff:
        return None
    order, first = _header(tiff)
    inner = {e.tag: e for e in _entries(tiff, order, first)[0]}.get(_EXIF_IFD)
    if inner is None or inner.type != _LONG:
        return None
    tags = {e.tag: e for e in _entries(tiff, order, struct.unpack(f"{order}I", inner.value)[0])[0]}
    if _DATE_TIME_ORIGINAL not in tags:
        return None
    text = _content(tiff, order, tags[_DATE_TIME_ORIGINAL]).split(b"\0")[0].decode("ascii", "replace")
    try:
        moment = datetime.strptime(text.strip(), "%Y:%m:%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    part = _content(tiff, order, tags[_SUBSECONDS]).split(b"\0")[0].strip() if _SUBSECONDS in tags else b""
    rest = int(part[:9].ljust(9, b"0")) if part.isdigit() else 0
    return int(moment.timestamp()) * 10**9 + rest


def _find(picture: bytes) -> tuple[int, int, bytes]:
    """Return start and end of the EXIF segment, and its TIFF data; an empty place for a new one if there is none."""
    if picture[:2] != b"\xff\xd8":
        raise LogError("the picture is no JPEG")
    at = place = 2
    while at + 4 <= len(picture) and picture[at] == 0xFF:
        marker = picture[at + 1]
        size = struct.unpack_from(">H", picture, at + 2)[0]
        # The pixels begin.
        if marker == 0xDA or size < 2 or size > len(picture) - at - 2:
            break
        end = at + 2 + size
        if marker == 0xE1 and picture.startswith(_EXIF, at + 4):
            return at, end, picture[at + 4 + len(_EXIF) : end]
        if marker == 0xE0:
            place = end
        at = end
    return place, place, b""


def _header(tiff: bytes) -> tuple[str, int]:
    """Return the byte order, as for ``struct``, and the offset of the first directory."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None or len(tiff) < 8:
        raise LogError("the EXIF data of the picture are invalid")
    return order, struct.unpack_from(f"{order}I", tiff, 4)[0]


def _entries(tiff: bytes, order: str, at: int) -> tuple[list[_Entry], int]:
    """Return the entries of a directory, and the offset of the next one."""
    if at > len(tiff) - 2:
        raise LogError("the EXIF data of the picture are invalid")
    count = struct.unpack_from(f"{order}H", tiff, at)[0]
    if count * 12 > len(tiff) - at - 2:
        raise LogError("the EXIF data of the picture are invalid")
    entries = [_Entry(*struct.unpack_from(f"{order}HHI4s", tiff, at + 2 + 12 * n)) for n in range(count)]
    end = at + 2 + 12 * count
    return entries, struct.unpack_from(f"{order}I", tiff, end)[0] if end <= len(tiff) - 4 else 0


def _content(tiff: bytes, order: str, entry: _Entry) -> bytes:
    size = _SIZES.get(entry.type, 1) * entry.items
    if size <= 4:
        return entry.value[:size]
    at = struct.unpack(f"{order}I", entry.value)[0]
    return tiff[at : at + size]


def _with_gps(tiff: bytes, place: GpsPlace) -> bytes:
    """Return *tiff* with a new first directory and a GPS directory behind; earlier data keep their offsets."""
    order, first = _header(tiff)
    old, following = _entries(tiff, order, first)
    tiff += b"\0" * (len(tiff) % 2)
    gps = _directory(list(_gps_entries(order, place)), order, len(tiff), 0)
    pointer = _Entry(_GPS_IFD, _LONG, 1, struct.pack(f"{order}I", len(tiff)))
    entries = sorted([*(e for e in old if e.tag != _GPS_IFD), pointer])
    directory = struct.pack(f"{order}H", len(entries)) + b"".join(
        struct.pack(f"{order}HHI4s", *e) for e in entries
    )
    directory += struct.pack(f"{order}I", following)
    return tiff[:4] + struct.pack(f"{order}I", len(tiff) + len(gps)) + tiff[8:] + gps + directory


def _directory(entries: list[_Entry], order: str, at: int, following: int) -> bytes:
    """Return a directory at offset *at*, with long values behind it."""
    head, body = struct.pack(f"{order}H", len(entries)), b""
    behind = at + 2 + 12 * len(entries) + 4
    for e in entries:
        value = e.value.ljust(4, b"\0")
        if len(e.value) > 4:
            value = struct.pack(f"{order}I", behind + len(body))
            body += e.value + b"\0" * (len(e.value) % 2)
        head += struct.pack(f"{order}HHI4s", e.tag, e.type, e.items, value)
    return head + struct.pack(f"{order}I", following) + body


def _gps_entries(order: str, place: GpsPlace) -> Iterator[_Entry]:
    def text(tag: int, value: str) -> _Entry:
        return _Entry(tag, _ASCII, len(value) + 1, value.encode("ascii") + b"\0")

    def numbers(tag: int, *values: Fraction) -> _Entry:
        pairs = (n for value in values for n in (value.numerator, value.denominator))
        return _Entry(tag, _RATIONAL, len(values), struct.pack(f"{order}{2 * len(values)}I", *pairs))

    yield _Entry(0, _BYTE, 4, b"\2\3\0\0")
    yield text(1, "S" if place.latitude < 0 else "N")
    yield numbers(2, *_angle(place.latitude))
    yield text(3, "W" if place.longitude < 0 else "E")
    yield numbers(4, *_angle(place.longitude))
    if place.altitude is not None:
        yield _Entry(5, _BYTE, 1, b"\1" if place.altitude < 0 else b"\0")
        yield numbers(6, Fraction(min(round(abs(place.altitude) * 1000), 2**32 - 1), 1000))
    if place.time is not None:
        moment = datetime.fromtimestamp(place.time // 10**9, UTC)
        second = Fraction(moment.second * 1000 + place.time % 10**9 // 10**6, 1000)
        yield numbers(7, Fraction(moment.hour), Fraction(moment.minute), second)
        yield text(29, moment.strftime("%Y:%m:%d"))


def _angle(degrees: float) -> tuple[Fraction, Fraction, Fraction]:
    """Return degrees, minutes and seconds, with a hundred-thousandth of a second (0.3 mm)."""
    parts = round(abs(degrees) * 3600 * 100_000)
    full_degrees, rest = divmod(parts, 3600 * 100_000)
    minutes, seconds = divmod(rest, 60 * 100_000)
    return Fraction(full_degrees), Fraction(minutes), Fraction(seconds, 100_000)


#: How pictures are matched to positions.
METHODS = ("order", "time")
_SUFFIXES = (".jpg", ".jpeg")


@dataclass(frozen=True)
class Geotagged:
    """What ``geotag`` wrote.

    topic     channel with the positions
    pictures  name, path, number of the message's picture (None: none), time_ns, latitude, longitude, altitude of each
    skipped   one sentence for each picture without position, and for positions without picture
    """

    topic: str
    pictures: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"topic": self.topic, "pictures": self.pictures, "skipped": self.skipped}


def geotag(
    src: Openable | Log,
    pictures: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    topic: str | None = None,
    by: str | None = None,
    offset: Length = 0,
    tolerance: Length = SECOND,
    force: bool = False,
    definitions: Definitions = (),
) -> Geotagged:
    """Write copies of the JPEG pictures in a folder, with the positions of a log as GPS tags; return a summary.

    src        an open Log, or anything that ``logreel.open`` takes
    pictures   folder; its pictures are taken in the natural order of their names
    out        folder for the copies; created if it does not exist
    topic      channel with positions; None: that of a camera, such as ``camera_capture`` of PX4, else the first one
    by         ``order``: the first picture belongs to the first position of the channel; ``time``: by the EXIF time,
               between two positions; None: by order for the channel of a camera, else by time
    offset     added to the times of the pictures to get UTC, ns or text
    tolerance  greatest time between a picture and a position, ns or text
    force      replace existing files
    definitions  as for ``logreel.open``

    Pixels and other tags stay as they are. A picture without position is not copied, and reported in *skipped*. Raises
    UsageError for wrong options and without pictures, LogError without positions and for existing files.
    """
    if by is not None and by not in METHODS:
        raise UsageError(f"pictures are matched by 'order' or 'time', not by {by!r}")
    shift, margin = duration_ns(offset), duration_ns(tolerance)
    folder = Path(pictures)
    if not folder.is_dir():
        raise UsageError("is no folder of pictures", path=str(folder))
    paths = sorted(
        (p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES and p.is_file()), key=_natural
    )
    if not paths:
        raise UsageError("has no pictures .jpg or .jpeg", path=str(folder))
    with as_open_log(src, definitions) as log:
        return _tag(log, paths, out, topic, by, shift, margin, force)


def _tag(
    log: Log,
    paths: Sequence[Path],
    out: str | os.PathLike[str],
    topic: str | None,
    by: str | None,
    shift: int,
    margin: int,
    force: bool,
) -> Geotagged:
    """Write the copies of the pictures *paths*; times in ns."""
    decrypted_notes(log)
    ch, fixes = _positions(log, topic)
    tagged_pictures = Geotagged(ch.topic)
    method = by or ("order" if fixes.number is not None else "time")
    utc = utc_shift(log)
    if method == "time" and utc is None:
        raise LogError(
            "the log does not say how its clock relates to UTC: match the pictures by order", path=log.name
        )
    os.makedirs(out, exist_ok=True)
    if method == "order" and len(paths) != len(fixes):
        tagged_pictures.skipped.append(f"{len(paths)} pictures, but {len(fixes)} positions of {ch.topic!r}")
    for path in paths:
        keep_sources(Path(out) / path.name, [*paths, *inputs_of(log)])
    for n, path in enumerate(paths):
        content = path.read_bytes()
        try:
            row = float(n) if method == "order" else _row_at(content, fixes, (utc or 0) - shift, margin)
            if row > len(fixes) - 1:
                raise LogError("no position is left")
            place, at = _place(fixes, row, utc)
            tagged = with_place(content, place)
        except LogError as error:
            tagged_pictures.skipped.append(f"{path.name} was left out: {error.text}")
            continue
        with new_file(Path(out) / path.name, force) as file:
            file.write(tagged)
        number = None if fixes.number is None or row != int(row) else int(fixes.number[int(row)])
        tagged_pictures.pictures.append(
            {
                "name": path.name, "path": str(Path(out) / path.name), "number": number, "time_ns": at,
                "latitude": place.latitude, "longitude": place.longitude, "altitude": place.altitude,
            }
        )  # fmt: skip
    return tagged_pictures


def _natural(path: Path) -> tuple[Any, ...]:
    """Return a key that sorts IMG_2 before IMG_10."""
    parts = re.split(r"(\d+)", path.name.lower())
    return tuple((int(part), "") if part.isdigit() and part.isascii() else (-1, part) for part in parts)


def _positions(log: Log, topic: str | None) -> tuple[Channel, Fixes]:
    """Return the channel with positions, and its valid ones by time."""
    wanted: Sequence[Channel] = log.match([topic]) if topic is not None else list(log.channels.values())
    candidates: list[tuple[bool, int, Channel, Fixes]] = []
    for ch in wanted:
        for read in readers(ch, "fixes")[:1]:
            fixes, _ = valid_fixes(read(ch, None, None))
            if len(fixes):
                candidates.append((fixes.number is None, len(candidates), ch, fixes))
    if not candidates:
        where = "the log" if topic is None else f"channel {topic!r}"
        raise LogError(f"{where} has no valid positions", path=log.name)
    _, _, ch, fixes = min(candidates, key=lambda candidate: candidate[:2])
    return ch, fixes


def _row_at(picture: bytes, fixes: Fixes, utc: int, margin: int) -> float:
    """Return the row of the position of a picture, between two rows for a track.

    utc  ns to add to the times of *fixes* to get those of the picture
    """
    taken = time_taken(picture)
    if taken is None:
        raise LogError("it has no EXIF time")
    time = taken - utc
    after = int(np.searchsorted(fixes.time, time))
    near = [row for row in (after - 1, after) if 0 <= row < len(fixes)]
    best = min(near, key=lambda row: abs(int(fixes.time[row]) - time))
    if abs(int(fixes.time[best]) - time) > margin:
        raise LogError(f"no position within {margin / SECOND:g} s of its time")
    if fixes.number is not None or len(near) < 2:
        return float(best)
    first, last = (int(fixes.time[row]) for row in near)
    return near[0] + (time - first) / (last - first) if last > first else float(best)


def _place(fixes: Fixes, row: float, utc: int | None) -> tuple[GpsPlace, int]:
    """Return the position at *row*, and its time in the log."""
    low = int(row)
    part, high = row - low, min(low + 1, len(fixes) - 1)

    def between(values: Any) -> float:
        return float(values[low] + (values[high] - values[low]) * part) if part else float(values[low])

    longitude = between(fixes.longitude)
    if part and abs(fixes.longitude[high] - fixes.longitude[low]) > 180:
        # Not around the world between two positions on both sides of 180°.
        longitude = float(fixes.longitude[low if part < 0.5 else high])
    altitude = between(fixes.altitude)
    at = int(fixes.time[low]) + round((int(fixes.time[high]) - int(fixes.time[low])) * part)
    known = altitude if np.isfinite(altitude) else None
    return GpsPlace(between(fixes.latitude), longitude, known, None if utc is None else at + utc), at
