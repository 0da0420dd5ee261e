"""A plan reads each message of many logs once, in tasks of bounded size, and never fails as a whole."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import MissingDependencyError, UsageError
from logreel.fleet import Plan, Task, plan
from logreel.fleet.plans import PlanOptions
from logreel.ops.selection import Around
from support.builders.fleets import firmware_log, fleet_log
from support.harness.cli_runner import Run
from support.harness.range_server import serving_ranges
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight


def rows_read(found: Plan) -> dict[tuple[str, str], int]:
    """Return rows by log and topic."""
    count: Counter[tuple[str, str]] = Counter()
    for task in found:
        for batch in task.read(facts=False):
            count[task.path, batch.schema.metadata[b"topic"].decode()] += batch.num_rows
    return {key: n for key, n in count.items() if n}


def rows_of_tables(folder: Path) -> dict[tuple[str, str], int]:
    """Return rows by log and topic as tables of each log have them."""
    found = {}
    for path in sorted(folder.rglob("log_*")):
        try:
            log = logreel.open(path)
        except (logreel.LogError, OSError):
            continue
        with log:
            for ch in log.match(None):
                if n := len(ch.to_arrow()):
                    found[str(path), ch.topic] = n
    return found


@pytest.fixture(scope="module")
def whole(small_fleet: Path) -> Plan:
    return plan(small_fleet)


def test_tasks_read_each_message_once_whatever_their_size(small_fleet: Path, whole: Plan) -> None:
    expected = rows_of_tables(small_fleet)
    assert rows_read(whole) == expected
    assert len({topic for _, topic in expected}) > 50
    small = plan(small_fleet, target_bytes=50_000)
    assert len(small) > len(whole) + 20
    assert rows_read(small) == expected


def test_a_large_topic_is_divided_by_time(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(5.0))
    tasks = list(plan(path, topics="sensor_combined", target_bytes=10_000))
    assert len(tasks) > 3
    assert tasks[0].start is None
    assert tasks[-1].end is None
    assert [task.end for task in tasks[:-1]] == [task.start for task in tasks[1:]]
    assert all(task.bytes <= 11_000 for task in tasks)
    times = [t for task in tasks for batch in task.read(["time_ns"]) for t in batch["time_ns"].to_pylist()]
    with logreel.open(path) as log:
        assert times == log["sensor_combined"].times.tolist()


def test_windows_of_many_logs_are_those_of_each(small_fleet: Path, tmp_path: Path) -> None:
    """Of a folder of all formats, those logs have windows that have the topic, and in which the condition begins."""
    pytest.importorskip("duckdb")
    around = Around("battery_status.current_a >= 20", "200ms", "300ms")
    expected = {}
    for path in small_fleet.rglob("*.ulg"):
        out = tmp_path / f"{path.stem}.ulg"
        try:
            logreel.slice(path, out, around=around, topics=["sensor_combined", "battery_status"])
        except (logreel.LogError, OSError):
            continue
        with logreel.open(out) as log:
            expected |= {(str(path), ch.topic): len(ch) for ch in log.match(None) if len(ch)}
    assert expected
    topics = ["sensor_combined", "battery_status"]
    cut = plan(small_fleet, around=around, topics=topics)
    read = {key: n for key, n in rows_read(cut).items() if n}
    assert read == expected
    small = plan(small_fleet, around=around, topics=topics, target_bytes=5_000)
    assert len(small) > len(cut)
    assert {key: n for key, n in rows_read(small).items() if n} == expected
    for wrong in ("battery_status.current_a >=", "changed("):
        with pytest.raises(UsageError):
            plan(small_fleet, around=wrong)
    # Windows are part of what a dataset is; those of all messages are as they were.
    options = PlanOptions.of({"around": around})
    assert PlanOptions.from_dict(json.loads(json.dumps(options.as_dict()))) == options
    assert options.choice != PlanOptions.of({}).choice
    assert "conditions" not in PlanOptions.of({}).choice


def test_messages_out_of_order_and_equal_times_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    times = [5, 5, 5, 1, 9, 9, 2, 5, 0, 9] * 20
    with logreel.create(path) as out:
        ch = out.add_channel("/n", logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n"))
        for n, t in enumerate(times):
            out.write(ch, t * 10**9 + 10**18, {"data": n})
    found = plan(path, target_bytes=100)
    assert len(found) > 1
    values = [v for task in found for batch in task.read() for v in batch["data"].to_pylist()]
    assert sorted(values) == list(range(len(times)))


def test_a_file_that_is_no_log_is_a_task_with_an_error(small_fleet: Path, whole: Plan) -> None:
    names = {os.path.basename(path): why for path, why in whole.errors.items()}
    # Pictures beside logs are no logs, and have no task.
    assert set(names) == {"gone.ulg", "log_8.ulg", "log_20.ulg"}
    assert names["log_8.ulg"] == "the file is empty"
    task = next(task for task in whole if task.path.endswith("log_8.ulg"))
    reader = task.read()
    assert list(reader) == []
    assert (reader.row.status, reader.row.size) == ("failed", os.path.getsize(task.path))


def test_rows_of_the_catalogue_say_what_was_read(whole: Plan) -> None:
    rows = {}
    for task in whole:
        reader = task.read()
        count = sum(batch.num_rows for batch in reader)
        assert sum(reader.row.rows.values()) == count
        rows[os.path.basename(task.path)] = reader.row
    sound = rows["log_0.ulg"]
    assert (sound.status, sound.format, sound.firmware) == ("ok", "ulog", "v1.16.0")
    assert sound.digest
    assert sound.vehicle
    assert sound.facts["flight"]
    cut = rows["log_9.ulg"]
    assert cut.status == "damaged"
    assert cut.lost_bytes > 0
    assert cut.problems[0]["lost"]
    assert rows["log_1.bag"].start_utc_ns == rows["log_1.bag"].start_ns


def test_plans_survive_pickle_json_and_parquet(whole: Plan, tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(whole)) == whole  # noqa: S301
    for name in ("plan.json", "plan.parquet"):
        whole.write(tmp_path / name)
        assert Plan.load(tmp_path / name) == whole
    with pytest.raises(logreel.LogError, match="exists already"):
        whole.write(tmp_path / "plan.json")
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(UsageError, match="is not a plan"):
        Plan.load(tmp_path / "other.json")


def test_keys_of_tasks_are_the_same_in_every_process_and_differ(small_fleet: Path, whole: Plan) -> None:
    keys = [task.key for task in whole]
    assert len(set(keys)) == len(keys)
    assert [task.key for task in plan(small_fleet)] == keys
    assert Task.from_dict(whole.tasks[3].as_dict()).key == keys[3]


def test_a_log_that_changes_after_planning_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(1.0))
    task = plan(path).tasks[0]
    path.write_bytes(flight(1.0, 2))
    reader = task.read()
    assert list(reader) == []
    assert "has changed" in reader.row.error


def test_a_plan_of_fields_and_topics_reads_only_these(small_fleet: Path) -> None:
    found = plan(small_fleet, topics=["/fix", "vehicle_attitude"], fields=["latitude", "q[1]"])
    assert found.topics == ["vehicle_attitude", "/fix"]
    columns = {b.schema.metadata[b"topic"]: b.schema.names for task in found for b in task.read(facts=False)}
    assert columns == {
        b"vehicle_attitude": ["time", "time_ns", "log", "q[1]"],
        b"/fix": ["time", "time_ns", "log", "latitude"],
    }


def test_batches_have_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(3.0))
    monkeypatch.setattr("logreel.fleet.task_reader.ROWS", 100)
    sizes = [batch.num_rows for task in plan(path) for batch in task.read()]
    assert max(sizes) == 100


@pytest.mark.parametrize("sources", [[], "nothing_*.ulg", "https://host/a.ulg?token=1"])
def test_sources_that_mean_nothing_are_refused(sources: str | list[str]) -> None:
    with pytest.raises(UsageError):
        plan(sources)


def test_a_folder_leaves_out_hidden_files_pipes_and_datasets(tmp_path: Path) -> None:
    for name in (
        ".hidden",
        "a.ulg",
        "fleet/_catalog/x.json",
        "fleet/topic=a/b.parquet",
        "a.ulg.logreel-index",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(fleet_log(7)[1])
    os.mkfifo(tmp_path / "pipe")
    assert [os.path.basename(path) for path in plan(tmp_path).paths] == ["a.ulg"]


def rows_by_name(found: Plan) -> dict[str, int]:
    return {os.path.basename(path): n for (path, _), n in rows_read(found).items()}


def test_times_are_relative_to_each_log_and_logs_outside_have_no_rows(tmp_path: Path) -> None:
    for name, seconds in (("long.ulg", 5.0), ("short.ulg", 1.0)):
        (tmp_path / name).write_bytes(flight(seconds))
    whole = rows_by_name(plan(tmp_path, topics="vehicle_attitude"))
    found = plan(tmp_path, topics="vehicle_attitude", start="+2s")
    assert set(rows_by_name(found)) == {"long.ulg"}
    short = next(task for task in found if task.path.endswith("short.ulg"))
    assert (short.topics, short.error) == ((), "")
    reader = short.read()
    assert list(reader) == []
    assert (reader.row.status, reader.row.topics["vehicle_attitude"]) == ("ok", whole["short.ulg"])
    # The end is before the start only in the short one.
    assert set(rows_by_name(plan(tmp_path, topics="vehicle_attitude", start="+2s", end="-1s"))) == {
        "long.ulg"
    }


@pytest.mark.parametrize(
    "start", ["+2s", timedelta(seconds=2), np.timedelta64(2, "s"), "00:00:02", "2025-01-01T00:00:02Z"]
)
def test_each_way_to_say_a_time_reads_the_same(tmp_path: Path, start: object) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as out:
        ch = out.add_channel("/n", logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n"))
        for n in range(5):
            out.write(ch, 1_735_689_600_000_000_000 + n * 10**9, {"data": n})
    values = [v for task in plan(path, start=start) for b in task.read() for v in b["data"].to_pylist()]
    assert values == [2, 3, 4]
    task = plan(path, start=datetime(2025, 1, 1, 0, 0, 3, tzinfo=UTC)).tasks[0]
    assert task.start == 1_735_689_603_000_000_000


def test_utc_times_of_a_log_without_utc_are_its_error(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(firmware_log(1, later=False))
    found = plan(tmp_path, start="2025-01-01T00:00:00Z")
    assert "does not tell how its clock relates to UTC" in found.tasks[0].error


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "yesterday"}, {"start": 1.5}, {"end": datetime(2025, 1, 1)}, {"topics": "re:("},
        {"start": "+5s", "end": "+4s"}, {"start": "-1s", "end": "-2s"}, {"start": 9, "end": "8ns"},
        {"start": "2025-01-02T00:00:00Z", "end": datetime(2025, 1, 1, tzinfo=UTC)}, {"target_bytes": 0},
    ],
)  # fmt: skip
def test_wrong_options_are_refused_before_any_log_is_opened(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        plan("nowhere.ulg", **wrong)


@pytest.mark.parametrize(
    "times",
    [("+5s", "-5s"), ("-5s", "+5s"), (5, "+1s"), ("+1s", 5), ("2025-01-01T00:00:00Z", "+1s"), ("+9s", None)],
)
def test_times_whose_order_depends_on_the_log_are_accepted(times: tuple[Any, Any]) -> None:
    start, end = times
    assert plan("nowhere.ulg", start=start, end=end).tasks[0].error == "no such file or directory"


def test_definitions_that_do_not_exist_are_refused() -> None:
    with pytest.raises(logreel.LogError, match="no such file, folder or module"):
        plan("nowhere.ulg", definitions="nowhere/at all")


@pytest.mark.parametrize("engine", ["ray", "daft"])
def test_an_engine_that_is_not_installed_is_an_error_with_the_command_that_installs_it(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    monkeypatch.delitem(sys.modules, f"logreel.fleet.{engine}", raising=False)
    monkeypatch.delitem(vars(logreel.fleet), engine, raising=False)
    # As an attribute, without an import of the module.
    with pytest.raises(MissingDependencyError, match=rf"pip install 'logreel\[{engine}\]'"):
        getattr(logreel.fleet, engine)
    with pytest.raises(ImportError):
        importlib.import_module(f"logreel.fleet.{engine}")


def test_a_remote_log_without_index_is_one_task_which_says_what_it_downloads(
    tmp_path: Path, run: Run
) -> None:
    pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")
    with serving_ranges() as server:
        content = flight(32.0)
        whole = server.put("flight.ulg", content)
        indexed = server.put("drive.bag", drive(12.0))
        assert len(content) > 1 << 20
        found = plan([whole, indexed], target_bytes=100_000)
        assert Counter(task.path for task in found)[whole] == 1
        assert Counter(task.path for task in found)[indexed] > 3
        server.forget()
        done = run(
            "fleet", "ingest", whole, "-o", tmp_path / "fleet", "--task-size", "100KB", "--workers", "1"
        )
        assert done.code == 0
        assert f"{whole}: it has to be read as a whole, so" in done.err
        # For the plan and for the task.
        assert server.sent == 2 * len(content)
