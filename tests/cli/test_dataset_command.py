"""``logreel dataset`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.cli import main
from support.builders.training_logs import write_robot

SPEC = """
rate = 10
[sync]
max_error = "60ms"
[features.action]
fields = ["/command.x"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    write_robot(Path("logs/a.bag"), 1.0, seed=1)
    write_robot(Path("logs/b.bag"), 1.0, seed=2)
    Path("spec.toml").write_text(SPEC)


def test_folder_of_logs_is_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "logs", "-o", "out", "--spec", "spec.toml"]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("out: 2 episodes with 20 frames for lerobot\n")
    assert "action" in out
    assert main(["dataset", "logs", "-o", "out", "--spec", "spec.toml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["reused"], found["frames"]) == (2, 20)
    assert [one["log"] for one in found["episodes"]] == ["logs/a.bag", "logs/b.bag"]
    assert found["episodes"][0]["sync"]["action"]["bound_ns"] == 60_000_000


def test_log_without_the_topic_gives_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    Path("spec.toml").write_text(SPEC.replace("/command.x", "/state.x"))
    Path("no.bag").write_bytes(b"no log")
    assert main(["dataset", "logs/a.bag", "no.bag", "-o", "out", "--spec", "spec.toml"]) == 3
    assert "no.bag: left out: not a log" in capsys.readouterr().err


def test_errors_have_their_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.toml").write_text(SPEC + "x = 1\n")
    assert main(["dataset", "logs", "-o", "out", "--spec", "wrong.toml"]) == 2
    assert "wrong.toml: line 7: features.action.x: no such key" in capsys.readouterr().err
    assert main(["dataset", "logs", "-o", "out", "--spec", "gone.toml"]) == 1
    assert not Path("out").exists()
    Path("out").mkdir()
    Path("out/x").write_text("mine")
    assert main(["dataset", "logs", "-o", "out", "--spec", "spec.toml"]) == 1
    err = capsys.readouterr().err
    assert "exists already" in err
    assert "--force" not in err


@pytest.mark.parametrize("is_new", [True, False])
def test_a_run_without_any_log_leaves_nothing(capsys: pytest.CaptureFixture[str], is_new: bool) -> None:
    if not is_new:
        Path("out").mkdir()
    before = sorted(path.name for path in Path().iterdir())
    assert main(["dataset", "gone.bag", "-o", "out", "--spec", "spec.toml"]) == 1
    assert capsys.readouterr().err == "logreel: gone.bag: no such file or directory\n"
    assert sorted(path.name for path in Path().iterdir()) == before
    assert is_new or not any(Path("out").iterdir())
    with pytest.raises(FileNotFoundError):
        logreel.dataset("gone.bag", "out", "spec.toml")


def test_a_missing_log_among_others_is_left_out_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "logs/a.bag", "gone.bag", "-o", "out", "--spec", "spec.toml"]) == 3
    assert "logreel: gone.bag: left out: no such file or directory\n" in capsys.readouterr().err
