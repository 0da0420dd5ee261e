"""Build any Koblenz log, valid or not, for tests and samples. Shares no code with the reader."""

from __future__ import annotations

import struct
from collections.abc import Sequence

NAMES = ("OBDDataM", "GPSDataM", "ImageM", "RobotPoseM", "VelodyneRawDataM", "LaserRange2DDataM")


def number(name: str) -> int:
    """Return the id of a class name."""
    total = 0
    for place, letter in enumerate(name):
        total += ord(letter) * (119 + place)
    return total


class Builder:
    """Appends messages.

    counted  header bytes that the size of a message counts: 17 as described, 21 or 0 in other readings of that
    """

    def __init__(self, counted: int = 17, version: tuple[int, int] = (1, 1)) -> None:
        self._counted, self._version = counted, version
        self.messages: list[bytes] = []
        self.times: list[float] = []

    def add(
        self,
        kind: str | int,
        ms: float,
        payload: bytes,
        version: int = 100,
        mark: int = 0x49,
        size: int | None = None,
    ) -> Builder:
        """Append a message; *size* replaces the right size."""
        stated = self._counted + len(payload) if size is None else size
        what = number(kind) if isinstance(kind, str) else kind
        self.messages.append(struct.pack("<IBiid", stated, mark, what, version, ms) + payload)
        self.times.append(ms)
        return self

    def raw(self, data: bytes) -> Builder:
        """Append bytes that are no message."""
        self.messages.append(data)
        self.times.append(float("nan"))
        return self

    def obd(self, ms: float, speed: int, rpm: int, throttle: float) -> Builder:
        """Append data of the car."""
        return self.add("OBDDataM", ms, struct.pack("<iifiifi", speed, rpm, 0.0, 0, 0, throttle, 0))

    def gps(
        self,
        ms: float,
        time: tuple[int, int, int] = (12, 0, 0),
        date: tuple[int, int, int] = (17, 6, 2010),
        place: tuple[float, float] = (50.363, 7.559),
        height: float = 92.5,
        warning: int = 0,
        quality: int = 1,
        speed: float = 0.0,
        course: float = 0.0,
    ) -> Builder:
        """Append a GPS fix; *date* is day, month, year."""
        first = struct.pack("<iiiiddff", *time, warning, *place, speed, course)
        second = struct.pack("<iiiiifffff", *date, quality, 8, 1.5, height, 47.5, 2.0, 2.5)
        return self.add("GPSDataM", ms, first + second)

    def image(
        self, ms: float, source: int, width: int, height: int, data: bytes, compressed: int = 1
    ) -> Builder:
        """Append a picture of camera *source*."""
        head = struct.pack("<iIiiI", source, compressed, width, height, len(data))
        return self.add("ImageM", ms, head + data)

    def pose(
        self, ms: float, quaternion: Sequence[float], acceleration: Sequence[float] = (0.0, 0.0, 9.81)
    ) -> Builder:
        """Append the orientation of the robot."""
        return self.add("RobotPoseM", ms, struct.pack("<7f", *quaternion, *acceleration))

    def velodyne(self, ms: float, packets: Sequence[bytes]) -> Builder:
        """Append Velodyne packets."""
        return self.add("VelodyneRawDataM", ms, struct.pack("<I", len(packets)) + b"".join(packets))

    def laser(self, ms: float, model: str, name: str | bytes, ranges: Sequence[int]) -> Builder:
        """Append a laser scan, ranges in mm."""
        one, two = model.encode(), name.encode() if isinstance(name, str) else name
        head = struct.pack("<I", len(one)) + one + struct.pack("<I", len(two)) + two
        body = struct.pack(f"<I{len(ranges)}I", len(ranges), *ranges)
        return self.add("LaserRange2DDataM", ms, head + body, 101)

    def seconds(self, first: int) -> list[int]:
        """Return the time index of a file whose first message is at *first*: a position for each second."""
        places, at = [], first
        for message in self.messages:
            places.append(at)
            at += len(message)
        known = [(ms, place) for ms, place in zip(self.times, places, strict=True) if ms == ms]
        found: list[int] = []
        while known and len(found) <= (max(ms for ms, _ in known) - known[0][0]) // 1000:
            begin = known[0][0] + 1000 * len(found)
            found.append(next(place for ms, place in known if ms >= begin))
        return found

    def bytes(self, index: Sequence[int] | None = None, room: int = 0, tail: bytes = b"") -> bytes:
        """Return the whole file.

        index  replaces the right index
        room   number of zeros between index and first message
        tail   bytes after the last message
        """
        if index is None:
            size = len(self.seconds(0))
            index = self.seconds(12 + 8 * size + room)
        head = struct.pack("<4sHHI", b"\xa4VEL", *self._version, len(index))
        return head + struct.pack(f"<{len(index)}q", *index) + bytes(room) + b"".join(self.messages) + tail


END = b"\xff\xff\xff\xff"
