"""``-t key=value`` of the verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "drive.bag"
    path.write_bytes(drive(2))
    return path


MAP = "callerid=/map_server"


def test_reading_verbs_take_conditions(run: Run, bag: Path) -> None:
    (channel,) = run("info", bag, "-t", MAP, "--json").json["channels"]
    assert channel["topic"] == "/map"
    lines = run("cat", bag, "-t", "type=sensor_msgs/NavSatFix,callerid=/robot", "--format", "ndjson").out
    assert {line.split('"')[3] for line in lines.splitlines()} == {"/gps/fix"}
    listed = run("stats", bag, "-t", "type=sensor_msgs/*", "-x", "type=re:.*(Image|Scan)", "--json").json[
        "channels"
    ]
    assert [one["topic"] for one in listed] == ["/imu", "/joint_states", "/gps/fix"]
    assert [one["topic"] for one in run("schema", bag, MAP, "--json").json["schemas"]] == ["/map"]
    assert [
        one["topic"] for one in run("diff", bag, bag, "-t", MAP, "--json", "--messages").json["channels"]
    ] == ["/map"]


def test_writing_verbs_take_conditions(run: Run, bag: Path, tmp_path: Path) -> None:
    for n, words in enumerate((["slice", bag], ["merge", bag])):
        out = tmp_path / f"{n}.bag"
        assert run(*words, "-o", out, "-t", "type=sensor_msgs/Imu").code == 0
        with logreel.open(out) as log:
            assert list(log) == ["/imu"]
    assert run("split", bag, "--by-topic", "-o", tmp_path / "parts", "-t", "type=*/Imu").code == 0
    assert len(list((tmp_path / "parts").iterdir())) == 1
    assert run("convert", bag, tmp_path / "a.csv", "-t", "type=*/Imu:angular_velocity.z").code == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "time_ns,angular_velocity.z"
    played = run("play", bag, "-t", MAP, "-r", "1000", "--to", "stdout").out
    assert [line.split('"')[3] for line in played.splitlines()] == ["/map"]


def test_messages_of_a_query_are_those_of_the_condition(run: Run, bag: Path) -> None:
    rows = run("sql", 'SELECT DISTINCT topic FROM "type=*/Imu"', bag, "--json").json["rows"]
    assert rows == [{"topic": "/imu"}]


@pytest.mark.parametrize("verb", ["info", "cat", "stats", "slice", "convert", "play"])
def test_a_condition_that_fits_nothing_is_a_usage_error(
    run: Run, bag: Path, tmp_path: Path, verb: str
) -> None:
    more = {"slice": ["-o", tmp_path / "a.bag"], "convert": [tmp_path / "a.mcap"]}.get(verb, [])
    done = run(verb, bag, *more, "-t", "typ=sensor_msgs/Imu")
    assert done.code == 2
    assert "no key 'typ'; nearest: type" in done.err
    done = run(verb, bag, *more, "-x", "type=sensor_msgs/Imo")
    assert done.code == 2
    assert "no channel with type 'sensor_msgs/Imo'; nearest: sensor_msgs/Imu" in done.err
    assert "several are given one by one" not in run(verb, bag, *more, "-t", "type=a,latching=b").err
    assert not list(tmp_path.iterdir())
