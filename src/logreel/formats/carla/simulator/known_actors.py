"""Types and descriptions of actors at a frame, as the simulator's queries know them."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.formats.carla.columns import Columns
from logreel.io.arrays import I64


class KnownActors:
    """Types and descriptions of the actors, frame by frame.

    When an actor is removed, the simulator's queries forget the actor that was added last. With *correct* they forget
    nothing, so that the description of an actor is also known after its removal.

    forgotten     int64[n]  ids of forgotten actors
    forgotten_at  int64[n]  row of the frame at which each is forgotten
    """

    def __init__(self, columns: Columns, correct: bool) -> None:
        self._descriptions = columns("actors", "description")
        ids, frame_row = columns("actors", "id").astype(np.int64), columns.frame_rows("actors")
        rows = np.arange(len(ids), dtype=np.int64)
        self.forgotten, self.forgotten_at = np.zeros((2, 0), np.int64)
        if not correct and len(ids):
            removal = columns.frame_rows("actor_removals")
            last = np.searchsorted(frame_row, removal, side="right") - 1
            self.forgotten, self.forgotten_at = ids[last[last >= 0]], removal[last >= 0]
        entries = np.concatenate([ids, self.forgotten]), np.concatenate([frame_row, self.forgotten_at])
        row = np.concatenate([rows, np.full(len(self.forgotten), -1)])
        # Ids have 32 bits, rows of frames fewer than 31: a recording of 2**31 frames would have 100 GB.
        key = entries[0] << 31 | entries[1]
        order = np.argsort(key, kind="stable")
        self._key, self._row = key[order], row[order]
        self._types = columns("actors", "type").astype(np.int64)

    def rows(self, ids: I64, frame_row: I64) -> I64:
        """Return the row of ``actors`` that describes each actor at a frame: int64[n], -1 if it is not known."""
        if not len(self._key):
            return np.full(len(ids), -1, np.int64)
        at = np.searchsorted(self._key, ids << 31 | frame_row, side="right") - 1
        found = np.where(at >= 0, self._row[at], -1)
        return np.where(self._key[at] >> 31 == ids, found, -1)

    def types(self, rows: I64) -> I64:
        """Return the types of actors by row; 0 for -1."""
        return (
            np.where(rows >= 0, self._types[rows], 0) if len(self._types) else np.zeros(len(rows), np.int64)
        )

    def descriptions(self, rows: I64) -> list[str]:
        """Return the descriptions of actors by row; empty for -1."""
        return [str(self._descriptions[row]) if row >= 0 else "" for row in rows.tolist()]


def recording_summary(columns: Columns) -> dict[str, Any]:
    """Return what all queries print before and after their rows: version, map, date, frames, duration."""
    metadata, ids = columns.log.metadata, columns("frames", "frame")
    elapsed = columns("frames", "elapsed")
    return {
        "version": metadata["format_version"],
        "map": metadata["map"],
        "date_unix": metadata.get("date_unix", 0),
        "frames": int(ids[-1]) if len(ids) else 0,
        "duration_s": float(elapsed[-1]) if len(elapsed) else 0.0,
    }
