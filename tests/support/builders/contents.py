"""Content of logs as plain Python values, to compare two logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import logreel
from support.samples.bddf.builder import T0, Builder
from support.samples.carla import drive as carla
from support.samples.koblenz import drive as koblenz
from support.samples.mcap.walk import walk
from support.samples.rosbag.builder import drive
from support.samples.rosbag2.builder import robot
from support.samples.ulog.builder import flight


@cache
def patrol() -> bytes:
    """Return a BDDF log of five seconds with text, additional indexes, plain values and blobs; without structs."""
    out = Builder({"note": "made"})
    say = out.messages("say", "text/plain", "line", names=["pid", "n"])
    speed = out.pods({"client": "patrol", "varname": "speed"}, "float32", [2], "m/s")
    blob = out.messages("blob", "image/jpeg", "")
    for i in range(100):
        now = T0 + i * 50_000_000
        out.data(say, now, f"line {i}".encode(), [i * 1000, -i])
        out.values(speed, now, "float32", [i, 2, 3, 4])
        if i % 4 == 0:
            out.data(blob, now + 1, bytes([i]) * 3000)
    return out.bytes()


#: Functions that build a small log, for each format that can be written, by suffix.
SAMPLES: dict[str, Callable[[], bytes]] = {
    ".bag": lambda: drive(1.0),
    ".bddf": patrol,
    ".mcap": lambda: walk(6.0),
    ".ulg": lambda: flight(3.0),
    ".vel": lambda: koblenz.drive(1.0, packets=2),
    ".rec": cache(lambda: carla.drive(4.0).bytes()),
    ".db3": lambda: robot(60, 3000),
}
#: Suffixes of formats whose topics follow from messages, so that channels cannot be renamed.
OWN_NAMES = {".vel", ".rec"}
#: Glob patterns of real logs, for formats whose logs have other suffixes.
PLACES = {".vel": "koblenz/*.log", ".rec": "carla/**/*.log"}
#: Metadata that describes only the layout of the file.
LAYOUT = {"chunks", "compression", "indexed", "mcap", "rosbag2", "sha1", "index_entries", "end_mark"}

Content = dict[str, tuple[Any, list[tuple[int, bytes]]]]


def content(log: logreel.Log | Path | str, order: str = "time") -> Content:
    """Return schema name and encoding, times and payloads by topic."""
    log = log if isinstance(log, logreel.Log) else logreel.open(log)
    return {
        topic: (
            (ch.schema.name, ch.schema.encoding),
            [(m.time, bytes(m.data)) for m in log.messages([topic], order=order)],
        )
        for topic, ch in log.channels.items()
    }


def other_content(log: logreel.Log | Path | str) -> tuple[Any, ...]:
    """Return the content of a log other than messages."""
    log = log if isinstance(log, logreel.Log) else logreel.open(log)
    metadata = {name: value for name, value in log.metadata.items() if name not in LAYOUT}
    attachments = {name: a.read() for name, a in log.attachments.items()}
    return metadata, dict(log.parameters), attachments, log.text, log.start, log.end, log.utc_offset


def sample(folder: Path, suffix: str) -> Path:
    path = folder / f"sample{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    return path


def real(shared: Path, suffix: str) -> list[Path]:
    """Return real logs without problems of less than 600 kB."""
    files = sorted((shared / "data").glob(PLACES.get(suffix, f"**/*{suffix}")))
    return [f for f in files if f.stat().st_size < 600_000 and not logreel.open(f).problems]
