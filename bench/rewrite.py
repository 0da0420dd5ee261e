"""Slice, sort, merge and recover logs of 150 to 300 MB, and append to them, compared with cp, rosbags, rosbag filter.

``python bench/rewrite.py SCALE append`` only appends: SCALE 1 for 250 MB, 4 for 1 GB.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
import bigbddf
import biglog
import carla
import koblenz
import logreel
from harness import Job, compare

IMPORTS = """
import logreel, subprocess, tempfile, pathlib
from support.samples.bddf.builder import walk
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import tiny
import logreel.formats.carla.writer, logreel.formats.koblenz.writer
import logreel.ops.rewrite.recover, logreel.ops.rewrite.merge, logreel.ops.rewrite.slice
folder = tempfile.TemporaryDirectory(prefix="logreel-bench-"); out = folder.name
name = out + "/out" + pathlib.Path(path).suffix
pathlib.Path(out + "/a.bag").write_bytes(drive(1.0)); logreel.sort(out + "/a.bag", out + "/b.bag")
pathlib.Path(out + "/a.ulg").write_bytes(tiny()); logreel.sort(out + "/a.ulg", out + "/b.ulg")
pathlib.Path(out + "/a.bddf").write_bytes(walk(1)); logreel.sort(out + "/a.bddf", out + "/b.bddf")
logreel.slice(out + "/a.bddf", out + "/c.bddf")
log = logreel.open(path); middle = (log.start + log.end) // 2; del log
halves = [out + "/1" + pathlib.Path(path).suffix, out + "/2" + pathlib.Path(path).suffix]
"""
HALVES = "logreel.slice(path, halves[0], end=middle); logreel.slice(path, halves[1], start=middle)"
SYNC = "; fd = os.open(name, os.O_RDONLY); os.fsync(fd)"
COPY = Job("cp, and fsync", f"subprocess.run(['cp', path, name], check=True){SYNC}", IMPORTS)
JOBS = [
    Job("slice: everything", "logreel.slice(path, name)", IMPORTS, bound="4"),
    Job("slice: second half", "logreel.slice(path, name, start=middle)", IMPORTS, bound="4"),
    Job("recover", "logreel.recover(path, name)", IMPORTS, bound="4"),
    Job("sort", "logreel.sort(path, name)", IMPORTS, bound="4"),
    Job("merge of two halves", "logreel.merge(halves, name)", IMPORTS + HALVES, bound="4"),
]
TOPICS = Job(
    "slice: two of three series", "logreel.slice(path, name, topics=['say', 'blob'])", IMPORTS, bound="4"
)
OLD = """
import shutil
old = out + "/old" + pathlib.Path(path).suffix; shutil.copyfile(path, old)
logreel.create(out + "/b" + pathlib.Path(path).suffix, mode="a").discard()
"""
LAST = """
log = logreel.open(old); ch = next(one for one in log.match(None) if len(one)); data = b""
for message in ch: data = bytes(message.data)
"""
APPEND = [
    Job("open it", "logreel.open(old)", IMPORTS + OLD),
    Job("begin to append", "w = logreel.create(old, mode='a')", IMPORTS + OLD, bound="3"),
    Job(
        "begin to append, and complete it",
        "w = logreel.create(old, mode='a'); "
        "w.write(w.add_channel(ch.topic, ch.schema, ch.metadata), ch.times[-1], data); w.close()",
        IMPORTS + OLD + LAST,
    ),
]
PEER = Job(
    "rosbags: read and write",
    """
with AnyReader([Path(path)]) as r, Writer(name) as w:
    made = {c.id: w.add_connection(c.topic, c.msgtype, typestore=r.typestore) for c in r.connections}
    for c, t, data in r.messages(): w.write(made[c.id], t, data)
""",
    IMPORTS
    + "from rosbags.highlevel import AnyReader\nfrom rosbags.rosbag1 import Writer\nfrom pathlib import Path\n",
    rounds=1,
)
#: Genuine rosbag lives in the Python of the system; this folder has a file of its name.
SYSTEM = "/usr/bin/python3"
FILTER = """
code = "import sys; from rosbag.rosbag_main import rosbagmain; rosbagmain(['rosbag', *sys.argv[1:]])"
env = {{name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}}
subprocess.run([{system!r}, '-c', code, 'filter', path, name, {keep!r}],
               check=True, env=env, cwd=out, capture_output=True)
