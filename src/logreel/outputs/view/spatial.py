"""Requests of the viewer about tracks, the 3D scene, pictures, videos and the map."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from logreel.errors import LogError, MissingDependencyError, NotFoundError, UnsupportedError, UsageError
from logreel.lenses import Image, Picture, lenses_of
from logreel.log.log import Log
from logreel.log.times import duration_text
from logreel.meaning import cameras
from logreel.meaning import scenes as scene
from logreel.meaning import tracks as track
from logreel.meaning.frames import LogFrames
from logreel.meaning.robots import FILES, robot_of, robot_sources
from logreel.meaning.scenes import last_time
from logreel.outputs.http.routes import ARROW, BYTES, Parameters, RequestParameter, Route, number
from logreel.outputs.media.pictures import PNG_MAGIC, VIDEO, frame_of, pixels_of, png
from logreel.outputs.view.parameters import AT, FROM, TO, TOPIC
from logreel.outputs.view.series import arrow_response
from logreel.outputs.view.session import Session
from logreel.outputs.view.tiles import MOST_ZOOM
from logreel.outputs.view.view_log import ViewLog

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


#: Pixels of a picture that is converted, at most.
PIXELS = 64 << 20
#: Messages, and bytes, of a video that are searched back for a key frame, and sent at most in one answer.
KEY_MESSAGES, VIDEO_BYTES = 600, 32 << 20
#: Frames of one answer.
FRAMES = 5000
#: Milliseconds for which clouds of points stay in sight, at most.
DECAY = 60_000
#: First bytes of encoded pictures that browsers show, with the media type.
_MEDIA = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (PNG_MAGIC, "image/png"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
#: Pixel encodings that hold distances rather than brightness, and metres per unit; 0: unknown.
_DISTANCES = {"16UC1": 0.001, "mono16": 0.0, "32FC1": 1.0, "64FC1": 1.0}
#: Bytes before the PNG in a compressed depth picture of ROS: its format, and two parameters.
_DEPTH_HEAD = 12
#: Place of red, and of blue, in a square of 2 × 2 pixels behind a colour filter.
_BAYER = {"rggb": (0, 3), "bggr": (3, 0), "gbrg": (2, 1), "grbg": (1, 2)}


@dataclass(frozen=True, slots=True)
class PictureSource:
    """A channel of pictures: *kind* is ``picture`` or ``video``; *codec* is that of the first message."""

    topic: str
    kind: str
    codec: str
    count: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture for a browser.

    time, row      ns of its message, and its number in the channel
    following      ns of the next message; None after the last one
    data, media    bytes, and their media type
    width, height  pixels in the log; 0 if unknown
    note           sentence about a conversion; empty if there is none
    """

    time: int
    row: int
    following: int | None
    data: bytes
    media: str
    width: int = 0
    height: int = 0
    note: str = ""


def picture_sources(log: Log) -> list[PictureSource]:
    """Return the channels of *log* with pictures, in file order."""
    sources = []
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            if isinstance(lens, Image):
                codec = _codec(ch, lens)
                shown_as = "video" if codec in VIDEO else "picture"
                sources.append(PictureSource(ch.topic, shown_as, codec, len(ch)))
                break
    return sources


def _codec(ch: Channel, lens: Image) -> str:
    first = ch.start
    try:
        picture = next(lens.pictures(ch, first, None if first is None else first + 1), None)
    except LogError:
        picture = None
    return (picture.format or picture.encoding or "").lower() if picture is not None else ""


def picture_at(ch: Channel, at: int, width: int | None = None) -> Shown | None:
    """Return the last picture of *ch* at or before *at* (ns), or None.

    width  of the drawing in pixels: larger pictures that are converted lose rows and columns; None: all of them

    Raises UnsupportedError for a picture that cannot be shown, MissingDependencyError for a video without
    ``logreel[video]``.
    """
    time = last_time(ch, at)
    lens = next(
        (
            own
            for known, all_own in lenses_of(ch.log)
            if known is ch
            for own in all_own
            if isinstance(own, Image)
        ),
        None,
    )
    if lens is None or time is None:
        return None
    picture = None
    for decoded in lens.pictures(ch, time, time + 1):
        picture = decoded
    if picture is None:
        raise UnsupportedError("the message of this picture cannot be decoded")
    row = int(np.flatnonzero(ch.times == time)[-1])
    is_video = (picture.format or "").lower() in VIDEO
    shown = _video_frame(ch, lens, time, width) if is_video else browser_picture(picture, width)
    return Shown(time, row, next_time(ch, time), *shown)


