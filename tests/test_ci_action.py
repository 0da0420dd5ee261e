"""The GitHub Action and the pre-commit hook: their steps run in bash with the inputs given, as servers run them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logreel.formats.rosbag2.yaml import parse
from support.builders.planted import MS, SECOND, steady, ulog

ROOT = Path(__file__).parents[1]
FILES = (ROOT / ".github/actions/logreel-ci/action.yml", ROOT / ".pre-commit-hooks.yaml")
# With our own reader, since PyYAML is not among what tests need.
ACTION: dict[str, Any] = parse(FILES[0].read_text())
INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/good one.ulg").write_bytes(ulog(steady()))
    (tmp_path / "logs/-bad.ulg").write_bytes(ulog(row for row in steady() if row[1] % SECOND > 200 * MS))
    (tmp_path / "c.toml").write_text("[topics.a]\nmax_gap = 0.1\n")
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names = {"GITHUB_STEP_SUMMARY": folder / "step.md", "GITHUB_OUTPUT": folder / "output"}
    return os.environ | {"PATH": path} | {name: str(place) for name, place in names.items()}


def run_action(folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the steps in bash with these inputs, as a runner does; return the exit code and stdout."""
    given = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | inputs
    assert all(given[name] for name, one in ACTION["inputs"].items() if one.get("required"))
    out = ""
    for step in ACTION["runs"]["steps"]:
        if "run" not in step:
            continue
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "inputs in the text of a script could run commands"
        values = {k: INPUT.sub(lambda m: given[m[1]], str(v)) for k, v in step.get("env", {}).items()}
        # The words with which runners of GitHub start bash.
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            words, cwd=folder, env=environment(folder) | values, capture_output=True, text=True, timeout=60
        )
        out += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, out
    return 0, out


def test_the_action_judges_runs_and_writes_the_summary(folder: Path) -> None:
    code, out = run_action(
        folder, runs="logs\n", contract="c.toml", baseline="logs/good one.ulg", output="out dir"
    )
    assert code == 4, out
    assert sorted(one.name for one in (folder / "out dir").iterdir()) == [
        "junit.xml", "report.html", "results.sarif", "summary.md",
    ]  # fmt: skip
    assert (folder / "step.md").read_text().startswith("## ❌ 1 of 2 runs failed")
    assert "report=out dir/report.html" in (folder / "output").read_text()


def test_the_action_passes_for_a_good_run_and_takes_names_as_they_are(folder: Path) -> None:
    code, out = run_action(folder, runs="logs/good one.ulg", contract="c.toml")
    assert code == 0, out
    assert "✅" in (folder / "step.md").read_text()
    name = "$(touch pwned)`touch pwned`;touch pwned"
    code, out = run_action(folder, runs=name, contract="c.toml")
    assert code != 0
    assert not (folder / "pwned").exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_other_programs_read_the_files_alike(path: Path) -> None:
    yaml = pytest.importorskip(
        "yaml", reason="PyYAML is no dependency; the other tests read with our own reader"
    )
    assert parse(path.read_text()) == yaml.safe_load(path.read_text())


def test_the_hook_finds_broken_and_huge_logs(folder: Path) -> None:
    (hook,) = parse(FILES[1].read_text())
    assert {"id", "name", "entry", "language", "files"} <= hook.keys()
    assert re.search(hook["files"], "logs/a.ulg")
    assert not re.search(hook["files"], "a.py")
    broken = folder / "broken.ulg"
    broken.write_bytes(ulog(steady())[:-9_000] + b"\xff" * 5_000)

    def run(path: Path, entry: str = hook["entry"]) -> int:
        words = [*shlex.split(entry), str(path)]
        return subprocess.run(words, env=environment(folder), capture_output=True, timeout=60).returncode

    assert run(folder / "logs/good one.ulg") == 0
    assert run(broken) == 4
    assert run(folder / "logs/good one.ulg", hook["entry"].replace("10MB", "1kB")) == 4
