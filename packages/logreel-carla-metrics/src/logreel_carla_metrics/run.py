"""Run a metric: a class in a Python file of the user, as the scenario runner's ``metrics_manager.py`` does."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from logreel import Log, LogError, NotFoundError, UsageError
from logreel_carla_metrics import town_map as maps
from logreel_carla_metrics import values
from logreel_carla_metrics.runner_log import RunnerLog

#: Name of the module of the user's file while it runs.
_MODULE = "logreel_metric"
_VALUES = (
    *("Vector2D", "Vector3D", "Location", "Rotation", "Transform", "BoundingBox"),
    *("TrafficLightState", "VehicleLightState", "LightGroup", "Color", "LightState", "VehicleControl"),
    *("GearPhysicsControl", "WheelPhysicsControl", "VehiclePhysicsControl"),
)
_MAP = ("Map", "Waypoint", "LaneType")
#: Modules that stand in for the scenario runner.
_RUNNER = ("srunner", "srunner.metrics", "srunner.metrics.examples", "srunner.metrics.examples.basic_metric")


class BasicMetric:
    """A metric: a subclass implements ``_create_metric``, which is called when the metric is made.

    town_map  map of the town, as ``carla.Map``
    log       the recording, as the scenario runner's ``MetricsLog``
    criteria  content of the criteria file, or None

    result  what ``_create_metric`` returned
    """

    def __init__(self, town_map: Any, log: Any, criteria: Any = None) -> None:
        self.result = self._create_metric(town_map, log, criteria)

    def _create_metric(self, town_map: Any, log: Any, criteria: Any) -> Any:
        """Compute the metric; a subclass must implement this method."""
        raise NotImplementedError(f"{type(self).__name__} has no method _create_metric")


class NoMap:
    """The map of a metric that was given none: it has a name only; everything else raises LogError."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, member: str) -> Any:
        raise LogError(
            f"the metric asks the map of {self.name or 'the town'} for {member}: a recording has no map",
            hint="pass an OpenDRIVE file as town_map='FILE.xodr'",
        )


def run_metric(
    log: Log,
    metric: str | os.PathLike[str],
    *,
    criteria: str | os.PathLike[str] | Any = None,
    town_map: str | os.PathLike[str] | None = None,
) -> Any:
    """Run the metric in a Python file on a recording; return what its method ``_create_metric`` returns.

    The file is executed with all rights of this program: run only files that you trust. It may import ``carla`` and
    ``srunner.metrics.examples.basic_metric``; if they are not installed, it gets modules with the values and the base
    class that metrics need.

    metric    path of the file, or ``path:Class``; without a class, the first one by name that derives from BasicMetric
    criteria  path of a JSON file that is passed to the metric, or its content; None: none
    town_map  path of an OpenDRIVE file; None: the metric gets a map that only has a name

    Raises OSError for files that cannot be read, NotFoundError for an unknown class, UsageError for a file without a
    metric or for invalid JSON, and LogError with the cause for exceptions of the metric.
    """
    path, name = _file_and_class(os.fspath(metric))
    content = _content(criteria)
    with metric_modules([os.path.dirname(os.path.abspath(path))]) as carla:
        module = _load(path)
        try:
            chosen = _class_of(module, name, path)
            found = _guarded(path, chosen, _map(carla, log, town_map), RunnerLog(log, carla), content)
        finally:
            sys.modules.pop(_MODULE, None)
        return getattr(found, "result", None)


def _file_and_class(metric: str) -> tuple[str, str]:
    """Return path and name of the class, which is empty if none is given."""
    path, colon, name = metric.rpartition(":")
    return (path, name) if colon and name.isidentifier() and not os.path.exists(metric) else (metric, "")


def _content(criteria: Any) -> Any:
    if not isinstance(criteria, (str, os.PathLike)):
        return criteria
    with open(criteria, "rb") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise UsageError(f"no JSON: {error}", path=os.fspath(criteria)) from None


def _load(path: str) -> ModuleType:
    """Execute the user's file and return it as a module."""
    with open(path, "rb"):
        pass
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise UsageError("a metric is a Python file, whose name ends in .py", path=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    old, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        _guarded(path, spec.loader.exec_module, module)
    finally:
        sys.dont_write_bytecode = old
    return module


def _class_of(module: ModuleType, name: str, path: str) -> Any:
    members = inspect.getmembers(module, inspect.isclass)
    found = {
        member: one
        for member, one in members
        if one.__module__ == _MODULE and any(base.__name__ == "BasicMetric" for base in one.__mro__[1:])
    }
    if name:
        if name not in found:
            raise NotFoundError("metric", name, found, path=path)
        return found[name]
    if not found:
        raise UsageError("no class that derives from BasicMetric", path=path)
    # As the scenario runner: classes that derive from it directly come first, by name.
    direct = [one for one in found.values() if one.__bases__[0].__name__ == "BasicMetric"]
    return (direct or list(found.values()))[0]


def _map(carla: Any, log: Log, town_map: str | os.PathLike[str] | None) -> Any:
    name = str(log.metadata["map"])
    if town_map is None:
        return NoMap(name)
    with open(town_map, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        return carla.Map(name, text)
    except UsageError as error:
        raise UsageError(error.text, path=os.fspath(town_map)) from None
    except Exception as error:
        raise UsageError(f"no OpenDRIVE map: {error}", path=os.fspath(town_map)) from error


def _guarded(path: str, call: Any, *args: Any) -> Any:
    """Call a function of the user; other exceptions than those of logreel become a LogError that names the line."""
    try:
        return call(*args)
    except LogError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        lines = [
            frame for frame in traceback.extract_tb(error.__traceback__) if _is_same(frame.filename, path)
        ]
        place = f" (line {lines[-1].lineno}, in {lines[-1].name})" if lines else ""
        raise LogError(f"the metric failed: {text}{place}", path=path) from error


def _is_same(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def stand_in_carla() -> ModuleType:
    """Return a module with the values of the package ``carla`` that a recording can give."""
    found = ModuleType("carla", "Values of the simulator's package, without the simulator.")
    for module, names in ((values, _VALUES), (maps, _MAP)):
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
