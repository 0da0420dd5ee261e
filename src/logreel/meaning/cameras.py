"""What can be drawn on a picture: points of clouds, where the calibration of the camera maps them, and detections."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import F64
from logreel.lenses import Camera, Clouds, Detections, Image, lenses_of
from logreel.lenses.base import columns, frame_path, members
from logreel.lenses.image import CameraCalibration, DetectedBox, read_calibration
from logreel.lenses.rotation import rotated
from logreel.log.times import SECOND
from logreel.meaning.frames import NOWHERE, FramePlace, LogFrames, plain_name
from logreel.meaning.scenes import colour_fields, field_values, points_at

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Points of all clouds that are drawn on one picture; of more, every n-th one is.
DRAWN = 60_000
#: Messages of detections around a picture that are looked through for the one that belongs to it.
NEAR = 64
#: Boxes in space that are drawn on one picture, and pieces of each edge, which the lens may bend.
SOLIDS, EDGE_PIECES = 300, 12
#: Corners of a box of size 1, and those that an edge joins.
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_EDGES = np.array([(i, i | bit) for bit in (1, 2, 4) for i in range(8) if not i & bit])
#: Last parts of topics that say how pictures are sent.
_TRANSPORTS = ("compressed", "compressedDepth", "theora", "ffmpeg", "h264", "h265", "zdepth")
#: Value of points that are coloured by their distance from the camera.
DISTANCE = "distance"
#: What is said where nothing can be drawn.
NO_CAMERA = "The log has no calibration of this camera: points cannot be drawn."


@dataclass(frozen=True, slots=True)
class OverlaySource:
    """What can be drawn on the pictures of one channel.

    camera      channel of the calibration; empty if there is none
    clouds      channels of points; empty without a calibration
    detections  channels of detections that belong to these pictures
    solids      channels of boxes in space; empty without a calibration
    """

    topic: str
    camera: str
    clouds: list[str]
    detections: list[str]
    solids: list[str]


@dataclass(slots=True)
class Overlay:
    """What is drawn on one picture.

    width, height  of the pictures that the calibration is about; 0 without one
    at             float32[n, 2]: pixels of points
    value          float32[n]: what colours them
    fields         by which they can be coloured, and *colour*: by which they are
    boxes          detections
    solids         boxes in space, each with float64[m, 4]: x, y, x, y in pixels of what is seen of its edges
    notes          sentences about what is missing
    """

    width: int = 0
    height: int = 0
    at: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 2), np.float32))
    value: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    fields: list[str] = field(default_factory=list)
    colour: str = DISTANCE
    boxes: list[DetectedBox] = field(default_factory=list)
    solids: list[tuple[DetectedBox, F64]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def overlay_sources(log: Log) -> list[OverlaySource]:
    """Return what can be drawn on the pictures of each channel of *log* that has some, in file order."""
    known = lenses_of(log)
    pictures = [ch for ch, own in known if any(isinstance(lens, Image) for lens in own)]
    clouds = [ch.topic for ch, own in known if any(isinstance(lens, Clouds) for lens in own)]
    detecting = [(ch, lens) for ch, own in known for lens in own if isinstance(lens, Detections)]
    detected = [ch for ch, lens in detecting if not lens.is_solid]
    solids = [ch.topic for ch, lens in detecting if lens.is_solid]
    sources = []
    for ch in pictures:
        camera = _camera_of(log, ch, pictures)
        own = [
            other.topic
            for other in detected
            if len(pictures) == 1
            or _space(other.topic) == _space(ch.topic)
            or _frame(other) == _frame(ch) != ""
        ]
        sources.append(
            OverlaySource(
                ch.topic,
                camera[0].topic if camera else "",
                clouds if camera else [],
                own,
                solids if camera else [],
            )
        )
    return sources


def _camera_of(log: Log, ch: Channel, pictures: list[Channel]) -> tuple[Channel, Camera] | None:
    """Return the channel with the calibration of *ch*: in its namespace, of its frame, or the only one."""
    cameras = [(other, lens) for other, own in lenses_of(log) for lens in own if isinstance(lens, Camera)]
    for camera in cameras:
        if _space(camera[0].topic) == _space(ch.topic):
            return camera
    frame = _frame(ch)
    for camera in cameras:
        if frame and _frame(camera[0]) == frame:
            return camera
    return cameras[0] if len(cameras) == len(pictures) == 1 else None


def _base(topic: str) -> str:
    first, _, last = topic.rpartition("/")
    return first if last in _TRANSPORTS else topic


def _space(topic: str) -> str:
    """Return the namespace of a topic of a camera."""
    return _base(topic).rpartition("/")[0]


def _frame(ch: Channel) -> str:
    """Return the frame of the first message of *ch*; empty if it is not stated."""
    path = frame_path(members(ch))
    if path is None or not len(ch):
        return ""
    try:
        return plain_name(ch[0].decode()["header"]["frame_id"])
    except LogError:
        return ""


def overlay_at(
    log: Log, ch: Channel, at: int, clouds: Collection[str], detections: Collection[str], colour: str = ""
) -> Overlay:
    """Return what is drawn on the picture of *ch* at the moment *at* (ns).

    Points come from the messages nearest to the picture, moved by the transforms of the time of each: what stands still
    is where it is in the picture, however the robot moves.

    clouds      topics of points
    detections  topics of boxes
    colour      field of the points; empty: their distance from the camera
    """
    overlay = Overlay()
    pictures = [
        own for own, recognised in lenses_of(log) if any(isinstance(lens, Image) for lens in recognised)
    ]
    camera = _camera_of(log, ch, pictures)
    calibration = None if camera is None else read_calibration(*camera, at)
    if calibration is not None:
        overlay.width, overlay.height = calibration.width, calibration.height
    if clouds and calibration is None:
        overlay.notes.append(NO_CAMERA)
    elif calibration is not None:
        _add_points(overlay, log, calibration, (ch, at), clouds, colour)
    for topic in detections:
        for box in _boxes_of(log[topic], ch, at):
            if len(box.position) == 2:
                overlay.boxes.append(box)
            elif calibration is not None and len(overlay.solids) < SOLIDS:
                _add_solid(overlay, log, calibration, (ch, at), box)
    return overlay


def _add_solid(
    overlay: Overlay, log: Log, calibration: CameraCalibration, picture: tuple[Channel, int], box: DetectedBox
) -> None:
    """Add what is seen of a box in space, as the lens bends its edges."""
    ch, at = picture
    camera = plain_name(calibration.frame) or _frame(ch)
    place = _between(log, plain_name(box.frame), at, camera, at)
    if place is None:
        note = f"The log has no transform from {plain_name(box.frame)!r} to {camera!r}."
        overlay.notes += [note] if note not in overlay.notes else []
        return
    length = float(np.linalg.norm(box.rotation))
    turn = box.rotation / length if length > 0 else NOWHERE.rotation
    corners = place.position + rotated(place.rotation, box.position + rotated(turn, _CORNERS * box.size))
    first, last = corners[_EDGES[:, 0], None], corners[_EDGES[:, 1], None]
    points = first + np.linspace(0, 1, EDGE_PIECES + 1)[:, None] * (last - first)
    pixels, inside = calibration.pixels(points.reshape(-1, 3), _is_rectified(ch))
    pixels, inside = pixels.reshape(len(_EDGES), -1, 2), inside.reshape(len(_EDGES), -1)
    seen = inside[:, :-1] & inside[:, 1:]
    if seen.any():
        overlay.solids.append((box, np.concatenate([pixels[:, :-1][seen], pixels[:, 1:][seen]], axis=1)))


def _is_rectified(ch: Channel) -> bool:
    return "rect" in _base(ch.topic).rpartition("/")[2]


def _add_points(
    overlay: Overlay,
    log: Log,
    calibration: CameraCalibration,
    picture: tuple[Channel, int],
    clouds: Collection[str],
    colour: str,
) -> None:
    ch, at = picture
    camera = plain_name(calibration.frame) or _frame(ch)
    parts: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    for own, lens in _clouds(log, clouds):
        time = _nearest(own, at)
        cloud = None if time is None else points_at(own, lens, time)
        if time is None or cloud is None:
            continue
        place = _between(log, plain_name(cloud.frame), time, camera, at)
        if place is None:
            overlay.notes.append(f"The log has no transform from {plain_name(cloud.frame)!r} to {camera!r}.")
            continue
        rows, places = cloud.seen
        moved = place.position + rotated(place.rotation, places.astype(np.float64))
        pixels, inside = calibration.pixels(moved, _is_rectified(ch))
        fields = colour_fields(cloud)
        overlay.fields += [name for name in fields if name not in overlay.fields and name != "rgb"]
        if colour in fields and colour != "rgb":
            overlay.colour, values = colour, field_values(cloud, colour)[rows]
        else:
            values = np.linalg.norm(moved, axis=1).astype(np.float32)
        step = -(-int(inside.sum()) * max(1, len(clouds)) // DRAWN) or 1
        parts.append((pixels[inside][::step].astype(np.float32), values[inside][::step]))
    if parts:
        overlay.at, overlay.value = (np.concatenate(columns) for columns in zip(*parts, strict=True))


def _clouds(log: Log, topics: Collection[str]) -> Iterator[tuple[Channel, Clouds]]:
    for ch, own in lenses_of(log):
        if ch.topic in topics:
            yield from ((ch, lens) for lens in own if isinstance(lens, Clouds))


def _nearest(ch: Channel, at: int) -> int | None:
    """Return the time of the message of *ch* that is nearest to *at* (ns); None without messages within a second."""
    times = ch.times[ch.log.index.rows_between(ch.number, at - SECOND, at + SECOND + 1)]
    return int(times[np.argmin(np.abs(times - at))]) if len(times) else None


def _between(log: Log, frame: str, time: int, camera: str, at: int) -> FramePlace | None:
    """Return the transform from *frame* at *time* to *camera* at *at* (ns), through the fixed frame."""
    if frame == camera:
        return NOWHERE
    frames = LogFrames.of(log)
    now, then = frames.at(at), frames.at(time)
    fixed = now.fixed()
    camera_place, frame_place = now.place(camera, fixed), then.place(frame, fixed)
    if camera_place is None or frame_place is None:
        return now.place(frame, camera)
    return camera_place.inverse().after(frame_place)


def _boxes_of(detected: Channel, ch: Channel, at: int) -> list[DetectedBox]:
    """Return the boxes of the message that belongs to the picture of *ch* at *at*: of its stamp, else the last one."""
    lens = next((lens for _, lens in _lens_of(detected) if isinstance(lens, Detections)), None)
    if lens is None:
        return []
    rows = detected.log.index.rows_between(detected.number, at - SECOND, at + SECOND)
    near = (np.arange(*rows.indices(len(detected))) if isinstance(rows, slice) else np.asarray(rows))[:NEAR]
    if not len(near):
        return []
    times = detected.times[near]
    chosen = near[times <= at][-1:]
    try:
        stamp = _stamp_of(ch, at)
        if stamp and lens.stamp is not None:
            of_picture = near[
                columns(detected, [], at - SECOND, at + SECOND, lens.stamp).stamp[: len(near)] == stamp
            ]
            chosen = of_picture[-1:] if len(of_picture) else chosen
        return lens.at(detected, int(chosen[0])) if len(chosen) else []
    except LogError:
        return []


def _lens_of(ch: Channel) -> Iterator[tuple[Channel, object]]:
    for known, own in lenses_of(ch.log):
        if known is ch:
            yield from ((known, lens) for lens in own)


def _stamp_of(ch: Channel, at: int) -> int:
    """Return the stamp of the picture of *ch* at *at*; 0 if it has none."""
    lens = next((lens for _, lens in _lens_of(ch) if isinstance(lens, Image)), None)
    pictures = list(lens.pictures(ch, at, at + 1)) if lens is not None else []
    return pictures[-1].stamp if pictures else 0
