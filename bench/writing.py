"""Writing logs of all formats, rewriting, appending, and converting them to each other, to video and to Rerun."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import logs
from measure import COPY, CP_SYNC, ZSTD, Bound, Group, Job, Run, figure, ratio
from reading import ROSBAGS, warm

#: CPU seconds of the vendor's writer of BDDF for a million blocks of 8 bytes on two quiet cores.
VENDOR_CPU = 8.7
FOLDER = "import pathlib, shutil, subprocess, tempfile\nfolder = tempfile.TemporaryDirectory(); out = folder.name\n"
CREATE = "with logreel.create(name) as w:\n    c = w.add_channel(topic, schema)\n    "
ONE_BY_ONE = CREATE + "for t, p in zip(stamps, payloads): w.write(c, t, p)"
MANY = CREATE + "w.write_many(np.full(n, c, np.int32), times, data, np.arange(n) * size, np.full(n, size))"
TABLE = CREATE + "w.write_table(c, table)"
FIELDS = CREATE + "for t, row in zip(stamps, rows): w.write(c, t, row)"
MCAP_WRITER = "from mcap.writer import CompressionType, Writer\n"

#: What is written into each format: the topic, its schema, and the values of a message.
_OWN = {
    ".ulg": (
        "v",
        "logreel.Schema('v', 'ulog', 'v:uint64_t timestamp;double x;double y;double z;')",
        "xyz",
        4,
    ),
    ".bag": (
        "/v",
        "logreel.Schema('geometry_msgs/Vector3', 'ros1msg', 'float64 x\\nfloat64 y\\nfloat64 z\\n')",
        "xyz",
        3,
    ),
    ".bddf": ("v", "logreel.Schema('float64', 'bddf')", ("value",), 1),
}
_WRITE_PEERS = {
    ".ulg": Job(
        "pyulog: write_ulog",
        "log.write_ulog(name)",
        "import pyulog; log = pyulog.ULog(path)",
        rounds=1,
        needs=("pyulog",),
    ),
    ".bag": Job(
        "rosbags: write",
        "with Writer(name) as w:\n"
        "    c = w.add_connection('/v', 'geometry_msgs/msg/Vector3', msgdef=schema.text,\n"
        "                         md5sum='4a842b65f413084dc2b10fb484ea7f17')\n"
        "    for t, p in zip(stamps, payloads): w.write(c, t, p)",
        "from rosbags.rosbag1 import Writer",
        rounds=1,
        needs=("rosbags",),
    ),
}


def _write(suffix: str, title: str, x: float) -> Group:
    topic, schema, names, width = _OWN[suffix]
    setup = (
        FOLDER
        + f"""
