"""What the metrics of the scenario runner ask of a recording, without a server."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from logreel.formats.carla.columns import metres
from logreel.formats.carla.simulator.metrics_motion import Motion
from logreel.formats.carla.simulator.metrics_state import States
from logreel.formats.carla.simulator.values import Box, Vector


class MetricsLog(Motion, States):
    """Questions about single frames of a recording, named as in the scenario runner.

    Frames are numbered as in the recording, from 1. Lengths are in metres, angles in degrees, along the simulator's
    left-handed axes. What was not recorded for a frame is None; in arrays it is NaN. An actor that never was raises
    NotFoundError, a KeyError.
    """

    # ------------------------------------------------------------------------------------------------ recording

    def get_total_frame_count(self) -> int:
        """How many frames there are."""
        return len(self._columns("frames", "frame"))

    def get_elapsed_time(self, frame: int) -> float | None:
        """Seconds of the simulation since the start."""
        return self._of_frame(self._columns.elapsed, frame)

    def get_delta_time(self, frame: int) -> float | None:
        """Seconds that the frame lasts; -1 for the last one."""
        return self._of_frame(self._columns.duration, frame)

    def get_platform_time(self, frame: int) -> float | None:
        """Seconds of the wall clock since the start; only with additional data."""
        topic, place = "platform_time", self._columns.frame_row_of(frame)
        at = int(np.searchsorted(self._columns.place(topic), place))
        there = (
            place >= 0 and at < len(self._columns.place(topic)) and self._columns.place(topic)[at] == place
        )
        return float(self._columns(topic, "seconds")[at]) if there else None

    # --------------------------------------------------------------------------------------------------- actors

    def get_ego_vehicle_id(self) -> int | None:
        """The actor with the role ``hero``, the first if there are several."""
        return next(iter(self.get_actor_ids_with_role_name("hero")), None)

    def get_actor_ids_with_role_name(self, role_name: str) -> list[int]:
        """Actors with this role."""
        return [a.id for a in self.log.actors.values() if a.attributes.get("role_name") == role_name]

    def get_actor_ids_with_type_id(self, type_id: str) -> list[int]:
        """Actors whose model fits a pattern such as ``vehicle.*``."""
        return [a.id for a in self.log.actors.values() if fnmatchcase(a.description, type_id)]

    def get_actor_attributes(self, actor_id: int) -> dict[str, str]:
        """Its attributes, with its model as ``type_id``."""
        actor = self.log.actor(actor_id)
        return {"type_id": actor.description, **actor.attributes}

    def get_actor_alive_frames(self, actor_id: int) -> tuple[int, int]:
        """First frame, and the last one before the frame that removes it."""
        self.log.actor(actor_id)
        ids = self._columns.frame_ids
        born = self._columns.place("actors")[self._columns.rows("actors", actor_id)]
        gone = self._columns.place("actor_removals")[self._columns.rows("actor_removals", actor_id)]
        last = int(gone[-1]) - 1 if len(gone) else len(ids) - 1
        return int(ids[born[0]]), int(ids[max(last, int(born[0]))])

    def get_actor_bounding_box(self, actor_id: int) -> Box | None:
        """Its box, in its own frame; only with additional data."""
        return self._box("bounding_boxes", actor_id)

    def get_traffic_light_trigger_volume(self, traffic_light_id: int) -> Box | None:
        """The box that triggers it, in the world; only with additional data."""
        return self._box("trigger_volumes", traffic_light_id)

    def get_actor_collisions(self, actor_id: int) -> dict[int, list[int]]:
        """By frame, the actors that it hits."""
        self.log.actor(actor_id)
        rows = self._columns.rows("collisions", actor_id, "actor1")
        frames = self._columns("collisions", "frame")[rows].tolist()
        found: dict[int, list[int]] = {}
        for frame, other in zip(frames, self._columns("collisions", "actor2")[rows].tolist(), strict=True):
            found.setdefault(frame, []).append(other)
        return found

    def _box(self, topic: str, actor: int) -> Box | None:
        self.log.actor(actor)
        rows = self._columns.rows(topic, actor)
        if not len(rows):
            return None
        origin, extent = (
            metres(self._columns.vector(topic, name, rows[-1:])[0]) for name in ("origin", "extent")
        )
        return Box(Vector(*origin.tolist()), Vector(*extent.tolist()))
