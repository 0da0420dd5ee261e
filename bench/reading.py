"""Opening logs of all formats, and what is read from them: columns, messages, tables, points, findings."""

from __future__ import annotations

import logs
from measure import COPY, MEMCPY, READ, Bound, Group, Job, Run, figure, least_ratio, plain_walk, ratio

#: CPU seconds of the vendor's stream reader of BDDF for a million blocks of 8 bytes on two quiet cores.
VENDOR_CPU = 6.5
ROSBAGS = "from pathlib import Path\nfrom rosbags.highlevel import AnyReader\n"
DESERIALIZE = """
with AnyReader([Path(path)]) as r:
    for c, t, data in r.messages(): kept = r.deserialize(data, c.msgtype)
"""
MCAP = "from mcap.reader import make_reader\n"
SQL = "import logreel.ops.query.topic_table, polars as pl\n"
PARQUET = """
import pyarrow.parquet, tempfile, logreel.outputs.convert
folder = tempfile.TemporaryDirectory(); out = folder.name
"""
PYULOG = "import pyulog, pyulog.ulog2csv, pandas, contextlib, io\n" + PARQUET


def warm(name: str, more: str = "") -> str:
    """Return the code that reads a small log of a format, so that whatever is imported at first use is there."""
    return f"""
import logreel, pyarrow
logreel.open(os.environ["LOGREEL_BENCH_SAMPLES"] + "/{name}").tables()
{more}
"""


def opened(name: str, more: str = "") -> str:
    """Return the code that opens the log, too, as ``log``."""
    return warm(name, f"log = logreel.open(path)\n{more}")


def _ulog(x: float) -> Group:
    setup = warm("ulog")
    again = warm(
        "ulog",
        "import tempfile; cache = tempfile.TemporaryDirectory(); os.environ['LOGREEL_CACHE'] = cache.name\n"
        "logreel.open(path)",
    )
    count = "values['messages'] = kept.message_count"
    jobs = (
        COPY,
        MEMCPY,
        plain_walk("ulog"),
        Job("open", "kept = logreel.open(path)", setup),
        Job("open, one topic to Arrow", "kept = logreel.open(path).table('vehicle_attitude')", setup),
        Job("open, one field to NumPy", "kept = logreel.open(path)['vehicle_attitude']['q']", setup),
        Job("open, all topics to Arrow", "kept = logreel.open(path).tables()", setup),
        Job("open again, with the index", "kept = logreel.open(path)", again),
        Job("open: memory", f"kept = logreel.open(path); {count}", setup, rounds=1, memory=True),
        Job("pyulog: ULog(path)", "kept = pyulog.ULog(path)", "import pyulog", rounds=3, needs=("pyulog",)),
    )
    peer = "pyulog: ULog(path)"
    bounds = (
        Bound("open takes {:.2f} x a fresh copy", ratio("open", "fresh copy"), most=0.9),
        Bound("open and one topic take {:.2f} x", ratio("open, one topic to Arrow", "fresh copy"), most=1.1),
        Bound(
            "open and all topics take {:.2f} x", ratio("open, all topics to Arrow", "fresh copy"), most=2.4
        ),
        Bound(
            "open with the index takes {:.3f} s",
            lambda rows: figure(rows, "open again, with the index", "wall"),
            most=0.05,
        ),
        Bound("open is {:.0f} x faster than pyulog's full load", ratio(peer, "open"), least=80),
        Bound("all columns are {:.0f} x faster than it", ratio(peer, "open, all topics to Arrow"), least=25),
        Bound(
            "opening takes {:.1f} bytes of memory for each message, besides 30 MB",
            lambda rows: (
                (figure(rows, "open: memory", "memory") - 30e6) / figure(rows, "open: memory", "messages")
            ),
            most=12,
        ),
    )
    return Group("ulog", "ULog", lambda folder: logs.ulog(folder, 300 * x), jobs, bounds)


