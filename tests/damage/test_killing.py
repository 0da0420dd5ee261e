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


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.create is not None])
def test_flushed_messages_survive_kill(name: str, part: int, spawn: Spawn) -> None:
    script = Path(__file__).with_name("killing.py")
    done = spawn(script, name, str(RUNS // PARTS), str(part * 1000))
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("part", range(APPEND_PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.append is not None])
def test_old_log_and_flushed_messages_survive_kill_of_append(name: str, part: int, spawn: Spawn) -> None:
    script = Path(__file__).with_name("killing_append.py")
    done = spawn(script, name, str(APPENDS // APPEND_PARTS), str(part * 1000))
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.create is not None])
def test_flushed_messages_of_live_sources_survive_kill_in_any_part(
    name: str, part: int, spawn: Spawn
) -> None:
    script = Path(__file__).with_name("killing_live.py")
    done = spawn(script, name, str(RUNS // PARTS), str(part * 1000))
    assert done.returncode == 0, done.stderr.decode()
