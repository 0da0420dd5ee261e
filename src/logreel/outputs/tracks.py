"""Positions as tracks: GPX 1.1, GeoJSON (RFC 7946), and KML 2.2 with times in Google's extension.

A track has the valid positions of one channel only, cut where ``logreel.meaning.tracks`` says.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import IO
from xml.sax.saxutils import escape

import numpy as np

from logreel._version import __version__
from logreel.errors import LogError
from logreel.lenses import Fixes
from logreel.log.log import Channel
from logreel.log.times import utc_shift, utc_text
from logreel.meaning.tracks import Track, length_text, segments, valid_fixes
from logreel.outputs.registry import Job, SkipCounter, readers

_UNKNOWN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Point:
    """A position: degrees, metres (None without altitude), time in RFC 3339 (None if UTC is not known).

    more  what else is known of it, by name: hdop, vdop, accuracy (m), speed (m/s), course and heading (degrees)
    """

    latitude: float
    longitude: float
    altitude: float | None
    time: str | None
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FixedTrack:
    """The positions of one channel, sorted by time.

    type      name of its schema
    segments  parts without gaps, none of them empty
    shift     ns to add for UTC; None if it is not known
    """

    topic: str
    type: str
    segments: list[Fixes]
    shift: int | None

    @property
    def is_of_pictures(self) -> bool:
        """Whether a camera took a picture at each of the positions, so that they are no line."""
        return self.segments[0].number is not None

    def pictures(self) -> Iterator[tuple[int, Point]]:
        """Yield number and position of each picture of a camera."""
        for segment in self.segments:
            if segment.number is not None:
                yield from zip(segment.number.tolist(), self.points(segment), strict=True)

    def points(self, segment: Fixes) -> Iterator[Point]:
        """Yield the positions of one segment."""
        columns = (segment.latitude, segment.longitude, segment.altitude, segment.time)
        more = qualities(segment)
        for n, (lat, lon, alt, time) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            wall = None if self.shift is None else utc_text(time + self.shift, 6)
            own = {name: values[n] for name, values in more.items() if isfinite(values[n])}
            yield Point(lat, lon, alt if isfinite(alt) else None, wall, own)


def qualities(fixes: Fixes) -> dict[str, list[float]]:
    """Return what is known of positions besides their place, by name; NaN where it is not, nothing if it never is."""
    quality = fixes.quality
    if quality is None:
        return {}
    values = {
        "hdop": quality.hdop,
        "vdop": quality.vdop,
        "accuracy": quality.accuracy,
        "speed": quality.speed,
        "course": quality.course,
        "heading": np.degrees(quality.heading) % 360,
    }
    return {name: column.tolist() for name, column in values.items() if np.isfinite(column).any()}


def left_out(track: FixedTrack, written: Collection[str]) -> dict[str, None]:
    """Return the names, as in ``qualities``, of what is known of positions of *track* and not among *written*."""
    known = (name for segment in track.segments for name in qualities(segment))
    return dict.fromkeys(name for name in known if name not in written)


def note_left_out(job: Job, names: Collection[str], form: str) -> None:
    """Note in *job* that *form* cannot hold what *names* say."""
    if names:
        job.notes.append(f"{form} has no place for {', '.join(names)} of positions")


def tracks(job: Job) -> Iterator[FixedTrack]:
    """Yield the tracks of all channels of *job* with positions.

    Counts written positions and reports skipped ones to *job*. Raises LogError at the end if there were positions, but
    none was valid.
    """
    shift = utc_shift(job.log)
    for ch in job.channels:
        for read in readers(ch, "fixes"):
            good = noted_valid(job, ch, read(ch, job.start, job.end, quality=True))
            if len(good):
                if jumps := Track.of_fixes(good).way.jumps:
                    cut = f"{len(jumps)} jump{'s' * (len(jumps) > 1)} of up to {length_text(jumps[0].metres)}"
                    job.notes.append(f"the track of {ch.topic!r} is cut at {cut}")
                yield FixedTrack(ch.topic, ch.schema.name, list(segments(good)), shift)
                job.rows[ch.topic] = len(good)
        job.advance(len(ch))
    if job.notes and not job.rows:
        raise LogError(f"no position is valid: {'; '.join(job.notes[:3])}", path=job.log.name)
    if shift is None:
        job.notes.append("the tracks have no times, as the log does not tell how its clock relates to UTC")


def noted_valid(job: Job, ch: Channel, fixes: Fixes) -> Fixes:
    """Return the valid ones of *fixes*, sorted by time; note in *job* how many others of *ch* there are, and why."""
    good, left_out = valid_fixes(fixes)
    for reason, count in left_out.items():
        job.notes += SkipCounter(count, reason).sentences("position", f"of {ch.topic!r} left out")
    return good


def xml_text(text: str) -> str:
    """Return *text* escaped for XML elements and attributes; forbidden characters become U+FFFD."""
    return escape(_UNKNOWN.sub("\ufffd", text), {'"': "&quot;"})


def degrees(value: float) -> str:
    """Return degrees with 9 decimals (0.1 mm) and no exponent."""
    return _decimal(value, 9)


def metres(value: float) -> str:
    """Return metres with 3 decimals and no exponent."""
    return _decimal(value, 3)


def _decimal(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


#: What GPX can hold of a position besides place and time.
GPX = ("hdop", "vdop")


def write_gpx(out: IO[bytes], job: Job) -> None:
    """Write a track per channel with positions, with a segment per part without gaps, and times if UTC is known.

    Dilutions of precision are written where the log has them. Positions where a camera took pictures are waypoints,
    which GPX has before the tracks.
    """
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<gpx version="1.1" creator="logreel {__version__}" xmlns="http://www.topografix.com/GPX/1/1">\n'
        f"<metadata><name>{xml_text(os.path.basename(job.log.name))}</name></metadata>\n"
    )
    out.write(head.encode())
    lines = list[FixedTrack]()
    for track in tracks(job):
        if track.is_of_pictures:
            out.writelines(
                _gpx_point(point, "wpt", f"Camera Trigger {number}").encode() + b"\n"
                for number, point in track.pictures()
            )
        else:
            lines.append(track)
    note_left_out(job, {name: None for track in lines for name in left_out(track, GPX)}, "GPX")
    for track in lines:
        out.writelines(line.encode() + b"\n" for line in _gpx_track(track))
    out.write(b"</gpx>\n")


def _gpx_track(track: FixedTrack) -> Iterator[str]:
    yield f"<trk><name>{xml_text(track.topic)}</name><type>{xml_text(track.type)}</type>"
    for segment in track.segments:
        yield "<trkseg>"
        yield from map(_gpx_point, track.points(segment))
        yield "</trkseg>"
    yield "</trk>"


def _gpx_point(point: Point, element: str = "trkpt", name: str = "") -> str:
    # GPX calls the meridian of 180 degrees -180.
    longitude = -180.0 if point.longitude == 180 else point.longitude
    inner = "" if point.altitude is None else f"<ele>{metres(point.altitude)}</ele>"
    inner += "" if point.time is None else f"<time>{point.time}</time>"
    inner += f"<name>{name}</name>" if name else ""
    inner += "".join(f"<{key}>{metres(point.more[key])}</{key}>" for key in GPX if key in point.more)
    return f'<{element} lat="{degrees(point.latitude)}" lon="{degrees(longitude)}">{inner}</{element}>'


def write_geojson(out: IO[bytes], job: Job) -> None:
    """Write a feature per channel with positions: a line, or several lines if there are gaps.

    If no line has two positions, they are points; else a single position is both ends of its line. If UTC is known, the
    property ``coordTimes`` has the time of each position, nested like the coordinates. So have ``accuracy`` (m),
    ``speed`` (m/s), ``course`` and ``heading`` (degrees from north), ``hdop`` and ``vdop``, if the log knows them.
    Positions where a camera took pictures are points of their own.
    """
    out.write(b'{"type": "FeatureCollection", "features": [')
    first = True
    for track in tracks(job):
        for feature in _features_of_pictures(track) if track.is_of_pictures else [_feature(track)]:
            out.write(b"\n" if first else b",\n")
            out.writelines(part.encode("ascii") for part in feature)
            first = False
    out.write(b"\n]}\n")


def _features_of_pictures(track: FixedTrack) -> Iterator[list[str]]:
    """Yield the feature of each picture of a camera."""
    for number, point in track.pictures():
        properties = {
            "topic": track.topic,
            "type": track.type,
            "name": f"Camera Trigger {number}",
            "number": number,
        }
        if point.time is not None:
            properties["time"] = point.time
        geometry = f'{{"type": "Point", "coordinates": {_coordinates(point)}}}'
        yield [f'{{"type": "Feature", "geometry": {geometry}, "properties": {json.dumps(properties)}}}']


def _feature(track: FixedTrack) -> Iterator[str]:
    are_points = all(len(segment) == 1 for segment in track.segments)
    several, geometry = len(track.segments) > 1, "Point" if are_points else "LineString"
    yield f'{{"type": "Feature", "geometry": {{"type": "{"Multi" * several}{geometry}", "coordinates": '
    yield from _nested(track, are_points, _coordinates)
    yield f'}}, "properties": {{"topic": {json.dumps(track.topic)}, "type": {json.dumps(track.type)}'
    if track.shift is not None:
        yield ', "coordTimes": '
        yield from _nested(track, are_points, lambda point: json.dumps(point.time))
    for name in dict.fromkeys(name for segment in track.segments for name in qualities(segment)):
        yield f', "{name}": '
        yield from _nested(track, are_points, partial(_number, name))
    yield "}}"


def _number(name: str, point: Point) -> str:
    return metres(point.more[name]) if name in point.more else "null"


def _nested(track: FixedTrack, are_points: bool, text: Callable[[Point], str]) -> Iterator[str]:
    """Return *text* of each position, as a list per line, and a list of these for several lines or points."""
    is_nested = len(track.segments) > 1
    yield "[" if is_nested else ""
    for number, segment in enumerate(track.segments):
        yield ",\n" if number else ""
        if are_points:
            yield from map(text, track.points(segment))
        else:
            yield from _positions_of_line(track, segment, text)
    yield "]" if is_nested else ""


def _positions_of_line(track: FixedTrack, segment: Fixes, text: Callable[[Point], str]) -> Iterator[str]:
    for place, point in enumerate(track.points(segment)):
        yield f", {text(point)}" if place else f"[{text(point)}"
        if len(segment) == 1:
            # A line has two ends.
            yield f", {text(point)}"
    yield "]"


def _coordinates(point: Point) -> str:
    altitude = "" if point.altitude is None else f", {metres(point.altitude)}"
    return f"[{degrees(point.longitude)}, {degrees(point.latitude)}{altitude}]"


_STYLE = '<Style id="track"><LineStyle><color>ff0000ff</color><width>3</width></LineStyle></Style>\n'


def write_kml(out: IO[bytes], job: Job) -> None:
    """Write a placemark per channel with positions: a gx:Track if UTC is known, else a LineString or a Point.

    Positions where a camera took pictures are a folder of Points. Altitudes are above sea level; segments
    with a position without altitude are clamped to the ground.
    """
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">\n'
        f"<Document><name>{xml_text(os.path.basename(job.log.name))}</name>\n{_STYLE}"
    )
    out.write(head.encode())
    lost = dict[str, None]()
    for track in tracks(job):
        lost |= left_out(track, () if track.shift is None else ("heading",))
        lines = _placemarks_of_pictures(track) if track.segments[0].number is not None else _placemark(track)
        out.writelines(line.encode() + b"\n" for line in lines)
    out.write(b"</Document></kml>\n")
    note_left_out(job, lost, "KML")


def _placemark(track: FixedTrack) -> Iterator[str]:
    around, part = ("MultiGeometry", _kml_line) if track.shift is None else ("gx:MultiTrack", _timed)
    is_multiple = len(track.segments) > 1
    yield f"<Placemark><name>{xml_text(track.topic)}</name><description>{xml_text(track.type)}</description>"
    yield "<styleUrl>#track</styleUrl>"
    if is_multiple:
        yield f"<{around}>"
    for segment in track.segments:
        high = bool(np.isfinite(segment.altitude).all())
        mode = f"<altitudeMode>{'absolute' if high else 'clampToGround'}</altitudeMode>"
        yield from part(track, segment, mode, high)
    if is_multiple:
        yield f"</{around}>"
    yield "</Placemark>"


def _placemarks_of_pictures(track: FixedTrack) -> Iterator[str]:
    """Yield a placemark per picture of a camera, named as those of other tools for PX4."""
    yield f"<Folder><name>{xml_text(track.topic)}</name><description>{xml_text(track.type)}</description>"
    for segment in track.segments:
        numbers = segment.number if segment.number is not None else np.zeros(len(segment), np.int64)
        for point, number in zip(track.points(segment), numbers.tolist(), strict=True):
            high = point.altitude is not None
            when = "" if point.time is None else f"<TimeStamp><when>{point.time}</when></TimeStamp>"
            mode = f"<altitudeMode>{'absolute' if high else 'clampToGround'}</altitudeMode>"
            place = f"<Point>{mode}<coordinates>{','.join(_numbers(point, high))}</coordinates></Point>"
            yield f"<Placemark><name>Camera Trigger {number}</name>{when}{place}</Placemark>"
    yield "</Folder>"


def _timed(track: FixedTrack, segment: Fixes, mode: str, high: bool) -> Iterator[str]:
    yield f"<gx:Track>{mode}"
    for point in track.points(segment):
        yield f"<when>{point.time}</when>"
    for point in track.points(segment):
        yield f"<gx:coord>{' '.join(_numbers(point, high))}</gx:coord>"
    points = list(track.points(segment))
    if all("heading" in point.more for point in points):
        # Heading, tilt and roll of a model that is drawn at the position.
        yield from (f"<gx:angles>{metres(point.more['heading'])} 0 0</gx:angles>" for point in points)
    yield "</gx:Track>"


def _kml_line(track: FixedTrack, segment: Fixes, mode: str, high: bool) -> Iterator[str]:
    # A line has two ends.
    geometry = "LineString" if len(segment) > 1 else "Point"
    yield f"<{geometry}>{mode}<coordinates>"
    for point in track.points(segment):
        yield ",".join(_numbers(point, high))
    yield f"</coordinates></{geometry}>"


def _numbers(point: Point, high: bool) -> tuple[str, str, str]:
    altitude = metres(point.altitude) if high and point.altitude is not None else "0"
    return degrees(point.longitude), degrees(point.latitude), altitude