# It ends as if all was well where it did not understand.
os.stat(name)
"""
GENUINE = [
    Job("rosbag filter: everything", FILTER.format(system=SYSTEM, keep="True"), IMPORTS, rounds=1),
    Job("rosbag filter: one topic", FILTER.format(system=SYSTEM, keep="topic == '/imu'"), IMPORTS, rounds=1),
]
ONE_TOPIC = Job("slice: one topic", "logreel.slice(path, name, topics=['/imu'])", IMPORTS)

#: Conversions to other formats, beside decoding all messages to columns.
DECODE = Job(
    "decode all columns",
    """
with logreel.open(path) as log:
    for ch in log.channels.values():
        for batch in ch.batches(): pass
""",
    IMPORTS,
)
OTHERS = {
    suffix: Job(
        f"convert to {suffix}",
        f"logreel.convert(path, name + '{suffix}', force=True)",
        IMPORTS + f"logreel.convert(out + '/a.ulg', out + '/x{suffix}', force=True)\n",
        bound=bound,
    )
    for suffix, bound in ((".bag", "4"), (".vel", ""), (".bddf", ""))
}


def main() -> None:
    """Print the tables; argument: a scale, 1 for logs of about 300 MB."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    os.environ["LOGREEL_CACHE"] = "off"
    _append(scale)
    if sys.argv[2:] == ["append"]:
        return
    compare("ULog", str(biglog.make(int(300 * scale))), COPY, JOBS, rounds=3)
    compare("ULog to other formats", str(biglog.make(int(100 * scale))), DECODE, [*OTHERS.values()], rounds=3)
    compare("BDDF", str(bigbddf.make(int(300 * scale))), COPY, [*JOBS, TOPICS], rounds=3)
    path = str(bigbag.make("mixed", "none", 1.5 * scale))
    peers = [PEER] if importlib.util.find_spec("rosbags") else []
    ratios = compare("bag", path, COPY, [*JOBS, *peers], rounds=3)
    if peers:
        print(f"  recover is {ratios[PEER.name] / ratios['recover']:.0f} x faster than rosbags")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "town.rec")
        carla.repeat(carla.recording(), Path(path), int(200e6 * scale))
        compare("CARLA recording", path, COPY, JOBS, rounds=3)
        path = os.path.join(folder, "robot.vel")
        koblenz.drive(Path(path), int(33 * scale), 1000.0)
        compare("Koblenz log", path, COPY, JOBS, rounds=3)
    if _has_rosbag():
        small = str(bigbag.make("mixed", "none", 0.2 * scale))
        jobs = [JOBS[0], JOBS[-1], ONE_TOPIC]
        ratios = compare("smaller bag", small, COPY, [*jobs, *GENUINE], rounds=3)
        for job, peer in zip(jobs, (GENUINE[0], *GENUINE), strict=True):
            print(
                f"  {job.name}: {ratios[peer.name] / ratios[job.name]:.0f} x faster than {peer.name} (asked: 20)"
            )


def _append(scale: float) -> None:
    """Print how long it takes to begin appending, compared with cp without waiting for the disk."""
    copy = Job("cp", "subprocess.run(['cp', '--reflink=never', path, name], check=True)", IMPORTS)
    for title, source in (
        ("ULog", biglog.make(int(250 * scale))),
        ("bag", bigbag.make("mixed", "none", 1.35 * scale)),
    ):
        compare(f"append to a {title}", str(source), copy, APPEND, rounds=3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.mcap")
            if title == "bag":
                logreel.convert(source, path, raw=True, compression="none")
                compare("append to an MCAP", path, copy, APPEND, rounds=3)


def _has_rosbag() -> bool:
    """Return whether genuine rosbag is installed (Debian: python3-rosbag)."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [SYSTEM, "-c", "import rosbag"], env=env, cwd=os.sep, capture_output=True, check=False
        )
    except OSError:
        return False
    return not done.returncode


if __name__ == "__main__":
    main()
