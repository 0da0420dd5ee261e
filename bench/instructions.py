"""Count the instructions of the kernels with callgrind, on small fixed inputs, and compare with the committed counts.

    python bench/instructions.py [--update]

Counts do not depend on what else a machine does, so they show a change of two percent. They depend on processor,
compiler and Python: counts of another combination are printed only. Each count is what a task spends inside one kernel
module, without what it calls elsewhere. The exit code is 1 if a count differs by more than two percent; ``--update``
writes them.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
from measure import first_line

COUNTS = Path(__file__).with_name("instructions.json")
#: Kernels with fewer instructions in a task are not looked at.
LEAST = 10_000
TOLERANCE = 0.02
SHIM = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
WORKER = """
import ctypes, os, sys
import numpy as np
import logreel, pyarrow, logs
from logreel.lenses import velodyne
from pathlib import Path
from support.formats import sample_log
shim, folder = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
bag = logs.bag(folder, "drive", "none", 0.5)
sources = {
    "ulog": logs.ulog(folder, 0.2), "rosbag": bag, "rosbag-lz4": logs.bag(folder, "mixed", "lz4", 0.5),
    "mcap": logs.mcap(folder, bag, "zstd", True), "mcap-exchange": logs.mcap(folder, bag, "lz4"),
    "bddf": logs.bddf_blocks(folder, 5000, 8),
    "carla": folder / "town.rec", "koblenz": logs.koblenz_poses(folder, 5500),
}
# Not logs.carla, which takes a real recording where there is one.
sources["carla"].write_bytes(sample_log("carla"))
tasks = {}
for name, path in sources.items():
    opened = logreel.open(path)
    largest = max(opened.values(), key=len)
    tasks[f"{name}: open"] = lambda path=path: logreel.open(path)
    tasks[f"{name}: tables"] = lambda path=path: logreel.open(path).tables()
    tasks[f"{name}: decode"] = lambda ch=largest: [ch[i].decode() for i in range(100)]
for suffix in (".ulg", ".bag", ".bddf"):
    path = logs.numbers(folder, suffix, 2000)
    out = folder / ("out" + suffix)
    tasks[f"write{suffix}: slice"] = lambda path=path, out=out: logreel.slice(path, out, force=True)
def write(out=folder / "table.bag", schema=logreel.Schema("geometry_msgs/Vector3", "ros1msg", "")):
    with logreel.create(out, force=True) as writer:
        writer.write_table(writer.add_channel("/v", schema), table)
numbers = np.arange(2000.0)
table = pyarrow.table({"time": np.arange(2000) + 10**18, "x": numbers, "y": numbers, "z": numbers})
tasks["write.bag: table"] = write
tasks["convert: ulog to mcap"] = lambda: logreel.convert(sources["ulog"], folder / "out.mcap", force=True)
packets = np.fromfile(logs.velodyne_packets(folder), np.uint8)[: 100 * 1206]
some = velodyne.Packets(packets, np.arange(100, dtype=np.int64) * 1206, np.zeros(100, np.int64))
tasks["velodyne: points"] = lambda: velodyne.decode(some, velodyne.HDL32E)
for name, task in tasks.items():
    task()
    shim.begin()
    task()
    shim.end(name.encode())
"""


def count() -> dict[str, dict[str, int]]:
    """Return the instructions of each task by kernel module."""
    with tempfile.TemporaryDirectory(prefix="logreel-bench-") as name:
        folder = Path(name)
        source, shim, out = folder / "shim.c", folder / "shim.so", folder / "callgrind"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
        options = ["--instr-atstart=no", "--dump-line=no", "--compress-pos=no", f"--callgrind-out-file={out}"]
        worker = [sys.executable, "-c", WORKER, str(shim), str(folder)]
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", *options, *worker], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return dict(
            _task(dump) for dump in sorted(folder.glob("callgrind.*"), key=lambda path: int(path.suffix[1:]))
        )


def _task(dump: Path) -> tuple[str, dict[str, int]]:
    """Return the name of a task, and what it spends itself in each kernel module."""
    names: dict[str, str] = {}
    found: dict[str, int] = {}
    task, module, skip = "", "", False
    for line in dump.read_text().splitlines():
        if line.startswith("desc: Trigger: Client Request:"):
            task = line.rpartition("Client Request: ")[2]
        elif match := re.match(r"(c?ob)=(\(\d+\))(?: (.*))?$", line):
            where, number, path = match.groups()
            names[number] = path or names[number]
            if where == "ob":
                path = names[number]
                module = Path(path).name.partition(".")[0] if "/logreel/kernels/" in path else ""
        elif line.startswith("calls="):
            # The next line is what the called function cost.
            skip = True
        elif re.match(r"[\d+*-]", line):
            if module and not skip:
                # A cost of zero is left out.
                found[module] = found.get(module, 0) + int(f"{line} 0".split()[1])
            skip = False
    return task, {name: number for name, number in sorted(found.items()) if number >= LEAST}


def combination() -> str:
    """Return what counts depend on: processor, compiler and Python."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.machine()}, {first_line('cc', '--version')}, Python {python}"


def compared(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]]) -> Iterator[tuple[str, bool]]:
    """Yield a line for each count, and whether it differs too much."""
    for task, kernels in now.items():
        for kernel, number in kernels.items():
            was = before.get(task, {}).get(kernel)
            change = "new" if was is None else f"{number / was - 1:+.1%}"
            differs = was is not None and abs(number / was - 1) > TOLERANCE
            yield f"{f'{task}, {kernel}':44}{number:>14,}  {change}{'  DIFFERS' * differs}", differs


def main() -> int:
    """Count, print, and return the exit code."""
    if not shutil.which("valgrind") or not Path("/usr/include/valgrind/callgrind.h").exists():
        print("left out: needs valgrind with its headers")
        return 0
    committed = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    here, now = combination(), count()
    before = committed.get(here)
    print(
        here
        if before
        else f"{here}: not comparable, there are counts of: {'; '.join(committed) or 'nothing'}"
    )
    different = 0
    for line, differs in compared(now, before or {}):
        print(line)
        different += differs
    if "--update" in sys.argv:
        COUNTS.write_text(json.dumps(committed | {here: now}, indent=1) + "\n")
        return 0
    if different:
        print(
            f"{different} counts differ by more than {TOLERANCE:.0%} from the committed ones", file=sys.stderr
        )
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
