"""The check of one room: which tests belong to it, and which of them run when there is no time for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "check_room.py"
spec = spec_from_file_location("check_room", TOOL)
check_room = module_from_spec(spec)
spec.loader.exec_module(check_room)


def names(room: str) -> set[str]:
    return {path.relative_to(ROOT / "tests").as_posix() for path in check_room.tests_of(room)}


def test_a_floor_has_the_folder_of_its_name() -> None:
    assert names("io") == {"io"}
    assert names("ops") == {"ops"}


def test_a_room_has_its_folder_and_the_tests_of_its_floor_that_use_it() -> None:
    inspect = names("ops/inspect")
    assert {"ops/test_info.py", "ops/test_diff.py", "ops/test_contract.py"} <= inspect
    assert "ops/test_slice_times.py" not in inspect
    assert {"ops/edit"} <= names("ops/edit")
    # By a public name.
    assert "ops/test_health.py" in names("ops/health")


def test_every_room_of_the_first_rank_has_tests() -> None:
    for path in check_room.SOURCE.iterdir():
        if path.is_dir() and path.name[0] != "_":
            assert check_room.tests_of(path.name), path.name


def test_other_rooms_are_known() -> None:
    assert "test_docs.py" in names("docs")
    assert names("tests/log") == {"log"}
    assert names("cli/query") == {"cli"}
    package = "packages/logreel-carla-metrics"
    assert check_room.tests_of(package) == [ROOT / package / "tests"]
    with pytest.raises(SystemExit, match="there is no room 'attic'"):
        check_room.tests_of("attic")


def test_what_is_run_names_the_room_and_its_tests() -> None:
    commands = check_room.commands("io", check_room.tests_of("io"))
    assert set(commands) == {"style", "format", "types", "tests"}
    assert all(str(ROOT / "tests/io") in command for command in commands.values())
    assert "types" not in check_room.commands("kernels", check_room.tests_of("kernels"))


def run_suite(folder: Path, seconds: float) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "-p",
            "check_room",
            "--rootdir",
            str(folder),
            str(folder),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(TOOL.parent),
            "LOGREEL_CHECK_UNTIL": str(time.time() + seconds),
            "PYTEST_XDIST_WORKER_COUNT": "1",
        }
        | {"PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_slowest_tests_are_left_out_by_what_they_took(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(
        "import time\ndef test_slow(): time.sleep(0.1)\ndef test_fast(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert "2 passed" in run_suite(tmp_path, 600)
    cache = tmp_path / ".pytest_cache" / "v" / "logreel" / "seconds"
    known = json.loads(cache.read_text())
    assert known["test_suite.py::test_slow"] >= 0.1
    cache.write_text(json.dumps(known | {"test_suite.py::test_slow": 1000.0}))
    later = run_suite(tmp_path, 600)
    assert "PASSED test_suite.py::test_fast" in later
    assert "1 passed, 1 skipped" in later
    assert "left to `make test`" in later
    # What was left out stays known.
    assert json.loads(cache.read_text())["test_suite.py::test_slow"] == 1000


def test_no_test_begins_after_the_time_and_all_have_some() -> None:
    item = SimpleNamespace(nodeid="test_suite.py::test_fast")
    seconds = check_room.Seconds(SimpleNamespace(cache=None), time.time() - 1)
    seconds.pytest_collection_modifyitems([item])
    assert seconds.until > time.time()
    seconds.pytest_runtest_setup(item)
    seconds.until = time.time() - 1
    with pytest.raises(pytest.skip.Exception, match="left to `make test`"):
        seconds.pytest_runtest_setup(item)
