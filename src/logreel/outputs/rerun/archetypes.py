"""Content of lenses as archetypes of Rerun, pictures included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.io.arrays import F64, I64
from logreel.lenses import (
    ActorPose,
    Image,
    Joints,
    LaserScan,
    LocalPose,
    PackedCloud,
    PacketCloud,
    Places,
    PlainCloud,
    Points,
    Pose,
    Position,
    RangeScan,
    Text,
    Transform,
    lenses,
)
from logreel.lenses.base import grouped
from logreel.lenses.rotation import rotated
from logreel.lenses.vehicle import vehicle_poses
from logreel.meaning.tracks import segments
from logreel.outputs.job import SkipCounter
from logreel.outputs.media.frames import VIDEO, frame_of
from logreel.outputs.media.pictures import Encoded, encoded
from logreel.outputs.media.pixels import pixels_of
from logreel.outputs.media.ply import values_of
from logreel.outputs.rerun.scene import ROWS, Rows, Scene, windows
from logreel.outputs.tracks.tracks import noted_valid

if TYPE_CHECKING:
    from logreel.log.log import Channel

_MEDIA = {".jpg": "image/jpeg", ".png": "image/png"}
#: Units per metre of depth images, by encoding.
_DEPTH = {"16UC1": 1000.0, "32FC1": 1.0}
_MODELS = {1: "L", 3: "RGB", 4: "RGBA"}


def show_pictures(scene: Scene, ch: Channel, lens: Image) -> int:
    """Send the pictures of *ch*: encoded ones and video packets unchanged, raw ones as pixels; return their number."""
    bad, rows = SkipCounter(), Rows(scene, scene.path(ch))
    codec = ""
    for picture in lens.pictures(ch, scene.job.start, scene.job.end):
        try:
            if (picture.format or "").lower() in VIDEO:
                frame = frame_of(picture)
                if frame.codec != codec:
                    codec = frame.codec
                    scene.fix(scene.path(ch), _stream(codec))
                rows.add(_samples, picture.time, frame.packet, len(frame.packet))
            elif meter := _DEPTH.get(picture.encoding or ""):
                rows.add(_depths, picture.time, (picture.array(), meter), len(picture.data))
            elif (pixels := pixels_of(picture)) is not None:
                rows.add(_images, picture.time, pixels, pixels.nbytes)
            else:
                whole = encoded(picture)
                rows.add(_encoded, picture.time, whole, len(whole.data))
        except UnsupportedError as error:
            bad.add(error.text)
        scene.job.advance(1)
    scene.job.skipped += bad.sentences("picture", f"of {ch.topic!r} left out")
    return rows.send()


def _encoded(pictures: list[Encoded]) -> Iterable[Any]:
    import rerun

    blobs, kinds = [one.data for one in pictures], [_MEDIA[one.kind] for one in pictures]
    columns: Iterable[Any] = rerun.EncodedImage.columns(blob=blobs, media_type=kinds)
    return columns


def _samples(packets: list[bytes]) -> Iterable[Any]:
    import rerun

    columns: Iterable[Any] = rerun.VideoStream.columns(sample=packets)
    return columns


def _stream(codec: str) -> Any:
    import rerun

    return rerun.VideoStream(codec=rerun.VideoCodec.H264 if codec == "h264" else rerun.VideoCodec.H265)


def _images(images: list[NDArray[Any]]) -> Iterable[Any]:
    import rerun

    buffers, formats = [_bytes(image) for image in images], [_format(image) for image in images]
    columns: Iterable[Any] = rerun.Image.columns(buffer=buffers, format=formats)
    return columns


def _depths(images: list[tuple[NDArray[Any], float]]) -> Iterable[Any]:
    import rerun

    columns: Iterable[Any] = rerun.DepthImage.columns(
        buffer=[_bytes(image) for image, _ in images],
        format=[_format(image) for image, _ in images],
        meter=[meter for _, meter in images],
    )
    return columns


def _bytes(image: NDArray[Any]) -> bytes:
    return image.astype(image.dtype.newbyteorder("<"), copy=False).tobytes()


def _format(image: NDArray[Any]) -> Any:
    import rerun

    high, wide, samples = image.shape if image.ndim == 3 else (*image.shape, 1)
    kind = "F" if image.dtype.kind == "f" else "U"
    return rerun.components.ImageFormat(
        width=wide,
        height=high,
        color_model=getattr(rerun.ColorModel, _MODELS[samples]),
        channel_datatype=getattr(rerun.ChannelDatatype, f"{kind}{8 * image.dtype.itemsize}"),
    )


_CLOUDS = (PackedCloud, PlainCloud, PacketCloud, LaserScan, RangeScan)
#: Rerun log levels by syslog level.
_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")


def senders_of(ch: Channel) -> list[tuple[SendLens, Any]]:
    """Return the function that sends the content of each lens of *ch*, with the lens."""
    return [(send, lens) for lens in lenses(ch) for kinds, send in _SENDERS if isinstance(lens, kinds)]


def _positions(scene: Scene, ch: Channel, lens: Position) -> int:
    import rerun

    good = noted_valid(scene.job, ch, lens.fixes(ch, scene.job.start, scene.job.end, quality=True))
    places = np.stack([good.latitude, good.longitude], axis=-1)
    for lo in range(0, len(good), ROWS):
        some = slice(lo, lo + ROWS)
        scene.send(scene.path(ch), good.time[some], lo, rerun.GeoPoints.columns(positions=places[some]))
    if len(good):
        lines = [np.stack([part.latitude, part.longitude], axis=-1) for part in segments(good)]
        scene.fix(scene.path(ch, "track"), rerun.GeoLineStrings(lat_lon=lines))
    if good.quality is not None:
        # What a point on the map cannot hold becomes curves below it, in m, m/s (east, north, up) and degrees.
        for name, values in (
            ("accuracy", good.quality.accuracy[:, None]),
            (
                "velocity",
                good.quality.velocity[:, : 3 if np.isfinite(good.quality.velocity).all(axis=1).any() else 2],
            ),
            ("heading", np.degrees(good.quality.heading)[:, None] % 360),
        ):
            known = np.isfinite(values).all(axis=1)
            if known.any():
                columns = rerun.Scalars.columns(scalars=values[known])
                scene.send(scene.path(ch, name), good.time[known], 0, columns)
    return len(good)


def _lines(scene: Scene, ch: Channel, lens: Text) -> int:
    import rerun

    done = 0
    for start, end in windows(scene.job, ch):
        lines = lens.lines(ch, start, end)
        text = [f"{line.source}: {line.text}" if line.source else line.text for line in lines]
        level = [_level(line.level) for line in lines]
        times = np.array([line.time for line in lines], np.int64)
        scene.send(scene.path(ch), times, done, rerun.TextLog.columns(text=text, level=level))
        done += len(lines)
    return done


def _level(number: int | None) -> str:
    return _LEVELS[number] if number is not None and 0 <= number < len(_LEVELS) else "TRACE"


def _poses(scene: Scene, ch: Channel, lens: Pose) -> int:
    """Send a pose per message as a transform, or many poses per message as points."""
    import rerun

    done = rows = 0
    for start, end in windows(scene.job, ch):
        found = lens.track(ch, start, end)
        times = found.time
        if lens.many:
            first, offsets = grouped(found.time)
            times, counts = times[first], np.diff(offsets)
            columns = rerun.Points3D.columns(positions=found.position).partition(counts)
        else:
            columns = _transform(scene, found, slice(None), {})
        scene.send(scene.path(ch), times, done, columns)
        done, rows = done + len(times), rows + len(found.time)
    return rows


def _bodies(scene: Scene, ch: Channel, lens: LocalPose) -> int:
    """Send the pose of a vehicle in its local frame, at the channel of its position, with the axes of its body."""
    import rerun

    pose = next((one for one in vehicle_poses(ch.log) if one.place[0].topic == ch.topic), None)
    if pose is None and (lens.aerospace or not lens.position):
        # Its attitude is sent with its position.
        return 0
    done = 0
    for start, end in windows(scene.job, ch):
        found = lens.track(ch, start, end) if pose is None else pose.track(start, end, ch)
        own = (
            {"child_frame": _names(found.child).tolist()} if scene.framed and found.child is not None else {}
        )
        scene.send(scene.path(ch), found.time, done, _transform(scene, found, slice(None), own))
        done += len(found.time)
    if done and pose is not None:
        scene.fix(scene.path(ch, "body"), rerun.TransformAxes3D(1.0))
        if scene.framed:
            scene.fix(scene.path(ch, "body"), rerun.CoordinateFrame(pose.child))
    return done


def _transforms(scene: Scene, ch: Channel, lens: Transform) -> int:
    """Send transforms between frames, with an entity per child frame."""
    sent: Counter[str] = Counter()
    for start, end in windows(scene.job, ch):
        found = lens.track(ch, start, end)
        child = _names(found.child if found.child is not None else [""] * len(found.time))
        for name in dict.fromkeys(child.tolist()):
            rows = np.flatnonzero(child == name)
            own = {"child_frame": [name] * len(rows)} if name else {}
            columns = _transform(scene, found, rows, own)
            scene.send(scene.path(ch, name), found.time[rows], sent[name], columns)
            sent[name] += len(rows)
    return sum(sent.values())


def _transform(scene: Scene, found: Places, rows: I64 | slice, own: dict[str, list[str]]) -> Any:
    import rerun

    if scene.framed and found.frame is not None:
        own = {**own, "parent_frame": _names(found.frame[rows]).tolist()}
    place, turn = found.position[rows], found.rotation[rows]
    return rerun.Transform3D.columns(translation=place, quaternion=turn, **own)


def _names(frames: Iterable[Any]) -> NDArray[Any]:
    """Return frame names without the leading slash of old logs."""
    return np.array([str(name).lstrip("/") for name in frames], object)


def _clouds(scene: Scene, ch: Channel, lens: Any) -> int:
    bad, short = SkipCounter(), SkipCounter()
    rows, make = Rows(scene, scene.path(ch)), _framed_points if scene.framed else _points
    for cloud in lens.clouds(ch, scene.job.start, scene.job.end):
        try:
            seen = _seen(cloud)
        except UnsupportedError as error:
            bad.add(error.text)
        else:
            rows.add(make, cloud.time, (*seen, cloud.frame.lstrip("/")), 16 * len(seen[0]) + 64)
            if cloud.lost:
                short.add(f"it lacks {cloud.lost} of its points")
        scene.job.advance(1)
    scene.job.skipped += bad.sentences("cloud", f"of {ch.topic!r} left out")
    scene.job.skipped += short.sentences("cloud", f"of {ch.topic!r} not whole")
    return rows.send()


def _seen(cloud: Points) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return float32[k, 3] metres of the points with finite coordinates, and uint8[k, 4] colours or None."""
    found = values_of(cloud)
    with np.errstate(all="ignore"):
        place = np.stack([found[axis] for axis in "xyz"], axis=-1).astype(np.float32)
    there = np.isfinite(place).all(axis=1)
    colour = np.zeros((0, 4), np.uint8)
    if all(found.get(name, place).dtype == np.uint8 for name in ("red", "green", "blue")):
        colour = np.stack(
            [found["red"], found["green"], found["blue"], np.full(len(place), 255, np.uint8)], axis=-1
        )[there]
    return place[there], colour


