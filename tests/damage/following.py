"""Kill recorders at random moments under a follower. Run as ``python following.py FORMAT RUNS SEED``.

The follower, ``logreel cat -f``, is a fork of this process and says that it waits before the file exists. When the
recorder was killed, it must have printed the messages of the file that is left: all of them, each once, in their order,
and nothing else. Every second killed recorder is followed by another one under the same name, whose messages must come
next. Prints the failures.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import killing
from killing import SHM, Replay, Simple, content_of, killed

import logreel
from logreel.cli import (
    read,  # noqa: F401 - loaded before there are forks
    run,
)
from logreel.outputs.tables.ndjson import Decoder, line
from logreel.registry import open_growing  # noqa: F401
from support.formats import builtin_formats

#: Seconds in which a follower ends after a complete recording.
ENDS = 10.0
#: Seconds after which a line that does not come is missing, and after which one too many would have come.
PATIENCE, MORE = float(os.environ.get("LOGREEL_PATIENCE", "60")), 0.05
#: Times the runs asked for, after which a machine kills no recorder in time.
MOST = 20
#: Lines by topic, time and payload: recorders write the same messages again, and decoding pictures takes long.
LINES: dict[tuple[str, int, bytes], str | None] = {}


def lines_of(path: Path) -> list[str]:
    """Return the messages of a file in its order, as ``cat --format ndjson`` prints them."""
    try:
        log = logreel.open(path)
    except logreel.LogError:
        # Killed before the header was written.
        return []
    with log:
        decode = Decoder([ch for ch in log.channels.values() if not ch.reserved], [])
        found = []
        for message in log.messages(order="file"):
            key = message.channel.topic, message.time, bytes(message.data)
            if key not in LINES:
                data = decode(message)
                LINES[key] = None if data is None else line(message, data)
            found.append(LINES[key])
        return [one for one in found if one is not None]


def follower(path: Path, out: Path) -> int:
    """Start following *path*; return the process when it waits for the file.

    A follower that starts late would see short recordings only when they are complete, and wait for more forever.
    """
    said = out.with_suffix(".err")
    pid = os.fork()
    if pid:
        end = time.monotonic() + PATIENCE
        while not (said.exists() and b"waiting" in said.read_bytes()) and time.monotonic() < end:
            time.sleep(0.002)
        return pid
    code = 1
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        code = run(["cat", "-f", "--format", "ndjson", str(path)])
    finally:
        os._exit(code)


def count_lines(out: Path) -> int:
    return out.read_bytes().count(b"\n") if out.exists() else 0


def printed(out: Path, due: int) -> bool:
    """Wait until *due* lines are printed; return whether they are."""
    end = time.monotonic() + PATIENCE
    while count_lines(out) < due:
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def record(path: Path, name: str, content: Simple | Replay, seed: int) -> Path | None:
    """Record until killed; return the file that is left."""
    killed(path, name, content, seed)
    active = Path(f"{path}.active")
    return path if path.exists() else active if active.exists() else None


def wrong(path: Path, name: str, content: Simple | Replay, seed: int, tally: dict[str, int]) -> str:
    """Return a description of what a follower printed wrongly, else an empty text."""
    out = path.with_suffix(".out")
    pid = follower(path, out)
    ended = 0
    try:
        expected: list[str] = []
        for part in range(2):
            killing.START += part * 10**12
            kept = record(path, name, content, seed + part * 7919)
            killing.START -= part * 10**12
            if kept is None:
                break
            new = lines_of(kept)
            # The same recording again: the follower goes on behind the messages that it has printed.
            again = new[: len(expected)] == expected[: len(new)]
            expected = max(expected, new, key=len) if again else expected + new
            if not printed(out, len(expected)):
                return f"{count_lines(out)} of {len(expected)} lines came"
            tally["lines"] += len(new)
            if kept == path:
                # Complete: the follower ends.
                # A follower that saw the file only when it was complete cannot know that it is.
                end = time.monotonic() + ENDS
                while not (found := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < end:
                    time.sleep(0.002)
                if not found[0]:
                    tally["unseen"] += 1
                    break
                ended, pid = os.waitstatus_to_exitcode(found[1]), 0
                tally["complete"] += 1
                if ended:
                    return f"exit code {ended} after a complete recording"
                break
            tally["killed"] += 1
            time.sleep(MORE)
            if seed % 2:
                break
            kept.unlink()
        if pid:
            # Python may lose a signal that comes while it starts.
            end = time.monotonic() + PATIENCE
            while (found := os.waitpid(pid, os.WNOHANG))[0] == 0:
                if time.monotonic() > end:
                    return "Ctrl-C does not end it"
                os.kill(pid, signal.SIGINT)
                time.sleep(0.1)
            pid = 0
            if os.waitstatus_to_exitcode(found[1]) != 130:
                return f"exit code {os.waitstatus_to_exitcode(found[1])} after Ctrl-C"
        text = out.read_text()
        if text != "".join(one + "\n" for one in expected):
            there = text.splitlines()
            pairs = enumerate(zip(there, expected, strict=False))
            first = next((i for i, (one, other) in pairs if one != other), "the end")
            return f"{len(there)} lines where {len(expected)} are due, they differ at {first}"
        return ""
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main() -> None:
    """Kill recorders of one format."""
    name, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    killing.LATEST = 0.1
    bad, tally = [], {"lines": 0, "killed": 0, "complete": 0, "unseen": 0}
    with tempfile.TemporaryDirectory(dir=SHM) as where:
        content = content_of(name, Path(where))
        # Most of the short recordings may be complete before the kill, on a slow machine all of a few.
        least, one = max(1, runs // 6), seed
        while one < seed + runs or (tally["killed"] < least and one < seed + MOST * runs):
            folder = Path(where) / str(one)
            folder.mkdir()
            text = wrong(folder / f"log{builtin_formats()[name].suffixes[0]}", name, content, one, tally)
            bad += [(one, text)] if text else []
            one += 1
    runs = one - seed
    sys.stdout.write(f"{tally}\n")
    if bad:
        sys.exit(f"{len(bad)} of {runs} runs: {bad[:5]}")
    if tally["unseen"] > 1 + runs // 20:
        sys.exit(f"{tally['unseen']} followers of {runs} did not end")
    if tally["killed"] < least:
        sys.exit(f"only {tally['killed']} of {runs} recorders were killed in time")


if __name__ == "__main__":
    main()
