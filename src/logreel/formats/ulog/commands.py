"""Commands for ULogs only: ``logreel ulog …``."""

from __future__ import annotations

from logreel.formats.ulog.gps_dump import gps_dump
from logreel.registry.commands import Command, Option

COMMANDS = (
    Command(
        "gps-dump",
        "Extract the raw communication with a GPS receiver, as UBX, NMEA or RTCM.",
        gps_dump,
        (
            Option("instance", ("--instance",), "Number of the receiver: 0 is the main one.", int, 0, "N"),
            Option("to_device", ("--to-device",), "The bytes that were sent to the receiver.", bool, False),
        ),
    ),
)
