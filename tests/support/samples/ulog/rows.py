"""Rows of every topic of the sample flight, and their bytes."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from support.samples.ulog.motion import (
    ARMED,
    CLIMB,
    DESCENT,
    DISARMED,
    EIGHT,
    GEOID_M,
    HOME_ALT_M,
    HOME_LAT,
    HOME_LON,
    METRES_PER_DEGREE,
    Floats,
    Motion,
    State,
)
from support.samples.ulog.tables import FORMATS

BASIC = {
    "int8_t": "<i1",
    "uint8_t": "<u1",
    "bool": "|b1",
    "char": "|S1",
    "int16_t": "<i2",
    "uint16_t": "<u2",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "float": "<f4",
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "double": "<f8",
}

START_US = 74_312_405
#: Boot time of the invented board: 2025-05-17 08:41:06 UTC.
BOOT_UTC_US = 1_747_471_266_000_000
DROPOUTS = ((0.382, 23), (0.711, 61))
#: Topic, instance, rows per second, seconds from measurement to writing.
STREAMS: tuple[tuple[str, int, float, float], ...] = (
    ("actuator_outputs", 0, 50.0, 0.0004),
    ("battery_status", 0, 5.0, 0.0011),
    ("cpuload", 0, 1.0, 0.0021),
    ("esc_status", 0, 10.0, 0.0016),
    ("sensor_accel", 0, 50.0, 0.0003),
    ("sensor_accel", 1, 50.0, 0.0007),
    ("sensor_combined", 0, 250.0, 0.0002),
    ("sensor_gps", 0, 5.0, 0.0062),
    ("vehicle_attitude", 0, 100.0, 0.0006),
    ("vehicle_global_position", 0, 10.0, 0.0013),
    ("vehicle_land_detected", 0, 1.0, 0.0009),
    ("vehicle_local_position", 0, 20.0, 0.0012),
    ("vehicle_status", 0, 2.0, 0.0018),
)
EMPTY, LATE = ("vehicle_command_ack",), ("camera_trigger", "mavlink_log")


_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])? (\w+);")


def record_type(name: str, formats: dict[str, str]) -> np.dtype[np.void]:
    """Return the packed NumPy dtype of a message of format *name*, with its padding; `char[N]` is one bytes value."""
    fields: list[tuple[str, object]] = []
    for kind, count, field in _FIELD.findall(formats[name]):
        if kind == "char" and count:
            fields.append((field, f"|S{count}"))
            continue
        base = np.dtype(BASIC[kind]) if kind in BASIC else record_type(kind, formats)
        fields.append((field, (base, (int(count),)) if count else base))
    return np.dtype(fields)


def records(rows: NDArray[np.void]) -> list[bytes]:
    """Return the bytes of every row as PX4 writes them: without trailing padding."""
    names, end = rows.dtype.names or (), rows.dtype.itemsize
    for name in reversed(names):
        if not name.startswith("_padding"):
            break
        end -= rows.dtype[name].itemsize
    content, size = rows.tobytes(), rows.dtype.itemsize
    return [content[at : at + end] for at in range(0, len(content), size)]


class Flight:
    """Rows of every topic of one flight; NumPy never changes the numbers of RandomState."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.seconds, self.motion = seconds, Motion(seconds)
        self.rng = np.random.RandomState(seed)

    def _times(self, rate: float) -> NDArray[np.int64]:
        """Return times of a topic at *rate* Hz in us since boot, strictly ascending, with some jitter."""
        period = 1e6 / rate
        n = int(self.seconds * rate)
        jitter = self.rng.uniform(-0.05, 0.05, n)
        return np.asarray(START_US + (np.arange(n) + 0.3 + jitter) * period).astype(np.int64)

    def _noise(self, n: int, quiet: float, loud: float, state: State, columns: int = 3) -> Floats:
        """Return sensor noise, which is greater during flight: float64[n, columns]."""
        scale = np.where(state.flying, loud, quiet)[:, None]
        return np.asarray(self.rng.normal(size=(n, columns)) * scale)

    def rows(self, topic: str, instance: int, rate: float) -> NDArray[np.void]:
        """Return all rows of one topic instance, by time."""
        us = self._times(rate)
        state = self.motion.at((us - START_US) / 1e6)
        rows = np.zeros(len(us), record_type(topic, FORMATS))
        rows["timestamp"] = us
        if "timestamp_sample" in (rows.dtype.names or ()):
            rows["timestamp_sample"] = us - self.rng.randint(150, 900, len(us))
        getattr(self, f"_{topic}")(rows, state, instance)
        return rows

    def _sensor_combined(self, rows: NDArray[np.void], state: State, _: int) -> None:
        rows["gyro_rad"] = state.rates + self._noise(len(rows), 0.0006, 0.018, state)
        rows["accelerometer_m_s2"] = state.force + self._noise(len(rows), 0.012, 0.42, state)
        rows["gyro_integral_dt"] = rows["accelerometer_integral_dt"] = 3998
        rows["accelerometer_timestamp_relative"] = self.rng.randint(-400, 400, len(rows))
        rows["accel_calibration_count"], rows["gyro_calibration_count"] = 2, 5

    def _sensor_accel(self, rows: NDArray[np.void], state: State, instance: int) -> None:
        bias = np.array(((-0.118, 0.064, 0.228), (0.053, -0.021, 0.101))[instance])
        force = state.force + bias + self._noise(len(rows), 0.02, (0.7, 0.55)[instance], state)
        rows["x"], rows["y"], rows["z"] = force.T
        rows["device_id"], rows["samples"] = (4259850, 2490378)[instance], 4
        rows["temperature"] = 41.5 + 2.5 * np.linspace(0, 1, len(rows)) + instance
        rows["clip_counter"][:, 2] = (np.abs(force[:, 2]) > 12.5).astype(np.uint8)

    def _vehicle_attitude(self, rows: NDArray[np.void], state: State, _: int) -> None:
        rows["q"], rows["delta_q_reset"][:, 0] = state.q, 1.0
        rows["quat_reset_counter"] = 3

    def _vehicle_local_position(self, rows: NDArray[np.void], state: State, _: int) -> None:
        drift = np.sin(np.arange(len(rows))[:, None] * (0.011, 0.017, 0.007)) * 0.08
        rows["x"], rows["y"], rows["z"] = (state.position + drift).T
        rows["vx"], rows["vy"], rows["vz"] = (state.velocity + self._noise(len(rows), 0.01, 0.03, state)).T
        rows["ax"], rows["ay"], rows["az"] = state.acceleration.T
        rows["z_deriv"], rows["heading"] = rows["vz"], state.heading
        rows["ref_timestamp"] = START_US - 9_800_000
        rows["ref_lat"], rows["ref_lon"], rows["ref_alt"] = HOME_LAT, HOME_LON, HOME_ALT_M
        rows["dist_bottom"], rows["eph"], rows["epv"] = math.nan, 0.41, 0.58
        rows["evh"], rows["evv"] = 0.12, 0.17
        for flag in ("xy_valid", "z_valid", "v_xy_valid", "v_z_valid", "xy_global", "z_global"):
            rows[flag] = True
        rows["heading_good_for_control"] = True

    def _place(self, position: Floats) -> tuple[Floats, Floats, Floats]:
        """Return latitude and longitude in degrees, and metres above mean sea level, of a local *position*."""
        east = METRES_PER_DEGREE * math.cos(math.radians(HOME_LAT))
        return (
            HOME_LAT + position[:, 0] / METRES_PER_DEGREE,
            HOME_LON + position[:, 1] / east,
            HOME_ALT_M - position[:, 2],
        )

    def _vehicle_global_position(self, rows: NDArray[np.void], state: State, _: int) -> None:
        rows["lat"], rows["lon"], rows["alt"] = self._place(state.position)
        rows["alt_ellipsoid"], rows["terrain_alt"] = rows["alt"] + GEOID_M, HOME_ALT_M
        rows["eph"], rows["epv"] = 0.41, 0.58
        rows["lat_lon_valid"] = rows["alt_valid"] = rows["terrain_alt_valid"] = True
        rows["lat_lon_reset_counter"] = 1

    def _sensor_gps(self, rows: NDArray[np.void], state: State, _: int) -> None:
        wander = self.rng.normal(size=state.position.shape).cumsum(axis=0) * 0.02
        rows["latitude_deg"], rows["longitude_deg"], rows["altitude_msl_m"] = self._place(
            state.position + wander
        )
        rows["altitude_ellipsoid_m"] = rows["altitude_msl_m"] + GEOID_M
        # The receiver measured about 0.1 s before the topic is published.
        rows["timestamp_sample"] = rows["timestamp"] - 110_000
        rows["time_utc_usec"] = rows["timestamp"] + np.uint64(BOOT_UTC_US)
        rows["vel_n_m_s"], rows["vel_e_m_s"], rows["vel_d_m_s"] = state.velocity.T
        rows["vel_m_s"] = np.linalg.norm(state.velocity, axis=1)
        rows["cog_rad"] = np.arctan2(state.velocity[:, 1], state.velocity[:, 0])
        rows["heading"], rows["heading_offset"] = math.nan, math.nan
        rows["device_id"], rows["fix_type"], rows["vel_ned_valid"] = 11469061, 3, True
        rows["s_variance_m_s"], rows["c_variance_rad"], rows["hdop"], rows["vdop"] = 0.19, 0.07, 0.71, 1.1
        rows["eph"], rows["epv"], rows["noise_per_ms"], rows["jamming_indicator"] = 0.62, 0.97, 94, 17
        rows["satellites_used"] = self.rng.randint(17, 22, len(rows))

    def _battery_status(self, rows: NDArray[np.void], state: State, _: int) -> None:
        current = 0.9 + 58.0 * state.thrust**1.5 + np.abs(self._noise(len(rows), 0.02, 0.4, state, 1))[:, 0]
        step_h = np.diff(rows["timestamp"].astype(np.float64), prepend=START_US) / 3.6e9
        used = np.cumsum(current * step_h) * 1000.0
        remaining = 0.93 - used / 5200.0
        volt = 4 * (3.55 + 0.6 * remaining) - 0.028 * current
        rows["current_a"], rows["discharged_mah"], rows["voltage_v"] = current, used, volt
        rows["remaining"], rows["scale"], rows["temperature"] = remaining, 1.0, math.nan
        rows["current_average_a"] = np.cumsum(current) / np.arange(1, len(rows) + 1)
        rows["time_remaining_s"] = remaining * 5.2 / rows["current_average_a"] * 3600.0
        rows["voltage_cell_v"][:, :4] = volt[:, None] / 4 + (0.004, -0.002, 0.001, -0.003)
        rows["max_cell_voltage_delta"], rows["nominal_voltage"], rows["capacity"] = 0.007, 14.8, 5200
        rows["connected"], rows["cell_count"], rows["id"], rows["is_required"] = True, 4, 1, True

    def _vehicle_status(self, rows: NDArray[np.void], state: State, _: int) -> None:
        at = (rows["timestamp"] - np.uint64(START_US)) / (self.seconds * 1e6)
        # Latched: the first sample is older than the log.
        rows["timestamp"][:1] = START_US - 81_204
        rows["armed_time"] = np.where(state.armed, START_US + int(ARMED * self.seconds * 1e6), 0)
        takeoff = START_US + int(CLIMB[0] * self.seconds * 1e6)
        rows["takeoff_time"] = np.where(state.armed & (at > CLIMB[0]), takeoff, 0)
        rows["nav_state_timestamp"] = rows["armed_time"]
        rows["arming_state"], rows["vehicle_type"] = np.where(state.armed, 2, 1), 1
        rows["nav_state"] = np.where(at < EIGHT[0], 2, np.where(at < DESCENT[0], 3, 18))
        rows["nav_state_user_intention"] = rows["nav_state"]
        rows["latest_arming_reason"] = 2
        rows["latest_disarming_reason"] = np.where(at > DISARMED, 6, 0)
        rows["system_type"], rows["system_id"], rows["component_id"] = 2, 1, 1
        rows["power_input_valid"] = rows["pre_flight_checks_pass"] = True

    def _actuator_outputs(self, rows: NDArray[np.void], state: State, _: int) -> None:
        mix = np.array(((-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1)))
        wish = state.rates @ (mix * (0.02, 0.02, 0.04)).T + self._noise(len(rows), 0.0, 0.006, state, 4)
        share = np.where(state.armed[:, None], np.clip(state.thrust[:, None] + wish, 0.05, 1.0), 0.0)
        rows["output"][:, :4] = np.where(state.armed[:, None], 1050.0 + 850.0 * share, 1000.0)
        rows["noutputs"] = 4

    def _esc_status(self, rows: NDArray[np.void], state: State, _: int) -> None:
        esc = rows["esc"]
        rpm = 13_400.0 * np.sqrt(state.thrust[:, None] / 2.2) + self._noise(len(rows), 0.0, 35.0, state, 4)
        rows["counter"], rows["esc_count"], rows["esc_connectiontype"] = np.arange(len(rows)) % 65536, 4, 5
        rows["esc_online_flags"], rows["esc_armed_flags"] = 15, np.where(state.armed, 15, 0)
        esc["timestamp"][:, :4] = rows["timestamp"][:, None] - np.arange(4, dtype=np.uint64) * np.uint64(900)
        esc["esc_rpm"][:, :4] = np.where(state.armed[:, None], rpm, 0)
        esc["esc_voltage"][:, :4] = 15.9 - 1.2 * state.thrust[:, None]
        esc["esc_current"][:, :4] = 14.5 * state.thrust[:, None] ** 1.5
        esc["esc_temperature"][:, :4] = 31.0 + 11.0 * np.linspace(0, 1, len(rows))[:, None]
        esc["esc_address"][:, :4], esc["actuator_function"][:, :4] = np.arange(4), 101 + np.arange(4)
        esc["esc_power"][:, :4] = 100.0 * state.thrust[:, None]

    def _cpuload(self, rows: NDArray[np.void], state: State, _: int) -> None:
        rows["load"] = 0.39 + 0.05 * state.armed + self.rng.uniform(-0.02, 0.02, len(rows))
        rows["ram_usage"] = 0.466

    def _vehicle_land_detected(self, rows: NDArray[np.void], state: State, _: int) -> None:
        for field in ("ground_contact", "maybe_landed", "landed", "at_rest"):
            rows[field] = ~state.flying
        rows["has_low_throttle"] = state.thrust < 0.1
        rows["horizontal_movement"] = np.linalg.norm(state.velocity[:, :2], axis=1) > 0.5
        rows["vertical_movement"] = np.abs(state.velocity[:, 2]) > 0.3
        rows["in_descend"] = state.velocity[:, 2] > 0.3
