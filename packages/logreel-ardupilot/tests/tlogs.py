"""Build telemetry logs from MAVLink's specification, without code of the package."""

from __future__ import annotations

import struct

#: Number, byte for the checksum, and bytes in the order of the payload; the first ones are those of version 1.
MESSAGES = {
    "HEARTBEAT": (0, 50, "<IBBBBB", ""),
    "ATTITUDE": (30, 39, "<Iffffff", ""),
    "GLOBAL_POSITION_INT": (33, 104, "<IiiiihhhH", ""),
    "SERVO_OUTPUT_RAW": (36, 222, "<IHHHHHHHHB", "HHHHHHHH"),
    "SYS_STATUS": (1, 124, "<IIIHHhHHHHHHb", "III"),
    "PARAM_VALUE": (22, 220, "<fHH16sB", ""),
    "GPS_RAW_INT": (24, 24, "<QiiiHHHHBB", "iIIIIH"),
    "EKF_STATUS_REPORT": (193, 71, "<fffffH", "f"),
    "VIBRATION": (241, 90, "<QfffIII", ""),
    "STATUSTEXT": (253, 83, "<B50s", "HB"),
    "UNKNOWN": (60_000, 7, "<HH", ""),
}
START = 1_700_000_000_000_000


def crc(data: bytes) -> int:
    """Return CRC-16/MCRF4XX bit by bit."""
    number = 0xFFFF
    for byte in data:
        number ^= byte
        for _ in range(8):
            number = number >> 1 ^ (0x8408 if number & 1 else 0)
    return number


def frame(
    name: str, *values: object, version: int = 2, sequence: int = 0, system: int = 1, signed: bool = False
) -> bytes:
    """Return a frame."""
    number, extra, base, more = MESSAGES[name]
    payload = struct.pack(base if version == 1 else base + more, *values)
    if version == 1:
        body = bytes([len(payload), sequence, system, 1, number]) + payload
        return b"\xfe" + body + struct.pack("<H", crc(body + bytes([extra])))
    payload = payload[:1] + payload[1:].rstrip(b"\0")
    head = bytes([len(payload), signed, 0, sequence, system, 1]) + number.to_bytes(3, "little")
    body = head + payload
    return b"\xfd" + body + struct.pack("<H", crc(body + bytes([extra]))) + bytes(range(13)) * signed


def telemetry(rounds: int = 20) -> bytes:
    """Return a log of both versions."""
    out = bytearray()

    def put(at: int, data: bytes) -> None:
        out.extend(struct.pack(">Q", START + at) + data)

    for n in range(rounds):
        at = n * 100_000
        put(at, frame("HEARTBEAT", n, 2, 3, 81, 4, 3, version=1 + n % 2, sequence=n))
        put(at + 10, frame("ATTITUDE", n, n / 8, -n / 4, 0.0, 0.5, 0.0, 0.0, sequence=n + 1))
        position = n, 473_977_420 + n, 85_455_940, 500_000, 1000 * n, 1, 0, 0, 0
        put(at + 20, frame("GLOBAL_POSITION_INT", *position, sequence=n + 2, version=2 - n % 2))
        servo = n, *range(1000, 1008), 0, *(n % 3 for _ in range(8))
        put(at + 30, frame("SERVO_OUTPUT_RAW", *servo, sequence=n + 3, signed=n % 5 == 4))
        if n % 4 == 0:
            put(at + 40, frame("STATUSTEXT", 6, b"EKF3 IMU0 is using GPS", 0, 0, system=2))
            put(at + 50, frame("UNKNOWN", n, 3))
    return bytes(out)


def flight() -> bytes:
    """Return 20 s of a quadcopter, armed from 2 s on, with trouble, and of a ground station."""
    out = bytearray()

    def put(at: int, data: bytes) -> None:
        out.extend(struct.pack(">Q", START + at) + data)

    for n in range(200):
        at = n * 100_000
        mode, armed = (0 if n < 20 else 5 if n < 100 else 6), 128 * (n >= 20)
        put(at, frame("HEARTBEAT", mode, 2, 3, 81 | armed, 4, 3))
        put(at + 1, frame("HEARTBEAT", 0, 6, 8, 0, 4, 3, system=255))
        status = 0, 0, 0, 300, 16_000 - 10 * n, 1250, 0, 0, 0, 0, 0, 0, 100 - n // 10
        put(at + 2, frame("SYS_STATUS", *status, 0, 0, 0))
        fix = (2 if 120 <= n < 140 else 3), 11
        position = 473_977_420 + 1000 * n, 85_455_940, 500_000, 121, 200, 350, 0
        put(at + 3, frame("GPS_RAW_INT", at, *position, *fix, 0, 0, 0, 0, 0, 0))
        put(
            at + 4,
            frame("EKF_STATUS_REPORT", 1.25 if 60 <= n < 80 else 0.25, 0.5, 0.25, 0.125, 0.0, 831, 0.0),
        )
        put(at + 5, frame("VIBRATION", at, 40.0 if n == 50 else 4.0, 2.0, 1.0, 3 * (n > 70), 0, 0))
        put(at + 6, frame("GLOBAL_POSITION_INT", n, 473_977_420, 85_455_940, 500_000, 100 * n, 0, 0, 0, 0))
        if n < 2:
            put(at + 7, frame("PARAM_VALUE", 13.5, 2, 0, b"BATT_LOW_VOLT", 9))
            put(at + 8, frame("PARAM_VALUE", 500.0 + 100 * n, 2, 1, b"WPNAV_SPEED", 9))
    put(20_000_000, frame("STATUSTEXT", 6, b"ArduCopter V4.5.1 (abcdef01)", 0, 0))
    put(20_000_001, frame("STATUSTEXT", 4, b"Radio Failsafe", 0, 0))
    return bytes(out)
