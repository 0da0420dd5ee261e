"""What the simulator shows when it replays a recording: the pose of every actor at any time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.columns import I64, TURN, XYZ, Columns
from logreel.formats.carla.simulator.rotation import behind
from logreel.formats.carla.simulator.values import Rotation, Transform, Vector

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Where the spectator is put to follow an actor: metres in the actor's frame, degrees of pitch.
OFFSET, PITCH = (-10.0, 0.0, 5.0), -25.0
#: From this factor on the simulator does not interpolate.
FAST = 2.0


@dataclass(frozen=True, slots=True)
class Tick:
    """One step of a replay.

    time   seconds of the recording
    frame  that is shown
    poses  of the actors that are there, by id, in centimetres and degrees as recorded
    """

    time: float
    frame: int
    poses: Mapping[int, Transform]


class Replay:
    """A recording as the simulator replays it.

    start             seconds; less than 0: from the end
    duration          seconds; 0: to the end
    time_factor       how much faster than recorded
    ignore_hero       leave out actors with the role ``hero``
    ignore_spectator  leave out the spectator
    replay_sensors    show sensors

    The simulator interpolates from the frame that it loaded last to the current one, so it is one frame late. A frame
    is current from its moment to the next one; the last frame never is.
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
        """Every actor that is there at a time of the recording, if no frame before it was left out.

        An actor without a position in the current frame, such as a traffic light, stays where it was last.
        """
        frame, part = self._current(time)
        if frame < 0:
            return {}
        return self._shown(frame, frame - 1, part)

    def ticks(self, delta: float) -> Iterator[Tick]:
        """What a simulator shows that replays with a fixed step of *delta* seconds, from the start to the end.

        Frames that fall between two steps are not loaded: the way leads straight from the one shown before.
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
        """Where the simulator puts the spectator to follow an actor, in centimetres; None while it is not there.

        offset  metres from the actor, in its frame
        pitch   degrees that are added to its own
        """
        pose = self.poses(time).get(actor)
        return None if pose is None else behind(pose, offset, pitch)

    # -------------------------------------------------------------------------------------------------- poses

    def _current(self, time: float) -> tuple[int, float]:
        """The frame that is current, counted from 0, and how much of it has passed; -1 where there is none."""
        last = len(self._elapsed) - 2
        frame = min(int(np.searchsorted(self._elapsed, time, side="right")) - 1, last)
        duration = float(self._columns.duration[frame]) if frame >= 0 else 0.0
        if not duration > 0:
            return frame, 0.0
        return frame, min((time - float(self._elapsed[frame])) / duration, 1.0)

    def _shown(
        self, frame: int, before: int, part: float, kept: Mapping[int, Transform] | None = None
    ) -> dict[int, Transform]:
        """Poses in a frame, on the way from those of the frame *before*, if there is one.

        kept  what was shown last; None: actors without a position stay at their last one in the recording
        """
        now, then = self._rows(frame), self._rows(before)
        shown = {}
        for actor in self._actors:
            if not self._born.get(actor, 0) <= frame < self._gone.get(actor, frame + 1):
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
                shown[actor] = between(self._pose(previous), self._pose(row), part)
        return shown

    @cached_property
    def _born(self) -> dict[int, int]:
        """The frame that first adds each actor."""
        return dict(reversed(self._moments("actors")))

    @cached_property
    def _gone(self) -> dict[int, int]:
        """The frame that last removes each actor."""
        return dict(self._moments("actor_removals"))

    def _moments(self, topic: str) -> list[tuple[int, int]]:
        places = self._columns.place(topic).tolist()
        return list(zip(self._columns(topic, "id").tolist(), places, strict=True))

    @cached_property
    def _begin(self) -> I64:
        """int64[f + 1]: where the positions of each frame begin."""
        frames = np.arange(len(self._elapsed) + 1)
        return self._columns.place("position").searchsorted(frames).astype(np.int64)

    def _rows(self, frame: int) -> dict[int, int]:
        """The record of each actor in a frame."""
        if frame < 0:
            return {}
        lo, hi = self._begin[frame : frame + 2].tolist()
        return dict(zip(self._columns("position", "id")[lo:hi].tolist(), range(lo, hi), strict=True))

    def _pose(self, row: int) -> Transform:
        return self._transform("position", row)

    def _last(self, actor: int, frame: int) -> Transform | None:
        """The last recorded pose of an actor before a frame."""
        rows = self._columns.rows("position", actor)
        rows = rows[self._columns.place("position")[rows] < frame]
        return self._pose(int(rows[-1])) if len(rows) else None

    def _added(self, actor: int) -> Transform:
        return self._transform("actors", int(self._columns.rows("actors", actor)[0]))

    def _transform(self, topic: str, row: int) -> Transform:
        location = (self._columns(topic, f"location.{name}")[row].item() for name in XYZ)
        rotation = (self._columns(topic, f"rotation.{name}")[row].item() for name in TURN)
        return Transform(Vector(*location), Rotation(*rotation))


def between(one: Transform, other: Transform, part: float) -> Transform:
    """On the straight way from one pose to another; each angle takes the shorter way round."""
    location = (a + (b - a) * part for a, b in zip(one.location, other.location, strict=True))
    rotation = (a + _turned(b - a) * part for a, b in zip(one.rotation, other.rotation, strict=True))
    return Transform(Vector(*location), Rotation(*rotation))


def _turned(angle: float) -> float:
    """The same angle from more than -180 to 180 degrees."""
    rest = math.fmod(angle, 360.0) if math.isfinite(angle) else angle
    return rest - 360.0 if rest > 180.0 else rest + 360.0 if rest <= -180.0 else rest
