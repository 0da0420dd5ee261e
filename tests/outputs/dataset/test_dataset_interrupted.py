"""Datasets whose writer dies: at every moment they can be loaded, and the next run completes them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.training_logs import robot_spec, write_robot
from support.harness.cli_runner import environment
from support.harness.forked import forked_python
from support.oracles.lerobot_layout import check

pytest.importorskip("av")
STEPS = ("rename", "replace", "link")


class Killed(BaseException):
    """The process died."""


def dies_after(steps: int, run: Callable[[], Any]) -> bool:
    """Call *run* and let it die before the step of that number that gives a file its name; return whether it died."""
    left = steps
    originals = {name: getattr(os, name) for name in STEPS}
    unlink = Path.unlink

    def counted(name: str) -> Callable[..., Any]:
        def step(*given: Any, **more: Any) -> Any:
            nonlocal left
            if left <= 0:
                raise Killed
            left -= 1
            return originals[name](*given, **more)

        return step

    def kept(path: Path, missing_ok: bool = False) -> None:
        # Who is dead removes nothing.
        if left > 0:
            unlink(path, missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, counted(name))
        patch.setattr(Path, "unlink", kept)
        try:
            run()
        except Killed:
            return True
    return False


def content(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("bags")
    return [write_robot(folder / f"{i}.bag", 0.4, seed=i) for i in range(2)]


@pytest.fixture(scope="module")
def more_bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("more")
    return [write_robot(folder / f"{i}.bag", 0.4, seed=i) for i in range(8)]


@pytest.fixture(scope="module")
def whole(bags: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "out"
    logreel.dataset(bags, out, robot_spec())
    return content(out)


def test_new_dataset_loads_whenever_its_writer_dies(
    bags: list[Path], whole: dict[str, bytes], tmp_path: Path
) -> None:
    seen = set()
    steps = 0
    while True:
        out = tmp_path / str(steps) / "out"
        out.parent.mkdir()
        died = dies_after(steps, lambda out=out: logreel.dataset(bags, out, robot_spec()))
        episodes = 0
        if (out / "meta/info.json").exists():
            episodes = check(out, exact=False).info["total_episodes"]
        seen.add(episodes)
        assert episodes == 2 or died
        logreel.dataset(bags, out, robot_spec())
        assert content(out) == whole
        if not died:
            break
        steps += 1
    assert seen == {0, 1, 2}
    assert steps > 15


def test_old_dataset_loads_until_the_new_one_is_there(
    bags: list[Path], whole: dict[str, bytes], tmp_path: Path
) -> None:
    old = robot_spec()
    old["features"]["action"] = {"fields": ["/command.y"], "method": "previous"}
    logreel.dataset(bags, tmp_path / "old", old)
    steps = 0
    while True:
        out = tmp_path / str(steps) / "out"
        shutil.copytree(tmp_path / "old", out)
        died = dies_after(steps, lambda out=out: logreel.dataset(bags, out, robot_spec()))
        assert check(out).info["total_episodes"] == 2
        done = logreel.dataset(bags, out, robot_spec())
        assert done.reused + done.reused_videos == 2
        assert content(out) == whole
        assert os.listdir(out.parent) == ["out"]
        if not died:
            break
        steps += 3
    assert steps > 15


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
@pytest.mark.parametrize("to", ["lerobot", "zarr", "hdf5", "lance"])
def test_killed_process_leaves_finished_episodes(more_bags: list[Path], tmp_path: Path, to: str) -> None:
    pytest.importorskip({"zarr": "zarr", "hdf5": "h5py", "lance": "lance"}.get(to, "av"))
    code = (
        "import sys, json, logreel\n"
        "logreel.dataset(sys.argv[3:], sys.argv[1], json.loads(sys.argv[4 - 2]), to="
        f"{to!r})\n"
    )
    import json

    out = tmp_path / "out"
    command = forked_python("-c", code, out, json.dumps(robot_spec()), *more_bags)
    program = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE)
    records = out / "logreel/episodes"
    deadline = time.monotonic() + 120
    while program.poll() is None and time.monotonic() < deadline:
        if records.is_dir() and len(list(records.glob("episode-*.json"))) >= 2:
            break
        time.sleep(0.002)
    program.kill()
    # The pipe ends with the process that writes, which is another one.
    program.communicate()
    if to == "lerobot":
        assert check(out, exact=False).info["total_episodes"] >= 1
    elif to == "zarr":
        import zarr

        group = zarr.open(out / "replay_buffer.zarr", mode="r")
        ends = group["meta"]["episode_ends"][:]
        assert {len(array[:]) for _, array in group["data"].arrays()} == {ends[-1]}
    done = logreel.dataset(more_bags, out, robot_spec(), to=to)
    assert done.reused >= 2
    fresh = logreel.dataset(more_bags, tmp_path / "fresh", robot_spec(), to=to)
    assert done.episodes == fresh.episodes
    if to != "lance":
        assert content(out) == content(tmp_path / "fresh")