def _rosbag(kind: str, compression: str, x: float, part_of: Run) -> Group:
    setup = warm("rosbag", "import lz4.frame, bz2")
    read_all = "with AnyReader([Path(path)]) as r: kept = sum(len(data) for _, _, data in r.messages())"
    field = "kept = logreel.open(path)['/imu']['linear_acceleration.z']"
    raw = "kept = sum(len(m.data) for m in logreel.open(path).messages(order='file'))"
    peers = {"setup": ROSBAGS, "needs": ("rosbags",)}
    mixed = (
        Job("open, one field to NumPy", field, setup),
        Job("open, every message as bytes", raw, setup, rounds=2),
        Job("rosbags: every message as bytes", read_all, rounds=1, **peers),
        Job("open: memory", "kept = logreel.open(path)", setup, rounds=1, memory=True),
    )
    jobs = (
        COPY,
        *((plain_walk("rosbag"),) if compression == "none" else ()),
        Job("open", "kept = logreel.open(path)", setup),
        Job("open, all topics to Arrow", "kept = logreel.open(path).tables()", setup),
        *(mixed if kind == "mixed" else ()),
        Job("rosbags: open", "kept = AnyReader([Path(path)]); kept.open()", rounds=3, **peers),
        Job("rosbags: deserialize every message", DESERIALIZE, rounds=1, **peers),
    )
    title = f"ROS 1 bag: {kind} messages, {compression}"
    name = f"rosbag-{kind}" + f"-{compression}" * (compression != "none")
    return Group(
        name,
        title,
        lambda folder: logs.bag(folder, kind, compression, (100 if kind == "mixed" else 60) * x),
        jobs,
        part_of=part_of,
    )


def _bddf_small(x: float) -> Group:
    setup = warm(
        "bddf",
        "import hashlib, logreel.formats.bddf.verify\nfrom logreel.formats.bddf.reader import Reader\n"
        "from logreel.formats.bddf.verify import verify_checksum\nfrom logreel.io.source import Source",
    )
    blocks = int(1_000_000 * x)
    jobs = (
        plain_walk("bddf"),
        COPY,
        Job("index by scan", "kept = Reader(Source.open(path)).finish()", setup),
        Job(
            "values to Arrow, times read before",
            "kept = ch.to_arrow(['value'])",
            setup + "ch = logreel.open(path)['v']; ch.times",
        ),
        Job(
            "values and their times to Arrow",
            "kept = ch.to_arrow(['value'])",
            setup + "ch = logreel.open(path)['v']",
        ),
        Job(
            "open, values and their times to Arrow", "kept = logreel.open(path).table('v', ['value'])", setup
        ),
        Job("hashlib.sha1", "hashlib.sha1(np.memmap(path, mode='r')[:-24]).digest()", "import hashlib"),
        Job("verify", "verify_checksum(Source.open(path))", setup),
    )
    known = "values to Arrow, times read before"
    bounds = (
        Bound(
            "the index takes {:.2f} x a plain walk", ratio("index by scan", "plain walk in C", "cpu"), most=2
        ),
        Bound("values take {:.2f} x a fresh copy", ratio(known, "fresh copy", "cpu"), most=3),
        Bound("verify takes {:.2f} x hashlib", ratio("verify", "hashlib.sha1", "cpu"), most=1.15),
        Bound(
            "the index is {:.0f} x the vendor's speed",
            lambda rows: VENDOR_CPU * blocks / 1e6 / figure(rows, "index by scan", "cpu"),
            least=100,
        ),
    )
    title = f"BDDF: {blocks} blocks of 8 bytes"
    return Group("bddf", title, lambda folder: logs.bddf_blocks(folder, blocks, 8), jobs, bounds, "cpu")