def next_time(ch: Channel, time: int) -> int | None:
    """Return the time of the first message of *ch* after *time* (ns); None if there is none."""
    times = ch.times[ch.log.index.rows_between(ch.number, time + 1, None)]
    return int(times.min()) if len(times) else None


def browser_picture(picture: Picture, width: int | None = None) -> tuple[bytes, str, int, int, str]:
    """Return bytes, media type, width, height and note of *picture* as browsers show it; raises UnsupportedError."""
    data = bytes(picture.data)
    if not data:
        raise UnsupportedError("the picture is empty")
    if picture.encoding is None:
        if (picture.format or "").lower().rstrip().endswith("compresseddepth png"):
            return _depth_png(picture, data, width)
        for magic, media in _MEDIA:
            if data.startswith(magic):
                return data, media, picture.width, picture.height, ""
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return data, "image/webp", picture.width, picture.height, ""
        raise UnsupportedError(f"no browser shows {picture.format or 'this encoding'!r:.60}")
    if picture.width * picture.height > PIXELS:
        raise UnsupportedError(f"{picture.width} × {picture.height} pixels are too many to be converted")
    pixels, note = _grey_or_colour(picture, width)
    return png(pixels), "image/png", picture.width, picture.height, note


def _grey_or_colour(picture: Picture, width: int | None) -> tuple[NDArray[np.uint8], str]:
    encoding = picture.encoding or ""
    if encoding in _DISTANCES:
        return _scaled(_smaller(picture.array(), width), _DISTANCES[encoding])
    if encoding.startswith("bayer_"):
        return _eight_bits(_smaller(_colours(picture.array(), encoding), width)), ""
    pixels = pixels_of(picture)
    if pixels is None:
        try:
            pixels = picture.array()
        except UnsupportedError as error:
            raise UnsupportedError(f"pixels in {encoding!r:.60} cannot be shown: {error.text}") from error
        return _scaled(_smaller(pixels if pixels.ndim == 2 else pixels[..., 0], width), 0.0)
    return _eight_bits(_smaller(pixels, width)), ""


