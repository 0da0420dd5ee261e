"""Tracks as GeoJSON, RFC 7946."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO

from logreel.lenses import Fixes
from logreel.outputs.job import Job
from logreel.outputs.tracks.tracks import FixedTrack, Point, degrees, metres, qualities, tracks


def write(out: IO[bytes], job: Job) -> None:
    """Write a feature per channel with positions: a line, or several lines if there are gaps.

    If no line has two positions, they are points; else a single position is both ends of its line. If UTC is known, the
    property ``coordTimes`` has the time of each position, nested like the coordinates. So have ``accuracy`` (m),
    ``speed`` (m/s), ``course`` and ``heading`` (degrees from north), ``hdop`` and ``vdop``, if the log knows them.
    Positions where a camera took pictures are points of their own.
    """
    out.write(b'{"type": "FeatureCollection", "features": [')
    first = True
    for track in tracks(job):
        for feature in _pictures(track) if track.is_of_pictures else [_feature(track)]:
            out.write(b"\n" if first else b",\n")
            out.writelines(part.encode("ascii") for part in feature)
            first = False
    out.write(b"\n]}\n")


def _pictures(track: FixedTrack) -> Iterator[list[str]]:
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
            yield from _line(track, segment, text)
    yield "]" if is_nested else ""


def _line(track: FixedTrack, segment: Fixes, text: Callable[[Point], str]) -> Iterator[str]:
    for place, point in enumerate(track.points(segment)):
        yield f", {text(point)}" if place else f"[{text(point)}"
        if len(segment) == 1:
            # A line has two ends.
            yield f", {text(point)}"
    yield "]"


def _coordinates(point: Point) -> str:
    altitude = "" if point.altitude is None else f", {metres(point.altitude)}"
    return f"[{degrees(point.longitude)}, {degrees(point.latitude)}{altitude}]"
