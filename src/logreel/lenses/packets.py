"""Raw packets of rotating laser scanners, decoded to one point cloud per revolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.index.ranges import payload_ranges
from logreel.layout.arrow_arrays import as_fixed_list, as_list
from logreel.layout.nodes import Field, FixedArray, Scalar, Sequence, String, Struct, Time, size_of
from logreel.lenses.base import Nodes, nodes_of, times_of
from logreel.lenses.cloud import Points
from logreel.lenses.sensors import velodyne
from logreel.lenses.sensors.velodyne import PACKET, Calibration, Cloud, Packets
from logreel.log.tables import DENSE, as_numpy, batches

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Packets read at a time.
_MANY = velodyne.STEP
#: Consecutive packets that certainly contain a whole calibration, if the unit sends one.
_CALIBRATED = 2 * 4160
#: Bytes of the count before the packets of a message.
_COUNT = 4


@dataclass(frozen=True, slots=True)
class PacketCloud:
    """Velodyne packets of a HDL-64E or HDL-32E.

    data   path of their bytes; None if the message is a count followed by packets
    stamp  path of the time of each packet
    frame  path of the name of the coordinate frame of the points
    """

    data: str | None = None
    stamp: str | None = None
    frame: str | None = None

    def clouds(
        self,
        ch: Channel,
        start: int | None = None,
        end: int | None = None,
        calibration: Calibration | None = None,
    ) -> Iterator[Points]:
        """Yield the points of each revolution of the sensor in messages with start <= time < end (ns).

        Fields are ``x`` ``y`` ``z`` (float32 m; forward at azimuth 0, left, up), ``intensity`` and ``ring`` (uint8; 0
        is the lowest laser), ``azimuth`` (float32 degrees, clockwise) and ``time`` (int64 ns). Shots without an
        echo are left out.

        calibration  of a HDL-64E; None: from a ``db.xml`` among the definitions that the log was opened with, else from
                     the packets if they contain it, else that of another unit, which gives approximate points

        Raises DefinitionError for a ``db.xml`` that cannot be used.
        """
        if calibration is None:
            calibration = self.calibration(ch)
        frame = self._frame(ch) if self.frame else ""
        for turn in velodyne.sweeps(self.packets(ch, start, end), calibration):
            yield Points(turn.time, frame, _fields(turn.cloud), stamp=turn.stamp)

    def calibration(self, ch: Channel) -> Calibration:
        """Return the calibration that ``clouds`` uses by default; its ``origin`` says where it comes from."""
        several = self.packets(ch)
        first = next(several, None)
        if first is None or not first.has_lower_bank():
            return velodyne.HDL32E
        from logreel.lenses.sensors.calibration import from_status, read_xml

        given = [path for path in ch.log.definitions if path.suffix.lower() == ".xml"]
        if given:
            return read_xml(given[0])
        status = [first.status]
        for packets in islice(several, _CALIBRATED // _MANY):
            status.append(packets.status)
        return from_status(np.concatenate(status)) or velodyne.HDL64E

    def packets(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Packets]:
        """Yield the packets of messages with start <= time < end (ns), some thousand at a time."""
        return self._from_field(ch, start, end) if self.data else _from_payloads(ch, start, end)

    def _from_field(self, ch: Channel, start: int | None, end: int | None) -> Iterator[Packets]:
        """Yield packets that are a field of the items of a counted array."""
        paths = [str(self.data), *([self.stamp] if self.stamp else [])]
        for batch in batches(ch, _batch_size(ch), paths, start, end, DENSE):
            column = batch.column(1)
            counts = np.asarray(as_list(column).value_lengths(), np.int64)
            flat = as_fixed_list(as_list(column).flatten()).flatten()
            data = as_numpy(flat)
            time = np.repeat(times_of(batch), counts)
            logged, own = time, np.zeros(len(time), np.int64)
            if self.stamp:
                own = as_numpy(as_list(batch.column(2)).flatten())
                time = np.where(own != 0, own, time)
            if len(time):
                yield Packets(data, np.arange(len(time), dtype=np.int64) * PACKET, time, logged, own)

    def _frame(self, ch: Channel) -> str:
        batch = next(ch.batches(1, [str(self.frame)]), None)
        return str(batch.column(1)[0].as_py()) if batch is not None and len(batch) else ""


def _from_payloads(ch: Channel, start: int | None, end: int | None) -> Iterator[Packets]:
    """Yield packets that follow a count in the payload, as offsets into the log, without copying."""
    index, step = ch.log.index, _batch_size(ch)
    picked = index.rows_between(ch.number, start, end)
    rows = np.arange(*picked.indices(len(ch)), dtype=np.int64) if isinstance(picked, slice) else picked
    times = ch.times
    for lo in range(0, len(rows), step):
        some, done = rows[lo : lo + step], 0
        for piece in payload_ranges(index, ch.number, some):
            numbers = some[done : done + len(piece.offset)]
            done += len(numbers)
            whole = piece.size >= _COUNT
            offset, size, numbers = piece.offset[whole], piece.size[whole], numbers[whole]
            count = np.zeros(len(offset), np.int64)
            for i in range(_COUNT):
                count |= piece.data[offset + i].astype(np.int64) << (8 * i)
            count = np.minimum(count, (size - _COUNT) // PACKET)
            message = np.repeat(np.arange(len(offset), dtype=np.int64), count)
            place = np.arange(len(message), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
            at = offset[message] + _COUNT + place * PACKET
            if len(at):
                yield velodyne.spread(Packets(piece.data, at, times[numbers][message]), message)


def _batch_size(ch: Channel) -> int:
    """Return the number of messages that together contain some thousand packets."""
    return max(1, _MANY * PACKET * len(ch) // max(1, ch.bytes))


def _fields(cloud: Cloud) -> dict[str, Any]:
    return {
        **dict(zip("xyz", cloud.xyz, strict=True)),
        "intensity": cloud.intensity,
        "ring": cloud.ring,
        "azimuth": cloud.azimuth,
        "time": cloud.time,
    }


def find_packets(nodes: Nodes) -> PacketCloud | None:
    """Return the PacketCloud that *nodes* describe, or None."""
    if _is_packet(nodes):
        return PacketCloud()
    for name, node in nodes.items():
        inner = nodes_of(node) if isinstance(node, Sequence) else {}
        for part, held in inner.items():
            if held == FixedArray(Scalar("uint8"), PACKET):
                stamp = next((f"{name}.{n}" for n, kind in inner.items() if isinstance(kind, Time)), None)
                framed = isinstance(nodes_of(nodes.get("header")).get("frame_id"), String)
                return PacketCloud(f"{name}.{part}", stamp, "header.frame_id" if framed else None)
    return None


def _is_packet(nodes: Nodes) -> bool:
    """Return whether *nodes* are the fields of one packet, stored as a record."""
    blocks = nodes.get("blocks")
    if not (isinstance(blocks, FixedArray) and blocks.count == velodyne.BLOCKS):
        return False
    names = list(nodes_of(Sequence(blocks.item)))
    whole = Struct(tuple(Field(name, node) for name, node in nodes.items()))
    return names == ["flag", "azimuth", "returns"] and size_of(whole) == PACKET
