"""Metrics of users run as with the scenario runner's script: same base class, methods and values, without a server."""

from __future__ import annotations

import ast
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import LogError, NotFoundError, UsageError
from logreel_carla_metrics import BasicMetric, run_metric
from logreel_carla_metrics.command import METRICS
from logreel_carla_metrics.run import metric_modules
from logreel_carla_metrics.runner_log import RunnerLog
from support.harness.cli_runner import Run, run
from support.samples.carla.builder import eventful
from support.samples.carla.drive import BIKE, CAMERA, HERO, LEAD, LIGHTS, WALKER, drive
from test_docs import run_page

carla: Any = logreel.carla
__all__ = ["run"]

APART = """
import json
import math
import carla
from srunner.metrics.examples.basic_metric import BasicMetric


class Apart(BasicMetric):
    '''How far the ego vehicle is from the first vehicle with a role.'''

    def _create_metric(self, town_map, log, criteria):
        ego = log.get_ego_vehicle_id()
        other = log.get_actor_ids_with_role_name("autopilot")[0]
        first, last = (f(a, b) for f, a, b in zip(
            (max, min), log.get_actor_alive_frames(ego), log.get_actor_alive_frames(other)))
        found = {}
        for frame in range(first, last):
            line = log.get_actor_transform(ego, frame).location - log.get_actor_transform(other, frame).location
            found[frame] = math.sqrt(line.x * line.x + line.y * line.y + line.z * line.z)
        assert isinstance(line, carla.Vector3D)
        print(json.dumps({"least": min(found.values()), "frames": len(found)}))
"""
LANE = """
import json
import math
from srunner.metrics.examples.basic_metric import BasicMetric


class ToLane(BasicMetric):
    def _create_metric(self, town_map, log, criteria):
        ego = log.get_ego_vehicle_id()
        found = []
        for frame in (1, 50, 100):
            place = log.get_actor_transform(ego, frame).location
            point = town_map.get_waypoint(place)
            aside = place - point.transform.location
            right = point.transform.get_right_vector()
            norm = math.sqrt(right.x * right.x + right.y * right.y + right.z * right.z)
            across = (aside.x * right.x + aside.y * right.y + aside.z * right.z) / (norm * norm) * right
            forward = point.transform.get_forward_vector()
            side = -1 if forward.x * aside.y - forward.y * aside.x < 0 else 1
            found.append(side * across.length())
        return found
"""
CRITERIA = """
from srunner.metrics.examples.basic_metric import BasicMetric


class Passed(BasicMetric):
    def _create_metric(self, town_map, log, criteria):
        return {name: one["test_status"] for name, one in criteria.items()}
"""
#: A street along x with a lane of 4 m on each side; the middle of the right lane is at y = 2 m in the simulator's axes.
STREET = """<?xml version="1.0"?>
<OpenDRIVE><header revMajor="1" revMinor="4"/>
<road id="7" length="400" junction="-1"><planView>
<geometry s="0" x="-300" y="0" hdg="0" length="400"><line/></geometry></planView>
<elevationProfile><elevation s="0" a="0.3" b="0" c="0" d="0"/></elevationProfile>
<lanes><laneSection s="0"><left><lane id="1" type="driving"><width sOffset="0" a="4" b="0" c="0" d="0"/></lane></left>
<center><lane id="0" type="none"/></center>
<right><lane id="-1" type="driving"><width sOffset="0" a="4" b="0" c="0" d="0"/></lane>
<lane id="-2" type="sidewalk"><width sOffset="0" a="2" b="0" c="0" d="0"/></lane></right></laneSection></lanes>
</road></OpenDRIVE>
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = tmp_path / "town.log"
    path.write_bytes(drive(6.0).bytes())
    return path


Write = Callable[[str, str], Path]


def test_a_metric_about_two_vehicles_prints_what_it_computes(run: Run, town: Path, write: Write) -> None:
    done = run("carla", "metrics", town, "--metric", write("apart.py", APART))
    assert (done.code, done.err) == (0, "")
    distances = carla.MetricsLog(town).get_distances(HERO, LEAD)
    found = json.loads(done.out)
    assert found["least"] == pytest.approx(distances[:-1].min())
    assert found["frames"] == len(distances) - 1


def test_a_metric_about_lanes_uses_the_given_map(run: Run, town: Path, write: Write) -> None:
    metric, street = write("lane.py", LANE), write("street.xodr", STREET)
    done = run("carla", "metrics", town, "--metric", metric, "--map", street, "--json")
    # The car drives at y = 2 m, in the middle of its lane.
    assert done.json["result"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)
    moved = write("moved.xodr", STREET.replace('y="0" hdg', 'y="0.5" hdg'))
    done = run("carla", "metrics", town, "--metric", metric, "--map", moved, "--json")
    assert done.json["result"] == pytest.approx([0.5, 0.5, 0.5], abs=1e-5)


def test_without_a_map_only_its_name_is_known(run: Run, town: Path, write: Write) -> None:
    done = run("carla", "metrics", town, "--metric", write("lane.py", LANE))
    assert done.code == 1
    assert "the metric asks the map of Town03 for get_waypoint" in done.err
    assert "--map FILE.xodr" in done.err
    named = LANE.replace("ego = log.get_ego_vehicle_id()", "return town_map.name")
    assert run_metric(logreel.open(town), write("named.py", named)) == "Town03"


def test_a_metric_gets_the_criteria(run: Run, town: Path, write: Write) -> None:
    criteria = write("c.json", json.dumps({"CollisionTest": {"test_status": "SUCCESS", "actual_value": 0}}))
    done = run("carla", "metrics", town, "--metric", write("c.py", CRITERIA), "--criteria", criteria)
    assert done.out == "{'CollisionTest': 'SUCCESS'}\n"
    done = run(
        "carla", "metrics", town, "--metric", write("c.py", CRITERIA), "--criteria", write("d.json", "{")
    )
    assert done.code == 2
    assert "no JSON" in done.err


def test_json_has_the_result_and_prints_go_to_stderr(run: Run, town: Path, write: Write) -> None:
    path = write("apart.py", APART + "        return len(found)\n")
    done = run("carla", "metrics", town, "--metric", path, "--json")
    assert done.json == {"path": str(town), "metric": str(path), "result": 118, "problems": []}
    assert "least" in done.err


def test_a_class_is_chosen_by_name_or_the_first_one_is_taken(town: Path, write: Write) -> None:
    text = """
