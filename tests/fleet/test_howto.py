"""The examples of docs/howto/fleet.md with engines of others; run by ``make test-fleet``, which installs these."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import logreel
from logreel.fleet import PlanTable, plan
from support.samples.ulog.builder import flight

pytestmark = pytest.mark.filterwarnings("ignore")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "fleet.md"
EDGE = 75_000_000_000


def example(heading: str) -> str:
    """Return the Python code of a section of the page."""
    section = re.split(
        r"^##+ ", PAGE.read_text().split(f"\n### {heading}\n")[1], maxsplit=1, flags=re.MULTILINE
    )[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found, heading
    return found[1]


def run(heading: str, **names: Any) -> dict[str, Any]:
    """Execute the example of a section; return its names."""
    found: dict[str, Any] = {"logreel": logreel, **names}
    exec(compile(example(heading), f"{PAGE.name}: {heading}", "exec"), found)  # noqa: S102
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with two logs and a file that is none."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "monday.ulg").write_bytes(flight(2.0))
    (tmp_path / "logs" / "tuesday.ulg").write_bytes(flight(1.0, 2)[:-2000])
    (tmp_path / "logs" / "notes.txt").write_text("no log")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rows(folder: Path) -> list[tuple[str, int]]:
    """Return log and time of all rows that the examples read."""
    table = PlanTable(plan("logs", topics="vehicle_attitude")).to_arrow_reader(["log", "time_ns"]).read_all()
    return sorted(zip(table["log"].to_pylist(), table["time_ns"].to_pylist(), strict=True))


@pytest.fixture
def late(rows: list[tuple[str, int]]) -> int:
    """Return how many of them are after the time of the examples, which are some and not all."""
    found = sum(time > EDGE for _, time in rows)
    assert 0 < found < len(rows)
    return found


def test_the_example_with_ray_runs(folder: Path, late: int) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed; make test-fleet installs it")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        run("Ray")
    finally:
        ray.shutdown()
    table = pq.read_table(folder / "late")
    assert (table.column_names, table.num_rows) == (["log", "q"], late)


def test_the_example_with_daft_runs(late: int) -> None:
    pytest.importorskip("daft", reason="Daft is not installed; make test-fleet installs it")
    found = run("Daft")["late"]
    assert (found.column_names, found.num_rows) == (["log", "q"], late)


def test_the_example_with_dask_runs(rows: list[tuple[str, int]]) -> None:
    pytest.importorskip("dask.dataframe", reason="Dask is not installed; make test-fleet installs it")
    found = run("Dask")["frame"][["log", "time_ns"]].compute()
    assert sorted(zip(found["log"], found["time_ns"], strict=True)) == rows


class SparkAlike:
    """What the example calls of Spark, in this process: a stand-in where Spark, which needs Java, is not installed."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def range(self, end: int, numPartitions: int) -> SparkAlike:  # noqa: N803
        self.numbers = list(range(end))
        return self

    def mapInArrow(self, work: Any, columns: str) -> pa.Table:  # noqa: N802
        names = [one.split()[0] for one in columns.split(",")]
        batches = [pa.record_batch({"id": [number]}) for number in self.numbers]
        return pa.Table.from_batches(list(work(iter(batches)))).select(names)


@pytest.fixture
def spark() -> Iterator[Any]:
    """Return a session of Spark, or what stands for it."""
    if not shutil.which("java"):
        yield SparkAlike()
        return
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        yield SparkAlike()
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
        yield session
        session.stop()


def test_the_example_with_spark_runs(spark: Any, rows: list[tuple[str, int]]) -> None:
    found = run("Spark", spark=spark)["frame"]
    table = found if isinstance(found, pa.Table) else found.toArrow()
    assert sorted(zip(table["log"].to_pylist(), table["time_ns"].to_pylist(), strict=True)) == rows
