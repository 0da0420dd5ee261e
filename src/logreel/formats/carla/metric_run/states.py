"""States of vehicles and lights with the names of the simulator's Python package ``carla``."""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import Any

from logreel.formats.carla.metric_run.geometry import Values, Vector2D, Vector3D


class TrafficLightState(Enum):
    """State of a traffic light."""

    Red = 0
    Yellow = 1
    Green = 2
    Off = 3
    Unknown = 4


class VehicleLightState(IntFlag):
    """Lights of a vehicle."""

    NONE = 0
    Position = 1
    LowBeam = 2
    HighBeam = 4
    Brake = 8
    RightBlinker = 16
    LeftBlinker = 32
    Reverse = 64
    Fog = 128
    Interior = 256
    Special1 = 512
    Special2 = 1024
    All = 0xFFFFFFFF


class LightGroup(Enum):
    """Group of a street or building light."""

    NONE = 0
    Vehicle = 1
    Street = 2
    Building = 3
    Other = 4


class Color(Values):
    """A colour with components 0 to 255."""

    def __init__(self, r: int = 0, g: int = 0, b: int = 0, a: int = 255) -> None:
        self.r, self.g, self.b, self.a = r, g, b, a


class LightState(Values):
    """State of a street or building light."""

    def __init__(
        self,
        intensity: float = 0.0,
        color: Color | None = None,
        group: LightGroup = LightGroup.NONE,
        active: bool = False,
    ) -> None:
        self.intensity, self.color = intensity, Color() if color is None else color
        self.group, self.active = group, active


class VehicleControl(Values):
    """Controls of a vehicle."""

    def __init__(
        self,
        throttle: float = 0.0,
        steer: float = 0.0,
        brake: float = 0.0,
        hand_brake: bool = False,
        reverse: bool = False,
        manual_gear_shift: bool = False,
        gear: int = 0,
    ) -> None:
        self.throttle, self.steer, self.brake, self.hand_brake = throttle, steer, brake, hand_brake
        self.reverse, self.manual_gear_shift, self.gear = reverse, manual_gear_shift, gear


class _Members(Values):
    """Values that are given by name; the others are the defaults of the class."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class GearPhysicsControl(_Members):
    """A gear."""

    ratio = 1.0
    down_ratio = 0.5
    up_ratio = 0.65


class WheelPhysicsControl(_Members):
    """A wheel."""

    tire_friction = 2.0
    damping_rate = 0.25
    max_steer_angle = 70.0
    radius = 30.0
    max_brake_torque = 1500.0
    max_handbrake_torque = 3000.0

    def __init__(self, **values: Any) -> None:
        self.position = Vector3D()
        super().__init__(**values)


class VehiclePhysicsControl(_Members):
    """Physics of a vehicle."""

    max_rpm = 5000.0
    moi = 1.0
    damping_rate_full_throttle = 0.15
    damping_rate_zero_throttle_clutch_engaged = 2.0
    damping_rate_zero_throttle_clutch_disengaged = 0.35
    use_gear_autobox = True
    gear_switch_time = 0.5
    clutch_strength = 10.0
    final_ratio = 4.0
    mass = 1000.0
    drag_coefficient = 0.3

    def __init__(self, **values: Any) -> None:
        self.center_of_mass = Vector3D()
        self.torque_curve: list[Vector2D] = []
        self.steering_curve: list[Vector2D] = []
        self.forward_gears: list[GearPhysicsControl] = []
        self.wheels: list[WheelPhysicsControl] = []
        super().__init__(**values)
