"""Write a million small messages into a ULog singly, in batches, and as a table; compared with pyulog and `cp`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import logreel
from harness import Job, compare

TEXT = "v:uint64_t timestamp;double x;double y;double z;"
OURS = f"""
import tempfile, shutil, logreel, pyarrow
import logreel.layout.encode, logreel.layout.encode_message, logreel.formats.ulog.writer
folder = tempfile.TemporaryDirectory()
out = folder.name + "/out.ulg"
n = int(os.environ["MESSAGES"])
times = 10**9 + np.arange(n) * 1_000_000
values = np.arange(4.0 * n).reshape(n, 4)
values[:, 0].view(np.int64)[:] = times // 1000
stamps, payloads = times.tolist(), [row.tobytes() for row in values]
schema = logreel.Schema("v", "ulog", {TEXT!r})
"""
BEGIN = "with logreel.create(out) as w:\n    c = w.add_channel('v', schema)\n"
COPY = Job("cp of the log", "shutil.copyfile(path, out)", OURS)
SINGLE = Job("write, one by one", BEGIN + "    for t, p in zip(stamps, payloads): w.write(c, t, p)", OURS)
TABLE = Job(
    "write_table",
    BEGIN + "    w.write_table(c, table)",
    OURS
    + "table = pyarrow.table({'time': times, **{k: values[:, i + 1].copy() for i, k in enumerate('xyz')}})\n",
)
FIELDS = Job(
    "write, a dict of fields each",
    BEGIN + "    for t, row in zip(stamps, rows): w.write(c, t, row)",
    OURS + "rows = [dict(zip('xyz', row)) for row in values[:, 1:].tolist()]\n",
)
PEER = Job("pyulog: write_ulog", "log.write_ulog(out)", OURS + "import pyulog\nlog = pyulog.ULog(path)\n", 1)


def main() -> None:
    """Print the table; argument: the number of messages."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ["MESSAGES"] = str(messages)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ulg"
        data = np.zeros((messages, 4))
        data[:, 0].view(np.int64)[:] = 10**6 + np.arange(messages) * 1000
        with logreel.create(path) as w:
            channel = w.add_channel("v", logreel.Schema("v", "ulog", TEXT))
            count = np.arange(messages)
            channels, size = np.full(messages, channel, np.int32), np.full(messages, 32)
            raw = data.view(np.uint8).ravel()
            w.write_many(channels, 10**9 + count * 10**6, raw, count * 32, size)
        jobs = [SINGLE, TABLE, FIELDS, PEER]
        found = compare(f"{messages} messages of 32 bytes", str(path), COPY, jobs, rounds=3)
    for job in jobs[:-1]:
        print(f"  {job.name:44} {found[PEER.name] / found[job.name]:8.1f} times as fast as pyulog")


if __name__ == "__main__":
    main()
