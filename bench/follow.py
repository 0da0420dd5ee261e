"""Latency of ``logreel cat -f``: from the flush of a recorder to the line on the pipe. Options: messages, Hz, format.

    python bench/follow.py [MESSAGES] [HZ] [FORMAT…]

One message is written and flushed at a time by this process; the follower is a separate process. Times are those of one
clock. The file grows to the size that is shown, so the figures are those of a log of that size. Also measured: the
share of a core that a follower takes while nothing comes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Struct
from support.formats import builtin_formats, sample_log

LAYOUT = Layout(
    Struct((Field("n", Scalar("int64")), Field("values", FixedArray(Scalar("float64"), 30)))), "bench"
)
START = 1_700_000_000 * 10**9


def measure(name: str, messages: int, hz: float) -> None:
    """Print the latencies of one format."""
    seen: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / f"log{builtin_formats()[name].suffixes[0]}"
        writer = logreel.create(path, format=name)
        channel = writer.add_channel("bench", LAYOUT)
        command = [sys.executable, "-m", "logreel", "cat", "-f", "--format", "ndjson", str(path)]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def read() -> None:
            for line in follower.stdout:
                now = time.perf_counter()
                n = json.loads(line)["data"]["n"]
                if n in seen:
                    raise SystemExit(f"message {n} came twice")
                seen[n] = now

        reader = threading.Thread(target=read)
        reader.start()
        # The follower runs when the first message has come.
        writer.write(channel, START, {"n": 0})
        writer.flush()
        while 0 not in seen:
            time.sleep(0.01)
        flushed = {}
        begin = time.perf_counter()
        for n in range(1, messages + 1):
            time.sleep(max(0.0, begin + n / hz - time.perf_counter()))
            writer.write(channel, START + n * 1000, {"n": n})
            writer.flush()
            flushed[n] = time.perf_counter()
        size = Path(f"{path}.active").stat().st_size
        writer.close()
        reader.join()
        follower.wait()
        missing = flushed.keys() - seen.keys()
        if missing:
            raise SystemExit(f"{len(missing)} messages did not come")
        late = sorted((seen[n] - at) * 1e3 for n, at in flushed.items())
        worst = late[min(len(late) - 1, len(late) * 99 // 100)]
        times = f"median {statistics.median(late):6.2f} ms   99 % {worst:6.2f} ms   worst {late[-1]:6.2f} ms"
        print(f"{name:8} {messages} messages at {hz:g} Hz, {size / 1e6:.1f} MB   {times}")


def idle(seconds: float = 5.0) -> None:
    """Print the share of a core that a follower takes while nothing comes."""
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "log.ulg"
        path.write_bytes(sample_log("ulog")[:-1])
        follower = subprocess.Popen(
            [sys.executable, "-m", "logreel", "cat", "-f", "-t", "none", str(path)], stdout=subprocess.DEVNULL
        )
        # After it has started.
        time.sleep(3.0)
        before = cpu_seconds(follower.pid)
        time.sleep(seconds)
        used = cpu_seconds(follower.pid) - before
        follower.kill()
        follower.wait()
        print(f"idle     {used / seconds:.1%} of a core")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure the formats that can hold the messages."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    hz = float(sys.argv[2]) if len(sys.argv) > 2 else 100.0
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in sys.argv[3:] or ["ulog", "mcap", "rosbag", "bddf"]:
        measure(name, messages, hz)
    idle()


if __name__ == "__main__":
    main()
