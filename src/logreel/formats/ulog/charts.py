"""What people look at who review a flight, by the topics that the firmware logged: charts, and names of states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import LogError
from logreel.formats.ulog.meaning.flight import MAIN_STATES, nav_state_names
from logreel.formats.ulog.meaning.vehicle import FIXES
from logreel.lenses.facts import SPECTROGRAM, Chart, Series
from logreel.log.log import Log

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Names of an angle, its axis in arrays and in local coordinates, and of its rate in old ``vehicle_attitude``.
AXES = (("roll", 0, "x", "rollspeed"), ("pitch", 1, "y", "pitchspeed"), ("yaw", 2, "z", "yawspeed"))
#: Most actuators of one chart, and most instances of a topic.
MAX_OUTPUTS, MAX_INSTANCES = 16, 4


def charts(log: Log) -> Iterator[Chart]:
    """Yield the charts of *log*; series whose topic or field is missing are left out by the caller."""
    for part in (_attitude, _position, _power, _gps, _vibration, _actuators, _inputs, _estimator, _system):
        yield from part(log)


def _has(log: Log, topic: str, field: str) -> bool:
    ch = log.channels.get(topic)
    try:
        return ch is not None and len(ch) > 0 and field in ch
    except LogError:
        return False


def _first(log: Log, *choices: tuple[str, str]) -> tuple[str, str] | None:
    """Return the first topic and field that *log* has messages of; older firmware has other names."""
    return next((choice for choice in choices if _has(log, *choice)), None)


def _instances(log: Log, topic: str) -> list[Channel]:
    """Return the channels of all instances of a topic that have messages."""
    names = [topic, *(f"{topic}[{n}]" for n in range(1, 10))]
    channels = [log.channels[name] for name in names if name in log.channels]
    return [ch for ch in channels if len(ch)][:MAX_INSTANCES]


def _attitude(log: Log) -> Iterator[Chart]:
    angles = [_angle(log, *axis[:2]) for axis in AXES]
    # A yaw of a whole turn would flatten roll and pitch of a few degrees.
    yield Chart("Attitude", tuple(angles[:2]), group="Attitude", first=True)
    for (name, _, _, _), angle in zip(AXES, angles, strict=True):
        if (setpoint := _angle_setpoint(log, name)) is not None:
            yield Chart(f"{name.title()} angle", (_named(angle, "estimated"), setpoint), group="Attitude")
        elif name == "yaw":
            yield Chart("Yaw angle", (angle,), group="Attitude")
    for name, at, _, old in AXES:
        rate = _first(log, ("vehicle_angular_velocity", f"xyz[{at}]"), ("vehicle_attitude", old))
        series = [Series(*rate, "degrees", "estimated", "deg/s")] if rate else []
        setpoint = Series("vehicle_rates_setpoint", name, "degrees", "setpoint", "deg/s")
        yield Chart(f"{name.title()} rate", (*series, setpoint), group="Rates")


def _angle(log: Log, name: str, at: int) -> Series:
    if _has(log, "vehicle_attitude", "q"):
        return Series("vehicle_attitude", "q", name, name, "deg")
    return Series("vehicle_attitude", name, "degrees", name, "deg")


def _named(series: Series, label: str) -> Series:
    return Series(series.topic, series.field, series.function, label, series.unit)


def _angle_setpoint(log: Log, name: str) -> Series | None:
    if _has(log, "vehicle_attitude_setpoint", f"{name}_body"):
        return Series("vehicle_attitude_setpoint", f"{name}_body", "degrees", "setpoint", "deg")
    if _has(log, "vehicle_attitude_setpoint", "q_d"):
        return Series("vehicle_attitude_setpoint", "q_d", name, "setpoint", "deg")
    return None


def _position(log: Log) -> Iterator[Chart]:
    gps = _gps_topic(log)
    altitude = [Series("vehicle_global_position", "alt", "", "estimated", "m")]
    if _has(log, gps, "altitude_msl_m"):
        altitude.append(Series(gps, "altitude_msl_m", "", "GPS", "m"))
    elif _has(log, gps, "alt"):
        altitude.append(Series(gps, "alt", "thousandth", "GPS", "m"))
    if baro := _first(log, ("vehicle_air_data", "baro_alt_meter"), ("sensor_combined", "baro_alt_meter")):
        altitude.append(Series(*baro, "", "barometer", "m"))
    if _has(log, "position_setpoint_triplet", "current.alt"):
        altitude.append(Series("position_setpoint_triplet", "current.alt", "", "setpoint", "m"))
    # Without a global position, what the receiver says may be nonsense: the height by the local estimate comes first.
    known = _has(log, "vehicle_global_position", "alt") or not _has(log, "vehicle_local_position", "z")
    if not known:
        heights = (
            Series("vehicle_local_position", "z", "negative", "estimated", "m"),
            Series("vehicle_local_position_setpoint", "z", "negative", "setpoint", "m"),
        )
        yield Chart("Height above the origin", heights, group="Position", first=True)
    yield Chart("Altitude", tuple(altitude), group="Position", first=known)
    local, wanted = "vehicle_local_position", "vehicle_local_position_setpoint"
    names = {"x": "North", "y": "East", "z": "Down"}
    for axis, direction in names.items():
        series = (Series(local, axis, "", "estimated", "m"), Series(wanted, axis, "", "setpoint", "m"))
        yield Chart(f"Local position, {direction.lower()}", series, group="Position")
    for axis, direction in names.items():
        field = f"v{axis}"
        series = (Series(local, field, "", "estimated", "m/s"), Series(wanted, field, "", "setpoint", "m/s"))
        yield Chart(f"Velocity, {direction.lower()}", series, group="Position")
    speeds = [
        Series("airspeed_validated", "true_airspeed_m_s", "", "airspeed", "m/s"),
        Series("airspeed", "true_airspeed_m_s", "", "airspeed sensor", "m/s"),
    ]
    yield Chart("Airspeed", tuple(speeds), group="Position")
    sensors = [
        Series(ch.topic, "current_distance", "", ch.topic, "m") for ch in _instances(log, "distance_sensor")
    ]
    sensors.append(Series(local, "dist_bottom", "", "estimated", "m"))
    if len(sensors) > 1:
        yield Chart("Distance to the ground", tuple(sensors), group="Position")


def _power(log: Log) -> Iterator[Chart]:
    packs = _instances(log, "battery_status")
    for ch in packs:
        name = "Battery" if len(packs) == 1 else f"Battery, {ch.topic}"
        volt = (
            Series(ch.topic, "voltage_v", "", "voltage", "V"),
            Series(ch.topic, "current_a", "", "current", "A"),
        )
        yield Chart(name, volt, group="Power", first=ch is packs[0])
        yield Chart(
            f"{name}: charge", (Series(ch.topic, "remaining", "percent", "remaining", "%"),), group="Power"
        )
    rails = tuple(
        Series("system_power", field, "", label, "V")
        for field, label in (("voltage5v_v", "5 V"), ("voltage5V_v", "5 V"), ("voltage_payload_v", "payload"))
    )
    yield Chart("Supply of the electronics", rails, group="Power")


def _gps_topic(log: Log) -> str:
    """Return the topic of the receiver, or of the blend of several, that has most fields of interest."""
    names = [f"{topic}{n}" for topic in ("vehicle_gps_position", "sensor_gps") for n in ("", "[1]")]
    return next((name for name in names if name in log.channels and len(log.channels[name])), names[0])


def _gps(log: Log) -> Iterator[Chart]:
    topic = _gps_topic(log)
    errors = [
        ("eph", "horizontal error", "m"),
        ("epv", "vertical error", "m"),
        ("hdop", "HDOP", ""),
        ("vdop", "VDOP", ""),
    ]
    yield Chart("GPS uncertainty", tuple(Series(topic, f, "", n, u) for f, n, u in errors), group="GPS")
    fix = (Series(topic, "satellites_used", "", "satellites"), Series(topic, "fix_type", "", "type of fix"))
    yield Chart("GPS satellites and fix", fix, group="GPS")
    noise = (
        Series(topic, "noise_per_ms", "", "noise per ms"),
        Series(topic, "jamming_indicator", "", "jamming indicator"),
        Series(topic, "jamming_state", "", "jamming state"),
        Series(topic, "spoofing_state", "", "spoofing state"),
    )
    yield Chart("GPS noise and jamming", noise, group="GPS")


def _vibration(log: Log) -> Iterator[Chart]:
    metrics = [
        Series(ch.topic, "accel_vibration_metric", "", f"IMU {n}", "m/s²")
        for n, ch in enumerate(_instances(log, "vehicle_imu_status"))
    ]
    if not metrics:
        names = ("coning of angles", "high-frequency angles", "high-frequency velocities")
        metrics = [Series("estimator_status", f"vibe[{n}]", "", name) for n, name in enumerate(names)]
    yield Chart("Vibration", tuple(metrics), group="Vibration")
    raw = [
        Series("sensor_combined", f"accelerometer_m_s2[{at}]", "", axis, "m/s²") for _, at, axis, _ in AXES
    ]
    yield Chart("Acceleration", tuple(raw), group="Vibration")
    yield Chart("Spectrum of the acceleration", tuple(raw), SPECTROGRAM, "Vibration")
    turns = [
        Series("sensor_combined", f"gyro_rad[{at}]", "degrees", axis, "deg/s") for _, at, axis, _ in AXES
    ]
    yield Chart("Spectrum of the turn rates", tuple(turns), SPECTROGRAM, "Vibration")
    clips = [
        Series(ch.topic, f"accel_clipping[{at}]", "", f"IMU {n} {axis}")
        for n, ch in enumerate(_instances(log, "vehicle_imu_status"))
        for _, at, axis, _ in AXES
    ]
    yield Chart("Clipping of accelerometers", tuple(clips), group="Vibration")


def _actuators(log: Log) -> Iterator[Chart]:
    for topic, title in (("actuator_motors", "Motors"), ("actuator_servos", "Servos")):
        used = _used(log, topic, "control")
        yield Chart(
            title, tuple(Series(topic, f"control[{i}]", "", str(i + 1)) for i in used), group="Actuators"
        )
    for ch in _instances(log, "actuator_outputs"):
        used = _used(log, ch.topic, "output")
        if "noutputs" in ch:
            count = int(np.max(np.ma.filled(ch["noutputs"], 0)))
            used = [i for i in used if i < count]
        series = tuple(Series(ch.topic, f"output[{i}]", "", str(i + 1)) for i in used)
        yield Chart(f"Actuator outputs, {ch.topic}", series, group="Actuators")
    if not _has(log, "actuator_motors", "control"):
        names = ("roll", "pitch", "yaw", "thrust")
        controls = tuple(Series("actuator_controls_0", f"control[{i}]", "", n) for i, n in enumerate(names))
        yield Chart("Actuator controls", controls, group="Actuators")
    yield from _speed_controllers(log)
    hover = Series("hover_thrust_estimate", "hover_thrust", "", "hover thrust")
    yield Chart("Hover thrust", (hover,), group="Actuators")


def _speed_controllers(log: Log) -> Iterator[Chart]:
    ch = log.channels.get("esc_status")
    if ch is None or not len(ch) or not _has(log, "esc_status", "esc_count"):
        return
    count = min(int(np.max(np.ma.filled(ch["esc_count"], 0))), MAX_OUTPUTS)
    for field, what, unit in (
        ("esc_rpm", "speed", "rpm"),
        ("esc_current", "current", "A"),
        ("esc_temperature", "temperature", "°C"),
    ):
        series = tuple(Series("esc_status", f"esc[{i}].{field}", "", str(i + 1), unit) for i in range(count))
        yield Chart(f"Speed controllers: {what}", series, group="Actuators")


def _used(log: Log, topic: str, field: str) -> list[int]:
    """Return the items of an array that vary; those of unused outputs are constant or not a number."""
    if not _has(log, topic, field):
        return []
    values = np.ma.filled(log.channels[topic][field], np.nan).astype(np.float64)
    if values.ndim != 2:
        return []
    known = np.isfinite(values)
    least, most = (f(np.where(known, values, g), axis=0) for f, g in ((np.min, np.inf), (np.max, -np.inf)))
    return np.flatnonzero(known.any(axis=0) & (least < most)).tolist()[:MAX_OUTPUTS]


def _inputs(log: Log) -> Iterator[Chart]:
    sticks = "manual_control_setpoint"
    # Until v1.13 the axes of the sticks had the names of MAVLink.
    names = (("roll", "roll"), ("pitch", "pitch"), ("yaw", "yaw"), ("throttle", "throttle"))
    old = (("y", "roll"), ("x", "pitch"), ("r", "yaw"), ("z", "throttle"))
    chosen = names if _has(log, sticks, "throttle") else old
    yield Chart("Sticks", tuple(Series(sticks, f, "", n) for f, n in chosen), group="Radio control")
    link = (Series("input_rc", "rssi", "", "RSSI"), Series("input_rc", "link_quality", "", "link quality"))
    yield Chart("Radio link", link, group="Radio control")
    lost = (
        Series("input_rc", "rc_lost", "", "signal lost"),
        Series("input_rc", "rc_failsafe", "", "failsafe of the receiver"),
    )
    yield Chart("Radio link: losses", lost, group="Radio control")


def _estimator(log: Log) -> Iterator[Chart]:
    status = "estimator_status"
    ratios = (
        ("vel_test_ratio", "velocity"),
        ("pos_test_ratio", "position"),
        ("hgt_test_ratio", "height"),
        ("mag_test_ratio", "magnetometer"),
        ("hdg_test_ratio", "heading"),
        ("tas_test_ratio", "airspeed"),
    )
    series = tuple(Series(status, f, "", n) for f, n in ratios)
    yield Chart("Estimator: test ratios of innovations (1: limit)", series, group="Estimator")
    flags = "estimator_status_flags"
    changing = _changing_flags(
        log, flags, ("reject_", "fs_bad_", "cs_inertial", "cs_fake", "cs_gps", "cs_gnss_pos")
    )
    yield Chart("Estimator: flags that changed", tuple(Series(flags, f) for f in changing), group="Estimator")
    words = ("innovation_check_flags", "filter_fault_flags", "gps_check_fail_flags")
    yield Chart(
        "Estimator: bits of failed checks", tuple(Series(status, f) for f in words), group="Estimator"
    )
    errors = (("pos_horiz_accuracy", "horizontal"), ("pos_vert_accuracy", "vertical"))
    yield Chart(
        "Estimator: accuracy of position",
        tuple(Series(status, f, "", n, "m") for f, n in errors),
        group="Estimator",
    )
    resets = (
        "xy_reset_counter",
        "z_reset_counter",
        "vxy_reset_counter",
        "vz_reset_counter",
        "heading_reset_counter",
    )
    yield Chart(
        "Estimator: resets", tuple(Series("vehicle_local_position", f) for f in resets), group="Estimator"
    )
    magnet = _first(log, ("vehicle_magnetometer", "magnetometer_ga"), ("sensor_combined", "magnetometer_ga"))
    if magnet:
        yield Chart(
            "Strength of the magnetic field", (Series(*magnet, "norm", "field", "G"),), group="Estimator"
        )


def _changing_flags(log: Log, topic: str, begins: tuple[str, ...]) -> list[str]:
    ch = log.channels.get(topic)
    if ch is None or not len(ch):
        return []
    try:
        names = [field for field in ch.fields if field.startswith(begins)]
        return [name for name in names if np.ptp(np.ma.filled(ch[name], 0).astype(np.int64)) > 0][:8]
    except LogError:
        return []


def _system(log: Log) -> Iterator[Chart]:
    load = (
        Series("cpuload", "load", "percent", "CPU", "%"),
        Series("cpuload", "ram_usage", "percent", "memory", "%"),
    )
    yield Chart("Load", load, group="System", y=(0.0, 100.0))
    heat = [Series(ch.topic, "temperature", "", ch.topic, "°C") for ch in _instances(log, "sensor_accel")]
    heat += [Series("vehicle_air_data", "baro_temp_celcius", "", "barometer", "°C")]
    heat += [Series("vehicle_air_data", "ambient_temperature", "", "air", "°C")]
    yield Chart("Temperatures", tuple(heat), group="System")
    yield Chart(
        "Time between messages",
        (Series("sensor_combined", "", "interval", "sensor_combined"),),
        group="System",
    )


#: Names by topic, field and number that are the same in all releases.
STATES = {
    "commander_state": {"main_state": MAIN_STATES},
    "vehicle_gps_position": {"fix_type": FIXES},
    "sensor_gps": {"fix_type": FIXES},
    "battery_status": {"warning": {0: "none", 1: "low", 2: "critical", 3: "emergency", 4: "failed"}},
}
#: ``arming_state``; releases name the numbers below 2 differently.
ARMING = {0: "Initializing", 1: "Disarmed", 2: "Armed"}


def states(log: Log) -> dict[str, dict[str, dict[int, str]]]:
    """Return names of states by topic, field and number; further instances of a topic have those of the first."""
    known = {topic: dict(fields) for topic, fields in STATES.items()}
    if "vehicle_status" in log.channels:
        names = nav_state_names(log["vehicle_status"])
        known["vehicle_status"] = {
            "nav_state": names,
            "nav_state_user_intention": names,
            "arming_state": ARMING,
        }
    by_field = {}
    for topic in log.channels:
        fields = known.get(topic.partition("[")[0])
        if fields is not None:
            by_field[topic] = fields
    return by_field
