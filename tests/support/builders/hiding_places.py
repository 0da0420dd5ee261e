"""An MCAP with a place, an identity and a time hidden in as many ways as logs have shown, each by its name."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Callable

from support.samples.mcap.builder import Builder

#: Where, who and when: found again in bytes by tests.
LAT, LON, ALT = 47.397742, 8.545594, 488.0
EAST, NORTH = 465710.759, 5249465.364
ECEF = (4277551.169, 642764.676, 4672168.686)
MGRS, PLUS = "32TMT6571049465", "8FVC9GXW+36"
START = 1_621_712_217 * 10**9
DATE = "2021-05-22"
PILOT, SERIAL, HOST, UUID = (
    "Jonathan Quill",
    "SN-77A4120-K",
    "falcon-seven",
    "5f0c1b7e-3c2d-4f6a-9b1e-0d2a7c4e8f10",
)
COUNT = 20

HEADER = "uint32 seq\ntime stamp\nstring frame_id\n"
_HEADER = "Header header\n"
_MORE = "\n" + "=" * 80 + "\nMSG: std_msgs/Header\n" + HEADER
Payload = Callable[[int], bytes]


def text(value: str) -> bytes:
    """Return a string of ROS."""
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def head(i: int, frame: str = "map") -> bytes:
    """Return a header of ROS."""
    return struct.pack("<III", i, START // 10**9 + i, 5 * i) + text(frame)


def nmea(i: int) -> bytes:
    """Return a sentence with position and time of day."""
    lat, lon = LAT + i * 1e-6, LON + i * 1e-6
    place = f"{int(lat):02d}{lat % 1 * 60:08.5f},N,{int(lon):03d}{lon % 1 * 60:08.5f},E"
    body = f"GPGGA,{193657 + i}.00,{place},1,08,1.0,488.0,M,47.0,M,,"
    total = 0
    for byte in body.encode():
        total ^= byte
    return f"${body}*{total:02X}\r\n".encode()


def dms(angle: float, side: str) -> str:
    """Return an angle in degrees, minutes and seconds."""
    return f"{int(angle)}°{int(angle * 60 % 60):02d}'{angle * 3600 % 60:05.2f}\"{side}"


def jpeg() -> bytes:
    """Return a picture with position, time and serial number in its Exif."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x010F], exif[0x0132] = "Maker", "2021:05:22 19:36:57"
    exif[0xA431] = SERIAL
    place = {1: "N", 2: (47.0, 23.0, 51.87), 3: "E", 4: (8.0, 32.0, 44.14)}
    exif[0x8825] = place
    out = io.BytesIO()
    Image.new("RGB", (32, 24), (90, 120, 40)).save(out, "JPEG", exif=exif)
    return out.getvalue()


def _string(value: str) -> Payload:
    return lambda i: text(value)


