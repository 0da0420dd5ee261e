"""Base class of the metrics: the recording, and the rows of an actor in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.errors import UsageError
from logreel.formats.carla.actors import Track
from logreel.formats.carla.columns import Array, Columns
from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.registry.open import open_log

if TYPE_CHECKING:
    from logreel.io.source import Readable


class Base:
    """Access to a recording frame by frame.

    log  an open Log, or anything that ``logreel.open`` accepts
    """

    def __init__(self, log: Log | Readable) -> None:
        self.log = log if isinstance(log, Log) else open_log(log)
        if self.log.format != "carla":
            raise UsageError(f"a log of format {self.log.format}, not a CARLA recording", path=self.log.name)
        self._columns = Columns(self.log)
        self._tracks: dict[int, Track] = {}
        self._rows: dict[tuple[str, int], tuple[I64, I64]] = {}

    def _of_frame(self, values: Array, frame: int) -> float | None:
        frame_row = self._columns.frame_row_of(frame)
        return None if frame_row < 0 else float(values[frame_row])

    def _row(self, topic: str, actor: int, frame: int) -> int | None:
        """Return the row of the record about an actor in a frame, or None."""
        if (topic, actor) not in self._rows:
            rows = self._columns.rows(topic, actor)
            self._rows[topic, actor] = rows, self._columns.frame_rows(topic)[rows]
        rows, frame_rows = self._rows[topic, actor]
        frame_row = self._columns.frame_row_of(frame)
        at = int(frame_rows.searchsorted(frame_row))
        return (
            int(rows[at]) if frame_row >= 0 and at < len(frame_rows) and frame_rows[at] == frame_row else None
        )

    def _track(self, actor: int) -> Track:
        if actor not in self._tracks:
            self.log.actor(actor)
            self._tracks[actor] = Track(self._columns, actor)
        return self._tracks[actor]

    def _at(self, actor: int, frame: int) -> tuple[Track, int | None]:
        """Return the track of an actor, and its row in a frame or None."""
        track, frame_row = self._track(actor), self._columns.frame_row_of(frame)
        at = int(track.frame_row.searchsorted(frame_row))
        there = frame_row >= 0 and at < len(track.frame_row) and track.frame_row[at] == frame_row
        return track, at if there else None
