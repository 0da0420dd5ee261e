"""Whole processes on logs of 0.1 to 300 MB: what a person waits for, from the start of Python to the result.

Each step does the same with logreel and with another library, on the same log: an overview, one column, every field as
NumPy arrays, every channel as an Arrow table, and as Parquet files. The figures are CPU seconds of whole processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import logs
from measure import IMPORT_NUMPY, IMPORT_PYARROW, Group, Job, Run

#: Megabytes of the logs, and how often each step is run at most: large logs take other libraries a minute.
SIZES = {0.1: 7, 1.0: 5, 4.0: 5, 20.0: 3, 60.0: 2, 300.0: 2}
QUICK_SIZES = (0.1, 4.0, 20.0)
STEPS = ("info", "one column", "every field as NumPy", "every channel as Arrow", "Parquet")
BIN = Path(sys.executable).parent
#: By format: topic and field of the column.
IMU = ("/imu", "linear_acceleration.z")
COLUMN = {"ulog": ("vehicle_attitude", "q"), "rosbag": IMU, "mcap": IMU}
OURS = {
    "one column": "logreel.open(path)[{topic!r}][{field!r}]",
    "every field as NumPy": "for ch in logreel.open(path).values(): ch.to_numpy()",
    "every channel as Arrow": "for ch in logreel.open(path).values(): ch.to_arrow()",
    "Parquet": "logreel.convert(path, out + '/x.parquet/')",
}
WRITE = """import pyarrow.parquet
for n, table in enumerate(tables): pyarrow.parquet.write_table(table, f'{out}/{n}.parquet')"""
#: By name of the library: its format, and what each step is with it. Each prints nothing.
PEERS = {
    "pyulog": {
        "": "import pyulog",
        "one column": "data = pyulog.ULog(path, [{topic!r}], True).data_list[0].data; data['q[0]']",
        "every field as NumPy": "data = [d.data for d in pyulog.ULog(path, None, True).data_list]",
        "every channel as Arrow": (
            "import pyarrow\n"
            "tables = [pyarrow.table(d.data) for d in pyulog.ULog(path, None, True).data_list]"
        ),
    },
    "rosbags": {
        "": "import plain_readers\nfrom pathlib import Path\nfrom rosbags.highlevel import AnyReader",
        "info": "with AnyReader([Path(path)]) as r: [(c.topic, c.msgtype, c.msgcount) for c in r.connections]",
        "one column": "plain_readers.rosbags_columns(path, {topic!r})",
        "every field as NumPy": "plain_readers.rosbags_columns(path)",
    },
    "mcap": {
        "": "import plain_readers\nfrom mcap.reader import make_reader",
        "info": "make_reader(open(path, 'rb')).get_summary()",
        "one column": "plain_readers.mcap_columns(path, {topic!r})",
        "every field as NumPy": "plain_readers.mcap_columns(path)",
    },
}
PEER_OF = {"ulog": "pyulog", "rosbag": "rosbags", "mcap": "mcap"}


def _python(*lines: str) -> tuple[str, ...]:
    """Return a command that runs Python, with the log as ``path`` and a folder as ``out``."""
    folder = "import tempfile; folder = tempfile.TemporaryDirectory(); out = folder.name\n"
    code = "\n".join(("path = 'PATH'", *lines))
    return (sys.executable, "-c", folder * ("out" in code) + code)


def _step(log_format: str, step: str, rounds: int) -> tuple[Job, Job]:
    """Return a step with logreel and with the other library."""
    topic, field = COLUMN[log_format]
    peer, name = PEERS[PEER_OF[log_format]], PEER_OF[log_format]
    slow = 1 if rounds < 3 else min(rounds, 3)
    if step == "info":
        ours = (str(BIN / "logreel"), "info", "PATH")
        theirs = _python(peer[""], peer["info"]) if "info" in peer else (str(BIN / "ulog_info"), "-i", "PATH")
    else:
        ours = _python("import logreel", OURS[step].format(topic=topic, field=field))
        arrow = peer.get("every channel as Arrow") or (
            "import pyarrow\ntables = [pyarrow.table(columns) for columns in "
            + peer["every field as NumPy"]
            + ".values()]"
        )
        code = {"every channel as Arrow": arrow, "Parquet": f"{arrow}\n{WRITE}"}.get(step) or peer[step]
        theirs = _python(peer[""], code.format(topic=topic) if step == "one column" else code)
    needs = {"rosbags": ("rosbags",), "pyulog": ("pyulog",), "mcap": ("mcap", "mcap_ros1")}[name]
    return (
        Job(f"logreel: {step}", command=ours, rounds=rounds),
        Job(f"{name}: {step}", command=theirs, rounds=slow, needs=needs),
    )


def _log(log_format: str, megabytes: float) -> Callable[[Path], Path]:
    if log_format == "ulog":
        return lambda folder: logs.ulog(folder, megabytes)
    if log_format == "rosbag":
        return lambda folder: logs.bag(folder, "drive", "none", megabytes)
    return lambda folder: logs.mcap(folder, logs.bag(folder, "drive", "none", megabytes), "none", raw=True)


def _startup() -> Group:
    """Small commands on small logs: what they cost beside ``import numpy``."""
    logreel = str(BIN / "logreel")
    formats = ("ulog", "rosbag", "mcap", "bddf", "carla", "koblenz")
    commands = {
        "python": (sys.executable, "-c", "pass"),
        "--version": (logreel, "--version"),
        "--help": (logreel, "--help"),
        "info --help": (logreel, "info", "--help"),
        **{f"info {name}": (logreel, "info", f"PATH/{name}") for name in formats},
        "cat -n 3": (logreel, "cat", "-n", "3", "PATH/rosbag"),
        **{verb: (logreel, verb, "PATH/rosbag") for verb in ("stats", "schema", "check", "summary")},
        "open, to_arrow": _python(
            "import logreel", "next(iter(logreel.open(path + '/rosbag').values())).to_arrow()"
        ),
    }
    jobs = tuple(Job(name, command=command, rounds=5) for name, command in commands.items())
    title = "Small commands, whole processes"
    return Group(
        "startup", title, lambda folder: folder / "samples", (IMPORT_NUMPY, IMPORT_PYARROW, *jobs), (), "cpu"
    )


#: What ``logreel.open`` and the first column of a ULog import, without what they do.
IMPORTED = (
    "import numpy, logreel.io.source, logreel.log.log, logreel.registry.open, logreel.formats.ulog.reader, "
    "logreel.formats.ulog.scan_builder, logreel.log.columns, logreel.layout.numpy_columns"
)


def _first_column() -> Group:
    """Parts of the way to the first column of a small ULog, beside pyulog.

    OpenBLAS has one thread: others wait for work for 27 ms after NumPy is loaded, and that waiting is CPU time, too.
    """
    topic, field = COLUMN["ulog"]
    every, column = (OURS[step].format(topic=topic, field=field) for step in (STEPS[2], STEPS[1]))
    pyulog = PEERS["pyulog"]
    parts = {
        "import numpy": ("import numpy",),
        "import numpy and pyulog": (pyulog[""],),
        "pyulog: one column": (pyulog[""], pyulog["one column"].format(topic=topic)),
        "pyulog: every field": (pyulog[""], pyulog["every field as NumPy"]),
        "import numpy and what opens a ULog": (IMPORTED,),
        "open": ("import logreel", "logreel.open(path)"),
        "one column": ("import logreel", column),
        "every field": ("import logreel", every),
    }
    jobs = tuple(
        Job(name, command=("env", "OPENBLAS_NUM_THREADS=1", *_python(*lines)), rounds=25, needs=needs)
        for name, lines in parts.items()
        for needs in (("pyulog",) if "pyulog" in name else (),)
    )
    title = "The first column of a ULog of 0.1 MB, one thread of OpenBLAS"
    return Group("first-column", title, _log("ulog", 0.1), jobs, (), "cpu")


def groups(x: float) -> list[Group]:
    """Return a group for each format and size; with *x* below 1 the sizes of a quick run."""
    found = [_startup(), _first_column()]
    for megabytes, rounds in SIZES.items():
        for log_format, title in (
            ("ulog", "ULog"),
            ("rosbag", "ROS 1 bag"),
            ("mcap", "MCAP, not compressed"),
        ):
            steps = tuple(job for step in STEPS for job in _step(log_format, step, rounds))
            quick = megabytes in QUICK_SIZES and (log_format == "ulog" or megabytes == 4.0)
            part_of = Run.QUICK if quick else Run.FULL
            if x >= 1 or quick:
                name = f"ladder-{log_format}-{megabytes:g}"
                title = f"Whole processes: {title} of {megabytes:g} MB"
                log = _log(log_format, megabytes)
                found.append(
                    Group(name, title, log, (IMPORT_NUMPY, IMPORT_PYARROW, *steps), (), "cpu", part_of)
                )
    return found
