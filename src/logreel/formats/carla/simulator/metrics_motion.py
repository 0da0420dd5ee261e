"""Metrics of positions and motion of actors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from logreel.formats.carla.actors import Track
from logreel.formats.carla.columns import Array, metres
from logreel.formats.carla.simulator.metrics_base import Base
from logreel.formats.carla.simulator.values import Rotation, Transform, Vector


class Motion(Base):
    """Transforms, velocities, accelerations and distances of actors."""

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
        found: Array = np.sqrt((both * both).sum(axis=1))
        return found

    def _vector(self, actor: int, frame: int, name: str) -> Vector | None:
        track, row = self._at(actor, frame)
        value = None if row is None else getattr(track, name)[row]
        return None if value is None or np.isnan(value).any() else Vector(*value.tolist())

    def _all(self, track: Track, values: Array, first: int | None, last: int | None) -> Array:
        """Return *values*, one row per row of *track*, for each frame from *first* to *last*; NaN where missing."""
        ids = self._columns.frame_ids
        lo = 0 if first is None else int(np.searchsorted(ids, np.uint64(max(first, 0))))
        hi = len(ids) if last is None else int(np.searchsorted(ids, np.uint64(max(last, 0)), side="right"))
        found = np.full((max(hi - lo, 0), values.shape[1]), np.nan)
        inside = (track.frame_row >= lo) & (track.frame_row < hi)
        found[track.frame_row[inside] - lo] = values[inside]
        return found
