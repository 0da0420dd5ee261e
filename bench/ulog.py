"""ULog: open, one topic, all columns, second open; compared with a fresh copy of the mapped file and pyulog."""

from __future__ import annotations

import sys
import tempfile

import bench_path  # noqa: F401 - before what it makes importable
import biglog
from harness import Job, compare, run

IMPORTS = """
import logreel, logreel.log.log, logreel.log.tables, logreel.formats.ulog.scan_builder, logreel.formats.ulog.reader
import pyarrow, logreel.layout.arrow, logreel.index.gather
from support.samples.ulog.builder import tiny
logreel.open(tiny()).tables()  # whatever is imported at first use
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
OPEN = Job("logreel.open", "kept = logreel.open(path)", IMPORTS, bound="<= 0.9")


def main() -> None:
    """Print the table; argument: megabytes."""
    path = str(biglog.make(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
    with tempfile.TemporaryDirectory() as cache:
        cached = f"import os; os.environ['LOGREEL_CACHE'] = {cache!r}\n{IMPORTS}\nlogreel.open(path)"
        jobs = [
            OPEN,
            Job(
                "… and one topic to Arrow",
                "kept = logreel.open(path).table('vehicle_attitude')",
                IMPORTS,
                bound="<= 1.1",
            ),
            Job("… and one field to NumPy", "kept = logreel.open(path)['vehicle_attitude']['q']", IMPORTS),
            Job("… and all topics to Arrow", "kept = logreel.open(path).tables()", IMPORTS, bound="<= 2.4"),
            Job("open again, with the sidecar", "kept = logreel.open(path)", cached, bound="< 50 ms"),
            Job("pyulog.ULog(path)", "kept = pyulog.ULog(path)", "import pyulog", rounds=3),
        ]
        ratios = compare("PX4 ULog", path, COPY, jobs)
    peer = ratios["pyulog.ULog(path)"]
    print(f"  open is {peer / ratios[OPEN.name]:.0f} x faster than pyulog's full load (bound 80),")
    print(f"  all columns {peer / ratios['… and all topics to Arrow']:.0f} x (bound 25)")
    messages = _count(path)
    peak = run(OPEN, path, memory=True)[2]
    print(f"  opening took {peak / 1e6:.1f} MB of memory besides mapped pages for {messages} messages:")
    print(f"  {peak / messages:.1f} bytes a message (bound 12 bytes a message plus 30 MB)")


def _count(path: str) -> int:
    import logreel

    return logreel.open(path).message_count


if __name__ == "__main__":
    main()
