"""What a log holds, for comparing two logs, read in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import logreel
from logreel.formats.bddf.sample.builder import T0, Builder
from logreel.formats.carla.sample import drive as carla
from logreel.formats.koblenz.sample import drive as koblenz
from logreel.formats.mcap.sample.walk import walk
from logreel.formats.rosbag.sample.builder import drive
from logreel.formats.ulog.sample.builder import flight


def patrol() -> bytes:
    """Text with additional indexes, plain values and blobs of five seconds; nothing that is joined when read."""
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


#: Small logs of each format that can be written, by suffix.
SAMPLES = {
    ".bag": lambda: drive(1.0),
    ".bddf": patrol,
    ".mcap": lambda: walk(6.0),
    ".ulg": lambda: flight(3.0),
    ".vel": lambda: koblenz.drive(2.0, packets=2),
    ".rec": lambda: carla.drive(4.0).bytes(),
}
#: Formats whose topics follow from what messages are, by suffix: there is nothing to rename.
OWN_NAMES = {".vel", ".rec"}
#: Where real logs of a format lie, if not under its suffix.
PLACES = {".vel": "koblenz/*.log", ".rec": "carla/**/*.log"}
#: What only tells how a file is laid out.
LAYOUT = {"chunks", "compression", "indexed", "mcap", "sha1", "index_entries", "end_mark"}

Content = dict[str, tuple[Any, list[tuple[int, bytes]]]]


def content(log: logreel.Log | Path | str, order: str = "time") -> Content:
    """Type, and times and payloads, by topic."""
    log = log if isinstance(log, logreel.Log) else logreel.open(log)
    return {
        topic: (
            (ch.schema.name, ch.schema.encoding),
            [(m.time, bytes(m.data)) for m in log.messages([topic], order=order)],
        )
        for topic, ch in log.channels.items()
    }


def told(log: logreel.Log | Path | str) -> tuple[Any, ...]:
    """What a log holds besides messages."""
    log = log if isinstance(log, logreel.Log) else logreel.open(log)
    metadata = {name: value for name, value in log.metadata.items() if name not in LAYOUT}
    attachments = {name: a.read() for name, a in log.attachments.items()}
    return metadata, dict(log.parameters), attachments, log.text, log.start, log.end, log.utc_offset


def sample(folder: Path, suffix: str) -> Path:
    path = folder / f"sample{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    return path


def real(shared: Path, suffix: str) -> list[Path]:
    """Sound real logs of at most 600 kB."""
    files = sorted((shared / "data").glob(PLACES.get(suffix, f"**/*{suffix}")))
    return [f for f in files if f.stat().st_size < 600_000 and not logreel.open(f).problems]
