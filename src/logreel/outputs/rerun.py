"""Logs as Rerun recordings: content of lenses as archetypes, other numbers as curves."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, MissingDependencyError, UnsupportedError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import F64, I64
from logreel.layout.arrow_arrays import as_fixed_list, as_struct
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
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
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.log import Log
from logreel.log.tables import DENSE, as_numpy, batches, times_of
from logreel.log.times import shift_of
from logreel.meaning.frames import plain_name
from logreel.meaning.scenes import bodies_of
from logreel.meaning.tracks import segments
from logreel.ops.query.record_batches import rows_per_batch
from logreel.outputs.media.pictures import VIDEO, EncodedPicture, encoded, frame_of, pixels_of
from logreel.outputs.registry import Job, SkipCounter
from logreel.outputs.tracks import noted_valid

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel


Make = Callable[[list[Any]], Iterable[Any]]
#: Maximum rows and bytes of a batch, which a viewer loads as one chunk.
ROWS, BYTES = 65536, 4 << 20
#: Maximum seconds to write a batch.
_PATIENCE = 300
#: Names of the timelines; not ``log_time`` or ``log_tick``, which Rerun uses for its own recording time.
TIME, COUNT = "time", "count"


class Entities:
    """The entities of a log in a recording.

    job     the conversion job
    framed  True: coordinate frames have names; False: entities are placed by their paths
    clock   whether times are UTC, and ns to add to times of the log; None: the clock of the log
    """

    def __init__(
        self, recording: Any, job: Job, prefix: str, framed: bool, clock: tuple[bool, int] | None = None
    ) -> None:
        self._recording, self.job, self.framed = recording, job, framed
        self._prefix = prefix.rstrip("/")
        shift = shift_of(job.log, job.utc)
        self._wall, self._shift = clock or (job.log.epoch == "unix" or shift is not None, shift or 0)

    def path(self, ch: Channel, *parts: str) -> str:
        """Return the path of the entity of *ch*, or of one below it."""
        import rerun

        names = [name for name in (*ch.topic.split("/"), *parts) if name]
        return f"{self._prefix}{rerun.new_entity_path(names)}"

    def send(self, path: str, times: I64, first: int, columns: Iterable[Any]) -> None:
        """Send rows of one entity.

        times  int64[n]  ns of the log's clock
        first  number of the first row
        """
        import rerun

        columns = list(columns)
        if not len(times) or not columns:
            return
        # The smallest int64 means "no time" in Rerun.
        low, high = TIME_MIN + 1 - min(self._shift, 0), TIME_MAX - max(self._shift, 0)
        shifted = np.clip(times, low, high) + self._shift
        if self._wall:
            time = rerun.TimeColumn(TIME, timestamp=shifted.view("datetime64[ns]"))
        else:
            time = rerun.TimeColumn(TIME, duration=shifted.view("timedelta64[ns]"))
        count = rerun.TimeColumn(COUNT, sequence=np.arange(first, first + len(times), dtype=np.int64))
        self._recording.send_columns(path, [time, count], columns, strict=True)

    def fix(self, path: str, archetype: Any) -> None:
        """Send static content, which is valid at any time."""
        self._recording.log(path, archetype, static=True, strict=True)

    def flush(self) -> None:
        """Wait until all sent data is written; raises LogError if that fails, e.g. on a full disk."""
        try:
            self._recording.flush(timeout_sec=_PATIENCE)
        except RuntimeError as error:
            raise LogError(f"Rerun cannot write the recording: {error}") from error


class Rows:
    """Collects rows of one entity and sends them in batches."""

    def __init__(self, entities: Entities, path: str) -> None:
        self._entities, self._path = entities, path
        self._make: Make | None = None
        self._times: list[int] = []
        self._things: list[Any] = []
        self._size = self._sent = 0

    def add(self, make: Make, time: int, row: Any, size: int) -> None:
        """Add a row of *size* bytes; *make* converts a list of rows to Rerun columns."""
        if make is not self._make:
            self.send()
            self._make = make
        self._times.append(time)
        self._things.append(row)
        self._size += size
        if self._size > BYTES or len(self._times) >= ROWS:
            self.send()

    def send(self) -> int:
        """Send the collected rows; return the number of rows so far."""
        if self._make is not None and self._times:
            times = np.array(self._times, np.int64)
            self._entities.send(self._path, times, self._sent, self._make(self._things))
            self._entities.flush()
        self._sent += len(self._times)
        self._times, self._things, self._size = [], [], 0
        return self._sent


def windows(job: Job, ch: Channel) -> Iterator[tuple[int | None, int | None]]:
    """Yield half-open intervals (ns) that cover *ch* in *job*, each with at most about ROWS messages."""
    times = np.sort(ch.times)
    first, last = (
        len(times) * i if bound is None else int(times.searchsorted(bound))
        for i, bound in enumerate((job.start, job.end))
    )
    cuts = np.unique(times[first:last][::ROWS])[1:].tolist()
    if first < last:
        yield from pairwise([job.start, *cuts, job.end])


_MEDIA = {".jpg": "image/jpeg", ".png": "image/png"}
#: Units per metre of depth images, by encoding.
_DEPTH = {"16UC1": 1000.0, "32FC1": 1.0}
_MODELS = {1: "L", 3: "RGB", 4: "RGBA"}


def show_pictures(entities: Entities, ch: Channel, lens: Image) -> int:
    """Send the pictures of *ch*: encoded ones and video packets unchanged, raw ones as pixels; return their number."""
    bad, rows = SkipCounter(), Rows(entities, entities.path(ch))
    codec = ""
    for picture in lens.pictures(ch, entities.job.start, entities.job.end):
        try:
            if (picture.format or "").lower() in VIDEO:
                frame = frame_of(picture)
                if frame.codec != codec:
                    codec = frame.codec
                    entities.fix(entities.path(ch), _stream(codec))
                rows.add(_samples, picture.time, frame.packet, len(frame.packet))
            elif meter := _DEPTH.get(picture.encoding or ""):
                rows.add(_depths, picture.time, (picture.array(), meter), len(picture.data))
            elif (pixels := pixels_of(picture)) is not None:
                rows.add(_images, picture.time, pixels, pixels.nbytes)
            else:
                blob = encoded(picture)
                rows.add(_encoded, picture.time, blob, len(blob.data))
        except UnsupportedError as error:
            bad.add(error.text)
        entities.job.advance(1)
    entities.job.skipped += bad.sentences("picture", f"of {ch.topic!r} left out")
    return rows.send()


def _encoded(pictures: list[EncodedPicture]) -> Iterable[Any]:
    import rerun

    blobs, media = [picture.data for picture in pictures], [_MEDIA[picture.suffix] for picture in pictures]
    columns: Iterable[Any] = rerun.EncodedImage.columns(blob=blobs, media_type=media)
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
    letter = "F" if image.dtype.kind == "f" else "U"
    return rerun.components.ImageFormat(
        width=wide,
        height=high,
        color_model=getattr(rerun.ColorModel, _MODELS[samples]),
        channel_datatype=getattr(rerun.ChannelDatatype, f"{letter}{8 * image.dtype.itemsize}"),
    )


_CLOUDS = (PackedCloud, PlainCloud, PacketCloud, LaserScan, RangeScan)
#: Rerun log levels by syslog level.
_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")


def senders_of(ch: Channel) -> list[tuple[SendLens, Any]]:
    """Return the function that sends the content of each lens of *ch*, with the lens."""
    return [(send, lens) for lens in lenses(ch) for kinds, send in _SENDERS if isinstance(lens, kinds)]


def _positions(entities: Entities, ch: Channel, lens: Position) -> int:
    import rerun

    good = noted_valid(entities.job, ch, lens.fixes(ch, entities.job.start, entities.job.end, quality=True))
    places = np.stack([good.latitude, good.longitude], axis=-1)
    for lo in range(0, len(good), ROWS):
        rows = slice(lo, lo + ROWS)
        entities.send(entities.path(ch), good.time[rows], lo, rerun.GeoPoints.columns(positions=places[rows]))
    if len(good):
        lines = [np.stack([part.latitude, part.longitude], axis=-1) for part in segments(good)]
        entities.fix(entities.path(ch, "track"), rerun.GeoLineStrings(lat_lon=lines))
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
                entities.send(entities.path(ch, name), good.time[known], 0, columns)
    return len(good)


def _lines(entities: Entities, ch: Channel, lens: Text) -> int:
    import rerun

    done = 0
    for start, end in windows(entities.job, ch):
        lines = lens.lines(ch, start, end)
        text = [f"{line.source}: {line.text}" if line.source else line.text for line in lines]
        level = [_level(line.level) for line in lines]
        times = np.array([line.time for line in lines], np.int64)
        entities.send(entities.path(ch), times, done, rerun.TextLog.columns(text=text, level=level))
        done += len(lines)
    return done


def _level(number: int | None) -> str:
    return _LEVELS[number] if number is not None and 0 <= number < len(_LEVELS) else "TRACE"


def _poses(entities: Entities, ch: Channel, lens: Pose) -> int:
    """Send a pose per message as a transform, or many poses per message as points."""
    import rerun

    done = rows = 0
    for start, end in windows(entities.job, ch):
        places = lens.track(ch, start, end)
        times = places.time
        if lens.repeated:
            first, offsets = grouped(places.time)
            times, counts = times[first], np.diff(offsets)
            columns = rerun.Points3D.columns(positions=places.position).partition(counts)
        else:
            columns = _transform(entities, places, slice(None), {})
        entities.send(entities.path(ch), times, done, columns)
        done, rows = done + len(times), rows + len(places.time)
    return rows


def _bodies(entities: Entities, ch: Channel, lens: LocalPose) -> int:
    """Send the pose of a vehicle in its local frame, at the channel of its position, with the axes of its body."""
    import rerun

    bodies = bodies_of(ch.log)
    pose = bodies.get(ch.topic)
    if pose is None and (ch.topic not in bodies or not lens.position):
        # Its attitude is sent with its position.
        return 0
    done = 0
    for start, end in windows(entities.job, ch):
        places = lens.track(ch, start, end) if pose is None else pose.track(start, end, ch)
        own = (
            {"child_frame": _names(places.child).tolist()}
            if entities.framed and places.child is not None
            else {}
        )
        entities.send(entities.path(ch), places.time, done, _transform(entities, places, slice(None), own))
        done += len(places.time)
    if done and pose is not None:
        entities.fix(entities.path(ch, "body"), rerun.TransformAxes3D(1.0))
        if entities.framed:
            entities.fix(entities.path(ch, "body"), rerun.CoordinateFrame(pose.child))
    return done


def _transforms(entities: Entities, ch: Channel, lens: Transform) -> int:
    """Send transforms between frames, with an entity per child frame."""
    sent: Counter[str] = Counter()
    for start, end in windows(entities.job, ch):
        places = lens.track(ch, start, end)
        child = _names(places.child if places.child is not None else [""] * len(places.time))
        for name in dict.fromkeys(child.tolist()):
            rows = np.flatnonzero(child == name)
            own = {"child_frame": [name] * len(rows)} if name else {}
            columns = _transform(entities, places, rows, own)
            entities.send(entities.path(ch, name), places.time[rows], sent[name], columns)
            sent[name] += len(rows)
    return sum(sent.values())


def _transform(entities: Entities, places: Places, rows: I64 | slice, own: dict[str, list[str]]) -> Any:
    import rerun

    if entities.framed and places.frame is not None:
        own = {**own, "parent_frame": _names(places.frame[rows]).tolist()}
    place, turn = places.position[rows], places.rotation[rows]
    return rerun.Transform3D.columns(translation=place, quaternion=turn, **own)


def _names(frames: Iterable[Any]) -> NDArray[Any]:
    return np.array([plain_name(name) for name in frames], object)


def _clouds(entities: Entities, ch: Channel, lens: Any) -> int:
    bad, short = SkipCounter(), SkipCounter()
    rows, make = Rows(entities, entities.path(ch)), _framed_points if entities.framed else _points
    for cloud in lens.clouds(ch, entities.job.start, entities.job.end):
        try:
            seen = _seen(cloud)
        except UnsupportedError as error:
            bad.add(error.text)
        else:
            rows.add(make, cloud.time, (*seen, plain_name(cloud.frame)), 16 * len(seen[0]) + 64)
            if cloud.lost:
                short.add(f"it lacks {cloud.lost} of its points")
        entities.job.advance(1)
    entities.job.skipped += bad.sentences("cloud", f"of {ch.topic!r} left out")
    entities.job.skipped += short.sentences("cloud", f"of {ch.topic!r} not whole")
    return rows.send()


def _seen(cloud: Points) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return float32[k, 3] metres of the points with finite coordinates, and uint8[k, 4] colours or none."""
    if not any(axis in cloud.fields for axis in "xyz"):
        raise UnsupportedError("its points have no coordinates")
    rows, place = cloud.seen
    colours = cloud.colours
    if colours is None:
        return place, np.zeros((0, 4), np.uint8)
    return place, np.column_stack([colours[rows], np.full(len(rows), 255, np.uint8)])


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


