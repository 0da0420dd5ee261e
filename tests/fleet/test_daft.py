"""Daft reads the same rows; run by ``make test-fleet``, which installs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logreel.errors import UsageError
from logreel.fleet import Plan, PlanTable, plan
from logreel.fleet.task_reader import RowChoice
from support.builders.fleets import rows_at_places

daft = pytest.importorskip("daft", reason="Daft is not installed; make test-fleet installs it")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def some(small_fleet: Path) -> Plan:
    return plan(small_fleet, topics=["vehicle_attitude", "/fix"], target_bytes=3000)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...], int]]:
    """Return a list that gets log, columns and rows of each table that Daft takes."""
    found = []
    whole = PlanTable.read

    def spied(self: PlanTable, task: Any, columns: list[str], condition: RowChoice) -> Iterator[Any]:
        for table in whole(self, task, columns, condition):
            found.append((task.path, tuple(columns), table.num_rows))
            yield table

    monkeypatch.setattr(PlanTable, "read", spied)
    return found


def test_a_frame_has_the_rows_and_columns_of_the_plan(some: Plan) -> None:
    from logreel.fleet.daft import datasource

    frame = datasource(some).read()
    own = PlanTable(some).to_arrow_reader().read_all()
    assert frame.column_names == own.schema.names
    assert frame.count_rows() == own.num_rows
    found = frame.to_arrow().select(["log", "time_ns", "topic", "latitude"]).to_pylist()
    key = lambda row: (row["log"], row["topic"], row["time_ns"])  # noqa: E731
    expected = own.select(["log", "time_ns", "topic", "latitude"]).to_pylist()
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_projection_and_conditions_reach_the_reader(
    some: Plan, small_dataset: Path, read: list[tuple[str, tuple[str, ...], int]]
) -> None:
    from logreel.fleet.daft import datasource

    own = rows_at_places(small_dataset, "vehicle_attitude", ["log", "time_ns", "q"])
    times = sorted(row["time_ns"] for row in own)
    edge = times[len(times) // 2]
    col = daft.col
    frame = datasource(some).read()
    late = frame.where((col("topic") == "vehicle_attitude") & (col("time_ns") >= edge)).select("log", "q")
    expected = [(row["log"], row["q"]) for row in own if row["time_ns"] >= edge]
    assert sorted((row["log"], row["q"]) for row in late.to_pylist()) == sorted(expected)
    assert {columns for _, columns, _ in read} == {("time_ns", "log", "q", "topic")}
    assert sum(n for _, _, n in read) < len(expected) + 17 * len(read)
    read.clear()
    path = own[0]["log"]
    one = frame.where(col("log") == path).select("time_ns")
    assert one.count_rows() == sum(row["log"] == path for row in own)
    assert {log for log, *_ in read} == {path}


def test_conditions_that_arrow_does_not_know_are_applied_by_daft(some: Plan, small_dataset: Path) -> None:
    from logreel.fleet.daft import datasource

    own = rows_at_places(small_dataset, "vehicle_attitude", ["log", "time_ns"])
    frame = datasource(some).read()
    found = frame.where(daft.col("log").endswith("log_0.ulg") & (daft.col("time_ns") % 2 == 0)).to_pylist()
    expected = [r for r in own if r["log"].endswith("log_0.ulg") and r["time_ns"] % 2 == 0]
    assert sorted(row["time_ns"] for row in found) == sorted(row["time_ns"] for row in expected)


def test_a_plan_without_messages_is_refused(tmp_path: Path) -> None:
    from logreel.fleet.daft import datasource

    (tmp_path / "a.txt").write_text("no log")
    with pytest.raises(UsageError, match="no log of the plan"):
        datasource(plan(tmp_path))
