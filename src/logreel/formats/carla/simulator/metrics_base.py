"""Base class of the metrics: the recording, and the rows of an actor in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.errors import UsageError
from logreel.formats.carla.actors import Track
from logreel.formats.carla.columns import I64, Array, Columns
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
        place = self._columns.frame_row_of(frame)
        return None if place < 0 else float(values[place])

    def _row(self, topic: str, actor: int, frame: int) -> int | None:
        """Return the row of the record about an actor in a frame, or None."""
        if (topic, actor) not in self._rows:
            rows = self._columns.rows(topic, actor)
            self._rows[topic, actor] = rows, self._columns.frame_rows(topic)[rows]
        rows, places = self._rows[topic, actor]
        place = self._columns.frame_row_of(frame)
        at = int(places.searchsorted(place))
        return int(rows[at]) if place >= 0 and at < len(places) and places[at] == place else None

    def _track(self, actor: int) -> Track:
        if actor not in self._tracks:
            self.log.actor(actor)
            self._tracks[actor] = Track(self._columns, actor)
        return self._tracks[actor]

    def _at(self, actor: int, frame: int) -> tuple[Track, int | None]:
        """Return the track of an actor, and its row in a frame or None."""
        track, place = self._track(actor), self._columns.frame_row_of(frame)
        at = int(track.frame_row.searchsorted(place))
        there = place >= 0 and at < len(track.frame_row) and track.frame_row[at] == place
        return track, at if there else None