def _bddf_blobs(x: float) -> Group:
    setup = warm(
        "bddf", "from logreel.formats.bddf.reader import Reader\nfrom logreel.io.source import Source"
    )
    verify = "from logreel.formats.bddf.verify import verify_checksum\n"
    jobs = (
        plain_walk("bddf"),
        COPY,
        Job("index by scan", "kept = Reader(Source.open(path)).finish()", setup),
        Job("blobs to Arrow", "kept = ch.to_arrow()", setup + "ch = logreel.open(path)['v']"),
        Job("hashlib.sha1", "hashlib.sha1(np.memmap(path, mode='r')[:-24]).digest()", "import hashlib"),
        Job("verify", "verify_checksum(Source.open(path))", setup + verify),
    )
    log = int(4_000 * x)
    return Group(
        "bddf-blobs",
        "BDDF: blobs of 50 kB",
        lambda folder: logs.bddf_blocks(folder, log, 50_000),
        jobs,
        (),
        "cpu",
        part_of=Run.FULL,
    )


def _carla(x: float) -> Group:
    setup = warm("carla")
    jobs = (
        COPY,
        plain_walk("carla"),
        Job("open", "kept = logreel.open(path)", setup),
        Job("open, all packets to columns", "kept = logreel.open(path).tables()", setup),
        Job("open, one field", "kept = logreel.open(path)['position']['location.x']", setup),
        Job(
            "open, list collisions",
            "kept = logreel.carla.collisions(logreel.open(path)).text()",
            setup + "import logreel.formats.carla.simulator.api",
        ),
        Job(
            "plain Python reader, a tenth",
            "kept = plain_readers.carla(part)",
            "import plain_readers, logs, pathlib\n"
            "where = pathlib.Path(path); part = logs.carla(where.parent, float(where.stem.split('-')[1]) / 10)",
            rounds=1,
        ),
    )
    columns = ratio("plain Python reader, a tenth", "open, all packets to columns")
    bounds = (
        Bound("open takes {:.2f} x a fresh copy", ratio("open", "fresh copy"), most=1.7),
        Bound("all columns take {:.2f} x", ratio("open, all packets to columns", "fresh copy"), most=4),
        Bound(
            "collisions are listed in {:.2f} s",
            lambda rows: figure(rows, "open, list collisions", "wall"),
            most=1,
        ),
        Bound(
            "all columns are {:.0f} x a plain Python reader's speed",
            lambda rows: 10 * columns(rows),
            least=50,
        ),
    )
    return Group("carla", "CARLA recording", lambda folder: logs.carla(folder, 200 * x), jobs, bounds)


def _koblenz(name: str, title: str, x: float) -> Group:
    setup = warm(
        "koblenz",
        "from logreel.io.source import Source\nfrom logreel.formats.koblenz.scan_builder import scan\n"
        "from logreel.formats.koblenz.framing import detect_variant\nfrom logreel.formats.koblenz.reader import Reader",
    )
    jobs = (
        plain_walk("koblenz"),
        COPY,
        Job(
            "index",
            "source = Source.open(path); kept = Reader(source, detect_variant(source)).finish()",
            setup,
        ),
        Job("open: index, sensors, problems", "kept = scan(Source.open(path))", setup),
    )
    bounds = (
        Bound("the index takes {:.2f} x the plain walk", least_ratio("index", "plain walk in C"), most=2),
    )
    if name == "koblenz":
        return Group(name, title, lambda folder: logs.koblenz(folder, max(2, int(60 * x))), jobs, (), "cpu")
    poses = int(5_000_000 * x)
    return Group(name, title, lambda folder: logs.koblenz_poses(folder, poses), jobs, bounds, "cpu")


