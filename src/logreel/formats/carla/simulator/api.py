"""The public module ``logreel.carla``: the simulator's queries, replay and metrics, computed from a recording.

It only hands on names: ``Format.api`` returns it, and users get it as ``logreel.carla``.
"""

from __future__ import annotations

from logreel.formats.carla.simulator.info import info
from logreel.formats.carla.simulator.metrics import MetricsLog
from logreel.formats.carla.simulator.queries import blocked, collisions
from logreel.formats.carla.simulator.replay import Replay, write_ticks
from logreel.formats.carla.simulator.trajectories import TrajectoriesWritten, write_trajectories
from logreel.formats.carla.simulator.values import (
    Axes,
    Box,
    Poses,
    Rotation,
    SceneLight,
    Tick,
    Transform,
    Vector,
    VehicleControl,
)

__all__ = [
    "Axes",
    "Box",
    "MetricsLog",
    "Poses",
    "Replay",
    "Rotation",
    "SceneLight",
    "Tick",
    "TrajectoriesWritten",
    "Transform",
    "Vector",
    "VehicleControl",
    "blocked",
    "collisions",
    "info",
    "write_ticks",
    "write_trajectories",
]
