"""Followers of killed recorders, in every format that can be written: every whole message once, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.formats import builtin_formats
from support.harness.cli_runner import Spawn

#: `make soak` sets more.
RUNS = int(os.environ.get("LOGREEL_SOAK", "2"))
#: Parts of few runs: a run takes up to six seconds where messages are pictures, and a part at most two minutes.
PARTS = max(1, RUNS // 10)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values() if f.create is not None])
def test_followers_print_each_message_once_over_kills_and_restarts(
    name: str, part: int, spawn: Spawn
) -> None:
    script = Path(__file__).with_name("following.py")
    done = spawn(script, name, str(RUNS // PARTS), str(part * 1000), imported=True)
    assert done.returncode == 0, done.stderr.decode()