def _velodyne() -> Group:
    setup = """
import plain_readers
from logreel.lenses import velodyne
from logreel.lenses.velodyne import HDL32E, Packets
data = np.fromfile(path, np.uint8)
n = len(data) // 1206
packets = Packets(data, np.arange(n, dtype=np.int64) * 1206, np.zeros(n, np.int64))
velodyne.decode(Packets(data, packets.offset[:9], packets.time[:9]), HDL32E)
"""
    kept = setup + (
        "cloud, _ = velodyne.decode(packets, HDL32E)\n"
        "columns = (cloud.xyz, cloud.intensity, cloud.ring, cloud.azimuth, cloud.time)\n"
        "arrays = [np.ascontiguousarray(a) for a in columns]"
    )
    jobs = (
        Job("memcpy of the points", "kept = [a.copy() for a in arrays]", kept),
        Job(
            "packets to points, all columns",
            "kept = velodyne.decode(packets, HDL32E); values['points'] = len(kept[0])",
            setup,
        ),
        Job(
            "NumPy by packet, 300 of them",
            "kept = [plain_readers.velodyne(raw[i : i + 1206], 0) for i in range(0, len(raw), 1206)]",
            setup + "raw = data[: 300 * 1206].tobytes()",
        ),
    )
    ours = "packets to points, all columns"
    by_packet = least_ratio("NumPy by packet, 300 of them", ours)
    bounds = (
        Bound(
            "{:.0f} million points a second on one core",
            lambda rows: figure(rows, ours, "points") / min(rows[ours]["cpu"]) / 1e6,
            least=20,
        ),
        Bound("{:.0f} x the speed of NumPy by packet", lambda rows: by_packet(rows) * 3616 / 300, least=30),
    )
    return Group("velodyne", "Two seconds of a HDL-32E", logs.velodyne_packets, jobs, bounds, "cpu")


def _mcap(compression: str, x: float) -> Group:
    setup = warm("mcap", "import logreel.log.read_tables")
    peers = {"setup": MCAP, "needs": ("mcap",)}
    read_all = "for _ in make_reader(open(path, 'rb')).iter_messages(): pass"
    jobs = (
        COPY,
        *((plain_walk("mcap"),) if compression == "none" else ()),
        Job("open", "log = logreel.open(path); log.message_count", setup),
        Job(
            "open, times of all messages",
            "log = logreel.open(path); [ch.times for ch in log.channels.values()]",
            setup,
        ),
        Job("open, all columns", "kept = logreel.open(path).tables()", setup),
        Job("open, one field", "log = logreel.open(path); log['/imu']['angular_velocity.x']", setup),
        Job("check all checksums", "logreel.open(path).verify()", setup),
        Job("mcap: summary", "make_reader(open(path, 'rb')).get_summary()", **peers),
        Job("mcap: all messages", read_all, rounds=1, **peers),
    )

    def log(folder: logs.Path) -> logs.Path:
        return logs.mcap(folder, logs.random_bag(folder, int(300_000 * x)), compression)

    return Group(
        f"mcap-{compression}",
        f"MCAP, {compression}",
        log,
        jobs,
        part_of=Run.QUICK if compression == "zstd" else Run.LONG,
    )


