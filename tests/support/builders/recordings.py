"""Content of recordings, read by Rerun."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Entity:
    """Rows of one entity by number: a list of values for each row and component."""

    times: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    static: bool = False
    wall: bool = False


def entities(path: Path | str) -> dict[str, Entity]:
    """Return all entities except those of Rerun itself; the timelines must be ``time`` and ``count``."""
    chunk = pytest.importorskip("rerun.chunk")
    found: dict[str, Entity] = {}
    for part in chunk.RrdReader(path).stream():
        if part.entity_path.startswith("/__"):
            continue
        one = found.setdefault(part.entity_path, Entity(static=part.is_static))
        assert set(part.timeline_names) == (set() if part.is_static else {"time", "count"})
        batch = part.to_record_batch()
        if not part.is_static:
            kind = str(batch.schema.field("time").type)
            assert kind in ("timestamp[ns]", "duration[ns]")
            one.wall = kind.startswith("timestamp")
            one.times += batch.column("time").cast("int64").to_pylist()
            one.counts += batch.column("count").to_pylist()
        for name in batch.schema.names:
            if ":" in name:
                one.values[name] += batch.column(name).to_pylist()
    return found


def names(path: Path | str) -> tuple[str, str]:
    """Return the ids of application and recording of a file with one recording."""
    chunk = pytest.importorskip("rerun.chunk")
    (store,) = chunk.RrdReader(path).recordings()
    return store.application_id, store.recording_id
