"""Tracks as KML 2.2, with times in Google's extension."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

import numpy as np

from logreel.lenses import Fixes
from logreel.outputs.job import Job
from logreel.outputs.tracks.tracks import (
    FixedTrack,
    Point,
    degrees,
    left_out,
    metres,
    note_left_out,
    tracks,
    xml_text,
)

_STYLE = '<Style id="track"><LineStyle><color>ff0000ff</color><width>3</width></LineStyle></Style>\n'


def write(out: IO[bytes], job: Job) -> None:
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
        lines = _pictures(track) if track.segments[0].number is not None else _placemark(track)
        out.writelines(line.encode() + b"\n" for line in lines)
    out.write(b"</Document></kml>\n")
    note_left_out(job, lost, "KML")


def _placemark(track: FixedTrack) -> Iterator[str]:
    around, part = ("MultiGeometry", _line) if track.shift is None else ("gx:MultiTrack", _timed)
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


def _pictures(track: FixedTrack) -> Iterator[str]:
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


def _line(track: FixedTrack, segment: Fixes, mode: str, high: bool) -> Iterator[str]:
    # A line has two ends.
    geometry = "LineString" if len(segment) > 1 else "Point"
    yield f"<{geometry}>{mode}<coordinates>"
    for point in track.points(segment):
        yield ",".join(_numbers(point, high))
    yield f"</coordinates></{geometry}>"


def _numbers(point: Point, high: bool) -> tuple[str, str, str]:
    altitude = metres(point.altitude) if high and point.altitude is not None else "0"
    return degrees(point.longitude), degrees(point.latitude), altitude
