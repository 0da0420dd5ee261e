"""SIGTERM and SIGHUP end a command as Ctrl-C does: no unfinished files are left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.harness.cli_runner import Spawn

SCRIPT = """
import os, signal, sys
from logreel.cli import main
from logreel.ops.rewrite.engine import NewLog

def stop(*args, **options):
    os.kill(os.getpid(), getattr(signal, os.environ["SENT"]))
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return verify(*args, **options)
    raise AssertionError("not reached")

if os.environ["SENT"] == "ignored":
    os.environ["SENT"] = "SIGHUP"
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
verify, NewLog._verify = NewLog._verify, stop
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.usefixtures("hangup")
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("sent", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("ignored", 0)])
def test_signals_leave_no_unfinished_file(
    spawn: Spawn, logs: Path, monkeypatch: pytest.MonkeyPatch, sent: str, code: int
) -> None:
    """A program started by nohup ignores SIGHUP, and goes on."""
    monkeypatch.setenv("SENT", sent)
    before = sorted(os.listdir(logs))
    for words in (["slice", "flight.ulg", "-o", "out.ulg"], ["convert", "flight.ulg", "out.mcap"]):
        done = spawn("-c", SCRIPT, *words, cwd=logs, imported=True)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        made = [] if code else [words[-1]]
        assert sorted(os.listdir(logs)) == sorted([*before, *made])
        for name in made:
            (logs / name).unlink()


ANSWERED = """
import os, signal, time
from logreel.cli.console import stop_requested
from logreel.cli.signals import StopSignals

with StopSignals():
    with stop_requested() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
    time.sleep(0.5)
    print("reported")
"""


def test_what_stopped_as_asked_says_so_without_being_interrupted(spawn: Spawn, tmp_path: Path) -> None:
    done = spawn("-c", ANSWERED, cwd=tmp_path, imported=True)
    assert (done.returncode, done.stdout.strip()) == (0, b"reported"), done.stderr
