"""Tracks as GeoJSON, RFC 7946."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO

from logreel.outputs.job import Job
from logreel.outputs.tracks import Point, Track, degrees, metres, tracks


def write(out: IO[bytes], job: Job) -> None:
    """Write a feature per channel with positions: a line, or several where there were gaps.

    The property ``coordTimes`` has the time of each position where UTC is known, nested as the coordinates are.
    """
    out.write(b'{"type": "FeatureCollection", "features": [')
    for number, track in enumerate(tracks(job)):
        out.write(b",\n" if number else b"\n")
        out.writelines(part.encode("ascii") for part in _feature(track))
    out.write(b"\n]}\n")


def _feature(track: Track) -> Iterator[str]:
    kind = "LineString" if len(track.segments) == 1 else "MultiLineString"
    yield f'{{"type": "Feature", "geometry": {{"type": "{kind}", "coordinates": '
    yield from _lines(track, _coordinates)
    yield f'}}, "properties": {{"topic": {json.dumps(track.topic)}, "type": {json.dumps(track.type)}'
    if track.shift is not None:
        yield ', "coordTimes": '
        yield from _lines(track, lambda point: json.dumps(point.time))
    yield "}}"


def _lines(track: Track, text: Callable[[Point], str]) -> Iterator[str]:
    """*text* of every position as a list, or as a list per segment where there are several."""
    many = len(track.segments) > 1
    yield "[" if many else ""
    for number, segment in enumerate(track.segments):
        yield ",\n" if number else ""
        for place, point in enumerate(track.points(segment)):
            yield f", {text(point)}" if place else f"[{text(point)}"
            if len(segment) == 1:
                # A line has two ends.
                yield f", {text(point)}"
        yield "]"
    yield "]" if many else ""


def _coordinates(point: Point) -> str:
    altitude = "" if point.altitude is None else f", {metres(point.altitude)}"
    return f"[{degrees(point.longitude)}, {degrees(point.latitude)}{altitude}]"
