"""Killed recorders and appenders, in every format: the old log is whole, flushed messages are in the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.formats import builtin_formats
from support.harness.cli_runner import Spawn

#: `make soak` sets more; a part has to end in the time of ``spawn``, also on a busy machine.
RUNS = int(os.environ.get("LOGREEL_SOAK", "20"))
PARTS = max(1, RUNS // 25)
#: Appending takes longer: each run completes one log first.
APPENDS = int(os.environ.get("LOGREEL_SOAK", "6"))
APPEND_PARTS = max(1, APPENDS // 10)
#: Windows around triggers, of formats that define types; `make soak` takes all of these.
RINGS = min(100, int(os.environ.get("LOGREEL_SOAK", "5")))
RING_FORMATS = ["mcap", *(["bddf", "rosbag", "rosbag2", "ulog"] if "LOGREEL_SOAK" in os.environ else [])]
#: Messages per second of the hour that a ring is recorded for.
RING_RATE = 200 if "LOGREEL_SOAK" in os.environ else 10


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.create is not None])
def test_flushed_messages_survive_kill(name: str, part: int, spawn: Spawn) -> None:
    script = Path(__file__).with_name("killing.py")
    done = spawn(script, name, str(RUNS // PARTS), str(part * 1000), imported=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("part", range(APPEND_PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.append is not None])
def test_old_log_and_flushed_messages_survive_kill_of_append(name: str, part: int, spawn: Spawn) -> None:
    script = Path(__file__).with_name("killing_append.py")
    done = spawn(script, name, str(APPENDS // APPEND_PARTS), str(part * 1000), imported=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.create is not None])
def test_flushed_messages_of_live_sources_survive_kill_in_any_part(
    name: str, part: int, spawn: Spawn
) -> None:
    script = Path(__file__).with_name("killing_live.py")
    done = spawn(script, name, str(RUNS // PARTS), str(part * 1000), imported=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("name", RING_FORMATS)
def test_announced_windows_survive_kill(name: str, spawn: Spawn) -> None:
    script = Path(__file__).with_name("killing_ring.py")
    done = spawn(script, name, str(RINGS), "1", imported=True)
    assert done.returncode == 0, done.stderr.decode()


def test_a_ring_needs_no_more_memory_and_disk_within_an_hour(spawn: Spawn) -> None:
    script = Path(__file__).with_name("ring_for_an_hour.py")
    done = spawn(script, str(RING_RATE))
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
