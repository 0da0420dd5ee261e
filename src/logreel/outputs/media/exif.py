"""EXIF tags of JPEG pictures: reading the time of a picture, and adding its position without touching the pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from logreel.errors import LogError

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


class Place(NamedTuple):
    """The position of a picture: degrees, metres above sea level (None: unknown), ns since 1970 (None: unknown)."""

    latitude: float
    longitude: float
    altitude: float | None = None
    time: int | None = None


class _Entry(NamedTuple):
    tag: int
    kind: int
    items: int
    value: bytes


def with_place(picture: bytes, place: Place) -> bytes:
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
    if inner is None or inner.kind != _LONG:
        return None
    found = {e.tag: e for e in _entries(tiff, order, struct.unpack(f"{order}I", inner.value)[0])[0]}
    if _DATE_TIME_ORIGINAL not in found:
        return None
    text = _content(tiff, order, found[_DATE_TIME_ORIGINAL]).split(b"\0")[0].decode("ascii", "replace")
    try:
        moment = datetime.strptime(text.strip(), "%Y:%m:%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    part = _content(tiff, order, found[_SUBSECONDS]).split(b"\0")[0].strip() if _SUBSECONDS in found else b""
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
    found = [_Entry(*struct.unpack_from(f"{order}HHI4s", tiff, at + 2 + 12 * n)) for n in range(count)]
    end = at + 2 + 12 * count
    return found, struct.unpack_from(f"{order}I", tiff, end)[0] if end <= len(tiff) - 4 else 0


def _content(tiff: bytes, order: str, entry: _Entry) -> bytes:
    size = _SIZES.get(entry.kind, 1) * entry.items
    if size <= 4:
        return entry.value[:size]
    at = struct.unpack(f"{order}I", entry.value)[0]
    return tiff[at : at + size]


def _with_gps(tiff: bytes, place: Place) -> bytes:
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
        head += struct.pack(f"{order}HHI4s", e.tag, e.kind, e.items, value)
    return head + struct.pack(f"{order}I", following) + body


def _gps_entries(order: str, place: Place) -> Iterator[_Entry]:
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
    whole, rest = divmod(parts, 3600 * 100_000)
    minutes, seconds = divmod(rest, 60 * 100_000)
    return Fraction(whole), Fraction(minutes), Fraction(seconds, 100_000)