def _actors(entities: Entities, ch: Channel, lens: ActorPose) -> int:
    import rerun

    done = rows = 0
    for start, end in windows(entities.job, ch):
        states = lens.states(ch, start, end)
        first, offsets = grouped(states.time)
        times, counts = states.time[first], np.diff(offsets)
        columns = rerun.Boxes3D.columns(
            half_sizes=np.nan_to_num(states.size) / 2,
            centers=states.middle,
            quaternions=states.rotation,
            labels=[
                f"{number} {model}".rstrip() for number, model in zip(states.id, states.model, strict=True)
            ],
        )
        entities.send(entities.path(ch), times, done, columns.partition(counts))
        done, rows = done + len(times), rows + len(states.time)
    return rows


def _joints(entities: Entities, ch: Channel, lens: Joints) -> int:
    import rerun

    most = 0
    for name, joint in lens.series(ch).items():
        inside = entities.job.in_interval(joint.time)
        most = max(most, int(np.count_nonzero(inside)))
        quantities: dict[str, F64] = {
            "position": joint.position, "velocity": joint.velocity, "effort": joint.effort
        }  # fmt: skip
        for what, values in quantities.items():
            if np.isfinite(values[inside]).any():
                columns = rerun.Scalars.columns(scalars=values[inside])
                entities.send(entities.path(ch, name, what), joint.time[inside], 0, columns)
    return most