from srunner.metrics.examples.basic_metric import BasicMetric

class Zebra(BasicMetric):
    def _create_metric(self, town_map, log, criteria):
        return "zebra"

class Ant(BasicMetric):
    def _create_metric(self, town_map, log, criteria):
        return "ant"

class Aardvark(Zebra):
    pass

class Other:
    pass
"""
    path, log = write("several.py", text), logreel.open(town)
    assert run_metric(log, path) == "ant"
    assert run_metric(log, f"{path}:Zebra") == run_metric(log, f"{path}:Aardvark") == "zebra"
    for name in ("Other", "Missing"):
        with pytest.raises(NotFoundError, match="Ant"):
            run_metric(log, f"{path}:{name}")
    with pytest.raises(UsageError, match="BasicMetric"):
        run_metric(log, write("none.py", "x = 1"))
    with pytest.raises(UsageError, match=r"\.py"):
        run_metric(log, write("metric.txt", text))
    with pytest.raises(OSError, match="missing"):
        run_metric(log, "missing.py")


def test_an_error_of_a_metric_names_its_line(run: Run, town: Path, write: Write) -> None:
    text = CRITERIA.replace("return {name", "return 1 / 0\n        return {name")
    done = run("carla", "metrics", town, "--metric", write("c.py", text))
    assert done.code == 1
    assert "ZeroDivisionError: division by zero (line 7, in _create_metric)" in done.err
    with pytest.raises(LogError, match="SyntaxError") as caught:
        run_metric(logreel.open(town), write("bad.py", "class"))
    assert isinstance(caught.value.__cause__, SyntaxError)
    with pytest.raises(LogError, match=r"carla.Client needs the simulator's Python package"):
        run_metric(logreel.open(town), write("client.py", "import carla\ncarla.Client()"))


def test_modules_and_paths_are_as_before_after_a_run(town: Path, write: Write, tmp_path: Path) -> None:
    write("helper_of_metric.py", "VALUE = 5")
    text = CRITERIA.replace(
        "return {", "import helper_of_metric\n        return helper_of_metric.VALUE\n        x = {"
    )
    before, path = set(sys.modules), list(sys.path)
    assert run_metric(logreel.open(town), write("c.py", text)) == 5
    assert sys.path == path
    gone = {"srunner", "carla", "logreel_metric", "srunner.metrics.examples.basic_metric"} - before
    assert not gone & set(sys.modules)
    sys.modules.pop("helper_of_metric")


def test_a_folder_for_results_is_not_taken_for_the_package(town: Path, write: Write, tmp_path: Path) -> None:
    for name in ("srunner/metrics/data", "carla"):
        (tmp_path / name).mkdir(parents=True)
    assert run_metric(logreel.open(town), write("c.py", CRITERIA), criteria={}) == {}
    assert not {"srunner", "carla"} & set(sys.modules)


def test_an_installed_scenario_runner_gives_the_base_class(town: Path, write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "srunner/metrics/examples"
    folder.mkdir(parents=True)
    for one in (folder, *list(folder.parents)[:2]):
        (one / "__init__.py").write_text("")
    (folder / "basic_metric.py").write_text(
        "class BasicMetric:\n"
        "    def __init__(self, *given):\n"
        "        self._create_metric(*given)\n"
        "        self.result = 'own'\n"
    )
    assert run_metric(logreel.open(town), write("c.py", CRITERIA), criteria={}) == "own"
    for name in [name for name in sys.modules if name.partition(".")[0] == "srunner"]:
        del sys.modules[name]


def test_a_metric_can_derive_from_the_class_of_logreel(town: Path, write: Write) -> None:
    line = "from srunner.metrics.examples.basic_metric import BasicMetric"
    text = CRITERIA.replace(line, "import logreel_carla_metrics as own").replace(
        "(BasicMetric)", "(own.BasicMetric)"
    )
    assert run_metric(logreel.open(town), write("c.py", text), criteria={}) == {}
    with pytest.raises(NotImplementedError):
        BasicMetric(None, None)


# ------------------------------------------------------------------------------------------------- the log


#: Methods that the documentation of the scenario runner's metrics lists.
DOCUMENTED = (
    *[
        "get_ego_vehicle_id",
        "get_actor_ids_with_role_name",
        "get_actor_ids_with_type_id",
        "get_actor_attributes",
    ],
    *[
        "get_actor_bounding_box",
        "get_traffic_light_trigger_volume",
        "get_actor_alive_frames",
        "get_collisions",
    ],
    *[
        "get_total_frame_count",
        "get_elapsed_time",
        "get_delta_time",
        "get_platform_time",
        "get_actor_acceleration",
    ],
    *["get_all_actor_accelerations", "get_actor_accelerations_at_frame", "get_actor_angular_velocity"],
    *["get_all_actor_angular_velocities", "get_actor_angular_velocities_at_frame", "get_vehicle_control"],
    *["get_vehicle_physics_control", "get_walker_speed", "get_actor_transform", "get_all_actor_transforms"],
    *["get_actor_transforms_at_frame", "get_actor_velocity", "get_all_actor_velocities"],
    *["get_actor_velocities_at_frame", "get_scene_light_state", "get_traffic_light_state"],
    *["is_traffic_light_frozen", "get_traffic_light_elapsed_time", "get_traffic_light_state_time"],
    *["get_vehicle_lights", "is_vehicle_light_active", "get_actor_collisions"],
)


@pytest.fixture(scope="module")
def parts() -> Any:
    """Return the log of a metric, the module carla, and the metrics of logreel."""
    log = logreel.open(drive().bytes())
    with metric_modules([]) as module:
        yield RunnerLog(log, module), module, carla.MetricsLog(log)


def test_the_log_has_every_documented_method(parts: Any) -> None:
    log, _, _ = parts
    assert [name for name in DOCUMENTED if not callable(getattr(log, name, None))] == []


def test_values_are_those_of_the_package_carla(parts: Any) -> None:
    log, module, plain = parts
    pose, due = log.get_actor_transform(HERO, 400), plain.get_actor_transform(HERO, 400)
    assert isinstance(pose, module.Transform)
    assert (pose.location.x, pose.location.y, pose.location.z) == due.location
    assert (pose.rotation.roll, pose.rotation.pitch, pose.rotation.yaw) == due.rotation
    assert tuple(log.get_actor_velocity(HERO, 400)) == plain.get_actor_velocity(HERO, 400)
    assert tuple(log.get_actor_acceleration(HERO, 400)) == plain.get_actor_acceleration(HERO, 400)
    assert tuple(log.get_actor_angular_velocity(HERO, 400)) == plain.get_actor_angular_velocity(HERO, 400)
    control, recorded = log.get_vehicle_control(HERO, 400), plain.get_vehicle_control(HERO, 400)
    assert isinstance(control, module.VehicleControl)
    assert (control.throttle, control.hand_brake, control.gear) == (
        recorded.throttle, recorded.handbrake, recorded.gear,
    )  # fmt: skip
    assert (control.manual_gear_shift, control.reverse) == (False, False)
    assert log.get_traffic_light_state(LIGHTS[0], 1) is module.TrafficLightState.Green
    assert log.get_traffic_light_state_time(LIGHTS[0], module.TrafficLightState.Green, 5) == 8.0
    assert log.get_traffic_light_state_time(LIGHTS[0], module.TrafficLightState.Off, 5) is None
    assert log.is_traffic_light_frozen(LIGHTS[0], 1) is False
    assert log.get_traffic_light_elapsed_time(LIGHTS[0], 2) == pytest.approx(0.05)
    lights = log.get_vehicle_lights(HERO, 400)
    assert module.VehicleLightState.LowBeam in lights
    assert log.is_vehicle_light_active(module.VehicleLightState.LowBeam, HERO, 400)
    assert log.get_vehicle_lights(103, 1) == [module.VehicleLightState.NONE]
    assert not log.is_vehicle_light_active(module.VehicleLightState.Brake, LIGHTS[0], 400)
    scene = log.get_scene_light_state(1, 100)
    assert (scene.intensity, scene.active, scene.color.r) == (5000, False, 242)
    assert scene.group is module.LightGroup.NONE
    assert log.get_walker_speed(WALKER, 200) == pytest.approx(1.4)
    box = log.get_actor_bounding_box(HERO)
    assert isinstance(box, module.BoundingBox)
    assert tuple(box.extent) == pytest.approx((2.35, 0.92, 0.72))
    assert tuple(log.get_traffic_light_trigger_volume(LIGHTS[0]).extent) == pytest.approx((2.5, 1.2, 1.5))


def test_physics_has_lists_of_values(parts: Any) -> None:
    log, module, plain = parts
    control, due = log.get_vehicle_physics_control(HERO, 300), plain.get_vehicle_physics_control(HERO, 300)
    assert control.max_rpm == due["max_rpm"]
    assert control.mass == due["mass"]
    assert [gear.ratio for gear in control.forward_gears] == [gear["ratio"] for gear in due["gears"]]
    assert [(p.x, p.y) for p in control.torque_curve] == [tuple(p.values()) for p in due["torque_curve"]]
    assert control.wheels[0].position.x == due["wheels"][0]["position"]["x"] / 100
    assert isinstance(control, module.VehiclePhysicsControl)
    assert log.get_vehicle_physics_control(WALKER, 300) is None


def test_frames_lists_and_missing_values(parts: Any) -> None:
    log, module, plain = parts
    assert log.get_total_frame_count() == 595
    assert log.get_delta_time(1) == 0.0
    assert log.get_delta_time(2) == pytest.approx(0.05)
    assert log.get_delta_time(9999) is None
    assert log.get_platform_time(3) == plain.get_platform_time(3)
    track = log.get_all_actor_transforms(BIKE)
    assert len(track) == 595
    assert [pose is None for pose in track] == [False] * 480 + [True] * 115
    assert len(log.get_all_actor_velocities(HERO, 5, 9)) == 5
    assert len(log.get_all_actor_accelerations(HERO, 5, 9)) == len(
        log.get_all_actor_angular_velocities(HERO, 5, 9)
    )
    everyone = log.get_actor_transforms_at_frame(7)
    assert set(everyone) == {1, 100, 101, 102, 103, 200, 300}
    assert log.get_actor_velocities_at_frame(7, [HERO, LIGHTS[0]])[LIGHTS[0]] is None
    assert set(log.get_actor_accelerations_at_frame(7)) == set(everyone)
    assert set(log.get_actor_angular_velocities_at_frame(7)) == {100, 101, 102, 103, 200}
    assert log.get_actor_attributes(BIKE)["type_id"] == "vehicle.yamaha.yzf"
    assert log.get_actor_attributes(BIKE)["destroyed"] == 481
    assert log.get_actor_attributes(BIKE)["created"] == 1
    place = log.get_actor_attributes(BIKE)["location"]
    assert isinstance(place, module.Location)
    assert (place.x, place.y, place.z) == plain.get_actor_attributes(BIKE)["location"]
    assert log.get_actor_attributes(CAMERA)["parent"] == HERO
    assert log.get_collisions(HERO) == [{"frame": f, "other_id": [LEAD]} for f in (515, 516, 517)]
    assert log.get_actor_collisions(HERO) == {515: [LEAD], 516: [LEAD], 517: [LEAD]}
    for method in (
        log.get_actor_attributes, log.get_actor_bounding_box, log.get_traffic_light_trigger_volume,
    ):  # fmt: skip
        assert method(9999) is None
    assert log.get_actor_alive_frames(9999) == (None, None)
    assert log.get_actor_transform(9999, 1) is None
    assert log.get_vehicle_lights(9999, 1) is None
    assert log.get_scene_light_state(9999, 1) is None


def test_boxes_of_sensors_without_numbers_are_empty() -> None:
    with metric_modules([]) as module:
        box = RunnerLog(logreel.open(eventful("0.9.14").bytes()), module).get_actor_bounding_box(1)
    assert tuple(box.location) == tuple(box.extent) == (0.0, 0.0, 0.0)


# ------------------------------------------------------------------------------------------ values and maps


def test_vectors_have_the_operators_of_the_package_carla(parts: Any) -> None:
    _, module, _ = parts
    a, b = module.Location(1.0, 2.0, 2.0), module.Location(x=4.0, y=6.0, z=2.0)
    assert tuple(b - a) == (3.0, 4.0, 0.0)
    assert tuple(a + b) == (5.0, 8.0, 4.0)
    assert tuple(2.0 * a) == tuple(a * 2.0) == (2.0, 4.0, 4.0)
    assert tuple(a / 2.0) == (0.5, 1.0, 1.0)
    assert (a.length(), a.distance(b), a.distance_2d(b), a.squared_length()) == (3.0, 5.0, 5.0, 9.0)
    assert (a.dot(b), a.dot_2d(b), tuple(module.Vector3D(1, 0, 0).cross(module.Vector3D(0, 1, 0)))) == (
        20.0, 16.0, (0.0, 0.0, 1.0),
    )  # fmt: skip
    assert a == module.Location(1.0, 2.0, 2.0)
    assert a != b
    assert module.Vector3D(1, 0, 0).get_vector_angle(module.Vector3D(0, 2, 0)) == pytest.approx(math.pi / 2)
    assert tuple(module.Vector3D(0, 3, 4).make_unit_vector()) == (0.0, 0.6, 0.8)


def test_transforms_turn_as_in_the_simulator(parts: Any) -> None:
    _, module, _ = parts
    pose = module.Transform(module.Location(10, 0, 0), module.Rotation(yaw=90.0))
    assert tuple(pose.get_forward_vector()) == pytest.approx((0.0, 1.0, 0.0))
    assert tuple(pose.get_right_vector()) == pytest.approx((-1.0, 0.0, 0.0))
    assert tuple(pose.get_up_vector()) == pytest.approx((0.0, 0.0, 1.0))
    assert tuple(pose.transform(module.Location(1, 2, 3))) == pytest.approx((8.0, 1.0, 3.0))
    box = module.BoundingBox(module.Location(0, 0, 1), module.Vector3D(2, 1, 1))
    assert box.contains(module.Location(10, 1.9, 0.1), pose)
    assert not box.contains(module.Location(11.9, 0, 0.1), pose)
    assert len(box.get_world_vertices(pose)) == 8


def curve(shape: str, length: float = 80.0, heading: float = 0.3) -> str:
    geometry = f'<geometry s="0" x="5" y="-7" hdg="{heading}" length="{length}">{shape}</geometry>'
    old = '<geometry s="0" x="-300" y="0" hdg="0" length="400"><line/></geometry>'
    assert old in STREET
    return STREET.replace(old, geometry)


@pytest.mark.parametrize(
    ("shape", "curvature"),
    [
        ("<line/>", lambda s: 0.0),
        ('<arc curvature="0.02"/>', lambda s: 0.02),
        ('<arc curvature="0"/>', lambda s: 0.0),
        ('<spiral curvStart="0" curvEnd="-0.03"/>', lambda s: -0.03 * s / 80.0),
    ],
)
def test_waypoints_are_in_the_middle_of_the_lane(parts: Any, shape: str, curvature: Any) -> None:
    _, module, _ = parts
    town = module.Map("x", curve(shape))
    # The reference line by small steps.
    x, y, heading, steps = 5.0, -7.0, 0.3, 8000
    for n in range(steps):
        s, step = n * 80.0 / steps, 80.0 / steps
        if n and n % 1500 == 0:
            # The right lane, 2 m to the right of the line.
            right = x + 2 * math.sin(heading), y - 2 * math.cos(heading)
            found = town.get_waypoint(module.Location(right[0], -right[1], 0.3))
            assert (found.road_id, found.lane_id, found.section_id) == (7, -1, 0)
            assert found.s == pytest.approx(s, abs=0.02)
            place = found.transform.location
            assert (place.x, -place.y, place.z) == pytest.approx((*right, 0.3), abs=0.02)
            assert found.transform.rotation.yaw == pytest.approx(-math.degrees(heading), abs=0.1)
            left = found.get_left_lane()
            assert left.lane_id == 1
            assert left.transform.location.distance(place) == pytest.approx(4.0, abs=0.001)
            turned = (left.transform.rotation.yaw - found.transform.rotation.yaw) % 360
            assert turned == pytest.approx(180.0)
        heading += curvature(s) * step / 2
        x, y = x + math.cos(heading) * step, y + math.sin(heading) * step
        heading += curvature(s) * step / 2


@pytest.mark.parametrize(
    "shape",
    [
        '<poly3 a="0" b="0" c="0.01" d="0.0001"/>',
        '<paramPoly3 aU="0" bU="80" cU="0" dU="0" aV="0" bV="0" cV="64" dV="51.2"/>',
        '<paramPoly3 pRange="arcLength" aU="0" bU="1" cU="0" dU="0" aV="0" bV="0" cV="0.01" dV="0.0001"/>',
    ],
)
def test_polynomials_give_the_same_line(parts: Any, shape: str) -> None:
    _, module, _ = parts
    town = module.Map("x", curve(shape, heading=0.0))
    u = 40.0
    v, slope = 0.01 * u**2 + 0.0001 * u**3, math.atan(0.02 * u + 0.0003 * u**2)
    right = 5 + u + 2 * math.sin(slope), -7 + v - 2 * math.cos(slope)
    found = town.get_waypoint(module.Location(right[0], -right[1], 0.3))
    assert found.s == pytest.approx(u, abs=0.02)
    assert (found.transform.location.x, -found.transform.location.y) == pytest.approx(right, abs=0.02)


def test_lanes_are_chosen_by_type_and_places_off_the_road_can_be_refused(parts: Any) -> None:
    _, module, _ = parts
    town = module.Map("x", STREET)
    place = module.Location(0.0, 5.2, 0.3)
    assert town.get_waypoint(place).lane_id == -1
    assert town.get_waypoint(place, lane_type=module.LaneType.Sidewalk).lane_id == -2
    assert town.get_waypoint(place, lane_type=module.LaneType.Any).lane_id == -2
    assert town.get_waypoint(place, project_to_road=False) is None
    assert town.get_waypoint(place, lane_type=module.LaneType.Biking) is None
    assert town.get_waypoint(module.Location(0, 5, 0)).get_right_lane().lane_type == module.LaneType.Sidewalk
    assert town.get_waypoint(module.Location(0, -1, 0)).get_right_lane() is None
    offset = STREET.replace("<lanes>", '<lanes><laneOffset s="0" a="1" b="0" c="0" d="0"/>')
    assert module.Map("x", offset).get_waypoint(
        module.Location(0, 2, 0.3)
    ).transform.location.y == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no OpenDRIVE map"),
        ("<OpenDRIVE/>", "no road"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><OpenDRIVE/>', "no document type"),
        ("<a>" * 100, "levels"),
        (STREET.replace('length="400"><line', 'length="nan"><line'), "valid number"),
        (STREET.replace("<line/>", "<circle/>"), "circle"),
        (STREET.replace('length="400"><line', 'length="4e12"><line'), "roads of more than"),
    ],
)
def test_texts_that_are_no_map_are_refused(run: Run, town: Path, write: Write, text: str, error: str) -> None:
    done = run("carla", "metrics", town, "--metric", write("lane.py", LANE), "--map", write("x.xodr", text))
    assert done.code == 2
    assert error in done.err
    assert "x.xodr" in done.err


# --------------------------------------------------------------------------------------------------- the package

PACKAGE = Path(__file__).parents[1]


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("README.md", (PACKAGE / "README.md").read_text(encoding="utf-8"))


def test_the_readme_has_every_option() -> None:
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert all(f"`{flag}" in text for option in METRICS.options for flag in option.flags)
    assert all(example.line in text and example.text in text for example in METRICS.examples)


def test_only_public_modules_of_logreel_are_imported() -> None:
    imported = set[str]()
    for path in (PACKAGE / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    assert {name for name in imported if name.partition(".")[0] == "logreel"} == {"logreel", "logreel.plugin"}
