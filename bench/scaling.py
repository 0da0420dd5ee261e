"""CPU time and memory against the number of things in a log: channels, definitions, chunks, attachments, problems …

Each job is a log with so many of one thing, and does each task on it. A task in linear time takes ten times as long for
ten times as many. A task that takes more than 120 s of CPU is given up, and has no figure.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
from measure import Group, Job, Run

TASKS = ("open", "info", "check", "summary", "recover", "table")
#: CPU seconds after which a task is given up.
SECONDS = 120
MOST = 65_000


def ulog_channels(n: int) -> bytes:
    """Each with a format, a subscription and a message."""
    from support.samples.ulog.builder import Builder

    out = Builder().flags()
    for i in range(min(n, MOST)):
        out.format(f"t{i}:uint64_t timestamp;float x;").subscribe(f"t{i}", i)
    for i in range(min(n, MOST)):
        out.data(i, struct.pack("<Qf", 1000 + i, i))
    return out.bytes()


def ulog_definitions(n: int) -> bytes:
    """Formats of which one is used."""
    from support.samples.ulog.builder import Builder

    out = Builder().flags()
    for i in range(n):
        out.format(f"t{i}:uint64_t timestamp;float x;")
    return out.subscribe("t0", 0).data(0, struct.pack("<Qf", 1000, 1)).bytes()


def ulog_parameters(n: int) -> bytes:
    """Distinct ones before the data."""
    from support.samples.ulog.builder import Builder

    out = Builder().flags().format("t:uint64_t timestamp;float x;")
    for i in range(n):
        out.parameter(f"P{i}", i)
    return out.subscribe("t", 0).data(0, struct.pack("<Qf", 1000, 1)).bytes()


def ulog_changes(n: int) -> bytes:
    """Changes of 100 parameters between messages."""
    from support.samples.ulog.builder import Builder

    out = Builder().flags().format("t:uint64_t timestamp;float x;").subscribe("t", 0)
    for i in range(n):
        out.data(0, struct.pack("<Qf", 1000 + i, 1)).parameter(f"P{i % 100}", i)
    return out.bytes()


def ulog_info(n: int) -> bytes:
    """Distinct keys."""
    from support.samples.ulog.builder import Builder

    out = Builder().flags().format("t:uint64_t timestamp;float x;")
    for i in range(n):
        out.info(f"key_{i}", "x")
    return out.subscribe("t", 0).data(0, struct.pack("<Qf", 1000, 1)).bytes()


def ulog_problems(n: int) -> bytes:
    """A byte of damage after every six messages."""
    from support.samples.ulog.builder import Builder

    start = Builder().flags().format("t:uint64_t timestamp;float x;").subscribe("t", 0).bytes()
    head = len(Builder().bytes())
    good = b"".join(Builder().data(0, struct.pack("<Qf", 1000 + i, i)).bytes()[head:] for i in range(6))
    return start + (good + b"\xff") * n


def _topic(i: int, **more: str) -> object:
    from support.samples.rosbag.old import Topic

    return Topic(f"/t{i}", "std_msgs/String", text="string data\n", **more)  # type: ignore[arg-type]


def bag_connections(n: int) -> bytes:
    """Each of another topic with a message."""
    from support.samples.rosbag.builder import Builder

    out = Builder("none")
    for i in range(n):
        out.message(out.connection(_topic(i)), 10**18 + i, b"\1\0\0\0a")  # type: ignore[arg-type]
    return out.bytes()


def bag_chunks(n: int) -> bytes:
    """Each with two messages."""
    from support.samples.rosbag.builder import Builder

    out = Builder("lz4", chunk_bytes=60)
    conn = out.connection(_topic(0))  # type: ignore[arg-type]
    for i in range(2 * n):
        out.message(conn, 10**18 + i, b"\1\0\0\0a")
    return out.bytes()


def bag_damaged_chunks(n: int) -> bytes:
    """Each compressed, and not to be unpacked."""
    from support.samples.rosbag.builder import Builder

    out = Builder("lz4", pack=lambda data: b"\xff" * 40, chunk_bytes=60)
    conn = out.connection(_topic(0))  # type: ignore[arg-type]
    for i in range(2 * n):
        out.message(conn, 10**18 + i, b"\1\0\0\0a")
    return out.bytes()


def bag_problems(n: int) -> bytes:
    """Connections with a wrong md5."""
    from support.samples.rosbag.builder import Builder

    out = Builder("none")
    for i in range(n):
        out.message(out.connection(_topic(i, md5=f"{i:032x}")), 10**18 + i, b"\1\0\0\0a")  # type: ignore[arg-type]
    return out.bytes()


def mcap_channels(n: int) -> bytes:
    """Each with a schema and a message, in chunks of 64 KiB."""
    from support.samples.mcap.builder import Builder

    out = Builder("")
    for i in range(1, min(n, MOST) + 1):
        out.schema(i, f"pkg/T{i}", "ros1msg", b"uint32 x\n").channel(i, i, f"/t{i}", "ros1")
        out.message(i, 10**18 + i, struct.pack("<I", i))
    return out.bytes()


def mcap_chunks(n: int, compression: str = "zstd") -> bytes:
    """Each with two messages."""
    from support.samples.mcap.builder import Builder

    out = Builder(compression, chunk_bytes=60)
    out.schema(1, "pkg/T", "ros1msg", b"uint32 x\n").channel(1, 1, "/t", "ros1")
    for i in range(2 * n):
        out.message(1, 10**18 + i, struct.pack("<I", i))
    return out.bytes()


def mcap_attachments(n: int) -> bytes:
    """Each with a metadata record behind it."""
    from support.samples.mcap.builder import Builder

    out = Builder("")
    out.schema(1, "pkg/T", "ros1msg", b"uint32 x\n").channel(1, 1, "/t", "ros1").message(1, 10**18, bytes(4))
    for i in range(n):
        out.attachment(f"a{i}.txt", "text/plain", b"x").metadata(f"m{i}", {"a": "b"})
    return out.bytes()


def mcap_problems(n: int) -> bytes:
    """Damage behind every second message of a file without chunks and index."""
    from support.samples.mcap.builder import Builder

    out = Builder(None, finished=False)
    out.schema(1, "pkg/T", "ros1msg", b"uint32 x\n").channel(1, 1, "/t", "ros1")
    for i in range(n):
        out.message(1, 10**18 + i, bytes(4)).message(1, 10**18 + i, bytes(4)).raw(b"\xff" * 9)
    return out.bytes()


def mcap_damaged_chunks(n: int) -> bytes:
    """Each compressed, and not to be unpacked; the index is there."""
    return mcap_chunks(n, "lz4").replace(b"\x04\x22\x4d\x18", b"\x04\x22\x4d\xff")


def bddf_channels(n: int) -> bytes:
    """Series, each with a message."""
    from support.samples.bddf.builder import Builder

    out = Builder()
    for i in range(min(n, MOST)):
        out.data(out.messages(f"c{i}"), 10**18 + i, b"x")
    return out.bytes()


def bddf_problems(n: int) -> bytes:
    """Damage behind every third block."""
    from support.samples.bddf.builder import Builder

    out = Builder()
    series = out.messages("c")
    for i in range(n):
        for k in range(3):
            out.data(series, 10**18 + 10 * i + k, b"x")
        out.out += b"\xff" * 8
    return out.killed()


def carla_actors(n: int) -> bytes:
    """All added in the first frame, and moved in 3."""
    from support.samples.carla.builder import Builder

    out = Builder()
    for k in range(3):
        frame = out.frame(k * 0.05)
        for i in range(min(n, MOST)):
            if k == 0:
                frame.add(i + 1, 1, "vehicle.a.b")
            frame.position(i + 1, (k, 0, 0))
    return out.bytes()


def carla_frames(n: int) -> bytes:
    """Each with an actor that moves."""
    from support.samples.carla.builder import Builder

    out = Builder()
    for k in range(n):
        frame = out.frame(k * 0.05)
        if k == 0:
            frame.add(1, 1, "vehicle.a.b")
        frame.position(1, (k, 0, 0))
    return out.bytes()


def koblenz_problems(n: int) -> bytes:
    """A message that is not marked as valid behind every third one."""
    from support.samples.koblenz.builder import Builder

    out = Builder()
    for i in range(n):
        for k in range(3):
            out.obd(1000.0 + 3 * i + k, 1, 2, 3.0)
        out.add("OBDDataM", 1000.0 + 3 * i + 2, bytes(28), mark=0)
    return out.bytes()


def koblenz_messages(n: int) -> bytes:
    """Of one kind."""
    from support.samples.koblenz.builder import Builder

    out = Builder()
    for i in range(n):
        out.obd(1000.0 + i, 1, 2, 3.0)
    return out.bytes()


CASES: dict[str, Callable[[int], bytes]] = {
    name: f for name, f in list(globals().items()) if re.match(r"(ulog|bag|mcap|bddf|carla|koblenz)_", name)
}


def run_task(task: str, path: str) -> None:
    """Do one task; what it returns is not looked at."""
    import logreel

    if task == "open":
        log = logreel.open(path)
        _ = log.problems, len(log.channels)
    elif task == "info":
        json.dumps(logreel.info(path).as_dict())
    elif task == "check":
        _ = logreel.check(path).findings
    elif task == "summary":
        _ = logreel.summary(path)
    elif task == "recover":
        logreel.recover(path, path + ".out", force=True)
    elif task == "table":
        log = logreel.open(path)
        largest = max(log.values(), key=len)
        _ = largest.to_arrow()


def costs(name: str, *numbers: int) -> dict[str, float]:
    """Return the CPU seconds and peak memory, MiB, of each task on logs of a case, after imports."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small", Path(folder) / "log"
        small.write_bytes(CASES[name](3))
        for task in TASKS:
            run_task(task, str(small))
        for number in numbers:
            path.write_bytes(CASES[name](number))
            for task in TASKS:
                for what, value in zip(("s", "MiB"), _in_a_child(task, str(path)), strict=False):
                    found[f"{number} {task} {what}"] = value
    return found