import logreel, logreel.layout.encode, logreel.layout.encode_message, pyarrow
log = logreel.open(path); n = log.message_count; del log
name, topic, schema, size = out + "/out{suffix}", {topic!r}, {schema}, {8 * width}
times = 10**18 + np.arange(n) * 1_000_000
block = np.arange(float({width} * n)).reshape(n, {width})
if {suffix == ".ulg"}: block[:, 0].view(np.int64)[:] = times // 1000
data, stamps, payloads = block.view(np.uint8).ravel(), times.tolist(), [row.tobytes() for row in block]
numbers = block[:, -{len(names)}:]
table = pyarrow.table({{"time": times, **{{k: numbers[:, i].copy() for i, k in enumerate({names!r})}}}})
with logreel.create(out + "/warm{suffix}") as w: w.write_table(w.add_channel(topic, schema), table[:9])
"""
    )
    rows = setup + f"rows = [dict(zip({names!r}, row)) for row in numbers.tolist()]\n"
    jobs = [
        Job("cp", "shutil.copyfile(path, name)", setup),
        Job("write, one by one", ONE_BY_ONE, setup),
        Job("write_many", MANY, setup),
        Job("write_table", TABLE, setup),
        Job("write, a dict of fields each", FIELDS, rows, rounds=2, part_of=Run.FULL),
    ]
    bounds: list[Bound] = []
    if suffix == ".bddf":
        jobs.pop()
    if suffix in _WRITE_PEERS:
        peer = _WRITE_PEERS[suffix]
        jobs.append(Job(peer.name, peer.code, setup + peer.setup, rounds=1, needs=peer.needs))
    messages = int(300_000 * x)

    def against_vendor(job: str) -> Callable[[dict[str, dict[str, list[float]]]], float]:
        return lambda rows: VENDOR_CPU * messages / 1e6 / figure(rows, job, "cpu")

    if suffix == ".bddf":
        bounds = [
            Bound(f"{job.name}: {{:.1f}} x the vendor's speed", against_vendor(job.name), least=1)
            for job in jobs[1:4]
        ]
    name = f"write-{suffix[1:]}"
    return Group(
        name,
        f"{title}: {messages} small messages",
        lambda folder: logs.numbers(folder, suffix, messages),
        tuple(jobs),
        tuple(bounds),
    )


def _rewriting(log_format: str) -> str:
    """Return the set-up of jobs that write ``name``; ``middle`` is half of the time of the log."""
    return warm(
        log_format,
        FOLDER
        + "name = out + '/out' + pathlib.Path(path).suffix\n"
        + f"small = os.environ['LOGREEL_BENCH_SAMPLES'] + '/{log_format}'\n"
        + "logreel.sort(small, out + '/a' + pathlib.Path(path).suffix)\n"
        + "log = logreel.open(path); middle = (log.start + log.end) // 2; del log\n"
        + "halves = [out + '/1' + pathlib.Path(path).suffix, out + '/2' + pathlib.Path(path).suffix]\n",
    )


def _rewrite(log_format: str, title: str, log: Callable[[Path], Path]) -> Group:
    setup = _rewriting(log_format)
    halves = (
        setup + "logreel.slice(path, halves[0], end=middle); logreel.slice(path, halves[1], start=middle)"
    )
    jobs = [
        CP_SYNC,
        Job("slice: everything", "logreel.slice(path, name)", setup),
        Job("slice: second half", "logreel.slice(path, name, start=middle)", setup),
        Job("recover", "logreel.recover(path, name)", setup),
        Job("sort", "logreel.sort(path, name)", setup),
        Job("merge of two halves", "logreel.merge(halves, name)", halves),
    ]
    if log_format == "bddf":
        jobs.append(
            Job("slice: two of three series", "logreel.slice(path, name, topics=['say', 'blob'])", setup)
        )
    if log_format == "rosbag":
        code = (
            "with AnyReader([Path(path)]) as r, Writer(name) as w:\n"
            "    made = {c.id: w.add_connection(c.topic, c.msgtype, typestore=r.typestore) for c in r.connections}\n"
            "    for c, t, data in r.messages(): w.write(made[c.id], t, data)"
        )
        imports = setup + ROSBAGS + "from rosbags.rosbag1 import Writer\n"
        jobs.append(Job("rosbags: read and write", code, imports, rounds=1, needs=("rosbags",)))
    bounds = tuple(
        Bound(f"{job.name} takes {{:.1f}} x cp and fsync", ratio(job.name, CP_SYNC.name), most=4)
        for job in jobs[1:]
        if not job.needs
    )
    part_of = Run.QUICK if log_format in ("ulog", "rosbag") else Run.FULL
    return Group(f"rewrite-{log_format}", f"Rewrite: {title}", log, tuple(jobs), bounds, part_of=part_of)


#: Genuine rosbag lives in the Python of the system (Debian: python3-rosbag).
SYSTEM = "/usr/bin/python3"
_FILTER = f"""
code = "import sys; from rosbag.rosbag_main import rosbagmain; rosbagmain(['rosbag', *sys.argv[1:]])"
env = {{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}}
subprocess.run([{SYSTEM!r}, "-c", code, "filter", path, name, KEEP], check=True, env=env, cwd=out, capture_output=True)
os.stat(name)  # It ends as if all was well where it did not understand.
"""


@cache
def _has_rosbag() -> bool:
    """Return whether genuine rosbag is installed."""
    try:
        done = subprocess.run(
            [SYSTEM, "-E", "-c", "import rosbag"], cwd="/", capture_output=True, check=False
        )
    except OSError:
        return False
    return not done.returncode


def _rosbag_filter(x: float) -> Group:
    setup = _rewriting("rosbag")
    halves = (
        setup + "logreel.slice(path, halves[0], end=middle); logreel.slice(path, halves[1], start=middle)"
    )
    jobs = [
        CP_SYNC,
        Job("slice: everything", "logreel.slice(path, name)", setup),
        Job("merge of two halves", "logreel.merge(halves, name)", halves),
        Job("slice: one topic", "logreel.slice(path, name, topics=['/imu'])", setup),
    ]
    bounds: tuple[Bound, ...] = ()
    if _has_rosbag():
        jobs += [
            Job(f"rosbag filter: {what}", _FILTER.replace("KEEP", repr(keep)), setup, rounds=1)
            for what, keep in (("everything", "True"), ("one topic", "topic == '/imu'"))
        ]
        bounds = tuple(
            Bound(f"{ours} is {{:.0f}} x faster than {peer}", ratio(peer, ours), least=20)
            for ours, peer in (
                ("slice: everything", "rosbag filter: everything"),
                ("merge of two halves", "rosbag filter: everything"),
                ("slice: one topic", "rosbag filter: one topic"),
            )
        )
    log = lambda folder: logs.bag(folder, "mixed", "none", 20 * x)  # noqa: E731
    return Group("rosbag-filter", "Bag, beside genuine rosbag", log, tuple(jobs), bounds, part_of=Run.FULL)


def _append(log_format: str, log: Callable[[Path], Path]) -> Group:
    setup = _rewriting(log_format) + (
        "old = out + '/old' + pathlib.Path(path).suffix; shutil.copyfile(path, old)\n"
        "logreel.create(out + '/b' + pathlib.Path(path).suffix, mode='a').discard()\n"
    )
    last = setup + (
        "log = logreel.open(old); ch = next(one for one in log.match(None) if len(one)); data = b''\n"
        "for message in ch: data = bytes(message.data)\n"
    )
    write = "w.write(w.add_channel(ch.topic, ch.schema, ch.metadata), ch.times[-1], data); w.close()"
    jobs = (
        Job("cp", "subprocess.run(['cp', '--reflink=never', path, name], check=True)", setup),
        Job("open it", "logreel.open(old)", setup),
        Job("begin to append", "w = logreel.create(old, mode='a')", setup),
        Job("begin to append, and complete it", f"w = logreel.create(old, mode='a'); {write}", last),
    )
    bound = Bound("beginning to append takes {:.2f} x cp", ratio("begin to append", "cp"), most=3)
    return Group(
        f"append-{log_format}",
        f"Append: {log_format}",
        log,
        jobs,
        (bound,),
        part_of=Run.QUICK if log_format == "ulog" else Run.LONG,
    )


def _to_others(x: float) -> Group:
    setup = warm(
        "ulog", FOLDER + "small = os.environ['LOGREEL_BENCH_SAMPLES'] + '/ulog'\nname = out + '/out'\n"
    )
    decode = "for ch in logreel.open(path).channels.values():\n    for batch in ch.batches(): pass"
    jobs = [Job("decode all columns", decode, setup)]
    for suffix in (".bag", ".vel", ".bddf"):
        first = f"logreel.convert(small, out + '/x{suffix}', force=True)"
        jobs.append(
            Job(
                f"convert to {suffix}", f"logreel.convert(path, name + '{suffix}', force=True)", setup + first
            )
        )
    bound = Bound(
        "converting to a bag takes {:.1f} x decoding", ratio("convert to .bag", "decode all columns"), most=4
    )
    log = lambda folder: logs.ulog(folder, 60 * x)  # noqa: E731
    return Group("convert-ulog", "ULog to other formats", log, tuple(jobs), (bound,), part_of=Run.FULL)


_ROSBAGS_TO_MCAP = (
    "with AnyReader([Path(path)]) as r, open(name, 'wb') as f:\n"
    "    w = Writer(f, compression=CompressionType.ZSTD); w.start()\n"
    "    ids = {c.id: w.register_channel(c.topic, 'ros1', w.register_schema(c.msgtype, 'ros1msg', b''))\n"
    "           for c in r.connections}\n"
    "    for c, t, p in r.messages(): w.add_message(ids[c.id], t, bytes(p), t)\n"
    "    w.finish()"
)
_PYULOG_TO_MCAP = (
    "with open(name, 'wb') as f:\n"
    "    w = Writer(f, compression=CompressionType.ZSTD); w.start()\n"
    "    for d in ULog(path).data_list:\n"
    "        c = w.register_channel(d.name, 'json', w.register_schema(d.name, 'jsonschema', b'{}'))\n"
    "        names, columns = list(d.data), [v.tolist() for v in d.data.values()]\n"
    "        for row in zip(*columns):\n"
    "            t = row[0] * 1000\n"
    "            w.add_message(c, t, json.dumps(dict(zip(names, row))).encode(), t)\n"
    "    w.finish()"
)


def _to_mcap(name: str, title: str, log_format: str, log: Callable[[Path], Path]) -> Group:
    """Conversions beside zstd alone (level 3, as in all of them) of the log, and of the bytes that each compresses."""
    setup = warm(
        log_format,
        FOLDER
        + f"small = os.environ['LOGREEL_BENCH_SAMPLES'] + '/{log_format}'\n"
        + "for raw in (True, False): logreel.convert(small, out + f'/{raw}.mcap', raw=raw)\n"
        + "name = out + '/out.mcap'\n",
    )

    def alone(raw: bool) -> Job:
        plain = f"logreel.convert(path, name, raw={raw}, compression='none'); "
        compress = (
            "import zstandard; data = open(name, 'rb').read(); pack = zstandard.ZstdCompressor().compress"
        )
        return Job(
            f"zstd alone, of the bytes of {'--raw' if raw else 'the default'}",
            ZSTD.code,
            setup + plain + compress,
        )

    if log_format == "rosbag":
        imports = setup + ROSBAGS + MCAP_WRITER
        peer = Job("rosbags and mcap", _ROSBAGS_TO_MCAP, imports, rounds=1, needs=("rosbags", "mcap"))
    else:
        imports = setup + "import json\nfrom pyulog import ULog\n" + MCAP_WRITER
        peer = Job("pyulog and mcap, as JSON", _PYULOG_TO_MCAP, imports, rounds=1, needs=("pyulog", "mcap"))
    jobs = (
        ZSTD,
        Job("--raw, zstd", "logreel.convert(path, name, raw=True)", setup),
        Job("default, zstd", "logreel.convert(path, name)", setup),
        Job(
            "--raw, lz4", "logreel.convert(path, name, raw=True, compression='lz4')", setup, part_of=Run.LONG
        ),
        Job(
            "--raw, none",
            "logreel.convert(path, name, raw=True, compression='none')",
            setup,
            part_of=Run.LONG,
        ),
        alone(True),
        alone(False),
        peer,
    )
    bounds = tuple(
        bound
        for ours, base in (("--raw, zstd", alone(True).name), ("default, zstd", alone(False).name))
        for bound in (
            Bound(f"{ours}: {{:.2f}} x the throughput of zstd alone", ratio(base, ours), least=0.6),
            Bound(f"{ours}: {{:.1f}} x as fast as {peer.name}", ratio(peer.name, ours), least=10),
        )
    )
    # Nearly all of the time for random numbers is zstd's: the other library cannot be ten times slower there.
    bounds = tuple(b for b in bounds if name != "mcap-of-random" or "as fast as" not in b.says)
    return Group(name, title, log, jobs, bounds, part_of=Run.QUICK if log_format == "ulog" else Run.FULL)


def _write_mcap(x: float) -> Group:
    setup = FOLDER + (
        "import logreel\nlog = logreel.open(path); name = out + '/out.mcap'\n"
        "raw = [(m.time, bytes(m.data)) for m in log.messages('/imu')]\n"
    )
    ours = (
        "with logreel.create(name) as w:\n"
        "    c = w.add_channel('/imu', log['/imu'].schema)\n"
        "    for t, p in raw: w.write(c, t, p)"
    )
    theirs = (
        "with open(name, 'wb') as f:\n"
        "    w = Writer(f, compression=CompressionType.ZSTD); w.start()\n"
        "    c = w.register_channel('/imu', 'ros1', w.register_schema('a', 'ros1msg', b''))\n"
        "    for t, p in raw: w.add_message(c, t, p, t)\n"
        "    w.finish()"
    )
    jobs = (
        ZSTD,
        Job("write, one by one", ours, setup),
        Job("mcap: add_message", theirs, setup + MCAP_WRITER, rounds=1, needs=("mcap",)),
    )

    def log(folder: Path) -> Path:
        return logs.mcap(folder, logs.random_bag(folder, int(60_000 * x)), "none")

    return Group("write-mcap", "MCAP with zstd", log, jobs, part_of=Run.FULL)


def _video(x: float) -> Group:
    setup = FOLDER + "import logreel, logreel.outputs.media.mp4, av\nfrom fractions import Fraction\n"
    by_hand = (
        'with logreel.open(path) as log, av.open(out + "/x.mp4", "w") as video:\n'
        '    stream = video.add_mux_stream("mjpeg", width=64, height=48)\n'
        "    for message in log.messages():\n"
        '        packet = av.Packet(bytes(message.decode()["data"]))\n'
        "        packet.stream, packet.time_base = stream, Fraction(1, 1_000_000)\n"
        "        packet.pts = packet.dts = message.time // 1000\n"
        "        video.mux(packet)"
    )
    rerun = FOLDER + "import logreel, logreel.outputs.rerun, rerun\n"
    jobs = (
        COPY,
        Job("convert to .mp4, JPEG as it is", "logreel.convert(path, out + '/x.mp4')", setup, needs=("av",)),
        Job(
            "convert to .mp4: memory",
            "logreel.convert(path, out + '/x.mp4')",
            setup,
            rounds=1,
            memory=True,
            needs=("av",),
        ),
        Job("the same by hand, message by message", by_hand, setup, needs=("av",)),
        Job(
            "convert to .rrd, JPEG as it is", "logreel.convert(path, out + '/x.rrd')", rerun, needs=("rerun",)
        ),
    )
    return Group(
        "video",
        "Pictures of a camera",
        lambda folder: logs.pictures(folder, 100 * x),
        jobs,
        (),
        "cpu",
        part_of=Run.FULL,
    )


def _rerun(name: str, x: float, part_of: Run) -> Group:
    setup = FOLDER + "import logreel, logreel.outputs.rerun, rerun\n"
    code = "logreel.convert(path, out + '/x.rrd')"
    jobs = (
        COPY,
        Job("convert to .rrd, a curve per field", code, setup, rounds=2, needs=("rerun",)),
        Job("convert to .rrd: memory", code, setup, rounds=1, memory=True, needs=("rerun",)),
    )
    return Group(name, "Flight to Rerun", lambda folder: logs.ulog(folder, x), jobs, (), "cpu", part_of)


def groups(x: float) -> list[Group]:
    """Return the groups, for logs of *x* times their usual sizes."""

    def bag(folder: Path) -> Path:
        return logs.bag(folder, "mixed", "none", 100 * x)

    return [
        _write(".ulg", "Write ULog", x),
        _write(".bag", "Write a bag", x),
        _write(".bddf", "Write BDDF", x),
        _write_mcap(x),
        _rewrite("ulog", "ULog", lambda folder: logs.ulog(folder, 100 * x)),
        _rewrite("rosbag", "bag", bag),
        _rewrite("bddf", "BDDF", lambda folder: logs.bddf(folder, 100 * x)),
        _rewrite("carla", "CARLA recording", lambda folder: logs.carla(folder, 100 * x)),
        _rewrite("koblenz", "Koblenz log", lambda folder: logs.koblenz(folder, max(2, int(20 * x)), 1000.0)),
        _rosbag_filter(x),
        _append("ulog", lambda folder: logs.ulog(folder, 100 * x)),
        _append("rosbag", bag),
        _append("mcap", lambda folder: logs.mcap(folder, bag(folder), "none", raw=True)),
        _to_others(x),
        _to_mcap(
            "mcap-of-random",
            "A bag of random numbers to MCAP",
            "rosbag",
            lambda folder: logs.random_bag(folder, int(150_000 * x)),
        ),
        _to_mcap(
            "mcap-of-bag",
            "A bag of mixed messages to MCAP",
            "rosbag",
            lambda folder: logs.bag(folder, "mixed", "none", 60 * x),
        ),
        _to_mcap("mcap-of-ulog", "A ULog to MCAP", "ulog", lambda folder: logs.ulog(folder, 20 * x)),
        _video(x),
        _rerun("rerun", 20 * x, Run.FULL),
        _rerun("rerun-twice", 40 * x, Run.LONG),
    ]
