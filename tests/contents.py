"""What a log holds, for comparing two logs, read in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import logreel
from logreel.formats.mcap.sample import walk
from logreel.formats.rosbag.sample import drive
from logreel.formats.ulog.sample import flight

#: Small logs of each format that can be written, by suffix.
SAMPLES = {".bag": lambda: drive(1.0), ".ulg": lambda: flight(3.0), ".mcap": lambda: walk(6.0)}
#: What only tells how a file is laid out.
LAYOUT = {"chunks", "compression", "indexed", "mcap"}

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
    files = sorted((shared / "data").rglob(f"*{suffix}"))
    return [f for f in files if f.stat().st_size < 600_000 and not logreel.open(f).problems]
