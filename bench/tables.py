"""Tables from a ULog: Parquet of all topics, an average by SQL; compared with pyulog and CSV, pandas and NumPy."""

from __future__ import annotations

import sys

import bench_path  # noqa: F401 - before what it makes importable
import biglog
from harness import Job, compare, run

IMPORTS = """
import logreel, logreel.outputs.convert, logreel.ops.query.topic_table, pyarrow.parquet, polars as pl, tempfile
from support.samples.ulog.builder import tiny
logreel.sql('SELECT avg(flag) FROM pair', tiny())  # whatever is imported at first use
folder = tempfile.mkdtemp(); import atexit, shutil; atexit.register(shutil.rmtree, folder)
"""
PYULOG = """
import pyulog, pyulog.ulog2csv, pandas, pyarrow.parquet, contextlib, io, tempfile
folder = tempfile.mkdtemp(); import atexit, shutil; atexit.register(shutil.rmtree, folder)
"""
WITH_PANDAS = """
for i, one in enumerate(pyulog.ULog(path, None, True).data_list):
    pandas.DataFrame(one.data).to_parquet(f'{folder}/{i}.parquet')
"""
AS_CSV = """
with contextlib.redirect_stdout(io.StringIO()):
    pyulog.ulog2csv.convert_ulog2csv(path, None, folder, ',', None, None, True)
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
PARQUET = Job(
    "logreel.convert to Parquet, all topics", "logreel.convert(path, folder + '/x.parquet/')", IMPORTS
)
PANDAS = Job("pyulog, pandas, to_parquet, all topics", WITH_PANDAS, PYULOG, rounds=1)
CSV = Job("ulog2csv, all topics", AS_CSV, PYULOG, rounds=1)
SQL = Job(
    "logreel.sql, the average of one field",
    "kept = logreel.sql('SELECT avg(q[1]) FROM vehicle_attitude', path)",
    IMPORTS,
)
LAZY = Job(
    "… with logreel.scan_polars",
    "kept = logreel.scan_polars(path, 'vehicle_attitude').select(pl.col('q').arr.get(0).mean()).collect()",
    IMPORTS,
)
LOAD = Job("pyulog.ULog(path)", "kept = pyulog.ULog(path, None, True)", PYULOG, rounds=2)
LONG = Job(
    "… one long table of one topic",
    "logreel.convert(path, folder + '/x.parquet', topics='sensor_accel', layout='long')",
    IMPORTS,
)


def main() -> None:
    """Print the table; argument: megabytes."""
    path = str(biglog.make(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
    times = compare("PX4 ULog to tables", path, COPY, [PARQUET, PANDAS, CSV, SQL, LAZY, LOAD], rounds=3)
    parquet, sql = times[PARQUET.name], times[SQL.name]
    print(f"  Parquet is {times[CSV.name] / parquet:.0f} x faster than ulog2csv (bound 20)")
    print(f"  and {times[PANDAS.name] / parquet:.1f} x faster than pyulog with pandas (bound 5);")
    print(f"  an average by SQL is {times[LOAD.name] / sql:.0f} x faster than pyulog's full load (bound 50)")
    for job in (PARQUET, LONG, SQL):
        print(f"  {job.name}: {run(job, path, memory=True)[2] / 1e6:.0f} MB of memory besides mapped pages")


if __name__ == "__main__":
    main()
