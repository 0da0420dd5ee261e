"""``./logreel`` of a checkout runs the environment of ``make demo`` from any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.harness.cli_runner import Run

LAUNCHER = Path(__file__).resolve().parents[2] / "logreel"
#: Shows where it was started, and with what.
ECHO = '#!/bin/sh\npwd\nfor one in "$@"; do printf "<%s>\\n" "$one"; done\nexit 7\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder as after ``make demo``, with a space in its name, whose logreel shows its arguments."""
    folder = tmp_path / "my checkout"
    (folder / ".venv/bin").mkdir(parents=True)
    shutil.copy(LAUNCHER, folder / "logreel")
    program = folder / ".venv/bin/logreel"
    program.write_text(ECHO)
    program.chmod(0o755)
    return folder


def launch(command: str | Path, *args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *args], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )


def test_the_launcher_runs_from_any_folder_and_keeps_arguments(checkout: Path, tmp_path: Path) -> None:
    args = ("info", "a log.ulg", "", "*", "-t", "x'y")
    shown = "".join(f"<{arg}>\n" for arg in args)
    for command, cwd in (
        (checkout / "logreel", tmp_path),
        ("./logreel", checkout),
        ("../logreel", checkout / ".venv"),
    ):
        done = launch(command, *args, cwd=cwd)
        assert (done.returncode, done.stdout, done.stderr) == (7, f"{cwd}\n{shown}", "")
    # CDPATH would make cd print, and lead elsewhere.
    assert launch("./logreel", cwd=checkout, CDPATH=str(tmp_path)).stdout == f"{checkout}\n"


def test_the_launcher_runs_through_links(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "bin"
    other.mkdir()
    (other / "first").symlink_to(checkout / "logreel")
    (other / "second").symlink_to("first")
    (tmp_path / "third").symlink_to(Path("bin/second"))
    for command in (other / "first", other / "second", tmp_path / "third"):
        assert launch(command, "x", cwd=tmp_path).stdout == f"{tmp_path}\n<x>\n"
    path = f"{other}{os.pathsep}{os.environ['PATH']}"
    assert launch("sh", "-c", "second y", cwd=tmp_path, PATH=path).stdout == f"{tmp_path}\n<y>\n"


def test_the_launcher_without_environment_prints_the_setup_command(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    done = launch(checkout / "logreel", "info", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"logreel: not set up yet in {checkout}: run 'make demo' there first\n"


@pytest.mark.skipif(not LAUNCHER.with_name(".venv").exists(), reason="the checkout has no .venv")
def test_the_launcher_runs_logreel(tmp_path: Path) -> None:
    done = launch(LAUNCHER, "--version", cwd=tmp_path)
    assert done.stdout.startswith("logreel ")


def test_the_demo_shows_commands_that_work_here(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    own = bin_folder / "logreel"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "executable", str(bin_folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    # What the commands show is tested where they run, see test_reading_verbs.py.
    monkeypatch.setattr("logreel.cli.main", lambda words: 0)
    shown = run("demo").out
    assert f"$ {own} info logreel-demo/flight.ulg\n" in shown
    assert shown.endswith(f"$ . {bin_folder / 'activate'}\n")
    shutil.copy(LAUNCHER, work / "logreel")
    shown = run("demo").out
    assert "\n$ ./logreel info logreel-demo/flight.ulg\n" in shown
    assert "\n$ ./logreel --help\n" in shown
    assert shown.endswith(f"$ . {bin_folder / 'activate'}\n")
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
    shown = run("demo").out
    assert "\n$ logreel --help\n" in shown
    assert "activate" not in shown
