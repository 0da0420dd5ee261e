"""``logreel fleet``: output, exit codes, and what queries may do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.fleet import LocalEngine
from support.builders.fleets import firmware_log
from support.harness.cli_runner import Run
from support.harness.faults import Inline


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands do their jobs in this process; tests of ingestion are about workers, with the command line, too."""
    monkeypatch.setattr(LocalEngine, "run", Inline.run)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "1.ulg").write_bytes(firmware_log(1, later=False))
    return folder


def test_ingest_reports_what_it_did_and_losses_give_code_3(run: Run, logs: Path, tmp_path: Path) -> None:
    line = ["fleet", "ingest", logs, "-o", tmp_path / "fleet", "--workers", "1"]
    done = run(*line)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("fleet: 1 new, 0 changed, 0 unchanged, 0 removed; 20 rows in 1 files\n")
    (logs / "evil\x1b[2J.ulg").write_text("no log")
    done = run(*line)
    assert done.code == 3
    assert "evil\\x1b[2J.ulg: not a log of a known format" in done.err
    assert run(*line, "--json").json["unchanged"] == [str(p) for p in sorted(logs.iterdir())]


def test_an_ingest_that_is_continued_ends_as_one_that_was_not_interrupted(
    run: Run, logs: Path, tmp_path: Path
) -> None:
    (logs / "cut.ulg").write_bytes(firmware_log(2, later=False)[:-30])
    (logs / "later.ulg").write_bytes(firmware_log(3, later=False))
    whole = run("fleet", "ingest", logs, "-o", tmp_path / "whole", "--workers", "1")
    line = ["fleet", "ingest", logs, "-o", tmp_path / "continued", "--workers", "1"]
    (logs / "later.ulg").rename(tmp_path / "later.ulg")
    assert run(*line).code == 3
    (tmp_path / "later.ulg").rename(logs / "later.ulg")
    continued, nothing_to_do = run(*line), run(*line)
    assert (whole.code, continued.code, nothing_to_do.code) == (3, 3, 3)
    damaged = f"logreel: {logs / 'cut.ulg'}: damaged; 'logreel fleet report' says more"
    assert all(damaged in done.err for done in (whole, continued, nothing_to_do))


def test_an_interval_and_types_are_options_of_ingest(run: Run, logs: Path, tmp_path: Path) -> None:
    line = ["fleet", "ingest", logs, "-o", tmp_path / "fleet", "--workers", "1"]
    done = run(*line, "-S", "+10us", "-E", "-5us", "--type", "/x=std_msgs/Float64")
    assert (done.code, done.err) == (0, "")
    assert "; 4 rows in 1 files" in done.out
    wrong = run(*line[:4], tmp_path / "other", "-S", "tomorrow")
    assert wrong.code == 2
    assert "cannot read the time 'tomorrow'" in wrong.err
    assert not (tmp_path / "other").exists()