#: Definition and payload of each channel by its topic; what it hides is the topic.
CHANNELS: dict[str, tuple[str, str, Payload]] = {
    "/fix": (
        "sensor_msgs/NavSatFix",
        _HEADER + "float64 latitude\nfloat64 longitude\nfloat64 altitude\n" + _MORE,
        lambda i: head(i, "gps") + struct.pack("<3d", LAT + i * 1e-6, LON + i * 1e-6, ALT),
    ),
    "/text_dms": (
        "std_msgs/String",
        "string data\n",
        _string(f"landed at {dms(LAT, 'N')} {dms(LON, 'E')} safely"),
    ),
    "/text_utm": ("std_msgs/String", "string data\n", _string("position 32T 465711 5249465 reached")),
    "/text_mgrs": ("std_msgs/String", "string data\n", _string(f"grid {MGRS} and 32T MT 65710 49465")),
    "/text_plus": ("std_msgs/String", "string data\n", _string(f"meet at {PLUS} please")),
    "/text_decimal": ("std_msgs/String", "string data\n", _string("home is 47.3977, 8.5456")),
    "/text_geo": ("std_msgs/String", "string data\n", _string("geo:47.3977,8.5456 and ///table.lamp.spoon")),
    "/text_geohash": ("std_msgs/String", "string data\n", _string("cell u0qjdkqxy of the map")),
    "/bytes_nmea": ("my/Raw", "uint8[] data\n", lambda i: struct.pack("<I", len(nmea(i))) + nmea(i)),
    "/text_nmea": ("nmea_msgs/Sentence", "string sentence\n", lambda i: text(nmea(i).decode())),
    "/array_degrees": (
        "std_msgs/Float64MultiArray",
        "float64[] data\n",
        lambda i: struct.pack("<I3d", 3, LAT + i * 1e-6, LON + i * 1e-6, 1.5),
    ),
    "/array_floats": ("my/Floats", "float32[] data\n", lambda i: struct.pack("<I2f", 2, LON, LAT)),
    "/array_e7": (
        "my/Ints",
        "int32[] data\n",
        lambda i: struct.pack("<I2i", 2, round(LAT * 1e7) + i, round(LON * 1e7)),
    ),
    "/radians": (
        "my/Pair",
        "float64 a\nfloat64 b\n",
        lambda i: struct.pack("<2d", math.radians(LAT), math.radians(LON)),
    ),
    "/odom_utm": (
        "my/Odometry",
        _HEADER + "float64 x\nfloat64 y\nfloat64 z\n" + _MORE,
        lambda i: head(i, "utm") + struct.pack("<3d", EAST + i, NORTH + i, ALT),
    ),
    "/earth": ("my/Vector3", "float64 x\nfloat64 y\nfloat64 z\n", lambda i: struct.pack("<3d", *ECEF)),
    "/camera": (
        "sensor_msgs/CompressedImage",
        _HEADER + "string format\nuint8[] data\n" + _MORE,
        lambda i: head(i, "cam") + text("jpeg") + struct.pack("<I", len(jpeg())) + jpeg(),
    ),
    "/frames": (
        "my/Framed",
        _HEADER + "float32 v\n" + _MORE,
        lambda i: head(i, "site_47.3977_8.5456") + b"\0\0\0\0",
    ),
    "/frames_mgrs": ("my/Framed", _HEADER + "float32 v\n" + _MORE, lambda i: head(i, MGRS) + b"\0\0\0\0"),
    "/declination": ("my/Mag", "float32 magnetic_declination\n", lambda i: struct.pack("<f", 3.21)),
    "/commented": (
        "my/Commented",
        f"# flown by {PILOT} at 47.3977, 8.5456 on {DATE}\nfloat32 v\n",
        lambda i: b"\0\0\0\0",
    ),
    "/who": (
        "my/Who",
        "string operator\nstring serial_number\nstring hostname\nuint32 device_id\n",
        lambda i: text(PILOT) + text(SERIAL) + text(HOST) + struct.pack("<I", 3_735_928),
    ),
    "/text_who": (
        "std_msgs/String",
        "string data\n",
        _string(
            f"Pilot: {PILOT}; mail j.quill@example.org, host {HOST}.local 192.168.17.23 mac 3c:52:82:aa:bb:cc {UUID}"
        ),
    ),
    "/text_path": (
        "std_msgs/String",
        "string data\n",
        _string("saved /home/jquill/logs/2021-05-22/19_36_57.ulg"),
    ),
    "/text_later": ("std_msgs/String", "string data\n", _string(f"{PILOT} says thanks, bye from {HOST}")),
    "/text_time": (
        "std_msgs/String",
        "string data\n",
        _string("started 2021-05-22T19:36:57Z, t=1621712217.25"),
    ),
    "/text_month": ("std_msgs/String", "string data\n", _string("Sat May 22 19:36:57 2021 and 22 May 2021")),
    "/gps_time": ("my/Utc", "uint64 time_utc_usec\n", lambda i: struct.pack("<Q", START // 1000 + i * 1000)),
    "/unix_time": ("my/Unix", "float64 t\n", lambda i: struct.pack("<d", START / 1e9 + i)),
    "/harmless": (
        "my/Harmless",
        "float64 voltage\nfloat64 current\nfloat64[] spectrum\n",
        lambda i: struct.pack("<2dI4d", 47.4, 1.25 + i, 4, 47.4, 12.5, 8.5, i),
    ),
    "/site_47.3977_8.5456/imu": ("my/Value", "float32 v\n", lambda i: b"\0\0\0\0"),
    "/falcon-seven/state": ("my/Value", "float32 v\n", lambda i: b"\0\0\0\0"),
}
#: Values that no payload, name or text may hold any more, by what they give away.
SECRETS = {
    "place": [
        b"47.397",
        b"8.5455",
        b"8.5456",
        b"465711",
        b"5249465",
        MGRS.encode(),
        b"MT 65710",
        PLUS.encode(),
        b"u0qjdkqxy",
        b"4723.8",
        b"00832.7",
        "47°23".encode(),
        b"table.lamp",
    ],
    "identity": [
        PILOT.encode(),
        SERIAL.encode(),
        HOST.encode(),
        UUID.encode(),
        b"jquill",
        b"j.quill",
        b"192.168.17.23",
        b"3c:52:82",
        struct.pack("<I", 3_735_928),
    ],
    "time": [b"2021-05-22", b"2021:05:22", b"19_36_57", b"1621712217", b"May 22", b"22 May 2021", b"193657"],
}


def hiding_places() -> bytes:
    """Return the log."""
    b = Builder()
    for n, (topic, (name, definition, _)) in enumerate(CHANNELS.items(), 1):
        b.schema(n, name, "ros1msg", definition.encode())
        b.channel(n, n, topic, "ros1", {"callerid": "/driver_falcon-seven_1621712217"} if n == 1 else {})
    b.schema(100, "Mission", "jsonschema", b'{"type":"object","properties":{"step":{"type":"number"}}}')
    b.channel(100, 100, "/json", "json", {})
    b.channel(101, 0, "/json_without", "json", {})
    for i in range(COUNT):
        for n, (_, _, payload) in enumerate(CHANNELS.values(), 1):
            b.message(n, START + i * 10**9, payload(i), i)
        inside = {"step": i, "extra": {"lat": LAT, "lon": LON, "note": f"by {PILOT}"}, "home": [LAT, LON]}
        b.message(100, START + i * 10**9, json.dumps(inside).encode(), i)
        b.message(
            101, START + i * 10**9, json.dumps({"pos": {"latitude": LAT, "longitude": LON}}).encode(), i
        )
    b.flush()
    b.metadata("mission", {"operator": PILOT, "home": f"{LAT}, {LON}", "uuid": UUID, "date": DATE})
    b.attachment("photo.jpg", "image/jpeg", jpeg(), START)
    b.attachment(
        f"notes_{DATE}_47.3977_8.5456.txt", "text/plain", f"Flight of {PILOT} near {PLUS}".encode(), START
    )
    return b.bytes()
