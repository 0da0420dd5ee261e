"""SIGINT and SIGTERM end every verb that runs long: at any moment, soon, with the right code, and nothing torn."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

#: Signals for each verb; ``make soak`` sends as many as its other tests.
ROUNDS = int(os.environ.get("LOGREEL_SOAK", "2"))
#: Seconds in which a process ends, on a machine that does nothing else; and the latest moment of a signal.
ENDS, LATEST = float(os.environ.get("LOGREEL_PATIENCE", "5")) * 3, 1.5
#: Verbs that would not end by themselves, by name. ``-`` is a pipe to which nothing more is written.
VERBS: dict[str, list[str]] = {
    "play to null": ["play", "flight.ulg", "--loop", "-r", "0", "--to", "null"],
    "play to stdout": ["play", "flight.ulg", "--loop", "--to", "stdout"],
    "play to foxglove": [
        "play",
        "flight.ulg",
        "--loop",
        "--to",
        "foxglove",
        "--set",
        "port=0",
        "--set",
        "wait=no",
    ],
    "record lines": ["record", "out.bag", "--flush", "20ms"],
    "record a socket": ["record", "out.bag", "--from", "udp://127.0.0.1:0?topic=/a"],
    "cat -f": ["cat", "-f", "flight.ulg.active"],
    "info -f": ["info", "-f", "flight.ulg.active"],
    "text -f": ["text", "-f", "flight.ulg.active"],
    "serve": ["serve", ".", "--port", "0"],
    "view": ["view", "flight.ulg", "--port", "0", "--no-browser"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("flight.ulg", "flight.ulg.active"):
        (tmp_path / name).write_bytes(short_flight())
    return tmp_path


@contextmanager
def started(words: list[str], folder: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a verb with an open pipe as stdin, output in files, and the usual handling of signals."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += (
        "import sys; from logreel.cli import main; print('up', file=sys.stderr, flush=True); sys.exit(main())"
    )
    with (
        open(folder / "stdout", "wb") as out,
        open(folder / "stderr", "wb") as err,
        subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment(), **options,
        ) as child,
    ):  # fmt: skip
        try:
            while child.poll() is None and b"up\n" not in (folder / "stderr").read_bytes():
                time.sleep(0.002)
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("verb", VERBS)
def test_a_signal_at_any_moment_ends_every_verb(folder: Path, verb: str) -> None:
    chance = random.Random(f"{verb} {os.environ.get('LOGREEL_SEED', '')}")
    for n in range(ROUNDS):
        number = (signal.SIGINT, signal.SIGTERM)[n % 2]
        wait = chance.choice((0.1, 0.5, LATEST)) * chance.random()
        moment = f"{number.name} after {wait:.3f} s"
        for left in folder.glob("out.bag*"):
            left.unlink()
        with started(VERBS[verb], folder) as child:
            time.sleep(wait)
            begun = time.monotonic()
            child.send_signal(number)
            try:
                code = child.wait(ENDS)
            except subprocess.TimeoutExpired:
                pytest.fail(f"{moment}: still runs after {ENDS} s")
            said = (folder / "stderr").read_text()
            # Before its handler is there, the signal ends the process itself, which shells call 128 + number.
            allowed = {128 + number, -number} | ({0, 130} if verb.startswith("record") else set())
            assert code in allowed, (moment, code, time.monotonic() - begun, said)
            assert "internal error" not in said, (moment, said)
            assert "Traceback" not in said, (moment, said)
        check_nothing_is_torn(folder, moment)


def check_nothing_is_torn(folder: Path, moment: str) -> None:
    """Check that there are no unfinished files, that logs are complete, and lines of JSON too."""
    names = {path.name for path in folder.iterdir()} - {"flight.ulg", "flight.ulg.active", "stdout", "stderr"}
    assert names <= {"out.bag"}, (moment, names)
    if names:
        assert not logreel.open(folder / "out.bag").problems, moment
    for line in (folder / "stdout").read_bytes().splitlines(keepends=True):
        if line[:1] == b"{":
            assert line[-1:] == b"\n", (moment, line[-40:])
            json.loads(line)


def test_two_signals_at_once_are_one(folder: Path) -> None:
    """``timeout`` sends its signal to the process and to its group."""
    with started(VERBS["play to null"], folder) as child:
        time.sleep(0.5)
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGINT)
        assert child.wait(ENDS) in (130, 143)


def test_a_signal_during_an_import_is_no_internal_error(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW_IMPORT)
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [sys.executable, "slow.py", "info", "flight.ulg"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stdout.readline() == b"importing\n"
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
            # The import is waited for; the verb may have ended by then.
            assert child.returncode in (0, 128 + number), out
            if child.returncode:
                assert err == (b"logreel: interrupted\n" if number == signal.SIGINT else b"")


#: Import of a module that turns every exception into an ImportError, as some compiled modules do.
SLOW_IMPORT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "logreel.cli.read":
            print("importing", flush=True)
            try:
                for _ in range(50):
                    time.sleep(0.01)
            except BaseException as error:
                raise ImportError("numpy failed") from None
sys.meta_path.insert(0, Finder())
from logreel.cli import main
sys.exit(main())
"""


def test_an_exception_that_python_drops_is_raised_again(folder: Path) -> None:
    """In a weak reference's callback and in ``__del__``, exceptions are dropped."""
    (folder / "dropping.py").write_text(DROPPING)
    done = subprocess.run(
        [sys.executable, "dropping.py"], cwd=folder, capture_output=True, env=environment(), timeout=60
    )
    assert (done.returncode, done.stdout) == (130, b"up\n")
    assert done.stderr == b"logreel: interrupted\n"


DROPPING = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import logreel.cli.formats
from logreel.cli import main

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

def table(*args):
    print("up", flush=True)
    del [Deleted()][0]
    try:
        time.sleep(0.2)
    except BaseException:
        pass
    for _ in range(500):
        time.sleep(0.01)

logreel.cli.formats.draw.table = table
sys.exit(main(["formats"]))
"""


def test_a_process_does_not_wait_for_a_thread_that_nobody_ends(folder: Path) -> None:
    (folder / "hanging.py").write_text(HANGING)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "hanging.py"], cwd=folder, capture_output=True, env=environment(), timeout=60
    )
    assert (done.returncode, done.stderr) == (143, b"")
    assert time.monotonic() - begun < ENDS


HANGING = """
import os, signal, sys, threading
import logreel.cli.formats
from logreel.cli import main

def table(*args):
    threading.Thread(target=threading.Event().wait).start()
    os.kill(os.getpid(), signal.SIGTERM)

logreel.cli.formats.draw.table = table
sys.exit(main(["formats"]))
"""


def test_a_followed_file_that_becomes_a_named_pipe_ends_with_an_error(folder: Path) -> None:
    """Opening a pipe without a writer would wait, and no signal could end that."""
    with started(["cat", "-f", "flight.ulg.active", "-t", "cpuload"], folder) as child:
        while not (folder / "stdout").read_bytes():
            time.sleep(0.01)
        (folder / "flight.ulg").unlink()
        (folder / "flight.ulg.active").unlink()
        os.mkfifo(folder / "flight.ulg.active")
        assert child.wait(ENDS) == 1
    assert "is no regular file" in (folder / "stderr").read_text()
