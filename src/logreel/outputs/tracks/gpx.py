"""Tracks as GPX 1.1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from logreel._version import __version__
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

#: What GPX can hold of a position besides place and time.
GPX = ("hdop", "vdop")


def write(out: IO[bytes], job: Job) -> None:
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
                _point(point, "wpt", f"Camera Trigger {number}").encode() + b"\n"
                for number, point in track.pictures()
            )
        else:
            lines.append(track)
    note_left_out(job, {name: None for track in lines for name in left_out(track, GPX)}, "GPX")
    for track in lines:
        out.writelines(line.encode() + b"\n" for line in _track(track))
    out.write(b"</gpx>\n")


def _track(track: FixedTrack) -> Iterator[str]:
    yield f"<trk><name>{xml_text(track.topic)}</name><type>{xml_text(track.type)}</type>"
    for segment in track.segments:
        yield "<trkseg>"
        yield from map(_point, track.points(segment))
        yield "</trkseg>"
    yield "</trk>"


def _point(point: Point, element: str = "trkpt", name: str = "") -> str:
    # GPX calls the meridian of 180 degrees -180.
    longitude = -180.0 if point.longitude == 180 else point.longitude
    inner = "" if point.altitude is None else f"<ele>{metres(point.altitude)}</ele>"
    inner += "" if point.time is None else f"<time>{point.time}</time>"
    inner += f"<name>{name}</name>" if name else ""
    inner += "".join(f"<{key}>{metres(point.more[key])}</{key}>" for key in GPX if key in point.more)
    return f'<{element} lat="{degrees(point.latitude)}" lon="{degrees(longitude)}">{inner}</{element}>'
