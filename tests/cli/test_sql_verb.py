"""``logreel sql``: all result formats, and errors."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.harness.cli_runner import Run, environment
from support.harness.forked import forked

QUERY = "SELECT time, time_ns, flag, cells[1].volt AS v, log FROM pair ORDER BY time_ns LIMIT 2"
ROWS = [
    {"time": 10**9 + i * 10**7, "time_ns": 10**9 + i * 10**7, "flag": 1, "v": 3.5 + i / 4, "log": "tiny.ulg"}
    for i in range(2)
]


@pytest.fixture(autouse=True)
def among_logs(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs)


def read(path: Path) -> Any:
    """The rows of a result."""
    match path.suffix:
        case ".json":
            return json.loads(path.read_bytes())
        case ".ndjson":
            return list(map(json.loads, path.read_text().splitlines()))
        case ".csv":
            with open(path, newline="") as text:
                return [
                    {n: v if n == "log" else float(v) for n, v in row.items()} for row in csv.DictReader(text)
                ]
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    return table.set_column(0, "time", table["time"].cast(pa.int64())).to_pylist()


def test_the_default_is_a_text_table(run: Run) -> None:
    done = run("sql", QUERY, "tiny.ulg")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "    time     time_ns  flag     v  log",
        "1.000000  1000000000     1   3.5  tiny.ulg",
        "1.010000  1010000000     1  3.75  tiny.ulg",
    ]
    shown = run("sql", "SELECT make_timestamp_ns(1747471266000000001) AS t, NULL AS n, 'x\x1b' AS s, [1, 2] AS l, "
                "{'a': 1.5, 'b': true} AS d, 12345678901234567890123::HUGEINT AS h", "tiny.ulg")  # fmt: skip
    assert re.split(" {2,}", shown.out.splitlines()[1]) == [
        "2025-05-17T08:41:06.000000001Z", "x\\x1b", "[1, 2]", "{a=1.5 b=true}", "12345678901234567890123"
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "parquet", "json", "ndjson", "arrow"])
def test_o_writes_the_result_to_a_file(run: Run, form: str) -> None:
    path = Path(f"x.{form}")
    done = run("sql", QUERY, "tiny.ulg", "-o", path)
    assert (done.code, done.out, done.err) == (0, "", f"logreel: wrote 2 rows to x.{form}\n")
    assert read(path) == ROWS
    assert "exists" in run("sql", QUERY, "tiny.ulg", "-o", path).err
    assert run("sql", "SELECT time FROM pair WHERE false", "tiny.ulg", "-o", path, "--force").code == 0
    assert not read(path)
    done = run("sql", QUERY, "tiny.ulg", "-o", "y.data", "--format", form)
    Path("y.data").rename(f"y.{form}")
    assert read(Path(f"y.{form}")) == ROWS


def test_arrow_is_written_into_a_pipe() -> None:
    command = forked("sql", QUERY, "tiny.ulg", "--format", "arrow")
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment(), check=True)
    Path("z.arrow").write_bytes(done.stdout)
    assert read(Path("z.arrow")) == ROWS


def test_json_is_one_object(run: Run) -> None:
    found = run("sql", QUERY, "tiny.ulg", "--json").json
    assert list(found) == ["paths", "columns", "rows", "problems"]
    assert found["paths"] == ["tiny.ulg"]
    assert found["columns"][0] == {"name": "time", "type": "duration[ns]"}
    assert found["rows"] == ROWS
    values = run("sql", "SELECT value, other FROM odd", "hostile.ulg", "--json").json["rows"]
    assert [row["value"] for row in values] == [1.5, "NaN", "Infinity", "-Infinity"]
    sums = run(
        "sql", "SELECT sum(flag) AS s, 1.25 AS d, DATE '2024-05-01' AS day FROM pair", "tiny.ulg", "--json"
    )
    assert sums.json["rows"] == [{"s": 8, "d": 1.25, "day": "2024-05-01"}]


def test_an_interval_applies_to_each_of_several_logs(run: Run) -> None:
    query = "SELECT log, count(*) AS n FROM vehicle_attitude GROUP BY log ORDER BY log"
    done = run("sql", query, "flight.ulg", "flight.ulg", "-S", "+1s", "-E", "+2s", "--json")
    assert [row["log"] for row in done.json["rows"]] == ["flight.ulg", "flight.ulg_2"]
    assert 90 < done.json["rows"][0]["n"] < 110
    wall = run("sql", "SELECT min(time) AS t FROM vehicle_attitude", "flight.ulg", "--utc")
    assert wall.out.splitlines()[1].startswith("2025-05-17T08:42:2")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["SELECT 1"], 2, "FILE"),
        (["FROM pear", "tiny.ulg"], 2, "no table 'pear'; nearest: pair"),
        (["SELEC", "tiny.ulg"], 2, "syntax error"),
        (["SELECT 'x'::INT", "tiny.ulg"], 1, "Could not convert"),
        (["SELECT 1", "photo.jpg"], 5, "not a log"),
        (["SELECT 1", "nothing.ulg"], 1, "no such file"),
        (["SELECT 1", "tiny.ulg", "-o", "x.doc"], 2, "known: csv, parquet"),
        (["SELECT 1", "tiny.ulg", "--json", "--format", "csv"], 2, "--json is a form of its own"),
        (["SELECT 1", "tiny.ulg", "-o", "x.csv", "--format", "table"], 2, "goes to stdout"),
        (["FROM vehicle_attitude LIMIT 1", "damaged.ulg"], 3, "could not be read"),
    ],
)
def test_each_error_has_its_exit_code_and_one_sentence(
    run: Run, args: list[str], code: int, words: str
) -> None:
    done = run("sql", *args)
    assert done.code == code, done.err
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not list(Path().glob("x.*"))


@pytest.mark.parametrize(("form", "code"), [("parquet", 2), ("csv", 0)])
def test_binary_results_to_a_terminal_are_refused(form: str, code: int) -> None:
    ours, theirs = pty.openpty()
    command = forked("sql", "SELECT 'a\x1b' AS a", "tiny.ulg", "--format", form)
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=environment(), check=False)
    os.close(theirs)
    shown = b""
    if code == 0:
        shown = os.read(ours, 1000)
    os.close(ours)
    assert done.returncode == code
    assert b"\x1b" not in shown
    assert (b"-o" in done.stderr) == bool(code)
