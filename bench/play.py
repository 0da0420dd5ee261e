"""Replay: maximum speed compared with iterating by rosbags, and accuracy of the pace at rates 1 and 10."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
import biglog
import logreel
from harness import Job, compare
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

IMPORTS = """
import collections, logreel, logreel.ops.replay, logreel.outputs.sinks.stdout
from support.samples.rosbag.builder import drive

collections.deque(logreel.open(drive(1.0)).play(rate=0), 0)  # whatever is imported at first use
class Touch(logreel.Sink):
    batches = True
    def batch(self, run): collections.deque(run.payloads(), 0)
"""
PEER_IMPORTS = "from rosbags.highlevel import AnyReader\nfrom pathlib import Path\n"
NULL = Job(
    "play to the null sink",
    "logreel.Player(logreel.open(path), rate=0, sink=logreel.sink('null')).run()",
    IMPORTS,
)
JOBS = [
    Job(
        "… to one that takes every payload",
        "logreel.Player(logreel.open(path), rate=0, sink=Touch()).run()",
        IMPORTS,
    ),
    Job("for message in log.play(rate=0)", "for message in logreel.open(path).play(rate=0): pass", IMPORTS),
    Job("for message in log.messages()", "for message in logreel.open(path).messages(): pass", IMPORTS),
]
PEER = Job(
    "for message in rosbags: messages()",
    "with AnyReader([Path(path)]) as r:\n    for message in r.messages(): pass",
    PEER_IMPORTS,
    rounds=1,
)
#: Real logs beside the repository, and what stands for them where they are missing.
SHARED = os.environ.get("LOGREEL_SHARED") or Path(__file__).resolve().parents[2] / "shared"
DATA = Path(SHARED) / "data"
REAL = {"flight": DATA / "ulog" / "sample.ulg", "bag": DATA / "rosbag" / "v20_turtlesim_lz4.bag"}
#: Seconds of play for each line of the table.
SECONDS = 5.0


def full_speed(scale: float) -> None:
    """Print messages per second at maximum speed."""
    for title, path, peers in (
        ("bag", bigbag.make("mixed", "none", scale), [PEER]),
        ("ULog", biglog.make(int(60 * scale)), []),
    ):
        count = logreel.open(path).message_count
        found = compare(
            f"{title} of {count} messages", str(path), NULL, [*JOBS, *peers], rounds=3, unit="null"
        )
        if peers:
            for job in (NULL, *JOBS):
                print(f"  {job.name}: {found[PEER.name] / found[job.name]:.1f} x rosbags")


def pace(name: str, log: logreel.Log, rate: float) -> None:
    """Print one line: deviations of the times of messages, and of the intervals between them."""
    arrived: list[int] = []
    times: list[int] = []

    def note(message: logreel.Message) -> None:
        arrived.append(time.monotonic_ns())
        times.append(message.time)

    player = logreel.Player(log, rate=rate, duration=int(SECONDS * rate * 1e9), on_message=note)
    wanted = sum(1 for _ in logreel.Player(log, rate=0, duration=int(SECONDS * rate * 1e9)))
    tally = player.run()
    # Messages from outside the time of the log have no moment.
    inside = (np.array(times) >= player.start_time) & (np.array(times) <= player.end_time)
    off = np.abs(np.diff(np.array(arrived)[inside]) - np.diff(np.array(times)[inside]) / rate) / 1e6
    median, high = np.percentile(off, [50, 99])
    late = f"{tally.late / max(tally.timed, 1):7.2%} {tally.mean / 1e6:9.3f} {tally.worst / 1e6:9.3f}"
    order = "yes" if times == sorted(times) else "NO"
    print(
        f"  {name:8} {rate:4g} {len(times):9} {wanted - len(times):8} {order:>6} {median:9.3f} {high:9.3f} {late}"
    )


def pacing() -> None:
    """Print the pace at rates 1 and 10, of a flight and of a bag."""
    print(
        "\nPace: milliseconds that intervals are off (asked: median 1, 99 % below 5), and messages are late"
    )
    print(
        f"  {'log':8} {'rate':>4} {'messages':>9} {'dropped':>8} {'order':>6} {'median':>9} {'99 %':>9} {'late':>7} "
        f"{'mean':>9} {'worst':>9}"
    )
    made = {"flight": lambda: flight(60.0), "bag": lambda: drive(60.0)}
    for name, path in REAL.items():
        with logreel.open(path if path.exists() else made[name]()) as log:
            for rate in (1.0, 10.0):
                pace(name, log, rate)


def main() -> None:
    """Print the tables; argument: a scale, 1 for a bag of a million messages."""
    full_speed(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    pacing()


if __name__ == "__main__":
    main()