def _tables(x: float) -> Group:
    ours = warm(
        "ulog", PARQUET + SQL + "logreel.sql('SELECT 1', os.environ['LOGREEL_BENCH_SAMPLES'] + '/ulog')"
    )
    pandas = (
        "for i, one in enumerate(pyulog.ULog(path, None, True).data_list):\n"
        "    pandas.DataFrame(one.data).to_parquet(f'{out}/{i}.parquet')"
    )
    csv = (
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    pyulog.ulog2csv.convert_ulog2csv(path, None, out, ',', None, None, True)"
    )
    polars = (
        "kept = logreel.scan_polars(path, 'vehicle_attitude').select(pl.col('q').arr.get(0).mean()).collect()"
    )
    average = "kept = logreel.sql('SELECT avg(q[1]) FROM vehicle_attitude', path)"
    long = "logreel.convert(path, out + '/x.parquet', topics='sensor_accel', layout='long')"
    needs = ("pyulog", "pandas")
    same = (
        "for name, table in tables.items():\n"
        "    pyarrow.parquet.write_table(table, f'{out}/{hash(name)}.parquet', compression='zstd')"
    )
    parquet = "logreel.convert(path, out + '/x.parquet/')"
    jobs = (
        COPY,
        Job("pyarrow writing the same tables", same, ours + "\ntables = logreel.open(path).tables()"),
        Job("convert to Parquet, all topics", parquet, ours),
        Job("convert to one long table of a topic", long, ours, part_of=Run.FULL),
        Job("average of a field by SQL", average, ours),
        Job("average of a field by scan_polars", polars, ours),
        Job("convert to Parquet: memory", parquet, ours, rounds=1, memory=True, part_of=Run.LONG),
        Job("one long table: memory", long, ours, rounds=1, memory=True, part_of=Run.LONG),
        Job("SQL: memory", average, ours, rounds=1, memory=True, part_of=Run.LONG),
        Job("pyulog: ULog(path)", "kept = pyulog.ULog(path, None, True)", PYULOG, rounds=2, needs=needs),
        Job("pyulog, pandas, to_parquet", pandas, PYULOG, rounds=1, needs=needs),
        Job("ulog2csv", csv, PYULOG, rounds=1, needs=needs, part_of=Run.FULL),
    )
    ours_name = "convert to Parquet, all topics"
    bounds = (
        Bound("Parquet is {:.0f} x faster than ulog2csv", ratio("ulog2csv", ours_name), least=20),
        Bound(
            "Parquet is {:.1f} x faster than pyulog with pandas",
            ratio("pyulog, pandas, to_parquet", ours_name),
            least=5,
        ),
        Bound(
            "an average by SQL is {:.0f} x faster than pyulog's full load",
            ratio("pyulog: ULog(path)", "average of a field by SQL"),
            least=50,
        ),
    )
    return Group("tables", "ULog to tables", lambda folder: logs.ulog(folder, 60 * x), jobs, bounds)


def _loop(x: float) -> Group:
    one_by_one = "kept = [ch.to_arrow() for ch in log.channels.values()]"
    arrays = "kept = [ch.to_numpy() for ch in log.channels.values()]"
    jobs = (
        MEMCPY,
        Job("open", "kept = logreel.open(path)", warm("ulog")),
        Job("log.tables()", "kept = log.tables()", opened("ulog")),
        Job("for ch in log.values(): ch.to_arrow()", one_by_one, opened("ulog")),
        Job("for ch in log.values(): ch.to_numpy()", arrays, opened("ulog")),
    )
    loop = ratio("for ch in log.values(): ch.to_arrow()", "log.tables()")
    bounds = (Bound("the loop over channels takes {:.2f} x tables()", loop, most=1.5),)
    return Group(
        "columns", "ULog, open: all channels", lambda folder: logs.ulog(folder, 300 * x), jobs, bounds, "cpu"
    )


def _decoded(x: float) -> Group:
    """Messages one by one, decoded: what programs do that were written for rosbags or mcap."""
    jobs = (
        MEMCPY,
        Job(
            "for m in log.messages(): m.decode()",
            "for m in log.messages(): kept = m.decode()",
            opened("rosbag"),
            rounds=3,
        ),
        Job(
            "ch[i].decode(), 20 000 of one channel",
            "for i in range(min(20_000, len(ch))): kept = ch[i].decode()",
            opened("rosbag", "ch = log['/imu']"),
            rounds=3,
        ),
        Job("rosbags: deserialize every message", DESERIALIZE, ROSBAGS, rounds=3, needs=("rosbags",)),
    )
    return Group(
        "decoded",
        "Bag, message by message",
        lambda folder: logs.bag(folder, "mixed", "none", 20 * x),
        jobs,
        (),
        "cpu",
    )


PROTOBUF = """
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
"""


