"""Replay of a recording as the simulator shows it: the pose of every actor at any time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.columns import ROLL_PITCH_YAW, XYZ, Columns
from logreel.formats.carla.simulator.rotation import camera_pose
from logreel.formats.carla.simulator.values import Rotation, Transform, Vector
from logreel.io.arrays import I64

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Pose of the spectator that follows an actor: metres in the frame of the actor, degrees of pitch.
OFFSET, PITCH = (-10.0, 0.0, 5.0), -25.0
#: From this time factor on, the simulator does not interpolate.
FAST = 2.0


@dataclass(frozen=True, slots=True)
class Tick:
    """One step of a replay.

    time   seconds since the start of the recording
    frame  number of the frame shown
    poses  pose of each actor that exists, by id, in centimetres and degrees as recorded
    """

    time: float
    frame: int
    poses: Mapping[int, Transform]


class Replay:
    """A recording as the simulator replays it.

    start             seconds; below 0: from the end
    duration          seconds; 0: to the end
    time_factor       speed relative to the recording
    ignore_hero       True: without actors with the role ``hero``
    ignore_spectator  True: without the spectator
    replay_sensors    True: with sensors

    The simulator interpolates from the frame that it loaded before to the current one, so it is one frame late. A frame
    is current from its time to that of the next frame; the last frame never is.
    """

    def __init__(
        self,
        log: Log,
        start: float = 0.0,
        duration: float = 0.0,
        time_factor: float = 1.0,
        *,
        ignore_hero: bool = False,
        ignore_spectator: bool = True,
        replay_sensors: bool = False,
    ) -> None:
        if not time_factor > 0:
            raise UsageError(f"a time factor is greater than 0, not {time_factor}")
        self._columns, self.time_factor = Columns(log), time_factor
        self._elapsed = self._columns.elapsed
        self.total = float(self._elapsed[-1]) if len(self._elapsed) else 0.0
        self.start = min(max(start + self.total if start < 0 else start, 0.0), self.total)
        self.end = min(self.start + duration, self.total) if duration > 0 else self.total
        self._actors = {
            a.id: a
            for a in log.actors.values()
            if not (ignore_hero and a.attributes.get("role_name") == "hero")
            and not (ignore_spectator and (a.id == 1 or a.description.startswith("spectator")))
            and (replay_sensors or not a.description.startswith("sensor."))
        }

    def poses(self, time: float) -> dict[int, Transform]:
        """Return the pose of every actor that exists at a time, if the simulator loaded all frames before it.

        An actor without a position in the current frame, such as a traffic light, keeps its last pose.
        """
        frame, part = self._current(time)
        if frame < 0:
            return {}
        return self._shown(frame, frame - 1, part)

    def ticks(self, delta: float) -> Iterator[Tick]:
        """Yield the steps of a simulator with a fixed step of *delta* seconds, from the start to the end.

        Frames between two steps are not loaded: poses are interpolated from the frame shown before.
        """
        if not delta > 0:
            raise UsageError(f"a step is greater than 0, not {delta}")
        loaded, before, count = -1, -1, 0
        shown: dict[int, Transform] = {}
        while (time := self.start + count * delta * self.time_factor) < self.end:
            frame, part = self._current(time)
            if frame < 0:
                return
            if frame != loaded:
                loaded, before = frame, loaded
            shown = self._shown(frame, before, part, shown)
            yield Tick(time, int(self._columns.frame_ids[frame]), shown)
            count += 1

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

    # -------------------------------------------------------------------------------------------------- poses

    def _current(self, time: float) -> tuple[int, float]:
        """Return the row of the current frame (-1: none) and the passed part of its duration, 0 to 1."""
        last = len(self._elapsed) - 2
        frame = min(int(np.searchsorted(self._elapsed, time, side="right")) - 1, last)
        duration = float(self._columns.duration[frame]) if frame >= 0 else 0.0
        if not duration > 0:
            return frame, 0.0
        return frame, min((time - float(self._elapsed[frame])) / duration, 1.0)

    def _shown(
        self, frame: int, before: int, part: float, kept: Mapping[int, Transform] | None = None
    ) -> dict[int, Transform]:
        """Return the poses in a frame, interpolated from those of the frame *before* (-1: none) by *part*.

        kept  poses shown last; None: actors without a position keep their last recorded one
        """
        now, then = self._rows(frame), self._rows(before)
        shown = {}
        for actor in self._actors:
            if not self._first_frame.get(actor, 0) <= frame < self._removal_frame.get(actor, frame + 1):
                continue
            row, previous = now.get(actor), then.get(actor)
            if row is None:
                stays = self._last(actor, frame) if kept is None else kept.get(actor)
                shown[actor] = stays or self._added(actor)
            elif previous is None:
                shown[actor] = self._pose(row)
            elif part == 0 or self.time_factor >= FAST:
                shown[actor] = self._pose(previous)
            else:
                shown[actor] = interpolate(self._pose(previous), self._pose(row), part)
        return shown

    @cached_property
    def _first_frame(self) -> dict[int, int]:
        """Row of the frame that first adds each actor."""
        return dict(reversed(self._frame_by_id("actors")))

    @cached_property
    def _removal_frame(self) -> dict[int, int]:
        """Row of the frame that last removes each actor."""
        return dict(self._frame_by_id("actor_removals"))

    def _frame_by_id(self, topic: str) -> list[tuple[int, int]]:
        frame_rows = self._columns.frame_rows(topic).tolist()
        return list(zip(self._columns(topic, "id").tolist(), frame_rows, strict=True))

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


def interpolate(one: Transform, other: Transform, part: float) -> Transform:
    """Return the pose between two poses at *part*, 0 to 1; each angle takes the shorter way."""
    location = (a + (b - a) * part for a, b in zip(one.location, other.location, strict=True))
    rotation = (a + _wrapped(b - a) * part for a, b in zip(one.rotation, other.rotation, strict=True))
    return Transform(Vector(*location), Rotation(*rotation))


def _wrapped(angle: float) -> float:
    """Return the same angle in (-180, 180] degrees."""
    rest = math.fmod(angle, 360.0) if math.isfinite(angle) else angle
    return rest - 360.0 if rest > 180.0 else rest + 360.0 if rest <= -180.0 else rest
