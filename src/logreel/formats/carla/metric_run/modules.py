"""Modules that a metric imports: the simulator's own if they are installed, else ones with the same names."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from logreel.formats.carla.metric_run import geometry, states, town_map
from logreel.formats.carla.metric_run.basic_metric import BasicMetric

_GEOMETRY = ("Vector2D", "Vector3D", "Location", "Rotation", "Transform", "BoundingBox")
_STATES = (
    *("TrafficLightState", "VehicleLightState", "LightGroup", "Color", "LightState", "VehicleControl"),
    *("GearPhysicsControl", "WheelPhysicsControl", "VehiclePhysicsControl"),
)
_MAP = ("Map", "Waypoint", "LaneType")
#: Modules that stand in for the scenario runner.
_RUNNER = ("srunner", "srunner.metrics", "srunner.metrics.examples", "srunner.metrics.examples.basic_metric")


def stand_in_carla() -> ModuleType:
    """Return a module with the values of the package ``carla`` that a recording can give."""
    found = ModuleType("carla", "Values of the simulator's package, without the simulator.")
    for module, names in ((geometry, _GEOMETRY), (states, _STATES), (town_map, _MAP)):
        for name in names:
            setattr(found, name, getattr(module, name))

    def missing(name: str) -> Any:
        raise AttributeError(f"carla.{name} needs the simulator's Python package: pip install carla")

    found.__getattr__ = missing  # type: ignore[method-assign]
    return found


@contextmanager
def metric_modules(path: list[str]) -> Iterator[Any]:
    """Make ``carla`` and ``srunner.metrics.examples.basic_metric`` importable; yield the module ``carla``.

    Modules and paths for imports are as before afterwards; packages that were imported otherwise stay.

    path  folders that are searched first
    """
    old_path, old_modules, added = list(sys.path), dict(sys.modules), set[str]()
    sys.path[:0] = path
    try:
        if not _is_installed("carla"):
            sys.modules["carla"] = stand_in_carla()
            added.add("carla")
        if not _is_installed(_RUNNER[-1]):
            for name in _RUNNER:
                sys.modules[name] = ModuleType(name)
                # A package has a path, even if nothing is there.
                sys.modules[name].__path__ = []
                added.add(name)
            sys.modules[_RUNNER[-1]].BasicMetric = BasicMetric  # type: ignore[attr-defined]
        yield importlib.import_module("carla")
    finally:
        sys.path[:] = old_path
        for name in added:
            sys.modules.pop(name, None)
            if name in old_modules:
                sys.modules[name] = old_modules[name]


def _is_installed(name: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    # A folder with the same name, such as that of results, is found as a package without origin.
    return spec is not None and spec.origin is not None
