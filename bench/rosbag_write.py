"""Write a million small messages into a bag singly, in batches, and as a table; compared with rosbags and `cp`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness import Job, compare

OURS = """
import tempfile, logreel, logreel.layout.encode, logreel.formats.rosbag.writer, pyarrow
folder = tempfile.TemporaryDirectory()
out = folder.name + "/out.bag"
n = int(os.environ["MESSAGES"])
times = 10**18 + np.arange(n) * 1_000_000
values = np.arange(3.0 * n).reshape(n, 3)
stamps, payloads = times.tolist(), [row.tobytes() for row in values]
schema = logreel.Schema("geometry_msgs/Vector3", "ros1msg", "float64 x\\nfloat64 y\\nfloat64 z\\n")
"""
PEER = OURS + "from rosbags.rosbag1 import Writer\n"
COPY = Job("cp of the bag", "shutil.copyfile(path, out)", OURS + "import shutil\n")
BEGIN = "with logreel.create(out) as w:\n    c = w.add_channel('/v', schema)\n"
SINGLE = Job("write, one by one", BEGIN + "    for t, p in zip(stamps, payloads): w.write(c, t, p)", OURS)
MANY = Job(
    "write_many",
    BEGIN + "    w.write_many(np.full(n, c, np.int32), times, data, np.arange(n) * 24, np.full(n, 24))",
    OURS + "data = values.view(np.uint8).ravel()\n",
)
TABLE = Job(
    "write_table",
    BEGIN + "    w.write_table(c, table)",
    OURS
    + "table = pyarrow.table({'time': times, **{k: values[:, i].copy() for i, k in enumerate('xyz')}})\n",
)
FIELDS = Job(
    "write, a dict of fields each",
    BEGIN + "    for t, row in zip(stamps, rows): w.write(c, t, row)",
    OURS + "rows = [dict(zip('xyz', row)) for row in values.tolist()]\n",
    rounds=1,
)
RAW = Job(
    "rosbags: write",
    "with Writer(out) as w:\n"
    "    c = w.add_connection('/v', 'geometry_msgs/msg/Vector3', msgdef=schema.text,\n"
    "                         md5sum='4a842b65f413084dc2b10fb484ea7f17')\n"
    "    for t, p in zip(stamps, payloads): w.write(c, t, p)",
    PEER,
)


def main() -> None:
    """Print the table; argument: the number of messages."""
    import os

    import numpy as np

    import logreel

    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ["MESSAGES"] = str(messages)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.bag"
        with logreel.create(path) as w:
            channel = w.add_channel("/v", logreel.Schema("geometry_msgs/Vector3", "ros1msg", ""))
            count, size = np.arange(messages), np.full(messages, 24)
            data = np.zeros(messages * 24, np.uint8)
            w.write_many(np.full(messages, channel, np.int32), 10**18 + count, data, count * 24, size)
        jobs = [SINGLE, MANY, TABLE, FIELDS, RAW]
        found = compare(f"{messages} messages of 24 bytes", str(path), COPY, jobs, rounds=3)
    for job in jobs[:-1]:
        print(f"  {job.name:44} {found[RAW.name] / found[job.name]:8.1f} times as fast as rosbags")


if __name__ == "__main__":
    main()
