"""Replay of a recording as the simulator shows it: the pose of every actor at any time, and step by step.

``tick_log`` makes the steps a recording, so that everything that plays, draws or converts logs can use them.
"""

from __future__ import annotations

import math
import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DamagedError, UsageError
from logreel.formats.carla.columns import ROLL_PITCH_YAW, XYZ, Array, RecordingColumns, recording
from logreel.formats.carla.definitions import layout
from logreel.formats.carla.simulator.values import Axes, Poses, Record, Rotation, Tick, Transform, Vector
from logreel.io.arrays import I64
from logreel.log.scan import Schema
from logreel.registry.open import open_log
from logreel.write.writer import create

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log
    from logreel.log.scan import Actor
    from logreel.write.writer import Writer

Records = list[dict[str, Any]]

#: Packets that are applied even if their frame is skipped, and those of the frame that is reached.
EVENTS = ("actors", "actor_removals", "actor_parents", "visual_time", "weather")
STATES = (
    *("traffic_lights", "vehicle_control", "walker", "vehicle_lights", "scene_lights"),
    *("wheels", "bikers", "doors", "bones"),
)
#: Packets that the simulator skips in a replay.
IGNORED = ("collisions",)
#: Bytes of the count of records.
_COUNT = 2


def pose_dtype(wide: bool) -> np.dtype[Any]:
    """Return the dtype of a record of ``position``: id, and location with roll, pitch, yaw as one array."""
    return np.dtype([("id", "<u4"), ("pose", "<f8" if wide else "<f4", 6)])


@cache
def _decoder(topic: str, wide: bool) -> Callable[[memoryview], dict[str, Any]]:
    return layout(topic, wide).decoder()


@dataclass(slots=True)
class FramePackets:
    """One frame and the payloads of its packets, by topic.

    row  number of the frame in the file, from 0
    """

    row: int
    wide: bool
    payloads: dict[str, list[memoryview]] = field(default_factory=dict)

    def records(self, topic: str) -> Records:
        """Return the records of a topic; packets that cannot be decoded are skipped."""
        records: Records = []
        for data in self.payloads.get(topic, ()):
            try:
                decoded = _decoder(topic, self.wide)(data)
            except DamagedError:
                continue
            records += decoded.get("records", [decoded])
        return records

    def poses(self) -> tuple[Array, Array]:
        """Return ids int64[n] and poses float64[n, 6] of the positions: location, then roll, pitch, yaw."""
        dtype = pose_dtype(self.wide)
        parts = []
        for data in self.payloads.get("position", ()):
            count = int.from_bytes(data[:_COUNT], "little")
            if _COUNT + count * dtype.itemsize <= len(data):
                parts.append(np.frombuffer(data, dtype, count, _COUNT))
        rows = np.concatenate([np.zeros(0, dtype), *parts])
        # Signalling NaNs raise a floating-point warning.
        with np.errstate(invalid="ignore"):
            return rows["id"].astype(np.int64), rows["pose"].astype(np.float64)


def frame_packets(log: Log) -> Iterator[FramePackets]:
    """Yield the frames of a recording in file order; packets before the first frame count to it."""
    wide = log.metadata["engine"] == "UE5"
    topics = [t for t in ("frames", "position", *EVENTS, *STATES, *IGNORED) if t in log.channels]
    row, frame = -1, FramePackets(0, wide)
    # Packets without records have only a count; those with one record have none.
    for message in log.messages(topics, order="file"):
        topic = message.channel.topic
        if topic != "frames":
            if len(message.data) > _COUNT:
                frame.payloads.setdefault(topic, []).append(message.data)
            continue
        row += 1
        if row:
            yield frame
            frame = FramePackets(row, wide)
    if row >= 0:
        yield frame


#: Pose of the spectator that follows an actor: metres in the frame of the actor, degrees of pitch.
OFFSET, PITCH = (-10.0, 0.0, 5.0), -25.0
#: From this time factor on, the simulator does not interpolate.
FAST = 2.0
#: Centimetres per metre.
METRE = 100.0
#: Id of the spectator in most recordings.
SPECTATOR = 1


