"""Ray reads the same rows and writes the same dataset; run by ``make test-fleet``, which installs it."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logreel.fleet import Dataset, ingest, plan, verify
from support.builders.fleets import firmware_log, make_fleet, rows_at_places
from support.harness.cli_runner import environment
from support.harness.faults import Faults, started_ingest

pytest.importorskip("ray", reason="Ray is not installed; make test-fleet installs it")

pytestmark = pytest.mark.filterwarnings("ignore")
FILES = int(os.environ.get("LOGREEL_FLEET", "40"))
SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    return Faults(tmp_path_factory.mktemp("ray") / "faults")


@pytest.fixture(scope="module")
def cluster(faults: Faults) -> Iterator[Any]:
    """Return Ray, connected to a cluster of two workers on this machine."""
    import ray

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{faults.folder}{os.pathsep}{SRC}{os.pathsep}{SRC.parent / 'tests'}"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def content(dataset: Path) -> dict[str, str]:
    return {
        path.relative_to(dataset).as_posix(): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(dataset.rglob("*"))
        if path.is_file()
    }


def test_messages_of_a_plan_are_filtered_and_projected_by_ray(
    cluster: Any, small_fleet: Path, small_dataset: Path, tmp_path: Path
) -> None:
    from logreel.fleet.ray import datasource

    found = plan(small_fleet, topics="vehicle_attitude", target_bytes=3000)
    assert len(found) > 20
    data = cluster.data.read_datasource(datasource(found))
    own = rows_at_places(small_dataset, "vehicle_attitude", ["log", "time_ns", "q"])
    assert data.count() == len(own)
    from ray.data.expressions import col

    edge = sorted(row["time_ns"] for row in own)[len(own) // 2]
    late = data.filter(expr=col("time_ns") >= edge).select_columns(["log", "time_ns", "q"])
    late.write_parquet(str(tmp_path / "late"))
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "late")
    expected = [row for row in own if row["time_ns"] >= edge]
    key = lambda row: (row["log"], row["time_ns"])  # noqa: E731
    assert sorted(table.select(["log", "time_ns", "q"]).to_pylist(), key=key) == sorted(expected, key=key)


def test_projection_and_condition_reach_the_reader(small_fleet: Path) -> None:
    from ray.data.expressions import col

    from logreel.fleet.ray import datasource

    source = datasource(plan(small_fleet, topics="vehicle_attitude"))
    everything = [block for task in source.get_read_tasks(1) for block in task()]
    narrow = source.apply_projection({"q": "q"}).apply_predicate(col("time_ns") < 0)
    blocks = [block for task in narrow.get_read_tasks(1) for block in task()]
    assert {tuple(block.column_names) for block in blocks} == {("q",)}
    assert sum(block.num_rows for block in blocks) == 0
    assert sum(block.num_rows for block in everything) > 100


def test_one_row_per_log(cluster: Any, small_fleet: Path, small_dataset: Path) -> None:
    from logreel.fleet.ray import datasource

    data = cluster.data.read_datasource(datasource(plan(small_fleet, target_bytes=50_000), rows="logs"))
    found = {row["log"]: (row["status"], row["rows"]) for row in data.take_all()}
    own = Dataset(small_dataset).logs().to_pylist()
    assert found == {path: (row["status"], row["rows"]) for row in own for path in row["paths"]}


def test_topics_together_have_the_columns_of_all(cluster: Any, small_fleet: Path) -> None:
    from logreel.fleet.ray import datasource

    found = plan(small_fleet, topics=["odd", "/fix"])
    rows = cluster.data.read_datasource(datasource(found)).take_all()
    topics = {row["topic"] for row in rows}
    assert topics == {"odd", "/fix"}
    assert all((row["latitude"] is None) == (row["topic"] == "odd") for row in rows)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_fleet(tmp_path_factory.mktemp("logs"), FILES)


@pytest.fixture(scope="module")
def local(files: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the files of the dataset that the local engine writes."""
    path = tmp_path_factory.mktemp("local") / "fleet"
    done = ingest(files, path, workers=1, target_bytes=400_000)
    assert len(done.new) + len(done.copies) + len(done.ignored) == FILES + 1
    return content(path)


def test_the_dataset_is_the_same_also_when_a_worker_is_killed_and_a_disk_fails(
    cluster: Any, files: Path, local: dict[str, str], tmp_path: Path, faults: Faults
) -> None:
    ingest(files, tmp_path / "ray", engine="ray", target_bytes=400_000)
    assert content(tmp_path / "ray") == local
    faults.mark("killed", "log_3.bddf")
    faults.mark("killed", "log_13.bag", after=2)
    faults.mark("failing", "log_12.ulg", after=3)
    ingest(files, tmp_path / "faulty", engine="ray", target_bytes=400_000)
    assert faults.left == []
    assert content(tmp_path / "faulty") == local


def test_an_interrupted_run_is_continued(
    cluster: Any, files: Path, local: dict[str, str], tmp_path: Path
) -> None:
    """Ctrl-C ends a run with a cluster of its own; that of the tests continues it."""
    child = started_ingest(files, tmp_path / "fleet", Faults(tmp_path / "waiting"), "ray")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert not verify(tmp_path / "fleet").wrong
    assert 0 < len(Dataset(tmp_path / "fleet").rows) <= FILES
    ingest(files, tmp_path / "fleet", engine="ray", target_bytes=400_000)
    assert content(tmp_path / "fleet") == local


def test_a_cluster_that_exists_is_used_also_with_a_number_of_workers(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.ulg").write_bytes(firmware_log(1, later=False))
    line = f"-m logreel fleet ingest {tmp_path / 'logs'} -o {tmp_path / 'fleet'} --engine ray --workers 1"
    address = cluster.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, *line.split()],
        env={**environment(), "RAY_ADDRESS": address},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert Dataset(tmp_path / "fleet").table("odd").num_rows == 20
    assert cluster.is_initialized()
    assert cluster.cluster_resources()["CPU"] == 2


def test_an_address_without_a_cluster_is_one_sentence(tmp_path: Path) -> None:
    line = f"-m logreel fleet ingest {tmp_path} -o {tmp_path / 'fleet'} --engine ray"
    (tmp_path / "a.ulg").write_bytes(firmware_log(1, later=False))
    with socket.socket() as taken:
        # Bound, but nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, *line.split()],
            env={**environment(), "RAY_ADDRESS": address},
            capture_output=True,
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        f"logreel: no cluster of Ray answers at {address}: connection refused"
    ]
