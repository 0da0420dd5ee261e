"""Fifty clients slice one large log at once: throughput compared with a copy, memory, and every byte compared.

    python bench/serve.py [ulog|bag|bddf] [clients]

The service runs in a separate process. Half of the clients request intervals of time, a quarter topics, a quarter
another format. Replies are compared by digest with the files that ``logreel.slice`` and ``logreel.convert`` write.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import bigbag
import bigbddf
import biglog
import logreel

TOKEN = "a-token-of-the-bench"
os.environ.setdefault("LOGREEL_CACHE", "off")


def memory(process: int) -> dict[str, int]:
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
    """Return digest and size of the slice that the command writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("a.mcap" if "format" in wish else path.name)
        make = logreel.convert if "format" in wish else logreel.slice
        make(path, out, topics=wish.get("topic"), start=wish.get("start"), end=wish.get("end"))
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


def run(path: Path, clients: int) -> None:
    log = logreel.open(path)
    asked = [wishes(log, n) for n in range(clients)]
    distinct = {json.dumps(wish): wish for wish in asked}
    begin = time.perf_counter()
    expected = {key: due(path, wish) for key, wish in distinct.items()}
    print(
        f"{len(distinct)} different slices written by the verbs one by one: {time.perf_counter() - begin:.2f} s"
    )
    command = [sys.executable, "-m", "logreel", "serve", str(path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "LOGREEL_TOKEN": TOKEN}
    ) as server:
        assert server.stderr is not None
        base = server.stderr.readline().split()[-1]
        parts = urlsplit(base)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        connection.request("GET", "/logs", headers={"Authorization": f"Bearer {TOKEN}"})
        (found,) = json.load(connection.getresponse())["logs"]
        connection.close()
        fetch(base, found["id"], asked[0])
        before, peak, done = memory(server.pid), dict[str, int](), threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                for name, value in memory(server.pid).items():
                    peak[name] = max(peak.get(name, 0), value)

        watcher = threading.Thread(target=watch)
        watcher.start()
        begin = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            got = list(pool.map(lambda wish: fetch(base, found["id"], wish), asked))
        took = time.perf_counter() - begin
        done.set()
        watcher.join()
        server.terminate()
    same = sum(one == expected[json.dumps(wish)] for one, wish in zip(got, asked, strict=True))
    sent = sum(size for _, size in got)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        shutil.copyfile(path, Path(folder) / "copy")
        copied = time.perf_counter() - begin
    rate, copy_rate = sent / took / 1e6, path.stat().st_size / copied / 1e6
    print(f"{clients} clients at once: {sent / 1e6:.0f} MB in {took:.2f} s, {rate:.0f} MB/s")
    print(f"copying the log: {copy_rate:.0f} MB/s; the service has {rate / copy_rate:.2f} x of that")
    print(f"{same} of {clients} slices have the bytes of the verbs")
    print(f"memory before {before} MB, at most {peak} MB")


if __name__ == "__main__":
    kind, clients = [*sys.argv[1:], *("ulog", "50")[len(sys.argv) - 1 :]]
    makers = {"ulog": biglog.make, "bag": lambda: bigbag.make(scale=1.5), "bddf": bigbddf.make}
    run(makers[kind](), int(clients))
