"""Verbs that output content of a damaged log, or answers from it, end with 3; those that describe a file with 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.cli import draw
from logreel.errors import Problem
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

#: Verb, options, and the exit code for a log whose end is missing.
VERBS = (
    ("info", "", 0),
    ("schema", "/imu", 0),
    ("cat", "-n 3", 3),
    ("params", "", 3),
    ("text", "", 3),
    ("attachments", "", 3),
    ("stats", "", 3),
    ("summary", "", 3),
    ("health", "", 3),
    ("tf", "", 3),
    ("du", "", 3),
    ("check", "", 4),
)


@pytest.mark.parametrize(("verb", "options", "code"), VERBS)
def test_verbs_of_a_damaged_log(verb: str, options: str, code: int, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "cut.bag"
    path.write_bytes(drive(2.0)[:-5000])
    sound = tmp_path / "sound.bag"
    sound.write_bytes(drive(2.0))
    done = run(verb, str(path), *options.split())
    assert done.code == code, done.err
    if code == 3:
        assert "could not be read" in done.err
    assert run(verb, str(sound), *options.split()).code == 0


def test_a_finding_of_health_comes_before_damage(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "cut.ulg"
    data = flight()
    # A third of the log is missing, which is a silence of all sensors.
    path.write_bytes(data[: len(data) // 3] + data[2 * len(data) // 3 : -3000])
    assert run("health", str(path), "--fail-on", "note").code == 4


def test_several_logs_of_which_one_is_damaged(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.bag").write_bytes(drive(2.0))
    (tmp_path / "b.bag").write_bytes(drive(2.0)[:-5000])
    done = run("summary", str(tmp_path), "--json")
    assert done.code == 3
    assert len([json.loads(line) for line in done.out.splitlines()]) == 2


def test_one_byte_is_one_byte(capsys: pytest.CaptureFixture[str]) -> None:
    log = logreel.open(flight(2.0))
    log.note(Problem("garbage", 5, 1, True, "one byte is no record"))
    assert draw.finish(log) == 3
    assert "1 byte in one place of the log could not be read" in capsys.readouterr().err
