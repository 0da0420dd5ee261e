"""Positions of a log as GPS tags of pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.lenses import Fixes
from logreel.log.decrypted import decrypted_notes
from logreel.log.joined_log import inputs_of
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, Length, duration_ns, utc_shift
from logreel.meaning.tracks import valid_fixes
from logreel.outputs.files import new_file
from logreel.outputs.media.exif import Place, time_taken, with_place
from logreel.outputs.registry import readers
from logreel.registry.open_logs import as_open_log

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

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
    found = Geotagged(ch.topic)
    method = by or ("order" if fixes.number is not None else "time")
    utc = utc_shift(log)
    if method == "time" and utc is None:
        raise LogError(
            "the log does not say how its clock relates to UTC: match the pictures by order", path=log.name
        )
    os.makedirs(out, exist_ok=True)
    if method == "order" and len(paths) != len(fixes):
        found.skipped.append(f"{len(paths)} pictures, but {len(fixes)} positions of {ch.topic!r}")
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
            found.skipped.append(f"{path.name} was left out: {error.text}")
            continue
        with new_file(Path(out) / path.name, force) as file:
            file.write(tagged)
        number = None if fixes.number is None or row != int(row) else int(fixes.number[int(row)])
        found.pictures.append(
            {
                "name": path.name, "path": str(Path(out) / path.name), "number": number, "time_ns": at,
                "latitude": place.latitude, "longitude": place.longitude, "altitude": place.altitude,
            }
        )  # fmt: skip
    return found


def _natural(path: Path) -> tuple[Any, ...]:
    """Return a key that sorts IMG_2 before IMG_10."""
    parts = re.split(r"(\d+)", path.name.lower())
    return tuple((int(part), "") if part.isdigit() and part.isascii() else (-1, part) for part in parts)


def _positions(log: Log, topic: str | None) -> tuple[Channel, Fixes]:
    """Return the channel with positions, and its valid ones by time."""
    wanted: Sequence[Channel] = log.match([topic]) if topic is not None else list(log.channels.values())
    found: list[tuple[bool, int, Channel, Fixes]] = []
    for ch in wanted:
        for read in readers(ch, "fixes")[:1]:
            fixes, _ = valid_fixes(read(ch, None, None))
            if len(fixes):
                found.append((fixes.number is None, len(found), ch, fixes))
    if not found:
        where = "the log" if topic is None else f"channel {topic!r}"
        raise LogError(f"{where} has no valid positions", path=log.name)
    _, _, ch, fixes = min(found, key=lambda one: one[:2])
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


def _place(fixes: Fixes, row: float, utc: int | None) -> tuple[Place, int]:
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
    return Place(between(fixes.latitude), longitude, known, None if utc is None else at + utc), at
