"""Requests of the viewer about tracks, the 3D scene, pictures, and the map."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from logreel.errors import MissingDependencyError, NotFoundError, UnsupportedError, UsageError
from logreel.log.log import Log
from logreel.log.times import duration_text
from logreel.meaning import scenes as scene
from logreel.meaning import tracks as track
from logreel.outputs.http.routes import ARROW, BYTES, Parameters, RequestParameter, Route, number
from logreel.outputs.view import pictures
from logreel.outputs.view.parameters import AT, FROM, TO, TOPIC
from logreel.outputs.view.series import arrow_response
from logreel.outputs.view.session import Session
from logreel.outputs.view.tiles import MOST_ZOOM
from logreel.outputs.view.view_log import ViewLog

#: Outline of the countries of the world, see vendored.json for its origin.
WORLD = Path(__file__).parents[1] / "vendor" / "world-atlas" / "countries-110m.json"
_BINARY = "application/octet-stream"
#: Names of the columns of a track by its kind.
_COLUMNS = {"geo": ("lat", "lon", "alt"), "local": ("x", "y", "z")}
#: Nanoseconds of video in one answer at most.
_VIDEO = 60 * 10**9
#: The first picture is shown for moments at most this long before it, ns.
_SOON = 10**9
_TRACK = RequestParameter("track", text="Id of a track")
_COLOUR = RequestParameter("color", text="Field whose values colour it, topic.field")
_SCENE = (
    RequestParameter("fixed_frame", text="Frame that does not move"),
    RequestParameter("topic", text="Topic of a channel; all without it", repeated=True),
    RequestParameter("have", text="Times of what the page has, by topic, as JSON"),
)
_WIDTH = RequestParameter("width", number(1, 1 << 14), "Pixels at most", 1 << 14)
_TILE = tuple(RequestParameter(name, number(0, (1 << MOST_ZOOM) - 1)) for name in "zxy")


def routes() -> list[Route]:
    """Return the requests about space and pictures."""
    return [
        Route("/api/logs/{log}/tracks", _tracks),
        Route("/api/logs/{log}/track", _track, (_TRACK, _COLOUR), ARROW),
        Route("/api/logs/{log}/scene/sources", _scene_sources),
        Route("/api/logs/{log}/scene", _scene, (replace(AT, default=0), *_SCENE), BYTES),
        Route("/api/logs/{log}/pictures", _pictures),
        Route("/api/logs/{log}/picture", _picture, (TOPIC, replace(AT, default=0), _WIDTH), BYTES),
        Route("/api/logs/{log}/video", _video, (TOPIC, FROM, TO), BYTES),
        Route("/api/world", _world),
        Route("/api/tiles/{z}/{x}/{y}", _tile, _TILE, BYTES),
    ]


def _tracks(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    sources = opened.once("tracks", track.track_sources, request)
    names = ("id", "topic", "kind", "label", "count", "frame", "shown")
    return JSONResponse([{name: getattr(source, name) for name in names} for source in sources])


def _track(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    sources = opened.once("tracks", track.track_sources, request)
    name, colour = request.text("track"), request.get("color")
    source = next((source for source in sources if source.id == name), None)
    if source is None:
        raise NotFoundError("track", name, [source.id for source in sources], path=opened.name)
    if colour is None:
        points = opened.once(f"track {name}", partial(track.read_track, source=source), request)
    else:
        with opened.open(request) as log:
            points = track.read_track(log, source, _field(log, colour))
    columns = {
        "t": points.time - opened.start,
        **dict(zip(_COLUMNS[source.kind], points.place.T, strict=True)),
    }
    if points.colour is not None:
        columns["c"] = points.colour
    total = str(points.total)
    shown = str(np.count_nonzero(np.isfinite(points.time)))
    about = {
        "kind": source.kind,
        "total": total,
        "shown": shown,
        "frame": source.frame,
        "about": points.about,
    }
    if points.near is not None:
        about["near"] = json.dumps([place[:2] for place in points.near])
    return arrow_response(columns, about)


def _field(log: Log, name: str) -> tuple[str, str]:
    """Return topic and field of ``topic.field``; topics may contain dots. Raises NotFoundError."""
    places = [i for i, sign in enumerate(name) if sign == "."]
    for i in reversed(places):
        if name[:i] in log.channels and name[i + 1 :] in log.channels[name[:i]]:
            return name[:i], name[i + 1 :]
    raise NotFoundError("field", name, [], path=log.name)


def _scene_sources(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    shown = opened.once("scene", scene.scene_sources, request)
    names = ("topic", "kind", "count", "shown")
    sources = [{name: getattr(source, name) for name in names} for source in shown]
    return JSONResponse({"sources": sources, "limit": scene.POINTS})


def _scene(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    at = opened.clock(request.get("at")) or 0
    have = _times(request.get("have"), opened.start)
    with opened.open(request) as log:
        topics = request.all("topic") or None
        moment = scene.scene_at(log, at, request.get("fixed_frame"), topics, have)
    items, parts, size = [], [], 0
    for item in moment.items:
        arrays = {}
        for name, values in item.arrays.items():
            data = np.ascontiguousarray(values).tobytes()
            arrays[name] = {"type": values.dtype.name, "shape": list(values.shape), "at": size}
            # Arrays of float32 in the browser begin at multiples of four bytes.
            parts.append(data + bytes(-len(data) % 4))
            size += len(parts[-1])
        items.append(
            {
                "topic": item.topic,
                "kind": item.kind,
                "t": item.time - opened.start,
                "frame": item.frame,
                "place": None if item.place is None else item.place.numbers(),
                "note": item.note,
                "total": item.total,
                "labels": item.labels,
                "arrays": arrays,
            }
        )
    tree = moment.tree
    frames = [
        {
            "name": name,
            "parent": tree.links[name][0] if name in tree.links else None,
            "place": _numbers(tree, name, moment.fixed),
        }
        for name in tree.names
    ]
    head = json.dumps({"fixed_frame": moment.fixed, "frames": frames, "items": items}).encode()
    head += b" " * (-len(head) % 4)
    return Response(struct.pack("<I", len(head)) + head + b"".join(parts), media_type=_BINARY)


def _numbers(tree: Any, name: str, fixed: str) -> list[float] | None:
    place = tree.place(name, fixed)
    return None if place is None else place.numbers()


def _times(text: str | None, start: int) -> dict[str, int]:
    """Return the times (ns of the log's clock) by topic that a page says it has; raises UsageError."""
    try:
        times = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError("have is no JSON") from error
    if not isinstance(times, dict) or not all(isinstance(t, int) for t in times.values()):
        raise UsageError("have is no object of times by topic")
    return {topic: t + start for topic, t in times.items()}


def _pictures(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    sources = opened.once("pictures", pictures.picture_sources, request)
    names = ("topic", "kind", "codec", "count")
    return JSONResponse([{name: getattr(source, name) for name in names} for source in sources])


def _picture(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    at, width = opened.clock(request.get("at")) or 0, request.get("width")
    with opened.open(request) as log:
        ch = log[request.text("topic")]
        try:
            picture = pictures.picture_at(ch, at, width)
            first = pictures.next_time(ch, at) if picture is None else None
            # Right at the start, cameras have no picture yet: the first one is what the robot saw.
            if first is not None and first - at <= _SOON:
                picture = pictures.picture_at(ch, first, width)
        except (UnsupportedError, MissingDependencyError) as error:
            return _nothing(f"This picture cannot be shown: {error.text}.")
    if picture is None:
        when = (
            ""
            if first is None
            else f"; the first one comes {(first - opened.start) / 1e9:.3f} s after the start"
        )
        return _nothing(f"No picture is before this moment{when}.")
    if picture.time > at:
        early = f"The first picture, {duration_text(picture.time - at)} after this moment."
        picture = replace(picture, note=f"{early} {picture.note}".strip())
    headers = {
        "Logreel-Time": str(picture.time - opened.start),
        "Logreel-Row": str(picture.row),
        "Logreel-Size": f"{picture.width}x{picture.height}",
        "Logreel-Note": quote(picture.note),
    }
    if picture.following is not None:
        headers["Logreel-Next"] = str(picture.following - opened.start)
    return Response(picture.data, media_type=picture.media, headers=headers)


def _nothing(why: str) -> Response:
    """Return an answer without a picture: that is no failure of the page, which the browser would report as one."""
    return Response(status_code=204, headers={"Logreel-Note": quote(why)})


def _video(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    lo, hi = request.interval()
    start = opened.clock(lo or 0) or 0
    end = min(opened.clock(hi) or start, start + _VIDEO) if hi is not None else start + 1
    with opened.open(request) as log:
        try:
            codec, packets = pictures.video_packets(log[request.text("topic")], start, end)
        except UnsupportedError as error:
            return _nothing(f"This video cannot be shown: {error.text}.")
    # Each packet: time (float64 ns), 1 for a key frame, size, then its bytes.
    body = b"".join(
        struct.pack("<dII", packet.time - opened.start, packet.key, len(packet.data)) + packet.data
        for packet in packets
    )
    return Response(body, media_type=_BINARY, headers={"Logreel-Codec": codec})


def _world(session: Session, request: Parameters) -> ASGIApp:
    return Response(
        WORLD.read_bytes(), media_type="application/json", headers={"Cache-Control": "max-age=86400"}
    )


def _tile(session: Session, request: Parameters) -> ASGIApp:
    place = [request.get(name) for name in "zxy"]
    tiles = session.map_tiles
    answer = tiles.tile(*place) if tiles is not None else None
    if answer is None:
        return Response(status_code=204)
    return Response(answer[0], media_type=answer[1], headers={"Cache-Control": "max-age=3600"})
