"""-S and -E mean the same for every log, and what they mean is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run

S = 10**9


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taken") / "drive.bag"
    with logreel.create(path) as w:
        channel = w.add_channel("/x", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
        for i in range(30):
            w.write(channel, (1_700_000_000 + i) * S, {"data": i})
    return path


def test_slice_of_a_bag_from_10_takes_what_comes_10_s_after_its_start(
    run: Run, bag: Path, tmp_path: Path
) -> None:
    done = run("slice", bag, "-S", "10", "-E", "20", "-o", tmp_path / "part.bag")
    assert done.code == 0
    assert logreel.open(tmp_path / "part.bag")["/x"]["data"].tolist() == list(range(10, 20))
    assert f"{bag}: interval: +10 s to +20 s, 2023-11-14T22:13:30Z to 2023-11-14T22:13:40Z\n" in done.err


def test_numbers_from_a_hundred_million_on_are_seconds_since_1970(run: Run, bag: Path) -> None:
    done = run("cat", bag, "-S", "1700000028", "--format", "ndjson")
    assert done.out.count("\n") == 2
    assert "+28 s to the end" in done.err


def test_the_clock_of_a_ulog_is_written_log(run: Run, logs: Path) -> None:
    by_clock = run("stats", logs / "flight.ulg", "-t", "sensor_gps", "-S", "log:76.312405", "--json")
    after_start = run("stats", logs / "flight.ulg", "-t", "sensor_gps", "-S", "2", "--json")
    assert by_clock.out == after_start.out
    assert by_clock.err == after_start.err
    assert by_clock.err.count("interval: +2 s to the end") == 1


def test_without_an_interval_none_is_printed(run: Run, bag: Path) -> None:
    assert "interval" not in run("cat", bag, "-n", "1").err
