"""Build telemetry logs from MAVLink's specification, without code of the package."""

from __future__ import annotations

import struct

#: Number, byte for the checksum, and bytes in the order of the payload; the first ones are those of version 1.
MESSAGES = {
    "HEARTBEAT": (0, 50, "<IBBBBB", ""),
    "ATTITUDE": (30, 39, "<Iffffff", ""),
    "GLOBAL_POSITION_INT": (33, 104, "<IiiiihhhH", ""),
    "SERVO_OUTPUT_RAW": (36, 222, "<IHHHHHHHHB", "HHHHHHHH"),
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
