"""What small commands cost: CPU of whole processes, as parts of what ``import numpy`` costs in the same run.

    python bench/startup.py [FOLDER]     FOLDER: samples by format, ../shared/data by default

Jobs alternate; the least, the median and the spread (75th less 25th percentile) of nine runs of each are shown.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 9
BIN = Path(sys.executable).parent


def jobs(data: Path) -> dict[str, list[str]]:
    """Return command lines by name; those whose sample or program is missing are left out."""
    python, logreel = sys.executable, str(BIN / "logreel")
    log = str(data / "ulog/sample.ulg")
    small = {
        "ulog": "ulog/sample_px4_events.ulg",
        "rosbag": "rosbag/v20_real_turtlesim.bag",
        "mcap": "rosbag2/mcap_wbag/wbag_0.mcap",
        "bddf": "bddf/03_multi_series.bddf",
        "carla": "carla/sr_DistanceToLaneCenter_2020.log",
        "koblenz": "koblenz/k01_all_six.log",
    }
    to_arrow = f"import logreel; logreel.open({log!r})['vehicle_attitude'].to_arrow()"
    every = {
        "python": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import pyarrow": [python, "-c", "import pyarrow"],
        "import click": [python, "-c", "import click"],
        "ulog_info": [str(BIN / "ulog_info"), str(data / small["ulog"])],
        "--version": [logreel, "--version"],
        "--help": [logreel, "--help"],
        "info --help": [logreel, "info", "--help"],
        **{f"info {name}": [logreel, "info", str(data / path)] for name, path in small.items()},
        "cat -n 3": [logreel, "cat", "-n", "3", log],
        **{verb: [logreel, verb, log] for verb in ("params", "text", "stats", "schema", "check", "summary")},
        "open, to_arrow": [python, "-c", to_arrow],
    }
    return {name: words for name, words in every.items() if all(map(exists, words))}


def exists(word: str) -> bool:
    return word[:1] != "/" or Path(word).exists()


def cpu(words: list[str]) -> float:
    """Return the CPU time of a process in ms; its modules are compiled, as installed ones are."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> None:
    """Measure all jobs and print a table."""
    folder = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared/data"
    every = jobs(Path(folder).resolve())
    taken: dict[str, list[float]] = {name: [] for name in every}
    for run in range(RUNS + 1):
        for name, words in every.items():
            worked = cpu(words)
            if run:
                taken[name].append(worked)
    numpy = statistics.median(taken["import numpy"])
    print(f"{'':16} {'least':>7} {'median':>7} {'spread':>7}  × import numpy")
    for name, times in taken.items():
        low, middle, high = statistics.quantiles(times, n=4)
        print(f"{name:16} {min(times):7.0f} {middle:7.0f} {high - low:7.0f}  {middle / numpy:.2f}")


if __name__ == "__main__":
    main()
