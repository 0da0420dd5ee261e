"""Frames of a recording one after the other, with those packets that a replay needs, as the simulator reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DamagedError
from logreel.formats.carla.columns import Array
from logreel.formats.carla.definitions import layout

if TYPE_CHECKING:
    from logreel.log.log import Log

Records = list[dict[str, Any]]

#: Packets that are applied even if their frame is skipped, and those of the frame that is reached.
EVENTS = ("actors", "actor_removals", "actor_parents", "visual_time", "weather")
STATES = (
    *("traffic_lights", "vehicle_control", "walker", "vehicle_lights", "scene_lights"),
    *("wheels", "bikers", "doors", "bones"),
)
#: Packets that the simulator skips in a replay.
IGNORED = ("collisions",)
#: Bytes of the count of records.
_COUNT = 2


def pose_dtype(wide: bool) -> np.dtype[Any]:
    """Return the dtype of a record of ``position``: id, and location with roll, pitch, yaw as one array."""
    return np.dtype([("id", "<u4"), ("pose", "<f8" if wide else "<f4", 6)])


@cache
def _decoder(topic: str, wide: bool) -> Callable[[memoryview], dict[str, Any]]:
    return layout(topic, wide).decoder()


@dataclass(slots=True)
class FramePackets:
    """One frame and the payloads of its packets, by topic.

    row  number of the frame in the file, from 0
    """

    row: int
    wide: bool
    payloads: dict[str, list[memoryview]] = field(default_factory=dict)

    def records(self, topic: str) -> Records:
        """Return the records of a topic; packets that cannot be decoded are skipped."""
        found: Records = []
        for data in self.payloads.get(topic, ()):
            try:
                decoded = _decoder(topic, self.wide)(data)
            except DamagedError:
                continue
            found += decoded.get("records", [decoded])
        return found

    def poses(self) -> tuple[Array, Array]:
        """Return ids int64[n] and poses float64[n, 6] of the positions: location, then roll, pitch, yaw."""
        kind = pose_dtype(self.wide)
        parts = []
        for data in self.payloads.get("position", ()):
            count = int.from_bytes(data[:_COUNT], "little")
            if _COUNT + count * kind.itemsize <= len(data):
                parts.append(np.frombuffer(data, kind, count, _COUNT))
        found = np.concatenate([np.zeros(0, kind), *parts])
        # Signalling NaNs raise a floating-point warning.
        with np.errstate(invalid="ignore"):
            return found["id"].astype(np.int64), found["pose"].astype(np.float64)


def frame_packets(log: Log) -> Iterator[FramePackets]:
    """Yield the frames of a recording in file order; packets before the first frame count to it."""
    wide = log.metadata["engine"] == "UE5"
    topics = [t for t in ("frames", "position", *EVENTS, *STATES, *IGNORED) if t in log.channels]
    row, frame = -1, FramePackets(0, wide)
    # Packets without records have only a count; those with one record have none.
    for message in log.messages(topics, order="file"):
        topic = message.channel.topic
        if topic != "frames":
            if len(message.data) > _COUNT:
                frame.payloads.setdefault(topic, []).append(message.data)
            continue
        row += 1
        if row:
            yield frame
            frame = FramePackets(row, wide)
    if row >= 0:
        yield frame
