"""Logs that are built to be drawn wrong: early texts, gaps, held values, a wild position."""

from __future__ import annotations

import struct

from support.samples.ulog.builder import Builder

#: Start of the data in us, and seconds of it.
START, SECONDS = 10_000_000, 40
#: Seconds after the start between which nothing is measured.
GAP = (12.0, 18.0)
#: Texts before the first data: level, seconds before it, text.
EARLY = ((3, 5.0, "gyro 0 timeout"), (3, 4.0, "baro 0 timeout"), (4, 2.0, "low disk space"))
#: Seconds at which a setpoint is sent, and its values.
SETPOINTS = {1.0: 5.0, 20.0: 12.0, 22.0: 8.0}
#: Seconds at which the receiver states a place far away.
WILD = 30.0


def us(seconds: float) -> int:
    """Return seconds after the start as the time of a message."""
    return START + round(seconds * 1e6)


def pitfalls() -> bytes:
    """Return a ULog of 40 s.

    Its battery is measured at 10 Hz but in GAP, its receiver at 5 Hz drifts north at 2 m/s but is 500 km away at WILD,
    its setpoints are held for seconds, its attitude is even at 20 Hz, and its first texts are older than its data.
    """
    out = Builder(start_us=START).flags()
    out.info("sys_name", "PX4").info("ver_hw", "TEST")
    out.format("battery_status:uint64_t timestamp;float voltage_v;float current_a;")
    out.format("vehicle_local_position_setpoint:uint64_t timestamp;float x;float y;float z;")
    out.format(
        "vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;int32_t alt;"
        "uint8_t fix_type;uint8_t[3] _padding0;"
    )
    out.format("vehicle_attitude:uint64_t timestamp;float[4] q;")
    out.format(
        "vehicle_status:uint64_t timestamp;uint8_t nav_state;uint8_t arming_state;uint8_t[6] _padding0;"
    )
    names = (
        "battery_status",
        "vehicle_local_position_setpoint",
        "vehicle_gps_position",
        "vehicle_attitude",
        "vehicle_status",
    )
    for number, name in enumerate(names):
        out.subscribe(name, number)
    for level, before, text in EARLY:
        out.text(level, us(-before), text)
    rows: list[tuple[float, int, bytes]] = []
    for n in range(SECONDS * 20):
        t = n / 20
        rows.append((t, 3, struct.pack("<Q4f", us(t), 1, 0.1 * (n % 40 < 20), 0, 0)))
        if n % 2 == 0 and not GAP[0] <= t < GAP[1]:
            rows.append((t, 0, struct.pack("<Qff", us(t), 16 - t / 20, 5 + t / 10)))
        if n % 4 == 0:
            lat, lon = 473_000_000 + round(t * 2 / 0.011132), 85_000_000
            if t == WILD:
                lat += 45_000_000
            rows.append((t, 2, struct.pack("<QiiiB3x", us(t), lat, lon, 400_000, 3)))
        if n % 100 == 0:
            rows.append((t, 4, struct.pack("<QBB6x", us(t), 2 if t < 20 else 3, 2)))
    for t, z in SETPOINTS.items():
        rows.append((t, 1, struct.pack("<Q3f", us(t), 0, 0, -z)))
    for _, number, payload in sorted(rows, key=lambda row: row[:2]):
        out.data(number, payload)
    out.text(6, us(20), "Mission begun")
    return out.bytes()
