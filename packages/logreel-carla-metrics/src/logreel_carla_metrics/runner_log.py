"""A recording as metrics of the scenario runner see it: documented methods, values of the package ``carla``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import logreel


class RunnerLog:
    """The object ``log`` of a metric.

    Frames are numbered from 1. Methods about one actor return None for an unknown actor, and for a frame in which it
    has no such value. In contrast to the scenario runner, accelerations are not zero, velocities are derived from
    locations if they were not recorded, the speed of a walker is a number in m/s, and frames of collisions and times
    are numbered from 1 like all others.

    log    an open recording
    carla  the module whose classes are used: that of the simulator, or one with the same names
    """

    def __init__(self, log: logreel.Log, carla: Any) -> None:
        self._metrics, self._carla, self._actors = logreel.carla.MetricsLog(log), carla, log.actors

    # ---------------------------------------------------------------------------------------- the simulation

    def get_total_frame_count(self) -> int:
        """Return the number of frames."""
        return self._metrics.get_total_frame_count()

    def get_elapsed_time(self, frame: int) -> float | None:
        """Return the seconds since the start."""
        return self._metrics.get_elapsed_time(frame)

    def get_delta_time(self, frame: int) -> float | None:
        """Return the seconds since the frame before; 0 for the first one."""
        now, before = self.get_elapsed_time(frame), self.get_elapsed_time(frame - 1)
        return None if now is None else 0.0 if before is None else round(now - before, 6)

    def get_platform_time(self, frame: int) -> float | None:
        """Return the wall-clock seconds since the start."""
        return self._metrics.get_platform_time(frame)

    def get_actor_collisions(self, actor_id: int) -> dict[int, list[int]]:
        """Return the ids of the actors that an actor hits, by frame."""
        return self._metrics.get_actor_collisions(actor_id) if actor_id in self._actors else {}

    def get_collisions(self, actor_id: int) -> list[dict[str, Any]]:
        """Return a dict for each frame with collisions of an actor: ``frame``, and ``other_id``, a list of ids."""
        found = self.get_actor_collisions(actor_id)
        return [{"frame": frame, "other_id": others} for frame, others in found.items()]

    # ------------------------------------------------------------------------------------------------ actors

    def get_ego_vehicle_id(self) -> int | None:
        """Return the id of the first actor with the role ``hero``, or None."""
        return self._metrics.get_ego_vehicle_id()

    def get_actor_ids_with_role_name(self, role_name: str) -> list[int]:
        """Return the ids of the actors with a role."""
        return self._metrics.get_actor_ids_with_role_name(role_name)

    def get_actor_ids_with_type_id(self, type_id: str) -> list[int]:
        """Return the ids of the actors whose model matches a pattern such as ``vehicle.*``."""
        return self._metrics.get_actor_ids_with_type_id(type_id)

    def get_actor_attributes(self, actor_id: int) -> dict[str, Any] | None:
        """Return the attributes of an actor as ``MetricsLog`` does, with a ``carla.Location``."""
        if actor_id not in self._actors:
            return None
        about = self._metrics.get_actor_attributes(actor_id)
        return {**about, "location": self._carla.Location(*about["location"])}

    def get_actor_bounding_box(self, actor_id: int) -> Any:
        """Return the ``carla.BoundingBox`` of an actor in its own frame."""
        return self._box(self._metrics.get_actor_bounding_box, actor_id)

    def get_traffic_light_trigger_volume(self, traffic_light_id: int) -> Any:
        """Return the trigger volume of a traffic light as a ``carla.BoundingBox``."""
        return self._box(self._metrics.get_traffic_light_trigger_volume, traffic_light_id)

    def get_actor_alive_frames(self, actor_id: int) -> tuple[int | None, int | None]:
        """Return the first and the last frame of an actor; two times None if it is unknown."""
        return self._metrics.get_actor_alive_frames(actor_id) if actor_id in self._actors else (None, None)

    # ------------------------------------------------------------------------------------------------ motion

    def get_actor_transform(self, actor_id: int, frame: int) -> Any:
        """Return the ``carla.Transform`` of an actor."""
        return self._one(self._transform, actor_id, frame)

    def get_all_actor_transforms(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> list[Any]:
        """Return the transforms of an actor, one for each frame from first to last."""
        return self._all(self._transform, actor_id, first_frame, last_frame)

    def get_actor_transforms_at_frame(
        self, frame: int, actor_list: Collection[int] | None = None
    ) -> dict[int, Any]:
        """Return the transforms of actors in a frame, by id; without a list, of all that have one."""
        return self._at_frame(self._transform, frame, actor_list)

    def get_actor_velocity(self, actor_id: int, frame: int) -> Any:
        """Return the velocity of an actor in m/s as a ``carla.Vector3D``."""
        return self._one(self._velocity, actor_id, frame)

    def get_all_actor_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> list[Any]:
        """Return the velocities of an actor, one for each frame from first to last."""
        return self._all(self._velocity, actor_id, first_frame, last_frame)

    def get_actor_velocities_at_frame(
        self, frame: int, actor_list: Collection[int] | None = None
    ) -> dict[int, Any]:
        """Return the velocities of actors in a frame, by id; without a list, of all that have one."""
        return self._at_frame(self._velocity, frame, actor_list)

    def get_actor_angular_velocity(self, actor_id: int, frame: int) -> Any:
        """Return the angular velocity of an actor in degrees/s as a ``carla.Vector3D``."""
        return self._one(self._angular_velocity, actor_id, frame)

    def get_all_actor_angular_velocities(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> list[Any]:
        """Return the angular velocities of an actor, one for each frame from first to last."""
        return self._all(self._angular_velocity, actor_id, first_frame, last_frame)

    def get_actor_angular_velocities_at_frame(
        self, frame: int, actor_list: Collection[int] | None = None
    ) -> dict[int, Any]:
        """Return the angular velocities of actors in a frame, by id; without a list, of all that have one."""
        return self._at_frame(self._angular_velocity, frame, actor_list)

    def get_actor_acceleration(self, actor_id: int, frame: int) -> Any:
        """Return the acceleration of an actor in m/s2 as a ``carla.Vector3D``."""
        return self._one(self._acceleration, actor_id, frame)

    def get_all_actor_accelerations(
        self, actor_id: int, first_frame: int | None = None, last_frame: int | None = None
    ) -> list[Any]:
        """Return the accelerations of an actor, one for each frame from first to last."""
        return self._all(self._acceleration, actor_id, first_frame, last_frame)

    def get_actor_accelerations_at_frame(
        self, frame: int, actor_list: Collection[int] | None = None
    ) -> dict[int, Any]:
        """Return the accelerations of actors in a frame, by id; without a list, of all that have one."""
        return self._at_frame(self._acceleration, frame, actor_list)

    # -------------------------------------------------------------------------------------- controls, lights

    def get_vehicle_control(self, vehicle_id: int, frame: int) -> Any:
        """Return the ``carla.VehicleControl`` of a vehicle."""
        found = self._one(self._metrics.get_vehicle_control, vehicle_id, frame)
        return found and self._carla.VehicleControl(
            throttle=found.throttle,
            steer=found.steer,
            brake=found.brake,
            hand_brake=found.handbrake,
            reverse=found.reverse,
            manual_gear_shift=False,
            gear=found.gear,
        )

    def get_vehicle_physics_control(self, vehicle_id: int, frame: int) -> Any:
        """Return the last ``carla.VehiclePhysicsControl`` of a vehicle up to a frame."""
        found = self._one(self._metrics.get_vehicle_physics_control, vehicle_id, frame)
        if found is None:
            return None
        carla, control = self._carla, self._carla.VehiclePhysicsControl()
        for name, value in found.items():
            if isinstance(value, (int, float)):
                setattr(control, name, value)
        control.center_of_mass = carla.Vector3D(*found["center_of_mass"].values())
        control.torque_curve = [carla.Vector2D(*point.values()) for point in found["torque_curve"]]
        control.steering_curve = [carla.Vector2D(*point.values()) for point in found["steering_curve"]]
        control.forward_gears = [carla.GearPhysicsControl(**gear) for gear in found["gears"]]
        control.wheels = [self._wheel(wheel) for wheel in found["wheels"]]
        return control

    def _wheel(self, wheel: dict[str, Any]) -> Any:
        values = {name: value for name, value in wheel.items() if name != "position"}
        position = (value / 100.0 for value in wheel["position"].values())
        return self._carla.WheelPhysicsControl(**values, position=self._carla.Vector3D(*position))

    def get_walker_speed(self, walker_id: int, frame: int) -> float | None:
        """Return the speed of a walker in m/s."""
        speed: float | None = self._one(self._metrics.get_walker_speed, walker_id, frame)
        return speed

    def get_traffic_light_state(self, traffic_light_id: int, frame: int) -> Any:
        """Return the ``carla.TrafficLightState`` of a traffic light."""
        name = self._one(self._metrics.get_traffic_light_state, traffic_light_id, frame)
        return None if name is None else getattr(self._carla.TrafficLightState, name)

    def is_traffic_light_frozen(self, traffic_light_id: int, frame: int) -> bool | None:
        """Return whether a traffic light is held in its state."""
        frozen: bool | None = self._one(self._metrics.is_traffic_light_frozen, traffic_light_id, frame)
        return frozen

    def get_traffic_light_elapsed_time(self, traffic_light_id: int, frame: int) -> float | None:
        """Return the seconds since a traffic light changed its state."""
        elapsed: float | None = self._one(
            self._metrics.get_traffic_light_elapsed_time, traffic_light_id, frame
        )
        return elapsed

    def get_traffic_light_state_time(self, traffic_light_id: int, state: Any, frame: int) -> float | None:
        """Return the seconds that a traffic light shows a ``carla.TrafficLightState``."""
        name = next(
            (
                name
                for name in ("Red", "Yellow", "Green")
                if getattr(self._carla.TrafficLightState, name) == state
            ),
            None,
        )
        if name is None or traffic_light_id not in self._actors:
            return None
        return self._metrics.get_traffic_light_state_time(traffic_light_id, name, frame)

    def get_vehicle_lights(self, vehicle_id: int, frame: int) -> list[Any] | None:
        """Return the ``carla.VehicleLightState`` of each light of a vehicle that is on; if none is, of ``NONE``."""
        names = self._one(self._metrics.get_vehicle_lights, vehicle_id, frame)
        if names is None:
            return None
        return [getattr(self._carla.VehicleLightState, name) for name in names or ["NONE"]]

    def is_vehicle_light_active(self, light: Any, vehicle_id: int, frame: int) -> bool:
        """Return whether a light of a vehicle is on."""
        return light in (self.get_vehicle_lights(vehicle_id, frame) or ())

    def get_scene_light_state(self, light_id: int, frame: int) -> Any:
        """Return the last ``carla.LightState`` of a street or building light up to a frame."""
        found = self._metrics.get_scene_light_state(light_id, frame)
        if found is None:
            return None
        red, green, blue = (int(value * 255) for value in found.color[:3])
        return self._carla.LightState(
            intensity=int(found.intensity),
            color=self._carla.Color(red, green, blue),
            group=self._carla.LightGroup.NONE,
            active=found.on,
        )

    # -------------------------------------------------------------------------------------- values of carla

    def _one(self, get: Callable[[int, int], Any], actor: int, frame: int) -> Any:
        return get(actor, frame) if actor in self._actors else None

    def _all(
        self, get: Callable[[int, int], Any], actor: int, first: int | None, last: int | None
    ) -> list[Any]:
        end = self.get_total_frame_count() if last is None else last
        return [self._one(get, actor, frame) for frame in range(1 if first is None else first, end + 1)]

    def _at_frame(
        self, get: Callable[[int, int], Any], frame: int, actors: Collection[int] | None
    ) -> dict[int, Any]:
        found = {actor: self._one(get, actor, frame) for actor in actors or self._actors}
        return found if actors else {actor: value for actor, value in found.items() if value is not None}

    def _transform(self, actor: int, frame: int) -> Any:
        found = self._metrics.get_actor_transform(actor, frame)
        if found is None:
            return None
        roll, pitch, yaw = found.rotation
        return self._carla.Transform(
            self._carla.Location(*found.location), self._carla.Rotation(pitch=pitch, yaw=yaw, roll=roll)
        )

    def _velocity(self, actor: int, frame: int) -> Any:
        return self._vector(self._metrics.get_actor_velocity(actor, frame))

    def _angular_velocity(self, actor: int, frame: int) -> Any:
        return self._vector(self._metrics.get_actor_angular_velocity(actor, frame))

    def _acceleration(self, actor: int, frame: int) -> Any:
        return self._vector(self._metrics.get_actor_acceleration(actor, frame))

    def _vector(self, found: Any) -> Any:
        return None if found is None else self._carla.Vector3D(*found)

    def _box(self, get: Callable[[int], Any], actor: int) -> Any:
        found = get(actor) if actor in self._actors else None
        if found is None:
            return None
        # Boxes of sensors have NaN and infinity.
        place, half = (
            vector if all(abs(x) < float("inf") for x in vector) else (0.0, 0.0, 0.0) for vector in found
        )
        return self._carla.BoundingBox(self._carla.Location(*place), self._carla.Vector3D(*half))
