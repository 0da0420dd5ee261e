"""What runs beside the command: fleets, the services, replay in time, following, logs on servers, and the viewer.

Each job is one call of a function here in a process of its own; its figures are in ``values``.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import mmap
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
import logreel
import logs
from logreel.fleet import LocalEngine, ingest
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Struct
from measure import COPY, Bound, Group, Job, Run, figure, ratio
from support.formats import builtin_formats, sample_log
from support.harness.range_server import serving_ranges
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

Values = dict[str, float]


def _no_log(folder: Path) -> Path:
    """Return a small file for jobs that make their own logs."""
    return folder / "walk.so"


def write_logs(folder: Path, count: int, size: int) -> Path:
    """Return a folder with *count* ULogs of about *size* bytes, each of another flight."""
    path = folder / f"fleet-{count}-{size}"
    if not path.exists():
        path.mkdir()
        for number in range(count):
            base = flight(10.0, number % 4 + 1)
            (path / f"{number}.ulg").write_bytes(logs.repeat(base, size) if size > len(base) else base)
    return path


def ingested(folder: str, workers: int, again: bool = False) -> Values:
    """Ingest logs into a new dataset; with *again*, also a second time, where nothing is new."""
    with tempfile.TemporaryDirectory(prefix="logreel-bench-") as out:
        count, begin = len(os.listdir(folder)), time.perf_counter()
        used, own = _children_cpu(), time.process_time()
        ingest(folder, f"{out}/fleet", workers=workers)
        wall, used, own = time.perf_counter() - begin, _children_cpu() - used, time.process_time() - own
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        found = {
            "MB": size,
            "ingest, s": wall,
            "CPU of workers, s": used,
            "CPU of the coordinating process, s": own,
        }
        found["CPU for each log, ms"] = (used + own) / count * 1e3
        if again:
            begin = time.perf_counter()
            ingest(folder, f"{out}/fleet", workers=1)
            found["again, nothing new, s"] = time.perf_counter() - begin
        return found


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Memory(threading.Thread):
    """Samples the memory of the child processes: the highest of any, resident and unique to it, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.resident = self.unique = 0
        self._done = threading.Event()

    def run(self) -> None:
        """Sample until ``stop``."""
        while not self._done.wait(0.05):
            for pid in self._of_threads():
                self._sample(pid)

    def _of_threads(self) -> list[str]:
        found: list[str] = []
        for task in Path("/proc/self/task").iterdir():
            try:
                found += (task / "children").read_text().split()
            except OSError:
                continue
        return found

    def _sample(self, pid: str) -> None:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            return
        rows = (line.split() for line in text.splitlines()[1:])
        sizes = {row[0]: int(row[1]) * 1024 for row in rows}
        self.resident = max(self.resident, sizes.get("Rss:", 0))
        # Pages of a mapped log can be dropped at any time; these cannot.
        self.unique = max(self.unique, sizes.get("Anonymous:", 0))

    def stop(self) -> None:
        """End sampling."""
        self._done.set()
        self.join()


def worker_memory(folder: str) -> Values:
    """Return the peak memory of one worker for a large log, read in tasks of 64 MiB."""
    with tempfile.TemporaryDirectory(prefix="logreel-bench-") as out:
        watch, engine = Memory(), LocalEngine(1)
        watch.start()
        ingest(folder, f"{out}/fleet", engine=engine, target_bytes=64 << 20)
        watch.stop()
        engine.close()
    return {"resident, with pages of the log, MB": watch.resident / 1e6, "unique, MB": watch.unique / 1e6}


def ray(count: int, rows: int, rounds: int) -> Values:
    """Return how long Ray's own reader with decoding by hand, and logreel's datasource, take for the same columns."""
    script = Path(__file__).parent / "engines" / "ray_mcap.py"
    line = [sys.executable, str(script), *map(str, (count, rows, rounds))]
    found: Values = json.loads(
        subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    )
    return found


