"""Read all columns of a large DataFlash log, beside memcpy of its bytes and pymavlink on a part of them.

``read_all.py SAMPLE.bin`` repeats the messages of a log, with times that go on, until it has ``--megabytes``. Each
figure is of processes of its own, the readings and the copies by turns, and counts no imports: the sample was read
before. The last of the figures counts them. pymavlink reads a log of ``--peer-megabytes``, and its time for the large
one is that by bytes.
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
import resource, sys, time
def clock():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()
def told(begin):
    end = clock()
    print(end[0] - begin[0], end[1] - begin[1])
"""
READ = """
import logreel, pyarrow
def read(path):
    log = logreel.open(path)
    return sum(ch.to_arrow(explode=False).num_rows for ch in log.values())
for path in sys.argv[2:]:
    read(path)
begin = clock()
read(sys.argv[1])
told(begin)
"""
#: The same as one dict of tables, which are all in memory at once.
TABLES = READ.replace("sum(ch.to_arrow(explode=False).num_rows for ch in log.values())", "log.tables()")
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


def measure(programs: dict[str, str], paths: list[Path], runs: int) -> dict[str, list[tuple[float, float]]]:
    """Return user CPU and wall seconds of each program by name, each run of it after one of the others."""
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(runs):
        for name, program in programs.items():
            command = [sys.executable, "-c", CLOCK + program, *map(str, paths)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            user, wall = done.stdout.split()
            values[name].append((float(user), float(wall)))
    return values


def shown(name: str, values: list[tuple[float, float]], copies: list[tuple[float, float]]) -> str:
    """Return a line with the user CPU and wall seconds, and what they are of the copy of the same turn."""
    user, wall = zip(*values, strict=True)
    ratios = [value[0] / copy[0] for value, copy in zip(values, copies, strict=False)]
    figures = [f"{min(a):6.3f} {statistics.median(a):6.3f}" for a in (user, wall, ratios)]
    return f"{name:30} user {figures[0]} s  wall {figures[1]} s  user / memcpy {figures[2]}"


def main() -> None:
    """Print the figures and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path)
    parser.add_argument("--megabytes", type=int, default=1100)
    parser.add_argument("--peer-megabytes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.bin"), Path(folder, "small.bin")
        enlarge(args.sample, large, args.megabytes * 10**6)
        enlarge(args.sample, small, args.peer_megabytes * 10**6)
        names = "warm memcpy", "every channel to Arrow", "all tables"
        programs = dict(zip(names, (COPY, READ, TABLES), strict=True))
        done = measure(programs, [large, args.sample], args.runs)
        done["every channel, with imports"] = measure({"": READ}, [large], args.runs)[""]
        ours = statistics.median(wall for _, wall in done["every channel to Arrow"])
        (ours_small,) = measure({"": READ}, [small, args.sample], 3).values()
        ((peer,),) = measure({"": PEER}, [small], 1).values()
        big, little = (path.stat().st_size / 1e6 for path in (large, small))
        lines = [
            f"{big:.0f} MB, {logreel.open(large).message_count} messages; least and median of {args.runs}",
            *(shown(name, values, done["warm memcpy"]) for name, values in done.items()),
            f"pymavlink     {peer[1]:7.2f} s wall for {little:.0f} MB",
            f"pymavlink / logreel, the same {little:.0f} MB   {peer[1] / min(w for _, w in ours_small):.0f}",
            f"pymavlink by bytes / logreel, {big:.0f} MB   {peer[1] * big / little / ours:.0f}",
        ]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
