"""What a channel's messages are: the definition as the log carries it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schema:
    """A message type as the log defines it.

    name      the type's name, e.g. ``vehicle_attitude`` or ``sensor_msgs/Imu``
    encoding  the definition language, e.g. ``ulog``, ``ros1msg``
    text      the definition verbatim, or empty where the log carries none
    """

    name: str
    encoding: str
    text: str = ""
