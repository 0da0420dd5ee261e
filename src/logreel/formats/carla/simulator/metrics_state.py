"""Metrics of controls, lights and physics."""

from __future__ import annotations

from typing import Any

from logreel.errors import UsageError
from logreel.formats.carla.simulator.metrics_base import Base
from logreel.formats.carla.simulator.packet_text import LIGHTS
from logreel.formats.carla.simulator.values import SceneLight, VehicleControl
from logreel.log.tables import DENSE, table

STATES = ("Red", "Yellow", "Green", "Off", "Unknown")
GROUPS = ("None", "Vehicle", "Street", "Building", "Other")


class States(Base):
    """Controls of vehicles and walkers, lights of vehicles and scene, traffic lights, and physics."""

    def get_vehicle_control(self, vehicle_id: int, frame: int) -> VehicleControl | None:
        """Return the controls of a vehicle."""
        row = self._row("vehicle_control", vehicle_id, frame)
        if row is None:
            return None
        steer, throttle, brake, handbrake, gear = (
            self._columns("vehicle_control", name)[row].item() for name in VehicleControl._fields
        )
        return VehicleControl(steer, throttle, brake, handbrake, gear)

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
        found = table(self.log["physics"], None, None, None, DENSE).drop_columns(["time", "frame", "id"])
        record: dict[str, Any] = found.slice(int(rows[-1]), 1).to_pylist()[0]
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
