"""Values that metrics and replay return, and the geometry of the simulator: left-handed, z up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2, cos, degrees, hypot, radians, sin
from typing import Any, NamedTuple


class Vector(NamedTuple):
    """A vector in the simulator's axes: x forward, y to the right, z up."""

    x: float
    y: float
    z: float


class Rotation(NamedTuple):
    """Angles in degrees: yaw turns x towards y, pitch lifts the nose, roll lowers the right side."""

    roll: float
    pitch: float
    yaw: float

    def axes(self) -> Axes:
        """Return the axes of a frame with this rotation: first roll, then pitch, then yaw."""
        roll, pitch, yaw = map(radians, self)
        sr, sp, sy = sin(roll), sin(pitch), sin(yaw)
        cr, cp, cy = cos(roll), cos(pitch), cos(yaw)
        return Axes(
            Vector(cp * cy, cp * sy, sp),
            Vector(sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
            Vector(-(cr * sp * cy + sr * sy), cy * sr - cr * sp * sy, cr * cp),
        )


class Axes(NamedTuple):
    """Axes of a rotated frame: the directions of its x, y and z in the outer frame, left-handed."""

    x: Vector
    y: Vector
    z: Vector

    def outer(self, vector: Vector) -> Vector:
        """Return a vector of this frame in the outer frame."""
        return Vector(*(sum(v * axis[i] for v, axis in zip(vector, self, strict=True)) for i in range(3)))

    def rotation(self) -> Rotation:
        """Return the rotation of this frame."""
        x, y, z = self
        return Rotation(
            degrees(atan2(-y.z, z.z)), degrees(atan2(x.z, hypot(x.x, x.y))), degrees(atan2(x.y, x.x))
        )


class Transform(NamedTuple):
    """Location and rotation."""

    location: Vector
    rotation: Rotation


class Poses(Mapping[int, Transform]):
    """Poses of actors by id; each Transform is made on access.

    values  six numbers for each actor: location, then roll, pitch, yaw
    """

    __slots__ = ("values_by_id",)

    def __init__(self, values: Mapping[int, Sequence[float]]) -> None:
        self.values_by_id = values

    def __getitem__(self, actor: int) -> Transform:
        x, y, z, roll, pitch, yaw = self.values_by_id[actor]
        return Transform(Vector(x, y, z), Rotation(roll, pitch, yaw))

    def __contains__(self, actor: object) -> bool:
        return actor in self.values_by_id

    def __iter__(self) -> Iterator[int]:
        return iter(self.values_by_id)

    def __len__(self) -> int:
        return len(self.values_by_id)

    def __repr__(self) -> str:
        return repr(dict(self))


class VehicleControl(NamedTuple):
    """Controls of a vehicle."""

    steer: float
    throttle: float
    brake: float
    handbrake: bool
    gear: int

    @property
    def reverse(self) -> bool:
        """True for a reverse gear."""
        return self.gear < 0


class Box(NamedTuple):
    """A box: its centre, and half its size, in metres."""

    location: Vector
    extent: Vector


class SceneLight(NamedTuple):
    """A street or building light; colour as linear red, green, blue, alpha."""

    on: bool
    intensity: float
    color: tuple[float, float, float, float]
    group: str


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
