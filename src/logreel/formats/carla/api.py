"""What ``logreel.carla`` offers: the simulator's queries, its replay, and its metrics, without the simulator."""

from __future__ import annotations

from logreel.formats.carla.blocked import blocked
from logreel.formats.carla.collisions import collisions
from logreel.formats.carla.info import info
from logreel.formats.carla.metrics import MetricsLog
from logreel.formats.carla.replay import Replay, Tick
from logreel.formats.carla.values import Box, Rotation, SceneLight, Transform, Vector, VehicleControl

__all__ = [
    "Box",
    "MetricsLog",
    "Replay",
    "Rotation",
    "SceneLight",
    "Tick",
    "Transform",
    "Vector",
    "VehicleControl",
    "blocked",
    "collisions",
    "info",
]
