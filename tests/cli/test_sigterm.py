"""SIGTERM ends a command as Ctrl-C does: no unfinished files are left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.harness.cli_runner import Spawn

SCRIPT = """
import os, signal, sys
from logreel.cli import main
from logreel.ops.rewrite.rewrite import Rewriting

def stop(*args, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("not reached")

Rewriting._verify = stop
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_sigterm_leaves_no_unfinished_file(spawn: Spawn, logs: Path) -> None:
    before = sorted(os.listdir(logs))
    for words in (["slice", "flight.ulg", "-o", "out.ulg"], ["convert", "flight.ulg", "out.mcap"]):
        done = spawn("-c", SCRIPT, *words, cwd=logs)
        assert done.returncode == 143, done.stderr
        assert b"Traceback" not in done.stderr
        assert sorted(os.listdir(logs)) == before
