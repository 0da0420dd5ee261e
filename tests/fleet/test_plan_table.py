"""A plan as one table: the same rows as the logs, and nothing read that a condition leaves out."""

from __future__ import annotations

import operator
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.fleet import Dataset, Plan, PlanTable, plan, scan_polars
from logreel.fleet.task_reader import TaskReader
from logreel.fleet.topic_schema import TopicSchema
from support.samples.ulog.builder import flight

TOPICS = ("vehicle_attitude", "odd", "/fix")


@pytest.fixture(scope="module")
def some(small_fleet: Path) -> Plan:
    return plan(small_fleet, topics=TOPICS, target_bytes=3000)


@pytest.fixture(scope="module")
def table(some: Plan) -> PlanTable:
    return PlanTable(some)


@pytest.fixture(scope="module")
def rows(small_dataset: Path, table: PlanTable) -> list[dict[str, Any]]:
    """Return the rows of the topics in the dataset, with all columns of the table, for each place of their logs."""
    found = []
    logs = Dataset(small_dataset)
    for topic in TOPICS:
        for row in logs.table(topic).to_pylist():
            own = {name: row.get(name) for name in table.schema.names} | {"topic": topic}
            found += [own | {"log": path} for path in logs.manifests[row["log"]].row.paths]
    return found


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return a list that gets log, topic, rows and columns of each batch that is decoded."""
    found = []
    whole = TaskReader._read

    def read(self: TaskReader) -> Iterator[pa.RecordBatch]:
        for batch in whole(self):
            topic = batch.schema.metadata[b"topic"].decode()
            found.append((self.row.path, topic, batch.num_rows, tuple(batch.schema.names)))
            yield batch

    monkeypatch.setattr(TaskReader, "_read", read)
    return found


def key(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def test_the_table_of_a_plan_has_the_rows_of_all_logs(table: PlanTable, rows: list[dict[str, Any]]) -> None:
    found = table.to_arrow_reader().read_all()
    assert found.schema == table.schema
    assert sorted(map(key, found.to_pylist())) == sorted(map(key, rows))


def test_a_table_that_was_pickled_reads_the_same(table: PlanTable) -> None:
    copy = pickle.loads(pickle.dumps(table.without_tasks()))  # noqa: S301
    assert len(copy.plan) == 0
    task = table.plan.tasks[0]
    assert [t.to_pylist() for t in copy.read(task)] == [t.to_pylist() for t in table.read(task)]


def test_conditions_on_log_topic_and_time_keep_all_else_from_being_read(
    table: PlanTable, rows: list[dict[str, Any]], decoded: list[Any]
) -> None:
    path = next(row["log"] for row in rows if row["log"].endswith("log_0.ulg"))
    times = sorted(row["time_ns"] for row in rows if row["log"] == path)
    edge = times[len(times) // 2]
    field = pc.field
    condition = (field("log") == path) & (field("topic") == "vehicle_attitude") & (field("time_ns") >= edge)
    found = table.to_arrow_reader(["q"], condition).read_all()
    expected = [row["q"] for row in rows if row["log"] == path and row["time_ns"] >= edge]
    assert found["q"].to_pylist() == expected
    assert {(log, topic) for log, topic, _, _ in decoded} == {(path, "vehicle_attitude")}
    assert sum(n for _, _, n, _ in decoded) < len(expected) + 17
    assert {names for *_, names in decoded} == {("time_ns", "log", "q")}


def test_conditions_on_utc_reach_the_reader(
    table: PlanTable, rows: list[dict[str, Any]], decoded: list[Any]
) -> None:
    known = sorted(row["time"] for row in rows if row["time"] is not None)
    edge = known[len(known) // 2]
    found = table.to_arrow_reader(
        ["time"], pc.field("time") >= pa.scalar(edge, pa.timestamp("ns"))
    ).read_all()
    assert sorted(found["time"].to_pylist()) == [t for t in known if t >= edge]
    assert sum(n for _, _, n, _ in decoded) < len(rows)


def test_polars_gives_the_rows_of_a_naive_filter(
    some: Plan, rows: list[dict[str, Any]], decoded: list[Any]
) -> None:
    """Random conditions on columns that are pushed down and others."""
    rng = random.Random(1)
    frame = scan_polars(some)
    compare = {">": operator.gt, "<=": operator.le, "==": operator.eq}
    for _ in range(12):
        one = rng.choice(rows)
        parts = rng.sample(["time_ns", "log", "topic", "value", "time"], rng.randint(1, 3))
        wanted, asked = rows, []
        for name in parts:
            sign = rng.choice(list(compare)) if name not in ("log", "topic") else "=="
            if one[name] is None:
                continue
            asked.append(compare[sign](pl.col(name), one[name]))
            wanted = [r for r in wanted if r[name] is not None and compare[sign](r[name], one[name])]
        if not asked:
            continue
        found = frame.filter(*asked).select("log", "time_ns", "topic").collect()
        expected = sorted((r["log"], r["time_ns"], r["topic"]) for r in wanted)
        assert sorted(found.rows()) == expected


def test_polars_decodes_only_what_a_query_needs(
    some: Plan, rows: list[dict[str, Any]], decoded: list[Any]
) -> None:
    frame = scan_polars(some)
    first = frame.select("topic", "q").head(5).collect()
    assert first.height == 5
    assert {names for *_, names in decoded} == {("q",)}
    assert len({log for log, *_ in decoded}) == 1
    decoded.clear()
    path = next(row["log"] for row in rows if row["topic"] == "/fix")
    latitudes = frame.filter(pl.col("log") == path, pl.col("topic") == "/fix").select("latitude").collect()
    assert latitudes["latitude"].to_list() == [
        row["latitude"] for row in rows if (row["log"], row["topic"]) == (path, "/fix")
    ]
    assert {(log, topic) for log, topic, *_ in decoded} == {(path, "/fix")}
    decoded.clear()
    assert frame.filter(pl.col("time_ns") < 0).collect().height == 0
    assert decoded == []


def test_columns_that_nobody_asked_for_are_not_built(
    table: PlanTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic has nulls in the columns of all other topics; 954 of them took six times as long as the reading."""
    built = []

    def counted(rows: int, kind: pa.DataType | None = None) -> Any:
        built.append(str(kind))
        return pa.array([None] * rows, kind)

    monkeypatch.setattr("logreel.fleet.topic_schema.pa", SimpleNamespace(**{**vars(pa), "nulls": counted}))
    found = table.to_arrow_reader(["log", "time_ns", "q"]).read_all()
    assert found.num_rows
    # Of the time in UTC where it is unknown, and of q in topics without it.
    assert set(built) <= {"timestamp[ns]", str(table.schema.field("q").type)}