def _protobuf(x: float) -> Group:
    """A flight as MCAP with protobuf, as columns and message by message."""
    every = """
with open(path, "rb") as f:
    for _, _, _, kept in make_reader(f, decoder_factories=[DecoderFactory()]).iter_decoded_messages(): pass
"""
    jobs = (
        MEMCPY,
        Job("open, all topics to Arrow", "kept = logreel.open(path).tables()", warm("protobuf.mcap")),
        Job(
            "for m in log.messages(): m.decode()",
            "for m in log.messages(): kept = m.decode()",
            opened("protobuf.mcap"),
            rounds=2,
        ),
        Job(
            "mcap-protobuf-support: every message",
            every,
            PROTOBUF,
            rounds=2,
            needs=("mcap", "mcap_protobuf"),
        ),
    )
    columns, peer = jobs[1].name, jobs[3].name
    return Group(
        "protobuf",
        "Flight as MCAP with protobuf",
        lambda folder: logs.mcap(folder, logs.ulog(folder, 20 * x), "none"),
        jobs,
        (Bound("columns are {:.0f} x faster than mcap-protobuf-support", ratio(peer, columns), least=10),),
        "cpu",
    )


ROS2_FAST = """
from mcap.reader import make_reader
from mcap_ros2_support_fast.decoder import DecoderFactory
"""
ROS2_PAYLOADS = """
with open(path, "rb") as f:
    found = [(schema, m.data) for schema, _, m in make_reader(f).iter_messages(log_time_order=False)]
schemas = {schema.id: schema for schema, _ in found}
decoders = {number: DecoderFactory().decoder_for("cdr", schema) for number, schema in schemas.items()}
payloads = [(decoders[schema.id], data) for schema, data in found]
"""
OUR_PAYLOADS = """
payloads = [(m.channel.decode, m.data) for m in log.messages(order="file")]
for ch in log.channels.values(): ch[0].decode()
"""


def _ros2(kind: str, x: float) -> Group:
    """CDR of ROS 2, as columns and message by message; libraries that decode it make objects of each message."""
    # All libraries read a small log before, of a type that the measured one has not.
    small = "os.environ['LOGREEL_BENCH_SAMPLES'] + '/ros2.mcap'"
    rosbags_before = ROSBAGS + DESERIALIZE.replace("Path(path)", f"Path({small})")
    alone = "for decode, data in payloads: kept = decode(data)"
    fast = """
with open(path, "rb") as f:
    reader = make_reader(f, decoder_factories=[DecoderFactory()])
    for _, _, _, kept in reader.iter_decoded_messages(log_time_order=False): pass
"""
    fast_before = ROS2_FAST + fast.replace("open(path", f"open({small}")
    needs = ("mcap", "mcap_ros2_support_fast")
    jobs = (
        MEMCPY,
        Job("open, all topics to Arrow", "kept = logreel.open(path).tables()", warm("ros2.mcap")),
        Job(
            "the same in memory that was used before",
            "kept = logreel.open(path).tables()",
            warm("ros2.mcap", "logreel.open(path).tables()"),
        ),
        Job(
            "for m in log.messages(): m.decode()",
            "for m in log.messages(): kept = m.decode()",
            opened("ros2.mcap"),
        ),
        Job("decode payloads in memory", alone, opened("ros2.mcap", OUR_PAYLOADS)),
        Job("rosbags: deserialize every message", DESERIALIZE, rosbags_before, rounds=2, needs=("rosbags",)),
        Job("mcap-ros2-support-fast: every message", fast, fast_before, rounds=2, needs=needs),
        Job(
            "mcap-ros2-support-fast: decode payloads in memory", alone, ROS2_FAST + ROS2_PAYLOADS, needs=needs
        ),
    )
    columns, again, loop, ours = (job.name for job in jobs[1:5])
    rosbags, every, theirs = (job.name for job in jobs[5:])
    bounds = (
        # Pictures and clouds are copied into columns; the others give views of them.
        Bound(
            "columns are {:.0f} x faster than rosbags",
            ratio(rosbags, columns),
            least=30 if kind == "mixed" else 10,
        ),
        Bound(
            "columns are {:.0f} x faster than rosbags in memory that was used before",
            ratio(rosbags, again),
            least=40 if kind == "mixed" else 10,
        ),
        Bound("columns are {:.0f} x faster than mcap-ros2-support-fast", ratio(every, columns), least=10),
        Bound("message by message is {:.1f} x faster than it", ratio(every, loop), least=1),
        Bound("decoding alone is {:.1f} x faster than it", ratio(theirs, ours), least=1),
    )
    return Group(
        f"ros2-{kind}",
        f"ROS 2: {kind} messages",
        lambda folder: logs.ros2(folder, kind, 40 * x),
        jobs,
        bounds,
        "cpu",
    )