#: Sends the content of a channel that a lens reads; returns the number of items.
SendLens = Callable[[Entities, "Channel", Any], int]
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


@dataclass(frozen=True, slots=True)
class RerunTarget:
    """Identity of a recording in a viewer: application and recording id, and a prefix of all entity paths."""

    application: str = "logreel"
    recording: str | None = None
    prefix: str = ""


def write(out: IO[bytes], job: Job) -> None:
    """Write all channels of *job* as a recording with the timelines ``time`` and ``count``.

    Positions, poses, transforms, pictures, clouds, scans, log lines and actors become archetypes of Rerun; numeric
    fields of fixed size become curves. Needs ``logreel[rerun]``.
    """
    record(job, RerunTarget(), lambda recording: recording.save(out.name))


def stream(log: Log, place: RerunTarget) -> list[str]:
    """Write a whole log to standard output; return a sentence for each thing that could not be sent."""
    job = Job(log, [ch for ch in log.channels.values() if not ch.reserved or len(ch)])
    record(job, place, lambda recording: recording.stdout())
    return job.skipped


def record(job: Job, place: RerunTarget, sink: Callable[[Any], None]) -> None:
    """Send *job* to a RecordingStream, which *sink* connects to its destination."""
    recording = recording_of(place)
    sink(recording)
    try:
        recording.send_recording_name(os.path.basename(job.log.name))
        entities = Entities(recording, job, place.prefix, has_frames(job))
        for ch in job.channels:
            send_channel(entities, ch)
    finally:
        recording.disconnect()
    if job.skipped and not job.rows:
        raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)


