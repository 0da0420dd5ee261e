"""Time ``ray.data.read_mcap`` with decoding by hand, and logreel's datasource, for the same columns.

Run by bench/services.py. Arguments: files, messages, rounds; prints JSON.
"""

from __future__ import annotations

import json
import shutil
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

import logreel
from logreel.fleet import plan
from logreel.fleet.ray import datasource

IMU = "uint32 seq\ntime stamp\nfloat64 ax\nfloat64 ay\nfloat64 az\nfloat64 gx\nfloat64 gy\nfloat64 gz\n"
ROW = "<III6d"
TOPIC = "/imu"


def write_logs(path: Path, count: int, rows: int) -> Path:
    """Write *count* MCAP files with *rows* messages each of one topic, and as many of another one."""
    path.mkdir()
    for number in range(count):
        with logreel.create(path / f"{number}.mcap") as out:
            imu = out.add_channel(TOPIC, logreel.Schema("own/Imu", "ros1msg", IMU))
            text = out.add_channel("/text", logreel.Schema("std_msgs/String", "ros1msg", "string data\n"))
            for row in range(rows):
                at = 1_700_000_000_000_000_000 + row * 5_000_000
                values = (row * k / 7 for k in range(6))
                out.write(imu, at, struct.pack(ROW, row, 1_700_000_000, row, *values))
                out.write(text, at, struct.pack("<I", 40) + b"x" * 40)
    return path


def decode(batch: pa.Table) -> pa.Table:
    """Return three fields of payloads, unpacked one by one: what a user of ``read_mcap`` writes."""
    values = [struct.unpack_from(ROW, one.as_buffer()) for one in batch["data"]]
    return pa.table({name: [v[k] for v in values] for name, k in (("ax", 3), ("gx", 6), ("gz", 8))})


def main() -> None:
    """Print both times, alternating."""
    count, rows, rounds = map(int, sys.argv[1:])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    folder = Path(tempfile.mkdtemp(prefix="logreel-bench-ray-"))
    logs = write_logs(folder / "logs", count, rows)

    def by_hand() -> Any:
        data = ray.data.read_mcap(str(logs), topics=[TOPIC])
        return data.map_batches(decode, batch_format="pyarrow").sum("gx")

    def by_logreel() -> Any:
        data = ray.data.read_datasource(datasource(plan(logs, topics=TOPIC)))
        return data.select_columns(["ax", "gx", "gz"]).sum("gx")

    ways: dict[str, Callable[[], Any]] = {"read_mcap, decoded by hand": by_hand, "logreel": by_logreel}
    times: dict[str, list[float]] = {name: [] for name in ways}
    sums = set()
    try:
        for number in range(rounds + 1):
            for name, work in ways.items():
                start = time.perf_counter()
                sums.add(f"{work():.6e}")
                # The first round starts the workers.
                if number:
                    times[name].append(time.perf_counter() - start)
    finally:
        ray.shutdown()
        shutil.rmtree(folder)
    if len(sums) != 1:
        sys.exit(f"the sums differ: {sums}")
    print(json.dumps({f"{name}, s": statistics.median(found) for name, found in times.items()}))


if __name__ == "__main__":
    main()