class Replay:
    """A recording as the simulator replays it.

    log               an open Log, or anything that ``logreel.open`` accepts
    start             seconds; below 0: from the end
    duration          seconds; 0: to the end
    time_factor       speed relative to the recording
    follow            id of the actor that the spectator follows in ``ticks``; None: none
    offset, pitch     pose of the spectator relative to it: metres in its frame, degrees
    ignore_hero       True: without actors with the role ``hero``
    ignore_spectator  True: without the spectator
    replay_sensors    True: with sensors

    The simulator interpolates from the frame that it loaded before to the current one, so it is one frame late. A frame
    is current from its time to that of the next frame; the last frame never is. Raises NotFoundError if there is no
    actor to follow.
    """

    def __init__(
        self,
        log: Log | Openable,
        start: float = 0.0,
        duration: float = 0.0,
        time_factor: float = 1.0,
        *,
        follow: int | None = None,
        offset: tuple[float, float, float] = OFFSET,
        pitch: float = PITCH,
        ignore_hero: bool = False,
        ignore_spectator: bool = True,
        replay_sensors: bool = False,
    ) -> None:
        if not 0 < time_factor < math.inf:
            raise UsageError(f"a time factor is greater than 0, not {time_factor}")
        if not (math.isfinite(start) and math.isfinite(duration)):
            raise UsageError(f"start and duration are finite numbers of seconds, not {start} and {duration}")
        if not all(map(math.isfinite, (*offset, pitch))):
            raise UsageError(f"offset and pitch are finite numbers, not {offset} and {pitch}")
        log = recording(log)
        self._columns, self.time_factor = RecordingColumns(log), time_factor
        self._elapsed = self._columns.elapsed
        self.total = float(self._elapsed[-1]) if len(self._elapsed) else 0.0
        self.start = min(max(start + self.total if start < 0 else start, 0.0), self.total)
        self.end = min(self.start + duration, self.total) if duration > 0 else self.total
        if follow is not None:
            log.actor(follow)
        self._follow, self._offset, self._pitch = follow, offset, pitch
        self._ignore_hero, self._ignore_spectator = ignore_hero, ignore_spectator
        self._replay_sensors = replay_sensors
        self._actors = {a.id: a for a in log.actors.values() if self._is_replayed(a)}

    @property
    def log(self) -> Log:
        """The recording."""
        return self._columns.log

    @property
    def spectator_id(self) -> int:
        """Id of the spectator in the recording; 1 if it does not say."""
        ids = (a.id for a in self.log.actors.values() if a.description.startswith("spectator"))
        return next(ids, SPECTATOR)

    def _is_replayed(self, actor: Actor) -> bool:
        return self._replays(actor.id, actor.description, actor.attributes.get("role_name", ""))

    def _replays(self, actor: int, description: str, role: str) -> bool:
        """Return whether the replay has an actor with this id, description and role."""
        spectator = actor == SPECTATOR or description.startswith("spectator")
        return (
            not (self._ignore_hero and role == "hero")
            and not (self._ignore_spectator and spectator)
            and (self._replay_sensors or not description.startswith("sensor."))
        )

    def poses(self, time: float) -> dict[int, Transform]:
        """Return the pose of every actor that exists at a time, if the simulator loaded all frames before it.

        An actor without a position in the current frame, such as a traffic light, keeps its last pose.
        """
        frame, part = self._current(time)
        if frame < 0:
            return {}
        return self._shown(frame, frame - 1, part)

    def ticks(self, delta: float, *, stop: bool = False) -> Iterator[Tick]:
        """Yield the steps of a simulator with a fixed step of *delta* seconds, from the start to the end.

        Frames between two steps are not loaded: poses are interpolated from the frame shown before; only events,
        weather and visual time of skipped frames are applied.

        stop  True: also the step in which the end is reached. In it, vehicles get neutral controls and walkers stop
        """
        if not 0 < delta < math.inf:
            raise UsageError(f"a step is greater than 0, not {delta}")
        camera = None if self._follow is None else Follower(self._follow, self._offset, self._pitch)
        stepper = Stepper(self.log, self._replays, self.time_factor < FAST, camera)
        return stepper.ticks(self._steps(delta, stop))

    def _steps(self, delta: float, stop: bool) -> Iterator[ReplayStep]:
        ids, count = self._columns.frame_ids, 0
        while (time := self.start + count * delta * self.time_factor) < self.end:
            frame, part = self._current(time)
            if frame < 0:
                return
            yield ReplayStep(time, frame, int(ids[frame]), part)
            count += 1
        if stop and len(ids) > 1:
            if time < self._elapsed[-1]:
                frame, part = self._current(time)
                yield ReplayStep(time, frame, int(ids[frame]), part, True)
            else:
                yield ReplayStep(time, len(ids) - 1, int(ids[-1]), None, True)

    def follow(
        self,
        actor: int,
        time: float,
        offset: tuple[float, float, float] = OFFSET,
        pitch: float = PITCH,
    ) -> Transform | None:
        """Return the pose of the spectator that follows an actor, in centimetres; None if the actor does not exist.

        offset  metres from the actor, in its frame
        pitch   degrees added to the pitch of the actor
        """
        pose = self.poses(time).get(actor)
        return None if pose is None else camera_pose(pose, offset, pitch)

    def _current(self, time: float) -> tuple[int, float]:
        """Return the row of the current frame (-1: none) and the passed part of its duration, 0 to 1."""
        last = len(self._elapsed) - 2
        frame = min(int(np.searchsorted(self._elapsed, time, side="right")) - 1, last)
        duration = float(self._columns.duration[frame]) if frame >= 0 else 0.0
        if not duration > 0:
            return frame, 0.0
        return frame, min((time - float(self._elapsed[frame])) / duration, 1.0)

    # -------------------------------------------------------------------------------------------------- poses

    def _shown(self, frame: int, before: int, part: float) -> dict[int, Transform]:
        """Return the poses in a frame, interpolated from those of the frame *before* (-1: none) by *part*."""
        now, then = self._rows(frame), self._rows(before)
        shown = {}
        for actor in self._actors:
            if not self._exists(actor, frame):
                continue
            row, previous = now.get(actor), then.get(actor)
            if row is None:
                shown[actor] = self._last(actor, frame) or self._added(actor)
            elif previous is None:
                shown[actor] = self._pose(row)
            elif part == 0 or self.time_factor >= FAST:
                shown[actor] = self._pose(previous)
            else:
                shown[actor] = interpolate(self._pose(previous), self._pose(row), part)
        return shown

    def _exists(self, actor: int, frame: int) -> bool:
        """Return whether an actor was added up to a frame, and not removed since."""
        added = bisect_right(self._added_at.get(actor, []), frame)
        removed = bisect_right(self._removed_at.get(actor, []), frame)
        if not added:
            return False
        return not removed or self._added_at[actor][added - 1] > self._removed_at[actor][removed - 1]

    @cached_property
    def _added_at(self) -> dict[int, list[int]]:
        """Rows of the frames that add each actor."""
        return self._frames_by_id("actors")

    @cached_property
    def _removed_at(self) -> dict[int, list[int]]:
        """Rows of the frames that remove each actor."""
        return self._frames_by_id("actor_removals")

    def _frames_by_id(self, topic: str) -> dict[int, list[int]]:
        by_id: dict[int, list[int]] = {}
        rows = self._columns.frame_rows(topic).tolist()
        for actor, row in zip(self._columns(topic, "id").tolist(), rows, strict=True):
            by_id.setdefault(actor, []).append(row)
        return by_id

    @cached_property
    def _begin(self) -> I64:
        """int64[f + 1]: first position record of each frame."""
        frames = np.arange(len(self._elapsed) + 1)
        return self._columns.frame_rows("position").searchsorted(frames).astype(np.int64)

    def _rows(self, frame: int) -> dict[int, int]:
        """Return the position record of each actor in a frame."""
        if frame < 0:
            return {}
        lo, hi = self._begin[frame : frame + 2].tolist()
        return dict(zip(self._columns("position", "id")[lo:hi].tolist(), range(lo, hi), strict=True))

    def _pose(self, row: int) -> Transform:
        return self._transform("position", row)

    def _last(self, actor: int, frame: int) -> Transform | None:
        """Return the last recorded pose of an actor before a frame, or None."""
        rows = self._columns.rows("position", actor)
        rows = rows[self._columns.frame_rows("position")[rows] < frame]
        return self._pose(int(rows[-1])) if len(rows) else None

    def _added(self, actor: int) -> Transform:
        return self._transform("actors", int(self._columns.rows("actors", actor)[0]))

    def _transform(self, topic: str, row: int) -> Transform:
        location = (self._columns(topic, f"location.{name}")[row].item() for name in XYZ)
        rotation = (self._columns(topic, f"rotation.{name}")[row].item() for name in ROLL_PITCH_YAW)
        return Transform(Vector(*location), Rotation(*rotation))