def recording_of(place: RerunTarget) -> Any:
    """Return a RecordingStream without destination; raises MissingDependencyError without ``logreel[rerun]``."""
    try:
        import rerun
    except ImportError as error:
        raise MissingDependencyError("rerun-sdk", "rerun") from error
    name = place.recording or str(uuid.uuid4())
    return rerun.RecordingStream(place.application, recording_id=name, send_properties=False)


def send_channel(entities: Entities, ch: Channel) -> None:
    """Send the messages of *ch*; report skipped ones to *entities.job*."""
    job, before = entities.job, entities.job.done
    try:
        senders = senders_of(ch)
        fields = [] if any(send in WHOLE for send, _ in senders) else number_fields(ch)
        rows = max((send(entities, ch, lens) for send, lens in senders), default=0)
        if fields:
            rows = max(rows, show_numbers(entities, ch, fields))
    except DefinitionError as error:
        job.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
    else:
        if rows:
            job.rows[ch.topic] = rows
        if not senders and not fields and len(ch):
            job.notes.append(f"channel {ch.topic!r} holds nothing that Rerun shows")
    job.advance(max(0, before + len(ch) - job.done))
    entities.flush()


def has_frames(job: Job) -> bool:
    """Return whether any channel has transforms between named frames."""
    named = any(isinstance(lens, Transform) and lens.child for ch in job.channels for lens in lenses(ch))
    return named or bool(vehicle_poses(job.log))


