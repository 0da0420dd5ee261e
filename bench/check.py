"""Check and compare logs of about 300 MB, compared with reading the same bytes."""

from __future__ import annotations

import os
import sys

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
import biglog
from harness import Job, compare

IMPORTS = """
import logreel
from support.samples.ulog.builder import tiny
logreel.check(tiny()); logreel.diff(tiny(), tiny(), messages=True)
def read():
    with open(path, 'rb', buffering=0) as file:
        while file.read(1 << 20): pass
"""
READ = Job("read", "read()", IMPORTS)
JOBS = [
    Job("check", "logreel.check(path)", IMPORTS),
    Job("diff with itself", "logreel.diff(path, path)", IMPORTS),
    Job("diff, all messages", "logreel.diff(path, path, messages=True)", IMPORTS),
]


def main() -> None:
    """Print the tables; argument: a scale, 1 for logs of about 300 MB."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    os.environ["LOGREEL_CACHE"] = "off"
    compare("ULog", str(biglog.make(int(300 * scale))), READ, JOBS, rounds=3, unit="read")
    compare("bag", str(bigbag.make("mixed", "none", 1.5 * scale)), READ, JOBS, rounds=3, unit="read")
    compare("bag, lz4", str(bigbag.make("mixed", "lz4", 1.0 * scale)), READ, JOBS, rounds=3, unit="read")


if __name__ == "__main__":
    main()
