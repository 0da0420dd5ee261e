"""Power failures at every call of the system: confirmed messages are on the disk, and files are old or new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import SANITIZED
from support.formats import builtin_formats
from support.harness.cli_runner import SRC
from support.harness.crash_disk import Disk, State
from support.harness.system_calls import Event, Op, environment, library, with_unseen_renames

#: Random subsets after each call, and the most states of a job (0: all); ``make fuzz`` sets more.
SUBSETS, MOST = (int(os.environ["LOGREEL_FUZZ"]) // 500, 0) if "LOGREEL_FUZZ" in os.environ else (1, 8)
FORMATS, OTHERS = (
    [f.name for f in builtin_formats().values() if f.create is not None],
    ["tables", "fleet", "dataset"],
)
#: Names of jobs of one process each; by default one does all, which saves imports.
LANES = [*FORMATS, *OTHERS] if MOST == 0 else [",".join((*FORMATS, *OTHERS))]

pytestmark = pytest.mark.skipif(
    library() is None or SANITIZED, reason="needs gcc and Linux, and no sanitizer in the process"
)


@pytest.mark.parametrize("names", LANES)
def test_every_state_after_a_power_failure_is_sound(names: str) -> None:
    script = Path(__file__).with_name("crash_states.py")
    variables = environment(library()) | {"PYTHONPATH": str(SRC)}
    command = [sys.executable, str(script), names, str(SUBSETS), str(MOST), "1"]
    done = subprocess.run(command, capture_output=True, env=variables, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert min(counts.values()) >= 4, counts
    assert {title.partition(":")[0] for title in counts} == {*names.split(",")}


def states(folder: Path, events: list[Event]) -> list[State]:
    """Return all states that the model finds after *events*."""
    import random

    disk = Disk(folder)
    for event in events:
        disk.apply(event)
    return [disk.state(choice) for choice in disk.choices(random.Random(1), 20)]


def event(
    folder: Path, op: Op, inode: int = 7, place: int = 0, data: bytes = b"", other: bytes = b""
) -> Event:
    named = op in (Op.CREATE, Op.RENAME, Op.LINK, Op.UNLINK)
    return Event(op, inode, place, os.fsencode(folder) + b"/" + data if named else data, other)


def test_renames_that_the_library_does_not_see_are_found(tmp_path: Path) -> None:
    """Such as those of Lance, in a folder that is renamed later itself."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "x").write_bytes(b"data")
    inode, folder = (tmp_path / "new" / "x").stat().st_ino, os.fsencode(tmp_path)
    created = event(tmp_path, Op.CREATE, inode, data=b"old/.tmp1")
    wrote = event(tmp_path, Op.WRITE, inode, data=b"data")
    moved = event(tmp_path, Op.RENAME, data=b"old", other=folder + b"/new")
    renamed = Event(Op.RENAME, 0, 0, folder + b"/old/.tmp1", folder + b"/old/x")
    assert with_unseen_renames([created, wrote, moved], tmp_path) == [created, wrote, renamed, moved]
    seen = event(tmp_path, Op.RENAME, data=b"old/.tmp1", other=folder + b"/old/x")
    assert with_unseen_renames([created, wrote, seen, moved], tmp_path) == [created, wrote, seen, moved]


def test_the_model_loses_what_was_not_synced(tmp_path: Path) -> None:
    """A writer that renames without a sync is found out, and one with all syncs is not."""
    (tmp_path / "x").write_bytes(b"old")
    new = os.fsencode(tmp_path) + b"/x"
    create = event(tmp_path, Op.CREATE, data=b"y")
    write = event(tmp_path, Op.WRITE, data=b"new" * 400)
    rename = event(tmp_path, Op.RENAME, data=b"y", other=new)
    synced = event(tmp_path, Op.FSYNC)
    folder = Event(Op.FSYNC_FOLDER, tmp_path.stat().st_ino, 0, b"", b"")
    careless = {one.get("x") for one in states(tmp_path, [create, write, rename])}
    assert {b"old", b"new" * 400, b"", bytes(1200)} <= careless
    assert any(one[:512] == (b"new" * 171)[:512] and one[512:1024] == bytes(512) for one in careless if one)
    assert {one["x"] for one in states(tmp_path, [create, write, synced, rename])} == {b"old", b"new" * 400}
    assert {one["x"] for one in states(tmp_path, [create, write, synced, rename, folder])} == {b"new" * 400}
