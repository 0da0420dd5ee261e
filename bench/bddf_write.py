"""Write a million values into a BDDF file: singly, many at a time, as a table; against `cp` and the vendor's CPU."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from harness import Job, compare, run

#: CPU seconds of the vendor's writer for a million blocks of 8 bytes on such a machine (2 cores, quiet).
VENDOR_CPU = 8.7
SETUP = """
import shutil, tempfile, logreel, logreel.layout.encode, logreel.formats.bddf.writer, pyarrow
folder = tempfile.TemporaryDirectory()
out = folder.name + "/out.bddf"
n = int(os.environ["MESSAGES"])
times = 10**18 + np.arange(n) * 1_000_003
values = np.arange(float(n))
schema = logreel.Schema("float64", "bddf")
table = pyarrow.table({"time": times, "value": values})
stamps, payloads = times.tolist(), [value.tobytes() for value in values]
"""
BEGIN = "with logreel.create(out) as w:\n    c = w.add_channel('v', schema)\n"
COPY = Job("cp of the file", "shutil.copyfile(path, out)", SETUP)
MANY = Job(
    "write_many",
    BEGIN
    + "    data = values.view(np.uint8)\n"
    + "    w.write_many(np.full(n, c, np.int32), times, data, np.arange(n) * 8, np.full(n, 8))",
    SETUP,
)
TABLE = Job("write_table", BEGIN + "    w.write_table(c, table)", SETUP)
SINGLE = Job("write, one by one", BEGIN + "    for t, p in zip(stamps, payloads): w.write(c, t, p)", SETUP)


def main() -> None:
    """Print the table; argument: the number of messages."""
    import numpy as np

    import logreel

    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ["MESSAGES"] = str(messages)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.bddf"
        with logreel.create(path) as w:
            channel = w.add_channel("v", logreel.Schema("float64", "bddf"))
            count = np.arange(messages)
            data = np.zeros(messages * 8, np.uint8)
            w.write_many(
                np.full(messages, channel, np.int32), 10**18 + count, data, count * 8, np.full(messages, 8)
            )
        jobs = [MANY, TABLE, SINGLE]
        compare(f"{messages} blocks of 8 bytes", str(path), COPY, jobs, rounds=3)
        for job in jobs:
            cpu = statistics.median(run(job, str(path))[1] for _ in range(3))
            rate, times = messages / cpu / 1e6, VENDOR_CPU * messages / 1e6 / cpu
            print(f"  {job.name:44} {rate:6.1f} M blocks per CPU second, {times:.0f} x the vendor's")


if __name__ == "__main__":
    main()
