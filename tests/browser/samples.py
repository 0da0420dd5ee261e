"""One generated log of each format, with a field of it by which it is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.drive import drive as carla_drive
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive as bag_drive
from support.samples.ulog.builder import flight


@dataclass(frozen=True)
class Sample:
    """A log: its file name, what writes it, and words by which the palette finds a field of *topic*."""

    file: str
    write: Callable[[], bytes]
    words: str
    topic: str
    field: str


SAMPLES = {
    "ulog": Sample("flight.ulg", lambda: flight(10), "battery voltage_v", "battery_status", "voltage_v"),
    "rosbag": Sample("drive.bag", lambda: bag_drive(5), "imu angular z", "/imu", "angular_velocity.z"),
    "bddf": Sample("walk.bddf", lambda: bddf_walk(20), "patrol height value", "patrol/body/height", "value"),
    "carla": Sample("drive.log", lambda: carla_drive(10).bytes(), "frames duration", "frames", "duration"),
    "koblenz": Sample("city.log", lambda: koblenz_drive(1), "obd rpm", "OBDDataM", "rpm"),
    "mcap": Sample("walk.mcap", lambda: mcap_walk(10), "imu angular z", "/imu", "angular_velocity.z"),
}


@cache
def content(name: str) -> bytes:
    """Return the bytes of a sample."""
    return SAMPLES[name].write()


def sample(name: str, folder: Path) -> Path:
    """Write a sample to a folder; return its path."""
    path = folder / SAMPLES[name].file
    path.write_bytes(content(name))
    return path