def _summary(x: float) -> Group:
    setup = warm(
        "ulog", "import plain_readers\nlogreel.summary(os.environ['LOGREEL_BENCH_SAMPLES'] + '/ulog')"
    )
    jobs = (
        Job(
            "open and read the same columns",
            "kept = plain_readers.read_columns(path, calls)",
            setup + "\ncalls = plain_readers.columns_of_summary(path)",
        ),
        Job("summary", "kept = logreel.summary(path)", setup),
    )
    bounds = (
        Bound(
            "a summary takes {:.2f} x reading its columns", least_ratio(jobs[1].name, jobs[0].name), most=1.5
        ),
    )
    return Group(
        "summary", "Summary of a ULog", lambda folder: logs.ulog(folder, 300 * x), jobs, bounds, "cpu"
    )


def _check(log_format: str, compression: str, x: float, part_of: Run) -> Group:
    sample = f"small = os.environ['LOGREEL_BENCH_SAMPLES'] + '/{log_format}'\n"
    setup = "import logreel\n" + sample + "logreel.check(small); logreel.diff(small, small, messages=True)"
    jobs = (
        READ,
        Job("check", "logreel.check(path)", setup),
        Job("diff with itself", "logreel.diff(path, path)", setup),
        Job("diff with itself, all messages", "logreel.diff(path, path, messages=True)", setup),
    )
    name = "check-" + (log_format if compression == "none" else f"{log_format}-{compression}")

    def log(folder: logs.Path) -> logs.Path:
        if log_format == "ulog":
            return logs.ulog(folder, 100 * x)
        return logs.bag(folder, "mixed", compression, 60 * x)

    return Group(name, f"Check and compare: {log_format}, {compression}", log, jobs, part_of=part_of)


def _parts(log_format: str, compression: str, x: float) -> list[Group]:
    setup = warm(
        log_format,
        "import pathlib, tempfile, logreel.ops.rewrite.slice, logreel.registry.open_parts, logreel.log.read_tables\n"
        "folder = tempfile.TemporaryDirectory(); name = folder.name + '/out' + pathlib.Path(path).suffix\n"
        "parts = sorted(str(p) for p in pathlib.Path(path).with_suffix('').iterdir())",
    )
    both = setup + (
        "one = logreel.open(path); middle = (one.start + one.end) // 2; many = logreel.open(parts)\n"
        "topic = max(one.match(None), key=len).topic; field = next(f for f in one[topic].fields if 'stamp' not in f)\n"
    )
    opening = (
        Job("the parts one by one", "logs = [logreel.open(part) for part in parts]", setup),
        Job(
            "the parts one by one, start and end",
            "[(p.start, p.end) for p in map(logreel.open, parts)]",
            setup,
        ),
        Job("the parts as one log", "log = logreel.open(parts)", setup),
        Job("the parts as one log, start and end", "log = logreel.open(parts); log.start, log.end", setup),
        Job("their merge", "log = logreel.open(path)", setup),
    )
    bound = Bound(
        "opening the parts as one log takes {:.2f} x opening them",
        ratio("the parts as one log", "the parts one by one"),
        most=1.2,
    )
    reading = {
        "all tables": "{log}.tables()",
        "one field": "{log}[topic][field]",
        "table of one channel": "{log}[topic].to_arrow()",
        "messages by time": "for m in {log}.messages(): pass",
        "slice of the second half": "logreel.slice({log}, name, start=middle)",
    }
    suffix = log_format + f"-{compression}" * (compression != "none")

    def log(folder: logs.Path) -> logs.Path:
        if log_format == "ulog":
            return logs.four_parts(folder, logs.ulog(folder, 60 * x))
        return logs.four_parts(folder, logs.bag(folder, "mixed", compression, 60 * x))

    jobs = [
        Job(f"{what}, of {name}", code.format(log=variable), both)
        for what, code in reading.items()
        for name, variable in (("the merge", "one"), ("the parts as one log", "many"))
    ]
    title = f"Four parts as one log: {suffix}"
    part_of = Run.FULL if suffix == "ulog" else Run.LONG
    return [
        Group(f"parts-{suffix}", title, log, (*opening, *jobs), (bound,), part_of=part_of),
    ]