def test_queries_read_topics_and_catalogue(run: Run, small_dataset: Path, tmp_path: Path) -> None:
    done = run("fleet", "query", "SELECT count(*) AS n FROM odd", small_dataset, "--json")
    assert done.json["rows"] == [{"n": 40}]
    text = "SELECT status, count(*) AS n FROM logreel.logs GROUP BY status ORDER BY status"
    assert run("fleet", "query", text, small_dataset).out.split() == [
        "status", "n", "damaged", "3", "failed", "2", "ok", "11"
    ]  # fmt: skip
    count = 'SELECT count(*) AS n FROM "/fix"'
    assert (
        run("fleet", "query", count, small_dataset).out
        == run("fleet", "query", "SELECT count(*) AS n FROM FIX", small_dataset).out
    )
    out = tmp_path / "odd.parquet"
    assert run("fleet", "query", "FROM odd", small_dataset, "-o", out).code == 0
    assert out.stat().st_size
    rows = run("fleet", "query", "SELECT sum(rows) AS n FROM logreel.parts", small_dataset, "--json").json[
        "rows"
    ]
    assert rows[0]["n"] == run("fleet", "status", small_dataset, "--json").json["rows"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/hostname')",
        "COPY (SELECT 1) TO 'stolen.csv'",
        "ATTACH 'other.db'",
        "SET enable_external_access = true",
        "SELECT * FROM nothing",
        "SELEC",
    ],
)
def test_queries_cannot_read_or_write_anything_else(
    run: Run, small_dataset: Path, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("fleet", "query", query, small_dataset)
    assert done.code == 2, done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with topics that share an alias, and topics that differ only in case; nothing changes it."""
    folder = tmp_path_factory.mktemp("alike")
    with logreel.create(folder / "a.mcap") as out:
        schema = logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n")
        for topic in ("/imu/data", "/imu_data", "/gps", "/GPS", "fix"):
            channel = out.add_channel(topic, schema)
            for n in range(3):
                out.write(channel, 10**18 + n, {"data": n})
    logreel.fleet.ingest(folder / "a.mcap", folder / "fleet", engine=Inline())
    return folder / "fleet"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) AS n FROM fix JOIN fix AS other USING (log, time_ns)", [{"n": 3}]),
        ("SELECT unnest([data, 7]) AS v FROM fix, unnest([1]) AS t(u) WHERE data = 2", [{"v": 2}, {"v": 7}]),
        (
            "SELECT a.data FROM fix a ASOF JOIN fix b ON a.log = b.log AND a.time_ns >= b.time_ns WHERE b.data = 2",
            [{"data": 2}],
        ),
        ("PIVOT (SELECT data FROM fix) ON data USING count(*)", [{"0": 1, "1": 1, "2": 1}]),
        ("PIVOT fix ON data USING count(*) GROUP BY log", None),
        ("SELECT vehicle, count(*) AS n FROM fix JOIN logreel.logs USING (log) GROUP BY ALL", None),
        (
            'SELECT a.data, b.data FROM fix a JOIN "/imu/data" b USING (time_ns) LIMIT 1',
            [{"data": 0, "data_2": 0}],
        ),
    ],
)
def test_joins_using_unnest_pivot_and_asof_work_beside_ambiguous_names_that_the_query_does_not_use(
    run: Run, alike: Path, query: str, rows: list[dict[str, int]] | None
) -> None:
    done = run("fleet", "query", query, alike, "--json")
    assert done.code == 0, done.err
    assert rows is None or done.json["rows"] == rows


def test_names_that_may_mean_several_topics_are_refused_where_a_query_uses_them(
    run: Run, alike: Path
) -> None:
    for query in ("FROM imu_data", "SELECT * FROM imu_data JOIN fix USING (log)"):
        done = run("fleet", "query", query, alike)
        assert done.code == 2
        assert 'imu_data may mean "/imu/data" or "/imu_data"' in done.err
    both = run("fleet", "query", 'SELECT count(*) FROM "/gps", "/GPS"', alike)
    assert both.code == 2
    assert "case does not tell tables apart" in both.err


def test_query_and_dataset_come_in_the_order_of_sql(run: Run, alike: Path, tmp_path: Path) -> None:
    right = run("fleet", "query", "FROM fix", alike)
    assert right.code == 0
    # The former order, as only one of the two is a folder.
    assert run("fleet", "query", alike, "FROM fix").out == right.out
    assert logreel.fleet.query("FROM fix", alike).num_rows == 3
    assert logreel.fleet.query(logreel.fleet.Dataset(alike), "FROM fix").num_rows == 3
    (tmp_path / "FROM fix").mkdir()
    (tmp_path / "fleet").symlink_to(alike)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        both = run("fleet", "query", "fleet", "FROM fix")
        neither = run("fleet", "query", "FROM fix x", "flet")
    assert (both.code, neither.code) == (2, 2)
    assert "are both folders" in both.err
    assert "neither FROM fix x nor flet is a folder" in neither.err


def test_the_report_names_damage_duplicates_and_hours(run: Run, small_dataset: Path) -> None:
    found = run("fleet", "report", small_dataset, "--json").json
    assert len(found["damaged"]) == 3
    assert len(found["failed"]) == 2
    assert all(one["lost_bytes"] > 0 for one in found["damaged"])
    assert {(h["vehicle"], h["firmware"][:4]) for h in found["hours"]} > {("0001", "1111"), ("0001", "2222")}
    assert ["log_1.bag", "log_13.bag"] in [[Path(p).name for p in group] for group in found["duplicates"]]
    lacking = {Path(path).name: topics for path, topics in found["missing"].items()}
    assert "battery_status" in lacking["log_7.ulg"]
    assert "log_0.ulg" not in lacking
    text = run("fleet", "report", small_dataset).out
    assert "duplicates" in text
    assert "vehicle_attitude" in text


def test_the_report_counts_files_that_are_not_named_as_logs(run: Run, logs: Path, tmp_path: Path) -> None:
    # Links to nothing may be logs; notes are none, see below.
    for name in ("a.md", "b.md", "c.MD"):
        (logs / name).symlink_to("nowhere")
    (logs / "broken.bag").write_bytes(b"")
    line = ["fleet", "ingest", logs, "-o", tmp_path / "fleet", "--workers", "1"]
    assert run(*line).code == 3
    assert f"{logs / 'a.md'}: no such file" in run("fleet", "report", tmp_path / "fleet").out
    (logs / "d").symlink_to("nowhere")
    run(*line)
    text = run("fleet", "report", tmp_path / "fleet").out
    assert "\n  4 files that are not named as logs are: 3 .md, 1 without suffix\n" in text
    assert "broken.bag: " in text
    assert "a.md" not in text
    assert len(run("fleet", "report", tmp_path / "fleet", "--json").json["failed"]) == 5


def test_notes_beside_logs_are_no_logs_and_counted_in_one_line(run: Run, logs: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "b.json", "c.md", "d.yaml", "README", "photo.jpg", "empty.csv"):
        (logs / name).write_bytes(b"" if name == "empty.csv" else b"not a log")
    line = ["fleet", "ingest", logs, "-o", tmp_path / "fleet", "--workers", "1"]
    done = run(*line)
    assert (done.code, done.err) == (0, "logreel: 7 other files ignored\n")
    assert "1 new, " in done.out
    assert run("fleet", "query", "SELECT count(*) AS n FROM logreel.logs", tmp_path / "fleet", "--json").json[
        "rows"
    ] == [{"n": 1}]
    again = run(*line, "--json")
    assert (again.code, len(again.json["ignored"]), len(again.json["unchanged"])) == (0, 7, 1)
    # What a shell makes of logs/* is no mistake, a single note is.
    assert run("fleet", "ingest", *sorted(logs.iterdir()), "-o", tmp_path / "fleet").code == 0
    alone = run("fleet", "ingest", logs / "a.txt", "-o", tmp_path / "other")
    assert (alone.code, "a.txt: not a log of a known format" in alone.err) == (5, True)
    # What has the suffix of a log, or the content of one, is a log.
    (logs / "broken.ulg").write_text("not a log")
    (logs / "1.ulg").rename(logs / "renamed.txt")
    done = run(*line)
    assert done.code == 3
    assert "broken.ulg: not a log of a known format" in done.err
    assert "1 new, 0 changed, 0 unchanged, 0 removed, 1 moved; 0 rows" in done.out


def test_hours_leave_out_logs_whose_clock_was_set(run: Run, logs: Path, tmp_path: Path) -> None:
    with logreel.create(logs / "jump.mcap") as out:
        channel = out.add_channel("/x", logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n"))
        for at in (0, 1_700_000_000 * 10**9):
            out.write(channel, at, {"data": 1})
    logreel.fleet.ingest(logs, tmp_path / "fleet", engine=Inline())
    found = run("fleet", "report", tmp_path / "fleet", "--json").json
    assert [Path(path).name for path in found["spans"]] == ["jump.mcap"]
    assert next(iter(found["spans"].values())) == pytest.approx(1_700_000_000 / 3600)
    assert sum(one["hours"] for one in found["hours"]) < 1
    assert sum(one["logs"] for one in found["hours"]) == 2
    assert "jump.mcap: 472222 h" in run("fleet", "report", tmp_path / "fleet").out


def test_verify_gives_code_4_for_a_changed_file(run: Run, logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    logreel.fleet.ingest(logs, fleet, engine=Inline())
    assert run("fleet", "verify", fleet).code == 0
    part = next(fleet.rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    done = run("fleet", "verify", fleet)
    assert done.code == 4
    assert "bytes instead of" in done.out


@pytest.mark.parametrize("verb", ["status", "report", "verify"])
def test_a_folder_that_is_no_dataset_is_refused(run: Run, tmp_path: Path, verb: str) -> None:
    done = run("fleet", verb, tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "is no dataset of logreel" in done.err


def test_a_damaged_catalogue_is_one_sentence(run: Run, logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    logreel.fleet.ingest(logs, fleet, engine=Inline())
    manifest = next((fleet / "_catalog" / "logs").glob("*.json"))
    for text in (
        "",
        "[]",
        "{}",
        '{"version": 1, "row": {}, "parts": [], "again": false}',
        json.dumps({"version": 9}),
    ):
        manifest.write_text(text)
        done = run("fleet", "status", fleet)
        assert done.code == 1, text
        assert "internal error" not in done.err
        assert "Traceback" not in done.err
