"""What people look at who review a flight of ArduPilot: charts of DataFlash logs and of telemetry logs."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.plugin import Chart, Log, Series
from logreel_ardupilot.signals import autopilot

#: Title, group, whether it is first, and series: topic, field, label. Those that a log lacks are left out.
_DATAFLASH = (
    ("Roll and pitch", "Attitude", True, (("ATT", "Roll", "roll"), ("ATT", "Pitch", "pitch"))),
    ("Roll", "Attitude", False, (("ATT", "Roll", "measured"), ("ATT", "DesRoll", "desired"))),
    ("Pitch", "Attitude", False, (("ATT", "Pitch", "measured"), ("ATT", "DesPitch", "desired"))),
    ("Yaw", "Attitude", False, (("ATT", "Yaw", "measured"), ("ATT", "DesYaw", "desired"))),
    ("Height above home", "Position", True, (("POS", "RelHomeAlt", "height"),)),
    ("Height", "Position", False, (("CTUN", "Alt", "estimated"), ("CTUN", "DAlt", "desired"))),
    ("Battery", "Power", True, (("BAT", "Volt", "voltage"),)),
    ("Current", "Power", False, (("BAT", "Curr", "current"),)),
    ("Charge used", "Power", False, (("BAT", "CurrTot", "used"),)),
    ("Board supply", "Power", False, (("POWR", "Vcc", "board"), ("POWR", "VServo", "servos"))),
    ("Vibration", "Vibration", True, tuple(("VIBE", f"Vibe{axis}", axis.lower()) for axis in "XYZ")),
    ("Clips", "Vibration", False, (("VIBE", "Clip", "clips"), *(("VIBE", f"Clip{n}", f"clips {n}") for n in range(3)))),
    ("Satellites", "GPS", False, (("GPS", "NSats", "first"), ("GPS2", "NSats", "second"))),
    ("Fix and HDOP", "GPS", False, (("GPS", "Status", "fix"), ("GPS", "HDop", "HDOP"))),
    *(
        (f"Test ratios of {topic}", "Estimator", False, tuple((topic, name, label) for name, label in (
            ("SV", "velocity"), ("SP", "position"), ("SH", "height"), ("SM", "compass"), ("SVT", "airspeed"))))
        for topic in ("XKF4", "NKF4")
    ),
    ("Outputs", "Actuators", False, tuple(("RCOU", f"C{n}", f"{n}") for n in range(1, 9))),
    ("Inputs", "Remote control", False, tuple(("RCIN", f"C{n}", f"{n}") for n in range(1, 9))),
    ("Processor", "System", False, (("PM", "Load", "load"), ("PM", "NLon", "long loops"))),
)  # fmt: skip
_MAVLINK = (
    ("Roll and pitch", "Attitude", True, (("ATTITUDE", "roll", "roll"), ("ATTITUDE", "pitch", "pitch"))),
    ("Height above home", "Position", True, (("GLOBAL_POSITION_INT", "relative_alt", "height"),)),
    ("Speed", "Position", False, (("VFR_HUD", "groundspeed", "ground"), ("VFR_HUD", "airspeed", "air"))),
    ("Battery", "Power", True, (("SYS_STATUS", "voltage_battery", "voltage"),)),
    ("Current", "Power", False, (("SYS_STATUS", "current_battery", "current"),)),
    ("Vibration", "Vibration", True, tuple(("VIBRATION", f"vibration_{axis}", axis) for axis in "xyz")),
    ("Clips", "Vibration", False, tuple(("VIBRATION", f"clipping_{n}", f"clips {n}") for n in range(3))),
    ("Satellites", "GPS", False, (("GPS_RAW_INT", "satellites_visible", "first"),)),
    ("Test ratios", "Estimator", False, tuple(("EKF_STATUS_REPORT", f"{name}_variance", name) for name in (
        "velocity", "pos_horiz", "pos_vert", "compass", "airspeed"))),
    ("Processor", "System", False, (("SYS_STATUS", "load", "load"),)),
)  # fmt: skip


def charts(log: Log) -> Iterator[Chart]:
    """Yield the charts of a log; series whose topic or field is missing are left out by the caller."""
    sender = f"{autopilot(log)}/" if log.format == "tlog" else ""
    for title, group, is_first, series in _MAVLINK if log.format == "tlog" else _DATAFLASH:
        curves = tuple(Series(sender + topic, name, "", label) for topic, name, label in series)
        yield Chart(title, curves, group=group, first=is_first)
