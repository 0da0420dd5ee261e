"""Parameters as CSV, YAML, for GNU Octave and for QGroundControl, compared with pyulog's ``ulog_params``."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import math
import sys
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.log.scan import Change, Parameter
from logreel.ops.inspect.params import FORMS, params_text
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

LINES = [
    ("-f csv", "--format history"),
    ("-f csv -i", "--format history --only-initial"),
    ("-f csv -t", "--format history --timestamps"),
    ("-f csv -l ;", "--format history --separator ;"),
    ("-f octave", "--format octave"),
    ("-f octave -i", "--format octave --only-initial"),
    ("-f qgc", "--format qgc"),
    ("-f qgc", "--format params"),
]


def genuine(monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    params = pytest.importorskip("pyulog.params")
    monkeypatch.setattr(sys, "argv", ["ulog_params", "--ignore", *args])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        params.main()
    return out.getvalue()


@functools.cache
def _read(path: str, names: tuple[str, ...] | None, ignores: bool) -> Any:
    from pyulog import ULog

    return ULog(path, names if names is None else [*names], ignores)


def read_by_pyulog(path: str, names: list[str] | None, ignores: bool) -> Any:
    """Read a log as pyulog does, once for all forms of text."""
    return _read(path, names if names is None else tuple(names), ignores)


@pytest.mark.parametrize(("theirs", "ours"), LINES)
def test_the_text_is_that_of_ulog_params(
    theirs: str,
    ours: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    expected = genuine(monkeypatch, *theirs.split(), str(path))
    assert expected
    done = run("params", path, *ours.split())
    assert (done.code, done.err) == (0, "")
    assert done.out == expected


@pytest.mark.parametrize("name", ["sample", "sample_log_small", "sample_logging_tagged_and_default_params"])
@pytest.mark.parametrize(("theirs", "ours"), LINES)
def test_the_text_of_real_logs_is_that_of_ulog_params(
    name: str,
    theirs: str,
    ours: str,
    run: Run,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pyulog.params")
    path = shared / "data" / "ulog" / f"{name}.ulg"
    monkeypatch.setattr("pyulog.params.ULog", read_by_pyulog)
    expected = genuine(monkeypatch, *theirs.split(), str(path))
    assert run("params", path, *ours.split()).out == expected


def test_hostile_names_and_texts_do_not_break_lines() -> None:
    found = [
        Parameter('a,"b\nc', "int32", 1),
        Parameter("text", "str", "two\nlines"),
        Parameter("late", "float", None, (Change(5_000, 1.5), Change(7_000, 2.5))),
        Parameter("none", "float", float("nan")),
    ]
    skipped: list[str] = []
    rows = list(csv.reader(io.StringIO(params_text(found, "history", skipped, timestamps=True))))
    assert rows == [
        ['a,"b\nc', "1"], ["timestamp", "0"], ["text", "two\nlines"], ["timestamp", "0"],
        ["late", "1.5", "2.5"], ["timestamp", "5", "7"], ["none", "nan"], ["timestamp", "0"],
    ]  # fmt: skip
    assert skipped == []
    assert params_text(found, "octave", skipped) == (
        "# name late\n# type: matrix\n# rows: 1\n# columns: 2\n1.5 2.5 \n# name none\n# type: scalar\nnan\n"
    )
    assert len(skipped) == 2
    assert params_text(found, "qgc", skipped) == "1\t1\tlate\t1.5\t9\n"
    assert len(skipped) == 5


def test_other_notations_are_refused(run: Run, tmp_path: Path) -> None:
    for form, more in (
        ("xml", {}),
        ("qgc", {"timestamps": True}),
        ("csv", {"timestamps": True}),
        ("csv", {"delimiter": "ab"}),
        ("yaml", {"delimiter": ";"}),
        ("history", {"final": True}),
        ("csv", {"initial": True}),
    ):
        with pytest.raises(logreel.UsageError):
            params_text([], form, [], **more)
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    for args in (
        ["--format", "xml"],
        ["--format", "csv", "--json"],
        ["--only-initial"],
        ["--final"],
        ["--format", "qgc", "--timestamps"],
    ):
        assert run("params", path, *args).code == 2
    assert FORMS == ("csv", "params", "yaml", "history", "octave")


def test_csv_has_a_header_and_columns(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    rows = list(csv.DictReader(io.StringIO(run("params", path, "--format", "csv").out)))
    with logreel.open(path) as log:
        known = log.parameters
    assert [row["name"] for row in rows] == sorted(known)
    assert [*rows[0]] == ["name", "type", "initial", "final", "system_default", "setup_default", "changes"]
    for row in rows:
        one = known[row["name"]]
        assert (float(row["initial"]), float(row["final"])) == pytest.approx((one.value, one.final))
        assert row["type"] == one.type
        assert int(row["changes"]) == len(one.real_changes)
        assert (row["system_default"] == "") == ("system" not in one.defaults)
    assert any(int(row["changes"]) for row in rows)


#: Names and values that YAML reads in other ways without care.
TRICKY = {
    "no": 1, "on": 2, "1e5": 3, "null": 4, "a: b": 5, "#": 6, "- x": 7, "tab\there": 8, "\x85\u2028\ufeff": 9, "Y": 10,
    "/robot/speed": 1e-7, "TINY_1": 1e-5, "HUGE_1": 1e30, "ZERO_1": 0.0, "INT_MIN": -(2**31), "THIRD_1": 1 / 3,
    "TEXT_1": "yes", "TEXT_2": "1.0", "TEXT_3": "two\nlines \\ \"quoted\" \x7f é", "TEXT_4": "",
}  # fmt: skip


def test_yaml_is_read_as_the_values() -> None:
    yaml = pytest.importorskip("yaml")
    found = [Parameter(name, "any", value) for name, value in TRICKY.items()]
    skipped: list[str] = []
    assert yaml.safe_load(params_text(found, "yaml", skipped)) == TRICKY
    odd = [
        Parameter(f"NUMBER_{i}", "float", value) for i, value in enumerate((math.inf, -math.inf, math.nan))
    ]
    read = list(yaml.safe_load(params_text(odd, "yaml", skipped)).values())
    assert read[:2] == [math.inf, -math.inf]
    assert math.isnan(read[2])
    assert skipped == []
    assert params_text([Parameter("GONE_1", "float", None)], "yaml", skipped) == ""
    assert len(skipped) == 1


def test_the_last_values_are_written_on_request() -> None:
    found = [Parameter("MODE_1", "int32_t", 3, (Change(1, 4), Change(2, 5)))]
    assert params_text(found, "params", []) == "1\t1\tMODE_1\t3\t6\n"
    assert params_text(found, "params", [], final=True) == "1\t1\tMODE_1\t5\t6\n"
    assert params_text(found, "yaml", [], final=True) == "MODE_1: 5\n"
    assert params_text(found, "csv", []) == "name,type,initial,final,changes\nMODE_1,int32_t,3,5,2\n"
