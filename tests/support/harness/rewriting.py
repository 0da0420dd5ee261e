"""Read a log and write it again, message by message in file order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import logreel


def rewrite(log: logreel.Log, path: Path, **options: Any) -> Path:
    """Write the messages of *log* to *path*."""
    with logreel.create(path, flush_every=None, **options) as w:
        numbers = {ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in log.channels.values()}
        for m in log.messages(order="file"):
            w.write(numbers[m.channel.topic], m.time, m.data)
    return path