def _in_a_child(task: str, path: str) -> list[float]:
    """Return CPU seconds and MiB of a task in a child of this process; nothing if it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.RLIM_INFINITY))
            before, begin = _peak_kib(), time.process_time()
            run_task(task, path)
            cost = [time.process_time() - begin, (_peak_kib() - before) / 1024]
            os.write(writer, json.dumps(cost).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"{task} of {path} ended with {code}")
    found: list[float] = json.loads(text or b"[]")
    return found


def _peak_kib() -> int:
    """Return the peak memory of this process; ru_maxrss would begin with that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def groups(x: float) -> list[Group]:
    """Return the groups: the numbers of a full run, and of a long one."""

    def group(name: str, title: str, *numbers: int) -> Group:
        jobs = [
            Job(
                case,
                f"values.update(scaling.costs({case!r}, {', '.join(map(str, numbers))}))",
                "import scaling",
                rounds=1,
            )
            for case in CASES
        ]
        part_of = Run.FULL if name == "scaling" else Run.LONG
        return Group(name, title, lambda folder: folder / "walk.so", tuple(jobs), part_of=part_of)

    few = [int(number * min(x, 1)) for number in (200, 2_000)]
    return [
        group("scaling", "Counts of things in a log", *few),
        group("scaling-100000", "100 000 things", 100_000),
    ]