def interpolate(before: Transform, after: Transform, part: float) -> Transform:
    """Return the pose between two poses at *part*, 0 to 1; each angle takes the shorter way."""
    first, second = (np.array([[*pose.location, *pose.rotation]]) for pose in (before, after))
    x, y, z, roll, pitch, yaw = interpolated(first, second, part)[0].tolist()
    return Transform(Vector(x, y, z), Rotation(roll, pitch, yaw))


#: Types of actors.
_VEHICLE, _WALKER = 1, 2
#: Controls of a vehicle when the replay ends.
_NEUTRAL = {"steer": 0.0, "throttle": 0.0, "brake": 0.0, "handbrake": False, "gear": 1}


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step to be made.

    time     seconds since the start of the recording
    row      row of the frame that is reached
    number   number of this frame
    part     passed part of its duration, 0 to 1; None: only events are applied, since the recording has ended
    stopped  True: the end of the replay
    """

    time: float
    row: int
    number: int
    part: float | None
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Follower:
    """The spectator, which follows an actor: metres in its frame, and degrees of pitch."""

    actor: int
    offset: tuple[float, float, float]
    pitch: float


class Stepper:
    """State of a simulator that replays a recording.

    replays       tells from id, description and role whether the replay has an actor
    interpolates  False: poses are those of the frame before
    camera        the spectator, if it follows an actor
    """

    def __init__(
        self, log: Log, replays: Callable[[int, str, str], bool], interpolates: bool, camera: Follower | None
    ) -> None:
        self._frames, self._replays = frame_packets(log), replays
        self._interpolates, self._camera = interpolates, camera
        self._row = -1
        #: Actors that exist: the record that added each, and its pose.
        self._actors: dict[int, Record] = {}
        self._poses: dict[int, Sequence[float]] = {}
        self._before = self._now = (np.zeros(0, np.int64), np.zeros((0, 6)))
        self._spectator: Transform | None = None
        self._begin()

    def _begin(self) -> None:
        self._created: dict[int, Record] = {}
        self._destroyed: list[int] = []
        self._attached: list[tuple[int, int]] = []
        self._collisions: Records = []
        self._weather: Record | None = None
        self._visual_time: float | None = None

    def ticks(self, steps: Iterable[ReplayStep]) -> Iterator[Tick]:
        """Yield the Tick of each step."""
        for count, step in enumerate(steps):
            self._begin()
            applied = self._advance(step)
            if step.part is not None:
                self._move(step.part)
            if step.stopped:
                applied = self._stop()
            yield Tick(
                step.time,
                step.number,
                Poses(dict(self._poses)),
                count,
                list(self._created.values()),
                self._destroyed,
                self._attached,
                applied,
                self._weather,
                self._visual_time,
                self._spectator,
                self._collisions,
                step.stopped,
            )

    def _advance(self, step: ReplayStep) -> dict[str, Records]:
        """Apply the frames up to that of a step; return the records of this one, none if it was reached before."""
        applied: dict[str, Records] = {}
        while self._row < step.row:
            frame = next(self._frames, None)
            if frame is None:
                break
            self._row = frame.row
            self._apply_events(frame)
            if frame.row == step.row and step.part is not None:
                self._before, self._now = self._now, frame.poses()
                applied = {topic: self._existing(topic, frame.records(topic)) for topic in STATES}
        return {topic: records for topic, records in applied.items() if records}

    def _apply_events(self, frame: FramePackets) -> None:
        for record in frame.records("actors"):
            self._add(record)
        for record in frame.records("actor_removals"):
            self._remove(record["id"])
        for record in frame.records("actor_parents"):
            if record["child"] in self._actors and record["parent"] in self._actors:
                self._attached.append((record["child"], record["parent"]))
        for record in frame.records("weather"):
            self._weather = record
        for record in frame.records("visual_time"):
            self._visual_time = record["seconds"]
        self._collisions += frame.records("collisions")

    def _add(self, record: Record) -> None:
        actor, description = record["id"], record["description"]
        role = next((a["value"] for a in record["attributes"] if a["name"] == "role_name"), "")
        if not self._replays(actor, description, role):
            return
        old = self._actors.get(actor)
        if old is not None and old["description"] == description:
            # The simulator goes on with the actor that it has.
            return
        self._actors[actor] = self._created[actor] = record
        self._poses[actor] = (*record["location"].values(), *record["rotation"].values())

    def _remove(self, actor: int) -> None:
        if self._actors.pop(actor, None) is None:
            return
        del self._poses[actor]
        self._destroyed.append(actor)

    def _existing(self, topic: str, records: Records) -> Records:
        """Return the records about actors that exist; scene lights are not actors."""
        return (
            records
            if topic == "scene_lights"
            else [record for record in records if record["id"] in self._actors]
        )

    def _move(self, part: float) -> None:
        """Set the poses: those of the frame before, interpolated to those of the current frame by *part*."""
        (before, poses_before), (now, poses_now) = self._before, self._now
        poses = poses_now
        if np.array_equal(before, now):
            poses = self._between(poses_before, poses_now, part)
        elif len(before):
            row_before = dict(zip(before.tolist(), range(len(before)), strict=True))
            at = np.array([row_before.get(actor, -1) for actor in now.tolist()], np.int64)
            poses = poses_now.copy()
            poses[at >= 0] = self._between(poses_before[at[at >= 0]], poses_now[at >= 0], part)
        for actor, pose in zip(now.tolist(), poses.tolist(), strict=True):
            if actor in self._actors:
                self._poses[actor] = pose
        camera = self._camera
        if camera is not None and camera.actor in self._poses:
            self._spectator = camera_pose(Poses(self._poses)[camera.actor], camera.offset, camera.pitch)

    def _between(self, before: Array, after: Array, part: float) -> Array:
        return interpolated(before, after, part) if part and self._interpolates else before

    def _stop(self) -> dict[str, Records]:
        """Return the records that the simulator applies at the end: neutral controls, and walkers that stand."""
        kinds: Mapping[int, list[int]] = {_VEHICLE: [], _WALKER: []}
        for actor, record in self._actors.items():
            if record["type"] in kinds:
                kinds[record["type"]].append(actor)
        applied: dict[str, Records] = {
            "vehicle_control": [{"id": actor, **_NEUTRAL} for actor in kinds[_VEHICLE]],
            "walker": [{"id": actor, "speed": 0.0} for actor in kinds[_WALKER]],
        }
        return {topic: records for topic, records in applied.items() if records}


def interpolated(before: Array, after: Array, part: float) -> Array:
    """Return the poses between two poses each at *part*, 0 to 1: float64[n, 6]; angles take the shorter way."""
    with np.errstate(invalid="ignore", over="ignore"):
        change = after - before
        turn = np.fmod(change[:, 3:], 360.0)
        turn[turn > 180.0] -= 360.0
        turn[turn <= -180.0] += 360.0
        change[:, 3:] = turn
        poses: Array = before + change * part
    return poses


def camera_pose(pose: Transform, offset: tuple[float, float, float], pitch: float) -> Transform:
    """Return the pose of a camera in the frame of *pose*: *offset* in metres, *pitch* in degrees."""
    frame = pose.rotation.axes()
    moved = frame.outer(Vector(*offset))
    location = Vector(*(a + b * METRE for a, b in zip(pose.location, moved, strict=True)))
    inner = Rotation(0.0, pitch, 0.0).axes()
    return Transform(location, Axes(*map(frame.outer, inner)).rotation())


_POSITION = "position"
#: Greatest number of steps that are written: a day of a server with 20 steps a second.
MAX_STEPS = 86400 * 20
_NAME = "replay.log"


def write_ticks(replay: Replay, path: str | os.PathLike[str], delta: float, *, force: bool = False) -> int:
    """Write the steps of a replay as a recording with a frame per step; return their number.

    Frames have the times of the steps in the recording. They hold poses, events, states, weather, and collisions that
    were recorded; also the boxes of created actors, if they were recorded. The pose of a spectator that follows an
    actor is that of the spectator of the recording.

    force  True: replace an existing file

    Raises LogError if the file exists, UsageError for more than MAX_STEPS.
    """
    from logreel.formats.carla import FORMAT

    source, count = replay.log, 0
    if (replay.end - replay.start) / (delta * replay.time_factor) > MAX_STEPS:
        raise UsageError(f"a replay of more than {MAX_STEPS} steps: make delta or the time factor greater")
    with create(path, format="carla", force=force, **FORMAT.like(source.metadata)) as writer:
        out = _TickWriter(writer, replay)
        for tick in replay.ticks(delta):
            out.write(tick)
            count += 1
    return count


@contextmanager
def tick_log(replay: Replay, delta: float) -> Iterator[Log]:
    """Open the steps of a replay as a log, which is a temporary file, see ``write_ticks``."""
    with tempfile.TemporaryDirectory(prefix="logreel-replay-") as folder:
        path = os.path.join(folder, _NAME)
        write_ticks(replay, path, delta)
        with open_log(path) as log:
            yield log


class _TickWriter:
    """Writes ticks with a Writer of recordings."""

    def __init__(self, writer: Writer, replay: Replay) -> None:
        self._writer, self._source, self._spectator = writer, replay.log, replay.spectator_id
        self._dtype = pose_dtype(self._source.metadata["engine"] == "UE5")
        self._columns = RecordingColumns(self._source)
        self._channels: dict[str, int] = {}
        self._number(_POSITION)

    def _number(self, topic: str) -> int:
        """Return the channel of a topic, with the same kind of packets as in the source."""
        if topic not in self._channels:
            ch = self._source.channels.get(topic)
            metadata = {} if ch is None else {"packet": ch.metadata["packet"]}
            self._channels[topic] = self._writer.add_channel(topic, Schema(topic, "carla"), metadata)
        return self._channels[topic]

    def write(self, tick: Tick) -> None:
        """Write one tick as one frame."""
        time = tick.time_ns
        if tick.visual_time is not None:
            self._writer.write(self._number("visual_time"), time, {"seconds": tick.visual_time})
        self._records("actors", time, tick.created)
        self._records("actor_removals", time, [{"id": actor} for actor in tick.destroyed])
        self._records("actor_parents", time, [{"child": c, "parent": p} for c, p in tick.attached])
        self._records("collisions", time, tick.collisions)
        self._positions(tick)
        for topic in STATES:
            self._records(topic, time, tick.applied.get(topic, ()))
        self._records("weather", time, () if tick.weather is None else [tick.weather])
        self._records("bounding_boxes", time, [b for a in tick.created for b in self._boxes(a["id"])])

    def _records(self, topic: str, time: int, records: Any) -> None:
        if records:
            self._writer.write(self._number(topic), time, {"records": list(records)})

    def _positions(self, tick: Tick) -> None:
        poses = dict(tick.poses.values_by_id)
        if tick.spectator is not None:
            poses[self._spectator] = (*tick.spectator.location, *tick.spectator.rotation)
        rows = np.zeros(len(poses), self._dtype)
        if poses:
            rows["id"], rows["pose"] = list(poses), list(poses.values())
        data = len(rows).to_bytes(2, "little") + rows.tobytes()
        self._writer.write(self._channels[_POSITION], tick.time_ns, data)

    def _boxes(self, actor: int) -> Records:
        """Return the last recorded box of an actor."""
        topic = "bounding_boxes"
        rows = self._columns.rows(topic, actor)[-1:]
        names = ("origin", "extent")
        vectors = {
            name: dict(zip("xyz", self._columns.vector(topic, name, rows)[0].tolist(), strict=True))
            for name in names
            if len(rows)
        }
        return [{"id": actor, **vectors}] if vectors else []
