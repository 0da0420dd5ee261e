"""The formats of logreel itself, and a generated log of each.

The suite iterates over ``builtin_formats()``, never over all formats: plug-ins that a developer has installed are not
its subject.
"""

from __future__ import annotations

from functools import cache

from logreel.registry.format import Format
from logreel.registry.registry import FORMATS
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.drive import drive as carla_drive
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive as rosbag_drive
from support.samples.rosbag2.builder import robot as rosbag2_robot
from support.samples.ulog.builder import flight

_SAMPLES = {
    "bddf": bddf_walk,
    "carla": lambda: carla_drive().bytes(),
    "koblenz": koblenz_drive,
    "mcap": mcap_walk,
    "rosbag": rosbag_drive,
    "rosbag2": rosbag2_robot,
    "ulog": flight,
}
#: The same with the same channels and records in less time, and in several chunks where the format has chunks.
_SMALL = {
    "bddf": lambda: bddf_walk(3.0),
    "carla": lambda: carla_drive(4.0).bytes(),
    "koblenz": lambda: koblenz_drive(0.5, packets=2),
    "mcap": lambda: mcap_walk(6.0),
    "rosbag": lambda: rosbag_drive(2.0, chunk_bytes=64 << 10),
    "rosbag2": lambda: rosbag2_robot(60, 3000),
    "ulog": lambda: flight(3.0),
}


def builtin_formats() -> dict[str, Format]:
    """Return the formats of logreel by name, without those of other packages."""
    return FORMATS.own()


def written_formats() -> dict[str, Format]:
    """Return those of the formats of logreel that can be written."""
    return {name: fmt for name, fmt in builtin_formats().items() if fmt.create is not None}


@cache
def sample_log(name: str) -> bytes:
    """Return a realistic log of a built-in format."""
    return _SAMPLES[name]()


@cache
def small_log(name: str) -> bytes:
    """Return a log of a built-in format with all that ``sample_log`` has in it, but fewer messages."""
    return _SMALL[name]()