def test_a_field_has_its_values_in_one_column_whichever_columns_are_asked_for() -> None:
    wide = pa.schema([pa.field("mode", pa.int64()), pa.field("mode__double", pa.float64())])
    schema = TopicSchema.of("odd", [wide.field(0)]).extended([pa.field("mode", pa.float64())])
    assert schema.schema.names[-2:] == wide.names
    small, large = pa.array([1, 2], pa.int32()), pa.array([1.5, 2.5])
    for wanted in (["mode"], ["mode__double"], ["mode", "mode__double"]):
        of_small = schema.arrays({"mode": small}, 2, wanted)
        of_large = schema.arrays({"mode": large}, 2, wanted)
        assert {n: a.to_pylist() for n, a in of_small.items()} == {
            n: [1, 2] if n == "mode" else [None, None] for n in wanted
        }
        assert {n: a.to_pylist() for n, a in of_large.items()} == {
            n: [None, None] if n == "mode" else [1.5, 2.5] for n in wanted
        }


def test_a_log_that_changed_after_planning_is_an_error_instead_of_fewer_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(1.0))
    found = PlanTable(plan(path))
    path.write_bytes(flight(1.0, 2))
    with pytest.raises(LogError, match="has changed since the plan was made"):
        list(found.read(found.plan.tasks[0]))
    path.unlink()
    with pytest.raises(OSError, match="No such file"):
        list(found.read(found.plan.tasks[0]))


def test_a_plan_without_messages_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no log")
    for made in (PlanTable, scan_polars):
        with pytest.raises(UsageError, match="no log of the plan"):
            made(plan(tmp_path))


def test_one_log_as_a_frame_has_no_more_rows_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(1.0))
    assert logreel.scan_polars(path, "vehicle_attitude").head(7).collect().height == 7