def _play(log_format: str, x: float) -> Group:
    setup = f"""
import collections, logreel, logreel.ops.replay, logreel.outputs.sinks.stdout
collections.deque(logreel.open(os.environ["LOGREEL_BENCH_SAMPLES"] + "/{log_format}").play(rate=0), 0)
class Touch(logreel.Sink):
    batches = True
    def batch(self, run): collections.deque(run.payloads(), 0)
"""
    player = "logreel.Player(logreel.open(path), rate=0, sink={}).run()"
    jobs = [
        Job("play to the null sink", player.format("logreel.sink('null')"), setup),
        Job("play to one that takes every payload", player.format("Touch()"), setup),
        Job("for message in log.play(rate=0)", "for message in logreel.open(path).play(rate=0): pass", setup),
        Job("for message in log.messages()", "for message in logreel.open(path).messages(): pass", setup),
    ]
    if log_format == "ulog":
        title, log = "Replay of a ULog", lambda folder: logs.ulog(folder, 20 * x)
    else:
        code = "with AnyReader([Path(path)]) as r:\n    for message in r.messages(): pass"
        jobs += [Job("rosbags: messages()", code, ROSBAGS, rounds=1, needs=("rosbags",))]
        title, log = "Replay of a bag", lambda folder: logs.bag(folder, "mixed", "none", 60 * x)
    return Group(
        f"play-{log_format}",
        title,
        log,
        tuple(jobs),
        part_of=Run.QUICK if log_format == "rosbag" else Run.LONG,
    )


def groups(x: float) -> list[Group]:
    """Return the groups, for logs of *x* times their usual sizes."""
    return [
        _ulog(x),
        _loop(x),
        _rosbag("mixed", "none", x, Run.QUICK),
        _rosbag("mixed", "lz4", x, Run.FULL),
        *(_rosbag(kind, "none", x, Run.LONG) for kind in ("joints", "transforms", "clouds")),
        _decoded(x),
        _ros2("mixed", x),
        _ros2("drive", x),
        _protobuf(x),
        _bddf_small(x),
        _bddf_blobs(x),
        _carla(x),
        _koblenz("koblenz", "Koblenz log of a drive", x),
        _koblenz("koblenz-small", "Koblenz log of small messages", x),
        _velodyne(),
        *(_mcap(compression, x) for compression in ("none", "lz4", "zstd")),
        _tables(x),
        _summary(x),
        _check("ulog", "none", x, Run.QUICK),
        _check("rosbag", "none", x, Run.LONG),
        _check("rosbag", "lz4", x, Run.FULL),
        *_parts("ulog", "none", x),
        *_parts("rosbag", "none", x),
        *_parts("rosbag", "lz4", x),
        _play("rosbag", x),
        _play("ulog", x),
    ]
