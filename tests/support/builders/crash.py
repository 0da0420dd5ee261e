"""A flight that ends badly: its battery goes low, failsafe begins, and it falls."""

from __future__ import annotations

import struct

from support.samples.ulog.builder import Builder

#: Start of the data in us, and seconds of it.
START, SECONDS = 20_000_000, 60
#: Seconds after the start: armed, in the air, cells below their limit, failsafe, the fall, disarmed.
ARMED, AIR, LOW, FAILSAFE, FALL, DISARMED = 2.0, 5.0, 30.0, 32.0, 40.0, 50.0
#: What the vehicle says at the fall, and a warning at the same moment.
SAID, TOLD = "Attitude failure (roll)", "Roll is not controlled"
#: Numbers of modes, and their names.
POSITION, RETURN = (2, "Position"), (5, "Return")

_TOPICS = {
    "vehicle_status": "uint64_t timestamp;uint8_t nav_state;uint8_t arming_state;bool failsafe;uint8_t[5] _padding0;",
    "vehicle_land_detected": "uint64_t timestamp;bool landed;uint8_t[7] _padding0;",
    "battery_status": "uint64_t timestamp;float voltage_v;float current_a;uint8_t cell_count;uint8_t[7] _padding0;",
    "vehicle_attitude": "uint64_t timestamp;float[4] q;",
}


def us(seconds: float) -> int:
    """Return seconds after the start as the time of a message."""
    return START + round(seconds * 1e6)


def crash(sound: bool = False, delay: float = 0, **parameters: float) -> bytes:
    """Return a ULog of a flight of 60 s.

    sound   whether nothing goes wrong: no low battery, failsafe, fall and texts
    delay   seconds by which all that happens is later
    parameters  values of parameters by name
    """
    out = Builder(start_us=START).flags().info("sys_name", "PX4").info("ver_hw", "TEST")
    for name, members in _TOPICS.items():
        out.format(f"{name}:{members}")
    for key, value in parameters.items():
        out.parameter(f"float {key}", value)
    for number, name in enumerate(_TOPICS):
        out.subscribe(name, number)
    for tick in range(SECONDS * 10):
        now = us(tick / 10)
        t = tick / 10 - delay
        fails = not sound and FAILSAFE <= t < FALL
        mode = RETURN if fails else POSITION
        fallen = not sound and t >= FALL
        if tick % 5 == 0:
            armed = 2 if ARMED <= t < DISARMED else 1
            out.data(0, struct.pack("<QBB?5x", now, mode[0], armed, fails))
            out.data(1, struct.pack("<Q?7x", now, not (AIR <= t < (FALL + 1 if fallen else DISARMED))))
        low = not sound and LOW <= t < FALL
        volts = (12.4 if low else 16.0) + 0.01 * (tick % 7)
        out.data(2, struct.pack("<QffB7x", now, volts, 8.0, 4))
        roll = (0.0, 1.0) if fallen else (1.0, 0.01 * (tick % 5))
        out.data(3, struct.pack("<Q4f", now, *roll, 0, 0))
        if fallen and t == FALL:
            out.text(2, now, SAID)
            out.text(4, now + 50_000, TOLD)
    return out.bytes()
