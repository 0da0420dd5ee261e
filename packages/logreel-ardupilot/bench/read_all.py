"""Read all columns of a large DataFlash log, beside memcpy of its bytes and pymavlink on a part of them.

``read_all.py SAMPLE.bin`` repeats the messages of a log, with times that go on, until it has ``--megabytes``. Each
figure is the median of processes of its own, without imports. pymavlink reads a log of ``--peer-megabytes``, and its
time for the large one is that by bytes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import logreel
from logreel_ardupilot.definitions import HEAD

#: Prints user CPU and wall seconds of the last statement.
CLOCK = """
import os, sys, time
def clock():
    return os.times().user, time.perf_counter()
def told(begin):
    end = clock()
    print(end[0] - begin[0], end[1] - begin[1])
"""
READ = """
import logreel, pyarrow
begin = clock()
log = logreel.open(sys.argv[1])
rows = 0
for ch in log.values():
    rows += ch.to_arrow(explode=False).num_rows
told(begin)
"""
COPY = """
import numpy as np
data = np.fromfile(sys.argv[1], np.uint8)
out = np.empty_like(data)
out[:] = data
begin = clock()
out[:] = data
told(begin)
"""
PEER = """
from pymavlink import DFReader
begin = clock()
log = DFReader.DFReader_binary(sys.argv[1])
columns = {}
while (message := log.recv_msg()) is not None:
    rows = columns.setdefault(message.get_type(), {})
    for name, value in message.to_dict().items():
        rows.setdefault(name, []).append(value)
told(begin)
"""


def enlarge(sample: Path, out: Path, size: int) -> None:
    """Write *sample*, then copies of its messages, until there are *size* bytes; times go on from copy to copy."""
    log = logreel.open(sample)
    raw, is_message = np.fromfile(sample, np.uint8), np.zeros(sample.stat().st_size + 1, np.int8)
    places, times, last = list[NDArray[np.int64]](), list[NDArray[np.int64]](), 0
    for ch in log.match(None):
        definition, starts = log.format_state.definitions[ch.number], log.index.offsets(ch.number)
        is_message[starts - HEAD] += 1
        np.subtract.at(is_message, starts + definition.size, 1)
        last = max(last, int((starts + definition.size).max()))
        if definition.time is not None and definition.time[1:] == (8, 1000):
            places.append(starts + definition.time[0])
            times.append(ch.times // 1000)
    place, time = np.concatenate(places), np.concatenate(times)
    step = int(time.max() - time.min()) + 1000
    kept = np.flatnonzero(np.cumsum(is_message[:-1]))
    where = np.searchsorted(kept, place)[:, None] + np.arange(8)
    with out.open("wb") as file:
        file.write(raw[:last].tobytes())
        for number in range(1, 1 + max(0, -(-(size - last) // len(kept)))):
            part = raw[kept]
            part[where] = (time + number * step).astype("<u8").view(np.uint8).reshape(-1, 8)
            file.write(part.tobytes())


def measure(program: str, path: Path, runs: int) -> tuple[float, float]:
    """Return the medians of user CPU and wall seconds."""
    values = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", CLOCK + program, str(path)], capture_output=True, text=True, check=True
        )
        values.append([float(number) for number in done.stdout.split()])
    user, wall = (statistics.median(column) for column in zip(*values, strict=True))
    return user, wall


def main() -> None:
    """Print the figures and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path)
    parser.add_argument("--megabytes", type=int, default=1100)
    parser.add_argument("--peer-megabytes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.bin"), Path(folder, "small.bin")
        enlarge(args.sample, large, args.megabytes * 10**6)
        enlarge(args.sample, small, args.peer_megabytes * 10**6)
        copy, ours = (measure(program, large, args.runs) for program in (COPY, READ))
        ours_small, peer = measure(READ, small, args.runs), measure(PEER, small, 1)
        big, little = (path.stat().st_size / 1e6 for path in (large, small))
        lines = [
            f"{big:.0f} MB, {logreel.open(large).message_count} messages",
            f"all columns   {ours[1]:7.2f} s wall  {ours[0]:7.2f} s user",
            f"warm memcpy   {copy[1]:7.2f} s wall  {copy[0]:7.2f} s user",
            f"user CPU / memcpy of the same bytes   {ours[0] / copy[1]:.1f}",
            f"pymavlink     {peer[1]:7.2f} s wall for {little:.0f} MB",
            f"pymavlink / logreel, the same {little:.0f} MB   {peer[1] / ours_small[1]:.0f}",
            f"pymavlink by bytes / logreel, {big:.0f} MB   {peer[1] * big / little / ours[1]:.0f}",
        ]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
