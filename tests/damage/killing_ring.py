"""Kill recorders of windows at random moments, and check every window that was announced.

Run as ``python killing_ring.py FORMAT RUNS SEED``. A source sends values whose course is known, so that it is known
what each window has to hold. A window that was announced when it began has to hold everything up to its trigger: as
the file was left, and cut after the bytes that it had then, as after a power failure. A window that was announced as
complete has to be sound and whole. All begin with the latched message. Prints the failures.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from killing import SHM, START

import logreel
from logreel.layout import encode_message  # noqa: F401 - loaded before there are forks
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.record import Feed, Ring
from logreel.ops.record import record as recording
from logreel.ops.rewrite.recover import recover
from support.formats import builtin_formats
from support.harness.limits import ended

VALUE = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
#: ns between two messages, and most messages.
STEP, MOST = 10**6, 20_000
#: Lengths of windows in ns.
BEFORE, AFTER = 50 * STEP, 30 * STEP
#: Seconds after which a recorder is killed at the latest.
LATEST = 0.25
ANNOUNCED = re.compile(
    r"window (\d+)(:| is complete:) (?:.*; )?(\S+?)(?:\.active)? has (\d+) messages.* size=(\d+)"
)


def triggers(seed: int) -> list[int]:
    """Return the numbers of the messages that trigger."""
    rng = random.Random(seed)
    chosen, n = [], 0
    while n < MOST:
        n += rng.choice((20, 60, 79, 80, 81, 82, 200, 700))
        chosen.append(n)
    return chosen


class Source:
    """A thread that sends a latched message, then values, which are 1 in the messages that trigger."""

    name = "values"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def run(self, feed: Feed) -> None:
        rng, fires = random.Random(self._seed), {*triggers(self._seed)}
        value, place = feed.channel("value", VALUE), feed.channel("place", VALUE, latched=True)
        assert value is not None
        assert place is not None
        feed.settled = True
        feed.put(place, START - 10**9, {"n": 7, "x": 7.5}, wait=True)
        for n in range(MOST):
            feed.put(value, START + n * STEP, {"n": n, "x": float(n in fires)}, wait=True)
            if rng.random() < 0.01:
                time.sleep(0.001)


def recorder(path: Path, name: str, seed: int, pipe: int) -> None:
    """Record until killed, or until the source ends."""

    def say(text: str) -> None:
        match = re.search(r"(\S+\.active) has", text)
        size = os.stat(match[1]).st_size if match else 0
        os.write(pipe, f"{text} size={size}\n".encode())

    ring = Ring("value.x = 1", before=BEFORE, after=AFTER)
    recording(
        Source(seed),
        path,
        format=name,
        flush_every=random.Random(seed).choice((0.001, 0.02, None)),
        ring=ring,
        say=say,
    )


def killed(path: Path, name: str, seed: int) -> list[str]:
    """Return what a recorder has announced until it was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(BaseException):
            os.close(read)
            recorder(path, name, seed, write)
            code = 0
        os._exit(code)
    os.close(write)
    # Most are killed after their first announcement, the others at any time.
    first = os.read(read, 1) if seed % 4 else b""
    time.sleep(random.Random(~seed).random() * LATEST)
    os.kill(pid, signal.SIGKILL)
    status = ended(pid)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the recorder failed: {status}"
    with open(read, "rb") as pipe:
        return (first + pipe.read()).decode().splitlines()


def due_windows(seed: int) -> list[tuple[int, int, int]]:
    """Return first message, first trigger and last message of each window."""
    windows: list[tuple[int, int, int]] = []
    before, after = BEFORE // STEP, AFTER // STEP
    for n in triggers(seed):
        # A message 1 ns after the end is in no window.
        if windows and (n - before) * STEP <= windows[-1][2] * STEP + 1:
            windows[-1] = (*windows[-1][:2], n + after)
        else:
            windows.append((max(0, n - before), n, n + after))
    return windows


def wrong(data: bytes, first: int, last: int, is_complete: bool) -> str:
    """Return what is wrong with the content of a window; empty if it has all messages, and no others before."""
    log = logreel.open(data)
    if is_complete and log.problems:
        return f"is complete, but not sound: {log.problems[0].text}"
    # Zeros and cut records make no messages.
    numbers = [m.decode()["n"] for m in log.messages(["value"])]
    if numbers[: last - first + 1] != list(range(first, last + 1)):
        return f"has {numbers[:1]} … {numbers[-1:]} ({len(numbers)}) instead of {first} … {last}"
    if is_complete and len(numbers) != last - first + 1:
        return f"has {len(numbers)} messages instead of {last - first + 1}"
    places = [(m.time, m.decode()["n"]) for m in log.messages(["place"])]
    return "" if places == [(START + first * STEP, 7)] else f"has {places} of what is latched"


def main() -> None:
    """Kill recorders of one format."""
    name, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    bad: list[str] = []
    begun = completed = 0
    with tempfile.TemporaryDirectory(dir=SHM) as where:
        for run in range(seed, seed + runs):
            folder = Path(where) / str(run)
            folder.mkdir()
            lines = killed(folder / f"a{builtin_formats()[name].suffixes[0]}", name, run)
            due = due_windows(run)
            for line in lines:
                match = ANNOUNCED.fullmatch(line)
                if match is None:
                    bad.append(f"{run}: {line}")
                    continue
                number, how, path, _, size = match.groups()
                first, trigger, last = due[int(number) - 1]
                if how != ":":
                    completed += 1
                    # The last one ends with the source.
                    text = wrong(Path(path).read_bytes(), first, min(last, MOST - 1), True)
                    bad += [f"{run}: {path} {text}"] if text else []
                    continue
                begun += 1
                active = Path(f"{path}.active")
                left = active if active.exists() else Path(path)
                data = left.read_bytes()
                found = {"as it is": data}
                if left == active:
                    found[f"cut at {size}"] = data[: int(size)]
                    with_zeros = data[: int(size)] + bytes(4096)
                    found[f"zeros from {size}"] = with_zeros
                    done = recover(left, folder / f"saved{len(lines)}{Path(path).suffix}", force=True)
                    if not done.messages:
                        bad.append(f"{run}: {path} cannot be recovered")
                for state, content in found.items():
                    text = wrong(content, first, trigger, False)
                    bad += [f"{run}: {path}, {state}, {text}"] if text else []
            shutil.rmtree(folder)
    if bad:
        sys.exit(f"{len(bad)} failures in {runs} runs: {bad[:5]}")
    if begun < runs // 2:
        sys.exit(f"only {begun} windows were announced in {runs} runs")
    sys.stdout.write(f"{runs} recorders killed: {begun} windows had begun, {completed} were complete\n")


if __name__ == "__main__":
    main()
