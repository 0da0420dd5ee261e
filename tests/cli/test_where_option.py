"""``--where`` of cat, convert, slice and split, and ``split --on`` with ``--name``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run
from support.oracles.genuine_rosbag import connections, filtered, genuine
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

pytest.importorskip("duckdb")


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(flight(4.0))


def test_cat_prints_only_matching_messages_and_notes_on_stderr(run: Run) -> None:
    done = run("cat", "a.ulg", "--where", "battery_status.current_a > 15", "--format", "ndjson")
    found = [json.loads(line) for line in done.out.splitlines()]
    with logreel.open("a.ulg") as log:
        times, values = log["battery_status"].times, log["battery_status"]["current_a"]
    assert [one["time_ns"] for one in found] == times[values > 15].tolist()
    assert {one["topic"] for one in found} == {"battery_status"}
    assert (done.code, "left out 15 channels without the fields of the condition" in done.err) == (0, True)


def test_fields_to_print_and_fields_to_test_are_independent(run: Run) -> None:
    words = ("cat", "a.ulg", "-t", "battery_status.voltage_v", "--where", "battery_status.current_a > 15")
    rows = list(csv.reader(io.StringIO(run(*words, "--format", "csv").out)))
    assert rows[0] == ["time_ns", "voltage_v"]
    both = run(*words, "-n", "2", "--json")
    assert [list(one["data"]) for one in both.json["messages"]] == [["voltage_v"]] * 2
    assert [str(one["time_ns"]) for one in both.json["messages"]] == [row[0] for row in rows[1:3]]
    assert not both.err


def test_an_interval_and_several_conditions_have_to_hold_together(run: Run) -> None:
    words = [
        "--where",
        "battery_status.current_a > 15",
        "--where",
        "battery_status.voltage_v < 16",
        "-S",
        "+1s",
    ]
    found = run("cat", "a.ulg", *words, "--json").json["messages"]
    assert found
    with logreel.open("a.ulg") as log:
        due = [
            m.time
            for m in log.messages(["battery_status"], start="+1s")
            if m.decode()["current_a"] > 15 and m.decode()["voltage_v"] < 16
        ]
    assert [one["time_ns"] for one in found] == due


def test_slice_and_convert_take_conditions(run: Run) -> None:
    where = ("--where", "battery_status.current_a > 15")
    assert run("slice", "a.ulg", "-o", "b.ulg", *where).code == 0
    done = run("convert", "a.ulg", "c.csv", "-t", "battery_status.current_a", *where)
    assert done.code == 0
    with logreel.open("b.ulg") as new:
        values = [float(row[1]) for row in list(csv.reader(io.StringIO(Path("c.csv").read_text())))[1:]]
        assert values == pytest.approx(new["battery_status"]["current_a"].tolist())
    notes = run("slice", "a.ulg", "-o", "d.ulg", *where, "--json").json["notes"]
    assert any("without the fields of the condition" in note for note in notes)


def test_a_condition_that_no_message_meets_writes_an_empty_slice_and_says_so(run: Run) -> None:
    done = run("slice", "a.ulg", "-o", "b.ulg", "--where", "battery_status.current_a > 1e9")
    assert (done.code, "no message meets the condition" in done.err) == (0, True)
    assert logreel.open("b.ulg").message_count == 0
    assert run("cat", "a.ulg", "--where", "battery_status.current_a > 1e9").out == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["cat", "a.ulg", "--where", "battery_status.curent_a > 1"], "no field 'curent_a'; nearest: current_a"),
        (["cat", "a.ulg", "-t", "sensor_gps", "--where", "battery_status.current_a > 1"], "not among the chosen"),
        (["cat", "a.ulg", "-f", "--where", "x > 1"], "-f shows messages as they come: leave out --where"),
        (["slice", "a.ulg", "-o", "b.ulg", "--where", "x >"], "the condition cannot be read"),
        (["slice", "a.ulg", "-o", "b.ulg", "--where", "x > (FROM read_text('a.ulg'))"], "must not have a subquery"),
        (["convert", "a.ulg", "b.csv/", "--where", "no_such_field = 1"], "no field 'no_such_field'"),
        (["convert", "a.ulg", "b.mcap", "--where", "q = 1"], "cannot be applied to 'vehicle_attitude'"),
        (["split", "a.ulg", "-o", "p", "--where", "timestamp > 1"], "are in several channels"),
        (["split", "a.ulg", "-o", "p", "--on", "vehicle_status"], "name one field, as topic.field"),
        (["split", "a.ulg", "-o", "p", "--on", "vehicle_status.nav_stat"], "no field 'nav_stat'; nearest: nav_state"),
        (["split", "a.ulg", "-o", "p", "--every", "1s", "--name", "../x"], "not a path"),
        (["split", "a.ulg", "-o", "p", "--every", "1s", "--on", "vehicle_status.nav_state"], "split by one of"),
    ],
)  # fmt: skip
def test_wrong_conditions_are_errors_and_write_nothing(run: Run, words: list[str], text: str) -> None:
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert text in done.err
    assert [path.name for path in Path().iterdir()] == ["a.ulg"]


def test_split_writes_a_log_per_value_and_names_it(run: Run) -> None:
    assert run("split", "a.ulg", "--on", "vehicle_status.nav_state", "-o", "modes").code == 0
    names = sorted(path.name for path in Path("modes").iterdir())
    assert names[0] == "a_000_Position.ulg"
    states = {2: "Position", 3: "Mission", 18: "Land"}
    for name in names:
        with logreel.open(Path("modes") / name) as part:
            assert {name.removesuffix(".ulg").rpartition("_")[2]} >= {
                states[value] for value in part["vehicle_status"]["nav_state"].tolist()
            }
    where = ("--where", "battery_status.current_a > 15")
    done = run("split", "a.ulg", *where, "-o", "high", "--name", "high-{index:2}", "--json")
    assert [Path(one["output"]).name for one in done.json["logs"]] == [
        f"high-{n:02}.ulg" for n in range(len(done.json["logs"]))
    ]


EXPRESSIONS = [
    ("topic == '/imu' and m.header.seq % 3 == 1", ['"/imu".header.seq % 3 = 1']),
    (
        "topic == '/imu' and m.angular_velocity.z < 0.2 or topic == '/odom' and m.twist.twist.linear.x > 0.5",
        ["imu.angular_velocity.z < 0.2", "odom.twist.twist.linear.x > 0.5"],
    ),
    ("t.to_nsec() >= 1747470140500000000", ["time_ns >= 1747470140500000000"]),
    (
        "topic == '/joint_states' and m.position[1] > 0 and 'wheel' in m.name[0]",
        ["joint_states.position[2] > 0 AND contains(joint_states.name[1], 'wheel')"],
    ),
    ("topic == '/rosout' and m.level >= 4", ["rosout.level >= 4"]),
]


@pytest.mark.parametrize(("expression", "where"), EXPRESSIONS)
def test_a_slice_has_the_messages_of_genuine_rosbag_filter(
    run: Run, expression: str, where: list[str]
) -> None:
    genuine()
    Path("a.bag").write_bytes(drive(2.0))
    due = filtered(Path("a.bag").absolute(), Path("due.bag").absolute(), expression)
    assert (
        run("slice", "a.bag", "-o", "b.bag", *(word for one in where for word in ("--where", one))).code == 0
    )
    found = connections(Path("b.bag").absolute())
    assert [(one.topic, one.times, one.payloads) for one in found if one.times] == [
        (one.topic, one.times, one.payloads) for one in due
    ]
    assert due