def _smaller(pixels: NDArray[Any], width: int | None) -> NDArray[Any]:
    """Return every n-th row and column, so that at least *width* columns are left."""
    step = max(1, pixels.shape[1] // max(1, width)) if width else 1
    return np.ascontiguousarray(pixels[::step, ::step])


def _eight_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    return (
        (pixels >> 8).astype(np.uint8) if pixels.dtype.itemsize == 2 else pixels.astype(np.uint8, copy=False)
    )


def _colours(mosaic: NDArray[Any], encoding: str) -> NDArray[Any]:
    """Return RGB of half the size: each square of a colour filter is one pixel."""
    red, blue = _BAYER[encoding[6:10]]
    high, wide = (size // 2 * 2 for size in mosaic.shape)
    if not high or not wide:
        raise UnsupportedError("the picture is too small for its colour filter")
    corner = [mosaic[i // 2 : high : 2, i % 2 : wide : 2] for i in range(4)]
    green = [i for i in range(4) if i not in (red, blue)]
    middle = (corner[green[0]].astype(np.uint32) + corner[green[1]]) // 2
    return np.stack([corner[red], middle.astype(mosaic.dtype), corner[blue]], axis=-1)


def _scaled(values: NDArray[Any], metres: float) -> tuple[NDArray[np.uint8], str]:
    """Return distances or other measured values as grey from black to white, and the range as a sentence.

    The range is from the 1st to the 99th percentile. Values that are 0 or no number are unknown, and black.
    """
    with np.errstate(all="ignore"):
        number = values.astype(np.float64)
        known = np.isfinite(number) & (number != 0)
    if not known.any():
        return np.zeros(values.shape, np.uint8), "No pixel has a value."
    low, high = (float(edge) for edge in np.percentile(number[known], (1, 99)))
    wide = high - low if high > low else 1.0
    with np.errstate(all="ignore"):
        grey = np.where(known, 40 + 215 * np.clip((number - low) / wide, 0, 1), 0)
    unit, factor = (" m", metres) if metres else ("", 1.0)
    return np.nan_to_num(grey).astype(
        np.uint8
    ), f"Dark to bright: {low * factor:.3g} to {high * factor:.3g}{unit}."


def _depth_png(picture: Picture, data: bytes, width: int | None) -> tuple[bytes, str, int, int, str]:
    """Return a compressed depth picture of ROS: a PNG of distances behind a short head."""
    packed = data[_DEPTH_HEAD:]
    if not packed.startswith(PNG_MAGIC):
        raise UnsupportedError("its depth has no PNG")
    picture_format = (picture.format or "").split(";")[0].strip()
    pixels = _decode_grey16(packed)
    if pixels is None:
        return (
            packed,
            "image/png",
            0,
            0,
            "The raw depth, which is dark: logreel[video] is needed to convert it.",
        )
    high, wide = pixels.shape
    metres = _DISTANCES.get(picture_format, 0.0)
    values: NDArray[Any] = pixels
    if picture_format == "32FC1":
        # Quantised: depth = a / (value - b), with both numbers in the head (compressed_depth_image_transport).
        a, b = struct.unpack_from("<2f", data, 4)
        with np.errstate(all="ignore"):
            values = np.where(pixels == 0, 0, a / (pixels.astype(np.float64) - b))
    grey, note = _scaled(_smaller(values, width), metres)
    return png(grey), "image/png", wide, high, note


def _decode_grey16(packed: bytes) -> NDArray[np.uint16] | None:
    """Return the pixels of a PNG of 16 bits; None without the library that decodes it."""
    try:
        import av
    except ImportError:
        return None
    try:
        (frame,) = av.CodecContext.create("png", "r").decode(av.Packet(packed))
        if frame.width * frame.height > PIXELS:
            raise UnsupportedError("its PNG has too many pixels")
        pixels: NDArray[np.uint16] = frame.reformat(format="gray16le").to_ndarray()
    except (av.FFmpegError, ValueError) as error:
        raise UnsupportedError("its PNG cannot be decoded") from error
    return pixels


@dataclass(frozen=True, slots=True)
class VideoPacket:
    """One packet of a video: ns, whether it can be decoded alone, and its bytes."""

    time: int
    key: bool
    data: bytes


def video_packets(ch: Channel, start: int, end: int) -> tuple[str, list[VideoPacket]]:
    """Return the codec (``h264`` or ``h265``) and the packets of *ch* from the last key frame at or before *start*.

    The last packet is before *end* (ns). Packets that are broken or of another codec are left out. At most
    ``VIDEO_BYTES`` are returned; the last one is then earlier. Raises UnsupportedError if there is no video, and if no
    key frame is near.
    """
    lens = next(
        (
            own
            for known, all_own in lenses_of(ch.log)
            if known is ch
            for own in all_own
            if isinstance(own, Image)
        ),
        None,
    )
    if lens is None:
        raise UnsupportedError(f"{ch.topic!r} has no pictures")
    times = ch.times
    rows = np.flatnonzero(times <= start)
    last = int(rows[-1]) if len(rows) else 0
    back = 8
    while True:
        first = max(0, last - back)
        codec, packets = _packets(ch, lens, int(times[first]), max(end, int(times[last]) + 1))
        keys = [
            i
            for i, packet in enumerate(packets)
            if packet.key and packet.time <= max(start, int(times[last]))
        ]
        if keys:
            return codec, _bounded(packets[keys[-1] :])
        if first == 0 or back >= KEY_MESSAGES:
            text = (
                "no key frame comes before this moment"
                if first == 0
                else "no key frame is near before this moment"
            )
            raise UnsupportedError(text)
        back *= 3


def _packets(ch: Channel, lens: Image, start: int, end: int) -> tuple[str, list[VideoPacket]]:
    codec, packets = "", []
    for picture in lens.pictures(ch, start, end):
        name = (picture.format or "").lower()
        if name not in VIDEO or (codec and name != codec):
            continue
        try:
            frame = frame_of(picture)
        except UnsupportedError:
            continue
        codec = name
        packets.append(VideoPacket(picture.time, frame.key, frame.packet))
    return codec, packets


def _bounded(packets: list[VideoPacket]) -> list[VideoPacket]:
    size = 0
    for i, packet in enumerate(packets):
        size += len(packet.data)
        if size > VIDEO_BYTES and i:
            return packets[:i]
    return packets


def _video_frame(ch: Channel, lens: Image, time: int, width: int | None) -> tuple[bytes, str, int, int, str]:
    """Return the picture of a video at *time*, decoded from the key frame before it."""
    try:
        import av
    except ImportError as error:
        raise MissingDependencyError("av", "video") from error
    codec, packets = video_packets(ch, time, time + 1)
    context = av.CodecContext.create(VIDEO[codec][0], "r")
    shown = None
    try:
        for packet in packets:
            for frame in context.decode(av.Packet(packet.data)):
                shown = frame
        for frame in context.decode(None):
            shown = frame
    except (av.FFmpegError, ValueError) as error:
        if shown is None:
            raise UnsupportedError("the video cannot be decoded here") from error
    if shown is None:
        raise UnsupportedError("the video has no picture here")
    if shown.width * shown.height > PIXELS:
        raise UnsupportedError("its pictures have too many pixels")
    pixels: NDArray[np.uint8] = shown.to_ndarray(format="rgb24")
    return png(_smaller(pixels, width)), "image/png", shown.width, shown.height, ""


#: Outline of the countries of the world, see vendored.json for its origin.
WORLD = Path(__file__).parents[1] / "vendor" / "world-atlas" / "countries-110m.json"
_BINARY = "application/octet-stream"
#: Names of the columns of a track by its kind.
_COLUMNS = {"geo": ("lat", "lon", "alt"), "local": ("x", "y", "z")}
#: Nanoseconds of video in one answer at most.
_VIDEO = 60 * 10**9
_TRACK = RequestParameter("track", text="Id of a track")
_COLOUR = RequestParameter("color", text="Field whose values colour it, topic.field")
_SCENE = (
    RequestParameter("fixed_frame", text="Frame that does not move"),
    RequestParameter("topic", text="Topic of a channel; all without it", repeated=True),
    RequestParameter("have", text="Times of what the page has, by topic, as JSON"),
    RequestParameter("color", text="Field that colours points, rgb or none", default=""),
    RequestParameter("decay", number(0, DECAY), "Milliseconds for which clouds of points stay", 0),
)
_OVERLAY = (
    RequestParameter("cloud", text="Topic of points that are drawn on the picture", repeated=True),
    RequestParameter("detections", text="Topic of boxes that are drawn on the picture", repeated=True),
    RequestParameter("color", text="Field that colours points; their distance without it", default=""),
)
_FILE = RequestParameter("file", number(0, FILES), "Number of the file in the description", 0)
_WIDTH = RequestParameter("width", number(1, 1 << 14), "Pixels at most", 1 << 14)
_TILE = tuple(RequestParameter(name, number(0, (1 << MOST_ZOOM) - 1)) for name in "zxy")


def routes() -> list[Route]:
    """Return the requests about space and pictures."""
    return [
        Route("/api/logs/{log}/tracks", _tracks),
        Route("/api/logs/{log}/track", _track, (_TRACK, _COLOUR), ARROW),
        Route("/api/logs/{log}/scene/sources", _scene_sources),
        Route("/api/logs/{log}/scene", _scene, (replace(AT, default=0), *_SCENE), BYTES),
        Route("/api/logs/{log}/frames", _frames, (replace(AT, default=0),)),
        Route("/api/logs/{log}/mesh", _mesh, (TOPIC, replace(AT, default=0), _FILE), BYTES),
        Route("/api/logs/{log}/pictures", _pictures),
        Route("/api/logs/{log}/picture", _picture, (TOPIC, replace(AT, default=0), _WIDTH), BYTES),
        Route("/api/logs/{log}/overlay", _overlay, (TOPIC, replace(AT, default=0), *_OVERLAY), BYTES),
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
    if points.jumps:
        about["jumps"] = json.dumps(
            [
                {
                    "from": jump.start - opened.start,
                    "to": jump.end - opened.start,
                    "about": f"jump of {track.length_text(jump.metres)}",
                    "places": [before[:2], after[:2]],
                }
                for jump, before, after in points.jumps
            ]
        )
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
    with opened.open(request) as log:
        # Once it is open, its start is known.
        at = opened.clock(request.get("at")) or 0
        have = _times(request.get("have"), opened.start)
        topics = request.all("topic") or None
        look = scene.CloudLook(request.get("color"), request.get("decay") * 10**6)
        moment = scene.scene_at(log, at, request.get("fixed_frame"), topics, have, look, session.meshes)
    items, numbers = [], PackedNumbers()
    for item in moment.items:
        arrays = {name: numbers.add(values) for name, values in item.arrays.items()}
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
                "fields": item.fields,
                "color": item.colour,
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
    return numbers.answer({"fixed_frame": moment.fixed, "frames": frames, "items": items})


def _frames(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    with opened.open(request) as log:
        frames = LogFrames.of(log)
        states = frames.states(opened.clock(request.get("at")) or 0)
    names = ("name", "parent", "depth", "static", "messages", "rate", "age", "gap_count", "is_gap", "topics")
    listed = [
        {name: getattr(state, name) for name in names}
        | {"gaps": [[start - opened.start, end - opened.start] for start, end in state.gaps]}
        for state in states[:FRAMES]
    ]
    return JSONResponse({"frames": listed, "whole": frames.links is not None})


def _mesh(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    name = request.text("topic")
    with opened.open(request) as log:
        at = opened.clock(request.get("at")) or 0
        sources = {source.topic: source for source in robot_sources(log)}
        if name not in sources:
            raise NotFoundError("robot", name, [*sources], path=opened.name)
        files = robot_of(log, sources[name], at).files
    number_of_file = request.get("file")
    # The page names a number: which file it is, the description says, and where, the folder of the user.
    if session.meshes is None or number_of_file >= len(files):
        raise NotFoundError("mesh", str(number_of_file), [], path=opened.name)
    try:
        triangles = session.meshes.triangles(files[number_of_file])
    except OSError as error:
        raise UnsupportedError(f"a mesh cannot be read: {error.strerror}") from error
    numbers = PackedNumbers()
    return numbers.answer({"items": [{"arrays": {"position": numbers.add(triangles)}}]})


class PackedNumbers:
    """Arrays behind the JSON head of an answer."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, values: NDArray[Any]) -> dict[str, Any]:
        """Add an array; return its type, shape and place for the head."""
        data, at = np.ascontiguousarray(values).tobytes(), self._size
        # Arrays of float32 in the browser begin at multiples of four bytes.
        self._parts.append(data + bytes(-len(data) % 4))
        self._size += len(self._parts[-1])
        return {"type": values.dtype.name, "shape": list(values.shape), "at": at}

    def answer(self, head: dict[str, Any]) -> Response:
        """Return the answer: size of the head (u32), the head, and the arrays."""
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 4)
        return Response(struct.pack("<I", len(text)) + text + b"".join(self._parts), media_type=_BINARY)


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
    sources = opened.once("pictures", picture_sources, request)
    drawn = {source.topic: source for source in opened.once("overlays", cameras.overlay_sources, request)}
    names, more = ("topic", "kind", "codec", "count"), ("camera", "clouds", "detections", "solids")
    return JSONResponse(
        [
            {name: getattr(source, name) for name in names}
            | {name: getattr(drawn[source.topic], name) for name in more}
            for source in sources
        ]
    )


def _overlay(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    topics = (request.all("cloud"), request.all("detections"))
    with opened.open(request) as log:
        at = opened.clock(request.get("at")) or 0
        overlay = cameras.overlay_at(log, log[request.text("topic")], at, *topics, request.get("color"))
    numbers = PackedNumbers()
    edges = [seen for _, seen in overlay.solids] or [np.zeros((0, 4))]
    arrays = {
        "at": numbers.add(overlay.at),
        "value": numbers.add(overlay.value),
        "edges": numbers.add(np.concatenate(edges).astype(np.float32)),
    }
    solids = [
        {"text": scene.box_text(box), "color": scene.shade_of(box.label), "edges": len(seen)}
        for box, seen in overlay.solids
    ]
    boxes = [
        {
            "text": scene.box_text(box),
            "color": scene.shade_of(box.label),
            "position": box.position.tolist(),
            "size": box.size.tolist(),
            "angle": box.angle,
        }
        for box in overlay.boxes
    ]
    names = ("width", "height", "fields", "notes")
    head = {name: getattr(overlay, name) for name in names} | {
        "color": overlay.colour,
        "boxes": boxes,
        "solids": solids,
    }
    return numbers.answer({**head, "items": [{"arrays": arrays}]})


def _picture(session: Session, opened: ViewLog, request: Parameters) -> ASGIApp:
    width = request.get("width")
    with opened.open(request) as log:
        ch, at = log[request.text("topic")], opened.clock(request.get("at")) or 0
        try:
            picture = picture_at(ch, at, width)
            first = next_time(ch, at) if picture is None else None
            # Before it there is nothing to see: the first picture says more than a sentence about it.
            if first is not None:
                picture = picture_at(ch, first, width)
        except (UnsupportedError, MissingDependencyError) as error:
            return _nothing(f"This picture cannot be shown: {error.text}.")
    if picture is None:
        return _nothing("No picture of this channel can be read.")
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
    with opened.open(request) as log:
        start = opened.clock(lo or 0) or 0
        end = min(opened.clock(hi) or start, start + _VIDEO) if hi is not None else start + 1
        try:
            codec, packets = video_packets(log[request.text("topic")], start, end)
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
