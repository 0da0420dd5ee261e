"""What the documents of the scenario runner say about metrics ("Metrics module"), one test for each capability."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.harness.cli_runner import Run, run
from support.samples.carla.drive import LEAD, drive

__all__ = ["run"]
Write = Callable[[str, str], Path]


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = tmp_path / "town.log"
    path.write_bytes(drive().bytes())
    return path


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


METRIC = """
from srunner.metrics.examples.basic_metric import BasicMetric


class Mine(BasicMetric):
    def _create_metric(self, town_map, log, criteria):
        print(log.get_total_frame_count(), town_map.name, criteria)
"""


def test_a_metric_is_a_child_of_basic_metric_with_one_method(run: Run, town: Path, write: Write) -> None:
    """A metric derives from BasicMetric and needs only one method ("Define the metrics")."""
    done = run("carla", "metrics", town, "--metric", write("mine.py", METRIC))
    assert done.out == "595 Town03 None\n"


def test_criteria_are_passed_as_a_dictionary(run: Run, town: Path, write: Write) -> None:
    """The optional file of criteria becomes a dictionary ("Structure of the module", criteria)."""
    criteria = write("c.json", '{"Collision": {"test_status": "FAILURE"}}')
    done = run("carla", "metrics", town, "--metric", write("mine.py", METRIC), "--criteria", criteria)
    assert done.out == "595 Town03 {'Collision': {'test_status': 'FAILURE'}}\n"


def test_the_simulation_is_not_played_again_for_a_metric(run: Run, town: Path, write: Write) -> None:
    """Metrics are computed from the recording ("Metrics module"); here also without a running server."""
    metric = METRIC.replace(
        "log.get_total_frame_count()", "log.get_actor_collisions(log.get_ego_vehicle_id())"
    )
    done = run("carla", "metrics", town, "--metric", write("mine.py", metric))
    assert done.out.startswith(f"{{515: [{LEAD}], 516: [{LEAD}], 517: [{LEAD}]}}")
