"""The steps of a replay as a recording, so that everything that plays, draws or converts logs can use them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.columns import RecordingColumns
from logreel.formats.carla.simulator.replay import STATES, Records, pose_dtype
from logreel.formats.carla.simulator.values import Tick
from logreel.log.scan import Schema
from logreel.registry.open import open_log
from logreel.write.writer import create

if TYPE_CHECKING:
    from logreel.formats.carla.simulator.replay import Replay
    from logreel.log.log import Log
    from logreel.write.writer import Writer

_POSITION = "position"
#: Greatest number of steps that are written: a day of a server with 20 steps a second.
MAX_STEPS = 86400 * 20
_NAME = "replay.log"


def write_ticks(replay: Replay, path: str | os.PathLike[str], delta: float, *, force: bool = False) -> int:
    """Write the steps of a replay as a recording with a frame per step; return their number.

    Frames have the times of the steps in the recording. They hold poses, events, states, weather, and collisions that
    were recorded; also the boxes of created actors, if they were recorded. The pose of a spectator that follows an
    actor is that of the spectator of the recording.

    force  True: replace an existing file

    Raises LogError if the file exists, UsageError for more than MAX_STEPS.
    """
    from logreel.formats.carla import FORMAT

    source, count = replay.log, 0
    if (replay.end - replay.start) / (delta * replay.time_factor) > MAX_STEPS:
        raise UsageError(f"a replay of more than {MAX_STEPS} steps: make delta or the time factor greater")
    with create(path, format="carla", force=force, **FORMAT.like(source.metadata)) as writer:
        out = _TickWriter(writer, replay)
        for tick in replay.ticks(delta):
            out.write(tick)
            count += 1
    return count


@contextmanager
def tick_log(replay: Replay, delta: float) -> Iterator[Log]:
    """Open the steps of a replay as a log, which is a temporary file, see ``write_ticks``."""
    with tempfile.TemporaryDirectory(prefix="logreel-replay-") as folder:
        path = os.path.join(folder, _NAME)
        write_ticks(replay, path, delta)
        with open_log(path) as log:
            yield log


class _TickWriter:
    """Writes ticks with a Writer of recordings."""

    def __init__(self, writer: Writer, replay: Replay) -> None:
        self._writer, self._source, self._spectator = writer, replay.log, replay.spectator_id
        self._dtype = pose_dtype(self._source.metadata["engine"] == "UE5")
        self._columns = RecordingColumns(self._source)
        self._channels: dict[str, int] = {}
        self._number(_POSITION)

    def _number(self, topic: str) -> int:
        """Return the channel of a topic, with the same kind of packets as in the source."""
        if topic not in self._channels:
            ch = self._source.channels.get(topic)
            metadata = {} if ch is None else {"packet": ch.metadata["packet"]}
            self._channels[topic] = self._writer.add_channel(topic, Schema(topic, "carla"), metadata)
        return self._channels[topic]

    def write(self, tick: Tick) -> None:
        """Write one tick as one frame."""
        time = tick.time_ns
        if tick.visual_time is not None:
            self._writer.write(self._number("visual_time"), time, {"seconds": tick.visual_time})
        self._records("actors", time, tick.created)
        self._records("actor_removals", time, [{"id": actor} for actor in tick.destroyed])
        self._records("actor_parents", time, [{"child": c, "parent": p} for c, p in tick.attached])
        self._records("collisions", time, tick.collisions)
        self._positions(tick)
        for topic in STATES:
            self._records(topic, time, tick.applied.get(topic, ()))
        self._records("weather", time, () if tick.weather is None else [tick.weather])
        self._records("bounding_boxes", time, [b for a in tick.created for b in self._boxes(a["id"])])

    def _records(self, topic: str, time: int, records: Any) -> None:
        if records:
            self._writer.write(self._number(topic), time, {"records": list(records)})

    def _positions(self, tick: Tick) -> None:
        poses = dict(tick.poses.values_by_id)
        if tick.spectator is not None:
            poses[self._spectator] = (*tick.spectator.location, *tick.spectator.rotation)
        rows = np.zeros(len(poses), self._dtype)
        if poses:
            rows["id"], rows["pose"] = list(poses), list(poses.values())
        data = len(rows).to_bytes(2, "little") + rows.tobytes()
        self._writer.write(self._channels[_POSITION], tick.time_ns, data)

    def _boxes(self, actor: int) -> Records:
        """Return the last recorded box of an actor."""
        topic = "bounding_boxes"
        rows = self._columns.rows(topic, actor)[-1:]
        names = ("origin", "extent")
        vectors = {
            name: dict(zip("xyz", self._columns.vector(topic, name, rows)[0].tolist(), strict=True))
            for name in names
            if len(rows)
        }
        return [{"id": actor, **vectors}] if vectors else []
