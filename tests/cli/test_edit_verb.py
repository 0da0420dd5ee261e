"""``logreel edit``: options, recipes, output, exit codes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from support.builders.contents import SAMPLES
from support.harness.cli_runner import Run
from support.samples.ulog.builder import Builder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for suffix in (".bag", ".mcap", ".ulg"):
        (tmp_path / f"a{suffix}").write_bytes(SAMPLES[suffix]())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_change_what_they_name(run: Run) -> None:
    done = run(
        *("edit", "a.bag", "-o", "b.bag", "--rename", "/imu=/sensors/imu", "--frame", "imu_link=body"),
        *(
            "--shift",
            "2s",
            "--drop-topic",
            "/map",
            "--zero",
            "/gps/fix.latitude",
            "--set",
            "/odom:callerid=/x",
        ),
        *("--redact", "images"),
    )
    assert done.code == 0, done.err
    assert done.err.startswith("logreel: wrote ")
    log, source = logreel.open("b.bag"), logreel.open("a.bag")
    assert log["/sensors/imu"][0].decode()["header"]["frame_id"] == "body"
    assert log["/sensors/imu"].times.tolist() == (source["/imu"].times + 2 * 10**9).tolist()
    assert "/map" not in log
    assert log["/gps/fix"]["latitude"].tolist() == [0.0]
    assert log["/odom"].metadata["callerids"] == ["/x"]
    for word in ("rename", "frame", "shift", "drop-topic", "zero", "set", "redact images"):
        assert f"\n{word} " in f"\n{done.out}"


def test_json_lists_the_changes(run: Run) -> None:
    told = run("edit", "a.ulg", "-o", "b.ulg", "--redact", "position=remove", "--json").json
    assert {one["kind"] for one in told["changes"]} == {"redact position"}
    assert "sensor_gps" in {one["topic"] for one in told["changes"]}
    assert told["written"] is True


def test_a_dry_run_writes_nothing(run: Run, here: Path) -> None:
    before = sorted(here.iterdir())
    done = run("edit", "a.ulg", "--dry-run", "--redact", "position")
    assert (done.code, sorted(here.iterdir())) == (0, before)
    assert "sensor_gps" in done.out
    again = run("edit", "a.ulg", "-o", "b.ulg", "--redact", "position")
    assert again.out == done.out


def test_a_recipe_and_options_add_up(run: Run, here: Path) -> None:
    (here / "notes.txt").write_text("hello")
    (here / "r.toml").write_text(
        'drop-topic = ["/chatter"]\nattach = "notes.txt"\n\n[rename]\n"/imu" = "/x"\n\n[set]\n"who.name" = "Ann"\n'
    )
    done = run("edit", "a.mcap", "-o", "b.mcap", "--recipe", "r.toml", "--rename", "/fix=/y")
    assert done.code == 0, done.err
    log = logreel.open("b.mcap")
    assert {"/x", "/y"} <= set(log)
    assert "/chatter" not in log
    assert log.attachments["notes.txt"].read() == b"hello"
    assert log.metadata["who"] == {"name": "Ann"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = [", "no valid TOML"),
        ('[rename]\n"/a" = "/b"\n\ncolour = 1', "line 1: rename: expected a table"),
        ("\n\ncolour = 1", "line 3: 'colour' is no edit"),
        ("shift = 1.5", "line 1: shift: expected a length of time"),
        ('\nclock = "wall"', "line 2: clock: expected both or log or header"),
        ("rename = 3", "line 1: rename: expected a table"),
        ('redact = "faces"', "line 1: redact: 'faces' cannot be redacted"),
        ('[[attach]]\nfile = "x"', "line 1: attach: expected path"),
        ('restamp = "header=log"\nshift = "1s"', "goes with neither shift nor scale"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_line(text: str, why: str, run: Run, here: Path) -> None:
    (here / "r.toml").write_text(text)
    done = run("edit", "a.bag", "-o", "b.bag", "--recipe", "r.toml")
    assert done.code == 2
    assert why in done.err
    assert not (here / "b.bag").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "give the new log with -o OUT, or --dry-run"),
        (["-o", "b.bag", "--rename", "/imu"], "write OLD=NEW"),
        (["-o", "b.bag", "--set", "who"], "write NAME=VALUE"),
        (["-o", "b.bag", "--set", "who=me"], "no place for metadata"),
        (["-o", "b.bag", "--attach", "a.ulg"], "no place for attachments"),
        (["-o", "a.bag", "--force"], "a.bag"),
    ],
)
def test_wrong_use_exits_with_2_and_writes_nothing(
    options: list[str], why: str, run: Run, here: Path
) -> None:
    before = (here / "a.bag").read_bytes()
    done = run("edit", "a.bag", *options)
    assert (done.code, why in done.err) == (2, True), done.err
    assert not (here / "b.bag").exists()
    assert (here / "a.bag").read_bytes() == before


def test_what_cannot_be_redacted_exits_with_3(run: Run, here: Path) -> None:
    b = Builder(start_us=1_000_000).flags().parameter("LPE_LAT", 47.397742)
    b.format("home_position:uint64_t timestamp;double lat;double lon;float alt;").subscribe(
        "home_position", 0
    )
    b.data(0, struct.pack("<Qddf", 1_000_000, 47.397742, 8.545594, 488.0))
    (here / "p.ulg").write_bytes(bytes(b.bytes()))
    done = run("edit", "p.ulg", "-o", "q.ulg", "--redact", "position")
    assert done.code == 3
    assert "LPE_LAT" in done.err
    assert "47.39" not in done.err + done.out


def test_an_edited_log_goes_to_stdout(run: Run, here: Path) -> None:
    done = run("edit", "a.bag", "-o", "b.bag", "--rename", "/imu=/x")
    assert done.code == 0
    with (here / "c.bag").open("wb") as file:
        logreel.edit("a.bag", file, rename={"/imu": "/x"})
    assert (here / "c.bag").read_bytes() == (here / "b.bag").read_bytes()


def test_what_may_still_identify_is_listed_and_does_not_change_the_exit_code(run: Run, here: Path) -> None:
    b = Builder(start_us=1_000_000).flags().info("sys_name", "PX4")
    b.format("vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;").subscribe(
        "vehicle_gps_position", 0
    )
    for i in range(10):
        b.data(0, struct.pack("<Qii", 1_000_000 + i, 473_977_420, 85_455_940))
    b.text(6, 1_000_005, "see mission.local")
    (here / "c.ulg").write_bytes(bytes(b.bytes()))
    done = run("edit", "c.ulg", "-o", "d.ulg", "--redact", "place,time")
    assert done.code == 0, done.err
    assert "what may still identify:\nlogreel:   ~text: looks like the name of a computer" in done.err
    told = run("edit", "c.ulg", "-o", "e.ulg", "--redact", "place", "--redact", "time", "--json").json
    assert told["may_identify"] == [
        {"where": "~text", "what": "looks like the name of a computer", "count": 1}
    ]
    assert run("edit", "c.ulg", "-o", "f.ulg", "--redact", "identity", "--json").json["may_identify"] == []
    assert run("edit", "c.ulg", "-o", "g.ulg", "--redact", "place,names").code == 2