#: Maximum length of arrays that become curves.
_MOST = 64


def number_fields(ch: Channel) -> list[str]:
    """Return the fields of *ch* with numbers, also in structs and arrays of fixed size."""
    return [f.name for f in ch.layout.record.visible() if _has_numbers(f.node)]


def show_numbers(entities: Entities, ch: Channel, fields: list[str]) -> int:
    """Send the numbers of these *fields*; return the number of rows."""
    import rerun

    done = 0
    for batch in batches(ch, rows_per_batch(ch), fields, entities.job.start, entities.job.end, DENSE):
        times = times_of(batch)
        for name, column in zip(fields, batch.columns[1:], strict=True):
            for path, values in _curves((name,), column):
                entities.send(entities.path(ch, *path), times, done, rerun.Scalars.columns(scalars=values))
        done += len(batch)
        entities.job.advance(len(batch))
        entities.flush()
    return done


def _has_numbers(node: Node) -> bool:
    if isinstance(node, Struct):
        return any(_has_numbers(f.node) for f in node.visible())
    if isinstance(node, FixedArray):
        return node.count <= _MOST and _has_numbers(node.item)
    return isinstance(node, Scalar) and node.type != "char"


def _curves(path: tuple[str, ...], array: pa.Array[Any]) -> Iterator[tuple[tuple[str, ...], F64]]:
    """Yield path and values of all numbers in *array*: float64[n] or [n, k]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type = array.type
    if pa.types.is_struct(arrow_type):
        for i, child in enumerate(as_struct(array).flatten()):
            yield from _curves((*path, arrow_type.field(i).name), child)
    elif pa.types.is_fixed_size_list(arrow_type) and arrow_type.list_size <= _MOST:
        if _is_number(arrow_type.value_type):
            yield path, _values(as_fixed_list(array).flatten()).reshape(len(array), arrow_type.list_size)
        else:
            for i in range(arrow_type.list_size):
                yield from _curves((*path[:-1], f"{path[-1]}[{i}]"), pc.list_element(array, i))
    elif _is_number(arrow_type):
        yield path, _values(array)


def _is_number(arrow_type: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_boolean(arrow_type)
    )


def _values(array: pa.Array[Any]) -> F64:
    # Signalling NaNs cause warnings.
    with np.errstate(invalid="ignore"):
        return as_numpy(array).astype(np.float64)
