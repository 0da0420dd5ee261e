"""Who an actor is at a moment, as the simulator's queries know it."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.formats.carla.columns import I64, Columns


class KnownActors:
    """Types and descriptions of the actors, frame by frame.

    The simulator's queries forget the actor that was added last whenever one is removed. *correct*: nothing is
    forgotten, and a description stands also for frames behind the removal.
    """

    def __init__(self, columns: Columns, correct: bool) -> None:
        self._descriptions = columns("actors", "description")
        ids, place = columns("actors", "id").astype(np.int64), columns.place("actors")
        rows = np.arange(len(ids), dtype=np.int64)
        self.forgotten, self.forgotten_at = np.zeros((2, 0), np.int64)
        if not correct and len(ids):
            gone = columns.place("actor_removals")
            last = np.searchsorted(place, gone, side="right") - 1
            self.forgotten, self.forgotten_at = ids[last[last >= 0]], gone[last >= 0]
        entries = np.concatenate([ids, self.forgotten]), np.concatenate([place, self.forgotten_at])
        row = np.concatenate([rows, np.full(len(self.forgotten), -1)])
        # Ids have 32 bits, numbers of frames fewer than 31: a recording of 2**31 frames would have 100 GB.
        key = entries[0] << 31 | entries[1]
        order = np.argsort(key, kind="stable")
        self._key, self._row = key[order], row[order]
        self._types = columns("actors", "type").astype(np.int64)

    def rows(self, ids: I64, place: I64) -> I64:
        """int64[n]: row of ``actors`` that tells of each actor at a frame, -1 where none does."""
        if not len(self._key):
            return np.full(len(ids), -1, np.int64)
        at = np.searchsorted(self._key, ids << 31 | place, side="right") - 1
        found = np.where(at >= 0, self._row[at], -1)
        return np.where(self._key[at] >> 31 == ids, found, -1)

    def types(self, rows: I64) -> I64:
        """Type by row; 0 for -1."""
        return (
            np.where(rows >= 0, self._types[rows], 0) if len(self._types) else np.zeros(len(rows), np.int64)
        )

    def descriptions(self, rows: I64) -> list[str]:
        """Description by row; empty for -1."""
        return [str(self._descriptions[row]) if row >= 0 else "" for row in rows.tolist()]


def recording_summary(columns: Columns) -> dict[str, Any]:
    """What all queries say of a recording before and behind their rows."""
    metadata, ids = columns.log.metadata, columns("frames", "frame")
    elapsed = columns("frames", "elapsed")
    return {
        "version": metadata["format_version"],
        "map": metadata["map"],
        "date_unix": metadata.get("date_unix", 0),
        "frames": int(ids[-1]) if len(ids) else 0,
        "duration_s": float(elapsed[-1]) if len(elapsed) else 0.0,
    }
