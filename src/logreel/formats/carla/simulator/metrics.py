"""The log class of the scenario runner's metrics, computed from a recording without a server."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.columns import ActorMotion, Array, RecordingColumns, metres, recording
from logreel.formats.carla.simulator.info import LIGHTS
from logreel.formats.carla.simulator.values import (
    Box,
    Rotation,
    SceneLight,
    Transform,
    Vector,
    VehicleControl,
)
from logreel.io.arrays import I64
from logreel.log.columns import DENSE
from logreel.log.tables import table

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log


STATES = ("Red", "Yellow", "Green", "Off", "Unknown")
GROUPS = ("None", "Vehicle", "Street", "Building", "Other")


class MetricsLog:
    """State of a recording frame by frame; methods are named as in the scenario runner.

    Frames are numbered as in the recording, from 1. Lengths are in metres, angles in degrees, in the simulator's
    left-handed axes. Values that were not recorded for a frame are None, in arrays NaN. An unknown actor raises
    NotFoundError, a KeyError.

    log  an open Log, or anything that ``logreel.open`` accepts
    """

    def __init__(self, log: Log | Openable) -> None:
        self.log = recording(log)
        self._columns = RecordingColumns(self.log)
        self._tracks: dict[int, ActorMotion] = {}
        self._rows: dict[tuple[str, int], tuple[I64, I64]] = {}

    # ------------------------------------------------------------------------------------------------ recording

    def get_total_frame_count(self) -> int:
        """Return the number of frames."""
        return len(self._columns("frames", "frame"))

    def get_elapsed_time(self, frame: int) -> float | None:
        """Return the simulated seconds since the start."""
        return self._of_frame(self._columns.elapsed, frame)

    def get_delta_time(self, frame: int) -> float | None:
        """Return the duration of a frame in seconds; -1 for the last frame."""
        return self._of_frame(self._columns.duration, frame)

    def get_platform_time(self, frame: int) -> float | None:
        """Return the wall-clock seconds since the start; only with additional data."""
        topic, frame_row = "platform_time", self._columns.frame_row_of(frame)
        at = int(np.searchsorted(self._columns.frame_rows(topic), frame_row))
        is_recorded = (
            frame_row >= 0
            and at < len(self._columns.frame_rows(topic))
            and self._columns.frame_rows(topic)[at] == frame_row
        )
        return float(self._columns(topic, "seconds")[at]) if is_recorded else None

    # --------------------------------------------------------------------------------------------------- actors

    def get_ego_vehicle_id(self) -> int | None:
        """Return the id of the first actor with the role ``hero``, or None."""
        return next(iter(self.get_actor_ids_with_role_name("hero")), None)

    def get_actor_ids_with_role_name(self, role_name: str) -> list[int]:
        """Return the ids of the actors with a role."""
        return [a.id for a in self.log.actors.values() if a.attributes.get("role_name") == role_name]

    def get_actor_ids_with_type_id(self, type_id: str) -> list[int]:
        """Return the ids of the actors whose model matches a pattern such as ``vehicle.*``."""
        return [a.id for a in self.log.actors.values() if fnmatchcase(a.description, type_id)]

    def get_actor_attributes(self, actor_id: int) -> dict[str, Any]:
        """Return the attributes of an actor as texts by name, and what the recording tells of it.

        Besides the attributes: ``type_id``, its model; ``location`` (m) at which it is created, a Vector; the frames
        ``created`` and, unless it exists to the end, ``destroyed``; ``parent``, the id of the actor that it is attached
        to, if any.
        """
        actor = self.log.actor(actor_id)
        born = self._columns.rows("actors", actor_id)[:1]
        first, last = self.get_actor_alive_frames(actor_id)
        place = metres(self._columns.vector("actors", "location", born))[0]
        about: dict[str, Any] = {"type_id": actor.description, "location": Vector(*place.tolist())}
        about |= {**actor.attributes, "created": first}
        if actor.end is not None:
            about["destroyed"] = last + 1
        if actor.parent is not None:
            about["parent"] = actor.parent
        return about

    def get_actor_alive_frames(self, actor_id: int) -> tuple[int, int]:
        """Return the first frame of an actor, and the last one before the frame that removes it."""
        self.log.actor(actor_id)
        ids = self._columns.frame_ids
        born = self._columns.frame_rows("actors")[self._columns.rows("actors", actor_id)]
        removed = self._columns.frame_rows("actor_removals")[self._columns.rows("actor_removals", actor_id)]
        last = int(removed[-1]) - 1 if len(removed) else len(ids) - 1
        return int(ids[born[0]]), int(ids[max(last, int(born[0]))])

    def get_actor_bounding_box(self, actor_id: int) -> Box | None:
        """Return the bounding box of an actor in its own frame; only with additional data."""
        return self._box("bounding_boxes", actor_id)

    def get_traffic_light_trigger_volume(self, traffic_light_id: int) -> Box | None:
        """Return the trigger volume of a traffic light in world coordinates; only with additional data."""
        return self._box("trigger_volumes", traffic_light_id)

    def get_actor_collisions(self, actor_id: int) -> dict[int, list[int]]:
        """Return the actors that an actor collides with, by frame."""
        self.log.actor(actor_id)
        rows = self._columns.rows("collisions", actor_id, "actor1")
        frames = self._columns("collisions", "frame")[rows].tolist()
        by_frame: dict[int, list[int]] = {}
        for frame, other in zip(frames, self._columns("collisions", "actor2")[rows].tolist(), strict=True):
            by_frame.setdefault(frame, []).append(other)
        return by_frame

    # --------------------------------------------------------------------------------------------------- motion

    def get_actor_transform(self, actor_id: int, frame: int) -> Transform | None:
        """Return location and rotation of an actor."""
        track, row = self._at(actor_id, frame)
        if row is None:
            return None
        location = metres(track.location[row]).tolist()
        return Transform(Vector(*location), Rotation(*track.rotation[row].tolist()))

    def get_all_actor_transforms(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """Return x, y, z, roll, pitch, yaw for each frame from first to last, both included: float64[n, 6]."""
        track = self._track(actor_id)
        return self._all(track, np.hstack([metres(track.location), track.rotation]), first_frame, last_frame)

    def get_actors_transforms(self, actor_ids: Iterable[int], frame: int) -> dict[int, Transform | None]:
        """Return location and rotation of several actors."""
        return {actor: self.get_actor_transform(actor, frame) for actor in actor_ids}

    def get_actor_velocity(self, actor_id: int, frame: int) -> Vector | None:
        """Return the velocity of an actor in m/s: recorded, else derived from its locations."""
        return self._vector(actor_id, frame, "velocity")

    def get_all_actor_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """Return the velocity for each frame in m/s: float64[n, 3]."""
        track = self._track(actor_id)
        return self._all(track, track.velocity, first_frame, last_frame)

    def get_actors_velocity(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """Return the velocities of several actors in m/s."""
        return {actor: self.get_actor_velocity(actor, frame) for actor in actor_ids}

    def get_actor_angular_velocity(self, actor_id: int, frame: int) -> Vector | None:
        """Return the angular velocity of an actor in degrees/s, if it was recorded."""
        return self._vector(actor_id, frame, "angular")

    def get_all_actor_angular_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """Return the angular velocity for each frame in degrees/s: float64[n, 3]."""
        track = self._track(actor_id)
        return self._all(track, track.angular, first_frame, last_frame)

    def get_actors_angular_velocity(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """Return the angular velocities of several actors in degrees/s."""
        return {actor: self.get_actor_angular_velocity(actor, frame) for actor in actor_ids}

    def get_actor_acceleration(self, actor_id: int, frame: int) -> Vector | None:
        """Return the acceleration of an actor in m/s2, derived from velocities: recordings have none."""
        return self._vector(actor_id, frame, "acceleration")

    def get_all_actor_accelerations(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """Return the acceleration for each frame in m/s2: float64[n, 3]."""
        track = self._track(actor_id)
        return self._all(track, track.acceleration, first_frame, last_frame)

    def get_actors_acceleration(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """Return the accelerations of several actors in m/s2."""
        return {actor: self.get_actor_acceleration(actor, frame) for actor in actor_ids}

    def get_distances(self, one: int, other: int) -> Array:
        """Return the distance of two actors in metres for each frame of the recording: float64[f]."""
        both = self.get_all_actor_transforms(one)[:, :3] - self.get_all_actor_transforms(other)[:, :3]
        distances: Array = np.sqrt((both * both).sum(axis=1))
        return distances

    # ---------------------------------------------------------------------------------------- controls, physics

    def get_vehicle_control(self, vehicle_id: int, frame: int) -> VehicleControl | None:
        """Return the controls of a vehicle."""
        row = self._row("vehicle_control", vehicle_id, frame)
        if row is None:
            return None
        names = ("steer", "throttle", "brake", "handbrake", "gear")
        return VehicleControl(*(self._columns("vehicle_control", name)[row].item() for name in names))

    def get_vehicle_physics_control(self, vehicle_id: int, frame: int = 1) -> dict[str, Any] | None:
        """Return the last physics of a vehicle up to a frame, by the field names of the channel ``physics``.

        None without additional data, and for recordings of the UE5 line, whose physics is kept as bytes.
        """
        columns = self._columns
        if "physics" not in self.log.channels or "id" not in self.log["physics"].fields:
            return None
        rows = columns.rows("physics", vehicle_id)
        rows = rows[columns.frame_rows("physics")[rows] <= max(self._columns.frame_row_of(frame), 0)]
        if not len(rows):
            return None
        physics = table(self.log["physics"], None, None, None, DENSE).drop_columns(["time", "frame", "id"])
        record: dict[str, Any] = physics.slice(int(rows[-1]), 1).to_pylist()[0]
        return record

    def get_walker_speed(self, walker_id: int, frame: int) -> float | None:
        """Return the speed of the animation of a walker in m/s; recorded in cm/s."""
        row = self._row("walker", walker_id, frame)
        return None if row is None else float(self._columns("walker", "speed")[row]) / 100.0

    # ------------------------------------------------------------------------------------------ traffic lights

    def get_traffic_light_state(self, traffic_light_id: int, frame: int) -> str | None:
        """Return the state of a traffic light: ``Red``, ``Yellow``, ``Green``, ``Off`` or ``Unknown``."""
        row = self._row("traffic_lights", traffic_light_id, frame)
        if row is None:
            return None
        return STATES[min(int(self._columns("traffic_lights", "state")[row]), len(STATES) - 1)]

    def is_traffic_light_frozen(self, traffic_light_id: int, frame: int) -> bool | None:
        """Return whether a traffic light is frozen in its state."""
        row = self._row("traffic_lights", traffic_light_id, frame)
        return None if row is None else bool(self._columns("traffic_lights", "frozen")[row])

    def get_traffic_light_elapsed_time(self, traffic_light_id: int, frame: int) -> float | None:
        """Return the seconds since a traffic light changed its state."""
        row = self._row("traffic_lights", traffic_light_id, frame)
        return None if row is None else float(self._columns("traffic_lights", "elapsed")[row])

    def get_traffic_light_state_time(self, traffic_light_id: int, state: str, frame: int = 1) -> float | None:
        """Return the seconds that a traffic light shows a state, as last recorded; only with additional data.

        state  ``Red``, ``Yellow`` or ``Green``
        """
        if state not in STATES[:3]:
            raise UsageError(f"no time of state {state!r}: use one of {', '.join(STATES[:3])}")
        rows = self._columns.rows("traffic_light_times", traffic_light_id)
        rows = rows[
            self._columns.frame_rows("traffic_light_times")[rows] <= max(self._columns.frame_row_of(frame), 0)
        ]
        return float(self._columns("traffic_light_times", state.lower())[rows[-1]]) if len(rows) else None

    # ---------------------------------------------------------------------------------------------- other lights

    def get_vehicle_lights(self, vehicle_id: int, frame: int) -> list[str] | None:
        """Return the names of the lights of a vehicle that are on."""
        row = self._row("vehicle_lights", vehicle_id, frame)
        if row is None:
            return None
        flags = int(self._columns("vehicle_lights", "flags")[row])
        return [name for bit, name in LIGHTS if flags >> bit & 1]

    def is_vehicle_light_active(self, light: str, vehicle_id: int, frame: int) -> bool | None:
        """Return whether a light of a vehicle is on."""
        lights = self.get_vehicle_lights(vehicle_id, frame)
        return None if lights is None else light in lights

    def get_scene_light_state(self, light_id: int, frame: int) -> SceneLight | None:
        """Return the last state of a street or building light up to a frame."""
        columns, topic = self._columns, "scene_lights"
        rows = columns.rows(topic, light_id)
        rows = rows[columns.frame_rows(topic)[rows] <= self._columns.frame_row_of(frame)]
        if not len(rows):
            return None
        last = rows[-1]
        red, green, blue, alpha = (columns(topic, f"color.{c}")[last].item() for c in "rgba")
        group = GROUPS[min(int(columns(topic, "group")[last]), len(GROUPS) - 1)]
        on, intensity = bool(columns(topic, "on")[last]), float(columns(topic, "intensity")[last])
        return SceneLight(on, intensity, (red, green, blue, alpha), group)

    # ----------------------------------------------------------------------------------------- rows of an actor

    def _of_frame(self, values: Array, frame: int) -> float | None:
        frame_row = self._columns.frame_row_of(frame)
        return None if frame_row < 0 else float(values[frame_row])

    def _row(self, topic: str, actor: int, frame: int) -> int | None:
        """Return the row of the record about an actor in a frame, or None."""
        if (topic, actor) not in self._rows:
            rows = self._columns.rows(topic, actor)
            self._rows[topic, actor] = rows, self._columns.frame_rows(topic)[rows]
        rows, frame_rows = self._rows[topic, actor]
        frame_row = self._columns.frame_row_of(frame)
        at = int(frame_rows.searchsorted(frame_row))
        return (
            int(rows[at]) if frame_row >= 0 and at < len(frame_rows) and frame_rows[at] == frame_row else None
        )

    def _track(self, actor: int) -> ActorMotion:
        if actor not in self._tracks:
            self.log.actor(actor)
            self._tracks[actor] = ActorMotion(self._columns, actor)
        return self._tracks[actor]

    def _at(self, actor: int, frame: int) -> tuple[ActorMotion, int | None]:
        """Return the track of an actor, and its row in a frame or None."""
        track, frame_row = self._track(actor), self._columns.frame_row_of(frame)
        at = int(track.frame_row.searchsorted(frame_row))
        is_recorded = frame_row >= 0 and at < len(track.frame_row) and track.frame_row[at] == frame_row
        return track, at if is_recorded else None

    def _vector(self, actor: int, frame: int, name: str) -> Vector | None:
        track, row = self._at(actor, frame)
        value = None if row is None else getattr(track, name)[row]
        return None if value is None or np.isnan(value).any() else Vector(*value.tolist())

    def _all(self, track: ActorMotion, values: Array, first: int | None, last: int | None) -> Array:
        """Return *values*, one row per row of *track*, for each frame from *first* to *last*; NaN where missing."""
        ids = self._columns.frame_ids
        lo = 0 if first is None else int(np.searchsorted(ids, np.uint64(max(first, 0))))
        hi = len(ids) if last is None else int(np.searchsorted(ids, np.uint64(max(last, 0)), side="right"))
        by_frame = np.full((max(hi - lo, 0), values.shape[1]), np.nan)
        inside = (track.frame_row >= lo) & (track.frame_row < hi)
        by_frame[track.frame_row[inside] - lo] = values[inside]
        return by_frame

    def _box(self, topic: str, actor: int) -> Box | None:
        self.log.actor(actor)
        rows = self._columns.rows(topic, actor)
        if not len(rows):
            return None
        origin, extent = (
            metres(self._columns.vector(topic, name, rows[-1:])[0]) for name in ("origin", "extent")
        )
        return Box(Vector(*origin.tolist()), Vector(*extent.tolist()))
