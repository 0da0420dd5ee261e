"""Scenarios of CARLA's recordings: a player of our own, by the standard, drives where the recording did."""

from __future__ import annotations

import bisect
import importlib.util
import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import logreel
from logreel.errors import LogError
from support.samples.carla.drive import drive as carla_drive
from support.samples.rosbag.builder import drive


class Pose(NamedTuple):
    place: np.ndarray
    angles: np.ndarray


class Player:
    """Plays a scenario: teleports, then trajectories with absolute times, linear between their vertices."""

    def __init__(self, path: Path) -> None:
        root = ET.parse(path).getroot()
        assert root.tag == "OpenSCENARIO"
        self.entities = {str(one.get("name")): one for one in root.iterfind("Entities/ScenarioObject")}
        self.begin = {
            str(one.get("entityRef")): pose(one.find("PrivateAction/TeleportAction/Position"))
            for one in root.iterfind("Storyboard/Init/Actions/Private")
        }
        self.ways: dict[str, tuple[list[float], list[Pose]]] = {}
        for group in root.iterfind("Storyboard/Story/Act/ManeuverGroup"):
            (ref,) = group.iterfind("Actors/EntityRef")
            (action,) = group.iter("FollowTrajectoryAction")
            timing = action.find("TimeReference/Timing")
            assert timing is not None
            assert timing.attrib == {"domainAbsoluteRelative": "absolute", "scale": "1", "offset": "0"}
            vertices = action.findall("Trajectory/Shape/Polyline/Vertex")
            times = [float(str(vertex.get("time"))) for vertex in vertices]
            assert times == sorted(times)
            self.ways[str(ref.get("entityRef"))] = times, [pose(v.find("Position")) for v in vertices]
        (stop,) = root.iterfind("Storyboard/StopTrigger//SimulationTimeCondition")
        self.end = float(str(stop.get("value")))

    def at(self, name: str, time: float) -> Pose:
        if name not in self.ways:
            return self.begin[name]
        times, poses = self.ways[name]
        after = bisect.bisect_right(times, time)
        if after in (0, len(times)):
            return poses[0 if after == 0 else -1]
        share = (time - times[after - 1]) / (times[after] - times[after - 1])
        a, b = poses[after - 1], poses[after]
        return Pose(a.place + share * (b.place - a.place), a.angles + share * (b.angles - a.angles))


def pose(position: Any) -> Pose:
    (world,) = position
    assert world.tag == "WorldPosition"
    x, y, z, h, p, r = (float(world.get(name)) for name in "xyzhpr")
    return Pose(np.array([x, y, z]), np.array([r, p, h]))


def turned(angles: np.ndarray) -> np.ndarray:
    """Return the matrix of a heading, then a pitch, then a roll about the axes that turn along."""
    r, p, h = angles
    about_z = np.array([[math.cos(h), -math.sin(h), 0], [math.sin(h), math.cos(h), 0], [0, 0, 1]])
    about_y = np.array([[math.cos(p), 0, math.sin(p)], [0, 1, 0], [-math.sin(p), 0, math.cos(p)]])
    about_x = np.array([[1, 0, 0], [0, math.cos(r), -math.sin(r)], [0, math.sin(r), math.cos(r)]])
    return np.asarray(about_z @ about_y @ about_x)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[logreel.Log, Player]:
    folder = tmp_path_factory.mktemp("scenario")
    (folder / "a.log").write_bytes(carla_drive(10.0).bytes())
    log = logreel.open(folder / "a.log")
    done = logreel.convert(log, folder / "a.xosc")
    assert done.skipped == ()
    return log, Player(folder / "a.xosc")


def test_a_replay_is_within_a_centimetre_of_the_recording(played: tuple[logreel.Log, Player]) -> None:
    log, player = played
    ch = log["position"]
    count = 0
    start = min(
        int(time)
        for time, number in zip(
            ch.to_arrow()["time"].cast("int64").to_pylist(), ch["id"].tolist(), strict=True
        )
        if any(name.endswith(f"_{number}") for name in player.entities)
    )
    table = zip(
        ch.to_arrow()["time"].cast("int64").to_pylist(), ch["id"].tolist(),
        *(ch[f"location.{axis}"].tolist() for axis in "xyz"), strict=True,
    )  # fmt: skip
    for time, number, x, y, z in table:
        name = next((one for one in player.entities if one.endswith(f"_{number}")), None)
        if name is None:
            continue
        found = player.at(name, (time - start) / 1e9)
        # Centimetres, and y to the right.
        assert np.linalg.norm(found.place - np.array([x, -y, z]) / 100) < 0.01
        count += 1
    assert count > 500
    assert len(player.ways) >= 2
    assert player.end > 9


def test_angles_are_those_of_the_recording(played: tuple[logreel.Log, Player]) -> None:
    log, player = played
    name = max(player.ways, key=lambda one: len(player.ways[one][0]))
    rows = log["position"]["id"] == int(name.rpartition("_")[2])
    yaw = np.radians(log["position"]["rotation.yaw"][rows].astype(np.float64))
    pitch = np.radians(log["position"]["rotation.pitch"][rows].astype(np.float64))
    for n, pose_then in enumerate(player.ways[name][1]):
        ahead = turned(pose_then.angles) @ [1, 0, 0]
        # The simulator turns to the right, and pitches up.
        wanted = [
            math.cos(yaw[n]) * math.cos(pitch[n]), -math.sin(yaw[n]) * math.cos(pitch[n]), math.sin(pitch[n]),
        ]  # fmt: skip
        assert np.allclose(ahead, wanted, atol=1e-5)


def test_entities_have_what_the_standard_demands(played: tuple[logreel.Log, Player]) -> None:
    _, player = played
    kinds = set()
    for one in player.entities.values():
        (entity,) = one
        kinds.add(entity.tag)
        parts = [part.tag for part in entity]
        if entity.tag == "Vehicle":
            assert parts == ["BoundingBox", "Performance", "Axles", "Properties"]
            assert entity.get("vehicleCategory") in ("car", "truck", "van", "bus", "bicycle", "motorbike")
        else:
            assert (entity.tag, parts) == ("Pedestrian", ["BoundingBox", "Properties"])
        size = entity.find("BoundingBox/Dimensions")
        assert size is not None
        assert float(str(size.get("length"))) > 0
    assert kinds == {"Vehicle", "Pedestrian"}
    assert set(player.begin) == set(player.entities)


def test_it_is_valid_by_the_schemas_of_asam(tmp_path: Path) -> None:
    etree: Any = pytest.importorskip("lxml.etree", reason="needs lxml")
    # Only its files are used: it imports more than is needed here.
    spec = importlib.util.find_spec("qc_openscenario")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs asam-qc-openscenarioxml")
    schemas = Path(spec.submodule_search_locations[0]) / "schema"
    (tmp_path / "a.log").write_bytes(carla_drive(3.0).bytes())
    logreel.convert(tmp_path / "a.log", tmp_path / "a.xosc")
    for version in ("1.0.0", "1.2.0"):
        schema = etree.XMLSchema(etree.parse(schemas / version / "OpenSCENARIO.xsd"))
        schema.assertValid(etree.parse(tmp_path / "a.xosc"))


def test_intervals_and_logs_without_actors(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(10.0).bytes())
    logreel.convert(tmp_path / "a.log", tmp_path / "b.xosc", start="+2s", end="+4s")
    assert 1.8 < Player(tmp_path / "b.xosc").end < 2.1
    with pytest.raises(LogError, match="no channel that holds actors"):
        logreel.convert(drive(), tmp_path / "c.xosc")
    assert not (tmp_path / "c.xosc").exists()
