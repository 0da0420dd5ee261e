"""What the simulator applies in one step of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from logreel.formats.carla.simulator.values import Poses, Transform

#: Most actors of one kind of event that the line of a step names: the first step may create hundreds.
NAMED = 4
#: A record with the fields of its channel, by name.
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tick:
    """One step of a replay.

    Records have the names and units of the channels of a recording, see docs/formats/carla.md.

    time         seconds since the start of the recording
    frame        number of the frame shown
    poses        pose of each actor that exists, by id, in centimetres and degrees as recorded
    number       number of the step, from 0
    created      records of ``actors`` that are created, also those of frames that were skipped
    destroyed    ids of actors that are removed, also those of skipped frames
    attached     ids of a child and of its parent, for each attachment, also those of skipped frames
    applied      records by topic, of the frame that is reached in this step: ``traffic_lights``, ``vehicle_control``,
                 ``vehicle_lights``, ``scene_lights``, ``walker``, ``bones``, ``wheels``, ``bikers`` and ``doors``; of
                 actors that exist; topics without records are absent, all of them in further steps in the same frame
    weather      record of ``weather`` that is applied, also of a skipped frame, or None
    visual_time  seconds for clouds and water, also of a skipped frame, or None
    spectator    pose of the camera if it follows an actor, else None
    collisions   records of ``collisions`` since the step before: the simulator never replays them
    stopped      True: the replay ends with this step, and the simulator takes over
    """

    time: float
    frame: int
    poses: Poses
    number: int = 0
    created: Sequence[Record] = ()
    destroyed: Sequence[int] = ()
    attached: Sequence[tuple[int, int]] = ()
    applied: Mapping[str, Sequence[Record]] = field(default_factory=dict)
    weather: Record | None = None
    visual_time: float | None = None
    spectator: Transform | None = None
    collisions: Sequence[Record] = ()
    stopped: bool = False

    @property
    def time_ns(self) -> int:
        """Time in ns since the start of the recording."""
        return round(self.time * 1e9)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the same keys in every step; collisions are in ``not_applied``."""
        return {
            "tick": self.number,
            "time_ns": self.time_ns,
            "frame": self.frame,
            "created": list(self.created),
            "destroyed": list(self.destroyed),
            "attached": [{"child": child, "parent": parent} for child, parent in self.attached],
            "poses": [{"id": actor, **_pose(pose)} for actor, pose in self.poses.items()],
            "applied": {topic: list(records) for topic, records in self.applied.items()},
            "weather": self.weather,
            "visual_time": self.visual_time,
            "spectator": None if self.spectator is None else _pose(self.spectator),
            "not_applied": {"collisions": list(self.collisions)},
            "stopped": self.stopped,
        }

    def line(self) -> str:
        """Return one line of text for people."""
        parts = [f"{len(self.poses)} pose{'s' * (len(self.poses) != 1)}"]
        # Towns have hundreds of lights, signs and props; vehicles and walkers are what a reader looks for.
        created = sorted(self.created, key=lambda a: a["description"].startswith(("traffic.", "static.")))
        parts += _named("create", [f"{a['id']} {a['description']}" for a in created])
        parts += _named("destroy", [str(actor) for actor in self.destroyed])
        parts += _named("attach", [f"{child} to {parent}" for child, parent in self.attached])
        parts += [f"{topic} {len(records)}" for topic, records in self.applied.items()]
        if self.weather is not None:
            parts.append("weather")
        if self.spectator is not None:
            x, y, z = self.spectator.location
            parts.append(f"spectator at ({x:g}, {y:g}, {z:g})")
        parts += [f"collision {c['actor1']} with {c['actor2']} (not applied)" for c in self.collisions]
        if self.stopped:
            parts.append("stop")
        return f"{self.time:10.3f} s  frame {self.frame}: {', '.join(parts)}"


def _named(verb: str, texts: Sequence[str]) -> list[str]:
    """Return *verb* with each text, of many only with the first ones and the number of the others."""
    named = [f"{verb} {text}" for text in texts[:NAMED]]
    return [*named, f"{verb} {len(texts) - NAMED} more"] if len(texts) > NAMED else named


def _pose(pose: Transform) -> dict[str, dict[str, float]]:
    return {"location": pose.location._asdict(), "rotation": pose.rotation._asdict()}
