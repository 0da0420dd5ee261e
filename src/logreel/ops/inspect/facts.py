"""What was recorded, by what and when, as pairs of label and value for the head of a page."""

from __future__ import annotations

import re

from logreel.log.log import Log
from logreel.log.times import duration_text, utc_shift, utc_text

#: Names under which logs say what was recorded by what, and their labels; the first known name of a label counts.
_LABELS = {
    "sys_name": "System",
    "ver_hw": "Hardware",
    "ver_sw_release": "Release",
    "ver_vendor_sw_release": "Vendor release",
    "ver_sw_branch": "Branch",
    "ver_sw": "Software",
    "bosdyn:robot-serial-number": "Robot",
    "robot": "Robot",
    "robot_name": "Robot",
    "vehicle": "Vehicle",
    "release": "Release",
    "map": "Map",
    "engine": "Engine",
    "host": "Host",
    "profile": "Profile",
    "library": "Library",
}
#: Checksum of a commit, of which the beginning is enough to find it.
_HASH = re.compile(r"[0-9a-f]{32,}")
#: Longest value that is shown.
LONGEST = 80


def facts(log: Log) -> list[tuple[str, str]]:
    """Return label and value of what *log* says of its recording: start, duration, format, and known metadata."""
    shift = utc_shift(log)
    found: dict[str, str] = {}
    if log.start is not None and shift is not None:
        found["Start"] = utc_text(log.start + shift, 0).replace("T", " ").replace("Z", " UTC")
    found["Duration"] = duration_text(log.duration)
    found["Format"] = f"{log.format} {log.version}".strip()
    for name, label in _LABELS.items():
        value = log.metadata.get(name)
        if isinstance(value, (str, int, float)) and str(value).strip() and label not in found:
            text = str(value)
            if _HASH.fullmatch(text):
                text = text[:12]
            found[label] = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return list(found.items())
