"""Metrics of where actors are and how they move."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from logreel.formats.carla.actors import Track
from logreel.formats.carla.columns import Array, metres
from logreel.formats.carla.simulator.metrics_base import Base
from logreel.formats.carla.simulator.values import Rotation, Transform, Vector


class Motion(Base):
    """Transforms, velocities, accelerations and distances."""

    def get_actor_transform(self, actor_id: int, frame: int) -> Transform | None:
        """Where it is."""
        track, row = self._at(actor_id, frame)
        if row is None:
            return None
        location = metres(track.location[row]).tolist()
        return Transform(Vector(*location), Rotation(*track.rotation[row].tolist()))

    def get_all_actor_transforms(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """float64[n, 6]: x, y, z, roll, pitch, yaw for each frame from the first to the last, both included."""
        track = self._track(actor_id)
        return self._all(track, np.hstack([metres(track.location), track.rotation]), first_frame, last_frame)

    def get_actors_transforms(self, actor_ids: Iterable[int], frame: int) -> dict[int, Transform | None]:
        """Where each of some actors is."""
        return {actor: self.get_actor_transform(actor, frame) for actor in actor_ids}

    def get_actor_velocity(self, actor_id: int, frame: int) -> Vector | None:
        """m/s: recorded, else from its locations."""
        return self._vector(actor_id, frame, "velocity")

    def get_all_actor_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """float64[n, 3]: m/s for each frame."""
        track = self._track(actor_id)
        return self._all(track, track.velocity, first_frame, last_frame)

    def get_actors_velocity(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """m/s of each of some actors."""
        return {actor: self.get_actor_velocity(actor, frame) for actor in actor_ids}

    def get_actor_angular_velocity(self, actor_id: int, frame: int) -> Vector | None:
        """Degrees/s; only where it was recorded."""
        return self._vector(actor_id, frame, "angular")

    def get_all_actor_angular_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """float64[n, 3]: degrees/s for each frame."""
        track = self._track(actor_id)
        return self._all(track, track.angular, first_frame, last_frame)

    def get_actors_angular_velocity(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """Degrees/s of each of some actors."""
        return {actor: self.get_actor_angular_velocity(actor, frame) for actor in actor_ids}

    def get_actor_acceleration(self, actor_id: int, frame: int) -> Vector | None:
        """m/s2, worked out from velocities: none is ever recorded."""
        return self._vector(actor_id, frame, "acceleration")

    def get_all_actor_accelerations(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> Array:
        """float64[n, 3]: m/s2 for each frame."""
        track = self._track(actor_id)
        return self._all(track, track.acceleration, first_frame, last_frame)

    def get_actors_acceleration(self, actor_ids: Iterable[int], frame: int) -> dict[int, Vector | None]:
        """m/s2 of each of some actors."""
        return {actor: self.get_actor_acceleration(actor, frame) for actor in actor_ids}

    def get_distances(self, one: int, other: int) -> Array:
        """float64[f]: metres between the places of two actors, for each frame of the recording."""
        both = self.get_all_actor_transforms(one)[:, :3] - self.get_all_actor_transforms(other)[:, :3]
        found: Array = np.sqrt((both * both).sum(axis=1))
        return found

    def _vector(self, actor: int, frame: int, name: str) -> Vector | None:
        track, row = self._at(actor, frame)
        value = None if row is None else getattr(track, name)[row]
        return None if value is None or np.isnan(value).any() else Vector(*value.tolist())

    def _all(self, track: Track, values: Array, first: int | None, last: int | None) -> Array:
        """The rows of *values*, one per row of *track*, put to the frames from *first* to *last*."""
        ids = self._columns.frame_ids
        lo = 0 if first is None else int(np.searchsorted(ids, np.uint64(max(first, 0))))
        hi = len(ids) if last is None else int(np.searchsorted(ids, np.uint64(max(last, 0)), side="right"))
        found = np.full((max(hi - lo, 0), values.shape[1]), np.nan)
        inside = (track.place >= lo) & (track.place < hi)
        found[track.place[inside] - lo] = values[inside]
        return found
