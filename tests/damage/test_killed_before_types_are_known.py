"""Recorders of lines that are killed before, while and after types are inferred: no line that was read is lost."""

from __future__ import annotations

import fcntl
import json
import os
import random
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError
from logreel.ops.record import record
from logreel.ops.record.lines import spool_path, waiting_lines
from support.harness.cli_runner import Run, environment
from support.harness.forked import forked

#: Interval of flushes, s.
FLUSH = 0.1


def line(n: int) -> bytes:
    return json.dumps({"topic": "/a", "time_ns": n * 10**6, "data": {"n": n}}).encode() + b"\n"


def numbers_in(path: Path) -> set[int]:
    """Return the numbers of all messages that an unfinished recording has left."""
    found = set[int]()
    waiting = waiting_lines(f"{path}.active")
    if waiting is not None:
        # The last line may be cut.
        found |= {json.loads(one)["data"]["n"] for one in Path(waiting).read_bytes().split(b"\n")[:-1]}
    try:
        with logreel.open(f"{path}.active") as log:
            found |= {message.decode()["n"] for message in log.messages("/a")}
    except (LogError, KeyError):
        # Nothing of the log was written yet.
        assert waiting is not None
    return found


@pytest.mark.parametrize("suffix", [".bag", ".ulg"])
@pytest.mark.parametrize("seed", range(4))
def test_lines_that_were_read_survive_kill_at_any_moment(suffix: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{suffix}{seed}")
    out = tmp_path / f"x{suffix}"
    ahead, count = 40, (1, rng.randrange(2, 40), 40, rng.randrange(41, 120))[seed]
    options = ["--ahead", str(ahead), "--flush", f"{FLUSH}s"]
    command = forked("record", out, *options)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as child:
        pipe = child.stdin
        until = time.monotonic() + 120
        for n in range(count):
            os.write(pipe.fileno(), line(n))
            if rng.random() < 0.1:
                time.sleep(rng.random() * 0.03)
        # All was read when the pipe is empty, and must be on disk when the interval is over.
        while struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))[0]:
            assert time.monotonic() < until
            time.sleep(0.001)
        read = time.monotonic()
        while not (time.monotonic() > read + FLUSH and numbers_in_if_any(out) >= set(range(count))):
            assert time.monotonic() < until, "lines that were read are not on disk"
            time.sleep(0.01)
        time.sleep(rng.random() * 0.3)
        child.kill()
        # The pipe ends with the recorder, which is another process; until then its input is open, or it would finish.
        child.stderr.read()
    assert numbers_in(out) == set(range(count))


def numbers_in_if_any(path: Path) -> set[int]:
    """Return the numbers on disk at this moment; none if files come and go."""
    try:
        return numbers_in(path)
    except (AssertionError, OSError):
        return set()


def test_the_lines_are_removed_when_the_log_has_them(tmp_path: Path) -> None:
    out, spool, seen = tmp_path / "x.bag", tmp_path / "x.bag.lines", []
    ends, writes = os.pipe()
    written = threading.Event()

    def feed() -> None:
        for n in range(5):
            os.write(writes, line(n))
        for moment in ("waiting", "inferred"):
            until = time.monotonic() + 60
            while spool.exists() != (moment == "waiting"):
                assert time.monotonic() < until
                time.sleep(0.005)
            seen.append(moment)
            if moment == "waiting":
                for n in range(5, 12):
                    os.write(writes, line(n))
        # Not only at the end: the recording goes on.
        written.set()
        os.close(writes)

    thread = threading.Thread(target=feed)
    thread.start()
    with open(ends, "rb") as pipe:
        done = record(pipe, out, ahead=10, flush_every=0.05)
    thread.join(60)
    assert seen == ["waiting", "inferred"]
    assert written.is_set()
    assert done.messages == 12
    assert sorted(os.listdir(tmp_path)) == ["x.bag"]


def test_lines_of_a_killed_recording_are_recorded_and_never_replaced_without_force(
    run: Run, tmp_path: Path
) -> None:
    spool, out = tmp_path / "x.bag.lines", tmp_path / "x.bag"
    left = line(1) + line(2)
    assert waiting_lines(f"{out}.active") is None
    spool.write_bytes(left)
    for _ in range(2):
        with pytest.raises(LogError, match=r"x\.bag\.lines.*holds lines of a recording that was killed"):
            record([line(7)], out, force=False)
        assert spool.read_bytes() == left
    (tmp_path / "x.bag.active").write_bytes(b"")
    recovered = run("recover", f"{out}.active")
    assert (
        f"{spool} holds the first lines of this recording: logreel record NEW --from {spool}" in recovered.err
    )
    # A file that is read needs no copy, and stays.
    done = run("record", tmp_path / "first.bag", "--from", spool)
    assert done.code == 0, done.err
    assert [m.decode()["n"] for m in logreel.open(tmp_path / "first.bag").messages()] == [1, 2]
    assert spool.read_bytes() == left
    record([line(7)], out, force=True)
    assert not spool.exists()


def test_a_failure_while_lines_wait_keeps_them_and_says_where(tmp_path: Path) -> None:
    said: list[str] = []
    out = tmp_path / "x.bag"
    with pytest.raises(LogError, match="line 3"):
        record([line(1), line(2), b"{"], out, strict=True, say=said.append)
    assert said == [f"{spool_path(out)} holds the first lines", f"{out}.active holds what was written"]
    assert Path(spool_path(out)).read_bytes() == line(1) + line(2)


@pytest.mark.parametrize("options", [{"ahead": 0}, {"flush_every": None}])
def test_no_file_of_lines_is_written_where_none_is_needed(options: dict, tmp_path: Path) -> None:
    seen = []

    def lines():
        yield line(1)
        seen.append(sorted(os.listdir(tmp_path)))
        yield line(2)

    record(lines(), tmp_path / "x.bag", **options)
    assert seen == [["x.bag.active"]]
    assert sorted(os.listdir(tmp_path)) == ["x.bag"]