def _fleet(x: float) -> list[Group]:
    setup, call = "import services", "values.update(services.{})"
    sizes = (12, int(32e6 * x) + 1)
    workers = tuple(
        Job(f"{number} worker{'s' * (number > 1)}", call.format(f"ingested(path, {number})"), setup, rounds=2)
        for number in (1, 2)
    )
    bound = Bound("two workers are {:.2f} x as fast as one", ratio("1 worker", "2 workers"), least=1.7)
    found = [
        Group(
            "fleet-workers",
            "Fleet: logs of 32 MB",
            lambda folder: write_logs(folder, *sizes),
            workers,
            (bound,),
            part_of=Run.FULL,
        ),
        Group(
            "fleet-ray",
            "Fleet: Ray Data, three fields of MCAP files",
            _no_log,
            (Job("ray", call.format("ray(16, 50_000, 3)"), setup, rounds=1, needs=("ray", "mcap")),),
            part_of=Run.LONG,
        ),
    ]
    for count in (20, 50, 100, 200, 400):
        part_of = Run.FULL if count == 20 else Run.LONG
        job = Job(f"{count} logs, two workers", call.format("ingested(path, 2, again=True)"), setup, rounds=1)
        name, title = f"fleet-{count}", f"Fleet: {count} logs of 0.4 MB"
        log = lambda folder, count=count: write_logs(folder, count, 1)  # noqa: E731
        found.append(Group(name, title, log, (job,), part_of=part_of))
    for size in (32, 128, 512):
        part_of = Run.FULL if size == 32 else Run.LONG
        job = Job(f"log of {size} MB", call.format("worker_memory(path)"), setup, rounds=1)
        name, title = f"fleet-memory-{size}", f"Fleet: memory of a worker, log of {size} MB"
        log = lambda folder, size=size: write_logs(folder, 1, int(size * 1e6 * x))  # noqa: E731
        found.append(Group(name, title, log, (job,), part_of=part_of))
    return found


def remote(path: str) -> Values:
    """Return the requests and bytes of tasks on a bag on a server; the server is on this machine."""
    found: Values = {}
    with tempfile.TemporaryDirectory() as folder, serving_ranges() as served, open(path, "rb") as file:
        served.objects["/big.bag"] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[assignment]
        url = f"{served.url}/big.bag"

        def take(name: str, job: Callable[[], Any]) -> Any:
            served.forget()
            begin = time.perf_counter()
            result = job()
            took = time.perf_counter() - begin
            found.update(
                {f"{name}: requests": len(served.asked), f"{name}: MB": served.sent / 1e6, f"{name}: s": took}
            )
            return result

        log = take("open", lambda: logreel.open(url))
        info = take("info, of the open log", lambda: logreel.info(log))
        at = info.messages // 22
        window = {"start": f"+{at}s", "end": f"+{at + 5}s"}
        take("5 s of one topic, of the open log", lambda: log["/imu"].to_arrow(**window))
        take("info", lambda: logreel.info(url))
        take("slice of 5 s", lambda: logreel.slice(url, Path(folder, "out.bag"), topics="/camera", **window))
        since = logs.START + at * 10**9
        query = f"SELECT avg(value) FROM imu WHERE time_ns >= {since} AND time_ns < {since + 5 * 10**9}"
        take("SQL of 5 s", lambda: logreel.sql(query, url))
    return found


TOKEN = "a-token-of-the-bench"