def _points(clouds: list[Any]) -> Iterator[Any]:
    import rerun

    place, colour = (np.concatenate([cloud[i] for cloud in clouds]) for i in range(2))
    yield from rerun.Points3D.columns(positions=place).partition([len(cloud[0]) for cloud in clouds])
    if len(colour):
        yield from rerun.Points3D.columns(colors=colour).partition([len(cloud[1]) for cloud in clouds])


def _framed_points(clouds: list[Any]) -> Iterator[Any]:
    import rerun

    yield from _points(clouds)
    if all(cloud[2] for cloud in clouds):
        yield from rerun.CoordinateFrame.columns(frame=[cloud[2] for cloud in clouds])


def _actors(scene: Scene, ch: Channel, lens: ActorPose) -> int:
    import rerun

    done = rows = 0
    for start, end in windows(scene.job, ch):
        found = lens.states(ch, start, end)
        first, offsets = grouped(found.time)
        times, counts = found.time[first], np.diff(offsets)
        middle = np.nan_to_num(found.centre)
        columns = rerun.Boxes3D.columns(
            half_sizes=np.nan_to_num(found.size) / 2,
            centers=found.position + rotated(found.rotation, middle),
            quaternions=found.rotation,
            labels=[
                f"{number} {model}".rstrip() for number, model in zip(found.id, found.model, strict=True)
            ],
        )
        scene.send(scene.path(ch), times, done, columns.partition(counts))
        done, rows = done + len(times), rows + len(found.time)
    return rows


def _joints(scene: Scene, ch: Channel, lens: Joints) -> int:
    import rerun

    most = 0
    for name, joint in lens.series(ch).items():
        mine = scene.job.in_interval(joint.time)
        most = max(most, int(np.count_nonzero(mine)))
        quantities: dict[str, F64] = {
            "position": joint.position, "velocity": joint.velocity, "effort": joint.effort
        }  # fmt: skip
        for what, values in quantities.items():
            if np.isfinite(values[mine]).any():
                columns = rerun.Scalars.columns(scalars=values[mine])
                scene.send(scene.path(ch, name, what), joint.time[mine], 0, columns)
    return most


#: Sends the content of a channel that a lens reads; returns the number of items.
SendLens = Callable[[Scene, "Channel", Any], int]
_SENDERS: tuple[tuple[Any, SendLens], ...] = (
    (Position, _positions),
    (Text, _lines),
    (Pose, _poses),
    (LocalPose, _bodies),
    (Transform, _transforms),
    (_CLOUDS, _clouds),
    (Image, show_pictures),
    (ActorPose, _actors),
    (Joints, _joints),
)
#: After these, the numbers of a channel are not shown as curves.
WHOLE = (_clouds, show_pictures)
