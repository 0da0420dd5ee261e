"""The plugin of pytest: the fixture, the conditions, and messages that show the moment."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel_pytest import Reading, RunLog, always, eventually, never, within
from logreel_pytest.conditions import length_ns
from logreel_pytest.signals import take_drawn
from support.builders.planted import MS, SECOND, ulog
from support.samples.ulog.builder import flight

#: A value that is the number of its message, every 100 ms for 6 s; ``other`` is the same, negative.
ROWS = [("a", 5 * SECOND + n * 100 * MS, n) for n in range(60)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run.ulg"
    path.write_bytes(ulog(ROWS))
    return path


@pytest.fixture
def run(path: Path) -> RunLog:
    take_drawn()
    return RunLog(path)


def test_fields_are_arrays_that_know_when(run: RunLog) -> None:
    value = run["a"]["value"]
    assert value.tolist() == list(range(60))
    assert value[10:20].seconds(0) == pytest.approx(1.0)
    assert (value[value > 50]).seconds(0) == pytest.approx(5.1)
    assert value.max() == 59
    assert isinstance(value.max(), Reading)
    assert value.mean() == pytest.approx(29.5)
    assert np.asarray(value + 1).tolist() == list(range(1, 61))
    assert logreel.check(run).findings == logreel.check(run.path).findings
    assert run.format == "ulog"
    assert "a" in run


def test_conditions_hold(run: RunLog) -> None:
    value = run["a"]["value"]
    within(value, 0, 59)
    within(value, low=0)
    never(value < 0)
    never(value, lambda v: v > 59)
    always(value >= 0)
    eventually(value > 20, within="2.1 s")
    eventually(value > 20, within=1, after=value > 10)
    eventually(value > 20, within="100 ms", after=2.0)
    assert take_drawn() == []


def failing(call: str, run: RunLog) -> str:
    """Return the message of a condition that fails."""
    value = run["a"]["value"]
    names = {
        "value": value,
        "run": run,
        "within": within,
        "never": never,
        "always": always,
        "eventually": eventually,
    }
    with pytest.raises(AssertionError) as raised:
        eval(call, names)  # noqa: S307
    return str(raised.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("within(value, 0, 40)", "a.value is not within 0 and 40: 41 at 4.10 s, 19 times"),
        ("never(value > 50)", "a.value > 50: met at 5.10 s, 9 times"),
        ("never(value, lambda v: v > 50)", "a.value: met at 5.10 s, 9 times"),
        ("always(value < 50)", "a.value < 50: not met at 5.00 s, 10 times"),
        (
            "eventually(value > 30, within='2 s')",
            "a.value > 30: met after 3.10 s from 0.00 s on, 2 s are allowed",
        ),
        ("eventually(value > 90)", "a.value > 90: never met from 0.00 s on"),
        (
            "eventually(value > 55, within=1, after=value > 10)",
            "a.value > 55: met after 4.50 s from 1.10 s on, 1 s are allowed",
        ),
    ],
)
def test_messages_say_when_and_show_the_moment(run: RunLog, call: str, text: str) -> None:
    head, *chart = failing(call, run).splitlines()
    assert head == text
    assert len(chart) == 8
    assert "█" in "".join(chart)
    assert "▲" in chart[-2]
    assert re.fullmatch(r" +\d+\.\d s +\d+\.\d s", chart[-1])
    (picture,) = take_drawn()
    assert picture.startswith("<svg ")


def test_conditions_in_sql(run: RunLog) -> None:
    pytest.importorskip("duckdb")
    never(run, "a.value > 90")
    assert failing("never(run, 'a.value > 50 AND a.other < 0')", run).startswith(
        "a.value > 50 AND a.other < 0: met at 5.10 s, 9 times"
    )
    eventually(run, "a.value > 20", within="1 s", after="a.value > 15")
    with pytest.raises(logreel.UsageError, match="no topic of the log"):
        never(run, "b.value > 1")


def test_what_cannot_be_assessed_is_no_success(run: RunLog) -> None:
    empty = run["a"]["value"][:0]
    for condition in (within, never):
        with pytest.raises(AssertionError, match="not assessed"):
            condition(empty) if condition is within else condition(empty > 1)
    assert "not assessed" in failing("eventually(value > 1, after=value > 90)", run)
    with pytest.raises(logreel.UsageError, match="no signal"):
        within(np.arange(3))
    with pytest.raises(logreel.UsageError, match="true or false"):
        never(run["a"]["value"])
    with pytest.raises(logreel.UsageError, match="no length of time"):
        length_ns("5 parsecs")


SUITE = """
import sys

import pytest


def test_nothing_is_imported_early():
    assert not [name for name in ("logreel", "logreel_pytest.signals") if name in sys.modules]


def test_sound(log):
    assert log["a"]["value"].min() >= 0


def test_low(log):
    assert log["a"]["value"].max() < 50


def test_condition(log):
    from logreel_pytest import never

    never(log["a"]["value"] > 50)


@pytest.mark.log("other.ulg")
def test_marked(log):
    assert len(log["a"]["value"]) == 30
"""


def pytest_run(folder: Path, *words: str) -> str:
    # Plug-ins that the suite does not need would take most of the time.
    names = ("cacheprovider", "anyio", "zarr", "xdist", "hypothesispytest")
    without = [word for name in names for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-q", *without, "-rs", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60).stdout


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    text = (Path(__file__).parents[1] / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "test_flight.py").write_text(block)
    (tmp_path / "flight.ulg").write_bytes(flight(31.0))
    assert "2 passed" in pytest_run(tmp_path, "--log", "flight.ulg")


def test_a_suite_in_a_process_of_its_own(path: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "other.ulg").write_bytes(ulog(ROWS[:30]))
    out = pytest_run(tmp_path, "--log", str(path))
    assert "2 failed, 3 passed" in out
    assert "59 < 50" in out
    assert "max of a.value at 5.90 s:" in out
    assert "a.value > 50: met at 5.10 s, 9 times" in out
    assert out.count("▲") >= 2
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nlogreel_log = {tmp_path / '*.ulg'}\n")
    out = pytest_run(tmp_path, "--log", str(path), "--log", "other.ulg", "-k", "sound or marked")
    assert "3 passed" in out
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    out = pytest_run(tmp_path, "-k", "sound")
    assert "1 skipped" in out
    assert "not assessed: no log" in out