def _memory(process: int) -> dict[str, int]:
    """Return the memory of a process by kind, MB; the system can free pages of the mapped log at any time."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssFile", "VmRSS")))
    return {name: int(value.split()[0]) // 1024 for name, value in found.items()}


def wishes(log: logreel.Log, n: int) -> dict[str, str | list[str]]:
    """Return the parameters of the request of client *n*."""
    length = (log.end or 0) - (log.start or 0)
    at = (log.start or 0) + length * (n % 10) // 12
    if n % 4 == 3:
        return {"format": "mcap", "start": f"{at}ns", "end": f"{at + length // 40}ns"}
    if n % 4 == 2:
        topics = sorted((ch.topic for ch in log.channels.values()), key=lambda t: -len(log[t]))
        return {"topic": [topics[n % len(topics)], topics[(n + 1) % len(topics)]]}
    return {"start": f"{at}ns", "end": f"{at + length // 6}ns"}


def due(path: Path, wish: dict[str, str | list[str]]) -> tuple[str, int]:
    """Return digest and size of the slice that the command writes; the service copies payloads to another format."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("a.mcap" if "format" in wish else path.name)
        chosen = {name: wish.get(name) for name in ("start", "end")} | {"topics": wish.get("topic")}
        if "format" in wish:
            logreel.convert(path, out, raw=True, **chosen)
        else:
            logreel.slice(path, out, **chosen)
        with open(out, "rb") as file:
            return hashlib.file_digest(file, "sha1").hexdigest(), out.stat().st_size


def fetch(base: str, log: str, wish: dict[str, str | list[str]]) -> tuple[str, int]:
    """Return digest and size of the slice that the service sends."""
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)
    path = f"/logs/{log}/slice?{urlencode(wish, doseq=True)}"
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    reply = connection.getresponse()
    digest, size = hashlib.sha1(usedforsecurity=False), 0
    while piece := reply.read(1 << 18):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest() if reply.status == 200 else reply.reason, size


