"""Commands for ULogs only: ``logreel ulog …``."""

from __future__ import annotations

from logreel.formats.ulog.gps_dump import gps_dump
from logreel.registry.commands import Command, Example, Option

COMMANDS = (
    Command(
        "gps-dump",
        "Extract the raw communication with a GPS receiver, as UBX, NMEA or RTCM.",
        gps_dump,
        (
            Option("instance", ("--instance",), "Number of the receiver: 0 is the main one.", int, 0, "N"),
            Option("to_device", ("--to-device",), "The bytes that were sent to the receiver.", bool, False),
        ),
        (
            Example("logreel ulog gps-dump gps.ulg -o gps.ubx", "what the main receiver sent"),
            Example("logreel ulog gps-dump gps.ulg --to-device -o sent.ubx", "what was sent to it"),
        ),
    ),
)
