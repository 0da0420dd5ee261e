"""Steps of a replay: reads the frames in file order and applies their packets, as the simulator does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logreel.formats.carla.columns import Array
from logreel.formats.carla.simulator.frame_stream import STATES, FramePackets, Records, frame_packets
from logreel.formats.carla.simulator.rotation import camera_pose
from logreel.formats.carla.simulator.tick import Record, Tick
from logreel.formats.carla.simulator.values import Poses, Transform

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Types of actors.
_VEHICLE, _WALKER = 1, 2
#: Controls of a vehicle when the replay ends.
_NEUTRAL = {"steer": 0.0, "throttle": 0.0, "brake": 0.0, "handbrake": False, "gear": 1}


@dataclass(frozen=True, slots=True)
class Step:
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
class Camera:
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
        self, log: Log, replays: Callable[[int, str, str], bool], interpolates: bool, camera: Camera | None
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

    def ticks(self, steps: Iterable[Step]) -> Iterator[Tick]:
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

    def _advance(self, step: Step) -> dict[str, Records]:
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
        return records if topic == "scene_lights" else [one for one in records if one["id"] in self._actors]

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

    def _between(self, one: Array, other: Array, part: float) -> Array:
        return interpolated(one, other, part) if part and self._interpolates else one

    def _stop(self) -> dict[str, Records]:
        """Return the records that the simulator applies at the end: neutral controls, and walkers that stand."""
        kinds: Mapping[int, list[int]] = {_VEHICLE: [], _WALKER: []}
        for actor, record in self._actors.items():
            if record["type"] in kinds:
                kinds[record["type"]].append(actor)
        found: dict[str, Records] = {
            "vehicle_control": [{"id": actor, **_NEUTRAL} for actor in kinds[_VEHICLE]],
            "walker": [{"id": actor, "speed": 0.0} for actor in kinds[_WALKER]],
        }
        return {topic: records for topic, records in found.items() if records}


def interpolated(one: Array, other: Array, part: float) -> Array:
    """Return the poses between two poses each at *part*, 0 to 1: float64[n, 6]; angles take the shorter way."""
    with np.errstate(invalid="ignore", over="ignore"):
        change = other - one
        turn = np.fmod(change[:, 3:], 360.0)
        turn[turn > 180.0] -= 360.0
        turn[turn <= -180.0] += 360.0
        change[:, 3:] = turn
        found: Array = one + change * part
    return found
