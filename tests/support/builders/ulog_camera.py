"""ULogs of flights with a camera."""

from __future__ import annotations

import struct
from typing import NamedTuple

from support.samples.ulog.builder import Builder

FORMAT = (
    "camera_capture:uint64_t timestamp;uint64_t timestamp_utc;double lat;double lon;float alt;float ground_distance;"
    "float[4] q;uint32_t seq;int8_t result;uint8_t[3] _padding0;"
)
POSITION = "vehicle_global_position:uint64_t timestamp;double lat;double lon;float alt;uint8_t[4] _padding0;"
#: µs since boot, and of UTC, of the first picture.
BOOT_US, UTC_US = 5_000_000, 1_700_000_000_000_000
#: A JPEG as small as can be: markers, and pixels that nothing here decodes.
PICTURE = b"\xff\xd8\xff\xdb\0\x04ab\xff\xda\0\x02pixels\xff\xd9"


class Picture(NamedTuple):
    """A picture that the camera took."""

    number: int
    seconds: float
    latitude: float
    longitude: float
    altitude: float


def shots(count: int = 5) -> list[Picture]:
    """Return pictures, two seconds apart, along a line south of the equator."""
    return [Picture(n + 10, 2.0 * n, -33.5 - n * 1e-4, 151.2 + n * 1e-4, 50.0 + n) for n in range(count)]


def camera_log(pictures: list[Picture]) -> bytes:
    """Return a ULog with a message for each picture, and the position of the vehicle."""
    b = Builder(start_us=1_000_000).flags().format(FORMAT).format(POSITION)
    b.subscribe("camera_capture", 0).subscribe("vehicle_global_position", 1)
    for one in pictures:
        at = round(one.seconds * 1e6)
        place = struct.pack("<ddf", one.latitude, one.longitude, one.altitude)
        b.data(1, struct.pack("<Q", BOOT_US + at - 1000) + place)
        rest = struct.pack("<5fIb", 40.0, 1.0, 0.0, 0.0, 0.0, one.number, 1)
        b.data(0, struct.pack("<QQ", BOOT_US + at, UTC_US + at) + place + rest)
    return bytes(b.bytes())