def serve(path: str, clients: int) -> Values:
    """Return the throughput of clients that slice one log at once, and the memory of the service.

    Half of the clients request intervals of time, a quarter topics, a quarter another format. Replies are compared by
    digest with the files that ``logreel.slice`` and ``logreel.convert`` write.
    """
    log = logreel.open(path)
    asked = [wishes(log, n) for n in range(clients)]
    expected = {
        key: due(Path(path), wish) for key, wish in {json.dumps(wish): wish for wish in asked}.items()
    }
    command = [sys.executable, "-m", "logreel", "serve", path]
    environment = {**os.environ, "LOGREEL_TOKEN": TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        base = (server.stderr or sys.stdin).readline().split()[-1]
        parts = urlsplit(base)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        connection.request("GET", "/logs", headers={"Authorization": f"Bearer {TOKEN}"})
        (served,) = json.load(connection.getresponse())["logs"]
        connection.close()
        fetch(base, served["id"], asked[0])
        before, peak, done = _memory(server.pid), dict[str, int](), threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                for name, value in _memory(server.pid).items():
                    peak[name] = max(peak.get(name, 0), value)

        watcher = threading.Thread(target=watch)
        watcher.start()
        begin = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            got = list(pool.map(lambda wish: fetch(base, served["id"], wish), asked))
        took = time.perf_counter() - begin
        done.set()
        watcher.join()
        server.terminate()
    return {
        "MB/s": sum(size for _, size in got) / took / 1e6,
        "slices that differ": sum(
            one != expected[json.dumps(wish)] for one, wish in zip(got, asked, strict=True)
        ),
        "memory before, MB": before["RssAnon"],
        "memory at most, MB": peak["RssAnon"],
    }


def _serve(log_format: str, x: float) -> Group:
    makers: dict[str, Callable[[Path], Path]] = {
        "ulog": lambda folder: logs.ulog(folder, 100 * x),
        "bag": lambda folder: logs.bag(folder, "mixed", "none", 100 * x),
        "bddf": lambda folder: logs.bddf(folder, 100 * x),
    }
    jobs = (
        COPY,
        Job("50 clients at once", "values.update(services.serve(path, 50))", "import services", rounds=1),
    )
    part_of = Run.FULL if log_format == "ulog" else Run.LONG
    differ = Bound(
        "{:.0f} of 50 slices differ from those of the verbs",
        lambda rows: figure(rows, "50 clients at once", "slices that differ"),
        most=0,
    )
    return Group(
        f"serve-{log_format}",
        f"Serve slices: {log_format}",
        makers[log_format],
        jobs,
        (differ,),
        part_of=part_of,
    )


#: Seconds of play for each line of the table of paces.
SECONDS = 5.0


def pace(log: logreel.Log, rate: float) -> Values:
    """Return deviations of the intervals between messages, and of their times, ms."""
    arrived: list[int] = []
    times: list[int] = []

    def note(message: logreel.Message) -> None:
        arrived.append(time.monotonic_ns())
        times.append(message.time)

    player = logreel.Player(log, rate=rate, duration=int(SECONDS * rate * 1e9), on_message=note)
    wanted = sum(1 for _ in logreel.Player(log, rate=0, duration=int(SECONDS * rate * 1e9)))
    tally = player.run()
    # Messages from outside the time of the log have no moment.
    inside = (np.array(times) >= player.start_time) & (np.array(times) <= player.end_time)
    off = np.abs(np.diff(np.array(arrived)[inside]) - np.diff(np.array(times)[inside]) / rate) / 1e6
    median, high = np.percentile(off, [50, 99])
    return {
        "messages": len(times),
        "dropped": wanted - len(times),
        "out of order": times != sorted(times),
        "intervals off, median, ms": float(median),
        "intervals off, 99 %, ms": float(high),
        "late by more than 1 ms, %": 100 * tally.late / max(tally.timed, 1),
        "late, mean, ms": tally.mean / 1e6,
        "late, worst, ms": tally.worst / 1e6,
    }


def _pace(rate: float) -> Group:
    real = {
        "flight": logs.SHARED / "ulog" / "sample.ulg",
        "bag": logs.SHARED / "rosbag" / "v20_turtlesim_lz4.bag",
    }
    made: dict[str, Callable[[], bytes]] = {"flight": lambda: flight(60.0), "bag": lambda: drive(60.0)}
    jobs = []
    for name, path in real.items():
        log = repr(str(path)) if path.exists() else f"services.{made[name].__code__.co_names[0]}(60.0)"
        code = f"values.update(services.pace(logreel.open({log}), {rate}))"
        jobs.append(Job(f"{name} at rate {rate:g}", code, "import logreel, services", rounds=1))
    bounds = tuple(
        Bound(
            f"{job.name}: {what} of intervals {{:.3f}} ms off",
            lambda rows, j=job, w=what: figure(rows, j.name, f"intervals off, {w}, ms"),
            most=most,
        )  # type: ignore[misc]
        for job in jobs
        for what, most in (("median", 1.0), ("99 %", 5.0))
    )
    return Group(
        f"pace-{rate:g}",
        f"Replay at rate {rate:g}",
        _no_log,
        tuple(jobs),
        bounds,
        part_of=Run.FULL if rate == 1 else Run.LONG,
    )


LAYOUT = Layout(
    Struct((Field("n", Scalar("int64")), Field("values", FixedArray(Scalar("float64"), 30)))), "bench"
)


def follow(name: str, messages: int, hz: float) -> Values:
    """Return the latencies of ``logreel cat -f``: from the flush of a recorder to the line on the pipe.

    One message is written and flushed at a time by this process; the follower is another one. Raises RuntimeError if a
    message does not come, or twice.
    """
    seen: dict[int, float] = {}
    twice: list[int] = []
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / f"log{builtin_formats()[name].suffixes[0]}"
        writer = logreel.create(path, format=name)
        channel = writer.add_channel("bench", LAYOUT)
        command = [sys.executable, "-m", "logreel", "cat", "-f", "--format", "ndjson", str(path)]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def read() -> None:
            for line in follower.stdout or ():
                n = json.loads(line)["data"]["n"]
                twice.extend([n] * (n in seen))
                seen[n] = time.perf_counter()

        reader = threading.Thread(target=read)
        reader.start()
        # The follower runs when the first message has come.
        writer.write(channel, logs.START, {"n": 0})
        writer.flush()
        while 0 not in seen:
            time.sleep(0.01)
        flushed, begin = {}, time.perf_counter()
        for n in range(1, messages + 1):
            time.sleep(max(0.0, begin + n / hz - time.perf_counter()))
            writer.write(channel, logs.START + n * 1000, {"n": n})
            writer.flush()
            flushed[n] = time.perf_counter()
        writer.close()
        reader.join()
        follower.wait()
    if twice or flushed.keys() - seen.keys():
        raise RuntimeError(
            f"{len(flushed.keys() - seen.keys())} messages did not come, {len(twice)} came twice"
        )
    late = sorted((seen[n] - at) * 1e3 for n, at in flushed.items())
    high = late[min(len(late) - 1, len(late) * 99 // 100)]
    return {
        "latency, median, ms": statistics.median(late),
        "latency, 99 %, ms": high,
        "latency, worst, ms": late[-1],
    }


def idle(seconds: float = 2.0) -> Values:
    """Return the share of a core that a follower takes while nothing comes, in percent."""
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "log.ulg"
        path.write_bytes(sample_log("ulog")[:-1])
        command = [sys.executable, "-m", "logreel", "cat", "-f", "-t", "none", str(path)]
        follower = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # After it has started.
        time.sleep(3.0)
        before = cpu_seconds(follower.pid)
        time.sleep(seconds)
        used = cpu_seconds(follower.pid) - before
        follower.kill()
        follower.wait()
    return {"of a core, %": 100 * used / seconds}


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _follow() -> Group:
    call = "values.update(services.follow({!r}, 150, 100.0))"
    jobs = [
        Job(name, call.format(name), "import services", rounds=1)
        for name in ("ulog", "mcap", "rosbag", "bddf")
    ]
    jobs.append(Job("idle", "values.update(services.idle())", "import services", rounds=1))
    return Group("follow", "cat -f beside a recorder at 100 Hz", _no_log, tuple(jobs), part_of=Run.FULL)


def _view(x: float) -> list[Group]:
    def job(name: str, call: str, rounds: int, needs: tuple[str, ...] = ()) -> tuple[Job]:
        return (Job(name, f"values.update(view.{call})", "import view", rounds=rounds, needs=needs),)

    first = job("first picture", "first(path)", 3)
    beside = job("beside Rerun", "peers(path)", 1, ("playwright", "rerun"))
    page = job("page", "page(path)", 3, ("playwright",))
    return [
        *(
            Group(
                f"view-page-{size}",
                f"Page of the viewer, ULog of {size} MB, index not cached",
                lambda folder, size=size: logs.ulog(folder, size * x),
                page,
                part_of=Run.FULL,
            )
            for size in (2, 60, 300)
        ),
        Group("view", "Viewer, ULog", lambda folder: logs.ulog(folder, 300 * x), first),
        Group(
            "view-pan",
            "Viewer, 5 million messages",
            _no_log,
            job("pan and zoom", f"pan({max(1, int(5 * x))}, 4)", 1),
            part_of=Run.FULL,
        ),
        Group(
            "view-pan-100",
            "Viewer, 100 million messages",
            _no_log,
            job("pan and zoom", f"pan({max(1, int(100 * x))}, 50)", 1),
            part_of=Run.LONG,
        ),
        Group(
            "view-peers",
            "Viewer beside Rerun",
            lambda folder: logs.ulog(folder, 60 * x),
            beside,
            part_of=Run.FULL,
        ),
    ]


def groups(x: float) -> list[Group]:
    """Return the groups, for logs of *x* times their usual sizes."""
    sparse = Job("a bag on a server", "values.update(services.remote(path))", "import services", rounds=1)
    return [
        *_view(x),
        *(_serve(log_format, x) for log_format in ("ulog", "bag", "bddf")),
        _follow(),
        _pace(1.0),
        _pace(10.0),
        Group("remote", "Bag on a server, sparse", lambda folder: logs.sparse_bag(folder, 10 * x), (sparse,)),
        *_fleet(x),
    ]
